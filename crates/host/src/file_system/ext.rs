//! ext4, ext3 and ext2: mke2fs(8), ext4(5). Today's kernels mount all three by the driver of ext4
//! (fs/ext4/Kconfig, `EXT4_USE_FOR_EXT2`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{FileSystem, PLAIN, Promise, Promises, Site};
use crate::tool::Argv;

pub(super) const EXT4: FileSystem = FileSystem {
    name: "ext4",
    program: "mkfs.ext4",
    version: &["mkfs.ext4", "-V"],
    make: |options, site| make("mkfs.ext4", options, site),
    dry: DRY,
    mount: |options, site| site.mount("ext4", &[], options),
    check: Some(check),
    has_panic,
    label: Some("-L"),
    promises: Promises {
        // metadata_csum, which /etc/mke2fs.conf gives to ext4: ext4(5).
        metadata_checksums: Promise::Yes,
        // resize2fs(8): "used to expand the size of the mounted file system", of ext3 and ext4.
        online_growth: Promise::Yes,
        ..Promises::NONE
    },
    ..PLAIN
};

pub(super) const EXT3: FileSystem = FileSystem {
    name: "ext3",
    program: "mkfs.ext3",
    version: &["mkfs.ext3", "-V"],
    make: |options, site| make("mkfs.ext3", options, site),
    dry: DRY,
    mount: |options, site| site.mount("ext3", &[], options),
    check: Some(check),
    has_panic,
    label: Some("-L"),
    // As ext4; of checksums ext4(5) says "this ext4 feature".
    promises: Promises { online_growth: Promise::Yes, ..Promises::NONE },
    ..PLAIN
};

pub(super) const EXT2: FileSystem = FileSystem {
    name: "ext2",
    program: "mkfs.ext2",
    version: &["mkfs.ext2", "-V"],
    make: |options, site| make("mkfs.ext2", options, site),
    dry: DRY,
    mount: |options, site| site.mount("ext2", &[], options),
    check: Some(check),
    has_panic,
    label: Some("-L"),
    // resize2fs(8) names only ext3 and ext4 for growth while mounted.
    promises: Promises::NONE,
    without: &["a journal"],
    ..PLAIN
};

/// The superblock says what to do about errors: struct ext4_super_block, `s_magic` and `s_errors`.
/// mke2fs writes it there (-e), and mount options count before it.
fn has_panic(device: &Path) -> io::Result<bool> {
    const MAGIC: [u8; 2] = [0x53, 0xEF];
    const ERRORS_PANIC: [u8; 2] = [3, 0];
    let mut fields = [0; 6];
    File::open(device)?.read_exact_at(&mut fields, 1024 + 0x38)?;
    Ok(fields[..2] == MAGIC && fields[4..] == ERRORS_PANIC)
}

/// mke2fs(8): "not actually create a filesystem, but display what it would do".
const DRY: Option<&str> = Some("-n");

/// e2fsck(8): -f although it is clean, -n without changing anything.
fn check(site: &Site) -> Vec<Argv> {
    site.check(&["e2fsck", "-f", "-n"])
}

/// Tables and journal are written by mkfs: the kernel thread that would otherwise write them
/// later does so during the measurement. mke2fs heeds only the last `-E`, so that the user's join
/// ours in one list; within it the last word on an option counts.
fn make(mkfs: &str, users: &[String], site: &Site) -> Vec<Argv> {
    let mut extended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0".to_string();
    let mut others = Vec::new();
    let mut users = users.iter();
    while let Some(option) = users.next() {
        let list = match option.strip_prefix("-E") {
            Some("") => users.next().map_or("", String::as_str),
            Some(list) => list,
            None => {
                others.push(option.clone());
                continue;
            }
        };
        extended = format!("{extended},{list}");
    }
    site.make(&[mkfs, "-q", "-F", "-E", &extended], &others)
}
