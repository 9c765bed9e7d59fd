//! What iostat and sar show, from the counters of a timed part or of a second of it.
//!
//! The formulas are those of sysstat 12: `iostat -x` (`write_ext_stat` of iostat.c,
//! `compute_ext_disk_stats` of rd_stats.c), `sar -u ALL` and `sar -n DEV` (`print_cpu_stats` and
//! `print_net_dev_stats` of pr_stats.c), upon the counters of
//! Documentation/admin-guide/iostats.rst, proc_stat(5) and proc_pid_net(5). Units are base units,
//! but for a network's, which is counted in bits; shares are of 1. Where sysstat prints 0 for the
//! mean of no requests there is none.

use super::{Better, CpuTotals, DeviceTotals, NetworkTotals, PageCacheTotals, Sample, Unit};

/// A figure by its name, which says its unit where [`Unit::Ratio`] does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SysstatColumn {
    /// `device_read_await_ns`, `cpu_user_share`.
    pub name: &'static str,
    /// The figure; `None` where there is nothing to take the mean of, or the kernel doesn't tell.
    pub value: Option<f64>,
    /// What it counts.
    pub unit: Unit,
}

/// Columns where more is better, besides rates.
const MORE: [&str; 4] =
    ["cpu_idle_share", "page_cache_hit_share", "network_received_share", "network_sent_share"];
/// Rates where less is better.
const LESS: [&str; 3] =
    ["page_cache_misses_per_s", "network_received_drops_per_s", "network_sent_drops_per_s"];

impl SysstatColumn {
    /// Columns whose highest second is a figure of its own: what comes in, and what it does to the
    /// device.
    pub(crate) const PEAKS: [&str; 5] = [
        "device_write_bytes_per_s",
        "device_queue_depth_mean",
        "network_received_bits_per_s",
        "network_received_packets_per_s",
        "network_received_share",
    ];

    /// The figure as a sample, where there is one.
    pub fn sample(self) -> Option<Sample> {
        let SysstatColumn { name, value, unit } = self;
        let more = (name.ends_with("_per_s") && !LESS.contains(&name)) || MORE.contains(&name);
        let better = if more { Better::Higher } else { Better::Lower };
        Some(Sample { metric: name.into(), value: value?, unit, better })
    }

    /// The highest of each of those columns that have a peak, as samples: `NAME_peak`.
    pub fn peaks(seconds: &[Vec<SysstatColumn>]) -> Vec<Sample> {
        let highest = |name: &&str| {
            let its = seconds.iter().flatten().filter(|column| column.name == *name);
            let told = its.filter_map(|column| Some((column.value?, *column)));
            let (_, column) = told.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
            Some(Sample { metric: format!("{name}_peak"), ..column.sample()? })
        };
        Self::PEAKS.iter().filter_map(highest).collect()
    }
}

/// The kinds of requests that are counted alike, with the names of their columns.
struct Kind {
    per_s: &'static str,
    bytes_per_s: &'static str,
    merged_per_s: &'static str,
    merged_share: &'static str,
    await_ns: &'static str,
    request_bytes: &'static str,
}

const READS: Kind = Kind {
    per_s: "device_reads_per_s",
    bytes_per_s: "device_read_bytes_per_s",
    merged_per_s: "device_reads_merged_per_s",
    merged_share: "device_reads_merged_share",
    await_ns: "device_read_await_ns",
    request_bytes: "device_read_request_bytes",
};

const WRITES: Kind = Kind {
    per_s: "device_writes_per_s",
    bytes_per_s: "device_write_bytes_per_s",
    merged_per_s: "device_writes_merged_per_s",
    merged_share: "device_writes_merged_share",
    await_ns: "device_write_await_ns",
    request_bytes: "device_write_request_bytes",
};

const DISCARDS: Kind = Kind {
    per_s: "device_discards_per_s",
    bytes_per_s: "device_discard_bytes_per_s",
    merged_per_s: "device_discards_merged_per_s",
    merged_share: "device_discards_merged_share",
    await_ns: "device_discard_await_ns",
    request_bytes: "device_discard_request_bytes",
};

/// What was done of one kind.
struct Done {
    requests: u64,
    merged: u64,
    bytes: u64,
    ns: u64,
}

