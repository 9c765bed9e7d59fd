//! The columns beside those of the real iostat and sar.
//!
//! Two readers never look at the same instant. So the kernel's files are copied twice while a loop
//! device is under load, and both read the copies: sysstat in a mount namespace where they cover
//! the kernel's own. Then the two differ only by sysstat's rounding.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use fsverdict_core::model::SysstatColumn;
use serde_json::Value;

use super::*;
use crate::bed::LoopDevice;
use crate::tool;

/// sysstat prints two decimals.
const ROUNDING: f64 = 0.0051;

/// What the load shows in.
const SHOWN: [&str; 7] = [
    "device_reads_per_s",
    "device_writes_per_s",
    "device_discards_per_s",
    "device_flushes_per_s",
    "device_queue_depth_mean",
    "cpu_nice_share",
    "cpu_system_share",
];

/// Twice of what rounding may hide. sysstat prints shares in percent, ours are of one.
fn shows(column: &SysstatColumn, name: &str) -> bool {
    let unit = if name.starts_with("cpu_") { 0.01 } else { 1.0 };
    column.name == name && column.value > Some(2.0 * ROUNDING * unit)
}

/// The kernel's files at one instant: paths below the root, and texts.
struct Snapshot([(String, String); 4]);

impl Snapshot {
    fn take(device: &Device) -> Snapshot {
        let [major, minor] = device.number;
        let of_it = |file| format!("sys/dev/block/{major}:{minor}/{file}");
        let [stat, uptime] = ["proc/stat", "proc/uptime"].map(String::from);
        let mut files = [stat, uptime, of_it("stat"), of_it("mq/0/cpu_list")].map(|path| {
            let text = fs::read_to_string(Path::new("/").join(&path)).unwrap();
            (path, text)
        });
        files[0].1 = with_sums(&files[0].1);
        Snapshot(files)
    }

    fn lay(&self, tree: &tempfile::TempDir) {
        self.0.iter().for_each(|(path, text)| fake::write(tree, path, text));
    }

    /// Of each processor the ticks which sysstat corrects where they fall: user and nice without
    /// their guests', idle and iowait. The kernel rounds a guest's ticks and its processor's apart
    /// from each other, so that a difference may lose one; sysstat then counts a tick more than the
    /// kernel did (`get_per_cpu_interval`).
    fn corrected_ticks(&self) -> Vec<i64> {
        let lines = self.0[0].1.lines().filter(|line| line.starts_with("cpu"));
        lines
            .flat_map(|line| {
                let ticks: Vec<i64> =
                    line.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
                [ticks[0] - ticks[8], ticks[1] - ticks[9], ticks[3], ticks[4]]
            })
            .collect()
    }

    fn uptime_s(&self) -> f64 {
        self.0[1].1.split(' ').next().unwrap().parse().unwrap()
    }
}

/// The line of all processors made the sum of theirs, which it is but for the kernel's rounding of
/// each to ticks: sar adds up the processors, we take the kernel's line.
fn with_sums(stat: &str) -> String {
    let mut sums = [0; 10];
    for line in stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")) {
        let ticks = line.split_whitespace().skip(1).map(|word| word.parse::<u64>().unwrap());
        sums.iter_mut().zip(ticks).for_each(|(sum, ticks)| *sum += ticks);
    }
    let rest = stat.split_once('\n').unwrap().1;
    format!("cpu  {}\n{rest}", sums.map(|sum| sum.to_string()).join(" "))
}

/// A loop device under all kinds of requests, by a process with a lowered priority.
struct Load {
    device: LoopDevice,
    fio: Child,
    _folder: tempfile::TempDir,
}

impl Load {
    fn start() -> Load {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        fs::File::create(&path).unwrap().set_len(64 << 20).unwrap();
        let device = LoopDevice::attach(&path, false).unwrap();
        let job = "--name=load --rw=randrw --bs=4k-32k --size=32m --fsync=16 --ioengine=libaio \
                   --iodepth=4 --direct=1 --thread --time_based --runtime=600";
        let fio = tool::command("nice")
            .unwrap()
            .args(["-n", "5", "fio"])
            .args(job.split_whitespace())
            .arg(format!("--filename={}", device.device().path))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Load { device, fio, _folder: folder }
    }

