//! NTFS by drivers of the kernel: mkntfs(8), ntfsfix(8), Documentation/filesystems/ntfs3.rst and
//! ntfs.rst.

use super::{FileSystem, PLAIN};

/// Paragon's, from Linux 5.15 on. A journal that Windows has left is replayed; it keeps none of its
/// own (ntfs3.rst, Todo list).
pub(super) const NTFS3: FileSystem = FileSystem {
    name: "ntfs3",
    program: "mkntfs",
    version: &["mkntfs", "--version"],
    // Quick leaves the device's blocks as they are; without it all of them are written and read.
    // Forced, for some whole disks are refused otherwise.
    make: |options, site| site.make(&["mkntfs", "--quiet", "--force", "--quick"], options),
    dry: Some("--no-action"),
    // ntfs_fs_parameters: `discard` is asked for.
    mount: |options, site| site.mount("ntfs3", &[], options),
    check: Some(|site| site.check(&["ntfsfix", "--no-action"])),
    kernels: "--place vm, Debian's 6.12",
    label: Some("--label"),
    ..PLAIN
};

/// The one that writes from Linux 7.1 on; until 6.8 one of this name could only read.
pub(super) const NTFS: FileSystem = FileSystem {
    name: "ntfs",
    mount: |options, site| site.mount("ntfs", &[], options),
    kernels: "--place vm, Debian's 7.2",
    ..NTFS3
};
