//! Copying a tree as `cp -a` does: modes, owners, times, symbolic links, hard links within the
//! tree, holes, devices. Extended attributes are left behind, as `rsync -a` leaves them.
//!
//! Operations are *copy* (a regular file, all of its calls together), *link* (a further name of a
//! file that was copied), *symlink*, *node* (devices, pipes, sockets) and *mkdir*.
//!
//! Where blocks may be shared, FICLONE is tried first (ioctl_ficlone(2)), as cp does. A file that
//! is not shared goes through a buffer, and one larger than [`BUFFER_BYTES`] by
//! copy_file_range(2), which saves the way through our memory.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fsverdict_core::model::{Histogram, Reflink};

use super::listing::Listing;
use super::traverse::{Below, Child, Fault, Traversal, Work};
use super::walk::{DIRECTORY, open_top};
use super::{Counts, Sums, Timings, TreeError, UnderWay};
use crate::sys::{self, Kind, Status};

/// A file up to this size is copied by one read and one write.
const BUFFER_BYTES: usize = 256 << 10;

/// The most that copy_file_range is asked for at once.
const RANGE_BYTES: u64 = 1 << 30;

/// A symbolic link's target and its NUL have room here (PATH_MAX).
const TARGET_BYTES: usize = 4096;

const OPERATIONS: [&str; 5] = ["copy", "link", "symlink", "node", "mkdir"];
const COPY: usize = 0;
const LINK: usize = 1;
const SYMLINK: usize = 2;
const NODE: usize = 3;
const MKDIR: usize = 4;

/// Copies all that is in `from` to `to`, which is there, and gives `to` the mode, owner and times
/// of `from`.
pub fn copying(
    from: &Path,
    to: &Path,
    reflink: Reflink,
    threads: u32,
) -> Result<impl UnderWay + use<>, TreeError> {
    refuse_within(from, to)?;
    let (source, target) = (open_top(from)?, open_top(to)?);
    let wrong = |source| TreeError::Path { action: "look at", path: to.into(), source };
    let status = sys::status(source.as_fd()).map_err(wrong)?;
    let made = sys::status(target.as_fd()).map_err(wrong)?;
    let us = (sys::user_id(), sys::group_id());
    let shared = Arc::new(Shared {
        target: target.try_clone().map_err(wrong)?,
        reflink,
        clones: AtomicBool::new(reflink != Reflink::Never),
        links: Mutex::default(),
        mask: mode_mask(),
        // New files are ours, unless the directory passes on its group.
        owner: (made.owner == us && made.mode & libc::S_ISGID == 0).then_some(us),
        is_root: sys::is_root(),
    });
    let path = CString::default();
    let top = Place { source, target, status, path };
    let worker = |_| Copier {
        shared: Arc::clone(&shared),
        listing: Listing::new(),
        buffer: vec![0; BUFFER_BYTES],
        counts: Counts::default(),
        timings: Timings::new(),
    };
    let workers = (0..threads.max(1)).map(worker).collect();
    Ok(Traversal::new(top, workers, from))
}

/// A copy below its own source would go on for ever.
fn refuse_within(from: &Path, to: &Path) -> Result<(), TreeError> {
    let (Ok(from_whole), Ok(to_whole)) = (fs::canonicalize(from), fs::canonicalize(to)) else {
        return Ok(());
    };
    match to_whole.starts_with(from_whole) {
        true => Err(TreeError::Within { from: from.into(), to: to.into() }),
        false => Ok(()),
    }
}

/// The mode bits that new files do not get: proc_pid_status(5). All where it is not told.
fn mode_mask() -> u32 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o777)
}

/// What the threads share.
struct Shared {
    /// The copy's uppermost directory.
    target: OwnedFd,
    reflink: Reflink,
    /// Blocks are shared as far as is known: found out once.
    clones: AtomicBool,
    /// Where the first name of each file that has several was copied to, below `target`.
    links: Mutex<HashMap<(u64, u64), CString>>,
    mask: u32,
    /// The owner of new files, if that is known.
    owner: Option<(u32, u32)>,
    is_root: bool,
}

/// A directory and its copy.
struct Place {
    source: OwnedFd,
    target: OwnedFd,
    status: Status,
    /// Path below the uppermost directory: empty, or with a slash at its end.
    path: CString,
}

struct Copier {
    shared: Arc<Shared>,
    listing: Listing,
    buffer: Vec<u8>,
    counts: Counts,
    timings: Timings<5>,
}

impl Sums for Copier {
    fn summed(all: &[Copier]) -> (Counts, BTreeMap<String, Histogram>) {
        let counts = Counts::sum(all.iter().map(|one| &one.counts));
        (counts, Timings::merged(OPERATIONS, all, |one| &one.timings))
    }
}

impl Work for Copier {
    type Place = Place;

    fn entries(&self) -> u64 {
        self.counts.entries()
    }

