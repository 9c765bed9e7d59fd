//! Settings as people write them, read and never run: a shell script, an fstab, a sysctl.conf, a
//! udev rule, or a plan.
//!
//! All but plans are read alike, line by line: each line says by itself what it is, and a script
//! that writes an fstab holds lines of both kinds. Nothing is judged here, only understood.

mod command;
mod device;
mod line;
mod options;
mod plan;
mod request;
mod words;

pub use device::is_device;
pub use options::{Choice, argv, choices};
pub use request::{Call, Knob, Mount, Request, Script, Written};
pub use words::{Token, Variables, tokens};

/// Reads `text`. It is a plan if it can be read as one with contenders; anything else is read line
/// by line, and what is no setting is counted.
pub fn read(text: &str) -> Script {
    plan::read(text).unwrap_or_else(|| line::read(text))
}

#[cfg(test)]
mod tests;
