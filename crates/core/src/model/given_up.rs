//! What a setting gives up by the documentation of file systems, layers and the kernel: what shows
//! only after a crash, on a broken disk, or in years.

use super::Contender;

/// What is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loses {
    /// The disk's cache is not flushed: what lies there is lost with the power.
    Flushes,
    /// What fsync has promised is lost in a crash, whatever the disk.
    Synced,
    /// A crash may leave it damaged.
    Whole,
    /// What is lost with a disk that others don't have.
    Disk,
    /// One failed disk fewer may be lost.
    Copy,
    /// Damage is not noticed, or files hold after a crash what they should not.
    Care,
    /// Nothing yet.
    InYears,
}

/// A setting that gives something up, and what that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// How the names of the file systems begin whose option it is, or the layer's name.
    pub of: &'static [&'static str],
    /// The option's values, or the settings with their flags. Empty for a layer without a setting.
    pub options: &'static [&'static str],
    /// What kind of loss that is.
    pub loses: Loses,
    /// What it means.
    pub what: &'static str,
    /// The source that says so.
    pub source: &'static str,
}

const fn option(
    of: &'static [&'static str],
    options: &'static [&'static str],
    loses: Loses,
    what: &'static str,
    source: &'static str,
) -> GivenUp {
    GivenUp { of, options, loses, what, source }
}

const NO_FLUSHES: &str = "fsync sends no flush: what it has promised is lost when the power fails";
const NOT_REPLAYED: &str =
    "the journal is not replayed: after a crash the file system is inconsistent";
const LOG_IGNORED: &str =
    "the log is not replayed: after a crash what was synced since the last commit is gone";
const STALE: &str =
    "after a crash files may hold old data of others: metadata may be written before its data";
const NO_CHECKSUMS: &str =
    "data has no checksums: damage is not noticed, and mirrors can't tell which copy is right";
const METADATA: &str = "damaged metadata is not noticed when it is read";
const YEAR_2038: &str = "it can't hold times after January 2038";
const NOT_WRITTEN: &str = "the journal is not written: a crash can damage the file system";
const VOLATILE: &str = "fsync writes nothing: what it has promised is lost in a crash";

const EXT: &[&str] = &["ext"];
const BTRFS: &[&str] = &["btrfs"];
const F2FS: &[&str] = &["f2fs"];
const NILFS2: &[&str] = &["nilfs2"];
const XFS: &[&str] = &["xfs"];
const ZFS: &[&str] = &["zfs"];

