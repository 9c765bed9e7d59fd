//! Files in memory: the calls of a replay on its mappings.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use fsverdict_core::model::Action;

use super::Shared;
use super::perform::{PreparedCall, Worker, closed};
use crate::sys::Mapped;

/// How many pages are met at once, where a call meets many: as much memory is set aside for them.
pub const TOUCHED_BYTES: u64 = 128 << 10;

/// How long all mappings may be together: an eighth of what a process has (on x86-64 128 TiB,
/// Documentation/arch/x86/x86_64/mm.rst); and how many there may be at once, half of what the
/// kernel allows by default (Documentation/admin-guide/sysctl/vm.rst, `max_map_count`). Beyond that
/// this program could not get memory of its own.
const MAPPED_BYTES_MOST: u64 = 1 << 44;
const MAPPED_MOST: u64 = 1 << 15;

/// What of that is taken.
#[derive(Debug, Default)]
pub struct Taken {
    bytes: AtomicU64,
    count: AtomicU64,
}

impl Taken {
    fn take(&self, bytes: u64, count: u64) -> io::Result<()> {
        let all = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let maps = self.count.fetch_add(count, Ordering::Relaxed) + count;
        if all <= MAPPED_BYTES_MOST && maps <= MAPPED_MOST {
            return Ok(());
        }
        self.give_back(bytes, count);
        Err(io::Error::from_raw_os_error(libc::ENOMEM))
    }

    fn give_back(&self, bytes: u64, count: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.count.fetch_sub(count, Ordering::Relaxed);
    }
}

impl Worker {
    /// Meets pages: how much of a mapping from `place` on was there, up to `bytes`. What the pages
    /// are written with is new each time.
    #[inline]
    pub(super) fn touch(
        &mut self,
        map: u32,
        [place, bytes]: [u64; 2],
        writes: bool,
        shared: &Shared,
    ) -> io::Result<u64> {
        let mapped = shared.maps[map as usize].read().unwrap_or_else(PoisonError::into_inner);
        let mapped = mapped.as_ref().ok_or_else(closed)?;
        let mut done = 0;
        while done < bytes {
            let now = (bytes - done).min(TOUCHED_BYTES);
            let place = place.saturating_add(done);
            let copied = match writes {
                true => mapped.store(place, self.pool.next(now as usize)),
                false => mapped.load(place, self.buffer.first(now as usize)),
            };
            match copied {
                // The file ends here.
                Err(_) if done > 0 => break,
                copied => done += copied? as u64,
            }
            if done % TOUCHED_BYTES != 0 {
                break;
            }
        }
        Ok(done)
    }
}

impl Shared {
    /// Calls on a mapping as a whole.
    pub(super) fn in_memory(&self, call: &PreparedCall) -> io::Result<()> {
        let flags = call.flags;
        let slot = |map: u32| &self.maps[map as usize];
        let with = |map: u32, call: &dyn Fn(&Mapped) -> io::Result<()>| {
            let mapped = slot(map).read().unwrap_or_else(PoisonError::into_inner);
            call(mapped.as_ref().ok_or_else(closed)?)
        };
        match call.action {
            Action::Map { handle, map, place, bytes, writes, .. } => {
                let mapped =
                    self.with(handle, |file| Mapped::new(file, place, bytes, flags, writes))?;
                self.taken.take(mapped.bytes(), 1)?;
                let before =
                    slot(map).write().unwrap_or_else(PoisonError::into_inner).replace(mapped);
                before.iter().for_each(|it| self.taken.give_back(it.bytes(), 1));
                Ok(())
            }
            Action::SyncMap { map, place, bytes, .. } => {
                with(map, &|mapped| mapped.sync(place, bytes, flags))
            }
            Action::AdviseMap { map, place, bytes, .. } => {
                with(map, &|mapped| mapped.advise(place, bytes, flags))
            }
            Action::Grow { map, bytes } => {
                let mut mapped = slot(map).write().unwrap_or_else(PoisonError::into_inner);
                let mapped = mapped.as_mut().ok_or_else(closed)?;
                let more = bytes.saturating_sub(mapped.bytes());
                self.taken.take(more, 0)?;
                let before = mapped.bytes();
                let grown = mapped.grow(bytes);
                // In whole pages, or not at all.
                self.taken.give_back(more, 0);
                self.taken.take(mapped.bytes() - before, 0).and(grown)
            }
            Action::Unmap { map } => {
                let mut mapped = slot(map).write().unwrap_or_else(PoisonError::into_inner);
                let mapped = mapped.take().ok_or_else(closed)?;
                self.taken.give_back(mapped.bytes(), 1);
                Ok(())
            }
            _ => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
        }
    }
}