    fn enter(&mut self, parent: &Place, child: Child<'_>) -> Result<Place, Fault> {
        let start_ns = sys::monotonic_ns();
        let source = sys::open_at(parent.source.as_fd(), child.name, DIRECTORY)
            .map_err(Fault::of_directory("open"))?;
        let status = sys::status(source.as_fd()).map_err(Fault::of_directory("look at"))?;
        let fd = parent.target.as_fd();
        sys::make_directory_at(fd, child.name).map_err(Fault::of_directory("make the copy of"))?;
        let target = sys::open_at(fd, child.name, DIRECTORY)
            .map_err(Fault::of_directory("open the copy of"))?;
        self.timings.0[MKDIR].record(sys::monotonic_ns() - start_ns);
        self.counts.directories += 1;
        let path = [parent.path.as_bytes(), child.name.to_bytes(), b"/"].concat();
        let path = CString::new(path).expect("names hold no NUL");
        Ok(Place { source, target, status, path })
    }

    fn go_over(&mut self, place: &Place, below: &mut Below) -> Result<(), Fault> {
        let mut listing = std::mem::replace(&mut self.listing, Listing::none());
        let outcome = self.go_over_all(place, &mut listing, below);
        self.listing = listing;
        outcome
    }

    /// New entries change a directory's times, and its mode may forbid them.
    fn leave(&mut self, place: Place, _within: Option<(&Place, Child<'_>)>) -> Result<(), Fault> {
        let (file, status) = (place.target.as_fd(), &place.status);
        let done = self.shared.give_owner(file, status);
        done.and_then(|()| sys::change_mode(file, status.mode))
            .and_then(|()| sys::change_times(file, status.times))
            .map_err(Fault::of_directory("finish the copy of"))
    }
}

impl Copier {
    fn go_over_all(
        &mut self,
        place: &Place,
        listing: &mut Listing,
        below: &mut Below,
    ) -> Result<(), Fault> {
        while listing.read(place.source.as_fd()).map_err(Fault::of_directory("read"))? {
            listing.sort();
            let mut start_ns = sys::monotonic_ns();
            for number in 0..listing.len() {
                let (entry, name) = listing.get(number);
                if entry.kind == Kind::Directory {
                    below.note(Child { name, number: entry.inode });
                    continue;
                }
                let copied = match entry.kind {
                    Kind::File => {
                        self.copy_file(place, name).map(|operation| (operation, Kind::File))
                    }
                    _ => self.copy_other(place, name, entry.inode, below),
                };
                let (operation, kind) = copied.map_err(Fault::of("copy", name))?;
                let end_ns = sys::monotonic_ns();
                if kind != Kind::Directory {
                    self.counts.count(kind);
                    self.timings.0[operation].record(end_ns - start_ns);
                }
                start_ns = end_ns;
            }
        }
        Ok(())
    }

    /// Copies anything but a regular file, or an entry whose kind the directory does not tell.
    fn copy_other(
        &mut self,
        place: &Place,
        name: &CStr,
        inode: u64,
        below: &mut Below,
    ) -> io::Result<(usize, Kind)> {
        let status = sys::status_at(place.source.as_fd(), name)?;
        let operation = match status.kind {
            Kind::Directory => {
                below.note(Child { name, number: inode });
                MKDIR
            }
            Kind::File => self.copy_file(place, name)?,
            _ if status.links > 1 && self.shared.link(place, name, &status)? => LINK,
            kind => {
                let target = place.target.as_fd();
                let operation = if kind == Kind::Link {
                    self.copy_link(place, name)?;
                    SYMLINK
                } else {
                    sys::make_node_at(target, name, status.mode & !0o777, status.device)?;
                    sys::chmod_at(target, name, status.mode & 0o7777)?;
                    NODE
                };
                if self.shared.owner != Some(status.owner) {
                    self.shared.forgiven(sys::chown_at(target, name, status.owner))?;
                }
                sys::change_times_at(target, name, status.times)?;
                self.shared.note(place, name, &status);
                operation
            }
        };
        Ok((operation, status.kind))
    }

