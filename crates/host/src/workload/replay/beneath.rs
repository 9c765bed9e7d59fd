//! The work's directory, which no path of a recording leads out of.
//!
//! A recording is data, and may be a stranger's. Where its links lead shows only when they are
//! used: a link that stays inside leads out once it is renamed further up. So no path is checked
//! here; the kernel confines each of them to the directory. Either that is the root of the threads
//! that make the calls, so that calls cost the same as elsewhere. Or, without the right to change
//! the root, each path is resolved first and the call made on the result.

use std::ffi::{CStr, CString, NulError};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use libc::c_int;

use crate::machine::long_path;
use crate::sys::{self, ChangedRoot, NoUmask};

/// How paths are kept inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The directory is the root.
    Root,
    /// Each path is resolved with the directory as its root.
    Resolved,
}

/// The work's directory, ready to keep paths in.
#[derive(Debug)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// It, open.
    pub directory: File,
    /// How this process may do it.
    pub way: Way,
}

impl Folder {
    /// Opens it. Where the right to change the root is lacking, paths are resolved.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let directory = File::open(path)?;
        let way = match ChangedRoot::enter(directory.as_fd()) {
            Ok(_) => Way::Root,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                sys::open_in_root(directory.as_fd(), c".", libc::O_PATH, 0)?;
                Way::Resolved
            }
            Err(error) => return Err(error),
        };
        Ok(Folder { path: path.into(), directory, way })
    }

    /// Does `work` with all paths confined to the directory, and with modes as given, for this
    /// thread and the ones that it starts.
    pub fn keep<T>(&self, work: impl FnOnce(&Beneath<'_>) -> T) -> io::Result<T> {
        let (directory, way) = (self.directory.as_fd(), self.way);
        let changed = (way == Way::Root).then(|| ChangedRoot::enter(directory)).transpose()?;
        let unmasked = NoUmask::enter()?;
        let done = work(&Beneath { directory, way });
        drop((unmasked, changed));
        Ok(done)
    }
}

/// A path of a recording.
#[derive(Debug)]
pub struct Name {
    /// The directories on the way to the rest, each from the one before, where all of it is more
    /// than the kernel takes at once: programs come there by changing directories.
    steps: Vec<CString>,
    rest: CString,
    /// All of the rest but its last part; empty where that is all of it.
    parent: CString,
    /// Where the last part begins.
    last_at: usize,
}

impl Name {
    /// A path is relative, and has no part that is empty, `.` or `..`.
    pub fn new(path: &str) -> Result<Name, NulError> {
        let (steps, rest) = long_path::steps(path);
        let parent = rest.rfind('/').map_or("", |end| &rest[..end]);
        let last_at = if parent.is_empty() { 0 } else { parent.len() + 1 };
        let steps = steps.into_iter().map(CString::new).collect::<Result<_, _>>()?;
        Ok(Name { steps, rest: CString::new(rest)?, parent: CString::new(parent)?, last_at })
    }

    /// It is more than the kernel takes at once.
    pub fn is_long(&self) -> bool {
        !self.steps.is_empty()
    }

    fn last(&self) -> &CStr {
        let last = &self.rest.as_bytes_with_nul()[self.last_at..];
        CStr::from_bytes_with_nul(last).expect("the end of a name that ends in NUL")
    }
}

/// The directory, while paths end in it.
#[derive(Debug)]
pub struct Beneath<'a> {
    directory: BorrowedFd<'a>,
    way: Way,
}

impl Beneath<'_> {
    /// The directory itself.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory
    }

    /// Where to look up the rest of a path: in the directory, or, at the end of the steps, in one
    /// below.
    #[inline]
    fn near<T>(
        &self,
        name: &Name,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut steps = name.steps.iter();
        let Some(first) = steps.next() else { return call(self.directory) };
        let mut reached = self.step(self.directory, first)?;
        for step in steps {
            reached = self.step(reached.as_fd(), step)?;
        }
        call(reached.as_fd())
    }

    fn step(&self, from: BorrowedFd<'_>, step: &CStr) -> io::Result<OwnedFd> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        match self.way {
            Way::Root => sys::open_as(from, step, flags, 0),
            // What a link leads to ends at `from` then, further down than it might.
            Way::Resolved => sys::open_in_root(from, step, flags, 0),
        }
    }

    /// Opens what a path leads to.
    #[inline]
    pub fn open(&self, name: &Name, flags: c_int, mode: u32) -> io::Result<OwnedFd> {
        self.near(name, |near| match self.way {
            Way::Root => sys::open_as(near, &name.rest, flags, mode),
            Way::Resolved => sys::open_in_root(near, &name.rest, flags, mode),
        })
    }

    /// A call on a name itself: the directory and what to look up in it. It must not follow a link
    /// that has this name.
    #[inline]
    pub fn at<T>(
        &self,
        name: &Name,
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> io::Result<T>,
    ) -> io::Result<T> {
        self.near(name, |near| {
            if self.way == Way::Root || name.parent.is_empty() {
                return call(near, &name.rest);
            }
            let flags = libc::O_PATH | libc::O_DIRECTORY;
            let parent = sys::open_in_root(near, &name.parent, flags, 0)?;
            call(parent.as_fd(), name.last())
        })
    }

    /// A call on what a path leads to, links followed. The path that `call` gets is from a
    /// directory, and from the working directory, too, unless the name [is long](Name::is_long).
    #[inline]
    pub fn to<T>(
        &self,
        name: &Name,
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.way == Way::Root {
            return self.near(name, |near| call(near, &name.rest));
        }
        let reached = self.open(name, libc::O_PATH, 0)?;
        // proc_pid_fd(5): this leads to the file itself, and no path is followed any more.
        let mut path = [0; 32];
        write!(&mut path[..], "/proc/self/fd/{}", reached.as_raw_fd())?;
        let path = CStr::from_bytes_until_nul(&path).map_err(io::Error::other)?;
        call(self.directory, path)
    }
}
