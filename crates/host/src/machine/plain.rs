//! Plain files that others may have written: a path may lead to a pipe that nobody writes to, or to
//! an endless device.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Nothing that is read whole is larger.
pub const BYTES_MAX: u64 = 512 << 20;

/// Opens it.
///
/// # Errors
/// Where it is something else.
pub fn open(path: &Path) -> io::Result<File> {
    let none = || io::Error::other("it is not a plain file");
    // Opening a pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(none());
    }
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(none()) }
}

/// Opens it with these options in a folder that others write to meanwhile: a link is not followed,
/// and nothing is waited for.
///
/// # Errors
/// Where it is something else.
pub fn open_among_others(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file =
        options.custom_flags(flags).open(path).map_err(|error| match error.raw_os_error() {
            // open(2), O_NOFOLLOW.
            Some(libc::ELOOP) => io::Error::other("it is a link, and is not followed"),
            _ => error,
        })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file")),
    }
}

/// What a file of the kernel's says; `None` if there is none.
///
/// # Errors
/// If it is there, or may be, and can't be read.
pub fn text_if_there(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

/// All that comes out of `input`.
///
/// # Errors
/// Where that is more than `most` bytes.
pub fn all_of(input: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it has more than {} MiB: too much", most >> 20))),
        false => Ok(bytes),
    }
}

/// What it holds.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    all_of(open(path)?, BYTES_MAX)
}

/// What it holds, as text.
pub fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_not_opened_and_what_has_no_end_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it");
        fs::write(&path, "text").unwrap();
        assert_eq!(text(&path).unwrap(), "text");
        for other in ["/dev/zero", "/tmp", "/no/such"] {
            assert!(bytes(Path::new(other)).is_err(), "{other}");
        }
        let error = all_of(io::repeat(7), 3 << 20).unwrap_err().to_string();
        assert_eq!(error, "it has more than 3 MiB: too much");
        assert_eq!(all_of(&b"abc"[..], 3).unwrap(), b"abc");
    }
}
