//! null_blk: disks in the guest's memory, in the place of the bed's own and as large
//! (Documentation/block/null_blk.rst; the attributes of configfs have the parameters' names, those
//! that it lacks are in drivers/block/null_blk/main.c, `nullb_device_attrs`).

use std::ffi::CStr;

use fsverdict_core::model::Layer;

use super::words::{nothing, shell, words};
use super::{Kind, Made, Place, Seat, Value};
use crate::tool::Argv;

/// Where the kernel has them made: a folder is a disk once its `power` is 1.
const CONFIG: &str = "/sys/kernel/config";

/// Queues for submission: `submit_queues`.
pub const QUEUES: &str = "queues";
/// How long a request takes besides: `irqmode=2`, `completion_nsec`.
const LATENCY: &str = "latency";
/// The write cache that it has, without which it needs no flush: `cache_size`.
pub const CACHE: &str = "cache";
/// The size of a zone: `zone_size`.
const ZONE: &str = "zone_size";
const CAPACITY: &str = "zone_capacity";
/// How many zones at the beginning are written anywhere: `zone_nr_conv`.
const CONVENTIONAL: &str = "conventional";

/// Default size of a zone: with the kernel's 256 MiB small disks have too few. Btrfs could not be
/// made on 8 zones, and failed on 16 with 4 conventional ones (seen on Linux 6.1).
const ZONE_BYTES: u64 = 16 << 20;
/// How many zones are conventional where nothing is said: F2FS has its metadata there
/// (mkfs/f2fs_format.c, `f2fs_prepare_super_block`), and needs 3 of 1 GiB.
const CONVENTIONAL_ZONES: u64 = 8;

pub const NULL_BLK: Kind = Kind {
    name: Layer::DISKS[0],
    about: "null_blk: disks in the guest's memory, in place of the bed's",
    settings: &[(QUEUES, Value::Count), (LATENCY, Value::Time), (CACHE, Value::Mib)],
    // In the order in which they are needed.
    programs: &["sh", "mount", "mkdir", "cat"],
    modules: &["null_blk"],
    asked_for: nothing,
    devices_min: 1,
    place: Place::OfDisks,
    on_hosts: false,
    up,
};

pub const ZONED: Kind = Kind {
    name: Layer::DISKS[1],
    about: "null_blk as host-managed zoned disks, of which each zone is written from its start",
    settings: &[
        (ZONE, Value::Zone),
        (CAPACITY, Value::Mib),
        (CONVENTIONAL, Value::Count),
        ("max_open", Value::Count),
        ("max_active", Value::Count),
        (QUEUES, Value::Count),
        (LATENCY, Value::Time),
        (CACHE, Value::Mib),
    ],
    ..NULL_BLK
};

/// The disk of that number. It has that name since the module makes none by itself
/// ([`PARAMETERS`]).
fn disk(number: usize) -> String {
    format!("nullb{number}")
}

/// The module's parameters: without them it makes a disk that forgets what is written.
pub const PARAMETERS: (&str, &CStr) = ("null_blk", c"nr_devices=0");

fn up(seat: &Seat) -> Made {
    let mount = ["mount", "-t", "configfs", "configfs", CONFIG];
    let mut made = Made { commands: vec![words(&mount)], ..Made::default() };
    for (number, below) in seat.devices.iter().enumerate() {
        made.commands.push(make(seat, number, below));
        made.facts.push(described(seat, number));
        made.devices.push(format!("/dev/{}", disk(number)));
    }
    made
}

/// Makes one as large as the disk `below`, which has its size in sectors of 512 bytes, and null_blk
/// in MiB.
fn make(seat: &Seat, number: usize, below: &str) -> Argv {
    let (name, of) = (disk(number), below.rsplit('/').next().unwrap_or(below));
    let mut line = format!(
        "cd {CONFIG}/nullb && mkdir {name} && cd {name} && \
         echo $(($(cat /sys/class/block/{of}/size) / 2048)) >size"
    );
    for (attribute, value) in attributes(seat) {
        line += &format!(" && echo {value} >{attribute}");
    }
    shell(&format!("{line} && echo 1 >power"))
}

fn attributes(seat: &Seat) -> Vec<(&'static str, u64)> {
    let count = |name| seat.setting(name).and_then(|value| value.parse::<u64>().ok());
    let mib = |name| seat.size_bytes(name).map(|bytes| bytes >> 20);
    let latency = seat.setting(LATENCY).and_then(nanoseconds);
    let mut all = vec![("memory_backed", Some(1)), ("submit_queues", count(QUEUES))];
    // 2 is a timer.
    all.extend([("irqmode", latency.map(|_| 2)), ("completion_nsec", latency)]);
    all.push(("cache_size", mib(CACHE)));
    if seat.layer.name == ZONED.name {
        all.extend([("zoned", Some(1)), ("zone_size", Some(zone_bytes(seat.layer) >> 20))]);
        all.extend([
            ("zone_capacity", mib(CAPACITY)),
            ("zone_nr_conv", Some(conventional(seat.layer))),
        ]);
        all.extend([("zone_max_open", count("max_open"))]);
        all.extend([("zone_max_active", count("max_active"))]);
    }
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// What the kernel says of it.
fn described(seat: &Seat, number: usize) -> Argv {
    let name = disk(number);
    let (queue, config) = (format!("/sys/block/{name}/queue"), format!("{CONFIG}/nullb/{name}"));
    let mut words = vec![format!("{config}/size"), format!("{config}/submit_queues")];
    words.extend([format!("{config}/completion_nsec"), format!("{queue}/write_cache")]);
    words.push(format!("{queue}/zoned"));
    if seat.layer.name == ZONED.name {
        words.extend([format!("{queue}/nr_zones"), format!("{config}/zone_size")]);
        words.push(format!("{config}/zone_nr_conv"));
    }
    let said = words.iter().map(|path| {
        let file = path.rsplit('/').next().unwrap_or_default();
        format!("echo {file}=$(cat {path})")
    });
    shell(&said.collect::<Vec<_>>().join("; "))
}

/// How large the zones of a zoned layer are.
pub fn zone_bytes(layer: &Layer) -> u64 {
    layer.settings.get(ZONE).and_then(|value| super::words::bytes(value)).unwrap_or(ZONE_BYTES)
}

/// How many of them are written anywhere.
pub fn conventional(layer: &Layer) -> u64 {
    layer.settings.get(CONVENTIONAL).and_then(|it| it.parse().ok()).unwrap_or(CONVENTIONAL_ZONES)
}

/// What is wrong with its settings, each alone and together.
pub fn check(layer: &Layer) -> Result<(), String> {
    if layer.settings.get(QUEUES).is_some_and(|queues| queues == "0") {
        return Err(format!("{layer}: queues is a whole number from 1 on"));
    }
    let (zone, capacity) = (zone_bytes(layer), layer.settings.get(CAPACITY));
    match capacity.and_then(|value| super::words::bytes(value)) {
        Some(bytes) if bytes > zone => {
            Err(format!("{layer}: zone_capacity is at most zone_size, {}", zone >> 20) + "M")
        }
        _ => Ok(()),
    }
}

/// `50us`, in the kernel's own unit.
pub fn nanoseconds(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let factor = match &text[at..] {
        "ns" => 1,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    text[..at].parse::<u64>().ok()?.checked_mul(factor).filter(|it| (1..=1 << 36).contains(it))
}
