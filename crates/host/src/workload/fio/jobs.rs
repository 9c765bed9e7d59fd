//! What a fio job says, as fio itself reads it: spellings, includes, variables and defaults are
//! left to fio.

use std::collections::BTreeMap;

use fsverdict_core::model::{Fio, Jobs, is_synchronous_engine};
use fsverdict_core::run::HostError;

/// fio's engines that move no data, whatever bytes they count: those that fake it or do something
/// else in its place (fio(1), "ioengine"; `FIO_FAKEIO` and `FIO_NOIO` in engines/).
const MOVE_NOTHING: [&str; 13] = [
    "cpuio",
    "dircreate",
    "dirdelete",
    "dirstat",
    "e4defrag",
    "exec",
    "falloc",
    "filecreate",
    "filedelete",
    "fileoperations",
    "filestat",
    "ftruncate",
    "null",
];

/// How options begin that set the pace, and those by which a job waits for something else.
const PACED: [&str; 4] = ["rate", "think", "flow", "latency_target"];
const WAITS: [&str; 1] = ["wait_for"];

/// Options with which a job may end before it has written all of its size.
const ENDED_EARLY: [&str; 6] =
    ["runtime", "timeout", "time_based", "io_size", "io_limit", "number_ios"];
/// How options begin with which a job's size is not that of its files, or the files are not all
/// there at once, or may be compressed or deduplicated.
const OTHER_FILES: [&str; 10] = [
    "filesize",
    "fill_",
    "opendir",
    "create_only",
    "file_append",
    "filename_format",
    "unlink",
    "zero_buffers",
    "buffer_",
    "dedupe_",
];
/// fio's engines for local files (fio(1), "ioengine").
const OF_FILES: [&str; 10] = [
    "io_uring", "libaio", "mmap", "posixaio", "psync", "pvsync", "pvsync2", "splice", "sync",
    "vsync",
];

/// One job of a fio run: a section of a job file, or what follows a `--name`.
#[derive(Clone, Debug, Default)]
pub struct Job {
    pub name: String,
    /// Its options and those that hold for all, by fio's own names for them.
    options: BTreeMap<String, Value>,
    /// fio's number of the group that it is reported with.
    pub group: u32,
    /// How many barriers are before it: jobs of one stage run at once.
    pub stage: u32,
    /// The name under which fio reports it: with group_reporting that of its group's first.
    pub reported: String,
}

/// An option's value as it was written, and the number that fio took it for.
#[derive(Clone, Debug, Default)]
struct Value {
    text: String,
    number: Option<i64>,
}

impl Job {
    /// An option's value; "1" for one without a value.
    pub fn text(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(|value| value.text.as_str())
    }

    /// A number as fio took it; for a time, in microseconds.
    pub fn number(&self, option: &str) -> Option<i64> {
        self.options.get(option)?.number
    }

    pub fn is_on(&self, option: &str) -> bool {
        self.text(option).is_some_and(|value| value != "0")
    }

    /// An option that begins like one of these.
    fn has_any(&self, begins: &[&str]) -> bool {
        self.options.keys().any(|name| begins.iter().any(|begin| name.starts_with(begin)))
    }

    /// The default on Linux is psync.
    fn engine(&self) -> &str {
        self.text("ioengine").unwrap_or("psync")
    }

    /// How long after the others it begins; for a range, its start, as fio reads it.
    pub fn delay_ns(&self) -> u64 {
        self.number("startdelay").map_or(0, |us| us.unsigned_abs().saturating_mul(1000))
    }

    /// It works for a while before fio counts (`ramp_time`, of a later fio `ramp_size`).
    pub fn is_ramped(&self) -> bool {
        ["ramp_time", "ramp_size"].iter().any(|it| self.number(it).is_some_and(|it| it > 0))
    }

    /// The bytes that it counts are not moved.
    pub fn moves_nothing(&self) -> bool {
        MOVE_NOTHING.contains(&self.engine())
    }

    /// The threads that do it.
    pub fn clones(&self) -> u64 {
        self.at_least_1("numjobs")
    }

