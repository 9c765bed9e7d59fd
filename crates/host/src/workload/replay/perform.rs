//! One thread of a replay: its calls, made one after the other.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use fsverdict_core::model::{Action, On};
use libc::c_int;

use super::Shared;
use super::beneath::Beneath;
use super::buffers::{Buffer, Pool};
use crate::sys::{self, Attributed};
use crate::timing::Latencies;
use crate::workload::YEAR_2001_S;

/// Shorter pauses are not slept: waking up takes about that long.
const SHORTEST_SLEEP_NS: u64 = 60_000;

/// Why blocks are not shared (ioctl_ficlone(2)): the file system never does, or not of these files.
const NOT_SHARED: [c_int; 3] = [libc::EOPNOTSUPP, libc::ENOTTY, libc::EXDEV];

const COPIED_AT_ONCE_BYTES: usize = 1 << 30;

/// What a call must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Just that.
    Value(u64),
    /// No error.
    Success,
    /// That error, by its number.
    Error(c_int),
    /// It is not compared.
    Anything,
}

/// A call with all it needs.
#[derive(Debug)]
pub struct PreparedCall {
    /// Its place in the recording.
    pub number: usize,
    pub action: Action,
    /// Flags, mode or advice.
    pub flags: c_int,
    /// The target of a link, or the name of an attribute.
    pub text: CString,
    /// An access control list.
    pub value: Box<[u8]>,
    pub expected: Expected,
    /// Threads, and how many of their calls must be done.
    pub waits: Box<[(usize, u64)]>,
    pub pause_ns: u64,
    /// The place of its latencies.
    pub operation: usize,
}

/// What makes the calls of one thread.
#[derive(Debug)]
pub struct Worker {
    pub thread: usize,
    pub calls: Vec<PreparedCall>,
    /// By operation.
    pub latencies: Vec<(&'static str, Latencies)>,
    pub pool: Pool,
    pub buffer: Buffer,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Files that it has copied instead of sharing their blocks.
    pub copied: u64,
    pub differences: u64,
    /// Which call was the first that gave something else, and what: an error is negative.
    pub first_difference: Option<(usize, i64)>,
    /// By how much pauses were too long so far.
    pub late_ns: u64,
    /// The place of the first of its calls that is not done.
    pub next: usize,
}

impl Worker {
    /// The timed loop, over its calls before the one with the number `end`: nothing is allocated,
    /// formatted or logged in it. It goes on after a difference, because others wait for its calls.
    pub fn go_on(&mut self, end: usize, shared: &Shared, beneath: &Beneath<'_>) {
        let calls = std::mem::take(&mut self.calls);
        let mine = calls.iter().enumerate().skip(self.next);
        for (place, call) in mine.take_while(|(_, call)| call.number < end) {
            for &(thread, done) in &call.waits {
                shared.progress[thread].wait_for(done);
            }
            if shared.paced {
                self.pause(call.pause_ns);
            }
            let start_ns = sys::monotonic_ns();
            let gave = self.make(call, shared, beneath);
            let latency_ns = sys::monotonic_ns() - start_ns;
            self.latencies[call.operation].1.record(latency_ns);
            shared.progress[self.thread].advance();
            self.compare(place, call.expected, &gave);
            self.next = place + 1;
        }
        self.calls = calls;
    }

    /// Waits; what one pause took too long the next ones make up for.
    fn pause(&mut self, pause_ns: u64) {
        let due_ns = pause_ns.saturating_sub(self.late_ns);
        self.late_ns -= pause_ns - due_ns;
        if due_ns == 0 {
            return;
        }
        let begin_ns = sys::monotonic_ns();
        if due_ns >= SHORTEST_SLEEP_NS {
            std::thread::sleep(Duration::from_nanos(due_ns));
        }
        let mut took_ns = sys::monotonic_ns() - begin_ns;
        while took_ns < due_ns {
            std::hint::spin_loop();
            took_ns = sys::monotonic_ns() - begin_ns;
        }
        self.late_ns += took_ns - due_ns;
    }

