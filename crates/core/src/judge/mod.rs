//! judge
mod interval;
mod stopping;
mod student;

pub use interval::{Course, Interval};
pub use stopping::Rule;
