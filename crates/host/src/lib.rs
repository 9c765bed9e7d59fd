//! The machine: everything that touches it.
//!
//! [`place`] has the places where trials run, and the process of a trial; [`verb`] has what else is
//! done to a machine. They use wings of one subject each: [`bed`], [`layer`], [`file_system`],
//! [`workload`], [`probe`], [`tree`], and `machine`, what is read from and set in the system
//! itself. [`tool`] is the one place that starts programs and [`sys`] the one that holds unsafe
//! code.

pub mod bed;
pub mod file_system;
pub mod layer;
mod machine;
pub mod place;
pub mod probe;
pub mod sys;
mod timing;
pub mod tool;
pub mod tree;
pub mod undo;
pub mod verb;
pub mod workload;

pub use machine::{cell, folder, plain};
