//! In what pattern requests reach the devices: how long they are, and how far apart.

use std::collections::BTreeMap;

use super::{Entry, Op, Quantiles, SECTOR_BYTES};
use crate::model::{Sample, Unit};

/// Lengths of requests, and the distances between them, in sectors.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// How long those are that read.
    pub read_sectors: Quantiles,
    /// How long those are that write.
    pub write_sectors: Quantiles,
    /// For each request that does not begin where the one before ended on its device, read or
    /// write: how far from there. Reads and writes move a disk's heads alike.
    pub seek_sectors: Quantiles,
    /// All of these distances.
    all_sectors: u64,
    /// What the file system asked to read or write (bios) that became part of a request with
    /// others; `None` where no recorder has told.
    pub merges: Option<u64>,
    /// Where the last request of each device ended.
    ends: BTreeMap<u32, u64>,
}

impl Access {
    /// Begins another timed part: what it asks for first comes from nowhere.
    pub fn begin(&mut self) {
        self.ends.clear();
    }

    /// Adds a request. They come in the order in which the devices were given them.
    pub fn take(&mut self, entry: &Entry) {
        let sectors = u64::from(entry.sectors);
        match entry.op {
            Op::Read => self.read_sectors.take(sectors),
            Op::Write => self.write_sectors.take(sectors),
            _ => return,
        }
        let before = self.ends.insert(entry.device, entry.sector.saturating_add(sectors));
        if let Some(before) = before.filter(|before| *before != entry.sector) {
            let distance = entry.sector.abs_diff(before);
            self.seek_sectors.take(distance);
            self.all_sectors = self.all_sectors.saturating_add(distance);
        }
        if entry.bios > 0 {
            *self.merges.get_or_insert(0) += u64::from(entry.bios - 1);
        }
    }

    /// As figures of a trial; none where the recorder has no reads, because these move the heads,
    /// too.
    pub fn samples(&self, has_reads: bool) -> Vec<Sample> {
        if !has_reads {
            return Vec::new();
        }
        let seeks = self.seek_sectors.count() as f64;
        let bytes = self.all_sectors as f64 * SECTOR_BYTES as f64;
        vec![
            Sample::lower("trace_seeks", seeks, Unit::Count),
            Sample::lower("trace_seek_bytes", bytes, Unit::Bytes),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(op: Op, sector: u64, sectors: u32, bios: u32) -> Entry {
        Entry { sector, sectors, bios, ..Entry::of(op) }
    }

    #[test]
    fn seeks_are_from_where_the_one_before_ended() {
        let mut access = Access::default();
        access.take(&entry(Op::Write, 1000, 8, 1));
        access.take(&entry(Op::Write, 1008, 8, 3));
        access.take(&entry(Op::Flush, 0, 0, 0));
        access.take(&entry(Op::Read, 1016, 8, 1));
        access.take(&Entry { device: 1, ..entry(Op::Read, 5, 8, 1) });
        assert_eq!(access.seek_sectors.count(), 0, "the first of a device comes from nowhere");
        access.take(&entry(Op::Write, 1024 + 64, 8, 1));
        access.take(&entry(Op::Read, 0, 8, 1));
        assert_eq!((access.seek_sectors.within(0.5), access.seek_sectors.largest), (64, 1096));
        assert_eq!((access.merges, access.write_sectors.count()), (Some(2), 3));
        let values: Vec<f64> = access.samples(true).iter().map(|it| it.value).collect();
        assert_eq!(values, [2.0, 1160.0 * 512.0]);
        assert_eq!(access.samples(false), []);
        access.begin();
        access.take(&entry(Op::Write, 500, 8, 1));
        assert_eq!(access.seek_sectors.count(), 2, "another timed part begins nowhere");
    }

    #[test]
    fn a_recorder_that_knows_no_bios_tells_no_merges() {
        let mut access = Access::default();
        access.take(&entry(Op::Write, u64::MAX, 8, 0));
        access.take(&entry(Op::Write, 8, u32::MAX, 0));
        access.take(&entry(Op::Read, u64::MAX, 0, 0));
        assert_eq!(access.merges, None);
    }
}
