//! LVM's caches: all devices but the last are one volume, and the last, the fast one, caches it:
//! lvmcache(7).

use super::lvm::{AS_IT_IS, create, group, lvm, named};
use super::words::{nothing, with};
use super::{Kind, Made, Place, Seat, Value};
use crate::tool::Argv;

/// What is cached, and with what.
const VOLUME: &str = "volume";
const FAST: &str = "fast";

/// Documentation/admin-guide/device-mapper/cache.rst, "Write-back", "Write-through".
const MODES: [&str; 3] = ["writethrough", "writeback", "passthrough"];

pub const CACHE: Kind = Kind {
    name: "cache",
    about: "dm-cache, by LVM: the last device caches a volume on the others",
    settings: &[("mode", Value::OneOf(&MODES)), ("chunk", Value::CacheChunk)],
    programs: &["lvm"],
    modules: &["dm_cache", "dm_cache_smq"],
    asked_for: nothing,
    devices_min: 2,
    place: Place::WithCache,
    on_hosts: true,
    up: |seat| {
        let mode = seat.setting("mode").map(String::from);
        let chunk = seat.size_bytes("chunk").map(|bytes| format!("{}k", bytes >> 10));
        cached(seat, "cache", &[("--cachemode", mode), ("--chunksize", chunk)])
    },
};

pub const WRITECACHE: Kind = Kind {
    name: "writecache",
    about: "dm-writecache, by LVM: the last device takes what is written to the others",
    settings: &[
        ("block_size", Value::OneOf(&["512", "4096"])),
        ("high_watermark", Value::Percent),
        ("low_watermark", Value::Percent),
    ],
    modules: &["dm_writecache"],
    up: |seat| {
        // Documentation/admin-guide/device-mapper/writecache.rst.
        let set: Vec<String> =
            seat.layer.settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let settings = (!set.is_empty()).then(|| set.join(" "));
        cached(seat, "writecache", &[("--cachesettings", settings)])
    },
    ..CACHE
};

fn cached(seat: &Seat, kind: &str, options: &[(&str, Option<String>)]) -> Made {
    let (fast, slow) = seat
        .devices
        .split_last()
        .map_or((&[][..], &[][..]), |(fast, slow)| (std::slice::from_ref(fast), slow));
    let all_of = |devices: &[String], name: &str, active: &str| -> Argv {
        let options = ["--type", "linear", "--extents", "100%PVS", "--activate", active];
        [named(create(seat, &options, &AS_IT_IS), name, seat), devices.to_vec()].concat()
    };
    let convert = lvm(seat, "lvconvert", &["--yes", "--type", kind, "--cachevol", FAST]);
    let mut convert = with(convert, options);
    convert.push(format!("{}/{VOLUME}", seat.name(0)));
    let made = group(seat, vec![all_of(slow, VOLUME, "y"), all_of(fast, FAST, "n"), convert]);
    let columns = "lv_name,segtype,cache_mode,chunk_size,lv_size,devices";
    let facts = ["--all", "--noheadings", "--options", columns, &seat.name(0)];
    Made { facts: vec![lvm(seat, "lvs", &facts)], ..made }
}
