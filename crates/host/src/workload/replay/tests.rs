//! Replays of recordings made by hand, and of commands that were watched.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fsverdict_core::model::{Entry, Laid, RECORDING};

use super::beneath::Way;
use super::*;

pub(super) fn call(action: Action, gave: Gave) -> Call {
    Call { thread: 0, pause_ns: 0, waits: Vec::new(), action, gave }
}

pub(super) fn error(name: &str) -> Gave {
    Gave::Error(name.into())
}

/// Written beside `folder`, with the counts of its head put right.
pub(super) fn written(mut recording: Recording, folder: &Path) -> Replay {
    let threads = recording.calls.iter().map(|call| call.thread + 1).max().unwrap_or(0);
    let mut handles = 0;
    let mut see = |on| match on {
        On::Handle(handle) => handles = handles.max(handle + 1),
        On::Path(_) => {}
    };
    recording.calls.iter().for_each(|call| call.action.each(&mut see));
    let maps = recording.calls.iter().filter_map(|call| Some(call.action.map()? + 1)).max();
    recording.head = Head {
        recording: RECORDING,
        threads,
        handles,
        maps: maps.unwrap_or(0),
        paths: recording.paths.len() as u64,
        entries: recording.entries.len() as u64,
        calls: recording.calls.len() as u64,
        ..Head::default()
    };
    let path = folder.join("recording.calls");
    recording::write(&recording, File::create(&path).unwrap()).unwrap();
    Replay { recording: path.display().to_string(), ..Replay::default() }
}

const OLD: u32 = 1;
const NEW: u32 = 2;
const OTHER: u32 = 3;

/// A file of 5000 bytes that is there, and names that are not yet.
fn recording(calls: Vec<Call>) -> Recording {
    let paths = ["0", "0/old", "0/new", "0/other"].map(String::from).to_vec();
    let file = Laid::File { bytes: 5000, mode: 0o400, data: Vec::new() };
    let entries = vec![
        Entry { path: 0, what: Laid::Directory { mode: 0o755 } },
        Entry { path: OLD, what: file },
    ];
    Recording { paths, entries, calls, ..Recording::default() }
}

fn open(path: u32, flags: &str, handle: u32) -> Call {
    let (flags, handle) = (flags.into(), Some(handle));
    call(Action::Open { path, flags, mode: 0o640, handle }, Gave::Value(3))
}

/// Lays it out and makes its calls: all at once, or each in a turn of its own.
fn replayed(
    replay: &Replay,
    folder: impl Fn() -> Result<Folder, ReplayError>,
    in_turns: bool,
) -> Result<Done, ReplayError> {
    lay_out(replay, &folder()?, 7)?;
    let mut prepared = prepare(replay, folder()?, 7)?;
    if in_turns {
        let ends = 1..prepared.recording.calls.len();
        ends.into_iter().try_for_each(|end| prepared.go_on(end).map(drop))?;
    }
    prepared.run()
}

/// How paths are kept inside: all ways that this process may go.
pub(super) fn all_ways() -> Vec<Way> {
    let best = folder(&std::env::temp_dir()).unwrap().way;
    if best == Way::Root { vec![Way::Root, Way::Resolved] } else { vec![best] }
}

/// Makes the calls in each way, which must come to the same.
fn run(calls: &[Call]) -> (Result<Done, ReplayError>, tempfile::TempDir) {
    let ways = all_ways().into_iter().flat_map(|way| [(way, false), (way, true)]);
    let in_each = ways.map(|(way, in_turns)| {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir(&work).unwrap();
        let replay = written(recording(calls.to_vec()), dir.path());
        (replayed(&replay, || Ok(Folder { way, ..folder(&work)? }), in_turns), dir)
    });
    let mut in_each: Vec<_> = in_each.collect();
    let says = |done: &Result<Done, ReplayError>| done.as_ref().err().map(ToString::to_string);
    assert!(in_each.windows(2).all(|two| says(&two[0].0) == says(&two[1].0)), "{in_each:?}");
    in_each.remove(0)
}

