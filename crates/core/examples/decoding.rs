//! What decoding a recording costs: pages that a kernel wrote, over and over, as two processors
//! would have filled them.
//!
//! `decoding PAGES` decodes so many from each and prints how many events they had; who runs it
//! takes the time, for `bench/trace`.

use std::error::Error;
use std::io::{self, Read};

use fsverdict_core::model::trace::Account;
use fsverdict_core::model::trace::Item;
use fsverdict_core::trace::{self, Assembler, Formats};

const PAGE_BYTES: usize = 4096;
/// Longer than what the recorded pages are of.
const LAP_NS: u64 = 1 << 30;

const CPUS: [&[u8]; 2] =
    [include_bytes!("../tests/trace/cpu0.pages"), include_bytes!("../tests/trace/cpu1.pages")];
const FORMATS: [&str; 6] = [
    include_str!("../tests/trace/block_bio_queue.format"),
    include_str!("../tests/trace/block_rq_issue.format"),
    include_str!("../tests/trace/block_rq_complete.format"),
    include_str!("../tests/trace/ext4_sync_file_enter.format"),
    include_str!("../tests/trace/jbd2_start_commit.format"),
    include_str!("../tests/trace/print.format"),
];

/// Pages again and again, each lap later than the one before.
struct Laps {
    pages: Vec<Vec<u8>>,
    next: usize,
    left: usize,
}

impl Laps {
    fn of(recorded: &[u8], pages: usize) -> Laps {
        let recorded = recorded.chunks_exact(PAGE_BYTES).map(<[u8]>::to_vec).collect();
        Laps { pages: recorded, next: 0, left: pages }
    }
}

impl Read for Laps {
    /// Is asked for a page at a time.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let page = &mut self.pages[self.next];
        into[..PAGE_BYTES].copy_from_slice(page);
        let at_ns = u64::from_le_bytes(page[..8].try_into().expect("eight bytes"));
        page[..8].copy_from_slice(&(at_ns + LAP_NS).to_le_bytes());
        self.next = (self.next + 1) % self.pages.len();
        self.left -= 1;
        Ok(PAGE_BYTES)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let pages: usize = std::env::args().nth(1).ok_or("usage: decoding PAGES")?.parse()?;
    let formats = Formats::of(FORMATS)?;
    let mut assembler = Assembler::new(&[[7, 1]]);
    let (mut events, mut account) = (0_u64, Account::default());
    let readers = CPUS.map(|recorded| Laps::of(recorded, pages));
    trace::merge(readers, PAGE_BYTES, &formats, &mut |event| {
        events += 1;
        for item in assembler.take(event) {
            if let Item::Entry(entry) = &item {
                account.take(entry);
            }
        }
        Ok(())
    })?;
    assert!(account.writes > 0);
    println!("{events}");
    Ok(())
}
