//! A campaign of faults and kills against this program's own runs.
//!
//! Everything is done from outside: signals, a disk that fills up, and system calls that strace(1)
//! makes fail. The program under test is the shipped one, with nothing built in for this. A run
//! tells its trials and steps in its news (`--progress json`), so that a fault can be aimed.

mod act;
mod ground;
mod look;
mod point;
mod promise;
mod scene;
mod trace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use fsverdict_core::model::Outcome::{Failed, Measured};
use fsverdict_core::model::{Draws, Record};
use fsverdict_core::run::HostError;

use crate::sys;
use act::Ended;
use ground::Ground;
pub use ground::start_within;
use look::Seen;
pub use point::Point;
use point::{Fault, Known, Means};
pub use promise::{PROMISES, Promise, Tried};
pub use scene::Scene;
use trace::Calls;

/// The file in the campaign's folder that asks it to stop.
pub const STOP: &str = "stop";
/// The statuses that a run may have: 0 done, 1 something could not be done, 3 refused, 5 void,
/// 130 interrupted.
const STATUSES: [i32; 5] = [0, 1, 3, 5, 130];
/// Those of a run that was not broken. Whether its verdicts are void is up to the machine.
const WHOLE: [i32; 2] = [0, 5];

/// What there is to try.
#[derive(Debug)]
pub struct Wanted {
    /// Draws the points and their order.
    pub seed: u64,
    /// These scenes alone, where there are any.
    pub scenes: Vec<Scene>,
    /// These points alone, where there are any.
    pub points: Vec<Point>,
    /// Nothing but what every bed is to meet at every step, each once.
    pub every_step: bool,
    /// Which share of all points this campaign has, from 0, and of how many: for campaigns of one
    /// seed, side by side.
    pub part: [usize; 2],
}

/// What came of a point.
#[derive(Debug)]
pub struct Outcome {
    /// The point.
    pub point: Point,
    /// The fault could be done: a trial may have been over, a call not made.
    pub is_hit: bool,
    /// How often the run was killed: what SIGKILL ended is killed again when it is resumed.
    pub kills: u32,
    /// The promises, each with what broke it.
    pub tried: Vec<Tried>,
}

