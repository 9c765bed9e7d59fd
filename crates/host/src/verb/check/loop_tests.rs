//! Settings tried for real: the published ones, and others that nobody has named before.

use fsverdict_core::script;

use super::*;
use crate::undo;

fn found(text: &str) -> Vec<Checked> {
    let folder = tempfile::tempdir().unwrap();
    let found = check(&script::read(text), folder.path(), Target::default()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "an image is left");
    found
}

/// The one finding for `setting`.
fn of(found: &[Checked], setting: &str) -> Checked {
    let all: Vec<&Checked> = found.iter().filter(|it| it.setting == setting).collect();
    assert_eq!(all.len(), 1, "{setting}: {found:#?}");
    all[0].clone()
}

#[track_caller]
fn expect(text: &str, expected: &[(&str, Judged)]) {
    let found = found(text);
    for (setting, state) in expected {
        let it = of(&found, setting);
        assert_eq!(it.state, *state, "{it:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_the_published_xfs_settings() {
    let found = found(
        "mkfs.xfs -f -m crc=1,finobt=1 -l size=256m,logbsize=256k DEV\n\
         mount -t xfs -o noatime,nodiratime,logbufs=8,logbsize=256k DEV /data\n",
    );
    let logbsize = of(&found, "-l logbsize=256k");
    assert_eq!(logbsize.state, Judged::Invalid);
    assert!(logbsize.said.unwrap().contains("unknown option"));
    assert!(logbsize.advice.unwrap().contains("it is a mount option"));
    assert_eq!(of(&found, "-m crc=1").state, Judged::Redundant);
    assert_eq!(of(&found, "-l size=256m").state, Judged::Ok);
    let nodiratime = of(&found, "-o nodiratime");
    assert_eq!(nodiratime.state, Judged::NoEffect);
    assert!(nodiratime.said.unwrap().contains("-o noatime"));
    assert_eq!(of(&found, "-o logbufs=8").state, Judged::Redundant);
    assert_eq!(of(&found, "-o logbsize=256k").state, Judged::Ok);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_the_published_ext4_settings() {
    let found = found(
        "mkfs.ext4 -O extent,uninit_bg,dir_index -E stride=128,stripe-width=128 DEV\n\
         mount -t ext4 -o noatime,nodiratime,barrier=0,discard DEV /data\n",
    );
    let stride = of(&found, "-E stride=128");
    assert_eq!(stride.state, Judged::Doubtful);
    assert!(stride.advice.unwrap().contains("RAID"));
    assert_eq!(of(&found, "-O uninit_bg").state, Judged::NoEffect);
    assert_eq!(of(&found, "-O extent").state, Judged::Redundant);
    let barrier = of(&found, "-o barrier=0");
    assert_eq!(barrier.state, Judged::Unsafe);
    // On a machine that lets no flush be counted the manual alone says so.
    assert!(barrier.said.is_none_or(|said| said.contains("an fsync sends no flush")));
    assert!(of(&found, "-o discard").advice.unwrap().contains("fstrim.timer"));
    assert_eq!(of(&found, "-o nodiratime").state, Judged::NoEffect);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_the_published_queue_settings_and_their_order() {
    let found = found(
        "echo none > /sys/block/DEV/queue/scheduler\n\
         echo 1024 > /sys/block/DEV/queue/nr_requests\n",
    );
    assert_eq!(of(&found, "scheduler = none").state, Judged::Ok);
    let requests = of(&found, "nr_requests = 1024");
    assert_eq!(requests.state, Judged::Invalid);
    assert!(requests.said.unwrap().contains("Invalid argument"));
    assert!(requests.advice.unwrap().contains("set the scheduler first"));
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_settings_of_mkfs_that_nobody_listed() {
    use Judged::{Doubtful, Invalid, NotTried, Ok, Redundant, Unsafe};
    expect(
        "mkfs.ext4 -O ^has_journal -I 64 DEV",
        &[("-O ^has_journal", Unsafe), ("-I 64", Invalid)],
    );
    expect(
        "mkfs.xfs -d agcount=0 -i size=1024 -l logdev=/dev/null DEV",
        &[("-d agcount=0", Invalid), ("-i size=1024", Ok), ("-l logdev=/dev/null", NotTried)],
    );
    expect("mkfs.xfs -i crc=1 DEV", &[("-i crc=1", Invalid)]);
    let elsewhere = found("mkfs.xfs -i crc=1 DEV").remove(0);
    let advice = elsewhere.advice.clone().unwrap_or_default();
    assert!(advice.contains("-m crc=1"), "{elsewhere:?}");
    expect("mkfs.xfs -d su=64k,sw=4 DEV", &[("-d su=64k", Doubtful), ("-d sw=4", Doubtful)]);
    expect(
        "mkfs.btrfs -m raid1 -n 32k /dev/sdx /dev/sdy",
        &[("-m raid1", Redundant), ("-n 32k", Ok)],
    );
    expect("tune2fs -o nobarrier -m 1 DEV", &[("-o nobarrier", Unsafe), ("-m 1", Ok)]);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_mount_options_that_nobody_listed() {
    use Judged::{Doubtful, Invalid, NoEffect, Ok, Redundant, Unsafe};
    expect(
        "mount -t ext4 -o data=journal,commit=5,nosuchoption,nobh,defaults DEV /a",
        &[
            ("-o data=journal", Ok),
            ("-o commit=5", Redundant),
            ("-o nosuchoption", Invalid),
            ("-o nobh", NoEffect),
        ],
    );
    expect(
        "mkfs.xfs DEV\nmount -o logbufs=99,largeio DEV /a",
        &[("mkfs.xfs", Ok), ("-o logbufs=99", Invalid), ("-o largeio", Ok)],
    );
    expect(
        "/dev/sdb /a btrfs compress=zstd:99,nobarrier,nofail 0 0",
        &[("-o compress=zstd:99", Doubtful), ("-o nobarrier", Unsafe), ("-o nofail", Ok)],
    );
    expect("mount -t ext4 -o data=writeback DEV /a", &[("-o data=writeback", Unsafe)]);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_knobs_that_nobody_listed_go_back() {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/vm/{name}")).unwrap();
    let before = read("vfs_cache_pressure");
    let found = found(
        "echo fast > /sys/block/sdx/queue/scheduler\n\
         echo mq-deadline > /sys/block/sdx/queue/scheduler\n\
         echo 77 > /sys/block/sdx/queue/nr_requests\n\
         echo 'write through' > /sys/block/sdx/queue/write_cache\n\
         echo none > /sys/block/sdx/queue/scheduler\n\
         sysctl -w vm.dirty_ratio=200 vm.vfs_cache_pressure=77 vm.nosuch=1 vm.swappiness=ten\n\
         echo 3 > /proc/sys/vm/drop_caches\n",
    );
    for (setting, state) in [
        ("scheduler = fast", Judged::Invalid),
        ("scheduler = mq-deadline", Judged::NoEffect),
        ("nr_requests = 77", Judged::NoEffect),
        ("write_cache = write through", Judged::Unsafe),
        ("scheduler = none", Judged::Ok),
        ("vm.dirty_ratio = 200", Judged::Invalid),
        ("vm.vfs_cache_pressure = 77", Judged::Ok),
        ("vm.nosuch = 1", Judged::Invalid),
        ("vm.swappiness = ten", Judged::Invalid),
        ("vm.drop_caches = 3", Judged::NotTried),
    ] {
        let it = of(&found, setting);
        assert_eq!(it.state, state, "{it:#?}");
    }
    assert_eq!(read("vfs_cache_pressure"), before);
    // Others' tests have journals, too, and look at them while they have this.
    let _alone = undo::SettingsLock::patiently().unwrap();
    let left = undo::stale().unwrap();
    assert!(left.iter().all(|journal| journal.run.is_some()), "{left:?}");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_partitions_are_aligned_or_not() {
    if crate::tool::find("parted").is_none() {
        return;
    }
    let found = found(
        "parted DEV mklabel gpt\nparted -a optimal DEV mkpart primary 0% 50%\n\
         parted -a none DEV mkpart primary 5000001s 100%\nparted DEV mkpart\n",
    );
    assert_eq!(of(&found, "mkpart primary 0% 50%").state, Judged::Ok);
    assert_eq!(of(&found, "-a optimal").state, Judged::Redundant);
    let odd = of(&found, "mkpart primary 5000001s 100%");
    assert_eq!(odd.state, Judged::Doubtful);
    assert!(odd.advice.unwrap().contains("misaligned"));
    assert_eq!(of(&found, "mkpart").state, Judged::Invalid);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_mounts_are_seen_by_nobody_else_and_end() {
    let at = crate::place::trial_process::mount_point().display().to_string();
    let before = crate::machine::mount::at(&at).unwrap();
    found("mount -t ext4 -o noatime DEV /a");
    assert_eq!(crate::machine::mount::at(&at).unwrap(), before);
}
