//! ZFS, as zdb of zfs-fuse has it.

use std::collections::{BTreeMap, BTreeSet};

use fsverdict_core::blocks::{Journal, Map, Pool, ReadAt, What};

use super::{Agreement, Image, parts};
use crate::support::{Scene, tool};

/// Where blocks begin, and what is behind the last: two labels each, and room for a boot block.
const START: u64 = 4 << 20;
const END: u64 = 512 << 10;

/// Makes a pool in a mount namespace of its own, with a daemon that ends with it; works on it, and
/// copies its image as if there had been a crash, for which it stands still: blocks that were
/// written while a slow copy is made would be missing in it; then has zdb tell of both.
const WORK: &str = r#"
set -e
scene=$1 options=$2 pool=fsverdict-test-$$
for folder in /run/zfs /run/lock/zfs /var/lib/zfs; do
    mkdir -p $folder
    mount -t tmpfs none $folder
done
zfs-fuse --no-daemon --no-kstat-mount > $scene/daemon.log 2>&1 &
daemon=$!
until [ -S /run/zfs/zfs_socket ]; do sleep 0.1; done
at=$scene/mounted
zpool create -f -o cachefile=none $options -m $at $pool $scene/whole/pool.raw
cp -a $scene/tree $at
zfs snapshot $pool@one
zfs create -o compression=on $pool/child
seq 100000 > $at/child/numbers
rm -r $at/tree/directory/below
echo more >> $at/tree/numbers
for number in $(seq 30); do
    zfs set fsverdict:number=$number $pool
    dd if=/dev/zero of=$at/synced-$number bs=9000 count=1 conv=fsync 2> /dev/null
done
dd if=/dev/urandom of=$at/large bs=300000 count=1 conv=fsync 2> /dev/null
kill -STOP $daemon
cp $scene/whole/pool.raw $scene/crashed/pool.raw
kill -CONT $daemon
zpool export $pool
for image in whole crashed; do
    zdb -e -p $scene/$image -bbbbbb $pool > $scene/$image.zdb
done
"#;

/// A pool that work was done on, and the same as after a crash.
pub fn made(scene: &Scene, options: &str) -> [(Image, String); 2] {
    super::tree(scene);
    let images = ["whole", "crashed"].map(|name| {
        let _ = std::fs::remove_dir_all(scene.path(name));
        std::fs::create_dir_all(scene.path(name)).unwrap();
        scene.typed(&format!("{name}/pool.raw"))
    });
    tool("truncate", &["--size=256M", &images[0]]).unwrap();
    let namespace = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let folder = scene.path("").display().to_string();
    let script = ["sh", "-c", WORK, "sh", &folder, options];
    tool("unshare", &[&namespace[..], &script].concat()).unwrap();
    ["whole", "crashed"].map(|name| {
        let said = scene.read(&format!("{name}.zdb"));
        (Image::open(&scene.typed(&format!("{name}/pool.raw"))), said)
    })
}

/// What we say of a block, in words that can be made of what the tool says.
fn ours(what: What) -> String {
    match what {
        What::Data { inode, offset_bytes } => format!("data {inode} {offset_bytes}"),
        What::Directory { inode, offset_bytes } => format!("directory {inode} {offset_bytes}"),
        What::Mapping { inode } => format!("map {inode}"),
        What::Pool(Pool::ObjectSet { set }) => format!("set {set}"),
        What::Pool(Pool::Dnodes { set, first }) => format!("dnodes {set} {first}"),
        What::Pool(Pool::Object { set, object, level, .. }) => {
            format!("{} {set}/{object} {level}", what.name().replace(' ', "-"))
        }
        What::Journal(Journal::IntentLog { set, sequence, .. }) => format!("log {set} {sequence}"),
        What::Free => "free".into(),
        other => format!("{other:?}"),
    }
}