/// Options of file systems. Without its journal ext4 is also mounted by `noload` (fs/ext4/super.c,
/// `__ext4_fill_super`).
const OPTIONS: [GivenUp; 35] = [
    option(EXT, &["data=writeback"], Loses::Care, STALE, "ext4(5), data="),
    option(EXT, &["journal_data_writeback"], Loses::Care, STALE, "tune2fs(8), -o"),
    option(
        EXT,
        &["noauto_da_alloc"],
        Loses::Care,
        "a file that a program replaces by writing and renaming may be empty after a crash",
        "ext4(5), noauto_da_alloc",
    ),
    option(
        EXT,
        &["journal_async_commit"],
        Loses::Care,
        "a commit may be on disk before what it commits, despite data=ordered",
        "ext4(5), journal_async_commit",
    ),
    option(
        EXT,
        &["^has_journal"],
        Loses::Whole,
        "without a journal a crash may leave the file system damaged; it needs a full e2fsck",
        "ext4(5), has_journal",
    ),
    option(EXT, &["^metadata_csum"], Loses::Care, METADATA, "ext4(5), metadata_csum"),
    option(
        EXT,
        &["noload", "norecovery"],
        Loses::Whole,
        NOT_REPLAYED,
        "ext4(5), norecovery/noload",
    ),
    option(EXT, &["barrier=0", "nobarrier"], Loses::Flushes, NO_FLUSHES, "ext4(5), barrier"),
    option(EXT, &["-I 128", "-I128"], Loses::InYears, YEAR_2038, "mke2fs(8), -I"),
    option(XFS, &["norecovery"], Loses::Whole, NOT_REPLAYED, "xfs(5), norecovery"),
    // It had that until Linux 4.19.
    option(XFS, &["nobarrier"], Loses::Flushes, NO_FLUSHES, "kernel, filesystems/xfs"),
    option(
        XFS,
        &["nouuid"],
        Loses::Care,
        "two file systems with the same UUID may be mixed up",
        "xfs(5), nouuid",
    ),
    option(
        XFS,
        &["crc=0"],
        Loses::Care,
        "damaged metadata is not noticed when it is read, and the format is deprecated",
        "mkfs.xfs(8), -m crc=",
    ),
    option(XFS, &["bigtime=0"], Loses::InYears, YEAR_2038, "mkfs.xfs(8), -m bigtime="),
    option(BTRFS, &["nodatacow"], Loses::Care, NO_CHECKSUMS, "btrfs(5), datacow"),
    option(BTRFS, &["nodatasum"], Loses::Care, NO_CHECKSUMS, "btrfs(5), datasum"),
    option(BTRFS, &["nobarrier"], Loses::Flushes, NO_FLUSHES, "btrfs(5), barrier"),
    option(
        BTRFS,
        &["usebackuproot", "rescue=usebackuproot"],
        Loses::Synced,
        "older trees may be used, and what was written since is lost",
        "btrfs(5), usebackuproot",
    ),
    option(
        BTRFS,
        &["nologreplay", "rescue=nologreplay"],
        Loses::Synced,
        LOG_IGNORED,
        "btrfs(5), rescue",
    ),
    option(
        BTRFS,
        &["raid5", "raid6"],
        Loses::Care,
        "a crash while a stripe is written may leave a parity that no longer mends it",
        "btrfs(5), raid56 status and recommended practices",
    ),
    option(
        F2FS,
        &["nobarrier", "fsync_mode=nobarrier"],
        Loses::Flushes,
        NO_FLUSHES,
        "kernel, filesystems/f2fs",
    ),
    option(
        F2FS,
        &["norecovery", "disable_roll_forward"],
        Loses::Synced,
        LOG_IGNORED,
        "kernel, filesystems/f2fs",
    ),
    option(
        F2FS,
        &["checkpoint=disable"],
        Loses::Synced,
        "after a crash or an unmount all is as it was when it was mounted",
        "kernel, filesystems/f2fs",
    ),
    option(NILFS2, &["norecovery"], Loses::Synced, LOG_IGNORED, "kernel, filesystems/nilfs2"),
    option(NILFS2, &["nobarrier"], Loses::Flushes, NO_FLUSHES, "kernel, filesystems/nilfs2"),
    option(
        &["bcachefs"],
        &["journal_flush_disabled", "journal_flush_disabled=1"],
        Loses::Synced,
        "fsync does not write the journal: what it has promised in the last second is lost in a \
         crash",
        "kernel, fs/bcachefs/opts.h",
    ),
    option(&["jfs"], &["nointegrity"], Loses::Whole, NOT_WRITTEN, "kernel, admin-guide/jfs"),
    option(
        &["reiserfs"],
        &["barrier=none"],
        Loses::Flushes,
        NO_FLUSHES,
        "mount(8), options for reiserfs",
    ),
    option(&["gfs2"], &["nobarrier"], Loses::Flushes, NO_FLUSHES, "gfs2(5), barrier"),
    option(&["ocfs2"], &["barrier=0"], Loses::Flushes, NO_FLUSHES, "kernel, filesystems/ocfs2"),
    option(
        ZFS,
        &["sync=disabled"],
        Loses::Synced,
        "fsync returns before anything is written: the last seconds are lost in a crash",
        "zfsprops(7), sync",
    ),
    option(
        ZFS,
        &["checksum=off", "checksum=noparity"],
        Loses::Care,
        NO_CHECKSUMS,
        "zfsprops(7), checksum",
    ),
    option(
        &["overlay"],
        &["volatile", "fsync=volatile"],
        Loses::Synced,
        VOLATILE,
        "kernel, filesystems/overlayfs",
    ),
    option(
        &["mergerfs"],
        &["nullrw", "nullrw=true"],
        Loses::Synced,
        "nothing is written at all",
        "mergerfs(1), nullrw",
    ),
    option(
        &["smb", "cifs"],
        &["nostrictsync"],
        Loses::Synced,
        "fsync asks the server for nothing: what it has promised is lost when that crashes",
        "mount.cifs(8), nostrictsync",
    ),
];

/// How a server gives its folder out.
const EXPORTED: [GivenUp; 1] = [option(
    &["nfs"],
    &["async"],
    Loses::Synced,
    "the server answers an fsync before anything is on its disk",
    "exports(5), async",
)];

/// Parameters of modules, which give it up where they are set to anything but 0.
const PARAMETERS: [GivenUp; 2] = [
    option(
        &["zfs"],
        &["zfs.zfs_nocacheflush", "zfs.zil_nocacheflush"],
        Loses::Flushes,
        NO_FLUSHES,
        "zfs(4)",
    ),
    option(&["zfs"], &["zfs.zil_replay_disable"], Loses::Synced, LOG_IGNORED, "zfs(4)"),
];

/// Files of a disk's queue, with the value that gives it up.
const QUEUE: [GivenUp; 1] = [option(
    &["queue"],
    &["write_cache = write through"],
    Loses::Flushes,
    "the kernel sends no flush: what fsync has promised is lost when the power fails",
    "kernel, ABI/stable/sysfs-block, queue/write_cache",
)];