    /// Two snapshots between which there were requests of all kinds, and ticks of all that work on
    /// them, and no ticks fell: as long after one another as that takes. What fell once may never
    /// be as high again: then it begins anew.
    fn of_all_kinds(&self) -> [Snapshot; 2] {
        let mut first = Snapshot::take(&self.device.device());
        self.discard();
        for _ in 0..60 {
            std::thread::sleep(Duration::from_secs(1));
            let last = Snapshot::take(&self.device.device());
            let (device, cpu) = ours(self, [&first, &last]);
            let columns = device.iter().chain(&cpu);
            let mut ticks = first.corrected_ticks().into_iter().zip(last.corrected_ticks());
            if ticks.any(|(before, after)| before > after) {
                first = last;
                self.discard();
            } else if SHOWN.iter().all(|name| columns.clone().any(|it| shows(it, name))) {
                return [first, last];
            }
        }
        panic!("the load shows in not all of {SHOWN:?}, or some processor's ticks fell");
    }

    /// Half of the device, which fio leaves alone.
    fn discard(&self) {
        let node = self.device.device().path;
        tool::run_words(&["blkdiscard", "--offset", "33554432", "--step", "1048576", &node])
            .unwrap();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.fio.kill();
        let _ = self.fio.wait();
    }
}

/// Starts a program of sysstat's that finds the tree's files in place of the kernel's.
fn sysstat(tree: &tempfile::TempDir, words: &[&str]) -> (Child, BufReader<ChildStdout>) {
    assert!(tool::find(words[0]).is_some(), "{} is missing: apt-get install sysstat", words[0]);
    let script = "cd \"$0\"
                  for file in proc/* sys/dev/block/*/*; do
                      mount --bind $file /$file || exit 1
                  done
                  exec \"$@\"";
    let mut command = tool::command("unshare").unwrap();
    command.args(["--mount", "sh", "-c", script]).arg(tree.path()).args(words);
    command.env("LC_ALL", "C").env("S_TIME_FORMAT", "ISO").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdout)
}

/// What `iostat -x` says of the time between the two. Where the files came too late for its second
/// reading, it has read the same twice, and is asked again.
fn iostat(tree: &tempfile::TempDir, name: &str, snapshots: [&Snapshot; 2]) -> Value {
    let mut said = [1, 4, 16].into_iter().map(|it| iostat_within(tree, name, snapshots, it));
    said.find(|it| it["util"].as_f64() > Some(0.0)).expect("iostat has read the same twice")
}

fn iostat_within(
    tree: &tempfile::TempDir,
    name: &str,
    [first, last]: [&Snapshot; 2],
    period_s: u64,
) -> Value {
    first.lay(tree);
    let period = period_s.to_string();
    let (mut child, mut stdout) =
        sysstat(tree, &["iostat", "-x", "-o", "JSON", name, &period, "2"]);
    let mut text = String::new();
    // The first report, of the time since the start, is out when the files have been read once.
    while !text.contains("disk_device") {
        assert_ne!(stdout.read_line(&mut text).unwrap(), 0, "{text}");
    }
    last.lay(tree);
    stdout.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let document: Value = serde_json::from_str(&text).unwrap();
    document["sysstat"]["hosts"][0]["statistics"][1]["disk"][0].clone()
}

/// What `sar -u ALL` says of it, in the order of its columns.
///
/// It does not show when it has read the files once. Where it had not when half of the time to the
/// second reading was over, it has read the same twice, and is asked again, for four times as long.
fn sar(tree: &tempfile::TempDir, snapshots: [&Snapshot; 2]) -> Vec<f64> {
    let mut said = [4, 16, 64].into_iter().map(|period_s| sar_within(tree, snapshots, period_s));
    said.find(|said| said[1] > 0.0).expect("sar has read the same twice")
}

fn sar_within(tree: &tempfile::TempDir, [first, last]: [&Snapshot; 2], period_s: u64) -> Vec<f64> {
    first.lay(tree);
    let (mut child, mut stdout) = sysstat(tree, &["sar", "-u", "ALL", &period_s.to_string(), "1"]);
    std::thread::sleep(Duration::from_secs(period_s / 2));
    last.lay(tree);
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let line = text.lines().find(|line| line.starts_with("Average:")).unwrap();
    line.split_whitespace().skip(2).map(|word| word.parse().unwrap()).collect()
}