/// News of a campaign as it goes on.
#[derive(Debug)]
pub enum News<'a> {
    /// A scene's unbroken run did not succeed: it is left out.
    LeftOut(Scene, &'a str),
    /// A scene is tried from now on, of which these faults are each to be met at that step.
    Opened(Scene, &'a BTreeSet<[String; 2]>),
    /// A point has been tried.
    Tried(&'a Outcome),
}

/// A scene that has been run unbroken.
struct Opened {
    unbroken: Vec<Record>,
    points: std::vec::IntoIter<Point>,
    /// How many turns it lets pass after each that it takes, and how many are left of them.
    pauses: [u32; 2],
    /// Which fault has been met at which step, where each is to be met once.
    met: Option<BTreeSet<[String; 2]>>,
}

impl Opened {
    /// Whether it lets this turn pass.
    fn pause(&mut self) -> bool {
        let [each, left] = &mut self.pauses;
        let is_passed = *left > 0;
        *left = if is_passed { *left - 1 } else { *each };
        is_passed
    }

    /// The next point that is not met yet.
    fn next(&mut self) -> Option<Point> {
        let Opened { points, met, .. } = self;
        points.find(|point| {
            let pair = point.of_every_step();
            !met.as_ref().zip(pair).is_some_and(|(met, pair)| met.contains(&pair))
        })
    }

    fn note(&mut self, outcome: &Outcome) {
        let pair = outcome.point.of_every_step().filter(|_| outcome.is_hit);
        if let (Some(met), Some(pair)) = (&mut self.met, pair) {
            met.insert(pair);
        }
    }
}

/// Tries points until `hear` says that it is enough, or there are none left. The caller must be the
/// first process of namespaces that [`start_within`] made.
pub fn campaign(
    folder: &Path,
    wanted: &Wanted,
    hear: &mut dyn FnMut(&News) -> bool,
) -> Result<(), HostError> {
    if std::process::id() != 1 {
        return Err("a campaign runs in namespaces of its own".into());
    }
    let ground = Ground::new(folder, wanted.seed.wrapping_add(wanted.part[0] as u64))?;
    let mut scenes = scenes(wanted);
    let mut opened: VecDeque<Opened> = VecDeque::new();
    while !scenes.is_empty() || !opened.is_empty() {
        // Every scene in turn, so that each is tried however soon it ends.
        let mut next = match scenes.pop() {
            Some(scene) => match open(&ground, scene, wanted, hear) {
                Ok(scene) => scene,
                Err(error) => {
                    if !hear(&News::LeftOut(scene, &error.to_string())) || ground.is_stopped() {
                        break;
                    }
                    continue;
                }
            },
            None => opened.pop_front().ok_or("no scene is left")?,
        };
        if next.pause() {
            opened.push_back(next);
            continue;
        }
        let Some(point) = next.next() else { continue };
        let outcome = attempt(&ground, point, &next.unbroken)?;
        next.note(&outcome);
        opened.push_back(next);
        if !hear(&News::Tried(&outcome)) || ground.is_stopped() {
            break;
        }
    }
    Ok(())
}

/// The scenes that are tried, the last of them first.
fn scenes(wanted: &Wanted) -> Vec<Scene> {
    let is_wanted = |scene: &Scene| {
        let of_points = wanted.points.iter().any(|point| point.scene == *scene);
        let all = wanted.points.is_empty() && wanted.scenes.is_empty();
        all || of_points || wanted.scenes.contains(scene)
    };
    scene::all().into_iter().filter(is_wanted).rev().collect()
}

/// Runs the scene unbroken, once more under strace where trials are of this machine, and draws its
/// points.
fn open(
    ground: &Ground,
    scene: Scene,
    wanted: &Wanted,
    hear: &mut dyn FnMut(&News) -> bool,
) -> Result<Opened, HostError> {
    let ended = unbroken(ground, scene, &[])?;
    let mut known = Known {
        steps: ended.steps.get(&scene.trial()).cloned().unwrap_or_default(),
        calls: Calls::default(),
        elapsed_ms: ended.elapsed_ms,
    };
    let records = records(ground)?;
    let of_scene: Vec<Point> =
        wanted.points.iter().filter(|point| point.scene == scene).cloned().collect();
    if scene.is_slow() && !wanted.every_step {
        // They are killed at random moments alone.
        known.steps.clear();
    } else if of_scene.is_empty() && !scene.has_guests() {
        unbroken(ground, scene, &trace::options(&ground.trace(), None))?;
        let steps: BTreeSet<String> = known.steps.iter().cloned().collect();
        let text = fs::read(ground.trace())?;
        known.calls = Calls::read(&String::from_utf8_lossy(&text), &steps);
    }
    let words = [scene.bed, scene.work];
    let seed = fsverdict_core::model::derived_seed(wanted.seed, &words, 0);
    let draws = &mut Draws::new(seed);
    let points = match (of_scene.is_empty(), wanted.every_step) {
        (false, _) => of_scene,
        (true, true) => point::at_every_step(scene, &known, wanted.part, draws),
        (true, false) => point::points(scene, &known, wanted.part, draws),
    };
    hear(&News::Opened(scene, &points.iter().filter_map(Point::of_every_step).collect()));
    let pauses = [if wanted.every_step { 0 } else { scene.pauses() }, 0];
    let met = wanted.every_step.then(BTreeSet::new);
    Ok(Opened { unbroken: records, points: points.into_iter(), pauses, met })
}

fn unbroken(ground: &Ground, scene: Scene, before: &[String]) -> Result<Ended, HostError> {
    let allowed = prepare(ground, scene)?;
    let ended = act::run(ground, before, &words(allowed.as_deref()))?;
    look::until_alone();
    match ended.code() {
        Some(code) if WHOLE.contains(&code) => Ok(ended),
        _ => {
            let failure = failure(ground, &[]).unwrap_or_default();
            Err(format!("its run failed: {}{failure}", ended.said.trim()).into())
        }
    }
}

/// Why the first trial failed that did, after those that there were before.
fn failure(ground: &Ground, before: &[Record]) -> Option<String> {
    let records = records(ground).ok()?;
    let mut new = records.iter().filter(|it| before.iter().all(|old| old.number != it.number));
    new.find_map(|record| match &record.outcome {
        Failed(why) => Some(format!("; trial {}, {}: {}", record.number, why.step, why.error)),
        Measured => None,
    })
}

/// An empty disk with the plan; gives what the command line has to allow: to erase a disk, or to
/// run in a process of ours.
fn prepare(ground: &Ground, scene: Scene) -> Result<Option<String>, HostError> {
    ground.clear(scene.bed == scene::DEVICE)?;
    let disk = ground.disk();
    let (disk_text, device) = (disk.display().to_string(), ground.device());
    let [zram_bytes, iops] = [ground.zram_bytes(), ground.iops()];
    let plan = scene.plan(&scene::On { disk: &disk_text, device: &device, zram_bytes, iops });
    fs::write(disk.join("plan.toml"), plan)?;
    Ok(match scene.bed {
        scene::DEVICE => Some(format!("--erase={}=ext4,ext2,ext3", ground.device())),
        _ if scene.is_user_mode() => Some("--place=uml".into()),
        _ => None,
    })
}

fn words(allowed: Option<&str>) -> Vec<&str> {
    let words = ["run", "plan.toml", "--output", "run", "--progress", "json"];
    words.into_iter().chain(allowed).collect()
}

/// The records of the run, by number.
fn records(ground: &Ground) -> Result<Vec<Record>, HostError> {
    let mut records: Vec<Record> = Vec::new();
    for entry in fs::read_dir(ground.run().join("trials"))? {
        let path = entry?.path().join("record.json");
        if path.exists() {
            records.push(serde_json::from_slice(&fs::read(path)?)?);
        }
    }
    records.sort_by_key(|record| record.number);
    Ok(records)
}

/// Puts all promises to the test at one point.
fn attempt(ground: &Ground, point: Point, unbroken: &[Record]) -> Result<Outcome, HostError> {
    let allowed = prepare(ground, point.scene)?;
    let before = Seen::now(ground);
    let mut trying = Trying { ground, point, before, tried: Vec::new(), kills: 0 };
    let ended = act::run_with(ground, &trying.point, &words(allowed.as_deref()))?;
    let step = if ended.step.is_empty() { trace::BETWEEN } else { &ended.step };
    trying.point.step = step.into();
    let is_alone = look::until_alone();
    ground.make_room()?;
    trying.is_broken(&ended, is_alone)?;
    if let Some(again) = trying.killed_again(&ended) {
        let words = trying.words_to_go_on(allowed.as_deref())?;
        let ended = act::run_with(ground, &again, &words)?;
        let is_alone = look::until_alone();
        trying.is_broken(&ended, is_alone)?;
    }
    trying.resumed(allowed.as_deref(), &ended, unbroken)?;
    trying.records_are_kept(&ended.records);
    let Trying { point, tried, kills, .. } = trying;
    Ok(Outcome { point, is_hit: ended.is_hit, kills, tried })
}

/// One attempt.
struct Trying<'a> {
    ground: &'a Ground,
    point: Point,
    before: Seen,
    tried: Vec<Tried>,
    kills: u32,
}

impl Trying<'_> {
    fn note(&mut self, promise: Promise, broken: Option<String>) {
        self.tried.push(Tried { promise, broken });
    }

    /// Every promise of [`Seen`] holds but those in `broken`.
    fn note_left(&mut self, broken: &[(Promise, String)]) {
        for promise in [
            Promise::Processes,
            Promise::Mounts,
            Promise::Devices,
            Promise::Files,
            Promise::Settings,
            Promise::Open,
        ] {
            let its = broken.iter().find(|(of, _)| *of == promise);
            self.note(promise, its.map(|(_, what)| what.clone()));
        }
    }

    /// A run was broken: how it ended, and what is left of it after `clean`.
    fn is_broken(&mut self, ended: &Ended, is_alone: bool) -> Result<(), HostError> {
        self.kills += u32::from(ended.is_hit && self.point.kills());
        self.how_it_ended(ended, is_alone);
        self.cleaned()?;
        self.records_are_kept(&ended.records);
        Ok(())
    }

    /// Whatever SIGKILL has ended is killed once more where it goes on, at the same step of the
    /// trial after that.
    fn killed_again(&self, ended: &Ended) -> Option<Point> {
        let is_killed = ended.is_hit && ended.signal() == Some(libc::SIGKILL);
        let (trial, steps) = ended.steps.last_key_value()?;
        let when = point::When::Step(trial + 1, steps.len() as u32);
        let point = Point { when, ..Point::kill(self.point.scene) };
        is_killed.then_some(point)
    }

    fn how_it_ended(&mut self, ended: &Ended, is_alone: bool) {
        let is_signalled = ended.signal().is_some();
        // What comes before a program hears signals ends it, as it ends any.
        let has_begun = self.ground.run().exists();
        let may_be = match (ended.code(), self.point.to_lab()) {
            (Some(code), _) => STATUSES.contains(&code),
            (None, Some(means)) => is_signalled && (means == Means::Death || !has_begun),
            (None, None) => is_signalled && matches!(self.point.fault, Fault::Call(_)),
        };
        let panicked = ended.said.contains("panicked at");
        let odd =
            (!may_be || panicked).then(|| format!("{:?}: {}", ended.status, ended.said.trim()));
        self.note(Promise::Said, odd);
        // A call that fails may be one of the run's own clean-up, which says so and leaves it.
        let cleans = match self.point.fault {
            Fault::Call(_) => ended.code().is_some_and(|code| WHOLE.contains(&code)),
            _ => ended.code().is_some(),
        };
        if cleans {
            let mut left: Vec<String> = Vec::new();
            if !is_alone {
                left.push("processes".into());
            }
            left.extend(self.before.left(self.ground).into_iter().map(|(_, what)| what));
            self.note(Promise::ByItself, (!left.is_empty()).then(|| left.join("; ")));
        }
    }

    /// `fsverdict clean`, and what is left then.
    fn cleaned(&mut self) -> Result<(), HostError> {
        let ended = act::run(self.ground, &[], &["clean", "run"])?;
        let odd = (ended.code() != Some(0)).then(|| format!("clean: {}", ended.said.trim()));
        if odd.is_some() {
            self.note(Promise::Said, odd);
        }
        let left = self.before.left(self.ground);
        self.note_left(&left);
        self.note(Promise::Strangers, self.ground.strangers_harm());
        Ok(())
    }

    fn records_are_kept(&mut self, had: &BTreeMap<u32, Vec<u8>>) {
        if had.is_empty() {
            return;
        }
        let path = |number| self.ground.run().join(format!("trials/{number}/record.json"));
        let is_lost = |(number, bytes): &(&u32, &Vec<u8>)| {
            !fs::read(path(**number)).is_ok_and(|now| now == **bytes)
        };
        let lost: Vec<String> =
            had.iter().filter(is_lost).map(|(number, _)| number.to_string()).collect();
        let text = || format!("records that changed: {}", lost.join(", "));
        self.note(Promise::Records, (!lost.is_empty()).then(text));
    }

    /// What a run goes on with; one that had not begun begins.
    fn words_to_go_on<'w>(&self, allowed: Option<&'w str>) -> Result<Vec<&'w str>, HostError> {
        let mut words = words(allowed);
        if self.ground.run().join("run.json").exists() {
            words.splice(1..4, ["--resume", "run"]);
        } else if self.ground.run().exists() {
            fs::remove_dir_all(self.ground.run())?;
        }
        Ok(words)
    }

    /// The run goes on to its end.
    fn resumed(
        &mut self,
        allowed: Option<&str>,
        ended: &Ended,
        unbroken: &[Record],
    ) -> Result<(), HostError> {
        let had = records(self.ground).unwrap_or_default();
        let is_whole = had.iter().all(Record::is_measured);
        let words = self.words_to_go_on(allowed)?;
        let resumed = act::run(self.ground, &[], &words)?;
        let is_alone = look::until_alone();
        let panicked = resumed.said.contains("panicked at");
        let fits = resumed.code().is_some_and(|it| WHOLE.contains(&it) || it == 1 && !is_whole);
        let odd = (panicked || !fits).then(|| {
            let failure = failure(self.ground, &had).unwrap_or_default();
            format!("then {:?}: {}{failure}", resumed.status, resumed.said.trim())
        });
        self.note(Promise::Said, odd);
        let left = self.before.left(self.ground);
        self.note_left(&left);
        if !is_alone {
            self.note(Promise::Processes, Some("after the resumed run".into()));
        }
        if is_whole || ended.is_hit {
            self.is_like(unbroken);
        }
        Ok(())
    }

    fn is_like(&mut self, unbroken: &[Record]) {
        let order = |records: &[Record]| -> Vec<_> {
            let key = |it: &Record| (it.number, it.key.clone(), it.position, it.seed);
            records.iter().map(key).collect()
        };
        let now = records(self.ground).unwrap_or_default();
        let same = order(&now) == order(unbroken);
        let odd = (!same).then(|| format!("{} trials, not {}", now.len(), unbroken.len()));
        self.note(Promise::Order, odd);
        let scene = self.point.scene;
        let figures = |record: &Record| -> Vec<_> {
            let counted = record.samples.iter().filter(|it| scene.counts(&it.metric));
            counted.map(|it| (it.metric.clone(), it.value.to_bits())).collect()
        };
        let pairs = now.iter().zip(unbroken).filter(|(one, _)| one.is_measured());
        let of: Vec<_> = pairs.map(|(one, other)| (figures(one), figures(other))).collect();
        if same && of.iter().any(|(_, other)| !other.is_empty()) {
            let differ = of.iter().find(|(one, other)| one != other);
            self.note(Promise::Figures, differ.map(|it| format!("{it:?}")));
        }
    }
}

/// Whether a campaign is possible: an error says why not.
pub fn preflight() -> Result<(), HostError> {
    if !sys::is_root() {
        return Err("selftest makes loop devices and mounts: run it as root".into());
    }
    crate::tool::command("strace")?;
    Ok(())
}
