//! Files in the memory of processes: mappings, and the page faults by which their pages come there.
//!
//! No call shows what a program reads and writes in a mapping; a page fault does, when a process
//! first touches a page. The kernel also maps cached pages around one that is read
//! (`filemap_map_pages` in mm/filemap.c), and a page that was written once may be written again
//! without a fault until it has been written back (`page_mkclean` in mm/rmap.c). So these are first
//! touches. A replay has all mappings in one process; one goes when no process has a piece of it.

use super::calls::Result;
use super::line::{Ended, Returned};
use super::memory::{Part, Pieces};
use super::order::Key;
use super::{Fault, Faults, Mapping, Translated, Watch, why};
use crate::model::{Action, Gave};

/// What of madvise(2) makes a difference to the file.
const ADVICE: [&str; 7] = [
    "MADV_NORMAL",
    "MADV_RANDOM",
    "MADV_SEQUENTIAL",
    "MADV_WILLNEED",
    "MADV_DONTNEED",
    "MADV_COLD",
    "MADV_PAGEOUT",
];

impl Watch {
    /// A thread met a page. Faults of threads that nobody traces are none of the command's.
    pub fn fault(&mut self, fault: &Fault) {
        let &Fault { thread, at_ns, address, writes } = fault;
        if !self.processes.knows(thread, &self.births) {
            return;
        }
        self.meet(thread);
        let page = self.wanted.page_bytes.max(1);
        let first = address - address % page;
        let Some((map, place)) = self.processes.mapped(thread, first) else { return };
        if self.mappings[map as usize].is_unclear {
            return;
        }
        self.touch(thread, at_ns, Part { map, place, bytes: page }, writes == Some(true));
    }

    /// Page faults that are not known.
    pub fn lost_faults(&mut self, count: u64) {
        if count > 0 {
            self.leave_out_several(why::FAULTS, count);
        }
    }

    /// Enters that pages were met. No order is kept among these: a page is there for all at once.
    fn touch(&mut self, thread: u32, at_ns: u64, part: Part, writes: bool) {
        let Part { map, place, bytes } = part;
        let of = &self.mappings[map as usize];
        // A copy of its own is a thread's memory, not the file.
        let writes = writes && of.is_shared;
        if let Some(Action::Map { writes: maps_to_write, .. }) =
            self.calls.get_mut(of.call).map(|call| &mut call.action)
        {
            *maps_to_write |= writes;
        }
        let lane = self.processes.lane(thread, at_ns, &mut self.order);
        // One within a call, which has been entered with its end.
        let at_ns = at_ns.max(self.order.all_of(lane).end_ns);
        let action = Action::Touch { map, place, bytes, writes };
        let keys = vec![(Key::Map(map), false), (Key::Content(of.node), false)];
        self.enter(thread, [at_ns; 2], Translated { action, gave: Gave::Unseen, keys });
    }

    /// Calls on the memory of the thread's process.
    pub(super) fn on_memory(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        match call.name {
            "mmap" => return self.mapped(thread, call),
            "mremap" => return self.moved(thread, call),
            "munmap" => {
                if call.succeeded() {
                    let (begin, end) = self.range(call)?;
                    self.unmapped(thread, call, begin, end);
                }
                return Ok(None);
            }
            _ => {}
        }
        let (begin, end) = self.range(call)?;
        let parts = self.processes.with_memory(thread, |memory| memory.within(begin, end));
        if parts.is_empty() || call.name == "mlock2" && call.has(2, "MLOCK_ONFAULT") {
            return Ok(None);
        }
        call.gave()?;
        if !call.succeeded() {
            return Err(why::UNSUPPORTED);
        }
        let flags = call.argument(2);
        for part in parts {
            let Part { map, place, bytes } = part;
            let Mapping { is_shared, node, .. } = self.mappings[map as usize];
            let (action, changes) = match (call.name, flags) {
                // Only what is shared is the file's (msync(2)).
                ("msync", _) if !is_shared => continue,
                ("msync", _) => (Action::SyncMap { map, place, bytes, flags: flags.into() }, true),
                // mm/gup.c, `populate_vma_page_range`: what is shared is only read.
                ("mlock" | "mlock2", _) | ("madvise", "MADV_POPULATE_READ") => {
                    self.touch(thread, call.end_ns, part, false);
                    continue;
                }
                (_, "MADV_POPULATE_WRITE") => {
                    self.touch(thread, call.end_ns, part, true);
                    continue;
                }
                (_, "MADV_REMOVE") => return Err(why::UNKNOWN),
                (_, advice) if !ADVICE.contains(&advice) => return Ok(None),
                (_, advice) => {
                    (Action::AdviseMap { map, place, bytes, advice: advice.into() }, false)
                }
            };
            let keys = vec![(Key::Map(map), false), (Key::Content(node), changes)];
            let gave = Gave::default();
            let times_ns = call.times_ns();
            self.enter(thread, times_ns, Translated { action, gave, keys });
        }
        Ok(None)
    }

