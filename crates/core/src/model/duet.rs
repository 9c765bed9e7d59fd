//! Rounds as duets: all contenders of a round at once, each on a bed of its own, and their work in
//! turns. Which plans can be run so.

use super::{
    Bed, BedKind, Contender, ExtraProbe, Fio, Place, Plan, Rounds, Scalar, Sync, Work, Workload,
};

/// How long the work itself has to run: twenty turns, the first of which are left out.
const RUNTIME_MS_LEAST: u64 = 2000;

/// How much a contender may hold unwritten, so that little of it is written back by itself. Btrfs
/// had written a third of 40 MiB in new files during others' turns, and now and then a tenth of 8
/// MiB.
const UNWRITTEN_MOST: u64 = 8 << 20;

/// The same in files of which only metadata is changed: with 5,000 no contender wrote much.
const CHANGED_MOST: u64 = 5000;

/// The most devices that a bed has.
const DEVICES_MOST: u32 = 64;

/// Options of fio with which a pause changes what a job does afterwards, or with which its
/// operations can't be assigned to turns. All that begin like this.
const NOT_IN_TURNS: [&str; 14] = [
    "rate",
    "think",
    "ramp_time",
    "startdelay",
    "stonewall",
    "wait_for",
    "loops",
    "io_size",
    "number_ios",
    "write_",
    "log_",
    "per_job_logs",
    "disable_",
    "gtod_reduce",
];

/// How metrics begin that can't be split by turns: of what contenders share, and of what fio adds
/// up over all its time.
const NOT_OF_TURNS: [&str; 8] = [
    "cpu_",
    "fsync_latency",
    "fio_",
    "page_cache_",
    "network_",
    "processes_blocked_",
    "dirty_bytes_",
    "trace_",
];

impl Plan {
    /// The trials of a round of that workload take turns.
    pub fn takes_turns(&self, workload: &Workload) -> bool {
        workload.rounds.unwrap_or(self.rounds) == Rounds::Duet
    }

    /// Those of some workload do.
    pub fn is_duet(&self) -> bool {
        self.workloads.iter().any(|workload| self.takes_turns(workload))
    }

    /// The same plan, with turns for each workload that can take them and leaves little to be
    /// written back during others' turns. A workload whose order the plan gives keeps it.
    #[must_use]
    pub fn in_turns_where_it_can(mut self) -> Plan {
        for place in 0..self.workloads.len() {
            let workload = &self.workloads[place];
            if workload.rounds.is_some() || unwritten_bytes(workload) > UNWRITTEN_MOST {
                continue;
            }
            self.workloads[place].rounds = Some(Rounds::Duet);
            if self.check_duet().is_err() {
                self.workloads[place].rounds = None;
            }
        }
        self
    }

    /// How many trials of that workload there are at once.
    pub fn trials_at_once(&self, workload: &Workload) -> u32 {
        let players = self.contenders.len() + self.arms(workload).len();
        if self.takes_turns(workload) { u32::try_from(players).unwrap_or(u32::MAX) } else { 1 }
    }

    /// How many beds a round needs at once.
    pub fn beds(&self) -> u32 {
        let each = self.workloads.iter().map(|workload| self.trials_at_once(workload));
        each.max().unwrap_or(1)
    }

    /// The bed with all devices that a round needs at once, and for all contenders.
    pub fn whole_bed(&self) -> Bed {
        Bed {
            devices: self.bed.devices.saturating_mul(self.beds()),
            limits_of_contenders: self.contenders.iter().any(|it| it.limits.is_some()),
            ..self.bed.clone()
        }
    }

