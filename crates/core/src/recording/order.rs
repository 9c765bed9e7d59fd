//! Which calls of other threads a call has to wait for in a replay.
//!
//! Calls are seen in the order they ended. A call waits for earlier ones that it has something in
//! common with: an open file, the content of a file, a name, the entries of a directory; unless
//! both only read it. So each file keeps its own order, and calls without anything in common may
//! run at once (resource-oriented ordering: Weiss, Harter, Arpaci-Dusseau and Arpaci-Dusseau,
//! "ROOT: Replaying Multithreaded Traces with Resource-Oriented Ordering", SOSP 2013).
//!
//! It is unknown which of two calls that overlapped in time came first. For contents they are left
//! unordered: threads that write to one file at once do so again. For names and open files the one
//! that ended first goes first, because the other may depend on it. Either way a call waits only
//! for calls that ended before it did, so that no two wait for each other.

use std::collections::{BTreeMap, HashMap};

/// What calls may have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A file's or directory's content and attributes, by its node.
    Content(usize),
    /// A name: whether it exists and what it refers to.
    Name(u32),
    /// The names in a directory, by its own.
    Listing(u32),
    /// An open file: that it is open, and its offset.
    Handle(u32),
    /// A mapping: that it is there, and its length.
    Map(u32),
}

/// Calls of a thread that are to be done: how many, and when the last of them ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub lane: u32,
    pub calls: u64,
    pub end_ns: u64,
}

/// What a call waits for, and how long after that it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    pub waits: Vec<(u32, u64)>,
    pub pause_ns: u64,
}

/// A thread of the replay, which does the calls of one of the application's, and after its end
/// those of another.
#[derive(Debug, Default)]
struct Lane {
    taken: bool,
    calls: u64,
    end_ns: u64,
    /// How many calls of each other lane it has waited for.
    waited_for: Vec<u64>,
}

/// The calls of one lane that had a key: their ends, and which they were.
#[derive(Debug, Default)]
struct Uses {
    changes: Vec<(u64, u64)>,
    looks: Vec<(u64, u64)>,
}

/// The calls so far.
#[derive(Debug, Default)]
pub struct Order {
    begin_ns: u64,
    lanes: Vec<Lane>,
    uses: HashMap<Key, BTreeMap<u32, Uses>>,
    names: HashMap<String, u32>,
}

impl Order {
    /// The time that the first pauses are counted from.
    pub fn begin(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
    }

