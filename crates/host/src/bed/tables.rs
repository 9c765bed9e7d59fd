//! Partition tables within partitions, read as libblkid reads those of disks: the kernel and
//! partx(8) know nothing of a virtual machine's disk in a partition.

use std::fs::File;
use std::os::unix::fs::FileExt;

pub(super) const SECTOR_BYTES: u64 = 512;
/// Chains of logical partitions, and tables, end here.
const PARTITIONS_MAX: usize = 1024;

/// A part of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub start_bytes: u64,
    pub size_bytes: u64,
}

impl Region {
    pub fn end_bytes(self) -> u64 {
        self.start_bytes.saturating_add(self.size_bytes)
    }

    pub fn holds(self, other: Region) -> bool {
        self != other
            && self.start_bytes <= other.start_bytes
            && other.end_bytes() <= self.end_bytes()
    }
}

/// What a table says.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    /// The partitions, within the region that the table is of.
    pub parts: Vec<Region>,
    /// Sectors of its own among them: each logical partition has one before it.
    pub own: Vec<Region>,
}

/// The partitions of all tables that `region` of `file` has: which of several counts depends on the
/// reader.
pub(super) fn within(file: &File, region: Region) -> Partitions {
    let mut table = Partitions::default();
    let reader = Reader { file, region };
    dos(&reader, &mut table);
    // The region may be an extended partition itself.
    logical(&reader, 0, &mut table);
    for sector_bytes in [512, 4096] {
        gpt(&reader, sector_bytes, &mut table);
    }
    bsd(&reader, &mut table);
    table.parts.retain(|part| *part != region);
    table.parts.sort_by_key(|part| (part.start_bytes, part.size_bytes));
    table.parts.dedup();
    table.parts.truncate(PARTITIONS_MAX);
    table
}

struct Reader<'a> {
    file: &'a File,
    region: Region,
}

impl Reader<'_> {
    /// What lies so far from the region's beginning, if that is in it.
    fn bytes(&self, at_bytes: u64, len: usize) -> Option<Vec<u8>> {
        let end = at_bytes.checked_add(len as u64)?;
        let mut bytes = vec![0; len];
        let from = self.region.start_bytes.checked_add(at_bytes)?;
        (end <= self.region.size_bytes).then_some(())?;
        self.file.read_exact_at(&mut bytes, from).ok()?;
        Some(bytes)
    }

    /// A part of it, cut to what is in it.
    fn part(&self, start_bytes: u64, size_bytes: u64) -> Option<Region> {
        let left = self.region.size_bytes.checked_sub(start_bytes)?;
        let size_bytes = size_bytes.min(left);
        let start_bytes = self.region.start_bytes.checked_add(start_bytes)?;
        (size_bytes > 0).then_some(Region { start_bytes, size_bytes })
    }
}

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let of = bytes.get(at..at + len).unwrap_or_default();
    of.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// An entry of a DOS table: its kind, where it begins and how long it is, in sectors.
type Entry = (u8, u64, u64);

/// Those in that sector: block/partitions/msdos.c of the kernel.
fn entries(reader: &Reader, sector: u64) -> Vec<Entry> {
    let Some(bytes) = reader.bytes(sector.saturating_mul(SECTOR_BYTES), 512) else {
        return Vec::new();
    };
    if bytes[510..] != [0x55, 0xAA] {
        return Vec::new();
    }
    let entry = |at: usize| (bytes[at + 4], number(&bytes, at + 8, 4), number(&bytes, at + 12, 4));
    let all = (0..4).map(|index| entry(446 + 16 * index));
    all.filter(|(kind, _, sectors)| *kind != 0 && *sectors > 0).collect()
}

/// Extended partitions, which hold logical ones.
fn is_extended(kind: u8) -> bool {
    [0x05, 0x0F, 0x85].contains(&kind)
}

fn dos(reader: &Reader, table: &mut Partitions) {
    for (kind, start, sectors) in entries(reader, 0) {
        // A protective one stands for a GPT.
        if kind == 0xEE {
            continue;
        }
        match is_extended(kind) {
            true => logical(reader, start, table),
            false => {
                let part = reader.part(start * SECTOR_BYTES, sectors * SECTOR_BYTES);
                table.parts.extend(part);
            }
        }
    }
}

/// The logical partitions of the extended one that begins at `first`: each has a sector with its
/// own place, counted from there, and that of the next such sector, counted from `first`.
fn logical(reader: &Reader, first: u64, table: &mut Partitions) {
    let mut at = first;
    for _ in 0..PARTITIONS_MAX {
        let found = entries(reader, at);
        table.own.extend(reader.part(at.saturating_mul(SECTOR_BYTES), SECTOR_BYTES));
        for (_, start, sectors) in found.iter().filter(|(kind, ..)| !is_extended(*kind)) {
            let start_bytes = (at + start).saturating_mul(SECTOR_BYTES);
            table.parts.extend(reader.part(start_bytes, sectors * SECTOR_BYTES));
        }
        match found.iter().find(|(kind, ..)| is_extended(*kind)) {
            Some((_, next, _)) if first + next > at => at = first + next,
            _ => return,
        }
    }
}

