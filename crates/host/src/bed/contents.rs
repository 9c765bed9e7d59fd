//! What lies on a device: signatures, also in partitions that the kernel does not know, and data
//! without a signature.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::block::Block;
use super::refusal::{Refusal, Signature};
use super::tables::{self, Region, SECTOR_BYTES};
use crate::sys;
use crate::tool::{self, ToolError};

const CHUNK_BYTES: u64 = 1 << 20;
/// At a table's disk, room for the table itself, a boot loader and the table's copy.
const TABLE_BYTES: u64 = 1 << 20;
/// Up to this much is read whole; of more, its beginning, its end and samples in between.
const WHOLE_BYTES: u64 = 64 << 20;
const EDGE_BYTES: u64 = 4 << 20;
/// Data that lie together on more than a five-hundredth of a disk are always met.
const SAMPLES: u64 = 512;
const SAMPLE_BYTES: u64 = 64 << 10;
const LIMIT: Duration = Duration::from_secs(30);
/// How deep tables are looked for in partitions of partitions.
const DEPTH_MAX: u32 = 4;
/// No disk has more partitions that mean anything; tables within tables could tell of a million.
const PARTS_MAX: usize = 1024;
/// No disk has more places without a signature; tables whose partitions lie upon each other could
/// have the same bytes read for days.
const REGIONS_MAX: usize = 4 * PARTS_MAX;
/// A partition that is there to tell of others.
const STUB_BYTES: u64 = 4096;

/// What libblkid calls a partition table; all else is a file system or the like, which owns the
/// whole device.
const TABLES: [&str; 12] = [
    "gpt",
    "dos",
    "PMBR",
    "mac",
    "bsd",
    "sun",
    "sgi",
    "aix",
    "atari",
    "ultrix",
    "unixware",
    "solaris_x86",
];

/// What was found on a device.
#[derive(Debug, Default)]
pub(super) struct Occupied {
    pub signatures: Vec<Signature>,
    /// Where there are data without a signature, in bytes from the device's beginning.
    pub data_at_bytes: Option<u64>,
}

/// Looks at all of `target`, which is open as `file`; `path` is what the user calls it.
pub(super) fn examine(path: &str, target: &Block, file: &File) -> Result<Occupied, Refusal> {
    let signatures = signatures(path, &target.node)?;
    let is_explained = signatures.iter().any(|found| !is_table(found));
    let has_table = signatures.iter().any(is_table);
    let (parts, unexplained) = (Vec::new(), Vec::new());
    let node = &target.node;
    let mut look = Look { path, node, file, signatures, parts, unexplained };
    for block in target.partitions() {
        let part = Region { start_bytes: block.start_bytes(), size_bytes: block.size_bytes() };
        look.look_at_node(part, &block.node)?;
    }
    for part in if has_table { listed_partitions(&target.node) } else { Vec::new() } {
        look.look_at_part(part, DEPTH_MAX)?;
    }
    let Look { signatures, parts, mut unexplained, .. } = look;
    if is_explained && !has_table {
        // All of it belongs to what lies on the whole.
        unexplained.clear();
    } else if !is_explained {
        let whole = Region { start_bytes: 0, size_bytes: target.size_bytes() };
        unexplained.extend(gaps(whole, has_table, &parts));
    }
    // What only holds other partitions has what these have.
    unexplained.retain(|region| !parts.iter().any(|part| region.holds(*part)));
    let unreadable = |source| Refusal::Unreadable { path: path.into(), source };
    let data_at_bytes = first_data_of(file, &unexplained).map_err(unreadable)?;
    let _ = sys::advise(file.as_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
    Ok(Occupied { signatures, data_at_bytes })
}

fn is_table(found: &Signature) -> bool {
    TABLES.contains(&found.kind.as_str())
}

/// A look into the partitions of a device, and into those that they hold.
struct Look<'a> {
    path: &'a str,
    node: &'a str,
    file: &'a File,
    signatures: Vec<Signature>,
    /// Those that were looked at.
    parts: Vec<Region>,
    /// What no signature explains.
    unexplained: Vec<Region>,
}

