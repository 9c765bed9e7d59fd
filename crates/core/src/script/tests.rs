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
        "vm/dirty_ratio = 10",
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
fn variables_are_split_as_the_shell_splits_them() {
    for text in [
        "OPTS=\"-O ^has_journal\"; mkfs.ext4 $OPTS /dev/sdb",
        "OPTS='-O ^has_journal'\nmkfs.ext4 ${OPTS} /dev/sdb",
        "A='-O'\nA+=\" ^has_journal\"\nB=$A\nmkfs.ext4 $B /dev/sdb",
        "OPTS=(-O ^has_journal)\nmkfs.ext4 \"${OPTS[@]}\" /dev/sdb",
        "mkfs.ext4 ${OPTS:--O ^has_journal} /dev/sdb",
        "if true; then OPTS='-O ^has_journal'; fi; mkfs.ext4 $OPTS$NONE /dev/sdb",
    ] {
        let text = text.replace("$NONE", "");
        let call = make(&text);
        assert_eq!(shown(&call), ["-O ^has_journal"], "{text}");
        assert_eq!(call.devices, ["/dev/sdb"], "{text}");
    }
    let quoted = make("OPTS='-O ^has_journal'\nmkfs.ext4 \"$OPTS\" /dev/sdb");
    assert_eq!(argv(&quoted.choices), ["-O ^has_journal"], "one word");
    assert_eq!(make("EMPTY=\nmkfs.ext4 -m 1 $EMPTY /dev/sdb").devices, ["/dev/sdb"]);
}

#[test]
fn a_variable_that_is_not_set_is_no_device_where_another_is() {
    let call = make("mkfs.ext4 $OPTIONS /dev/sdb");
    assert_eq!((call.devices, call.unknown), (vec!["/dev/sdb".into()], vec!["$OPTIONS".into()]));
    let call = make("mkfs.xfs $OPTIONS $DEVICE");
    assert_eq!((call.devices, call.unknown), (vec!["$DEVICE".into()], vec!["$OPTIONS".into()]));
    let call = make("mkfs.btrfs -f $ONE $TWO");
    assert_eq!((call.devices.len(), call.unknown.len()), (2, 0));
    let call = make("mkfs.ext4 -L $LABEL $DEVICE");
    assert_eq!((shown(&call), call.devices), (vec!["-L $LABEL".into()], vec!["$DEVICE".into()]));
}

#[test]
fn rules_of_udev_are_read_as_udev_reads_them() {
    let text = "ACTION==\"add|change\", KERNEL==\"sd*\", ATTR{queue/rotational}==\"0\", \\\n  \
                ATTR{queue/scheduler}=\"none\", ATTR{queue/write_cache}:=\"write through\"\n\
                # ATTR{queue/scheduler}=\"bfq\"\n\
                KERNEL==\"sd*\" ATTR{queue/rotational}!=\"0\" ATTR{queue/scheduler} = \"bfq\"\n";
    let found: Vec<_> = requests(text)
        .into_iter()
        .map(|request| match request {
            Request::Knob { knob: Knob::Queue { device, file }, value } => (device, file, value),
            other => panic!("{other:?}"),
        })
        .collect();
    let [flash, disk] = ["sd* queue/rotational==\"0\"", "sd* queue/rotational!=\"0\""];
    let row = |device: &str, file: &str, value: &str| (device.into(), file.into(), value.into());
    assert_eq!(
        found,
        [
            row(flash, "scheduler", "none"),
            row(flash, "write_cache", "write through"),
            row(disk, "scheduler", "bfq"),
        ]
    );
    let read = requests(
        "SUBSYSTEM==\"block\", KERNEL==\"sda\", SYSCTL{vm/dirty_ratio}=\"5\", \
                         RUN+=\"/bin/sh -c 'echo 64 > /sys/block/%k/queue/nr_requests'\"",
    );
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(
        matches!(&read[0], Request::Knob { knob: Knob::Sysctl(n), .. } if n == "vm.dirty_ratio")
    );
    let is_sda = |knob: &Knob| matches!(knob, Knob::Queue { device, .. } if device == "sda");
    assert!(matches!(&read[1], Request::Knob { knob, .. } if is_sda(knob)), "{read:?}");
    let compared = requests("KERNEL==\"sda\", ATTR{queue/scheduler}==\"none\"");
    assert!(matches!(compared.as_slice(), [Request::Idle(_)]), "{compared:?}");
    assert_eq!(read_lines("NAME=\"x\"\nKERNEL==\"sda\", SYMLINK+=\"disk\""), 1);
}

#[test]
fn files_with_sections_are_read_by_their_sections() {
    let unit = "# a unit\n[Unit]\nDescription=x\n[Mount]\nWhat=/dev/sdb\nWhere=/a\nType=xfs\n\
                Options=noatime,\\\nlogbufs=8\n";
    let script = read(unit);
    assert_eq!((script.settings.len(), script.settings[0].line), (1, 8), "{script:?}");
    let Request::Mount(mount) = &script.settings[0].request else { panic!("{script:?}") };
    assert_eq!((mount.device.as_str(), mount.file_system.as_deref()), ("/dev/sdb", Some("xfs")));
    let profile = "[main]\nsummary=x\ninclude=other\n[variables]\nlow=5\n\
                   [sysctl]\nvm/dirty_ratio=${low}\n\
                   [disk]\ndevices=sdb\nelevator=none\nreadahead=>8192 s\n\
                   [sysfs]\n/sys/block/sdb/queue/nr_requests=64\n\
                   [vm]\ntransparent_hugepages=never\n";
    let queue = |file: &str, value: &str| Request::Knob {
        knob: Knob::Queue { device: "sdb".into(), file: file.into() },
        value: value.into(),
    };
    let found = requests(profile);
    assert!(matches!(&found[0], Request::Other(_)), "{found:?}");
    let knob = Knob::Sysctl("vm.dirty_ratio".into());
    assert_eq!(found[1], Request::Knob { knob, value: "5".into() });
    assert_eq!(
        found[2..5],
        [queue("scheduler", "none"), queue("read_ahead_kb", "4096"), queue("nr_requests", "64")]
    );
    assert!(matches!(&found[5], Request::Knob { knob: Knob::Other(_), value } if value == "never"));
    let service = "[Service]\nLimitNOFILE=1024:4096\nExecStart=-/sbin/sysctl -w vm.dirty_ratio=5\n";
    let found = requests(service);
    assert!(matches!(&found[0], Request::Limit(limit) if limit.value == "4096"), "{found:?}");
    assert!(matches!(&found[1], Request::Knob { .. }), "{found:?}");
}

