//! What requests add up to.

use std::collections::BTreeMap;

use super::{Access, Entry, Kind, Op, Queue, SECTOR_BYTES};
use crate::model::{Cost, Sample, Unit, as_metric};

/// What blocks there were, by what they are: the kind, and which in the file system's words.
pub type Parts = BTreeMap<(Kind, String), Share>;

/// What blocks of one name have of all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Their bytes.
    pub bytes: u64,
    /// Requests that are mostly of these bytes; if several kinds have as much, the first counts.
    pub requests: u64,
}

/// Sums over some requests.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Requests that read.
    pub reads: u64,
    /// What they read.
    pub read_bytes: u64,
    /// Requests that write.
    pub writes: u64,
    /// What they write.
    pub write_bytes: u64,
    /// Of these requests, those that begin where the one before them ended.
    pub sequential_writes: u64,
    /// Requests that write, and are to be durable when they complete.
    pub fua_writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// What was written.
    pub parts: Parts,
    /// What was read.
    pub read_parts: Parts,
    /// How long requests are, and how far apart.
    pub access: Access,
    /// How many the devices had at once.
    pub queue: Queue,
    /// Where the last write of each device ended.
    ends: BTreeMap<u32, u64>,
}

impl Cost {
    /// What begins the name of the sample that has of a log what blocks of one name cost.
    pub fn by_block(self) -> Option<&'static str> {
        match self {
            Cost::WrittenBytes => Some("trace_bytes_of_"),
            Cost::Writes => Some("trace_writes_of_"),
            Cost::ReadBytes => Some("trace_read_bytes_of_"),
            Cost::Reads => Some("trace_reads_of_"),
            Cost::Flushes | Cost::CpuTime => None,
        }
    }

    /// What blocks of some name cost that has a sample of this name.
    pub fn of_blocks(metric: &str) -> Option<Cost> {
        let all = [Cost::WrittenBytes, Cost::Writes, Cost::ReadBytes, Cost::Reads];
        all.into_iter().find(|it| it.by_block().is_some_and(|begin| metric.starts_with(begin)))
    }
}

impl Account {
    /// Begins another timed part: its clock and its places have nothing to do with those before.
    pub fn begin(&mut self) {
        self.access.begin();
        self.queue.begin();
        self.ends.clear();
    }

    /// Adds a request. They come in the order in which the devices were given them.
    pub fn take(&mut self, entry: &Entry) {
        self.access.take(entry);
        self.queue.take(entry);
        match entry.op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += entry.bytes();
                add(&mut self.read_parts, entry);
            }
            Op::Write => self.write(entry),
            Op::Flush => self.flushes += 1,
            Op::Discard => self.discard_bytes += entry.bytes(),
            Op::Other => {}
        }
    }

    fn write(&mut self, entry: &Entry) {
        self.writes += 1;
        self.write_bytes += entry.bytes();
        self.fua_writes += u64::from(entry.flags.fua);
        let end = entry.sector.saturating_add(u64::from(entry.sectors));
        let before = self.ends.insert(entry.device, end);
        self.sequential_writes += u64::from(before == Some(entry.sector));
        add(&mut self.parts, entry);
    }

    /// All figures that a trial may have but for those of blocks by their names.
    pub fn metrics() -> impl Iterator<Item = String> {
        let mut account = Account::default();
        for (op, sector) in [(Op::Write, 0), (Op::Read, 80)] {
            let [issue_ns, complete_ns] = [0, 1].map(Some);
            let entry = Entry { sector, sectors: 8, bios: 1, ..Entry::of(op) };
            account.take(&Entry { issue_ns, complete_ns, ..entry });
        }
        let named = |it: &String| Cost::of_blocks(it).is_none();
        account.samples(true, &[]).into_iter().map(|it| it.metric).filter(named)
    }

    /// As figures of a trial, also those of `primary` that are none: it may have no blocks of that
    /// name. Of reads there are none where its recorder has none.
    pub fn samples(&self, has_reads: bool, primary: &[String]) -> Vec<Sample> {
        let mut samples = self.counted(has_reads);
        for metric in primary {
            let is_there = samples.iter().any(|it| it.metric == *metric);
            let is_told = |it: &Cost| has_reads || !matches!(it, Cost::Reads | Cost::ReadBytes);
            if let Some(cost) = Cost::of_blocks(metric).filter(is_told).filter(|_| !is_there) {
                samples.push(Sample::lower(metric.clone(), 0.0, cost.unit()));
            }
        }
        samples
    }

    fn counted(&self, has_reads: bool) -> Vec<Sample> {
        let count = |name, value| Sample::lower(name, value as f64, Unit::Count);
        let mut samples = by_kind("trace", &self.parts);
        samples.push(count("trace_writes", self.writes));
        samples.push(count("trace_fua_writes", self.fua_writes));
        samples.push(count("trace_flushes", self.flushes));
        samples.extend(by_name([Cost::WrittenBytes, Cost::Writes], &self.parts));
        if has_reads {
            samples.extend(by_kind("trace_read", &self.read_parts));
            samples.push(count("trace_reads", self.reads));
            samples.extend(by_name([Cost::ReadBytes, Cost::Reads], &self.read_parts));
        }
        if self.writes > 0 {
            let share = self.sequential_writes as f64 / self.writes as f64;
            samples.push(Sample::higher("trace_sequential_share", share, Unit::Ratio));
        }
        samples.extend(self.access.samples(has_reads));
        samples
    }
}

