//! The numbers behind a verdict, and nothing of file systems: Student's t ([`student`]), what a
//! run's differences say of the true one ([`estimate`]), and when to look and how wide an interval
//! must be then ([`stopping`]).
//!
//! It is a crate of its own since the thresholds are simulated whenever a run begins: this is made
//! fast in every build, and the rest need not be.
#![forbid(unsafe_code)]

pub mod estimate;
pub mod stopping;
pub mod student;
