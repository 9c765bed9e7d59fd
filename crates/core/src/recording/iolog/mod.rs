//! fio's log of what a job did to its files, "Trace file format" in fio's HOWTO: read as a
//! recording, and written from one.

mod files;
mod job;
mod ranges;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use job::job;
pub use read::{IologError, Source, read};
pub use write::{Written, write};
