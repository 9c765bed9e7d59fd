//! `fsverdict show`: what comes along, to be read and edited.

use anyhow::Result;
use clap_complete::engine::ArgValueCandidates;
use fsverdict_core::model::guess;

use crate::exit::{self, Usage};
use crate::shipped::{self, Shipped};
use crate::{offers, say, uses};

/// Print a plan, a study or a use that comes with fsverdict, to edit it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Its name: fsverdict list plans, studies or uses.
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(offers::shown))]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict show postgresql > mine.toml
  fsverdict show web > mine.toml, and then: fsverdict advise RUN --use mine.toml";

/// Prints it.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let all: Vec<&Shipped> =
        shipped::PLANS.iter().chain(&shipped::STUDIES).chain(&uses::ALL).collect();
    let Some((_, text)) = all.iter().find(|(name, _)| *name == arguments.name) else {
        let there = "fsverdict list plans, studies or uses shows what there is";
        let guess = guess(&arguments.name, all.iter().map(|(name, _)| *name));
        let meant = guess.as_deref().unwrap_or(there);
        let text = format!("no plan, study or use is called {:?}; {meant}", arguments.name);
        return Err(Usage(text).into());
    };
    say::print(text)?;
    Ok(exit::DONE)
}
