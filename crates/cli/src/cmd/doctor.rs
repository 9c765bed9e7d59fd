//! `fsverdict doctor`: what this machine can do.

use anyhow::{Context, Result};
use fsverdict_core::model::need::{Answer, State};
use fsverdict_core::render::hanging;
use fsverdict_host::place::doctor::{self, Machine};

use crate::exit;
use crate::say;

/// Show what this machine can do, and what to install for the rest.
///
/// Changes nothing that stays: it attaches a file to a loop device for a moment, and boots a guest
/// of 512 bytes to see whether KVM works. Without root it says what root is needed for.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sudo fsverdict doctor")]
pub struct Arguments {}

/// Asks everything and prints each answer as it comes.
pub fn run(_: &Arguments) -> Result<u8> {
    let folder = std::env::current_dir().context("looking for the current folder")?;
    let machine = Machine::new(&folder);
    let (asked, needs) = (machine.asked(), doctor::needs());
    let width = needs.iter().map(|need| need.name().len()).max().unwrap_or(0);
    for need in &needs {
        // The name stands there while its answer is waited for.
        say::print(&format!("{:width$}  ", need.name()))?;
        say::print(&format!("{}\n", line(&asked.answer(need), width)))?;
    }
    let end = doctor::conclusion(&asked, &needs);
    let lines: String = end.lines().map(|line| format!("{}\n", hanging(line, 0))).collect();
    say::print(&format!("\n{lines}"))?;
    Ok(exit::DONE)
}

/// What follows the name; what to do about it in a line of its own, under the detail.
fn line(answer: &Answer, width: usize) -> String {
    let state = match answer.state {
        State::Yes => "yes",
        State::Partly => "partly",
        State::No => "no",
        State::Unknown => "not known",
    };
    let indent = width + 13;
    let line = format!("{state:9}  {}", hanging(&answer.detail, indent));
    match &answer.remedy {
        None => line,
        // It may be a command, to be copied whole.
        Some(remedy) => format!("{line}\n{:indent$}-> {remedy}", ""),
    }
}
