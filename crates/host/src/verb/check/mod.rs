//! Settings tried: each option of a file's commands on images of our own, and what the tools and
//! the kernel say and do.
//!
//! Nothing that a file names is written to. Its devices are replaced by nameless images; options
//! that name other devices or files are not tried; its lines are read and never run. There is no
//! list of good and bad options: a verdict comes from leaving an option out, giving it alone and
//! giving its opposite (`sort`), and from counting flushes, discards and access times (`mounting`).
//! What shows only after a crash comes from the manuals (`documented`), and facts about a mounted
//! disk from what it says of itself (`flag`).

mod bench;
mod documented;
mod elsewhere;
mod facts;
mod finding;
mod flag;
mod knob;
mod limit;
#[cfg(test)]
mod loop_tests;
mod make;
mod mounting;
mod partition;
mod pool;
mod property;
mod sort;
mod stripe;
mod target;
mod topology;
mod writeback;

use std::path::Path;

use fsverdict_core::model::{Checked, Judged};
use fsverdict_core::script::{self, Call, Choice, Request, Script, Written};

use bench::Bench;
use knob::Wish;
pub use target::{Stripe, Target};

/// Tries everything that `script` asks for, for a disk like `target`; images go to the folder
/// `images` and have no names. An error says why nothing at all can be tried.
pub fn check(script: &Script, images: &Path, target: Target) -> Result<Vec<Checked>, String> {
    // On a thread of its own, so that the others keep their mount namespace.
    std::thread::scope(|scope| {
        let check = || Ok(check_all(&Bench::new(images, target)?, script));
        let thread = std::thread::Builder::new().spawn_scoped(scope, check);
        let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn check_all(bench: &Bench, script: &Script) -> Vec<Checked> {
    let mut findings = Vec::new();
    let mut tables = partition::PartitionTables::new(bench);
    let mut made: Vec<(&Call, Vec<Choice>)> = Vec::new();
    // Calls that make file systems come first, wherever they are: mounts are of what they make.
    for (written, call) in calls(script) {
        let (found, accepted) = make::check(bench, call, &blank_of(written));
        findings.extend(found);
        made.push((call, accepted));
    }
    for written in &script.settings {
        let blank = blank_of(written);
        match &written.request {
            Request::Mount(mount) => {
                let kind = mounting::kind(mount, &made);
                let options = mounting::made_by(&made, &kind);
                findings.extend(mounting::check(bench, mount, &kind, options, &blank));
                findings.extend(flag::check(&kind, &mount.device, &mount.options, &blank));
            }
            Request::Partition(call) => findings.extend(tables.check(call, &blank)),
            Request::Pool(call) => findings.extend(pool::check(call, &blank)),
            Request::Property(wish) => findings.push(property::check(bench, wish, &blank)),
            Request::Limit(wish) => findings.push(limit::check(bench, wish, &blank)),
            Request::Idle(why) => findings.push(told(Judged::NoEffect, why, blank)),
            Request::Other(why) => findings.push(told(Judged::NotTried, why, blank)),
            Request::Knob { value, .. } if script::is_unknown(value) => {
                findings.push(finding::unknown(&blank, value));
            }
            Request::Make(_) | Request::Knob { .. } => {}
        }
    }
    findings.extend(knob::check(bench, &wishes(script)));
    hold_against_comments(&mut findings, script);
    // By line; the order within a line is that of the findings.
    findings.sort_by_key(|it: &Checked| it.line);
    findings
}

/// For a whole line, by its first word.
fn told(state: Judged, why: &str, blank: Checked) -> Checked {
    let setting = blank.command.split([' ', ',']).next().unwrap_or("").into();
    Checked { setting, state, said: Some(why.into()), ..blank }
}

/// A comment that says the opposite: one of the two is wrong.
fn hold_against_comments(findings: &mut [Checked], script: &Script) {
    for found in findings {
        let is_its = |it: &&Written| it.line == found.line && it.command == found.command;
        let comment = script.settings.iter().find(is_its).map(|it| it.comment.as_str());
        let Some(said) = comment.and_then(|it| script::contradiction(it, &found.setting)) else {
            continue;
        };
        if matches!(found.state, Judged::Ok | Judged::Redundant | Judged::NoEffect) {
            found.state = Judged::Doubtful;
        }
        let advice = found.advice.take().map(|advice| format!("; {advice}")).unwrap_or_default();
        found.advice = Some(format!("{said}{advice}"));
    }
}

fn calls(script: &Script) -> impl Iterator<Item = (&Written, &Call)> {
    script.settings.iter().filter_map(|written| match &written.request {
        Request::Make(call) => Some((written, call)),
        _ => None,
    })
}

fn wishes(script: &Script) -> Vec<Wish<'_>> {
    script.settings.iter().filter_map(wish).collect()
}

fn wish(written: &Written) -> Option<Wish<'_>> {
    match &written.request {
        Request::Knob { value, .. } if script::is_unknown(value) => None,
        Request::Knob { knob, value } => Some(Wish { knob, value, blank: blank_of(written) }),
        _ => None,
    }
}

fn blank_of(written: &Written) -> Checked {
    blank(written.line, &written.command)
}

/// A finding that has yet to be made.
fn blank(line: usize, command: &str) -> Checked {
    let (command, setting) = (command.to_string(), String::new());
    Checked { line, command, setting, state: Judged::Ok, said: None, advice: None }
}
