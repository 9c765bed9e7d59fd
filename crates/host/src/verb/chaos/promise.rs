//! What the program promises of its runs, however they end.

/// A promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// A run that ends by itself needs no `clean`.
    ByItself,
    /// Processes.
    Processes,
    /// Mounts.
    Mounts,
    /// Loop and zram devices.
    Devices,
    /// Images, folders, journals.
    Files,
    /// Settings of the kernel, rules of limits, instances of its tracing.
    Settings,
    /// Sockets, interfaces, shared memory.
    Open,
    /// Other people's disks and files.
    Strangers,
    /// Records that were there.
    Records,
    /// The order of a resumed run.
    Order,
    /// Its figures.
    Figures,
    /// Exit status and messages.
    Said,
}

/// Each with its words.
pub const PROMISES: [(Promise, &str); 12] = [
    (Promise::ByItself, "a run that ends by itself leaves nothing; no clean is needed"),
    (Promise::Processes, "after clean: no process is left"),
    (Promise::Mounts, "after clean: nothing is mounted"),
    (Promise::Devices, "after clean: no loop or zram device is left"),
    (Promise::Files, "after clean: no image, folder or journal of ours is left"),
    (
        Promise::Settings,
        "after clean: sysctls, queues, limits, traces, control groups are as before",
    ),
    (Promise::Open, "after clean: no socket, network interface or shared memory is left"),
    (Promise::Strangers, "other disks and files are as they were"),
    (Promise::Records, "the records of ended trials are unchanged, byte for byte"),
    (Promise::Order, "a resumed run has the trials of an unbroken one, in the same order"),
    (Promise::Figures, "and the same figures, where work is counted or simulated"),
    (Promise::Said, "it ends with a documented exit status, without a panic"),
];

/// A promise that was put to the test at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// Which.
    pub promise: Promise,
    /// What broke it; `None` where it held.
    pub broken: Option<String>,
}
