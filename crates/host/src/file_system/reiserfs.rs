//! ReiserFS: mkreiserfs(8), fs/reiserfs/super.c. Linux had it up to 6.12.

use super::{FileSystem, IN_FULL_KERNELS, PLAIN, Promise, Promises};

pub(super) const REISERFS: FileSystem = FileSystem {
    name: "reiserfs",
    program: "mkreiserfs",
    version: &["mkreiserfs", "-V"],
    // -f once: it does not ask, and takes a whole disk. mkreiserfs(8) has no discard.
    make: |options, site| site.make(&["mkreiserfs", "-q", "-f"], options),
    mount: |options, site| site.mount("reiserfs", &[], options),
    // reiserfsck(8): --check changes nothing, -y answers what it asks.
    check: Some(|site| site.check(&["reiserfsck", "-y", "-q", "--check"])),
    kernels: IN_FULL_KERNELS,
    label: Some("-l"),
    // resize_reiserfs(8): "the file system may be mounted" while it grows.
    promises: Promises { online_growth: Promise::Yes, ..Promises::NONE },
    ..PLAIN
};
