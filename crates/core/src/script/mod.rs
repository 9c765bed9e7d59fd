//! Settings as people write them, read and never run: a shell script, an fstab, a sysctl.conf, a
//! limits.conf, a udev rule, a unit of systemd, a profile of tuned, or a plan.
//!
//! All but plans and files with sections are read alike, line by line: each line says by itself
//! what it is, and a script that writes an fstab holds lines of both kinds. Nothing is judged here,
//! only understood, but for what a comment says of its own line.

mod command;
mod comment;
mod device;
mod ini;
mod line;
mod options;
mod plan;
mod request;
mod udev;
mod words;

pub use comment::contradiction;
pub use device::is_device;
pub use options::{Choice, argv, choices, is_unknown};
pub use request::{Call, Knob, Limit, Mount, Request, Script, Written};
pub use words::{Token, Variables, tokens};

/// Reads `text`. It is a plan if it can be read as one with contenders, and has sections if it
/// begins with one; anything else is read line by line. What is no setting is counted.
pub fn read(text: &str) -> Script {
    plan::read(text).or_else(|| ini::read(text)).unwrap_or_else(|| line::read(text))
}

#[cfg(test)]
mod tests;
