//! Recordings made by hand, as every machine and kernel would write them.

use proptest::prelude::*;

use super::category::{FLUSH, SYNC, WRITE};
use super::*;
use crate::model::trace::{Entry, Item};
use crate::trace::Assembler;

const DEV: u32 = 8 << 20;
const READ: u64 = 1;
const QUEUE: u64 = 1;
const ISSUE: u64 = 7;
const COMPLETE: u64 = 8;
const IN_A_GROUP: u64 = 1 << 8;

/// How a machine writes records.
#[derive(Clone, Copy)]
struct Machine {
    is_big_endian: bool,
    version: u32,
}

const OURS: Machine = Machine { is_big_endian: false, version: 7 };

/// A record by a processor.
#[derive(Clone, Copy)]
struct Made {
    number: u32,
    at_ns: u64,
    place: (u64, u32),
    action: u64,
    process: u32,
    processor: u32,
    dev: u32,
    said: &'static [u8],
}

impl Machine {
    fn words(self, number: u64, bytes: usize) -> Vec<u8> {
        match self.is_big_endian {
            true => number.to_be_bytes()[8 - bytes..].to_vec(),
            false => number.to_le_bytes()[..bytes].to_vec(),
        }
    }

    fn record(self, made: &Made) -> Vec<u8> {
        let u32 = |number: u32| self.words(number.into(), 4);
        let (sector, bytes) = made.place;
        let mut out = u32(0x6561_7400 | self.version);
        out.extend(u32(made.number));
        out.extend(self.words(made.at_ns, 8));
        out.extend(self.words(sector, 8));
        out.extend(u32(bytes));
        match self.version {
            7 => out.extend([u32(made.action as u32), u32(made.process)].concat()),
            _ => out.extend([u32(made.process), self.words(made.action, 8)].concat()),
        }
        out.extend([u32(made.dev), u32(made.processor), vec![0, 0]].concat());
        out.extend(self.words(made.said.len() as u64, 2));
        out.resize(if self.version == 7 { 48 } else { 64 }, 0);
        out.extend(made.said);
        out
    }

    fn file(self, records: &[Made]) -> Vec<u8> {
        records.iter().flat_map(|made| self.record(made)).collect()
    }
}

fn request(number: u32, at_ns: u64, act: u64, categories: u64, place: (u64, u32)) -> Made {
    let action = act | categories << 16;
    Made { number, at_ns, place, action, process: 41, processor: 0, dev: DEV, said: &[] }
}

fn note(at_ns: u64, what: u64, said: &'static [u8]) -> Made {
    let action = what | category::NOTE << 16;
    Made { number: 0, at_ns, place: (0, 0), action, process: 41, processor: 0, dev: DEV, said }
}

/// An fsync, with the ends of its requests on a second processor: two parts that are merged, a
/// flush, a commit.
fn fsync() -> [Vec<Made>; 2] {
    let flush = FLUSH | READ;
    let commit = WRITE | FLUSH | SYNC | category::META;
    let first = vec![
        note(1, 0, b"jbd2/sda-8\0\0\0\0\0\0"),
        note(2, 1, &[0; 8]),
        note(3, 2, b"fsync 12\n"),
        request(1, 10, QUEUE, WRITE | SYNC, (8, 4096)),
        request(2, 11, QUEUE, WRITE | SYNC, (16, 4096)),
        request(3, 11, 2, WRITE | SYNC, (16, 4096)),
        request(4, 20, ISSUE, WRITE | SYNC, (8, 8192)),
        request(5, 31, QUEUE, commit, (24, 4096)),
        request(6, 32, ISSUE, flush, (0, 0)),
        request(7, 41, ISSUE, WRITE | SYNC | category::META, (24, 4096)),
        note(51, 2 | IN_A_GROUP, b"\x01\0\0\0\x07\0\0\0synced 12"),
    ];
    let ends = [
        request(1, 30, COMPLETE, WRITE | SYNC, (8, 8192)),
        request(2, 40, COMPLETE, flush, (0, 0)),
        request(3, 50, COMPLETE, WRITE | SYNC | category::META, (24, 4096)),
    ];
    [first, ends.map(|made| Made { processor: 1, ..made }).into()]
}

fn read(files: &[Vec<u8>]) -> Result<(Vec<Item>, Missing), BlktraceError> {
    let mut assembler = Assembler::new(&[[8, 0]]);
    let mut items = Vec::new();
    let missing = blktrace(files.iter().map(Vec::as_slice), &mut |event| {
        items.extend(assembler.take(event));
        Ok(())
    })?;
    items.extend(assembler.finish());
    Ok((items, missing))
}

fn told(items: &[Item]) -> Vec<String> {
    let entry = |it: &Entry| {
        let times = [it.submit_ns, it.issue_ns, it.complete_ns].map(|at| at.unwrap_or(0));
        format!("{:?} {}+{} {} {times:?}", it.op, it.sector, it.sectors, it.process)
    };
    let told = items.iter().map(|item| match item {
        Item::Entry(it) => entry(it),
        Item::Mark(mark) => mark.mark.clone(),
        Item::Lost(lost) => format!("{} lost", lost.lost),
    });
    told.collect()
}

