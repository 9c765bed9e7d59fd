//! F2FS: mkfs.f2fs(8), Documentation/filesystems/f2fs.rst.

use super::{Argv, FileSystem, IN_FULL_KERNELS, PLAIN, Promise, Promises, Site, then};

pub(super) const F2FS: FileSystem = FileSystem {
    name: "f2fs",
    program: "mkfs.f2fs",
    version: &["mkfs.f2fs", "-V"],
    make,
    // f2fs.rst: with discard, the default, it discards whenever a segment was cleaned.
    mount: |options, site| site.mount("f2fs", &["nodiscard"], options),
    // fsck.f2fs: --dry-run, which its usage has and its man page has not.
    check: Some(|site| site.check(&["fsck.f2fs", "--dry-run"])),
    kernels: IN_FULL_KERNELS,
    label: Some("-l"),
    promises: Promises {
        // mkfs.f2fs(8), -O inode_checksum and sb_checksum.
        metadata_checksums: Promise::Asked,
        // mkfs.f2fs(8), -O compression; f2fs.rst, "Compression implementation".
        compression: Promise::Asked,
        // resize.f2fs(8) works on what is not mounted.
        online_growth: Promise::No,
        // mkfs.f2fs(8), -c: "so that the user can see all the devices as one big volume".
        several_devices: Promise::Yes,
        ..Promises::NONE
    },
    ..PLAIN
};

/// -t 0: no discard. The first device is the one with the metadata, the others come by -c.
fn make(options: &[String], site: &Site) -> Vec<Argv> {
    let others = site.devices[1..].iter().flat_map(|device| ["-c".to_string(), device.clone()]);
    let others: Argv = others.collect();
    vec![then(&["mkfs.f2fs", "-q", "-f", "-t", "0"], &[&others, options, &site.devices[..1]])]
}
