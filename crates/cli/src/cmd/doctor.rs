//! `fsverdict doctor`: what this machine can do.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use fsverdict_host::place::doctor::{self, Ability, Answer, State};

use crate::exit;

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
    let checks = doctor::checks(Path::new("/"), &folder);
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut out = io::stdout().lock();
    let mut abilities: Vec<Ability> = Vec::new();
    for check in checks {
        write!(out, "{:width$}  ", check.name)?;
        // The name stands there while its answer is waited for.
        out.flush()?;
        let ability = check.run();
        writeln!(out, "{}", line(&ability.answer, width))?;
        abilities.push(ability);
    }
    write!(out, "\n{}", doctor::conclusion(&abilities))?;
    Ok(exit::DONE)
}

/// What follows the name; the advice in a line of its own, under the detail.
fn line(answer: &Answer, width: usize) -> String {
    let state = match answer.state {
        State::Yes => "yes",
        State::No => "no",
        State::Unknown => "not known",
    };
    let line = format!("{state:9}  {}", answer.detail);
    match &answer.advice {
        None => line,
        Some(advice) => format!("{line}\n{:indent$}-> {advice}", "", indent = width + 13),
    }
}
