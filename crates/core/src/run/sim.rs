//! A simulated machine: its file systems have a speed, its trials have noise, and any one of its
//! actions can be made to fail. The whole of `fsverdict run` runs on it, with `--place sim`.

use super::sample::samples;
use super::{Effect, Host, HostError, Place, Step, trial};
use crate::model::need::Answer;
use crate::model::{
    self, Above, Bed, Better, CacheState, Contender, CpuTotals, Device, DeviceTotals, Draws,
    Histogram, Mounted, Need, Partition, Pattern, Phase, PhaseRecord, Quiet, Record, Sample, Sim,
    TURN, Totals, TreePhase, Trial, TrialBed, Turns, Unit, Work, derived_seed,
};

/// What a simulated operation takes at speed 1.
const OPERATION_NS: f64 = 50_000.0;
/// How many operations a simulated command or fio job does.
const OPERATIONS: u64 = 20_000;

/// How many turns a simulated trial has in a duet.
const TURNS: u64 = 100;
/// What others do to all contenders alike, from cycle to cycle: standard deviation of ln(time).
const COMMON_NOISE: f64 = 0.4;

/// What the simulated machine answers: it has all that `[sim] lacks` does not name.
pub fn answer(config: Option<&Sim>, need: &Need) -> Answer {
    let name = need.name();
    match config.is_some_and(|config| config.missing.iter().any(|it| *it == name)) {
        true => Answer::no(format!("the simulated machine has no {name}")),
        false => Answer::yes("it is simulated"),
    }
}

/// The simulated machine.
#[derive(Debug)]
pub struct SimPlace {
    config: Sim,
    seed: u64,
    clock_ns: u64,
    /// Actions so far; the one whose number is `config.fail_at` fails.
    actions: u64,
    /// The action that failed, and the contender it was for.
    broken: Option<(String, String)>,
    images: u32,
    attached: u32,
    mounted: Vec<String>,
    settings: Vec<String>,
}

impl SimPlace {
    /// A machine on which nothing has been made yet.
    pub fn new(config: Sim, seed: u64) -> Self {
        SimPlace {
            config,
            seed,
            clock_ns: 0,
            actions: 0,
            broken: None,
            images: 0,
            attached: 0,
            mounted: Vec::new(),
            settings: Vec::new(),
        }
    }

    /// Actions so far: failing each in turn is failing every number from 1 to this.
    pub fn actions(&self) -> u64 {
        self.actions
    }

    /// Counts an action, and fails it if it is the one that is to fail. An action that fails has
    /// not happened: a caller changes the machine after it.
    fn act(&mut self, action: &str, contender: &str) -> Result<(), HostError> {
        self.actions += 1;
        self.clock_ns += 1_000_000;
        let chosen = self.actions == self.config.fail_at;
        let again = self.config.fail_for_good
            && self.broken.as_ref().is_some_and(|(a, c)| a == action && c == contender);
        if !chosen && !again {
            return Ok(());
        }
        self.broken = Some((action.into(), contender.into()));
        Err(format!("simulated failure of action {}: {action}", self.actions).into())
    }

    /// What an operation takes in this trial.
    fn operation_ns(&self, phase: Phase, trial: &Trial) -> f64 {
        let speed = self.config.speed.get(&trial.contender.name).copied().unwrap_or(1.0);
        let words = ["sim", &trial.contender.name, &trial.workload.name, phase.name()];
        let mut draws = Draws::new(derived_seed(self.seed, &words, trial.key.round));
        let slowness = (self.config.noise * draws.normal()).exp() / speed;
        OPERATION_NS * slowness
    }

    /// A command's own figures: all it is judged by that fsverdict does not measure itself.
    fn figures(&self, trial: &Trial) -> Vec<Sample> {
        let record = self.phase_record(Phase::Whole, trial);
        let measured = samples(&trial.workload, &[record]);
        let unknown = |metric: &String| measured.iter().all(|sample| sample.metric != *metric);
        let operation_ns = self.operation_ns(Phase::Whole, trial);
        let figure = |metric: String| {
            let pattern = trial.workload.figures.get(&metric);
            let mut sample = match pattern.and_then(|it| it.parse::<Pattern>().ok()) {
                Some(pattern) => pattern.of(&metric, operation_ns),
                None if metric.contains("latency") => {
                    Sample::lower(metric, operation_ns, Unit::Nanoseconds)
                }
                None => Sample::higher(metric, operation_ns, Unit::PerSecond),
            };
            if sample.better == Better::Higher {
                sample.value = 1e9 / operation_ns;
            }
            sample
        };
        trial.workload.primary().into_iter().filter(unknown).map(figure).collect()
    }

