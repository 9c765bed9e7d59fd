//! The program that counts refused writes, as instructions of BPF.
//!
//! In words:
//!
//! ```text
//! sys_exit(registers, result)
//!     if result != -EROFS, or the call only asks: out
//!     if the process has the trial's own mounts: out
//!     if neither its PID namespace nor one that holds that is the trial's: out
//!     examples[count] = call, program, the text at each of its first four arguments
//!     count += 1
//! ```

use super::super::instructions::{
    A1, A2, A3, ARGUMENTS, FRAME, HELD, IF_ABOVE_IMMEDIATE, IF_EQUAL, IF_EQUAL_IMMEDIATE,
    IF_NOT_EQUAL_IMMEDIATE, KEY, LOAD_4, MOVE, MOVE_IMMEDIATE, RESULT, Writer,
};
use super::{ASKING, Layout};

/// A count.
pub(super) const COUNT_BYTES: u32 = 8;

/// An example: the call's number, the program's name, and four texts.
pub(super) const NAME_AT: usize = 8;
pub(super) const NAME_BYTES: usize = 16;
pub(super) const TEXTS_AT: usize = NAME_AT + NAME_BYTES;
pub(super) const TEXT_BYTES: usize = 128;
pub(super) const TEXTS: usize = 4;
pub(super) const EXAMPLE_BYTES: u32 = (TEXTS_AT + TEXTS * TEXT_BYTES) as u32;

/// How many examples each processor keeps.
pub(super) const EXAMPLES: u32 = 4;

/// So deep in namespaces of the work's own is looked; the kernel allows 32 (`MAX_PID_NS_LEVEL` of
/// include/linux/pid_namespace.h).
const DEEPEST: usize = 32;

/// Registers of our own.
const REGISTERS: u8 = 7;
const CALL: u8 = 9;

/// Functions of the kernel's (include/uapi/linux/bpf.h).
const CURRENT_COMM: i32 = 16;
const READ_USER_STR: i32 = 114;
const CURRENT_TASK_BTF: i32 = 158;

/// A place to jump to.
#[derive(Clone, Copy, PartialEq)]
enum Label {
    Count,
    Out,
}

/// What the program is written for.
pub(super) struct Target<'a> {
    pub layout: &'a Layout,
    /// The trial's own namespaces, by their inodes.
    pub mounts: u64,
    pub processes: u64,
    /// Descriptors of the maps.
    pub counts: i32,
    pub examples: i32,
}

/// At `sys_exit`.
pub(super) fn ended(target: &Target) -> Vec<u64> {
    let mut it = Writer::new();
    it.with(MOVE, ARGUMENTS, A1);
    it.word(A1, ARGUMENTS, 8);
    it.go_if_number(IF_NOT_EQUAL_IMMEDIATE, A1, -libc::EROFS, Label::Out);
    it.word(REGISTERS, ARGUMENTS, 0);
    it.word(CALL, REGISTERS, target.layout.call);
    for asking in ASKING {
        it.go_if_number(IF_EQUAL_IMMEDIATE, CALL, asking, Label::Out);
    }
    whose(&mut it, target);
    it.bind(Label::Count);
    count(&mut it, target);
    example(&mut it, target);
    it.finish(Label::Out)
}

/// Goes on to count what the work is refused, in namespaces of its own too; what the trial itself
/// is, and its tools, is none of that: these have its mounts, and the work has the cell's.
///
/// The namespace that a process's children will have is its own, or lies in it.
fn whose(it: &mut Writer<Label>, target: &Target) {
    let layout = target.layout;
    it.call(CURRENT_TASK_BTF);
    it.word(A1, RESULT, layout.namespaces);
    it.word(A2, A1, layout.mounts);
    it.load(LOAD_4, A2, A2, layout.mounts_inode);
    it.wide(A3, target.mounts);
    it.go_if(IF_EQUAL, A2, A3, Label::Out);
    it.word(A1, A1, layout.processes);
    it.wide(A3, target.processes);
    for _ in 0..DEEPEST {
        it.load(LOAD_4, A2, A1, layout.processes_inode);
        it.go_if(IF_EQUAL, A2, A3, Label::Count);
        it.word(A1, A1, layout.holder);
    }
    it.go(Label::Out);
}

/// Counts it, and leaves the count before as the key on the stack, and in [`HELD`].
fn count(it: &mut Writer<Label>, target: &Target) {
    it.store_number(FRAME, KEY, 0);
    it.look_up(target.counts);
    it.go_if_number(IF_EQUAL_IMMEDIATE, RESULT, 0, Label::Out);
    it.word(HELD, RESULT, 0);
    it.sum(A1, HELD, 1);
    it.store(RESULT, 0, A1);
    it.store(FRAME, KEY, HELD);
}

/// Keeps it, where it is one of the first.
fn example(it: &mut Writer<Label>, target: &Target) {
    it.go_if_number(IF_ABOVE_IMMEDIATE, HELD, EXAMPLES.cast_signed() - 1, Label::Out);
    it.look_up(target.examples);
    it.go_if_number(IF_EQUAL_IMMEDIATE, RESULT, 0, Label::Out);
    it.with(MOVE, HELD, RESULT);
    it.store(HELD, 0, CALL);
    it.sum(A1, HELD, NAME_AT as i16);
    it.with_number(MOVE_IMMEDIATE, A2, NAME_BYTES as i32);
    it.call(CURRENT_COMM);
    for (place, argument) in target.layout.arguments.into_iter().enumerate() {
        // What is no text is not copied.
        it.sum(A1, HELD, (TEXTS_AT + place * TEXT_BYTES) as i16);
        it.with_number(MOVE_IMMEDIATE, A2, TEXT_BYTES as i32);
        it.word(A3, REGISTERS, argument);
        it.call(READ_USER_STR);
    }
}
