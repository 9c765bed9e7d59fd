//! On what terms a trial ran, as its record says: how it was mounted and partitioned, and on what
//! kernel.

use std::collections::BTreeSet;

use super::case::{options, options_above};
use crate::model::{Contender, Disk, Probed, Record};

/// Mount options with which fsync does not flush the device's cache: ext4(5), f2fs, ZFS, an SMB
/// client (mount.cifs(8)), and of an overlay (Documentation/filesystems/overlayfs.rst, "Volatile
/// mount").
pub const WITHOUT_FLUSH: [&str; 7] = [
    "nobarrier",
    "barrier=0",
    "fsync_mode=nobarrier",
    "sync=disabled",
    "nostrictsync",
    "volatile",
    "fsync=volatile",
];

/// The first of these mount options with which fsync does not flush the device's cache.
fn without_flush<'a>(options: impl IntoIterator<Item = &'a str>) -> Option<String> {
    options.into_iter().find(|option| WITHOUT_FLUSH.contains(option)).map(String::from)
}

/// What of a contender's own words takes flushes away: as it is mounted, as what stands on it is,
/// as it is made (ZFS is told so then), or a server that answers an fsync before anything is on its
/// disk (exports(5), `async`).
pub fn declared_without_flush(contender: &Contender) -> Option<String> {
    let made = contender.mkfs.iter().map(String::as_str);
    let served = contender.above.iter().filter(|it| it.name == "nfs");
    let is_async = |options: &Vec<String>| options.iter().any(|it| it == "async");
    without_flush(options(contender).chain(options_above(contender)).chain(made))
        .or_else(|| served.map(|it| &it.options).any(is_async).then(|| "nfs:async".into()))
}

/// The trial's kernel counts flushes: Linux 5.5 and later. In older records others say 0.
pub fn counts_flushes(record: &Record) -> bool {
    let mut lacks = record.guest.iter().flat_map(|guest| &guest.lacks);
    !lacks.any(|reason| reason.contains("flushes"))
}

/// Whether the trial's fsyncs flushed the disk. What a layer in between keeps is not known here.
fn flushes(record: &Record) -> Option<bool> {
    let has_cache = record.disk.as_ref().is_some_and(|disk| disk.write_cache);
    let is_told = has_cache && record.layers.is_empty() && counts_flushes(record);
    let sample = record.sample("fsync_device_flushes").filter(|_| is_told)?;
    Some(sample.value > 0.0)
}

/// What the records of a contender say of its terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// The first option in effect that spares flushes.
    pub without_flush: Option<String>,
    /// What was mounted is the ZFS of a daemon.
    pub is_zfs_fuse: bool,
    /// Whether any fsync sent a flush to a disk whose cache is lost with the power; `None` where
    /// that was not counted, or the disk has no such cache.
    pub flushes: Option<bool>,
    /// Options that were asked for and that the kernel does not show.
    pub unseen: BTreeSet<String>,
    /// The first partition whose start does not suit the device: where it begins, and what that
    /// costs.
    pub misaligned: Option<(u64, &'static str)>,
    /// The first kernel that can't tell all, and what it can't.
    pub lacks: Option<(String, Vec<String>)>,
    /// How many trials ran on an emulated processor.
    pub emulated: usize,
    /// How many ran in a virtual machine whose processor was not.
    pub not_emulated: usize,
    /// How many ran in User Mode Linux.
    pub user_mode: usize,
    /// What the disk said of itself and how it answered, where both are known.
    pub disk: Option<(Disk, Probed)>,
}

impl Terms {
    /// Those of one trial.
    pub fn of(record: &Record) -> Terms {
        let mounted = record.mounted.iter().flat_map(|it| it.above.iter().chain([it]));
        let options = mounted.clone().flat_map(|it| &it.options).map(String::as_str);
        let guest = record.guest.as_ref();
        let lacks = guest.filter(|guest| !guest.lacks.is_empty());
        Terms {
            without_flush: without_flush(options),
            is_zfs_fuse: record.mounted.as_ref().is_some_and(|it| it.file_system == "fuse.zfs"),
            flushes: flushes(record),
            unseen: mounted.flat_map(|it| &it.unseen).cloned().collect(),
            misaligned: record
                .partitions
                .iter()
                .find_map(|it| Some((it.start_bytes, it.misaligned()?))),
            lacks: lacks.map(|guest| (guest.kernel.clone(), guest.lacks.clone())),
            emulated: guest.is_some_and(|guest| guest.emulated).into(),
            not_emulated: guest.is_some_and(|guest| !guest.emulated).into(),
            user_mode: guest.is_some_and(|guest| guest.user_mode).into(),
            disk: record.disk.clone().zip(record.probed.clone()),
        }
    }

    /// Adds those of a later trial.
    pub fn add(&mut self, later: &Terms) {
        if self.without_flush.is_none() {
            self.without_flush.clone_from(&later.without_flush);
        }
        self.is_zfs_fuse |= later.is_zfs_fuse;
        self.flushes = match (self.flushes, later.flushes) {
            (Some(one), Some(other)) => Some(one || other),
            (one, other) => one.or(other),
        };
        self.unseen.extend(later.unseen.iter().cloned());
        self.misaligned = self.misaligned.or(later.misaligned);
        match (&mut self.lacks, &later.lacks) {
            (Some((_, all)), Some((_, more))) => {
                let new = more.iter().filter(|it| !all.contains(it)).cloned().collect::<Vec<_>>();
                all.extend(new);
            }
            (none @ None, some) => none.clone_from(some),
            (Some(_), None) => {}
        }
        self.emulated += later.emulated;
        self.not_emulated += later.not_emulated;
        self.user_mode += later.user_mode;
        if self.disk.is_none() {
            self.disk.clone_from(&later.disk);
        }
    }
}
