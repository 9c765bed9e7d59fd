//! Layers upon each other: whether they can be made, how, and what they are for a trial.

use std::ffi::CStr;

use fsverdict_core::model::{Bytes, Layer, meant};

use super::known::{ALL, find};
use super::words::{bytes, clear_argv};
use super::{Made, Names, Place, Seat, bcache, host, null_blk, vdo};
use crate::tool::{self, ToolError};

/// Looks whether `layers` can be made on so many devices.
pub fn check(layers: &[Layer], devices: usize) -> Result<(), String> {
    let mut below: Vec<String> = (0..devices).map(|number| number.to_string()).collect();
    for (level, layer) in layers.iter().enumerate() {
        let named = || meant(&layer.name, ALL.map(|kind| kind.name));
        let kind = find(&layer.name)
            .ok_or_else(|| format!("no layer is called {:?}; {}", layer.name, named()))?;
        kind.check(layer)?;
        if kind.place == Place::OfDisks && level > 0 {
            return Err(format!(
                "{} takes the place of the bed's disks: write it first",
                kind.name
            ));
        }
        if kind.place == Place::WithCache && layers[..level].iter().any(caches) {
            return Err(format!("{} is a second cache: only one can use the last disk", kind.name));
        }
        if level > 0 && is_zoned(layers) {
            return Err(format!("{} can't be made on zoned disks here: leave it out", kind.name));
        }
        let (least, count) = (kind.devices_min, below.len());
        if count < least {
            return Err(format!(
                "{} is made of {least} devices or more, and gets {count}: --devices {least}, and \
                 below what joins them",
                kind.name
            ));
        }
        let names = &Names::alone();
        below = (kind.up)(&Seat { names, level, devices: &below, layer }).devices;
    }
    Ok(())
}

/// How `layers` are made on `devices`, one after the other; unknown ones are left out.
pub fn stack(layers: &[Layer], devices: &[String], names: &Names) -> Vec<Made> {
    let mut made: Vec<Made> = Vec::new();
    for (level, layer) in layers.iter().enumerate() {
        let below = made.last().map_or(devices, |it| &it.devices);
        let seat = Seat { names, level, devices: below, layer };
        made.extend(find(&layer.name).map(|kind| (kind.up)(&seat)));
    }
    made
}

/// What is made in place of the bed's disks, if the plan asks for it.
pub fn in_place(layers: &[Layer], disks: &[String]) -> Option<Made> {
    let made = || stack(&layers[..1], disks, &Names::alone()).pop();
    takes_place(layers).then(made).flatten()
}

/// Whether one of them can be made in a virtual machine alone.
pub fn takes_guest(layers: &[Layer]) -> bool {
    let is_of_guests = |layer: &Layer| find(&layer.name).is_some_and(|kind| !kind.on_hosts);
    layers.iter().any(|layer| is_of_guests(layer) || host::is_for_all(layer))
}

/// Whether the disks are not the bed's.
pub fn takes_place(layers: &[Layer]) -> bool {
    let first = layers.first().and_then(|layer| find(&layer.name));
    first.is_some_and(|kind| kind.place == Place::OfDisks)
}

/// Whether the file system is made on zoned disks.
pub fn is_zoned(layers: &[Layer]) -> bool {
    layers.first().is_some_and(|layer| layer.name == null_blk::ZONED.name)
}

/// How many zones of zoned disks are written anywhere.
pub fn conventional_zones(disks: &Layer) -> u64 {
    null_blk::conventional(disks)
}

/// The kernel gives such disks no more queues than it has processors, and says nothing
/// (drivers/block/null_blk/main.c, `null_validate_conf`).
pub fn check_processors(disks: &Layer, processors: u32) -> Result<(), String> {
    let queues = disks.settings.get(null_blk::QUEUES).and_then(|it| it.parse::<u32>().ok());
    match queues {
        Some(queues) if queues > processors => Err(format!(
            "{disks}: a guest of {processors} processors has no more queues than these: write \
             [vm] processors = {queues}"
        )),
        _ => Ok(()),
    }
}

/// How much memory the write cache of such a disk takes beside it, at most.
pub fn cache_bytes(disks: &Layer, disk: Bytes) -> u64 {
    let cache = disks.settings.get(null_blk::CACHE).and_then(|value| bytes(value));
    cache.unwrap_or(0).min(disk.0)
}

