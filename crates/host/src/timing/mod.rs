//! Threads that start together, and the latencies that each of them meets.

mod latencies;
pub(crate) mod threads;

pub use latencies::Latencies;
