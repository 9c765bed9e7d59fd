//! What can lie between the disk and the file system: one file for each kind, and a line of [`ALL`]
//! for each layer.
//!
//! A layer is its commands, as a file system is: they take the devices below, and the names of the
//! devices above are known in advance. In a virtual machine it ends with the machine, and nothing
//! takes it down; on a host [`host`] does. [`WITHOUT_UDEV`] makes the tools create nodes
//! themselves.

mod bcache;
mod cache;
mod delay;
pub mod host;
mod integrity;
mod known;
mod luks;
mod lvm;
mod md;
mod null_blk;
mod stack;
mod vdo;
mod words;

use fsverdict_core::model::{Bytes, Layer, meant};

use crate::machine::token::Token;
use crate::tool::Argv;
pub use known::{ALL, find};
pub use stack::{
    cache_bytes, check, check_processors, check_size, conventional_zones, in_place, is_fast,
    is_zoned, module_parameters, raise, stack, takes_guest, takes_place, top,
};
use words::bytes;
pub use words::clear_argv;

/// In the environment of what raises layers: libdevmapper then makes the nodes itself
/// (libdm-common.c, `_check_udev_is_running`), and mdadm does not wait for udev to do so (udev.c,
/// `udev_is_available`). A guest has no udev. A host's reports through a semaphore in its own IPC
/// namespace, not in a trial's.
pub const WITHOUT_UDEV: [(&str, &str); 2] = [("DM_DISABLE_UDEV", "1"), ("MDADM_NO_UDEV", "1")];

/// What fsverdict needs to know of a layer.
#[derive(Debug)]
pub struct Kind {
    /// Its name in plans and on the command line.
    pub name: &'static str,
    /// What it is, for `list`.
    pub about: &'static str,
    /// Its settings, and what their values have to be.
    pub settings: &'static [(&'static str, Value)],
    /// The programs that make it.
    pub programs: &'static [&'static str],
    /// Modules without which a kernel does not have it.
    pub modules: &'static [&'static str],
    /// Modules that the kernel asks for by name where it can: in a guest there is no modprobe.
    asked_for: fn(&Layer) -> Vec<String>,
    /// The fewest devices that it is made of.
    devices_min: usize,
    /// Where it stands.
    place: Place,
    /// A host can make it, and take it down again.
    on_hosts: bool,
    /// How it is made.
    up: fn(&Seat) -> Made,
}

/// Where a layer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On the devices below it.
    Upon,
    /// In place of the bed's disks, which are not used: it is made before the trial begins, and the
    /// trial's counters and settings are of it.
    OfDisks,
    /// On the devices below it; the last, the fast one, caches the others.
    WithCache,
}

/// What a setting's value has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A power of two, in bytes: `64k`.
    Size,
    /// A [`Value::Size`] of a page or more: the pieces that are spread over devices are no smaller.
    Chunk,
    /// `yes` or `no`.
    Switch,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A word of the tool's own.
    Word,
    /// A whole number.
    Count,
    /// A share of a hundred.
    Percent,
    /// A multiple of 32 KiB.
    CacheChunk,
    /// A power of two, in bytes, from the first to the second: its tool takes it as it is.
    Within(u64, u64),
    /// A size of whole MiB: `48M`.
    Mib,
    /// A [`Value::Size`] that a zone can have.
    Zone,
    /// A length of time: `50us`.
    Time,
    /// A time of whole milliseconds, at most a minute: `8ms`.
    Millis,
}

/// What devices of layers are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// With what each name begins.
    prefix: String,
}

impl Names {
    /// Where nobody else makes any: in a guest.
    pub fn alone() -> Names {
        Names { prefix: "fsverdict".into() }
    }

    /// Those of one run: no one else's begin so. That of an array just fits into the 31 characters
    /// that the kernel has for the name of a disk (DISK_NAME_LEN in include/linux/blkdev.h).
    pub fn of_run(run: &Token) -> Names {
        Names { prefix: format!("fsverdict_{run}_") }
    }
}

/// Where a layer is to be.
#[derive(Clone, Copy, Debug)]
struct Seat<'a> {
    names: &'a Names,
    /// How many layers are below.
    level: usize,
    /// The devices below.
    devices: &'a [String],
    /// It with its settings.
    layer: &'a Layer,
}

/// How a layer is made, and what comes out.
#[derive(Debug, Default)]
pub struct Made {
    /// The commands, in order.
    pub commands: Vec<Argv>,
    /// Commands that describe what was made.
    facts: Vec<Argv>,
    /// The devices above.
    pub devices: Vec<String>,
}

impl Kind {
    /// Modules of the kernel that `layer` can use: each may be lacking.
    pub fn asked_for(&self, layer: &Layer) -> Vec<String> {
        (self.asked_for)(layer)
    }