/// Adds what a request writes or reads.
fn add(parts: &mut Parts, entry: &Entry) {
    let mut own: Vec<(Kind, &str, u64)> = Vec::new();
    for (kind, what, bytes) in entry.named() {
        match own.iter_mut().find(|(known, name, _)| (*known, *name) == (kind, what)) {
            Some((.., sum)) => *sum += bytes,
            None => own.push((kind, what, bytes)),
        }
    }
    let most = own.iter().map(|(.., bytes)| *bytes).max();
    let largest = own.iter().position(|(.., bytes)| Some(*bytes) == most);
    for (place, (kind, what, bytes)) in own.into_iter().enumerate() {
        let more = Share { bytes, requests: u64::from(largest == Some(place)) };
        // Its name is copied only where it is new.
        match parts.iter_mut().find(|((known, name), _)| *known == kind && name == what) {
            Some((_, sum)) => sum.add(more),
            None => drop(parts.insert((kind, what.into()), more)),
        }
    }
}

impl Share {
    fn add(&mut self, more: Share) {
        self.bytes += more.bytes;
        self.requests += more.requests;
    }
}

/// Bytes of a kind.
pub fn bytes_of(parts: &Parts, kind: Kind) -> u64 {
    parts.iter().filter(|((it, _), _)| *it == kind).map(|(_, share)| share.bytes).sum()
}

/// `trace_data_bytes` and the like.
fn by_kind(begin: &str, parts: &Parts) -> Vec<Sample> {
    let kinds = [
        ("data", Kind::Data),
        ("journal", Kind::Journal),
        ("metadata", Kind::Metadata),
        ("unknown", Kind::Unknown),
    ];
    let sample = |(name, kind)| {
        let bytes = bytes_of(parts, kind) as f64;
        Sample::lower(format!("{begin}_{name}_bytes"), bytes, Unit::Bytes)
    };
    kinds.into_iter().map(sample).collect()
}

/// What each costs, as metrics are named: `trace_bytes_of_journal_copy_inodes`.
fn by_name(costs: [Cost; 2], parts: &Parts) -> Vec<Sample> {
    let mut sums: BTreeMap<String, Share> = BTreeMap::new();
    for ((_, what), share) in parts {
        sums.entry(as_metric(what)).or_default().add(*share);
    }
    let samples = costs.into_iter().flat_map(|cost| {
        let of = |share: &Share| match cost.unit() {
            Unit::Bytes => share.bytes,
            _ => share.requests,
        };
        let begin = cost.by_block().unwrap_or_default();
        let sample = move |(name, share): (&String, &Share)| {
            Sample::lower(format!("{begin}{name}"), of(share) as f64, cost.unit())
        };
        sums.iter().map(sample).collect::<Vec<_>>()
    });
    samples.collect()
}

