//! `fsverdict selftest`: does the program keep its promises on this machine, whatever happens?

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fsverdict_core::run::HostError;
use fsverdict_host::verb::chaos::{self, News, Outcome, PROMISES, Point, Promise, Scene, Tried};

use crate::exit::{self, PlaceError, Usage};
use crate::say::{self, remark};

/// Between two looks at the campaign's process.
const PAUSE: Duration = Duration::from_millis(20);
/// Where a campaign has a mount of its own, so that it sees nothing of this machine there.
const HIDDEN: &str = "/dev/shm";
/// How many points are tried without --chaos.
const FEW: u32 = 40;
const AN_HOUR: f64 = 60.0;

/// Break runs of this program on purpose, and show that nothing is left, changed or lost.
///
/// Takes small runs on beds of its own, in memory and on an image, and kills them, sends them
/// signals, fills their disk, and has the system calls of all their programs fail. After each it
/// looks for what is left, cleans up, looks again, and resumes the run. All of it happens in
/// namespaces that end with the program, and no disk of yours is touched. Needs root and strace.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Go on for so many minutes [60 where none are given], instead of for forty points.
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, value_parser = minutes)]
    chaos: Option<Option<f64>>,
    /// Try each fault at every step of every bed: KILL, INT, TERM and HUP to the run, and in turns
    /// all other signals; KILL to the trial and its work, or to the virtual machine; a full disk;
    /// without virtual machines also EIO and ENOSPC of a system call. Ends when all were met, or
    /// could not be, and says which.
    #[arg(long)]
    every_step: bool,
    /// Try so many points at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    points: Option<u32>,
    /// This point alone, as a table names it, or those of one BED/WORK; may be given again.
    #[arg(long, value_name = "POINT")]
    point: Vec<String>,
    /// Draws the points and their order [default: another each time].
    #[arg(long)]
    seed: Option<u64>,
    /// The K-th of N parts of a seed's points, for N campaigns side by side.
    #[arg(long, value_name = "K/N", requires = "seed", value_parser = part)]
    part: Option<[usize; 2]>,
    /// The folder for an image of 384 MiB, which has no name and goes with the program.
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    dir: PathBuf,
    /// The campaign's folder: its own process gets this.
    #[arg(long, hide = true, value_name = "FOLDER")]
    within: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  sudo fsverdict selftest
  sudo fsverdict selftest --chaos 60 --seed 7
  sudo fsverdict selftest --chaos 60 --seed 7 --part 1/2
  sudo fsverdict selftest --every-step --seed 7
  sudo fsverdict selftest --point loop/command/KILL:lab@2.7

A point is BED/WORK/FAULT@WHEN. KILL:lab@2.7 sends SIGKILL to the run's process at the seventh step
of its second trial; FULL@2.3 fills the disk of the run's folder at the third; EIO@openat:57 has the
57th openat of a process fail; INT:lab@130ms interrupts the run after 130 ms. What SIGKILL has ended
is killed once more when it is resumed, at the same step of its next trial.

Exit status: 0 every promise held; 1 one did not, or none was tried; 2 usage; 130 interrupted.";

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes.is_finite() && minutes > 0.0 => Ok(minutes),
        _ => Err("write a number of minutes: 60".into()),
    }
}

/// Counted from 0.
fn part(text: &str) -> Result<[usize; 2], String> {
    let numbers = text.split_once('/').and_then(|(which, parts)| {
        Some([which.parse::<usize>().ok()?, parts.parse::<usize>().ok()?])
    });
    match numbers {
        Some([which, parts]) if 0 < which && which <= parts => Ok([which - 1, parts]),
        _ => Err("write one of how many parts: 1/2".into()),
    }
}

/// Starts the campaign in namespaces of its own, or is what was started there.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let wanted = wanted(arguments)?;
    if let Some(folder) = &arguments.within {
        return within(arguments, folder, &wanted);
    }
    if arguments.dir.canonicalize().is_ok_and(|dir| dir.starts_with(HIDDEN)) {
        let dir = arguments.dir.display();
        let text =
            format!("--dir {dir}: a campaign has a {HIDDEN} of its own: name another folder");
        return Err(Usage(text).into());
    }
    chaos::preflight().map_err(PlaceError)?;
    let interrupted = super::run::interrupt_flag()?;
    let [which, parts] = wanted.part;
    let part = if parts > 1 { format!("-{}", which + 1) } else { String::new() };
    let name = format!("fsverdict-selftest-{:x}{part}", wanted.seed);
    let folder = arguments.dir.join(name);
    std::fs::create_dir(&folder)
        .with_context(|| format!("making the folder {}", folder.display()))?;
    let ended = outside(&folder, wanted.seed, &interrupted);
    let removed = std::fs::remove_dir_all(&folder);
    let status = ended.map_err(PlaceError)?;
    removed.with_context(|| format!("removing the folder {}", folder.display()))?;
    Ok(status)
}

