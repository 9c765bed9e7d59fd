//! Paths of more bytes than the kernel takes at once: programs reach them by changing directories,
//! or from an open one.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::sys;

/// PATH_MAX of linux/limits.h, which counts the byte that ends a path.
const PATH_BYTES_MAX: usize = 4096;

/// The directories on the way, each from the one before, and the rest of the path: none is longer
/// than the kernel takes.
pub fn steps(path: &str) -> (Vec<&str>, &str) {
    let (mut steps, mut rest) = (Vec::new(), path);
    while rest.len() >= PATH_BYTES_MAX {
        // No slash lies within a letter of several bytes.
        let end = rest.as_bytes()[..PATH_BYTES_MAX].iter().rposition(|byte| *byte == b'/');
        // A part without one is longer than any file's name.
        let Some(end) = end.filter(|end| *end > 0) else { break };
        steps.push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    (steps, rest)
}

/// A path that may be long, without links on its way, for calls that take one that is not.
#[derive(Debug)]
pub struct LongPath {
    path: PathBuf,
    _reached: Option<OwnedFd>,
}

impl LongPath {
    /// Opens what is on the way.
    pub fn open(path: &Path) -> io::Result<LongPath> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() < PATH_BYTES_MAX {
            return Ok(LongPath { path: path.into(), _reached: None });
        }
        let mut reached: OwnedFd = File::open("/")?.into();
        let mut rest = bytes.strip_prefix(b"/").unwrap_or(bytes);
        while rest.len() >= PATH_BYTES_MAX / 2 {
            let end = rest[..PATH_BYTES_MAX / 2].iter().rposition(|byte| *byte == b'/');
            let Some(end) = end else { break };
            let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
            reached = sys::open_at(reached.as_fd(), &CString::new(&rest[..end])?, flags)?;
            rest = &rest[end + 1..];
        }
        let near = PathBuf::from(format!("/proc/self/fd/{}", reached.as_raw_fd()));
        let path = near.join(std::ffi::OsStr::from_bytes(rest));
        Ok(LongPath { path, _reached: Some(reached) })
    }

    /// The path by which it is reached for as long as this lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_long_path_is_several_of_which_none_is_long() {
        assert_eq!(steps("0/a"), (vec![], "0/a"));
        let part = "ä".repeat(100);
        let path = vec![part; 100].join("/");
        let (steps_there, rest) = steps(&path);
        assert!(steps_there.len() > 3 && rest.len() < PATH_BYTES_MAX);
        assert!(steps_there.iter().all(|step| step.len() < PATH_BYTES_MAX));
        assert_eq!([steps_there.join("/").as_str(), rest].join("/"), path);
        let name = "x".repeat(5000);
        assert_eq!(steps(&name), (vec![], name.as_str()));
        let root = format!("/{name}");
        assert_eq!(steps(&root), (vec![], root.as_str()));
    }

    #[test]
    fn what_lies_too_deep_for_a_path_is_reached() {
        let dir = tempfile::tempdir().unwrap();
        let mut path = dir.path().canonicalize().unwrap();
        for _ in 0..30 {
            path = path.join("d".repeat(200));
            fs::create_dir(LongPath::open(&path).unwrap().path()).unwrap();
        }
        assert!(path.as_os_str().len() > PATH_BYTES_MAX);
        assert!(fs::metadata(&path).is_err());
        let file = path.join("f");
        fs::write(LongPath::open(&file).unwrap().path(), "here").unwrap();
        assert_eq!(fs::read(LongPath::open(&file).unwrap().path()).unwrap(), b"here");
    }
}
