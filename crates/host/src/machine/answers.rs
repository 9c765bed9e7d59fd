//! Answers that several questions to the machine have in common.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use fsverdict_core::model::need::Answer;

use crate::tool;

/// `program`, one of the tools used here, is lacking.
pub fn not_installed(program: &str) -> Answer {
    Answer::not_installed(program, tool::package(program))
}

/// What an error of opening `path` means for the user, who is told `absent` where it is not there.
pub fn closed(path: &str, error: &io::Error, absent: &str) -> Answer {
    match error.kind() {
        io::ErrorKind::NotFound => Answer::no(format!("there is no {path}")).but(absent),
        io::ErrorKind::PermissionDenied => {
            Answer::no(format!("{path} is not for this user")).but_root()
        }
        _ => Answer::no(format!("{path}: {error}")),
    }
}

/// A file that is gone as soon as it is closed (open(2), O_TMPFILE).
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    options.open(folder)
}
