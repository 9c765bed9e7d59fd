//! EROFS and SquashFS, which are read only: mkfs.erofs(1), mksquashfs(1),
//! Documentation/filesystems/erofs.rst and squashfs.rst.
//!
//! The files that the work finds are laid out in memory, and made into the file system when that is
//! unmounted the first time.

use super::site::{then, words};
use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN, Promise, Promises, Site};
use crate::tool::Argv;

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
    words: |mkfs, mount| check_words(&OF_EROFS, mkfs, mount),
    promises: Promises {
        // mkfs.erofs(1), -z.
        compression: Promise::Asked,
        ..Promises::NONE
    },
    without: &["writing"],
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
    without: &["writing"],
    ..PLAIN
};

/// Those of mkfs.erofs(1) that name no file, and whether their value is the next word.
const OF_EROFS: [(&str, bool); 6] =
    [("-z", true), ("-C", true), ("-E", true), ("-x", true), ("-T", true), ("--chunksize=", false)];

/// Those of mksquashfs(1): -p has a command run.
const OF_SQUASHFS: [(&str, bool); 12] = [
    ("-comp", true),
    ("-b", true),
    ("-X", true),
    ("-noI", false),
    ("-noD", false),
    ("-noF", false),
    ("-noX", false),
    ("-no-compression", false),
    ("-no-fragments", false),
    ("-no-duplicates", false),
    ("-no-xattrs", false),
    ("-processors", true),
];

/// Memory at first, and then what was made of it.
fn mount(kind: &str, options: &[String], site: &Site) -> Vec<Argv> {
    match site.again {
        true => site.mount(kind, &["ro"], options),
        false => vec![words(&["mount", "-t", "tmpfs", "-o", "mode=0755", "fsverdict", site.at])],
    }
}

/// The tool runs where the tree is, and not among the bed's devices alone: so it gets known words,
/// and values that are no paths. A word that is no option's value would be the file to write to, or
/// another tree.
fn check_words(known: &[(&str, bool)], mkfs: &[String], mount: &[String]) -> Result<(), String> {
    let option = |word: &str| known.iter().find(|(it, _)| word.starts_with(it));
    // `-zlz4` has its value already; mksquashfs's -Xbcj takes the next word.
    let takes_next =
        |word: &str| option(word).is_some_and(|(it, takes)| *takes && (word == *it || *it == "-X"));
    let mut before = "";
    for word in mkfs {
        let is_value = takes_next(before) && !word.starts_with('-');
        if word.contains('/') || !(is_value || option(word).is_some()) {
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(format!("it takes no {word} here, but {}", known.join(", ")));
        }
        before = if is_value { "" } else { word };
    }
    super::check_options(mount)
}
