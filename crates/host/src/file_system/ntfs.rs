//! NTFS by drivers of the kernel and by a program: mkntfs(8), ntfsfix(8), ntfs-3g(8),
//! Documentation/filesystems/ntfs3.rst and ntfs.rst.

use super::options::only;
use super::site::{then, words};
use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN, Promise, Promises};

/// Paragon's, from Linux 5.15 on. A journal that Windows has left is replayed; it keeps none of its
/// own (ntfs3.rst, Todo list).
pub(super) const NTFS3: FileSystem = FileSystem {
    name: "ntfs3",
    program: "mkntfs",
    version: &["mkntfs", "--version"],
    // Quick leaves the device's blocks as they are; without it all of them are written and read.
    // Forced, because some whole disks are refused otherwise.
    make: |options, site| site.make(&["mkntfs", "--quiet", "--force", "--quick"], options),
    dry: Some("--no-action"),
    // ntfs_fs_parameters: `discard` is asked for.
    mount: |options, site| site.mount("ntfs3", &[], options),
    check: Some(|site| site.check(&["ntfsfix", "--no-action"])),
    kernels: "--place vm, Debian's 6.12",
    label: Some("--label"),
    without: &["a journal"],
    ..PLAIN
};

/// The one that writes from Linux 7.1 on; until 6.8 one of this name could only read.
pub(super) const NTFS: FileSystem = FileSystem {
    name: "ntfs",
    mount: |options, site| site.mount("ntfs", &[], options),
    kernels: "--place vm, Debian's 7.2",
    ..NTFS3
};

/// By a program behind FUSE, which Debian and others mounted NTFS with before ntfs3.
pub(super) const NTFS_3G: FileSystem = FileSystem {
    name: "ntfs-3g",
    program: "ntfs-3g",
    version: &["ntfs-3g", "--version"],
    driver: Some("fuseblk"),
    mount: |_, _| Vec::new(),
    server: Some(|options, site| {
        let options = then(&["no_detach"], &[options]).join(",");
        then(&["ntfs-3g", "-o", &options], &[&site.devices[..1], &words(&[site.at])])
    }),
    // The kernel asks no FUSE server but virtiofs's to sync (fs/fuse/inode.c, fuse_sync_fs). For
    // this one syncfs writes out what the kernel caches of the device (fs/sync.c, sync_filesystem),
    // and flushes nothing.
    keeps_syncfs: |_| true,
    kernels: IN_CLOUD_KERNELS,
    words: |_, mount| only(&OPTIONS, mount),
    promises: Promises {
        // ntfs-3g(8), compression: of folders that are marked so.
        compression: Promise::Asked,
        ..Promises::NONE
    },
    ..NTFS3
};

/// Those of ntfs-3g(8) that say how it works and name nothing.
const OPTIONS: [&str; 14] = [
    "acl",
    "atime",
    "big_writes",
    "compression",
    "delay_mtime",
    "efs_raw",
    "hide_dot_files",
    "ignore_case",
    "inherit",
    "nocompression",
    "norecover",
    "permissions",
    "streams_interface",
    "windows_names",
];
