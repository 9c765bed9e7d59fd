//! Logs as fio writes them, and the logs that it reads.

use super::*;
use crate::model::{Action, Call, Entry, Gave, Head, Laid, Recording};

fn source() -> Source {
    Source { folders: vec!["/srv".into(), "/srv/db".into()], keep_names: true }
}

fn read_text(text: &str) -> Result<Recording, String> {
    super::read(source(), text.as_bytes()).map_err(|error| error.to_string())
}

fn written(recording: &Recording) -> (String, Written) {
    let mut text = Vec::new();
    let written = super::write(recording, &mut text).unwrap();
    (String::from_utf8(text).unwrap(), written)
}

/// As fio 3.33 wrote it, but for a file by its absolute path.
const LOG: &str = "\
fio version 3 iolog
24 a add
29 /srv/db/b add
144 a open
148 a read 8192 4096
2413 /srv/db/b open
4229 /srv/db/b write 12288 4096
4240 /srv/db/b read 12288 4096
4245 /srv/db/b sync_file_range 0 4096
4309 a datasync 0 0
4369 a trim 0 4096
7812 a close
";

#[test]
fn a_log_of_fios_is_a_recording_of_what_it_did() {
    let recording = read_text(LOG).unwrap();
    assert_eq!(recording.paths, ["0/a", "1/b", "0", "1"]);
    let open = |path, flags: &str, handle| {
        let (flags, handle) = (flags.into(), Some(handle));
        (Action::Open { path, flags, mode: 0o644, handle }, Gave::Value(0))
    };
    let hole = "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE".to_string();
    let expected = [
        // The hole is a change.
        open(0, "O_RDWR|O_CREAT", 0),
        (Action::Pread { handle: 0, bytes: 4096, place: 8192 }, Gave::Value(4096)),
        open(1, "O_RDWR|O_CREAT", 1),
        (Action::Pwrite { handle: 1, bytes: 4096, place: 12288 }, Gave::Value(4096)),
        (Action::Pread { handle: 1, bytes: 4096, place: 12288 }, Gave::Value(4096)),
        (Action::Fdatasync { handle: 0 }, Gave::Value(0)),
        (Action::Allocate { handle: 0, flags: hole, place: 0, bytes: 4096 }, Gave::Value(0)),
        (Action::Close { handle: 0 }, Gave::Value(0)),
        (Action::Close { handle: 1 }, Gave::Value(0)),
    ];
    let calls = recording.calls.iter().map(|call| (call.action.clone(), call.gave.clone()));
    assert_eq!(calls.collect::<Vec<_>>(), expected);
    let file = |path, bytes| Entry { path, what: Laid::File { bytes, mode: 0o644, data: vec![] } };
    assert_eq!(recording.entries[2..], [file(0, 12288)], "what it only writes is made");
    assert_eq!(recording.ends[2..], [file(0, 12288), file(1, 16384)]);
    let Head { elapsed_ns, left_out, threads, handles, .. } = &recording.head;
    assert_eq!((*elapsed_ns, *threads, *handles), (7_812_000, 1, 2));
    assert_eq!(left_out.values().copied().collect::<Vec<_>>(), [1], "a range that was synced");
}

#[test]
fn a_recording_of_a_log_is_one_and_the_log_it_becomes_is_the_same() {
    let recording = read_text(LOG).unwrap();
    let mut text = Vec::new();
    crate::recording::write(&recording, &mut text).unwrap();
    assert_eq!(crate::recording::read(text.as_slice()).unwrap(), recording);
    let (log, written) = written(&recording);
    let lines = [
        "fio version 2 iolog",
        "file0 add",
        "file0 open",
        "file0 read 8192 4096",
        "file1 add",
        "file1 open",
        "file1 write 12288 4096",
        "file1 read 12288 4096",
        "file0 datasync 0 0",
        "file0 trim 0 4096",
        "file0 close",
        "file1 close",
    ];
    assert_eq!(log.lines().collect::<Vec<_>>(), lines);
    let laid = vec![("file0".to_string(), 12288)];
    assert_eq!(written, Written { calls: 9, left_out: 0, laid });
    let again = read_text(&log).unwrap();
    assert_eq!((again.calls, again.head.handles), (recording.calls, 2));
}