    /// The addresses from the first argument on, as many as the second says, in whole pages.
    fn range(&self, call: &Ended) -> Result<(u64, u64)> {
        let (begin, bytes) = (call.number(0)?, call.number(1)?);
        Ok((begin, self.end(begin, bytes)))
    }

    fn end(&self, begin: u64, bytes: u64) -> u64 {
        let page = self.wanted.page_bytes.max(1);
        begin.saturating_add(bytes.checked_next_multiple_of(page).unwrap_or(u64::MAX))
    }

    fn mapped(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let is_file = call.argument(4) != "-1";
        let Returned::Value(begin, _) = call.returned else {
            // The application went on in another way.
            let is_ours = is_file && self.handle(thread, call.argument(4)).is_ok();
            return if is_ours { Err(why::UNSUPPORTED) } else { Ok(None) };
        };
        let (begin, bytes) = (begin.cast_unsigned(), call.number(1)?);
        let end = self.end(begin, bytes);
        self.unmapped(thread, call, begin, end);
        let handle = match self.handle(thread, call.argument(4)) {
            Ok(handle) if is_file => handle,
            Err(what) if is_file && what == why::PASSED => return Err(what),
            _ => return Ok(None),
        };
        let is_shared = call.argument(3).starts_with("MAP_SHARED");
        let (faults, node) = (self.wanted.faults, self.node(handle));
        let is_unclear = is_shared && call.has(2, "PROT_WRITE") && faults != Faults::Told;
        let (map, calls) = (self.mappings.len() as u32, self.calls.len());
        let mapping = Mapping { node, is_shared, is_unclear, bytes, pieces: 1, call: calls };
        self.mappings.push(mapping);
        self.processes.with_memory(thread, |memory| memory.enter(begin, end, map, 0));
        let mut flags = String::from(if is_shared { "MAP_SHARED" } else { "MAP_PRIVATE" });
        if call.has(3, "MAP_POPULATE") {
            flags += "|MAP_POPULATE";
        }
        let place = call.number(5)?;
        let action = Action::Map { handle, map, place, bytes, flags, writes: false };
        let mut keys = self.of_handle(handle, false, false);
        keys.push((Key::Map(map), true));
        let times_ns = call.times_ns();
        self.enter(thread, times_ns, Translated { action, gave: Gave::default(), keys });
        if is_unclear {
            self.leave_out_several(why::MAPPED_BYTES, bytes);
            return Err(why::MAPPED);
        }
        if faults == Faults::Unseen {
            self.touch(thread, call.end_ns, Part { map, place: 0, bytes }, false);
            return Err(why::MAPPED_WHOLE);
        }
        Ok(None)
    }

    /// A mapping is moved, and made longer or shorter: mremap(2).
    fn moved(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let Returned::Value(to, _) = call.returned else { return Ok(None) };
        let (from, before) = (call.number(0)?, call.number(1)?);
        let (to, bytes) = (to.cast_unsigned(), call.number(2)?);
        let (from_end, to_end) = (self.end(from, before), self.end(to, bytes));
        let moved = self.processes.mapped(thread, from);
        let gone = self.processes.with_memory(thread, |memory| {
            let mut gone = memory.clear(from, from_end);
            for (map, pieces) in memory.clear(to, to_end) {
                *gone.entry(map).or_default() += pieces;
            }
            if let Some((map, place)) = moved {
                memory.enter(to, to_end, map, place);
                *gone.entry(map).or_default() += 1;
            }
            gone
        });
        self.let_go(thread, call.times_ns(), gone);
        let Some((map, place)) = moved else { return Ok(None) };
        let of = &mut self.mappings[map as usize];
        let bytes = place.saturating_add(bytes);
        if bytes <= of.bytes {
            return Ok(None);
        }
        of.bytes = bytes;
        let action = Action::Grow { map, bytes };
        let keys = vec![(Key::Map(map), true)];
        Ok(Some(Translated { action, gave: Gave::default(), keys }))
    }

    fn unmapped(&mut self, thread: u32, call: &Ended, begin: u64, end: u64) {
        let gone = self.processes.with_memory(thread, |memory| memory.clear(begin, end));
        self.let_go(thread, call.times_ns(), gone);
    }

    /// So many pieces of mappings have come, or gone; with the last one a mapping goes.
    pub(super) fn let_go(&mut self, thread: u32, times_ns: [u64; 2], gone: Pieces) {
        for (map, pieces) in gone {
            let of = &mut self.mappings[map as usize];
            of.pieces += pieces;
            if of.pieces == 0 {
                let keys = vec![(Key::Map(map), true), (Key::Content(of.node), false)];
                let (action, gave) = (Action::Unmap { map }, Gave::default());
                self.enter(thread, times_ns, Translated { action, gave, keys });
            }
        }
    }
}
