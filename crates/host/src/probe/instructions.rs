//! A program for the kernel, as it is written: instructions of BPF
//! (Documentation/bpf/standardization/instruction-set.rst), and jumps to places that have names.

/// Registers: what a call returns, what it takes, what it leaves alone, and the frame.
pub(super) const RESULT: u8 = 0;
pub(super) const A1: u8 = 1;
pub(super) const A2: u8 = 2;
pub(super) const A3: u8 = 3;
pub(super) const A4: u8 = 4;
/// The tracepoint's arguments, one word each.
pub(super) const ARGUMENTS: u8 = 6;
pub(super) const HELD: u8 = 8;
pub(super) const FRAME: u8 = 10;

/// The key of a map, on the stack below [`FRAME`].
pub(super) const KEY: i16 = -8;

/// Functions of the kernel's (include/uapi/linux/bpf.h).
const MAP_LOOKUP: i32 = 1;

/// Opcodes. Those of jumps compare 64 bits, `_32` the lower 32.
const LOAD_8: u8 = 0x79;
pub(super) const LOAD_4: u8 = 0x61;
pub(super) const LOAD_2: u8 = 0x69;
const STORE_8: u8 = 0x7b;
pub(super) const STORE_4: u8 = 0x63;
const STORE_IMMEDIATE_8: u8 = 0x7a;
pub(super) const MOVE: u8 = 0xbf;
pub(super) const MOVE_IMMEDIATE: u8 = 0xb7;
pub(super) const ADD: u8 = 0x0f;
pub(super) const ADD_IMMEDIATE: u8 = 0x07;
pub(super) const SUBTRACT: u8 = 0x1f;
pub(super) const AND_IMMEDIATE: u8 = 0x57;
pub(super) const SHIFT_LEFT: u8 = 0x6f;
pub(super) const SHIFT_RIGHT_IMMEDIATE: u8 = 0x77;
const JUMP: u8 = 0x05;
pub(super) const IF_EQUAL: u8 = 0x1d;
pub(super) const IF_EQUAL_IMMEDIATE: u8 = 0x15;
pub(super) const IF_NOT_EQUAL: u8 = 0x5d;
pub(super) const IF_NOT_EQUAL_IMMEDIATE: u8 = 0x55;
pub(super) const IF_NOT_EQUAL_IMMEDIATE_32: u8 = 0x56;
pub(super) const IF_ABOVE_IMMEDIATE: u8 = 0x25;
pub(super) const IF_AT_MOST: u8 = 0xbd;
pub(super) const IF_AT_MOST_SIGNED: u8 = 0xdd;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const LOAD_WIDE: u8 = 0x18;

/// A program being written, with `L` for the places to jump to.
pub(super) struct Writer<L> {
    code: Vec<u64>,
    labels: Vec<(L, usize)>,
    jumps: Vec<(usize, L)>,
}

impl<L: Copy + PartialEq> Writer<L> {
    pub fn new() -> Writer<L> {
        Writer { code: Vec::new(), labels: Vec::new(), jumps: Vec::new() }
    }

    pub fn put(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let registers = u64::from(to | from << 4) << 8;
        let offset = u64::from(offset.cast_unsigned()) << 16;
        let immediate = u64::from(immediate.cast_unsigned()) << 32;
        self.code.push(u64::from(opcode) | registers | offset | immediate);
    }

    pub fn load(&mut self, opcode: u8, to: u8, from: u8, offset: i16) {
        self.put(opcode, to, from, offset, 0);
    }

    /// Loads a word at `from`; the tracepoint's argument `n` is word `8 * n` of [`ARGUMENTS`].
    pub fn word(&mut self, to: u8, from: u8, offset: i16) {
        self.load(LOAD_8, to, from, offset);
    }

    pub fn store(&mut self, to: u8, offset: i16, from: u8) {
        self.put(STORE_8, to, from, offset, 0);
    }

    pub fn store_number(&mut self, to: u8, offset: i16, number: i32) {
        self.put(STORE_IMMEDIATE_8, to, 0, offset, number);
    }

    pub fn with(&mut self, opcode: u8, to: u8, from: u8) {
        self.put(opcode, to, from, 0, 0);
    }

    pub fn with_number(&mut self, opcode: u8, to: u8, number: i32) {
        self.put(opcode, to, 0, 0, number);
    }

    /// The sum of a register and a number.
    pub fn sum(&mut self, to: u8, from: u8, number: i16) {
        self.with(MOVE, to, from);
        self.with_number(ADD_IMMEDIATE, to, number.into());
    }

    pub fn go(&mut self, label: L) {
        self.go_if(JUMP, 0, 0, label);
    }

    pub fn go_if(&mut self, opcode: u8, one: u8, other: u8, label: L) {
        self.jumps.push((self.code.len(), label));
        self.put(opcode, one, other, 0, 0);
    }

    pub fn go_if_number(&mut self, opcode: u8, one: u8, number: i32, label: L) {
        self.jumps.push((self.code.len(), label));
        self.put(opcode, one, 0, 0, number);
    }

    pub fn bind(&mut self, label: L) {
        self.labels.push((label, self.code.len()));
    }

    pub fn call(&mut self, function: i32) {
        self.with_number(CALL, 0, function);
    }

    /// A wide number.
    pub fn wide(&mut self, to: u8, number: u64) {
        self.put(LOAD_WIDE, to, 0, 0, (number as u32).cast_signed());
        self.put(0, 0, 0, 0, ((number >> 32) as u32).cast_signed());
    }

    /// A map into the first argument of a call; the key on the stack into the second.
    pub fn map_and_key(&mut self, map: i32) {
        const IS_MAP: u8 = 1;
        self.put(LOAD_WIDE, A1, IS_MAP, 0, map);
        self.put(0, 0, 0, 0, 0);
        self.sum(A2, FRAME, KEY);
    }

    /// The value of the key on the stack to [`RESULT`]; null if there is none.
    pub fn look_up(&mut self, map: i32) {
        self.map_and_key(map);
        self.call(MAP_LOOKUP);
    }

    /// Ends the program at the place `out`, and puts the distances into its jumps.
    pub fn finish(mut self, out: L) -> Vec<u64> {
        self.bind(out);
        self.with_number(MOVE_IMMEDIATE, RESULT, 0);
        self.put(EXIT, 0, 0, 0, 0);
        for (at, label) in self.jumps {
            let to = self.labels.iter().find(|(known, _)| *known == label).map_or(at, |it| it.1);
            let distance = to as i64 - at as i64 - 1;
            self.code[at] |= (distance as u64 & 0xffff) << 16;
        }
        self.code
    }
}
