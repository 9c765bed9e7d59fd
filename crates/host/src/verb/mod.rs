//! What the program does to a machine besides running trials.

pub mod chaos;
pub mod check;
pub mod recording;
