//! Beds that limits are put on, on real loop devices.

use std::fs;

use fsverdict_core::model::{Bed, BedKind, Bytes, Each, Limits, TrialBed};
use tempfile::TempDir;

use super::*;
use crate::machine::below::below;
use crate::machine::throttle;
use crate::machine::token::Token;
use crate::machine::{knob, settings};
use crate::tool;

const MIB: u64 = 1 << 20;

/// More than any device here can do.
const LIMITS: Limits = Limits { iops: Some(Each::Alike(10_000_000)), bandwidth: None };

fn run(argv: &[&str]) {
    tool::run_words(argv).unwrap();
}

fn bed(kind: BedKind, devices: u32) -> Bed {
    Bed { kind, size: Bytes(64 * MIB), devices, limits: Some(LIMITS), ..Bed::default() }
}

/// The bed, and what was told to the journal.
fn made(bed: &Bed, dir: &Path) -> (Made, Vec<Undo>) {
    let mut journal = Vec::new();
    let mut before = |undo: &Undo| {
        journal.push(undo.clone());
        Ok(())
    };
    let (token, none) = (Token::random().unwrap(), Consents::default());
    let made = make(bed, dir, &token, &none, &mut before, &mut |_| Ok(())).unwrap();
    (made, journal)
}

fn held(made: &Made, kind: BedKind) -> Vec<Device> {
    let bed = TrialBed { kind, devices: made.devices.clone(), ..TrialBed::default() };
    throttle::held(Path::new("/"), &bed).unwrap()
}

/// Reads and writes that the device got, and the bios that they were merged of.
fn requests_and_bios(device: &Device) -> (u64, u64) {
    let [major, minor] = device.number;
    let text = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap();
    let field: Vec<u64> = text.split_whitespace().map(|it| it.parse().unwrap()).collect();
    let requests = field[0] + field[4];
    (requests, requests + field[1] + field[5])
}

/// What the throttle of cgroup v1 has counted for the device, where there is one.
fn throttled(device: &Device) -> Option<u64> {
    let [major, minor] = device.number;
    let file = knob::throttle_group(Path::new("/")).join("blkio.throttle.io_serviced");
    let text = fs::read_to_string(file).ok()?;
    let of = |kind: &str| {
        let line = format!("{major}:{minor} {kind} ");
        text.lines().find_map(|it| it.strip_prefix(&line)?.parse::<u64>().ok())
    };
    Some(of("Read")? + of("Write")?)
}

/// An ext4 with so many empty files that their inodes fill some 250 blocks.
fn fill(node: &str, place: &str) {
    run(&["mkfs.ext4", "-q", "-N", "8192", "-E", "nodiscard,lazy_itable_init=0", node]);
    run(&["mount", node, place]);
    for number in 0..4000 {
        fs::File::create(format!("{place}/{number}")).unwrap();
    }
    tool::unmount(place);
    run(&["blockdev", "--flushbufs", node]);
}

