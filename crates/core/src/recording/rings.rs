//! Requests of io_uring(7), which an application writes into memory that it shares with the kernel.
//! strace shows how many the kernel took. A reader of that memory, while the application is stopped
//! at io_uring_enter(2), writes a line as strace would, with its content:
//!
//! - `io_uring_enter(5, 1, [{opcode=22, flags=0, fd=3</f>, off=0, addr=0x7f00, len=512, op=0}])`:
//!   the fields of `struct io_uring_sqe` (include/uapi/linux/io_uring.h), `op` being `rw_flags` and
//!   all that shares its place; `bytes` is what the buffers of a vector hold. The file of a request
//!   whose flags have `IOSQE_FIXED_FILE` is `index=7` instead.
//! - `io_uring_register(5, [{index=7, fd=3</f>}])`: the ring has these files from now on, by these
//!   numbers, also when their descriptors are closed; `fd=-1` removes one, and no list removes all.
//!
//! If nothing reads that memory there are strace's own lines: `io_uring_enter(5, 8, ...)` is
//! counted, and so is a ring that the kernel empties by itself,
//! `io_uring_setup(8, {flags=IORING_SETUP_SQPOLL})`.

use std::ops::RangeInclusive;

use super::calls::{ADVICE, OWN_OFFSET, Result, WriteFlags};
use super::line::{Ended, Returned, descriptor, elements, number};
use super::processes::Descriptor;
use super::{Translated, Watch, why};
use crate::model::{Action, Gave, On};

/// Numbers of `enum io_uring_op`.
mod operation {
    pub const READV: u64 = 1;
    pub const WRITEV: u64 = 2;
    pub const FSYNC: u64 = 3;
    pub const READ_FIXED: u64 = 4;
    pub const WRITE_FIXED: u64 = 5;
    pub const SYNC_FILE_RANGE: u64 = 8;
    pub const FALLOCATE: u64 = 17;
    pub const CLOSE: u64 = 19;
    pub const READ: u64 = 22;
    pub const WRITE: u64 = 23;
    pub const FADVISE: u64 = 24;
    pub const FTRUNCATE: u64 = 55;
    pub const READV_FIXED: u64 = 60;
    pub const WRITEV_FIXED: u64 = 61;

    pub const FILES_UPDATE: u64 = 20;

    /// What may put a file among the ring's: accept, open, socket, pipe, close.
    pub const MAKE_FILES: [u64; 6] = [13, 18, 28, 45, 62, CLOSE];

    /// What is done to an open file.
    pub const OF_A_FILE: [u64; 13] = [
        READV,
        WRITEV,
        FSYNC,
        READ_FIXED,
        WRITE_FIXED,
        SYNC_FILE_RANGE,
        FALLOCATE,
        READ,
        WRITE,
        FADVISE,
        FTRUNCATE,
        READV_FIXED,
        WRITEV_FIXED,
    ];

    /// Nothing, waiting, and what is of sockets, memory and processes: no file changes by it.
    pub const OF_NO_FILE: [u64; 32] = [
        0, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 26, 27, 29, 31, 32, 33, 34, 40, 45, 47, 48, 50, 51,
        52, 53, 56, 57, 58, 59, 62, 63,
    ];
}

/// `sqe->flags`: the file is one of the ring's; the buffer is chosen by the kernel.
const FIXED_FILE: u64 = 1 << 0;
const BUFFER_SELECT: u64 = 1 << 5;
/// `sqe->fsync_flags`: `IORING_FSYNC_DATASYNC`.
const DATA_ALONE: u64 = 1;
/// `sqe->rw_flags` (include/uapi/linux/fs.h): `RWF_DSYNC`, `RWF_SYNC`, `RWF_APPEND`.
const SYNCS_DATA: u64 = 0x2;
const SYNCS: u64 = 0x4;
const APPENDS: u64 = 0x10;

