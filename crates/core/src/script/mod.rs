//! Settings as people write them, read and never run: a shell script, an fstab, a sysctl.conf, a
//! limits.conf, a udev rule, a unit of systemd, a profile of tuned, or a plan.
//!
//! All but plans and files with sections are read alike, line by line: each line shows by itself
//! what it is, and a script that writes an fstab holds lines of both kinds. Nothing is judged here,
//! only understood, except a comment that contradicts its own line.

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
pub use line::started;
pub use options::{Choice, argv, choices, is_unknown};
pub use request::{Call, Knob, Limit, LimitBy, Mount, Request, Script, Written};

/// Reads `text`. It is a plan if it can be read as one with contenders, and has sections if it
/// begins with one; anything else is read line by line. What is no setting is counted.
pub fn read(text: &str) -> Script {
    plan::read(text).or_else(|| ini::read(text)).unwrap_or_else(|| line::read(text))
}

/// No file of settings is longer.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// No line of one is longer, with those that its backslashes join.
const LINE_BYTES_MAX: usize = 1 << 16;

/// Refuses a text that is no file of settings for its size: to read it would take too long.
pub fn check_size(text: &str) -> Result<(), String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err("it is longer than 1 MiB: name a file of settings".into());
    }
    let lines = line::logical_lines(text);
    match lines.iter().find(|(_, line)| line.len() > LINE_BYTES_MAX) {
        Some((number, _)) => Err(format!("line {number} is longer than 64 KiB: split it")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
