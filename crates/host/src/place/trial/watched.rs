//! Writes outside the work's folder that the cell refuses, in the trials of the first round only:
//! watching lengthens each system call of the machine, and work does the same in every round.

use std::io::{Write, stderr};
use std::path::Path;

use fsverdict_core::model::{Forbidden, Trial, Workload};
use fsverdict_core::render::one_line;

use crate::machine::within;
use crate::probe::Refusals;
use crate::sys;

const ROUND: u32 = 1;

/// What watches the trial's work, if something does.
#[derive(Debug)]
pub struct Watched(Option<Refusals>);

impl Watched {
    /// Begins to watch `trial`, where its work is in cells of namespaces. Where it can't be
    /// watched, the record says nothing of it, and the trial's standard error why.
    pub fn begin(trial: &Trial) -> Watched {
        let has_cells = sys::is_root() && !within::is_guest();
        let looks = has_cells && trial.key.round == ROUND && starts_programs(&trial.workload);
        Watched(looks.then(|| told(Refusals::watch(Path::new("/")))).flatten())
    }

    /// What was refused since the last time, where that was watched.
    pub fn more(&mut self) -> Option<Forbidden> {
        let more = told(self.0.as_mut()?.more());
        if more.is_none() {
            self.0 = None;
        }
        more
    }
}

/// The timed work is another program's, which is started in a cell: native work is not to be slowed
/// down for what its preparation may do.
fn starts_programs(workload: &Workload) -> bool {
    let Workload { command, fio, sysbench, .. } = workload;
    command.is_some() || fio.is_some() || sysbench.is_some()
}

fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Option<T> {
    let tell = |error: &E| {
        let text = format!("refused writes can't be told: {error}");
        // Nothing hangs on its being read.
        let _ = writeln!(stderr(), "{}", one_line(&text));
    };
    result.inspect_err(tell).ok()
}