    /// What is wrong with a duet, in a sentence.
    pub(super) fn check_duet(&self) -> Result<(), String> {
        if !self.is_duet() {
            return Ok(());
        }
        if self.beds() < 2 {
            return Err(
                "a duet takes two contenders or more: name another, or leave out rounds = \
                        \"duet\""
                    .into(),
            );
        }
        if !matches!(self.bed.kind, BedKind::Loop | BedKind::Ram) {
            return Err(format!(
                "a duet makes all contenders of a round at once, each on a bed of its own, and bed \
                 {} is one for all: write --bed loop or --bed ram",
                self.bed.name()
            ));
        }
        if let Some(one) = self.contenders.iter().find(|it| !it.layers.is_empty()) {
            return Err(format!(
                "a duet's trials are there at once, and the layers of contender {:?} are made for \
                 one trial after the other: leave out rounds = \"duet\"",
                one.name
            ));
        }
        if self.whole_bed().devices > DEVICES_MOST {
            return Err(format!(
                "{} beds of {} devices each are over {DEVICES_MOST} devices: name fewer contenders",
                self.beds(),
                self.bed.devices
            ));
        }
        if self.named_place().is_some_and(Place::has_guests) {
            return Err(
                "a duet's trials run on one machine at once, and each virtual machine runs only \
                 one: write --place local"
                    .into(),
            );
        }
        if let Some(pool) = self.contenders.iter().find(|it| it.file_system == "zfs") {
            return Err(format!(
                "contender {:?} has a pool and a daemon, of which the machine has one at a time: \
                 leave it out, or rounds = \"duet\"",
                pool.name
            ));
        }
        if self.probes.contains(&ExtraProbe::Trace) {
            return Err(
                "a duet's trials would be traced as one: leave out probe trace, or rounds = \
                        \"duet\""
                    .into(),
            );
        }
        let of_all = |it: &Contender| (it.sysctl.clone(), it.module.clone());
        let first = of_all(&self.contenders[0]);
        if let Some(other) = self.contenders.iter().find(|it| of_all(it) != first) {
            return Err(format!(
                "contender {:?} has a sysctl or a module parameter of its own, which would hold \
                 for all of the duet: give all the same, or leave out rounds = \"duet\"",
                other.name
            ));
        }
        self.workloads.iter().filter(|it| self.takes_turns(it)).try_for_each(check_work)
    }
}

/// What a contender's work writes without waiting until it is on the device; of fio without limit,
/// unless each write is durable or past the cache.
fn unwritten_bytes(workload: &Workload) -> u64 {
    match workload.work() {
        Ok(Work::SmallFiles(files)) if files.sync == Sync::End => {
            files.count.saturating_mul(files.size.0)
        }
        Ok(Work::Metadata(metadata)) if metadata.files() > CHANGED_MOST => u64::MAX,
        Ok(Work::SmallFiles(_) | Work::Metadata(_) | Work::FsyncFiles(_)) => 0,
        Ok(Work::Fio(_)) => {
            let is = |name: &str| workload.fio_values(name).is_some_and(|it| it == ["1"]);
            let reads = workload
                .fio_values("rw")
                .is_some_and(|it| it.iter().all(|it| it.ends_with("read")));
            if reads || is("fdatasync") || is("fsync") || is("direct") { 0 } else { u64::MAX }
        }
        _ => u64::MAX,
    }
}

/// Only work that can pause: work that is shared out among turns, and work that runs for a time.
fn check_work(workload: &Workload) -> Result<(), String> {
    let wrong = |why: &str| {
        Err(format!(
            "workload {:?} {why}; a duet takes small_files, metadata, trees, fsync_files, replays, \
             and fio jobs given as options, with time_based and a runtime of 2 s or more; without \
             a prepare. In a plan a workload with rounds = \"trials\" is left out of it",
            workload.name
        ))
    };
    if workload.prepare.is_some() {
        return wrong("has a prepare, and what that starts would go on between the turns");
    }
    let own = match workload.work() {
        Ok(Work::SmallFiles(_) | Work::Metadata(_) | Work::Tree(_)) => [].as_slice(),
        Ok(Work::Replay(replay)) if replay.paced => {
            return wrong("is paced, which goes by the clock");
        }
        Ok(Work::FsyncFiles(_) | Work::Replay(_)) => ["fsync_latency"].as_slice(),
        Ok(Work::Fio(_)) => {
            check_job(workload).or_else(|why| wrong(&why)).map(|()| [].as_slice())?
        }
        _ => return wrong("can't stand still between its turns"),
    };
    let unmeasured = |it: &&String| {
        let prefix = workload.phase_of(it).prefix();
        let it = it.strip_prefix(&prefix).unwrap_or(it);
        let begins = |begins: &[&str]| begins.iter().any(|begin| it.starts_with(begin));
        !begins(own) && begins(&NOT_OF_TURNS) || it.ends_with("_peak")
    };
    match workload.primary.iter().find(unmeasured) {
        Some(metric) => Err(format!(
            "workload {:?} is to be judged by {metric}, which a duet does not measure: judge it by \
             another metric, or leave out rounds = \"duet\"",
            workload.name
        )),
        None => Ok(()),
    }
}

