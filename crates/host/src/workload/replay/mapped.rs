//! Files in memory: the calls of a replay on its mappings.

use std::io;
use std::sync::PoisonError;

use fsverdict_core::model::Action;

use super::Shared;
use super::perform::{PreparedCall, Worker, closed};
use crate::sys::Mapped;

/// How many pages are met at once, where a call meets many: as much memory is set aside for them.
pub const TOUCHED_BYTES: u64 = 128 << 10;

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
                *slot(map).write().unwrap_or_else(PoisonError::into_inner) = Some(mapped);
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
                mapped.as_mut().ok_or_else(closed)?.grow(bytes)
            }
            Action::Unmap { map } => {
                let mut mapped = slot(map).write().unwrap_or_else(PoisonError::into_inner);
                mapped.take().map(drop).ok_or_else(closed)
            }
            _ => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
        }
    }
}
