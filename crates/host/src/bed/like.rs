//! The disk that a bed stands for: what it says of itself, said by the bed's devices too.
//!
//! Discards are not part of it, neither here nor on a guest's disk that supports them: every file
//! system is made and mounted without, and a loop device that was set to take none can't be set
//! back (block/blk-sysfs.c, `queue_discard_max_store`, with a granularity of 0).

use std::path::Path;

use fsverdict_core::model::{Bed, BedKind, Disk, READ_AHEAD_BYTES, Reads};
use serde::{Deserialize, Serialize};

use super::block::{Block, Machine};
use super::disk;
use super::error::BedError;
use crate::machine::knob::Knob;
use crate::machine::settings::Setting;

const ROOT: &str = "/";

/// What a bed is to say of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Like {
    /// What that is.
    pub disk: Disk,
    /// Whose it is, for a person: `ssd`, `/dev/nvme0n1`.
    pub name: String,
    /// The plan names it. Otherwise it is the disk that the images lie on, whose scheduler works
    /// beneath them anyway.
    pub is_named: bool,
    /// The disk says that it rotates, and this does not repeat it.
    pub mended: bool,
    /// What `disk` has files read ahead only because it says that it rotates.
    read_ahead_of_rotation: Option<u64>,
}

/// What a device is set to say of its cache, which decides whether the kernel sends it flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushes {
    /// As the disk says.
    Like,
    /// It gets them all: it is an image in the page cache, and without them nothing is written.
    Kept,
    /// It is not told.
    Own,
}

impl Like {
    /// What `bed` is to be like; images lie in `dir`. `None`: it stays what it is.
    pub(super) fn of(bed: &Bed, dir: &Path) -> Result<Option<Like>, BedError> {
        match (&bed.like, bed.kind) {
            (Some(name), _) if !name.starts_with('/') => Ok(Like::named(name)),
            (Some(path), kind) => Like::at(path, kind).map(Some),
            (None, BedKind::Loop) => {
                let beneath = Machine::real().beneath(dir).map(Block::disk);
                let like = beneath.map(|block| Like::block(&block, false));
                Ok(like.filter(|like| !like.disk.zoned))
            }
            // Memory rotates as little.
            (None, BedKind::Ram) if !bed.zram => {
                Ok(Like::named("ssd").map(|like| Like { is_named: false, ..like }))
            }
            (None, _) => Ok(None),
        }
    }

    /// The disk that is called so.
    pub fn named(name: &str) -> Option<Like> {
        Some(Like {
            disk: Disk::named(name)?,
            name: name.into(),
            is_named: true,
            mended: false,
            read_ahead_of_rotation: None,
        })
    }

    fn at(path: &str, kind: BedKind) -> Result<Like, BedError> {
        let machine = Machine::real();
        let number = (machine.number_of)(Path::new(path));
        let block = number.and_then(|number| machine.block(number)).map(Block::disk);
        let like = block.map(|block| Like::block(&block, true));
        match like {
            None => Err(BedError::NoLike { path: path.into() }),
            Some(like) if like.disk.zoned && kind != BedKind::Device => {
                Err(BedError::Zoned { path: path.into() })
            }
            Some(like) => Ok(like),
        }
    }

    fn block(block: &Block, is_named: bool) -> Like {
        Like {
            disk: disk::of(&block.directory),
            name: block.node.clone(),
            is_named,
            mended: false,
            read_ahead_of_rotation: disk::read_ahead_of_rotation(block),
        }
    }

    /// It without a flag that the disk's own answers contradict, unless the plan names the disk:
    /// ARCHITECTURE, "Decisions", has why.
    pub(super) fn mended(mut self, reads: Option<Reads>) -> Like {
        let contradicted = reads.is_some_and(|reads| reads.contradict_rotation());
        if !self.is_named && self.disk.rotational && contradicted {
            self.mended = true;
            self.disk.rotational = false;
            if self.disk.read_ahead_bytes == self.read_ahead_of_rotation {
                self.disk.read_ahead_bytes = Some(READ_AHEAD_BYTES);
            }
        }
        self
    }

    /// The block of a loop device, 0: the smallest with which it can go past the page cache.
    pub(super) fn loop_block_bytes(&self) -> u32 {
        let bytes = u32::try_from(self.disk.logical_block_bytes).unwrap_or(0);
        if (1024..=4096).contains(&bytes) { bytes } else { 0 }
    }

    /// The settings that make that device say so, in the order in which they must be set: rotation
    /// changes the read-ahead, and the scheduler comes before what it resets.
    pub fn settings(&self, number: [u32; 2], flushes: Flushes) -> Vec<Setting> {
        let disk = &self.disk;
        let flushed = disk.write_cache || flushes == Flushes::Kept;
        let cache = if flushed { "write back" } else { "write through" };
        let cache = Some(cache.to_string()).filter(|_| flushes != Flushes::Own);
        let ahead = disk.read_ahead_bytes.map(|bytes| (bytes >> 10).to_string());
        let scheduler = disk.scheduler.clone().filter(|_| self.is_named);
        let all = [
            ("rotational", Some(u8::from(disk.rotational).to_string())),
            ("write_cache", cache),
            ("scheduler", scheduler),
            ("read_ahead_kb", ahead),
        ];
        let set = |(file, value): (&str, Option<String>)| {
            Some(Setting { knob: Knob::queue(number, file), value: value? })
        };
        all.into_iter().filter_map(set).collect()
    }

