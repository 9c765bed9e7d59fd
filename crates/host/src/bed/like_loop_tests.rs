//! Beds that are like a disk, on real loop devices.

use std::fs;

use fsverdict_core::model::{Bed, BedKind, Bytes};
use tempfile::TempDir;

use super::*;
use crate::machine::knob::Knob;
use crate::machine::settings;
use crate::machine::token::Token;

const FILES: [&str; 4] = ["rotational", "write_cache", "scheduler", "read_ahead_kb"];

fn queue(device: &Device) -> Vec<String> {
    let name = device.path.trim_start_matches("/dev/");
    let read = |file: &&str| fs::read_to_string(format!("/sys/block/{name}/queue/{file}"));
    FILES.iter().map(|file| read(file).unwrap().trim().to_string()).collect()
}

fn bed(kind: BedKind, like: Option<&str>) -> Bed {
    Bed { kind, size: Bytes(64 << 20), like: like.map(String::from), ..Bed::default() }
}

/// The bed, and what was told to the journal.
fn made(bed: &Bed, dir: &Path) -> (Made, Vec<Undo>) {
    let mut journal = Vec::new();
    let mut before = |undo: &Undo| {
        journal.push(undo.clone());
        Ok(())
    };
    let token = Token::random().unwrap();
    let consents = Consents::default();
    let made = make(bed, dir, &token, &consents, &mut before, &mut |_| Ok(())).unwrap();
    (made, journal)
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_bed_is_like_the_disk_that_is_named() {
    for (name, rotational) in [("hdd", true), ("ssd", false), ("nvme", false)] {
        let folder = TempDir::new().unwrap();
        let (made, journal) = made(&bed(BedKind::Ram, Some(name)), folder.path());
        let disk = says(made.devices[0].number).unwrap();
        assert_eq!((disk.rotational, disk.write_cache), (rotational, true), "{name}: {disk}");
        let scheduler = if name == "nvme" { "none" } else { "mq-deadline" };
        assert_eq!(disk.scheduler.as_deref(), Some(scheduler), "{name}");
        let told = made.like().unwrap();
        assert!(told.starts_with(name) && !told.contains("scheduler"), "{told}");
        let queues = journal.iter().filter(|undo| matches!(undo, Undo::Queue { .. }));
        assert_eq!(queues.count(), 1);
        made.remove().unwrap();
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_an_image_is_like_the_disk_it_lies_on_but_for_what_that_contradicts() {
    let folder = TempDir::new().unwrap();
    let Some(seen) = Seen::beneath(folder.path()) else {
        println!("not tested: no disk is known beneath the folder of temporary files");
        return;
    };
    let (made, _) = made(&bed(BedKind::Loop, None), folder.path());
    let disk = says(made.devices[0].number).unwrap();
    let probed = made.probed.clone();
    let mended = probed.as_ref().is_some_and(|it| it.mended);
    assert_eq!(disk.rotational, seen.disk.rotational && !mended);
    if let Some(probed) = probed {
        assert_eq!(probed.disk.as_deref(), Some(seen.path.as_str()));
        let contradicts = seen.disk.rotational && probed.reads.contradict_rotation();
        assert_eq!(mended, contradicts);
    }
    assert!(made.like().unwrap().starts_with(&seen.path));
    made.remove().unwrap();
}

/// The kernel keeps what was set on a loop device when its file is gone.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_device_says_again_what_it_said_before() {
    let folder = TempDir::new().unwrap();
    let image = folder.path().join("image");
    fs::File::create_new(&image).unwrap().set_len(1 << 20).unwrap();
    let token = Token::random().unwrap();
    let device = LoopDevice::attach(&image, false).unwrap();
    let (number, before) = (device.device(), queue(&device.device()));
    let like = Like::named(if before[0] == "0" { "hdd" } else { "ssd" }).unwrap();
    let settings = like.offered(number.number, Flushes::Like);
    let changes = settings::before(Path::new("/"), &settings, &[]).unwrap();
    like::set(&settings).unwrap();
    assert_ne!(queue(&number), before);
    let index = number.path.trim_start_matches("/dev/loop").parse().unwrap();
    let undo = Undo::Queue { image: Some((index, token)), changes: changes.clone() };
    undo.apply().unwrap();
    assert_ne!(queue(&number), before, "its file is not that run's: it is left alone");
    Undo::Queue { image: None, changes }.apply().unwrap();
    assert_eq!(queue(&number), before);
    undo.apply().unwrap();
    device.detach().unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_disk_that_is_none_can_not_be_stood_for() {
    let folder = TempDir::new().unwrap();
    let bed = bed(BedKind::Loop, Some("/dev/no such disk"));
    let token = Token::random().unwrap();
    let mut before = |_: &Undo| unreachable!("nothing is made");
    let result =
        make(&bed, folder.path(), &token, &Consents::default(), &mut before, &mut |_| Ok(()));
    let error = result.unwrap_err().to_string();
    assert!(error.contains("no disk is there"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A limit raises read-ahead, and a scheduler forgets what was set of it.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_queue_has_again_what_was_changed_along() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let device = LoopDevice::attach_file(&file, false, 0).unwrap();
    let (number, root) = (device.device().number, Path::new("/"));
    let setting = |file: &str, value: &str| settings::Setting {
        knob: Knob::queue(number, file),
        value: value.into(),
    };
    let read = |file: &str| setting(file, "").current(root).unwrap();
    let first = ["scheduler", "nr_requests", "read_ahead_kb"].map(read);
    let rotational = read("rotational");
    let others = if rotational.value == "0" { "1" } else { "0" };
    // As its user has it: other values than the kernel's own.
    let users = [
        setting("scheduler", "mq-deadline"),
        setting("nr_requests", "64"),
        setting("iosched/fifo_batch", "31"),
        setting("read_ahead_kb", "12"),
    ];
    users.iter().for_each(|it| it.set(root).unwrap());
    for wanted in [
        vec![setting("rotational", others)],
        vec![setting("nr_requests", "32"), setting("rotational", others)],
        vec![setting("scheduler", "none"), setting("read_ahead_kb", "512")],
    ] {
        let changes = settings::before(root, &wanted, &[]).unwrap();
        settings::set_all(root, &wanted, &changes).unwrap();
        let errors = settings::put_back(root, &changes);
        assert!(errors.is_empty(), "{errors:?}");
        let now = users.each_ref().map(|it| it.current(root).unwrap());
        assert_eq!((now, read("rotational")), (users.clone(), rotational.clone()));
    }
    first.iter().for_each(|it| it.set(root).unwrap());
    device.detach().unwrap();
}
