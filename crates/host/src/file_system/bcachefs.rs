//! bcachefs: bcachefs(8).

use super::site::then;
use super::{FileSystem, PLAIN, Promise, Promises, Site};
use crate::tool::Argv;

pub(super) const BCACHEFS: FileSystem = FileSystem {
    name: "bcachefs",
    program: "mkfs.bcachefs",
    version: &["bcachefs", "version"],
    make,
    // bcachefs(8), "Mount commands": all devices, with colons between. Its discard is an option of
    // each device, and off unless it was asked for.
    mount: |options, site| site.mount_source(&site.devices.join(":"), "bcachefs", &[], options),
    // bcachefs(8), "fsck": -n does not repair, -f checks although it is clean.
    check: Some(|site| vec![then(&["bcachefs", "fsck", "-n", "-f"], &[site.devices])]),
    // Linux took it in with 6.7 and out with 6.18. Debian's 6.12 has it, and no release its tools.
    kernels: "--place vm, Debian's full 6.12, tools you build",
    label: Some("-L"),
    promises: Promises {
        // bcachefs(8), "subvolume snapshot".
        snapshots: Promise::Yes,
        // bcachefs(8), --data_checksum and --metadata_checksum: "default: crc32c".
        data_checksums: Promise::Yes,
        metadata_checksums: Promise::Yes,
        // bcachefs(8), --compression: "default: none".
        compression: Promise::Asked,
        // bcachefs(8), "device resize", under managing a running file system.
        online_growth: Promise::Yes,
        // bcachefs(8), --nocow: "Snapshots and reflink will still cause writes to be COW".
        reflink: Promise::Yes,
        // bcachefs(8): "Format one or a list of devices".
        several_devices: Promise::Yes,
    },
    ..PLAIN
};

/// A device's options come before it, so that ours and the user's come before all devices.
fn make(options: &[String], site: &Site) -> Vec<Argv> {
    vec![then(&["mkfs.bcachefs", "-q", "-f"], &[options, site.devices])]
}
