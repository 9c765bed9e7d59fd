//! The machine: everything that touches it.
//!
//! [`tool`] is the one place that starts programs and `sys` the one that holds unsafe code.

pub mod bed;
mod sys;
pub mod tool;
