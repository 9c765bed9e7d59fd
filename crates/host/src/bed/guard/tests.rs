//! The guard against a made-up `/proc` and `/sys`. The real ones are in `loop_tests`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use fsverdict_core::model::Device;

use super::*;
use crate::bed::block::Number;
use crate::bed::contents::parse_signatures;

/// An open file that is closed as soon as somebody has looked at it.
const PASSING: &str = "fd/9";

/// A machine with the disks sda (root on sda2) and sdb (one partition), in a folder.
struct Fake {
    folder: TempDir,
}

impl Fake {
    fn new() -> Fake {
        let fake = Fake { folder: TempDir::new().unwrap() };
        fake.disk("sda", "8:0");
        fake.partition("sda", "sda2", "8:2");
        fake.partition("sda", "sda3", "8:3");
        fake.disk("sdb", "8:16");
        fake.partition("sdb", "sdb1", "8:17");
        fake.mounts(&[("8:2", "/", "/dev/sda2")]);
        fake.write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
        fake
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn disk(&self, name: &str, number: &str) {
        self.block(&format!("sys/block/{name}"), name, number);
    }

    fn partition(&self, disk: &str, name: &str, number: &str) {
        let folder = format!("sys/block/{disk}/{name}");
        self.block(&folder, name, number);
        self.write(&format!("{folder}/partition"), "1\n");
    }

    fn block(&self, folder: &str, name: &str, number: &str) {
        self.write(&format!("{folder}/dev"), &format!("{number}\n"));
        self.write(&format!("{folder}/uevent"), &format!("MAJOR=8\nDEVNAME={name}\n"));
        self.write(&format!("{folder}/size"), "2048\n");
        self.write(&format!("{folder}/ro"), "0\n");
        fs::create_dir_all(self.at("sys/dev/block")).unwrap();
        symlink(self.at(folder), self.at(&format!("sys/dev/block/{number}"))).unwrap();
        self.write(&format!("dev/{name}"), number);
    }

    fn mounts(&self, mounts: &[(&str, &str, &str)]) {
        let line = |(number, on, source): &(&str, &str, &str)| {
            let source = source.replace("/dev", self.at("dev").to_str().unwrap());
            format!("1 1 {number} / {on} rw - ext4 {source} rw\n")
        };
        self.write("proc/self/mountinfo", &mounts.iter().map(line).collect::<String>());
    }

    fn machine(&self) -> Machine {
        let number_of = |path: &Path| -> Option<Number> {
            let text = fs::read_to_string(path).ok()?;
            if path.ends_with(PASSING) {
                fs::remove_file(path).unwrap();
            }
            let (major, minor) = text.split_once(':')?;
            Some([major.parse().ok()?, minor.parse().ok()?])
        };
        Machine { proc: self.at("proc"), sys: self.at("sys"), number_of, backing_of: |_| None }
    }

    fn examine(&self, name: &str, erase: &[&str]) -> Result<(Block, Vec<String>), Refusal> {
        let path = |name: &str| self.at(&format!("dev/{name}")).display().to_string();
        let consents: Vec<Consent> =
            erase.iter().map(|consent| path(consent).parse().unwrap()).collect();
        self.machine().examine(&path(name), &consents)
    }

    fn refused(&self, name: &str) -> String {
        let error = self.examine(name, &[name]).map(|_| ()).unwrap_err().to_string();
        error.replace(self.folder.path().to_str().unwrap(), "")
    }
}

#[test]
fn an_idle_named_disk_passes_and_a_partition_of_the_system_disk_too() {
    let fake = Fake::new();
    let (block, named) = fake.examine("sdb", &["sdb=ext4,GPT"]).unwrap();
    assert_eq!((block.number, block.size_bytes()), ([8, 16], 1 << 20));
    assert_eq!(named, ["ext4", "gpt"]);
    fake.examine("sdb1", &["sda", "sdb1"]).unwrap();
    fake.examine("sda3", &["sda3"]).unwrap();
}

#[test]
fn who_only_looks_at_a_disk_is_waited_for_and_who_keeps_it_open_is_named() {
    let fake = Fake::new();
    fake.write("proc/77/comm", "losetup\n");
    let open = |file: &str| {
        fake.write(&format!("proc/77/fdinfo/{file}"), "pos:\t0\nflags:\t0100002\n");
        fs::create_dir_all(fake.at("proc/77/fd")).unwrap();
        symlink(fake.at("dev/sdb"), fake.at(&format!("proc/77/fd/{file}"))).unwrap();
    };
    open("9");
    fake.examine("sdb", &["sdb"]).unwrap();
    assert!(fs::symlink_metadata(fake.at("proc/77").join(PASSING)).is_err(), "it was seen");
    open("3");
    let refused = fake.refused("sdb");
    assert!(refused.contains("/dev/sdb is open for writing by losetup, process 77"), "{refused}");
}

#[test]
fn what_was_not_named_by_the_same_path_is_refused() {
    let fake = Fake::new();
    let refused =
        |erase: &[&str]| matches!(fake.examine("sdb", erase), Err(Refusal::NotNamed { .. }));
    assert!(refused(&[]));
    assert!(refused(&["sdb1"]));
    symlink(fake.at("dev/sdb"), fake.at("dev/by-id")).unwrap();
    assert!(refused(&["by-id"]));
    let (block, _) = fake.examine("by-id", &["by-id"]).unwrap();
    assert!(block.node.ends_with("/dev/sdb"), "{}", block.node);
}

#[test]
fn the_root_file_systems_disk_and_partition_are_refused() {
    let fake = Fake::new();
    let message = "carries this machine's root file system";
    assert!(fake.refused("sda").contains(message));
    assert!(fake.refused("sda2").contains(message));
    fake.mounts(&[("0:33", "/", "/dev/sda2")]);
    assert!(fake.refused("sda").contains(message), "btrfs");
}

#[test]
fn the_disk_far_under_the_root_file_system_is_refused() {
    let fake = Fake::new();
    fake.disk("dm-0", "253:0");
    fake.mounts(&[("253:0", "/", "/dev/mapper/root")]);
    fs::create_dir_all(fake.at("sys/block/dm-0/slaves")).unwrap();
    symlink(fake.at("sys/block/sdb/sdb1"), fake.at("sys/block/dm-0/slaves/sdb1")).unwrap();
    assert!(fake.refused("sdb").contains("root file system (/dev/sdb1)"));
    fake.examine("sda", &["sda"]).unwrap();
}

#[test]
fn what_is_mounted_is_refused_with_the_place() {
    let fake = Fake::new();
    fake.mounts(&[("8:17", "/home", "/dev/elsewhere")]);
    let message = "/dev/sdb is in use: /dev/sdb1 is mounted on /home (umount it first)";
    assert_eq!(fake.refused("sdb"), message);
    fake.mounts(&[("0:55", "/home", "/dev/sdb1")]);
    assert_eq!(fake.refused("sdb"), message);
    fake.mounts(&[("8:16", "/srv", "/dev/sdb")]);
    assert!(fake.refused("sdb1").contains("/dev/sdb is mounted on /srv"));
}

#[test]
fn swap_holders_members_and_writers_are_refused() {
    let fake = Fake::new();
    let swap = fake.at("dev/sdb1");
    fake.write("proc/swaps", &format!("Filename Type\n{} partition 1 0 -2\n", swap.display()));
    fake.write("sys/block/sdb/sdb1/holders/dm-3/dm/name", "vg-home\n");
    fake.disk("loop7", "7:7");
    fake.write("sys/block/loop7/loop/backing_file", &format!("{}\n", swap.display()));
    fake.write("sys/fs/btrfs/0a-1b/devices/sdb1", "");
    let refused = fake.refused("sdb");
    for part in ["sdb1 is swap", "by dm-3 (vg-home)", "by loop7", "by the mounted btrfs 0a-1b"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}

#[test]
fn another_loop_device_over_the_same_file_is_a_use() {
    let fake = Fake::new();
    for (name, number) in [("loop1", "7:1"), ("loop2", "7:2"), ("loop3", "7:3")] {
        fake.disk(name, number);
        fake.write(&format!("sys/block/{name}/loop/backing_file"), "/home/disk\n");
    }
    fake.write("sys/block/loop3/loop/backing_file", "/home/other\n");
    let message = "/dev/loop1 is in use: /dev/loop1 is held by loop2 (take that down first)";
    assert_eq!(fake.refused("loop1"), message);
    fake.examine("loop3", &["loop3"]).unwrap();
}

#[test]
fn a_missing_a_plain_an_empty_and_a_read_only_one_are_refused() {
    let fake = Fake::new();
    assert!(fake.refused("sdz").contains("can't be found"));
    fake.write("dev/file", "text");
    assert!(fake.refused("file").contains("--bed directory:/dev/file"));
    fake.write("sys/block/sdb/size", "0\n");
    assert!(fake.refused("sdb").contains("has no size"));
    fake.write("sys/block/sdb/ro", "1\n");
    assert!(fake.refused("sdb").contains("is read-only"));
}

#[test]
fn a_consent_is_a_path_and_perhaps_signatures() {
    let parse = |text: &str| text.parse::<Consent>().map(|c| (c.path, c.signatures.join(" ")));
    let is = |path: &str, signatures: &str| Ok((path.to_string(), signatures.to_string()));
    assert_eq!(parse("/dev/sdb"), is("/dev/sdb", ""));
    assert_eq!(parse("/dev/sdb=gpt,EXT4"), is("/dev/sdb", "gpt ext4"));
    assert_eq!(parse("/dev/by-label/a=b="), is("/dev/by-label/a=b", ""));
    for wrong in ["sdb", "", "/dev/sdb=/dev/sdc", "/dev/sdb=ext4, xfs"] {
        assert!(parse(wrong).unwrap_err().to_string().contains("/dev/sdb=gpt,ext4"), "{wrong}");
    }
}

#[test]
fn signatures_are_read_and_all_of_them_need_naming() {
    let text = r#"{"signatures": [
        {"device":"sdb", "offset":"0x200", "type":"gpt", "uuid":"1", "label":null},
        {"device":"sdb", "offset":"0x900", "type":"gpt", "uuid":"1", "label":null},
        {"device":"sdb", "offset":"0x1fe", "type":"PMBR", "uuid":null, "label":null}]}"#;
    let ext4 = r#"{"signatures": [{"type":"ext4", "label":"my \"backup\""}]}"#;
    let mut found = parse_signatures("/dev/sdb", text).unwrap();
    found.extend(parse_signatures("/dev/sdb1", ext4).unwrap());
    let check = |named: &[&str]| {
        let named: Vec<String> = named.iter().map(ToString::to_string).collect();
        unnamed("/dev/sdb", found.clone(), &named)
    };
    let message = "/dev/sdb carries gpt, /dev/sdb1 carries ext4 (label my \"backup\"): \
                   to erase it all the same say --erase /dev/sdb=gpt,ext4";
    for named in [&[][..], &["ext4"], &["gpt", "xfs"]] {
        assert_eq!(check(named).unwrap_err().to_string(), message);
    }
    check(&["ext4", "gpt"]).unwrap();
    check(&["xfs", "ext4", "btrfs", "gpt"]).unwrap();
    assert!(parse_signatures("/dev/sdb", "not json").is_none());
    assert!(parse_signatures("/dev/sdb", "").unwrap().is_empty());
}

