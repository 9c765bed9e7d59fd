//! A recording of blktrace's, read as blkparse reads it.

use crate::blocks::Image;
use crate::support::{Scene, tool};

/// A record of version 7 of a little-endian machine (include/uapi/linux/blktrace_api.h).
fn record(number: u32, at_ns: u64, sector: u64, bytes: u32, action: u32, cpu: u32) -> Vec<u8> {
    const DEV: u32 = 7 << 20 | 3;
    let mut out = [0x6561_7407, number].map(u32::to_le_bytes).concat();
    out.extend([at_ns, sector].map(u64::to_le_bytes).concat());
    out.extend([bytes, action, 41, DEV, cpu, 0].map(u32::to_le_bytes).concat());
    out
}

const QUEUE: u32 = 1 | 0x10 << 16;
const ISSUE: u32 = 7 | 0x40 << 16;
const COMPLETE: u32 = 8 | 0x80 << 16;
/// Of the file system, and read, write or flush.
const READ: u32 = 0x101 << 16;
const WRITE: u32 = 0x102 << 16;
const FLUSH: u32 = 0x104 << 16;

/// Forty reads, sixty writes of a block each and twenty flushes. One processor has them done, the
/// other one is told the end.
fn recorded() -> [Vec<u8>; 2] {
    const NOTE: u32 = 0x400 << 16;
    let [mut asked, mut ended] = [record(0, 900_000, 0, 0, NOTE, 0), Vec::new()];
    // It says the name of the process, in so many bytes.
    asked[46] = 16;
    asked.extend(b"dd\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    let mut number = 0;
    for request in 0..120_u32 {
        let (what, bytes) = match request % 6 {
            0 | 1 => (READ, 8192),
            5 => (FLUSH, 0),
            _ => (WRITE, 4096),
        };
        let at_ns = 1_000_000 + u64::from(request) * 1000;
        let sector = if bytes == 0 { 0 } else { u64::from(request) * 16 };
        // Of a flush only that the device was given it, and its end, is recorded.
        let asks = [(QUEUE, at_ns), (ISSUE, at_ns + 100)];
        for (act, at_ns) in asks.into_iter().skip(usize::from(bytes == 0)) {
            number += 1;
            asked.extend(record(number, at_ns, sector, bytes, act | what, 0));
        }
        let took_ns = 300 + u64::from(request);
        let end = record(request + 1, at_ns + 100 + took_ns, sector, bytes, COMPLETE | what, 1);
        ended.extend(end);
    }
    [asked, ended]
}

/// Count and KiB of a line of blkparse's sums.
fn sum(said: &str, of: &str) -> (u64, u64) {
    let (_, total) =
        said.split_once("CPU1 ").and_then(|(_, rest)| rest.split_once("Total ")).unwrap();
    let (_, rest) = total.split_once(of).unwrap_or_else(|| panic!("{of}: {said}"));
    let mut words = rest.trim_start_matches(':').split_whitespace();
    let mut number = |end: &str| words.next().unwrap().trim_end_matches(end).parse().unwrap();
    (number(","), number("KiB"))
}

#[test]
#[ignore = "needs blktrace and e2fsprogs: run ./test"]
fn what_blkparse_counts_is_shown_and_blocks_have_names() {
    let scene = Scene::new();
    for (processor, bytes) in recorded().iter().enumerate() {
        std::fs::write(scene.path(&format!("loop3.blktrace.{processor}")), bytes).unwrap();
    }
    let said = tool("blkparse", &["-i", &scene.typed("loop3")]).unwrap();
    // It counts a flush as a read of nothing.
    assert_eq!(sum(&said, "Read Dispatches"), (40 + 20, 320), "{said}");
    assert_eq!(sum(&said, "Writes Completed"), (60, 240), "{said}");
    let shown = scene.run("anatomy --blktrace loop3").exits(0).stdout;
    let head = "loop3, recorded by blktrace\n  What the blocks are is unknown: --disk names";
    assert!(shown.starts_with(head), "{shown}");
    let row = |name: &str| {
        let line = shown.lines().find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name}: {shown}"));
        line.trim_start()[name.len()..].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("reads: wait for the device"), "40 100 ns 100 ns 100 ns");
    assert_eq!(row("writes: wait for the device"), "60 100 ns 100 ns 100 ns");
    assert_eq!(row("writes: at the device").split(' ').next(), Some("60"));
    assert!(row("flushes: at the device").ends_with(" 419 ns"), "{shown}");
    let whole = "The whole recording: 240 KiB written (unknown 240 KiB) by 60 requests";
    assert!(shown.contains(whole), "{shown}");
    assert!(shown.contains("; 20 flushes; 320 KiB read."), "{shown}");
    // What blkparse has sorted is the same.
    tool("blkparse", &["-i", &scene.typed("loop3"), "-d", &scene.typed("sorted")]).unwrap();
    let sorted = scene.run("anatomy --blktrace sorted").exits(0).stdout;
    assert_eq!(sorted.replace("sorted,", "loop3,"), shown);
    // The first 4 KiB that are written lie in block 4.
    let image = Image::made(&scene, "64M", "mke2fs -q -F -t ext4 -b 4096");
    let named = scene.run("anatomy --blktrace loop3.blktrace.1 --disk blocks.raw").exits(0);
    let sums = named.stdout.split_once("The whole recording").unwrap().1;
    assert!(sums.contains("other metadata ") && !named.stdout.contains("--disk"), "{sums}");
    drop(image);
    let damaged = scene.typed("damaged");
    std::fs::write(&damaged, "no trace of anything, but long enough to be a record of it").unwrap();
    scene
        .run("anatomy --blktrace damaged")
        .exits(1)
        .says("at byte 0 there is no record of blktrace");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn blocks_are_not_named_by_what_is_mounted() {
    // A trial of a test beside would copy the mount, and hold it after it is gone from here.
    let scene = Scene::alone();
    std::fs::write(scene.path("loop3.blktrace.0"), &recorded()[0]).unwrap();
    let image = scene.typed("image");
    tool("mke2fs", &["-q", "-F", "-t", "ext4", &image, "64M"]).unwrap();
    let node = tool("losetup", &["--find", "--show", &image]).unwrap().trim().to_string();
    std::fs::create_dir(scene.path("mounted")).unwrap();
    tool("mount", &[&node, &scene.typed("mounted")]).unwrap();
    let line = format!("anatomy --blktrace loop3 --disk {node}");
    scene.run(&line).exits(1).says(&format!("{node} is in use"));
    tool("umount", &[&scene.typed("mounted")]).unwrap();
    scene.run(&line).exits(0);
    tool("losetup", &["--detach", &node]).unwrap();
    scene.run("anatomy --blktrace loop3 --disk nowhere").exits(1).says("nowhere: No such file");
}
