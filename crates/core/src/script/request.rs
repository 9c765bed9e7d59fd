//! What a script asks for.

use super::options::Choice;

/// One line's wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The line's number, from 1.
    pub line: usize,
    /// The command as written, its variables replaced.
    pub command: String,
    /// What it asks for.
    pub request: Request,
    /// The comment above it and behind it.
    pub comment: String,
}

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A file system is to be made, or an existing one to be changed (tune2fs).
    Make(Call),
    /// A file system is to be mounted.
    Mount(Mount),
    /// A value is to be written to a file of the kernel's.
    Knob {
        /// Which.
        knob: Knob,
        /// The value.
        value: String,
    },
    /// A partition table is to be written.
    Partition(Call),
    /// Properties of a ZFS pool or of what is in it.
    Pool(Call),
    /// A property of a file on Btrfs.
    Property(Choice),
    /// A limit of a user's or a service's processes.
    Limit(Limit),
    /// A setting that sets nothing, and why.
    Idle(String),
    /// A setting that this version can't try, and why.
    Other(String),
}

/// A program with its options and its devices, apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The program: `mkfs.xfs`, `tune2fs`.
    pub program: String,
    /// Its options, one suboption each.
    pub choices: Vec<Choice>,
    /// The devices it was to work on; what is tried works on images in their place.
    pub devices: Vec<String>,
    /// What follows the devices: a size for mke2fs, commands for parted.
    pub rest: Vec<String>,
    /// Variables among its words that may stand for options, and that the file does not set.
    pub unknown: Vec<String>,
}

/// A mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The file system's type, where it is given.
    pub file_system: Option<String>,
    /// The options of all its lists.
    pub options: Vec<String>,
    /// What was to be mounted.
    pub device: String,
}

/// A limit as limits.conf(5) has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Whether a process that it binds can raise it: `soft`, `hard`, or `-` for both.
    pub kind: String,
    /// What is limited: `nofile`.
    pub item: String,
    /// A number in the item's own unit, or `unlimited`.
    pub value: String,
    /// What sets it.
    pub by: LimitBy,
}

/// What sets a limit: each means something else by `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitBy {
    /// pam_limits, of limits.conf.
    Pam,
    /// systemd, of a unit.
    Systemd,
    /// A shell's `ulimit`, which hands it to the kernel.
    Shell,
}

/// A file of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Knob {
    /// `/sys/block/DEVICE/queue/FILE`.
    Queue {
        /// The device's name, or what stands for it.
        device: String,
        /// The file.
        file: String,
    },
    /// A sysctl by its dotted name.
    Sysctl(String),
    /// Another file of /sys or /proc.
    Other(String),
}

/// What a file asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The settings, in order.
    pub settings: Vec<Written>,
    /// How many lines hold something else: neither a setting, nor empty, nor a comment.
    pub other_lines: usize,
}
