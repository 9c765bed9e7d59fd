//! GFS2: mkfs.gfs2(8), gfs2(5), Documentation/filesystems/gfs2.rst.

use super::{FileSystem, IN_FULL_KERNELS, PLAIN, Promise, Promises};

/// For one machine: without the locks of a cluster.
pub(super) const GFS2: FileSystem = FileSystem {
    name: "gfs2",
    program: "mkfs.gfs2",
    version: &["mkfs.gfs2", "-V"],
    // mkfs.gfs2(8): -O does not ask, -K keeps it from discarding.
    make: |options, site| site.make(&["mkfs.gfs2", "-q", "-O", "-K", "-p", "lock_nolock"], options),
    // gfs2(5): `discard` is asked for.
    mount: |options, site| site.mount("gfs2", &[], options),
    check: Some(|site| site.check(&["fsck.gfs2", "-n"])),
    kernels: IN_FULL_KERNELS,
    // CLUSTER:NAME; the second is the label.
    label: Some("-t"),
    promises: Promises {
        // gfs2_grow(8): of a mounted file system.
        online_growth: Promise::Yes,
        // mkfs.gfs2(8) promises no checksums but those of its log.
        ..Promises::NONE
    },
    // It looks names up again at each use (d_revalidate), which no upper layer may do
    // (fs/overlayfs/super.c, "not supported as upperdir").
    has_no_overlay: true,
    ..PLAIN
};