#[test]
fn a_log_that_is_none_or_leads_astray_is_refused_in_a_line() {
    let long = "x".repeat(256);
    for (lines, says) in [
        ("a add\na open\n", "MICROSECONDS FILE ACTION"),
        ("1 /etc/passwd add", "line 2: /etc/passwd is not below /srv or /srv/db: name its folder"),
        ("1 /srvx/a add", "is not below"),
        ("1 ../a add", "\"../a\" is not the name of a file"),
        ("1 a/../../b add", "is not the name of a file"),
        ("1 /srv/../etc/passwd add", "is not the name of a file"),
        ("1 /srv/ add", "is not the name of a file"),
        ("1 . add", "is not the name of a file"),
        (&format!("1 {long} add"), "is not the name of a file"),
        ("1 a add\n2 a/b add", "line 3: a/b is both a file and a folder"),
        ("1 a/b add\n2 a add", "a is both a file and a folder"),
        ("1 a open", "a was not added"),
        ("1 a add\n2 a read 0 1", "a is not open"),
        ("1 a add\n2 a close", "a is not open"),
        ("1 a add\n2 a open\n3 a read 18446744073709551615 4096", "beyond any file of 16 TiB"),
        ("1 a add\n2 a open\n3 a write 17592186044416 1", "beyond any file of 16 TiB"),
        ("1 a add\n2 a open\n3 a write 0 1073741825", "at most 1G are replayed"),
        ("1 a add\n2 a open\n3 a write -1 1", "it is not \"MICRO"),
        ("1 a add\n2 a open\n3 a wait 1 1", "fio has no action \"wait\""),
        ("1 a add\n", "it has no call on a file"),
    ] {
        let error = read_text(&format!("fio version 3 iolog\n{lines}")).unwrap_err();
        assert!(error.contains(says) && !error.contains('\n'), "{lines}: {error}");
    }
    let of = |text: &str| read_text(text).unwrap_err();
    assert!(of("a add").contains("it is not an iolog of fio"));
    assert!(of("").contains("it is not an iolog of fio"));
    let bytes = &b"fio version 2 iolog\na\xff add\na\xff open\n"[..];
    let error = super::read(source(), bytes).map_err(|error| error.to_string()).unwrap_err();
    assert!(error.contains("line 2: it is not UTF-8"), "{error}");
    assert!(of("\u{7}taexxx").contains("it is a blktrace, of a device"));
    assert!(of("fio version 2 iolog\na add\na open\na wait 9 9\n1 a close").contains("line 5"));
}

/// The innermost folder has it, also where its name begins in the first.
#[test]
fn a_file_has_one_name_however_it_is_typed() {
    let log = "fio version 3 iolog\n1 db/b add\n2 db/b open\n3 /srv/db/b write 0 5\n4 db/b close\n";
    assert_eq!(read_text(log).unwrap().paths, ["1/b", "1"]);
}

