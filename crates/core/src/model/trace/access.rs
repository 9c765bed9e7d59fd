//! In what pattern requests reach the devices: how long they are, and how far apart.

use std::collections::BTreeMap;

use super::{Entry, Op, Quantiles};
use crate::model::{Sample, Unit};

/// Sizes of requests, and the distances between them.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// How long those are that read.
    pub read_bytes: Quantiles,
    /// How long those are that write.
    pub write_bytes: Quantiles,
    /// Of each that begins elsewhere than where the one before ended on its device, be it read or
    /// written: how far from there. A request that reads or writes moves a disk's heads alike.
    pub seek_bytes: Quantiles,
    /// What the file system asked for (bios) that became part of a request with others; `None`
    /// where no recorder has told.
    pub merges: Option<u64>,
    /// Where the last request of each device ended, in bytes.
    ends: BTreeMap<u32, u64>,
}

impl Access {
    /// Begins another timed part: what it asks for first comes from nowhere.
    pub fn begin(&mut self) {
        self.ends.clear();
    }

    /// Adds a request. They come in the order in which the devices were given them.
    pub fn take(&mut self, entry: &Entry) {
        match entry.op {
            Op::Read => self.read_bytes.take(entry.bytes()),
            Op::Write => self.write_bytes.take(entry.bytes()),
            _ => return,
        }
        let begin = entry.begin_bytes();
        let before = self.ends.insert(entry.device, begin.saturating_add(entry.bytes()));
        if let Some(before) = before.filter(|before| *before != begin) {
            self.seek_bytes.take(begin.abs_diff(before));
        }
        if entry.bios > 0 {
            *self.merges.get_or_insert(0) += u64::from(entry.bios - 1);
        }
    }

    /// As figures of a trial. Of reads there are none where its recorder has none.
    pub fn samples(&self, has_reads: bool) -> Vec<Sample> {
        let middle = |values: &Quantiles| values.within(0.5) as f64;
        let size = |metric, sizes: &Quantiles| {
            (sizes.count() > 0).then(|| Sample::higher(metric, middle(sizes), Unit::Bytes))
        };
        let distance = (self.seek_bytes.count() > 0)
            .then(|| Sample::lower("trace_seek_bytes_p50", middle(&self.seek_bytes), Unit::Bytes));
        let count = |metric, count: u64| Sample::lower(metric, count as f64, Unit::Count);
        let merges = |count: u64| Sample::higher("trace_merges", count as f64, Unit::Count);
        let samples = [
            size("trace_write_request_bytes_p50", &self.write_bytes),
            has_reads.then(|| size("trace_read_request_bytes_p50", &self.read_bytes)).flatten(),
            Some(count("trace_seeks", self.seek_bytes.count())),
            distance,
            self.merges.map(merges),
        ];
        samples.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(op: Op, sector: u64, sectors: u32, bios: u32) -> Entry {
        let flush: Entry = serde_json::from_str(r#"{"op":"flush"}"#).unwrap();
        Entry { op, sector, sectors, bios, ..flush }
    }

    #[test]
    fn seeks_are_from_where_the_one_before_ended() {
        let mut access = Access::default();
        access.take(&entry(Op::Write, 1000, 8, 1));
        access.take(&entry(Op::Write, 1008, 8, 3));
        access.take(&entry(Op::Flush, 0, 0, 0));
        access.take(&entry(Op::Read, 1016, 8, 1));
        access.take(&Entry { device: 1, ..entry(Op::Read, 5, 8, 1) });
        assert_eq!(access.seek_bytes.count(), 0, "the first of a device comes from nowhere");
        access.take(&entry(Op::Write, 1024 + 64, 8, 1));
        access.take(&entry(Op::Read, 0, 8, 1));
        assert_eq!(access.seek_bytes.count(), 2);
        assert_eq!((access.seek_bytes.within(0.5), access.seek_bytes.largest), (32768, 561_152));
        assert_eq!((access.merges, access.write_bytes.count()), (Some(2), 3));
        let names = |has_reads| {
            access.samples(has_reads).into_iter().map(|it| it.metric).collect::<Vec<_>>()
        };
        assert_eq!(names(true).len(), 5);
        assert!(names(false).iter().all(|name| !name.contains("read")), "{:?}", names(false));
    }

    #[test]
    fn a_recorder_that_knows_no_bios_tells_no_merges() {
        let mut access = Access::default();
        access.take(&entry(Op::Write, u64::MAX, 8, 0));
        access.take(&entry(Op::Write, 8, 8, 0));
        assert_eq!(access.merges, None);
    }
}
