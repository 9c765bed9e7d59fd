//! OCFS2: mkfs.ocfs2(8), ocfs2(7), Documentation/filesystems/ocfs2.rst.

use super::{FileSystem, IN_FULL_KERNELS, PLAIN, Promise, Promises};

/// For one machine: `-M local`, without a cluster.
pub(super) const OCFS2: FileSystem = FileSystem {
    name: "ocfs2",
    program: "mkfs.ocfs2",
    version: &["mkfs.ocfs2", "-V"],
    // -x: does not ask, also where there is one already.
    make: |options, site| {
        let ours = ["mkfs.ocfs2", "-q", "-F", "-x", "-M", "local", "--nodiscard"];
        site.make(&ours, options)
    },
    // Without any option there is no heartbeat; with others it has to be said (fs/ocfs2/super.c,
    // ocfs2_parse_options: "Invalid heartbeat mount options").
    mount: |options, site| site.mount("ocfs2", &["heartbeat=none"], options),
    check: Some(|site| site.check(&["fsck.ocfs2", "-f", "-n"])),
    kernels: IN_FULL_KERNELS,
    label: Some("-L"),
    promises: Promises {
        // mkfs.ocfs2(8), --fs-features: `metaecc`, which is not among the default ones.
        metadata_checksums: Promise::Asked,
        // tunefs.ocfs2(8), -S: "online".
        online_growth: Promise::Yes,
        // ocfs2(7), "REFLINK": `refcount` is among the default features.
        reflink: Promise::Yes,
        ..Promises::NONE
    },
    // It looks names up again at each use (d_revalidate), which no upper layer may do
    // (fs/overlayfs/super.c, "not supported as upperdir").
    has_no_overlay: true,
    ..PLAIN
};
