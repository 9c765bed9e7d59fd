//! ZFS: by the kernel's module (zpool(8), zfs(8) of OpenZFS), or where there is none by the daemon
//! of zfs-fuse (zfs-fuse(8)). These are different programs, and the second is called ZFS
//! (zfs-fuse): the kernel calls the mounts `zfs` and `fuse.zfs`, and the run lists the version of
//! the module or of zfs-fuse.
//!
//! A pool's name is made of its first device and its run: no other pool is ever exported or
//! imported. It is exported at each unmount, which empties its cache: dropping caches does not.

use serde::{Deserialize, Serialize};

use super::options::{OF_ALL, each};
use super::site::{then, words};
use super::{Daemon, FileSystem, PLAIN, Promise, Promises, Site};
use crate::tool;
use crate::tool::Argv;

pub(super) const ZFS: FileSystem = FileSystem {
    name: "zfs",
    program: "zpool",
    version: &["zfs", "version"],
    make,
    // Partitions that zpool made on a whole disk are beside it.
    mount: |options, site| vec![import(options, "/dev", site)],
    unmount,
    check: Some(|site| vec![zdb("/dev", site)]),
    instead: Some(&ZFS_FUSE),
    kernels: KERNELS,
    words: check_words,
    held: true,
    partitions_disks: true,
    promises: Promises {
        // zpool-features(7), block_cloning, and zfs(4), zfs_bclone_enabled.
        reflink: Promise::Asked,
        ..PROMISES
    },
    of_version,
    ..PLAIN
};

const ZFS_FUSE: FileSystem = FileSystem {
    name: "zfs",
    program: "zfs-fuse",
    // Neither the daemon nor its tools tell their version.
    version: &["dpkg-query", "-W", "-f", "${Version}\n", "zfs-fuse"],
    driver: Some("fuse"),
    make,
    mount: |options, site| {
        let mut commands = links(site);
        commands.push(import(options, LINKS, site));
        commands
    },
    unmount,
    check: Some(|site| {
        let mut commands = links(site);
        commands.push(zdb(LINKS, site));
        commands
    }),
    // The kernel asks no FUSE daemon to sync but virtiofs's (fs/fuse/inode.c, fuse_sync_fs), so
    // that syncfs returns while everything is still in the daemon's memory; to the kernel's own
    // zfs it reaches (zpl_super.c, zpl_sync_fs). Setting a property
    // waits for the next transaction group: with it all earlier ones are on the devices.
    commit: Some(|site| words(&["zfs", "set", "fsverdict:commit=yes", &pool(site)])),
    daemon: Some(&Daemon {
        // Without --no-daemon 0.7.0 was not ready after 100 seconds here; so it takes 0.03.
        argv: &["zfs-fuse", "--no-daemon", "--no-kstat-mount"],
        // A socket; a lock, so that there is one daemon on a machine; and zpool.cache, which would
        // have it import the pools of another.
        folders: &["/run/zfs", "/run/lock/zfs", "/var/lib/zfs"],
        socket: "/run/zfs/zfs_socket",
    }),
    kernels: KERNELS,
    words: check_words,
    partitions_disks: true,
    promises: PROMISES,
    ..PLAIN
};

/// OpenZFS compresses by itself since 2.2 (zfsprops(7), compression). It clones blocks since then,
/// too, by a parameter of the module that is on since 2.3 (zfs(4), zfs_bclone_enabled).
fn of_version(promises: Promises, version: &str) -> Promises {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return promises;
    };
    let (compression, reflink) = match (major, minor) {
        (0..=1, _) | (2, 0..=1) => (Promise::Asked, Promise::No),
        (2, 2) => (Promise::Yes, Promise::Asked),
        _ => (Promise::Yes, Promise::Yes),
    };
    Promises { compression, reflink, ..promises }
}

/// No kernel comes with it.
const KERNELS: &str = "fsverdict kernels get 6.12 --with zfs, and then --place vm --kernel 6.12";

/// What both promise.
const PROMISES: Promises = Promises {
    // zfs(8), "snapshot".
    snapshots: Promise::Yes,
    // zpool(8), zpoolconcepts(7): "All metadata and data is checksummed".
    data_checksums: Promise::Yes,
    metadata_checksums: Promise::Yes,
    // zfs(8), zfsprops(7): the property `compression`. OpenZFS 2.2 made it the default.
    compression: Promise::Asked,
    // zpool(8): `zpool add`, and the property autoexpand.
    online_growth: Promise::Yes,
    reflink: Promise::No,
    // zpool(8): "mirror", "raidz", and several devices without either.
    several_devices: Promise::Yes,
};

