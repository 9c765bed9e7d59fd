//! The queue of requests that a tool keeps.

use serde::{Deserialize, Serialize};

/// The requests a tool had under way: as it was set, and by its own figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Jobs times their depth: as many as there can be. A synchronous engine has a depth of 1.
    pub declared: f64,
    /// Rate times mean latency, added up over its jobs, reads, writes and trims: by Little's law
    /// (Operations Research 9(3), 1961) the mean number under way.
    pub requests: f64,
    /// The same of its fsyncs, which its latency of writes leaves out.
    pub syncs: f64,
    /// It begins the next request as soon as one is done: no rate or pause is asked of it.
    pub closed: bool,
    /// All of it goes past the page cache.
    pub direct: bool,
}