    /// Its settings, each with the words that it takes where these are few.
    pub fn choices(&self) -> Vec<String> {
        let choice = |(name, value): &(&str, Value)| match value {
            Value::OneOf(words) => format!("{name}={}", words.join("|")),
            Value::Switch => format!("{name}=yes|no"),
            Value::Time => format!("{name}=50us"),
            Value::Millis => format!("{name}=8ms"),
            Value::Size | Value::Chunk | Value::Word => name.to_string(),
            Value::Count | Value::Mib | Value::Zone => name.to_string(),
            Value::Percent | Value::CacheChunk | Value::Within(..) => name.to_string(),
        };
        self.settings.iter().map(choice).collect()
    }

    /// Its settings are known, and have values that they can have.
    fn check(&self, layer: &Layer) -> Result<(), String> {
        for (key, value) in &layer.settings {
            let known = self.settings.iter().find(|(name, _)| name == key);
            let (_, kind) = known.ok_or_else(|| {
                let names = self.settings.iter().map(|(name, _)| *name);
                format!("{} has no setting {key:?}; {}", self.name, meant(key, names))
            })?;
            kind.check(value).map_err(|wanted| format!("{layer}: {key} is {wanted}"))?;
        }
        if self.place == Place::OfDisks {
            null_blk::check(layer)?;
        }
        if self.name == delay::DELAY.name {
            delay::check(layer)?;
        }
        let state = layer.settings.get("state").map(String::as_str);
        if layer.settings.contains_key("speed") && !matches!(state, Some("resync" | "check")) {
            return Err(format!("{layer}: speed needs state=resync or state=check"));
        }
        Ok(())
    }
}

impl Value {
    fn check(self, value: &str) -> Result<(), String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || ":-_.,()".contains(c);
        let is_size = |least| bytes(value).is_some_and(|it| it >= least && it.is_power_of_two());
        let is_mib = bytes(value).is_some_and(|it| it > 0 && it.is_multiple_of(1 << 20));
        let (is_right, wanted) = match self {
            Value::Size => (is_size(512), "a power of two, as in 64k"),
            Value::Chunk => (is_size(4096), "a power of two from 4k on, as in 64k"),
            // Btrfs has none that are smaller (fs/btrfs/zoned.c, BTRFS_MIN_ZONE_SIZE).
            Value::Zone => (is_size(4 << 20), "a power of two from 4M on, as in 64M"),
            Value::Mib => (is_mib, "a number of whole MiB, as in 48M"),
            Value::Percent => {
                (value.parse::<u8>().is_ok_and(|it| it <= 100), "a number from 0 to 100")
            }
            // Documentation/admin-guide/device-mapper/cache.rst, "Fixed block size".
            Value::CacheChunk => (
                bytes(value).is_some_and(|it| it.is_multiple_of(32 << 10) && is_cache_chunk(it)),
                "a multiple of 32k up to 1G",
            ),
            Value::Within(least, most) => {
                let is_right = is_size(least) && bytes(value).is_some_and(|it| it <= most);
                let [least, most] = [least, most].map(|it| Bytes(it).to_string());
                let wanted = format!("a power of two from {least} to {most}");
                return if is_right { Ok(()) } else { Err(wanted) };
            }
            Value::Count => (value.parse::<u32>().is_ok(), "a whole number"),
            Value::Millis => (
                words::milliseconds(value).is_some(),
                "a time of whole milliseconds up to 60s, as in 8ms",
            ),
            Value::Time => (null_blk::nanoseconds(value).is_some(), "a time, as in 50us or 2ms"),
            Value::OneOf(words) => {
                let wanted = format!("one of {}", words.join(", "));
                return if words.contains(&value) { Ok(()) } else { Err(wanted) };
            }
            Value::Switch => (matches!(value, "yes" | "no"), "yes or no"),
            Value::Word => {
                (!value.starts_with('-') && value.chars().all(is_word), "a word of its tool's")
            }
        };
        if is_right { Ok(()) } else { Err(wanted.into()) }
    }
}

fn is_cache_chunk(bytes: u64) -> bool {
    (32 << 10..=1 << 30).contains(&bytes)
}

impl Seat<'_> {
    /// The value of a setting.
    fn setting(&self, name: &str) -> Option<&str> {
        self.layer.settings.get(name).map(String::as_str)
    }

    /// A size that was set, in bytes.
    fn size_bytes(&self, name: &str) -> Option<u64> {
        self.setting(name).and_then(bytes)
    }

    /// What the device upon the one of that number is called.
    fn name(&self, number: usize) -> String {
        format!("{}{}_{number}", self.names.prefix, self.level)
    }

    /// Each device below, and the name of that upon it.
    fn each(&self) -> impl Iterator<Item = (&String, String)> {
        self.devices.iter().enumerate().map(|(number, device)| (device, self.name(number)))
    }
}
