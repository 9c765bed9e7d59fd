//! Folders of our own: all that a run leaves on a disk lies in one of these.
//!
//! Such a folder is called `.fsverdict-` and a random number, and holds a mark: a file of ours that
//! names the folder and its inode. Only a folder with its mark is ever emptied, so that others lose
//! nothing that they have put under such a name; the mark also identifies it after a reboot. A
//! living run holds a lock on the mark. All is done by descriptors: it does not matter where the
//! names on the way lead by now.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::{BedError, failed};
use crate::machine::folder;
use crate::machine::token::Token;
use crate::sys;

/// How they are called, before their token.
pub(crate) const PREFIX: &str = ".fsverdict-";
const MARK: &CStr = c"mark.json";
/// More than any mark of ours has.
const MARK_BYTES: u64 = 4096;

/// How often a folder that is not empty yet is emptied again, and how long between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// What a mark says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    /// The token in the folder's name.
    folder: Token,
    /// The folder's inode: a mark that was taken elsewhere marks nothing.
    inode: u64,
}

/// A folder of our own, held. It stays until it is removed.
#[derive(Debug)]
pub struct Own {
    parent: File,
    directory: File,
    /// The lock on it says that we live.
    mark: File,
    token: Token,
    path: PathBuf,
    /// See [`Own::held`].
    held: PathBuf,
}

impl Drop for Own {
    /// A process that another thread has just forked has the mark open, too, until its execve(2).
    /// Closing it alone would leave the lock to that process (flock(2)).
    fn drop(&mut self) {
        let _ = self.mark.unlock();
    }
}

/// The name of the folder of that token.
pub fn name(token: &Token) -> String {
    format!("{PREFIX}{token}")
}

/// The token in a folder's name, if it is one of ours.
pub fn token_of(name: &str) -> Option<Token> {
    Token::parse(name.strip_prefix(PREFIX)?)
}

/// Where the run called `lab` has its folder in `dir`, as an absolute path without links if there
/// is one. A run that is only talked about has no name.
pub fn of_run(dir: &Path, lab: &str) -> PathBuf {
    let lab = if lab.is_empty() { "RUN" } else { lab };
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
    dir.join(format!("{PREFIX}{lab}"))
}

fn c_name(token: &Token) -> CString {
    CString::new(name(token)).expect("a token holds no NUL")
}

impl Own {
    /// Makes the folder in `dir`, whose path without links `before` hears first. `mode` is less
    /// the umask.
    pub(super) fn make(
        dir: &Path,
        token: &Token,
        mode: u32,
        before: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<Own> {
        let path = fs::canonicalize(dir)?;
        let parent = sys::open_without_links(&path, libc::O_DIRECTORY | libc::O_RDONLY)?;
        before(&path)?;
        Own::make_in(parent, &path, token, mode)
    }

    fn make_in(parent: File, at: &Path, token: &Token, mode: u32) -> io::Result<Own> {
        let (path, name) = (at.join(name(token)), c_name(token));
        let us = folder::us()?;
        sys::make_directory_as(parent.as_fd(), &name, mode)?;
        match Own::begun(&parent, token) {
            Ok((directory, mark)) => {
                let held = us.join("fd").join(directory.as_raw_fd().to_string());
                Ok(Own { parent, directory, mark, token: token.clone(), path, held })
            }
            Err(error) => {
                // Nobody would look for it later. What is not empty is somebody else's.
                let _ = sys::remove_directory_at(parent.as_fd(), &name);
                Err(error)
            }
        }
    }

    /// The folder that was made, open, and its mark; none stays that could not be written.
    fn begun(parent: &File, token: &Token) -> io::Result<(File, File)> {
        let directory = opened(parent, token)?;
        // In a folder of somebody else's, another may stand there by now.
        let owner = directory.metadata()?.uid();
        if owner != sys::user_id() || fs::read_dir(held(&directory))?.next().is_some() {
            return Err(io::Error::other(format!("{} was exchanged", name(token))));
        }
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        let mut mark = File::from(sys::open_as(directory.as_fd(), MARK, flags, 0o600)?);
        let written = mark.lock().and_then(|()| mark.write_all(&text_of(&directory, token)?));
        if written.is_err() {
            let _ = sys::unlink_at(directory.as_fd(), MARK);
        }
        written.map(|()| (directory, mark))
    }

    /// Where it was made.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path to it for the processes that we start, as long as this lives, wherever
    /// [`Own::path`] leads by then (proc_pid_fd(5)).
    pub fn held(&self) -> &Path {
        &self.held
    }

    /// Which one it is.
    pub(super) fn identity(&self) -> io::Result<folder::Identity> {
        self.directory.metadata().map(|data| [data.dev(), data.ino()])
    }

    /// A new file in it, for reading and writing, that only we may open.
    pub(super) fn create(&self, name: &CStr) -> io::Result<File> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        sys::open_as(self.directory.as_fd(), name, flags, 0o600).map(File::from)
    }