    fn phase_record(&self, phase: Phase, trial: &Trial) -> PhaseRecord {
        let (operations, bytes) = amount(trial, phase);
        let operation_ns = self.operation_ns(phase, trial);
        let work_ns = (operations as f64 * operation_ns) as u64;
        let name = match (phase.name(), trial.workload.work()) {
            ("", Ok(Work::FsyncFiles(_))) => "fsync",
            ("", _) => "operation",
            (name, _) => name,
        };
        let cpu = CpuTotals {
            user_ns: work_ns / 10,
            system_ns: work_ns / 4,
            idle_ns: work_ns - work_ns / 10 - work_ns / 4,
            ..Default::default()
        };
        let device = DeviceTotals {
            devices: 1,
            writes: operations,
            write_ns: work_ns / 2,
            busy_ns: work_ns / 2,
            queue_ns: work_ns / 2,
            write_bytes: bytes + bytes / 10,
            read_bytes: bytes,
            flushes: Some(operations / 100),
            ..Default::default()
        };
        let own = match trial.workload.work() {
            Ok(Work::Replay(_)) => {
                vec![Sample::lower("call_time", work_ns as f64 / 1e9, Unit::Seconds)]
            }
            _ => Vec::new(),
        };
        let record = PhaseRecord {
            operations: Some(operations),
            application_write_bytes: Some(bytes),
            totals: Totals { cpu, device: Some(device), ..Default::default() },
            histograms: [(name.to_string(), simulated_latencies(operations, operation_ns))].into(),
            samples: own,
            ..PhaseRecord::new(phase, work_ns, work_ns / 20)
        };
        if trial.in_turns { self.in_turns(record, operation_ns, trial) } else { record }
    }

    /// The same in turns, all of them equally long. What slows a cycle down slows all down in it.
    fn in_turns(&self, record: PhaseRecord, operation_ns: f64, trial: &Trial) -> PhaseRecord {
        let words = ["sim cycles", &trial.workload.name];
        let mut draws = Draws::new(derived_seed(self.seed, &words, trial.key.round));
        let turn_ns = TURN.as_nanos() as f64;
        let mut turn = || turn_ns / (operation_ns * (COMMON_NOISE * draws.normal()).exp());
        let operations: Vec<u64> = (0..TURNS).map(|_| turn() as u64).collect();
        let lasted_ns = vec![turn_ns as u64; operations.len()];
        let bytes = record.totals.device.map(|device| device.read_bytes + device.write_bytes);
        let work_ns = lasted_ns.iter().sum();
        PhaseRecord {
            work_ns,
            syncfs_ns: work_ns / 20,
            operations: Some(operations.iter().sum()),
            turns: Some(Turns {
                lasted_ns,
                places: vec![trial.position; operations.len()],
                operations,
                device_bytes: bytes.unwrap_or(0),
                ..Turns::default()
            }),
            ..record
        }
    }
}

/// How many operations a phase has, and the bytes they write.
/// How what stands on the contender's file system is said to be mounted.
fn above(contender: &Contender) -> Vec<Mounted> {
    let mounted = |it: &Above| Mounted {
        file_system: it.name.clone(),
        options: it.options.clone(),
        ..Mounted::default()
    };
    contender.above.iter().map(mounted).collect()
}

fn amount(trial: &Trial, phase: Phase) -> (u64, u64) {
    match (trial.workload.work(), phase) {
        (Ok(Work::SmallFiles(files)), _) => (files.count, files.count * files.size.0),
        (Ok(Work::FsyncFiles(files)), _) => {
            (files.repetitions.into(), files.all_files() * files.size.0)
        }
        (Ok(Work::Metadata(metadata)), Phase::Metadata(operation)) => {
            (metadata.count(operation), 0)
        }
        (Ok(Work::Tree(tree)), Phase::Tree(phase)) => {
            let writes = matches!(phase, TreePhase::Fill | TreePhase::Copy);
            (tree.entries(phase), if writes { tree.total_bytes(tree.files) } else { 0 })
        }
        _ => (OPERATIONS, OPERATIONS * 4096),
    }
}

