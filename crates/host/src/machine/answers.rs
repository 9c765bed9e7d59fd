//! Answers that several questions to the machine have in common.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use fsverdict_core::model::need::Answer;

use crate::{sys, tool};

/// What helps where a container lacks a right.
pub const OUTSIDE: &str = "run it outside the container, or in a privileged one";

/// `program`, one of the tools used here, is lacking.
pub fn not_installed(program: &str) -> Answer {
    Answer::not_installed(program, tool::package(program))
}

/// What an error of opening `path` means for the user; `absent` is the message if it is not there.
pub fn closed(path: &str, error: &io::Error, absent: &str) -> Answer {
    match error.kind() {
        io::ErrorKind::NotFound => Answer::no(format!("there is no {path}")).but(absent),
        // What keeps root from a device is the device controller of a container's cgroup.
        io::ErrorKind::PermissionDenied if sys::is_root() => {
            Answer::no(format!("{path} may not be opened, not even by root")).but(OUTSIDE)
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Answer::no(format!("{path} is read-only")).but(OUTSIDE)
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_that_is_refused_is_sent_out_of_its_container_and_not_to_sudo() {
        let of = |error: i32| {
            let error = io::Error::from_raw_os_error(error);
            closed("/dev/loop-control", &error, "modprobe loop").unmet().unwrap()
        };
        for error in [libc::EPERM, libc::EACCES] {
            let unmet = of(error);
            assert_eq!(unmet.contains(OUTSIDE), sys::is_root(), "{unmet}");
            assert_eq!(unmet.contains("sudo"), !sys::is_root(), "{unmet}");
        }
        assert!(of(libc::EROFS).contains(OUTSIDE));
        assert!(of(libc::ENOENT).contains("modprobe loop"));
    }
}
