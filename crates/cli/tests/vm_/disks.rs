//! How a guest's disks are attached.

use super::anatomy::{of_fsyncs, recorded};
use super::{
    as_root, cache, failures, fetch_tools, full_kernel, image_in, kernels, without_virtio,
};
use crate::support::{Scene, Started, list, sample, text};

#[test]
#[ignore = "fetches a kernel, once, and boots virtual machines: run ./test"]
fn disks_are_attached_as_each_contender_says_and_held_down_on_every_bus() {
    or_left_out!();
    let Some(full) = full_kernel() else { return };
    let scene = Scene::new();
    let image = image_in(&full);
    // The kernel is to write zeros as they are, on whichever disk.
    let plan = "bed = { size = \"64M\", limits = { iops = 40 } }\njudgement = { rounds = 1 }\n\
                [[workload]]\nname = \"writes\"\n\
                setup = \"cd /sys/block; grep . */queue/write_zeroes_max_bytes\"\n\
                fio = { rw = \"randwrite\", bs = \"4k\", size = \"240k\", direct = 1 }\n";
    scene.write("plan.toml", plan);
    let all = "virtio-blk,virtio-scsi,nvme,ahci";
    let words = ["run", "plan.toml", "--fs", "ext4", "--kernel", &image, "--disks", all];
    let words = [&words[..], &["--output", "run", "--json", "-"]].concat();
    let document = Started::new(as_root(&scene, &words)).wait().exits(0).json();
    assert_eq!(failures(&document), [""; 0]);
    assert_eq!(list(&document["trials"]).len(), 4);
    for trial in list(&document["trials"]) {
        let (disk, told) = match text(&trial["contender"]) {
            "ext4 on virtio-blk" => ("vdb", "virtio_blk"),
            "ext4 on virtio-scsi" => ("sd", "virtio_scsi, QEMU HARDDISK"),
            "ext4 on nvme" => ("nvme1n1", "nvme, QEMU NVMe Ctrl"),
            "ext4 on ahci" => ("sd", "ahci, QEMU HARDDISK"),
            other => panic!("{other}"),
        };
        assert_eq!(trial["guest"]["disks"], told);
        let zeros = scene.read(&format!("run/trials/{}/raw/setup.stdout", trial["number"]));
        // Which SCSI disk is sda and which sdb is chance.
        let none = "/queue/write_zeroes_max_bytes:0";
        let is_own = |line: &str| line.starts_with(disk) && line.ends_with(none);
        assert!(zeros.lines().any(is_own), "{told}: {zeros}");
        // QEMU lets a tenth of a second's worth pass at once.
        let iops = sample(trial, "iops");
        assert!((0.0..60.0).contains(&iops), "{told}: {iops} a second, of 40");
    }
    let report = scene.read("run/report.md");
    assert!(report.contains("disks attached as nvme"), "{report}");
    assert!(report.contains("its disks: nvme, QEMU NVMe Ctrl"), "{report}");
    let release = full.file_name().unwrap().to_str().unwrap();
    let facts = document["run"]["host"].as_object().unwrap();
    let fact = |name: &str| text(&facts[&format!("kernel {image}, {name}")]);
    assert!(fact("ahci").starts_with(&format!("Linux {release} (")), "{facts:?}");
    assert!(fact("ahci").ends_with("), SATA disks"), "{facts:?}");
    scene.assert_nothing_left();

    let missing = without_virtio(&scene, &full);
    let words = ["run", "--kernel", &missing, "--disks", "virtio-scsi", "--fs", "ext4", "--output"];
    let words = [&words[..], &["refused", "--", "true"]].concat();
    let says = format!("kernel {release} has no virtio_pci, which virtio-scsi disks need: choose");
    Started::new(as_root(&scene, &words)).wait().exits(1).says(&says);
    assert!(!scene.path("refused").exists());
}

#[test]
#[ignore = "fetches tools, once, and boots virtual machines: run ./test"]
fn a_raid_is_made_of_two_nvme_drives_in_their_order() {
    or_left_out!();
    let scene = Scene::new();
    let Some(_) = fetch_tools(&cache(), &["mdadm"]) else { return };
    let place = ["run", "--kernel", kernels()[0], "--fs", "ext4", "--size", "64M", "--rounds", "1"];
    let more = ["--disks", "nvme", "--layers", "raid1", "--devices", "2"];
    let work = ["--fsync-files", "files=3,repetitions=4", "--output", "run", "--json", "-"];
    let words = [&place[..], &more, &work].concat();
    let document = Started::new(as_root(&scene, &words)).wait().exits(0).json();
    assert_eq!(failures(&document), [""; 0]);
    let trial = &list(&document["trials"])[0];
    let told = text(&list(&trial["layers"])[0]);
    assert!(told.contains("active raid1 nvme") && told.contains("[2/2] [UU]"), "{told}");
    assert!(sample(trial, "fsync_device_write_bytes") > 0.0);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "boots a virtual machine: run ./test"]
fn what_is_written_to_an_nvme_drive_is_logged_outside_too() {
    or_left_out!();
    let scene = Scene::new();
    let place = ["run", "--kernel", kernels()[0], "--fs", "ext4", "--size", "64M", "--rounds", "1"];
    let more = ["--disks", "nvme", "--probe", "trace", "--output", "run", "--json", "-"];
    let work = ["--fsync-files", "files=3,repetitions=4"];
    let words = [&place[..], &more, &work].concat();
    let document = Started::new(as_root(&scene, &words)).wait().exits(0).json();
    assert_eq!(failures(&document), [""; 0]);
    let [own, outside] =
        ["trace.jsonl", "log_writes.jsonl"].map(|log| of_fsyncs(&recorded(&scene, log)));
    assert_eq!(own.len(), 4);
    // QEMU logs a request when it is done, and of several at once any may be done first.
    let writes = |fsyncs: Vec<Vec<String>>| -> Vec<Vec<String>> {
        let each = fsyncs.into_iter().map(|mut fsync| {
            fsync.retain(|it| it.contains("write"));
            fsync.sort();
            fsync
        });
        each.collect()
    };
    assert_eq!(writes(own), writes(outside));
    scene.assert_nothing_left();
}
