//! bcache: the last device caches each of the others (Documentation/admin-guide/bcache.rst).

use fsverdict_core::model::{Bytes, Layer};

use super::words::{bytes, nothing, shell, with, words};
use super::{Kind, Made, Place, Seat, Value};

const MODES: [&str; 4] = ["writethrough", "writeback", "writearound", "none"];

pub const BCACHE: Kind = Kind {
    name: "bcache",
    about: "bcache: the last device caches each of the others",
    settings: &[
        ("mode", Value::OneOf(&MODES)),
        ("bucket", Value::Chunk),
        ("sequential_cutoff", Value::Size),
    ],
    programs: &["make-bcache", "sh", "cat"],
    modules: &["bcache"],
    asked_for: nothing,
    devices_min: 2,
    place: Place::WithCache,
    on_hosts: false,
    up,
};

/// What make-bcache(8) gives a bucket.
const BUCKET_BYTES: u64 = 512 << 10;
/// The kernel refuses a cache that has no more buckets (drivers/md/bcache/super.c, `cache_alloc`).
const TOO_FEW_BUCKETS: u64 = 512;

/// Whether a cache on a disk of that size has buckets enough.
pub fn check_size(layer: &Layer, disk: Bytes) -> Result<(), String> {
    let bucket = layer.settings.get("bucket").and_then(|it| bytes(it)).unwrap_or(BUCKET_BYTES);
    if layer.name != BCACHE.name || disk.0 / bucket > TOO_FEW_BUCKETS {
        return Ok(());
    }
    Err(format!(
        "{layer}: a cache has more than {TOO_FEW_BUCKETS} buckets, and {disk} are {} of {}: give \
         it smaller ones (bcache:bucket=64k), or a larger --size",
        disk.0 / bucket,
        Bytes(bucket)
    ))
}

/// There is no udev that tells the kernel of them ("bcache-register"): the cache comes first, so
/// that it is there when a device that it is for is registered. The kernel numbers these as they
/// come.
fn up(seat: &Seat) -> Made {
    let mut made = Made::default();
    let Some((fast, slow)) = seat.devices.split_last() else { return made };
    let bucket = seat.size_bytes("bucket").map(|bytes| format!("{}k", bytes >> 10));
    let make = with(words(&["make-bcache", "--wipe-bcache"]), &[("--bucket", bucket)]);
    let of = [words(&["--cache", fast, "--bdev"]), slow.to_vec()].concat();
    made.commands.push([make, of].concat());
    let register = |device| shell(&format!("echo {device} >/sys/fs/bcache/register"));
    made.commands.extend([fast].into_iter().chain(slow).map(register));
    let mode = seat.setting("mode").map(|mode| ("cache_mode", mode.to_string()));
    let cutoff = seat.size_bytes("sequential_cutoff");
    let cutoff = cutoff.map(|bytes| ("sequential_cutoff", bytes.to_string()));
    for number in 0..slow.len() {
        let folder = format!("/sys/block/bcache{number}/bcache");
        for (file, value) in mode.iter().chain(&cutoff) {
            made.commands.push(shell(&format!("echo {value} >{folder}/{file}")));
        }
        let files = ["state", "cache_mode", "sequential_cutoff"];
        let paths: Vec<String> = files.iter().map(|file| format!("{folder}/{file}")).collect();
        made.facts.push([words(&["cat"]), paths].concat());
        made.devices.push(format!("/dev/bcache{number}"));
    }
    made
}
