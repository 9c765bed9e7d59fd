//! What a disk says of itself, which file systems choose their defaults by, and how it answers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Unit;
use super::near::meant;

/// What a block device says of itself: the files of its queue in `/sys`
/// (Documentation/ABI/stable/sysfs-block).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// It rotates.
    pub rotational: bool,
    /// It has a cache that is lost with the power, so that the kernel sends it flushes.
    pub write_cache: bool,
    /// It takes discards.
    pub discard: bool,
    /// It takes each zone's blocks only in their order.
    pub zoned: bool,
    /// The smallest request.
    pub logical_block_bytes: u64,
    /// What it writes in one piece.
    pub physical_block_bytes: u64,
    /// How many queues its driver has for it; 0: not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub queues: u32,
    /// The scheduler; `None`: left to the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// How far files are read ahead; `None`: left to the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead_bytes: Option<u64>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What the kernel reads ahead on a disk that does not rotate (VM_READAHEAD_PAGES in
/// include/linux/mm.h).
pub const READ_AHEAD_BYTES: u64 = 128 << 10;

/// The disks that a bed can be told to be like, by name.
const NAMED: [&str; 4] = ["nvme", "ssd", "hdd", "virtio"];

impl Disk {
    /// The one that is called so: as the kernel shows such a disk when nobody has set anything.
    /// An NVMe disk has queues enough to need no scheduler, a SATA disk one queue
    /// (block/elevator.c, `elevator_set_default`). virtio-blk calls every disk a rotating one
    /// (drivers/block/virtio_blk.c).
    pub fn named(name: &str) -> Option<Disk> {
        let solid = Disk {
            write_cache: true,
            discard: true,
            logical_block_bytes: 512,
            physical_block_bytes: 512,
            read_ahead_bytes: Some(READ_AHEAD_BYTES),
            ..Disk::default()
        };
        let by = |scheduler: &str| Some(scheduler.to_string());
        Some(match name {
            "nvme" => Disk { scheduler: by("none"), ..solid },
            "ssd" => Disk { scheduler: by("mq-deadline"), physical_block_bytes: 4096, ..solid },
            "hdd" => Disk {
                rotational: true,
                discard: false,
                physical_block_bytes: 4096,
                scheduler: by("mq-deadline"),
                read_ahead_bytes: None,
                ..solid
            },
            "virtio" => Disk { rotational: true, read_ahead_bytes: None, ..solid },
            _ => return None,
        })
    }

    /// Whether a bed can be told to be like `text`: a name, or the path of a disk.
    pub(super) fn check_like(text: &str) -> Result<(), String> {
        if text.starts_with('/') || NAMED.contains(&text) {
            return Ok(());
        }
        Err(format!(
            "like = {text:?} is not a disk: write nvme, ssd, hdd, virtio or a path such as \
             /dev/nvme0n1; {}",
            meant(text, NAMED.into_iter())
        ))
    }

    /// How `other` differs, for a person: what it says, and what this one says.
    pub fn unlike(&self, other: &Disk) -> Vec<String> {
        let pairs = self.words().into_iter().zip(other.words());
        let differ = |(ours, theirs): &(Option<String>, Option<String>)| ours != theirs;
        let said = |(ours, theirs): (Option<String>, Option<String>)| {
            Some(format!("{} instead of {}", theirs?, ours?))
        };
        pairs.filter(differ).filter_map(said).collect()
    }

    /// All that it says, each in its place; `None` where it is not known or left to the kernel.
    fn words(&self) -> [Option<String>; 8] {
        let either = |is: bool, yes: &str, no: &str| Some(if is { yes } else { no }.to_string());
        let queues = match self.queues {
            0 => None,
            1 => Some("1 queue".into()),
            several => Some(format!("{several} queues")),
        };
        let (logical, physical) = (self.logical_block_bytes, self.physical_block_bytes);
        let ahead = self.read_ahead_bytes.map(|bytes| Unit::Bytes.format(bytes as f64));
        [
            either(self.rotational, "rotating", "not rotating"),
            either(self.write_cache, "a volatile write cache", "no volatile write cache"),
            either(self.discard, "discards", "no discards"),
            either(self.zoned, "zones", "no zones"),
            Some(format!("blocks of {logical} B, physically {physical} B")),
            queues,
            self.scheduler.as_ref().map(|name| format!("scheduler {name}")),
            ahead.map(|ahead| format!("read-ahead {ahead}")),
        ]
    }
}

/// `not rotating, a volatile write cache, discards, ...`.
impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words().into_iter().flatten().filter(|word| word != "no zones");
        f.write_str(&words.collect::<Vec<_>>().join(", "))
    }
}

/// How long random reads of 4 KiB took, one after the other and past every cache of the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// How many there were.
    pub count: u32,
    /// Half of them took no longer.
    pub median_ns: u64,
    /// Nine in ten took no longer.
    pub p90_ns: u64,
}

