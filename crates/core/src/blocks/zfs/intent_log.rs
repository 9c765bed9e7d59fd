//! Blocks of the ZIL, the log of intents: what an fsync writes so that the next import can do it
//! again.
//!
//! Layout: `zil_chain_t`, `lr_t` and `lr_write_t` in include/sys/zil.h of OpenZFS. A block begins
//! with a pointer to the next one, how much of it is used, and its own checksum. The checksum
//! begins with numbers that the pointer to the block has (`zio_checksum_error_impl` in
//! module/zfs/zio_checksum.c): two of the log, the data set and the block's place in the log. A
//! pointer to the next has the same with the next place (`zil_lwb_write_issue` in
//! module/zfs/zil.c). So a block identifies itself, even after it has been freed.

use super::pointer::{Pointer, fletcher_4};
use crate::blocks::bytes::{le64, part};
use crate::blocks::what::{Journal, What};

/// `sizeof (zil_chain_t)`.
const HEADER: usize = 184;
const NEXT: usize = 8;
const USED: usize = 136;
const MAGIC_AT: usize = 144;
const SUMS: usize = 152;
/// ZEC_MAGIC in include/sys/zio.h: it precedes an embedded checksum.
pub const MAGIC: u64 = 0x0210_da7a_b10c_7a11;
/// ZIL_MIN_BLKSZ: the checksum is of so much, or a multiple.
const BLOCK: usize = 4096;
/// SPA_OLD_MAXBLOCKSIZE: none is longer.
const BLOCK_MAX: usize = 128 << 10;
/// `sizeof (lr_t)`.
const RECORD: usize = 32;
/// `sizeof (lr_write_t)`: one without data of its own has a pointer to them.
const WRITE_RECORD: usize = 192;
const TX_WRITE: u64 = 9;

/// For each block of a log: two numbers of the log, the data set, and its place in the log.
pub type Verifier = [u64; 4];

/// A block of a log whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub struct LogBlock<'a> {
    used: &'a [u8],
    /// How many bytes are written.
    pub length: usize,
    verifier: Verifier,
}

fn words(bytes: &[u8], at: usize) -> [u64; 4] {
    [0, 8, 16, 24].map(|skip| le64(bytes, at + skip))
}

/// The verifier in a pointer to a block.
pub fn verifier(pointer: &[u8]) -> Verifier {
    words(pointer, 96)
}

impl<'a> LogBlock<'a> {
    /// The block at the beginning of `bytes`, if there is one.
    pub fn of(bytes: &'a [u8]) -> Option<LogBlock<'a>> {
        if le64(bytes, MAGIC_AT) != MAGIC {
            return None;
        }
        let used = le64(bytes, USED);
        let is_length = (HEADER as u64..=BLOCK_MAX as u64).contains(&used);
        let used = is_length.then_some(used as usize)?;
        let length = used.next_multiple_of(BLOCK);
        let mut whole = bytes.get(..length)?.to_vec();
        let [log, other, set, next] = verifier(part(bytes, NEXT, Pointer::BYTES));
        let verifier = [log, other, set, next.checked_sub(1)?];
        whole[SUMS..SUMS + 32].copy_from_slice(&verifier.map(u64::to_le_bytes).concat());
        let is_one = cfg!(fuzzing) || fletcher_4(&whole) == words(bytes, SUMS);
        is_one.then_some(LogBlock { used: &bytes[..used], length, verifier })
    }

    /// What the pointer to it has.
    pub fn verifier(self) -> Verifier {
        self.verifier
    }

    /// The pointer to the next.
    pub fn next(self) -> &'a [u8] {
        part(self.used, NEXT, Pointer::BYTES)
    }

    /// Its records.
    fn records(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = part(self.used, HEADER, self.used.len());
        std::iter::from_fn(move || {
            let length = usize::try_from(le64(rest, 8)).ok().filter(|it| *it >= RECORD)?;
            let record = rest.get(..length)?;
            rest = &rest[length..];
            Some(record)
        })
    }

    /// Of data that lie in a block elsewhere the file, where in it the block begins, and the
    /// pointer to it.
    pub fn pointers(self) -> impl Iterator<Item = (u64, u64, &'a [u8])> {
        // TX_CI, the highest bit, says that names are of either case.
        let is_write = |record: &&[u8]| le64(record, 0) << 1 >> 1 == TX_WRITE;
        let elsewhere = self.records().filter(|record| record.len() == WRITE_RECORD);
        elsewhere.filter(is_write).map(|record| {
            let [file, offset, within] = [32, 40, 56].map(|at| le64(record, at));
            (file, offset.saturating_sub(within), part(record, 64, Pointer::BYTES))
        })
    }

    /// What a block is that a log leads to, and that was not written yet.
    pub fn unwritten(set: u64, sequence: u64) -> What {
        What::Journal(Journal::IntentLog { set, sequence, records: 0 })
    }

    /// What it is.
    pub fn what(self) -> What {
        let [_, _, set, sequence] = self.verifier;
        let records = self.records().count() as u32;
        What::Journal(Journal::IntentLog { set, sequence, records })
    }
}
