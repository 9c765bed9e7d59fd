//! What a commit puts into the journal: descriptors with the blocks that they name, a flush, the
//! commit, and a flush, for a disk that has no FUA (fs/jbd2/commit.c,
//! `jbd2_journal_commit_transaction`, `journal_submit_commit_record`), since Linux 2.6.37 removed
//! barriers.

use super::request::{flush, write};
use super::version::Version;
use super::{INODE_BYTES, Modelled};
use crate::model::FsyncCase;
use crate::model::trace::{Entry, Part};

/// ext4 has no checksums of metadata before (a9c473178054, "ext4: calculate and verify superblock
/// checksum").
const CHECKSUMS: Version = Version::new(3, 5, 0);
/// Their third version (db9ee220361d, "jbd2: fix descriptor block size handling errors with
/// journal_csum").
const CHECKSUMS_3: Version = Version::new(3, 17, 0);

/// Bytes of a block's header, of the journal's name behind the first tag, and of a checksum at the
/// end (include/linux/jbd2.h, `journal_header_t`, `j_uuid`, `jbd2_journal_block_tail`).
const HEADER_BYTES: u64 = 12;
const UUID_BYTES: u64 = 16;
const TAIL_BYTES: u64 = 4;

/// The commit that an fsync waits for.
pub fn entries(modelled: &Modelled, files: &[u64]) -> Vec<Entry> {
    let mut entries = journal(modelled, &changed(modelled, files));
    let commit = write(vec![modelled.journal("journal commit", 1)]);
    entries.extend([flush(), commit, flush()]);
    entries
}

/// The blocks of metadata that the writes have changed, by what they are: for each file at least
/// its times. A new block takes a bit in a bitmap and changes a number in its group's descriptor.
/// With delayed allocation only the synced file has one.
fn changed(modelled: &Modelled, files: &[u64]) -> Vec<(&'static str, u64)> {
    let each = modelled.options.block_bytes / INODE_BYTES;
    let [first, last] = [files.first(), files.last()].map(|it| it.map_or(0, |it| it / each));
    let mut changed = vec![("journal copy: inodes", last - first + 1)];
    if modelled.case == FsyncCase::Allocating {
        changed.extend([("journal copy: block bitmap", 1)]);
        changed.extend([("journal copy: group descriptors", 1)]);
    }
    changed
}

/// A request for each descriptor, with the blocks that it names behind it.
fn journal(modelled: &Modelled, changed: &[(&'static str, u64)]) -> Vec<Entry> {
    let most = tags_max(modelled);
    let mut entries = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    let mut room = 0;
    for (what, count) in changed {
        let mut left = *count;
        while left > 0 {
            if room == 0 {
                entries.extend((!parts.is_empty()).then(|| write(std::mem::take(&mut parts))));
                parts.push(modelled.journal("journal descriptor", 1));
                room = most;
            }
            let taken = left.min(room);
            parts.push(modelled.journal(what, taken));
            (left, room) = (left - taken, room - taken);
        }
    }
    entries.push(write(parts));
    entries
}

/// How many blocks a descriptor names: until there is no room for a tag, a name and a checksum.
fn tags_max(modelled: &Modelled) -> u64 {
    let has_checksums = modelled.options.has_checksums && modelled.version >= CHECKSUMS;
    // `journal_tag_bytes`.
    let high = if modelled.options.has_64_bits { 4 } else { 0 };
    let (tag, tail) = match has_checksums {
        false => (8 + high, 0),
        true if modelled.version < CHECKSUMS_3 => (10 + high, TAIL_BYTES),
        true => (16, TAIL_BYTES),
    };
    let room = modelled.options.block_bytes - HEADER_BYTES - UUID_BYTES;
    (room - (tag + UUID_BYTES + tail)) / tag + 1
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;
    use crate::model::Bytes;

    #[test]
    fn a_descriptor_names_as_many_blocks_as_it_has_room_for() {
        let most = |version: &str, mkfs: &str| {
            tags_max(&Modelled {
                version: version.parse().unwrap(),
                options: Options::of("", mkfs).unwrap(),
                case: FsyncCase::Allocating,
                files: 1,
                size: Bytes(2048),
            })
        };
        assert_eq!([most("6.18", ""), most("6.18", "-b 1024")], [253, 61]);
        let all = |mkfs: &str| [most("3.16", mkfs), most("3.4", mkfs)];
        assert_eq!([all(""), all("-O ^64bit")], [[289, 337], [404, 506]]);
        let without = ["-O ^metadata_csum", "-O ^metadata_csum,^64bit"];
        assert_eq!(without.map(|mkfs| most("6.18", mkfs)), [337, 506]);
    }
}
