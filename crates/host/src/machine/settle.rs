//! Waiting until the device is at rest.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fsverdict_core::model::{Device, Quiet};

/// For this long nothing may reach the device. Short, because every trial pays it; a background
/// writer usually writes within it, or is caught by the probes.
const WINDOW: Duration = Duration::from_millis(50);
/// We wait no longer than this: the trial goes on and its record says that there was no rest.
const LIMIT: Duration = Duration::from_secs(10);

/// Waits for a window in which no request reached any of `devices` and none was under way.
pub fn settle(devices: &[Device]) -> Quiet {
    settle_on(Path::new("/sys"), devices, LIMIT)
}

fn settle_on(sys: &Path, devices: &[Device], limit: Duration) -> Quiet {
    let start = Instant::now();
    let mut before = activity(sys, devices);
    loop {
        std::thread::sleep(WINDOW);
        let after = activity(sys, devices);
        let quiet = before == after && after.iter().all(|device| device.in_flight == 0);
        if quiet || start.elapsed() >= limit {
            return Quiet { quiet, waited_ns: start.elapsed().as_nanos() as u64 };
        }
        before = after;
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Activity {
    requests: u64,
    in_flight: u64,
}

/// Fields of Documentation/block/stat.rst: reads, writes, discards and flushes completed, and
/// requests in flight. Older kernels end before the later ones.
fn activity(sys: &Path, devices: &[Device]) -> Vec<Activity> {
    let of = |device: &Device| {
        let [major, minor] = device.number;
        let text = fs::read_to_string(sys.join(format!("dev/block/{major}:{minor}/stat")));
        let text = text.unwrap_or_default();
        let fields: Vec<u64> = text.split_whitespace().map(|f| f.parse().unwrap_or(0)).collect();
        let field = |place: usize| fields.get(place).copied().unwrap_or(0);
        Activity { requests: field(0) + field(4) + field(11) + field(15), in_flight: field(8) }
    };
    devices.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_with_a_request_under_way_is_not_at_rest() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("dev/block/7:1");
        fs::create_dir_all(&folder).unwrap();
        let device = Device { path: "/dev/loop1".into(), number: [7, 1], size_bytes: 0 };
        let devices = [device];
        let with = |in_flight: u32| {
            let line = format!("1 0 8 0 2 0 16 0 {in_flight} 0 0");
            fs::write(folder.join("stat"), line).unwrap();
            settle_on(root.path(), &devices, Duration::from_millis(60)).quiet
        };
        assert!(with(0));
        assert!(!with(1));
    }
}
