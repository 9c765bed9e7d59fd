//! What is run on a file system, and what running it brought.

pub mod command;
pub mod fio;
mod latencies;
pub mod small_files;

pub use latencies::Latencies;