impl Entry {
    /// Its parts: kind, name and bytes. What was not looked up is unknown.
    pub fn named(&self) -> impl Iterator<Item = (Kind, &str, u64)> {
        let sectors = self.parts.iter().map(|part| part.sectors).fold(0, u32::saturating_add);
        let rest = self.sectors.saturating_sub(sectors);
        let rest = (rest > 0).then_some((Kind::Unknown, "unknown", rest));
        let known = self.parts.iter().map(|part| (part.kind, part.what.as_str(), part.sectors));
        known
            .chain(rest)
            .map(|(kind, what, sectors)| (kind, what, u64::from(sectors) * SECTOR_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Part;
    use super::*;

    fn write(sector: u64, parts: &[(Kind, &str, u32)]) -> Entry {
        let part = |&(kind, what, sectors): &(Kind, &str, u32)| Part {
            sectors,
            kind,
            what: what.into(),
            inode: None,
        };
        let text = format!(r#"{{"op":"write","sector":{sector},"sectors":16}}"#);
        let entry: Entry = serde_json::from_str(&text).unwrap();
        Entry { parts: parts.iter().map(part).collect(), ..entry }
    }

    #[test]
    fn bytes_and_requests_add_up_by_what_they_are() {
        let mut account = Account::default();
        let data = |sectors| (Kind::Data, "data", sectors);
        let inodes = |sectors| (Kind::Metadata, "inodes", sectors);
        account.take(&write(0, &[inodes(6), data(5), data(5)]));
        account.take(&write(16, &[data(8)]));
        account.take(&write(800, &[]));
        account.take(&Entry { op: Op::Read, ..write(16, &[inodes(8), data(8)]) });
        assert_eq!((account.writes, account.sequential_writes, account.reads), (3, 1, 1));
        assert_eq!((account.write_bytes, account.read_bytes), (3 * 8192, 8192));
        let samples = account.samples(true, &[]);
        let value = |metric: &str| samples.iter().find(|it| it.metric == metric).unwrap().value;
        assert_eq!(value("trace_data_bytes"), 18.0 * 512.0);
        assert_eq!(value("trace_metadata_bytes"), 6.0 * 512.0);
        assert_eq!(value("trace_unknown_bytes"), 24.0 * 512.0, "what no part has is unknown");
        let both =
            |name: &str| ["bytes", "writes"].map(|it| value(&format!("trace_{it}_of_{name}")));
        assert_eq!(both("data"), [18.0 * 512.0, 2.0], "two parts of it are more than the inodes");
        assert_eq!(both("inodes"), [6.0 * 512.0, 0.0]);
        assert_eq!(both("unknown"), [24.0 * 512.0, 1.0]);
        assert_eq!(value("trace_read_data_bytes"), 4096.0);
        assert_eq!(value("trace_read_bytes_of_inodes"), 4096.0);
        assert_eq!(["inodes", "data"].map(|it| value(&format!("trace_reads_of_{it}"))), [1.0, 0.0]);
        assert!((value("trace_sequential_share") - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_timed_part_begins_nowhere() {
        let mut account = Account::default();
        account.take(&write(0, &[]));
        account.begin();
        account.take(&write(16, &[]));
        assert_eq!((account.sequential_writes, account.access.seek_sectors.count()), (0, 0));
        account.begin();
        account.take(&write(800, &[]));
        assert_eq!((account.writes, account.access.seek_sectors.count()), (3, 0));
    }

    #[test]
    fn who_sees_no_reads_says_nothing_of_them() {
        let primary = ["trace_reads_of_inodes".to_string()];
        let samples = Account::default().samples(false, &primary);
        assert!(samples.iter().all(|it| !it.metric.contains("read")), "{samples:?}");
    }

    #[test]
    fn none_of_what_is_judged_is_a_figure() {
        let primary =
            ["trace_reads_of_inodes", "trace_bytes_of_data", "wall_time"].map(String::from);
        let mut account = Account::default();
        account.take(&write(0, &[(Kind::Data, "data", 16)]));
        let samples = account.samples(true, &primary);
        let values = |metric: &str| {
            let its = samples.iter().filter(|it| it.metric == metric);
            its.map(|it| it.value).collect::<Vec<_>>()
        };
        assert_eq!(values("trace_reads_of_inodes"), [0.0]);
        assert_eq!(values("trace_bytes_of_data"), [8192.0], "once");
        assert!(values("wall_time").is_empty());
    }
}
