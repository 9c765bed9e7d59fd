//! Whether the machine can do something: the answer, and what to do about it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::tool;

/// What to do about most that only root may.
pub const AS_ROOT: &str = "run it with sudo";

/// Whether the machine can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It can.
    Yes,
    /// It can't.
    No,
    /// It could not be found out.
    Unknown,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the machine can do it.
    pub state: State,
    /// What it has, or what is in the way.
    pub detail: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// The Debian package that would help.
    pub package: Option<&'static str>,
}

impl Answer {
    fn new(state: State, detail: impl Into<String>) -> Answer {
        Answer { state, detail: detail.into(), advice: None, package: None }
    }

    /// It can, as `detail` says.
    pub fn yes(detail: impl Into<String>) -> Answer {
        Answer::new(State::Yes, detail)
    }

    /// It can't, for `detail`; `advice` is what to do about it.
    pub fn no(detail: impl Into<String>, advice: impl Into<String>) -> Answer {
        Answer { advice: Some(advice.into()), ..Answer::new(State::No, detail) }
    }

    /// It could not be found out, for `detail`.
    pub fn unknown(detail: impl Into<String>) -> Answer {
        Answer::new(State::Unknown, detail)
    }

    /// `program` is lacking.
    pub fn not_installed(program: &str) -> Answer {
        let package = tool::package(program);
        let advice = package.map(install);
        let no = Answer::new(State::No, format!("{program} is not installed"));
        Answer { advice, package, ..no }
    }

    /// `no`, with what an error of opening `path` means for the user.
    pub fn closed(path: &str, error: &io::Error, absent: &str) -> Answer {
        match error.kind() {
            io::ErrorKind::NotFound => Answer::no(format!("there is no {path}"), absent),
            io::ErrorKind::PermissionDenied => {
                Answer::no(format!("{path} is not for this user"), AS_ROOT)
            }
            _ => Answer::new(State::No, format!("{path}: {error}")),
        }
    }

    /// What is lacking and what to do about it, in one line; nothing where nothing is.
    pub fn lack(&self) -> Option<String> {
        let advice = self.advice.as_ref().map(|advice| format!(": {advice}")).unwrap_or_default();
        (self.state != State::Yes).then(|| format!("{}{advice}", self.detail))
    }
}

/// The command that installs a package, or several.
pub fn install(packages: &str) -> String {
    format!("apt-get install {packages}")
}

/// Something the machine can do, or can't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// What it is.
    pub name: String,
    /// Whether the machine can do it.
    pub answer: Answer,
}

/// A file that is gone as soon as it is closed (open(2), O_TMPFILE).
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    options.open(folder)
}
