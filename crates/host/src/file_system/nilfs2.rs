//! NILFS2: mkfs.nilfs2(8), nilfs(8), Documentation/filesystems/nilfs2.rst.

use super::{FileSystem, IN_FULL_KERNELS, PLAIN, Promise, Promises};

/// mount.nilfs2(8) starts a cleaner, a process that belongs to the file system and not to the work.
pub(super) const NILFS2: FileSystem = FileSystem {
    name: "nilfs2",
    program: "mkfs.nilfs2",
    version: &["mkfs.nilfs2", "-V"],
    make: |options, site| site.make(&["mkfs.nilfs2", "-q", "-f", "-K"], options),
    // nilfs2.rst: nodiscard is the default.
    mount: |options, site| site.mount("nilfs2", &[], options),
    // mount.nilfs2(8).
    helpers: &["nilfs_cleanerd"],
    // nilfs-utils has no fsck.
    check: None,
    kernels: IN_FULL_KERNELS,
    label: Some("-L"),
    promises: Promises {
        // nilfs(8): "versioning capability of an entire file system and continuous snapshotting".
        snapshots: Promise::Yes,
        // nilfs-resize(8): of a mounted file system.
        online_growth: Promise::Yes,
        // nilfs2.rst promises no checksums: those of its log are for recovery.
        ..Promises::NONE
    },
    ..PLAIN
};
