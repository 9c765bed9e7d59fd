//! What trying a setting showed.

use serde::{Deserialize, Serialize};

/// How a setting did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// It is taken and makes a difference.
    Ok,
    /// It is taken and makes no difference: without it the same comes out.
    Redundant,
    /// It is taken, but something else decides, or it is ignored.
    NoEffect,
    /// It works, but what it is for is not there, or it costs what its user may not expect.
    Doubtful,
    /// It gives up what the file system promises for a crash.
    Unsafe,
    /// The tool or the kernel refuses it.
    Invalid,
    /// It could not be tried here.
    NotTried,
}

impl Judged {
    /// For people.
    pub fn label(self) -> &'static str {
        match self {
            Judged::Ok => "ok",
            Judged::Redundant => "redundant",
            Judged::NoEffect => "no effect",
            Judged::Doubtful => "doubtful",
            Judged::Unsafe => "unsafe",
            Judged::Invalid => "invalid",
            Judged::NotTried => "not tried",
        }
    }
}

/// A setting, and how it did when it was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The line it stands in, from 1.
    pub line: usize,
    /// That line's command.
    pub command: String,
    /// The setting as written.
    pub setting: String,
    /// How it did.
    pub state: Judged,
    /// What the tool or the kernel said or showed, or what was measured.
    pub said: Option<String>,
    /// What to do instead, or what to know.
    pub advice: Option<String>,
}
