//! F2FS: mkfs.f2fs(8), Documentation/filesystems/f2fs.rst.

use super::site::then;
use super::{FileSystem, IN_FULL_KERNELS, PLAIN, Promise, Promises, Site};
use crate::tool::Argv;

pub(super) const F2FS: FileSystem = FileSystem {
    name: "f2fs",
    program: "mkfs.f2fs",
    version: &["mkfs.f2fs", "-V"],
    make,
    // f2fs.rst: with discard, the default, it discards whenever a segment was cleaned.
    // On zoned disks that is how zones are reset, and nodiscard is refused (super.c).
    mount: |options, site| {
        let ours = if site.zoned { &[][..] } else { &["nodiscard"] };
        site.mount("f2fs", ours, options)
    },
    // fsck.f2fs: --dry-run, which its usage has and its man page has not.
    check: Some(|site| site.check(&["fsck.f2fs", "--dry-run"])),
    kernels: IN_FULL_KERNELS,
    label: Some("-l"),
    takes_zones: true,
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

/// -t 0: no discard. -m: zoned, which is not to be had without (mkfs/f2fs_format_main.c). The first
/// device is the one with the metadata, the others come by -c.
fn make(options: &[String], site: &Site) -> Vec<Argv> {
    let others = site.devices[1..].iter().flat_map(|device| ["-c".to_string(), device.clone()]);
    let others: Argv = others.collect();
    let ours: &[&str] = if site.zoned { &["-m"] } else { &["-t", "0"] };
    let begin = [&["mkfs.f2fs", "-q", "-f"], ours].concat();
    vec![then(&begin, &[&others, options, &site.devices[..1]])]
}
