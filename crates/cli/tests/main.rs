//! The program's integration tests: the built binary, from its arguments to its exit status.
//!
//! Plain `cargo test` runs those that touch no device. `loop_` has the others: they need root and
//! loop devices, and `./test` runs them. `vm_` boots virtual machines, `browser` reads reports.

mod audit;
mod blktrace;
mod blocks;
mod browser;
mod cli;
mod crates;
mod documents;
mod format;
mod generations;
mod golden;
mod habits;
mod judge;
mod large;
mod loop_;
mod notebook;
mod printed;
mod references;
mod simulated;
mod support;
mod tables;
mod tidy;
mod vm_;
mod watch;
