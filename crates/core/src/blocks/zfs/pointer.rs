//! Block pointers: where a block is, how it is compressed, and its checksum.
//!
//! Layout: `blkptr_t` and `dva_t` in include/sys/spa.h of OpenZFS; embedded ones are described in
//! module/zfs/blkptr.c. Numbers are little-endian if such a machine wrote the pool.

use crate::blocks::bytes::{le64, part};

/// SPA_MINBLOCKSIZE: the unit of sizes and places.
const SECTOR: u64 = 512;

/// `enum zio_checksum` in include/sys/zio.h.
mod checksum {
    pub const FLETCHER_2: u8 = 6;
    pub const FLETCHER_4: u8 = 7;
}

/// What the content of a block adds up to, and how it is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    function: u8,
    sums: [u64; 4],
    /// The other words authenticate an encrypted block.
    words: u8,
}

impl Checksum {
    /// `None`: by a function that is not known here.
    pub fn fits(self, bytes: &[u8]) -> Option<bool> {
        let sums = match self.function {
            checksum::FLETCHER_2 => fletcher_2(bytes),
            checksum::FLETCHER_4 => fletcher_4(bytes),
            _ => return None,
        };
        let words = usize::from(self.words);
        // A fuzzer finds no bytes with the right sums, and would never get behind them.
        Some(cfg!(fuzzing) || sums[..words] == self.sums[..words])
    }

    /// It can be told at all.
    pub fn is_known(self) -> bool {
        self.fits(&[]).is_some()
    }
}

/// module/zcommon/zfs_fletcher.c, `fletcher_2_incremental_native`.
fn fletcher_2(bytes: &[u8]) -> [u64; 4] {
    let mut sums = [0_u64; 4];
    for pair in bytes.chunks_exact(16) {
        for half in 0..2 {
            sums[half] = sums[half].wrapping_add(le64(pair, 8 * half));
            sums[half + 2] = sums[half + 2].wrapping_add(sums[half]);
        }
    }
    sums
}

/// module/zcommon/zfs_fletcher.c, `fletcher_4_scalar_native`.
pub fn fletcher_4(bytes: &[u8]) -> [u64; 4] {
    let [mut a, mut b, mut c, mut d] = [0_u64; 4];
    for word in bytes.chunks_exact(4) {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        a = a.wrapping_add(word.into());
        b = b.wrapping_add(a);
        c = c.wrapping_add(b);
        d = d.wrapping_add(c);
    }
    [a, b, c, d]
}

/// A place of a block: one of up to three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The number of the virtual device.
    pub vdev: u64,
    /// In bytes, behind the first two labels.
    pub offset: u64,
    /// What is allocated there.
    pub allocated_bytes: u64,
    /// A header is there, which leads to the parts of the block.
    pub is_gang: bool,
}

/// Where a block is, if it lies anywhere.
#[derive(Clone, Debug)]
pub struct Pointer {
    /// Its places. There is none of a block that lies within its pointer.
    pub addresses: Vec<Address>,
    /// What it holds, where it lies within its pointer.
    pub inline: Option<Vec<u8>>,
    /// Its size, unpacked.
    pub logical_bytes: u64,
    /// Its size as it is written.
    pub physical_bytes: u64,
    /// `enum zio_compress`.
    pub compression: u8,
    /// What it adds up to.
    pub checksum: Checksum,
    /// How far above the data it is.
    pub level: u8,
    /// The transaction group that wrote it.
    pub birth: u64,
}

impl Pointer {
    /// How many bytes one has.
    pub const BYTES: usize = 128;