#[test]
fn calls_are_made_again_and_counted() {
    let on = On::Handle(0);
    let flags = || String::from("R_OK");
    let (done, dir) = run(&[
        open(OLD, "O_RDWR", 0),
        call(Action::Read { handle: 0, bytes: 4096 }, Gave::Value(4096)),
        call(Action::Read { handle: 0, bytes: 4096 }, Gave::Value(904)),
        call(Action::Read { handle: 0, bytes: 4096 }, Gave::Value(0)),
        call(Action::Pread { handle: 0, bytes: 9000, place: 1000 }, Gave::Value(4000)),
        call(Action::Seek { handle: 0, place: 77 }, Gave::Value(77)),
        call(Action::Write { handle: 0, bytes: 100 }, Gave::Value(100)),
        call(Action::Pwrite { handle: 0, bytes: 300, place: 10_000 }, Gave::Value(300)),
        call(Action::Fsync { handle: 0 }, Gave::Value(0)),
        call(Action::Fdatasync { handle: 0 }, Gave::Value(0)),
        call(Action::Syncfs { handle: 0 }, Gave::Value(0)),
        call(Action::Sync {}, Gave::Value(0)),
        call(Action::Truncate { on, bytes: 9999 }, Gave::Value(0)),
        call(Action::Truncate { on: On::Path(OLD), bytes: 8888 }, Gave::Value(0)),
        call(Action::Stat { on, follow: true }, Gave::Value(0)),
        call(Action::Stat { on: On::Path(NEW), follow: true }, error("ENOENT")),
        call(Action::Access { path: OLD, flags: flags() }, Gave::Value(0)),
        call(Action::Chmod { on: On::Path(OLD), mode: 0o600 }, Gave::Value(0)),
        call(Action::Chmod { on, mode: 0o604 }, Gave::Value(0)),
        call(Action::Chown { on }, Gave::Value(0)),
        call(Action::Utimes { on: On::Path(OLD) }, Gave::Value(0)),
        call(Action::Link { from: OLD, to: NEW }, Gave::Value(0)),
        call(Action::Link { from: OLD, to: NEW }, error("EEXIST")),
        call(Action::Rename { from: NEW, to: OTHER, flags: String::new() }, Gave::Value(0)),
        call(Action::Close { handle: 0 }, Gave::Value(0)),
        call(Action::Symlink { target: "old".into(), path: NEW }, Gave::Value(0)),
        call(Action::Readlink { path: NEW }, Gave::Value(3)),
        call(Action::Unlink { path: OLD }, Gave::Value(0)),
        call(Action::Mkdir { path: OLD, mode: 0o700 }, Gave::Value(0)),
        open(OLD, "O_RDONLY|O_DIRECTORY", 1),
        call(Action::List { handle: 1, bytes: 32768 }, Gave::Value(48)),
        call(Action::Close { handle: 1 }, Gave::Value(0)),
        call(Action::Rmdir { path: OLD }, Gave::Value(0)),
        call(Action::Mknod { path: OLD }, Gave::Value(0)),
    ]);
    let done = done.unwrap();
    assert_eq!(done.operations, Some(34));
    assert_eq!((done.application_read_bytes, done.application_write_bytes), (9000, 400));
    let count = |name: &str| done.histograms[name].count();
    assert_eq!(["open", "read", "write", "sync", "fsync", "chmod"].map(count), [2, 4, 2, 2, 1, 2]);
    let sample = |name: &str| done.samples.iter().find(|it| it.metric == name).unwrap().value;
    assert_eq!(sample("syncs"), 4.0);
    assert!(0.0 < sample("call_time") && sample("call_time") * 1e9 <= done.work_ns as f64);
    let other = fs::metadata(dir.path().join("work/0/other")).unwrap();
    assert_eq!(other.len(), 8888);
    assert!(fs::symlink_metadata(dir.path().join("work/0/new")).unwrap().is_symlink());
}

