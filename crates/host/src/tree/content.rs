//! What the files of a tree hold. Each file's bytes depend on the seed and its place alone, and no
//! two files share any: neither a file system nor an archiver can save anything, beyond what the
//! tree was asked to hold.

use fsverdict_core::model::TreeContent;

/// How much is made, and written, at once: it stays in the processor's second cache.
pub const CHUNK_BYTES: usize = 128 << 10;

/// In a compressible file each block of this size, the smallest that is compressed by itself,
/// begins with random bytes and ends in zeros.
const BLOCK_BYTES: usize = 4096;

/// The odd number nearest to 2^64 divided by the golden ratio: the step of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Common English words, in about the order of their frequency. The first are drawn most.
const WORDS: [&str; 64] = [
    "the ", "of ", "and ", "to ", "a ", "in ", "that ", "is ", "was ", "he ", "for ", "it ",
    "with ", "as ", "his ", "on ", "be ", "at ", "by ", "had ", "not ", "are ", "but ", "from ",
    "or ", "have ", "an ", "they ", "which ", "one ", "you ", "were ", "her ", "all ", "she ",
    "there ", "would ", "their ", "we ", "him ", "been ", "has ", "when ", "who ", "will ",
    "more ", "no ", "if ", "out ", "so ", "said ", "what ", "up ", "its ", "about ", "into ",
    "than ", "them ", "can ", "only ", "other ", "new ", "some ", "time.\n",
];

/// Makes contents of one kind in memory that is used again.
#[derive(Debug)]
pub struct Contents {
    kind: TreeContent,
    /// How much of each block is random.
    random_bytes: usize,
    buffer: Vec<u8>,
}

impl Contents {
    /// Contents of `kind`; what is compressible shrinks to one part in `compression`.
    pub fn new(kind: TreeContent, compression: f64) -> Contents {
        let random_bytes = match kind {
            TreeContent::Compressible => (BLOCK_BYTES as f64 / compression).round() as usize,
            TreeContent::Random | TreeContent::Text => BLOCK_BYTES,
        };
        Contents { kind, random_bytes: random_bytes.max(1), buffer: vec![0; CHUNK_BYTES] }
    }

    /// The first `len` bytes, at most [`CHUNK_BYTES`], of the part of a file that has the number
    /// `key` to itself.
    pub fn of(&mut self, key: u64, len: usize) -> &[u8] {
        let buffer = &mut self.buffer[..len];
        match self.kind {
            TreeContent::Random => fill_random(buffer, key),
            TreeContent::Text => fill_text(buffer, key),
            TreeContent::Compressible => {
                // A last block that is cut short keeps the ratio.
                let blocks = buffer.chunks_mut(BLOCK_BYTES).zip(0..);
                for (block, number) in blocks {
                    let random = (block.len() * self.random_bytes).div_ceil(BLOCK_BYTES);
                    fill_random(&mut block[..random], mixed(key ^ number));
                    block[random..].fill(0);
                }
            }
        }
        &self.buffer[..len]
    }
}

/// A number that is different for each of `parts`, and as good as random.
pub fn key(parts: [u64; 3]) -> u64 {
    parts.iter().fold(0, |key, part| mixed(key ^ part).wrapping_add(STEP))
}

/// SplitMix64's output function (Steele, Lea and Flood, 2014), a one-to-one mapping.
#[inline]
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// SplitMix64 from `key`, in counter form, so that a processor makes several words at once.
fn fill_random(bytes: &mut [u8], key: u64) {
    let word = |number: u64| mixed(key.wrapping_add(number.wrapping_mul(STEP))).to_le_bytes();
    let mut words = bytes.chunks_exact_mut(8);
    let mut number = 1;
    for bytes in &mut words {
        bytes.copy_from_slice(&word(number));
        number += 1;
    }
    let rest = words.into_remainder();
    rest.copy_from_slice(&word(number)[..rest.len()]);
}

/// Words, each drawn from six bits: the lesser of two numbers, so that the first come most.
fn fill_text(bytes: &mut [u8], key: u64) {
    let (mut at, mut number, mut bits) = (0, 0, 0u64);
    while at < bytes.len() {
        if bits < 1 << 12 {
            number += 1;
            // The uppermost bit says when all of them are used.
            bits = mixed(key.wrapping_add(STEP.wrapping_mul(number))) | 1 << 63;
        }
        let drawn = (bits & 63).min(bits >> 6 & 63);
        bits >>= 12;
        let word = WORDS[drawn as usize].as_bytes();
        let len = word.len().min(bytes.len() - at);
        bytes[at..at + len].copy_from_slice(&word[..len]);
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tool;

    /// How many bytes gzip makes of one.
    fn shrunk(kind: TreeContent, compression: f64) -> f64 {
        let mut contents = Contents::new(kind, compression);
        let all: Vec<u8> =
            (0..16).flat_map(|number| contents.of(key([1, 2, number]), 50_000).to_vec()).collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("all");
        fs::write(&path, &all).unwrap();
        tool::run_words(&["gzip", "-1", path.to_str().unwrap()]).unwrap();
        let packed = fs::metadata(path.with_extension("gz")).unwrap().len();
        all.len() as f64 / packed as f64
    }

    #[test]
    fn contents_shrink_as_they_were_asked_to() {
        let random = shrunk(TreeContent::Random, 2.0);
        assert!((0.99..1.0).contains(&random), "{random}");
        for wanted in [1.5, 2.0, 4.0] {
            let compressible = shrunk(TreeContent::Compressible, wanted);
            assert!((0.95..1.02).contains(&(compressible / wanted)), "{compressible} {wanted}");
        }
        let text = shrunk(TreeContent::Text, 2.0);
        assert!((2.0..6.0).contains(&text), "{text}");
    }

    #[test]
    fn contents_depend_on_their_place_alone_and_none_are_alike() {
        for kind in [TreeContent::Random, TreeContent::Compressible, TreeContent::Text] {
            let mut contents = Contents::new(kind, 2.0);
            let first = contents.of(key([1, 2, 3]), 9000).to_vec();
            let second = contents.of(key([1, 2, 4]), 9000).to_vec();
            assert_ne!(first[..4096], second[..4096], "{kind:?}");
            contents.of(key([7, 7, 7]), CHUNK_BYTES);
            assert_eq!(contents.of(key([1, 2, 3]), 9000), first, "{kind:?}");
        }
    }
}
