//! How much room a bed is to have beyond its size.

use fsverdict_core::model::Bytes;

/// So much, and 5% more for what else happens there.
pub fn with_margin(size_bytes: u64) -> u64 {
    size_bytes.saturating_add(size_bytes / 20)
}

/// What a bed of that size needs, as the end of a sentence about the free space: without the margin
/// it could say that 1 GiB is not enough for 1 GiB.
pub fn needed(size_bytes: u64) -> String {
    format!("{} and 5% more", Bytes(size_bytes).rounded())
}
