//! The three programs that count pages, as instructions of BPF
//! (Documentation/bpf/standardization/instruction-set.rst).
//!
//! In words, for a regular file of the file system that is watched, and by thread:
//!
//! ```text
//! mm_filemap_add_to_page_cache(folio)     if thread.added_to != inode: thread.added = 0
//!                                         thread.added_to = inode
//!                                         thread.added += pages of folio and file
//! writeback_dirty_folio(folio, mapping)   if thread.added_to == inode: thread.added = 0
//! mm_filemap_get_pages(mapping, index, last)
//!     if inode, last == thread's and index > thread.index:  the same read goes on
//!     else: looked_up += min(last + 1, pages of the file) - index
//!     thread.{looked_in, last, index} = inode, last, index
//!     if thread.added_to == inode: missed += thread.added, thread.added = 0
//! ```

use super::Layout;

/// What is kept of a thread: five words of eight bytes.
pub(super) const THREAD_BYTES: u32 = 40;
const ADDED_TO: i16 = 0;
const ADDED: i16 = 8;
const LOOKED_IN: i16 = 16;
const LAST: i16 = 24;
const INDEX: i16 = 32;

/// What is counted: two words.
pub(super) const COUNTS_BYTES: u32 = 16;
const LOOKED_UP: i16 = 0;
const MISSED: i16 = 8;

/// Places on the stack, below [`FRAME`].
const KEY: i16 = -8;
const FRESH: i16 = -48;
const PAGES: i16 = -56;

/// Registers: what a call returns, what it takes, what it leaves alone, and the frame.
const RESULT: u8 = 0;
const A1: u8 = 1;
const A2: u8 = 2;
const A3: u8 = 3;
const A4: u8 = 4;
/// The tracepoint's arguments, one word each.
const ARGUMENTS: u8 = 6;
const INODE: u8 = 7;
const HELD: u8 = 8;
const THREAD: u8 = 9;
const FRAME: u8 = 10;

/// Functions of the kernel's (include/uapi/linux/bpf.h).
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const CURRENT_PID_TGID: i32 = 14;

/// Opcodes. Those of jumps compare 64 bits, `_32` the lower 32.
const LOAD_8: u8 = 0x79;
const LOAD_4: u8 = 0x61;
const LOAD_2: u8 = 0x69;
const STORE_8: u8 = 0x7b;
const STORE_4: u8 = 0x63;
const STORE_IMMEDIATE_8: u8 = 0x7a;
const MOVE: u8 = 0xbf;
const MOVE_IMMEDIATE: u8 = 0xb7;
const ADD: u8 = 0x0f;
const ADD_IMMEDIATE: u8 = 0x07;
const SUBTRACT: u8 = 0x1f;
const AND_IMMEDIATE: u8 = 0x57;
const SHIFT_LEFT: u8 = 0x6f;
const SHIFT_RIGHT_IMMEDIATE: u8 = 0x77;
const JUMP: u8 = 0x05;
const IF_EQUAL_IMMEDIATE: u8 = 0x15;
const IF_NOT_EQUAL: u8 = 0x5d;
const IF_NOT_EQUAL_IMMEDIATE: u8 = 0x55;
const IF_NOT_EQUAL_IMMEDIATE_32: u8 = 0x56;
const IF_AT_MOST: u8 = 0xbd;
const IF_AT_MOST_SIGNED: u8 = 0xdd;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const LOAD_WIDE: u8 = 0x18;

/// The mode bits of a kind of file, and of a regular one (inode(7)).
const S_IFMT: i32 = 0o170_000;
const S_IFREG: i32 = 0o100_000;

/// A place to jump to.
#[derive(Clone, Copy, PartialEq)]
enum Label {
    Out,
    Known,
    New,
    Misses,
    Clipped,
    Single,
    Counted,
}

/// What the programs are written for.
pub(super) struct Target<'a> {
    pub layout: &'a Layout,
    /// The kernel's number of the file system: `MKDEV` of include/linux/kdev_t.h.
    pub device: u32,
    pub page_shift: u32,
    /// Descriptors of the maps.
    pub threads: i32,
    pub counts: i32,
}

/// A program being written.
#[derive(Default)]
struct Writer {
    code: Vec<u64>,
    labels: Vec<(Label, usize)>,
    jumps: Vec<(usize, Label)>,
}

impl Writer {
    fn put(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let registers = u64::from(to | from << 4) << 8;
        let offset = u64::from(offset.cast_unsigned()) << 16;
        let immediate = u64::from(immediate.cast_unsigned()) << 32;
        self.code.push(u64::from(opcode) | registers | offset | immediate);
    }

    fn load(&mut self, opcode: u8, to: u8, from: u8, offset: i16) {
        self.put(opcode, to, from, offset, 0);
    }

    /// Of a word at `from`; the tracepoint's argument `n` is word `8 * n` of [`ARGUMENTS`].
    fn word(&mut self, to: u8, from: u8, offset: i16) {
        self.load(LOAD_8, to, from, offset);
    }

