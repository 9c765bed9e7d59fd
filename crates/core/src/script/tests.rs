//! Files of all kinds, and what is understood of them.

use super::*;

fn requests(text: &str) -> Vec<Request> {
    read(text).settings.into_iter().map(|written| written.request).collect()
}

fn make(text: &str) -> Call {
    match requests(text).remove(0) {
        Request::Make(call) | Request::Partition(call) => call,
        other => panic!("{other:?}"),
    }
}

fn shown(call: &Call) -> Vec<String> {
    call.choices.iter().map(ToString::to_string).collect()
}

#[test]
fn a_mkfs_command_is_its_suboptions_and_its_device() {
    let call = make("sudo /sbin/mkfs.xfs -f -m crc=1,finobt=1 -l size=256m,logbsize=256k DEV");
    assert_eq!(call.program, "mkfs.xfs");
    assert_eq!(shown(&call), ["-m crc=1", "-m finobt=1", "-l size=256m", "-l logbsize=256k"]);
    assert_eq!(call.devices, ["DEV"]);
    assert_eq!(argv(&call.choices).join(" "), "-m crc=1,finobt=1 -l size=256m,logbsize=256k");
}

#[test]
fn options_are_read_in_all_their_spellings() {
    let call = make("mke2fs -t ext4 -b4096 -O ^has_journal -E stride=2 /dev/sdb1 100G");
    assert_eq!(call.program, "mkfs.ext4");
    assert_eq!(shown(&call), ["-b4096", "-O ^has_journal", "-E stride=2"]);
    assert_eq!((call.devices, call.rest), (vec!["/dev/sdb1".into()], vec!["100G".into()]));
    let call = make("mkfs.btrfs --nodesize=16k -d raid1 /dev/sdb /dev/sdc");
    assert_eq!(shown(&call), ["--nodesize=16k", "-d raid1"]);
    assert_eq!(call.devices, ["/dev/sdb", "/dev/sdc"]);
    assert_eq!(make("mkfs.xfs -f disk.img").devices, ["disk.img"]);
}

#[test]
fn variables_continuations_and_comments_are_followed() {
    let text = "#!/bin/sh\nDEV=/dev/nvme0n1 # the disk\nFS=\"ext4\"\n\
                sudo mkfs.$FS \\\n  -E stride=128 \"${DEV}p1\"\nls\n\
                if true; then mount -o noatime $UNKNOWN /data; fi\n";
    let script = read(text);
    assert_eq!(script.settings.len(), 2, "{script:?}");
    assert_eq!((script.settings[0].line, script.settings[1].line), (4, 7));
    assert_eq!(script.settings[0].command, "mkfs.ext4 -E stride=128 /dev/nvme0n1p1");
    assert_eq!(script.other_lines, 1, "ls");
    let Request::Mount(mount) = &script.settings[1].request else { panic!() };
    assert_eq!((mount.device.as_str(), &mount.options), ("$UNKNOWN", &vec!["noatime".into()]));
}

#[test]
fn knobs_are_found_however_they_are_written() {
    let queue = |file: &str, value: &str| Request::Knob {
        knob: Knob::Queue { device: "sda".into(), file: file.into() },
        value: value.into(),
    };
    let sysctl = |value: &str| Request::Knob {
        knob: Knob::Sysctl("vm.dirty_ratio".into()),
        value: value.into(),
    };
    for text in [
        "echo none > /sys/block/sda/queue/scheduler",
        "echo none>/sys/block/sda/queue/scheduler",
        "echo none | sudo tee /sys/block/sda/queue/scheduler > /dev/null",
        "sudo sh -c 'echo none > /sys/block/sda/queue/scheduler'",
        "for d in sda sdb; do echo none > /sys/block/$d/queue/scheduler; done",
        "KERNEL==\"sda\", ATTR{queue/rotational}==\"0\", X=\"1\"\n\
         KERNEL==\"sda\", ATTR{queue/scheduler}=\"none\"",
    ] {
        assert_eq!(requests(text), [queue("scheduler", "none")], "{text}");
    }
    assert_eq!(requests("blockdev --setra 512 /dev/sda"), [queue("read_ahead_kb", "256")]);
    for text in [
        "sysctl -w vm.dirty_ratio=10",
        "vm.dirty_ratio = 10",
        "echo 10 > /proc/sys/vm/dirty_ratio",
        "echo 'vm.dirty_ratio = 10' >> /etc/sysctl.conf",
    ] {
        assert_eq!(requests(text), [sysctl("10")], "{text}");
    }
}

#[test]
fn an_fstab_is_mounts() {
    let text = "# comment\nUUID=ab-c / ext4 defaults,noatime 0 1\n/dev/sdb /data xfs logbufs=8\n\
                tmpfs /tmp tmpfs size=1G 0 0\n";
    let script = read(text);
    assert_eq!(script.settings.len(), 2);
    assert_eq!(script.other_lines, 1);
    let Request::Mount(mount) = &script.settings[0].request else { panic!() };
    assert_eq!(mount.file_system.as_deref(), Some("ext4"));
    assert_eq!(mount.options, ["defaults", "noatime"]);
    assert_eq!(requests("echo '/dev/sdb /d xfs noatime 0 0' >> /etc/fstab").len(), 1);
}

#[test]
fn parted_keeps_its_commands_apart_from_its_options() {
    let call = make("parted -s -a optimal /dev/sdb mkpart primary 0% -1MiB");
    assert_eq!(shown(&call), ["-a optimal"]);
    assert_eq!(call.rest, ["mkpart", "primary", "0%", "-1MiB"]);
    assert!(requests("parted /dev/sdb print").is_empty());
}

#[test]
fn a_plan_gives_the_settings_of_its_contenders_with_their_lines() {
    let text = "question = \"?\"\n[[contender]]\nname = \"tuned\"\nfile_system = \"xfs\"\n\
                mkfs = [\"-l\", \"size=256m\"]\nmount = [\"noatime\"]\n\
                queue = { nr_requests = 64, scheduler = \"none\" }\n\
                sysctl = { \"vm.dirty_ratio\" = 5 }\n";
    let script = read(text);
    let lines: Vec<_> = script.settings.iter().map(|w| (w.line, w.command.as_str())).collect();
    assert_eq!(
        lines,
        [
            (5, "mkfs.xfs -l size=256m"),
            (6, "mount -t xfs -o noatime"),
            (7, "scheduler = none"),
            (7, "nr_requests = 64"),
            (8, "vm.dirty_ratio = 5"),
        ]
    );
}

#[test]
fn nothing_that_a_file_may_hold_is_too_much() {
    for text in [
        "",
        "\\",
        "'",
        "\"$",
        "${",
        "$(",
        "mkfs.",
        "mount",
        "sh -c",
        "echo > ",
        "-",
        "a=",
        "mkfs.ext4 -",
        "tee",
        "mkfs -t",
        "é -x",
        "mkfs.xfs -é=1 D",
        "<",
        "<a",
        "sudo -u",
    ] {
        read(text);
    }
}
