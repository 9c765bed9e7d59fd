//! Requests, put together of what happened to them.

use std::collections::{BTreeMap, VecDeque};

use super::events::{Block, Event, EventKind, Process};
use crate::model::trace::{Entry, Flags, Item, Lost, Mark, Op};

/// So many requests may be under way. What is older and has not ended is handed over as it is: its
/// end was lost.
const UNDER_WAY_MAX: usize = 1 << 16;

/// The place of a request or a part of one: the device and its sector.
type Place = (u32, u64);

/// Something that the file system has asked for, and the device not been given yet.
struct Queued {
    at_ns: u64,
    sectors: u32,
    flags: Flags,
    process: Process,
}

/// A line of the log to be, in the order in which devices were given requests.
struct Slot {
    /// `None` where the request has been given to the device once more, and stands further below.
    item: Option<Item>,
    /// Sectors that have not been done yet; of a flush 1.
    left: u32,
}

/// Makes a log of events that come in the order of time.
pub struct Assembler {
    /// The devices' numbers within the kernel.
    devices: Vec<u32>,
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u64,
    /// The slots of requests under way, by what of them is to be done next.
    issued: BTreeMap<Place, u64>,
    /// Those of flushes.
    flushes: BTreeMap<u32, VecDeque<u64>>,
    queued: BTreeMap<Place, Queued>,
    /// The last process that asked for something to be durable.
    flusher: BTreeMap<u32, Process>,
}

impl Assembler {
    /// Of requests of the devices with these numbers, `[major, minor]`.
    pub fn new(devices: &[[u32; 2]]) -> Assembler {
        Assembler {
            // include/linux/kdev_t.h: MINORBITS is 20.
            devices: devices.iter().map(|[major, minor]| major << 20 | minor).collect(),
            slots: VecDeque::new(),
            first: 0,
            issued: BTreeMap::new(),
            flushes: BTreeMap::new(),
            queued: BTreeMap::new(),
            flusher: BTreeMap::new(),
        }
    }

    /// Takes an event, and gives what has ended with it.
    pub fn take(&mut self, event: Event) -> impl Iterator<Item = Item> {
        let Event { at_ns, kind } = event;
        match kind {
            EventKind::Queue(block) => self.queue(at_ns, &block),
            EventKind::Issue(block) => self.issue(at_ns, &block),
            EventKind::Complete(block) => self.complete(at_ns, &block),
            EventKind::Mark(mark) => self.add(Item::Mark(Mark { at_ns, mark }), 0),
            EventKind::Lost(lost) => {
                self.forget();
                self.add(Item::Lost(Lost { at_ns, lost }), 0);
            }
        }
        let ended = std::iter::from_fn(|| {
            let is_ended = self.slots.front()?.left == 0;
            (is_ended || self.slots.len() > UNDER_WAY_MAX).then(|| self.end_first())
        });
        ended.flatten()
    }

    /// What is still under way.
    pub fn finish(self) -> impl Iterator<Item = Item> {
        self.slots.into_iter().filter_map(|slot| slot.item)
    }

    fn end_first(&mut self) -> Option<Item> {
        let slot = self.slots.pop_front()?;
        self.first += 1;
        slot.item
    }

    /// The ends of requests under way may have been lost: they are handed over as they are, and no
    /// later event counts for them.
    fn forget(&mut self) {
        self.issued.clear();
        self.flushes.clear();
        self.queued.clear();
        self.slots.iter_mut().for_each(|slot| slot.left = 0);
    }

    fn add(&mut self, item: Item, left: u32) {
        self.slots.push_back(Slot { item: Some(item), left });
    }

    fn queue(&mut self, at_ns: u64, block: &Block) {
        let Block { dev, sector, sectors, flags, process, .. } = *block;
        if flags.preflush || flags.fua || block.op == Op::Flush {
            self.flusher.insert(dev, process);
        }
        // A write of no length is only its preflush.
        if sectors > 0 {
            self.queued.insert((dev, sector), Queued { at_ns, sectors, flags, process });
            if self.queued.len() > UNDER_WAY_MAX {
                self.queued.pop_first();
            }
        }
    }

