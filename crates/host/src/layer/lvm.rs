//! LVM: all devices become one group, and that one volume, as lvm(8) makes it.

use super::words::{nothing, with, words};
use super::{Kind, Made, Place, Seat, Value};
use crate::tool::Argv;

/// lvm.conf(5): no udev makes nodes, no daemon watches pools, no file lists devices, and a machine
/// keeps nothing. It does not know null_blk's and zram's disks by itself. Groups get a system ID,
/// so that another lvm that learns of their devices, as from a host's udev, leaves them alone:
/// lvmsystemid(7).
const CONFIG: &str = "activation{udev_sync=0 udev_rules=0 monitoring=0} \
                      backup{backup=0 archive=0} \
                      global{use_lvmpolld=0 thin_check_executable=\"\" \
                      cache_check_executable=\"\" system_id_source=\"lvmlocal\"} \
                      local{system_id=\"fsverdict\"} \
                      devices{use_devicesfile=0 obtain_device_list_from_udev=0 hints=\"none\" \
                      types=[\"nullb\",16,\"zram\",16]";

/// The devices below, and no other that there is, are what it looks at.
fn config(seat: &Seat) -> String {
    let one = |device: &String| format!("\"a|^{}$|\",", device.replace('.', "[.]"));
    let all: String = seat.devices.iter().map(one).collect();
    format!("{CONFIG} filter=[{all}\"r|.*|\"]}}")
}

/// What the volume is called, and the pool below it.
const VOLUME: &str = "volume";
const POOL: &str = "pool";
/// The snapshot: LVM lets no volume's name begin with that word.
const KEPT: &str = "kept";
/// A volume is there when its node is, which lvm looks for to clear its beginning.
pub const AS_IT_IS: [&str; 4] = ["--zero", "n", "--wipesignatures", "n"];

const PLAIN: Kind = Kind {
    name: "",
    about: "",
    settings: &[],
    programs: &["lvm"],
    modules: &["dm_mod"],
    asked_for: nothing,
    devices_min: 1,
    place: Place::Upon,
    on_hosts: true,
    up: |_| Made::default(),
};

pub const LINEAR: Kind = Kind {
    name: "lvm",
    about: "LVM: a linear volume over all devices",
    up: |seat| {
        let volume = create(seat, &["--type", "linear", "--extents", "100%FREE"], &AS_IT_IS);
        group(seat, vec![named(volume, VOLUME, seat)])
    },
    ..PLAIN
};

pub const STRIPED: Kind = Kind {
    name: "lvm-striped",
    about: "LVM: a volume striped over all devices",
    // LVM makes a longer one as long as an extent, which has 4 MiB: vgcreate(8).
    settings: &[("stripe", Value::Within(4 << 10, 4 << 20))],
    devices_min: 2,
    up: striped,
    ..PLAIN
};

pub const THIN: Kind = Kind {
    name: "lvm-thin",
    about: "LVM: a thin volume as large as its pool; a block is allocated when it is written",
    // lvmthin(7), "Chunk size".
    settings: &[("chunk", Value::Within(64 << 10, 1 << 30)), ("zero", Value::Switch)],
    programs: &["lvm", "sh"],
    modules: &["dm_thin_pool"],
    up: thin,
    ..PLAIN
};

pub const SNAPSHOT: Kind = Kind {
    name: "lvm-snapshot",
    about: "LVM: a volume with a snapshot: what is first overwritten in a chunk is copied there",
    // lvcreate(8), "--chunksize".
    settings: &[("chunk", Value::Within(4 << 10, 512 << 10))],
    modules: &["dm_snapshot"],
    up: snapshot,
    ..PLAIN
};

/// The snapshot is taken while the volume is empty, and so is the same for each file system: all of
/// the volume is kept, and a chunk is copied when it is first written to
/// (Documentation/admin-guide/device-mapper/snapshot.rst). lvcreate(8) gives it no more than it
/// takes to keep all, which is a little more than the volume: it never overflows.
fn snapshot(seat: &Seat) -> Made {
    let volume = create(seat, &["--type", "linear", "--extents", "45%VG"], &AS_IT_IS);
    let all = ["--type", "snapshot", "--extents", "100%FREE", "--name", KEPT];
    let kept = with(create(seat, &all, &[]), &[("--chunksize", kib(seat, "chunk"))]);
    let kept = [kept, vec![format!("{}/{VOLUME}", seat.name(0))]].concat();
    group(seat, vec![named(volume, VOLUME, seat), kept])
}

fn striped(seat: &Seat) -> Made {
    let count = seat.devices.len().to_string();
    let all = ["--type", "striped", "--extents", "100%FREE", "--stripes", &count];
    let volume = create(seat, &all, &[]);
    let volume = with(volume, &[("--stripesize", kib(seat, "stripe"))]);
    group(seat, vec![named([volume, words(&AS_IT_IS)].concat(), VOLUME, seat)])
}

/// The pool's size is known when it is there: it has given some to its metadata.
fn thin(seat: &Seat) -> Made {
    let config = config(seat);
    let pool = create(seat, &["--type", "thin-pool", "--extents", "100%FREE"], &[]);
    let zero = seat.setting("zero").map(|value| value[..1].into());
    let pool = with(pool, &[("--chunksize", kib(seat, "chunk")), ("--zero", zero)]);
    let pool = [pool, words(&["--poolmetadataspare", "n"])].concat();
    let of_pool = format!("{}/{POOL}", seat.name(0));
    let volume = format!(
        "lvm lvcreate --config '{config}' --yes --type thin --virtualsize $(lvm lvs --config \
         '{config}' --noheadings --units b -o lv_size {of_pool}) --wipesignatures n --name \
         {VOLUME} --thinpool {of_pool}"
    );
    group(seat, vec![named(pool, POOL, seat), words(&["sh", "-c", &volume])])
}

/// All devices as a group, and `volumes` in it.
pub fn group(seat: &Seat, volumes: Vec<Argv>) -> Made {
    let group = seat.name(0);
    let on = |argv: Argv| [&argv, seat.devices].concat();
    let physical = on(lvm(seat, "pvcreate", &["-ff", "--yes"]));
    let mut commands = vec![physical, on(lvm(seat, "vgcreate", &["--yes", &group]))];
    commands.extend(volumes);
    let columns = "lv_name,segtype,stripes,stripe_size,chunk_size,lv_size";
    let facts = ["--all", "--noheadings", "--options", columns, &group];
    Made {
        commands,
        facts: vec![lvm(seat, "lvs", &facts)],
        // A `-` in either name would be doubled (lvm2's libdm-string.c, `dm_build_dm_name`).
        devices: vec![format!("/dev/mapper/{group}-{VOLUME}")],
    }
}

fn kib(seat: &Seat, name: &str) -> Option<String> {
    seat.size_bytes(name).map(|bytes| format!("{}k", bytes >> 10))
}

pub fn lvm(seat: &Seat, command: &str, arguments: &[&str]) -> Argv {
    words(&[&["lvm", command, "--config", &config(seat)], arguments].concat())
}

pub fn create(seat: &Seat, options: &[&str], more: &[&str]) -> Argv {
    lvm(seat, "lvcreate", &[&["--yes"], options, more].concat())
}

pub fn named(argv: Argv, name: &str, seat: &Seat) -> Argv {
    [argv, words(&["--name", name]), vec![seat.name(0)]].concat()
}