/// Where links to a trial's own devices stand, so that nothing else is looked at for a pool:
/// zfs-fuse's zpool looks through folders only. In a folder that is covered within the trial.
const LINKS: &str = "/run/zfs/devices";

const PREFIX: &str = "fsverdict-";

/// The pool's name: a device is in one run at a time, and perhaps in another's when one that was
/// killed is cleared away.
pub fn pool(site: &Site) -> String {
    let name = site.devices[0].rsplit('/').next().unwrap_or_default();
    let dash = if site.run.is_empty() { "" } else { "-" };
    format!("{PREFIX}{name}{dash}{}", site.run)
}

/// Exported at once, so that it is mounted by an import and with that one's options.
fn make(options: &[String], site: &Site) -> Vec<Argv> {
    let (options, vdevs) = split(options);
    // cachefile=none: no cache file remembers the pool for another boot.
    let create = ["zpool", "create", "-f", "-o", "cachefile=none", "-m", site.at];
    let spread = spread(&vdevs, site.devices);
    let mut commands = vec![then(&create, &[&options, &[pool(site)], &spread])];
    commands.extend(unmount(site));
    commands
}

/// Options of `zpool create`, with their values, and the words that come where the devices are:
/// `mirror`, `raidz`, `log`, `cache`, `special`.
fn split(arguments: &[String]) -> (Argv, Argv) {
    let (mut options, mut vdevs) = (Vec::new(), Vec::new());
    let mut arguments = arguments.iter().cloned();
    while let Some(argument) = arguments.next() {
        let takes_value = matches!(argument.as_str(), "-o" | "-O" | "-m" | "-R" | "-t");
        match argument.starts_with('-') {
            true => options.push(argument),
            false => vdevs.push(argument),
        }
        options.extend(takes_value.then(|| arguments.next()).flatten());
    }
    (options, vdevs)
}

/// What zpoolconcepts(7) calls virtual devices, but for disks and files.
const VDEVS: [&str; 8] = ["mirror", "raidz", "draid", "spare", "log", "dedup", "special", "cache"];
/// A plan may set what is kept in the pool, and how. Other properties are files and places of the
/// machine (`cachefile`, `mountpoint`, `keylocation`), or start programs and write to /etc
/// (`sharenfs`, `sharesmb`). Those of a pool, besides its features: zpoolprops(7).
const OF_POOL: [&str; 14] = [
    "ashift",
    "autoexpand",
    "autoreplace",
    "autotrim",
    "comment",
    "compatibility",
    "dedup_table_quota",
    "dedupditto",
    "delegation",
    "failmode",
    "listsnaps",
    "listsnapshots",
    "readonly",
    "version",
];

/// Those of the file system in it, with the short names that libzfs takes: zfsprops(7).
const OF_FILE_SYSTEM: [&str; 44] = [
    "aclinherit",
    "aclmode",
    "acltype",
    "atime",
    "case",
    "casesensitivity",
    "checksum",
    "compress",
    "compression",
    "copies",
    "dedup",
    "devices",
    "direct",
    "dnodesize",
    "exec",
    "logbias",
    "longname",
    "nbmand",
    "normalization",
    "overlay",
    "prefetch",
    "primarycache",
    "quota",
    "rdonly",
    "readonly",
    "recordsize",
    "recsize",
    "redundant_metadata",
    "refquota",
    "refreserv",
    "refreservation",
    "relatime",
    "reserv",
    "reservation",
    "secondarycache",
    "setuid",
    "snapdir",
    "special_small_blocks",
    "sync",
    "utf8only",
    "version",
    "volmode",
    "vscan",
    "xattr",
];

/// Of its mount, besides those of all: zfsprops(7), "Temporary Mount Point Properties".
const OF_MOUNT: [&str; 11] = [
    "atime",
    "dev",
    "exec",
    "mand",
    "nomand",
    "norelatime",
    "noxattr",
    "ro",
    "rw",
    "suid",
    "xattr",
];

/// What `setting` sets is one of `known`, and it names no file.
fn is_one_of(known: &[&str], setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or_default();
    !setting.contains('/') && known.contains(&name)
}

fn is_of_pool(setting: &str) -> bool {
    is_one_of(&OF_POOL, setting) || setting.starts_with("feature@") && !setting.contains('/')
}

