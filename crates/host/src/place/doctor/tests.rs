//! The report of what a machine can do, on made-up machines.

use std::collections::BTreeSet;
use std::fs;

use fsverdict_core::model::need::State;
use fsverdict_core::model::{Disk, ExtraProbe, Place, Reads};

use super::*;
use crate::bed::Seen;

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    tree
}

fn machine(root: &tempfile::TempDir) -> Machine {
    Machine { root: root.path().into(), folder: root.path().into() }
}

#[test]
fn every_mkfs_has_a_package_to_install() {
    for file_system in file_system::ALL {
        let unmet = not_installed(file_system.program).unmet().unwrap();
        assert!(unmet.contains(": apt-get install "), "{unmet}");
    }
    assert!(tool::package(QEMU).is_some() && tool::package("fio").is_some());
}

#[test]
fn needs_have_names_of_their_own_and_beds_probes_and_places_need_known_ones() {
    let needs = needs();
    let names: BTreeSet<_> = needs.iter().map(Need::name).collect();
    assert_eq!(names.len(), needs.len());
    let of_beds = beds().into_iter().flat_map(|bed| bed.needs());
    let places = [Place::Local, Place::Vm, Place::Uml, Place::Sim];
    let of_places = places.into_iter().flat_map(Place::needs);
    for need in of_beds.chain(of_places).chain([ExtraProbe::PageCache.need()]) {
        assert!(needs.contains(&need), "{need:?}");
    }
}

#[test]
fn an_empty_machine_can_nothing_and_says_why() {
    let root = tree(&[]);
    let probe = |kind| Need::Probe(kind);
    let needs = [
        Need::Zram,
        Need::DropCaches,
        probe(ProbeKind::Device),
        probe(ProbeKind::Pressure),
        probe(ProbeKind::Heat),
        Need::BlockEvents,
        Need::Cgroups,
        Need::KernelLog,
        Need::Limits,
        Need::Kvm,
    ];
    for need in needs {
        let answer = machine(&root).answer(&need);
        assert_eq!(answer.state, State::No, "{answer:?}");
        assert!(answer.remedy.is_some(), "{answer:?}");
    }
    assert_eq!(machine(&root).answer(&Need::Memory { bytes: 1 }).state, State::Unknown);
}

#[test]
fn memory_is_compared_with_what_an_image_takes() {
    let of = |meminfo: &str| {
        let root = tree(&[("proc/meminfo", meminfo)]);
        machine(&root).answer(&Need::Memory { bytes: 4 << 30 })
    };
    let little = of("MemTotal: 9 kB\nMemAvailable:  1024 kB\n");
    let detail = "1.00 MiB available, a bed in memory needs 4.00 GiB and 5% more";
    assert_eq!((little.state, little.detail.as_str()), (State::No, detail));
    assert_eq!(of("MemAvailable: 8388608 kB\n"), Answer::yes("8.00 GiB available"));
}

#[test]
fn room_is_compared_with_what_is_needed() {
    let root = tree(&[]);
    let of = |need| machine(&root).answer(&need);
    let at = root.path().display().to_string();
    assert_eq!(of(Need::Images { bytes: 1 }).state, State::Yes);
    let unmet = of(Need::Images { bytes: 1 << 60 }).unmet().unwrap();
    let said = "free, the image needs 1024 PiB and 5% more: choose another --dir";
    assert!(unmet.contains(said), "{unmet}");
    assert_eq!(of(Need::Space { at: at.clone(), bytes: 1 }).state, State::Yes);
    let unmet = of(Need::Space { at: at.clone(), bytes: 1 << 60 }).unmet().unwrap();
    assert!(unmet.starts_with(&format!("1024 PiB are needed, {at} has ")), "{unmet}");
    assert_eq!(of(Need::Space { at: "/no/such".into(), bytes: 1 }).state, State::Unknown);
}

