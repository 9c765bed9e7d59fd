//! A journal made by hand: every form of tag, revokes, fast commits, the ring's end.

use std::io;

use super::fast_commit::UNTOLD;
use super::inode::Extent;
use super::journal::Log;
use crate::blocks::bytes::ReadAt;
use crate::blocks::what::{Journal, What};
use crate::blocks::{Map, Piece};

const BLOCK: usize = 1024;
/// The journal of the tests lies in two runs: blocks 0 to 7 at 100, 8 to 15 at 50.
const RUNS: [Extent; 2] = [
    Extent { logical: 0, physical: 100, blocks: 8 },
    Extent { logical: 8, physical: 50, blocks: 8 },
];

struct Memory(Vec<u8>);

impl ReadAt for Memory {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = self.0.get(offset as usize..offset as usize + into.len());
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fn be(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// A block of the journal: magic, type, transaction, and what follows.
fn block(kind: u32, transaction: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = [be(&[0xc03b_3998, kind, transaction]), rest.to_vec()].concat();
    bytes.resize(BLOCK, 0);
    bytes
}

fn superblock(incompat: u32, fast_blocks: u32) -> Vec<u8> {
    let mut bytes = block(4, 0, &be(&[BLOCK as u32, 16, 1, 1, 0, 0, 0, incompat]));
    bytes[0x54..0x58].copy_from_slice(&fast_blocks.to_be_bytes());
    bytes
}

fn place(logical: usize) -> usize {
    if logical < 8 { 100 + logical } else { 50 + logical - 8 }
}

fn log(blocks: &[(usize, Vec<u8>)]) -> Log {
    let mut memory = vec![0x55; 120 * BLOCK];
    for (logical, bytes) in blocks {
        let at = place(*logical) * BLOCK;
        memory[at..at + BLOCK].copy_from_slice(bytes);
    }
    Log::read(&Memory(memory), RUNS.to_vec(), BLOCK as u64, false).unwrap().expect("a journal")
}

fn piece(logical: usize, blocks: usize) -> Piece {
    Piece {
        offset: (place(logical) * BLOCK) as u64,
        length: (blocks * BLOCK) as u64,
        what: What::Journal(Journal::Other),
    }
}

fn part(log: &Log, logical: usize) -> Journal {
    match log.refine(&[piece(logical, 1)], None)[..] {
        [Piece { what: What::Journal(part), .. }] => part,
        ref other => panic!("{other:?}"),
    }
}

fn copy(transaction: u64, block: u64) -> Journal {
    Journal::Copy { transaction, of: block * BLOCK as u64 }
}

/// A descriptor for blocks 7 and 9 in every form that `journal_tag_bytes` knows.
#[test]
fn tags_are_read_in_every_form() {
    const UUID: [u32; 4] = [1, 2, 3, 4];
    // With the flags SAME_UUID (2) and LAST_TAG (8); a first tag is followed by a unique name.
    let short = |flags| be(&[flags]);
    let cases = [
        (0, [be(&[7]), short(0), be(&UUID), be(&[9]), short(10)].concat()),
        (0x2, [be(&[7]), short(0), be(&[1]), be(&UUID), be(&[9]), short(10), be(&[0])].concat()),
        (
            0x8,
            [be(&[7]), short(0), vec![0; 2], be(&UUID), be(&[9]), short(10), vec![0; 2]].concat(),
        ),
        (0x10, be(&[7, 0, 0, 99, 1, 2, 3, 4, 9, 10, 0, 99])),
        (0x12, be(&[7, 0, 1, 99, 1, 2, 3, 4, 9, 10, 0, 99])),
    ];
    for (incompat, tags) in cases {
        let log = log(&[(0, superblock(incompat, 0)), (6, block(1, 5, &tags))]);
        // Block numbers have a high half only with 64 bits.
        let high = if incompat & 2 == 0 { 0 } else { 1 << 32 };
        assert_eq!(part(&log, 0), Journal::Superblock, "{incompat:#x}");
        assert_eq!(part(&log, 6), Journal::Descriptor { transaction: 5, copies: 2 });
        assert_eq!(part(&log, 7), copy(5, 7 + high), "{incompat:#x}");
        assert_eq!(part(&log, 8), copy(5, 9), "in the second run");
        assert_eq!(part(&log, 9), Journal::Other);
    }
}

/// Tags for blocks, in the form with checksums.
fn tags(blocks: &[u32]) -> Vec<u8> {
    let last = blocks.len() - 1;
    let flags = |number| if number == last { 10 } else { 2 };
    blocks.iter().enumerate().flat_map(|(number, of)| be(&[*of, flags(number), 0, 0])).collect()
}

#[test]
fn a_transaction_goes_on_where_the_ring_begins_and_newer_ones_are_over_older() {
    let log = log(&[
        (0, superblock(0x10, 0)),
        // Transaction 8 begins at the end of the ring and has overwritten what 5 had there.
        (1, vec![0; BLOCK]),
        (2, block(2, 8, &[])),
        (3, block(1, 5, &tags(&[70, 71]))),
        (6, block(5, 5, &be(&[24]))),
        (14, block(1, 8, &tags(&[80, 81]))),
    ]);
    assert_eq!(part(&log, 15), copy(8, 80));
    assert_eq!(part(&log, 1), copy(8, 81));
    assert_eq!(part(&log, 2), Journal::Commit { transaction: 8 });
    assert_eq!(part(&log, 4), copy(5, 70));
    assert_eq!(part(&log, 6), Journal::Revoke { transaction: 5, blocks: 2 });
}

#[test]
fn the_end_is_for_fast_commits() {
    let log = log(&[
        (0, superblock(0x30, 4)),
        (11, block(1, 8, &tags(&[80, 81]))),
        // No header: the area has no transactions.
        (13, block(2, 8, &[])),
    ]);
    assert_eq!(part(&log, 13), UNTOLD);
    assert_eq!(part(&log, 1), copy(8, 80), "the ring ends before it");
    let pieces = log.refine(&[piece(8, 8)], None);
    let [.., last] = pieces[..] else { panic!() };
    assert_eq!((last.length, last.what), (4096, What::Journal(UNTOLD)));
}

/// A tag of a fast commit with its value.
fn tag(tag: u16, value: &[u8]) -> Vec<u8> {
    [&tag.to_le_bytes()[..], &(value.len() as u16).to_le_bytes(), value].concat()
}

/// A tag that begins with a number and ends with the block.
fn last(number: u16, transaction: u32, before: usize) -> Vec<u8> {
    let mut value = transaction.to_le_bytes().to_vec();
    value.resize(BLOCK - before - 4, 0);
    tag(number, &value)
}

#[test]
fn a_fast_commit_says_what_it_holds() {
    let head = tag(9, &[0, 0, 0, 0, 7, 0, 0, 0]);
    let changes = [tag(6, &[1; 160]), tag(1, &[2; 16]), tag(2, &[2; 12]), tag(5, b"12345678name")];
    let one = [head, changes.concat()].concat();
    // Its second block is in the middle, and says nothing of the transaction.
    let padded = [&one[..], &last(7, 0, one.len())].concat();
    let middle = [changes.concat(), last(7, 0, changes.concat().len())].concat();
    let end = [tag(6, &[1; 160]), last(8, 7, 164)].concat();
    let damaged = [tag(6, &[1; 160]), vec![6, 0, 0xff, 0xff]].concat();
    let log = log(&[
        (0, superblock(0x30, 6)),
        (11, padded),
        (12, middle),
        (13, end),
        (14, [damaged, vec![0; BLOCK - 168]].concat()),
        (15, vec![0; BLOCK]),
    ]);
    let of = |transaction, inodes, ranges, names| Journal::FastCommit {
        transaction,
        inodes,
        ranges,
        names,
    };
    assert_eq!(part(&log, 11), of(Some(7), 1, 2, 1));
    assert_eq!(part(&log, 12), of(None, 1, 2, 1));
    assert_eq!(part(&log, 13), of(Some(7), 1, 0, 0));
    assert_eq!([14, 15].map(|at| part(&log, at)), [UNTOLD; 2]);
    assert_eq!(log.refine(&[piece(10, 6)], None).len(), 5, "what nobody tells is one piece");
    // What is written now counts, and what was there before does not.
    let written = [tag(5, b"12345678name"), last(8, 9, 16)].concat();
    let at = (place(11) * BLOCK) as u64;
    let now = |bytes: &[u8]| log.refine(&[piece(11, 1)], Some((at, bytes)))[0].what;
    assert_eq!(now(&written), What::Journal(of(Some(9), 0, 0, 1)));
    assert_eq!(now(&[0; BLOCK]), What::Journal(UNTOLD));
    let named = What::Journal(part(&log, 11)).to_string();
    assert_eq!(named, "fast commit of transaction 7: 1 inodes, 2 ranges, 1 names");
}

#[test]
fn what_is_written_counts_before_what_was_there() {
    let mut log = log(&[
        (0, superblock(0x10, 0)),
        (1, block(1, 5, &tags(&[70, 71, 72]))),
        (5, block(2, 5, &[])),
    ]);
    let written = [block(1, 9, &tags(&[90])), vec![3; BLOCK], block(2, 9, &[])].concat();
    let at = (place(2) * BLOCK) as u64;
    let whats = |log: &Log, written: Option<(u64, &[u8])>| {
        let pieces = log.refine(&[piece(2, 3)], written);
        pieces.iter().map(|piece| piece.what).collect::<Vec<_>>()
    };
    let new = [
        Journal::Descriptor { transaction: 9, copies: 1 },
        copy(9, 90),
        Journal::Commit { transaction: 9 },
    ]
    .map(What::Journal);
    let old = [copy(5, 70), copy(5, 71), copy(5, 72)].map(What::Journal);
    assert_eq!(whats(&log, Some((at, &written))), new);
    assert_eq!(whats(&log, None), old, "nothing was noted");
    // A descriptor that came alone tells what the next write is.
    log.note(at, &written[..BLOCK]);
    assert_eq!(part(&log, 3), copy(9, 90));
    let next = (place(3) * BLOCK) as u64;
    let pieces = log.refine(&[piece(3, 1)], Some((next, &written[BLOCK..2 * BLOCK])));
    assert_eq!(pieces[0].what, What::Journal(copy(9, 90)));
    // Where a commit was and now is none, nobody knows what there is.
    let pieces = log.refine(&[piece(5, 1)], Some(((place(5) * BLOCK) as u64, &[3; BLOCK])));
    assert_eq!(pieces[0].what, What::Journal(Journal::Other));
    assert_eq!(part(&log, 5), Journal::Commit { transaction: 5 });
    log.note((place(5) * BLOCK) as u64, &[3; BLOCK]);
    assert_eq!(part(&log, 5), Journal::Other);
}

#[test]
fn what_is_no_file_system_is_refused_and_an_absurd_one_too() {
    assert!(Map::of(&Memory(Vec::new())).unwrap_err().to_string().contains("no file system"));
    let mut bytes = vec![0; 4096];
    assert!(Map::of(&Memory(bytes.clone())).unwrap_err().to_string().contains("no file system"));
    bytes[1024 + 0x38..1024 + 0x3a].copy_from_slice(&[0x53, 0xef]);
    let refused = |bytes: &[u8]| Map::of(&Memory(bytes.to_vec())).unwrap_err().to_string();
    assert!(refused(&bytes).contains("damaged: the size of its groups"), "{}", refused(&bytes));
    bytes[1024 + 0x60] = 8;
    assert!(refused(&bytes).contains("journal of another file system"), "{}", refused(&bytes));
}