    /// Removes a file in it.
    pub(super) fn remove_file(&self, name: &CStr) -> io::Result<()> {
        sys::unlink_at(self.directory.as_fd(), name)
    }

    /// Removes it, with all that is in it.
    pub fn remove(self) -> Result<(), BedError> {
        let removing = || format!("removing {}", self.path.display());
        let remove = || empty_and_remove(&self.parent, &self.directory, &self.token);
        let mut removed = remove();
        for _ in 0..TRIES {
            // What a trial that was killed is about to make comes after our look, and ends soon.
            let is_filled = |error: &io::Error| error.kind() == io::ErrorKind::DirectoryNotEmpty;
            if !removed.as_ref().is_err_and(is_filled) {
                break;
            }
            std::thread::sleep(PAUSE);
            removed = remove();
        }
        removed.map_err(failed(removing))
    }
}

/// What became of a folder that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is gone, or was before.
    Gone,
    /// A living run has it.
    Alive,
    /// It is not ours, whatever its name.
    Foreign,
}

/// Removes the folder of `token` in `parent`, if it is ours and no living run's.
pub(super) fn remove(parent: &Path, token: &Token) -> io::Result<Removal> {
    let flags = libc::O_DIRECTORY | libc::O_RDONLY;
    let parent = match sys::open_without_links(parent, flags) {
        // Moved, removed or exchanged: what is there now is not ours.
        Err(error) if is_elsewhere(&error) => return Ok(Removal::Gone),
        parent => parent?,
    };
    let directory = match opened(&parent, token) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removal::Gone),
        Err(error) if is_elsewhere(&error) => return Ok(Removal::Foreign),
        directory => directory?,
    };
    if directory.metadata()?.uid() != sys::user_id() {
        return Ok(Removal::Foreign);
    }
    let Some(mark) = marked(&directory, token)? else {
        // Killed between making and marking it: then it holds nothing, or a mark's beginning.
        if is_begun(&directory, token)? {
            sys::unlink_at(directory.as_fd(), MARK)?;
        }
        return match sys::remove_directory_at(parent.as_fd(), &c_name(token)) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(Removal::Foreign),
            removed => removed.map(|()| Removal::Gone),
        };
    };
    if mark.try_lock().is_err() {
        return Ok(Removal::Alive);
    }
    empty_and_remove(&parent, &directory, token).map(|()| Removal::Gone)
}

fn is_elsewhere(error: &io::Error) -> bool {
    let elsewhere = [libc::ENOENT, libc::ELOOP, libc::ENOTDIR, libc::EXDEV];
    error.raw_os_error().is_some_and(|number| elsewhere.contains(&number))
}

fn opened(parent: &File, token: &Token) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_RDONLY;
    sys::open_beneath(parent.as_fd(), Path::new(&name(token)), flags, 0)
}

/// What the folder's mark says.
fn text_of(directory: &File, token: &Token) -> io::Result<Vec<u8>> {
    let mark = Mark { folder: token.clone(), inode: directory.metadata()?.ino() };
    Ok(serde_json::to_vec(&mark)?)
}

/// The folder's mark, if it has one that is ours and is about this folder.
fn marked(directory: &File, token: &Token) -> io::Result<Option<File>> {
    let Some((mark, text)) = read_mark(directory)? else { return Ok(None) };
    let is_this = Mark { folder: token.clone(), inode: directory.metadata()?.ino() };
    let says: Option<Mark> = serde_json::from_slice(&text).ok();
    Ok((says == Some(is_this)).then_some(mark))
}