    /// Of these those that this kernel has.
    pub(super) fn offered(&self, number: [u32; 2], flushes: Flushes) -> Vec<Setting> {
        let offers =
            |it: &Setting| it.knob.text(Path::new(ROOT)).is_ok_and(|text| takes(&text, it));
        let mut settings = self.settings(number, flushes);
        settings.retain(offers);
        settings
    }

    /// Has the device of that number say so, as far as this kernel lets it: in a guest, where
    /// nothing need be put back.
    pub fn set_on(&self, number: [u32; 2]) -> Result<(), BedError> {
        set(&self.offered(number, Flushes::Like))
    }

    /// For the report: whose, and in what `device` differs from it.
    pub(super) fn told(&self, device: Option<&Disk>) -> String {
        let but = if self.mended { ", but that it does not rotate" } else { "" };
        // Only a disk that the plan names is worth the whole list.
        let unlike = device.filter(|_| self.is_named).map(|it| self.disk.unlike(it));
        let unlike = unlike.unwrap_or_default().join("; ");
        let differs = if unlike.is_empty() { "" } else { "; it differs in this: " };
        format!("{}{but}{differs}{unlike}", self.name)
    }
}

/// Sets them. Rotation must take effect; for the rest the record says what came of it.
pub(super) fn set(settings: &[Setting]) -> Result<(), BedError> {
    for setting in settings {
        match setting.set(Path::new(ROOT)) {
            Err(error) if setting.knob.to_string().ends_with("/rotational") => {
                return Err(BedError::Setting(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A file that offers a choice, as the scheduler's does, has to offer this.
fn takes(text: &str, setting: &Setting) -> bool {
    let mut words = text.split_whitespace().map(|word| word.trim_matches(['[', ']']));
    !text.contains('[') || words.any(|word| word == setting.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(median_ns: u64) -> Option<Reads> {
        Some(Reads { count: 64, median_ns, p90_ns: median_ns })
    }

    fn beneath() -> Like {
        let disk = Disk { read_ahead_bytes: Some(8 << 20), ..Disk::named("virtio").unwrap() };
        let read_ahead_of_rotation = Some(8 << 20);
        let name = "/dev/vda".into();
        Like { disk, name, is_named: false, mended: false, read_ahead_of_rotation }
    }

    #[test]
    fn a_flag_that_the_disk_contradicts_is_not_repeated_unless_it_is_asked_for() {
        let mended = beneath().mended(reads(97_000));
        assert!(mended.mended && !mended.disk.rotational);
        assert_eq!(mended.disk.read_ahead_bytes, Some(READ_AHEAD_BYTES));
        assert_eq!(mended.told(None), "/dev/vda, but that it does not rotate");
        assert_eq!(beneath().mended(reads(6_000_000)), beneath());
        assert_eq!(beneath().mended(None), beneath(), "who has not looked changes nothing");
        let named = Like { is_named: true, ..beneath() };
        assert_eq!(named.clone().mended(reads(97_000)), named);
        let mut own = beneath();
        own.disk.read_ahead_bytes = Some(1 << 20);
        let ahead = own.mended(reads(97_000)).disk.read_ahead_bytes;
        assert_eq!(ahead, Some(1 << 20), "somebody has set it");
    }

    fn lines(like: &Like, flushes: Flushes) -> Vec<String> {
        let settings = like.settings([7, 1], flushes);
        let file = |knob: &Knob| knob.to_string().rsplit('/').next().unwrap().to_string();
        settings.iter().map(|it| format!("{}={}", file(&it.knob), it.value)).collect()
    }

    #[test]
    fn a_bed_is_told_what_its_disk_says() {
        let ssd = Like::named("ssd").unwrap();
        let expected = [
            "rotational=0",
            "write_cache=write back",
            "scheduler=mq-deadline",
            "read_ahead_kb=128",
        ];
        assert_eq!(lines(&ssd, Flushes::Like), expected);
        let hdd = lines(&Like::named("hdd").unwrap(), Flushes::Like);
        assert_eq!(hdd, ["rotational=1", "write_cache=write back", "scheduler=mq-deadline"]);
        let mut safe = Like { is_named: false, ..ssd };
        safe.disk.write_cache = false;
        assert_eq!(
            lines(&safe, Flushes::Like)[1..],
            ["write_cache=write through", "read_ahead_kb=128"]
        );
        assert_eq!(lines(&safe, Flushes::Kept)[1], "write_cache=write back");
        assert_eq!(lines(&safe, Flushes::Own), ["rotational=0", "read_ahead_kb=128"]);
    }

    #[test]
    fn loop_devices_have_blocks_of_up_to_a_page() {
        let with = |logical_block_bytes| {
            let mut like = beneath();
            like.disk.logical_block_bytes = logical_block_bytes;
            like.loop_block_bytes()
        };
        assert_eq!([with(512), with(4096), with(16384)], [0, 4096, 0]);
    }

    #[test]
    fn a_scheduler_that_is_not_offered_is_not_asked_for() {
        let setting =
            |value: &str| Setting { knob: Knob::queue([7, 1], "scheduler"), value: value.into() };
        assert!(takes("none [mq-deadline]\n", &setting("none")));
        assert!(!takes("noop [deadline] cfq\n", &setting("none")));
        assert!(takes("128\n", &setting("256")));
    }
}
