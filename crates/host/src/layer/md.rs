//! RAID by the kernel's md driver, as mdadm(8) makes it: all devices become one.

use super::words::{nothing, shell, with, words};
use super::{Kind, Made, Place, Seat, Value};
use crate::machine::registry::OF_ROOT;
use crate::tool::Argv;

/// What a RAID that can do without a device may be in while the work is done: the last device has
/// failed; the devices are brought in line with each other; all are read and compared.
const STATES: [&str; 3] = ["degraded", "resync", "check"];
const STATE: (&str, Value) = ("state", Value::OneOf(&STATES));
/// How much of each device is brought in line, or compared, in a second.
const SPEED: (&str, Value) = ("speed", Value::Chunk);

const PLAIN: Kind = Kind {
    name: "",
    about: "",
    settings: &[("chunk", Value::Chunk), STATE, SPEED],
    programs: &["mdadm", "rm", "sed", "sh"],
    modules: &[],
    asked_for: nothing,
    devices_min: 2,
    place: Place::Upon,
    on_hosts: true,
    up,
};

pub const RAID0: Kind = Kind {
    name: "raid0",
    about: "md RAID 0: striped over all devices",
    settings: &[("chunk", Value::Chunk)],
    modules: &["raid0"],
    ..PLAIN
};

pub const RAID1: Kind = Kind {
    name: "raid1",
    about: "md RAID 1: the same on every device",
    settings: &[STATE, SPEED],
    modules: &["raid1"],
    ..PLAIN
};

pub const RAID5: Kind = Kind {
    name: "raid5",
    about: "md RAID 5: striped, with the parity of one device",
    modules: &["raid456"],
    devices_min: 3,
    ..PLAIN
};

pub const RAID6: Kind = Kind {
    name: "raid6",
    about: "md RAID 6: striped, with the parity of two devices",
    modules: &["raid456"],
    devices_min: 4,
    ..PLAIN
};

pub const RAID10: Kind = Kind {
    name: "raid10",
    about: "md RAID 10: striped, every stripe on two devices",
    modules: &["raid10"],
    ..PLAIN
};

/// Makes an array whose device has its name and not the next number: `md_NAME` in `/dev` and in
/// `/sys/block` (mdadm.conf(5), "CREATE", "names="). The name shows that the device is ours. mdadm
/// reads nothing from a config that is not a regular file (config.c, `conf_file_or_dir`). If it
/// can't use the name it takes a number, and does not fail.
fn named(name: &str) -> String {
    let config = format!("{OF_ROOT}/{name}.conf");
    format!(
        "echo CREATE names=yes >{config} && mdadm \"$@\" --config={config} && test -d \
         /sys/block/md_{name}; it=$?; rm {config}; exit $it"
    )
}

/// `--assume-clean`: otherwise the kernel syncs the devices while the work is measured, which only
/// state=resync asks for. Nothing is read that was not written before, so this makes no other
/// difference (mdadm(8), "--assume-clean"). RAID 5 is made degraded, with a spare that is rebuilt,
/// unless `--force` is given (mdadm(8), "--force").
fn up(seat: &Seat) -> Made {
    let name = format!("{}{}", seat.names.prefix, seat.level);
    let array = format!("/dev/md_{name}");
    let level = seat.layer.name.trim_start_matches("raid");
    let path = format!("/dev/md/{name}");
    let create = words(&["sh", "-c", &named(&name), "mdadm", "--create", &path]);
    let create = [create, words(&["--run", "--metadata=1.2", "--homehost=any"])].concat();
    let clean = match (seat.setting("state"), level) {
        (Some("resync"), "5") => &["--force"][..],
        (Some("resync"), _) => &[],
        _ => &["--assume-clean"],
    };
    let chunk = seat.size_bytes("chunk").map(|bytes| (bytes >> 10).to_string());
    let create = with(
        [create, words(clean)].concat(),
        &[
            ("--chunk", chunk),
            ("--level", Some(level.into())),
            ("--raid-devices", Some(seat.devices.len().to_string())),
        ],
    );
    let create = vec![[&create, seat.devices].concat()];
    Made {
        commands: [speed_limits(seat), create, into_state(seat, &array)].concat(),
        facts: vec![words(&["sed", "-n", &format!("/^md_{name} :/,/^ *$/p"), "/proc/mdstat"])],
        devices: vec![array],
    }
}

/// A resync or a check keeps up the lower of two speeds beside other work, and never passes the
/// other (md(4), "/proc/sys/dev/raid/speed_limit_min"). Both are the same here, so that it takes as
/// much of the disks from each file system; and set first, because a small array syncs at once.
fn speed_limits(seat: &Seat) -> Vec<Argv> {
    let kib = seat.size_bytes("speed").map(|bytes| bytes >> 10);
    let limit = |kib, which| shell(&format!("echo {kib} >/proc/sys/dev/raid/speed_limit_{which}"));
    kib.map_or(Vec::new(), |kib| ["max", "min"].map(|which| limit(kib, which)).into())
}

fn into_state(seat: &Seat, array: &str) -> Vec<Argv> {
    let name = array.trim_start_matches("/dev/");
    match (seat.setting("state"), seat.devices) {
        (Some("degraded"), [.., last]) => vec![words(&["mdadm", array, "--fail", last])],
        (Some("check"), _) => vec![shell(&format!("echo check >/sys/block/{name}/md/sync_action"))],
        _ => Vec::new(),
    }
}