/// What zpool import takes after `-o`: options of the mount, and with a value the pool's.
fn is_of_mount(option: &str) -> bool {
    match option.contains('=') {
        true => is_of_pool(option),
        false => is_one_of(&OF_MOUNT, option) || is_one_of(&OF_ALL, option),
    }
}

/// A pool uses the bed's devices alone, and leaves no file on the machine: the kernel, the tools
/// and the daemon do what the plan's words say.
fn check_words(mkfs: &[String], mount: &[String]) -> Result<(), String> {
    let refused = |word: &str| {
        let what = "names a device, a file or a place other than its bed's, or is not a setting \
                    that a plan may give a pool";
        Err(format!("{word} {what}: leave it out"))
    };
    let (options, vdevs) = split(mkfs);
    let is_vdev = |word: &&String| {
        let rest = VDEVS.iter().find_map(|name| word.strip_prefix(name));
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric() || c == ':'))
    };
    if let Some(word) = vdevs.iter().find(|word| !is_vdev(word)) {
        return refused(word);
    }
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let is_right: fn(&str) -> bool = match option.as_str() {
            "-f" | "-d" => continue,
            "-o" => is_of_pool,
            "-O" => |setting| is_one_of(&OF_FILE_SYSTEM, setting),
            _ => return refused(option),
        };
        match options.next() {
            Some(setting) if is_right(setting) => {}
            setting => return refused(setting.unwrap_or(option)),
        }
    }
    match each(mount).find(|it| !is_of_mount(it)) {
        Some(option) => refused(option),
        None => Ok(()),
    }
}

/// The devices dealt out to the words in order, each getting as many as the next, the first ones
/// one more where it does not come out even.
fn spread(vdevs: &[String], devices: &[String]) -> Argv {
    let mut spread = Vec::new();
    let mut rest = devices;
    for (place, vdev) in vdevs.iter().enumerate() {
        let (its, others) = rest.split_at(rest.len().div_ceil(vdevs.len() - place));
        spread.push(vdev.clone());
        spread.extend_from_slice(its);
        rest = others;
    }
    spread.extend_from_slice(rest);
    spread
}

/// zpool import mounts too. Its -o takes mount options as well as the pool's properties.
fn import(options: &[String], folder: &str, site: &Site) -> Argv {
    let mut argv = words(&["zpool", "import", "-o", "cachefile=none", "-d", folder]);
    if !options.is_empty() {
        argv.extend(["-o".to_string(), options.join(",")]);
    }
    argv.push(pool(site));
    argv
}

/// zpool export unmounts too.
fn unmount(site: &Site) -> Vec<Argv> {
    vec![words(&["zpool", "export", &pool(site)])]
}

/// zdb(8): -e a pool that is exported, -cc reads all blocks and compares their checksums, -b adds
/// up what is allocated.
fn zdb(folder: &str, site: &Site) -> Argv {
    words(&["zdb", "-e", "-p", folder, "-bcc", &pool(site)])
}

fn links(site: &Site) -> Vec<Argv> {
    let link = then(&["ln", "-sf"], &[site.devices, &[LINKS.to_string()]]);
    vec![words(&["mkdir", "-p", LINKS]), link]
}

/// The name of a pool of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pool(String);

impl Pool {
    /// The pool of a site.
    pub fn of(site: &Site) -> Pool {
        Pool(pool(site))
    }

    /// Has the kernel let go of a pool that a killed trial left. One that is gone is none.
    pub fn release(&self) -> Result<(), tool::ToolError> {
        use tool::ToolError::{Slow, Start};
        match tool::run_words(&["zpool", "list", "-H", "-o", "name", &self.0]) {
            // It was not told.
            Err(error @ (Slow { .. } | Start { .. })) => return Err(error),
            Err(_) => return Ok(()),
            Ok(_) => {}
        }
        tool::run_words(&["zpool", "export", "-f", &self.0]).map(drop)
    }
}

impl TryFrom<String> for Pool {
    type Error = String;

    fn try_from(name: String) -> Result<Pool, String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        match name.strip_prefix(PREFIX) {
            Some(device) if !device.is_empty() && device.chars().all(is_part) => Ok(Pool(name)),
            _ => Err(format!("{name:?} is not a pool of ours")),
        }
    }
}

impl From<Pool> for String {
    fn from(pool: Pool) -> String {
        pool.0
    }
}
