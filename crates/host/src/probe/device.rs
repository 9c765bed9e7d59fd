//! What the devices under test did: Documentation/admin-guide/iostats.rst.
//!
//! `/sys/dev/block/MAJOR:MINOR/stat` is one short line; `/proc/diskstats`, the same fields for
//! every device of the machine, is read where there is no such file.

use std::path::{Path, PathBuf};

use fsverdict_core::model::{Device, DeviceTotals};

use super::ProbeError;
use super::file::{ProcFile, lines, numbers};

/// Sectors are of 512 bytes here whatever the device's own.
const SECTOR_BYTES: u64 = 512;

const NS_PER_MS: u64 = 1_000_000;

/// Times are milliseconds in an unsigned int of the kernel: 49.7 days, then from nought again.
const TIME_WRAP_NS: u64 = (1 << 32) * NS_PER_MS;

/// Fields of every kernel since 2.6.25, those with discards (4.18), those with flushes (5.5).
const FIELDS_BASIC: usize = 11;
const FIELDS_DISCARD: usize = 15;
const FIELDS_FLUSH: usize = 17;

type Fields = [u64; FIELDS_FLUSH];

/// Reads the devices under test.
#[derive(Debug)]
pub struct DeviceReader {
    sys: Vec<ProcFile>,
    diskstats: Option<(ProcFile, Vec<[u32; 2]>)>,
    tracked: Tracked,
}

/// One reading, all devices added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceReading {
    /// The counters. Their zero is arbitrary: only [`DeviceReading::since`] means something.
    pub totals: DeviceTotals,
    /// Requests under way just now.
    pub in_flight: u64,
}

/// Which counters the kernel keeps for all the devices: the others stay zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// Since Linux 4.18.
    pub discards: bool,
    /// Since Linux 5.5, and only where the kernel makes them of a queue of requests
    /// (block/blk-flush.c): not of partitions, and not of LVM, md or zram, which pass on what they
    /// are given.
    pub flushes: bool,
}

impl DeviceReader {
    /// Opens what tells of `devices`, under `root` (`/`, but for tests).
    pub fn open(root: &Path, devices: &[Device]) -> Result<Self, ProbeError> {
        let mut sys = Vec::with_capacity(devices.len());
        let mut elsewhere = Vec::new();
        let mut with_queues = true;
        for device in devices {
            let folder = folder(root, device);
            match ProcFile::open(&folder.join("stat")) {
                Ok(file) => sys.push(file),
                Err(_) => elsewhere.push(device.number),
            }
            // block/blk-mq-sysfs.c: disks have it, whose driver takes requests.
            with_queues &= folder.join("mq").exists();
        }
        let diskstats = match elsewhere.is_empty() {
            true => None,
            false => Some((ProcFile::open(&root.join("proc/diskstats"))?, elsewhere)),
        };
        let mut reader =
            DeviceReader { sys, diskstats, tracked: Tracked { discards: true, flushes: true } };
        let (_, fields) = reader.read_counting_fields()?;
        reader.tracked = Tracked {
            discards: fields >= FIELDS_DISCARD,
            flushes: fields >= FIELDS_FLUSH && with_queues,
        };
        Ok(reader)
    }

    /// Which counters the kernel keeps here.
    pub fn tracked(&self) -> Tracked {
        self.tracked
    }

    /// The counters now.
    pub fn read(&mut self) -> Result<DeviceReading, ProbeError> {
        let (mut reading, _) = self.read_counting_fields()?;
        reading.totals.flushes = reading.totals.flushes.filter(|_| self.tracked.flushes);
        Ok(reading)
    }

    /// The counters now, and how many fields the device has that has the fewest.
    fn read_counting_fields(&mut self) -> Result<(DeviceReading, usize), ProbeError> {
        let mut reading = DeviceReading::default();
        let mut fewest = FIELDS_FLUSH;
        for file in &mut self.sys {
            file.read()?;
            let (fields, count) = fields(numbers(file.text()));
            fewest = fewest.min(known(file, count)?);
            reading.add(&fields);
        }
        if let Some((file, devices)) = &mut self.diskstats {
            file.read()?;
            for number in devices {
                let (fields, count) = diskstats_fields(file, *number)?;
                fewest = fewest.min(known(file, count)?);
                reading.add(&fields);
            }
        }
        Ok((reading, fewest))
    }
}

impl DeviceReading {
    /// What was done since `first`; requests under way as they are now.
    pub fn since(&self, first: &DeviceReading) -> DeviceReading {
        let (now, then) = (&self.totals, &first.totals);
        let totals = DeviceTotals {
            devices: now.devices,
            reads: now.reads.saturating_sub(then.reads),
            reads_merged: now.reads_merged.saturating_sub(then.reads_merged),
            read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
            read_ns: time_since(now.read_ns, then.read_ns),
            writes: now.writes.saturating_sub(then.writes),
            writes_merged: now.writes_merged.saturating_sub(then.writes_merged),
            write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
            write_ns: time_since(now.write_ns, then.write_ns),
            discards: now.discards.saturating_sub(then.discards),
            discards_merged: now.discards_merged.saturating_sub(then.discards_merged),
            discard_bytes: now.discard_bytes.saturating_sub(then.discard_bytes),
            discard_ns: time_since(now.discard_ns, then.discard_ns),
            flushes: now.flushes.zip(then.flushes).map(|(now, then)| now.saturating_sub(then)),
            flush_ns: time_since(now.flush_ns, then.flush_ns),
            busy_ns: time_since(now.busy_ns, then.busy_ns),
            queue_ns: time_since(now.queue_ns, then.queue_ns),
        };
        DeviceReading { totals, in_flight: self.in_flight }
    }

