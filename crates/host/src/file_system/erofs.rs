//! EROFS and SquashFS, which are read only: mkfs.erofs(1), mksquashfs(1),
//! Documentation/filesystems/erofs.rst and squashfs.rst.
//!
//! What the work finds is laid out in memory, and made into the file system when that is unmounted
//! the first time.

use super::{Argv, FileSystem, IN_CLOUD_KERNELS, PLAIN, Promise, Promises, Site, then, words};

pub(super) const EROFS: FileSystem = FileSystem {
    name: "erofs",
    program: "mkfs.erofs",
    version: &["mkfs.erofs", "--version"],
    of_tree: Some(|options, site| {
        then(&["mkfs.erofs", "--quiet"], &[options, &site.devices[..1], &words(&[site.at])])
    }),
    mount: |options, site| mount("erofs", options, site),
    check: Some(|site| site.check(&["fsck.erofs"])),
    kernels: IN_CLOUD_KERNELS,
    words: |mkfs, mount| check_words(&["-z", "-C", "-E", "-x", "-T", "--chunksize="], mkfs, mount),
    promises: Promises {
        // mkfs.erofs(1), -z.
        compression: Promise::Asked,
        ..Promises::NONE
    },
    ..PLAIN
};

pub(super) const SQUASHFS: FileSystem = FileSystem {
    name: "squashfs",
    program: "mksquashfs",
    version: &["mksquashfs", "-version"],
    of_tree: Some(|options, site| {
        let quiet = words(&["-noappend", "-quiet", "-no-progress"]);
        then(&["mksquashfs", site.at, &site.devices[0]], &[&quiet, options])
    }),
    mount: |options, site| mount("squashfs", options, site),
    kernels: IN_CLOUD_KERNELS,
    words: |mkfs, mount| check_words(&OF_SQUASHFS, mkfs, mount),
    promises: Promises {
        // squashfs.rst: "Data, inodes and directories are compressed".
        compression: Promise::Yes,
        ..Promises::NONE
    },
    ..PLAIN
};

/// Those of mksquashfs(1) that name no file: -p has a command run.
const OF_SQUASHFS: [&str; 12] = [
    "-comp",
    "-b",
    "-X",
    "-noI",
    "-noD",
    "-noF",
    "-noX",
    "-no-compression",
    "-no-fragments",
    "-no-duplicates",
    "-no-xattrs",
    "-processors",
];

/// Memory at first, and then what was made of it.
fn mount(kind: &str, options: &[String], site: &Site) -> Vec<Argv> {
    match site.again {
        true => site.mount(kind, &["ro"], options),
        false => vec![words(&["mount", "-t", "tmpfs", "-o", "mode=0755", "fsverdict", site.at])],
    }
}

/// The tool runs where the tree is, and not among the bed's devices alone: so it gets known words,
/// and values that are no paths.
fn check_words(known: &[&str], mkfs: &[String], mount: &[String]) -> Result<(), String> {
    let is_known = |word: &&String| {
        let is_option = known.iter().any(|it| word.starts_with(it));
        !word.contains('/') && (is_option || !word.starts_with('-'))
    };
    if let Some(word) = mkfs.iter().find(|word| !is_known(word)) {
        return Err(format!("it takes no {word} here, but {}", known.join(", ")));
    }
    super::name_no_device(mount)
}
