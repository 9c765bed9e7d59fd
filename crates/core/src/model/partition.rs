//! A partition that a file system is made on, and whether its start suits the device.

use serde::{Deserialize, Serialize};

/// What partitioning tools have aligned to since disks of 4 KiB sectors came: a multiple of every
/// usual physical block, erase block and stripe (parted, libparted/labels; fdisk(8)).
const ALIGNED_BYTES: u64 = 1 << 20;

/// The block of file systems, and of many devices that tell of 512 B.
const BLOCK_BYTES: u64 = 4096;

/// One partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its node: `/dev/loop3p1`.
    pub path: String,
    /// Where it begins on its disk.
    pub start_bytes: u64,
    /// The disk's `queue/physical_block_size`.
    pub physical_bytes: u64,
    /// The disk's `queue/optimal_io_size`: a stripe, where there is one; else 0.
    pub optimal_bytes: u64,
}

impl Partition {
    /// What a start that suits the device ill costs; `None` where it suits.
    pub fn misaligned(&self) -> Option<&'static str> {
        let off = |unit: u64| !self.start_bytes.is_multiple_of(unit);
        if !off(ALIGNED_BYTES) || (self.optimal_bytes > 0 && !off(self.optimal_bytes)) {
            return None;
        }
        // In blocks no larger than a sector any start is one of a block.
        let straddles = self.physical_bytes >= BLOCK_BYTES && off(self.physical_bytes);
        Some(match (straddles, off(BLOCK_BYTES)) {
            (true, _) => {
                "its blocks straddle those of the device, and many writes become a read and two \
                 writes"
            }
            (false, true) => {
                "its blocks don't straddle the blocks that the device reports, but would if it \
                 works in 4 KiB internally; stripes or erase blocks may be straddled"
            }
            (false, false) => {
                "its blocks don't straddle those of the device, but may straddle its stripes or \
                 erase blocks"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_is_no_multiple_of_a_mebibyte_nor_of_a_stripe_is_misaligned() {
        let on = |physical_bytes, start_bytes, optimal_bytes| {
            let path = "/dev/loop3p1".to_string();
            Partition { path, start_bytes, physical_bytes, optimal_bytes }.misaligned()
        };
        let cost = |start_bytes, optimal_bytes| on(4096, start_bytes, optimal_bytes);
        assert_eq!([cost(1 << 20, 0), cost(3 << 16, 1 << 16)], [None, None]);
        assert!(cost(2049 * 512, 0).unwrap().contains("a read and two writes"));
        assert!(cost(4096, 1 << 16).unwrap().contains("don't straddle"));
        let of_sectors = on(512, 2049 * 512, 0).unwrap();
        assert!(of_sectors.contains("would if it works in 4 KiB"), "{of_sectors}");
        assert!(on(512, 4096, 0).unwrap().starts_with("its blocks don't straddle those of the"));
        assert!(on(16_384, 4096, 0).unwrap().contains("a read and two writes"));
    }
}
