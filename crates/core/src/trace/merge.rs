//! The buffers of all processors as one series of events, in the order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, ErrorKind, Read};

use super::events::{Event, EventKind, Formats};
use super::pages::{Page, Pages};

/// Things of one processor, in the order of time.
pub(super) trait Source {
    type Item;
    type Error;

    /// The next one, and when it was.
    fn next(&mut self) -> Result<Option<(u64, Self::Item)>, Self::Error>;
}

/// Hands over what all of them have, in the order of time.
pub(super) fn in_order<S: Source>(
    sources: &mut [S],
    each: &mut dyn FnMut(S::Item) -> Result<(), S::Error>,
) -> Result<(), S::Error> {
    let mut fronts = Vec::new();
    let mut next = BinaryHeap::new();
    for (number, source) in sources.iter_mut().enumerate() {
        let front = source.next()?;
        next.extend(front.as_ref().map(|(at_ns, _)| Reverse((*at_ns, number))));
        fronts.push(front.map(|(_, item)| item));
    }
    while let Some(Reverse((_, number))) = next.pop() {
        // One that is in the heap has a front.
        let Some(item) = fronts[number].take() else { continue };
        each(item)?;
        if let Some((at_ns, item)) = sources[number].next()? {
            fronts[number] = Some(item);
            next.push(Reverse((at_ns, number)));
        }
    }
    Ok(())
}

/// The events of one processor.
struct Stream<'a, R> {
    reader: R,
    formats: &'a Formats,
    page: Vec<u8>,
    /// Those of the page that was read last, in the order of time.
    events: VecDeque<Event>,
}

impl<R: Read> Stream<'_, R> {
    /// Reads pages until one has an event, or there are no more.
    fn fill(&mut self) -> io::Result<()> {
        while self.events.is_empty() && self.read_page()? {
            let Some(page) = Page::of(&self.page) else { continue };
            if let Some(count) = page.missed {
                let (at_ns, kind) = (page.at_ns(), EventKind::Lost(count));
                self.events.push_back(Event { at_ns, kind });
            }
            let records = Pages::events(page);
            self.events.extend(records.filter_map(|(at, record)| self.formats.event(at, record)));
        }
        Ok(())
    }

    /// A page that is not whole was being written when the recorder was killed.
    fn read_page(&mut self) -> io::Result<bool> {
        match self.reader.read_exact(&mut self.page) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            done => done.map(|()| true),
        }
    }
}

impl<R: Read> Source for Stream<'_, R> {
    type Item = Event;
    type Error = io::Error;

    fn next(&mut self) -> io::Result<Option<(u64, Event)>> {
        self.fill()?;
        Ok(self.events.pop_front().map(|event| (event.at_ns, event)))
    }
}

/// Hands over the events of all processors, whose pages of `page_bytes` the readers give.
pub fn merge<R: Read>(
    readers: impl IntoIterator<Item = R>,
    page_bytes: usize,
    formats: &Formats,
    each: &mut dyn FnMut(Event) -> io::Result<()>,
) -> io::Result<()> {
    let of = |reader| {
        let (page, events) = (vec![0; page_bytes], VecDeque::new());
        Stream { reader, formats, page, events }
    };
    let mut streams: Vec<Stream<R>> = readers.into_iter().map(of).collect();
    in_order(&mut streams, each)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Assembler, Between, Operations, page_bytes};
    use super::*;
    use crate::model::trace::{Entry, Item, Op};

    /// Recorded on Linux 6.18 from ext4 on a loop device: three times four files written, a fifth
    /// written and synced, and then all of them.
    const CPUS: [&[u8]; 2] = [
        include_bytes!("../../tests/trace/cpu0.pages"),
        include_bytes!("../../tests/trace/cpu1.pages"),
    ];
    const FORMATS: [&str; 6] = [
        include_str!("../../tests/trace/block_bio_queue.format"),
        include_str!("../../tests/trace/block_rq_issue.format"),
        include_str!("../../tests/trace/block_rq_complete.format"),
        include_str!("../../tests/trace/ext4_sync_file_enter.format"),
        include_str!("../../tests/trace/jbd2_start_commit.format"),
        include_str!("../../tests/trace/print.format"),
    ];

    fn recorded() -> (Vec<u64>, Vec<Item>) {
        decoded(CPUS)
    }

    fn decoded(cpus: [&[u8]; 2]) -> (Vec<u64>, Vec<Item>) {
        let formats = Formats::of(FORMATS).unwrap();
        let page = page_bytes(include_str!("../../tests/trace/header_page")).unwrap();
        let mut assembler = Assembler::new(&[[7, 1]]);
        let (mut times, mut items) = (Vec::new(), Vec::new());
        merge(cpus, page, &formats, &mut |event| {
            times.push(event.at_ns);
            items.extend(assembler.take(event));
            Ok(())
        })
        .unwrap();
        items.extend(assembler.finish());
        (times, items)
    }

    proptest! {
        #[test]
        fn no_page_has_more_events_than_words(
            changes in prop::collection::vec((0..8192_usize, any::<u8>()), 0..64),
            length in 0..8192_usize,
        ) {
            let mut damaged = CPUS[0].to_vec();
            changes.iter().for_each(|(at, byte)| damaged[*at] = *byte);
            let (times, _) = decoded([&damaged[..length], CPUS[1]]);
            prop_assert!(times.len() <= 2 * 8192 / 4);
        }
    }

    #[test]
    fn events_of_all_processors_are_one_series() {
        let (times, items) = recorded();
        assert!(times.is_sorted() && times.len() > 150, "{}", times.len());
        let marks: Vec<&str> = items
            .iter()
            .filter_map(|item| if let Item::Mark(mark) = item { Some(&*mark.mark) } else { None })
            .collect();
        let expected = ["a", "b", "ext4_sync_file_enter 16", "jbd2_start_commit 2", "c"];
        assert_eq!(marks[..5], expected);
        assert!(!items.iter().any(|item| matches!(item, Item::Lost(_))));
    }

    #[test]
    fn a_recorded_fsync_is_data_journal_flush_commit_flush() {
        let (_, items) = recorded();
        // The events of its end were not recorded for this test: the script's own mark has to do.
        let items = items.into_iter().map(|item| match item {
            Item::Mark(mut mark) if mark.mark == "c" => {
                mark.mark = "ext4_sync_file_exit 16".into();
                Item::Mark(mark)
            }
            item => item,
        });
        let mut operations = Operations::new(Between::EXT4_FSYNC);
        let first = items.filter_map(|item| operations.take(item)).next().unwrap();
        let written = |entry: &&Entry| entry.op != Op::Read;
        let told: Vec<String> = first
            .entries
            .iter()
            .filter(written)
            .map(|it| format!("{:?} {}+{} {}", it.op, it.sector, it.sectors, it.process))
            .collect();
        let journal = "jbd2/loop1-8";
        assert_eq!(
            told,
            [
                "Write 266240+8 dd".into(),
                format!("Write 524288+8 {journal}"),
                format!("Write 524296+56 {journal}"),
                format!("Flush 0+0 {journal}"),
                format!("Write 524352+8 {journal}"),
                format!("Flush 0+0 {journal}"),
            ]
        );
        let commit = &first.entries.iter().rfind(|entry| entry.op == Op::Write).unwrap();
        assert!(commit.asked.preflush && commit.asked.fua && !commit.flags.fua);
        let times = (commit.submit_ns, commit.issue_ns, commit.complete_ns);
        assert!(times.0 < times.1 && times.1 < times.2, "{times:?}");
    }
}