    /// Requests that it can have under way.
    pub fn declared(&self) -> f64 {
        let is_synchronous = is_synchronous_engine(self.engine());
        let depth = if is_synchronous { 1 } else { self.at_least_1("iodepth") };
        self.clones() as f64 * depth as f64
    }

    fn at_least_1(&self, option: &str) -> u64 {
        self.number(option).map_or(1, |it| it.max(1).unsigned_abs())
    }

    /// fio says anything of it.
    pub fn is_reported(&self) -> bool {
        self.text("stats") != Some("0")
    }

    /// It begins the next request as soon as one is done. fio reports no latency of a sync at the
    /// end.
    pub fn is_closed(&self) -> bool {
        !self.has_any(&PACED) && !self.is_on("end_fsync") && !self.is_on("fsync_on_close")
    }

    /// It has logs of its own, or says how they are made.
    pub fn has_logs(&self) -> bool {
        let is_log = |it: &String| it.starts_with("write_") && it.ends_with("_log");
        let of_logs = ["log_", "per_job_logs", "iopsavgtime", "bwavgtime", "disable_bw"];
        self.has_any(&of_logs) || self.options.keys().any(is_log)
    }

    /// Without an `rw`, fio reads.
    pub fn reads(&self) -> bool {
        let mode = self.text("rw").unwrap_or("read");
        mode.contains("read") || mode.contains("rw")
    }

    fn writes(&self) -> bool {
        self.text("rw").is_some_and(|mode| mode.contains("write") || mode.contains("rw"))
    }

    /// fio lays its files out whole before the work: files that are read or overwritten, and those
    /// that an engine can't extend (filesetup.c, `extend_file`; for local files only mmap).
    fn is_laid_out(&self) -> bool {
        self.reads() || self.writes() && (self.is_on("overwrite") || self.engine() == "mmap")
    }

    /// Bytes that its files take: those that are laid out, or written whole. `None` where that is
    /// up to the clock, or to what is there.
    fn least_bytes(&self) -> Option<u64> {
        let is_whole = self.is_laid_out() || self.writes() && !self.has_any(&ENDED_EARLY);
        if !OF_FILES.contains(&self.engine()) || self.has_any(&OTHER_FILES) || !is_whole {
            return None;
        }
        // fio has a number below zero for a share of the disk.
        let bytes = u64::try_from(self.number("size")?).ok()?;
        // Those that have no name for their file have one each.
        let files = match self.text("filename") {
            Some(_) => 1,
            None => self.clones(),
        };
        bytes.checked_mul(files)
    }
}

