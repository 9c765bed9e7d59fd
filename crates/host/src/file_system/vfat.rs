//! VFAT: mkfs.fat(8), Documentation/filesystems/vfat.rst.

use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN};

/// It has no links, owners, modes or journal; no file is larger than 4 GiB, and no two names differ
/// in their case alone.
pub(super) const VFAT: FileSystem = FileSystem {
    name: "vfat",
    program: "mkfs.fat",
    version: &["fatlabel", "--version"],
    // -I: on a whole disk, too. mkfs.fat(8) has no discard.
    make: |options, site| site.make(&["mkfs.fat", "-I"], options),
    // vfat.rst: `discard` is asked for.
    mount: |options, site| site.mount("vfat", &[], options),
    check: Some(|site| site.check(&["fsck.fat", "-n"])),
    kernels: IN_CLOUD_KERNELS,
    label: Some("-n"),
    has_no_overlay: true,
    ..PLAIN
};
