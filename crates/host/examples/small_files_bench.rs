//! The native small-file loop by itself, for `bench/small-files` to set beside a bare C loop.
//!
//! `small_files_bench DIRECTORY COUNT SIZE_BYTES` prints creates and deletes a second.

use std::error::Error;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;

use fsverdict_core::model::{Bytes, Operation, SmallFiles};
use fsverdict_host::sys;
use fsverdict_host::workload::small_files;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().ok_or("usage: small_files_bench DIRECTORY COUNT SIZE");
    let directory = PathBuf::from(argument()?);
    let count: u64 = argument()?.parse()?;
    let size = Bytes(argument()?.parse()?);
    let files = SmallFiles { count, size, ..SmallFiles::default() };

    let rate = |operation| -> Result<f64, Box<dyn Error>> {
        let done = small_files::run(&files, operation, &directory, 1)?;
        sys::sync_fs(File::open(&directory)?.as_fd())?;
        Ok(count as f64 / (done.work_ns as f64 / 1e9))
    };
    let (create_rate, delete_rate) = (rate(Operation::Create)?, rate(Operation::Delete)?);
    println!("{create_rate:.1} {delete_rate:.1}");
    Ok(())
}