/// What keeps a job of fio from taking turns.
fn check_job(workload: &Workload) -> Result<(), String> {
    let wrong = |why: &str| Err(why.to_string());
    let Some(options) = workload.fio_options() else {
        return wrong("is a job file, whose runtime can't be made longer");
    };
    let values = |name: &'static str| options.iter().filter(move |(it, _)| it == name);
    if !values("time_based").any(|(_, value)| value != "0") {
        return wrong("ends when its work is done");
    }
    let is_short = |time: &str| fio_time_ms(time).is_none_or(|ms| ms < RUNTIME_MS_LEAST);
    if values("runtime").count() == 0 || values("runtime").any(|(_, time)| is_short(time)) {
        return wrong("has too short a runtime, or none");
    }
    let odd = |name: &str| NOT_IN_TURNS.iter().any(|begin| name.starts_with(begin));
    match options.iter().find(|(name, _)| odd(name)) {
        Some((name, _)) => Err(format!("has {name}, which goes by the clock or by its own logs")),
        None => Ok(()),
    }
}

impl Workload {
    /// The same fio job with `times` its runtime: fio's clock goes on between its turns.
    pub fn lasting(&self, times: u32) -> Workload {
        let longer = |time: &str| {
            let ms = fio_time_ms(time).map(|ms| ms.saturating_mul(times.into()));
            ms.map_or(time.to_string(), |ms| format!("{ms}ms"))
        };
        let fio = self.fio.clone().map(|fio| match fio {
            Fio::File(path) => Fio::File(path),
            Fio::Options(mut options) => {
                if let Some(runtime) = options.get_mut("runtime") {
                    *runtime = Scalar::Text(longer(&runtime.to_string()));
                }
                Fio::Options(options)
            }
            Fio::Arguments(mut words) => {
                for place in 0..words.len() {
                    let before = place.checked_sub(1).map(|before| words[before].as_str());
                    if before == Some("--runtime") {
                        words[place] = longer(&words[place]);
                    } else if let Some(time) = words[place].strip_prefix("--runtime=") {
                        words[place] = format!("--runtime={}", longer(time));
                    }
                }
                Fio::Arguments(words)
            }
        });
        Workload { fio, ..self.clone() }
    }
}

