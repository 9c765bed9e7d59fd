//! Programs behind FUSE that stand on another file system: bindfs(1), gocryptfs(1), mergerfs(1).
//!
//! The kernel asks none of them to sync (fs/fuse/inode.c, fuse_sync_fs: virtiofs's alone, since
//! Linux 5.17): syncfs returns once the kernel has passed on what it had cached itself. They write
//! with pwrite(2) and hold nothing back, so syncfs on the file system below does the rest. All
//! three pass on fsync of a file.

use super::options::OF_ALL;
use super::options::only;
use super::site::{shown, then, words};
use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN, Promise, Promises};
use crate::tool::Argv;

/// What the three have in common.
const STACKED: FileSystem = FileSystem {
    driver: Some("fuse"),
    // What it shows lies in a folder, so that lost+found is not part of it.
    make: |_, site| vec![words(&["mkdir", &shown(site)])],
    is_upon: true,
    keeps_syncfs: |_| true,
    kernels: IN_CLOUD_KERNELS,
    ..PLAIN
};

/// A folder, shown again at another place.
pub(super) const BINDFS: FileSystem = FileSystem {
    name: "bindfs",
    program: "bindfs",
    version: &["bindfs", "--version"],
    server: Some(|options, site| {
        let first = words(&["bindfs", "-f"]);
        [first, by_o(options), words(&[&shown(site), site.at])].concat()
    }),
    words: |_, mount| only(&OF_BINDFS, mount),
    ..STACKED
};

/// Contents and names are encrypted.
pub(super) const GOCRYPTFS: FileSystem = FileSystem {
    name: "gocryptfs",
    program: "gocryptfs",
    version: &["gocryptfs", "--version"],
    make: |options, site| {
        // The password is no secret, and costs no time: -scryptn is for people's.
        let first = words(&["gocryptfs", "-init", "-q", "-scryptn", "10"]);
        let init = flags(options, &OF_INIT);
        let last = [password(), words(&[&shown(site)])].concat();
        vec![words(&["mkdir", &shown(site)]), [first, init, last].concat()]
    },
    server: Some(|options, site| {
        let first = words(&["gocryptfs", "-fg", "-allow_other", "-nosyslog"]);
        let kernels: Argv = options.iter().filter(|it| is_kernels(it)).cloned().collect();
        let kernels = match kernels.is_empty() {
            true => Vec::new(),
            false => words(&["-ko", &kernels.join(",")]),
        };
        let last = [password(), words(&[&shown(site), site.at])].concat();
        [first, flags(options, &OF_GOCRYPTFS), kernels, last].concat()
    }),
    // A request between the mount and this may never be answered (2.3, in slow guests).
    server_says: "mounted and ready",
    // It asks for its password, and has itself mounted.
    helpers: &["echo", "fusermount3"],
    words: |_, mount| only(&[&OF_INIT[..], &OF_GOCRYPTFS[..]].concat(), mount),
    promises: Promises {
        // gocryptfs(1): "File contents are encrypted using AES-256-GCM", which authenticates.
        data_checksums: Promise::Yes,
        ..Promises::NONE
    },
    ..STACKED
};

/// Several folders as one; here it is one.
pub(super) const MERGERFS: FileSystem = FileSystem {
    name: "mergerfs",
    program: "mergerfs",
    version: &["mergerfs", "--version"],
    server: Some(|options, site| {
        // Where less is free than minfreespace, 4 GiB, it makes no file.
        let ours = words(&["allow_other", "minfreespace=0"]);
        let options = then(&[], &[&ours, options]);
        let first = words(&["mergerfs", "-f", "-o", &options.join(",")]);
        [first, words(&[&shown(site), site.at])].concat()
    }),
    words: |_, mount| only(&OF_MERGERFS, mount),
    ..STACKED
};

/// Those of bindfs(1), and of FUSE.
const OF_BINDFS: [&str; 10] = [
    "multithreaded",
    "forward-odirect",
    "enable-ioctl",
    "enable-lock-forwarding",
    "xattr-none",
    "attr_timeout",
    "entry_timeout",
    "kernel_cache",
    "auto_cache",
    "max_read",
];

/// Those of gocryptfs(1) for `-init`.
const OF_INIT: [&str; 7] =
    ["aessiv", "xchacha", "plaintextnames", "deterministic-names", "raw64", "longnames", "hkdf"];

/// Those for mounting.
const OF_GOCRYPTFS: [&str; 6] =
    ["openssl", "noprealloc", "sharedstorage", "serialize_reads", "kernel_cache", "acl"];

/// Those of mergerfs(1) that name nothing.
const OF_MERGERFS: [&str; 26] = [
    "async_read",
    "cache.attr",
    "cache.entry",
    "cache.files",
    "cache.negative_entry",
    "cache.open",
    "cache.readdir",
    "cache.statfs",
    "cache.symlinks",
    "cache.writeback",
    "category.action",
    "category.create",
    "category.search",
    "direct_io",
    "dropcacheonclose",
    "ignorepponrename",
    "inodecalc",
    "link_cow",
    "moveonenospc",
    "nullrw",
    "posix_acl",
    "security_capability",
    "statfs",
    "threads",
    "use_ino",
    "xattr",
];

fn by_o(options: &[String]) -> Argv {
    if options.is_empty() { Vec::new() } else { words(&["-o", &options.join(",")]) }
}

fn name(option: &str) -> &str {
    option.split('=').next().unwrap_or_default()
}

fn is_kernels(option: &str) -> bool {
    OF_ALL.contains(&name(option))
}

/// Those of `options` that are `known`, as gocryptfs takes them.
fn flags(options: &[String], known: &[&str]) -> Argv {
    let known = options.iter().filter(|option| known.contains(&name(option)));
    known.map(|option| format!("-{option}")).collect()
}

fn password() -> Argv {
    words(&["-extpass", "echo", "-extpass", "fsverdict"])
}