    fn issue(&mut self, at_ns: u64, block: &Block) {
        let Some(device) = self.devices.iter().position(|dev| *dev == block.dev) else { return };
        let number = self.first + self.slots.len() as u64;
        let mut entry = Entry {
            device: device as u32,
            sector: block.sector,
            sectors: block.sectors,
            flags: block.flags,
            issue_ns: Some(at_ns),
            ..Entry::of(block.op)
        };
        if block.op == Op::Flush {
            self.flushes.entry(block.dev).or_default().push_back(number);
            entry.process = text_of(self.flusher.get(&block.dev).unwrap_or(&block.process));
            self.add(Item::Entry(entry), 1);
            return;
        }
        let place = (block.dev, block.sector);
        let before = self.issued.get(&place).copied();
        if let Some(slot) = before.and_then(|number| self.slot(number)) {
            let left = std::mem::take(&mut slot.left);
            let is_same = |it: &Entry| it.op == block.op && it.sectors == block.sectors;
            match slot.item.take() {
                // The device would not take it, and is given it once more.
                Some(Item::Entry(before)) if is_same(&before) => {
                    self.issued.insert(place, number);
                    self.add(Item::Entry(Entry { issue_ns: Some(at_ns), ..before }), left);
                    return;
                }
                // Another one, whose end can't be told from that of the first.
                other => slot.item = other,
            }
        }
        self.join(&mut entry, block);
        self.issued.insert(place, number);
        self.add(Item::Entry(entry), block.sectors);
    }

    /// What the file system had asked for becomes part of the request.
    fn join(&mut self, entry: &mut Entry, block: &Block) {
        let end = block.sector.saturating_add(u64::from(block.sectors));
        let within = (block.dev, block.sector)..(block.dev, end);
        let mut process = block.process;
        let next = |queued: &BTreeMap<Place, Queued>| {
            queued.range(within.clone()).next().map(|(place, _)| *place)
        };
        while let Some(place) = next(&self.queued) {
            let Some(mut queued) = self.queued.remove(&place) else { continue };
            if entry.submit_ns.is_none() {
                process = queued.process;
            }
            let earliest = entry.submit_ns.map_or(queued.at_ns, |at| at.min(queued.at_ns));
            entry.submit_ns = Some(earliest);
            entry.asked.preflush |= queued.flags.preflush;
            entry.asked.fua |= queued.flags.fua;
            entry.bios += 1;
            // A split request goes on in the next one.
            let beyond = place.1.saturating_add(queued.sectors.into()).saturating_sub(end);
            if beyond > 0 {
                queued.sectors = u32::try_from(beyond).unwrap_or(u32::MAX);
                self.queued.insert((block.dev, end), queued);
            }
        }
        entry.process = text_of(&process);
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let place = number.checked_sub(self.first)?;
        self.slots.get_mut(usize::try_from(place).ok()?)
    }

    fn complete(&mut self, at_ns: u64, block: &Block) {
        let Block { dev, sector, sectors, op, .. } = *block;
        if op == Op::Flush {
            let number = self.flushes.get_mut(&dev).and_then(VecDeque::pop_front);
            if let Some(slot) = number.and_then(|number| self.slot(number)) {
                slot.end(1, at_ns);
            }
            return;
        }
        // One without length ends a write with its flushes, and is no request to the device.
        if sectors == 0 {
            return;
        }
        let Some(number) = self.issued.remove(&(dev, sector)) else { return };
        let Some(slot) = self.slot(number) else { return };
        slot.end(sectors, at_ns);
        if slot.left > 0 {
            self.issued.insert((dev, sector.saturating_add(u64::from(sectors))), number);
        }
    }
}

impl Slot {
    fn end(&mut self, sectors: u32, at_ns: u64) {
        self.left = self.left.saturating_sub(sectors);
        if let Some(Item::Entry(entry)) = &mut self.item {
            entry.complete_ns = Some(at_ns);
        }
    }
}