/// A time as fio reads it, in seconds where it has no unit (fio(1), "Parameter types").
pub fn fio_time_ms(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit_ms = match unit {
        "" | "s" => 1000,
        "ms" => 1,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = r#"fio = { rw = "write", time_based = true, runtime = "3s" }"#;

    fn parsed(head: &str, work: &str) -> Result<Plan, String> {
        plan_of(&format!("rounds = \"duet\"\n{head}"), work)
    }

    fn plan_of(head: &str, work: &str) -> Result<Plan, String> {
        let text = format!(
            "{head}\n[[contender]]\nname = \"a\"\nfile_system = \"ext4\"\n\
             [[contender]]\nname = \"b\"\nfile_system = \"xfs\"\n[[workload]]\nname = \"w\"\n{work}"
        );
        Plan::parse(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_can_pause_and_runs_for_a_time_takes_turns() {
        let plan = parsed("", JOB).unwrap();
        assert!(plan.is_duet() && plan.beds() == 2);
        assert_eq!(Plan::parse(&toml::to_string(&plan).unwrap()).unwrap(), plan);
        let armed = parsed("judgement = { arms = [\"duplicate\", \"raw\"] }", JOB).unwrap();
        assert_eq!(armed.beds(), 4);
        let words = r#"fio = ["--rw=write", "--time_based", "--runtime", "1m"]"#;
        let typed = parsed("", words).unwrap().workloads[0].lasting(3);
        let Some(Fio::Arguments(words)) = typed.fio else { panic!("it was typed") };
        assert_eq!(words[2..], ["--runtime", "180000ms"]);
        let longer = plan.workloads[0].lasting(2).fio_values("runtime");
        assert_eq!(longer, Some(vec!["6000ms".into()]));
    }

    #[test]
    fn a_workload_may_go_its_own_way() {
        let mixed = "small_files = {}\n[[workload]]\nname = \"c\"\ncommand = \"true\"";
        assert!(parsed("", mixed).unwrap_err().contains("can't stand still between its turns"));
        let plan = parsed("", &format!("{mixed}\nrounds = \"trials\"")).unwrap();
        let takes_turns: Vec<bool> = plan.workloads.iter().map(|it| plan.takes_turns(it)).collect();
        assert_eq!((takes_turns, plan.beds()), (vec![true, false], 2));
        assert_eq!(Plan::parse(&toml::to_string(&plan).unwrap()).unwrap(), plan);
        let own = plan_of("", &format!("{JOB}\nrounds = \"duet\"")).unwrap();
        assert!(own.is_duet() && own.rounds == Rounds::Trials);
    }

    #[test]
    fn work_takes_turns_that_can_and_leaves_little_unwritten() {
        let duets = |head: &str, work: &str| {
            let plan = plan_of(head, work).unwrap().in_turns_where_it_can();
            plan.check().unwrap();
            plan.is_duet()
        };
        for work in [
            "small_files = { count = 2000, size = \"4k\" }",
            "small_files = { count = 100000, size = \"16k\", sync = \"each\" }",
            "metadata = { directories = 500 }",
            "fsync_files = {}",
            r#"fio = { rw = "randread", direct = 1, runtime = 10, time_based = true }"#,
            r#"fio = { rw = "write", fdatasync = 1, runtime = 10, time_based = true }"#,
        ] {
            assert!(duets("", work), "{work}");
            assert!(!duets("place = \"vm\"", work), "{work}");
            assert!(!duets("bed.kind = \"directory\"\nbed.path = \"/x\"", work), "{work}");
        }
        for work in [
            "command = \"true\"",
            "small_files = { count = 10000, size = \"4k\" }",
            "metadata = {}",
            "metadata = { directories = 500 }\nprimary = [\"create_cpu_time\"]",
            "fsync_files = {}\nrounds = \"trials\"",
            r#"fio = { rw = "write", runtime = 10, time_based = true }"#,
            r#"fio = { rw = "read", size = "64m" }"#,
        ] {
            assert!(!duets("", work), "{work}");
        }
    }

    #[test]
    fn what_can_not_is_refused_in_a_line_that_says_what_can() {
        let refused = |head: &str, work: &str| {
            let said = parsed(head, work).unwrap_err();
            assert!(!said.contains('\n'), "{said}");
            said
        };
        let fio = |rest: &str| refused("", &JOB.replace(", runtime = \"3s\"", rest));
        for said in [
            refused("", "command = \"true\""),
            refused("", "sysbench = [\"--file-test-mode=seqwr\"]"),
            refused("", "fio = \"job.fio\""),
            refused("", &format!("{JOB}\nprepare = \"server &\"")),
            fio(""),
            refused("", "replay = { recording = \"x\", paced = true }"),
            fio(", runtime = 1"),
            fio(", runtime = 9, rate_iops = 50"),
            fio(", runtime = 9, write_lat_log = \"x\""),
            refused("", r#"fio = { rw = "write", runtime = 9 }"#),
        ] {
            assert!(said.contains("a duet takes small_files, metadata, trees,"), "{said}");
        }
        assert!(parsed("", "replay = { recording = \"x\" }").is_ok());
        assert!(parsed("", "tree = {}").is_ok());
        let fsyncs = "fsync_files = {}";
        assert!(parsed("", fsyncs).is_ok());
        let judged = |by: &str| parsed("", &format!("{fsyncs}\nprimary = [\"{by}\"]"));
        assert!(judged("fsync_latency_p50").is_ok());
        assert!(judged("cpu_time").unwrap_err().contains("which a duet does not measure"));
        let small = |by: &str| parsed("", &format!("small_files = {{}}\nprimary = [\"{by}\"]"));
        assert!(small("create_rate").is_ok());
        let unmeasured = small("create_cpu_time").unwrap_err();
        assert!(unmeasured.contains("which a duet does not measure"), "{unmeasured}");
        for metric in
            ["cpu_time", "fsync_latency_p99", "fio_read_iops", "device_queue_depth_mean_peak"]
        {
            let said = refused("", &format!("{JOB}\nprimary = [\"{metric}\"]"));
            assert!(said.contains(&format!("judged by {metric}, which a duet does not")), "{said}");
        }
        assert!(parsed("", &format!("{JOB}\nprimary = [\"write_latency_p99\"]")).is_ok());
        assert!(refused("bed.kind = \"device\"\nbed.path = \"/dev/x\"", JOB).contains("--bed ram"));
        assert!(refused("bed.kind = \"directory\"\nbed.path = \"/x\"", JOB).contains("--bed ram"));
        let pool =
            parsed("", &format!("{JOB}\n[[contender]]\nname = \"z\"\nfile_system = \"zfs\""));
        assert!(pool.unwrap_err().contains("has a pool and a daemon"));
        for own in
            ["sysctl = { \"vm.dirty_ratio\" = 5 }", "module = { \"loop.hw_queue_depth\" = 64 }"]
        {
            let third = "[[contender]]\nname = \"c\"\nfile_system = \"ext4\"";
            let said = refused("", &format!("{JOB}\n{third}\n{own}"));
            assert!(said.contains("contender \"c\" has a sysctl or a module parameter"), "{said}");
        }
        assert!(refused("bed.devices = 33", JOB).contains("over 64 devices"));
        assert!(refused("probes = [\"trace\"]", JOB).contains("leave out probe trace"));
        assert!(refused("place = \"vm\"", JOB).contains("--place local"));
    }
}
