//! The files of the native workloads: directories `d0000`, `d0001` and so on in the work directory
//! hold files `f00000000`, `f00000001` and so on, numbered through; each directory has a run of
//! numbers and belongs to one thread, so that threads share the file system and not a directory's
//! lock.

use std::ffi::{CStr, CString};
use std::ops::Range;

/// How many files, in how many directories.
#[derive(Clone, Copy, Debug)]
pub struct Directories {
    /// Files altogether.
    pub files: u64,
    /// Directories they are spread over.
    pub directories: u32,
}

impl Directories {
    /// The directories that belong to `thread` of `threads`.
    pub fn share(self, thread: u32, threads: u32) -> Range<u32> {
        let first = |thread| share_start(self.directories.into(), thread, threads) as u32;
        first(thread)..first(thread + 1)
    }

    /// The numbers of the files in a directory.
    pub fn numbers(self, directory: u32) -> Range<u64> {
        let first = |directory| share_start(self.files, directory, self.directories);
        first(directory)..first(directory + 1)
    }
}

/// Where the share of `part` begins when `whole` is dealt out in `parts` runs of equal length.
fn share_start(whole: u64, part: u32, parts: u32) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(parts)) as u64
}

/// The name of a directory.
pub fn directory_name(number: u32) -> String {
    format!("d{number:04}")
}

/// The name of a directory, as the kernel takes it.
pub fn directory_c_name(number: u32) -> CString {
    CString::new(directory_name(number)).expect("the name holds no NUL")
}

/// The name of a file: `f` as made, `r` once renamed, and its number.
pub fn file_name(prefix: char, number: u64) -> String {
    format!("{prefix}{number:08}")
}

/// Names as the kernel takes them, one after another in one piece of memory.
#[derive(Debug)]
pub struct Names {
    bytes: Vec<u8>,
    each_bytes: usize,
}

impl Names {
    /// No names.
    pub fn none() -> Names {
        Names { bytes: Vec::new(), each_bytes: 1 }
    }

    /// `prefix` and eight digits for each of `numbers`. The prefix may be a path; it holds no NUL.
    pub fn new(prefix: &[u8], numbers: Range<u64>) -> Names {
        let each_bytes = prefix.len() + 9;
        let mut bytes = Vec::with_capacity((numbers.end - numbers.start) as usize * each_bytes);
        for number in numbers {
            bytes.extend_from_slice(prefix);
            bytes.extend_from_slice(format!("{number:08}\0").as_bytes());
        }
        Names { bytes, each_bytes }
    }

    /// Each of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &CStr> {
        let names = self.bytes.chunks_exact(self.each_bytes);
        names.map(|name| CStr::from_bytes_with_nul(name).expect("each was written with its NUL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_directories_are_dealt_out_without_a_gap() {
        let directories = Directories { files: 1001, directories: 5 };
        assert_eq!([0, 1, 2].map(|thread| directories.share(thread, 3)), [0..1, 1..3, 3..5]);
        assert_eq!((directories.numbers(0), directories.numbers(4)), (0..200, 800..1001));
    }

    #[test]
    fn names_may_be_paths() {
        let names = Names::new(b"/mnt/d0000/f", 7..9);
        let names: Vec<_> = names.iter().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["/mnt/d0000/f00000007", "/mnt/d0000/f00000008"]);
        assert_eq!(Names::none().iter().count(), 0);
    }
}
