//! What it takes to confine mkfs and a command of the work, for `bench/trial-overhead`.
//!
//! `confinement DEVICE TURNS` makes Btrfs on DEVICE and runs true(1), by itself and confined in
//! turns, with nothing of either in the page cache. It prints a line each: what, and the medians of
//! the milliseconds by itself and confined.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

use fsverdict_host::cell::{self, Cells, Ground};
use fsverdict_host::tool;

/// What each thing that is measured gives.
type Done = Result<(), Box<dyn Error>>;

fn main() -> Done {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().ok_or("usage: confinement DEVICE TURNS");
    let device = argument()?;
    let turns: u32 = argument()?.parse()?;

    // As a run's lab does.
    let _held = cell::private_folders();
    let mkfs = [["mkfs.btrfs", "-q", "-f", "-K", &device].map(String::from).to_vec()];
    let bare_mkfs = || Ok(tool::run_all(&mkfs).map(drop)?);
    let fenced_mkfs = || Ok(cell::among(&[&device], || tool::run_all(&mkfs))?.map(drop)?);
    side_by_side("mkfs", turns, bare_mkfs, fenced_mkfs)?;

    let mut cells = Cells::new(Ground::default());
    // A trial's first cell makes it, for all of them.
    cells.user()?;
    let bare_command = || succeeded(tool::users(&["true".into()]).status()?);
    side_by_side("command", turns, bare_command, || in_cell(&mut cells))
}

/// A command in a cell of its own.
fn in_cell(cells: &mut Cells) -> Done {
    let command = cells.cell()?.command(tool::users(&["true".into()]), Path::new("/"))?;
    let status = command.start()?.wait_and_reap()?;
    cells.leave();
    succeeded(status)
}

fn succeeded(status: ExitStatus) -> Done {
    match status.success() {
        true => Ok(()),
        false => Err(tool::ended(status).into()),
    }
}

fn side_by_side(
    what: &str,
    turns: u32,
    mut bare: impl FnMut() -> Done,
    mut confined: impl FnMut() -> Done,
) -> Done {
    let mut took_ms = [Vec::new(), Vec::new()];
    for turn in 0..turns {
        for side in [turn % 2, 1 - turn % 2].map(|side| side as usize) {
            fs::write("/proc/sys/vm/drop_caches", "3")?;
            let begin = Instant::now();
            if side == 0 { bare() } else { confined() }?;
            took_ms[side].push(begin.elapsed().as_secs_f64() * 1e3);
        }
    }
    let [bare_ms, confined_ms] = took_ms.map(|mut took_ms| {
        took_ms.sort_by(f64::total_cmp);
        took_ms[took_ms.len() / 2]
    });
    println!("{what} {bare_ms:.2} {confined_ms:.2}");
    Ok(())
}