fn wanted(arguments: &Arguments) -> Result<chaos::Wanted> {
    let seed = arguments.seed.unwrap_or_else(super::run::random_seed);
    let mut wanted = chaos::Wanted {
        seed,
        scenes: Vec::new(),
        points: Vec::new(),
        every_step: arguments.every_step,
        part: arguments.part.unwrap_or([0, 1]),
    };
    for text in &arguments.point {
        match (Scene::parse(text), Point::parse(text)) {
            (Some(scene), _) => wanted.scenes.push(scene),
            (None, Some(point)) => wanted.points.push(point),
            (None, None) => {
                let text = format!("{text}: no point; write BED/WORK or BED/WORK/FAULT@WHEN");
                return Err(Usage(text).into());
            }
        }
    }
    Ok(wanted)
}

/// Waits for the campaign's process; asks it to stop when we are interrupted.
fn outside(folder: &Path, seed: u64, interrupted: &Arc<AtomicBool>) -> Result<u8, HostError> {
    let mut words = vec![std::env::current_exe()?.display().to_string()];
    words.extend(std::env::args().skip(1));
    words.extend(["--within".into(), folder.display().to_string()]);
    words.extend(["--seed".into(), seed.to_string()].into_iter().take_while(|_| {
        !std::env::args().any(|word| word == "--seed" || word.starts_with("--seed="))
    }));
    let mut child = chaos::start_within(&words)?;
    loop {
        if let Some(status) = child.try_wait()? {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(code.unwrap_or(exit::FAILED));
        }
        if interrupted.load(Ordering::Relaxed) {
            std::fs::write(folder.join(chaos::STOP), "")?;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The campaign itself.
fn within(arguments: &Arguments, folder: &Path, wanted: &chaos::Wanted) -> Result<u8> {
    let interrupted = super::run::interrupt_flag()?;
    let limit = arguments.chaos.map(|minutes| minutes.unwrap_or(AN_HOUR) * 60.0);
    let is_endless = limit.is_none() && wanted.points.is_empty() && !wanted.every_step;
    let few = is_endless.then_some(FEW);
    let most = arguments.points.or(few).unwrap_or(u32::MAX);
    let start = Instant::now();
    let mut table = Tally::default();
    let mut hear = |news: &News| {
        table.hear(news);
        let is_over = limit.is_some_and(|limit_s| start.elapsed().as_secs_f64() > limit_s);
        table.points < most && !is_over && !interrupted.load(Ordering::Relaxed)
    };
    chaos::campaign(folder, wanted, &mut hear).map_err(PlaceError)?;
    let is_stopped = interrupted.load(Ordering::Relaxed) || folder.join(chaos::STOP).exists();
    // One that was broken off has not met most of it.
    let names_unmet = wanted.every_step && !is_stopped && table.points < most;
    say::print(&table.text(wanted.seed, names_unmet))?;
    Ok(match table.broken.is_empty() {
        false => exit::FAILED,
        true if is_stopped => exit::INTERRUPTED,
        // Nothing was tried, so nothing held.
        true if table.kinds.is_empty() => exit::FAILED,
        true => exit::DONE,
    })
}

/// What has been tried, and what of it held.
#[derive(Debug, Default)]
struct Tally {
    points: u32,
    /// Points whose time did not come.
    missed: u32,
    kills: u32,
    /// The faults and steps that each scene is to meet, and those that it has met.
    to_meet: BTreeMap<String, BTreeSet<[String; 2]>>,
    met: BTreeMap<String, BTreeSet<[String; 2]>>,
    left_out: Vec<String>,
    /// Points at which a promise was tried, and held.
    promises: BTreeMap<Promise, (u32, u32)>,
    /// Points by bed and work, and by what was done.
    kinds: BTreeMap<(String, String), u32>,
    /// Steps at which it was done.
    steps: BTreeMap<String, Vec<String>>,
    broken: Vec<String>,
}

impl Tally {
    fn hear(&mut self, news: &News) {
        match news {
            News::LeftOut(scene, why) => {
                remark!("left out: {scene}: {why}");
                self.left_out.push(format!("{scene}: {why}"));
            }
            News::Opened(scene, to_meet) => {
                self.to_meet.insert(scene.to_string(), (*to_meet).clone());
            }
            News::Tried(outcome) => self.take(outcome),
        }
    }

    fn take(&mut self, outcome: &Outcome) {
        let Outcome { point, is_hit, kills, tried } = outcome;
        self.points += 1;
        self.kills += kills;
        let at = if point.step.is_empty() { "no step".into() } else { point.step.clone() };
        let shown = format!("{point} ({at})");
        let missed = if *is_hit { "" } else { ": it met nothing" };
        say::tell(&format!("{}: {shown}{missed}", self.points));
        match is_hit {
            true => {
                let scene = point.scene.to_string();
                *self.kinds.entry((scene.clone(), point.kind())).or_default() += 1;
                self.met.entry(scene.clone()).or_default().extend(point.of_every_step());
                let steps = self.steps.entry(scene).or_default();
                if !steps.contains(&at) {
                    steps.push(at);
                }
            }
            false => self.missed += 1,
        }
        let mut at_point: BTreeMap<Promise, bool> = BTreeMap::new();
        for Tried { promise, broken } in tried {
            *at_point.entry(*promise).or_insert(true) &= broken.is_none();
            if let Some(why) = broken {
                let line = format!("{}: {shown}: {why}", words(*promise));
                say::tell(&format!("  did not hold: {line}"));
                self.broken.push(line);
            }
        }
        for (promise, held) in at_point {
            let (of, held_so_far) = self.promises.entry(promise).or_default();
            *of += 1;
            *held_so_far += u32::from(held);
        }
    }

    fn text(&self, seed: u64, names_unmet: bool) -> String {
        let mut text = String::new();
        let mut rows = vec![["promise", "points tried", "held"].map(String::from).to_vec()];
        for (promise, words) in PROMISES {
            let (tried, held) = self.promises.get(&promise).copied().unwrap_or_default();
            rows.push(vec![words.into(), tried.to_string(), held.to_string()]);
        }
        text += &table(&rows);
        let headings = ["bed and work", "done to it", "at steps", "of every step and fault"];
        let mut rows = vec![headings.map(String::from).to_vec()];
        for (scene, steps) in &self.steps {
            let kinds = self.kinds.iter().filter(|((of, _), _)| of == scene);
            let kinds: Vec<String> = kinds.map(|((_, kind), of)| format!("{of} {kind}")).collect();
            rows.push(vec![scene.clone(), kinds.join(", "), steps.join(", "), self.share(scene)]);
        }
        text += &format!("\n{}\n", table(&rows));
        for line in &self.left_out {
            let _ = writeln!(text, "left out: {line}");
        }
        for line in self.unmet_lines().filter(|_| names_unmet) {
            let _ = writeln!(text, "{line}");
        }
        for line in &self.broken {
            let _ = writeln!(text, "did not hold: {line}");
        }
        let _ = writeln!(
            text,
            "{} points, of which {} met nothing; {} SIGKILLs; seed {seed}. A point again: \
             fsverdict selftest --point POINT",
            self.points, self.missed, self.kills
        );
        text
    }

    /// How much of what every bed is to meet at every step a scene has met.
    fn share(&self, scene: &str) -> String {
        match self.to_meet.get(scene).map_or(0, BTreeSet::len) {
            0 => "-".into(),
            all => format!("{} of {all}", all - self.unmet(scene).count()),
        }
    }

    fn unmet(&self, scene: &str) -> impl Iterator<Item = &[String; 2]> {
        let met = self.met.get(scene);
        let to_meet = self.to_meet.get(scene).into_iter().flatten();
        to_meet.filter(move |pair| !met.is_some_and(|met| met.contains(*pair)))
    }

    /// What no scene of a campaign that was to meet everything has met.
    fn unmet_lines(&self) -> impl Iterator<Item = String> {
        self.to_meet.keys().filter_map(|scene| {
            let unmet = self.unmet(scene).map(|[fault, step]| format!("{fault} at {step}"));
            let unmet: Vec<String> = unmet.collect();
            (!unmet.is_empty()).then(|| format!("not met: {scene}: {}", unmet.join(", ")))
        })
    }
}

fn words(promise: Promise) -> &'static str {
    PROMISES.iter().find(|(of, _)| *of == promise).map_or("", |(_, words)| words)
}

/// As Markdown, which reads as a table in a terminal too; the first row is the heading.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (place, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:width$} "));
        let _ = writeln!(text, "|{}|", cells.collect::<Vec<_>>().join("|"));
        if place == 0 {
            let rules = widths.iter().map(|width| "-".repeat(width + 2));
            let _ = writeln!(text, "|{}|", rules.collect::<Vec<_>>().join("|"));
        }
    }
    text
}
