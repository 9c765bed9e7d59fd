//! What can't be measured in a second: what file systems say themselves that an option gives up.
//!
//! Flushes, discards and access times are measured (`mounting`); this is for what shows only after
//! a crash, on a broken disk, or in years, and for what can't be tried on this machine.

use fsverdict_core::model::{Checked, Judged};

/// An option that gives something up.
struct Row {
    /// The beginning of the file system's name.
    file_system: &'static str,
    /// The option's values, or the settings with their flags.
    options: &'static [&'static str],
    state: Judged,
    what: &'static str,
    source: &'static str,
}

const fn given_up(
    file_system: &'static str,
    options: &'static [&'static str],
    what: &'static str,
    source: &'static str,
) -> Row {
    Row { file_system, options, state: Judged::Unsafe, what, source }
}

const NOT_REPLAYED: &str =
    "the journal is not replayed: after a crash the file system is inconsistent";
const STALE: &str =
    "after a crash files may hold old data of others: data is not written before its metadata";
const NO_CHECKSUMS: &str =
    "data has no checksums: damage is not noticed, and mirrors can't tell which copy is right";
const NO_FLUSHES: &str = "fsync sends no flush: what it has promised is lost when the power fails";
const METADATA: &str = "damaged metadata is not noticed when it is read";
const YEAR_2038: &str = "it can't hold times after January 2038";

const ROWS: [Row; 25] = [
    given_up("ext", &["data=writeback"], STALE, "ext4(5), data="),
    given_up("ext", &["journal_data_writeback"], STALE, "tune2fs(8), -o"),
    given_up(
        "ext",
        &["noauto_da_alloc"],
        "a file that a program replaces by writing and renaming may be empty after a crash",
        "ext4(5), noauto_da_alloc",
    ),
    given_up(
        "ext",
        &["journal_async_commit"],
        "a commit may be on disk before what it commits, against data=ordered",
        "ext4(5), journal_async_commit",
    ),
    given_up(
        "ext",
        &["^has_journal"],
        "without a journal a crash may leave the file system damaged; it needs a full e2fsck",
        "ext4(5), has_journal",
    ),
    given_up("ext", &["^metadata_csum"], METADATA, "ext4(5), metadata_csum"),
    given_up("ext", &["noload", "norecovery"], NOT_REPLAYED, "ext4(5), norecovery/noload"),
    given_up("ext", &["barrier=0", "nobarrier"], NO_FLUSHES, "ext4(5), barrier"),
    Row {
        file_system: "ext",
        options: &["-I 128", "-I128"],
        state: Judged::Doubtful,
        what: YEAR_2038,
        source: "mke2fs(8), -I",
    },
    given_up("xfs", &["norecovery"], NOT_REPLAYED, "xfs(5), norecovery"),
    given_up(
        "xfs",
        &["nouuid"],
        "two file systems of one identity may be mixed up",
        "xfs(5), nouuid",
    ),
    given_up(
        "xfs",
        &["crc=0"],
        "damaged metadata is not noticed when it is read, and the format is deprecated",
        "mkfs.xfs(8), -m crc=",
    ),
    Row {
        file_system: "xfs",
        options: &["bigtime=0"],
        state: Judged::Doubtful,
        what: YEAR_2038,
        source: "mkfs.xfs(8), -m bigtime=",
    },
    given_up("btrfs", &["nodatacow"], NO_CHECKSUMS, "btrfs(5), datacow"),
    given_up("btrfs", &["nodatasum"], NO_CHECKSUMS, "btrfs(5), datasum"),
    given_up("btrfs", &["nobarrier"], NO_FLUSHES, "btrfs(5), barrier"),
    given_up(
        "btrfs",
        &["usebackuproot", "rescue=usebackuproot"],
        "older trees may be used, and what was written since is lost",
        "btrfs(5), usebackuproot",
    ),
    given_up("btrfs", &["nologreplay", "rescue=nologreplay"], NOT_REPLAYED, "btrfs(5), rescue"),
    given_up(
        "btrfs",
        &["raid5", "raid6"],
        "a crash while a stripe is written may leave a parity that no longer mends it",
        "btrfs(5), raid56 status and recommended practices",
    ),
    given_up(
        "f2fs",
        &["nobarrier", "fsync_mode=nobarrier"],
        NO_FLUSHES,
        "kernel, filesystems/f2fs",
    ),
    given_up(
        "f2fs",
        &["norecovery", "disable_roll_forward"],
        NOT_REPLAYED,
        "kernel, filesystems/f2fs",
    ),
    given_up("nilfs2", &["norecovery"], NOT_REPLAYED, "kernel, filesystems/nilfs2"),
    given_up("nilfs2", &["nobarrier"], NO_FLUSHES, "kernel, filesystems/nilfs2"),
    given_up(
        "zfs",
        &["sync=disabled"],
        "fsync returns before anything is written: the last seconds are lost in a crash",
        "zfsprops(7), sync",
    ),
    given_up("zfs", &["checksum=off", "checksum=noparity"], NO_CHECKSUMS, "zfsprops(7), checksum"),
];