    fn copy_link(&mut self, place: &Place, name: &CStr) -> io::Result<()> {
        let room = &mut self.buffer[..TARGET_BYTES];
        let len = sys::read_link_at(place.source.as_fd(), name, room)?;
        if len == TARGET_BYTES {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        room[len] = 0;
        let target = CStr::from_bytes_until_nul(room).expect("a NUL was just put there");
        sys::symbolic_link_at(target, place.target.as_fd(), name)
    }

    fn copy_file(&mut self, place: &Place, name: &CStr) -> io::Result<usize> {
        let source = sys::open_at(
            place.source.as_fd(),
            name,
            libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK,
        )?;
        let status = sys::status(source.as_fd())?;
        let mode = status.mode & 0o7777;
        // Nobody may read more of it than of its source, until the owner is right.
        let first_mode = if self.shared.owner == Some(status.owner) { mode & 0o777 } else { 0o600 };
        let target = if status.links > 1 {
            match self.shared.link_or_create(place, name, &status, first_mode)? {
                Some(target) => target,
                None => return Ok(LINK),
            }
        } else {
            sys::create_at(place.target.as_fd(), name, first_mode)?
        };
        self.fill(source.as_fd(), target.as_fd(), &status)?;
        self.shared.give_owner(target.as_fd(), &status)?;
        if mode != first_mode & !self.shared.mask {
            sys::change_mode(target.as_fd(), mode)?;
        }
        sys::change_times(target.as_fd(), status.times)?;
        sys::close(target)?;
        if status.size_bytes > 0 {
            self.counts.bytes += status.size_bytes;
        }
        Ok(COPY)
    }

    /// Copies a file's content.
    fn fill(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        status: &Status,
    ) -> io::Result<()> {
        if status.size_bytes == 0 {
            return Ok(());
        }
        if self.shared.clones.load(Ordering::Relaxed) {
            match sys::clone_file(from, to) {
                Ok(()) => return Ok(()),
                Err(error) if self.shared.reflink == Reflink::Always => return Err(error),
                // From another file system, or onto one that can't: no file will be shared.
                Err(_) => self.shared.clones.store(false, Ordering::Relaxed),
            }
        }
        if status.allocated_bytes < status.size_bytes {
            return self.fill_around_holes(from, to, status.size_bytes);
        }
        let whole = status.size_bytes;
        if whole <= BUFFER_BYTES as u64 || self.shared.reflink == Reflink::Never {
            return self.pass_on(from, to, whole);
        }
        copy_ranges(from, to, whole)
    }

    /// Copies `len` bytes from where both files are through the buffer.
    fn pass_on(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, len: u64) -> io::Result<()> {
        let mut left = len;
        while left > 0 {
            let room = left.min(BUFFER_BYTES as u64) as usize;
            match sys::read(from, &mut self.buffer[..room])? {
                // It has been cut short meanwhile.
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => {
                    sys::write_all(to, &self.buffer[..got])?;
                    left -= got as u64;
                }
            }
        }
        Ok(())
    }

    fn fill_around_holes(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        size_bytes: u64,
    ) -> io::Result<()> {
        let mut at = 0;
        while let Some((begin, end)) = sys::next_data(from, at)? {
            sys::seek_to(from, begin)?;
            sys::seek_to(to, begin)?;
            self.pass_on(from, to, end.min(size_bytes) - begin)?;
            at = end;
            if at >= size_bytes {
                break;
            }
        }
        sys::truncate(to, size_bytes)
    }
}

/// copy_file_range until `len` bytes are copied.
fn copy_ranges(from: BorrowedFd<'_>, to: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    let mut left = len;
    while left > 0 {
        match sys::copy_range(from, to, left.min(RANGE_BYTES) as usize)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            copied => left -= copied as u64,
        }
    }
    Ok(())
}

impl Shared {
    /// Gives `file` its source's owner. Only root may give files away; others keep them, as with
    /// `cp -a`.
    fn give_owner(&self, file: BorrowedFd<'_>, status: &Status) -> io::Result<()> {
        if self.owner == Some(status.owner) {
            return Ok(());
        }
        self.forgiven(sys::change_owner(file, status.owner))
    }

    fn forgiven(&self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Err(error) if !self.is_root && error.raw_os_error() == Some(libc::EPERM) => Ok(()),
            done => done,
        }
    }

    /// Makes `name` another name of what was copied already; false if it was not.
    fn link(&self, place: &Place, name: &CStr, status: &Status) -> io::Result<bool> {
        let links = self.links();
        let Some(first) = links.get(&status.identity) else { return Ok(false) };
        sys::link_at(self.target.as_fd(), first, place.target.as_fd(), name).map(|()| true)
    }

    /// Makes `name` another name of the file if there is one, else the file, still empty. All of
    /// it under one lock, so that no thread finds a name of a file that another has yet to make.
    fn link_or_create(
        &self,
        place: &Place,
        name: &CStr,
        status: &Status,
        mode: u32,
    ) -> io::Result<Option<OwnedFd>> {
        let mut links = self.links();
        if let Some(first) = links.get(&status.identity) {
            sys::link_at(self.target.as_fd(), first, place.target.as_fd(), name)?;
            return Ok(None);
        }
        let made = sys::create_at(place.target.as_fd(), name, mode)?;
        links.insert(status.identity, place.path_of(name));
        Ok(Some(made))
    }

    /// Notes where the first name of something with several names went.
    fn note(&self, place: &Place, name: &CStr, status: &Status) {
        if status.links > 1 {
            self.links().insert(status.identity, place.path_of(name));
        }
    }

    fn links(&self) -> std::sync::MutexGuard<'_, HashMap<(u64, u64), CString>> {
        self.links.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Place {
    fn path_of(&self, name: &CStr) -> CString {
        let path = [self.path.as_bytes(), name.to_bytes()].concat();
        CString::new(path).expect("names hold no NUL")
    }
}