    /// How many threads the replay has.
    pub fn lanes(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// A lane for a thread whose first call began at `start_ns`.
    pub fn take(&mut self, start_ns: u64) -> u32 {
        let free = self.lanes.iter().position(|lane| !lane.taken && lane.end_ns <= start_ns);
        let place = free.unwrap_or_else(|| {
            let end_ns = self.begin_ns;
            self.lanes.push(Lane { end_ns, ..Lane::default() });
            self.lanes.len() - 1
        });
        self.lanes[place].taken = true;
        place as u32
    }

    /// The thread has ended.
    pub fn release(&mut self, lane: u32) {
        self.lanes[lane as usize].taken = false;
    }

    /// All calls of the lane so far.
    pub fn all_of(&self, lane: u32) -> Need {
        let Lane { calls, end_ns, .. } = self.lanes[lane as usize];
        Need { lane, calls, end_ns }
    }

    /// The number of a name.
    pub fn name(&mut self, name: &str) -> u32 {
        let next = self.names.len() as u32;
        *self.names.entry(name.into()).or_insert(next)
    }

    /// Enters the next call, with what it has in common with others and whether it changes that,
    /// and what it needs besides.
    pub fn enter(
        &mut self,
        lane: u32,
        [start_ns, end_ns]: [u64; 2],
        keys: &[(Key, bool)],
        needs: &[Need],
    ) -> Waits {
        let mut needed: BTreeMap<u32, u64> = BTreeMap::new();
        let mut ready_ns = self.lanes[lane as usize].end_ns;
        let of_keys = keys.iter().flat_map(|(key, changes)| self.before(*key, *changes, start_ns));
        for need in needs.iter().copied().chain(of_keys).filter(|need| need.lane != lane) {
            let calls = needed.entry(need.lane).or_default();
            *calls = need.calls.max(*calls);
            ready_ns = ready_ns.max(need.end_ns);
        }
        let lanes = self.lanes.len();
        let own = &mut self.lanes[lane as usize];
        own.waited_for.resize(lanes, 0);
        needed.retain(|&other, calls| *calls > own.waited_for[other as usize]);
        for (&other, &calls) in &needed {
            own.waited_for[other as usize] = calls;
        }
        own.calls += 1;
        own.end_ns = end_ns;
        let this = (end_ns, own.calls);
        for (key, changes) in keys {
            let uses = self.uses.entry(*key).or_default().entry(lane).or_default();
            let list = if *changes { &mut uses.changes } else { &mut uses.looks };
            // Only for contents does it matter when an earlier one ended.
            if !matches!(key, Key::Content(_)) {
                list.clear();
            }
            list.push(this);
        }
        let waits = needed.into_iter().collect();
        Waits { waits, pause_ns: start_ns.saturating_sub(ready_ns) }
    }

    /// The last calls of each lane that a call with `key` now has to wait for.
    fn before(&self, key: Key, changes: bool, start_ns: u64) -> impl Iterator<Item = Need> {
        let limit_ns = if matches!(key, Key::Content(_)) { start_ns } else { u64::MAX };
        let last = move |uses: &[(u64, u64)]| {
            let count = uses.partition_point(|(end_ns, _)| *end_ns <= limit_ns);
            count.checked_sub(1).map(|last| uses[last])
        };
        let lanes = self.uses.get(&key).into_iter().flatten();
        lanes.flat_map(move |(&lane, uses)| {
            let looks = changes.then(|| last(&uses.looks)).flatten();
            let needs = last(&uses.changes).into_iter().chain(looks);
            needs.map(move |(end_ns, calls)| Need { lane, calls, end_ns })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: Key = Key::Content(1);
    const NAME: Key = Key::Name(1);

    fn two_lanes() -> (Order, u32, u32) {
        let mut order = Order::default();
        let (one, other) = (order.take(0), order.take(0));
        (order, one, other)
    }

    #[test]
    fn one_who_reads_waits_for_the_writer_and_readers_for_no_one() {
        let (mut order, one, other) = two_lanes();
        order.enter(one, [0, 10], &[(CONTENT, false)], &[]);
        let reads = order.enter(other, [15, 20], &[(CONTENT, false)], &[]);
        assert_eq!(reads, Waits { waits: vec![], pause_ns: 15 });
        order.enter(one, [20, 30], &[(CONTENT, true)], &[]);
        let after = order.enter(other, [34, 40], &[(CONTENT, false)], &[]);
        assert_eq!(after, Waits { waits: vec![(one, 2)], pause_ns: 4 });
        let again = order.enter(other, [40, 50], &[(CONTENT, false)], &[]);
        assert_eq!(again.waits, [], "it has waited for that already");
        let writes = order.enter(one, [60, 70], &[(CONTENT, true)], &[]);
        assert_eq!(writes, Waits { waits: vec![(other, 3)], pause_ns: 10 });
    }

    #[test]
    fn contents_may_be_written_at_once_and_names_have_an_order() {
        let (mut order, one, other) = two_lanes();
        order.enter(one, [0, 10], &[(CONTENT, true), (NAME, true)], &[]);
        order.enter(one, [20, 30], &[(CONTENT, true), (NAME, true)], &[]);
        let content = order.enter(other, [15, 40], &[(CONTENT, true)], &[]);
        assert_eq!(content, Waits { waits: vec![(one, 1)], pause_ns: 5 });
        let name = order.enter(other, [25, 50], &[(NAME, false)], &[]);
        assert_eq!(name, Waits { waits: vec![(one, 2)], pause_ns: 0 });
    }

    #[test]
    fn a_lane_is_taken_again_by_one_who_comes_later() {
        let (mut order, one, other) = two_lanes();
        order.enter(one, [5, 10], &[], &[]);
        order.release(one);
        assert_eq!(order.take(9), 2, "it began before the other had ended");
        assert_eq!(order.take(10), one);
        let need = order.all_of(one);
        let child = order.enter(other, [30, 40], &[], &[need]);
        assert_eq!(child, Waits { waits: vec![(one, 1)], pause_ns: 20 });
        assert_eq!(order.lanes(), 3);
    }
}
