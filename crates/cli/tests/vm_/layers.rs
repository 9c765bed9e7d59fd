//! Layers below a file system, in a guest.

use std::path::{Path, PathBuf};

use super::{
    as_root, cache, failures, fetch_tools, full_kernel, image_in, kernels, said_in_guest, uml,
};
use crate::support::{Scene, Started, list, one_line, program, sample, text};

/// What makes them, for guests alone where the machine does not have it.
const PACKAGES: [&str; 3] = ["cryptsetup-bin", "lvm2", "mdadm"];

#[test]
#[ignore = "fetches a kernel and tools, once: run ./test"]
fn a_stack_of_layers_is_made_below_a_file_system_and_told() {
    if !uml::is_there() {
        return;
    }
    let scene = Scene::new();
    let Some(done) = fetch_tools(&uml::cache(), &PACKAGES) else { return };
    for program in ["cryptsetup", "integritysetup", "lvm", "mdadm"] {
        assert!(done.stdout.contains(program), "{program}: {}", done.stdout);
    }

    let stack = "luks:sector_size=512+raid1+lvm-thin:chunk=64k";
    let words = ["run", "--place", "uml", "--fs", "ext4", "--size", "128M"];
    let more = ["--devices", "2", "--layers", "none", "--layers", stack, "--rounds", "1"];
    let work = ["--fsync-files", "files=3,repetitions=4", "--output", "run", "--json", "-"];
    let words = [&words[..], &more, &work].concat();
    let document = uml::measured(&scene, &words);
    let trials = list(&document["trials"]);
    let of = |name: &str| trials.iter().find(|it| it["contender"] == name).unwrap();
    let (plain, layered) = (of("ext4 on none"), of(&format!("ext4 on {stack}")));
    let told: Vec<&str> = list(&layered["layers"]).iter().map(text).collect();
    let [luks, raid, thin] = told[..] else { panic!("{layered:#}") };
    let cipher = luks.contains("cipher: aes-xts-plain64") && luks.contains("sector size: 512");
    assert!(cipher && luks.matches("is active").count() == 2, "{luks}");
    assert!(raid.contains("md_fsverdict1 : active raid1") && raid.contains("[2/2] [UU]"), "{raid}");
    assert!(thin.contains("volume thin") && thin.contains("64.00k"), "{thin}");
    assert_eq!(layered["mounted"]["file_system"], "ext4");
    assert!(plain.get("layers").is_none(), "{plain:#}");
    // Below all layers, on both disks.
    let written = |trial| sample(trial, "fsync_device_write_bytes");
    assert!(written(layered) > 1.5 * written(plain), "{} {}", written(layered), written(plain));
    assert!(scene.read("run/report.md").contains(&format!("on layers `{stack}`")));
    scene.assert_nothing_left();
}

/// In a guest whose stack was taken down again, another copy of the program takes the guest for a
/// host. A host has `true`, which any program can be that does nothing.
const AS_HOST: &str = r#"
C='activation{monitoring=0 udev_sync=0} global{system_id_source="lvmlocal"}'
lvm vgchange -an --config "$C local{system_id=\"fsverdict\"}" fsverdict2_0
mdadm --stop /dev/md_fsverdict1; cryptsetup close fsverdict0_0; cryptsetup close fsverdict0_1
wipefs --all /dev/vdb /dev/vdc; cp $(command -v sync) /usr/bin/true
mkdir /tmp/host; cp /proc/1/exe /tmp/host/fsverdict; cd /tmp/host
run="./fsverdict run --bed device:/dev/vdb,/dev/vdc --erase /dev/vdb --erase /dev/vdc --erase-data
     --fs ext4 --layers luks+raid1+lvm-thin --rounds 1"
left() { ls /sys/block /dev/mapper /dev/md; blkid /dev/vdb /dev/vdc; ls /run/fsverdict/journals; }
$run --output run --fsync-files files=3,repetitions=4 && grep -o measured run/trials/1/record.json
left
$run --output killed -- sleep 1000 > /tmp/said 2>&1 &
until grep -q ' /run/fsverdict/mnt .* /dev/mapper/' /proc/[0-9]*/mountinfo; do sleep 1; done
ls /dev/mapper /sys/block; kill -9 $!; wait
./fsverdict clean; left
$run --output late --trial-timeout 20s -- sleep 1000; left
"#;

