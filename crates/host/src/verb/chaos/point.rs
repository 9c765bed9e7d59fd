//! What is done to a run, and when: a point of the campaign, with a name by which it can be tried
//! again.

use std::collections::BTreeMap;
use std::fmt;

use fsverdict_core::model::Draws;

use super::scene::Scene;
use super::trace::{BETWEEN, Calls};

/// What a signal does to a run that it is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The run ends it in good order.
    Interrupt,
    /// The kernel ends the run.
    Death,
    /// The run stops, and goes on at SIGCONT.
    Pause,
}

/// Signals of signal(7). Left out: those that do nothing unless someone waits for them, the
/// terminal's stop signals, PIPE, which Rust ignores, BUS and SEGV, of which its runtime survives
/// one (library/std/src/sys/pal/unix/stack_overflow.rs), and the real-time ones.
pub const SIGNALS: [(&str, i32, Means); 20] = [
    ("KILL", libc::SIGKILL, Means::Death),
    ("INT", libc::SIGINT, Means::Interrupt),
    ("TERM", libc::SIGTERM, Means::Interrupt),
    ("HUP", libc::SIGHUP, Means::Interrupt),
    ("QUIT", libc::SIGQUIT, Means::Death),
    ("STOP", libc::SIGSTOP, Means::Pause),
    ("ABRT", libc::SIGABRT, Means::Death),
    ("ALRM", libc::SIGALRM, Means::Death),
    ("USR1", libc::SIGUSR1, Means::Death),
    ("USR2", libc::SIGUSR2, Means::Death),
    ("XCPU", libc::SIGXCPU, Means::Death),
    ("XFSZ", libc::SIGXFSZ, Means::Death),
    ("FPE", libc::SIGFPE, Means::Death),
    ("ILL", libc::SIGILL, Means::Death),
    ("SYS", libc::SIGSYS, Means::Death),
    ("TRAP", libc::SIGTRAP, Means::Death),
    ("PROF", libc::SIGPROF, Means::Death),
    ("VTALRM", libc::SIGVTALRM, Means::Death),
    ("IO", libc::SIGIO, Means::Death),
    ("PWR", libc::SIGPWR, Means::Death),
];
/// How many of them every step of every bed meets, from the first on; the others take turns.
const OF_EVERY_STEP: usize = 4;
const IN_TURNS: usize = SIGNALS.len() - OF_EVERY_STEP;
const ERRORS: [&str; 2] = ["EIO", "ENOSPC"];
/// How many moments a scene is killed at, besides its steps.
const MOMENTS: usize = 8;

/// Who gets a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The process of the run.
    Lab,
    /// That of the trial.
    Trial,
    /// All that the trial has started: mkfs, fio, servers.
    Work,
    /// The virtual machine.
    Machine,
}

const VICTIMS: [(&str, Victim); 4] = [
    ("lab", Victim::Lab),
    ("trial", Victim::Trial),
    ("work", Victim::Work),
    ("machine", Victim::Machine),
];

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A signal is sent, by its place in [`SIGNALS`].
    Signal(usize, Victim),
    /// The system call fails so, or its caller gets that signal: by strace(1).
    Call(String),
    /// The disk on which the run's folder lies becomes full.
    Full,
}

/// When it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// At a trial's step, both counted from 1.
    Step(u32, u32),
    /// At a process's so-many-th call of that kind.
    Call(String, u32),
    /// So many milliseconds after the start.
    Moment(u64),
}

/// A point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its bed and work.
    pub scene: Scene,
    /// What is done.
    pub fault: Fault,
    /// And when.
    pub when: When,
    /// The step at that time, as far as it is known before.
    pub step: String,
}

