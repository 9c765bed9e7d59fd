//! Folders that the work finds at paths of its own: mounted there, in the cell alone.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fsverdict_core::model::is_of_kernel;

use super::{CellError, Ground, Mapped};
use crate::machine::folder::real;
use crate::sys;

/// The mapped folders of `ground` at their real paths, without links. What the work may write must
/// not lie within one, because it would be hidden, nor around one, because the path would be made
/// in it.
pub fn found(ground: &Ground) -> Result<Vec<Mapped>, CellError> {
    let found = ground.mapped.iter().map(|it| Mapped { at: real(&it.at), to: it.to.clone() });
    let found: Vec<Mapped> = found.collect();
    for (place, Mapped { at, .. }) in found.iter().enumerate() {
        let refuse = |why: String| Err(CellError::of(at.display())(io::Error::other(why)));
        if at.to_str().is_some_and(is_of_kernel) {
            return refuse("it leads to where there are no files but the kernel's own".into());
        }
        // The plan's paths don't lie within each other; links may lead there.
        let mut others = found.iter().enumerate().filter(|(other, _)| *other != place);
        if let Some((_, outer)) = others.find(|(_, outer)| at.starts_with(&outer.at)) {
            return refuse(format!("it lies within {}: map one of them", outer.at.display()));
        }
        let own = ground.writable.iter().chain(&ground.kept);
        let mut own = own.filter(|it| it.starts_with(at) || at.starts_with(it));
        if let Some(own) = own.next() {
            return refuse(format!("{} is written to: map another folder", own.display()));
        }
    }
    Ok(found)
}

/// Shows the folder `bare` at `there` as a read-only folder in memory with all of its entries as
/// they are, and with `new` folders. Binds have the flags of their source (mount(2)).
pub fn furnish(bare: &Path, there: &Path, new: &[PathBuf]) -> io::Result<()> {
    sys::mount_virtual(c"tmpfs", there, "mode=755")?;
    for entry in fs::read_dir(bare)? {
        match show_entry(&entry?, there) {
            // The machine goes on meanwhile, and its files come and go.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            shown => shown?,
        }
    }
    new.iter().try_for_each(fs::create_dir_all)?;
    sys::make_read_only(there)
}

/// Shows an entry of a folder in the folder `there`, as it is.
fn show_entry(entry: &fs::DirEntry, there: &Path) -> io::Result<()> {
    let (from, to) = (entry.path(), there.join(entry.file_name()));
    let kind = entry.file_type()?;
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_dir() { fs::create_dir(&to) } else { File::create(&to).map(drop) }?;
    sys::bind(&from, &to).inspect_err(|_| {
        let _ = if kind.is_dir() { fs::remove_dir(&to) } else { fs::remove_file(&to) };
    })
}

/// Shows what is mapped at `there`.
pub fn show(mapped: &Mapped, there: &Path) -> io::Result<()> {
    fs::create_dir_all(there)?;
    match &mapped.to {
        Some([folder, place]) => {
            let source = opened(folder, place)?;
            // proc_pid_fd(5): it leads to the folder itself.
            sys::bind(Path::new(&format!("/proc/self/fd/{}", source.as_raw_fd())), there)?;
            sys::forbid_devices(there)
        }
        None => {
            sys::mount_virtual(c"tmpfs", there, "mode=755")?;
            sys::make_read_only(there)
        }
    }
}

/// The folder at `place` below `folder`, made where it is not there. The work can write in that
/// folder: no link is followed.
fn opened(folder: &Path, place: &Path) -> io::Result<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    let mut at = sys::open_place(folder)?;
    for part in place.components() {
        let part = Path::new(part.as_os_str());
        let opened = match sys::open_beneath(at.as_fd(), part, flags, 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                sys::make_directory_at(at.as_fd(), &sys::c_path(part)?)?;
                sys::open_beneath(at.as_fd(), part, flags, 0)?
            }
            opened => opened?,
        };
        at = opened.into();
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_made_once_and_no_link_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        opened(&root, Path::new(".")).unwrap();
        for _ in 0..2 {
            opened(&root, Path::new("logs/new")).unwrap();
        }
        assert!(root.join("logs/new").is_dir());
        symlink("/etc", root.join("out")).unwrap();
        opened(&root, Path::new("out")).unwrap_err();
        opened(&root, Path::new("out/ssl")).unwrap_err();
        assert_eq!(real(&root.join("out/none/below")), Path::new("/etc/none/below"));
        assert_eq!(real(&root.join("logs")), root.join("logs"));
    }

    #[test]
    fn what_is_written_to_is_neither_hidden_nor_around() {
        let at = |path: &str| Mapped { at: path.into(), to: None };
        let ground = |path: &str| Ground {
            writable: vec!["/no/such/raw".into()],
            mapped: vec![at(path)],
            ..Ground::default()
        };
        for path in ["/no/such", "/no/such/raw/data"] {
            let said = found(&ground(path)).unwrap_err().to_string();
            assert!(said.contains("/no/such/raw is written to: map another"), "{path}: {said}");
        }
        assert_eq!(found(&ground("/no/other")).unwrap().len(), 1);
    }

    #[test]
    fn links_lead_neither_into_another_map_nor_to_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("a")).unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("/dev/shm", root.join("kernel")).unwrap();
        let said = |places: &[&str]| {
            let at = |place: &&str| Mapped { at: root.join(place), to: None };
            let ground = Ground { mapped: places.iter().map(at).collect(), ..Ground::default() };
            found(&ground).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(said(&["a", "b"]), Ok(()));
        assert!(said(&["a", "link/x"]).unwrap_err().contains("map one of them"));
        assert!(said(&["a", "link"]).unwrap_err().contains("map one of them"));
        assert!(said(&["kernel/x"]).unwrap_err().contains("the kernel's own"));
    }
}