/// UEFI specification, "GPT Header Format".
fn gpt(reader: &Reader, sector_bytes: u64, table: &mut Partitions) {
    let Some(header) = reader.bytes(sector_bytes, 92) else { return };
    if &header[..8] != b"EFI PART" {
        return;
    }
    let entry_bytes = number(&header, 84, 4);
    let count = number(&header, 80, 4).min(PARTITIONS_MAX as u64);
    let first = number(&header, 72, 8).saturating_mul(sector_bytes);
    if !(128..=4096).contains(&entry_bytes) {
        return;
    }
    for index in 0..count {
        let Some(entry) = reader.bytes(first.saturating_add(index * entry_bytes), 48) else {
            return;
        };
        let (from, to) = (number(&entry, 32, 8), number(&entry, 40, 8));
        if entry[..16].iter().any(|byte| *byte != 0) && to >= from {
            let sectors = (to - from).saturating_add(1);
            let bytes = |sectors: u64| sectors.saturating_mul(sector_bytes);
            table.parts.extend(reader.part(bytes(from), bytes(sectors)));
        }
    }
}

/// A label of BSD's (disklabel(5)): in the second sector, or in the first. It counts from the
/// disk's beginning or from its own; both are looked at.
fn bsd(reader: &Reader, table: &mut Partitions) {
    const MAGIC: u64 = 0x8256_4557;
    for at_bytes in [512, 0, 64] {
        let Some(label) = reader.bytes(at_bytes, 148 + 16 * 22) else { continue };
        if number(&label, 0, 4) != MAGIC || number(&label, 132, 4) != MAGIC {
            continue;
        }
        let count = number(&label, 138, 2).min(22) as usize;
        for index in 0..count {
            let at = 148 + 16 * index;
            let (sectors, start) = (number(&label, at, 4), number(&label, at + 4, 4));
            if sectors == 0 || label[at + 12] == 0 {
                continue;
            }
            let (start, size) = (start * SECTOR_BYTES, sectors * SECTOR_BYTES);
            table.parts.extend(reader.part(start, size));
            let own = start.checked_sub(reader.region.start_bytes);
            table.parts.extend(own.and_then(|start| reader.part(start, size)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    /// Where the region begins: a table within a partition counts from there.
    const FROM: u64 = 3 * MIB;

    fn region(start_mib: u64, size_mib: u64) -> Region {
        Region { start_bytes: start_mib * MIB, size_bytes: size_mib * MIB }
    }

    struct Disk(File);

    impl Disk {
        fn new() -> Disk {
            let file = tempfile::tempfile().unwrap();
            file.set_len(128 * MIB).unwrap();
            Disk(file)
        }

        fn put(&self, at_bytes: u64, bytes: &[u8]) {
            self.0.write_all_at(bytes, FROM + at_bytes).unwrap();
        }

        fn dos(&self, sector: u64, entries: &[(u8, u32, u32)]) {
            let mut bytes = [0; 512];
            bytes[510..].copy_from_slice(&[0x55, 0xAA]);
            for (index, (kind, start, sectors)) in entries.iter().enumerate() {
                let entry = &mut bytes[446 + 16 * index..][..16];
                entry[4] = *kind;
                entry[8..12].copy_from_slice(&start.to_le_bytes());
                entry[12..].copy_from_slice(&sectors.to_le_bytes());
            }
            self.put(sector * 512, &bytes);
        }

        fn parts(&self) -> Vec<Region> {
            within(&self.0, region(3, 100)).parts
        }
    }

    #[test]
    fn logical_partitions_are_found_to_the_last() {
        let disk = Disk::new();
        disk.dos(0, &[(0x83, 2048, 2048), (0x05, 4096, 60000)]);
        disk.dos(4096, &[(0x83, 2048, 4096), (0x05, 8192, 9000)]);
        disk.dos(12288, &[(0x83, 2048, 4096), (0x05, 16384, 9000)]);
        disk.dos(20480, &[(0x83, 2048, 4096)]);
        let found = disk.parts();
        assert_eq!(found, [region(4, 1), region(6, 2), region(10, 2), region(14, 2)]);
        // One that leads back to itself ends.
        disk.dos(20480, &[(0x83, 2048, 4096), (0x05, 0, 9000)]);
        assert_eq!(disk.parts().len(), 4);
    }

    #[test]
    fn what_lies_beyond_the_region_is_cut() {
        let disk = Disk::new();
        disk.dos(0, &[(0x83, 2048, u32::MAX), (0x83, u32::MAX, u32::MAX)]);
        assert_eq!(disk.parts(), [region(4, 99)]);
        disk.dos(0, &[(0x05, u32::MAX, u32::MAX)]);
        assert_eq!(disk.parts(), []);
    }

    #[test]
    fn gpt_and_bsd_count_from_the_regions_beginning() {
        let disk = Disk::new();
        let mut header = [0; 512];
        header[..8].copy_from_slice(b"EFI PART");
        header[72..80].copy_from_slice(&2_u64.to_le_bytes());
        header[80..84].copy_from_slice(&u32::MAX.to_le_bytes());
        header[84..88].copy_from_slice(&128_u32.to_le_bytes());
        let mut entry = [0; 128];
        entry[0] = 1;
        entry[32..40].copy_from_slice(&2048_u64.to_le_bytes());
        entry[40..48].copy_from_slice(&4095_u64.to_le_bytes());
        disk.put(512, &header);
        disk.put(1024, &entry);
        assert_eq!(disk.parts(), [region(4, 1)]);
        let disk = Disk::new();
        let mut label = [0; 148 + 16 * 22];
        for at in [0, 132] {
            label[at..at + 4].copy_from_slice(&0x8256_4557_u32.to_le_bytes());
        }
        label[138] = 1;
        label[148..152].copy_from_slice(&2048_u32.to_le_bytes());
        label[152..156].copy_from_slice(&8192_u32.to_le_bytes());
        label[160] = 7;
        disk.put(512, &label);
        assert_eq!(disk.parts(), [region(4, 1), region(7, 1)]);
    }
}
