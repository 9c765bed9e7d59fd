//! JFS: jfs_mkfs(8), Documentation/admin-guide/jfs.rst.

use super::{FileSystem, IN_FULL_KERNELS, PLAIN, Promise, Promises};

pub(super) const JFS: FileSystem = FileSystem {
    name: "jfs",
    program: "mkfs.jfs",
    version: &["mkfs.jfs", "-V"],
    // -q: does not ask first. It never discards, so there is no option to switch that off.
    make: |options, site| site.make(&["mkfs.jfs", "-q"], options),
    // jfs.rst: nodiscard is the default.
    mount: |options, site| site.mount("jfs", &[], options),
    // jfs_fsck(8): -n reads only, -f checks although it is clean.
    check: Some(|site| site.check(&["fsck.jfs", "-f", "-n"])),
    kernels: IN_FULL_KERNELS,
    label: Some("-L"),
    // jfs.rst: `resize`, with a remount of what is mounted read-write.
    promises: Promises { online_growth: Promise::Yes, ..Promises::NONE },
    ..PLAIN
};
