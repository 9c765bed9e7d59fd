//! Files that work has left where the trial reads them. The work may write to that folder: a file's
//! name may lead to one of the trial's own, to an endless one, or to a pipe that nobody writes to,
//! and the file may be larger than memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::machine::plain;

/// The most that is read of a text: what is kept of an output.
pub const TEXT_BYTES: u64 = super::printed::KEPT_BYTES;
/// The most that is read of what a program logs of all that it does.
pub const LOG_BYTES: u64 = 2 << 30;

/// Opens the file at `path`, if it is one.
pub fn open(path: &Path) -> io::Result<File> {
    plain::open_among_others(path, File::options().read(true))
}

/// What is in the file at `path`, which may have `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it has more than {} MiB", most >> 20))),
        false => Ok(bytes),
    }
}

/// [`read`] of a text.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::tool;

    #[test]
    fn nothing_but_a_file_of_some_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "four").unwrap();
        symlink(path("file"), path("link")).unwrap();
        symlink("/dev/zero", path("endless")).unwrap();
        tool::run_words(&["mkfifo", &path("pipe").display().to_string()]).unwrap();
        File::create(path("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(text(&path("file"), 4).unwrap(), "four");
        for (name, why) in [
            ("link", "it is a link, and is not followed"),
            ("endless", "it is a link, and is not followed"),
            ("pipe", "it is not a file"),
            ("sparse", "it has more than 1 MiB"),
        ] {
            assert_eq!(read(&path(name), 1 << 20).unwrap_err().to_string(), why, "{name}");
        }
        assert!(read(folder.path(), 4).is_err());
        assert_eq!(read(&path("none"), 4).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
