//! Recordings by a stranger that try to get out of their folder: each way out with each harm.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use fsverdict_core::model::{Entry, Laid};

use super::beneath::Way;
use super::tests::{all_ways, call, error, written};
use super::*;
use crate::sys::Attributed;

/// Paths of every recording here. `0/out` is what leads out once it is where it is used.
const PATHS: [&str; 16] = [
    "0",
    "0/a",
    "0/a/link",
    "0/a/b",
    "0/a/b/out",
    "0/out",
    "0/c",
    "0/c/out",
    "0/out/victim",
    "0/c/out/victim",
    "0/a/link/victim",
    "0/file",
    "0/out/new",
    "0/c/out/new",
    "0/a/link/new",
    "0/a/up",
];

fn place(path: &str) -> u32 {
    PATHS.iter().position(|it| *it == path).unwrap() as u32
}

/// An escape: what is laid out, the calls that open the way, and two names that are then outside:
/// of a file that is there, and of one that is not.
struct Escape {
    name: &'static str,
    laid: Vec<Entry>,
    calls: Vec<Action>,
    outside: [&'static str; 2],
}

fn link(path: &str, target: &str) -> Entry {
    Entry { path: place(path), what: Laid::Link { target: target.into() } }
}

fn escapes() -> Vec<Escape> {
    let rename = |from: &str, to: &str, flags: &str| Action::Rename {
        from: place(from),
        to: place(to),
        flags: flags.into(),
    };
    let symlink =
        |path: &str, target: &str| Action::Symlink { target: target.into(), path: place(path) };
    let deep = || vec![link("0/a/link", "../..")];
    let escape = |name, laid, calls, outside| Escape { name, laid, calls, outside };
    let out = ["0/out/victim", "0/out/new"];
    vec![
        escape("a link renamed up", deep(), vec![rename("0/a/link", "0/out", "")], out),
        escape(
            "a second name of a link, further up",
            deep(),
            vec![Action::Link { from: place("0/a/link"), to: place("0/out") }],
            out,
        ),
        escape(
            "a link made by the replay and renamed up",
            vec![],
            vec![symlink("0/a/link", "../.."), rename("0/a/link", "0/out", "")],
            out,
        ),
        escape(
            "a link exchanged with a file further up",
            vec![
                link("0/a/link", "../.."),
                Entry { path: place("0/out"), what: Laid::Directory { mode: 0o755 } },
            ],
            vec![rename("0/a/link", "0/out", "RENAME_EXCHANGE")],
            out,
        ),
        escape(
            "the directory of a link, renamed up",
            vec![link("0/a/b/out", "../../..")],
            vec![rename("0/a/b", "0/c", "")],
            ["0/c/out/victim", "0/c/out/new"],
        ),
        escape(
            "a link through another link, which leads up",
            vec![link("0/a/up", ".."), link("0/a/link", "up/../..")],
            vec![],
            ["0/a/link/victim", "0/a/link/new"],
        ),
        escape(
            "a second name of a link, laid out further up",
            vec![
                link("0/a/link", "../.."),
                Entry { path: place("0/out"), what: Laid::NameOf { path: place("0/a/link") } },
            ],
            vec![],
            out,
        ),
        escape(
            "a link to a file, renamed up",
            vec![link("0/a/link", "../../victim")],
            vec![rename("0/a/link", "0/out", "")],
            ["0/out", "0/out"],
        ),
        escape(
            "a link to nothing, renamed up",
            vec![link("0/a/link", "../../new")],
            vec![rename("0/a/link", "0/out", "")],
            ["0/out", "0/out"],
        ),
    ]
}

/// What may be done to `victim`, a file, and to `new`, which is not there.
fn harms([victim, new]: [u32; 2]) -> Vec<Action> {
    let on = On::Path(victim);
    let (file, mode) = (place("0/file"), 0o6777);
    let open =
        |path, flags: &str| Action::Open { path, flags: flags.into(), mode, handle: Some(0) };
    vec![
        open(victim, "O_WRONLY|O_TRUNC"),
        open(victim, "O_WRONLY|O_CREAT|O_TRUNC"),
        open(new, "O_WRONLY|O_CREAT|O_EXCL"),
        open(new, "O_RDWR|O_CREAT"),
        Action::Truncate { on, bytes: 1 },
        Action::Chmod { on, mode },
        Action::Chown { on },
        Action::Utimes { on },
        Action::Setxattr { on, name_bytes: 9, bytes: 10 },
        Action::Removexattr { on, name_bytes: 8 },
        Action::SetAcl {
            on,
            default: false,
            entries: [1, 4, 32].map(|tag| [tag, 7, u32::MAX]).into(),
        },
        Action::Rename { from: file, to: victim, flags: String::new() },
        Action::Rename { from: victim, to: file, flags: String::new() },
        Action::Link { from: file, to: new },
        Action::Link { from: victim, to: new },
        Action::Mkdir { path: new, mode },
        Action::Symlink { target: "x".into(), path: new },
        Action::Mknod { path: new },
        Action::Unlink { path: victim },
    ]
}

/// All that can be seen of what lies in a folder, but not of the work's own.
fn seen(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let others = entries.filter(|path| !path.ends_with("work"));
    let of = |path: PathBuf| {
        let it = fs::symlink_metadata(&path).unwrap();
        let (owner, times) = ((it.uid(), it.gid()), (it.mtime(), it.mtime_nsec(), it.ctime_nsec()));
        let content = if it.is_file() { fs::read(&path).unwrap() } else { vec![] };
        let name = path.file_name().unwrap().display().to_string();
        (name, format!("{:o} {owner:?} {times:?} {} {content:?}", it.mode(), it.nlink()))
    };
    others.map(of).collect()
}

/// Tries the escape and then the harm: what the replay says, and whether anything outside has
/// changed.
fn tried(escape: &Escape, harm: &Action, way: Way) -> (String, bool) {
    let dir = tempfile::tempdir().unwrap();
    let (work, victim) = (dir.path().join("work"), dir.path().join("victim"));
    fs::create_dir(&work).unwrap();
    fs::write(&victim, "precious").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o640)).unwrap();
    let name = CString::new(victim.as_os_str().as_bytes()).unwrap();
    sys::give_attribute(Attributed::Path(&name), c"user.aaa", b"kept").unwrap();
    let directory = |path| Entry { path: place(path), what: Laid::Directory { mode: 0o755 } };
    let mut entries: Vec<Entry> = ["0", "0/a", "0/a/b"].into_iter().map(directory).collect();
    let file = Laid::File { bytes: 100, mode: 0o600, data: Vec::new() };
    entries.push(Entry { path: place("0/file"), what: file });
    entries.extend(escape.laid.iter().cloned());
    let calls = escape.calls.iter().map(|action| call(action.clone(), Gave::Value(0)));
    // Where it can be, by a thread of its own: it must be kept inside like the first.
    let before = escape.calls.len() as u64;
    let (thread, waits) = if before > 0 { (1, vec![(0, before)]) } else { (0, vec![]) };
    let harm = Call { thread, waits, ..call(harm.clone(), error("EIO")) };
    let recording = Recording {
        head: Head::default(),
        paths: PATHS.map(String::from).to_vec(),
        entries,
        calls: calls.chain([harm]).collect(),
        ..Recording::default()
    };
    let replay = written(recording, dir.path());
    let before = seen(dir.path());
    let folder = || Folder { way, ..folder(&work).unwrap() };
    lay_out(&replay, &folder(), 7).unwrap();
    let done = prepare(&replay, folder(), 7).unwrap().run();
    let says = done.map_or_else(|error| error.to_string(), |_| String::new());
    (says, seen(dir.path()) != before)
}