/// Whether disk `number` of `count` is the fast one that caches others: no layer joins disks below
/// a cache.
pub fn is_fast(layers: &[Layer], number: usize, count: usize) -> bool {
    number + 1 == count && layers.iter().any(caches)
}

/// Its last device caches the others.
fn caches(layer: &Layer) -> bool {
    find(&layer.name).is_some_and(|it| it.place == Place::WithCache)
}

/// Whether `layers` can be made on disks of that size.
pub fn check_size(layers: &[Layer], disk: Bytes) -> Result<(), String> {
    // Layers in between may be smaller or larger than the disk.
    layers.first().map_or(Ok(()), |first| vdo::check_size(first, disk))?;
    layers.iter().try_for_each(|layer| bcache::check_size(layer, disk))
}

/// What a guest loads that module of the kernel with.
pub fn module_parameters(module: &str) -> &'static CStr {
    let (name, parameters) = null_blk::PARAMETERS;
    if module == name { parameters } else { c"" }
}

/// The devices on which the file system is made.
pub fn top(layers: &[Layer], devices: Vec<String>, names: &Names) -> Vec<String> {
    stack(layers, &devices, names).pop().map_or(devices, |it| it.devices)
}

/// Makes `layers` on `devices`, which are those that [`in_place`] has made, where it has; gives
/// what their own tools say of them.
pub fn raise(
    layers: &[Layer],
    devices: &[String],
    names: &Names,
) -> Result<Vec<String>, ToolError> {
    devices.iter().try_for_each(|device| tool::run(&clear_argv(device)).map(drop))?;
    let mut said = Vec::new();
    for (level, (made, layer)) in stack(layers, devices, names).iter().zip(layers).enumerate() {
        if level > 0 || !takes_place(layers) {
            tool::run_all(&made.commands)?;
        }
        said.push(format!("{}: {}", layer.name, told(&tool::run_all(&made.facts)?)));
    }
    Ok(said)
}