#[test]
fn a_name_that_is_given_again_is_another_file() {
    let open = |flags: &str, handle| Action::Open {
        path: 0,
        flags: flags.into(),
        mode: 0o644,
        handle: Some(handle),
    };
    let actions = [
        (open("O_RDWR|O_APPEND", 0), 3),
        (Action::Write { handle: 0, bytes: 10 }, 10),
        (Action::Read { handle: 0, bytes: 9 }, 0),
        (Action::Rename { from: 0, to: 1, flags: String::new() }, 0),
        (open("O_WRONLY|O_CREAT|O_EXCL", 1), 4),
        (Action::Write { handle: 1, bytes: 7 }, 7),
        (Action::Seek { handle: 1, place: 100 }, 100),
        (Action::Write { handle: 1, bytes: 7 }, 5),
        (Action::Close { handle: 1 }, 0),
        (Action::Unlink { path: 0 }, 0),
        (Action::Open { path: 2, flags: "O_RDONLY".into(), mode: 0, handle: Some(2) }, 3),
        (Action::CopyRange { from: 2, from_place: Some(4), to: 0, to_place: None, bytes: 9 }, 6),
        (Action::Close { handle: 2 }, 0),
        (Action::Close { handle: 0 }, 0),
    ];
    let calls = actions.map(|(action, gave)| Call {
        thread: 0,
        pause_ns: 0,
        waits: Vec::new(),
        action,
        gave: Gave::Value(gave),
    });
    let laid = |path, what| Entry { path, what };
    let entries = vec![
        laid(3, Laid::Directory { mode: 0o755 }),
        laid(0, Laid::File { bytes: 5000, mode: 0o644, data: Vec::new() }),
        laid(2, Laid::Link { target: "new".into() }),
    ];
    let paths = ["0/old", "0/new", "0/link", "0"].map(String::from).to_vec();
    let recording = Recording { paths, entries, calls: calls.to_vec(), ..Recording::default() };
    let (log, written) = written(&recording);
    let lines = [
        "fio version 2 iolog",
        "file0 add",
        "file0 open",
        "file0 write 5000 10",
        "file1 add",
        "file1 open",
        "file1 write 0 7",
        "file1 write 100 5",
        "file1 close",
        "file0 read 4 6",
        "file0 write 5010 6",
        "file0 close",
    ];
    assert_eq!(log.lines().collect::<Vec<_>>(), lines);
    assert_eq!(written.left_out, 3, "the end of a file, a rename and an unlink");
    let job = job(&written, "/srv/a:b.iolog");
    assert!(job.contains("filename=file0\nfilesize=5000\n") && !job.contains("file1"), "{job}");
    assert!(job.ends_with("[replay]\nstonewall\nread_iolog=/srv/a\\:b.iolog\n"), "{job}");
}

#[test]
fn pages_of_a_mapped_file_are_reads_and_writes_of_it() {
    let open = |flags: &str, handle| {
        let (flags, handle) = (flags.into(), Some(handle));
        Action::Open { path: 0, flags, mode: 0o644, handle }
    };
    let (place, bytes) = (4096, 8192);
    let map = Action::Map { handle: 0, map: 0, place, bytes, flags: String::new(), writes: true };
    let touch = |place, writes| Action::Touch { map: 0, place, bytes: 4096, writes };
    let sync = |flags: &str| Action::SyncMap { map: 0, place: 0, bytes: 4096, flags: flags.into() };
    let actions = [
        open("O_RDWR|O_CREAT", 0),
        Action::Allocate { handle: 0, flags: "0".into(), place: 0, bytes: 9000 },
        map,
        Action::Close { handle: 0 },
        touch(0, false),
        touch(4096, true),
        touch(8192, true),
        sync("MS_SYNC"),
        sync("MS_ASYNC"),
        Action::Unmap { map: 0 },
    ];
    let calls = actions.map(|action| Call {
        thread: 0,
        pause_ns: 0,
        waits: Vec::new(),
        action,
        gave: Gave::Unseen,
    });
    let paths = vec!["0/new".to_string()];
    let (log, written) = written(&Recording { paths, calls: calls.into(), ..Recording::default() });
    let lines = [
        "fio version 2 iolog",
        "file0 add",
        "file0 open",
        "file0 read 4096 4096",
        "file0 write 8192 808",
        "file0 datasync 0 0",
        "file0 close",
    ];
    assert_eq!(log.lines().collect::<Vec<_>>(), lines);
    assert_eq!((written.calls, written.left_out), (7, 3));
}
