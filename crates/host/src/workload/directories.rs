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

    /// What `thread` of `threads` goes over in each of `turns`, in order: equally many files in
    /// each. A directory without files belongs to the turn that reaches it.
    pub fn stretches(self, thread: u32, threads: u32, turns: u32) -> Vec<Vec<Stretch>> {
        let share = self.share(thread, threads);
        let first = self.numbers(share.start).start;
        let files = self.numbers(share.end).start - first;
        let ends: Vec<u64> =
            (1..=turns).map(|turn| first + share_start(files, turn, turns)).collect();
        let mut all = vec![Vec::new(); turns as usize];
        let mut turn = 0;
        for directory in share {
            let numbers = self.numbers(directory);
            let mut start = numbers.start;
            loop {
                while turn + 1 < ends.len() && ends[turn] <= start {
                    turn += 1;
                }
                let files = start..numbers.end.min(ends[turn]);
                let (is_first, is_last) = (start == numbers.start, files.end == numbers.end);
                start = files.end;
                all[turn].push(Stretch { directory, files, is_first, is_last });
                if is_last {
                    break;
                }
            }
        }
        all
    }
}

/// Files of one directory that are gone over in one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The directory's number.
    pub directory: u32,
    /// The files' numbers.
    pub files: Range<u64>,
    /// It begins the directory, which nobody has entered before.
    pub is_first: bool,
    /// It ends the directory.
    pub is_last: bool,
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
    fn turns_have_as_many_files_and_every_directory_is_entered_and_left_once() {
        for (files, directories, threads, turns) in
            [(1001, 5, 3, 7), (9, 9, 2, 20), (3, 8, 1, 4), (100, 1, 1, 1), (0, 3, 1, 2)]
        {
            let all = Directories { files, directories };
            let (mut next, mut left) = (0, 0);
            for thread in 0..threads {
                let stretches = all.stretches(thread, threads, turns);
                let counts: Vec<u64> = stretches.iter().map(|turn| files_of(turn)).collect();
                assert_eq!(counts.len(), turns as usize);
                let (most, least) = (counts.iter().max().unwrap(), counts.iter().min().unwrap());
                assert!(most - least <= 1, "{counts:?}");
                for stretch in stretches.concat() {
                    let numbers = all.numbers(stretch.directory);
                    assert_eq!((stretch.directory, stretch.files.start), (left, next));
                    assert_eq!(stretch.is_first, stretch.files.start == numbers.start);
                    next = stretch.files.end;
                    left += u32::from(stretch.is_last);
                    assert_eq!(stretch.is_last, next == numbers.end);
                }
            }
            assert_eq!((next, left), (files, directories));
        }
    }

    fn files_of(stretches: &[Stretch]) -> u64 {
        stretches.iter().map(|it| it.files.end - it.files.start).sum()
    }

    #[test]
    fn names_may_be_paths() {
        let names = Names::new(b"/mnt/d0000/f", 7..9);
        let names: Vec<_> = names.iter().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["/mnt/d0000/f00000007", "/mnt/d0000/f00000008"]);
        assert_eq!(Names::none().iter().count(), 0);
    }
}
