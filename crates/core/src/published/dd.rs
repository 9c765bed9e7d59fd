//! What the dd in a command does with files, as far as its words tell.

use super::options::bytes;
use crate::model::Job;

/// dd's own block (dd(1)).
const BLOCK_BYTES: u64 = 512;
/// Words after which what was written is on the device when dd ends, or goes past the page cache.
const DURABLE: [(&str, &[&str]); 2] =
    [("conv=", &["fsync", "fdatasync"]), ("oflag=", &["direct", "dsync", "sync"])];

/// What one dd does.
#[derive(Default)]
struct Copy {
    reads_file: bool,
    writes_file: bool,
    direct_reads: bool,
    direct_writes: bool,
    durable: bool,
    bytes: Option<u64>,
}

/// The job of the dds among `programs`; `None`: there is none that reads or writes a file.
pub fn job(programs: &[Vec<String>]) -> Option<Job> {
    let mut copies: Vec<Copy> = Vec::new();
    for words in programs {
        match words.first().map(String::as_str) {
            Some("dd") => copies.push(copy(words)),
            Some("sync") => copies.iter_mut().for_each(|it| it.durable = true),
            _ => {}
        }
    }
    copies.retain(|it| it.reads_file || it.writes_file);
    let reads = || copies.iter().filter(|it| it.reads_file);
    let writes = || copies.iter().filter(|it| it.writes_file);
    let mode = match (reads().count(), writes().count()) {
        (0, 0) => return None,
        (_, 0) => "read",
        (0, _) => "write",
        _ => "rw",
    };
    let direct = match (reads().all(|it| it.direct_reads), writes().all(|it| it.direct_writes)) {
        (true, true) => Some(true),
        // Reads past the cache of what was written through it.
        (true, false) if mode == "rw" => None,
        _ => Some(false),
    };
    Some(Job {
        mode: Some(mode.into()),
        jobs: Some(1),
        direct,
        size_bytes: copies.iter().map(|it| it.bytes).max().flatten(),
        synced: (mode != "read").then(|| writes().all(|it| it.durable)),
        ..Job::default()
    })
}

fn copy(words: &[String]) -> Copy {
    let value = |name: &str| words.iter().rev().find_map(|word| word.strip_prefix(name));
    let says = |name: &str, flags: &[&str]| {
        value(name).is_some_and(|text| text.split(',').any(|flag| flags.contains(&flag)))
    };
    let is_file = |path: &str| !path.starts_with("/dev/") || path.starts_with("/dev/shm/");
    // A disk that is written goes through the page cache as a file does.
    let takes = |path: &str| !["/dev/null", "/dev/zero", "/dev/full"].contains(&path);
    let block = value("bs=").or_else(|| value("ibs=")).map_or(Some(BLOCK_BYTES), bytes);
    let count = value("count=").and_then(bytes);
    Copy {
        reads_file: value("if=").is_some_and(is_file),
        writes_file: value("of=").is_some_and(takes),
        direct_reads: says("iflag=", &["direct"]),
        direct_writes: says("oflag=", &["direct"]),
        durable: DURABLE.iter().any(|(name, flags)| says(name, flags)),
        bytes: block.zip(count).and_then(|(block, count)| block.checked_mul(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Command;
    use crate::printed::programs;

    /// Mode, direct, synced and size.
    type Told = (String, Option<bool>, Option<bool>, Option<u64>);

    /// What a line's job tells.
    fn read(line: &str) -> Option<Told> {
        let job = job(&programs(&Command::Shell(line.into())))?;
        Some((job.mode?, job.direct, job.synced, job.size_bytes))
    }

    #[test]
    fn a_dd_tells_what_it_reads_and_writes_and_whether_the_device_has_a_part() {
        let writes =
            |direct, synced| Some(("write".into(), Some(direct), Some(synced), Some(4 << 30)));
        let from = "dd if=/dev/zero of=test.img bs=1M count=4096";
        assert_eq!(read(from), writes(false, false));
        for durable in ["conv=fsync", "conv=notrunc,fdatasync", "oflag=dsync", "oflag=append,sync"]
        {
            assert_eq!(read(&format!("{from} {durable}")), writes(false, true), "{durable}");
        }
        assert_eq!(read(&format!("{from} oflag=direct")), writes(true, true));
        assert_eq!(read(&format!("{from} && sync")), writes(false, true));
        assert_eq!(read(&format!("sync; {from}")), writes(false, false));
        assert_eq!(read(&format!("sudo time {from}")), writes(false, false));
        let reads = |direct| Some(("read".into(), Some(direct), None, None));
        assert_eq!(read("dd if=test.img of=/dev/null bs=1M"), reads(false));
        assert_eq!(read("dd if=test.img of=/dev/null bs=1M iflag=direct"), reads(true));
    }

    #[test]
    fn what_is_no_file_or_no_dd_has_no_job() {
        for line in
            ["dd if=/dev/zero of=/dev/null", "cp if=a of=b", "echo dd if=a of=b", "dd if=/dev/sda"]
        {
            assert_eq!(read(line), None, "{line}");
        }
        let both = "dd if=/dev/urandom of=a count=4; dd if=a of=/dev/null iflag=direct";
        assert_eq!(read(both), Some(("rw".into(), None, Some(false), Some(2048))));
        assert_eq!(read("dd if=a of=b").unwrap().1, Some(false));
    }
}
