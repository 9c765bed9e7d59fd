//! What a command and all that it starts hand over to the kernel by io_uring, while they are
//! recorded. strace shows how many requests a call hands over; what they are lies in memory. So
//! the threads stand still at these calls until we have looked there, and we write a line as
//! strace would (`fsverdict_core::recording`). A listener goes before a tracer in the kernel
//! (seccomp(2), the order of actions), so that strace does not see these calls.
//!
//! A ring is the kernel's memory and is mapped by its descriptor, for so long as the thread stands
//! still: held longer, it would keep its files open.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use fsverdict_core::recording::time_ns;

use super::nameless;
use crate::sys::{
    self, Coming, Heard, Listener, Meets, PARAMETERS_BYTES, RingReader, RingRequest, SETUP_SQPOLL,
    Stopped, Waiting,
};

/// How often it is looked whether the command has ended, and how many requests rings have been
/// given that the kernel empties by itself.
const PATIENCE_MS: u16 = 100;
const POLLED_MS: u16 = 20;

/// include/uapi/linux/io_uring.h: the vectors among `enum io_uring_op`, and `IOSQE_FIXED_FILE`.
const VECTORS: [u8; 4] = [1, 2, 60, 61];
const FIXED_FILE: u8 = 1 << 0;
/// The ring is one of the thread's own: a flag of io_uring_enter(2), and of io_uring_register(2).
const ENTER_REGISTERED_RING: u64 = 1 << 4;
const USE_REGISTERED_RING: u32 = 1 << 31;
/// `enum io_uring_register_op`.
const REGISTER_FILES: u32 = 2;
const UNREGISTER_FILES: u32 = 3;
const FILES_UPDATE: u32 = 6;
const REGISTER_FILES_SECOND: u32 = 13;
const FILES_UPDATE_SECOND: u32 = 14;
const REGISTER_RINGS: u32 = 20;
const UNREGISTER_RINGS: u32 = 21;

/// `UIO_MAXIOV`, buffers of a vector; and as many files as a recording knows of a ring.
const VECTOR_MOST: u32 = 1024;
const FILES_MOST: u64 = 1 << 16;

/// What becomes of io_uring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rings {
    /// It is seen.
    Seen,
    /// There is none, for who asks: programs that can do without do.
    Refused,
}

/// What will be seen, once the command has been started.
pub struct Begun {
    coming: Coming,
    file: File,
}

impl Rings {
    /// Has the command, once started, and all that it starts meet this. What is seen is kept in
    /// `folder`.
    pub fn begin(self, command: &mut Command, folder: &Path) -> io::Result<Begun> {
        let calls = match self {
            Rings::Seen => vec![
                (libc::SYS_io_uring_setup, Meets::Us),
                // The second argument is how many are handed over.
                (libc::SYS_io_uring_enter, Meets::UsUnlessZero(1)),
                (libc::SYS_io_uring_register, Meets::Us),
            ],
            Rings::Refused => vec![(libc::SYS_io_uring_setup, Meets::Refusal)],
        };
        let coming = sys::listen(command, &calls)?;
        Ok(Begun { coming, file: nameless(folder, "rings")? })
    }
}

impl Begun {
    /// From the command's start on. Where nobody can listen, strace shows what there is to see.
    pub fn started(self) -> io::Result<Seen> {
        let over = Arc::new(AtomicBool::new(false));
        let listened = match self.coming.listener() {
            None => None,
            Some(listener) => {
                let until = Arc::clone(&over);
                let mut looks = Looks::new(self.file);
                let thread = std::thread::Builder::new().name("io_uring".into());
                Some(thread.spawn(move || looks.at(&listener, &until).map(|()| looks))?)
            }
        };
        Ok(Seen { over, listened })
    }
}

/// Sees what is handed over until the command has ended.
pub struct Seen {
    over: Arc<AtomicBool>,
    listened: Option<JoinHandle<io::Result<Looks>>>,
}

