//! The report of what a machine can do, on made-up machines.

use super::*;

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    tree
}

#[test]
fn every_mkfs_has_a_package_to_install() {
    for file_system in file_system::ALL {
        let answer = Answer::not_installed(file_system.program);
        assert!(answer.package.is_some(), "{}", file_system.program);
        assert!(answer.lack().unwrap().contains(": apt-get install "), "{answer:?}");
    }
    assert!(tool::package(QEMU).is_some() && tool::package("fio").is_some());
}

#[test]
fn checks_have_names_of_their_own_and_beds_need_known_ones() {
    let checks = checks(Path::new("/"), Path::new("/"));
    let names: BTreeSet<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names.len(), checks.len());
    assert!(BEDS.iter().flat_map(|(_, needs)| *needs).all(|name| names.contains(name)));
}

#[test]
fn an_empty_machine_can_nothing_and_says_why() {
    let root = tree(&[]);
    let answers = [zram, drop_caches, counters, pressure, heat, tracefs, throttling, kvm::check];
    for answer in answers.map(|check| check(root.path())) {
        assert_eq!(answer.state, State::No, "{answer:?}");
        assert!(answer.advice.is_some(), "{answer:?}");
    }
    assert_eq!(memory(root.path()).state, State::Unknown);
}

#[test]
fn memory_is_compared_with_what_an_image_takes() {
    let little = tree(&[("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:  1024 kB\n")]);
    let answer = memory(little.path());
    assert_eq!((answer.state, answer.detail.as_str()), (State::No, "1.00 MiB available"));
    let much = tree(&[("proc/meminfo", "MemAvailable: 8388608 kB\n")]);
    assert_eq!(memory(much.path()), Answer::yes("8.00 GiB available"));
}

#[test]
fn counters_are_told_by_the_number_of_fields() {
    let of = |count: usize| {
        let line = format!("7 0 loop0{}\n", " 1".repeat(count));
        counters(tree(&[("proc/diskstats", &line)]).path()).detail
    };
    assert!(of(17).ends_with("with discards and flushes"));
    assert!(of(15).ends_with("flushes need Linux 5.5"));
    assert!(of(11).contains("discards need Linux 4.18"));
}

#[test]
fn pressure_needs_all_three_files() {
    let two = tree(&[("proc/pressure/cpu", "some"), ("proc/pressure/io", "some")]);
    assert_eq!(pressure(two.path()).state, State::No);
    let files = ["cpu", "io", "memory"].map(|name| format!("proc/pressure/{name}"));
    let three = tree(&files.each_ref().map(|path| (path.as_str(), "some")));
    assert_eq!(pressure(three.path()).state, State::Yes);
}

#[test]
fn heat_is_told_by_processors_drives_or_both() {
    let core = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
    let drive = "sys/class/nvme/nvme0/hwmon0/temp1_alarm";
    let told = |files: &[&str]| {
        let files: Vec<_> = files.iter().map(|path| (*path, "0\n")).collect();
        let answer = heat(tree(&files).path());
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
    assert!(tracefs(bare.path()).detail.contains("/sys/kernel/tracing/events/block"));
    let event = "sys/kernel/tracing/events/block/block_rq_issue/format";
    let whole = tree(&[("proc/self/mountinfo", MOUNTS), (event, "name: block_rq_issue\n")]);
    assert_eq!(tracefs(whole.path()), Answer::yes("/sys/kernel/tracing, with the block events"));
}

#[test]
fn throttling_is_that_of_cgroups_v1() {
    let v1 = tree(&[("sys/fs/cgroup/blkio/blkio.throttle.read_iops_device", "")]);
    assert_eq!(throttling(v1.path()).state, State::Yes);
    let v2 = tree(&[("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n")]);
    let answer = throttling(v2.path());
    assert_eq!(answer.state, State::No);
    assert!(answer.detail.contains("v2 has io"), "{answer:?}");
}

#[test]
fn a_kernels_file_systems_are_read() {
    let root = tree(&[("proc/filesystems", "nodev\tproc\n\text4\n")]);
    assert_eq!(mounting(root.path(), file_system::find("ext4").unwrap()).state, State::Yes);
    assert_eq!(mounting(root.path(), file_system::find("jfs").unwrap()).state, State::No);
}

#[test]
fn the_guest_is_one_bootable_sector() {
    let sector = kvm::boot_sector();
    assert_eq!(sector.len(), 512);
    assert_eq!(sector[510..], [0x55, 0xaa]);
    // The far jump leads to what follows it, lgdt to the table, the table to the segments.
    assert_eq!(sector[0x12..0x17], [0xea, 0x17, 0x7c, 0x08, 0x00]);
    assert_eq!(sector[0x08..0x0a], [0x40, 0x7c]);
    assert_eq!(sector[0x40..0x46], [15, 0, 0x30, 0x7c, 0, 0]);
    assert_eq!(u32::from_le_bytes(sector[0x18..0x1c].try_into().unwrap()), 100_000_000);
    assert_eq!(sector[0x38..0x40], 0x00cf_9a00_0000_ffff_u64.to_le_bytes());
}

/// That the guest is right: QEMU's own emulation needs neither rights nor hardware.
#[test]
fn vm_the_guest_ends_as_expected_and_one_that_hangs_is_killed() {
    if tool::find(QEMU).is_none() {
        println!("skipped: {QEMU} is not installed");
        return;
    }
    let end = kvm::boot("tcg", &kvm::boot_sector(), Duration::from_secs(300)).unwrap();
    assert!(matches!(end, kvm::End::Done(_)), "{end:?}");

    let mut stuck = kvm::boot_sector();
    stuck[..2].copy_from_slice(&[0xeb, 0xfe]); // jmp to itself
    let limit = Duration::from_millis(500);
    assert_eq!(kvm::boot("tcg", &stuck, limit).unwrap(), kvm::End::Hung(limit));

    let end = kvm::boot("nosuch", &kvm::boot_sector(), Duration::from_secs(300)).unwrap();
    assert!(matches!(&end, kvm::End::Failed(_, said) if said.contains("nosuch")), "{end:?}");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_one_is_attached_and_nothing_of_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    let answer = loop_devices(folder.path());
    assert_ne!(answer.state, State::No, "{answer:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let path = folder.path().to_str().unwrap();
    for name in loop_names() {
        let file = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
        assert!(!file.unwrap_or_default().contains(path), "{name}");
    }
}

#[test]
fn the_conclusion_names_beds_file_systems_and_packages() {
    let yes = |name: &str| Ability { name: name.into(), answer: Answer::yes("") };
    let nobody = [Ability { name: ROOT.into(), answer: Answer::no("", "") }, yes(LOOP)];
    assert_eq!(
        conclusion(&nobody),
        "Bed directory is available; the others need root: sudo fsverdict doctor.\n"
    );
    let missing =
        |program: &str| Ability { name: program.into(), answer: Answer::not_installed(program) };
    let some = [
        yes(ROOT),
        yes(NAMESPACES),
        yes(LOOP),
        yes("mkfs.ext4"),
        yes("mount ext4"),
        missing("mkfs.xfs"),
        yes("mount xfs"),
        missing("fio"),
    ];
    assert_eq!(
        conclusion(&some),
        "Beds loop, ram, device and directory are available, with ext4.\n\
         For what is missing: apt-get install fio xfsprogs\n"
    );
}