/// Nineteen in twenty operations take `operation_ns`, the others twice as long.
fn simulated_latencies(operations: u64, operation_ns: f64) -> Histogram {
    let slow = operations / 20;
    let (fast_ns, slow_ns) = (operation_ns as u64, 2 * operation_ns as u64);
    Histogram {
        max_ns: slow_ns,
        sum_ns: (operations - slow) * fast_ns + slow * slow_ns,
        buckets: vec![(fast_ns, operations - slow), (slow_ns, slow)],
    }
}

impl Host for SimPlace {
    fn perform(&mut self, step: Step, trial: &Trial) -> Result<Effect, HostError> {
        self.act(&step.to_string(), &trial.contender.name)?;
        Ok(match step {
            Step::Partition => {
                let partition = |device: &Device| Partition {
                    path: format!("{}p1", device.path),
                    start_bytes: 1 << 20,
                    ..Partition::default()
                };
                Effect::Partitioned(trial.bed.devices.iter().map(partition).collect())
            }
            Step::Layers => {
                let layers = trial.contender.layers.iter().map(ToString::to_string);
                Effect::Layered(layers.collect())
            }
            Step::Mount => {
                if let Some(mount) = self.mounted.first() {
                    return Err(format!("{mount} is mounted already").into());
                }
                self.mounted.push(trial.directory.clone());
                Effect::Mounted(Mounted {
                    file_system: trial.contender.file_system.clone(),
                    options: trial.contender.mount.clone(),
                    unseen: Vec::new(),
                    version: None,
                    above: above(&trial.contender),
                })
            }
            Step::Unmount => {
                self.mounted.pop().ok_or("nothing is mounted")?;
                Effect::Done
            }
            Step::DropCaches => {
                Effect::Dropped(CacheState { dropped: true, ..CacheState::default() })
            }
            Step::Settle => Effect::Settled(Quiet { quiet: true, waited_ns: 50_000_000 }),
            Step::Figures => Effect::Figures(self.figures(trial)),
            Step::Work(phase) => {
                let record = self.phase_record(phase, trial);
                self.clock_ns += record.work_ns + record.syncfs_ns;
                Effect::Worked(Box::new(record))
            }
            _ => Effect::Done,
        })
    }

    fn clean_up(&mut self, trial: &Trial) -> Vec<String> {
        let mut errors = Vec::new();
        while let Some(mount) = self.mounted.last().cloned() {
            if let Err(error) = self.act("unmount", &trial.contender.name) {
                errors.push(format!("unmount {mount}: {error}"));
                break;
            }
            self.mounted.pop();
        }
        errors
    }

    fn clock_ns(&mut self) -> u64 {
        self.clock_ns
    }
}

impl Place for SimPlace {
    fn make_bed(&mut self, bed: &Bed) -> Result<TrialBed, HostError> {
        let mut devices = Vec::new();
        for number in 0..bed.devices {
            self.act("make image", "")?;
            self.images += 1;
            self.act("attach", "")?;
            self.attached += 1;
            devices.push(sim_device(number, bed.size.0));
        }
        let (kind, limits, limits_count) =
            (bed.kind, bed.limits, bed.limits_count(model::Place::Sim));
        Ok(TrialBed { kind, devices, limits, limits_count, ..TrialBed::default() })
    }

    fn apply(&mut self, contender: &Contender, _bed: &TrialBed) -> Result<(), HostError> {
        let settings = [&contender.queue, &contender.sysctl, &contender.module];
        for setting in settings.into_iter().flat_map(|it| it.keys()) {
            self.act("set", &contender.name)?;
            self.settings.push(setting.clone());
        }
        Ok(())
    }

    fn run_trial(&mut self, document: &Trial) -> Result<Record, HostError> {
        self.act("start trial", &document.contender.name)?;
        Ok(trial(self, document))
    }

