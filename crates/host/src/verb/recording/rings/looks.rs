//! Looking into the rings of threads that stand still.
//!
//! A ring is the kernel's memory and is mapped by its descriptor, only while we look: held longer,
//! it would keep its files open.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::sys::{
    self, Heard, Listener, RingReader, RingRequest, RingSetup, SETUP_BYTES, SETUP_SQPOLL, Stopped,
    Waiting,
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

/// `UIO_MAXIOV`, buffers of a vector; as many files as a recording knows of a ring; and rings of a
/// thread's own (`IO_RINGFD_REG_MAX`).
const VECTOR_MOST: u64 = 1024;
const FILES_MOST: u64 = 1 << 16;
const RINGS_MOST: u64 = 16;

/// A thread: its number, and when it began, because numbers are reused.
type Thread = (u32, u64);

/// A descriptor of a process's.
type Ring = (u32, i32);

/// What is written down: how many requests, and the call.
type Line = Option<(u64, String)>;

/// Looks at rings, and writes down what is there.
pub struct Looks {
    file: BufWriter<File>,
    /// Requests for which there was no room.
    lost: u64,
    reader: RingReader,
    /// How processes have set up rings.
    setups: BTreeSet<(u32, RingSetup)>,
    /// How many requests of a ring have been written down.
    until: HashMap<Ring, u32>,
    /// Rings that a thread has by numbers of its own.
    rings: HashMap<(Thread, u64), i32>,
    polled: Polled,
}

/// Rings that the kernel empties by itself.
#[derive(Default)]
struct Polled {
    /// Processes that have asked for such.
    processes: BTreeSet<u32>,
    /// How many requests each of these rings has been given, in all and since it was made.
    rings: HashMap<Ring, (u64, u32)>,
    looked: Option<Instant>,
}

impl Looks {
    pub fn new(file: File) -> Looks {
        Looks {
            file: BufWriter::new(file),
            lost: 0,
            reader: RingReader::default(),
            setups: BTreeSet::new(),
            until: HashMap::new(),
            rings: HashMap::new(),
            polled: Polled::default(),
        }
    }

    /// Looks whenever a thread stops, until none is left or it is over.
    pub fn at(&mut self, listener: &Listener, over: &AtomicBool) -> io::Result<()> {
        while !over.load(Ordering::Relaxed) {
            let polls = !self.polled.processes.is_empty();
            match listener.hear(if polls { POLLED_MS } else { PATIENCE_MS })? {
                Heard::Stopped(stopped) => {
                    self.look(&stopped);
                    listener.go_on(&stopped)?;
                }
                Heard::Nothing => {}
                Heard::Nobody => break,
            }
            self.count_polled();
        }
        Ok(())
    }

    /// What was written down, read from its beginning, and how many requests are missing from it.
    pub fn end(mut self) -> io::Result<(File, u64)> {
        self.lost += u64::from(self.file.flush().is_err());
        let all: u64 = self.polled.rings.values().map(|(all, _)| all).sum();
        // A ring may have come and gone between two looks.
        let unseen = if all == 0 { self.polled.processes.len() as u64 } else { all };
        let mut file = self.file.into_parts().0;
        file.rewind()?;
        Ok((file, self.lost + unseen))
    }

    fn look(&mut self, stopped: &Stopped) {
        let (at, begun) = (SystemTime::now(), Instant::now());
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
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let [at, took] = [at, begun.elapsed()]
            .map(|time| format!("{}.{:09}", time.as_secs(), time.subsec_nanos()));
        if writeln!(self.file, "{thread} {at} {text} <{took}>").is_err() {
            self.lost += requests;
        }
    }

    /// A ring is made. Forgets descriptors that are no rings any more.
    fn set_up(&mut self, process: u32, stopped: &Stopped) {
        let [entries, parameters, ..] = stopped.arguments;
        let setup = read::<SETUP_BYTES>(stopped.thread, parameters)
            .and_then(|parameters| RingSetup::of(entries as u32, parameters));
        let Some(setup) = setup.filter(|setup| self.reader.knows(setup.flags)) else { return };
        let is_ring = |ring: i32| sys::is_ring(Path::new(&format!("/proc/{process}/fd/{ring}")));
        self.until.retain(|(of, ring), _| *of != process || is_ring(*ring));
        self.setups.insert((process, setup));
        if setup.flags & SETUP_SQPOLL != 0 {
            self.polled.processes.insert(process);
        }
    }

