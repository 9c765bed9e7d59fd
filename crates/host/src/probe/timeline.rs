//! Readings over a phase's time.

use std::io::{self, Write};
use std::time::Duration;

use fsverdict_core::model::{
    CpuTotals, DeviceTotals, NetworkTotals, PressureTotals, Sample, SysstatColumn, Unit,
    blocked_column,
};

use super::{DeviceReading, MemoryReading, Reading, Tracked};

/// Time between readings, to begin with.
const PERIOD: Duration = Duration::from_millis(50);

/// Room is made for a minute at least and an hour at most, 20 MB that are touched only when used.
const CAPACITY_MIN: usize = 1_200;
const CAPACITY_MAX: usize = 72_000;

/// Readings while they are being taken. Its memory is all allocated beforehand: when it is full,
/// every other reading goes, and the next ones come half as often.
#[derive(Debug)]
pub(super) struct Series {
    readings: Vec<Reading>,
    capacity: usize,
    period: Duration,
    peak: MemoryReading,
    latest: Option<Reading>,
}

impl Series {
    /// Room for a phase of this time.
    pub fn for_time(time: Duration) -> Self {
        let expected = time.as_nanos() / PERIOD.as_nanos();
        let capacity = usize::try_from(expected).unwrap_or(CAPACITY_MAX);
        Self::with_capacity(capacity.clamp(CAPACITY_MIN, CAPACITY_MAX))
    }

    /// Room for `capacity` readings, made even so that halving keeps them equally far apart, and
    /// for the last one.
    fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.next_multiple_of(2);
        let readings = Vec::with_capacity(capacity + 1);
        let peak = MemoryReading::default();
        Series { readings, capacity, period: PERIOD, peak, latest: None }
    }

    /// The same at other times, so that a test can wait for none.
    #[cfg(test)]
    pub fn every(self, period: Duration) -> Self {
        Series { period, ..self }
    }

    /// Time between readings.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The largest of every reading there was, of those that went too.
    pub fn peak(&self) -> MemoryReading {
        self.peak
    }

    pub fn push(&mut self, reading: Reading) {
        if self.readings.len() == self.capacity {
            let mut index = 0;
            self.readings.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.period *= 2;
        }
        self.peak = self.peak.max(reading.memory);
        let reading = self.integrated(reading);
        self.latest = Some(reading);
        self.readings.push(reading);
    }

    /// The reading with the processes that waited so far added up, as if between two readings they
    /// had been the mean of both.
    pub fn integrated(&self, reading: Reading) -> Reading {
        let Some(before) = self.latest else { return reading };
        let passed_ns = reading.at_ns.saturating_sub(before.at_ns);
        let twice = before.processes_blocked.saturating_add(reading.processes_blocked);
        let blocked_ns = before.blocked_ns.saturating_add(twice.saturating_mul(passed_ns) / 2);
        Reading { blocked_ns, ..reading }
    }
}

/// The readings of one phase: counters since its start, gauges as they were.
#[derive(Clone, Debug)]
pub struct Timeline {
    readings: Vec<Reading>,
    tracked: Option<Tracked>,
}

impl Timeline {
    pub(super) fn new(
        series: Series,
        first: &Reading,
        last: Reading,
        tracked: Option<Tracked>,
    ) -> Self {
        let mut readings = series.readings;
        // A phase may be over before the sampler has begun.
        if readings.is_empty() {
            readings.push(*first);
        }
        readings.push(last);
        for reading in &mut readings {
            *reading = reading.since(first);
        }
        Timeline { readings, tracked }
    }

