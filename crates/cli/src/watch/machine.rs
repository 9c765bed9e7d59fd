//! What processors and devices do while a run goes on, second by second.
//!
//! Read from outside the trial, at the ticks of the lab that waits for it. These figures are only
//! shown: verdicts use the probes within the trial.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use fsverdict_core::model::{CpuTotals, Device, DeviceTotals};
use fsverdict_host::probe::{Pulse, Reading};

/// How often is read. The kernel counts processor time in hundredths of a second.
const BEAT: Duration = Duration::from_secs(1);

/// How many seconds are remembered: as many as the widest sparkline has columns.
const REMEMBERED: usize = 240;

/// One second of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Share of all processors' time, 0 to 1.
    pub cpu_busy_share: f64,
    /// `None` where the devices are not known.
    pub device: Option<DeviceSecond>,
}

/// One second of the devices under test.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceSecond {
    /// Share of the time with a request under way, the mean of several devices, 0 to 1.
    pub utilisation: f64,
    /// Bytes read a second.
    pub read_bytes_per_s: f64,
    /// Bytes written a second.
    pub write_bytes_per_s: f64,
}

/// The machine as far as it has been seen.
#[derive(Debug, Default)]
pub struct Machine {
    pulse: Option<Pulse>,
    devices: Vec<Device>,
    read_last: Option<Instant>,
    /// The last moment brought a new second.
    pub has_beaten: bool,
    /// The last seconds, the latest last.
    pub seconds: VecDeque<Second>,
    /// Since the run's begin.
    pub cpu: CpuTotals,
    /// Since the run's begin; `None` where the devices are not known.
    pub device: Option<DeviceTotals>,
    /// Requests under way.
    pub in_flight: u64,
    /// Dirty memory of the whole system.
    pub dirty_bytes: u64,
}

impl Machine {
    /// The next trial is on these devices.
    pub fn look_at(&mut self, devices: &[Device]) {
        if self.pulse.is_some() && self.devices == devices {
            return;
        }
        // A virtual machine's disks are files, and a simulated one has none: the processors remain.
        let root = Path::new("/");
        self.pulse = Pulse::open(root, devices).or_else(|_| Pulse::open(root, &[])).ok();
        self.devices = devices.to_vec();
        self.read_last = Some(Instant::now());
    }

    /// Reads, where a second has passed since the last time.
    pub fn beat(&mut self) {
        self.has_beaten = false;
        if self.read_last.is_none_or(|last| last.elapsed() < BEAT) {
            return;
        }
        self.read_last = Some(Instant::now());
        match self.pulse.as_mut().map(Pulse::beat) {
            Some(Ok(reading)) => self.take(&reading),
            // A device that is gone is the trial's to tell.
            Some(Err(_)) => self.pulse = None,
            None => {}
        }
    }

    fn take(&mut self, passed: &Reading) {
        let time_ns = passed.at_ns.max(1) as f64;
        let totals = passed.device.map(|device| device.totals);
        let device = totals.map(|totals| DeviceSecond {
            utilisation: totals.busy_ns as f64 / time_ns / totals.devices.max(1) as f64,
            read_bytes_per_s: totals.read_bytes as f64 * 1e9 / time_ns,
            write_bytes_per_s: totals.write_bytes as f64 * 1e9 / time_ns,
        });
        let all_ns = passed.cpu.all_ns().max(1) as f64;
        let cpu_busy_share = passed.cpu.busy_ns() as f64 / all_ns;
        self.seconds.push_back(Second { cpu_busy_share, device });
        while self.seconds.len() > REMEMBERED {
            self.seconds.pop_front();
        }
        add_cpu(&mut self.cpu, &passed.cpu);
        if let Some(totals) = totals {
            add_device(self.device.get_or_insert_default(), &totals);
        }
        self.has_beaten = true;
        self.in_flight = passed.device.map_or(0, |device| device.in_flight);
        self.dirty_bytes = passed.memory.dirty_bytes;
    }
}

/// Adds what is shown of the processors.
fn add_cpu(sum: &mut CpuTotals, more: &CpuTotals) {
    sum.user_ns += more.user_ns;
    sum.system_ns += more.system_ns;
    sum.iowait_ns += more.iowait_ns;
    sum.steal_ns += more.steal_ns;
    sum.idle_ns += more.idle_ns;
}

/// Adds what is shown of the devices.
fn add_device(sum: &mut DeviceTotals, more: &DeviceTotals) {
    sum.devices = more.devices;
    sum.reads += more.reads;
    sum.writes += more.writes;
    sum.read_bytes += more.read_bytes;
    sum.write_bytes += more.write_bytes;
    if let Some(flushes) = more.flushes {
        *sum.flushes.get_or_insert_default() += flushes;
    }
    sum.busy_ns += more.busy_ns;
}

#[cfg(test)]
mod tests {
    use fsverdict_host::probe::DeviceReading;

    use super::*;

    #[test]
    fn seconds_are_shares_and_rates_and_totals_add_up() {
        let cpu = CpuTotals { user_ns: 300, system_ns: 100, idle_ns: 400, ..CpuTotals::default() };
        let totals = DeviceTotals {
            devices: 2,
            write_bytes: 5000,
            busy_ns: 1_000_000_000,
            ..DeviceTotals::default()
        };
        let device = Some(DeviceReading { totals, in_flight: 3 });
        let reading = Reading { at_ns: 2_000_000_000, cpu, device, ..Reading::default() };
        let mut machine = Machine::default();
        machine.take(&reading);
        machine.take(&reading);
        let second = machine.seconds[1];
        assert_eq!(second.cpu_busy_share, 0.5);
        let device = second.device.unwrap();
        assert_eq!((device.utilisation, device.write_bytes_per_s), (0.25, 2500.0));
        assert_eq!(machine.cpu.user_ns, 600);
        assert_eq!(machine.device.unwrap().write_bytes, 10_000);
        assert_eq!(machine.in_flight, 3);
    }

    #[test]
    fn a_disk_that_is_no_device_leaves_the_processors() {
        let mut machine = Machine::default();
        let disk = Device { path: "/disk.img".into(), number: [4095, 7], size_bytes: 1 };
        machine.look_at(&[disk]);
        machine.beat();
        assert_eq!(machine.seconds.len(), 0, "no second has passed");
        machine.read_last = Instant::now().checked_sub(BEAT);
        machine.beat();
        assert_eq!(machine.seconds[0].device, None);
    }
}
