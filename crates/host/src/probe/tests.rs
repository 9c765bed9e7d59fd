//! The probe as a whole: on a faked machine, and on this one.

use fsverdict_core::model::HeatTotals;

use super::fake::spin;
use super::*;

const STAT: &str = "cpu  100 0 10 1000 5 0 0 0 0 0\nprocesses 40\n";
const STAT_LATER: &str = "cpu  130 0 20 1050 6 0 0 0 0 0\nprocesses 43\n";
const DEVICE: &str = "sys/dev/block/7:3/stat";

fn real() -> Probe {
    Probe::open(Path::new("/"), &[], Duration::from_secs(60)).unwrap()
}

#[test]
fn totals_are_the_last_reading_less_the_first() {
    let tree = fake::tree(&[
        ("proc/stat", STAT),
        ("proc/meminfo", "Dirty: 8 kB\nWriteback: 0 kB\n"),
        (DEVICE, "1 0 8 0 1 0 8 0 0 5 0 0 0 0 0 0 0\n"),
        ("sys/dev/block/7:3/mq/0/cpu_list", "0\n"),
    ]);
    let devices = fake::devices(&[[7, 3]]);
    let probe = Probe::open(tree.path(), &devices, Duration::from_secs(1)).unwrap();
    let running = probe.start().unwrap();
    fake::write(&tree, "proc/stat", STAT_LATER);
    fake::write(&tree, "proc/meminfo", "Dirty: 4 kB\nWriteback: 2 kB\n");
    fake::write(&tree, DEVICE, "1 0 8 0 11 0 808 0 2 45 0 0 0 0 0 3 0\n");
    let (totals, timeline) = running.stop().unwrap();

    assert_eq!(totals.cpu.busy_ns(), 40 * (1_000_000_000 / sys::ticks_per_second()));
    assert_eq!(totals.processes_started, 3);
    assert_eq!((totals.pressure, totals.network, totals.heat), (None, None, None));
    let device = totals.device.unwrap();
    assert_eq!((device.reads, device.writes, device.write_bytes), (0, 10, 800 * 512));
    assert_eq!((device.flushes, device.busy_ns), (Some(3), 40_000_000));
    let memory = MemoryTotals {
        dirty_bytes_start: 8192,
        dirty_bytes_end: 4096,
        dirty_bytes_max: 8192,
        writeback_bytes_max: 2048,
    };
    assert_eq!(totals.memory, memory);
    assert_eq!(timeline.readings().last().unwrap().device.unwrap().totals, device);
}

#[test]
fn what_the_disk_beneath_moved_besides_is_foreign_and_it_may_be_hot() {
    const DISK: &str = "sys/dev/block/8:0/stat";
    let tree = fake::tree(&[
        ("proc/stat", STAT),
        ("proc/meminfo", "Dirty: 8 kB\nWriteback: 0 kB\n"),
        (DEVICE, "1 0 8 0 1 0 8 0 0 5 0\n"),
        (DISK, "90 0 800 0 90 0 800 0 0 5 0\n"),
        ("sys/dev/block/8:0/device/hwmon2/temp1_alarm", "0\n"),
    ]);
    let probe = Probe::open(tree.path(), &fake::devices(&[[7, 3]]), Duration::from_secs(1));
    let disks = fake::devices(&[[8, 0]]);
    let running = probe.unwrap().with_beneath(tree.path(), &disks).unwrap().start().unwrap();
    fake::write(&tree, DEVICE, "1 0 108 0 11 0 808 0 0 45 0\n");
    fake::write(&tree, DISK, "95 0 890 0 99 0 1700 0 0 50 0\n");
    fake::write(&tree, "sys/dev/block/8:0/device/hwmon2/temp1_alarm", "1\n");
    let totals = running.stop().unwrap().0;
    let foreign = ForeignTotals { read_bytes: 0, write_bytes: 100 * 512 };
    assert_eq!(totals.foreign, Some(foreign));
    let heat = HeatTotals { drive_alarm: Some(true), ..HeatTotals::default() };
    assert_eq!(totals.heat, Some(heat));
}