impl Point {
    /// The point of that name, as [`fmt::Display`] writes it.
    pub fn parse(text: &str) -> Option<Point> {
        let (scene, rest) = text.rsplit_once('/')?;
        let (fault, when) = rest.split_once('@')?;
        let signal = |name: &str| SIGNALS.iter().position(|(known, _, _)| *known == name);
        let fault = match fault.split_once(':') {
            Some((name, victim)) => {
                let victim = VICTIMS.iter().find(|(known, _)| *known == victim)?.1;
                Fault::Signal(signal(name)?, victim)
            }
            None if fault == "FULL" => Fault::Full,
            None => Fault::Call(fault.into()),
        };
        let step = |text: &str| {
            let (trial, step) = text.split_once('.')?;
            Some(When::Step(trial.parse().ok()?, step.parse().ok()?))
        };
        let call = |text: &str| {
            let (name, count) = text.split_once(':')?;
            Some(When::Call(name.into(), count.parse().ok()?))
        };
        let moment = |text: &str| Some(When::Moment(text.strip_suffix("ms")?.parse().ok()?));
        let when = step(when).or_else(|| call(when)).or_else(|| moment(when))?;
        let fits = matches!(fault, Fault::Call(_)) == matches!(when, When::Call(..));
        fits.then_some(Point { scene: Scene::parse(scene)?, fault, when, step: String::new() })
    }

    /// SIGKILL to the run's process, at its start unless another time is set.
    pub fn kill(scene: Scene) -> Point {
        let (fault, when) = (Fault::Signal(0, Victim::Lab), When::Moment(0));
        Point { scene, fault, when, step: String::new() }
    }

    /// Something of the run is killed by SIGKILL.
    pub fn kills(&self) -> bool {
        match &self.fault {
            Fault::Signal(which, _) => SIGNALS[*which].1 == libc::SIGKILL,
            Fault::Call(what) => what == "KILL",
            Fault::Full => false,
        }
    }

    /// Its fault and step, if every step of every bed is to meet that fault. Outside the trials
    /// it is heard too late what is under way.
    pub fn of_every_step(&self) -> Option<[String; 2]> {
        let is_of = match &self.fault {
            Fault::Signal(0, _) | Fault::Full => true,
            Fault::Signal(which, victim) => *which < OF_EVERY_STEP && *victim == Victim::Lab,
            Fault::Call(what) => ERRORS.contains(&what.as_str()),
        };
        let is_step = !self.step.is_empty() && self.step != BETWEEN;
        (is_of && is_step).then(|| [self.kind(), self.step.clone()])
    }

    /// The signal that the run's process gets, if it gets one from outside.
    pub fn to_lab(&self) -> Option<Means> {
        match self.fault {
            Fault::Signal(which, Victim::Lab) => Some(SIGNALS[which].2),
            _ => None,
        }
    }

