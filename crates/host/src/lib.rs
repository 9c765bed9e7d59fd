//! The machine: everything that touches it.
//!
//! [`tool`] is the one place that starts programs and `sys` the one that holds unsafe code.
//! [`lab::Lab`] surrounds the trials, [`here::Here`] is inside one; [`dry::DryRun`] only says what
//! both would do.

pub mod bed;
mod cache;
pub mod check;
mod daemon;
pub mod doctor;
pub mod dry;
pub mod facts;
pub mod file_system;
pub mod here;
pub mod lab;
mod link;
pub mod mount;
pub mod partition;
pub mod preflight;
pub mod probe;
mod processes;
pub mod record;
pub mod settings;
mod settle;
pub mod sys;
pub mod tool;
pub mod tree;
pub mod undo;
pub mod vm;
pub mod workload;