/// Bytes that the files of the jobs take for certain. Jobs of one name have the same files; so may
/// those that name theirs.
pub fn least_bytes(jobs: &[Job]) -> u64 {
    let mut files: BTreeMap<&str, u64> = BTreeMap::new();
    for job in jobs {
        let whose = if job.text("filename").is_some() { "" } else { &job.name };
        let most = files.entry(whose).or_default();
        *most = (*most).max(job.least_bytes().unwrap_or(0));
    }
    files.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// Whether files have to be there before the work begins: those that are laid out, but not those
/// that an earlier job writes.
pub fn need_files(jobs: &[Job]) -> bool {
    let is_written_before = |job: &Job| {
        let wrote = |it: &Job| {
            it.stage < job.stage && it.writes() && it.text("filename") == job.text("filename")
        };
        job.text("filename").is_some() && jobs.iter().any(wrote)
    };
    jobs.iter().any(|job| job.is_laid_out() && !is_written_before(job))
}

/// The jobs as parts of a workload, where there are several that fio reports.
pub fn parts(jobs: &[Job]) -> Option<Jobs> {
    let mut reported: Vec<(u32, &str)> = Vec::new();
    for job in jobs.iter().filter(|job| job.is_reported()) {
        let key = (job.group, job.reported.as_str());
        if !reported.contains(&key) {
            reported.push(key);
        }
    }
    let names = Jobs::metric_names(reported.iter().map(|(_, name)| *name));
    (names.len() > 1).then(|| Jobs { names, together: run_at_once(jobs) })
}

/// No barrier is between any of them.
pub fn run_at_once(jobs: &[Job]) -> bool {
    jobs.iter().all(|job| job.stage == 0 && !job.has_any(&WAITS))
}

/// fio's arguments that have it say how it reads `fio`, and do nothing else.
pub fn argv(fio: &Fio, name: &str) -> Vec<String> {
    let own = ["fio", "--parse-only", "--debug=parse"].map(String::from);
    own.into_iter().chain(fio.arguments(name)).collect()
}

/// The jobs of what fio said of its reading (parse.c and init.c, `dprint(FD_PARSE, ...)`), where
/// those job files were named on its command line.
pub fn read(said: &str, files: &[String]) -> Result<Vec<Job>, HostError> {
    let mut heard = Heard::default();
    for line in said.lines() {
        let Some(event) = line.strip_prefix("parse ").map(str::trim_start) else { continue };
        // After the number of its process.
        let event = event.trim_start_matches(|c: char| c.is_ascii_digit()).trim();
        heard.hear(event, files);
    }
    let mut jobs = heard.jobs;
    if jobs.is_empty() {
        return Err("fio does not say how it reads the job: it was built without --debug".into());
    }
    group(&mut jobs);
    Ok(jobs)
}

/// The jobs by their own text, without includes, variables and other spellings.
pub fn written(options: Vec<(String, String)>) -> Vec<Job> {
    let (mut global, mut jobs, mut stage) = (BTreeMap::new(), Vec::<Job>::new(), 0);
    let mut is_global = true;
    for (option, text) in options {
        if option == "name" {
            is_global = text == "global";
            let options = global.clone();
            jobs.extend((!is_global).then(|| Job { name: text, options, stage, ..Job::default() }));
            continue;
        }
        let name = if option == "readwrite" { "rw".into() } else { option };
        // A time without a unit is one of seconds.
        let factor = if name == "runtime" { 1_000_000 } else { 1 };
        let number = text.parse::<i64>().ok().and_then(|it| it.checked_mul(factor));
        let text = if text.is_empty() { "1".into() } else { text };
        match jobs.last_mut() {
            Some(job) if !is_global => {
                if name == "stonewall" {
                    stage += 1;
                    job.stage = stage;
                }
                job.options.insert(name, Value { text, number });
            }
            _ => _ = global.insert(name, Value { text, number }),
        }
    }
    jobs
}

/// As far as it has been heard.
#[derive(Default)]
struct Heard {
    global: BTreeMap<String, Value>,
    jobs: Vec<Job>,
    /// Options are of the last job, and not of all that follow.
    in_job: bool,
    /// The last job has no option of its own yet.
    fresh: bool,
    section: Option<String>,
    last_option: String,
    files: usize,
    /// The next job is the first of another job file.
    behind_barrier: bool,
    /// The options are fio's own defaults.
    by_default: bool,
    /// The last it said is that it initialises options.
    inits: bool,
}

impl Heard {
    fn hear(&mut self, event: &str, files: &[String]) {
        self.by_default &= !event.starts_with("Parsing ini file ");
        if self.by_default {
            return;
        }
        let is_of_engine = std::mem::replace(&mut self.inits, event == "init options");
        if event == "filling default options" && !is_of_engine {
            // Before every job file but the first: the globals of the one before end there (init.c,
            // `fill_def_thread`). For an engine that is named on the command line fio says it, too,
            // right after it has initialised its options (init.c, `ioengine_load`): there the job
            // goes on.
            self.global.clear();
            (self.in_job, self.by_default) = (false, true);
        } else if let Some(path) = event.strip_prefix("Parsing ini file ") {
            // Job files run one after the other; what one of them includes is a part of it.
            if files.iter().any(|file| file == path) {
                self.behind_barrier = self.files > 0;
                self.files += 1;
            }
        } else if let Some(name) = event.strip_prefix("Parsing section [") {
            self.section = Some(name.trim_end_matches(']').into());
            self.in_job = false;
            self.fresh = false;
        } else if event == "dup options" {
            self.begin();
        } else if let Some(option) = event.strip_prefix("handle_option=") {
            let (name, value) = option.split_once(", ptr=").unwrap_or((option, "(null)"));
            self.take(name, value);
        } else if let Some((_, number)) =
            event.strip_prefix("ret=").and_then(|it| it.split_once("out="))
        {
            let last = self.last_option.clone();
            if let Some(value) = self.options().get_mut(&last) {
                value.number = number.parse().ok();
            }
        }
    }

    /// A job begins with what holds for all. (Options of an engine are copied apart.)
    fn begin(&mut self) {
        if self.fresh {
            return;
        }
        let name = self.section.take().unwrap_or_default();
        let mut options = self.global.clone();
        // fio marks the first job behind a barrier without an option (init.c, `stonewall_flag`).
        if std::mem::take(&mut self.behind_barrier) {
            options.insert("stonewall".into(), Value { text: "1".into(), number: Some(1) });
        }
        self.jobs.push(Job { name, options, ..Job::default() });
        (self.in_job, self.fresh) = (true, true);
    }

    fn take(&mut self, name: &str, value: &str) {
        // `--name=global` after a job.
        if name == "name" && value.starts_with("global") && !self.fresh {
            self.in_job = false;
        }
        self.fresh = false;
        self.last_option = name.into();
        let text = if value == "(null)" { "1" } else { value };
        if let Some(job) = self.jobs.last_mut().filter(|_| self.in_job && name == "name") {
            job.name = text.into();
        }
        self.options().insert(name.into(), Value { text: text.into(), number: None });
    }

    fn options(&mut self) -> &mut BTreeMap<String, Value> {
        match self.jobs.last_mut().filter(|_| self.in_job) {
            Some(job) => &mut job.options,
            None => &mut self.global,
        }
    }
}

/// Numbers groups and stages, as add_job does in init.c, and says under which name each is reported
/// (stat.c, `__show_run_stats`).
fn group(jobs: &mut [Job]) {
    let (mut groups, mut stage) = (0, 0);
    let mut before: Option<(u32, String)> = None;
    for (place, job) in jobs.iter_mut().enumerate() {
        let waits = job.is_on("stonewall");
        if place > 0 {
            groups += u32::from(waits || job.is_on("new_group"));
            stage += u32::from(waits);
        }
        (job.group, job.stage) = (groups, stage);
        let joins =
            before.as_ref().filter(|(group, _)| *group == groups && job.is_on("group_reporting"));
        job.reported = joins.map_or(job.name.clone(), |(_, name)| name.clone());
        if job.is_reported() {
            before = Some((groups, job.reported.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_as_they_are_written_have_what_holds_for_all() {
        let options = [
            ("name", "global"),
            ("time_based", ""),
            ("runtime", "20"),
            ("name", "a"),
            ("readwrite", "write"),
            ("name", "b"),
            ("stonewall", ""),
            ("name", "c"),
        ];
        let jobs = written(options.map(|(name, text)| (name.into(), text.into())).into());
        let stages: Vec<(&str, u32)> = jobs.iter().map(|it| (it.name.as_str(), it.stage)).collect();
        assert_eq!(stages, [("a", 0), ("b", 1), ("c", 1)]);
        assert!(jobs.iter().all(|it| it.is_on("time_based")));
        assert_eq!(jobs[0].number("runtime"), Some(20_000_000));
        assert!(!jobs[0].reads() && jobs[1].reads());
        assert!(!run_at_once(&jobs) && need_files(&jobs));
    }

    /// As fio 3.33 said it of a job file that begins with these options for all.
    const SAID: &str = "\
fio: set debug option parse
parse    9761  Parsing ini file /srv/a.fio
parse    9761  [global]
parse    9761  Parsing section [global]
parse    9761  size=4m
parse    9761  handle_option=size, ptr=4m
parse    9761  __handle_option=size, type=OPT_STR_VAL_ZONE, ptr=4m
parse    9761    ret=0, out=4194304
parse    9761  handle_option=group_reporting, ptr=(null)
parse    9761  __handle_option=group_reporting, type=OPT_STR_SET, ptr=(null)
parse    9761    ret=0, out=1
parse    9761  [read it]
parse    9761  Parsing section [read it]
parse    9761  dup options
parse    9761  Parsing ini file /srv/included.fio
parse    9761  handle_option=rw, ptr=randread
parse    9761  handle_option=runtime, ptr=1
parse    9761    ret=0, out=1000000
parse    9761  free options
parse    9761  Parsing section [write]
parse    9761  dup options
parse    9761  dup options
parse    9761  handle_option=stonewall, ptr=(null)
parse    9761  handle_option=rw, ptr=write
parse    9761  handle_option=end_fsync, ptr=0
parse    9761  Parsing section [beside]
parse    9761  dup options
parse    9761  handle_option=new_group, ptr=(null)
parse    9761  Parsing ini file /srv/b.fio
parse    9761  Parsing section [other]
parse    9761  dup options
";

    fn files(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_job_is_what_fio_says_it_is() {
        let jobs = read(SAID, &files(&["/srv/a.fio", "/srv/b.fio"])).unwrap();
        let places: Vec<_> = jobs.iter().map(|job| (&*job.name, job.group, job.stage)).collect();
        assert_eq!(places, [("read it", 0, 0), ("write", 1, 1), ("beside", 2, 1), ("other", 3, 2)]);
        assert_eq!(jobs[0].number("size"), Some(4 << 20), "what holds for all");
        assert_eq!((jobs[0].number("runtime"), jobs[1].number("runtime")), (Some(1_000_000), None));
        assert!(jobs[1].is_on("group_reporting") && !jobs[1].is_on("end_fsync"));
        assert!(jobs[0].reads() && !jobs[1].reads() && jobs[2].reads(), "read is the default");
        let parts = parts(&jobs).unwrap();
        assert_eq!(parts.names, ["read_it", "write", "beside", "other"]);
        assert!(!parts.together);
        let one_file = read(SAID, &files(&["/srv/a.fio"])).unwrap();
        assert_eq!(
            (one_file[3].group, one_file[3].stage),
            (2, 1),
            "an included file is no barrier"
        );
        assert_eq!(one_file[3].reported, "beside", "one group is reported as one");
        assert!(read("nothing", &[]).is_err());
    }

    #[test]
    fn options_on_the_command_line_are_of_the_job_before_them() {
        let said = "parse 1 handle_option=bs, ptr=4k\nparse 1   ret=0, out=4096\n\
                    parse 1 dup options\nparse 1 handle_option=name, ptr=a\n\
                    parse 1 handle_option=write_lat_log, ptr=own\n\
                    parse 1 handle_option=name, ptr=global\nparse 1 handle_option=direct, ptr=1\n\
                    parse 1 dup options\nparse 1 handle_option=name, ptr=b\n\
                    parse 1 handle_option=numjobs, ptr=2\nparse 1   ret=0, out=2\n\
                    parse 1 handle_option=rate_iops, ptr=50\n";
        let jobs = read(said, &[]).unwrap();
        assert_eq!(jobs.iter().map(|job| &*job.name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!([0, 1].map(|at: usize| jobs[at].number("bs")), [Some(4096); 2]);
        assert_eq!([0, 1].map(|at: usize| jobs[at].is_on("direct")), [false, true]);
        assert_eq!([0, 1].map(|at: usize| jobs[at].has_logs()), [true, false]);
        assert_eq!([0, 1].map(|at: usize| jobs[at].is_closed()), [true, false]);
        assert_eq!((jobs[1].declared(), run_at_once(&jobs)), (2.0, true));
        assert_eq!(parts(&jobs).unwrap().names, ["a", "b"]);
    }

    #[test]
    fn what_holds_for_all_ends_with_its_file_and_defaults_are_no_options() {
        let said = "parse 1 Parsing ini file /a\nparse 1 handle_option=rate, ptr=9\n\
                    parse 1 Parsing section [one]\nparse 1 dup options\n\
                    parse 1 filling default options\nparse 1 handle_option=thinktime, ptr=0\n\
                    parse 1   ret=0, out=0\nparse 1 Parsing ini file /b\n\
                    parse 1 Parsing section [other]\nparse 1 dup options\n\
                    parse 1 handle_option=size, ptr=1m\nparse 1   ret=0, out=1048576\n";
        let jobs = read(said, &files(&["/a", "/b"])).unwrap();
        let names = |job: &Job| job.options.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&jobs[0]), ["rate"]);
        assert_eq!(names(&jobs[1]), ["size", "stonewall"]);
        assert_eq!(jobs[1].number("size"), Some(1 << 20));
    }

    #[test]
    fn a_job_goes_on_behind_the_engine_that_it_names() {
        let said = "parse 1 dup options\nparse 1 handle_option=name, ptr=job\n\
                    parse 1 handle_option=direct, ptr=1\nparse 1   ret=0, out=1\n\
                    parse 1 handle_option=ioengine, ptr=libaio\nparse 1 init options\n\
                    parse 1 filling default options\nparse 1 handle_option=iodepth, ptr=32\n\
                    parse 1   ret=0, out=32\n";
        let jobs = read(said, &[]).unwrap();
        assert_eq!((jobs.len(), jobs[0].declared(), jobs[0].is_on("direct")), (1, 32.0, true));
    }

    #[test]
    fn files_that_are_read_or_written_whole_take_their_size() {
        let least = |options: &str| {
            let pairs = options.split(' ').map(|it| it.split_once('=').unwrap_or((it, "")));
            least_bytes(&written(pairs.map(|(name, it)| (name.into(), it.into())).collect()))
        };
        assert_eq!(least("name=a rw=write size=9000"), 9000);
        assert_eq!(least("name=a size=9000 numjobs=3"), 27000);
        assert_eq!(least("name=a rw=randrw size=9000 numjobs=3 filename=f runtime=9"), 9000);
        assert_eq!(least("name=a size=10 name=b size=9000"), 9010, "a file each");
        assert_eq!(least("name=a size=10 name=a size=9000"), 9000, "the same file");
        assert_eq!(least("name=a size=10 filename=f name=b size=9000 filename=f"), 9000);
        for up_to_something_else in [
            "name=a rw=randwrite size=9000 time_based runtime=9",
            "name=a rw=write size=9000 io_size=10",
            "name=a rw=randtrim size=9000",
            "name=a size=9000 filesize=10",
            "name=a size=9000 ioengine=null",
            "name=a size=9000 ioengine=net",
            "name=a size=9000 unlink=1",
            "name=a size=9000 buffer_compress_percentage=90",
            "name=a size=-51",
            "name=a",
        ] {
            assert_eq!(least(up_to_something_else), 0, "{up_to_something_else}");
        }
    }

    #[test]
    fn a_ramp_is_what_fio_took_for_one() {
        let is_ramped = |number: u64| {
            let ramp = "parse 1 handle_option=ramp_time, ptr=x\n";
            let said = format!("parse 1 dup options\n{ramp}parse 1   ret=0, out={number}\n");
            read(&said, &[]).unwrap()[0].is_ramped()
        };
        assert!(is_ramped(2_000_000) && !is_ramped(0));
        assert!(!Job::default().is_ramped());
    }

    #[test]
    fn files_are_laid_out_where_fio_would_and_nobody_wrote_them_before() {
        let needs = |sections: &[&str]| {
            let lines = |section: &&str| {
                let options = section.split(' ').skip(1).map(|option| {
                    let (name, value) = option.split_once('=').unwrap_or((option, "(null)"));
                    format!("parse 1 handle_option={name}, ptr={value}\n")
                });
                let name = section.split(' ').next().unwrap_or_default();
                let head = format!("parse 1 Parsing section [{name}]\nparse 1 dup options\n");
                head + &options.collect::<String>()
            };
            need_files(&read(&sections.iter().map(lines).collect::<String>(), &[]).unwrap())
        };
        assert!(needs(&["a rw=randrw"]) && needs(&["a"]) && !needs(&["a rw=write"]));
        let surface = ["w rw=write filename=f", "r stonewall rw=read filename=f"];
        assert!(!needs(&surface), "the job reads what it has written");
        assert!(needs(&["w rw=write filename=f", "r rw=read filename=f"]), "both at once");
        assert!(needs(&["w rw=write", "r stonewall rw=read"]), "a file each");
        assert!(needs(&["w rw=randwrite overwrite=1"]), "there is something to overwrite");
        assert!(needs(&["w rw=write ioengine=mmap"]) && !needs(&["t rw=trim ioengine=mmap"]));
        assert!(!needs(&["w rw=write overwrite=0 ioengine=libaio"]));
    }
}
