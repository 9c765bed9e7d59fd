//! dm-integrity: a checksum beside every sector of each device, as integritysetup(8) makes it.

use fsverdict_core::model::Layer;

use super::luks::SECTOR;
use super::words::{with, words};
use super::{Kind, Made, Place, Seat, Value};

/// The journal is what integritysetup takes by itself.
const MODES: [&str; 3] = ["journal", "bitmap", "direct"];

pub const INTEGRITY: Kind = Kind {
    name: "integrity",
    about: "dm-integrity: a checksum of every sector, kept by a journal, a bitmap or neither",
    settings: &[("hash", Value::Word), ("mode", Value::OneOf(&MODES)), ("sector_size", SECTOR)],
    programs: &["integritysetup"],
    modules: &["dm_integrity"],
    asked_for: hashes,
    devices_min: 1,
    place: Place::Upon,
    on_hosts: true,
    up,
};

/// The whole device is written once while it is formatted: a block without a checksum can't be
/// read.
fn up(seat: &Seat) -> Made {
    let hash = seat.setting("hash").map(String::from);
    let sector = seat.size_bytes("sector_size").map(|bytes| bytes.to_string());
    let mode = match seat.setting("mode") {
        Some("bitmap") => vec!["--integrity-bitmap-mode"],
        Some("direct") => vec!["--integrity-no-journal"],
        _ => Vec::new(),
    };
    let mut made = Made::default();
    for (device, name) in seat.each() {
        let options = [("--integrity", hash.clone())];
        let format = words(&["integritysetup", "format", "--batch-mode"]);
        let format = with(format, &[&options[..], &[("--sector-size", sector.clone())]].concat());
        made.commands.push([format, vec![device.clone()]].concat());
        let open = with(words(&["integritysetup", "open"]), &options);
        made.commands.push([open, words(&mode), vec![device.clone(), name.clone()]].concat());
        made.facts.push(words(&["integritysetup", "status", &name]));
        made.devices.push(format!("/dev/mapper/{name}"));
    }
    made
}

/// Those of crc32 and crc32c are `-cryptoapi` since Linux 6.17, `-generic` before
/// (crypto/Makefile).
fn hashes(layer: &Layer) -> Vec<String> {
    let hash = layer.settings.get("hash").map_or("crc32c", String::as_str);
    ["", "_generic", "_cryptoapi", "_intel", "_ssse3"].map(|form| format!("{hash}{form}")).into()
}
