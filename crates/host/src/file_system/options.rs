//! Options of mounts and words for mkfs, and which of them are refused.

use std::fs;
use std::path::Path;

/// Mount options that make the kernel, or mount(8) itself, open another device or file than the one
/// that is mounted: ext4(5), xfs(5), btrfs(5), reiserfs_parse_options (fs/reiserfs/super.c), "THE
/// LOOP DEVICE" of mount(8).
const NAMING: [&str; 7] =
    ["journal_path", "journal_dev", "logdev", "rtdev", "device", "jdev", "loop"];

/// Mount options that are for mount(8) and other programs, and not for the file system: the
/// kernel never hears of them (mount(8), "filesystem-independent" and "THE LOOP DEVICE").
const OF_PROGRAMS: [&str; 10] = [
    "offset",
    "sizelimit",
    "encryption",
    "helper",
    "uhelper",
    "bind",
    "rbind",
    "move",
    "remount",
    "comment",
];

/// And all of these kinds. `X-mount.subdir=` mounts a folder that may lie anywhere,
/// `X-mount.owner=` and `X-mount.mode=` change its owner and mode, `verity.` opens files.
const KINDS_OF_PROGRAMS: [&str; 2] = ["x-", "verity."];

/// Whether mount options name nothing but the device that is mounted.
pub fn check_options(mount: &[String]) -> Result<(), String> {
    for option in each(mount) {
        let key = option.split('=').next().unwrap_or_default().trim().to_lowercase();
        if NAMING.contains(&&*key) {
            return Err(format!(
                "mount option {option} has the kernel open another device than those of its bed: \
                 leave it out"
            ));
        }
        let is_of_kind = KINDS_OF_PROGRAMS.iter().any(|kind| key.starts_with(kind));
        if is_of_kind || OF_PROGRAMS.contains(&&*key) {
            return Err(format!(
                "mount option {option} is for mount(8), and the file system never hears of it: \
                 leave it out"
            ));
        }
    }
    Ok(())
}

/// Mount options that make the machine panic if the file system finds an error, for all its users:
/// ext4(5), "errors"; the same for FAT, exFAT, F2FS, JFS, NILFS2, GFS2, OCFS2, SquashFS, ReiserFS
/// and bcachefs; of Btrfs fs/btrfs/super.c, Opt_fatal_errors; of ZFS zpoolprops(7), "failmode".
const PANICS: [&str; 3] = ["errors", "fatal_errors", "failmode"];
const PANIC: &str = "panic";
/// The one that does so by itself: of GFS2 fs/gfs2/util.c, `gfs2_lm`: BUG() where `ar_debug`.
const DEBUG_OF_GFS2: &str = "debug";

/// The option of `mount`, or the word for mkfs, by which `file_system` would have the machine
/// panic. mkfs of ext4 takes its own in more ways than one: what it made is examined
/// ([`has_panic`](super::FileSystem::has_panic)).
pub fn panics<'a>(file_system: &str, mkfs: &'a [String], mount: &'a [String]) -> Option<&'a str> {
    let is_so = |option: &&str| {
        let set = option.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let is_set = set.is_some_and(|(key, value)| PANICS.contains(&key) && value == PANIC);
        is_set || file_system == "gfs2" && option.trim() == DEBUG_OF_GFS2
    };
    let is_word =
        |word: &&str| *word == PANIC || word.split_once('=').is_some_and(|it| it.1 == PANIC);
    each(mount).find(is_so).or_else(|| mkfs.iter().map(String::as_str).find(is_word))
}

/// Where a machine lists the file systems and partitions that it knows, by their UUIDs.
const UUIDS: [&str; 3] = ["sys/fs/btrfs", "dev/disk/by-uuid", "dev/disk/by-partuuid"];

/// The word of a plan's for mkfs that holds a UUID that the machine `root` has: mounting that by
/// its UUID could get the plan's, and Btrfs takes one device for the other (btrfs(5), "device
/// scan"). libuuid reads a UUID in one form alone, in capitals or not.
pub fn with_known_uuid<'a>(root: &Path, mkfs: &'a [String]) -> Option<&'a str> {
    let names = UUIDS.iter().filter_map(|folder| fs::read_dir(root.join(folder)).ok());
    let names = names.flatten().flatten().map(|it| it.file_name().display().to_string());
    // Btrfs has a folder of what it can do there, too.
    let known: Vec<String> =
        names.filter(|it| it.contains('-')).map(|it| it.to_lowercase()).collect();
    let holds = |word: &&str| {
        let word = word.to_lowercase();
        known.iter().any(|uuid| word.contains(uuid))
    };
    mkfs.iter().map(String::as_str).find(holds)
}

/// Mount options of every file system (mount(8), "filesystem-independent") that name nothing.
pub(super) const OF_ALL: [&str; 9] = [
    "noatime",
    "relatime",
    "strictatime",
    "nodiratime",
    "lazytime",
    "nodev",
    "noexec",
    "nosuid",
    "defaults",
];

/// What runs as root beside the cell gets none but known options: others name files of the machine,
/// or programs to start.
pub(super) fn only(known: &[&str], options: &[String]) -> Result<(), String> {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_string();
    let is_known = |option: &&str| {
        let name = name(option);
        !option.contains('/') && known.iter().chain(&OF_ALL).any(|it| *it == name)
    };
    match each(options).find(|option| !is_known(option)) {
        None => Ok(()),
        Some(option) => Err(format!("it takes no {option} here, but {}", known.join(", "))),
    }
}

/// The options, one by one: several may stand in one word.
pub(super) fn each(options: &[String]) -> impl Iterator<Item = &str> {
    options.iter().flat_map(|it| it.split(','))
}

/// The last value of an option.
pub(super) fn value<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    each(options).filter_map(|it| it.strip_prefix(name)?.strip_prefix('=')).last()
}