/// How often a journal is written without `commit=`, in seconds: ext4(5), btrfs(5).
const COMMITS: [(&str, u64); 2] = [("ext", 5), ("btrfs", 30)];

/// Makes a finding of something that works, or that can't be tried here, what its documentation
/// says it is.
pub fn judge(found: &mut Checked, file_system: &str, option: Option<&str>) {
    if !matches!(found.state, Judged::Ok | Judged::Doubtful | Judged::NotTried) {
        return;
    }
    let option = option.unwrap_or("");
    let is_it = |row: &&Row| {
        file_system.starts_with(row.file_system)
            && row.options.iter().any(|name| *name == option || *name == found.setting)
    };
    if let Some(row) = ROWS.iter().find(is_it) {
        found.state = row.state;
        found.advice = Some(format!("{} ({})", row.what, row.source));
    }
    let seconds = option.strip_prefix("commit=").and_then(|text| text.parse::<u64>().ok());
    let row = COMMITS.iter().find(|(kind, _)| file_system.starts_with(kind));
    if let (Some(seconds), Some((_, usual))) = (seconds, row)
        && seconds > *usual
    {
        found.state = Judged::Doubtful;
        found.advice = Some(format!(
            "what was written in the last {seconds} seconds and not synced is lost in a crash: \
             {usual} without it ({file_system}(5), commit)"
        ));
    }
}

/// What the documentation says of features that are there no longer, whichever option took them.
pub fn judge_lost(found: &mut Checked, file_system: &str, lost: &[String]) {
    for feature in lost {
        judge(found, file_system, Some(&format!("^{feature}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::check::blank;

    fn state(file_system: &str, setting: &str, option: &str, state: Judged) -> Judged {
        let mut found = Checked { setting: setting.into(), state, ..blank(1, "") };
        judge(&mut found, file_system, Some(option));
        found.state
    }

    #[test]
    fn what_is_given_up_is_told_of_what_works_and_of_what_could_not_be_tried() {
        use Judged::{Doubtful, Invalid, NotTried, Ok, Unsafe};
        for (file_system, setting, before, after) in [
            ("ext4", "norecovery", Ok, Unsafe),
            ("ext4", "barrier=0", NotTried, Unsafe),
            ("btrfs", "raid6", Ok, Unsafe),
            ("btrfs", "raid5", Doubtful, Unsafe),
            ("zfs", "sync=disabled", NotTried, Unsafe),
            ("zfs", "sync=always", NotTried, NotTried),
            ("ext4", "-I 128", Ok, Doubtful),
            ("ext4", "-I 256", Ok, Ok),
            ("ext4", "commit=5", Ok, Ok),
            ("ext4", "commit=60", Ok, Doubtful),
            ("btrfs", "commit=30", Ok, Ok),
            ("xfs", "crc=0", Invalid, Invalid),
        ] {
            assert_eq!(state(file_system, setting, setting, before), after, "{setting}");
        }
    }
}