#[test]
fn limits_pools_properties_and_drives_are_told_apart() {
    let limit = |text: &str| match requests(text).remove(0) {
        Request::Limit(limit) => format!("{} {} {}", limit.kind, limit.item, limit.value),
        other => panic!("{other:?}"),
    };
    assert_eq!(limit("@db soft nofile 65536"), "soft nofile 65536");
    assert_eq!(limit("* - memlock unlimited"), "- memlock unlimited");
    assert_eq!(limit("ulimit -Sn 4096"), "soft nofile 4096");
    for text in [
        "zfs set sync=disabled atime=off tank/db",
        "zpool create -f -o sync=disabled -O atime=off tank mirror /dev/sda /dev/sdb",
    ] {
        let Request::Pool(call) = requests(text).remove(0) else { panic!("{text}") };
        let values: Vec<_> = call.choices.iter().filter_map(|it| it.value.as_deref()).collect();
        assert_eq!(values, ["sync=disabled", "atime=off"], "{text}");
    }
    for text in
        ["zfs list", "hdparm -tT /dev/sda", "hdparm -W /dev/sda", "blockdev --getra /dev/sda"]
    {
        assert!(requests(text).is_empty(), "{text}");
    }
    assert!(matches!(requests("hdparm -W0 /dev/sda").remove(0), Request::Other(_)));
    let property = requests("btrfs property set -t inode /a compression zstd").remove(0);
    assert!(matches!(&property, Request::Property(it) if it.to_string() == "compression=zstd"));
}

#[test]
fn a_comment_belongs_to_the_setting_below_it_or_before_it() {
    let text = "# one\n# two\nmkfs.ext4 -m 1 /dev/sdb # three\nmkfs.xfs /dev/sdc\n\n# four\n\n\
                echo 'a # b' | tee /proc/sys/vm/swappiness\n";
    let script = read(text);
    let comments: Vec<&str> = script.settings.iter().map(|it| it.comment.as_str()).collect();
    assert_eq!(comments, ["one\ntwo\nthree", "", ""]);
}

fn read_lines(text: &str) -> usize {
    read(text).other_lines
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
        "A=(",
        &"A=(".repeat(100_000),
        &"A=$A$A$A$A$A$A$A$Axxxxxxxx\n".repeat(100),
        &"A+=$A$A$A$A$A$A$A$Axxxxxxxx\n".repeat(100),
        "${A[@",
        "ATTR{",
        "ATTR{a}=\"",
        "KERNEL==\"\\\"",
        "`",
        "[",
        "[a]",
        "[disk]\nreadahead=",
        "[Mount]\nOptions=",
        "zfs",
        "zpool create -o",
        "hdparm -a",
        "hdparm é",
        "ulimit",
        "btrfs property set",
        "# é",
    ] {
        read(text);
    }
}

#[test]
fn an_option_that_is_no_ascii_is_no_panic() {
    assert!(read("hdparm -é /dev/sda\n").settings.is_empty());
}

#[test]
fn variables_do_not_fill_the_memory() {
    let long = "x".repeat(1 << 15);
    for line in ["echo @$A@ > /proc/sys/vm/swappiness", "echo \"@${A}@\" > /proc/sys/vm/swappiness"]
    {
        let many = line.replace("@$A@", &"$A".repeat(1000)).replace("@${A}@", &"${A}".repeat(1000));
        let found = read(&format!("A={long}\n{many}\n"));
        assert!(found.settings[0].command.len() < 1 << 17, "{line}");
    }
    let many = "${a}".repeat(1000);
    let unit = format!("[variables]\na={long}\nb={many}\n[sysctl]\nvm.swappiness={many}\n");
    assert!(read(&unit).settings.is_empty());
    let rule = "ATTR{queue/nr_requests}=\"1\", ".repeat(65);
    assert_eq!(read(&rule).settings.len(), 1);
}

#[test]
fn a_variable_counts_from_its_command_on() {
    let found =
        read("a=5; sysctl vm.dirty_ratio=$a && a=6 | tee x; sysctl vm.dirty_ratio=$a # ; x");
    let commands: Vec<&str> = found.settings.iter().map(|it| it.command.as_str()).collect();
    assert_eq!(commands, ["sysctl vm.dirty_ratio=5", "sysctl vm.dirty_ratio=6"]);
}

#[test]
fn what_is_too_long_for_settings_is_refused() {
    let refused = |text: String| check_size(&text).unwrap_err();
    assert!(refused("x\n".repeat(1 << 20)).contains("1 MiB"));
    assert!(refused(format!("a\n{}", "y\\\n".repeat(1 << 16))).contains("line 2 is longer"));
    check_size(&"sysctl vm.dirty_ratio=5\n".repeat(1000)).unwrap();
}
