//! Archives that kernels unpack (cpio's `newc`: Documentation/driver-api/early-userspace/
//! buffer-format.rst). The initial file system of a guest is one, and so is what goes into a trial
//! and comes out of it, on a disk without a file system.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use cpio::newc::{Builder, Reader, trailer};

use crate::machine::folder::Folder;

// The kinds of files in their modes: inode(7).
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;
const REGULAR: u32 = 0o100_000;

/// No trial leaves more files and folders: unpacking has to make each.
const ENTRIES_MAX: usize = 1 << 16;
/// No longer name can be given to a file: limits.h, `PATH_MAX`.
const NAME_BYTES_MAX: usize = 4096;

/// An archive that is being written.
#[derive(Debug)]
pub struct Archive<W: Write> {
    out: W,
}

impl<W: Write> Archive<W> {
    /// An archive without entries.
    pub fn new(out: W) -> Self {
        Archive { out }
    }

    fn put(&mut self, entry: Builder, content: &[u8]) -> io::Result<()> {
        let size = u32::try_from(content.len());
        let size = size.map_err(|_| io::Error::other("a file of 4 GiB or more fits no archive"))?;
        let mut writer = entry.nlink(1).write(&mut self.out, size);
        writer.write_all(content)?;
        writer.finish().map(drop)
    }

    /// A directory.
    pub fn directory(&mut self, name: &str, mode: u32) -> io::Result<()> {
        self.put(Builder::new(name).mode(DIRECTORY | mode), &[])
    }

    /// A symbolic link.
    pub fn link(&mut self, name: &str, target: &Path) -> io::Result<()> {
        let target = target.as_os_str().as_encoded_bytes();
        self.put(Builder::new(name).mode(LINK | 0o777), target)
    }

    /// A character device, which it takes no right to write down.
    pub fn device(&mut self, name: &str, [major, minor]: [u32; 2]) -> io::Result<()> {
        let entry = Builder::new(name).mode(DEVICE | 0o666).rdev_major(major).rdev_minor(minor);
        self.put(entry, &[])
    }

    /// A file of this content, root's.
    pub fn bytes(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        self.put(Builder::new(name).mode(REGULAR | mode), content)
    }

    /// A file with its mode, owner and time.
    pub fn file(&mut self, name: &str, path: &Path) -> io::Result<()> {
        let data = fs::metadata(path)?;
        let time_s = u32::try_from(data.mtime()).unwrap_or(0);
        let entry = Builder::new(name).mode(REGULAR | (data.mode() & 0o7777));
        let entry = entry.uid(data.uid()).gid(data.gid()).mtime(time_s);
        self.put(entry, &fs::read(path)?)
    }