fn text_of(process: &Process) -> String {
    let name = process.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: u32 = 7 << 20 | 1;

    fn block(sector: u64, sectors: u32, op: Op) -> Block {
        let mut process = Process::default();
        process[..2].copy_from_slice(b"dd");
        Block { dev: DEV, sector, sectors, op, flags: Flags::default(), process }
    }

    fn log(events: Vec<EventKind>) -> Vec<Item> {
        let mut assembler = Assembler::new(&[[7, 1]]);
        let mut items = Vec::new();
        for (at_ns, kind) in (1..).zip(events) {
            items.extend(assembler.take(Event { at_ns, kind }));
        }
        items.extend(assembler.finish());
        items
    }

    fn entries(events: Vec<EventKind>) -> Vec<Entry> {
        let entry = |item| if let Item::Entry(entry) = item { Some(entry) } else { None };
        log(events).into_iter().filter_map(entry).collect()
    }

    use EventKind::{Complete, Issue, Queue};

    #[test]
    fn parts_that_were_merged_are_one_request() {
        let found = entries(vec![
            Queue(block(8, 8, Op::Write)),
            Queue(block(0, 8, Op::Write)),
            Issue(block(0, 16, Op::Write)),
            Complete(block(0, 8, Op::Write)),
            Complete(block(8, 8, Op::Write)),
        ]);
        let [entry] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((entry.sector, entry.sectors, entry.bios), (0, 16, 2));
        let times = (entry.submit_ns, entry.issue_ns, entry.complete_ns);
        assert_eq!(times, (Some(1), Some(3), Some(5)));
        assert_eq!(entry.process, "dd");
    }

    #[test]
    fn a_part_that_was_split_is_asked_for_once() {
        let found = entries(vec![
            Queue(block(0, 16, Op::Write)),
            Issue(block(0, 8, Op::Write)),
            Issue(block(8, 8, Op::Write)),
        ]);
        let submitted: Vec<_> = found.iter().map(|entry| (entry.submit_ns, entry.bios)).collect();
        assert_eq!(submitted, [(Some(1), 1); 2]);
        assert!(found.iter().all(|entry| entry.complete_ns.is_none()), "the trace ended before");
    }

    #[test]
    fn a_durable_write_is_a_flush_a_write_and_a_flush() {
        let flags = Flags { preflush: true, fua: true, ..Flags::default() };
        let found = entries(vec![
            Queue(Block { flags, ..block(64, 8, Op::Write) }),
            Issue(block(0, 0, Op::Flush)),
            Complete(block(0, 0, Op::Flush)),
            Issue(block(64, 8, Op::Write)),
            Complete(block(64, 8, Op::Write)),
            Issue(block(0, 0, Op::Flush)),
            Complete(block(0, 0, Op::Flush)),
            Complete(block(64, 0, Op::Write)),
        ]);
        let ops: Vec<Op> = found.iter().map(|entry| entry.op).collect();
        assert_eq!(ops, [Op::Flush, Op::Write, Op::Flush]);
        let times: Vec<_> = found.iter().map(|entry| entry.complete_ns.unwrap()).collect();
        assert_eq!(times, [3, 5, 7]);
        assert_eq!((found[1].asked, found[1].flags), (flags, Flags::default()));
    }

    #[test]
    fn requests_stand_in_the_order_in_which_the_device_was_given_them() {
        let items = log(vec![
            Issue(block(0, 8, Op::Write)),
            EventKind::Mark("fsync 12".into()),
            Issue(block(80, 8, Op::Write)),
            Complete(block(80, 8, Op::Write)),
            EventKind::Lost(3),
            Issue(block(0, 8, Op::Write)),
            Complete(block(0, 8, Op::Write)),
            Complete(block(400, 8, Op::Write)),
        ]);
        let told: Vec<String> = items
            .iter()
            .map(|item| match item {
                Item::Entry(entry) => format!("{} at {:?}", entry.sector, entry.issue_ns),
                Item::Mark(mark) => mark.mark.clone(),
                Item::Lost(lost) => format!("{} lost", lost.lost),
            })
            .collect();
        assert_eq!(told, ["0 at Some(1)", "fsync 12", "80 at Some(3)", "3 lost", "0 at Some(6)"]);
    }

    #[test]
    fn what_the_device_would_not_take_stands_where_it_was_given_again() {
        let found = entries(vec![
            Queue(block(0, 8, Op::Write)),
            Issue(block(0, 8, Op::Write)),
            Issue(block(80, 8, Op::Write)),
            Issue(block(0, 8, Op::Write)),
            Complete(block(0, 8, Op::Write)),
            Complete(block(80, 8, Op::Write)),
        ]);
        let told: Vec<_> =
            found.iter().map(|it| (it.sector, it.submit_ns, it.issue_ns, it.complete_ns)).collect();
        let first = (80, None, Some(3), Some(6));
        assert_eq!(told, [first, (0, Some(1), Some(4), Some(5))]);
    }

    #[test]
    fn two_requests_that_begin_at_one_sector_are_two() {
        let found = entries(vec![
            Issue(block(0, 8, Op::Write)),
            Issue(block(0, 16, Op::Read)),
            Complete(block(0, 16, Op::Read)),
            Issue(block(0, 8, Op::Write)),
            Issue(block(0, 24, Op::Write)),
        ]);
        let told: Vec<_> = found.iter().map(|it| (it.op, it.sectors, it.complete_ns)).collect();
        let expected = [
            (Op::Write, 8, None),
            (Op::Read, 16, Some(3)),
            (Op::Write, 8, None),
            (Op::Write, 24, None),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn other_disks_are_not_in_it() {
        let other = Block { dev: 8 << 20, ..block(0, 8, Op::Write) };
        assert_eq!(log(vec![Queue(other), Issue(other), Complete(other)]), []);
    }

    #[test]
    fn ends_that_were_lost_hold_nothing_back_for_ever() {
        let mut assembler = Assembler::new(&[[7, 1]]);
        let mut ended = 0;
        for number in 0..UNDER_WAY_MAX as u64 + 10 {
            let kind = Issue(block(number * 8, 8, Op::Write));
            ended += assembler.take(Event { at_ns: number, kind }).count();
        }
        assert_eq!(ended, 10);
    }
}
