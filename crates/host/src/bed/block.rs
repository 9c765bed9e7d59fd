//! Block devices as `/sys` and `/proc` show them, and what uses them. Only reads.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fsverdict_core::model::Device;

use crate::machine::below;
use crate::machine::folder;
use crate::machine::mount::{self, Mount, unescaped};
use crate::sys::{self, LoopBacking};

/// `[major, minor]`.
pub type Number = [u32; 2];

/// Where the kernel shows itself. Tests put a made-up tree in its place.
pub(super) struct Machine {
    pub proc: PathBuf,
    pub sys: PathBuf,
    /// The number of the block device at a path; `None` where there is none.
    pub number_of: fn(&Path) -> Option<Number>,
    /// What is behind the loop device at a path, by numbers.
    pub backing_of: fn(&Path) -> Option<LoopBacking>,
}

/// A disk or a partition.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub name: String,
    pub node: String,
    pub number: Number,
    pub(super) directory: PathBuf,
}

/// One use of a block device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Use {
    #[error("{node} is mounted on {on} (umount it first)")]
    Mounted { node: String, on: String },
    #[error("{node} is swap (swapoff it first)")]
    Swap { node: String },
    #[error("{node} is held by {holder} (take that down first)")]
    Held { node: String, holder: String },
    #[error("{node} is open for writing by {program}, process {pid} (end it first)")]
    Written { node: String, program: String, pid: u32 },
}

/// The number of the block device that `path`, a node or a link to one, stands for.
pub(super) fn number_of(path: &Path) -> Option<Number> {
    sys::block_number(path).ok().flatten()
}

fn backing_of(node: &Path) -> Option<LoopBacking> {
    sys::loop_backing(&File::open(node).ok()?).ok().flatten()
}

