//! The kernel's names in a recording, as numbers of this machine.

use fsverdict_core::model::Action;
use libc::c_int;

/// Words with their numbers.
type Words = [(&'static str, c_int)];

/// open(2).
const OPEN: [(&str, c_int); 14] = [
    ("O_RDONLY", libc::O_RDONLY),
    ("O_WRONLY", libc::O_WRONLY),
    ("O_RDWR", libc::O_RDWR),
    ("O_CREAT", libc::O_CREAT),
    ("O_EXCL", libc::O_EXCL),
    ("O_TRUNC", libc::O_TRUNC),
    ("O_APPEND", libc::O_APPEND),
    ("O_DIRECT", libc::O_DIRECT),
    ("O_SYNC", libc::O_SYNC),
    ("O_DSYNC", libc::O_DSYNC),
    ("O_DIRECTORY", libc::O_DIRECTORY),
    ("O_NOFOLLOW", libc::O_NOFOLLOW),
    ("O_PATH", libc::O_PATH),
    ("O_TMPFILE", libc::O_TMPFILE),
];
/// Those that fcntl(2) changes.
const SET: [(&str, c_int); 2] = [("O_APPEND", libc::O_APPEND), ("O_DIRECT", libc::O_DIRECT)];
/// access(2).
const ACCESS: [(&str, c_int); 4] =
    [("F_OK", libc::F_OK), ("R_OK", libc::R_OK), ("W_OK", libc::W_OK), ("X_OK", libc::X_OK)];
/// renameat2(2).
const RENAME: [(&str, c_int); 3] = [
    ("RENAME_NOREPLACE", libc::RENAME_NOREPLACE as c_int),
    ("RENAME_EXCHANGE", libc::RENAME_EXCHANGE as c_int),
    ("RENAME_WHITEOUT", libc::RENAME_WHITEOUT as c_int),
];
/// fallocate(2).
const ALLOCATE: [(&str, c_int); 6] = [
    ("FALLOC_FL_KEEP_SIZE", libc::FALLOC_FL_KEEP_SIZE),
    ("FALLOC_FL_PUNCH_HOLE", libc::FALLOC_FL_PUNCH_HOLE),
    ("FALLOC_FL_COLLAPSE_RANGE", libc::FALLOC_FL_COLLAPSE_RANGE),
    ("FALLOC_FL_ZERO_RANGE", libc::FALLOC_FL_ZERO_RANGE),
    ("FALLOC_FL_INSERT_RANGE", libc::FALLOC_FL_INSERT_RANGE),
    ("FALLOC_FL_UNSHARE_RANGE", libc::FALLOC_FL_UNSHARE_RANGE),
];
/// sync_file_range(2).
const SYNC_RANGE: [(&str, c_int); 3] = [
    ("SYNC_FILE_RANGE_WAIT_BEFORE", libc::SYNC_FILE_RANGE_WAIT_BEFORE as c_int),
    ("SYNC_FILE_RANGE_WRITE", libc::SYNC_FILE_RANGE_WRITE as c_int),
    ("SYNC_FILE_RANGE_WAIT_AFTER", libc::SYNC_FILE_RANGE_WAIT_AFTER as c_int),
];
/// posix_fadvise(2): one of these.
const ADVICE: [(&str, c_int); 6] = [
    ("POSIX_FADV_NORMAL", libc::POSIX_FADV_NORMAL),
    ("POSIX_FADV_RANDOM", libc::POSIX_FADV_RANDOM),
    ("POSIX_FADV_SEQUENTIAL", libc::POSIX_FADV_SEQUENTIAL),
    ("POSIX_FADV_WILLNEED", libc::POSIX_FADV_WILLNEED),
    ("POSIX_FADV_DONTNEED", libc::POSIX_FADV_DONTNEED),
    ("POSIX_FADV_NOREUSE", libc::POSIX_FADV_NOREUSE),
];
/// mmap(2).
const MAP: [(&str, c_int); 3] = [
    ("MAP_SHARED", libc::MAP_SHARED),
    ("MAP_PRIVATE", libc::MAP_PRIVATE),
    ("MAP_POPULATE", libc::MAP_POPULATE),
];
/// msync(2).
const SYNC_MAP: [(&str, c_int); 3] = [
    ("MS_SYNC", libc::MS_SYNC),
    ("MS_ASYNC", libc::MS_ASYNC),
    ("MS_INVALIDATE", libc::MS_INVALIDATE),
];
/// madvise(2): one of these.
const MAP_ADVICE: [(&str, c_int); 7] = [
    ("MADV_NORMAL", libc::MADV_NORMAL),
    ("MADV_RANDOM", libc::MADV_RANDOM),
    ("MADV_SEQUENTIAL", libc::MADV_SEQUENTIAL),
    ("MADV_WILLNEED", libc::MADV_WILLNEED),
    ("MADV_DONTNEED", libc::MADV_DONTNEED),
    ("MADV_COLD", libc::MADV_COLD),
    ("MADV_PAGEOUT", libc::MADV_PAGEOUT),
];

const ERRORS: [(&str, c_int); 26] = [
    ("EBADF", libc::EBADF),
    ("EBUSY", libc::EBUSY),
    ("EDEADLK", libc::EDEADLK),
    ("EEXIST", libc::EEXIST),
    ("EFAULT", libc::EFAULT),
    ("EFBIG", libc::EFBIG),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("EISDIR", libc::EISDIR),
    ("ELOOP", libc::ELOOP),
    ("EMLINK", libc::EMLINK),
    ("ENAMETOOLONG", libc::ENAMETOOLONG),
    ("ENODATA", libc::ENODATA),
    ("ENODEV", libc::ENODEV),
    ("ENOENT", libc::ENOENT),
    ("ENOTDIR", libc::ENOTDIR),
    ("ENOTEMPTY", libc::ENOTEMPTY),
    ("ENXIO", libc::ENXIO),
    ("EOVERFLOW", libc::EOVERFLOW),
    ("ERANGE", libc::ERANGE),
    ("ESPIPE", libc::ESPIPE),
    ("ESTALE", libc::ESTALE),
    ("ETXTBSY", libc::ETXTBSY),
    ("EUCLEAN", libc::EUCLEAN),
    ("E2BIG", libc::E2BIG),
    ("ENOMEM", libc::ENOMEM),
];

/// The number that a call's words stand for, `O_RDWR|O_CREAT`. A word that is none of this call's
/// is the error, and so is a second one where it takes one: or-ed, words of different calls would
/// be others than they say.
pub fn number(action: &Action) -> Result<c_int, String> {
    let (known, text, takes_one): (&Words, _, _) = match action {
        Action::Open { flags, .. } => (&OPEN, flags, false),
        Action::SetFlags { flags, .. } => (&SET, flags, false),
        Action::Access { flags, .. } => (&ACCESS, flags, false),
        Action::Rename { flags, .. } => (&RENAME, flags, false),
        Action::Allocate { flags, .. } => (&ALLOCATE, flags, false),
        Action::SyncRange { flags, .. } => (&SYNC_RANGE, flags, false),
        Action::Advise { advice, .. } => (&ADVICE, advice, true),
        Action::Map { flags, .. } => (&MAP, flags, false),
        Action::SyncMap { flags, .. } => (&SYNC_MAP, flags, false),
        Action::AdviseMap { advice, .. } => (&MAP_ADVICE, advice, true),
        _ => return Ok(0),
    };
    let number = |word: &str| match known.iter().find(|(name, _)| *name == word) {
        Some((_, number)) => Ok(*number),
        None if ["", "0"].contains(&word) => Ok(0),
        None => Err(word.to_string()),
    };
    match takes_one {
        true => number(text),
        false => text.split('|').try_fold(0, |bits, word| Ok(bits | number(word)?)),
    }
}

/// The number of an error; what this program does not know is the error.
pub fn error(name: &str) -> Result<c_int, String> {
    let known = ERRORS.iter().find(|(known, _)| *known == name);
    known.map(|(_, number)| *number).ok_or_else(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use fsverdict_core::recording;

    use super::*;

    #[test]
    fn names_are_numbers_and_unknown_ones_are_told() {
        let open = |flags: &str| {
            number(&Action::Open { path: 0, flags: flags.into(), mode: 0, handle: None })
        };
        assert_eq!(open("O_RDWR|O_CREAT"), Ok(libc::O_RDWR | libc::O_CREAT));
        assert_eq!([open(""), open("0")], [Ok(0), Ok(0)]);
        assert_eq!(open("O_RDWR|O_MAGIC"), Err("O_MAGIC".into()));
        // Of these the sum would be MADV_HWPOISON, which takes pages from the machine.
        let advise = |advice: &str| {
            number(&Action::AdviseMap { map: 0, place: 0, bytes: 1, advice: advice.into() })
        };
        assert_eq!(advise("MADV_DONTNEED"), Ok(libc::MADV_DONTNEED));
        for wrong in ["MADV_DONTNEED|MADV_COLD", "O_CREAT", "FALLOC_FL_INSERT_RANGE"] {
            assert_eq!(advise(wrong), Err(wrong.into()));
        }
        assert_eq!(error("ENOENT"), Ok(libc::ENOENT));
        assert_eq!(error("EMAGIC"), Err("EMAGIC".into()));
    }

    #[test]
    fn all_that_is_recorded_is_known() {
        let (handle, place, bytes) = (0, 0, 0);
        let flags = recording::ALLOCATE_FLAGS.join("|");
        assert!(number(&Action::Allocate { handle, flags, place, bytes }).is_ok());
        let flags = recording::SETTABLE_FLAGS.join("|");
        assert!(number(&Action::SetFlags { handle, flags }).is_ok());
        for advice in recording::ADVICE.map(String::from) {
            assert!(number(&Action::Advise { handle, advice, place, bytes }).is_ok());
        }
        assert!(recording::ERRORS.iter().all(|name| error(name).is_ok()));
    }
}