#[test]
fn pages_in_memory_are_met_as_they_were() {
    let flags = |text: &str| text.to_string();
    let map = |map, flags: &str, writes| {
        let (place, flags) = (0, flags.into());
        call(Action::Map { handle: 0, map, place, bytes: 12288, flags, writes }, Gave::Value(0))
    };
    let touch =
        |map, place, bytes, writes| call(Action::Touch { map, place, bytes, writes }, Gave::Unseen);
    let (place, bytes) = (4096, 4096);
    let calls = [
        open(OLD, "O_RDWR", 0),
        map(0, "MAP_SHARED", true),
        map(1, "MAP_PRIVATE|MAP_POPULATE", false),
        call(Action::Close { handle: 0 }, Gave::Value(0)),
        touch(0, 4096, 4096, true),
        touch(1, 0, 4096, false),
        // Two pages are there of three.
        touch(1, 0, 12288, false),
        call(Action::SyncMap { map: 0, place, bytes, flags: flags("MS_SYNC") }, Gave::Value(0)),
        call(
            Action::AdviseMap { map: 0, place, bytes, advice: flags("MADV_RANDOM") },
            Gave::Value(0),
        ),
        call(Action::Truncate { on: On::Path(OLD), bytes: 40_000 }, Gave::Value(0)),
        call(Action::Grow { map: 0, bytes: 40_000 }, Gave::Value(0)),
        touch(0, 36864, 4096, true),
        call(Action::Unmap { map: 0 }, Gave::Value(0)),
    ];
    let (done, dir) = run(&calls);
    let done = done.unwrap();
    assert_eq!(done.application_write_bytes, 8192);
    assert_eq!(done.application_read_bytes, 4096 + 8192);
    let count = |name: &str| done.histograms[name].count();
    assert_eq!(["map", "fault", "msync", "unmap", "advise"].map(count), [3, 4, 1, 1, 1]);
    let syncs = done.samples.iter().find(|it| it.metric == "syncs").unwrap().value;
    assert_eq!(syncs, 1.0);
    let content = fs::read(dir.path().join("work/0/old")).unwrap();
    assert_eq!(content.len(), 40_000);
    assert!(content[8192..36864].iter().all(|byte| *byte == 0));
    assert!(content[36864..].iter().any(|byte| *byte != 0));
    let (done, _) = run(&[calls[0].clone(), calls[1].clone(), touch(0, 8192, 4096, true)]);
    let error = done.unwrap_err().to_string();
    assert!(error.contains("call 3, fault 0/old: Bad address"), "no page is there: {error}");
    let unmap = call(Action::Unmap { map: 0 }, self::error("EBADF"));
    let (done, _) = run(&[calls[0].clone(), touch(0, 0, 1, false), unmap]);
    assert!(done.unwrap_err().to_string().contains("1 of 3 calls"), "it was never mapped");
}

#[test]
fn files_are_copied_and_attributed() {
    let (from_place, to_place) = (Some(1000), None);
    let copy = Action::CopyRange { from: 0, from_place, to: 1, to_place, bytes: 9999 };
    let on = On::Handle(1);
    let (done, dir) = run(&[
        open(OLD, "O_RDONLY", 0),
        open(NEW, "O_RDWR|O_CREAT|O_EXCL|O_APPEND", 1),
        open(OTHER, "O_WRONLY|O_CREAT", 2),
        call(Action::Sendfile { from: 0, place: None, to: 2, bytes: 9999 }, Gave::Value(5000)),
        call(copy, error("EBADF")),
        call(Action::Getxattr { on, name_bytes: 30, bytes: 100 }, error("ENODATA")),
        call(Action::Listxattr { on, bytes: 100 }, Gave::Value(20)),
        call(Action::Removexattr { on: On::Path(NEW), name_bytes: 9 }, Gave::Value(0)),
        call(
            Action::Advise { handle: 0, advice: "POSIX_FADV_DONTNEED".into(), place: 0, bytes: 0 },
            Gave::Value(0),
        ),
    ]);
    let done = done.unwrap();
    assert_eq!((done.application_read_bytes, done.application_write_bytes), (5000, 5000));
    let [old, other] = ["old", "other"].map(|name| fs::read(dir.path().join("work/0").join(name)));
    assert_eq!(old.unwrap(), other.unwrap());
}

