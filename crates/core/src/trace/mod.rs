//! What reached a disk, request by request: recorded by the kernel's tracepoints, by blktrace or by
//! QEMU, read back, and sorted by the operation it was for.
//!
//! [`Formats`], [`Page`] and [`merge()`] decode the kernel's ring buffers, [`blktrace()`] the files
//! that blktrace writes, [`Assembler`] makes requests of the events of either, [`LogWrites`] reads
//! what `blklogwrites` and dm-log-writes leave, [`mod@file`] is the form in which a log is kept,
//! and [`Operations`] splits it. All of them stream: none holds more than what is under way.

mod assemble;
mod blktrace;
mod events;
pub mod file;
mod format;
mod log_writes;
mod merge;
mod operations;
mod pages;

pub use assemble::Assembler;
pub use blktrace::{BlktraceError, Missing, blktrace};
pub use events::{Block, Event, EventKind, Formats, Process};
pub use format::{Field, Format, FormatError, page_bytes};
pub use log_writes::{LogWrites, LogWritesError};
pub use merge::merge;
pub use operations::{Between, Operations};
pub use pages::{Page, Pages};