const WRITTEN_BACK: &str =
    "what was synced may be on the cache's disk alone, and is lost with that disk";

/// Settings of layers.
const LAYERS: [GivenUp; 5] = [
    option(
        &["integrity"],
        &["mode=direct"],
        Loses::Whole,
        "after a crash a sector may not match its checksum, and then it can't be read",
        "integritysetup(8), --integrity-no-journal",
    ),
    option(&["cache"], &["mode=writeback"], Loses::Disk, WRITTEN_BACK, "lvmcache(7), writeback"),
    option(
        &["bcache"],
        &["mode=writeback"],
        Loses::Disk,
        WRITTEN_BACK,
        "kernel, admin-guide/bcache",
    ),
    option(&["writecache"], &[], Loses::Disk, WRITTEN_BACK, "lvmcache(7), dm-writecache"),
    option(
        &["raid1", "raid5", "raid6", "raid10"],
        &["state=degraded"],
        Loses::Copy,
        "one of its disks has failed: it survives one failure fewer than a whole one",
        "md(4)",
    ),
];

impl GivenUp {
    /// What an option of that file system gives up, as it is typed or as the kernel shows it.
    pub fn by(file_system: &str, option: &str) -> Option<&'static GivenUp> {
        let begins = |row: &&GivenUp| row.of.iter().any(|name| file_system.starts_with(name));
        OPTIONS.iter().filter(begins).find(|row| row.is_by(option))
    }

    /// The same if the file system is unknown.
    pub fn by_any(option: &str) -> Option<&'static GivenUp> {
        OPTIONS.iter().find(|row| row.is_by(option))
    }

    /// The same of a setting of a disk's queue: `write_cache = write through`.
    pub fn by_queue(setting: &str) -> Option<&'static GivenUp> {
        QUEUE.iter().find(|row| row.is_by(setting))
    }

    /// f2fs takes a size after `checkpoint=disable:`.
    fn is_by(&self, option: &str) -> bool {
        let is = |name: &&str| {
            let rest = option.strip_prefix(*name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.options.iter().any(is)
    }
}

/// Something given up, with the setting that does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// As it is shown: `barrier=0`, `overlay:volatile`, `zfs.zil_nocacheflush = 1`.
    pub setting: String,
    /// What it gives up.
    pub fact: &'static GivenUp,
}

impl Given {
    fn new(setting: impl Into<String>, fact: &'static GivenUp) -> Given {
        Given { setting: setting.into(), fact }
    }

    /// With what it means.
    pub fn said(&self) -> String {
        format!("{}: {}", self.setting, self.fact.what)
    }

    /// It says of the disk's cache what the disk may not say.
    pub fn is_of_queue(&self) -> bool {
        QUEUE.contains(self.fact)
    }

    /// What options of a file system give up; its name is the kernel's or a plan's, if any.
    pub fn of_options<'a>(
        file_system: &str,
        options: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Given> {
        let name = file_system.trim_start_matches("fuse.");
        let fact = |option: &str| match name {
            "" => GivenUp::by_any(option),
            name => GivenUp::by(name, option),
        };
        let given = |option: &'a str| Some(Given::new(option, fact(option)?));
        options.into_iter().filter_map(given).collect()
    }
}

impl Contender {
    /// What its own words give up: how it is mounted and made, what is stacked on it and below it,
    /// and how its disk and its modules are set.
    pub fn given_up(&self) -> Vec<Given> {
        let mount = self.mount.iter().flat_map(|options| options.split(','));
        let made = self.mkfs.iter().flat_map(|words| words.split([',', ' ']));
        let made = made.map(|word| word.trim_start_matches("-O").trim_start_matches("--"));
        let mut all = Given::of_options(&self.file_system, mount.chain(made));
        for above in &self.above {
            let exported = |option: &str| {
                EXPORTED.iter().find(|row| row.of.contains(&&*above.name) && row.is_by(option))
            };
            let given = |option: &String| {
                let fact = GivenUp::by(&above.name, option).or_else(|| exported(option))?;
                Some(Given::new(format!("{}:{option}", above.name), fact))
            };
            all.extend(above.options.iter().filter_map(given));
        }
        all.extend(self.knobs());
        all.extend(self.below());
        all
    }

