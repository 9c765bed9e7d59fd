//! Memory to spare.

/// proc_meminfo(5); its kB are KiB.
pub fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read() {
        let text = "MemTotal:  100 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available_bytes(text), Some(2 << 20));
        assert_eq!(available_bytes("MemTotal: 100 kB\n"), None);
    }
}
