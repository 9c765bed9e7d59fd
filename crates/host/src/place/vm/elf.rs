//! Kernel modules and programs as files: elf(5), for 64 bits and with the lowest byte first.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const HEADER_BYTES: u64 = 64;
const SECTION_BYTES: usize = 64;
/// No module's is longer.
const BYTES_MAX: u64 = 16 << 20;

/// The longest name of a section that is read.
const NAME_BYTES_MAX: usize = 256;
/// No program asks for more libraries, nor by longer names: limits.h, `PATH_MAX`. All may have one
/// name, of as many bytes as a section may have.
const LIBRARIES_MAX: usize = 1024;
const PATH_BYTES_MAX: usize = 4096;
/// What stands behind a module that is signed, with all that it signs before it.
const SIGNED: &[u8] = b"~Module signature appended~\n";
/// Fields of a section's header.
const TYPE: Range<usize> = 4..8;
const FLAGS: Range<usize> = 8..16;
const OFFSET: Range<usize> = 24..32;
const SIZE: Range<usize> = 32..40;
const ALIGNMENT: Range<usize> = 48..56;
/// Types of sections: there is none; it has no bytes in the file.
const NULL: u64 = 0;
const NO_BITS: u64 = 8;

/// The number in these bytes.
fn number(from: &[u8], at: Range<usize>) -> u64 {
    let field = from.get(at).unwrap_or_default();
    field.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn wrong() -> io::Error {
    io::Error::other("it is not a module for 64-bit processors")
}

/// What reads so many bytes from there.
type Read<'a> = &'a dyn Fn(u64, u64) -> io::Result<Vec<u8>>;

/// The headers of all sections, each with its name.
fn sections(read: Read<'_>) -> io::Result<Vec<(String, Vec<u8>)>> {
    let header = read(0, HEADER_BYTES)?;
    if !header.starts_with(b"\x7fELF\x02\x01") || number(&header, 0x3a..0x3c) != 64 {
        return Err(wrong());
    }
    let table = read(number(&header, 0x28..0x30), number(&header, 0x3c..0x3e) * 64)?;
    let sections: Vec<&[u8]> = table.chunks_exact(SECTION_BYTES).collect();
    let names = sections.get(number(&header, 0x3e..0x40) as usize).ok_or_else(wrong)?;
    let names = read(number(names, OFFSET), number(names, SIZE))?;
    let name = |section: &[u8]| {
        let text = names.get(number(section, 0..4) as usize..).unwrap_or_default();
        let text = &text[..text.len().min(NAME_BYTES_MAX)];
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    Ok(sections.into_iter().map(|section| (name(section), section.to_vec())).collect())
}

/// The content of the section of that name; nothing if there is none.
pub fn section(file: &File, name: &str) -> io::Result<Vec<u8>> {
    let read = |at: u64, bytes: u64| {
        if bytes > BYTES_MAX {
            return Err(wrong());
        }
        let mut content = vec![0; bytes as usize];
        file.read_exact_at(&mut content, at).map(|()| content)
    };
    let found = sections(&read)?.into_iter().find(|(its, _)| its == name);
    found.map_or(Ok(Vec::new()), |(_, it)| read(number(&it, OFFSET), number(&it, SIZE)))
}

/// The libraries that a program or library in that file asks for by their names (elf(5),
/// DT_NEEDED), and the loader that starts it (PT_INTERP); none of what is no such file.
pub fn needed(file: &File) -> Vec<String> {
    const NEEDED: u64 = 1;
    const ENTRY_BYTES: usize = 16;
    let all = || {
        let (dynamic, names) = (section(file, ".dynamic").ok()?, section(file, ".dynstr").ok()?);
        let entries = dynamic.chunks_exact(ENTRY_BYTES);
        let needed = entries.filter(|it| number(it, 0..8) == NEEDED).take(LIBRARIES_MAX);
        let loader = section(file, ".interp").ok()?;
        let text = |bytes: &[u8]| {
            let bytes = &bytes[..bytes.len().min(PATH_BYTES_MAX)];
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        let name = |it: &[u8]| text(names.get(number(it, 8..16) as usize..).unwrap_or_default());
        Some(needed.map(name).chain([text(&loader)]).filter(|it| !it.is_empty()).collect())
    };
    all().unwrap_or_default()
}

/// The module without its debugging sections, which may be ten times the rest; unchanged if it is
/// signed. The sections keep their numbers, because others refer to them.
pub fn without_debug(module: Vec<u8>) -> Vec<u8> {
    if module.ends_with(SIGNED) {
        return module;
    }
    shortened(&module).unwrap_or(module)
}

fn shortened(module: &[u8]) -> Option<Vec<u8>> {
    let read = |at: u64, bytes: u64| {
        let end = at.checked_add(bytes).ok_or_else(wrong)?;
        module.get(at as usize..end as usize).map(<[u8]>::to_vec).ok_or_else(wrong)
    };
    let mut sections = sections(&read).ok()?;
    let is_debug = |name: &str| name.starts_with(".debug") || name.starts_with(".rela.debug");
    sections.iter().find(|(name, _)| is_debug(name))?;
    let mut out = read(0, HEADER_BYTES).ok()?;
    for (name, section) in &mut sections {
        let kind = number(section, TYPE);
        if is_debug(name) {
            for field in [TYPE, FLAGS, OFFSET, SIZE] {
                section[field].fill(0);
            }
        } else if kind != NULL && kind != NO_BITS {
            let content = read(number(section, OFFSET), number(section, SIZE)).ok()?;
            let aligned = number(section, ALIGNMENT).clamp(1, 4096) as usize;
            out.resize(out.len().next_multiple_of(aligned), 0);
            section[OFFSET].copy_from_slice(&(out.len() as u64).to_le_bytes());
            out.extend(content);
        }
        // Sections that lie upon one another are nobody's module.
        if out.len() > 2 * module.len() {
            return None;
        }
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let table = (out.len() as u64).to_le_bytes();
    out[0x28..0x30].copy_from_slice(&table);
    sections.iter().for_each(|(_, section)| out.extend(section));
    Some(out)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use super::*;

    /// A module that has these sections, and before them one for their names.
    pub fn module(all: &[(&str, &str)]) -> Vec<u8> {
        let names = all.iter().map(|(name, _)| *name).chain([".shstrtab"]);
        let names: String = names.map(|name| format!("\0{name}")).collect::<String>() + "\0";
        let all: Vec<(&str, &str)> =
            [(".shstrtab", names.as_str())].into_iter().chain(all.iter().copied()).collect();
        let mut elf = b"\x7fELF\x02\x01".to_vec();
        elf.resize(64, 0);
        elf[0x28..0x30].copy_from_slice(&64_u64.to_le_bytes());
        let count = u16::try_from(all.len() + 1).unwrap();
        for (at, number) in [(0x3a, 64_u16), (0x3c, count), (0x3e, 1)] {
            elf[at..at + 2].copy_from_slice(&number.to_le_bytes());
        }
        elf.resize(128, 0);
        let mut at = 128 + 64 * all.len();
        for (name, content) in &all {
            let place = names.find(&format!("\0{name}\0")).unwrap() + 1;
            let mut section = vec![0; 64];
            section[..4].copy_from_slice(&u32::try_from(place).unwrap().to_le_bytes());
            section[TYPE].copy_from_slice(&1_u32.to_le_bytes());
            section[OFFSET].copy_from_slice(&(at as u64).to_le_bytes());
            section[SIZE].copy_from_slice(&(content.len() as u64).to_le_bytes());
            section[ALIGNMENT].copy_from_slice(&16_u64.to_le_bytes());
            elf.extend(section);
            at += content.len();
        }
        all.iter().for_each(|(_, content)| elf.extend(content.as_bytes()));
        elf
    }

    fn content(module: &[u8], name: &str) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(module).unwrap();
        String::from_utf8(section(&file, name).unwrap()).unwrap()
    }

    #[test]
    fn a_module_loses_what_is_for_debuggers_and_keeps_the_rest() {
        let debug = "x".repeat(10_000);
        let whole =
            module(&[(".text", "code"), (".debug_info", &debug), (".modinfo", "depends=a\0")]);
        assert_eq!(content(&whole, ".debug_info"), debug);
        let short = without_debug(whole.clone());
        assert!(short.len() < 1000, "{}", short.len());
        assert_eq!(content(&short, ".text"), "code");
        assert_eq!(content(&short, ".modinfo"), "depends=a\0");
        assert_eq!(content(&short, ".debug_info"), "");
        let signed = [whole, SIGNED.to_vec()].concat();
        assert_eq!(without_debug(signed.clone()), signed);
        assert_eq!(without_debug(b"text".to_vec()), b"text");
    }

    #[test]
    fn a_program_tells_its_libraries_and_its_loader() {
        let ours = File::open(std::env::current_exe().unwrap()).unwrap();
        let needed = needed(&ours);
        assert!(needed.iter().any(|it| it == "libc.so.6"), "{needed:?}");
        assert!(needed.last().unwrap().starts_with("/lib"), "{needed:?}");
        let other = tempfile::tempfile().unwrap();
        assert_eq!(super::needed(&other), [""; 0]);
    }

    #[test]
    fn names_of_libraries_take_no_more_than_they_may_have() {
        let entry = format!("\x01{}", "\0".repeat(15));
        let mut file = tempfile::tempfile().unwrap();
        let (entries, name) = (entry.repeat(3000), "x".repeat(1 << 20));
        file.write_all(&module(&[(".dynamic", &entries), (".dynstr", &name)])).unwrap();
        let needed = needed(&file);
        assert_eq!(needed.len(), LIBRARIES_MAX);
        assert!(needed.iter().all(|it| it.len() == PATH_BYTES_MAX));
    }

    #[test]
    fn what_is_no_module_says_so() {
        let said = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            section(&file, ".modinfo").unwrap_err().to_string()
        };
        assert_eq!(said(&[0; 64]), "it is not a module for 64-bit processors");
        said(b"");
        let mut endless = module(&[]);
        endless[0x3e] = 9;
        assert_eq!(said(&endless), "it is not a module for 64-bit processors");
    }
}
