//! Where the kernel keeps what: its types as `/sys/kernel/btf/vmlinux` has them
//! (Documentation/bpf/btf.rst). Only what is looked for is read.

use std::collections::HashMap;

/// Where they are.
pub(super) const TYPES: &str = "sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
const TYPE_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;

/// Kinds of types.
const INT: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const ENUM64: u32 = 19;

/// The kernel's types.
#[derive(Debug)]
pub(super) struct Btf {
    data: Vec<u8>,
    strings: usize,
    /// Where each type begins: its number is its place, counted from 1.
    types: Vec<usize>,
    named: HashMap<(u32, String), u32>,
}

impl Btf {
    /// Of `data`, the types called one of `wanted` by their names; `None` if it is no BTF.
    pub fn parse(data: Vec<u8>, wanted: &[&str]) -> Option<Btf> {
        if u16::from_le_bytes(data.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let header = u32_at(&data, 4)? as usize;
        let [begin, length, strings] = [8, 12, 16].map(|at| u32_at(&data, at));
        let begin = header.max(HEADER_BYTES) + begin? as usize;
        let strings = header + strings? as usize;
        let end = begin + length? as usize;
        let mut btf = Btf { data, strings, types: vec![0], named: HashMap::new() };
        let mut at = begin;
        while at < end {
            let (kind, count) = btf.info(at)?;
            let name = btf.name(at)?;
            if wanted.iter().any(|wanted| wanted.as_bytes() == name) {
                let name = String::from_utf8_lossy(name).into_owned();
                let number = u32::try_from(btf.types.len()).ok()?;
                btf.named.entry((kind, name)).or_insert(number);
            }
            btf.types.push(at);
            at += TYPE_BYTES + more_bytes(kind, count);
        }
        Some(btf)
    }

    /// The number of a typedef.
    pub fn typedef(&self, name: &str) -> Option<u32> {
        self.named.get(&(TYPEDEF, name.into())).copied()
    }

    /// Bytes from the beginning of a structure to its member, also to one of an unnamed part.
    pub fn offset(&self, structure: &str, member: &str) -> Option<i16> {
        let number = *self.named.get(&(STRUCT, structure.into()))?;
        i16::try_from(self.member_bits(number, member.as_bytes())? / 8).ok()
    }

    /// The value of a name of an enumeration.
    pub fn value(&self, enumeration: &str, name: &str) -> Option<u32> {
        let at = self.types[*self.named.get(&(ENUM, enumeration.into()))? as usize];
        let entries = (0..self.info(at)?.1).map(|index| at + TYPE_BYTES + 8 * index);
        let mut entries = entries.filter(|&at| self.name(at) == Some(name.as_bytes()));
        u32_at(&self.data, entries.next()? + 4)
    }

    fn member_bits(&self, number: u32, member: &[u8]) -> Option<u32> {
        let at = *self.types.get(number as usize)?;
        let (kind, count) = self.info(at)?;
        if kind != STRUCT && kind != UNION {
            return None;
        }
        (0..count).map(|index| at + TYPE_BYTES + MEMBER_BYTES * index).find_map(|entry| {
            // Where there are bit-fields, the upper byte has their size.
            let bits = u32_at(&self.data, entry + 8)? & 0x00ff_ffff;
            match self.name(entry)? {
                name if name == member => Some(bits),
                [] => Some(bits + self.member_bits(u32_at(&self.data, entry + 4)?, member)?),
                _ => None,
            }
        })
    }

    /// Kind and number of entries.
    fn info(&self, at: usize) -> Option<(u32, usize)> {
        let info = u32_at(&self.data, at + 4)?;
        Some((info >> 24 & 0x1f, (info & 0xffff) as usize))
    }

    /// The name that an entry begins with the place of.
    fn name(&self, at: usize) -> Option<&[u8]> {
        let text = self.data.get(self.strings + u32_at(&self.data, at)? as usize..)?;
        text.split(|&byte| byte == 0).next()
    }
}

/// What follows the head of a type.
fn more_bytes(kind: u32, count: usize) -> usize {
    match kind {
        INT | VAR | DECL_TAG => 4,
        ARRAY => 12,
        STRUCT | UNION | DATASEC | ENUM64 => MEMBER_BYTES * count,
        ENUM | FUNC_PROTO => 8 * count,
        _ => 0,
    }
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct s { int a; struct { int b; }; }`, `enum e { X = 7 }`, `typedef int t`.
    fn example() -> Vec<u8> {
        let names = b"\0int\0s\0a\0b\0e\0X\0t\0";
        let place = |name: &[u8]| {
            let found = names.windows(name.len() + 2).position(|w| &w[1..=name.len()] == name);
            found.unwrap() as u32 + 1
        };
        let info = |kind: u32, count: u32| kind << 24 | count;
        let words: Vec<u32> = [
            vec![place(b"int"), info(INT, 0), 4, 32],
            vec![0, info(STRUCT, 1), 4, place(b"b"), 1, 0],
            vec![place(b"s"), info(STRUCT, 2), 8, place(b"a"), 1, 0, 0, 2, 32],
            vec![place(b"e"), info(ENUM, 1), 4, place(b"X"), 7],
            vec![place(b"t"), info(TYPEDEF, 0), 1],
        ]
        .concat();
        let types: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut data = MAGIC.to_le_bytes().to_vec();
        data.extend([1, 0]);
        let lengths = [24, 0, types.len() as u32, types.len() as u32, names.len() as u32];
        data.extend(lengths.iter().flat_map(|word| word.to_ne_bytes()));
        data.extend(types);
        data.extend(names);
        data
    }

    #[test]
    fn members_values_and_numbers_are_found() {
        let btf = Btf::parse(example(), &["s", "e", "t"]).unwrap();
        assert_eq!((btf.offset("s", "a"), btf.offset("s", "b")), (Some(0), Some(4)));
        assert_eq!((btf.offset("s", "c"), btf.offset("t", "a")), (None, None));
        assert_eq!((btf.value("e", "X"), btf.value("e", "Y")), (Some(7), None));
        assert_eq!((btf.typedef("t"), btf.typedef("s")), (Some(5), None));
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_not_believed() {
        let data = example();
        for length in 0..data.len() - 20 {
            let _ = Btf::parse(data[..length].to_vec(), &["s"]).map(|btf| btf.offset("s", "b"));
        }
        assert!(Btf::parse(b"hello".to_vec(), &[]).is_none());
        assert!(Btf::parse(Vec::new(), &[]).is_none());
    }
}
