//! XFS: mkfs.xfs(8), xfs(5).

use super::{FileSystem, PLAIN, Promise, Promises};

pub(super) const XFS: FileSystem = FileSystem {
    name: "xfs",
    program: "mkfs.xfs",
    version: &["mkfs.xfs", "-V"],
    make: |options, site| site.make(&["mkfs.xfs", "-q", "-f", "-K"], options),
    // mkfs.xfs(8): "print out the file system parameters without really creating".
    dry: Some("-N"),
    mount: |options, site| site.mount("xfs", &[], options),
    // xfs_repair(8): -n is "no modify".
    check: Some(|site| site.check(&["xfs_repair", "-n"])),
    label: Some("-L"),
    promises: Promises {
        // mkfs.xfs(8), -m crc: "checks of all metadata", on by default.
        metadata_checksums: Promise::Yes,
        // xfs_growfs(8): "The filesystem must be mounted to be grown".
        online_growth: Promise::Yes,
        // mkfs.xfs(8), -m reflink: on by default.
        reflink: Promise::Yes,
        // Its log and its real-time section may lie on devices of their own (xfs(5)); data that
        // is not real-time has one.
        several_devices: Promise::No,
        ..Promises::NONE
    },
    ..PLAIN
};