#[test]
#[ignore = "fetches tools, once, and boots virtual machines: run ./test"]
fn a_host_makes_layers_and_takes_them_down_also_those_of_a_killed_run() {
    or_left_out!();
    let scene = Scene::new();
    let Some(_) = fetch_tools(&cache(), &PACKAGES) else { return };
    scene.write("as-host", AS_HOST);
    let place =
        ["run", "--place", "vm", "--kernel", kernels()[0], "--fs", "ext4", "--size", "128M"];
    let stack = ["--devices", "2", "--layers", "luks+raid1+lvm-thin", "--rounds", "1"];
    let work = ["--output", "run", "--", "cat", &scene.typed("as-host")];
    Started::new(as_root(&scene, &[&place[..], &stack, &work].concat())).wait().exits(0);

    let said = said_in_guest(&scene, as_root(&scene, &["vm", "shell", "run"]), "as-host");
    let parts: Vec<&str> = said.split("/dev/mapper:\n").collect();
    let [_, whole, living, killed, late] = parts[..] else { panic!("{said}") };
    assert!(parts[0].contains("\nmeasured\n"), "{said}");
    assert!(living.contains("fsverdict_") && living.contains("dm-0"), "{said}");
    assert!(living.contains("cleaned up after the run of /tmp/host/killed"), "{said}");
    assert!(one_line(killed).contains("the trial was not done after 20s"), "{said}");
    for left in [whole, killed, late] {
        assert!(!left.contains("fsverdict_") && !left.contains("dm-"), "{left}: {said}");
        assert!(!left.contains(".jsonl"), "{left}: {said}");
    }
    // One that is late may have come no further than to their signatures.
    assert!(!whole.contains("TYPE=") && !killed.contains("TYPE="), "{said}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches tools, once, and boots virtual machines: run ./test"]
fn a_raid_loses_a_drive_or_is_resynchronized_under_the_work() {
    if !uml::is_there() {
        return;
    }
    let scene = Scene::new();
    let Some(_) = fetch_tools(&uml::cache(), &PACKAGES) else { return };
    let stacks = ["raid1", "raid1:state=degraded", "raid1:speed=512k,state=resync"];
    let place = ["run", "--place", "uml", "--fs", "ext4", "--size", "128M"];
    let layers = stacks.into_iter().flat_map(|stack| ["--layers", stack]).collect::<Vec<_>>();
    let work = ["--fsync-files", "files=3,repetitions=4", "--output", "run", "--json", "-"];
    let more = ["--devices", "2", "--rounds", "1"];
    let words = [&place[..], &more, &layers, &work].concat();
    let document = uml::measured(&scene, &words);
    let of = |stack: &str| {
        let name = format!("ext4 on {stack}");
        let its = list(&document["trials"]).iter().find(|it| it["contender"] == name.as_str());
        its.unwrap()
    };
    let told = |stack| text(&list(&of(stack)["layers"])[0]);
    assert!(told(stacks[0]).contains("[2/2] [UU]"), "{}", told(stacks[0]));
    assert!(told(stacks[1]).contains("(F)") && told(stacks[1]).contains("[2/1] [U_]"));
    assert!(told(stacks[2]).contains("resync ="), "{}", told(stacks[2]));
    let written = |stack| sample(of(stack), "fsync_device_write_bytes");
    let (whole, lost) = (written(stacks[0]), written(stacks[1]));
    assert!(lost < 0.7 * whole, "the lost drive gets nothing: {lost} {whole}");
    scene.assert_nothing_left();
}

/// What each says of itself, once it is made of four disks.
const EACH: [(&str, &[&str]); 13] = [
    ("luks:cipher=aes-cbc-essiv:sha256,workqueues=no", &["cipher: aes-cbc-essiv:sha256"]),
    ("luks:cipher=xchacha12,aes-adiantum-plain64,key_size=256", &["cipher: xchacha12,aes-adi"]),
    ("luks:cipher=serpent-xts-plain64,key_size=512", &["cipher: serpent-xts", "512 bits"]),
    ("integrity:hash=sha256,mode=direct", &["is active", "sha256", "mode: read/write"]),
    ("raid0", &["active raid0"]),
    ("raid5:chunk=64k", &["active raid5", "level 5, 64k chunk", "[4/4] [UUUU]"]),
    ("raid6", &["active raid6", "level 6"]),
    ("raid10", &["active raid10", "2 near-copies"]),
    ("raid1:speed=512k,state=check", &["active raid1", "check ="]),
    ("lvm", &["volume", "linear"]),
    ("lvm-striped:stripe=16k", &["volume", "striped", "16.00k"]),
    ("lvm-snapshot:chunk=8k", &["kept", "8.00k"]),
    ("integrity:mode=bitmap", &["is active", "bitmap"]),
];

#[test]
#[ignore = "fetches a kernel and tools, once: run ./test"]
fn every_layer_of_md_and_device_mapper_is_made_below_a_file_system() {
    if !uml::is_there() {
        return;
    }
    let scene = Scene::new();
    let Some(_) = fetch_tools(&uml::cache(), &PACKAGES) else { return };
    let place = ["run", "--place", "uml", "--fs", "ext4", "--size", "128M", "--devices", "4"];
    let layers = EACH.iter().flat_map(|(stack, _)| ["--layers", stack]).collect::<Vec<_>>();
    let work = ["--fsync-files", "files=3,repetitions=4", "--output", "run", "--json", "-"];
    let words = [&place[..], &["--rounds", "1"], &layers, &work].concat();
    let document = uml::measured(&scene, &words);
    for (stack, says) in EACH {
        let name = format!("ext4 on {stack}");
        let mut trials = list(&document["trials"]).iter();
        let trial = trials.find(|it| it["contender"] == name.as_str()).unwrap();
        let told: Vec<&str> = list(&trial["layers"]).iter().map(text).collect();
        let told = told.join("\n");
        assert!(says.iter().all(|it| told.contains(it)), "{stack}: {told}");
        assert!(sample(trial, "fsync_device_write_bytes") > 0.0, "{stack}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches a kernel, once, and boots virtual machines: run ./test"]
fn disks_in_a_guests_memory_take_the_place_of_its_disks_zoned_and_plain() {
    or_left_out!();
    let Some(full) = full_kernel() else { return };
    let scene = Scene::new();
    let image = image_in(&full);
    let place = ["run", "--place", "vm", "--kernel", &image, "--fs", "btrfs,f2fs"];
    let zoned = "zoned:conventional=6,latency=50ms,max_open=16";
    let plain = "null_blk:cache=16M,queues=2,latency=20ms";
    let more = ["--size", "512M", "--rounds", "1", "--layers", zoned, "--layers", plain];
    let work = ["--fsync-files", "files=3,repetitions=8", "--output", "run", "--json", "-"];
    let words = [&place[..], &more, &work].concat();
    let document = Started::new(as_root(&scene, &words)).wait().exits(0).json();
    assert_eq!(failures(&document), [""; 0]);
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 4);
    for trial in trials {
        let name = text(&trial["contender"]);
        let is_zoned = name.ends_with(zoned);
        let told = text(&list(&trial["layers"])[0]);
        let model = if is_zoned { "zoned=host-managed" } else { "zoned=none" };
        assert!(told.contains(model) && told.contains("size=512;"), "{name}: {told}");
        assert_eq!(told.contains("nr_zones=32; zone_size=16; zone_nr_conv=6"), is_zoned, "{told}");
        assert_eq!(told.contains("submit_queues=2"), !is_zoned, "{told}");
        // A request takes no less, however fast or slow the machine is.
        let waits = sample(trial, "fsync_latency_mean") >= 20e6;
        assert!(is_zoned || waits && told.contains("completion_nsec=20000000"), "{trial:#}");
        assert_eq!(trial["disk"]["zoned"] == true, is_zoned, "{name}: {:#}", trial["disk"]);
        assert_eq!(trial["disk"]["write_cache"] == true, !is_zoned, "{name}");
        // It is counted on the disk in memory, which needs flushes where it has a cache. Where it
        // has none, F2FS returns before its write is complete, which then may not be counted yet.
        assert!(sample(trial, "device_write_bytes") > 0.0, "{name}");
        assert_eq!(sample(trial, "fsync_device_flushes") > 0.0, !is_zoned, "{name}");
        let options = list(&trial["mounted"]["options"]);
        let is_f2fs = name.starts_with("f2fs");
        assert_eq!(options.contains(&"mode=lfs".into()), is_f2fs && is_zoned, "{options:?}");
        // Each is F2FS's first after a checkpoint: docs/fsync.md. A machine that stands still for
        // 50 ms just then sees it waiting, but not eight times.
        let is_early = sample(trial, "fsync_early_share") > 0.0;
        assert!(is_early || !is_f2fs || !is_zoned, "{trial:#}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches tools, once, and boots virtual machines: run ./test"]
fn the_last_disk_caches_the_others_and_gets_what_is_written() {
    if !uml::is_there() {
        return;
    }
    let scene = Scene::new();
    let Some(_) = fetch_tools(&uml::cache(), &["lvm2", "bcache-tools"]) else { return };
    let stacks = [
        ("cache:mode=writethrough", "volume cache writethrough"),
        ("writecache:high_watermark=60", "volume writecache"),
        ("bcache:bucket=64k,mode=writeback", "clean; writethrough [writeback]"),
    ];
    let place = ["run", "--place", "uml", "--fs", "xfs", "--size", "512M"];
    let layers = stacks.iter().flat_map(|(stack, _)| ["--layers", stack]).collect::<Vec<_>>();
    let more = ["--devices", "2", "--rounds", "2"];
    let work = ["--fsync-files", "files=3,repetitions=4", "--output", "run", "--json", "-"];
    let words = [&place[..], &more, &layers, &work].concat();
    // Of the second round the disks hold what the first has left.
    let document = uml::measured(&scene, &words);
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 6);
    let of = |stack: &str| {
        let name = format!("xfs on {stack}");
        trials.iter().filter(move |it| it["contender"] == name.as_str())
    };
    for (stack, says) in stacks {
        for trial in of(stack) {
            let told = text(&list(&trial["layers"])[0]);
            assert!(told.contains(says), "{stack}: {told}");
            assert_eq!(trial["mounted"]["file_system"], "xfs");
            assert!(sample(trial, "fsync_device_write_bytes") > 0.0, "{stack}");
        }
    }
    scene.assert_nothing_left();
}

/// A kernel that has dm-vdo and ntfs3, in a cache of its own, since tests of users copy the other.
fn newer_kernel() -> Option<PathBuf> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newer");
    let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
    command.args(["kernels", "get", NEWER]).env("XDG_CACHE_HOME", &cache);
    let done = Started::new(command).wait();
    if done.code != Some(0) {
        eprintln!("left out: no kernel {NEWER}: {}", done.stderr);
    }
    (done.code == Some(0)).then_some(cache)
}

const NEWER: &str = "6.12";

#[test]
#[ignore = "fetches a kernel and tools, once, and boots virtual machines: run ./test"]
fn on_a_newer_kernel_vdo_stores_once_what_is_alike_and_ntfs3_is_measured() {
    or_left_out!();
    let Some(cache) = newer_kernel() else { return };
    let Some(_) = fetch_tools(&cache, &["dmsetup", "ntfs-3g", "vdo"]) else { return };
    let scene = Scene::new();
    let plan = r#"
        place = "vm"
        bed = { size = "3G" }
        judgement = { rounds = 1 }
        contender = [
            { name = "plain", file_system = "ext4", kernel = "6.12" },
            { name = "vdo", file_system = "ext4", kernel = "6.12", layers = ["vdo:slab=32M"] },
            { name = "ntfs3", file_system = "ntfs3", kernel = "6.12" },
        ]
        [[workload]]
        name = "twice the same random bytes"
        command = "head -c 8M /dev/urandom >one; cat one >two; sync"
        "#;
    let plan = scene.write("plan.toml", &plan.replace("6.12", NEWER));
    let mut command = scene.command(&["run", &plan, "--output", "run", "--json", "-"]);
    command.env("XDG_CACHE_HOME", &cache);
    let document = Started::new(command).wait().exits(0).json();
    assert_eq!(failures(&document), [""; 0]);
    let of = |name: &str| list(&document["trials"]).iter().find(|it| it["contender"] == name);
    let [plain, vdo, ntfs3] = ["plain", "vdo", "ntfs3"].map(|name| of(name).unwrap());
    let told = text(&list(&vdo["layers"])[0]);
    assert!(told.contains("compression on deduplication on"), "{told}");
    assert_eq!(ntfs3["mounted"]["file_system"], "ntfs3");
    let written = |trial| sample(trial, "device_write_bytes");
    let [all, once, of_ntfs3] = [plain, vdo, ntfs3].map(written);
    assert!(all.min(of_ntfs3) >= f64::from(16 << 20), "{all} {of_ntfs3}");
    assert!((8.0..14.0).contains(&(once / f64::from(1 << 20))), "{once}");
    scene.assert_nothing_left();
}