impl Seen {
    /// The command has ended: all lines, in the order of time.
    pub fn end(mut self) -> io::Result<Lines> {
        self.over.store(true, Ordering::Relaxed);
        let Some(thread) = self.listened.take() else { return Ok(Lines::default()) };
        let looks = thread.join().map_err(|_| io::Error::other("the listener has died"))??;
        looks.lines()
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// How a ring was set up.
struct Setup {
    process: u32,
    /// As many as were asked for.
    entries: u32,
    flags: u32,
}

/// Looks at rings, and writes down what is there.
struct Looks {
    file: BufWriter<File>,
    /// Requests for which there was no room.
    lost: u64,
    reader: RingReader,
    setups: Vec<Setup>,
    /// Of a process's ring, how many requests have been written down.
    until: HashMap<(u32, i32), u32>,
    /// Rings that a thread has by numbers of its own.
    rings: HashMap<(u32, u64), i32>,
    /// Processes with rings that the kernel empties by itself, and how many requests each of these
    /// rings has been given, in all and since it was made.
    pollers: BTreeSet<u32>,
    polled: HashMap<(u32, i32), (u64, u32)>,
}

impl Looks {
    fn new(file: File) -> Looks {
        Looks {
            file: BufWriter::new(file),
            lost: 0,
            reader: RingReader::default(),
            setups: Vec::new(),
            until: HashMap::new(),
            rings: HashMap::new(),
            pollers: BTreeSet::new(),
            polled: HashMap::new(),
        }
    }

    /// Looks whenever a thread stands still, until nobody is left or it is over.
    fn at(&mut self, listener: &Listener, over: &AtomicBool) -> io::Result<()> {
        loop {
            self.count_polled();
            let most_ms = if self.pollers.is_empty() { PATIENCE_MS } else { POLLED_MS };
            match listener.hear(most_ms)? {
                Heard::Stopped(stopped) => {
                    self.look(&stopped);
                    listener.go_on(&stopped)?;
                }
                Heard::Nothing if over.load(Ordering::Relaxed) => return Ok(()),
                Heard::Nothing => {}
                Heard::Nobody => return Ok(()),
            }
        }
    }

    fn look(&mut self, stopped: &Stopped) {
        let Stopped { thread, call, .. } = *stopped;
        let process = process_of(thread).unwrap_or(thread);
        let line = match call {
            libc::SYS_io_uring_setup => {
                self.set_up(process, stopped);
                None
            }
            libc::SYS_io_uring_enter => self.entered(process, stopped),
            _ => self.registered(process, stopped),
        };
        let Some((requests, text)) = line else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, rest_ns) = (now.as_secs(), now.subsec_nanos());
        let written = writeln!(self.file, "{thread} {seconds}.{rest_ns:09} {text} <0.000000000>");
        if written.is_err() {
            self.lost += requests;
        }
    }

    /// A ring is made. What was known of rings of that process may be of others.
    fn set_up(&mut self, process: u32, stopped: &Stopped) {
        let [entries, parameters, ..] = stopped.arguments;
        let mut bytes = [0; PARAMETERS_BYTES];
        if read(stopped.thread, parameters, &mut bytes).is_none() {
            return;
        }
        let (entries, flags) = (entries as u32, sys::setup_flags(&bytes));
        self.until.retain(|(of, _), _| *of != process);
        self.setups.push(Setup { process, entries, flags });
        if flags & SETUP_SQPOLL != 0 {
            self.pollers.insert(process);
        }
    }

    /// Looks how far the rings are that the kernel empties by itself: no call tells.
    fn count_polled(&mut self) {
        for process in self.pollers.clone() {
            let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else {
                self.pollers.remove(&process);
                continue;
            };
            let is_ring = |path: &Path| {
                fs::read_link(path).is_ok_and(|to| to.as_os_str() == "anon_inode:[io_uring]")
            };
            for path in files.flatten().map(|file| file.path()).filter(|path| is_ring(path)) {
                let name = path.file_name().and_then(|name| name.to_str());
                let Some(ring) = name.and_then(|name| name.parse().ok()) else { continue };
                let Ok((true, Waiting { first, .. })) = self.in_ring(process, ring) else {
                    continue;
                };
                let (all, last) = self.polled.entry((process, ring)).or_default();
                // One that begins anew is another.
                *all += u64::from(if first >= *last { first - *last } else { first });
                *last = first;
            }
        }
    }

    /// Requests are handed over. Where they can't be seen they are counted.
    fn entered(&mut self, process: u32, stopped: &Stopped) -> Option<(u64, String)> {
        let [ring, count, _, flags, ..] = stopped.arguments;
        let count = count as u32;
        let ring = match flags & ENTER_REGISTERED_RING {
            0 => ring as i32,
            _ => self.rings.get(&(stopped.thread, ring)).copied().unwrap_or(-1),
        };
        let seen = self.waiting(process, ring, count);
        let Ok(seen) = seen else {
            return Some((count.into(), format!("io_uring_enter({ring}, {count}, 0) = {count}")));
        };
        let new = seen.filter(|new| !new.is_empty())?;
        let text = new.iter().map(|it| request(process, stopped.thread, it));
        let (text, count) = (text.collect::<Vec<_>>(), new.len());
        let text = format!("io_uring_enter({ring}, {count}, [{}]) = {count}", text.join(", "));
        Some((count as u64, text))
    }

    /// What waits in a ring and was not there when we looked last; `None` of a ring that the
    /// kernel empties by itself.
    fn waiting(
        &mut self,
        process: u32,
        ring: i32,
        most: u32,
    ) -> io::Result<Option<Vec<RingRequest>>> {
        let (polls, waiting) = self.in_ring(process, ring)?;
        if polls {
            return Ok(None);
        }
        let (first, mut requests) = (waiting.first, waiting.requests);
        // The kernel may have taken fewer than it was given, or not those of another thread yet.
        let before = self.until.get(&(process, ring)).copied().unwrap_or(first);
        let known = before.wrapping_sub(first) as usize;
        let known = if known <= requests.len() { known } else { 0 };
        requests.drain(..known);
        requests.truncate(most as usize);
        let until = first.wrapping_add((known + requests.len()) as u32);
        self.until.insert((process, ring), until);
        Ok(Some(requests))
    }

    /// What waits in a ring; and whether the kernel empties it by itself.
    fn in_ring(&mut self, process: u32, ring: i32) -> io::Result<(bool, Waiting)> {
        let its = sys::descriptor_of(process, ring)?;
        let mut polls = false;
        let setups = &self.setups;
        let flags = |entries| {
            let flags = flags_of(setups, process, entries)?;
            polls = flags & SETUP_SQPOLL != 0;
            Some(flags)
        };
        let waiting = self.reader.waiting(its.as_fd(), flags)?;
        Ok((polls, waiting))
    }

    /// A ring gets files, or a thread rings.
    fn registered(&mut self, process: u32, stopped: &Stopped) -> Option<(u64, String)> {
        let Stopped { thread, arguments: [ring, what, place, count, ..], .. } = *stopped;
        let what = what as u32;
        let ring = match what & USE_REGISTERED_RING {
            0 => ring as i32,
            _ => *self.rings.get(&(thread, ring))?,
        };
        let what = what & !USE_REGISTERED_RING;
        let count = u64::from(count as u32);
        let (first, place, count) = match what {
            REGISTER_FILES => (0, place, count),
            UNREGISTER_FILES => return Some((0, format!("io_uring_register({ring}, 0) = 0"))),
            // offset, reserved, descriptors
            FILES_UPDATE => {
                let [first, descriptors] = numbers(thread, place)?;
                (first & u64::from(u32::MAX), descriptors, count)
            }
            // how many and flags, reserved, descriptors, tags
            REGISTER_FILES_SECOND => {
                let [count, _, descriptors] = numbers(thread, place)?;
                (0, descriptors, count & u64::from(u32::MAX))
            }
            // offset, reserved, descriptors, tags, how many
            FILES_UPDATE_SECOND => {
                let [first, descriptors, _, count] = numbers(thread, place)?;
                (first & u64::from(u32::MAX), descriptors, count & u64::from(u32::MAX))
            }
            REGISTER_RINGS | UNREGISTER_RINGS => {
                self.own_rings(thread, what == REGISTER_RINGS, place, count);
                return None;
            }
            _ => return None,
        };
        let files = (first..first + count.min(FILES_MOST)).zip(0..).map_while(|(index, number)| {
            let mut fd = [0; 4];
            read(thread, place.wrapping_add(4 * number), &mut fd)?;
            Some((index, i32::from_ne_bytes(fd)))
        });
        // What is new has no files to be taken away.
        let is_update = [FILES_UPDATE, FILES_UPDATE_SECOND].contains(&what);
        let files = files.filter(|(_, fd)| *fd >= 0 || is_update && *fd == -1);
        let files: Vec<String> = files
            .map(|(index, fd)| format!("{{index={index}, fd={}}}", named(process, fd)))
            .collect();
        (!files.is_empty())
            .then(|| (0, format!("io_uring_register({ring}, [{}]) = 0", files.join(", "))))
    }

    /// Rings that a thread gets or gives up: of those that it wants a number for, each has the
    /// first that is free (io_uring/tctx.c, `io_ringfd_register`).
    fn own_rings(&mut self, thread: u32, gets: bool, place: u64, count: u64) {
        const RINGS_MOST: u64 = 16;
        for number in 0..count.min(RINGS_MOST) {
            let Some([wanted, ring]) = numbers(thread, place.wrapping_add(16 * number)) else {
                return;
            };
            let free = || (0..RINGS_MOST).find(|it| !self.rings.contains_key(&(thread, *it)));
            let index = match wanted as u32 {
                u32::MAX if gets => free(),
                index => Some(index.into()),
            };
            let Some(index) = index else { return };
            match gets {
                true => self.rings.insert((thread, index), ring as i32),
                false => self.rings.remove(&(thread, index)),
            };
        }
    }

    /// All lines; requests that there was no room for, and those that nobody saw, are counted.
    fn lines(mut self) -> io::Result<Lines> {
        self.lost += u64::from(self.file.flush().is_err());
        self.lost += self.polled.values().map(|(all, _)| all).sum::<u64>();
        let mut file = self.file.into_parts().0;
        file.rewind()?;
        let file = Some(BufReader::new(file));
        let mut lines = Lines { file, next: None, lost: self.lost };
        lines.advance()?;
        Ok(lines)
    }
}

/// Lines as strace would write them.
#[derive(Default)]
pub struct Lines {
    file: Option<BufReader<File>>,
    next: Option<(u64, String)>,
    lost: u64,
}

impl Lines {
    fn advance(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut line = String::new();
        file.read_line(&mut line)?;
        // A half one, behind which there was no room, is none.
        let whole = line.strip_suffix('\n').map(String::from);
        self.next = whole.and_then(|line| Some((time_ns(&line)?, line)));
        Ok(())
    }