    /// Adds one device's line.
    fn add(&mut self, fields: &Fields) {
        let &[
            reads,
            reads_merged,
            read_sectors,
            read_ms,
            writes,
            writes_merged,
            write_sectors,
            write_ms,
            in_flight,
            busy_ms,
            queue_ms,
            discards,
            discards_merged,
            discard_sectors,
            discard_ms,
            flushes,
            flush_ms,
        ] = fields;
        let totals = &mut self.totals;
        totals.devices += 1;
        // What a kernel has counted below zero reads as nearly 2^64.
        let add = |sum: &mut u64, count: u64, unit: u64| {
            *sum = sum.saturating_add(count.saturating_mul(unit));
        };
        add(&mut totals.reads, reads, 1);
        add(&mut totals.reads_merged, reads_merged, 1);
        add(&mut totals.read_bytes, read_sectors, SECTOR_BYTES);
        add(&mut totals.read_ns, read_ms, NS_PER_MS);
        add(&mut totals.writes, writes, 1);
        add(&mut totals.writes_merged, writes_merged, 1);
        add(&mut totals.write_bytes, write_sectors, SECTOR_BYTES);
        add(&mut totals.write_ns, write_ms, NS_PER_MS);
        add(&mut totals.discards, discards, 1);
        add(&mut totals.discards_merged, discards_merged, 1);
        add(&mut totals.discard_bytes, discard_sectors, SECTOR_BYTES);
        add(&mut totals.discard_ns, discard_ms, NS_PER_MS);
        add(totals.flushes.get_or_insert_default(), flushes, 1);
        add(&mut totals.flush_ns, flush_ms, NS_PER_MS);
        add(&mut totals.busy_ns, busy_ms, NS_PER_MS);
        add(&mut totals.queue_ns, queue_ms, NS_PER_MS);
        add(&mut self.in_flight, in_flight, 1);
    }
}

fn folder(root: &Path, device: &Device) -> PathBuf {
    let [major, minor] = device.number;
    root.join(format!("sys/dev/block/{major}:{minor}"))
}

/// The fields, absent ones nought, and how many there are.
fn fields(mut numbers: impl Iterator<Item = u64>) -> (Fields, usize) {
    let mut fields = [0; FIELDS_FLUSH];
    let mut count = 0;
    for (field, number) in fields.iter_mut().zip(&mut numbers) {
        *field = number;
        count += 1;
    }
    (fields, count)
}

/// `count`, if there are the fields that are always there.
fn known(file: &ProcFile, count: usize) -> Result<usize, ProbeError> {
    if count < FIELDS_BASIC { Err(file.without("the 11 fields of a device")) } else { Ok(count) }
}

/// The fields of one device of `/proc/diskstats`: its number and name come before them.
fn diskstats_fields(
    file: &ProcFile,
    [major, minor]: [u32; 2],
) -> Result<(Fields, usize), ProbeError> {
    lines(file.text())
        .find_map(|line| {
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let mut next = || numbers(words.next()?).next();
            if (next()?, next()?) != (major.into(), minor.into()) {
                return None;
            }
            let _name = words.next();
            Some(fields(words.map_while(|word| numbers(word).next())))
        })
        .ok_or_else(|| file.without("the device under test"))
}