/// Ours, from the same files.
fn ours(load: &Load, [first, last]: [&Snapshot; 2]) -> (Vec<SysstatColumn>, [SysstatColumn; 10]) {
    let tree = tempfile::tempdir().unwrap();
    first.lay(&tree);
    let mut device = DeviceReader::open(tree.path(), &[load.device.device()]).unwrap();
    let mut cpu = CpuReader::open(tree.path(), sys::ticks_per_second()).unwrap();
    let before = (device.read().unwrap(), cpu.read().unwrap());
    last.lay(&tree);
    let after = (device.read().unwrap(), cpu.read().unwrap());
    let elapsed_s = last.uptime_s() - first.uptime_s();
    let device = after.0.since(&before.0).totals.columns(elapsed_s);
    (device, cpu::since(&after.1.totals, &before.1.totals).columns())
}

/// Our columns of the device, iostat's names for them, and how much of ours its unit is.
const DEVICE: [(&str, &str, f64); 22] = [
    ("device_reads_per_s", "r/s", 1.0),
    ("device_read_bytes_per_s", "rkB/s", 1024.0),
    ("device_reads_merged_per_s", "rrqm/s", 1.0),
    ("device_reads_merged_share", "rrqm", 0.01),
    ("device_read_await_ns", "r_await", 1e6),
    ("device_read_request_bytes", "rareq-sz", 1024.0),
    ("device_writes_per_s", "w/s", 1.0),
    ("device_write_bytes_per_s", "wkB/s", 1024.0),
    ("device_writes_merged_per_s", "wrqm/s", 1.0),
    ("device_writes_merged_share", "wrqm", 0.01),
    ("device_write_await_ns", "w_await", 1e6),
    ("device_write_request_bytes", "wareq-sz", 1024.0),
    ("device_discards_per_s", "d/s", 1.0),
    ("device_discard_bytes_per_s", "dkB/s", 1024.0),
    ("device_discards_merged_per_s", "drqm/s", 1.0),
    ("device_discards_merged_share", "drqm", 0.01),
    ("device_discard_await_ns", "d_await", 1e6),
    ("device_discard_request_bytes", "dareq-sz", 1024.0),
    ("device_flushes_per_s", "f/s", 1.0),
    ("device_flush_await_ns", "f_await", 1e6),
    ("device_queue_depth_mean", "aqu-sz", 1.0),
    ("device_utilisation", "util", 0.01),
];

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn the_columns_are_those_of_iostat_and_sar() {
    let load = Load::start();
    let [first, last] = load.of_all_kinds();
    let (device, cpu) = ours(&load, [&first, &last]);
    let node = load.device.device().path;
    let tree = tempfile::tempdir().unwrap();
    let iostat = iostat(&tree, node.trim_start_matches("/dev/"), [&first, &last]);
    assert_eq!(device.len(), DEVICE.len());
    for (column, (name, theirs, unit)) in device.iter().zip(DEVICE) {
        assert_eq!(column.name, name);
        let said = iostat[theirs].as_f64().unwrap_or_else(|| panic!("{theirs}: {iostat:#}"));
        let ours = column.value.unwrap() / unit;
        assert!((ours - said).abs() < ROUNDING, "{name}: {ours}, iostat {said}");
    }
    for busy in ["r/s", "wkB/s", "d/s", "f/s", "r_await", "wareq-sz", "aqu-sz", "util"] {
        assert!(iostat[busy].as_f64().unwrap() > 0.0, "the load shows in no {busy}: {iostat:#}");
    }
    let sar = sar(&tree, [&first, &last]);
    assert_eq!(sar.len(), cpu.len());
    for (column, said) in cpu.iter().zip(&sar) {
        let ours = column.value.unwrap() * 100.0;
        assert!((ours - said).abs() < ROUNDING, "{}: {ours}, sar {said}: {sar:?}", column.name);
    }
    assert!(sar[1] > 0.0 && sar[2] > 0.0, "the load shows in no nice or system: {sar:?}");
}
