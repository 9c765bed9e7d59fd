//! `fsverdict vm`: into the virtual machine of a trial.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap_complete::engine::ArgValueCandidates;
use fsverdict_core::model::{Outcome, Plan, Record, Trial, TrialBed};
use fsverdict_core::run::Place;
use fsverdict_host::place::vm::{Terminal, Vm};

use super::arguments::PlaceName;
use super::run::interrupt_flag;
use super::{consent, resume};
use crate::exit::{self, PlaceError, Usage};
use crate::store::Store;
use crate::{offers, say};

/// Look around in the virtual machine of a trial.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Shell(Shell),
}

/// Run a trial once more in its virtual machine, and then a shell in there.
///
/// The machine has the kernel, the disks and the files that the trial had, and some everyday
/// programs of this machine. What you do there is lost with it: the run stays as it is. `exit` ends
/// it; Ctrl-A, then X, ends QEMU if it hangs.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  fsverdict vm shell RUN\n  fsverdict vm shell RUN --trial 7")]
struct Shell {
    /// A run whose trials had virtual machines.
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(offers::runs))]
    run: PathBuf,
    /// The trial, by its number [default: the first that failed, otherwise the first].
    #[arg(long, value_name = "N")]
    trial: Option<u32>,
    /// The options for QEMU that the run had.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    vm_qemu: Option<String>,
    /// The run's place, if that was uml.
    #[arg(long, value_parser = consent::uml_alone)]
    place: Option<PlaceName>,
}

/// Boots the machine, and waits for its end.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let Command::Shell(shell) = &arguments.command;
    let store = Store::open(&shell.run)?;
    let loaded = store.load()?;
    let run = shell.run.display();
    if !loaded.run.place.has_guests() {
        bail!(Usage(format!("{run}: its trials had no virtual machines (run --place vm)")));
    }
    let begun = Some(loaded.run.place);
    consent::check_machine(&loaded.plan, begun, shell.vm_qemu.as_deref(), shell.place)?;
    let Some(number) = shell.trial.or_else(|| of_interest(&loaded.records)) else {
        bail!(Usage(format!("{run} has no trial: --trial N")));
    };
    let its = loaded.records.iter().filter(|it| it.number == number);
    let guest = its.filter_map(|it| it.guest.as_ref()).next_back().cloned().unwrap_or_default();
    let path = store.trial(number).join("trial.json");
    let text = crate::source::text(&path).with_context(|| path.display().to_string())?;
    let trial: Trial = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let plan = Plan {
        contenders: vec![trial.contender.clone()],
        workloads: vec![trial.workload.clone()],
        ..loaded.plan
    };
    let (had, stop) = (&loaded.run.host, interrupt_flag()?);
    let mut vm = Vm::to_look_around(store.folder(), &plan, had, stop, Box::new(|_| {}))
        .map_err(PlaceError)?;
    if let Some(change) = resume::changed_guest(had, &vm.bed_facts()) {
        say::tell(&change);
    }
    let (at, with) = (&trial.key.contender, &trial.key.workload);
    say::tell(&format!("trial {number}, {at} at {with}, once more; its disks are being made"));
    let ended = vm.make_bed(&plan.bed).and_then(|bed| {
        let trial = on(trial, bed);
        if guest.processor.is_some() {
            vm.use_plain_processor(&trial);
        }
        vm.use_bus_of(&trial, &guest.disks);
        vm.shell(&trial, &terminal())
    });
    let removed = vm.remove_bed();
    ended.and(removed).map_err(PlaceError)?;
    Ok(exit::DONE)
}

/// The first trial that failed, or the first.
fn of_interest(records: &[Record]) -> Option<u32> {
    let failed = records.iter().find(|it| matches!(it.outcome, Outcome::Failed(_)));
    failed.or(records.first()).map(|it| it.number)
}

/// The trial on disks that are there now: as many as it had.
fn on(trial: Trial, bed: TrialBed) -> Trial {
    let count = trial.bed.devices.len();
    let devices = bed.devices.into_iter().take(count).collect();
    Trial { bed: TrialBed { devices, lab: bed.lab, ..trial.bed }, ..trial }
}

/// The terminal that we are typed at; one of 80 columns where there is none.
fn terminal() -> Terminal {
    let (rows, columns) = console::Term::stderr().size_checked().unwrap_or((24, 80));
    Terminal { kind: std::env::var("TERM").unwrap_or_else(|_| "dumb".into()), rows, columns }
}