    /// The readings, the first at nought and the last at the phase's end.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Writes one row a reading; cells are empty where the kernel doesn't tell. `header`: writes
    /// the columns' names first.
    pub fn write_csv(&self, out: &mut impl Write, phase: &str, header: bool) -> io::Result<()> {
        if header {
            writeln!(out, "{}", COLUMNS.join(","))?;
        }
        for reading in &self.readings {
            write!(out, "{phase},{}", reading.at_ns)?;
            write_cells(out, &cpu_cells(&reading.cpu).map(Some))?;
            write_cells(out, &device_cells(reading.device.as_ref(), self.tracked))?;
            let MemoryReading { dirty_bytes, writeback_bytes } = reading.memory;
            write_cells(out, &[Some(dirty_bytes), Some(writeback_bytes)])?;
            write_cells(out, &pressure_cells(reading.pressure.as_ref()))?;
            write_cells(out, &[Some(reading.processes_started)])?;
            let pages = reading.page_cache;
            write_cells(out, &[pages.map(|it| it.looked_up), pages.map(|it| it.missed)])?;
            write_cells(out, &[Some(reading.processes_blocked)])?;
            write_cells(out, &network_cells(reading.network.as_ref()))?;
            writeln!(out)?;
        }
        Ok(())
    }
}

/// A row of the seconds covers this, but for the last, which covers half of it to one and a half.
const SECOND_NS: u64 = 1_000_000_000;