/// How many files of a ring are known. The kernel takes more (io_uring/rsrc.c,
/// `IORING_MAX_FIXED_FILES`).
const FILES_MOST: i64 = 1 << 16;
/// Below the numbers that calls have for something of their own, AT_FDCWD (-100) and the like.
const FIRST_FILE: i64 = -1000;

impl Watch {
    /// Calls of io_uring.
    pub(super) fn of_rings(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        match (call.name, &call.returned) {
            // Of what the kernel fetches by itself only the ring's setup shows.
            ("io_uring_setup", Returned::Value(0.., _)) if call.argument(1).contains("SQPOLL") => {
                Err(why::RINGS)
            }
            ("io_uring_enter", &Returned::Value(taken @ 1.., _)) => {
                let Some(requests) = elements(call.argument(2)) else {
                    self.leave_out_several(why::RINGS, taken.cast_unsigned());
                    return Ok(None);
                };
                for request in requests.into_iter().map(Request::of) {
                    match self.ring_request(thread, call, &request) {
                        Ok(several) => several.into_iter().for_each(|translated| {
                            self.one_by_one += 1;
                            self.enter(thread, call.times_ns(), translated);
                        }),
                        Err(what) => self.leave_out(what),
                    }
                }
                Ok(None)
            }
            ("io_uring_register", Returned::Value(0.., _)) => {
                self.registered(thread, call);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// A request as calls: none where it is of no file or closes one, two where it writes and
    /// syncs.
    fn ring_request(
        &mut self,
        thread: u32,
        call: &Ended,
        request: &Request,
    ) -> Result<Vec<Translated>> {
        let (ring, opcode) = (call.argument(0), request.number("opcode")?);
        // Files that it makes, or gives to the ring, are not known: the ones there were are gone.
        for slot in request.slots(opcode)? {
            if let Some(slot) = slot_of(ring, slot) {
                self.close_descriptor(thread, call, slot);
            }
        }
        if operation::OF_NO_FILE.contains(&opcode) {
            return Ok(Vec::new());
        }
        if opcode == operation::CLOSE {
            if request.number("slot").unwrap_or(0) == 0 {
                let fd = request.field("fd")?;
                if fd.contains("[io_uring]") {
                    self.ring_closed(thread, call, fd);
                }
                let (fd, _) = descriptor(fd).ok_or(why::UNKNOWN)?;
                self.close_descriptor(thread, call, fd);
            }
            return Ok(Vec::new());
        }
        if !operation::OF_A_FILE.contains(&opcode) {
            return Err(why::RINGS);
        }
        let handle = match request.number("flags")? & FIXED_FILE {
            0 => self.handle(thread, request.field("fd")?)?,
            _ => {
                let slot = slot_of(ring, request.number("index")?).ok_or(why::UNKNOWN)?;
                self.processes.descriptor(thread, slot).ok_or(why::PASSED)?.handle
            }
        };
        let all = request.actions(opcode, handle)?.into_iter();
        let translated = all.map(|(action, [moves, changes])| {
            let keys = self.of_handle(handle, moves, changes);
            Translated { action, gave: Gave::Unseen, keys }
        });
        Ok(translated.collect())
    }

    /// A descriptor is closed that is of a watched file, or of none.
    fn close_descriptor(&mut self, thread: u32, call: &Ended, fd: i32) {
        let closed = self.processes.close(thread, |number, _| number == fd);
        self.close(thread, call.times_ns(), closed);
    }

    /// Files that a ring has by numbers of its own: each is one more descriptor, below all others.
    fn registered(&mut self, thread: u32, call: &Ended) {
        let ring = call.argument(0);
        let Some(files) = elements(call.argument(1)) else {
            self.ring_closed(thread, call, ring);
            return;
        };
        for file in files {
            let file = Request::of(file);
            let index = file.number("index").ok();
            let Some(slot) = index.and_then(|index| slot_of(ring, index)) else { continue };
            let from = file.field("fd").ok().and_then(descriptor).map_or(-1, |(fd, _)| fd);
            let before = match self.processes.descriptor(thread, from) {
                Some(Descriptor { handle, .. }) => {
                    self.handles[handle as usize].descriptors += 1;
                    // The ring's own descriptor is closed by exec.
                    let it = Descriptor { handle, closes_on_exec: true };
                    self.processes.open(thread, slot, it).into_iter().collect()
                }
                None => self.processes.close(thread, |number, _| number == slot),
            };
            self.close(thread, call.times_ns(), before);
        }
    }

    /// Requests that there was no room for.
    pub fn lost_requests(&mut self, count: u64) {
        if count > 0 {
            self.leave_out_several(why::RINGS, count);
        }
    }

    /// A ring goes, and its files with it.
    pub(super) fn ring_closed(&mut self, thread: u32, call: &Ended, ring: &str) {
        let Some(slots) = slots(ring) else { return };
        let closed = self.processes.close(thread, |number, _| slots.contains(&i64::from(number)));
        self.close(thread, call.times_ns(), closed);
    }
}

/// The descriptors that stand for the files of a ring, the last one first.
fn slots(ring: &str) -> Option<RangeInclusive<i64>> {
    let (ring, _) = descriptor(ring).filter(|(ring, _)| *ring >= 0)?;
    let first = FIRST_FILE - i64::from(ring) * FILES_MOST;
    Some(first - FILES_MOST + 1..=first)
}

/// The descriptor that stands for one of them.
fn slot_of(ring: &str, index: u64) -> Option<i32> {
    let index = i64::try_from(index).ok().filter(|index| *index < FILES_MOST)?;
    i32::try_from(slots(ring)?.end() - index).ok()
}

/// The fields of a request.
struct Request<'a>(Vec<&'a str>);

impl<'a> Request<'a> {
    fn of(text: &'a str) -> Request<'a> {
        Request(elements(text).unwrap_or_default())
    }

    fn field(&self, name: &str) -> Result<&'a str> {
        let mut its = self.0.iter().filter_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        its.next().ok_or(why::UNKNOWN)
    }

    fn number(&self, name: &str) -> Result<u64> {
        number(self.field(name)?).ok_or(why::UNKNOWN)
    }

    /// The ring's own files that the request puts others in the place of: by `file_index`, which is
    /// one more, or by `IORING_OP_FILES_UPDATE`. A place of the kernel's choice was free.
    fn slots(&self, opcode: u64) -> Result<std::ops::Range<u64>> {
        const CHOSEN: u64 = u32::MAX as u64;
        match opcode {
            operation::FILES_UPDATE => {
                let (first, count) = (self.number("off")?, self.number("len")?);
                Ok(first..first.saturating_add(count.min(FILES_MOST.cast_unsigned())))
            }
            opcode if operation::MAKE_FILES.contains(&opcode) => {
                Ok(match self.number("slot").unwrap_or(0) {
                    0 | CHOSEN => 0..0,
                    slot => slot - 1..slot,
                })
            }
            _ => Ok(0..0),
        }
    }

    /// The calls that the request is, the second one if it is to sync what it writes.
    fn actions(&self, opcode: u64, handle: u32) -> Result<Vec<(Action, [bool; 2])>> {
        let mut all = vec![self.action(opcode, handle)?];
        if let (Action::Write { .. } | Action::Pwrite { .. }, _) = all[0] {
            let bits = self.number("op")?;
            let flags = WriteFlags {
                appends: bits & APPENDS != 0,
                syncs: bits & SYNCS != 0,
                syncs_data: bits & SYNCS_DATA != 0,
            };
            let sync = flags.sync_of(handle).map_err(|_| why::RINGS)?;
            all.extend(sync.map(|action| (action, [false, true])));
        }
        Ok(all)
    }

    /// The call of a file that the request is; whether it moves the offset, and changes the
    /// content. Where a field lies of what: the `_prep` functions of the kernel's io_uring/.
    fn action(&self, opcode: u64, handle: u32) -> Result<(Action, [bool; 2])> {
        let is = |name| self.number(name);
        Ok(match opcode {
            operation::READ | operation::READ_FIXED => self.read(handle, "len")?,
            operation::READV | operation::READV_FIXED => self.read(handle, "bytes")?,
            operation::WRITE | operation::WRITE_FIXED => self.write(handle, "len")?,
            operation::WRITEV | operation::WRITEV_FIXED => self.write(handle, "bytes")?,
            operation::FSYNC if is("op")? & DATA_ALONE != 0 => {
                (Action::Fdatasync { handle }, [false, true])
            }
            operation::FSYNC => (Action::Fsync { handle }, [false, true]),
            operation::SYNC_FILE_RANGE => {
                let flags = names(&SYNC_RANGE, is("op")?)?;
                let (place, bytes) = (is("off")?, is("len")?);
                (Action::SyncRange { handle, place, bytes, flags }, [false, true])
            }
            operation::FALLOCATE => {
                let flags = names(&ALLOCATE, is("len")?)?;
                let (place, bytes) = (is("off")?, is("addr")?);
                (Action::Allocate { handle, flags, place, bytes }, [false, true])
            }
            operation::FADVISE => {
                let advice = usize::try_from(is("op")?).ok().and_then(|number| ADVICE.get(number));
                let advice = advice.ok_or(why::UNKNOWN)?.to_string();
                // io_uring/advise.c: since Linux 6.10 the length may stand where it has 64 bits.
                let bytes = match is("addr")? {
                    0 => is("len")?,
                    bytes => bytes,
                };
                let place = is("off")?;
                (Action::Advise { handle, advice, place, bytes }, [false, false])
            }
            operation::FTRUNCATE => {
                (Action::Truncate { on: On::Handle(handle), bytes: is("off")? }, [false, true])
            }
            _ => return Err(why::RINGS),
        })
    }

    fn read(&self, handle: u32, size: &str) -> Result<(Action, [bool; 2])> {
        let bytes = self.number(size)?;
        if bytes == 0 && self.number("flags")? & BUFFER_SELECT != 0 {
            // As many as the buffer has that the kernel will choose.
            return Err(why::RINGS);
        }
        Ok(match self.number("off")? {
            OWN_OFFSET => (Action::Read { handle, bytes }, [true, false]),
            place => (Action::Pread { handle, bytes, place }, [false, false]),
        })
    }

    fn write(&self, handle: u32, size: &str) -> Result<(Action, [bool; 2])> {
        let bytes = self.number(size)?;
        Ok(match self.number("off")? {
            OWN_OFFSET => (Action::Write { handle, bytes }, [true, true]),
            place => (Action::Pwrite { handle, bytes, place }, [false, true]),
        })
    }
}

/// Bits from the lowest on: include/uapi/linux/fs.h and falloc.h.
const SYNC_RANGE: [&str; 3] =
    ["SYNC_FILE_RANGE_WAIT_BEFORE", "SYNC_FILE_RANGE_WRITE", "SYNC_FILE_RANGE_WAIT_AFTER"];
const ALLOCATE: [&str; 7] = [
    "FALLOC_FL_KEEP_SIZE",
    "FALLOC_FL_PUNCH_HOLE",
    "FALLOC_FL_NO_HIDE_STALE",
    "FALLOC_FL_COLLAPSE_RANGE",
    "FALLOC_FL_ZERO_RANGE",
    "FALLOC_FL_INSERT_RANGE",
    "FALLOC_FL_UNSHARE_RANGE",
];

/// The names of the bits that are set, as strace writes them.
fn names(all: &[&str], bits: u64) -> Result<String> {
    if bits >> all.len() != 0 {
        return Err(why::UNKNOWN);
    }
    let set = all.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0);
    let set: Vec<&str> = set.map(|(_, name)| *name).collect();
    Ok(if set.is_empty() { "0".into() } else { set.join("|") })
}