#[test]
fn programs_of_the_work_are_found_by_name_or_path() {
    let root = tree(&[]);
    let of = |name: &str, package: Option<&str>| {
        let package = package.map(Into::into);
        machine(&root).answer(&Need::Program { name: name.into(), package }).unmet()
    };
    assert_eq!(of("sh", None), None);
    assert_eq!(of("/etc/passwd", Some("base-passwd")), None);
    let unmet = of("no-bench", Some("no-db")).unwrap();
    assert_eq!(unmet, "no-bench is not installed: apt-get install no-db");
}

#[test]
fn an_interface_must_be_there() {
    let text = " face |bytes\n  eth0: 1 2\n    lo: 3 4\n";
    let root = tree(&[("proc/net/dev", text)]);
    let over = |name: &str| machine(&root).answer(&Need::Interface(name.into())).unmet();
    assert_eq!(over("eth0"), None);
    let unmet = over("eth1").unwrap();
    assert!(unmet.ends_with("no network interface eth1; did you mean eth0?"), "{unmet}");
}

#[test]
fn counters_are_told_by_the_number_of_fields() {
    let of = |count: usize| {
        let line = format!("7 0 loop0{}\n", " 1".repeat(count));
        let answer = offered::counters(tree(&[("proc/diskstats", &line)]).path());
        assert!(answer.is_able());
        (answer.state, answer.detail)
    };
    assert_eq!(of(17).0, State::Yes);
    assert!(of(17).1.ends_with("with discards and flushes"));
    assert_eq!((of(15).0, of(11).0), (State::Partly, State::Partly));
    assert!(of(15).1.ends_with("flushes need Linux 5.5"));
    assert!(of(11).1.contains("discards need Linux 4.18"));
}

#[test]
fn pressure_needs_all_three_files() {
    let two = tree(&[("proc/pressure/cpu", "some"), ("proc/pressure/io", "some")]);
    assert_eq!(offered::pressure(two.path()).state, State::No);
    let files = ["cpu", "io", "memory"].map(|name| format!("proc/pressure/{name}"));
    let three = tree(&files.each_ref().map(|path| (path.as_str(), "some")));
    assert_eq!(offered::pressure(three.path()).state, State::Yes);
}

#[test]
fn heat_is_told_by_processors_drives_or_both() {
    let core = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
    let drive = "sys/class/nvme/nvme0/hwmon0/temp1_alarm";
    let told = |files: &[&str]| {
        let files: Vec<_> = files.iter().map(|path| (*path, "0\n")).collect();
        let answer = offered::heat(tree(&files).path());
        assert_eq!(answer.state, State::Yes);
        answer.detail
    };
    assert!(told(&[core, drive]).ends_with("processors, alarms of the NVMe drives"));
    assert!(told(&[core]).ends_with("no NVMe drive has an alarm"));
    assert!(told(&[drive]).ends_with("the processors count no throttling"));
}

#[test]
fn tracefs_is_found_where_it_is_mounted() {
    const MOUNTS: &str = "22 1 0:7 / /sys/kernel/tracing rw - tracefs tracefs rw\n";
    let bare = tree(&[("proc/self/mountinfo", MOUNTS)]);
    assert!(block_events(bare.path()).detail.contains("/sys/kernel/tracing/events/block"));
    let event = "sys/kernel/tracing/events/block/block_rq_issue/format";
    let whole = tree(&[("proc/self/mountinfo", MOUNTS), (event, "name: block_rq_issue\n")]);
    assert_eq!(
        block_events(whole.path()),
        Answer::yes("/sys/kernel/tracing, with the block events")
    );
}

