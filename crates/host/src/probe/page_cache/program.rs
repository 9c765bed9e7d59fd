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

use super::super::instructions::{
    A1, A2, A3, A4, ADD, ADD_IMMEDIATE, AND_IMMEDIATE, ARGUMENTS, FRAME, HELD, IF_AT_MOST,
    IF_AT_MOST_SIGNED, IF_EQUAL_IMMEDIATE, IF_NOT_EQUAL, IF_NOT_EQUAL_IMMEDIATE,
    IF_NOT_EQUAL_IMMEDIATE_32, KEY, LOAD_2, LOAD_4, MOVE, MOVE_IMMEDIATE, RESULT, SHIFT_LEFT,
    SHIFT_RIGHT_IMMEDIATE, STORE_4, SUBTRACT, Writer,
};
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

/// Places on the stack, below [`FRAME`] and [`KEY`].
const FRESH: i16 = -48;
const PAGES: i16 = -56;

/// Registers of our own.
const INODE: u8 = 7;
const THREAD: u8 = 9;

/// Functions of the kernel's (include/uapi/linux/bpf.h).
const MAP_UPDATE: i32 = 2;
const CURRENT_PID_TGID: i32 = 14;

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

impl Writer<Label> {
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
        self.bind(Label::Clipped);
        self.go_if(IF_AT_MOST_SIGNED, A3, A2, none);
        self.with(SUBTRACT, A3, A2);
    }

    /// Puts the running thread's entry into [`THREAD`]; null if there is none.
    fn find_thread(&mut self, target: &Target) {
        self.call(CURRENT_PID_TGID);
        self.put(STORE_4, FRAME, RESULT, KEY, 0);
        self.look_up(target.threads);
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
        self.sum(A3, FRAME, FRESH);
        self.with_number(MOVE_IMMEDIATE, A4, 0);
        self.call(MAP_UPDATE);
        self.look_up(target.threads);
        self.with(MOVE, THREAD, RESULT);
        self.go_if_number(IF_EQUAL_IMMEDIATE, THREAD, 0, Label::Out);
        self.bind(Label::Known);
    }
}

/// At `mm_filemap_add_to_page_cache`.
pub(super) fn added(target: &Target) -> Vec<u64> {
    let layout = target.layout;
    let mut it = Writer::new();
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
    it.bind(Label::Single);
    it.with(ADD, A3, A2);
    it.pages_of_file(target, Label::Out);
    it.with(MOVE, HELD, A3);
    it.thread(target);
    it.word(A1, THREAD, ADDED_TO);
    it.go_if(IF_NOT_EQUAL, A1, INODE, Label::New);
    it.word(A1, THREAD, ADDED);
    it.with(ADD, HELD, A1);
    it.bind(Label::New);
    it.store(THREAD, ADDED_TO, INODE);
    it.store(THREAD, ADDED, HELD);
    it.finish(Label::Out)
}

/// At `writeback_dirty_folio`.
pub(super) fn dirtied(target: &Target) -> Vec<u64> {
    let mut it = Writer::new();
    it.word(HELD, A1, 8);
    it.only_watched(target);
    it.find_thread(target);
    it.go_if_number(IF_EQUAL_IMMEDIATE, THREAD, 0, Label::Out);
    it.word(A1, THREAD, ADDED_TO);
    it.go_if(IF_NOT_EQUAL, A1, INODE, Label::Out);
    it.store_number(THREAD, ADDED, 0);
    it.finish(Label::Out)
}

/// At `mm_filemap_get_pages`.
pub(super) fn looked_up(target: &Target) -> Vec<u64> {
    let mut it = Writer::new();
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

    it.bind(Label::New);
    it.store(THREAD, LOOKED_IN, INODE);
    it.store(THREAD, LAST, A3);
    it.store(THREAD, INDEX, A2);
    it.with_number(ADD_IMMEDIATE, A3, 1);
    it.pages_of_file(target, Label::Misses);
    it.store(FRAME, PAGES, A3);

    it.bind(Label::Misses);
    it.with_number(MOVE_IMMEDIATE, HELD, 0);
    it.word(A1, THREAD, ADDED_TO);
    it.go_if(IF_NOT_EQUAL, A1, INODE, Label::Counted);
    it.word(HELD, THREAD, ADDED);
    it.store_number(THREAD, ADDED, 0);
    it.bind(Label::Counted);
    it.store_number(FRAME, KEY, 0);
    it.look_up(target.counts);
    it.go_if_number(IF_EQUAL_IMMEDIATE, RESULT, 0, Label::Out);
    it.word(A1, RESULT, LOOKED_UP);
    it.word(A2, FRAME, PAGES);
    it.with(ADD, A1, A2);
    it.store(RESULT, LOOKED_UP, A1);
    it.word(A1, RESULT, MISSED);
    it.with(ADD, A1, HELD);
    it.store(RESULT, MISSED, A1);
    it.finish(Label::Out)
}
