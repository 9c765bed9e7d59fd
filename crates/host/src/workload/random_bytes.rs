//! What files hold: pseudo-random bytes, so that neither compression nor deduplication finds
//! anything.

/// Random bytes there are beyond one file's, for files to begin at different places of them. So few
/// that those of a small file stay in the processor's first cache: fetching them from further away
/// would count as the file system's time.
const SPARE_BYTES: usize = 16 << 10;

/// How far apart stamps are: the smallest block that anything deduplicates.
pub const BLOCK_BYTES: usize = 4096;

/// Contents of one size: random bytes, from each file's own place in them.
#[derive(Debug, Default)]
pub struct RandomBytes {
    pool: Vec<u8>,
    size_bytes: usize,
    salt: u64,
}

impl RandomBytes {
    /// All of `size_bytes`. The same seed gives the same contents.
    pub fn new(size_bytes: usize, seed: u64) -> RandomBytes {
        let mut state = seed;
        let salt = split_mix(&mut state);
        let mut pool = vec![0; size_bytes + SPARE_BYTES];
        for bytes in pool.chunks_mut(8) {
            bytes.copy_from_slice(&split_mix(&mut state).to_le_bytes()[..bytes.len()]);
        }
        RandomBytes { pool, size_bytes, salt }
    }

    /// What file `number` holds. Its place would be enough against compression; the stamps see to
    /// it that blocks differ even where the places of two files lie whole blocks apart.
    pub fn of(&mut self, number: u64) -> &[u8] {
        // Odd, hence different for each number; and neighbours end up far apart.
        let stamp = (number ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let start = (stamp >> 32) as usize % SPARE_BYTES;
        let content = &mut self.pool[start..start + self.size_bytes];
        for block in content.chunks_mut(BLOCK_BYTES) {
            let bytes = block.len().min(8);
            block[..bytes].copy_from_slice(&stamp.to_le_bytes()[..bytes]);
        }
        content
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): as random as a compressor needs, without a crate.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_as_random_as_they_look() {
        let mut content = RandomBytes::new(1 << 16, 3);
        let mut seen = [0u32; 256];
        content.of(5).iter().for_each(|&byte| seen[usize::from(byte)] += 1);
        // 256 expected of each, with a standard deviation of 16.
        assert!(seen.iter().all(|count| (160..352).contains(count)), "{seen:?}");
    }
}