#[test]
fn throttling_is_that_of_cgroups_v1_or_v2() {
    let v1 = tree(&[("sys/fs/cgroup/blkio/blkio.throttle.read_iops_device", "")]);
    assert!(devices::limits(v1.path()).detail.contains("v1, for every process"));
    let on_a_shared_disk = devices::own_limits(v1.path()).unmet().unwrap();
    assert!(on_a_shared_disk.contains("everybody on that disk"), "{on_a_shared_disk}");
    let mounts = ("proc/self/mountinfo", "32 1 0:28 / /cg rw - cgroup2 cgroup2 rw\n");
    let controllers = ("cg/cgroup.controllers", "cpuset cpu io memory\n");
    let v2 = tree(&[mounts, controllers, ("cg/cgroup.subtree_control", "")]);
    let answer = devices::limits(v2.path());
    assert!(answer.state == State::Yes && answer.detail.contains("io.max"), "{answer:?}");
    let neither = devices::limits(tree(&[]).path());
    assert_eq!(neither.state, State::No);
    assert!(neither.detail.contains("no cgroup v2"), "{neither:?}");
}

#[test]
fn a_kernels_file_systems_are_read() {
    let root = tree(&[("proc/filesystems", "nodev\tproc\n\text4\n")]);
    assert_eq!(mounting(root.path(), file_system::find("ext4").unwrap()).state, State::Yes);
    assert_eq!(mounting(root.path(), file_system::find("jfs").unwrap()).state, State::No);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_one_is_attached_and_nothing_of_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    let answer = devices::loop_devices(folder.path());
    assert_ne!(answer.state, State::No, "{answer:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let path = folder.path().to_str().unwrap();
    for name in devices::loop_names() {
        let file = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
        assert!(!file.unwrap_or_default().contains(path), "{name}");
    }
}

#[test]
fn the_conclusion_names_beds_file_systems_and_packages() {
    let all = needs();
    let nobody = Asked::new(|need| match need {
        Need::Root | Need::Namespaces => Answer::no("").but_root(),
        _ => Answer::yes(""),
    });
    assert_eq!(
        conclusion(&nobody, &all),
        "Bed directory is available; the others need root: sudo fsverdict doctor.\n"
    );
    let some = Asked::new(|need| match need {
        Need::FileSystem(name) if name == "xfs" => not_installed("mkfs.xfs"),
        Need::FileSystem(name) if name != "ext4" => Answer::no("").but("another kernel"),
        Need::Tool("fio") => not_installed("fio"),
        Need::Zram => Answer::unknown(""),
        _ => Answer::yes(""),
    });
    assert_eq!(
        conclusion(&some, &all),
        "Beds loop, ram, device and directory are available, with ext4.\n\
         For what is missing: apt-get install fio xfsprogs\n"
    );
}

#[test]
fn a_disk_that_contradicts_itself_is_mended_by_a_rule() {
    let seen = |name: &str, reads: Option<Reads>| Seen {
        path: "/dev/vda".into(),
        disk: Disk::named(name).unwrap(),
        reads,
    };
    let at_once = Some(Reads { count: 64, median_ns: 97_000, p90_ns: 141_000 });
    let odd = devices::says(&seen("virtio", at_once));
    assert_eq!(odd.state, State::Partly);
    assert!(odd.detail.contains("says that it rotates, but random reads of 4 KiB take 97.0 µs"));
    assert!(odd.remedy.unwrap().to_string().contains(r#"KERNEL=="vda""#));
    let sound = devices::says(&seen("nvme", at_once));
    assert!(sound.state == State::Yes && sound.detail.ends_with("nine in ten at most 141 µs)"));
    let unread = devices::says(&seen("virtio", None));
    assert!(unread.state == State::Yes && unread.detail.ends_with("to see how it answers"));
}

#[test]
fn a_server_that_debian_starts_is_to_be_stopped() {
    let unmet = installed(not_installed("vsftpd")).unmet().unwrap();
    let says = ": apt-get install vsftpd, and then systemctl disable --now vsftpd: a trial starts \
                its own";
    assert!(unmet.ends_with(says), "{unmet}");
    assert_eq!(installed(not_installed("fio")), not_installed("fio"));
}
