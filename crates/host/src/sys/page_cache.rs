//! What the page cache holds of a file.

use std::os::fd::RawFd;
use std::ptr;

/// Bytes of some pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// In the page cache.
    pub cached_bytes: u64,
    /// Of these, dirty or being written back.
    pub dirty_bytes: u64,
}

/// cachestat(2), since Linux 6.5; the same number on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// What is cached of the open file or device. Before Linux 6.5 dirty pages can't be recognised and
/// count as clean; unknown pages don't count.
pub fn cached(file: RawFd) -> Cached {
    cachestat(file).or_else(|| mincore(file)).unwrap_or_default()
}

fn cachestat(file: RawFd) -> Option<Cached> {
    let range = Range { offset: 0, length: 0 };
    let mut counts = Counts::default();
    // SAFETY: the kernel reads one range and writes one set of counts (mm/filemap.c); a length of
    // 0 means up to the end.
    let result =
        unsafe { libc::syscall(SYS_CACHESTAT, file, &raw const range, &raw mut counts, 0) };
    let page = page_bytes();
    (result == 0).then(|| Cached {
        cached_bytes: counts.cached * page,
        dirty_bytes: (counts.dirty + counts.writeback) * page,
    })
}

/// mincore(2) over a mapping of the whole file.
fn mincore(file: RawFd) -> Option<Cached> {
    // SAFETY: lseek takes numbers; the descriptor's offset is used by nobody.
    let end = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
    let length = usize::try_from(end).ok().filter(|&length| length > 0)?;
    let page = page_bytes();
    let mut resident = vec![0u8; length.div_ceil(page as usize)];
    // SAFETY: a new read-only mapping at a place of the kernel's choice.
    let start =
        unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping has this length, and there is a byte for each of its pages.
    let seen = unsafe { libc::mincore(start, length, resident.as_mut_ptr()) };
    // SAFETY: the mapping is ours and nothing points into it.
    unsafe { libc::munmap(start, length) };
    let pages = resident.iter().filter(|&&byte| byte & 1 == 1).count() as u64;
    (seen == 0).then_some(Cached { cached_bytes: pages * page, dirty_bytes: 0 })
}

/// Bytes of a page of memory.
pub fn page_bytes() -> u64 {
    // SAFETY: sysconf takes a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn both_ways_see_the_same_pages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 300_000]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let old = mincore(file.as_raw_fd()).unwrap();
        assert_eq!(old.cached_bytes, 300_000_u64.next_multiple_of(page_bytes()));
        if let Some(new) = cachestat(file.as_raw_fd()) {
            assert_eq!(new.cached_bytes, old.cached_bytes);
        }
    }
}