    /// The next one before a time, if there is one.
    pub fn before(&mut self, time_ns: u64) -> io::Result<Option<String>> {
        if self.next.as_ref().is_none_or(|(at_ns, _)| *at_ns >= time_ns) {
            return Ok(None);
        }
        let next = self.next.take().map(|(_, line)| line);
        self.advance()?;
        Ok(next)
    }

    /// How many requests are in none of them.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// The flags of a ring by the number of its entries, which the kernel has rounded up: of the
/// process's rings the newest, or of those that it may have been given.
fn flags_of(setups: &[Setup], process: u32, entries: u32) -> Option<u32> {
    let is_its = |setup: &&Setup| setup.entries.next_power_of_two() == entries;
    let mut all = setups.iter().rev().filter(is_its);
    let own = all.clone().find(|setup| setup.process == process);
    own.or_else(|| all.next()).map(|setup| setup.flags)
}

/// A request as a line has it.
fn request(process: u32, thread: u32, request: &RingRequest) -> String {
    let RingRequest { opcode, flags, fd, off, addr, len, op, slot } = *request;
    let file = match flags & FIXED_FILE {
        0 => format!("fd={}", named(process, fd)),
        _ => format!("index={fd}"),
    };
    let mut text = format!(
        "{{opcode={opcode}, flags={flags}, {file}, off={off}, addr={addr}, len={len}, op={op}, \
         slot={slot}"
    );
    if VECTORS.contains(&opcode)
        && let Some(bytes) = vector_bytes(thread, addr, len)
    {
        let _ = write!(text, ", bytes={bytes}");
    }
    text + "}"
}

/// What the buffers of a vector hold: `struct iovec`.
fn vector_bytes(thread: u32, place: u64, count: u32) -> Option<u64> {
    let count = u64::from(count.min(VECTOR_MOST));
    let sizes = (0..count).map(|number| {
        let [_, bytes] = numbers(thread, place.wrapping_add(16 * number))?;
        Some(bytes)
    });
    sizes.into_iter().try_fold(0_u64, |all, bytes| all.checked_add(bytes?))
}

/// Numbers of 64 bits in a thread's memory.
fn numbers<const COUNT: usize>(thread: u32, place: u64) -> Option<[u64; COUNT]> {
    let mut numbers = [0; COUNT];
    for (number, at) in numbers.iter_mut().zip((place..).step_by(8)) {
        let mut bytes = [0; 8];
        read(thread, at, &mut bytes)?;
        *number = u64::from_ne_bytes(bytes);
    }
    Some(numbers)
}

fn read(thread: u32, place: u64, buffer: &mut [u8]) -> Option<()> {
    let read = sys::memory_of(thread, place, buffer).ok()?;
    (read == buffer.len()).then_some(())
}

/// The process of a thread: proc_pid_status(5).
fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// A descriptor with its path, as strace writes it.
fn named(process: u32, fd: i32) -> String {
    let path = match fs::read_link(format!("/proc/{process}/fd/{fd}")) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => PathBuf::new(),
        // It is longer than readlink(2) gives.
        Err(_) => return fd.to_string(),
    };
    let mut text = format!("{fd}<");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'<' | b'>' | b'\\' | b'"' | 0..b' ' | 0x7f.. => {
                let _ = write!(text, "\\{byte:03o}");
            }
            plain => text.push(plain.into()),
        }
    }
    text + ">"
}
