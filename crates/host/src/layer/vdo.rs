//! dm-vdo: blocks of 4 KiB are compressed, and equal ones are stored once
//! (Documentation/admin-guide/device-mapper/vdo.rst, vdoformat(8)).

use fsverdict_core::model::{Bytes, Layer};

use super::words::{bytes, nothing, shell, words};
use super::{Kind, Made, Place, Seat, Value};

const COMPRESSION: &str = Layer::VDO[1];
const DEDUPLICATION: &str = Layer::VDO[2];

pub const VDO: Kind = Kind {
    name: Layer::VDO[0],
    about: "dm-vdo: blocks are compressed, and blocks that are alike are stored once",
    settings: &[
        (COMPRESSION, Value::Switch),
        (DEDUPLICATION, Value::Switch),
        // vdoformat(8), `--slab-bits`: from 13 to 23, in blocks of 4 KiB.
        ("slab", Value::Within(32 << 20, 32 << 30)),
    ],
    programs: &["sh", "blockdev", "vdoformat", "dmsetup"],
    modules: &["dm_vdo"],
    asked_for: nothing,
    devices_min: 1,
    place: Place::Upon,
    on_hosts: true,
    up,
};

/// What vdoformat gives a slab.
const SLAB_BYTES: u64 = 2 << 30;
/// What it needs besides one: the index of 256 MB of memory above all. vdoformat 8.3.2 refuses less
/// than 5,063,921,664 bytes with a slab of 2 GiB.
const INDEX_BYTES: u64 = 5_063_921_664 - SLAB_BYTES;
/// The smallest map cache that the kernel takes, and the longest era, both in blocks: what vdo.rst
/// recommends.
const MAP: &str = "32768 16380";

fn slab_bytes(layer: &Layer) -> u64 {
    layer.settings.get("slab").and_then(|it| bytes(it)).unwrap_or(SLAB_BYTES)
}

/// Whether a disk of that size, with nothing between, has room for it.
pub fn check_size(layer: &Layer, disk: Bytes) -> Result<(), String> {
    let needed = INDEX_BYTES + slab_bytes(layer);
    if layer.name != VDO.name || disk.0 >= needed {
        return Ok(());
    }
    Err(format!(
        "{layer}: its index and one slab take {} MiB, and a disk has {disk}: give it smaller \
         slabs (vdo:slab=32M), or a larger --size",
        needed.div_ceil(1 << 20)
    ))
}

/// The device above is as large as what is free for data: it can be full, and never promises more
/// than there is. vdoformat says how many blocks that are, as the fifth word. LVM compresses by
/// itself, the kernel does not: here it is done.
fn up(seat: &Seat) -> Made {
    let mut made = Made::default();
    let bits = (slab_bytes(seat.layer) / 4096).ilog2();
    let is_on = |name| if seat.setting(name) == Some("no") { "off" } else { "on" };
    let features = [COMPRESSION, DEDUPLICATION].map(|name| format!("{name} {}", is_on(name)));
    for (device, name) in seat.each() {
        made.commands.push(shell(&format!(
            "said=$(vdoformat --force --slab-bits={bits} {device}) && set -- $said && dmsetup \
             create {name} --table \"0 $(($5 * 8)) vdo V4 {device} $(($(blockdev --getsize64 \
             {device}) / 4096)) 4096 {MAP} {}\"",
            features.join(" ")
        )));
        made.facts.push(words(&["dmsetup", "table", &name]));
        made.devices.push(format!("/dev/mapper/{name}"));
    }
    made
}
