//! Btrfs: mkfs.btrfs(8), btrfs(5).

use super::site::then;
use super::{FileSystem, PLAIN, Promise, Promises};

pub(super) const BTRFS: FileSystem = FileSystem {
    name: "btrfs",
    program: "mkfs.btrfs",
    version: &["mkfs.btrfs", "--version"],
    make: |options, site| vec![then(&["mkfs.btrfs", "-q", "-f", "-K"], &[options, site.devices])],
    // Since Linux 6.2 discard=async is the default on devices that can discard, and a loop device
    // can: it would punch holes into the image that the next trial has to allocate again.
    mount: |options, site| site.mount("btrfs", &["nodiscard"], options),
    // btrfs-check(8): it finds the other devices by itself; data is compared with its checksums.
    check: Some(|site| site.check(&["btrfs", "check", "--readonly", "--check-data-csum"])),
    label: Some("-L"),
    // btrfs(5), "ZONED MODE": mkfs takes it by itself on such a disk.
    takes_zones: true,
    promises: Promises {
        // btrfs-subvolume(8), "snapshot".
        snapshots: Promise::Yes,
        // btrfs(5), "CHECKSUM ALGORITHMS": "data and metadata are checksummed by default".
        data_checksums: Promise::Yes,
        metadata_checksums: Promise::Yes,
        // btrfs(5), mount option compress.
        compression: Promise::Asked,
        // btrfs-filesystem(8), "resize": of a mounted file system.
        online_growth: Promise::Yes,
        // btrfs(5); ioctl_ficlone(2).
        reflink: Promise::Yes,
        // mkfs.btrfs(8), "PROFILES".
        several_devices: Promise::Yes,
    },
    ..PLAIN
};