    /// Looks how far the rings are that the kernel empties by itself: no call tells.
    fn count_polled(&mut self) {
        let wait = Duration::from_millis(POLLED_MS.into());
        if self.polled.looked.is_some_and(|looked| looked.elapsed() < wait) {
            return;
        }
        for process in self.polled.processes.clone() {
            let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { continue };
            let paths = files.flatten().map(|file| file.path());
            for path in paths.filter(|path| sys::is_ring(path)) {
                let name = path.file_name().and_then(|name| name.to_str());
                let Some(ring) = name.and_then(|name| name.parse().ok()) else { continue };
                let its = self.in_ring(process, process, ring);
                if let Ok((true, Waiting { first, .. })) = its {
                    let (all, last) = self.polled.rings.entry((process, ring)).or_default();
                    // One that begins anew is another.
                    *all += u64::from(if first >= *last { first - *last } else { first });
                    *last = first;
                }
            }
        }
        self.polled.looked = Some(Instant::now());
    }

    /// What waits in a ring; and whether the kernel empties it by itself.
    fn in_ring(&mut self, process: u32, thread: u32, ring: i32) -> io::Result<(bool, Waiting)> {
        let its = sys::descriptor_of(process, thread, ring)?;
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

    /// Requests are handed over. Where they can't be seen they are counted.
    fn entered(&mut self, process: u32, stopped: &Stopped) -> Line {
        let [ring, count, _, flags, ..] = stopped.arguments;
        let (thread, count) = (stopped.thread, count as u32);
        let ring = match flags & ENTER_REGISTERED_RING {
            0 => ring as i32,
            _ => self.rings.get(&(named_thread(thread), ring)).copied().unwrap_or(-1),
        };
        let Ok((polls, waiting)) = self.in_ring(process, thread, ring) else {
            return Some((count.into(), format!("io_uring_enter({ring}, {count}, 0) = {count}")));
        };
        if polls {
            return None;
        }
        let (new, until) = unseen(&waiting, self.until.get(&(process, ring)).copied(), count);
        self.until.insert((process, ring), until);
        let count = new.len();
        let text: Vec<String> = new.iter().map(|it| request(thread, it)).collect();
        let text = format!("io_uring_enter({ring}, {count}, [{}]) = {count}", text.join(", "));
        (count > 0).then_some((count as u64, text))
    }

    /// A ring gets files, or a thread rings.
    fn registered(&mut self, process: u32, stopped: &Stopped) -> Line {
        let Stopped { thread, arguments: [ring, what, place, count, ..], .. } = *stopped;
        let what = what as u32;
        let ring = match what & USE_REGISTERED_RING {
            0 => ring as i32,
            _ => *self.rings.get(&(named_thread(thread), ring))?,
        };
        let (what, count) = (what & !USE_REGISTERED_RING, u64::from(count as u32));
        let half = |number: u64| number & u64::from(u32::MAX);
        let (first, place, count) = match what {
            REGISTER_FILES => (0, place, count),
            UNREGISTER_FILES => return Some((0, format!("io_uring_register({ring}, 0) = 0"))),
            // offset, reserved, descriptors
            FILES_UPDATE => {
                let [first, descriptors] = numbers(thread, place)?;
                (half(first), descriptors, count)
            }
            // how many and flags, reserved, descriptors, tags
            REGISTER_FILES_SECOND => {
                let [count, _, descriptors] = numbers(thread, place)?;
                (0, descriptors, half(count))
            }
            // offset, reserved, descriptors, tags, how many
            FILES_UPDATE_SECOND => {
                let [first, descriptors, _, count] = numbers(thread, place)?;
                (half(first), descriptors, half(count))
            }
            REGISTER_RINGS | UNREGISTER_RINGS => {
                self.own_rings(process, thread, what == REGISTER_RINGS, place, count);
                return None;
            }
            _ => return None,
        };
        let files = read_several::<4>(thread, place, count.min(FILES_MOST))?;
        let files = files.into_iter().map(i32::from_ne_bytes).zip(first..);
        // A new table has no files to remove; -2 leaves the one that is there.
        let is_update = [FILES_UPDATE, FILES_UPDATE_SECOND].contains(&what);
        let files = files.filter(|(fd, _)| *fd >= 0 || is_update && *fd == -1);
        let files: Vec<String> = files
            .map(|(fd, index)| format!("{{index={index}, fd={}}}", named(thread, fd)))
            .collect();
        let text = format!("io_uring_register({ring}, [{}]) = 0", files.join(", "));
        (!files.is_empty()).then_some((0, text))
    }

    /// Rings that a thread registers or gives up: each that wants a number gets the first free one
    /// (io_uring/tctx.c, `io_ring_add_registered_fd`).
    fn own_rings(&mut self, process: u32, thread: u32, gets: bool, place: u64, count: u64) {
        let its = named_thread(thread);
        for number in 0..count.min(RINGS_MOST) {
            let at = place.wrapping_add(16 * number);
            let Some([wanted, ring]) = numbers(thread, at) else { return };
            let ring = ring as i32;
            if !gets {
                self.rings.remove(&(its, u64::from(wanted as u32)));
                continue;
            }
            // A call that a signal has ended is made again.
            if self.rings.iter().any(|((of, _), known)| *of == its && *known == ring)
                || !sys::is_ring(Path::new(&format!("/proc/{process}/fd/{ring}")))
            {
                continue;
            }
            let free = || (0..RINGS_MOST).find(|it| !self.rings.contains_key(&(its, *it)));
            let index = match wanted as u32 {
                u32::MAX => free(),
                index => Some(u64::from(index)),
            };
            if let Some(index) = index {
                self.rings.entry((its, index)).or_insert(ring);
            }
        }
    }
}

/// The waiting requests of a ring that were not there at our last look, `most` at most; and how far
/// we have looked. The kernel may have taken fewer than it was given, or not yet those of another
/// thread.
fn unseen(waiting: &Waiting, until: Option<u32>, most: u32) -> (&[RingRequest], u32) {
    let Waiting { first, requests } = waiting;
    let known = until.map_or(0, |until| until.wrapping_sub(*first)) as usize;
    // A position beyond its end is of another ring.
    let known = if known <= requests.len() { known } else { 0 };
    let new = &requests[known..];
    let new = &new[..new.len().min(most as usize)];
    (new, first.wrapping_add((known + new.len()) as u32))
}

/// The flags of a ring by the number of its entries: those of the process's rings of so many, or
/// where it has none of all that it may have been given; `None` where several differ.
fn flags_of(setups: &BTreeSet<(u32, RingSetup)>, process: u32, entries: u32) -> Option<u32> {
    let of = |is_its: &dyn Fn(u32) -> bool| {
        let its = setups.iter().filter(|(of, setup)| is_its(*of) && setup.entries == entries);
        its.map(|(_, setup)| setup.flags).collect::<BTreeSet<u32>>()
    };
    let own = of(&|of| of == process);
    let its = if own.is_empty() { of(&|_| true) } else { own };
    its.first().copied().filter(|_| its.len() == 1)
}

/// A request as a line has it.
fn request(thread: u32, request: &RingRequest) -> String {
    let RingRequest { opcode, flags, fd, off, addr, len, op, slot } = *request;
    let file = match flags & FIXED_FILE {
        0 => format!("fd={}", named(thread, fd)),
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
    let buffers = read_several::<16>(thread, place, u64::from(count).min(VECTOR_MOST))?;
    let mut sizes = buffers.iter().filter_map(|buffer| buffer.last_chunk::<8>());
    sizes.try_fold(0_u64, |all, bytes| all.checked_add(u64::from_ne_bytes(*bytes)))
}

/// Numbers of 64 bits in a thread's memory.
fn numbers<const COUNT: usize>(thread: u32, place: u64) -> Option<[u64; COUNT]> {
    let numbers = read_several::<8>(thread, place, COUNT as u64)?;
    numbers.into_iter().map(u64::from_ne_bytes).collect::<Vec<_>>().try_into().ok()
}

fn read<const BYTES: usize>(thread: u32, place: u64) -> Option<[u8; BYTES]> {
    read_several(thread, place, 1)?.pop()
}

/// So many pieces of a thread's memory, one after the other; all or none.
fn read_several<const BYTES: usize>(
    thread: u32,
    place: u64,
    count: u64,
) -> Option<Vec<[u8; BYTES]>> {
    let mut bytes = vec![0; BYTES * usize::try_from(count).ok()?];
    let read = sys::memory_of(thread, place, &mut bytes).ok()?;
    let (pieces, _) = bytes.as_chunks::<BYTES>();
    (read == bytes.len()).then(|| pieces.to_vec())
}

/// The process of a thread: proc_pid_status(5).
fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// A thread with its begin: field 22 of proc_pid_stat(5), behind the name in brackets, which is the
/// second.
fn named_thread(thread: u32) -> Thread {
    let status = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    let begin = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19));
    (thread, begin.and_then(|begin| begin.parse().ok()).unwrap_or(0))
}