/// Time between two readings, of one device or added over several: a counter of theirs may have
/// begun again from nought in between.
///
/// Right while the sum itself stays under 49.7 days: a phase of an hour may have 1,193 requests
/// under way all along.
fn time_since(now_ns: u64, then_ns: u64) -> u64 {
    let wrapped = i128::from(now_ns) - i128::from(then_ns);
    wrapped.rem_euclid(TIME_WRAP_NS.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    const FULL: &str = "  1 2 8 4 5 6 16 8 9 10 11 12 13 24 15 16 17\n";

    fn read(tree: &tempfile::TempDir, numbers: &[[u32; 2]]) -> Result<DeviceReader, ProbeError> {
        DeviceReader::open(tree.path(), &fake::devices(numbers))
    }

    fn expected() -> DeviceReading {
        let totals = DeviceTotals {
            devices: 1,
            reads: 1,
            reads_merged: 2,
            read_bytes: 4096,
            read_ns: 4_000_000,
            writes: 5,
            writes_merged: 6,
            write_bytes: 8192,
            write_ns: 8_000_000,
            discards: 12,
            discards_merged: 13,
            discard_bytes: 12_288,
            discard_ns: 15_000_000,
            flushes: Some(16),
            flush_ns: 17_000_000,
            busy_ns: 10_000_000,
            queue_ns: 11_000_000,
        };
        DeviceReading { totals, in_flight: 9 }
    }

    #[test]
    fn sysfs_is_read_where_it_is() {
        let mq = ("sys/dev/block/8:16/mq/0/cpu_list", "0\n");
        let tree = fake::tree(&[("sys/dev/block/8:16/stat", FULL), mq]);
        let mut reader = read(&tree, &[[8, 16]]).unwrap();
        assert_eq!(reader.read().unwrap(), expected());
        assert_eq!(reader.tracked(), Tracked { discards: true, flushes: true });
    }

    #[test]
    fn diskstats_is_read_where_sysfs_is_not() {
        let others = "   8       0 sda 70 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n".repeat(200);
        let diskstats = format!("{others}   8      16 sdb {FULL}   8 160 sdk 7 7\n");
        let tree = fake::tree(&[("proc/diskstats", &diskstats)]);
        let mut expected = expected();
        expected.totals.flushes = None;
        let reading = read(&tree, &[[8, 16]]).unwrap().read().unwrap();
        assert_eq!(reading, expected, "whether there is a queue of requests is not told");
    }

    #[test]
    fn several_devices_are_added() {
        let diskstats = format!("   8      16 sdb {FULL}");
        let tree = fake::tree(&[("proc/diskstats", &diskstats), ("sys/dev/block/8:32/stat", FULL)]);
        let both = read(&tree, &[[8, 16], [8, 32]]).unwrap().read().unwrap();
        assert_eq!(both.totals.write_bytes, 2 * 8192);
        assert_eq!(both.in_flight, 18);
    }

    #[test]
    fn counts_below_zero_are_borne() {
        let below = format!("{}\n", format!("{} ", u64::MAX).repeat(17));
        let paths = ["sys/dev/block/8:16/stat", "sys/dev/block/8:32/stat"];
        let tree = fake::tree(&paths.map(|path| (path, below.as_str())));
        let both = read(&tree, &[[8, 16], [8, 32]]).unwrap().read().unwrap();
        assert_eq!((both.totals.read_bytes, both.in_flight), (u64::MAX, u64::MAX));
    }

    #[test]
    fn an_old_kernel_has_fewer_fields() {
        let old = fake::tree(&[("sys/dev/block/8:0/stat", "1 2 8 4 5 6 16 8 9 10 11\n")]);
        let mut reader = read(&old, &[[8, 0]]).unwrap();
        assert_eq!(reader.tracked(), Tracked { discards: false, flushes: false });
        let totals = reader.read().unwrap().totals;
        assert_eq!((totals.queue_ns, totals.discards, totals.flushes), (11_000_000, 0, None));

        let newer =
            fake::tree(&[("proc/diskstats", "8 0 sda 1 2 8 4 5 6 16 8 9 10 11 12 13 24 15\n")]);
        let mut reader = read(&newer, &[[8, 0]]).unwrap();
        assert_eq!(reader.tracked(), Tracked { discards: true, flushes: false });
        assert_eq!(reader.read().unwrap().totals.discard_bytes, 12_288);
    }

    #[test]
    fn nobody_counts_flushes_of_what_has_no_queue_of_requests() {
        // A partition, and a mapping.
        for number in [[8, 1], [253, 0]] {
            let stat = format!("sys/dev/block/{}:{}/stat", number[0], number[1]);
            let tree = fake::tree(&[(stat.as_str(), FULL)]);
            let mut reader = read(&tree, &[number]).unwrap();
            assert_eq!(reader.tracked(), Tracked { discards: true, flushes: false });
            let first = reader.read().unwrap();
            assert_eq!(reader.read().unwrap().since(&first).totals.flushes, None);
        }
    }

    #[test]
    fn times_wrap_at_32_bits_and_gauges_do_not_count() {
        let before = "9 0 0 4294967290 0 0 0 0 5 4294967295 4294967000 0 0 0 0 0 0\n";
        let after = "10 0 0 10 0 0 0 0 3 1 1000 0 0 0 0 0 0\n";
        let tree =
            fake::tree(&[("sys/dev/block/8:0/stat", before), ("sys/dev/block/8:16/stat", before)]);
        let mut reader = read(&tree, &[[8, 0], [8, 16]]).unwrap();
        let first = reader.read().unwrap();
        fake::write(&tree, "sys/dev/block/8:0/stat", after);
        let passed = reader.read().unwrap().since(&first);
        assert_eq!(passed.totals.reads, 1);
        assert_eq!(passed.totals.read_ns, 16 * NS_PER_MS);
        assert_eq!(passed.totals.busy_ns, 2 * NS_PER_MS);
        assert_eq!(passed.totals.queue_ns, 1296 * NS_PER_MS);
        assert_eq!(passed.in_flight, 3 + 5);
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        let tree = fake::tree(&[("proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n")]);
        let error = read(&tree, &[[8, 1]]).unwrap_err().to_string();
        assert!(error.ends_with("proc/diskstats lacks the device under test"), "{error}");
    }
}