/// The process that wrote the folder's mark has not finished it.
fn is_begun(directory: &File, token: &Token) -> io::Result<bool> {
    let whole = text_of(directory, token)?;
    let mark = read_mark(directory)?;
    Ok(mark.is_some_and(|(_, text)| text.len() < whole.len() && whole.starts_with(&text)))
}

/// It says nothing of the mark, but of where it lies.
fn is_of_the_file_system(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    kinds.contains(&error.kind()) || error.raw_os_error() == Some(libc::EIO)
}

/// A mark of ours, open, and its text.
fn read_mark(directory: &File) -> io::Result<Option<(File, Vec<u8>)>> {
    let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut mark = match sys::open_as(directory.as_fd(), MARK, flags, 0) {
        Ok(mark) => File::from(mark),
        Err(error) if is_of_the_file_system(&error) => return Err(error),
        Err(_) => return Ok(None),
    };
    let data = mark.metadata()?;
    if !data.is_file() || data.uid() != sys::user_id() || data.nlink() != 1 {
        return Ok(None);
    }
    let mut text = Vec::new();
    Read::by_ref(&mut mark).take(MARK_BYTES).read_to_end(&mut text)?;
    Ok(Some((mark, text)))
}

/// A path that leads to what is held, and to nothing else: proc_pid_fd(5).
pub(crate) fn held(directory: &File) -> PathBuf {
    format!("/proc/self/fd/{}", directory.as_raw_fd()).into()
}