/// A descriptor with its path, as strace writes it.
fn named(thread: u32, fd: i32) -> String {
    let path = match fs::read_link(format!("/proc/{thread}/fd/{fd}")) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(first: u32, lengths: &[u32]) -> Waiting {
        let of =
            |len| RingRequest { opcode: 22, flags: 0, fd: 3, off: 0, addr: 0, len, op: 0, slot: 0 };
        Waiting { first, requests: lengths.iter().map(|len| of(*len)).collect() }
    }

    #[test]
    fn a_request_is_written_down_once() {
        let seen = |first, lengths: &[u32], until, most| {
            let waiting = waiting(first, lengths);
            let (new, until) = unseen(&waiting, until, most);
            (new.iter().map(|it| it.len).collect::<Vec<_>>(), until)
        };
        assert_eq!(seen(0, &[1, 2], None, 2), (vec![1, 2], 2));
        assert_eq!(seen(2, &[3], Some(2), 1), (vec![3], 3));
        // The kernel took one of two; another is added.
        assert_eq!(seen(1, &[2, 3], Some(2), 2), (vec![3], 3));
        assert_eq!(seen(1, &[2], Some(2), 1), (vec![], 2));
        // Another thread's has not been taken yet.
        assert_eq!(seen(0, &[1, 2], Some(1), 1), (vec![2], 2));
        // Not all that waits is handed over.
        assert_eq!(seen(0, &[1, 2, 3], None, 2), (vec![1, 2], 2));
        // Another ring, and numbers that begin anew.
        assert_eq!(seen(0, &[1], Some(7), 1), (vec![1], 1));
        assert_eq!(seen(u32::MAX, &[1, 2], Some(u32::MAX), 2), (vec![1, 2], 1));
    }

    #[test]
    fn the_flags_of_a_ring_are_those_of_its_process_or_unknown() {
        let setup = |entries, flags| RingSetup { entries, flags };
        let setups = [(7, setup(8, 1)), (7, setup(16, 2)), (7, setup(16, 3)), (8, setup(32, 4))];
        let of = |process, entries| flags_of(&setups.into(), process, entries);
        assert_eq!([of(7, 8), of(7, 16), of(7, 32), of(7, 64)], [Some(1), None, Some(4), None]);
        assert_eq!([of(9, 8), of(9, 16)], [Some(1), None]);
    }

    #[test]
    fn what_the_kernel_refuses_is_no_setup() {
        let parameters = |flags: u32| {
            let mut bytes = [0; SETUP_BYTES];
            bytes[8..].copy_from_slice(&flags.to_ne_bytes());
            bytes
        };
        let (clamp, no_array) = (1 << 4, 1 << 16);
        let of = |entries, flags| RingSetup::of(entries, parameters(flags));
        let setup = |entries, flags| Some(RingSetup { entries, flags });
        assert_eq!(of(5, no_array | 1), setup(8, no_array));
        assert_eq!(of(u32::MAX, clamp), setup(32_768, 0));
        for entries in [0, 32_769, u32::MAX] {
            assert_eq!(of(entries, 0), None);
        }
    }

    #[test]
    fn memory_descriptors_and_threads_are_told_of() {
        let own = std::process::id();
        let words = [1_u64, 2, 3, 4];
        let at = words.as_ptr() as u64;
        assert_eq!(numbers(own, at), Some([1, 2]));
        assert_eq!(vector_bytes(own, at, 2), Some(6));
        assert_eq!((numbers::<1>(own, u64::MAX), vector_bytes(own, 8, 1)), (None, None));
        assert_eq!(process_of(own), Some(own));
        assert!(named_thread(own).1 > 0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a <b>");
        let file = File::create(&path).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(named(own, fd).ends_with("/a \\074b\\076>"), "{}", named(own, fd));
        assert_eq!(named(own, 1 << 20), "1048576<>");
    }
}
