//! dm-delay: every request takes longer, by a time for reads, writes and flushes each
//! (Documentation/admin-guide/device-mapper/delay.rst). It gives what a slower disk has and limits
//! do not: latency. Requests wait in parallel, as on a volume behind a network, and not one after
//! the other, as under one disk head.

use fsverdict_core::model::Layer;

use super::words::{milliseconds, nothing, shell, words};
use super::{Kind, Made, Place, Seat, Value};

/// What is delayed, in the order of the table's words. The device mapper splits a write with a
/// preflush (drivers/md/dm.c, `__send_empty_flush`): it waits for both delays.
const READ: &str = "read";
const WRITE: &str = "write";
const FLUSH: &str = Layer::DELAY[1];

pub const DELAY: Kind = Kind {
    name: Layer::DELAY[0],
    about: "dm-delay: every request takes longer, reads, writes and flushes each by their time",
    settings: &[(READ, Value::Millis), (WRITE, Value::Millis), (FLUSH, Value::Millis)],
    programs: &["sh", "blockdev", "dmsetup"],
    modules: &["dm_delay"],
    asked_for: nothing,
    devices_min: 1,
    place: Place::Upon,
    on_hosts: true,
    up,
};

fn up(seat: &Seat) -> Made {
    let mut made = Made::default();
    for (device, name) in seat.each() {
        let delayed = [READ, WRITE, FLUSH].map(|of| {
            let time_ms = seat.setting(of).and_then(milliseconds).unwrap_or(0);
            format!("{device} 0 {time_ms}")
        });
        let table = format!("0 $(blockdev --getsz {device}) delay {}", delayed.join(" "));
        made.commands.push(shell(&format!("dmsetup create {name} --table \"{table}\"")));
        made.facts.push(words(&["dmsetup", "table", &name]));
        made.devices.push(format!("/dev/mapper/{name}"));
    }
    made
}

/// One that delays nothing is a mistake.
pub fn check(layer: &Layer) -> Result<(), String> {
    match layer.settings.values().filter_map(|it| milliseconds(it)).max() {
        None | Some(0) => Err(format!(
            "{layer}: say what takes how much longer, as in delay:read=8ms,write=1ms,flush=8ms"
        )),
        Some(_) => Ok(()),
    }
}