impl Kind {
    /// r/s, rkB/s, rrqm/s, %rrqm, r_await and rareq-sz, and the same of the other kinds.
    fn columns(&self, done: &Done, elapsed_s: f64) -> [SysstatColumn; 6] {
        let mean = |total: u64| share(total, done.requests);
        let rate = |count: u64, unit| (per(count as f64, elapsed_s), unit);
        let (reads, unit) = rate(done.requests, Unit::PerSecond);
        let (bytes, bytes_unit) = rate(done.bytes, Unit::BytesPerSecond);
        let merged_share = share(done.merged, done.merged + done.requests);
        [
            SysstatColumn { name: self.per_s, value: reads, unit },
            SysstatColumn { name: self.bytes_per_s, value: bytes, unit: bytes_unit },
            SysstatColumn { name: self.merged_per_s, value: rate(done.merged, unit).0, unit },
            SysstatColumn { name: self.merged_share, value: merged_share, unit: Unit::Ratio },
            SysstatColumn { name: self.await_ns, value: mean(done.ns), unit: Unit::Nanoseconds },
            SysstatColumn { name: self.request_bytes, value: mean(done.bytes), unit: Unit::Bytes },
        ]
    }
}

impl DeviceTotals {
    /// The columns of `iostat -x`, of what was done in `elapsed_s` seconds.
    ///
    /// The queue's depth is that of all devices together, the utilisation the mean over them, as
    /// of a group of iostat's. Since Linux 5.0 the kernel looks at the clock when a request begins
    /// or ends, in ticks: the busy time it adds up is approximate, and a device that takes many
    /// requests at once is not at its limit at 100%.
    pub fn columns(&self, elapsed_s: f64) -> Vec<SysstatColumn> {
        let reads = Done {
            requests: self.reads,
            merged: self.reads_merged,
            bytes: self.read_bytes,
            ns: self.read_ns,
        };
        let writes = Done {
            requests: self.writes,
            merged: self.writes_merged,
            bytes: self.write_bytes,
            ns: self.write_ns,
        };
        let discards = Done {
            requests: self.discards,
            merged: self.discards_merged,
            bytes: self.discard_bytes,
            ns: self.discard_ns,
        };
        let elapsed_ns = elapsed_s * 1e9;
        let devices = self.devices.max(1) as f64;
        let column = |name, value, unit| SysstatColumn { name, value, unit };
        let flushes = self.flushes.and_then(|flushes| per(flushes as f64, elapsed_s));
        let flush_await_ns = self.flushes.and_then(|flushes| share(self.flush_ns, flushes));
        let mut columns = Vec::from(READS.columns(&reads, elapsed_s));
        columns.extend(WRITES.columns(&writes, elapsed_s));
        columns.extend(DISCARDS.columns(&discards, elapsed_s));
        columns.extend([
            column("device_flushes_per_s", flushes, Unit::PerSecond),
            column("device_flush_await_ns", flush_await_ns, Unit::Nanoseconds),
            column("device_queue_depth_mean", per(self.queue_ns as f64, elapsed_ns), Unit::Ratio),
            column(
                "device_utilisation",
                per(self.busy_ns as f64, elapsed_ns * devices),
                Unit::Ratio,
            ),
        ]);
        columns
    }
}

impl CpuTotals {
    /// The columns of `sar -u ALL`: shares of the time of all processors, 1 together. Time of
    /// virtual machines is taken out of `user` and `nice`, which the kernel counts it into.
    pub fn columns(&self) -> [SysstatColumn; 10] {
        let user_ns = self.user_ns.saturating_sub(self.nice_ns.saturating_add(self.guest_ns));
        let nice_ns = self.nice_ns.saturating_sub(self.guest_nice_ns);
        let system_ns = self.system_ns.saturating_sub(self.irq_ns.saturating_add(self.softirq_ns));
        [
            ("cpu_user_share", user_ns),
            ("cpu_nice_share", nice_ns),
            ("cpu_system_share", system_ns),
            ("cpu_iowait_share", self.iowait_ns),
            ("cpu_steal_share", self.steal_ns),
            ("cpu_irq_share", self.irq_ns),
            ("cpu_softirq_share", self.softirq_ns),
            ("cpu_guest_share", self.guest_ns),
            ("cpu_guest_nice_share", self.guest_nice_ns),
            ("cpu_idle_share", self.idle_ns),
        ]
        .map(|(name, ns)| SysstatColumn {
            name,
            value: share(ns, self.all_ns()),
            unit: Unit::Ratio,
        })
    }
}

