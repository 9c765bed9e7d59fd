//! Where a replay differs: calls that could not be recorded, and files that are not as the
//! application left them. Contents, owners, times and attributes never are.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fsverdict_core::model::{Entry, Laid, Recording, Replayed};
use fsverdict_core::recording;

use crate::machine::long_path::LongPath;
use crate::sys;

/// Something in the folder of the work.
#[derive(Debug)]
struct Found {
    what: Laid,
    /// Names of one file have it in common.
    inode: u64,
}

/// Compares what is in `folder` with what the application left.
pub fn compare(recorded: &Recording, folder: &Path) -> Replayed {
    let Recording { head, paths, ends, .. } = recorded;
    let mut replayed = Replayed {
        calls: head.calls,
        left_out: recording::missing(head),
        one_by_one: head.one_by_one,
        ..Replayed::default()
    };
    if ends.is_empty() {
        // An older recording does not tell.
        return replayed;
    }
    let mut found = BTreeMap::new();
    let walked = walk(folder, &mut found);
    let keeps_modes = sys::keeps_modes(folder);
    let name = |path: u32| paths[path as usize].as_str();
    let wanted: BTreeMap<&str, &Entry> = ends.iter().map(|it| (name(it.path), it)).collect();
    let missing = wanted.iter().filter_map(|(path, entry)| {
        let wrong = match (found.get(*path), &entry.what) {
            (None, _) => Some("is not there".into()),
            (Some(it), Laid::NameOf { path: first }) => {
                let first = name(*first);
                let is_same = found.get(first).is_some_and(|other| other.inode == it.inode);
                (!is_same).then(|| format!("is not the same file as {first}"))
            }
            (Some(it), wanted) => unlike(&it.what, wanted, keeps_modes),
        };
        Some((*path, wrong?))
    });
    let more = found.keys().map(String::as_str).filter(|path| !wanted.contains_key(path));
    let more_entries = more.clone().count() as u64;
    let more = more.map(|path| (path, "is there, and was not".to_string()));
    let mut all: Vec<(&str, String)> = missing.chain(more).collect();
    all.sort_unstable();
    replayed.entries = wanted.len() as u64 + more_entries;
    replayed.unlike = all.len() as u64;
    replayed.first = all.first().map(|(path, wrong)| format!("{path} {wrong}"));
    if let Err(error) = walked {
        replayed.unlike = replayed.unlike.max(1);
        replayed.first.get_or_insert(format!("the folder can't be read: {error}"));
    }
    replayed
}

/// What tells one from the other. Owners may read and write all that is laid out.
fn unlike(found: &Laid, wanted: &Laid, keeps_modes: bool) -> Option<String> {
    let octal = |mode: u32, of_owner: u32| format!("{:04o}", mode | of_owner);
    let (what, is, was) = match (found, wanted) {
        (Laid::Directory { mode }, Laid::Directory { mode: was }) => {
            ("mode", octal(*mode, 0o700), octal(*was, 0o700))
        }
        (Laid::File { bytes, .. }, Laid::File { bytes: was, .. }) if bytes != was => {
            ("bytes", bytes.to_string(), was.to_string())
        }
        (Laid::File { mode, .. }, Laid::File { mode: was, .. }) => {
            ("mode", octal(*mode, 0o600), octal(*was, 0o600))
        }
        (Laid::Link { target }, Laid::Link { target: was }) => {
            ("target", target.clone(), was.clone())
        }
        (Laid::Special {}, Laid::Special {}) => return None,
        _ => return Some("is of another kind".into()),
    };
    let counts = keeps_modes || what != "mode";
    (counts && is != was).then(|| format!("has {what} {is}, and had {was}"))
}