    fn store(&mut self, to: u8, offset: i16, from: u8) {
        self.put(STORE_8, to, from, offset, 0);
    }

    fn store_number(&mut self, to: u8, offset: i16, number: i32) {
        self.put(STORE_IMMEDIATE_8, to, 0, offset, number);
    }

    fn with(&mut self, opcode: u8, to: u8, from: u8) {
        self.put(opcode, to, from, 0, 0);
    }

    fn with_number(&mut self, opcode: u8, to: u8, number: i32) {
        self.put(opcode, to, 0, 0, number);
    }

    fn go(&mut self, label: Label) {
        self.go_if(JUMP, 0, 0, label);
    }

    fn go_if(&mut self, opcode: u8, one: u8, other: u8, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(opcode, one, other, 0, 0);
    }

    fn go_if_number(&mut self, opcode: u8, one: u8, number: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(opcode, one, 0, 0, number);
    }

    fn here(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    fn call(&mut self, function: i32) {
        self.with_number(CALL, 0, function);
    }

    /// A map into the first argument of a call; the key on the stack into the second.
    fn map_and_key(&mut self, map: i32) {
        const IS_MAP: u8 = 1;
        self.put(LOAD_WIDE, A1, IS_MAP, 0, map);
        self.put(0, 0, 0, 0, 0);
        self.with(MOVE, A2, FRAME);
        self.with_number(ADD_IMMEDIATE, A2, KEY.into());
    }

    /// Ends the program, and puts the distances into its jumps.
    fn finish(mut self) -> Vec<u64> {
        self.here(Label::Out);
        self.with_number(MOVE_IMMEDIATE, RESULT, 0);
        self.put(EXIT, 0, 0, 0, 0);
        for (at, label) in self.jumps {
            let to = self.labels.iter().find(|(known, _)| *known == label).map_or(at, |it| it.1);
            let distance = to as i64 - at as i64 - 1;
            self.code[at] |= (distance as u64 & 0xffff) << 16;
        }
        self.code
    }

    /// From the address space in [`HELD`] the inode's number to [`INODE`] and the inode itself to
    /// [`HELD`], unless it is no regular file or of another file system.
    fn only_watched(&mut self, target: &Target) {
        let layout = target.layout;
        // The kernel knows a tracepoint that may have none, and wants it looked at.
        self.go_if_number(IF_EQUAL_IMMEDIATE, HELD, 0, Label::Out);
        self.word(HELD, HELD, layout.mapping_host);
        self.load(LOAD_2, A1, HELD, layout.inode_mode);
        self.with_number(AND_IMMEDIATE, A1, S_IFMT);
        self.go_if_number(IF_NOT_EQUAL_IMMEDIATE, A1, S_IFREG, Label::Out);
        self.word(A1, HELD, layout.inode_super);
        self.load(LOAD_4, A1, A1, layout.super_device);
        self.go_if_number(IF_NOT_EQUAL_IMMEDIATE_32, A1, target.device.cast_signed(), Label::Out);
        self.word(INODE, HELD, layout.inode_number);
    }

    /// The pages from number [`A2`] up to number [`A3`] that the file has, to [`A3`]; to `none`
    /// where that is none. The file's bytes are in [`HELD`].
    fn pages_of_file(&mut self, target: &Target, none: Label) {
        let page_bytes = 1_i32 << target.page_shift;
        self.with_number(ADD_IMMEDIATE, HELD, page_bytes - 1);
        self.with_number(SHIFT_RIGHT_IMMEDIATE, HELD, target.page_shift.cast_signed());
        self.go_if(IF_AT_MOST, A3, HELD, Label::Clipped);
        self.with(MOVE, A3, HELD);
        self.here(Label::Clipped);
        self.go_if(IF_AT_MOST_SIGNED, A3, A2, none);
        self.with(SUBTRACT, A3, A2);
    }

    /// What is kept of the running thread to [`THREAD`]; null if nothing is.
    fn find_thread(&mut self, target: &Target) {
        self.call(CURRENT_PID_TGID);
        self.put(STORE_4, FRAME, RESULT, KEY, 0);
        self.map_and_key(target.threads);
        self.call(MAP_LOOKUP);
        self.with(MOVE, THREAD, RESULT);
    }

    /// The same, made where it is not there yet.
    fn thread(&mut self, target: &Target) {
        self.find_thread(target);
        self.go_if_number(IF_NOT_EQUAL_IMMEDIATE, THREAD, 0, Label::Known);
        for offset in [ADDED_TO, ADDED, LOOKED_IN, LAST, INDEX] {
            self.store_number(FRAME, FRESH + offset, 0);
        }
        self.map_and_key(target.threads);
        self.with(MOVE, A3, FRAME);
        self.with_number(ADD_IMMEDIATE, A3, FRESH.into());
        self.with_number(MOVE_IMMEDIATE, A4, 0);
        self.call(MAP_UPDATE);
        self.map_and_key(target.threads);
        self.call(MAP_LOOKUP);
        self.with(MOVE, THREAD, RESULT);
        self.go_if_number(IF_EQUAL_IMMEDIATE, THREAD, 0, Label::Out);
        self.here(Label::Known);
    }
}

/// At `mm_filemap_add_to_page_cache`.
pub(super) fn added(target: &Target) -> Vec<u64> {
    let layout = target.layout;
    let mut it = Writer::default();
    it.with(MOVE, ARGUMENTS, A1);
    it.word(A1, ARGUMENTS, 0);
    it.word(HELD, A1, layout.folio_mapping);
    it.only_watched(target);
    it.word(HELD, HELD, layout.inode_size);
    // folio_order of include/linux/mm.h.
    it.word(A1, ARGUMENTS, 0);
    it.word(A2, A1, layout.folio_index);
    it.with_number(MOVE_IMMEDIATE, A3, 1);
    it.word(A4, A1, layout.folio_flags);
    it.with_number(SHIFT_RIGHT_IMMEDIATE, A4, layout.large_bit.cast_signed());
    it.with_number(AND_IMMEDIATE, A4, 1);
    it.go_if_number(IF_EQUAL_IMMEDIATE, A4, 0, Label::Single);
    it.word(A4, A1, layout.folio_order);
    it.with_number(AND_IMMEDIATE, A4, 0xff);
    it.with(SHIFT_LEFT, A3, A4);
    it.here(Label::Single);
    it.with(ADD, A3, A2);
    it.pages_of_file(target, Label::Out);
    it.with(MOVE, HELD, A3);
    it.thread(target);
    it.word(A1, THREAD, ADDED_TO);
    it.go_if(IF_NOT_EQUAL, A1, INODE, Label::New);
    it.word(A1, THREAD, ADDED);
    it.with(ADD, HELD, A1);
    it.here(Label::New);
    it.store(THREAD, ADDED_TO, INODE);
    it.store(THREAD, ADDED, HELD);
    it.finish()
}

/// At `writeback_dirty_folio`.
pub(super) fn dirtied(target: &Target) -> Vec<u64> {
    let mut it = Writer::default();
    it.word(HELD, A1, 8);
    it.only_watched(target);
    it.find_thread(target);
    it.go_if_number(IF_EQUAL_IMMEDIATE, THREAD, 0, Label::Out);
    it.word(A1, THREAD, ADDED_TO);
    it.go_if(IF_NOT_EQUAL, A1, INODE, Label::Out);
    it.store_number(THREAD, ADDED, 0);
    it.finish()
}

/// At `mm_filemap_get_pages`.
pub(super) fn looked_up(target: &Target) -> Vec<u64> {
    let mut it = Writer::default();
    it.with(MOVE, ARGUMENTS, A1);
    it.word(HELD, ARGUMENTS, 0);
    it.only_watched(target);
    it.word(HELD, HELD, target.layout.inode_size);
    it.thread(target);
    it.store_number(FRAME, PAGES, 0);
    it.word(A2, ARGUMENTS, 8);
    it.word(A3, ARGUMENTS, 16);
    it.word(A4, THREAD, LOOKED_IN);
    it.go_if(IF_NOT_EQUAL, A4, INODE, Label::New);
    it.word(A4, THREAD, LAST);
    it.go_if(IF_NOT_EQUAL, A4, A3, Label::New);
    it.word(A4, THREAD, INDEX);
    it.store(THREAD, INDEX, A2);
    it.go_if(IF_AT_MOST, A2, A4, Label::New);
    it.go(Label::Misses);

    it.here(Label::New);
    it.store(THREAD, LOOKED_IN, INODE);
    it.store(THREAD, LAST, A3);
    it.store(THREAD, INDEX, A2);
    it.with_number(ADD_IMMEDIATE, A3, 1);
    it.pages_of_file(target, Label::Misses);
    it.store(FRAME, PAGES, A3);

    it.here(Label::Misses);
    it.with_number(MOVE_IMMEDIATE, HELD, 0);
    it.word(A1, THREAD, ADDED_TO);
    it.go_if(IF_NOT_EQUAL, A1, INODE, Label::Counted);
    it.word(HELD, THREAD, ADDED);
    it.store_number(THREAD, ADDED, 0);
    it.here(Label::Counted);
    it.store_number(FRAME, KEY, 0);
    it.map_and_key(target.counts);
    it.call(MAP_LOOKUP);
    it.go_if_number(IF_EQUAL_IMMEDIATE, RESULT, 0, Label::Out);
    it.word(A1, RESULT, LOOKED_UP);
    it.word(A2, FRAME, PAGES);
    it.with(ADD, A1, A2);
    it.store(RESULT, LOOKED_UP, A1);
    it.word(A1, RESULT, MISSED);
    it.with(ADD, A1, HELD);
    it.store(RESULT, MISSED, A1);
    it.finish()
}
