//! The memory of an io_uring, as any holder of its descriptor may read it: io_uring_setup(2).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use super::file::retried;
use super::mapped::Mapped;

/// include/uapi/linux/io_uring.h: flags of io_uring_setup(2).
pub const SETUP_SQPOLL: u32 = 1 << 1;
const SETUP_CQSIZE: u32 = 1 << 3;
const SETUP_SQE128: u32 = 1 << 10;
const SETUP_CQE32: u32 = 1 << 11;
const SETUP_NO_SQARRAY: u32 = 1 << 16;
const SETUP_CLAMP: u32 = 1 << 4;
/// Flags from here on are of kernels newer than this program, and may change the layout.
const SETUP_UNKNOWN: u32 = !0 << 18;
/// Those that change the layout of its memory.
const LAYOUT: u32 = SETUP_SQE128 | SETUP_CQE32 | SETUP_NO_SQARRAY;
/// `IORING_MAX_ENTRIES`, to which CLAMP brings down what asks for more.
const ENTRIES_MOST: u32 = 32_768;

/// Where the rings and the requests lie, for mmap(2).
const OFF_SQ_RING: u64 = 0;
const OFF_SQES: u64 = 0x1000_0000;

/// `struct io_uring_params`, with `struct io_sqring_offsets` and `io_cqring_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Parameters {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    others: [u32; 7],
    /// head, tail, ring_mask, ring_entries, flags, dropped, array, reserved.
    sq: [u32; 8],
    sq_address: u64,
    /// head, tail, ring_mask, ring_entries, overflow, cqes, flags, reserved.
    cq: [u32; 8],
    cq_address: u64,
}

/// The parameters of io_uring_setup(2) begin with two answers of the kernel, then the flags.
pub const SETUP_BYTES: usize = 12;

/// How a ring will be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RingSetup {
    /// How many requests it takes.
    pub entries: u32,
    /// The flags that tell where things lie, or may, and [`SETUP_SQPOLL`].
    pub flags: u32,
}

impl RingSetup {
    /// By the number that is asked for and the begin of the parameters; `None` of what the kernel
    /// refuses.
    pub fn of(entries: u32, [.., a, b, c, d]: [u8; SETUP_BYTES]) -> Option<RingSetup> {
        let flags = u32::from_ne_bytes([a, b, c, d]);
        let entries = if flags & SETUP_CLAMP != 0 { entries.min(ENTRIES_MOST) } else { entries };
        let takes = (1..=ENTRIES_MOST).contains(&entries);
        takes.then(|| RingSetup {
            entries: entries.next_power_of_two(),
            flags: flags & (LAYOUT | SETUP_UNKNOWN | SETUP_SQPOLL),
        })
    }
}

/// A request: the fields of `struct io_uring_sqe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the header says it")]
pub struct RingRequest {
    pub opcode: u8,
    pub flags: u8,
    /// Or the file's number among the ring's.
    pub fd: i32,
    pub off: u64,
    pub addr: u64,
    pub len: u32,
    /// `rw_flags`, and all that shares its place.
    pub op: u32,
    /// `file_index`.
    pub slot: u32,
}

impl RingRequest {
    const BYTES: u64 = 64;

    fn of(entry: &[u8; RingRequest::BYTES as usize]) -> RingRequest {
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| entry[at + byte]));
        let double =
            |at: usize| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| entry[at + byte]));
        RingRequest {
            opcode: entry[0],
            flags: entry[1],
            fd: word(4).cast_signed(),
            off: double(8),
            addr: double(16),
            len: word(24),
            op: word(28),
            slot: word(44),
        }
    }
}

/// Requests that wait in a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How many the ring has been given before them.
    pub first: u32,
    /// The requests, the oldest first.
    pub requests: Vec<RingRequest>,
}

/// Looks at rings. Where things lie the kernel says of a ring of our own that is laid out alike.
#[derive(Debug, Default)]
pub struct RingReader {
    alike: HashMap<[u32; 3], Parameters>,
}