fn parse_number(text: &str) -> Option<Number> {
    let (major, minor) = text.trim().split_once(':')?;
    Some([major.parse().ok()?, minor.parse().ok()?])
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The entries of a folder by name; none where there is no such folder.
fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = folder::entries(folder).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Block {
    /// The device whose folder in `/sys` this is.
    fn at(directory: &Path) -> Option<Block> {
        let directory = fs::canonicalize(directory).ok()?;
        let number = parse_number(&read(directory.join("dev")))?;
        let name = file_name(&directory);
        let uevent = read(directory.join("uevent"));
        // A node may lie deeper (`cciss!c0d0` is cciss/c0d0), which only DEVNAME tells for sure.
        let device_name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="));
        let node = format!("/dev/{}", device_name.unwrap_or(&name));
        Some(Block { name, node, number, directory })
    }

    pub fn size_bytes(&self) -> u64 {
        // In units of 512 bytes, whatever the device's block: Documentation/ABI/stable/sysfs-block.
        read(self.directory.join("size")).trim().parse::<u64>().unwrap_or(0) * 512
    }

    /// Where a partition begins on its disk.
    pub fn start_bytes(&self) -> u64 {
        read(self.directory.join("start")).trim().parse::<u64>().unwrap_or(0) * 512
    }

    /// Read-only, or not known to be anything else.
    pub fn read_only(&self) -> bool {
        read(self.directory.join("ro")).trim() != "0"
    }

    pub fn partitions(&self) -> Vec<Block> {
        let folders = entries(&self.directory);
        let partitions = folders.iter().filter(|folder| folder.join("partition").exists());
        partitions.filter_map(|folder| Block::at(folder)).collect()
    }

    pub fn is_partition(&self) -> bool {
        self.directory.join("partition").exists()
    }

    /// The disk that this is a partition of.
    pub fn whole(&self) -> Option<Block> {
        self.is_partition().then(|| Block::at(self.directory.parent()?)).flatten()
    }

    /// The disk that all bytes of this one go to: down through partitions, and through device
    /// mapper and md where there is one device beneath.
    pub(super) fn disk(self) -> Block {
        if let Some(whole) = self.whole() {
            return whole.disk();
        }
        match entries(self.directory.join("slaves")).as_slice() {
            [slave] => Block::at(slave).map_or(self, Block::disk),
            _ => self,
        }
    }

    /// For a loop device that bypasses the host's page cache, the file behind it: the disk below
    /// that file moves the same bytes at the same time. `Err`: a cache is in between.
    fn image(&self) -> Result<Option<PathBuf>, ()> {
        let file = read(self.directory.join("loop/backing_file"));
        match (file.trim_end_matches('\n'), read(self.directory.join("loop/dio")).trim()) {
            ("", _) => Ok(None),
            (file, "1") => Ok(Some(file.into())),
            _ => Err(()),
        }
    }

    /// All whose bytes are bytes of this one: itself, its partitions, its disk. Not its siblings.
    pub fn overlapping(&self) -> Vec<Block> {
        let own = std::iter::once(self.clone());
        own.chain(self.partitions()).chain(self.whole()).collect()
    }

    /// What is stacked upon it, as the kernel says: device mapper, md, bcache.
    fn holders(&self) -> Vec<String> {
        entries(self.directory.join("holders")).iter().map(|holder| holder_name(holder)).collect()
    }

    pub fn device(&self) -> Device {
        let (path, number) = (self.node.clone(), self.number);
        Device { path, number, size_bytes: self.size_bytes() }
    }
}

/// `dm-0 (vg-home)`: the kernel's name means little to the one who made it.
fn holder_name(folder: &Path) -> String {
    let (name, mapped) = (file_name(folder), read(folder.join("dm/name")));
    if mapped.is_empty() { name } else { format!("{name} ({})", mapped.trim()) }
}

fn among(blocks: &[Block], number: Option<Number>) -> Option<&Block> {
    blocks.iter().find(|block| Some(block.number) == number)
}

impl Machine {
    /// This one.
    pub fn real() -> Machine {
        Machine { proc: "/proc".into(), sys: "/sys".into(), number_of, backing_of }
    }

    pub fn block(&self, number: Number) -> Option<Block> {
        let [major, minor] = number;
        Block::at(&self.sys.join(format!("dev/block/{major}:{minor}")))
    }

    fn number(&self, path: impl AsRef<Path>) -> Option<Number> {
        (self.number_of)(path.as_ref())
    }

    /// The devices under `/`, down through LVM, md and encryption.
    pub fn system(&self) -> Vec<Block> {
        let roots = self.mounts().into_iter().filter(|mount| mount.at == "/");
        let numbers = roots.flat_map(|mount| [Some(mount.number), self.number(mount.source)]);
        let mut open: Vec<Block> =
            numbers.flatten().filter_map(|number| self.block(number)).collect();
        let mut found = Vec::new();
        while let Some(block) = open.pop() {
            if among(&found, Some(block.number)).is_none() {
                let slaves = entries(block.directory.join("slaves"));
                open.extend(slaves.iter().filter_map(|slave| Block::at(slave)));
                found.push(block);
            }
        }
        found
    }

    /// The device that the file system at `path` lies on, where it lies on one.
    pub fn beneath(&self, path: &Path) -> Option<Block> {
        let device = fs::metadata(path).ok()?.dev();
        let number = [libc::major(device), libc::minor(device)];
        self.block(number).or_else(|| {
            // Btrfs gives each subvolume an anonymous number of its own: go by the mount's source.
            let path = fs::canonicalize(path).ok()?;
            let mounts = self.mounts().into_iter().filter(|mount| path.starts_with(&mount.at));
            let mount = mounts.max_by_key(|mount| mount.at.len())?;
            self.block(self.number(mount.source)?)
        })
    }

    /// The block device below loop devices upon block devices; `None`: a cache is in between, or
    /// their names form a ring.
    fn below_loops(&self, mut block: Block) -> Option<Block> {
        for _ in 0..below::DEEPEST {
            match block.image().ok()?.and_then(|file| self.block(self.number(file)?)) {
                Some(below) => block = below,
                None => return Some(block),
            }
        }
        None
    }

    /// The disks on which `devices` lie, as partitions or as images that are not cached. Empty if
    /// one of them lies on no other disk, or that is unknown: nothing can be said of others then.
    pub fn disks_beneath(&self, devices: &[Device]) -> Vec<Device> {
        let beneath = |device: &Device| {
            let block = self.below_loops(self.block(device.number)?)?;
            let disk = match block.image().ok()? {
                Some(image) => self.beneath(&image)?.disk(),
                None => block.disk(),
            };
            (disk.number != device.number).then(|| disk.device())
        };
        let disks: Option<Vec<Device>> = devices.iter().map(beneath).collect();
        let mut disks = disks.unwrap_or_default();
        disks.sort_by_key(|disk| disk.number);
        disks.dedup();
        disks
    }

    /// All that uses any of `blocks`.
    pub fn uses(&self, blocks: &[Block]) -> Vec<Use> {
        let mut uses = self.mounted(blocks);
        uses.extend(self.swapped(blocks));
        uses.extend(self.held(blocks));
        uses.extend(self.looped(blocks));
        uses.extend(self.members(blocks));
        uses.extend(self.written(blocks));
        uses
    }

    fn mounts(&self) -> Vec<Mount> {
        mount::all(&self.proc).unwrap_or_default()
    }

    /// By number, and by source too: Btrfs and FUSE mounts have an anonymous number (0:42).
    fn mounted(&self, blocks: &[Block]) -> Vec<Use> {
        let used = self.mounts().into_iter().filter_map(|mount| {
            let by_number = among(blocks, Some(mount.number));
            // bcachefs joins its devices: /dev/sda:/dev/sdb.
            let mut sources = mount.source.split(':').filter(|source| source.starts_with('/'));
            let block = by_number
                .or_else(|| sources.find_map(|source| among(blocks, self.number(source))))?;
            Some(Use::Mounted { node: block.node.clone(), on: mount.at })
        });
        used.collect()
    }

    fn swapped(&self, blocks: &[Block]) -> Vec<Use> {
        let text = read(self.proc.join("swaps"));
        let sources = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let used = sources.filter_map(|source| {
            among(blocks, self.number(unescaped(source)))
                .map(|block| Use::Swap { node: block.node.clone() })
        });
        used.collect()
    }

    fn held(&self, blocks: &[Block]) -> Vec<Use> {
        let held = |block: &Block| {
            let node = block.node.clone();
            let uses = block.holders().into_iter();
            uses.map(|holder| Use::Held { node: node.clone(), holder }).collect::<Vec<_>>()
        };
        blocks.iter().flat_map(held).collect()
    }

    /// Other loop devices upon the same bytes: upon one of the block devices, or upon the file
    /// that is behind one of them. The kernel neither lists them as holders nor claims the device
    /// for them, so that even an exclusive open succeeds. Nodes and files may have several names,
    /// or none any more: the kernel's numbers tell.
    fn looped(&self, blocks: &[Block]) -> Vec<Use> {
        let loops: Vec<(Block, String)> = entries(self.sys.join("block"))
            .into_iter()
            .map(|folder| (read(folder.join("loop/backing_file")), folder))
            .filter(|(text, _)| !text.is_empty())
            .filter_map(|(text, folder)| Some((Block::at(&folder)?, text)))
            .collect();
        let backing = |block: &Block| (self.backing_of)(Path::new(&block.node));
        let is_among = |block: &Block| among(blocks, Some(block.number)).is_some();
        let (ours, others): (Vec<_>, Vec<_>) =
            loops.into_iter().partition(|(block, _)| is_among(block));
        let used = others.iter().filter_map(|(other, text)| {
            let numbers = backing(other);
            let upon = numbers.filter(|it| it.device != 0).map(|it| it.device);
            let upon = upon.map(|device| [libc::major(device), libc::minor(device)]);
            let beside = ours.iter().find(|(own, path)| {
                path == text
                    || numbers.is_some_and(|it| Some(it.file) == backing(own).map(|it| it.file))
            });
            let block = among(blocks, self.number(text.trim_end_matches('\n')))
                .or_else(|| among(blocks, upon))
                .or_else(|| beside.map(|(own, _)| own))?;
            Some(Use::Held { node: block.node.clone(), holder: other.name.clone() })
        });
        used.collect()
    }

    /// A mounted Btrfs shows one of its devices as the mount's source; all of them are here.
    fn members(&self, blocks: &[Block]) -> Vec<Use> {
        let mut uses = Vec::new();
        for folder in entries(self.sys.join("fs/btrfs")) {
            for member in entries(folder.join("devices")).iter().map(|path| file_name(path)) {
                if let Some(block) = blocks.iter().find(|block| block.name == member) {
                    let holder = format!("the mounted btrfs {}", file_name(&folder));
                    uses.push(Use::Held { node: block.node.clone(), holder });
                }
            }
        }
        uses
    }

    /// Programs that write to it without claiming it, such as a virtual machine whose disk it is.
    /// Readers are left out: multipathd keeps every disk open, to watch it.
    fn written(&self, blocks: &[Block]) -> Vec<Use> {
        let mut uses = Vec::new();
        for folder in entries(&self.proc) {
            let Ok(pid) = file_name(&folder).parse::<u32>() else { continue };
            let own = pid == std::process::id();
            let files = if own { Vec::new() } else { entries(folder.join("fd")) };
            for block in files.iter().filter_map(|file| self.written_file(file, blocks)) {
                let program = read(folder.join("comm")).trim().to_string();
                uses.push(Use::Written { node: block.node.clone(), program, pid });
            }
        }
        uses.dedup();
        uses
    }

    /// The block device that this open file, `/proc/PID/fd/N`, writes to.
    fn written_file<'a>(&self, file: &Path, blocks: &'a [Block]) -> Option<&'a Block> {
        // Sockets, pipes and the like have no path. Nodes are anywhere.
        fs::read_link(file).ok().filter(|target| target.is_absolute())?;
        let block = among(blocks, self.number(file))?;
        let info = read(file.parent()?.parent()?.join("fdinfo").join(file.file_name()?));
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
        (flags & libc::O_ACCMODE != libc::O_RDONLY).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_file_system_has_its_device() {
        let number = |path: &str| Machine::real().beneath(Path::new(path)).map(|b| b.number);
        // In a container it may have none; then there is none under its folders either.
        assert_eq!(number("/"), number("/etc"));
        assert!(number("/proc").is_none());
    }
}