impl Look<'_> {
    /// Looks into a partition that has a node.
    fn look_at_node(&mut self, part: Region, node: &str) -> Result<(), Refusal> {
        let found = signatures(self.path, node)?;
        // Of an extended partition the kernel shows its first sectors (block/partitions/msdos.c,
        // parse_extended): it is listed as a whole.
        let is_stub = part.size_bytes <= STUB_BYTES && found.iter().all(is_table);
        if is_stub && !found.is_empty() {
            self.signatures.extend(found);
            return Ok(());
        }
        self.take(part, found, DEPTH_MAX)
    }

    /// Looks into a partition, unless it was looked at.
    fn look_at_part(&mut self, part: Region, depth: u32) -> Result<(), Refusal> {
        if self.parts.contains(&part) {
            return Ok(());
        }
        if self.parts.len() >= PARTS_MAX {
            self.unexplained.push(part);
            return Ok(());
        }
        let found = signatures_at(self.path, self.node, part)?;
        self.take(part, found, depth)
    }

    /// Notes what was `found` in a partition. A table only explains its own partitions: these are
    /// examined, and if there are none, or too deep ones, it explains nothing.
    fn take(&mut self, part: Region, found: Vec<Signature>, depth: u32) -> Result<(), Refusal> {
        self.parts.push(part);
        let only_tables = found.iter().all(is_table);
        let has_table = found.iter().any(is_table);
        self.signatures.extend(found);
        if !has_table {
            self.unexplained.extend(only_tables.then_some(part));
            return Ok(());
        }
        let table = match depth {
            0 => tables::Partitions::default(),
            _ => tables::within(self.file, part),
        };
        for inner in &table.parts {
            self.look_at_part(*inner, depth.saturating_sub(1))?;
        }
        if table.parts.is_empty() && only_tables {
            self.unexplained.push(part);
        } else if only_tables {
            self.unexplained.extend(gaps(part, true, &[table.parts, table.own].concat()));
        }
        Ok(())
    }
}

/// What lies between the parts of `whole`. Where a table says what the parts are, its own place is
/// left out.
fn gaps(whole: Region, has_table: bool, parts: &[Region]) -> Vec<Region> {
    let margin = if has_table && !parts.is_empty() { TABLE_BYTES } else { 0 };
    let (mut at, end) = (whole.start_bytes + margin, whole.end_bytes().saturating_sub(margin));
    let mut parts = parts.to_vec();
    parts.sort_by_key(|part| part.start_bytes);
    let mut gaps = Vec::new();
    for part in parts {
        let until = part.start_bytes.min(end);
        if until > at {
            gaps.push(Region { start_bytes: at, size_bytes: until - at });
        }
        at = at.max(part.end_bytes());
    }
    if end > at {
        gaps.push(Region { start_bytes: at, size_bytes: end - at });
    }
    gaps
}

/// The first place in these regions that counts as data. Regions beyond the most that are examined
/// are unknown.
fn first_data_of(file: &File, regions: &[Region]) -> io::Result<Option<u64>> {
    let mut looked_at = regions.iter().take(REGIONS_MAX);
    let found = looked_at.find_map(|region| first_data(file, *region).transpose()).transpose()?;
    Ok(found.or_else(|| regions.get(REGIONS_MAX).map(|region| region.start_bytes)))
}

/// The first place in `region` with anything but zeros, or ones: erased flash reads as the one or
/// the other.
fn first_data(file: &File, region: Region) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; CHUNK_BYTES as usize];
    let mut blank: Option<u8> = None;
    for Region { start_bytes, size_bytes } in samples(region) {
        let chunk = &mut buffer[..size_bytes as usize];
        file.read_exact_at(chunk, start_bytes)?;
        let expected = *blank.get_or_insert(if chunk[0] == 0xFF { 0xFF } else { 0 });
        if let Some(at) = chunk.iter().position(|&byte| byte != expected) {
            return Ok(Some(start_bytes + at as u64));
        }
    }
    Ok(None)
}

