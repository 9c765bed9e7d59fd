//! Compressed blocks: ZFS compresses its metadata with LZ4, and did with LZJB before LZ4 was there.

/// `enum zio_compress` in include/sys/zio_compress.h.
mod compression {
    pub const OFF: u8 = 2;
    pub const LZJB: u8 = 3;
    pub const LZ4: u8 = 15;
}

/// The content of a packed block; `None`: it is damaged, or packed by another function, which
/// metadata never are (`dmu_write_policy` in module/zfs/dmu.c).
pub fn unpack(compression: u8, bytes: &[u8], logical_bytes: usize) -> Option<Vec<u8>> {
    match compression {
        compression::OFF => bytes.get(..logical_bytes).map(<[u8]>::to_vec),
        compression::LZJB => lzjb(bytes, logical_bytes),
        compression::LZ4 => lz4(bytes, logical_bytes),
        _ => None,
    }
}

/// A block of LZ4 behind its length, big-endian (module/zfs/lz4_zfs.c, `zfs_lz4_decompress`).
fn lz4(bytes: &[u8], logical_bytes: usize) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let block = rest.get(..u32::from_be_bytes(*length) as usize)?;
    let mut content = vec![0; logical_bytes];
    let written = lz4_flex::block::decompress_into(block, &mut content).ok()?;
    (written == logical_bytes).then_some(content)
}

/// module/zfs/lzjb.c, `zfs_lzjb_decompress`: a byte says of each of the next eight things whether
/// it is a byte, or a length of 6 bits and how far back to copy from, of 10 bits.
fn lzjb(bytes: &[u8], logical_bytes: usize) -> Option<Vec<u8>> {
    const LENGTH_MIN: usize = 3;
    let mut content = Vec::with_capacity(logical_bytes);
    let mut bytes = bytes.iter().copied().map(usize::from);
    loop {
        let map = bytes.next()?;
        for bit in 0..8 {
            if map >> bit & 1 == 0 {
                content.push(bytes.next()? as u8);
            } else {
                let [first, second] = [bytes.next()?, bytes.next()?];
                let back = (first << 8 | second) & 0x3ff;
                let from = content.len().checked_sub(back).filter(|_| back > 0)?;
                let length = ((first >> 2) + LENGTH_MIN).min(logical_bytes - content.len());
                (from..from + length).for_each(|at| content.push(content[at]));
            }
            if content.len() == logical_bytes {
                return Some(content);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_and_damage_does_not() {
        // "abc", then 9 bytes from 3 back, then "d".
        let packed = [0b1000, b'a', b'b', b'c', 6 << 2, 3, b'd'];
        assert_eq!(unpack(3, &packed, 13).unwrap(), b"abcabcabcabcd");
        assert_eq!(unpack(3, &packed, 8).unwrap(), b"abcabcab");
        assert_eq!(unpack(3, &packed, 20), None);
        assert_eq!(unpack(3, &[1, 0, 9], 20), None, "from before the beginning");
        assert_eq!(unpack(3, &[1, 0, 0], 20), None, "from nowhere");
        // Three literals and a match of 9 from 3 back, then the last literals.
        let block = [0x35, b'a', b'b', b'c', 3, 0, 0x50, b'd', b'e', b'f', b'g', b'h'];
        let packed = [&[0, 0, 0, 12][..], &block, &[0; 8]].concat();
        assert_eq!(unpack(15, &packed, 17).unwrap(), b"abcabcabcabcdefgh");
        assert_eq!(unpack(15, &packed, 18), None);
        assert_eq!(unpack(15, &packed[..10], 17), None);
        assert_eq!(unpack(2, b"abcd", 3).unwrap(), b"abc");
        assert_eq!(unpack(2, b"abcd", 5), None);
        assert_eq!(unpack(5, b"abcd", 4), None, "gzip");
    }
}
