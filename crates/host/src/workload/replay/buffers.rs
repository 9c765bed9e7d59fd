//! What a replay writes: no recording holds the application's data.

use fsverdict_core::model::Replay;

use crate::tree::{CHUNK_BYTES, Contents, content_key};

/// Blocks differ from each other in this size, the smallest that anything deduplicates, and are
/// aligned to it in memory, as direct I/O needs them.
const BLOCK_BYTES: usize = 4096;

/// Successive writes take successive blocks of this many. More than is compressed together by
/// Btrfs (128 KiB), so that no write looks like one just before it.
const SPARE_BLOCKS: usize = 64;

/// The content of one thread's writes, made beforehand.
#[derive(Debug)]
pub struct Pool {
    bytes: Vec<u8>,
    /// Where the first aligned block begins.
    begin: usize,
    /// The block that the next write begins with.
    next: usize,
    stamp: u64,
}

impl Pool {
    /// For writes of up to `most_bytes`; `key` tells threads apart.
    pub fn new(replay: &Replay, most_bytes: usize, key: [u64; 2]) -> Pool {
        let blocks = most_bytes.div_ceil(BLOCK_BYTES) + SPARE_BLOCKS;
        let mut bytes = vec![0; (blocks + 1) * BLOCK_BYTES];
        let begin = bytes.as_ptr().align_offset(BLOCK_BYTES);
        let mut contents = Contents::new(replay.content, replay.compression);
        for (chunk, number) in bytes[begin..].chunks_mut(CHUNK_BYTES).zip(0..) {
            let len = chunk.len();
            chunk.copy_from_slice(contents.of(content_key([key[0], key[1], number]), len));
        }
        Pool { bytes, begin, next: 0, stamp: content_key([key[0], key[1], u64::MAX]) }
    }

    /// What the next write of `len` bytes holds.
    #[inline]
    pub fn next(&mut self, len: usize) -> &[u8] {
        let start = self.begin + self.next * BLOCK_BYTES;
        self.next = (self.next + len.div_ceil(BLOCK_BYTES)) % SPARE_BLOCKS;
        let content = &mut self.bytes[start..start + len];
        for block in content.chunks_mut(BLOCK_BYTES) {
            // An odd step: all stamps differ.
            self.stamp = self.stamp.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let bytes = block.len().min(8);
            block[..bytes].copy_from_slice(&self.stamp.to_le_bytes()[..bytes]);
        }
        content
    }
}

/// A buffer for reads, aligned as direct I/O needs it.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    begin: usize,
}

impl Buffer {
    /// For reads of up to `most_bytes`. All of it is written once, so that no page of it is faulted
    /// in by a read that is timed.
    pub fn new(most_bytes: usize) -> Buffer {
        let bytes = vec![1; most_bytes + BLOCK_BYTES];
        let begin = bytes.as_ptr().align_offset(BLOCK_BYTES);
        Buffer { bytes, begin }
    }

    /// The first `len` bytes.
    #[inline]
    pub fn first(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[self.begin..self.begin + len]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fsverdict_core::model::TreeContent;

    use super::*;

    #[test]
    fn writes_are_aligned_and_no_two_blocks_are_alike() {
        for content in [TreeContent::Random, TreeContent::Compressible, TreeContent::Text] {
            let replay = Replay { content, ..Replay::default() };
            let mut pool = Pool::new(&replay, 200_000, [7, 1]);
            let mut seen = BTreeSet::new();
            for len in [5000, 200_000, 8192, 1, 4096, 100_000, 8192] {
                let bytes = pool.next(len);
                assert_eq!((bytes.len(), bytes.as_ptr().align_offset(4096)), (len, 0));
                let blocks = bytes.chunks_exact(4096);
                assert!(blocks.map(<[u8]>::to_vec).all(|block| seen.insert(block)), "{content:?}");
            }
        }
        let zeros = |content| {
            let replay = Replay { content, compression: 4.0, ..Replay::default() };
            let mut pool = Pool::new(&replay, 65536, [7, 1]);
            pool.next(65536).iter().filter(|byte| **byte == 0).count()
        };
        assert!(zeros(TreeContent::Compressible) >= 65536 * 3 / 4);
        assert!(zeros(TreeContent::Random) < 1000);
        let mut buffer = Buffer::new(9000);
        assert_eq!(buffer.first(9000).as_ptr().align_offset(4096), 0);
    }
}
