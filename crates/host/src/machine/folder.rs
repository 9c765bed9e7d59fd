//! A folder that is held open. Operations reach this folder, whatever its path leads to by now: the
//! owner of a folder above can put another in its place, or a link.

use std::ffi::{CStr, CString};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::sys::{self, Attributed, Kind};

const OPEN: i32 = libc::O_RDONLY | libc::O_DIRECTORY;
/// Set-user-ID, set-group-ID and sticky: inode(7).
const SPECIAL: u32 = 0o7000;
/// Nobody else may look into it.
const SHUT: u32 = 0o700;
/// Tools don't make trees deeper than this.
const DEPTH_MAX: u32 = 100;

/// The paths of its entries, in no order; none where there is no such folder.
pub fn entries<P: AsRef<Path>>(folder: P) -> impl Iterator<Item = PathBuf> + use<P> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Which file it is: its device's number, and its inode there.
pub type Identity = [u64; 2];

/// Where `path` really is: no part of the way that there is is a link.
pub fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
    let Some((above, mut real)) = there else { return path.into() };
    real.extend(path.strip_prefix(above));
    real
}

/// A folder, held.
#[derive(Debug)]
pub struct Folder(File);

impl Folder {
    /// The folder at `path`, in which there is no link.
    ///
    /// # Errors
    /// Where there is none, or a link is in the way.
    pub fn open(path: &Path) -> io::Result<Folder> {
        sys::open_without_links(path, OPEN).map(Folder)
    }

    /// The folder `path` in it, where no link is followed.
    ///
    /// # Errors
    /// Where there is none, or a link is in the way.
    pub fn below(&self, path: &Path) -> io::Result<Folder> {
        sys::open_beneath(self.0.as_fd(), path, OPEN, 0).map(Folder)
    }

    /// [`Folder::below`], made where it is not there.
    ///
    /// # Errors
    /// Where it can't be made, lies too deep, or a link is in the way.
    pub fn make(&self, path: &Path) -> io::Result<Folder> {
        if path.components().nth(DEPTH_MAX as usize).is_some() {
            return Err(too_deep());
        }
        let mut at = Folder(self.0.try_clone()?);
        for part in path.components() {
            let part = Path::new(part.as_os_str());
            let next = match at.below(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    sys::make_directory_at(at.0.as_fd(), &sys::c_path(part)?)?;
                    at.below(part)?
                }
                next => next?,
            };
            at = next;
        }
        Ok(at)
    }

    /// A path that leads to what is held, and to nothing else: proc_pid_fd(5).
    pub fn path(&self) -> PathBuf {
        led_to(&self.0)
    }

    /// Which one it is.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn identity(&self) -> io::Result<Identity> {
        self.0.metadata().map(|data| [data.dev(), data.ino()])
    }

    /// An empty file in it, to read and write, in the place of what may be there: that may be a
    /// link, or another name of somebody else's file.
    ///
    /// # Errors
    /// Where none can be made.
    pub fn create(&self, name: &str) -> io::Result<File> {
        let name = CString::new(name)?;
        match sys::unlink_at(self.0.as_fd(), &name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        sys::open_as(self.0.as_fd(), &name, flags, 0o666).map(File::from)
    }

    /// Writes a file so that it is there whole or not at all, even after a power cut: beside,
    /// synced, renamed. Where that fails, nothing is left beside.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn write_whole(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let beside = Path::new(name).with_extension("new").display().to_string();
        let names = (CString::new(beside.as_str())?, CString::new(name)?);
        let write = || {
            let mut file = self.create(&beside)?;
            file.write_all(text)?;
            file.sync_all()?;
            sys::rename_at(self.0.as_fd(), &names.0, &names.1)
        };
        write().inspect_err(|_| {
            let _ = sys::unlink_at(self.0.as_fd(), &names.0);
        })
    }

    /// What a file in it holds; no link is followed.
    ///
    /// # Errors
    /// Where there is none, or something else.
    pub fn read(&self, name: &str) -> io::Result<String> {
        let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = sys::open_beneath(self.0.as_fd(), Path::new(name), flags, 0)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a plain file"));
        }
        let bytes = super::plain::all_of(file, super::plain::BYTES_MAX)?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }

    /// Removes a file in it.
    ///
    /// # Errors
    /// Where there is none, or it can't be removed.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        sys::unlink_at(self.0.as_fd(), &CString::new(name)?)
    }

    /// Removes the folder `name` in it with all below, where it is there: no link is followed on
    /// the way down.
    ///
    /// # Errors
    /// Where something can't be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.path().join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether it is ours: another user may have put it in the place of what we meant to make.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn is_own(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.uid() == sys::user_id())
    }

    /// Closes it to others; returns its former mode.
    ///
    /// # Errors
    /// Where it is another's.
    pub fn shut(&self) -> io::Result<u32> {
        let mode = self.mode()?;
        sys::change_mode(self.0.as_fd(), SHUT)?;
        Ok(mode)
    }

    /// Its mode.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn mode(&self) -> io::Result<u32> {
        self.0.metadata().map(|data| data.mode() & 0o7777)
    }

    /// Gives it this mode.
    ///
    /// # Errors
    /// Where it is another's.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        sys::change_mode(self.0.as_fd(), mode)
    }

    /// Clears from all files in it what would make them run as another user than the one who starts
    /// them, and removes what is neither file, folder nor link. To be called once nobody writes in
    /// it any more.
    ///
    /// # Errors
    /// Where something of it can't be changed, or it is too deep.
    pub fn tame(&self) -> io::Result<()> {
        tame(&self.0, 0)
    }
}