    fn run_duet(&mut self, trials: &[Trial]) -> Vec<Result<Record, HostError>> {
        trials.iter().map(|trial| self.run_trial(trial)).collect()
    }

    fn restore(&mut self) -> Result<(), HostError> {
        while !self.settings.is_empty() {
            self.act("restore", "")?;
            self.settings.pop();
        }
        Ok(())
    }

    fn remove_bed(&mut self) -> Result<(), HostError> {
        while self.attached > 0 {
            self.act("detach", "")?;
            self.attached -= 1;
        }
        while self.images > 0 {
            self.act("remove image", "")?;
            self.images -= 1;
        }
        Ok(())
    }

    fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = self.mounted.iter().map(|at| format!("mount {at}")).collect();
        left.extend(self.settings.iter().map(|name| format!("setting {name}")));
        left.extend((self.attached > 0).then(|| format!("{} devices", self.attached)));
        left.extend((self.images > 0).then(|| format!("{} images", self.images)));
        left
    }
}

fn sim_device(number: u32, size_bytes: u64) -> Device {
    Device { path: format!("/dev/sim{number}"), number: [240, number], size_bytes }
}

/// A trial of `workload` by a contender `ext4`, for tests.
#[cfg(test)]
pub(crate) fn example_trial(
    kind: crate::model::BedKind,
    workload: crate::model::Workload,
) -> Trial {
    let contender =
        Contender { name: "ext4".into(), file_system: "ext4".into(), ..Contender::default() };
    let workload = crate::model::Workload { name: "work".into(), ..workload };
    Trial {
        schema: crate::model::SCHEMA,
        number: 1,
        key: crate::model::Key {
            round: 1,
            workload: workload.name.clone(),
            contender: contender.name.clone(),
        },
        position: 1,
        seed: 7,
        workload,
        contender,
        bed: TrialBed { kind, devices: vec![sim_device(0, 4 << 30)], ..TrialBed::default() },
        in_turns: false,
        probes: Vec::new(),
        writable: Vec::new(),
        timeouts: crate::model::Timeouts::default(),
        directory: "/mnt/fsverdict".into(),
        raw: "raw".into(),
        series: "series.csv".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use crate::model::{Key, Plan, Verdict};
    use crate::run::settled_duet;

    /// What eight rounds of a duet come to where `b` is so fast.
    fn verdict(speed: f64, seed: u64) -> Verdict {
        let plan = Plan::parse(
            "rounds = \"duet\"\njudgement = { rounds = 8 }\n\
             [[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n[[workload]]\n\
             name = \"work\"\nfio = { time_based = true, runtime = 9, rw = \"write\" }",
        );
        let plan = plan.unwrap();
        let speed = [("b".to_string(), speed)].into();
        let mut place = SimPlace::new(Sim { noise: 0.02, speed, ..Sim::default() }, seed);
        let records: Vec<Record> = (1..=8)
            .flat_map(|round| {
                let trial = |contender: &Contender| Trial {
                    contender: contender.clone(),
                    key: Key { round, workload: "work".into(), contender: contender.name.clone() },
                    in_turns: true,
                    ..example_trial(plan.bed.kind, plan.workloads[0].clone())
                };
                let trials: Vec<Trial> = plan.contenders.iter().map(trial).collect();
                settled_duet(&mut place, &trials)
            })
            .collect();
        assert!(records.iter().all(|it| it.sample("iops").is_some() && it.is_measured()));
        assert!(records.iter().all(|it| it.sample("cpu_time").is_none()));
        Judge::new(&plan).comparisons(&records)[0].verdict
    }

    /// What is common to a cycle scatters by 40%, and would hide 30% for many rounds.
    #[test]
    fn a_duet_finds_what_common_noise_hides_and_nothing_where_nothing_is() {
        let differs = |speed: f64| {
            let is_found = |seed: &u64| {
                !matches!(verdict(speed, *seed), Verdict::Equivalent | Verdict::Undecided)
            };
            (0..100).filter(is_found).count()
        };
        assert_eq!(differs(1.3), 100);
        assert!(differs(1.0) <= 5 + 6, "three standard errors above the declared error");
    }
}
