//! Files in memory, as a replay has them there: mmap(2).
//!
//! If a file is shorter than its mapping, or its disk is full, a program that touches a page dies
//! (SIGBUS). So the kernel touches it for us: process_vm_readv(2) and process_vm_writev(2), on this
//! process itself, copy between the mapping and a buffer. The local side is read and written as by
//! a program, with the same page faults (mm/process_vm_access.c, `process_vm_rw_pages`), and gives
//! EFAULT where a program would die.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

use libc::{c_int, c_void};

use super::file::retried;
use super::page_bytes;

/// A file in memory. Nothing points into it: others may change it and cut it short.
#[derive(Debug)]
pub struct Mapped {
    start: NonNull<c_void>,
    /// In whole pages.
    bytes: usize,
}

// SAFETY: only the kernel reads and writes what lies there, for any number of threads.
unsafe impl Send for Mapped {}
// SAFETY: the same.
unsafe impl Sync for Mapped {}

fn too_far() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

fn whole(bytes: u64) -> io::Result<usize> {
    let whole = bytes.checked_next_multiple_of(page_bytes()).filter(|bytes| *bytes > 0);
    whole.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(too_far)
}

impl Mapped {
    /// `bytes` of a file from `place` on, for reading, and for writing if it `writes`: shared or
    /// private, not both, and perhaps populated at once. A private one is never written, because
    /// its pages would be memory of ours.
    pub fn new(
        file: BorrowedFd<'_>,
        place: u64,
        bytes: u64,
        flags: c_int,
        writes: bool,
    ) -> io::Result<Mapped> {
        let bytes = whole(bytes)?;
        let place = libc::off_t::try_from(place).map_err(|_| too_far())?;
        let kind = flags & (libc::MAP_SHARED | libc::MAP_PRIVATE);
        if flags & !(kind | libc::MAP_POPULATE) != 0 || kind.count_ones() != 1 {
            return Err(too_far());
        }
        let writes = writes && kind == libc::MAP_SHARED;
        let access = libc::PROT_READ | if writes { libc::PROT_WRITE } else { 0 };
        let fd = file.as_raw_fd();
        // SAFETY: a new mapping of a file at a place of the kernel's choice: no flag says another.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, fd, place) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start).ok_or_else(too_far)?;
        Ok(Mapped { start, bytes })
    }

