//! An image file, written full once.
//!
//! Neither a sparse file nor `fallocate` is enough: the first write to each block would then
//! measure how the host allocates or converts it (4K write and fsync, first pass and second: sparse
//! 3,486 and 5,126 IOPS, fallocate 3,933 and 5,286, written full 6,162 and 6,195).
//!
//! For the same reason it is written again wherever mkfs had the device zero it: [`write_out`].

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use fsverdict_core::model::Device;

use super::Own;
use super::error::{BedError, failed};
use super::margin::with_margin;
use crate::machine::below;
use crate::sys;

const CHUNK_BYTES: usize = 1 << 20;
/// Direct I/O asks for the device's logical block; 4 KiB is the largest in use.
pub(super) const BLOCK_BYTES: usize = 4096;

/// Makes the image `name` in `own`, where it must not exist, and fills it. `progress` hears how
/// many bytes are written, and ends it by an error. A file that could not be filled is removed.
pub(super) fn create(
    own: &Own,
    name: &CStr,
    size_bytes: u64,
    progress: impl FnMut(u64) -> io::Result<()>,
) -> Result<File, BedError> {
    if size_bytes == 0 || !size_bytes.is_multiple_of(BLOCK_BYTES as u64) {
        return Err(BedError::Size { size_bytes });
    }
    check_space(own.path(), size_bytes)?;
    let doing = |what: &str| format!("{what} {}/{}", own.path().display(), name.to_string_lossy());
    // Making the file is apart from filling it: a file that was there before is not removed.
    let file = own.create(name).map_err(failed(|| doing("making")))?;
    match fill(&file, size_bytes, progress) {
        Ok(()) => Ok(file),
        Err(source) => {
            let cause = failed(|| doing("filling"))(source);
            Err(cause.after(own.remove_file(name).map_err(failed(|| doing("removing")))))
        }
    }
}

/// Whether `folder` has room for so much.
pub(super) fn check_space(folder: &Path, size_bytes: u64) -> Result<(), BedError> {
    let free_bytes = sys::free_bytes(folder)
        .map_err(failed(|| format!("asking how much is free in {}", folder.display())))?;
    if free_bytes >= with_margin(size_bytes) {
        return Ok(());
    }
    Err(BedError::Space { folder: folder.into(), free_bytes, size_bytes })
}

fn fill(
    file: &File,
    size_bytes: u64,
    progress: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<()> {
    // On a host's Btrfs each write would go to a new place, the second as well as the first. File
    // systems that don't copy on write don't know the flag either.
    let _ = sys::do_not_copy_on_write(file);
    // First the blocks in one go, for few extents; not every file system can.
    match sys::allocate(file, size_bytes) {
        Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => return Err(error),
        _ => {}
    }
    write_full(&mut Sink::into(file), size_bytes, progress)?;
    file.sync_all()
}

/// Writes zeros to all of the image behind a loop device that reads as zeros without having been
/// written; gives how many bytes that were.
///
/// What mkfs asks a loop device to zero (BLKZEROOUT, as mkfs.ext4 and mkfs.xfs do for journals)
/// becomes unwritten extents of the image (drivers/block/loop.c, `lo_fallocate`). The first write
/// to each block, and the flush after it, would then measure how the host converts it: a flush
/// after a 4K write took 62 µs the first time and 34 µs the second.
pub fn write_out(device: &Device) -> io::Result<u64> {
    let root = Path::new("/");
    let device = below::lowest(root, device);
    // To a virtual machine it is a disk like any other.
    let Some(path) = below::backing_file(root, device.number) else { return Ok(0) };
    let nothing = || io::Error::other("no file is behind it");
    let backing = sys::loop_backing(&File::open(&device.path)?)?.ok_or_else(nothing)?;
    let file = sys::open_without_links(&path, libc::O_RDWR | libc::O_NONBLOCK)?;
    let data = file.metadata()?;
    if (data.dev(), data.ino()) != backing.file {
        return Err(io::Error::other(format!("{} is another file by now", path.display())));
    }
    write_holes(&file)
}

fn write_holes(file: &File) -> io::Result<u64> {
    let size_bytes = file.metadata()?.len();
    let mut sink = Sink::into(file);
    let mut zeros = Chunk::new();
    let (mut at, mut written_bytes) = (0, 0);
    while at < size_bytes {
        // lseek(2): unwritten extents are holes to SEEK_DATA.
        let data = sys::next_data(file.as_fd(), at)?.unwrap_or((size_bytes, size_bytes));
        while at < data.0 {
            let part = zeros.part(data.0 - at);
            sink.write(part, at)?;
            at += part.len() as u64;
            written_bytes += part.len() as u64;
        }
        at = data.1;
    }
    file.sync_all()?;
    Ok(written_bytes)
}

/// Memory as direct I/O asks for it.
pub(super) struct Chunk {
    memory: Vec<u8>,
    start: usize,
}

impl Chunk {
    /// Of zeros.
    pub(super) fn new() -> Chunk {
        let memory = vec![0; CHUNK_BYTES + BLOCK_BYTES];
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        Chunk { memory, start }
    }

    /// Its beginning, of no more than `most_bytes`.
    pub(super) fn part(&mut self, most_bytes: u64) -> &mut [u8] {
        let bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        &mut self.memory[self.start..self.start + bytes]
    }
}

/// Direct I/O as long as the file system takes it: some refuse at open, some at the first write.
struct Sink<'a> {
    direct: Option<File>,
    buffered: &'a File,
}

