//! Names and numbers in a block of a ZAP object, in which directories are kept.
//!
//! Layout: include/sys/zap_impl.h of OpenZFS (`mzap_phys_t`, `mzap_ent_phys_t`) and
//! include/sys/zap_leaf.h (`zap_leaf_phys_t`, `zap_leaf_chunk_t`).

use crate::blocks::bytes::{be64, le16, le32, le64, part, u8_at};

const MICRO: u64 = 1 << 63 | 3;
const LEAF: u64 = 1 << 63;
const LEAF_MAGIC: u32 = 0x02ab_1eaf;

/// The names in a block, each with its number. A header of a large one has none.
pub fn entries(block: &[u8]) -> Vec<(Vec<u8>, u64)> {
    match le64(block, 0) {
        MICRO => micro(block),
        LEAF if le32(block, 24) == LEAF_MAGIC => leaf(block),
        _ => Vec::new(),
    }
}

fn micro(block: &[u8]) -> Vec<(Vec<u8>, u64)> {
    const ENTRY: usize = 64;
    let entries = block.chunks_exact(ENTRY).skip(1).map(|entry| {
        let name = entry[14..].split(|byte| *byte == 0).next().unwrap_or_default();
        (name.to_vec(), le64(entry, 0))
    });
    entries.filter(|(name, _)| !name.is_empty()).collect()
}

const CHUNK: usize = 24;
const ENTRY_CHUNK: u8 = 252;
const ARRAY_CHUNK: u8 = 251;
/// How much of a name or value a chunk holds (ZAP_LEAF_ARRAY_BYTES).
const ARRAY_BYTES: usize = 21;

fn leaf(block: &[u8]) -> Vec<(Vec<u8>, u64)> {
    // A header of 48 bytes, a hash table with two bytes for each 32 of the block, then chunks.
    let chunks = part(block, 48 + block.len() / 32 * 2, block.len());
    let entries = chunks.chunks_exact(CHUNK).filter(|chunk| chunk[0] == ENTRY_CHUNK);
    let entry = |entry: &[u8]| {
        let [name_at, name_bytes, value_at] = [4, 6, 8].map(|at| le16(entry, at));
        let mut name = array(chunks, name_at, name_bytes.into());
        // The length includes the zero at its end.
        name.pop();
        (name, be64(&array(chunks, value_at, 8), 0))
    };
    entries.map(entry).collect()
}

/// Bytes that lie in a chain of chunks.
fn array(chunks: &[u8], first: u16, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = first;
    while bytes.len() < length {
        let chunk = part(chunks, usize::from(at) * CHUNK, CHUNK);
        if u8_at(chunk, 0) != ARRAY_CHUNK {
            break;
        }
        bytes.extend_from_slice(part(chunk, 1, ARRAY_BYTES.min(length - bytes.len())));
        at = le16(chunk, 1 + ARRAY_BYTES);
    }
    bytes
}