/// The attribute by which a program has some of root's powers: capabilities(7).
const CAPABILITIES: &CStr = c"security.capability";

fn too_deep() -> io::Error {
    io::Error::other(format!("folders lie {DEPTH_MAX} deep in each other"))
}

fn tame(folder: &File, depth: u32) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    for entry in fs::read_dir(led_to(folder))? {
        let name = CString::new(entry?.file_name().into_encoded_bytes())?;
        // What was looked at is what is changed, even if the name leads elsewhere by then.
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let held = File::from(sys::open_as(folder.as_fd(), &name, flags, 0)?);
        let status = sys::status(held.as_fd())?;
        match status.kind {
            Kind::Link => continue,
            Kind::Special | Kind::Unknown => {
                sys::unlink_at(folder.as_fd(), &name)?;
                continue;
            }
            Kind::File | Kind::Directory => {}
        }
        let at = led_to(&held);
        if status.mode & SPECIAL != 0 {
            fs::set_permissions(&at, Permissions::from_mode(status.mode & 0o777))?;
        }
        if status.kind == Kind::Directory {
            tame(&sys::open_as(held.as_fd(), c".", OPEN, 0)?.into(), depth + 1)?;
            continue;
        }
        let on = sys::c_path(&at)?;
        // To remove what is not there may need more rights than to ask for it.
        match sys::attribute(Attributed::Path(&on), CAPABILITIES, &mut []) {
            Err(error) if has_none(&error) => {}
            Err(error) => return Err(error),
            Ok(_) => sys::remove_attribute(Attributed::Path(&on), CAPABILITIES)?,
        }
    }
    Ok(())
}

/// Where `/proc` shows us to other processes. Our number is read from it: a PID namespace need not
/// have a `/proc` of its own.
///
/// # Errors
/// Where there is no `/proc`, or it does not show us.
pub fn us() -> io::Result<PathBuf> {
    Ok(Path::new("/proc").join(fs::read_link("/proc/self")?))
}

/// A path that leads to what is held, for as long as it is: proc_pid_fd(5).
fn led_to(held: &File) -> PathBuf {
    format!("/proc/self/fd/{}", held.as_raw_fd()).into()
}

/// There is no such attribute, or the file system keeps none.
fn has_none(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|it| [libc::ENODATA, libc::EOPNOTSUPP].contains(&it))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn scene() -> (tempfile::TempDir, Folder) {
        let scene = tempfile::tempdir().unwrap();
        let held = Folder::open(&scene.path().canonicalize().unwrap()).unwrap();
        (scene, held)
    }

    #[test]
    fn what_is_held_is_written_to_whatever_takes_its_place() {
        let (scene, held) = scene();
        let run = held.make(Path::new("run")).unwrap();
        for name in ["away", "victim"] {
            assert!(held.below(Path::new(name)).is_err());
        }
        fs::create_dir_all(scene.path().join("victim/trials")).unwrap();
        fs::rename(scene.path().join("run"), scene.path().join("away")).unwrap();
        symlink("victim", scene.path().join("run")).unwrap();
        run.write_whole("plan.toml", b"text").unwrap();
        drop(run.make(Path::new("trials/1")).unwrap());
        assert_eq!(fs::read_dir(scene.path().join("victim/trials")).unwrap().count(), 0);
        assert!(scene.path().join("away/trials/1").is_dir());
        assert_eq!(run.read("plan.toml").unwrap(), "text");
        held.make(Path::new("run/x")).unwrap_err();
        held.below(Path::new("run")).unwrap_err();
    }

    #[test]
    fn a_file_is_made_anew_and_no_link_is_written_through_or_removed_by() {
        let (scene, held) = scene();
        fs::write(scene.path().join("precious"), "precious").unwrap();
        symlink("precious", scene.path().join("link")).unwrap();
        fs::hard_link(scene.path().join("precious"), scene.path().join("name")).unwrap();
        for name in ["link", "name"] {
            held.create(name).unwrap().write_all(b"x").unwrap();
            held.write_whole(name, b"y").unwrap();
        }
        fs::create_dir(scene.path().join("tree")).unwrap();
        fs::write(scene.path().join("tree/file"), "").unwrap();
        symlink("tree", scene.path().join("trials")).unwrap();
        let _ = held.remove("trials");
        assert!(scene.path().join("tree/file").exists());
        held.remove("none").unwrap();
        assert_eq!(fs::read_to_string(scene.path().join("precious")).unwrap(), "precious");
    }

    #[test]
    fn nothing_stays_that_runs_as_somebody_else() {
        let (scene, held) = scene();
        let at = |name: &str| scene.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        for name in ["deep/own", "plain"] {
            fs::write(at(name), "").unwrap();
        }
        let set = |name: &str, mode: u32| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        set("deep/own", 0o6711);
        set("deep", 0o3755);
        let socket = std::os::unix::net::UnixListener::bind(at("deep/socket")).unwrap();
        symlink("/etc", at("deep/link")).unwrap();
        held.tame().unwrap();
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!([mode("deep/own"), mode("deep")], [0o711, 0o755]);
        assert!(!at("deep/socket").exists() && at("deep/link").is_symlink());
        drop(socket);
        let mut deepest = String::from("deep");
        for _ in 0..=DEPTH_MAX {
            deepest += "/d";
        }
        fs::create_dir_all(at(&deepest)).unwrap();
        held.tame().unwrap_err();
    }
}
