//! The kernel's names in a recording, as numbers of this machine.

use libc::c_int;

const FLAGS: [(&str, c_int); 51] = [
    ("0", 0),
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
    ("F_OK", libc::F_OK),
    ("R_OK", libc::R_OK),
    ("W_OK", libc::W_OK),
    ("X_OK", libc::X_OK),
    ("RENAME_NOREPLACE", libc::RENAME_NOREPLACE as c_int),
    ("RENAME_EXCHANGE", libc::RENAME_EXCHANGE as c_int),
    ("RENAME_WHITEOUT", libc::RENAME_WHITEOUT as c_int),
    ("FALLOC_FL_KEEP_SIZE", libc::FALLOC_FL_KEEP_SIZE),
    ("FALLOC_FL_PUNCH_HOLE", libc::FALLOC_FL_PUNCH_HOLE),
    ("FALLOC_FL_COLLAPSE_RANGE", libc::FALLOC_FL_COLLAPSE_RANGE),
    ("FALLOC_FL_ZERO_RANGE", libc::FALLOC_FL_ZERO_RANGE),
    ("FALLOC_FL_INSERT_RANGE", libc::FALLOC_FL_INSERT_RANGE),
    ("FALLOC_FL_UNSHARE_RANGE", libc::FALLOC_FL_UNSHARE_RANGE),
    ("SYNC_FILE_RANGE_WAIT_BEFORE", libc::SYNC_FILE_RANGE_WAIT_BEFORE as c_int),
    ("SYNC_FILE_RANGE_WRITE", libc::SYNC_FILE_RANGE_WRITE as c_int),
    ("SYNC_FILE_RANGE_WAIT_AFTER", libc::SYNC_FILE_RANGE_WAIT_AFTER as c_int),
    ("POSIX_FADV_NORMAL", libc::POSIX_FADV_NORMAL),
    ("POSIX_FADV_RANDOM", libc::POSIX_FADV_RANDOM),
    ("POSIX_FADV_SEQUENTIAL", libc::POSIX_FADV_SEQUENTIAL),
    ("POSIX_FADV_WILLNEED", libc::POSIX_FADV_WILLNEED),
    ("POSIX_FADV_DONTNEED", libc::POSIX_FADV_DONTNEED),
    ("POSIX_FADV_NOREUSE", libc::POSIX_FADV_NOREUSE),
    ("MAP_SHARED", libc::MAP_SHARED),
    ("MAP_PRIVATE", libc::MAP_PRIVATE),
    ("MAP_POPULATE", libc::MAP_POPULATE),
    ("MS_SYNC", libc::MS_SYNC),
    ("MS_ASYNC", libc::MS_ASYNC),
    ("MS_INVALIDATE", libc::MS_INVALIDATE),
    ("MADV_NORMAL", libc::MADV_NORMAL),
    ("MADV_RANDOM", libc::MADV_RANDOM),
    ("MADV_SEQUENTIAL", libc::MADV_SEQUENTIAL),
    ("MADV_WILLNEED", libc::MADV_WILLNEED),
    ("MADV_DONTNEED", libc::MADV_DONTNEED),
    ("MADV_COLD", libc::MADV_COLD),
    ("MADV_PAGEOUT", libc::MADV_PAGEOUT),
    ("", 0),
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

/// The flags of `text`, `O_RDWR|O_CREAT`; what this program does not know is the error.
pub fn flags(text: &str) -> Result<c_int, String> {
    let flag = |word: &str| match FLAGS.iter().find(|(known, _)| *known == word) {
        Some((_, bits)) => Ok(*bits),
        None => Err(word.to_string()),
    };
    text.split('|').try_fold(0, |bits, word| Ok(bits | flag(word)?))
}

/// The number of an error; what this program does not know is the error.
pub fn error(name: &str) -> Result<c_int, String> {
    let known = ERRORS.iter().find(|(known, _)| *known == name);
    known.map(|(_, number)| *number).ok_or_else(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers_and_unknown_ones_are_told() {
        assert_eq!(flags("O_RDWR|O_CREAT"), Ok(libc::O_RDWR | libc::O_CREAT));
        assert_eq!([flags(""), flags("0")], [Ok(0), Ok(0)]);
        assert_eq!(flags("O_RDWR|O_MAGIC"), Err("O_MAGIC".into()));
        assert_eq!(error("ENOENT"), Ok(libc::ENOENT));
        assert_eq!(error("EMAGIC"), Err("EMAGIC".into()));
    }
}
