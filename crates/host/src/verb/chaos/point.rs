//! What is done to a run, and when: a point of the campaign, with a name by which it can be tried
//! again.

use std::fmt;

use fsverdict_core::model::Draws;

use super::scene::Scene;
use super::trace::Calls;

/// What a signal does to a run that it is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The run ends it in good order.
    Interrupt,
    /// The kernel ends the run.
    Death,
    /// The run stops, and goes on when it is told to.
    Pause,
}

/// The signals: signal(7).
pub const SIGNALS: [(&str, i32, Means); 12] = [
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
    ("SEGV", libc::SIGSEGV, Means::Death),
    ("XCPU", libc::SIGXCPU, Means::Death),
];
/// Those that every step of every bed meets.
const OF_EVERY_STEP: usize = 4;
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
    ("qemu", Victim::Machine),
];

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A signal is sent, by its place in [`SIGNALS`].
    Signal(usize, Victim),
    /// The system call fails so, or whoever makes it gets that signal: strace(1) sees to it.
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

/// The trial that signals are aimed at: one has ended before it, two come after.
pub const TRIAL: u32 = 2;

/// All points of a scene, in an order drawn from the seed: those that every bed meets at every
/// step come twice as often as others.
pub fn points(scene: Scene, known: &Known, draws: &mut Draws) -> Vec<Point> {
    let mut first = Vec::new();
    let mut others = Vec::new();
    let point = |fault, when, step: &str| Point { scene, fault, when, step: step.into() };
    for (place, step) in known.steps.iter().enumerate() {
        let at = || When::Step(TRIAL, place as u32 + 1);
        for which in 0..SIGNALS.len() {
            let list = if which < OF_EVERY_STEP { &mut first } else { &mut others };
            list.push(point(Fault::Signal(which, Victim::Lab), at(), step));
        }
        let of_trial = [Victim::Trial, Victim::Work].map(|victim| Fault::Signal(0, victim));
        others.extend(of_trial.map(|fault| point(fault, at(), step)));
        others.push(point(Fault::Full, at(), step));
    }
    for (step, calls) in known.calls.by_step() {
        for error in ERRORS {
            let fit: Vec<_> = calls.iter().filter(|(name, _)| can_fail_so(name, error)).collect();
            let of = |(name, count): &(String, u32)| When::Call(name.clone(), *count);
            let fault = || Fault::Call(error.into());
            if !fit.is_empty() {
                first.push(point(fault(), of(fit[draws.below(fit.len())]), step));
            }
            others.extend(fit.iter().map(|it| point(fault(), of(it), step)));
        }
        let kill = |(name, count): &(String, u32)| {
            point(Fault::Call("KILL".into()), When::Call(name.clone(), *count), step)
        };
        others.extend(calls.iter().map(kill));
    }
    for _ in 0..MOMENTS {
        let at =
            |draws: &mut Draws| When::Moment(draws.below(known.elapsed_ms as usize + 1) as u64);
        let which = draws.below(OF_EVERY_STEP);
        let list = if scene.is_real() { &mut others } else { &mut first };
        list.push(point(Fault::Signal(which, Victim::Lab), at(draws), ""));
        if scene.bed == super::scene::VIRTUAL {
            first.push(point(Fault::Signal(0, Victim::Machine), at(draws), ""));
        }
    }
    draws.shuffle(&mut first);
    draws.shuffle(&mut others);
    merged(first, others)
}

/// Two of the first, one of the others, and so on.
fn merged(first: Vec<Point>, others: Vec<Point>) -> Vec<Point> {
    let mut merged = Vec::with_capacity(first.len() + others.len());
    let (mut first, mut others) = (first.into_iter(), others.into_iter());
    loop {
        let before = merged.len();
        merged.extend(first.by_ref().take(2));
        merged.extend(others.next());
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
        let of = |seed| points(scene, &known(), &mut Draws::new(seed));
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        for (place, step) in steps.iter().enumerate() {
            for (name, _, _) in SIGNALS {
                let wanted = format!("loop/command/{name}:lab@2.{}", place + 1);
                let found = of(7).iter().filter(|it| it.to_string() == wanted).count();
                assert_eq!(found, 1, "{name} at {step}");
            }
        }
    }
}