#[test]
fn a_network_is_read_where_it_is_asked_for() {
    let tree = fake::tree(&[
        ("proc/stat", STAT),
        ("proc/meminfo", "Dirty: 8 kB\nWriteback: 0 kB\n"),
        ("proc/net/dev", "eth0: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n"),
    ]);
    let open = || Probe::open(tree.path(), &[], Duration::from_secs(1)).unwrap();
    let of = |name: &str| Interface { name: name.into(), rate_bits_per_s: None };
    let running = open().with_network(tree.path(), Some(&of("eth0"))).unwrap().start().unwrap();
    fake::write(&tree, "proc/net/dev", "eth0: 110 5 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n");
    let network = running.stop().unwrap().0.network.unwrap();
    assert_eq!((network.received_bytes, network.received_packets), (100, 4));
    assert_eq!((network.sent_bytes, network.sent_packets), (0, 0));
    assert!(open().with_network(tree.path(), Some(&of("eth1"))).is_err());
}

#[test]
fn the_real_machine_shows_a_thread_that_spins() {
    let spun = || {
        let running = real().with_cpu_clocks(Path::new("/"), Path::new("/proc")).start().unwrap();
        let thread = std::thread::Builder::new().spawn(|| spin(200_000_000));
        thread.unwrap().join().unwrap();
        running.stop().unwrap()
    };
    // Ticks are drawn, and now and then none falls on the one that spins.
    let (mut totals, mut timeline) = spun();
    for _ in 1..5 {
        if totals.cpu.busy_ns() == 0 {
            (totals, timeline) = spun();
        }
    }
    assert!(totals.cpu.busy_ns() > 0, "{:?}", totals.cpu);
    if let Some(time) = totals.cpu_time {
        assert!(time.work_ns >= 200_000_000, "{time:?}");
    }
    assert_eq!(totals.device, None);
    assert!(totals.processes_started >= 1);
    let readings = timeline.readings();
    let lasted_ns = readings.last().unwrap().at_ns;
    assert!(lasted_ns >= 200_000_000);
    assert!(readings.is_sorted_by(|a, b| a.at_ns < b.at_ns));
    let busy = |reading: &Reading| reading.cpu.busy_ns();
    assert!(readings.is_sorted_by_key(busy));
}

#[test]
fn stopping_does_not_wait_for_the_next_reading() {
    let hour = Duration::from_secs(3600);
    let mut probe = real();
    probe.series = probe.series.every(hour);
    let begin = Instant::now();
    probe.start().unwrap().stop().unwrap();
    assert!(begin.elapsed() < hour / 2);
}

#[test]
fn a_reading_is_cheap() {
    let mut readers = Readers::open(Path::new("/"), &some_device()).unwrap();
    let origin = Instant::now();
    let ours_ns = cost_ns(|| {
        readers.read(origin).unwrap();
    });
    // The kernel makes its text anew each time: what we add to that is little.
    let kernels_ns = cost_ns(|| {
        let files = ["proc/stat", "proc/meminfo"].map(|file| Path::new("/").join(file));
        files.iter().for_each(|file| drop(std::fs::read(file).unwrap()));
    });
    println!("one reading: {ours_ns} ns, of its two largest files alone {kernels_ns} ns");
    assert!(ours_ns < 5 * kernels_ns, "{ours_ns} ns, {kernels_ns} ns");
}

/// The processor's time of one, the median of many.
fn cost_ns(mut one: impl FnMut()) -> u64 {
    let mut costs: Vec<u64> = (0..201)
        .map(|_| {
            let begin_ns = sys::thread_cpu_ns();
            one();
            sys::thread_cpu_ns() - begin_ns
        })
        .collect();
    costs.sort_unstable();
    costs[100]
}

/// The machine's first block device, if it has any.
fn some_device() -> Vec<Device> {
    let Ok(mut entries) = std::fs::read_dir("/sys/dev/block") else { return Vec::new() };
    let Some(Ok(entry)) = entries.next() else { return Vec::new() };
    let name = entry.file_name().into_string().unwrap();
    let (major, minor) = name.split_once(':').unwrap();
    fake::devices(&[[major.parse().unwrap(), minor.parse().unwrap()]])
}

#[test]
fn a_device_that_fails_meanwhile_is_told() {
    let files = [("proc/stat", STAT), ("proc/meminfo", "Dirty: 8 kB\nWriteback: 0 kB\n")];
    let tree = fake::tree(&files);
    fake::write(&tree, DEVICE, "1 0 8 0 1 0 8 0 0 5 0\n");
    let devices = fake::devices(&[[7, 3]]);
    let probe = Probe::open(tree.path(), &devices, Duration::from_secs(1)).unwrap();
    let running = probe.start().unwrap();
    fake::write(&tree, DEVICE, "");
    let error = running.stop().unwrap_err().to_string();
    assert!(error.ends_with("7:3/stat lacks the 11 fields of a device"), "{error}");
}