    #[inline]
    fn compare(&mut self, place: usize, expected: Expected, gave: &io::Result<u64>) {
        let error = || gave.as_ref().err().and_then(io::Error::raw_os_error).unwrap_or(libc::EIO);
        let fits = match (expected, gave) {
            (Expected::Anything, _) | (Expected::Success, Ok(_)) => true,
            (Expected::Value(expected), Ok(value)) => expected == *value,
            (Expected::Error(expected), Err(_)) => expected == error(),
            (Expected::Success | Expected::Value(_), Err(_)) | (Expected::Error(_), Ok(_)) => false,
        };
        if !fits {
            self.differences += 1;
            let gave = gave.as_ref().map_or_else(|_| -i64::from(error()), |it| it.cast_signed());
            self.first_difference.get_or_insert((place, gave));
        }
    }

    /// Makes the call: what it gave, where that is compared.
    #[inline]
    fn make(
        &mut self,
        call: &PreparedCall,
        shared: &Shared,
        beneath: &Beneath<'_>,
    ) -> io::Result<u64> {
        match &call.action {
            Action::Read { .. } | Action::Pread { .. } => {
                let got = self.read(&call.action, shared)?;
                self.read_bytes += got;
                Ok(got)
            }
            Action::Write { .. } | Action::Pwrite { .. } => {
                let taken = self.write(&call.action, shared)?;
                self.written_bytes += taken;
                Ok(taken)
            }
            &Action::Clone { from, to } => self.share([from, to], shared),
            Action::CopyRange { .. } | Action::Sendfile { .. } => {
                let copied = shared.copy(&call.action)?;
                self.read_bytes += copied;
                self.written_bytes += copied;
                Ok(copied)
            }
            Action::List { handle, bytes } => {
                let buffer = self.buffer.first(*bytes as usize);
                let on = |file: BorrowedFd<'_>| sys::read_directory(file, buffer).map(drop);
                shared.with(*handle, on).map(|()| 0)
            }
            Action::Readlink { path } => {
                let buffer = self.buffer.first(4096);
                let read = |at: BorrowedFd<'_>, name: &CStr| sys::read_link_at(at, name, buffer);
                beneath.at(&shared.paths[*path as usize], read).map(|len| len as u64)
            }
            Action::Setxattr { on, bytes, .. } => {
                let value = self.pool.next(*bytes as usize);
                shared.attributed(*on, beneath, |on| sys::give_attribute(on, &call.text, value))
            }
            Action::SetAcl { on, .. } => {
                let give = |on: Attributed<'_>| sys::give_attribute(on, &call.text, &call.value);
                shared.attributed(*on, beneath, give)
            }
            Action::Getxattr { on, bytes, .. } => {
                let buffer = self.buffer.first(*bytes as usize);
                let get = |on: Attributed<'_>| sys::attribute(on, &call.text, buffer).map(drop);
                shared.attributed(*on, beneath, get)
            }
            Action::Listxattr { on, bytes } => {
                let buffer = self.buffer.first(*bytes as usize);
                let list = |on: Attributed<'_>| sys::attributes(on, buffer).map(drop);
                shared.attributed(*on, beneath, list)
            }
            Action::Removexattr { on, .. } => {
                shared.attributed(*on, beneath, |on| sys::remove_attribute(on, &call.text))
            }
            &Action::Touch { map, place, bytes, writes } => {
                let touched = self.touch(map, [place, bytes], writes, shared)?;
                *(if writes { &mut self.written_bytes } else { &mut self.read_bytes }) += touched;
                Ok(touched)
            }
            Action::Seek { handle, place } => {
                shared.with(*handle, |file| sys::seek_from_start(file, *place))
            }
            _ => shared.make(call, beneath).map(|()| 0),
        }
    }

    /// Has two files share their blocks, or copies all of it, as programs do where no blocks can be
    /// shared: how much was copied.
    fn share(&mut self, files: [u32; 2], shared: &Shared) -> io::Result<u64> {
        match shared.both(files, sys::clone_file) {
            Err(error) if error.raw_os_error().is_some_and(|it| NOT_SHARED.contains(&it)) => {}
            done => return done.map(|()| 0),
        }
        let copied = shared.copy_whole(files)?;
        self.copied += 1;
        self.read_bytes += copied;
        self.written_bytes += copied;
        Ok(copied)
    }

    #[inline]
    fn read(&mut self, action: &Action, shared: &Shared) -> io::Result<u64> {
        let got = match *action {
            Action::Read { handle, bytes } => {
                let buffer = self.buffer.first(bytes as usize);
                shared.with(handle, |file| sys::read(file, buffer))
            }
            Action::Pread { handle, bytes, place } => {
                let buffer = self.buffer.first(bytes as usize);
                shared.with(handle, |file| sys::read_at(file, buffer, place))
            }
            _ => Ok(0),
        };
        got.map(|got| got as u64)
    }