/// Ext4 reads its inodes by a bio for each block, and the kernel merges them.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_limit_counts_what_the_device_gets() {
    let folder = TempDir::new().unwrap();
    let (made, _) = made(&bed(BedKind::Ram, 1), folder.path());
    let upper = made.devices[0].clone();
    let [lower] = held(&made, BedKind::Ram).try_into().unwrap();
    let place = folder.path().join("mnt");
    fs::create_dir(&place).unwrap();
    fill(&upper.path, place.to_str().unwrap());
    let root = Path::new("/");
    let rules = throttle::rules(root, Some(LIMITS), std::slice::from_ref(&lower));
    let rules = rules.unwrap_or_default();
    let changes = settings::before(root, &rules, &[]).unwrap();
    settings::set_all(root, &rules, &changes).unwrap();
    // A trial that another test starts has copies of all mounts for a moment: the disk is busy.
    let argv = ["mount", "-o", "ro", &upper.path, place.to_str().unwrap()];
    loop_device::wait_for(loop_device::PATIENCE, || tool::run_words(&argv).is_ok()).unwrap();
    let counts = || (requests_and_bios(&upper), requests_and_bios(&lower).1, throttled(&lower));
    let before = counts();
    let looked_at =
        |it: &io::Result<fs::DirEntry>| it.as_ref().is_ok_and(|it| it.metadata().is_ok());
    let files = fs::read_dir(&place).unwrap().filter(looked_at).count();
    let after = counts();
    tool::unmount(place.to_str().unwrap());
    let unset = settings::put_back(root, &changes);
    made.remove().unwrap();
    assert!(files >= 4000 && unset.is_empty(), "{unset:?}");
    let (requests, bios) = (after.0.0 - before.0.0, after.0.1 - before.0.1);
    assert!(bios > 3 * requests, "{bios} bios in {requests} requests: nothing was merged");
    // udev may look at either.
    let as_many = requests - requests / 10..=requests + requests / 10 + 8;
    let counted = [Some(after.1 - before.1), after.2.zip(before.2).map(|it| it.0 - it.1)];
    for counted in counted.into_iter().flatten() {
        assert!(as_many.contains(&counted), "{counted} were counted of {requests} requests");
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_limited_bed_lies_on_two_devices_and_leaves_nothing() {
    let _alone = super::loop_tests::no_other_zram();
    let mut beds = vec![bed(BedKind::Loop, 2), bed(BedKind::Ram, 1)];
    if Path::new("/sys/class/zram-control").exists() {
        beds.push(Bed { zram: true, ..bed(BedKind::Ram, 2) });
    }
    // A contender's limits are enough.
    beds[1] = Bed { limits: None, limits_of_contenders: true, ..beds[1].clone() };
    for bed in beds {
        let folder = TempDir::new().unwrap();
        let bed = Bed { like: Some("nvme".into()), ..bed };
        let (made, journal) = made(&bed, folder.path());
        let lower = held(&made, bed.kind);
        assert_eq!(lower.len(), made.devices.len());
        for (upper, lower) in made.devices.iter().zip(&lower) {
            assert_ne!(upper.number, lower.number);
            assert_eq!(upper.size_bytes, lower.size_bytes);
            let blocks = [upper, lower].map(|it| says(it.number).unwrap().logical_block_bytes);
            assert_eq!(blocks[0], blocks[1]);
            assert!(!says(upper.number).unwrap().rotational);
            run(&["mkfs.ext4", "-q", &upper.path]);
        }
        assert_eq!(made.direct_io.is_none(), bed.zram);
        let uppers = made.devices.clone();
        made.remove().unwrap();
        assert!(uppers.iter().all(|upper| below(Path::new("/"), upper).unwrap().is_none()));
        journal.iter().rev().for_each(|undo| undo.apply().unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// What is discarded on the upper device are holes of the image.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_an_image_below_two_devices_is_written_out() {
    let folder = TempDir::new().unwrap();
    let (made, _) = made(&bed(BedKind::Ram, 1), folder.path());
    let upper = made.devices[0].clone();
    assert_eq!(write_out(&upper).unwrap(), 0);
    run(&["blkdiscard", "--length", "8M", &upper.path]);
    let written_bytes = [write_out(&upper).unwrap(), write_out(&upper).unwrap()];
    made.remove().unwrap();
    assert_eq!(written_bytes, [8 * MIB, 0]);
}

/// As a killed run leaves them when something mounts or opens them: attached to stay.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_undo_detaches_the_upper_device_too() {
    let folder = TempDir::new().unwrap();
    let token = Token::random().unwrap();
    let own = folder.path().canonicalize().unwrap().join(own::name(&token));
    fs::create_dir(&own).unwrap();
    let image = own.join("1.img");
    fs::File::create_new(&image).unwrap().set_len(MIB).unwrap();
    let attach = |file: &str| {
        let said = tool::run_words(&["losetup", "--find", "--show", file]).unwrap();
        said.trim().to_string()
    };
    let lower = attach(image.to_str().unwrap());
    let upper = attach(&lower);
    fs::remove_file(&image).unwrap();
    let number = loop_device::number_of(&upper).unwrap();
    assert!(loop_device::is_nobody_elses(number, &token));
    let other = Token::random().unwrap();
    assert!(!loop_device::is_nobody_elses(number, &other));
    Undo::DetachLoop { folder: other }.apply().unwrap();
    // By what lies behind them: a test beside may have their numbers by now.
    let behind = |file: &str| {
        let listed = tool::run_words(&["losetup", "--list", "-n", "-O", "BACK-FILE"]).unwrap();
        listed.lines().any(|it| it.trim().trim_end_matches(" (deleted)") == file)
    };
    assert!(behind(&lower));
    Undo::DetachLoop { folder: token }.apply().unwrap();
    assert!(!behind(&lower) && !behind(image.to_str().unwrap()));
}