/// The places to look at, none longer than a chunk.
fn samples(region: Region) -> Vec<Region> {
    if region.size_bytes <= WHOLE_BYTES {
        return chunks(region);
    }
    let Region { start_bytes, size_bytes } = region;
    let mut places = chunks(Region { start_bytes, size_bytes: EDGE_BYTES });
    let stride_bytes = (size_bytes - 2 * EDGE_BYTES) / SAMPLES / SECTOR_BYTES * SECTOR_BYTES;
    places.extend((0..SAMPLES).map(|number| Region {
        start_bytes: start_bytes + EDGE_BYTES + number * stride_bytes,
        size_bytes: SAMPLE_BYTES,
    }));
    let last = region.end_bytes() - EDGE_BYTES;
    places.extend(chunks(Region { start_bytes: last, size_bytes: EDGE_BYTES }));
    places
}

fn chunks(region: Region) -> Vec<Region> {
    let starts = (region.start_bytes..region.end_bytes()).step_by(CHUNK_BYTES as usize);
    let chunk = |start_bytes| {
        let size_bytes = CHUNK_BYTES.min(region.end_bytes() - start_bytes);
        Region { start_bytes, size_bytes }
    };
    starts.map(chunk).collect()
}

/// The partitions in the table of `node`, read again: the kernel may know none of them. If there
/// are none, the whole device is examined as if it had no table.
fn listed_partitions(node: &str) -> Vec<Region> {
    let words = ["partx", "--raw", "--noheadings", "--output", "START,SECTORS", node];
    let text = tool::run_words(&words).unwrap_or_default();
    text.lines().filter_map(listed_partition).collect()
}

fn listed_partition(line: &str) -> Option<Region> {
    let mut numbers = line.split_whitespace().map(str::parse::<u64>);
    let (start, sectors) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(Region {
        start_bytes: start.checked_mul(SECTOR_BYTES)?,
        size_bytes: sectors.checked_mul(SECTOR_BYTES)?,
    })
}

#[derive(Deserialize)]
struct Listing {
    signatures: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(rename = "type")]
    kind: String,
    label: Option<String>,
}

/// What `node` carries. wipefs, not blkid: it lists all signatures, also those that contradict
/// each other, where blkid reports an ambivalent device as an empty one.
fn signatures(path: &str, node: &str) -> Result<Vec<Signature>, Refusal> {
    let probe = |source| Refusal::Probe { path: path.into(), source };
    // Without --all it opens the device for reading alone; --no-act says so twice.
    let text = tool::run_words(&["wipefs", "--no-act", "--json", node]).map_err(probe)?;
    parse_signatures(node, &text).ok_or_else(|| Refusal::Answer { path: path.into(), text })
}

pub(super) fn parse_signatures(node: &str, text: &str) -> Option<Vec<Signature>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let listing: Listing = serde_json::from_str(text).ok()?;
    let mut signatures: Vec<Signature> = Vec::new();
    for Found { kind, label } in listing.signatures {
        let signature = Signature { node: node.into(), kind, label };
        // GPT and ZFS lie on the disk more than once.
        if !signatures.contains(&signature) {
            signatures.push(signature);
        }
    }
    // The protective MBR is part of GPT: nobody would think of naming it.
    if signatures.iter().any(|signature| signature.kind == "gpt") {
        signatures.retain(|signature| signature.kind != "PMBR");
    }
    Some(signatures)
}