/// A tool's output in one line; what it repeats for each device appears once.
fn told(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.dedup();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::machine::token::Token;
    use crate::tool::Argv;

    fn layers(text: &str) -> Vec<Layer> {
        Layer::parse_stack(text).unwrap()
    }

    fn devices(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("/dev/vd{number}")).collect()
    }

    fn typed(text: &str, count: usize) -> String {
        let made = stack(&layers(text), &devices(count), &Names::alone());
        let lines = made.into_iter().flat_map(|it| it.commands);
        lines.map(|argv| tool::shown(&argv)).collect::<Vec<_>>().join("\n")
    }

    /// The conformance suite of what needs no kernel: each layer is made of the devices below it,
    /// and its commands name the devices that it provides.
    #[test]
    fn each_layer_takes_all_devices_below_and_names_those_above() {
        for kind in ALL {
            let below = devices(kind.devices_min.max(2));
            // It alone is nothing without a setting.
            let text = if kind.name == "delay" { "delay:read=1ms" } else { kind.name };
            let made = stack(&layers(text), &below, &Names::alone()).remove(0);
            for device in &below {
                let name = device.trim_start_matches("/dev/");
                let is_named = made.commands.iter().flatten().any(|word| word.contains(name));
                assert!(is_named, "{}: {device}", kind.name);
            }
            assert!(!made.devices.is_empty() && !made.facts.is_empty(), "{}", kind.name);
            assert!(made.devices.iter().all(|it| !below.contains(it)), "{}", kind.name);
            let named = |argv: &Argv| kind.programs.contains(&argv[0].as_str());
            let all = made.commands.iter().chain(&made.facts);
            assert!(all.clone().all(named), "{}: {made:?}", kind.name);
            assert!(!kind.modules.is_empty() && !kind.about.is_empty(), "{}", kind.name);
            check(&layers(text), below.len()).unwrap();
        }
        assert_eq!(ALL.iter().map(|kind| kind.name).collect::<BTreeSet<_>>().len(), ALL.len());
    }

    #[test]
    fn the_first_layer_is_next_to_the_disks() {
        let names = Names::alone();
        let made = stack(&layers("luks+raid1+lvm"), &devices(2), &names);
        let devices: Vec<&Vec<String>> = made.iter().map(|it| &it.devices).collect();
        let [encrypted, mirrored, volume] = devices[..] else { panic!("{devices:?}") };
        assert_eq!(encrypted[..], ["/dev/mapper/fsverdict0_0", "/dev/mapper/fsverdict0_1"]);
        assert_eq!((mirrored.len(), volume.len()), (1, 1));
        let all = top(&layers("luks+raid1+lvm"), self::devices(2), &names);
        assert_eq!((&all, top(&[], self::devices(2), &names).len()), (volume, 2));
        let names = Names::of_run(&Token::parse("0123456789abcdef").unwrap());
        let of_run = top(&layers("luks"), self::devices(1), &names);
        assert_eq!(of_run, ["/dev/mapper/fsverdict_0123456789abcdef_0_0"]);
    }

    #[test]
    fn what_the_tools_say_is_told_in_a_line() {
        let said = "  volume linear    1  0  496.00m\n  volume linear    1  0  496.00m\n\n  x\n";
        assert_eq!(told(said), "volume linear 1 0 496.00m; x");
    }

    #[test]
    fn settings_are_on_the_command_lines() {
        let luks = typed("luks:cipher=aes-cbc-essiv:sha256,sector_size=4k,workqueues=no", 1);
        for words in ["--cipher=aes-cbc-essiv:sha256", "--sector-size=4096", "no_write_workqueue"] {
            assert!(luks.contains(words), "{words}: {luks}");
        }
        assert!(typed("raid5:chunk=64k", 3).contains("--chunk=64 "), "in KiB");
        assert!(typed("lvm-striped:stripe=16k", 2).contains("--stripes 2 --stripesize=16k "));
        assert!(typed("lvm-thin:chunk=128k,zero=no", 1).contains("--chunksize=128k --zero=n "));
        let kept = typed("lvm-snapshot:chunk=64k", 1);
        let of_volume = "--extents 100%FREE --name kept --chunksize=64k fsverdict0_0/volume";
        assert!(kept.contains(" --extents 45%VG ") && kept.ends_with(of_volume), "{kept}");
        assert!(typed("raid1", 2).contains("--assume-clean"), "in line from the start");
        let lost = typed("raid5:state=degraded", 3);
        assert!(lost.ends_with("\nmdadm /dev/md_fsverdict0 --fail /dev/vd2"), "{lost}");
        let resync = typed("raid1:state=resync,speed=4M", 2);
        assert!(!resync.contains("--assume-clean") && !resync.contains("--force"), "{resync}");
        assert!(typed("raid5:state=resync", 3).contains(" --force "), "no rebuild of a spare");
        let limits =
            ["max", "min"].map(|it| format!("echo 4096 >/proc/sys/dev/raid/speed_limit_{it}"));
        let all = limits.iter().all(|limit| resync.contains(limit));
        assert!(all && resync.find("echo") < resync.find("mdadm"), "{resync}");
        let check = typed("raid1:state=check", 2);
        assert!(check.contains("echo check >/sys/block/md_fsverdict0/md/sync_action"), "{check}");
        let delayed = typed("delay:flush=8ms,write=1s", 1);
        let table =
            "\"0 $(blockdev --getsz /dev/vd0) delay /dev/vd0 0 0 /dev/vd0 0 1000 /dev/vd0 0 8\"";
        assert!(delayed.contains(table), "{delayed}");
        let vdo = typed("vdo:compression=no,slab=32M", 1);
        let table = "\"0 $(($5 * 8)) vdo V4 /dev/vd0 $(($(blockdev --getsize64 /dev/vd0) / 4096)) \
                     4096 32768 16380 compression off deduplication on\"";
        assert!(vdo.contains(table) && vdo.contains("--slab-bits=13 /dev/vd0)"), "{vdo}");
        assert!(typed("vdo", 1).contains("--slab-bits=19 "));
        assert!(typed("integrity:mode=bitmap", 1).contains("--integrity-bitmap-mode"));
    }

    #[test]
    fn disks_in_memory_are_as_large_as_the_beds_and_made_before_the_trial() {
        let said = "null_blk:cache=16M,latency=50us,queues=2";
        let made = typed(said, 2);
        let of = |number| format!("cat /sys/class/block/vd{number}/size");
        for words in [
            "mount -t configfs configfs /sys/kernel/config",
            "mkdir nullb1",
            &of(0),
            &of(1),
            "echo 1 >memory_backed && echo 2 >submit_queues && echo 2 >irqmode && ",
            "echo 50000 >completion_nsec && echo 16 >cache_size && echo 1 >power",
        ] {
            assert!(made.contains(words), "{words}: {made}");
        }
        assert!(!made.contains("zone"), "{made}");
        let zones = "zoned:conventional=4,max_active=9,max_open=8,zone_capacity=24M,zone_size=32M";
        let made = typed(zones, 1);
        let all = "echo 1 >zoned && echo 32 >zone_size && echo 24 >zone_capacity && echo 4 \
                   >zone_nr_conv && echo 8 >zone_max_open && echo 9 >zone_max_active";
        assert!(made.contains(all), "{made}");
        assert!(typed("zoned", 1).contains("echo 16 >zone_size && echo 8 >zone_nr_conv"));
        let disks = in_place(&layers("zoned"), &devices(1)).unwrap();
        assert_eq!(disks.devices, ["/dev/nullb0"]);
        assert!(in_place(&layers("luks"), &devices(1)).is_none() && !takes_place(&[]));
        let upon = top(&layers("null_blk+raid1"), devices(2), &Names::alone());
        assert_eq!(upon, ["/dev/md_fsverdict1"]);
        assert!(takes_guest(&layers("luks+bcache")) && !takes_guest(&layers("luks+cache")));
        assert!(is_zoned(&layers("zoned")) && !is_zoned(&layers("null_blk")));
        assert!(check_processors(&layers(said)[0], 2).is_ok());
        assert!(check_processors(&layers(said)[0], 1).is_err());
        assert_eq!(module_parameters("null_blk"), c"nr_devices=0");
        assert_eq!(module_parameters("xfs"), c"");
    }

    #[test]
    fn the_last_device_caches_the_others() {
        let cache = typed("cache:mode=writeback,chunk=96k", 3);
        let volume = "--activate y --zero n --wipesignatures n --name volume fsverdict0_0 /dev/vd0 \
                      /dev/vd1\n";
        let fast = "--activate n --zero n --wipesignatures n --name fast fsverdict0_0 /dev/vd2\n";
        assert!(cache.contains(volume) && cache.contains(fast), "{cache}");
        let convert = "--yes --type cache --cachevol fast --cachemode=writeback --chunksize=96k \
                       fsverdict0_0/volume";
        assert!(cache.ends_with(convert), "{cache}");
        let write = typed("writecache:block_size=512,high_watermark=60", 2);
        let convert = "--type writecache --cachevol fast '--cachesettings=block_size=512 \
                       high_watermark=60' fsverdict0_0/volume";
        assert!(write.ends_with(convert), "{write}");
        let bcache = typed("bcache:mode=writeback,sequential_cutoff=1M,bucket=128k", 3);
        let made =
            "make-bcache --wipe-bcache --bucket=128k --cache /dev/vd2 --bdev /dev/vd0 /dev/vd1";
        let registered = ["vd2", "vd0", "vd1"].map(|it| bcache.find(&format!("echo /dev/{it} >")));
        assert!(bcache.starts_with(made) && registered.is_sorted(), "{bcache}");
        for words in ["writeback >/sys/block/bcache1/bcache/cache_mode", "1048576 >/sys/block/bc"] {
            assert!(bcache.contains(words), "{words}: {bcache}");
        }
        let top = |text, count| top(&layers(text), devices(count), &Names::alone());
        assert_eq!(top("bcache", 3), ["/dev/bcache0", "/dev/bcache1"]);
        let sized = |text: &str, bytes| check_size(&layers(text), Bytes(bytes));
        assert!(sized("bcache", 512 << 20).is_ok() && sized("cache", 1 << 20).is_ok());
        let small = sized("bcache:bucket=1M", 512 << 20).unwrap_err();
        assert!(small.contains("512M are 512 of 1M: give it smaller ones"), "{small}");
        let vdo = sized("vdo", 4 << 30).unwrap_err();
        assert!(vdo.contains("take 4830 MiB, and a disk has 4G: give it smaller"), "{vdo}");
        assert!(sized("vdo", 5 << 30).is_ok() && sized("vdo:slab=32M", 3 << 30).is_ok());
        assert_eq!(top("cache", 2), ["/dev/mapper/fsverdict0_0-volume"]);
        let fast = |text: &str| [0, 1].map(|number| is_fast(&layers(text), number, 2));
        assert_eq!(fast("luks+cache"), [false, true]);
        assert_eq!(fast("luks+raid1"), [false, false]);
    }

    #[test]
    fn a_stack_that_can_not_be_is_refused_before_anything_is_made() {
        for (text, count, says) in [
            ("lukz", 1, "no layer is called \"lukz\"; did you mean luks"),
            ("luks:sektor=1", 1, "luks has no setting \"sektor\""),
            ("raid5:chunk=3k", 3, "raid5:chunk=3k: chunk is a power of two"),
            ("raid5:chunk=512", 3, "chunk is a power of two from 4k on"),
            ("lvm-striped:stripe=2k", 2, "stripe is a power of two from 4k to 4M"),
            ("lvm-striped:stripe=8M", 2, "stripe is a power of two from 4k to 4M"),
            ("lvm-thin:chunk=32k", 1, "chunk is a power of two from 64k to 1G"),
            ("luks:sector_size=8k", 1, "sector_size is a power of two from 512 to 4k"),
            ("integrity:sector_size=256", 1, "sector_size is a power of two from 512 to 4k"),
            ("lvm-snapshot:chunk=1M", 1, "chunk is a power of two from 4k to 512k"),
            ("integrity:mode=bitmp", 1, "mode is one of journal, bitmap, direct"),
            ("luks:workqueues=off", 1, "workqueues is yes or no"),
            ("raid1:state=scrub", 2, "state is one of degraded, resync, check"),
            ("raid0:state=degraded", 2, "raid0 has no setting \"state\""),
            ("luks:cipher=--x", 1, "cipher is a word of its tool's"),
            ("raid1", 1, "raid1 is made of 2 devices or more, and gets 1: --devices 2"),
            ("lvm+raid1", 2, "raid1 is made of 2 devices or more, and gets 1"),
            ("raid6", 3, "--devices 4"),
            ("cache", 1, "cache is made of 2 devices or more, and gets 1: --devices 2"),
            ("raid1+writecache", 2, "writecache is made of 2 devices or more, and gets 1"),
            ("bcache", 1, "bcache is made of 2 devices or more"),
            ("bcache+bcache", 3, "bcache is a second cache: only one can use the last disk"),
            ("bcache:mode=back", 2, "mode is one of writethrough, writeback, writearound, none"),
            ("cache:mode=fast", 2, "mode is one of writethrough, writeback, passthrough"),
            ("cache:chunk=16k", 2, "chunk is a multiple of 32k up to 1G"),
            ("writecache:block_size=4k", 2, "block_size is one of 512, 4096"),
            ("writecache:high_watermark=101", 2, "high_watermark is a number from 0 to 100"),
            ("null_blk:queues=0", 1, "queues is a whole number from 1 on"),
            ("null_blk:latency=50", 1, "latency is a time, as in 50us"),
            ("null_blk:cache=100k", 1, "cache is a number of whole MiB"),
            ("null_blk:zone_size=64M", 1, "null_blk has no setting \"zone_size\""),
            ("zoned:zone_size=1M", 1, "zone_size is a power of two from 4M on"),
            ("zoned:zone_capacity=17M", 1, "zone_capacity is at most zone_size, 16M"),
            ("zoned:max_open=some", 1, "max_open is a whole number"),
            ("delay", 1, "delay: say what takes how much longer"),
            ("delay:write=0ms", 1, "say what takes how much longer"),
            ("delay:write=8", 1, "write is a time of whole milliseconds up to 60s"),
            ("delay:write=2m", 1, "write is a time of whole milliseconds up to 60s"),
            ("vdo:slab=16M", 1, "slab is a power of two from 32M to 32G"),
            ("vdo:compression=off", 1, "compression is yes or no"),
            ("luks+null_blk", 1, "null_blk takes the place of the bed's disks: write it first"),
            ("zoned+luks", 1, "luks can't be made on zoned disks"),
        ] {
            let error = check(&layers(text), count).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        check(&layers("luks+raid10+luks+lvm-thin"), 4).unwrap();
    }
}