    /// Everything below `folder`; `name` stands for it.
    pub fn folder(&mut self, name: &str, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{name}{}", entry.file_name().to_string_lossy());
            match entry.file_type()? {
                kind if kind.is_dir() => {
                    self.directory(&name, 0o755)?;
                    self.folder(&format!("{name}/"), &entry.path())?;
                }
                kind if kind.is_file() => self.file(&name, &entry.path())?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends it; gives what it was written to.
    pub fn finish(self) -> io::Result<W> {
        let mut out = trailer(self.out)?;
        out.flush()?;
        Ok(out)
    }
}

/// The files of an archive by their names. One that does not end as archives do is an error, and so
/// is one with more entries than a trial leaves, or longer names.
pub fn files(mut from: impl BufRead) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for _ in 0..=ENTRIES_MAX {
        let mut reader = Reader::new(from)?;
        let entry = reader.entry();
        if entry.is_trailer() {
            return Ok(files);
        }
        if entry.name().len() > NAME_BYTES_MAX {
            let text = format!("the archive has a name of more than {NAME_BYTES_MAX} bytes");
            return Err(io::Error::other(text));
        }
        let (name, is_file) = (entry.name().to_string(), entry.mode() & 0o170_000 == REGULAR);
        let mut content = Vec::new();
        io::copy(&mut reader, &mut content)?;
        from = reader.finish()?;
        if is_file {
            files.insert(name, content);
        }
    }
    Err(io::Error::other(format!("the archive has more than {ENTRIES_MAX} files")))
}

/// Writes `files` below `folder`. Names that lead out of it are refused, and no link is followed.
pub fn unpack(files: &BTreeMap<String, Vec<u8>>, folder: &Folder) -> io::Result<()> {
    check_folders(files)?;
    for (path, content) in files {
        let path = Path::new(path);
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
        let parts = path.parent().zip(path.file_name().and_then(OsStr::to_str));
        let Some((above, name)) = parts.filter(|_| is_below) else {
            let text = format!("{} is not the name of a file to be unpacked", path.display());
            return Err(io::Error::other(text));
        };
        folder.make(above)?.create(name)?.write_all(content)?;
    }
    Ok(())
}

/// A few names may tell of millions of folders, each within the one before it.
fn check_folders(files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let mut folders = BTreeSet::new();
    for path in files.keys() {
        let mut above = Path::new(path).ancestors().skip(1);
        while above.next().is_some_and(|folder| folders.insert(folder)) {}
        if folders.len() > ENTRIES_MAX {
            let text = format!("the archive has more than {ENTRIES_MAX} folders");
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn archive() -> Vec<u8> {
        let mut archive = Archive::new(Vec::new());
        archive.directory("raw", 0o755).unwrap();
        archive.bytes("raw/a", 0o644, b"one").unwrap();
        archive.link("b", Path::new("raw/a")).unwrap();
        archive.device("console", [5, 1]).unwrap();
        archive.finish().unwrap()
    }

    #[test]
    fn what_goes_in_comes_out() {
        let bytes = archive();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(bytes.len() % 4, 0, "another one can follow it");
        let files = files(&bytes[..]).unwrap();
        assert_eq!(files, [("raw/a".to_string(), b"one".to_vec())].into());
        let scene = tempfile::tempdir().unwrap();
        let folder = Folder::open(&scene.path().canonicalize().unwrap()).unwrap();
        let other = scene.path().join("other");
        fs::write(&other, "another's").unwrap();
        fs::create_dir(scene.path().join("raw")).unwrap();
        symlink(&other, scene.path().join("raw/a")).unwrap();
        unpack(&files, &folder).unwrap();
        assert_eq!(fs::read(scene.path().join("raw/a")).unwrap(), b"one");
        assert_eq!(fs::read(&other).unwrap(), b"another's", "it was a link to that");
        fs::remove_dir_all(scene.path().join("raw")).unwrap();
        symlink("/tmp", scene.path().join("raw")).unwrap();
        unpack(&files, &folder).unwrap_err();
    }

    #[test]
    fn half_an_archive_is_none() {
        let bytes = archive();
        for length in [0, 50, bytes.len() / 2, bytes.len() - 8] {
            files(&bytes[..length]).unwrap_err();
        }
    }

    #[test]
    fn an_archive_without_end_is_refused() {
        let of = |count: usize| {
            let mut archive = Archive::new(Vec::new());
            (0..count).for_each(|name| archive.bytes(&name.to_string(), 0o644, b"").unwrap());
            files(&archive.finish().unwrap()[..]).map(|files| files.len())
        };
        assert_eq!(of(ENTRIES_MAX).unwrap(), ENTRIES_MAX);
        assert!(of(ENTRIES_MAX + 1).unwrap_err().to_string().ends_with("65536 files"));
    }

    #[test]
    fn nothing_is_unpacked_outside() {
        let scene = tempfile::tempdir().unwrap();
        let folder = Folder::open(&scene.path().canonicalize().unwrap()).unwrap();
        for name in ["../out", "/tmp/out", "a/../../out", ""] {
            let files = [(name.to_string(), Vec::new())].into();
            unpack(&files, &folder).unwrap_err();
        }
    }
    #[test]
    fn names_tell_of_no_more_folders_than_a_trial_leaves() {
        let scene = tempfile::tempdir().unwrap();
        let folder = Folder::open(&scene.path().canonicalize().unwrap()).unwrap();
        let refused = |names: &mut dyn Iterator<Item = String>| {
            let mut archive = Archive::new(Vec::new());
            names.for_each(|name| archive.bytes(&name, 0o644, b"").unwrap());
            let files = files(&archive.finish().unwrap()[..]);
            files.and_then(|files| unpack(&files, &folder)).unwrap_err().to_string()
        };
        let deep = |name: usize, depth: usize| format!("{name}/{}f", "d/".repeat(depth));
        let said = refused(&mut [deep(0, 3000)].into_iter());
        assert_eq!(said, "the archive has a name of more than 4096 bytes");
        let said = refused(&mut (0..700).map(|name| deep(name, 99)));
        assert_eq!(said, "the archive has more than 65536 folders");
        assert_eq!(fs::read_dir(scene.path()).unwrap().count(), 0, "it was known before");
        let said = refused(&mut [deep(0, 100)].into_iter());
        assert_eq!(said, "folders lie 100 deep in each other");
    }
}