/// The content of a part of `node` that has no node of its own: wipefs takes no offset.
fn signatures_at(path: &str, node: &str, part: Region) -> Result<Vec<Signature>, Refusal> {
    let (offset, size) = (part.start_bytes.to_string(), part.size_bytes.to_string());
    let words =
        ["blkid", "--probe", "--output", "export", "--offset", &offset, "--size", &size, node];
    let argv: Vec<String> = words.map(String::from).into();
    let probe = |source: ToolError| Refusal::Probe { path: path.into(), source };
    let answer = tool::ask(&argv, Path::new("/"), LIMIT).map_err(probe)?;
    let value = |key: &str| {
        let lines = answer.stdout.lines().filter_map(|line| line.split_once('='));
        lines.clone().find(|(name, _)| *name == key).map(|(_, value)| value.to_string())
    };
    let place = format!("{node} from byte {offset} on");
    let signature = |kind: String, label| Signature { node: place.clone(), kind, label };
    // blkid(8): 2, nothing was found; 8, several that contradict each other.
    match answer.status.code() {
        Some(0) => {
            let kinds = [value("TYPE"), value("PTTYPE")].into_iter().flatten();
            Ok(kinds.map(|kind| signature(kind, value("LABEL"))).collect())
        }
        Some(2) => Ok(Vec::new()),
        Some(8) => Ok(vec![signature("ambivalent".into(), None)]),
        _ => Err(Refusal::Answer { path: path.into(), text: answer.stderr }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn region(start_mib: u64, size_mib: u64) -> Region {
        Region { start_bytes: start_mib * MIB, size_bytes: size_mib * MIB }
    }

    fn data_in(size_mib: u64, writes: &[(u64, u8, usize)]) -> Option<u64> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size_mib * MIB).unwrap();
        for &(at_bytes, byte, count) in writes {
            file.write_all_at(&vec![byte; count], at_bytes).unwrap();
        }
        first_data(&file, region(0, size_mib)).unwrap()
    }

    #[test]
    fn anything_but_zeros_or_ones_throughout_is_data() {
        assert_eq!(data_in(8, &[]), None);
        assert_eq!(data_in(3, &[(0, 0xFF, 3 << 20)]), None);
        assert_eq!(data_in(3, &[(0, 0xFF, 1 << 20)]), Some(MIB), "ones, then zeros");
        assert_eq!(data_in(8, &[(7, 1, 1)]), Some(7));
        assert_eq!(data_in(200, &[(200 * MIB - 1, 1, 1)]), Some(200 * MIB - 1));
        assert!(data_in(200, &[(90 * MIB, 7, 2 << 20)]).is_some());
    }

    #[test]
    fn of_endless_places_the_first_that_is_not_looked_at_counts_as_data() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 * MIB).unwrap();
        let place = |at: usize| Region { start_bytes: at as u64, size_bytes: 512 };
        let mut places: Vec<Region> = (0..REGIONS_MAX).map(place).collect();
        assert_eq!(first_data_of(&file, &places).unwrap(), None);
        places.extend([region(5, 1), region(6, 1)]);
        assert_eq!(first_data_of(&file, &places).unwrap(), Some(5 * MIB));
        file.write_all_at(b"x", 700).unwrap();
        assert_eq!(first_data_of(&file, &places).unwrap(), Some(700));
    }

    #[test]
    fn samples_stay_within_their_region() {
        for size_mib in [1, 63, 64, 65, 1000, 1 << 24] {
            let region = region(3, size_mib);
            let samples = samples(region);
            assert!(samples.iter().all(|it| it.size_bytes <= CHUNK_BYTES));
            assert!(samples.iter().all(|it| region.holds(*it) || *it == region), "{size_mib}");
            assert!(samples.len() < 600, "{size_mib}");
        }
    }

    #[test]
    fn what_no_partition_has_is_looked_at_too() {
        let parts = [region(48, 40), region(1, 40)];
        assert_eq!(gaps(region(0, 96), true, &parts), [region(41, 7), region(88, 7)]);
        assert_eq!(gaps(region(0, 96), false, &[]), [region(0, 96)]);
        assert_eq!(gaps(region(0, 96), true, &[]), [region(0, 96)], "an unreadable table");
        assert_eq!(gaps(region(0, 96), true, &[region(1, 94)]), []);
        assert_eq!(gaps(region(0, 96), true, &[region(1, 1 << 30)]), []);
        assert_eq!(listed_partition("2048 81920"), Some(region(1, 40)));
        assert_eq!(listed_partition("nonsense"), None);
    }
}