    /// What is done, in a word or two: a column of the table.
    pub fn kind(&self) -> String {
        match &self.fault {
            Fault::Signal(which, victim) => {
                let name = VICTIMS.iter().find(|(_, it)| it == victim).map_or("", |it| it.0);
                format!("{} to {name}", SIGNALS[*which].0)
            }
            Fault::Call(what) if ERRORS.contains(&what.as_str()) => format!("{what} of a call"),
            Fault::Call(what) => format!("{what} at a call"),
            Fault::Full => "disk full".into(),
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/", self.scene)?;
        match &self.fault {
            Fault::Signal(which, victim) => {
                let name = VICTIMS.iter().find(|(_, it)| it == victim).map_or("", |it| it.0);
                write!(f, "{}:{name}", SIGNALS[*which].0)?;
            }
            Fault::Call(what) => f.write_str(what)?,
            Fault::Full => f.write_str("FULL")?,
        }
        match &self.when {
            When::Step(trial, step) => write!(f, "@{trial}.{step}"),
            When::Call(name, count) => write!(f, "@{name}:{count}"),
            When::Moment(ms) => write!(f, "@{ms}ms"),
        }
    }
}

/// What an unbroken run of a scene has shown.
#[derive(Debug, Default)]
pub struct Known {
    /// The steps of its second trial.
    pub steps: Vec<String>,
    /// Its system calls, by step.
    pub calls: Calls,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// How many calls are drawn for each error at each step that every bed is to meet: a thread may
/// make one more or less than it did, and then nothing is done to the first.
const SPARE: usize = 4;

/// How many of each kind come in turn: those that every bed meets at every step, kills at steps,
/// kills at system calls, others.
const TURNS: [usize; 4] = [6, 2, 1, 1];

/// The points of a scene, in an order drawn from the seed; every so-many-th, where the campaign has
/// a part of them.
pub fn points(scene: Scene, known: &Known, part: [usize; 2], draws: &mut Draws) -> Vec<Point> {
    let mut of: [Vec<Point>; 4] = Default::default();
    at_steps(scene, known, &mut of);
    at_calls(scene, known, 1, draws, &mut of);
    at_moments(scene, known, draws, &mut of);
    let [which, parts] = part;
    merged(of.map(|mut points| {
        draws.shuffle(&mut points);
        points.into_iter().skip(which).step_by(parts.max(1)).collect()
    }))
}

/// Those alone that every bed is to meet at every step, and for each some more that would do as
/// well, which come when all have been tried.
pub fn at_every_step(
    scene: Scene,
    known: &Known,
    [which, parts]: [usize; 2],
    draws: &mut Draws,
) -> Vec<Point> {
    let mut of: [Vec<Point>; 4] = Default::default();
    at_steps(scene, known, &mut of);
    at_calls(scene, known, SPARE, draws, &mut of);
    let [every, ..] = of;
    let mut groups: BTreeMap<_, Vec<Point>> = BTreeMap::new();
    for point in every {
        groups.entry((point.kind(), point.step.clone())).or_default().push(point);
    }
    let mut groups: Vec<Vec<Point>> = groups.into_values().collect();
    draws.shuffle(&mut groups);
    let mut groups: Vec<_> =
        groups.into_iter().skip(which).step_by(parts.max(1)).map(Vec::into_iter).collect();
    let mut points = Vec::new();
    loop {
        let before = points.len();
        points.extend(groups.iter_mut().filter_map(Iterator::next));
        if points.len() == before {
            return points;
        }
    }
}

fn at_steps(scene: Scene, known: &Known, [every, kills, _, others]: &mut [Vec<Point>; 4]) {
    let aimed = scene.trial();
    for (place, step) in known.steps.iter().enumerate() {
        let point = |fault, trial| {
            let when = When::Step(trial, place as u32 + 1);
            Point { scene, fault, when, step: step.clone() }
        };
        let in_turn = OF_EVERY_STEP + (place + scene.place()) % IN_TURNS;
        for which in 0..SIGNALS.len() {
            let is_of_all = which < OF_EVERY_STEP || which == in_turn;
            let list = if is_of_all { &mut *every } else { &mut *others };
            list.push(point(Fault::Signal(which, Victim::Lab), aimed));
        }
        let elsewhere = [aimed - 1, aimed + 1];
        kills.extend(elsewhere.map(|trial| point(Fault::Signal(0, Victim::Lab), trial)));
        let of_trial: &[Victim] = match scene.has_guests() {
            true => &[Victim::Machine],
            false => &[Victim::Trial, Victim::Work],
        };
        every.extend(of_trial.iter().map(|victim| point(Fault::Signal(0, *victim), aimed)));
        every.push(point(Fault::Full, aimed));
    }
}

/// `each` is how many calls are drawn for an error at a step.
fn at_calls(
    scene: Scene,
    known: &Known,
    each: usize,
    draws: &mut Draws,
    [every, _, kills, others]: &mut [Vec<Point>; 4],
) {
    for (step, calls) in known.calls.by_step() {
        let point = |what: &str, (name, count): &(String, u32)| Point {
            scene,
            fault: Fault::Call(what.into()),
            when: When::Call(name.clone(), *count),
            step: step.clone(),
        };
        for error in ERRORS {
            let fit: Vec<_> = calls.iter().filter(|(name, _)| can_fail_so(name, error)).collect();
            if !fit.is_empty() {
                every.extend((0..each).map(|_| point(error, fit[draws.below(fit.len())])));
            }
            others.extend(fit.into_iter().map(|it| point(error, it)));
        }
        kills.extend(calls.iter().map(|it| point("KILL", it)));
    }
}

/// At random moments: of machines whose trials don't say their steps, these are all there are.
fn at_moments(
    scene: Scene,
    known: &Known,
    draws: &mut Draws,
    [every, kills, _, others]: &mut [Vec<Point>; 4],
) {
    for _ in 0..MOMENTS {
        let mut point = |which, victim| Point {
            scene,
            fault: Fault::Signal(which, victim),
            when: When::Moment(draws.below(known.elapsed_ms as usize + 1) as u64),
            step: String::new(),
        };
        kills.push(point(0, Victim::Lab));
        let list = if scene.is_real() { &mut *others } else { &mut *every };
        for which in 1..OF_EVERY_STEP {
            list.push(point(which, Victim::Lab));
        }
        if scene.is_slow() {
            every.push(point(0, Victim::Machine));
        }
    }
}

/// So many of each, and so on.
fn merged(of: [Vec<Point>; 4]) -> Vec<Point> {
    let mut merged = Vec::with_capacity(of.iter().map(Vec::len).sum());
    let mut of = of.map(Vec::into_iter);
    loop {
        let before = merged.len();
        for (points, turns) in of.iter_mut().zip(TURNS) {
            merged.extend(points.by_ref().take(turns));
        }
        if merged.len() == before {
            return merged;
        }
    }
}

/// A call that takes no room does not run out of it.
fn can_fail_so(call: &str, error: &str) -> bool {
    let taking = ["open", "write", "mkdir", "rename", "link", "fallocate", "sync", "mount"];
    error != "ENOSPC" || taking.iter().any(|part| call.contains(part))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_point_is_found_by_its_name() {
        for name in [
            "loop/command/KILL:lab@2.7",
            "directory/command/FULL@2.3",
            "zram/command/ENOSPC@openat:57",
            "loop/fio/KILL:work@2.9",
            "sim/command/INT:lab@130ms",
            "loop/tree/KILL@mkdirat:2",
            "uml-layers/command/KILL:machine@2.5",
        ] {
            assert_eq!(Point::parse(name).map(|it| it.to_string()).as_deref(), Some(name));
        }
        for odd in [
            "loop/command",
            "loop/command/KILL:nobody@2.7",
            "x/y/KILL:lab@2.7",
            "",
            "loop/command/KILL:lab@openat:3",
            "loop/command/FULL@",
            "loop/command/EIO@2.1",
        ] {
            assert_eq!(Point::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_points_and_every_step_has_them() {
        let scene = Scene { bed: "loop", work: "command" };
        let steps = ["mkfs", "mount", "work"].map(String::from).to_vec();
        let known = || Known { steps: steps.clone(), calls: Calls::default(), elapsed_ms: 900 };
        let part = |seed, part| points(scene, &known(), part, &mut Draws::new(seed));
        let of = |seed| part(seed, [0, 1]);
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        for (place, step) in steps.iter().enumerate() {
            for (name, _, _) in SIGNALS {
                let wanted = format!("loop/command/{name}:lab@2.{}", place + 1);
                let found = of(7).iter().filter(|it| it.to_string() == wanted).count();
                assert_eq!(found, 1, "{name} at {step}");
            }
        }
        let every = at_every_step(scene, &known(), [0, 1], &mut Draws::new(7));
        let met: BTreeSet<_> = every.iter().filter_map(Point::of_every_step).collect();
        // Four signals to the run, KILL to the trial and to its work, a full disk; one signal that
        // takes turns.
        assert_eq!((every.len(), met.len()), (steps.len() * 8, steps.len() * 7));
        // Two campaigns of one seed have each of them once.
        let mut both = [part(7, [0, 2]), part(7, [1, 2])].concat();
        let mut all = of(7);
        for points in [&mut both, &mut all] {
            points.sort_by_key(ToString::to_string);
        }
        assert_eq!(both, all);
    }
}
