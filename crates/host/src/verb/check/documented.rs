//! What can't be measured in a second: what file systems say themselves that an option gives up.
//!
//! Flushes, discards and access times are measured (`mounting`); this is for what shows only after
//! a crash, or on a broken disk.

use fsverdict_core::model::{Checked, Judged};

/// File system (the beginning of its name), option, what it gives up, where that stands.
const GIVEN_UP: [(&str, &str, &str, &str); 13] = [
    (
        "ext",
        "data=writeback",
        "after a crash files may hold old data of others: data is not written before its metadata",
        "ext4(5), data=",
    ),
    (
        "ext",
        "journal_data_writeback",
        "after a crash files may hold old data of others: data is not written before its metadata",
        "tune2fs(8), -o",
    ),
    (
        "ext",
        "noauto_da_alloc",
        "a file that a program replaces by writing and renaming may be empty after a crash",
        "ext4(5), noauto_da_alloc",
    ),
    (
        "ext",
        "journal_async_commit",
        "a commit may be on disk before what it commits, against data=ordered",
        "ext4(5), journal_async_commit",
    ),
    (
        "ext",
        "^has_journal",
        "without a journal a crash may leave the file system damaged; it needs a full e2fsck",
        "ext4(5), has_journal",
    ),
    (
        "ext",
        "^metadata_csum",
        "damaged metadata is not noticed when it is read",
        "ext4(5), metadata_csum",
    ),
    (
        "ext",
        "noload",
        "the journal is not replayed: after a crash the file system is inconsistent",
        "ext4(5), norecovery/noload",
    ),
    (
        "xfs",
        "norecovery",
        "the log is not replayed: after a crash the file system is inconsistent",
        "xfs(5), norecovery",
    ),
    ("xfs", "nouuid", "two file systems of one identity may be mixed up", "xfs(5), nouuid"),
    (
        "xfs",
        "crc=0",
        "damaged metadata is not noticed when it is read, and the format is deprecated",
        "mkfs.xfs(8), -m crc=",
    ),
    (
        "btrfs",
        "nodatacow",
        "data has no checksums: damage is not noticed, and mirrors can't tell which copy is right",
        "btrfs(5), datacow",
    ),
    (
        "btrfs",
        "nodatasum",
        "data has no checksums: damage is not noticed, and mirrors can't tell which copy is right",
        "btrfs(5), datasum",
    ),
    (
        "btrfs",
        "usebackuproot",
        "older trees may be used, and what was written since is lost",
        "btrfs(5), usebackuproot",
    ),
];

/// Makes a finding of something that works unsafe where its documentation says it is.
pub fn judge(found: &mut Checked, file_system: &str, option: Option<&str>) {
    let option = option.unwrap_or("");
    let row =
        GIVEN_UP.iter().find(|(kind, name, ..)| file_system.starts_with(kind) && *name == option);
    let Some((_, _, what, source)) = row else { return };
    if found.state == Judged::Ok {
        found.state = Judged::Unsafe;
        found.advice = Some(format!("{what} ({source})"));
    }
}