    #[inline]
    fn write(&mut self, action: &Action, shared: &Shared) -> io::Result<u64> {
        let taken = match *action {
            Action::Write { handle, bytes } => {
                let content = self.pool.next(bytes as usize);
                shared.with(handle, |file| sys::write(file, content))
            }
            Action::Pwrite { handle, bytes, place } => {
                let content = self.pool.next(bytes as usize);
                shared.with(handle, |file| sys::write_at(file, content, place))
            }
            _ => Ok(0),
        };
        taken.map(|taken| taken as u64)
    }
}

fn taken(handle: &RwLock<Option<OwnedFd>>) -> Option<OwnedFd> {
    handle.write().unwrap_or_else(PoisonError::into_inner).take()
}

pub(super) fn closed() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}

impl Shared {
    /// Uses an open file.
    #[inline]
    pub(super) fn with<T>(
        &self,
        handle: u32,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let open = self.handles[handle as usize].read().unwrap_or_else(PoisonError::into_inner);
        call(open.as_ref().ok_or_else(closed)?.as_fd())
    }

    fn attributed(
        &self,
        on: On,
        beneath: &Beneath<'_>,
        make: impl FnOnce(Attributed<'_>) -> io::Result<()>,
    ) -> io::Result<u64> {
        let name = |path: u32| &self.paths[path as usize];
        match on {
            On::Path(path) if name(path).is_long() => {
                let file = beneath.open(name(path), libc::O_RDONLY | libc::O_NONBLOCK, 0)?;
                make(Attributed::File(file.as_fd()))
            }
            On::Path(path) => beneath.to(name(path), |_, path| make(Attributed::Path(path))),
            On::Handle(handle) => self.with(handle, |file| make(Attributed::File(file))),
        }
        .map(|()| 0)
    }

    /// Data moved within the kernel: how much.
    fn copy(&self, action: &Action) -> io::Result<u64> {
        match *action {
            Action::CopyRange { from, from_place, to, to_place, bytes } => self
                .both([from, to], |from, to| {
                    sys::copy_range_at((from, from_place), (to, to_place), bytes as usize)
                }),
            Action::Sendfile { from, place, to, bytes } => {
                self.both([from, to], |from, to| sys::send_file(from, place, to, bytes as usize))
            }
            _ => Ok(0),
        }
        .map(|copied| copied as u64)
    }

    /// Copies all of a file over the begin of another within the kernel: how much.
    fn copy_whole(&self, files: [u32; 2]) -> io::Result<u64> {
        let mut place = 0;
        loop {
            let copy = |from: BorrowedFd<'_>, to: BorrowedFd<'_>| {
                sys::copy_range_at((from, Some(place)), (to, Some(place)), COPIED_AT_ONCE_BYTES)
            };
            match self.both(files, copy)? {
                0 => return Ok(place),
                copied => place += copied as u64,
            }
        }
    }

    /// Uses two open files, or one twice.
    fn both<T>(
        &self,
        [from, to]: [u32; 2],
        call: impl FnOnce(BorrowedFd<'_>, BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.with(from, |first| match from == to {
            true => call(first, first),
            false => self.with(to, |second| call(first, second)),
        })
    }

    /// Calls that need nothing of the thread's.
    fn make(&self, call: &PreparedCall, beneath: &Beneath<'_>) -> io::Result<()> {
        let flags = call.flags;
        let name = |path: u32| &self.paths[path as usize];
        match call.action {
            Action::Open { path, mode, handle, .. } => {
                let file = beneath.open(name(path), flags, mode)?;
                if let Some(handle) = handle {
                    let slot = &self.handles[handle as usize];
                    *slot.write().unwrap_or_else(PoisonError::into_inner) = Some(file);
                }
                Ok(())
            }
            Action::Close { handle } => {
                sys::close(taken(&self.handles[handle as usize]).ok_or_else(closed)?)
            }
            Action::SetFlags { handle, .. } => {
                self.with(handle, |file| sys::set_status_flags(file, flags))
            }
            Action::Fsync { handle } => self.with(handle, sys::fsync),
            Action::Fdatasync { handle } => self.with(handle, sys::data_sync),
            Action::SyncRange { handle, place, bytes, .. } => {
                self.with(handle, |file| sys::sync_range(file, place, bytes, flags))
            }
            Action::Syncfs { handle } => self.with(handle, sys::sync_fs),
            Action::Sync {} => sys::sync_fs(beneath.directory()),
            Action::Allocate { handle, place, bytes, .. } => {
                self.with(handle, |file| sys::allocate_range(file, flags, place, bytes))
            }
            Action::Advise { handle, place, bytes, .. } => {
                self.with(handle, |file| sys::advise(file, place, bytes, flags))
            }
            Action::Access { path, .. } => {
                beneath.to(name(path), |at, name| sys::access_at(at, name, flags))
            }
            _ if call.action.map().is_some() => self.in_memory(call),
            _ => self.rearrange(call, beneath),
        }
    }

