//! One file a command.

pub mod advise;
pub mod anatomy;
pub mod arguments;
pub mod audit;
mod beside;
pub mod check;
pub mod clean;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod for_use;
pub mod history;
pub mod judge;
pub mod kernels;
pub mod list;
pub mod man;
pub mod pack;
mod plan;
pub mod record;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod selftest;
pub mod show;
pub mod tree;
pub mod trial;
mod untrusted;
