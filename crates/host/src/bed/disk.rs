//! What a block device says of itself, and how it answers. Only reads.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use fsverdict_core::model::{Disk, Draws, Reads};

use super::block::{Block, Machine, Number};
use super::image::{BLOCK_BYTES, Chunk};

/// How many blocks are read, if they are read within [`PATIENCE`]: a disk that rotates takes some
/// 10 ms for each.
const READS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(2);

/// What the device of that number says of itself; for a partition, what its disk says.
pub fn says(number: Number) -> Option<Disk> {
    let block = Machine::real().block(number)?;
    Some(of(&block.whole().unwrap_or(block).directory))
}

/// A whole disk as it shows itself.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its node.
    pub path: String,
    /// What it says of itself.
    pub disk: Disk,
    /// How it answers; `None`: it can't be read, for which root may not be enough in a container.
    pub reads: Option<Reads>,
}

impl Seen {
    /// The one at `path`, or on which a partition there lies.
    pub fn at(path: &Path) -> Option<Seen> {
        let machine = Machine::real();
        machine.block((machine.number_of)(path)?).map(Seen::of)
    }

    /// The one on which the file system that holds `path` lies.
    pub fn beneath(path: &Path) -> Option<Seen> {
        Machine::real().beneath(path).map(Seen::of)
    }

    fn of(block: Block) -> Seen {
        let block = block.disk();
        let reads = reads(Path::new(&block.node));
        Seen { disk: of(&block.directory), path: block.node, reads }
    }

    /// It says that it rotates, and answers as none does that rotates.
    pub fn contradicts_itself(&self) -> Option<Reads> {
        self.reads.filter(|reads| self.disk.rotational && reads.contradict_rotation())
    }
}

/// What the device with this folder in `/sys` says. Files that older kernels lack say nothing: then
/// all disks were sent flushes, and none had zones.
pub(super) fn of(device: &Path) -> Disk {
    let text = |file: &str| {
        fs::read_to_string(device.join("queue").join(file)).unwrap_or_default().trim().to_string()
    };
    let number = |file: &str| text(file).parse::<u64>().ok();
    let chosen = |text: &str| Some(text.split_once('[')?.1.split_once(']')?.0.to_string());
    let queues = fs::read_dir(device.join("mq")).into_iter().flatten().count();
    Disk {
        rotational: text("rotational") != "0",
        write_cache: text("write_cache") != "write through",
        discard: number("discard_max_bytes").is_some_and(|bytes| bytes > 0),
        zoned: !matches!(text("zoned").as_str(), "" | "none"),
        logical_block_bytes: number("logical_block_size").unwrap_or(512),
        physical_block_bytes: number("physical_block_size").unwrap_or(512),
        queues: u32::try_from(queues).unwrap_or(0),
        scheduler: chosen(&text("scheduler")),
        read_ahead_bytes: number("read_ahead_kb").map(|kib| kib << 10),
    }
}

/// How far the kernel has files read ahead on a disk that says it rotates: twice the largest
/// request (block/blk-settings.c, `blk_apply_bdi_limits`, Linux 6.18).
pub(super) fn read_ahead_of_rotation(block: &Block) -> Option<u64> {
    let text = fs::read_to_string(block.directory.join("queue/max_sectors_kb")).ok()?;
    Some((text.trim().parse::<u64>().ok()? * 2) << 10)
}

/// Reads some blocks anywhere in the file or device at `path`, one after the other and past the
/// page cache. `None` where it can't be read so.
pub(super) fn reads(path: &Path) -> Option<Reads> {
    let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
    Reads::of(times_ns(&direct)?)
}

fn times_ns(file: &File) -> Option<Vec<u64>> {
    let size_bytes = io_size(file)?;
    let blocks = usize::try_from(size_bytes / BLOCK_BYTES as u64).ok().filter(|it| *it > 0)?;
    // Others each time: those of the last time may be in the disk's own cache. The standard
    // library keys its hash maps from the system's random numbers.
    let mut draws = Draws::new(std::hash::RandomState::new().build_hasher().finish());
    let mut chunk = Chunk::new();
    let begin = Instant::now();
    let mut times_ns = Vec::new();
    while times_ns.len() < READS && begin.elapsed() < PATIENCE {
        let at = draws.below(blocks) as u64 * BLOCK_BYTES as u64;
        let start = Instant::now();
        file.read_exact_at(chunk.part(BLOCK_BYTES as u64), at).ok()?;
        times_ns.push(start.elapsed().as_nanos() as u64);
    }
    Some(times_ns)
}

/// The size of a file, and of a device, whose metadata has none.
fn io_size(file: &File) -> Option<u64> {
    let mut file = file;
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn a_device_is_read_from_its_queue() {
        let folder = device(&[
            ("queue/rotational", "0"),
            ("queue/write_cache", "write through"),
            ("queue/discard_max_bytes", "1073741824"),
            ("queue/zoned", "none"),
            ("queue/logical_block_size", "4096"),
            ("queue/physical_block_size", "16384"),
            ("queue/scheduler", "none [mq-deadline] kyber"),
            ("queue/read_ahead_kb", "128"),
            ("mq/0/cpu_list", "0"),
            ("mq/1/cpu_list", "1"),
        ]);
        assert_eq!(
            of(folder.path()).to_string(),
            "not rotating, no volatile write cache, discards, blocks of 4096 B, physically \
             16384 B, 2 queues, scheduler mq-deadline, read-ahead 128 KiB"
        );
    }

    #[test]
    fn an_old_kernel_says_less() {
        let disk = of(device(&[("queue/rotational", "1")]).path());
        assert!(disk.rotational && disk.write_cache && !disk.discard && !disk.zoned);
        assert_eq!((disk.logical_block_bytes, disk.queues, disk.scheduler), (512, 0, None));
    }

    #[test]
    fn blocks_are_read_or_nothing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        assert_eq!(reads(&path), None);
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        // Not every file system can be read past the page cache.
        let read = reads(&path);
        assert!(read.is_none_or(|it| it.count as usize <= READS && it.median_ns <= it.p90_ns));
        fs::write(&path, "").unwrap();
        assert_eq!(reads(&path), None, "there is no block in it");
    }
}