#[test]
fn an_fsync_is_read_from_every_machine() {
    for (is_big_endian, version) in [(false, 7), (true, 7), (false, 8), (true, 8)] {
        let machine = Machine { is_big_endian, version };
        let (items, missing) = read(&fsync().map(|records| machine.file(&records))).unwrap();
        assert_eq!(missing, Missing::default());
        let expected = [
            "fsync 12",
            "Write 8+16 jbd2/sda-8 [10, 20, 30]",
            "Flush 0+0 jbd2/sda-8 [0, 32, 40]",
            "Write 24+8 jbd2/sda-8 [31, 41, 50]",
            "synced 12",
        ];
        assert_eq!(told(&items), expected, "version {version}, big {is_big_endian}");
        let Item::Entry(commit) = &items[3] else { panic!("a commit") };
        let flags = Flags { sync: true, meta: true, ..Flags::default() };
        assert_eq!(commit.flags, flags);
        assert_eq!(commit.asked, Flags { preflush: true, ..Flags::default() });
    }
}

#[test]
fn categories_are_operations() {
    let of = |version, categories, place: (u64, u32)| {
        let machine = Machine { version, ..OURS };
        let file = machine.file(&[request(1, 1, ISSUE, categories, place)]);
        let (items, _) = read(&[file]).unwrap();
        let [Item::Entry(entry)] = &items[..] else { panic!("{items:?}") };
        (entry.op, entry.flags.fua, entry.sector)
    };
    assert_eq!(of(7, READ, (8, 512)), (Op::Read, false, 8));
    assert_eq!(of(7, WRITE | category::FUA, (8, 512)), (Op::Write, true, 8));
    assert_eq!(of(7, WRITE | category::DISCARD, (8, 512)), (Op::Discard, false, 8));
    assert_eq!(of(7, READ | category::COMMAND, (0, 36)), (Op::Other, false, 0));
    assert_eq!(of(7, READ, (0, 0)), (Op::Other, false, 0));
    assert_eq!(of(7, WRITE | FLUSH, (u64::MAX, 0)).0, Op::Flush, "before 4.8");
    assert_eq!(of(8, WRITE | 1 << 16, (8, 512)).0, Op::Write, "appended to a zone");
    assert_eq!(of(8, WRITE | 1 << 17, (8, 0)).0, Op::Other, "a zone's reset");
}

#[test]
fn what_is_missing_is_counted() {
    let write = |number, at_ns| request(number, at_ns, ISSUE, WRITE, (8, 512));
    let file = OURS.file(&[write(7, 1), note(2, 2, b"a"), write(8, 3), write(12, 4)]);
    let (items, missing) = read(std::slice::from_ref(&file)).unwrap();
    assert_eq!(missing, Missing { records: 3, ends: 0 });
    assert!(told(&items).contains(&"3 lost".into()), "{items:?}");
    // Within the last record, within what the note says, between two records.
    for (length, ends) in [(file.len() - 1, 1), (96, 1), (48, 0)] {
        let (_, missing) = read(&[file[..length].to_vec()]).unwrap();
        assert_eq!(missing, Missing { records: 0, ends }, "{length}");
    }
}

#[test]
fn each_device_counts_its_own_records() {
    let on = |dev, number, at_ns| Made { dev, ..request(number, at_ns, ISSUE, WRITE, (8, 512)) };
    let other = DEV + 16;
    let file = OURS.file(&[on(DEV, 5, 1), on(other, 3, 2), on(DEV, 6, 3), on(other, 5, 4)]);
    assert_eq!(read(&[file]).unwrap().1, Missing { records: 1, ends: 0 });
}

#[test]
fn what_blktrace_did_not_write_is_refused() {
    let refused = |files: &[Vec<u8>]| read(files).unwrap_err().to_string();
    assert_eq!(refused(&[vec![7; 48]]), "at byte 0 there is no record of blktrace");
    let mut file = OURS.file(&fsync()[0]);
    let end = file.len();
    file.extend([0; 48]);
    assert_eq!(refused(&[file]), format!("at byte {end} there is no record of blktrace"));
    let later = Machine { version: 9, ..OURS }.file(&fsync()[1]);
    assert!(refused(&[later]).starts_with("its records are of version 9"));
    let [first, ends] = fsync();
    read(&[OURS.file(&[&[note(99, 1, &[0; 8])][..], &first].concat())]).unwrap();
    let mixed = OURS.file(&[first, ends].concat());
    assert!(refused(&[mixed]).contains("blkparse -i FILE -d SORTED"));
}

proptest! {
    #[test]
    fn no_file_has_more_records_than_it_has_room_for(
        changes in prop::collection::vec((0..550_usize, any::<u8>()), 0..32),
        length in 0..550_usize,
    ) {
        let [first, ends] = fsync().map(|records| OURS.file(&records));
        let mut damaged = first;
        for (at, byte) in changes {
            if let Some(place) = damaged.get_mut(at) {
                *place = byte;
            }
        }
        damaged.truncate(length);
        if let Ok((items, _)) = read(&[damaged, ends]) {
            // Before each record some may be missing.
            prop_assert!(items.len() <= 2 * (length / 48 + 3));
        }
    }
}
