//! VFAT: mkfs.fat(8), Documentation/filesystems/vfat.rst.

use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN};

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
    without: &[
        "a journal",
        "links",
        "owners",
        "modes",
        "names that differ in case alone",
        "files over 4 GiB",
    ],
    ..PLAIN
};