impl PageCacheTotals {
    /// Pages found and missed a second, of what happened in `elapsed_s` seconds, and the share of
    /// the pages asked for that was found.
    pub fn columns(&self, elapsed_s: f64) -> [SysstatColumn; 3] {
        let found = per(self.found() as f64, elapsed_s);
        let missed = per(self.missed as f64, elapsed_s);
        let hit_share = share(self.found(), self.looked_up);
        [
            SysstatColumn { name: "page_cache_hits_per_s", value: found, unit: Unit::PerSecond },
            SysstatColumn { name: "page_cache_misses_per_s", value: missed, unit: Unit::PerSecond },
            SysstatColumn { name: "page_cache_hit_share", value: hit_share, unit: Unit::Ratio },
        ]
    }
}

impl NetworkTotals {
    /// What was received and sent in `elapsed_s` seconds: rxkB/s, rxpck/s and %ifutil of
    /// `sar -n DEV` for each direction, with the packets that were dropped.
    pub fn columns(&self, elapsed_s: f64) -> [SysstatColumn; 8] {
        let column = |name, value, unit| SysstatColumn { name, value, unit };
        let bits = |bytes: u64| per(bytes as f64 * 8.0, elapsed_s);
        let packets = |count: u64| per(count as f64, elapsed_s);
        let share = |bytes: u64| per(bits(bytes)?, self.rate_bits_per_s? as f64);
        let (received, sent) = (self.received_bytes, self.sent_bytes);
        let [rate, count] = [Unit::BitsPerSecond, Unit::PerSecond];
        [
            column("network_received_bits_per_s", bits(received), rate),
            column("network_received_packets_per_s", packets(self.received_packets), count),
            column("network_received_drops_per_s", packets(self.received_dropped), count),
            column("network_received_share", share(received), Unit::Ratio),
            column("network_sent_bits_per_s", bits(sent), rate),
            column("network_sent_packets_per_s", packets(self.sent_packets), count),
            column("network_sent_drops_per_s", packets(self.sent_dropped), count),
            column("network_sent_share", share(sent), Unit::Ratio),
        ]
    }
}

/// The mean number of processes that waited for a disk, sar -q's `blocked`, of what `blocked_ns`
/// came to in `elapsed_s` seconds.
pub fn blocked_column(blocked_ns: u64, elapsed_s: f64) -> SysstatColumn {
    let value = per(blocked_ns as f64, elapsed_s * 1e9);
    SysstatColumn { name: "processes_blocked_mean", value, unit: Unit::Ratio }
}

/// `part` of `whole`; none of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    per(part as f64, whole as f64)
}

