//! What passes over a network interface: `/proc/net/dev`, by proc_pid_net(5). The file that is open
//! is that of the network namespace in which it was opened.

use std::path::Path;

use fsverdict_core::model::NetworkTotals;

use super::ProbeError;
use super::file::{ProcFile, lines, numbers};

/// Numbers that each interface has: eight received, eight sent.
const COLUMNS: usize = 16;

/// The interface that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// What it carries in each direction, where that is known.
    pub rate_bits_per_s: Option<u64>,
}

/// The reader.
#[derive(Debug)]
pub(super) struct NetworkReader {
    dev: ProcFile,
    /// What its line begins with.
    label: Vec<u8>,
    rate_bits_per_s: Option<u64>,
}

impl NetworkReader {
    pub fn open(root: &Path, interface: &Interface) -> Result<Self, ProbeError> {
        let dev = ProcFile::open(&root.join("proc/net/dev"))?;
        let label = format!("{}:", interface.name).into_bytes();
        let mut reader = NetworkReader { dev, label, rate_bits_per_s: interface.rate_bits_per_s };
        reader.read()?;
        Ok(reader)
    }

    pub fn read(&mut self) -> Result<NetworkTotals, ProbeError> {
        self.dev.read()?;
        let counters = self.counters().ok_or_else(|| self.dev.without("the interface"))?;
        Ok(NetworkTotals {
            received_bytes: counters[0],
            received_packets: counters[1],
            received_dropped: counters[3],
            sent_bytes: counters[8],
            sent_packets: counters[9],
            sent_dropped: counters[11],
            rate_bits_per_s: self.rate_bits_per_s,
        })
    }

    fn counters(&self) -> Option<[u64; COLUMNS]> {
        let mut lines = lines(self.dev.text()).map(<[u8]>::trim_ascii_start);
        let line = lines.find_map(|line| line.strip_prefix(self.label.as_slice()))?;
        let mut counters = [0; COLUMNS];
        let mut told = numbers(line);
        counters.iter_mut().try_for_each(|counter| {
            *counter = told.next()?;
            Some(())
        })?;
        Some(counters)
    }
}

/// What passed between two readings.
pub(super) fn since(last: &NetworkTotals, first: &NetworkTotals) -> NetworkTotals {
    NetworkTotals {
        received_bytes: last.received_bytes.saturating_sub(first.received_bytes),
        received_packets: last.received_packets.saturating_sub(first.received_packets),
        received_dropped: last.received_dropped.saturating_sub(first.received_dropped),
        sent_bytes: last.sent_bytes.saturating_sub(first.sent_bytes),
        sent_packets: last.sent_packets.saturating_sub(first.sent_packets),
        sent_dropped: last.sent_dropped.saturating_sub(first.sent_dropped),
        rate_bits_per_s: last.rate_bits_per_s,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    const DEV: &str = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n    \
                       lo:    9579 87 0 0 0 0 0 0 9579 87 0 0 0 0 0 0\n  \
                       eth0: 123456    1000 1 2 3 4 5 6    78901 500 7 8 9 10 11 12\n";

    fn read(dev: &str, name: &str) -> Result<NetworkTotals, ProbeError> {
        let tree = fake::tree(&[("proc/net/dev", dev)]);
        let interface = Interface { name: name.into(), rate_bits_per_s: Some(1_000_000_000) };
        NetworkReader::open(tree.path(), &interface)?.read()
    }

    #[test]
    fn an_interface_has_a_line() {
        let expected = NetworkTotals {
            received_bytes: 123_456,
            received_packets: 1000,
            received_dropped: 2,
            sent_bytes: 78_901,
            sent_packets: 500,
            sent_dropped: 8,
            rate_bits_per_s: Some(1_000_000_000),
        };
        assert_eq!(read(DEV, "eth0").unwrap(), expected);
        // As kernels before 2.6.39 wrote long numbers.
        assert_eq!(read(&DEV.replace("eth0: ", "eth0:"), "eth0").unwrap(), expected);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        for (dev, name) in [(DEV, "eth"), (DEV, "eth1"), ("eth0: 1 2 3\n", "eth0")] {
            let error = read(dev, name).unwrap_err().to_string();
            assert!(error.ends_with("proc/net/dev lacks the interface"), "{error}");
        }
    }
}