/// The mark last: after a kill before that, the removal can start again.
fn empty_and_remove(parent: &File, directory: &File, token: &Token) -> io::Result<()> {
    let at = held(directory);
    for entry in fs::read_dir(&at)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes() == MARK.to_bytes() {
            continue;
        }
        match entry.file_type()?.is_dir() {
            // It follows no link on its way down, even one that is made meanwhile.
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    match sys::unlink_at(directory.as_fd(), MARK) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match sys::remove_directory_at(parent.as_fd(), &c_name(token)) {
        // Somebody has moved the folder since; it is empty now.
        Err(error) if is_elsewhere(&error) => Ok(()),
        removed => removed,
    }
}

/// Removes `name` and all below it in the folder of the run called `lab`, which is at `directory`
/// and has its mark. A `name` that is not there is no error.
pub fn clear(directory: &Path, lab: &str, name: &str) -> io::Result<()> {
    let own = sys::open_without_links(directory, libc::O_DIRECTORY | libc::O_RDONLY)?;
    let has_mark = |token: Token| marked(&own, &token).map(|mark| mark.is_some());
    if !Token::parse(lab).map_or(Ok(false), has_mark)? {
        let text = format!("{} is not the run's own: nothing is removed", directory.display());
        return Err(io::Error::other(text));
    }
    match fs::remove_dir_all(held(&own).join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes what killed runs left in `dir`, by its marks: after a reboot no journal tells of it.
/// Gives the folders that it removed.
pub fn remove_left(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = fs::canonicalize(dir)?;
    let names = fs::read_dir(&dir)?.flatten().map(|entry| entry.file_name());
    let tokens: Vec<Token> = names.filter_map(|name| token_of(name.to_str()?)).collect();
    let mut removed = Vec::new();
    for token in tokens {
        if remove(&dir, &token)? == Removal::Gone {
            removed.push(dir.join(name(&token)));
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn made(dir: &Path) -> Own {
        Own::make(dir, &Token::random().unwrap(), 0o700, |_| Ok(())).unwrap()
    }

    #[test]
    fn a_living_runs_folder_stays_and_a_dead_ones_goes_with_all_in_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "precious").unwrap();
        let own = made(dir.path());
        fs::create_dir_all(own.path().join("work/deep")).unwrap();
        fs::write(own.path().join("work/deep/file"), "text").unwrap();
        symlink("/etc", own.path().join("work/out")).unwrap();
        own.create(c"1.img").unwrap();
        assert_eq!(remove(dir.path(), &own.token).unwrap(), Removal::Alive);
        let path = own.path().to_path_buf();
        drop(own);
        assert_eq!(remove_left(dir.path()).unwrap(), std::slice::from_ref(&path));
        assert!(!path.exists() && Path::new("/etc/passwd").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn it_is_told_before_and_removed_by_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::random().unwrap();
        let mut told = Vec::new();
        let before = |parent: &Path| {
            assert_eq!(fs::read_dir(dir.path())?.count(), 0);
            told.push(parent.to_path_buf());
            Ok(())
        };
        let own = Own::make(dir.path(), &token, 0o755, before).unwrap();
        assert_eq!(told, [dir.path().canonicalize().unwrap()]);
        own.remove().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_has_no_mark_of_its_own_is_not_ours() {
        let dir = tempfile::tempdir().unwrap();
        let own = made(dir.path());
        let token = Token::random().unwrap();
        let place = dir.path().join(name(&token));
        let stays = |why: &str| {
            fs::write(place.join("thesis"), "precious").unwrap();
            assert_eq!(remove(dir.path(), &token).unwrap(), Removal::Foreign, "{why}");
            assert!(place.join("thesis").exists(), "{why}");
            fs::remove_dir_all(&place).unwrap();
        };
        fs::create_dir(&place).unwrap();
        stays("no mark");
        fs::create_dir(&place).unwrap();
        fs::copy(own.path().join("mark.json"), place.join("mark.json")).unwrap();
        stays("another folder's mark");
        fs::create_dir(&place).unwrap();
        let text = Mark { folder: token.clone(), inode: 1 };
        fs::write(place.join("mark.json"), serde_json::to_vec(&text).unwrap()).unwrap();
        stays("a mark that was made elsewhere");
        symlink(own.path(), &place).unwrap();
        assert_eq!(remove(dir.path(), &token).unwrap(), Removal::Foreign);
        assert!(own.path().join("mark.json").exists());
        fs::remove_file(&place).unwrap();
        fs::create_dir(&place).unwrap();
        assert_eq!(remove(dir.path(), &token).unwrap(), Removal::Gone, "empty: never marked");
        assert_eq!(remove(&dir.path().join("nowhere"), &token).unwrap(), Removal::Gone);
    }

    #[test]
    fn who_is_killed_while_a_mark_is_written_leaves_a_folder_that_goes() {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::random().unwrap();
        let place = dir.path().join(name(&token));
        for length in [0, 7, 30] {
            fs::create_dir(&place).unwrap();
            let text = text_of(&File::open(&place).unwrap(), &token).unwrap();
            fs::write(place.join("mark.json"), &text[..length]).unwrap();
            assert_eq!(remove(dir.path(), &token).unwrap(), Removal::Gone, "{length} bytes");
            assert!(!place.exists());
        }
        fs::create_dir(&place).unwrap();
        fs::write(place.join("mark.json"), "my own").unwrap();
        assert_eq!(remove(dir.path(), &token).unwrap(), Removal::Foreign);
        assert!(place.join("mark.json").exists());
    }

    #[test]
    fn only_a_folder_with_the_runs_own_mark_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let own = made(dir.path());
        let (lab, theirs) = (own.token.to_string(), dir.path().join("theirs"));
        for folder in [own.path(), &theirs] {
            fs::create_dir_all(folder.join("work")).unwrap();
        }
        fs::copy(own.path().join("mark.json"), theirs.join("mark.json")).unwrap();
        clear(&theirs.canonicalize().unwrap(), &lab, "work").unwrap_err();
        clear(&own.path().canonicalize().unwrap(), "0123456789abcdef", "work").unwrap_err();
        assert!(theirs.join("work").exists() && own.path().join("work").exists());
        clear(own.path(), &lab, "work").unwrap();
        clear(own.path(), &lab, "work").unwrap();
        assert!(!own.path().join("work").exists());
    }

    #[test]
    fn a_folder_that_moved_is_emptied_and_what_took_its_place_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let own = made(dir.path());
        fs::write(own.path().join("1.img"), "image").unwrap();
        let (at, away) = (own.path().to_path_buf(), dir.path().join("away"));
        fs::rename(&at, &away).unwrap();
        fs::create_dir(&at).unwrap();
        fs::write(at.join("thesis"), "precious").unwrap();
        own.remove().unwrap_err();
        assert_eq!(fs::read_dir(&away).unwrap().count(), 0);
        assert!(at.join("thesis").exists());
    }
}