#[test]
fn modes_lists_and_files_without_a_name_are_as_they_were() {
    let none = u32::MAX;
    let entries = vec![[1, 6, none], [2, 7, 1000], [4, 4, none], [16, 6, none], [32, 0, none]];
    let (flags, handle) = ("O_RDWR|O_TMPFILE".into(), Some(0));
    let (done, dir) = run(&[
        call(Action::Mkdir { path: NEW, mode: 0o777 }, Gave::Value(0)),
        call(Action::Open { path: 0, flags, mode: 0o666, handle }, Gave::Value(3)),
        call(Action::Write { handle: 0, bytes: 100 }, Gave::Value(100)),
        call(Action::LinkOpen { handle: 0, to: OTHER }, Gave::Value(0)),
        call(Action::LinkOpen { handle: 0, to: OTHER }, error("EEXIST")),
        call(Action::SetAcl { on: On::Path(OTHER), default: false, entries }, Gave::Value(0)),
        call(
            Action::SetAcl { on: On::Handle(0), default: true, entries: Vec::new() },
            error("ENODATA"),
        ),
    ]);
    done.unwrap();
    let status = |name: &str| fs::metadata(dir.path().join("work/0").join(name)).unwrap();
    assert_eq!(status("new").mode() & 0o777, 0o777, "no umask");
    let other = status("other");
    assert_eq!((other.len(), other.nlink()), (100, 1));
    assert_eq!(other.mode() & 0o777, 0o660, "the list's mask is the group's");
}

#[test]
fn a_call_that_gives_something_else_is_told() {
    for (calls, says) in [
        (
            vec![open(NEW, "O_RDONLY", 0), call(Action::Close { handle: 0 }, Gave::Value(0))],
            "2 of 2 calls gave something else than when they were recorded; the first: call 1, \
             open 0/new: No such file or directory (os error 2) instead of 3",
        ),
        (
            vec![
                open(OLD, "O_RDONLY", 0),
                call(Action::Read { handle: 0, bytes: 9999 }, Gave::Value(9999)),
            ],
            "1 of 2 calls gave something else than when they were recorded; the first: call 2, \
             read 0/old: 5000 instead of 9999",
        ),
        (
            vec![call(Action::Mkdir { path: NEW, mode: 0o700 }, error("EEXIST"))],
            "1 of 1 calls gave something else than when they were recorded; the first: call 1, \
             mkdir 0/new: 0 instead of EEXIST",
        ),
        (
            vec![open(OLD, "O_RDONLY|MADV_COLD", 0)],
            "call 1: this fsverdict knows no MADV_COLD for such a call",
        ),
        (
            vec![call(Action::Fsync { handle: 0 }, error("EMAGIC"))],
            "call 1: this fsverdict knows no EMAGIC for such a call",
        ),
    ] {
        let (done, _dir) = run(&calls);
        assert_eq!(done.unwrap_err().to_string(), says);
    }
    let none = head(&Replay { recording: "/no/such.calls".into(), ..Replay::default() });
    assert!(none.unwrap_err().to_string().starts_with("recording /no/such.calls: No such file"));
}