/// All that lies below `folder`, by names from there.
fn walk(folder: &Path, found: &mut BTreeMap<String, Found>) -> io::Result<()> {
    let mut below = vec![String::new()];
    while let Some(above) = below.pop() {
        let within = LongPath::open(&folder.join(&above))?;
        for entry in fs::read_dir(within.path())? {
            let entry = entry?;
            let name = format!("{above}{}", entry.file_name().to_string_lossy());
            let status = entry.metadata()?;
            let kind = status.file_type();
            let mode = status.mode() & 0o7777;
            let what = if kind.is_dir() {
                below.push(format!("{name}/"));
                Laid::Directory { mode }
            } else if kind.is_symlink() {
                let near = LongPath::open(&folder.join(&above).join(entry.file_name()))?;
                Laid::Link { target: fs::read_link(near.path())?.to_string_lossy().into_owned() }
            } else if kind.is_file() {
                Laid::File { bytes: status.len(), mode, data: Vec::new() }
            } else {
                Laid::Special {}
            };
            found.insert(name, Found { what, inode: status.ino() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use fsverdict_core::model::Head;

    use super::*;

    /// A folder with a file of two names, a link and an empty directory, and what is said of it.
    fn ended() -> (tempfile::TempDir, Recording) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("0/d")).unwrap();
        fs::write(at("0/f"), [1; 500]).unwrap();
        fs::hard_link(at("0/f"), at("0/same")).unwrap();
        symlink("f", at("0/l")).unwrap();
        for (name, mode) in [("0", 0o755), ("0/d", 0o711), ("0/f", 0o640)] {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let file = Laid::File { bytes: 500, mode: 0o640, data: Vec::new() };
        let all = [
            ("0", Laid::Directory { mode: 0o755 }),
            ("0/d", Laid::Directory { mode: 0o711 }),
            ("0/f", file),
            ("0/same", Laid::NameOf { path: 2 }),
            ("0/l", Laid::Link { target: "f".into() }),
        ];
        let paths = all.iter().map(|(path, _)| path.to_string()).collect();
        let ends = (0..).zip(all).map(|(path, (_, what))| Entry { path, what }).collect();
        let left_out = [("calls of io_uring and io_submit".to_string(), 30)];
        let left_out = left_out.into_iter().chain([("calls on files elsewhere".to_string(), 9)]);
        let head = Head { calls: 70, left_out: left_out.collect(), ..Head::default() };
        (dir, Recording { head, paths, ends, ..Recording::default() })
    }

    #[test]
    fn a_folder_is_as_the_application_left_it_or_the_first_difference_is_told() {
        let (dir, recording) = ended();
        let at = |name: &str| dir.path().join(name);
        let said = || {
            let replayed = compare(&recording, dir.path());
            assert_eq!(
                (replayed.calls, replayed.left_out),
                (70, 30),
                "files elsewhere don't count"
            );
            (replayed.unlike, replayed.entries, replayed.first.unwrap_or_default())
        };
        assert_eq!(said(), (0, 5, String::new()));
        fs::write(at("0/new"), "").unwrap();
        assert_eq!(said(), (1, 6, "0/new is there, and was not".into()));
        fs::remove_file(at("0/new")).unwrap();
        fs::write(at("0/f"), [1; 9]).unwrap();
        assert_eq!(said(), (1, 5, "0/f has bytes 9, and had 500".into()));
        fs::write(at("0/f"), [1; 500]).unwrap();
        fs::set_permissions(at("0/f"), fs::Permissions::from_mode(0o604)).unwrap();
        assert_eq!(said(), (1, 5, "0/f has mode 0604, and had 0640".into()));
        fs::set_permissions(at("0/f"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::remove_file(at("0/same")).unwrap();
        assert_eq!(said(), (1, 5, "0/same is not there".into()));
        fs::write(at("0/same"), [1; 500]).unwrap();
        assert_eq!(said(), (1, 5, "0/same is not the same file as 0/f".into()));
        fs::remove_dir(at("0/d")).unwrap();
        fs::write(at("0/d"), "").unwrap();
        assert_eq!(said(), (2, 5, "0/d is of another kind".into()));
    }
}