    /// How long it is, in whole pages.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Where `bytes` from `place` on lie, as many as there are.
    fn range(&self, place: u64, bytes: u64) -> io::Result<(*mut c_void, usize)> {
        let place = usize::try_from(place).ok().filter(|place| *place < self.bytes);
        let place = place.ok_or_else(too_far)?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.bytes - place);
        // SAFETY: the place is within the mapping.
        Ok((unsafe { self.start.as_ptr().byte_add(place) }, bytes))
    }

    /// Reads from `place` on: how much of `buffer` was filled.
    #[inline]
    pub fn load(&self, place: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (start, bytes) = self.range(place, buffer.len() as u64)?;
        let local = libc::iovec { iov_base: start, iov_len: bytes };
        let remote = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: bytes };
        // SAFETY: the kernel reads the mapping and writes the buffer, which is as long at least and
        // which nobody else sees; both are this process's.
        let copied = retried(|| unsafe {
            let (local, remote) = (&raw const local, &raw const remote);
            libc::process_vm_writev(libc::getpid(), local, 1, remote, 1, 0) as i64
        })?;
        Ok(copied as usize)
    }

    /// Writes from `place` on: how much was taken. The file has it at once.
    #[inline]
    pub fn store(&self, place: u64, content: &[u8]) -> io::Result<usize> {
        let (start, bytes) = self.range(place, content.len() as u64)?;
        let local = libc::iovec { iov_base: start, iov_len: bytes };
        let remote = libc::iovec { iov_base: content.as_ptr().cast_mut().cast(), iov_len: bytes };
        // SAFETY: the kernel reads the content, which is as long at least, and writes to the
        // mapping, into which nothing points; both are this process's.
        let copied = retried(|| unsafe {
            let (local, remote) = (&raw const local, &raw const remote);
            libc::process_vm_readv(libc::getpid(), local, 1, remote, 1, 0) as i64
        })?;
        Ok(copied as usize)
    }

    /// msync(2).
    pub fn sync(&self, place: u64, bytes: u64, flags: c_int) -> io::Result<()> {
        let (start, bytes) = self.range(place, bytes)?;
        // SAFETY: the range is within the mapping.
        retried(|| unsafe { libc::msync(start, bytes, flags) }).map(drop)
    }

    /// madvise(2) with advice on when pages are read and let go.
    pub fn advise(&self, place: u64, bytes: u64, advice: c_int) -> io::Result<()> {
        let (start, bytes) = self.range(place, bytes)?;
        // SAFETY: the range is within the mapping, into which nothing points.
        retried(|| unsafe { libc::madvise(start, bytes, advice) }).map(drop)
    }

    /// Becomes so long: mremap(2).
    pub fn grow(&mut self, bytes: u64) -> io::Result<()> {
        let bytes = whole(bytes)?.max(self.bytes);
        let (start, before) = (self.start.as_ptr(), self.bytes);
        // SAFETY: the mapping is ours, has this length, and nothing points into it.
        let grown = || match unsafe { libc::mremap(start, before, bytes, libc::MREMAP_MAYMOVE) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(start),
        };
        let start = match grown() {
            // Parts that have advice of their own are several to the kernel, which takes one.
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                self.advise(0, before as u64, libc::MADV_NORMAL)?;
                grown()?
            }
            grown => grown?,
        };
        self.start = NonNull::new(start).ok_or_else(too_far)?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, has this length, and nothing points into it.
        unsafe { libc::munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn pages_are_read_and_written_and_no_page_beyond_the_end_is_deadly() {
        let page = page_bytes();
        let file = tempfile::tempfile().unwrap();
        file.set_len(page + 100).unwrap();
        file.write_all_at(b"here", page).unwrap();
        let mut mapped = Mapped::new(file.as_fd(), 0, 3 * page, libc::MAP_SHARED, true).unwrap();
        let mut buffer = vec![7; page as usize];
        assert_eq!(mapped.load(page, &mut buffer).unwrap(), page as usize);
        assert_eq!((&buffer[..4], buffer[4]), (&b"here"[..], 0));
        assert_eq!(mapped.store(0, b"first").unwrap(), 5);
        let mut begin = [0; 5];
        file.read_exact_at(&mut begin, 0).unwrap();
        assert_eq!(&begin, b"first");
        let beyond = mapped.load(2 * page, &mut buffer).unwrap_err();
        assert_eq!(beyond.raw_os_error(), Some(libc::EFAULT));
        let beyond = mapped.store(2 * page, b"x").unwrap_err();
        assert_eq!(beyond.raw_os_error(), Some(libc::EFAULT));
        for outside in [3 * page, u64::MAX] {
            assert!(mapped.load(outside, &mut buffer).is_err());
            assert!(mapped.sync(outside, 1, libc::MS_SYNC).is_err());
        }
        file.set_len(5 * page).unwrap();
        mapped.grow(5 * page).unwrap();
        assert_eq!(mapped.store(4 * page, &buffer).unwrap(), page as usize);
        mapped.sync(0, 5 * page, libc::MS_SYNC).unwrap();
        mapped.advise(0, page, libc::MADV_RANDOM).unwrap();
        let read = Mapped::new(file.as_fd(), 0, 1, libc::MAP_PRIVATE, false).unwrap();
        let denied = read.store(0, b"x").unwrap_err();
        assert_eq!(denied.raw_os_error(), Some(libc::EFAULT));
        let private = Mapped::new(file.as_fd(), 0, 1, libc::MAP_PRIVATE, true).unwrap();
        assert!(private.store(0, b"x").is_err(), "its page would be memory of ours");
        assert!(Mapped::new(file.as_fd(), 1, 1, libc::MAP_PRIVATE, false).is_err());
        let both = libc::MAP_SHARED | libc::MAP_PRIVATE;
        let (nobodys, placed) = (libc::MAP_ANONYMOUS, libc::MAP_FIXED_NOREPLACE);
        for flags in [0, both, libc::MAP_PRIVATE | nobodys, libc::MAP_SHARED | placed] {
            assert!(Mapped::new(file.as_fd(), 0, 1, flags, false).is_err(), "{flags:#x}");
        }
        assert!(Mapped::new(file.as_fd(), 0, 0, libc::MAP_PRIVATE, false).is_err());
    }
}
