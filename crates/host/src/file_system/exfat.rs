//! exFAT: mkfs.exfat(8), fs/exfat/super.c.

use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN};

pub(super) const EXFAT: FileSystem = FileSystem {
    name: "exfat",
    program: "mkfs.exfat",
    version: &["mkfs.exfat", "-V"],
    // It discards nothing, so none is to be switched off.
    make: |options, site| site.make(&["mkfs.exfat"], options),
    // exfat_parameters: `discard` is asked for.
    mount: |options, site| site.mount("exfat", &[], options),
    check: Some(|site| site.check(&["fsck.exfat", "-n"])),
    kernels: IN_CLOUD_KERNELS,
    label: Some("-L"),
    has_no_overlay: true,
    without: &["a journal", "links", "owners", "modes", "names that differ in case alone"],
    ..PLAIN
};