fn per(count: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| count / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(columns: &[SysstatColumn], name: &str) -> Option<f64> {
        columns.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("{name}")).value
    }

    #[test]
    fn two_seconds_of_a_device_worked_out() {
        let totals = DeviceTotals {
            devices: 2,
            reads: 300,
            reads_merged: 100,
            read_bytes: 300 * 8192,
            read_ns: 600_000_000,
            flushes: Some(4),
            flush_ns: 20_000_000,
            busy_ns: 1_000_000_000,
            queue_ns: 6_000_000_000,
            ..DeviceTotals::default()
        };
        let columns = totals.columns(2.0);
        let expected = [
            ("device_reads_per_s", 150.0),
            ("device_read_bytes_per_s", 150.0 * 8192.0),
            ("device_reads_merged_per_s", 50.0),
            ("device_reads_merged_share", 0.25),
            ("device_read_await_ns", 2_000_000.0),
            ("device_read_request_bytes", 8192.0),
            ("device_writes_per_s", 0.0),
            ("device_flushes_per_s", 2.0),
            ("device_flush_await_ns", 5_000_000.0),
            ("device_queue_depth_mean", 3.0),
            ("device_utilisation", 0.25),
        ];
        for (name, expected) in expected {
            assert_eq!(value(&columns, name), Some(expected), "{name}");
        }
        for name in ["device_write_await_ns", "device_writes_merged_share"] {
            assert_eq!(value(&columns, name), None, "{name}: there were none");
        }
        assert_eq!(value(&totals.columns(0.0), "device_reads_per_s"), None, "of no time");
    }

    #[test]
    fn pages_read_ahead_in_vain_leave_no_hits() {
        let columns = PageCacheTotals { looked_up: 100, missed: 25 }.columns(0.5);
        assert_eq!(columns.map(|it| it.value), [Some(150.0), Some(50.0), Some(0.75)]);
        let columns = PageCacheTotals { looked_up: 100, missed: 132 }.columns(1.0);
        assert_eq!(columns.map(|it| it.value), [Some(0.0), Some(132.0), Some(0.0)]);
        assert_eq!(PageCacheTotals::default().columns(1.0)[2].value, None);
    }

    #[test]
    fn a_network_is_counted_in_bits_and_its_share_is_the_links() {
        let totals = NetworkTotals {
            received_bytes: 125_000_000,
            received_packets: 100_000,
            received_dropped: 4,
            sent_bytes: 1_250_000,
            sent_packets: 20_000,
            sent_dropped: 0,
            rate_bits_per_s: Some(1_000_000_000),
        };
        let columns = totals.columns(2.0);
        let expected = [
            ("network_received_bits_per_s", 500e6),
            ("network_received_packets_per_s", 50e3),
            ("network_received_drops_per_s", 2.0),
            ("network_received_share", 0.5),
            ("network_sent_bits_per_s", 5e6),
            ("network_sent_packets_per_s", 10e3),
            ("network_sent_share", 0.005),
        ];
        for (name, expected) in expected {
            assert_eq!(value(&columns, name), Some(expected), "{name}");
        }
        let unknown = NetworkTotals { rate_bits_per_s: None, ..totals }.columns(2.0);
        assert_eq!(value(&unknown, "network_received_share"), None);
        assert_eq!(blocked_column(3_000_000_000, 2.0).value, Some(1.5));
    }

    #[test]
    fn a_peak_is_the_highest_second_that_is_told() {
        let second = |write_bytes| {
            let device = DeviceTotals { write_bytes, ..DeviceTotals::default() };
            let network = NetworkTotals { received_bytes: write_bytes / 2, ..Default::default() };
            [device.columns(1.0), network.columns(1.0).into()].concat()
        };
        let peaks = SysstatColumn::peaks(&[second(10), second(900), second(20)]);
        let of = |name: &str| peaks.iter().find(|peak| peak.metric == name);
        let expected = Sample::higher("device_write_bytes_per_s_peak", 900.0, Unit::BytesPerSecond);
        assert_eq!(of("device_write_bytes_per_s_peak"), Some(&expected));
        assert_eq!(of("network_received_bits_per_s_peak").unwrap().value, 3600.0);
        assert_eq!(of("network_received_share_peak"), None, "the link's rate is not known");
        assert_eq!(SysstatColumn::peaks(&[]), []);
    }

    #[test]
    fn shares_are_told_apart_and_come_to_one() {
        let totals = CpuTotals {
            user_ns: 400,
            system_ns: 200,
            iowait_ns: 150,
            steal_ns: 50,
            idle_ns: 200,
            nice_ns: 100,
            irq_ns: 10,
            softirq_ns: 40,
            guest_ns: 50,
            guest_nice_ns: 20,
        };
        let columns = totals.columns();
        let expected = [
            ("cpu_user_share", 0.25),
            ("cpu_nice_share", 0.08),
            ("cpu_system_share", 0.15),
            ("cpu_guest_share", 0.05),
            ("cpu_guest_nice_share", 0.02),
            ("cpu_iowait_share", 0.15),
        ];
        for (name, expected) in expected {
            assert_eq!(value(&columns, name), Some(expected), "{name}");
        }
        let sum: f64 = columns.iter().filter_map(|it| it.value).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        assert!(CpuTotals::default().columns().iter().all(|it| it.value.is_none()));
    }
}
