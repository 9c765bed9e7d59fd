//! What the machine and the devices under test do, read now and then by a watcher of the run
//! outside its trials.

use std::path::Path;
use std::time::Instant;

use fsverdict_core::model::Device;

use super::{ProbeError, Readers, Reading};

/// Readers that are asked now and then, and tell what has passed in between.
#[derive(Debug)]
pub struct Pulse {
    readers: Readers,
    origin: Instant,
    last: Reading,
}

impl Pulse {
    /// Opens the files of the machine and of `devices` under `root` (`/`, except in tests), and
    /// takes the first reading.
    pub fn open(root: &Path, devices: &[Device]) -> Result<Pulse, ProbeError> {
        let mut readers = Readers::open(root, devices)?;
        let origin = Instant::now();
        let last = readers.read(origin)?;
        Ok(Pulse { readers, origin, last })
    }

    /// What has happened since the last beat: `at_ns` is the time between the two, counters are
    /// differences, gauges are as they are.
    pub fn beat(&mut self) -> Result<Reading, ProbeError> {
        let now = self.readers.read(self.origin)?;
        let passed = Reading { at_ns: now.at_ns - self.last.at_ns, ..now.since(&self.last) };
        self.last = now;
        Ok(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    #[test]
    fn a_beat_tells_what_passed_since_the_one_before() {
        let device = "sys/dev/block/7:3/stat";
        let tree = fake::tree(&[
            ("proc/stat", "cpu  100 0 10 1000 5 0 0 0 0 0\nprocesses 40\n"),
            ("proc/meminfo", "Dirty: 8 kB\nWriteback: 0 kB\n"),
            (device, "1 0 8 0 1 0 8 0 0 5 0 0 0 0 0 0 0\n"),
        ]);
        let mut pulse = Pulse::open(tree.path(), &fake::devices(&[[7, 3]])).unwrap();
        fake::write(&tree, device, "1 0 8 0 11 0 808 0 2 45 0 0 0 0 0 3 0\n");
        let first = pulse.beat().unwrap();
        let writes = |beat: &Reading| beat.device.unwrap().totals.writes;
        assert_eq!((writes(&first), first.device.unwrap().in_flight), (10, 2));
        assert_eq!(first.memory.dirty_bytes, 8192);
        fake::write(&tree, device, "1 0 8 0 12 0 816 0 0 45 0 0 0 0 0 3 0\n");
        let second = pulse.beat().unwrap();
        assert_eq!(writes(&second), 1, "counted from the beat before, not from the start");
        assert!(first.at_ns > 0 && second.at_ns > 0);
    }
}
