//! `fsverdict trial`: one trial, a document in, a document out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fsverdict_core::model::{Disk, SCHEMA, Trial, Trouble};
use fsverdict_core::run::{self, Effect, Host, HostError, Step};
use fsverdict_host::place::trial::TrialHost;
use fsverdict_host::plain;

use crate::exit::{self, PlaceError, Usage};
use crate::say;
use crate::store;

/// Run one trial: a document in, a document out (FORMAT.md has both).
///
/// `run` starts one of these for each trial, and it works only while that run is alive and at this
/// trial: an old document makes no file system. The paths it names must hold what the run was
/// allowed to erase, or made.
#[derive(clap::Args)]
pub struct Arguments {
    /// The trial's document.
    #[arg(long = "in", value_name = "TRIAL.json")]
    input: PathBuf,
    /// Where its record goes; written beside, synced and renamed.
    #[arg(long = "out", value_name = "RECORD.json")]
    output: PathBuf,
}

/// Runs the trial. A trial that failed has a record that says so, and the exit status 0.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let path = arguments.input.display();
    let text = plain::text(&arguments.input).with_context(|| path.to_string())?;
    let trial: Trial = serde_json::from_str(&text)
        .map_err(|error| Usage(format!("{path} is not a trial: {error}")))?;
    if trial.schema != SCHEMA {
        let text = format!("{path} is of schema {}, this is fsverdict of {SCHEMA}", trial.schema);
        return Err(Usage(text).into());
    }
    let (host, trial) = TrialHost::new(trial).map_err(PlaceError)?;
    let record = run::trial(&mut Announced(host), &trial);
    // Where the trial has its folder by now.
    let name = arguments.output.file_name().unwrap_or_default();
    let output = Path::new(&trial.raw).with_file_name(name);
    store::write_record(&output, &record)?;
    Ok(exit::DONE)
}

/// Says each step on standard output before it is taken: `run` shows it as progress.
struct Announced(TrialHost);

impl Host for Announced {
    fn perform(&mut self, step: Step, trial: &Trial) -> Result<Effect, HostError> {
        say::print(&format!("{step}\n"))?;
        self.0.perform(step, trial)
    }

    fn clean_up(&mut self, trial: &Trial) -> Vec<String> {
        self.0.clean_up(trial)
    }

    fn trouble(&mut self) -> Trouble {
        self.0.trouble()
    }

    fn unkept_bytes(&mut self) -> BTreeMap<String, u64> {
        self.0.unkept_bytes()
    }

    fn disk(&mut self, trial: &Trial) -> Option<Disk> {
        self.0.disk(trial)
    }

    fn clock_ns(&mut self) -> u64 {
        self.0.clock_ns()
    }
}
