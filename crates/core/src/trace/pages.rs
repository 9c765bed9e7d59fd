//! Pages of the kernel's ring buffer, as `trace_pipe_raw` gives them: kernel/trace/ring_buffer.c,
//! `struct buffer_data_page` and include/linux/ring_buffer.h, `enum ring_buffer_type`.

/// Where a page's length stands, and where its events begin.
const COMMIT: usize = 8;
const DATA: usize = 16;
/// The length of a page's events is in these bits of it (tools/lib/traceevent, `COMMIT_MASK`).
const LENGTH_MASK: u64 = (1 << 27) - 1;
/// Events before this page are missing (ring_buffer.c, `RB_MISSED_EVENTS`) …
const MISSED_EVENTS: u64 = 1 << 31;
/// … and their number follows the page's last event (`RB_MISSED_STORED`).
const MISSED_STORED: u64 = 1 << 30;

/// Kinds of records that are no event, in the lower five bits of their header.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The header has this many bits of a time; the word after it has the higher ones.
const DELTA_BITS: u32 = 27;
/// A time stamp has 59 bits; those above are the page's (`TS_MSB`).
const STAMP_BITS: u32 = 59;

/// One page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    data: &'a [u8],
    /// When it was begun.
    at_ns: u64,
    /// Events lost before it, where some are; 0 where their number is not known.
    pub missed: Option<u64>,
}

impl<'a> Page<'a> {
    /// The page in these bytes; `None` where they are none.
    pub fn of(bytes: &'a [u8]) -> Option<Page<'a>> {
        let at_ns = word(bytes, 0)?;
        let commit = word(bytes, COMMIT)?;
        let end = DATA + (commit & LENGTH_MASK) as usize;
        let data = bytes.get(DATA..end)?;
        let missed = (commit & MISSED_EVENTS != 0).then(|| match commit & MISSED_STORED != 0 {
            true => word(bytes, end).unwrap_or(0),
            false => 0,
        });
        Some(Page { data, at_ns, missed })
    }

    /// When its first event was, or it was begun.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The events of a page: when each was, and its bytes.
#[derive(Clone, Debug)]
pub struct Pages<'a> {
    rest: &'a [u8],
    at_ns: u64,
}

impl<'a> Pages<'a> {
    /// Those of `page`.
    pub fn events(page: Page<'a>) -> Pages<'a> {
        Pages { rest: page.data, at_ns: page.at_ns }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn half(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// The next record: an event's bytes, or none of what only tells the time. The time between two
    /// events counts where the second one was discarded, too (libtraceevent, kbuffer-parse.c).
    fn record(&mut self) -> Option<&'a [u8]> {
        let header = self.half()?;
        let (kind, delta_ns) = (header & 31, u64::from(header >> 5));
        let event = match kind {
            PADDING if delta_ns == 0 => return None,
            PADDING => {
                let length = self.half()? as usize;
                self.take(length.checked_sub(4)?)?;
                &[][..]
            }
            TIME_EXTEND => {
                self.at_ns = self.at_ns.wrapping_add(u64::from(self.half()?) << DELTA_BITS);
                &[]
            }
            TIME_STAMP => {
                let low = u64::from(self.half()?) << DELTA_BITS | delta_ns;
                let above = self.at_ns >> STAMP_BITS << STAMP_BITS;
                self.at_ns = above | low & ((1 << STAMP_BITS) - 1);
                return Some(&[]);
            }
            0 => {
                let length = (self.half()? as usize).checked_sub(4)?;
                self.take(length.next_multiple_of(4))?
            }
            words => self.take(words as usize * 4)?,
        };
        self.at_ns = self.at_ns.wrapping_add(delta_ns);
        Some(event)
    }
}

impl<'a> Iterator for Pages<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let event = self.record()?;
            if !event.is_empty() {
                return Some((self.at_ns, event));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(at_ns: u64, flags: u64, records: &[u32]) -> Vec<u8> {
        let mut bytes = at_ns.to_le_bytes().to_vec();
        bytes.extend((flags | (4 * records.len() as u64)).to_le_bytes());
        bytes.extend(records.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    fn times(bytes: &[u8]) -> Vec<(u64, usize)> {
        Pages::events(Page::of(bytes).unwrap()).map(|(at, event)| (at, event.len())).collect()
    }

    #[test]
    fn times_add_up_over_extensions_stamps_and_discarded_events() {
        let delta = |kind: u32, delta: u32| kind | delta << 5;
        let records = [
            delta(1, 10), // an event of a word after 10 ns
            7,
            delta(TIME_EXTEND, 5),
            2, // 2 << 27 and 5 ns
            delta(2, 1),
            7,
            7,
            delta(PADDING, 3),
            8, // a discarded one of 8 bytes
            0,
            delta(0, 1),
            12, // a long one: 8 bytes
            7,
            7,
            delta(TIME_STAMP, 9),
            1 << 4, // from here on it is 2^31 + 9
            delta(1, 1),
            7,
            delta(PADDING, 0), // nothing more
            delta(1, 1),
        ];
        let base = 1000 + 10 + (2 << 27) + 5 + 1;
        let expected = [(1010, 4), (base, 8), (base + 4, 8), ((1 << 31) + 10, 4)];
        assert_eq!(times(&page(1000, 0, &records)), expected);
    }

    #[test]
    fn what_was_missed_is_told() {
        let missed = |bytes: &[u8]| Page::of(bytes).unwrap().missed;
        assert_eq!(missed(&page(0, 0, &[])), None);
        assert_eq!(missed(&page(0, MISSED_EVENTS, &[])), Some(0));
        let mut counted = page(0, MISSED_EVENTS | MISSED_STORED, &[1 | 1 << 5, 7]);
        counted.extend(41u64.to_le_bytes());
        assert_eq!(missed(&counted), Some(41));
    }

    #[test]
    fn a_page_that_is_cut_off_ends_where_it_ends() {
        let whole = page(0, 0, &[1 | 1 << 5, 7, 1 | 1 << 5, 7]);
        assert!(Page::of(&whole[..20]).is_none());
        assert_eq!(times(&page(0, 0, &[1 | 1 << 5, 7, 3 | 1 << 5, 7])), [(1, 4)]);
        assert_eq!(times(&page(0, 0, &[1 << 5, 3])), [], "no event is that short");
    }
}
