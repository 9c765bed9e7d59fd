//! One file a command.

pub mod advise;
pub mod arguments;
pub mod audit;
pub mod check;
pub mod clean;
pub mod compare;
pub mod doctor;
pub mod kernels;
pub mod list;
mod plan;
pub mod report;
pub mod run;
pub mod tree;
pub mod trial;