    /// Reads one; `None`: it leads nowhere.
    pub fn parse(bytes: &[u8]) -> Option<Pointer> {
        let word = |number: usize| le64(bytes, 8 * number);
        let bits = |from: u32, count: u32| word(6) >> from & ((1 << count) - 1);
        let [is_embedded, is_encrypted, is_little] = [39, 61, 63].map(|bit| bits(bit, 1) == 1);
        if !is_little {
            return None;
        }
        let sums = [12, 13, 14, 15].map(word);
        let words = if is_encrypted { 2 } else { 4 };
        let mut pointer = Pointer {
            addresses: Vec::new(),
            inline: None,
            logical_bytes: (bits(0, 16) + 1) * SECTOR,
            physical_bytes: (bits(16, 16) + 1) * SECTOR,
            compression: bits(32, 7) as u8,
            checksum: Checksum { function: bits(40, 8) as u8, sums, words },
            level: bits(56, 5) as u8,
            birth: if word(9) != 0 && !is_embedded { word(9) } else { word(10) },
        };
        if is_embedded {
            // BPE_GET_LSIZE, BPE_GET_PSIZE; the payload is all but words 6 and 10.
            pointer.logical_bytes = bits(0, 25) + 1;
            pointer.physical_bytes = bits(25, 7) + 1;
            let payload = [part(bytes, 0, 48), part(bytes, 56, 24), part(bytes, 88, 40)].concat();
            pointer.inline = Some(part(&payload, 0, pointer.physical_bytes as usize).to_vec());
            return Some(pointer);
        }
        // Of an encrypted block the third has the salt.
        let addresses = (0..if is_encrypted { 2 } else { 3 }).map(|number| Address {
            vdev: word(2 * number) >> 32 & 0xff_ffff,
            offset: (word(2 * number + 1) & !(1 << 63)).saturating_mul(SECTOR),
            allocated_bytes: (word(2 * number) & 0xff_ffff) * SECTOR,
            is_gang: word(2 * number + 1) >> 63 == 1,
        });
        pointer.addresses = addresses.filter(|address| address.allocated_bytes > 0).collect();
        (!pointer.addresses.is_empty()).then_some(pointer)
    }

    /// What tells the block from all others there have been.
    pub fn identity(&self) -> Option<(u64, u64)> {
        self.addresses.first().map(|address| (address.offset, self.birth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_definitions() {
        let bytes: Vec<u8> = [1_u32, 2, 3, 4].iter().flat_map(|it| it.to_le_bytes()).collect();
        // Sums, sums of sums and so on of 1, 2, 3, 4.
        assert_eq!(fletcher_4(&bytes), [10, 20, 35, 56]);
        let twice = [&bytes[..], &bytes].concat();
        let [low, high] = [2 << 32 | 1, 4 << 32 | 3];
        assert_eq!(fletcher_2(&twice), [2 * low, 2 * high, 3 * low, 3 * high]);
    }

    #[test]
    fn a_pointer_has_up_to_three_places_or_its_block_within() {
        let mut words = [0_u64; 16];
        let bytes = |words: [u64; 16]| words.map(u64::to_le_bytes).concat();
        words[6] = 1 << 63 | 2 << 56 | 20 << 48 | 7 << 40 | 15 << 32 | 3 << 16 | 31;
        assert!(Pointer::parse(&bytes(words)).is_none(), "a hole");
        (words[0], words[1], words[10]) = (8, 100, 77);
        (words[2], words[3]) = (1 << 32 | 8, 1 << 63 | 200);
        let pointer = Pointer::parse(&bytes(words)).unwrap();
        let [first, second] = pointer.addresses.as_slice() else { panic!("{pointer:?}") };
        assert_eq!((first.vdev, first.offset, first.allocated_bytes), (0, 51200, 4096));
        assert!(second.vdev == 1 && second.is_gang && !first.is_gang);
        assert_eq!((pointer.logical_bytes, pointer.physical_bytes), (16384, 2048));
        assert_eq!((pointer.level, pointer.birth, pointer.compression), (2, 77, 15));
        assert_eq!(pointer.identity(), Some((51200, 77)));
        words[6] = 1 << 63 | 1 << 39 | 3 << 25 | 511;
        let pointer = Pointer::parse(&bytes(words)).unwrap();
        assert_eq!((pointer.inline.unwrap(), pointer.logical_bytes), (vec![8, 0, 0, 0], 512));
        words[6] = 0;
        assert!(Pointer::parse(&bytes(words)).is_none(), "of a big-endian machine");
    }
}