impl Sink<'_> {
    /// Past the page cache, so that filling does not push out what the machine has in it. Opened by
    /// descriptor: in a folder of somebody else's, the name may stand for another file by now.
    fn into(file: &File) -> Sink<'_> {
        let same = format!("/proc/self/fd/{}", file.as_raw_fd());
        let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(same);
        Sink { direct: direct.ok(), buffered: file }
    }

    fn write(&mut self, data: &[u8], at: u64) -> io::Result<()> {
        if let Some(file) = &self.direct {
            match file.write_all_at(data, at) {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.direct = None,
                result => return result,
            }
        }
        self.buffered.write_all_at(data, at)
    }
}

fn write_full(
    sink: &mut Sink<'_>,
    size_bytes: u64,
    mut progress: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut chunk = Chunk::new();
    randomise(chunk.part(size_bytes));
    let mut written = 0;
    while written < size_bytes {
        let part = chunk.part(size_bytes - written);
        number_blocks(part, written);
        sink.write(part, written)?;
        written += part.len() as u64;
        progress(written)?;
    }
    Ok(())
}

/// Bytes that no host can compress: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn randomise(chunk: &mut [u8]) {
    let mut state: u64 = 0x6673_7665_7264_6963;
    for mut word in chunk.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word.write_all(&(mixed ^ (mixed >> 31)).to_le_bytes()).expect("a word has eight bytes");
    }
}

/// Makes every block of the image another, so that none can be stored once for all.
fn number_blocks(chunk: &mut [u8], at: u64) {
    for (index, block) in chunk.chunks_exact_mut(BLOCK_BYTES).enumerate() {
        let number = at / BLOCK_BYTES as u64 + index as u64;
        block[..8].copy_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::machine::token::Token;

    const SIZE_BYTES: u64 = (3 << 20) + 8192;

    fn own() -> (TempDir, Own) {
        let folder = TempDir::new().unwrap();
        let token = Token::random().unwrap();
        let own = Own::make(folder.path(), &token, 0o700, |_| Ok(())).unwrap();
        (folder, own)
    }

    fn refused(size_bytes: u64, progress: impl FnMut(u64) -> io::Result<()>) -> String {
        let (_folder, own) = own();
        let error = create(&own, c"1.img", size_bytes, progress).unwrap_err().to_string();
        assert!(!own.path().join("1.img").exists());
        error
    }

    #[test]
    fn an_image_is_full_of_blocks_that_differ() {
        let (_folder, own) = own();
        let mut heard = Vec::new();
        let hear = |bytes| {
            heard.push(bytes);
            Ok(())
        };
        let metadata = create(&own, c"1.img", SIZE_BYTES, hear).unwrap().metadata().unwrap();
        assert_eq!(heard, [1 << 20, 2 << 20, 3 << 20, SIZE_BYTES]);
        assert_eq!((metadata.len(), metadata.mode() & 0o777), (SIZE_BYTES, 0o600));
        assert!(metadata.blocks() * 512 >= SIZE_BYTES, "sparse: {} blocks", metadata.blocks());
        let bytes = fs::read(own.path().join("1.img")).unwrap();
        let blocks: std::collections::BTreeSet<&[u8]> = bytes.chunks(BLOCK_BYTES).collect();
        assert_eq!(blocks.len() as u64, SIZE_BYTES / BLOCK_BYTES as u64);
    }

    #[test]
    fn what_was_zeroed_beneath_is_written() {
        let (_folder, own) = own();
        let file = create(&own, c"1.img", SIZE_BYTES, |_| Ok(())).unwrap();
        assert_eq!(write_holes(&file).unwrap(), 0);
        let zero =
            |mode: i32, at: u64, bytes: u64| sys::allocate_range(file.as_fd(), mode, at, bytes);
        let zeroed = zero(libc::FALLOC_FL_ZERO_RANGE, 8192, 1 << 20);
        if zeroed.is_err_and(|it| it.raw_os_error() == Some(libc::EOPNOTSUPP)) {
            println!("the file system can't zero a range");
            return;
        }
        zero(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 3 << 20, 8192).unwrap();
        let path = own.path().join("1.img");
        let before = fs::read(&path).unwrap();
        // What is in the page cache counts as data.
        file.sync_all().unwrap();
        sys::advise(file.as_fd(), 0, 0, libc::POSIX_FADV_DONTNEED).unwrap();
        assert_eq!(write_holes(&file).unwrap(), (1 << 20) + 8192);
        assert_eq!(sys::next_data(file.as_fd(), 0).unwrap(), Some((0, SIZE_BYTES)));
        assert!(fs::read(&path).unwrap() == before);
    }

    #[test]
    fn no_room_is_said_before_anything_is_written() {
        let error = refused(1 << 60, |_| Ok(()));
        assert!(error.contains("free, the image needs"), "{error}");
        assert!(error.ends_with("for a study, a smaller --scale"), "{error}");
        let error = refused(1000, |_| Ok(()));
        assert!(error.contains("4 KiB"), "{error}");
    }

    #[test]
    fn an_image_that_is_called_off_is_removed() {
        refused(SIZE_BYTES, |_| Err(io::Error::from(io::ErrorKind::Interrupted)));
    }

    #[test]
    fn a_file_that_is_there_already_is_left_alone() {
        let (_folder, own) = own();
        let path = own.path().join("1.img");
        fs::write(&path, "precious").unwrap();
        create(&own, c"1.img", SIZE_BYTES, |_| Ok(())).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