    /// Calls on names, whatever they stand for.
    fn rearrange(&self, call: &PreparedCall, beneath: &Beneath<'_>) -> io::Result<()> {
        let name = |path: u32| &self.paths[path as usize];
        match call.action {
            Action::Rename { from, to, .. } => beneath.at(name(from), |from, old| {
                let to_there = |to: BorrowedFd<'_>, new: &CStr| {
                    sys::rename_as((from, old), (to, new), call.flags)
                };
                beneath.at(name(to), to_there)
            }),
            Action::Link { from, to } => beneath.at(name(from), |from, old| {
                beneath.at(name(to), |to, new| sys::link_at(from, old, to, new))
            }),
            Action::LinkOpen { handle, to } => self
                .with(handle, |file| beneath.at(name(to), |at, new| sys::link_open(file, at, new))),
            Action::Unlink { path } => beneath.at(name(path), sys::unlink_at),
            Action::Rmdir { path } => beneath.at(name(path), sys::remove_directory_at),
            Action::Mkdir { path, mode } => {
                beneath.at(name(path), |at, name| sys::make_directory_as(at, name, mode))
            }
            Action::Symlink { path, .. } => {
                beneath.at(name(path), |at, name| sys::symbolic_link_at(&call.text, at, name))
            }
            Action::Mknod { path } => {
                let mode = libc::S_IFSOCK | 0o600;
                beneath.at(name(path), |at, name| sys::make_node_at(at, name, mode, 0))
            }
            _ => self.alter(call, beneath),
        }
    }

    /// Calls on what a path leads to, or on an open file.
    fn alter(&self, call: &PreparedCall, beneath: &Beneath<'_>) -> io::Result<()> {
        let name = |path: u32| &self.paths[path as usize];
        let times = [(YEAR_2001_S, 0); 2];
        match call.action {
            Action::Truncate { on: On::Path(path), bytes } if name(path).is_long() => {
                let file = beneath.open(name(path), libc::O_WRONLY, 0)?;
                sys::truncate(file.as_fd(), bytes)
            }
            Action::Truncate { on: On::Path(path), bytes } => {
                beneath.to(name(path), |_, path| sys::truncate_path(path, bytes))
            }
            Action::Truncate { on: On::Handle(handle), bytes } => {
                self.with(handle, |file| sys::truncate(file, bytes))
            }
            Action::Stat { on: On::Path(path), follow: true } => {
                beneath.to(name(path), |at, name| sys::look_at(at, name, true))
            }
            Action::Stat { on: On::Path(path), follow: false } => {
                beneath.at(name(path), |at, name| sys::look_at(at, name, false))
            }
            Action::Stat { on: On::Handle(handle), .. } => {
                self.with(handle, |file| sys::status(file).map(drop))
            }
            Action::Chmod { on: On::Path(path), mode } => {
                beneath.to(name(path), |at, name| sys::chmod_at(at, name, mode))
            }
            Action::Chmod { on: On::Handle(handle), mode } => {
                self.with(handle, |file| sys::change_mode(file, mode))
            }
            Action::Chown { on: On::Path(path) } => {
                beneath.at(name(path), |at, name| sys::chown_at(at, name, self.owner))
            }
            Action::Chown { on: On::Handle(handle) } => {
                self.with(handle, |file| sys::change_owner(file, self.owner))
            }
            Action::Utimes { on: On::Path(path) } => {
                beneath.at(name(path), |at, name| sys::set_times_at(at, name, YEAR_2001_S))
            }
            Action::Utimes { on: On::Handle(handle) } => {
                self.with(handle, |file| sys::change_times(file, times))
            }
            _ => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
        }
    }
}