#[test]
fn no_call_of_a_recording_gets_out_of_its_folder() {
    let mut out = Vec::new();
    for escape in escapes() {
        for harm in harms(escape.outside.map(place)) {
            let tried = all_ways().into_iter().map(|way| tried(&escape, &harm, way));
            let (says, changes): (BTreeSet<String>, Vec<bool>) = tried.unzip();
            assert_eq!(says.len(), 1, "{}: {harm:?}: {says:?}", escape.name);
            out.extend(changes.contains(&true).then(|| format!("{}: {harm:?}", escape.name)));
        }
    }
    assert!(out.is_empty(), "{} got out:\n{}", out.len(), out.join("\n"));
}

#[test]
fn nothing_is_laid_out_outside_the_folder() {
    let file = Laid::File { bytes: 9, mode: 0o644, data: Vec::new() };
    let stays = Laid::Link { target: "../..".into() };
    let look = Action::Stat { on: On::Path(0), follow: true };
    for what in [file, Laid::Directory { mode: 0o777 }, Laid::Special {}, stays] {
        let escape = Escape {
            laid: vec![
                link("0/a/link", "../.."),
                Entry { path: place("0/out"), what: Laid::NameOf { path: place("0/a/link") } },
                Entry { path: place("0/out/new"), what: what.clone() },
            ],
            calls: Vec::new(),
            ..escapes().remove(0)
        };
        for way in all_ways() {
            assert!(!tried(&escape, &look, way).1, "{what:?}");
        }
    }
}

/// Reading refuses links like these; the folder does not rely on that.
#[test]
fn absolute_links_end_in_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (work, victim) = (dir.path().join("work"), dir.path().join("victim"));
    fs::create_dir(&work).unwrap();
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, work.join("file")).unwrap();
    symlink(dir.path(), work.join("folder")).unwrap();
    let before = std::env::current_dir().unwrap();
    for way in all_ways() {
        let folder = Folder { way, ..folder(&work).unwrap() };
        for name in ["file", "folder/victim"] {
            let name = Name::new(name).unwrap();
            let tried = folder.keep(|beneath| {
                let opened = beneath.open(&name, libc::O_WRONLY | libc::O_TRUNC, 0).map(drop);
                let cut = beneath.to(&name, |_, path| sys::truncate_path(path, 0));
                [opened, cut].map(|tried| tried.unwrap_err().kind())
            });
            assert_eq!(tried.unwrap(), [io::ErrorKind::NotFound; 2], "{way:?}");
        }
        assert_eq!(std::env::current_dir().unwrap(), before, "it has come back");
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }
}