impl Reads {
    /// Fewer say nothing.
    const COUNT_MIN: usize = 16;
    /// A disk that rotates answers no random read sooner, at the median: half a turn of 15,000 a
    /// minute, the fastest that are made, takes 2 ms. A disk that answers sooner has a cache or no
    /// platter, and either way all its places are equally near.
    const ROTATING_NS: u64 = 1_000_000;

    /// What these times come to; `None` where they are too few.
    pub fn of(mut times_ns: Vec<u64>) -> Option<Reads> {
        if times_ns.len() < Self::COUNT_MIN {
            return None;
        }
        times_ns.sort_unstable();
        let at = |share: usize| times_ns[(times_ns.len() * share).div_ceil(100) - 1];
        Some(Reads { count: times_ns.len() as u32, median_ns: at(50), p90_ns: at(90) })
    }

    /// No disk that rotates answers so fast.
    pub fn contradict_rotation(&self) -> bool {
        self.median_ns < Self::ROTATING_NS
    }
}

/// `random reads of 4 KiB take 96 us (median of 64; nine in ten at most 141 us)`.
impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns: u64| Unit::Nanoseconds.format(ns as f64);
        let (median, p90, count) = (time(self.median_ns), time(self.p90_ns), self.count);
        write!(
            f,
            "random reads of 4 KiB take {median} (median of {count}; nine in ten at most {p90})"
        )
    }
}

/// What was found out of a bed's disk before the first trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// How it answers.
    pub reads: Reads,
    /// The whole disk that answered, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// That disk says that it rotates although it does not, and the bed does not repeat it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mended: bool,
}

/// What a file system does where its disk says that it rotates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// As the end of a sentence.
    pub does: &'static str,
    /// It has been seen to decide a comparison.
    pub decides: bool,
}

impl Choice {
    /// That of the file system of this name, unless one of its mount options chooses.
    pub fn of<'a>(file_system: &str, mut options: impl Iterator<Item = &'a str>) -> Option<Choice> {
        let own = |option: &str| matches!(option, "ssd" | "ssd_spread" | "nossd");
        let (does, decides) = match file_system {
            "btrfs" if options.any(own) => return None,
            // fs/btrfs/disk-io.c, `open_ctree`, and fs/btrfs/super.c since Linux 6.8;
            // fs/btrfs/tree-log.c, `btrfs_sync_log`.
            "btrfs" => {
                ("leaves ssd off, and with several writers each fsync waits a clock tick", true)
            }
            // fs/ext4/mballoc.c, `ext4_mb_init`: s_mb_max_linear_groups.
            "ext2" | "ext3" | "ext4" => {
                ("tries the next block groups first for free blocks", false)
            }
            _ => return None,
        };
        Some(Choice { does, decides })
    }
}

/// The line of a udev rule that has the disk at `path` say that it does not rotate: udev(7).
pub fn udev_rule(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!(r#"ACTION=="add|change", KERNEL=="{name}", ATTR{{queue/rotational}}="0""#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_disks_and_paths_are_taken_and_nothing_else() {
        for name in NAMED {
            Disk::check_like(name).unwrap();
            assert!(Disk::named(name).is_some(), "{name}");
        }
        Disk::check_like("/dev/nvme0n1").unwrap();
        let wrong = Disk::check_like("sdd").unwrap_err();
        assert!(wrong.contains("write nvme, ssd, hdd, virtio or a path"), "{wrong}");
        assert!(Disk::named("floppy").is_none());
    }

    #[test]
    fn a_disk_is_told_in_words_and_by_what_differs() {
        let [hdd, ssd] = ["hdd", "ssd"].map(|name| Disk::named(name).unwrap());
        assert_eq!(
            hdd.to_string(),
            "rotating, a volatile write cache, no discards, blocks of 512 B, physically 4096 B, \
             scheduler mq-deadline"
        );
        assert_eq!(ssd.unlike(&ssd), [""; 0]);
        let unlike = ["rotating instead of not rotating", "no discards instead of discards"];
        assert_eq!(ssd.unlike(&hdd), unlike, "what is left to the kernel does not differ");
    }

    #[test]
    fn a_disk_that_answers_at_once_does_not_rotate() {
        let reads = |ns: u64| Reads::of((0..64).map(|i| ns + i).collect()).unwrap();
        assert!(reads(95_000).contradict_rotation());
        assert!(!reads(4_000_000).contradict_rotation());
        // A rotating disk whose cache has a few of the blocks still rotates.
        let mixed = [vec![90_000; 20], vec![6_000_000; 44]].concat();
        assert!(!Reads::of(mixed).unwrap().contradict_rotation());
        assert_eq!(Reads::of(vec![90_000; 15]), None);
        let odd = Reads::of((1..=20).rev().map(|i| i * 1000).collect()).unwrap();
        assert_eq!((odd.median_ns, odd.p90_ns), (10_000, 18_000));
    }

    #[test]
    fn the_rule_names_the_disk() {
        let rule = r#"ACTION=="add|change", KERNEL=="vda", ATTR{queue/rotational}="0""#;
        assert_eq!(udev_rule("/dev/vda"), rule);
    }
}