impl Timeline {
    /// Writes a row for each second, with the columns of iostat and sar; cells are empty where
    /// there is nothing to take the mean of or the kernel doesn't tell. `header` as above.
    pub fn write_seconds(&self, out: &mut impl Write, phase: &str, header: bool) -> io::Result<()> {
        if header {
            let columns = second_columns(&Reading::default(), 1.0, None);
            let names = columns.iter().map(|column| column.name);
            let names: Vec<&str> =
                ["phase", "start_ns", "end_ns"].into_iter().chain(names).collect();
            writeln!(out, "{}", names.join(","))?;
        }
        for (from, to) in self.seconds() {
            write!(out, "{phase},{},{}", from.at_ns, to.at_ns)?;
            for SysstatColumn { value, unit, .. } in self.columns_between(from, to) {
                match (value, unit) {
                    (Some(value), Unit::Ratio) => write!(out, ",{value:.4}")?,
                    (Some(value), _) => write!(out, ",{value:.1}")?,
                    (None, _) => write!(out, ",")?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// The highest second of what shows a peak.
    pub fn peaks(&self) -> Vec<Sample> {
        let seconds = self.seconds().into_iter();
        let columns: Vec<_> = seconds.map(|(from, to)| self.columns_between(from, to)).collect();
        SysstatColumn::peaks(&columns)
    }

    fn columns_between(&self, from: &Reading, to: &Reading) -> Vec<SysstatColumn> {
        let elapsed_s = (to.at_ns - from.at_ns) as f64 / SECOND_NS as f64;
        second_columns(&to.since(from), elapsed_s, self.tracked)
    }

    /// The readings at which seconds begin and end: for each full second the first after it, so
    /// that no reading is made up, and the last.
    fn seconds(&self) -> Vec<(&Reading, &Reading)> {
        let [first, .., last] = self.readings.as_slice() else { return Vec::new() };
        let mut bounds = vec![first];
        for reading in &self.readings {
            let whole = reading.at_ns / SECOND_NS > bounds[bounds.len() - 1].at_ns / SECOND_NS;
            if whole && last.at_ns - reading.at_ns > SECOND_NS / 2 {
                bounds.push(reading);
            }
        }
        bounds.push(last);
        bounds.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }
}

/// CPU, device, page cache, network; and the names of columns whose values are unknown.
fn second_columns(
    passed: &Reading,
    elapsed_s: f64,
    tracked: Option<Tracked>,
) -> Vec<SysstatColumn> {
    let totals = passed.device.map_or(DeviceTotals::default(), |device| device.totals);
    let told = |name: &str| {
        passed.device.is_some()
            && tracked.is_some_and(|tracked| match name {
                name if name.starts_with("device_discard") => tracked.discards,
                _ => true,
            })
    };
    let device = totals.columns(elapsed_s).into_iter();
    let device = device.map(|it| SysstatColumn { value: it.value.filter(|_| told(it.name)), ..it });
    let pages = passed.page_cache.unwrap_or_default().columns(elapsed_s).into_iter();
    let watched = passed.page_cache.is_some();
    let pages = pages.map(|it| SysstatColumn { value: it.value.filter(|_| watched), ..it });
    let network = passed.network.unwrap_or_default().columns(elapsed_s).into_iter();
    let watched = passed.network.is_some();
    let network = network.map(|it| SysstatColumn { value: it.value.filter(|_| watched), ..it });
    let cpu = passed.cpu.columns().into_iter();
    let blocked = blocked_column(passed.blocked_ns, elapsed_s);
    cpu.chain(device).chain(pages).chain([blocked]).chain(network).collect()
}

/// Columns in the order of the cells below.
const COLUMNS: [&str; 46] = [
    "phase",
    "time_ns",
    "cpu_user_ns",
    "cpu_system_ns",
    "cpu_iowait_ns",
    "cpu_steal_ns",
    "cpu_idle_ns",
    "cpu_nice_ns",
    "cpu_irq_ns",
    "cpu_softirq_ns",
    "cpu_guest_ns",
    "cpu_guest_nice_ns",
    "device_reads",
    "device_reads_merged",
    "device_read_bytes",
    "device_read_ns",
    "device_writes",
    "device_writes_merged",
    "device_write_bytes",
    "device_write_ns",
    "device_discards",
    "device_discards_merged",
    "device_discard_bytes",
    "device_discard_ns",
    "device_flushes",
    "device_flush_ns",
    "device_busy_ns",
    "device_queue_ns",
    "in_flight",
    "dirty_bytes",
    "writeback_bytes",
    "pressure_cpu_some_ns",
    "pressure_io_some_ns",
    "pressure_io_full_ns",
    "pressure_memory_some_ns",
    "pressure_memory_full_ns",
    "processes_started",
    "page_cache_looked_up",
    "page_cache_missed",
    "processes_blocked",
    "network_received_bytes",
    "network_received_packets",
    "network_received_dropped",
    "network_sent_bytes",
    "network_sent_packets",
    "network_sent_dropped",
];

fn cpu_cells(cpu: &CpuTotals) -> [u64; 10] {
    [
        cpu.user_ns,
        cpu.system_ns,
        cpu.iowait_ns,
        cpu.steal_ns,
        cpu.idle_ns,
        cpu.nice_ns,
        cpu.irq_ns,
        cpu.softirq_ns,
        cpu.guest_ns,
        cpu.guest_nice_ns,
    ]
}

fn device_cells(device: Option<&DeviceReading>, tracked: Option<Tracked>) -> [Option<u64>; 17] {
    let (Some(DeviceReading { totals, in_flight }), Some(tracked)) = (device, tracked) else {
        return [None; 17];
    };
    [
        Some(totals.reads),
        Some(totals.reads_merged),
        Some(totals.read_bytes),
        Some(totals.read_ns),
        Some(totals.writes),
        Some(totals.writes_merged),
        Some(totals.write_bytes),
        Some(totals.write_ns),
        tracked.discards.then_some(totals.discards),
        tracked.discards.then_some(totals.discards_merged),
        tracked.discards.then_some(totals.discard_bytes),
        tracked.discards.then_some(totals.discard_ns),
        totals.flushes,
        totals.flushes.map(|_| totals.flush_ns),
        Some(totals.busy_ns),
        Some(totals.queue_ns),
        Some(*in_flight),
    ]
}

fn pressure_cells(pressure: Option<&PressureTotals>) -> [Option<u64>; 5] {
    let Some(pressure) = pressure else { return [None; 5] };
    [
        pressure.cpu_some_ns,
        pressure.io_some_ns,
        pressure.io_full_ns,
        pressure.memory_some_ns,
        pressure.memory_full_ns,
    ]
    .map(Some)
}

fn network_cells(network: Option<&NetworkTotals>) -> [Option<u64>; 6] {
    let Some(network) = network else { return [None; 6] };
    [
        network.received_bytes,
        network.received_packets,
        network.received_dropped,
        network.sent_bytes,
        network.sent_packets,
        network.sent_dropped,
    ]
    .map(Some)
}

/// Writes the cells, each with the comma before it.
fn write_cells(out: &mut impl Write, cells: &[Option<u64>]) -> io::Result<()> {
    cells.iter().try_for_each(|cell| match cell {
        Some(value) => write!(out, ",{value}"),
        None => write!(out, ","),
    })
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::DeviceTotals;

    use super::*;

    fn at(at_ns: u64, dirty_bytes: u64) -> Reading {
        let memory = MemoryReading { dirty_bytes, writeback_bytes: 0 };
        Reading { at_ns, memory, ..Reading::default() }
    }

    fn csv(timeline: &Timeline, header: bool) -> String {
        let mut out = Vec::new();
        timeline.write_csv(&mut out, "create", header).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_full_series_becomes_coarser_and_keeps_its_peak_and_memory() {
        let mut series = Series::with_capacity(4);
        let room = series.readings.capacity();
        for index in 0..4 {
            series.push(at(index, if index == 3 { 999 } else { 0 }));
        }
        assert_eq!(series.period(), PERIOD);
        series.push(at(4, 0));
        assert_eq!(series.period(), 2 * PERIOD);
        let times: Vec<u64> = series.readings.iter().map(|reading| reading.at_ns).collect();
        assert_eq!(times, [0, 2, 4]);
        assert_eq!(series.peak().dirty_bytes, 999);
        series.push(at(6, 0));
        series.push(at(8, 0));
        assert_eq!(series.period(), 4 * PERIOD);
        assert_eq!(series.readings.capacity(), room);
    }

    #[test]
    fn room_is_bounded() {
        assert_eq!(Series::for_time(Duration::ZERO).capacity, CAPACITY_MIN);
        assert_eq!(Series::for_time(Duration::from_secs(100)).capacity, 2000);
        assert_eq!(Series::for_time(Duration::MAX).capacity, CAPACITY_MAX);
    }

    #[test]
    fn rows_have_counters_since_the_start_and_gauges_as_they_are() {
        let device = |writes, in_flight| {
            let totals = DeviceTotals { writes, ..DeviceTotals::default() };
            Some(DeviceReading { totals, in_flight })
        };
        let first = Reading { device: device(100, 5), ..at(0, 4096) };
        let last = Reading { device: device(130, 2), ..at(60, 8192) };
        let tracked = Some(Tracked { discards: true, flushes: false });
        let text = csv(&Timeline::new(Series::with_capacity(2), &first, last, tracked), true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], COLUMNS.join(","));
        assert_eq!(
            lines[1..],
            [
                "create,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,,,0,0,5,4096,0,,,,,,0",
                "create,60,0,0,0,0,0,0,0,0,0,0,0,0,0,0,30,0,0,0,0,0,0,0,,,0,0,2,8192,0,,,,,,0",
            ]
            .map(|row| format!("{row},,,0,,,,,,"))
        );
    }

    /// Readings every 50 ms: twenty writes of 4 KiB and one flush each, half of the time busy.
    fn steady(readings: u64) -> Timeline {
        let at = |index: u64| {
            let totals = DeviceTotals {
                devices: 1,
                writes: 20 * index,
                write_bytes: 20 * 4096 * index,
                write_ns: 20 * 300_000 * index,
                busy_ns: 25_000_000 * index,
                ..DeviceTotals::default()
            };
            let cpu = CpuTotals {
                user_ns: 10_000_000 * index,
                idle_ns: 90_000_000 * index,
                ..CpuTotals::default()
            };
            let device = Some(DeviceReading { totals, in_flight: 0 });
            Reading { cpu, device, ..at(50_000_000 * index, 0) }
        };
        let mut series = Series::for_time(Duration::ZERO);
        (0..readings - 1).for_each(|index| series.push(at(index)));
        let tracked = Some(Tracked { discards: true, flushes: false });
        Timeline::new(series, &at(0), at(readings - 1), tracked)
    }

    /// Rows of the seconds, each as its cells by name.
    fn seconds(timeline: &Timeline) -> Vec<std::collections::HashMap<String, String>> {
        let mut out = Vec::new();
        timeline.write_seconds(&mut out, "read", true).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').map(String::from));
        let names: Vec<String> = lines.next().unwrap().collect();
        lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
    }

    #[test]
    fn seconds_have_the_columns_of_iostat_and_sar() {
        let rows = seconds(&steady(71));
        assert_eq!(rows.len(), 3, "3.5 s: the last has one and a half");
        for row in &rows {
            let columns = [
                ("phase", "read"),
                ("device_writes_per_s", "400.0"),
                ("device_write_bytes_per_s", "1638400.0"),
                ("device_write_await_ns", "300000.0"),
                ("device_utilisation", "0.5000"),
                ("device_read_await_ns", ""),
                ("device_reads_per_s", "0.0"),
                ("device_flushes_per_s", ""),
                ("cpu_user_share", "0.1000"),
                ("cpu_idle_share", "0.9000"),
            ];
            for (name, cell) in columns {
                assert_eq!(row[name], cell, "{name}");
            }
        }
        assert_eq!([&rows[2]["start_ns"], &rows[2]["end_ns"]], ["2000000000", "3500000000"]);
        assert_eq!(seconds(&steady(72)).len(), 4, "the last has 0.55 s");
        assert_eq!(seconds(&steady(3)).len(), 1, "less than a second is one row");
    }

    #[test]
    fn those_who_wait_are_added_up_over_readings_that_went_too() {
        let waiting = |at_ns, processes_blocked| Reading { processes_blocked, ..at(at_ns, 0) };
        let mut series = Series::with_capacity(2);
        for (index, blocked) in [0, 4, 4, 0, 0, 2].into_iter().enumerate() {
            series.push(waiting(index as u64 * 10, blocked));
        }
        let last = series.integrated(waiting(60, 0));
        assert_eq!(last.blocked_ns, 20 + 40 + 20 + 10 + 10);
        let timeline = Timeline::new(series, &waiting(0, 0), last, None);
        assert_eq!(timeline.readings().last().unwrap().blocked_ns, 100);
    }

    #[test]
    fn the_highest_second_is_the_peak() {
        let mut series = Series::for_time(Duration::ZERO);
        let reading = |index: u64| {
            // A burst in the second second.
            let received_bytes = 1000 * index + 1_000_000 * index.saturating_sub(20).min(20);
            let network = Some(NetworkTotals { received_bytes, ..NetworkTotals::default() });
            Reading { network, ..at(50_000_000 * index, 0) }
        };
        (0..60).for_each(|index| series.push(reading(index)));
        let peaks = Timeline::new(series, &reading(0), reading(60), None).peaks();
        let expected = Sample::higher(
            "network_received_bits_per_s_peak",
            8.0 * (20.0 * 1000.0 + 20.0 * 1e6),
            Unit::BitsPerSecond,
        );
        assert!(peaks.contains(&expected), "{peaks:?}");
    }

    #[test]
    fn a_second_without_a_device_has_empty_cells_for_it() {
        let first = at(0, 0);
        let row = &seconds(&Timeline::new(Series::for_time(PERIOD), &first, at(9, 0), None))[0];
        assert_eq!((row["device_reads_per_s"].as_str(), row["cpu_idle_share"].as_str()), ("", ""));
    }

    #[test]
    fn every_row_has_every_column() {
        let pressure = Some(PressureTotals::default());
        let first = Reading { pressure, ..at(0, 0) };
        let last = Reading { pressure, ..at(9, 0) };
        let text = csv(&Timeline::new(Series::with_capacity(2), &first, last, None), false);
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.split(',').count() == COLUMNS.len()), "{text}");
        assert!(text.ends_with(",0,0,0,0,0,0,0,0,,,0,,,,,,\n"), "{text}");
    }
}