impl RingReader {
    /// Requests in the ring that the kernel has not yet taken. `flags_of` gives the flags of its
    /// setup by the number of its entries.
    ///
    /// # Errors
    /// When the ring can't be looked at: it is none, its memory is the program's own
    /// (IORING_SETUP_NO_MMAP), or its flags are not known.
    pub fn waiting(
        &mut self,
        ring: BorrowedFd<'_>,
        flags_of: impl FnOnce(u32) -> Option<u32>,
    ) -> io::Result<Waiting> {
        // Nothing else is mapped, be it a device.
        let path = format!("/proc/self/fd/{}", ring.as_raw_fd());
        if !is_ring(Path::new(&path)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let head = self.alike(0, 1, 2)?;
        let begin = map(ring, OFF_SQ_RING, 1)?;
        let [entries, cq_entries] = [word(&begin, head.sq[3])?, word(&begin, head.cq[3])?];
        let flags = flags_of(entries).ok_or(io::ErrorKind::NotFound)?;
        if flags & SETUP_UNKNOWN != 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags = flags & LAYOUT;
        let its = self.alike(flags, entries, cq_entries)?;
        let [first, end] = [word(&begin, its.sq[0])?, word(&begin, its.sq[1])?];
        let count = end.wrapping_sub(first).min(entries);
        let size = if flags & SETUP_SQE128 != 0 { 2 } else { 1 } * RingRequest::BYTES;
        let all = map(ring, OFF_SQES, u64::from(entries) * size)?;
        let numbers = match flags & SETUP_NO_SQARRAY {
            0 => {
                let end = u64::from(its.sq[6]) + 4 * u64::from(entries);
                Some(map(ring, OFF_SQ_RING, end)?)
            }
            _ => None,
        };
        let mask = entries.wrapping_sub(1);
        let mut requests = Vec::new();
        for place in (0..count).map(|number| first.wrapping_add(number) & mask) {
            let number = match &numbers {
                Some(numbers) => word(numbers, its.sq[6] + 4 * place)?,
                None => place,
            };
            // The kernel drops a number that is none of an entry.
            if number < entries {
                let mut entry = [0; RingRequest::BYTES as usize];
                load(&all, u64::from(number) * size, &mut entry)?;
                requests.push(RingRequest::of(&entry));
            }
        }
        Ok(Waiting { first, requests })
    }

    /// Whether the kernel knows how such a ring is laid out, or nobody here can tell.
    pub fn knows(&mut self, flags: u32) -> bool {
        flags & SETUP_UNKNOWN != 0 || self.alike(flags & LAYOUT, 1, 2).is_ok()
    }

    /// The parameters of a ring of our own.
    fn alike(&mut self, flags: u32, entries: u32, cq_entries: u32) -> io::Result<Parameters> {
        let key = [flags, entries, cq_entries];
        if let Some(known) = self.alike.get(&key) {
            return Ok(*known);
        }
        let (_, made) = set_up(flags | SETUP_CQSIZE, entries, cq_entries)?;
        self.alike.insert(key, made);
        Ok(made)
    }
}

/// The descriptor at that path of /proc is of a ring (proc_pid_fd(5)).
pub fn is_ring(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|to| to.as_os_str() == "anon_inode:[io_uring]")
}

/// io_uring_setup(2).
fn set_up(flags: u32, entries: u32, cq_entries: u32) -> io::Result<(OwnedFd, Parameters)> {
    let mut made = Parameters { flags, cq_entries, ..Parameters::default() };
    // SAFETY: the kernel reads and writes the parameters, which are as long as it has them, and
    // makes a descriptor that nobody else has.
    let ring =
        retried(|| unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &raw mut made) })?;
    // SAFETY: the same.
    Ok((unsafe { OwnedFd::from_raw_fd(ring as RawFd) }, made))
}

fn map(ring: BorrowedFd<'_>, place: u64, bytes: u64) -> io::Result<Mapped> {
    Mapped::new(ring.as_fd(), place, bytes, libc::MAP_SHARED, false)
}

