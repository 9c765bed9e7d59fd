//! Events that the kernel counts for the threads that we start, each with its time and place:
//! perf_event_open(2). It writes them into a ring of memory for each processor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use libc::c_int;

use super::file::retried;
use super::page_bytes;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// An event of the kernel's tracing, by its number there.
    Tracepoint(u64),
    /// Page faults, of programs alone or in the kernel, too.
    PageFaults {
        /// Those that a program meets in a system call count, too.
        kernel: bool,
    },
}

/// include/uapi/linux/perf_event.h: `struct perf_event_attr` in its third version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_user_registers: u64,
    sample_user_stack: u32,
    clock: i32,
}

/// The same: numbers and bits of these fields.
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const SOFTWARE_PAGE_FAULTS: u64 = 2;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ADDRESS: u64 = 1 << 3;
const SAMPLE_RAW: u64 = 1 << 10;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const WAKE_BY_BYTES: u64 = 1 << 14;
const USE_CLOCK: u64 = 1 << 25;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: libc::Ioctl = 0x2405;
/// Where `struct perf_event_mmap_page` has `data_head` and `data_tail`.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;
/// Kinds of records.
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// What the kernel says of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The thread.
    pub thread: u32,
    /// By clock_gettime(2), CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The address of a page fault; 0 for a tracepoint.
    pub address: u64,
    /// The fields of a tracepoint.
    pub raw: &'a [u8],
}

/// A record of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// There was an event.
    Sample(Sample<'a>),
    /// There was no room for so many.
    Lost(u64),
}

/// Events of one processor, by threads that this one starts after it was made, and theirs. They are
/// counted while it lives.
#[derive(Debug)]
pub struct Events {
    /// The ring is the first one's.
    events: Vec<OwnedFd>,
    ring: NonNull<u8>,
    data_bytes: usize,
    /// What was taken out last.
    taken: Vec<u8>,
}

// SAFETY: the ring is memory of the process, and no other value knows its place.
unsafe impl Send for Events {}

impl Events {
    /// For a ring of `pages`, a power of two. It wakes its waiters when it is half full.
    pub fn open(all: &[Counted], processor: c_int, pages: usize) -> io::Result<Events> {
        let data_bytes = pages * page_bytes() as usize;
        let open = |counted: &Counted| open(*counted, processor, data_bytes as u32 / 2);
        let Some((first, others)) = all.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let first = open(first)?;
        let (fd, bytes) = (first.as_raw_fd(), data_bytes + page_bytes() as usize);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let ring = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0) };
        if ring == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = NonNull::new(ring.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut this = Events { events: vec![first], ring, data_bytes, taken: Vec::new() };
        for other in others {
            let other = open(other)?;
            // SAFETY: both descriptors are open, and the kernel takes a number: of an event that
            // has a ring (`perf_event_set_output` in kernel/events/core.c).
            retried(|| unsafe { libc::ioctl(other.as_raw_fd(), SET_OUTPUT, fd) })?;
            this.events.push(other);
        }
        Ok(this)
    }

    /// What to wait for.
    pub fn to_wait_for(&self) -> BorrowedFd<'_> {
        self.events[0].as_fd()
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page of the ring has both counters, aligned, for as long as we live;
        // the kernel and we change them whole.
        unsafe { AtomicU64::from_ptr(self.ring.as_ptr().add(at).cast()) }
    }

    /// Takes out all records that are there.
    pub fn take(&mut self, mut each: impl FnMut(Told<'_>)) {
        // The kernel writes records before it counts them, and none over what is not counted as
        // taken (kernel/events/ring_buffer.c).
        let (head, tail) = (self.counter(HEAD_AT), self.counter(TAIL_AT));
        let (end, begin) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let count = (end.wrapping_sub(begin) as usize).min(self.data_bytes);
        let mut taken = std::mem::take(&mut self.taken);
        taken.resize(count, 0);
        let at = (begin % self.data_bytes as u64) as usize;
        let first = count.min(self.data_bytes - at);
        for (from, range) in [(at, 0..first), (0, first..count)] {
            let to = &mut taken[range];
            // SAFETY: the data begin after the first page, and have so many bytes from there on,
            // which the kernel does not write to until they are counted as taken.
            unsafe {
                let data = self.ring.as_ptr().add(page_bytes() as usize);
                ptr::copy_nonoverlapping(data.add(from), to.as_mut_ptr(), to.len());
            }
        }
        self.counter(TAIL_AT).store(end, Ordering::Release);
        let mut rest = &taken[..];
        while let Some((record, after)) = next(rest) {
            if let Some(told) = told(record) {
                each(told);
            }
            rest = after;
        }
        self.taken = taken;
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let bytes = self.data_bytes + page_bytes() as usize;
        // SAFETY: the mapping is ours, has this length, and nothing points into it.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), bytes) };
    }
}

