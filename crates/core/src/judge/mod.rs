//! judge
mod stopping;
mod student;

pub use stopping::Rule;
