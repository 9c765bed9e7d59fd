//! Numbers in bytes, and bytes from a device.
//!
//! Beyond the end of a slice all reads as zero, which no structure takes for a pointer: so no input
//! can make a reader panic.

use std::io;

use super::error::Error;

/// No device has more bytes: sums of places can't overflow.
pub const DEVICE_BYTES_MAX: u64 = 1 << 62;

/// Where a file system is read from: an image, a device, memory.
pub trait ReadAt {
    /// Fills `into` from `offset`; an error if the device ends before.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let part = at.checked_add(N).and_then(|end| bytes.get(at..end));
    part.and_then(|part| part.try_into().ok()).unwrap_or([0; N])
}

/// The byte at a place.
pub fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// 16 bits, little-endian.
pub fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

/// 32 bits, little-endian.
pub fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

/// 64 bits, little-endian.
pub fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// 16 bits, big-endian.
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

/// 32 bits, big-endian.
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// 64 bits, big-endian.
pub fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// 64 bits in two little-endian halves that are not adjacent.
pub fn halves(bytes: &[u8], low_at: usize, high_at: usize) -> u64 {
    u64::from(le32(bytes, high_at)) << 32 | u64::from(le32(bytes, low_at))
}

/// `length` bytes of `bytes` from `at`, or as many as there are.
pub fn part(bytes: &[u8], at: usize, length: usize) -> &[u8] {
    let begin = at.min(bytes.len());
    &bytes[begin..at.saturating_add(length).clamp(begin, bytes.len())]
}

/// Reads `length` bytes.
pub fn read(disk: &dyn ReadAt, offset: u64, length: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; length];
    disk.read_at(offset, &mut bytes).map_err(|error| Error::Read { offset, error })?;
    Ok(bytes)
}
