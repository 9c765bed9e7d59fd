//! One file a command.

pub mod arguments;
pub mod check;
pub mod clean;
pub mod doctor;
pub mod kernels;
pub mod list;
mod plan;
pub mod report;
pub mod run;
pub mod trial;