/// What zdb says of the part `skip` bytes into a block.
fn theirs(kind: &str, [set, object, offset]: [u64; 3], level: i64, skip: u64) -> String {
    let mos = if set == 0 { "MOS-" } else { "" };
    let name = match kind {
        "ZFS plain file" if level == 0 => {
            return format!("data {set}/{object} {}", offset + skip);
        }
        "ZFS directory" if level == 0 => {
            return format!("directory {set}/{object} {}", offset + skip);
        }
        "ZFS plain file" | "ZFS directory" => return format!("map {set}/{object}"),
        "DMU objset" => return format!("set {set}"),
        "DMU dnode" if level == 0 => return format!("dnodes {set} {}", offset / 512),
        "ZIL intent log" => return format!("log {set} {offset}"),
        _ if level > 0 => "indirect-block",
        "SPA space map" => "space-map",
        "SPA history" => "pool-history",
        "DSL props" | "Pool properties" => "properties",
        "DSL directory child map" => "DSL-directory",
        "DSL dataset snap map" | "DSL dataset next clones" => "DSL-dataset",
        // The older name.
        "bplist" => "bpobj",
        "ZFS user/group used" => "space-by-user",
        "ZFS master node" => "master-node",
        "ZFS delete queue" => "delete-queue",
        other => other,
    };
    format!("{mos}{} {set}/{object} {level}", name.replace(' ', "-"))
}

/// `<0:27d2000:1000>`: the device, where on it, how much.
fn addresses(line: &str) -> Vec<(u64, u64)> {
    let address = |text: &str| {
        let mut numbers = text.split('>').next()?.split(':').skip(1);
        let mut number = || u64::from_str_radix(numbers.next()?, 16).ok();
        Some((number()? + START, number()?))
    };
    line.split("]=<").skip(1).filter_map(address).collect()
}