fn load(memory: &Mapped, place: u64, buffer: &mut [u8]) -> io::Result<()> {
    match memory.load(place, buffer)? == buffer.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn word(memory: &Mapped, place: u32) -> io::Result<u32> {
    let mut word = [0; 4];
    load(memory, place.into(), &mut word)?;
    Ok(u32::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts two requests into a ring, as a program would, and looks at them.
    fn put_and_seen(flags: u32, entries: u32) -> Option<Waiting> {
        let (ring, its) = set_up(flags | SETUP_CQSIZE, entries, 2 * entries).ok()?;
        let all =
            |place, bytes| Mapped::new(ring.as_fd(), place, bytes, libc::MAP_SHARED, true).unwrap();
        let size = if flags & SETUP_SQE128 != 0 { 128 } else { 64 };
        let requests = all(OFF_SQES, u64::from(its.sq_entries) * size);
        let mut entry = [0; 64];
        entry[..2].copy_from_slice(&[22, 1]);
        entry[4..8].copy_from_slice(&(-7_i32).to_ne_bytes());
        entry[8..16].copy_from_slice(&8192_u64.to_ne_bytes());
        entry[16..24].copy_from_slice(&0x7f00_u64.to_ne_bytes());
        entry[24..28].copy_from_slice(&512_u32.to_ne_bytes());
        entry[28..32].copy_from_slice(&2_u32.to_ne_bytes());
        entry[44..48].copy_from_slice(&3_u32.to_ne_bytes());
        requests.store(size, &entry).unwrap();
        entry[0] = 3;
        requests.store(0, &entry).unwrap();
        let begin = all(OFF_SQ_RING, 4096);
        begin.store(its.sq[1].into(), &2_u32.to_ne_bytes()).unwrap();
        if flags & SETUP_NO_SQARRAY == 0 {
            // The second one first.
            let numbers = all(OFF_SQ_RING, u64::from(its.sq[6]) + 4 * u64::from(its.sq_entries));
            let order = [1_u32, 0].map(u32::to_ne_bytes).concat();
            numbers.store(its.sq[6].into(), &order).unwrap();
        }
        let known = |seen| (seen == its.sq_entries).then_some(flags);
        Some(RingReader::default().waiting(ring.as_fd(), known).unwrap())
    }

    #[test]
    fn requests_are_found_however_a_ring_is_laid_out() {
        let read = RingRequest {
            opcode: 22,
            flags: 1,
            fd: -7,
            off: 8192,
            addr: 0x7f00,
            len: 512,
            op: 2,
            slot: 3,
        };
        let sync = RingRequest { opcode: 3, ..read };
        for flags in [0, SETUP_CQE32, SETUP_SQE128, SETUP_SQE128 | SETUP_CQE32] {
            for entries in [2, 3, 128, 4096] {
                let seen = put_and_seen(flags, entries);
                let expected = Waiting { first: 0, requests: vec![read, sync] };
                // Where the kernel has no rings, or none of this kind, there is nothing to see.
                assert!(seen.is_none_or(|seen| seen == expected), "{flags:#x}, {entries}");
                let seen = put_and_seen(flags | SETUP_NO_SQARRAY, entries);
                let expected = Waiting { first: 0, requests: vec![sync, read] };
                assert!(seen.is_none_or(|seen| seen == expected), "{flags:#x}, {entries}");
            }
        }
    }

    #[test]
    fn a_ring_of_unknown_flags_and_what_is_no_ring_are_errors() {
        let Ok((ring, _)) = set_up(SETUP_CQSIZE, 4, 8) else { return };
        let mut reader = RingReader::default();
        assert!(reader.waiting(ring.as_fd(), |_| None).is_err());
        let mut begin = [0; SETUP_BYTES];
        begin[8..].copy_from_slice(&(1_u32 << 30).to_ne_bytes());
        let newer = RingSetup::of(4, begin);
        assert!(reader.waiting(ring.as_fd(), |_| newer.map(|it| it.flags)).is_err());
        let none = reader.waiting(ring.as_fd(), |_| Some(0)).unwrap();
        assert_eq!(none, Waiting { first: 0, requests: vec![] });
        let pipe = std::os::unix::net::UnixStream::pair().unwrap().0;
        assert!(reader.waiting(pipe.as_fd(), |_| Some(0)).is_err());
    }
}