#[test]
fn what_there_is_no_room_for_is_refused_before_it_is_begun() {
    let dir = tempfile::tempdir().unwrap();
    let says = |recording: Recording| {
        let work = tempfile::tempdir().unwrap();
        let replay = written(recording, dir.path());
        let says = replayed(&replay, || folder(work.path()), false).unwrap_err().to_string();
        (says, fs::read_dir(work.path()).unwrap().count())
    };
    let mut large = recording(Vec::new());
    large.entries[1].what = Laid::File { bytes: 1 << 60, mode: 0o600, data: Vec::new() };
    let (told, laid) = says(large);
    assert!(told.starts_with("it begins with files of 1024 PiB, and "), "{told}");
    assert_eq!(laid, 0, "nothing is laid out");
    // Each of them is allowed.
    let look = Action::Getxattr { on: On::Path(OLD), name_bytes: 9, bytes: FILE_SIZE_MAX.0 };
    let looks = (0..4096).map(|thread| Call { thread, ..call(look.clone(), Gave::Value(0)) });
    let (told, _) = says(recording(looks.collect()));
    assert!(told.starts_with("its calls take buffers of 4.00 TiB at once, and "), "{told}");
}

/// Two threads that hand a file to each other, many times.
#[test]
fn threads_keep_the_order_of_the_recording() {
    const TURNS: u64 = 300;
    let mut calls = Vec::new();
    for turn in 0..TURNS {
        let make = Action::Mkdir { path: NEW, mode: 0o700 };
        let take = Action::Rmdir { path: NEW };
        let waits = if turn > 0 { vec![(1, turn)] } else { vec![] };
        calls.push(Call { waits, ..call(make, Gave::Value(0)) });
        let waits = vec![(0, turn + 1)];
        calls.push(Call { thread: 1, waits, ..call(take, Gave::Value(0)) });
    }
    let done = run(&calls).0.unwrap();
    assert_eq!(done.operations, Some(2 * TURNS));
    assert_eq!(done.histograms["rmdir"].count(), TURNS);
}

#[test]
fn a_paced_replay_takes_as_long_as_its_pauses() {
    let dir = tempfile::tempdir().unwrap();
    let look = Action::Stat { on: On::Path(0), follow: true };
    let pause_ns = 1_000_000;
    let calls = vec![Call { pause_ns, ..call(look, Gave::Value(0)) }; 50];
    let paced = Replay { paced: true, ..written(recording(calls), dir.path()) };
    let done = replayed(&paced, || folder(dir.path()), false).unwrap();
    let in_calls = done.samples.iter().find(|it| it.metric == "call_time").unwrap().value;
    let between_ns = done.work_ns as f64 - in_calls * 1e9;
    assert!(between_ns >= 49e6, "pauses are no latency: {between_ns} of {} ns", done.work_ns);
}

#[test]
fn files_share_their_blocks_or_are_copied() {
    let (done, dir) = run(&[
        open(OLD, "O_RDONLY", 0),
        open(NEW, "O_WRONLY|O_CREAT", 1),
        call(Action::Clone { from: 0, to: 1 }, Gave::Value(0)),
        call(Action::Close { handle: 1 }, Gave::Value(0)),
    ]);
    let done = done.unwrap();
    let [old, new] = ["old", "new"].map(|name| fs::read(dir.path().join("work/0").join(name)));
    assert_eq!(new.unwrap(), old.unwrap());
    // 0 where the machine's file system shares blocks.
    assert!([0, 5000].contains(&done.application_write_bytes), "{done:?}");
}

#[test]
fn flags_of_an_open_file_change() {
    let set =
        |flags: &str| call(Action::SetFlags { handle: 0, flags: flags.into() }, Gave::Value(0));
    let write = || call(Action::Pwrite { handle: 0, bytes: 100, place: 0 }, Gave::Value(100));
    let calls = [open(OLD, "O_RDWR|O_APPEND", 0), set(""), write(), set("O_APPEND"), write()];
    let (done, dir) = run(&calls);
    done.unwrap();
    // What is appended goes to the end, whatever its place: pwrite(2), BUGS.
    assert_eq!(fs::metadata(dir.path().join("work/0/old")).unwrap().len(), 5100);
}