/// What zdb says of all that is allocated, block by block.
fn told(said: &str, block: u64) -> BTreeMap<u64, String> {
    let mut blocks = BTreeMap::new();
    for line in said.lines().filter(|line| line.starts_with("objset ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let offset = u64::from_str_radix(words[7].trim_start_matches("0x"), 16).unwrap();
        let [set, object] = [1, 3].map(|at| words[at].parse::<u64>().unwrap());
        let level = words[5].parse().unwrap();
        let (_, kind) = line.split_once("[L").unwrap().1.split_once(' ').unwrap();
        let kind = kind.split(']').next().unwrap();
        for (place, length) in addresses(line) {
            for skip in (0..length).step_by(block as usize) {
                let what = theirs(kind, [set, object, offset], level, skip);
                blocks.insert(place + skip, what);
            }
        }
    }
    blocks
}

/// Compares every block with zdb. Of a pool that was not exported zdb knows no log, and so none of
/// the data that only a log leads to.
#[track_caller]
pub fn assert_agree(image: &Image, said: &str, of: &str, has_log: bool) {
    let map = image.map();
    let block = u64::from(map.block_bytes());
    assert_eq!(map.file_system(), "zfs");
    let theirs = told(said, block);
    let mut agreement = Agreement::default();
    for place in (START..image.bytes() - END).step_by(block as usize) {
        let parts = parts(&map, place, block);
        assert_eq!(parts.len(), 1, "{place}: {parts:?}");
        let ours = ours(parts[0]);
        let theirs = theirs.get(&place).map_or("free", String::as_str);
        let is_logged = has_log && theirs == "free" && ours.starts_with(['d', 'l']);
        agreement.block(place / block, &ours, if is_logged { &ours } else { theirs });
    }
    let mut kinds = vec![
        "set",
        "dnodes",
        "MOS-object-directory",
        "MOS-space-map",
        "MOS-bpobj",
        "MOS-pool-history",
        "MOS-properties",
        "indirect-block",
        "map",
        "directory",
        "data",
        "free",
        "master-node",
        "space-by-user",
    ];
    kinds.extend(has_log.then_some("log"));
    agreement.holds(of, &kinds);
}

/// Labels and uberblocks are where `vdev_label_t` has them.
#[track_caller]
pub fn assert_labels(image: &Image) {
    let map = image.map();
    let end = image.bytes() - END;
    for (copy, place) in (0..).zip([0, 256 << 10, end, end + (256 << 10)]) {
        let at = |skip: u64| parts(&map, place + skip, 512)[0];
        let slot_bytes = u64::from(map.block_bytes()).max(1024);
        assert_eq!(at(16 << 10), What::Pool(Pool::Label { copy }));
        let slot = |slot| What::Pool(Pool::Uberblock { copy, slot });
        assert_eq!([at(128 << 10), at((128 << 10) + slot_bytes)], [slot(0), slot(1)]);
    }
}

/// What the bytes of the image say by themselves, where nothing has them any more.
fn freed(image: &Image, map: &Map) -> BTreeMap<u64, String> {
    const AT_ONCE: u64 = 1 << 20;
    let block = u64::from(map.block_bytes());
    let mut found = BTreeMap::new();
    for at in (START..image.bytes() - END).step_by(AT_ONCE as usize) {
        let mut bytes = vec![0; AT_ONCE.min(image.bytes() - at) as usize];
        image.read_at(at, &mut bytes).unwrap();
        for piece in map.what_with(at, &bytes) {
            for skip in (0..piece.length).step_by(block as usize) {
                let place = piece.offset + skip;
                if parts(map, place, block) == [What::Free] {
                    let what = piece.part(skip, block).what;
                    found.insert(place, ours(what));
                }
            }
        }
    }
    found
}

/// What was freed since is what zdb said of it before, or nobody's.
#[track_caller]
pub fn assert_freed(after: &Image, before: &Image, said: &str) {
    let map = after.map();
    let block = u64::from(map.block_bytes());
    let freed = freed(after, &map);
    let bytes = |image: &Image, place| {
        let mut bytes = vec![0; block as usize];
        image.read_at(place, &mut bytes).unwrap();
        bytes
    };
    let mut kinds = BTreeSet::new();
    for (place, theirs) in told(said, block) {
        let Some(ours) = freed.get(&place).filter(|ours| *ours != "free") else { continue };
        if bytes(after, place) == bytes(before, place) {
            assert_eq!(*ours, theirs, "byte {place}");
            kinds.insert(ours.split(' ').next().unwrap().to_string());
        }
    }
    for kind in ["set", "dnodes", "MOS-space-map"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    let logs: BTreeSet<&String> = freed.values().filter(|what| what.starts_with("log ")).collect();
    assert!(logs.len() > 5, "an fsync has a block of the log: {logs:?}");
}

/// The paths of all files of the first data set that have blocks.
pub fn paths(image: &Image) -> BTreeSet<String> {
    let map = image.map();
    let pieces = map.what(0, image.bytes()).into_iter();
    let files = pieces.filter_map(|piece| match piece.what {
        What::Data { inode, .. } => map.path(inode),
        _ => None,
    });
    files.collect()
}

#[test]
fn a_device_of_several_and_one_of_raid_z_are_refused_in_words() {
    // A list of names and values, as a label has it.
    let name = |name: &str| {
        let mut bytes = [&(name.len() as u32).to_be_bytes()[..], name.as_bytes()].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let pair = |of: &str, kind: u32, value: &[u8]| {
        let head = [name(of), kind.to_be_bytes().to_vec(), 1_u32.to_be_bytes().to_vec()].concat();
        let size = (8 + head.len() + value.len()) as u32;
        [&size.to_be_bytes()[..], &size.to_be_bytes(), &head, value].concat()
    };
    let refused = |children: u64, vdev: &str, version: u64| {
        let tree = [vec![0; 8], pair("type", 9, &name(vdev)), vec![0; 8]].concat();
        let pairs = [
            pair("version", 8, &version.to_be_bytes()),
            pair("pool_guid", 8, &7_u64.to_be_bytes()),
            pair("vdev_children", 8, &children.to_be_bytes()),
            pair("vdev_tree", 19, &tree),
        ];
        let scene = Scene::new();
        let path = scene.typed("label.raw");
        let label = [vec![0; 16 << 10], vec![1, 1, 0, 0], vec![0; 8], pairs.concat()].concat();
        std::fs::write(&path, label).unwrap();
        tool("truncate", &["--size=64M", &path]).unwrap();
        Map::of(&Image::open(&path)).unwrap_err().to_string()
    };
    for (found, says) in [
        (refused(2, "disk", 5000), "several devices; make it on one"),
        (refused(1, "raidz", 5000), "spreads blocks over devices (RAID-Z)"),
        (refused(1, "disk", 22), "older than 23"),
        (refused(1, "mirror", 5000), "no uberblock"),
    ] {
        assert!(found.contains(says), "{found}");
    }
}