#[test]
fn the_disk_beneath_is_found_through_partitions_and_mappings() {
    let fake = Fake::new();
    let loops = ["loop0", "loop1", "loop2", "loop3"];
    for (name, number) in loops.into_iter().zip(["7:0", "7:1", "7:2", "7:3"]) {
        fake.disk(name, number);
    }
    fake.disk("dm-0", "253:0");
    fs::create_dir_all(fake.at("sys/block/dm-0/slaves")).unwrap();
    symlink(fake.at("sys/block/sda/sda3"), fake.at("sys/block/dm-0/slaves/sda3")).unwrap();
    fake.write("sys/block/loop0/loop/backing_file", "/nowhere/image\n");
    fake.write("sys/block/loop0/loop/dio", "1\n");
    fake.write("sys/block/loop1/loop/backing_file", "/nowhere/image\n");
    fake.write("sys/block/loop1/loop/dio", "0\n");
    for (upper, lower) in [("loop2", "sda3"), ("loop3", "loop2")] {
        let node = fake.at(&format!("dev/{lower}"));
        fake.write(
            &format!("sys/block/{upper}/loop/backing_file"),
            &format!("{}\n", node.display()),
        );
        fake.write(&format!("sys/block/{upper}/loop/dio"), "1\n");
    }
    let beneath = |numbers: &[Number]| {
        let device = |&number: &Number| Device { path: "/dev/x".into(), number, size_bytes: 0 };
        let devices: Vec<Device> = numbers.iter().map(device).collect();
        let disks = fake.machine().disks_beneath(&devices);
        disks.iter().map(|disk| disk.number).collect::<Vec<_>>()
    };
    assert_eq!(beneath(&[[8, 2]]), [[8, 0]]);
    assert_eq!(beneath(&[[8, 2], [8, 3], [8, 17]]), [[8, 0], [8, 16]]);
    assert_eq!(beneath(&[[253, 0]]), [[8, 0]]);
    assert_eq!(beneath(&[[7, 3]]), [[8, 0]], "a loop device upon another upon a partition");
    let unknown: [&[Number]; 4] = [&[[8, 16]], &[[8, 2], [8, 16]], &[[7, 0]], &[[7, 1]]];
    for numbers in unknown {
        assert_eq!(beneath(numbers), [] as [Number; 0], "{numbers:?}");
    }
}