fn open(counted: Counted, processor: c_int, wakeup_bytes: u32) -> io::Result<OwnedFd> {
    let common = INHERIT | WAKE_BY_BYTES | USE_CLOCK;
    let (kind, config, more, flags) = match counted {
        Counted::Tracepoint(number) => (TYPE_TRACEPOINT, number, SAMPLE_RAW, 0),
        Counted::PageFaults { kernel } => {
            let flags = if kernel { 0 } else { EXCLUDE_KERNEL };
            (TYPE_SOFTWARE, SOFTWARE_PAGE_FAULTS, 0, flags)
        }
    };
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        sample_period: 1,
        sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDRESS | more,
        flags: common | flags,
        wakeup: wakeup_bytes,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let (this, no_group) = (0, -1);
    // SAFETY: the kernel reads the attributes, which are as long as they say.
    let fd = retried(|| unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this,
            processor,
            no_group,
            CLOSE_ON_EXEC,
        )
    })?;
    // SAFETY: the kernel has just made this descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

/// A record's kind, and what follows its head.
type Kept<'a> = (u32, &'a [u8]);

/// The first record, and what follows it.
fn next(bytes: &[u8]) -> Option<(Kept<'_>, &[u8])> {
    let (kind, rest) = bytes.split_first_chunk::<4>()?;
    let size = usize::from(u16::from_le_bytes([*rest.get(2)?, *rest.get(3)?]));
    let (record, after) = bytes.split_at_checked(size)?;
    Some(((u32::from_ne_bytes(*kind), record.get(8..)?), after))
}

fn told((kind, record): Kept<'_>) -> Option<Told<'_>> {
    let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
    match kind {
        // Process and thread, time, address, and how long the fields are.
        RECORD_SAMPLE => {
            let raw = half(24).and_then(|bytes| record.get(28..28 + bytes as usize));
            let (thread, at_ns, address) = (half(4)?, word(8)?, word(16)?);
            let raw = raw.unwrap_or_default();
            Some(Told::Sample(Sample { thread, at_ns, address, raw }))
        }
        RECORD_LOST => word(8).map(Told::Lost),
        _ => None,
    }
}

/// By how much the time of day is ahead of CLOCK_MONOTONIC, to some tens of nanoseconds.
pub fn realtime_ahead_ns() -> i64 {
    let now = |clock| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes one timespec.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let tries = (0..20).map(|_| {
        let before = now(libc::CLOCK_MONOTONIC);
        let real = now(libc::CLOCK_REALTIME);
        let after = now(libc::CLOCK_MONOTONIC);
        (after - before, real - (before + (after - before) / 2))
    });
    tries.min().map_or(0, |(_, ahead)| ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_what_is_cut_is_none() {
        let mut sample = vec![9, 0, 0, 0, 2, 0, 40, 0];
        sample.extend([7_u32, 8].iter().flat_map(|it| it.to_ne_bytes()));
        sample.extend([77_u64, 4096].iter().flat_map(|it| it.to_ne_bytes()));
        sample.extend(4_u32.to_ne_bytes());
        sample.extend([1, 2, 3, 4]);
        let mut lost = vec![2, 0, 0, 0, 0, 0, 24, 0];
        lost.extend([5_u64, 6].iter().flat_map(|it| it.to_ne_bytes()));
        let all = [sample, lost].concat();
        let (first, rest) = next(&all).unwrap();
        let raw = &[1, 2, 3, 4][..];
        let expected = Sample { thread: 8, at_ns: 77, address: 4096, raw };
        assert_eq!(told(first), Some(Told::Sample(expected)));
        let (second, rest) = next(rest).unwrap();
        assert_eq!((told(second), rest.len()), (Some(Told::Lost(6)), 0));
        assert_eq!(next(&all[..39]), None);
        assert_eq!(told((9, &all[8..20])), None);
    }
}