    /// What is set of its disk and of its modules, also on its kernel's command line.
    fn knobs(&self) -> impl Iterator<Item = Given> {
        let typed = self.parameters.iter().filter_map(|it| it.split_once('='));
        let typed = typed.map(|(name, value)| (name.to_string(), value.to_string()));
        let set = self.module.iter().map(|(name, value)| (name.clone(), value.to_string()));
        let parameter = |(name, value): (String, String)| {
            let is_on = !matches!(value.as_str(), "0" | "false" | "N" | "n");
            let fact = PARAMETERS.iter().find(|row| row.is_by(&name)).filter(|_| is_on)?;
            Some(Given::new(format!("{name} = {value}"), fact))
        };
        let queue = self.queue.iter().filter_map(|(file, value)| {
            let setting = format!("{file} = {value}");
            let fact = GivenUp::by_queue(&setting)?;
            Some(Given::new(setting, fact))
        });
        set.chain(typed).filter_map(parameter).chain(queue)
    }

    /// What lies between it and the disks.
    fn below(&self) -> impl Iterator<Item = Given> {
        self.layers.iter().filter_map(|layer| {
            let mut settings = layer.settings.iter().map(|(key, value)| format!("{key}={value}"));
            let its = |row: &&GivenUp| row.of.contains(&layer.name.as_str());
            let fact = LAYERS.iter().find(its)?;
            let Some(set) = settings.find(|setting| fact.is_by(setting)) else {
                return fact.options.is_empty().then(|| Given::new(&layer.name, fact));
            };
            Some(Given::new(format!("{}:{set}", layer.name), fact))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Plan;

    /// What a contender with these lines of a plan gives up.
    fn given_up(lines: &str) -> Vec<(String, Loses)> {
        let text = format!(
            "[[contender]]\nname = \"a\"\n{lines}\n[[workload]]\nname = \"w\"\ncommand = \"true\"\n"
        );
        let plan = Plan::parse(&text).unwrap();
        let given = plan.contenders[0].given_up();
        given.into_iter().map(|it| (it.setting, it.fact.loses)).collect()
    }

    #[test]
    fn what_is_given_up_is_known_wherever_it_is_said() {
        use Loses::{Copy, Disk, Flushes, Synced, Whole};
        for (lines, setting, loses) in [
            ("file_system = \"ext4\"\nmount = [\"noatime,barrier=0\"]", "barrier=0", Flushes),
            ("file_system = \"ext4\"\nmkfs = [\"-O^has_journal\"]", "^has_journal", Whole),
            ("file_system = \"ext4\"\nmount = [\"noload\"]", "noload", Whole),
            ("file_system = \"jfs\"\nmount = [\"nointegrity\"]", "nointegrity", Whole),
            ("file_system = \"reiserfs\"\nmount = [\"barrier=none\"]", "barrier=none", Flushes),
            (
                "file_system = \"f2fs\"\nmount = [\"checkpoint=disable:10%\"]",
                "checkpoint=disable:10%",
                Synced,
            ),
            (
                "file_system = \"bcachefs\"\nmkfs = [\"--journal_flush_disabled\"]",
                "journal_flush_disabled",
                Synced,
            ),
            ("file_system = \"zfs\"\nmkfs = [\"-O\", \"sync=disabled\"]", "sync=disabled", Synced),
            ("above = [\"nfs:vers=4.0,async\"]", "nfs:async", Synced),
            ("queue = { write_cache = \"write through\" }", "write_cache = write through", Flushes),
            ("module = { \"zfs.zil_nocacheflush\" = 1 }", "zfs.zil_nocacheflush = 1", Flushes),
            (
                "parameters = [\"zfs.zil_replay_disable=1\"]\nkernel = \"6.1\"",
                "zfs.zil_replay_disable = 1",
                Synced,
            ),
            ("layers = [\"luks\", \"integrity:mode=direct\"]", "integrity:mode=direct", Whole),
            ("layers = [\"bcache:mode=writeback\"]", "bcache:mode=writeback", Disk),
            ("layers = [\"cache:chunk=64k,mode=writeback\"]", "cache:mode=writeback", Disk),
            ("layers = [\"writecache:block_size=4096\"]", "writecache", Disk),
            ("layers = [\"raid1:state=degraded\"]", "raid1:state=degraded", Copy),
        ] {
            assert_eq!(given_up(lines), [(setting.to_string(), loses)], "{lines}");
        }
    }

    #[test]
    fn what_gives_nothing_up_is_not_taken_for_it() {
        for lines in [
            "file_system = \"ext4\"\nmount = [\"barrier=1\", \"async\"]",
            "file_system = \"xfs\"\nmount = [\"volatile\"]",
            "queue = { write_cache = \"write back\", scheduler = \"none\" }",
            "module = { \"zfs.zil_nocacheflush\" = 0, \"zfs.zfs_arc_max\" = 1 }",
            "layers = [\"integrity\", \"raid1:state=check\", \"cache\", \"bcache:mode=none\"]",
        ] {
            assert_eq!(given_up(lines), [], "{lines}");
        }
    }
}
