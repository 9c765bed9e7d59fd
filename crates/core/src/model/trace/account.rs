//! What requests add up to.

use std::collections::BTreeMap;

use super::{Entry, Kind, Op, SECTOR_BYTES};
use crate::model::{Sample, Unit, as_metric};

/// What begins the name of a sample that has the bytes written of one kind of blocks.
pub const PART: &str = "trace_bytes_of_";

/// Bytes written, by what they are: the kind, and which in the file system's words.
pub type Parts = BTreeMap<(Kind, String), u64>;

/// Sums over some requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Where the last write of each device ended.
    ends: BTreeMap<u32, u64>,
}

impl Account {
    /// Adds a request.
    pub fn take(&mut self, entry: &Entry) {
        match entry.op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += entry.bytes();
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
        for (kind, what, bytes) in entry.named() {
            // Its name is copied only where it is new.
            match self.parts.iter_mut().find(|((known, name), _)| *known == kind && name == what) {
                Some((_, sum)) => *sum += bytes,
                None => drop(self.parts.insert((kind, what.into()), bytes)),
            }
        }
    }

    /// As figures of a trial.
    pub fn samples(&self) -> Vec<Sample> {
        let lower = |name: &str, value: u64, unit| {
            Sample::lower(format!("trace_{name}"), value as f64, unit)
        };
        let kinds = [
            ("data_bytes", Kind::Data),
            ("journal_bytes", Kind::Journal),
            ("metadata_bytes", Kind::Metadata),
            ("unknown_bytes", Kind::Unknown),
        ];
        let bytes = |(name, kind)| lower(name, self.bytes_of(kind), Unit::Bytes);
        let mut samples: Vec<Sample> = kinds.into_iter().map(bytes).collect();
        samples.extend([
            lower("writes", self.writes, Unit::Count),
            lower("fua_writes", self.fua_writes, Unit::Count),
            lower("flushes", self.flushes, Unit::Count),
        ]);
        samples.extend(self.by_name().into_iter().map(|(name, bytes)| {
            Sample::lower(format!("{PART}{name}"), bytes as f64, Unit::Bytes)
        }));
        if self.writes > 0 {
            let share = self.sequential_writes as f64 / self.writes as f64;
            samples.push(Sample::higher("trace_sequential_share", share, Unit::Ratio));
        }
        samples
    }

    /// Bytes by what they are, as metrics are written: `journal_copy_inodes`.
    fn by_name(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for ((_, what), bytes) in &self.parts {
            *sums.entry(as_metric(what)).or_default() += bytes;
        }
        sums
    }

    /// Bytes of a kind.
    pub fn bytes_of(&self, kind: Kind) -> u64 {
        self.parts.iter().filter(|((it, _), _)| *it == kind).map(|(_, bytes)| bytes).sum()
    }
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
    fn bytes_add_up_by_what_they_are() {
        let mut account = Account::default();
        account.take(&write(0, &[(Kind::Data, "data", 8), (Kind::Metadata, "inodes", 8)]));
        account.take(&write(16, &[(Kind::Data, "data", 8)]));
        account.take(&write(800, &[]));
        assert_eq!((account.writes, account.sequential_writes), (3, 1));
        assert_eq!(account.bytes_of(Kind::Data), 8192);
        assert_eq!(account.bytes_of(Kind::Metadata), 4096);
        assert_eq!(account.bytes_of(Kind::Unknown), 4096 + 8192);
        assert_eq!(account.write_bytes, 3 * 8192);
        let samples = account.samples();
        let value = |metric: &str| samples.iter().find(|it| it.metric == metric).unwrap().value;
        assert_eq!(value("trace_data_bytes"), 8192.0);
        assert_eq!(
            [value("trace_bytes_of_data"), value("trace_bytes_of_inodes")],
            [8192.0, 4096.0]
        );
        assert!((value("trace_sequential_share") - 1.0 / 3.0).abs() < 1e-9);
    }
}
