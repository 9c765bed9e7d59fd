//! Options of mounts, and which of them are refused.

/// Mount options by which the kernel, or mount(8) itself, opens another device or file than the
/// one that is mounted: ext4(5), xfs(5), btrfs(5), reiserfs_parse_options (fs/reiserfs/super.c),
/// "THE LOOP DEVICE" of mount(8).
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

pub(super) fn name_no_device(mount: &[String]) -> Result<(), String> {
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
