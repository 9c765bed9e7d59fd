//! RAID by the kernel's md driver, as mdadm(8) makes it: all devices become one.

use super::{Kind, Made, Seat, Value, nothing, with, words};

const PLAIN: Kind = Kind {
    name: "",
    about: "",
    settings: &[("chunk", Value::Chunk)],
    programs: &["mdadm", "cat"],
    modules: &[],
    asked_for: nothing,
    devices_min: 2,
    up,
};

pub const RAID0: Kind = Kind {
    name: "raid0",
    about: "md RAID 0: striped over all devices",
    modules: &["raid0"],
    ..PLAIN
};

pub const RAID1: Kind = Kind {
    name: "raid1",
    about: "md RAID 1: the same on every device",
    settings: &[],
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

/// `--assume-clean`: otherwise the kernel brings the devices in line with each other meanwhile, and
/// the work is measured beside that. Nothing is read that was not written before, so that it makes
/// no other difference (mdadm(8), "--assume-clean").
fn up(seat: &Seat) -> Made {
    let array = format!("/dev/md{}", seat.level);
    let level = seat.layer.name.trim_start_matches("raid");
    let create = words(&["mdadm", "--create", &array, "--run", "--assume-clean", "--metadata=1.2"]);
    let chunk = seat.size_bytes("chunk").map(|bytes| (bytes >> 10).to_string());
    let create = with(
        [create, words(&["--homehost=any"])].concat(),
        &[
            ("--chunk", chunk),
            ("--level", Some(level.into())),
            ("--raid-devices", Some(seat.devices.len().to_string())),
        ],
    );
    Made {
        commands: vec![[&create, seat.devices].concat()],
        facts: vec![words(&["cat", "/proc/mdstat"])],
        devices: vec![array],
    }
}
