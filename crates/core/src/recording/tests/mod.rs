//! Traces as strace writes them, and the recordings that come of them.

mod mappings;
mod rings;

use proptest::prelude::*;

use super::*;
use crate::model::On;

fn found() -> Vec<Found> {
    let directory = |path: &str| Found {
        path: path.into(),
        what: Laid::Directory { mode: 0o755 },
        identity: None,
    };
    let file = |path: &str| Found {
        path: path.into(),
        what: Laid::File { bytes: 9000, mode: 0o644, data: Vec::new() },
        identity: None,
    };
    vec![directory("/w"), file("/w/old"), directory("/w/d"), file("/w/d/f"), file("/w/d/g")]
}

fn recorded(lines: &[&str]) -> Recording {
    recorded_with(Faults::Told, lines)
}

/// Lines of one microsecond each, a call every ten, unless they say otherwise. `THREAD fault
/// ADDRESS read` is a page fault.
fn recorded_with(faults: Faults, lines: &[&str]) -> Recording {
    let wanted = Wanted {
        folders: vec![("/w".into(), 0)],
        working_directory: "/w".into(),
        umask: 0,
        keep_names: true,
        tracer_ns: 1000,
        faults,
        page_bytes: 4096,
    };
    let mut watch = Watch::new(wanted, found());
    let lines: Vec<String> = (0..)
        .zip(lines)
        .map(|(number, line)| {
            let (thread, text) = line.split_once(' ').unwrap();
            let done = text.contains(") = ") && !text.ends_with("...>");
            let took = if done { " <0.000001>" } else { "" };
            format!("{thread} 1.{:06} {text}{took}", number * 10)
        })
        .collect();
    lines.iter().for_each(|line| watch.foresee(line));
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [thread, _, "fault", address, what] => watch.fault(&Fault {
                thread: thread.parse().unwrap(),
                at_ns: time_ns(line).unwrap(),
                address: line::number(address).unwrap(),
                writes: (faults == Faults::Told).then_some(what == "write"),
            }),
            _ => watch.read(line),
        }
    }
    watch.finish(found())
}

/// A call in short: thread, name, waits.
type Short<'a> = (u32, &'a str, Vec<(u32, u64)>);

fn short(recording: &Recording) -> Vec<Short<'_>> {
    let calls = recording.calls.iter();
    calls.map(|call| (call.thread, call.action.name(), call.waits.clone())).collect()
}

fn left_out(recording: &Recording, what: &str) -> u64 {
    recording.head.left_out.get(what).copied().unwrap_or(0)
}

#[test]
fn a_file_is_made_written_synced_and_renamed() {
    let recording = recorded(&[
        "7 openat(AT_FDCWD</w>, \"new\", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0640) = 3</w/new>",
        "7 write(3</w/new>, \"abc\"..., 4096) = 4096",
        "7 pwrite64(3</w/new>, \"\"..., 10, 8192) = 10",
        "7 fdatasync(3</w/new>) = 0",
        "7 lseek(3</w/new>, 0, SEEK_END) = 8202",
        "7 close(3</w/new>) = 0",
        "7 rename(\"new\", \"/w/d/../old\") = 0",
        "7 stat(\"new\", 0x7ffd) = -1 ENOENT (No such file or directory)",
        "7 +++ exited with 0 +++",
    ]);
    let names = ["open", "write", "write", "fdatasync", "seek", "close", "rename", "stat"];
    assert_eq!(short(&recording), names.map(|name| (0, name, vec![])));
    let path = |place: u32| recording.paths[place as usize].as_str();
    let Action::Open { path: at, flags, mode, handle } = &recording.calls[0].action else {
        panic!("{recording:#?}")
    };
    assert_eq!((path(*at), flags.as_str(), *mode), ("0/new", "O_WRONLY|O_CREAT|O_EXCL", 0o640));
    let handle = handle.unwrap();
    assert_eq!(recording.calls[1].action, Action::Write { handle, bytes: 4096 });
    assert_eq!(recording.calls[1].gave, Gave::Value(4096));
    assert_eq!(recording.calls[2].action, Action::Pwrite { handle, bytes: 10, place: 8192 });
    assert_eq!(recording.calls[4].action, Action::Seek { handle, place: 8202 });
    let Action::Rename { from, to, .. } = recording.calls[6].action else { panic!() };
    assert_eq!((path(from), path(to)), ("0/new", "0/old"));
    assert_eq!(recording.calls[7].gave, Gave::Error("ENOENT".into()));
    // 10 microseconds from call to call: the call took one of them, and the tracer another.
    assert_eq!(recording.calls[1].pause_ns, 8000);
    let laid: Vec<&str> = recording.entries.iter().map(|entry| path(entry.path)).collect();
    assert_eq!(laid, ["0", "0/old"], "what was there and is touched");
    assert_eq!((recording.head.threads, recording.head.handles), (1, 1));
}

#[test]
fn a_child_inherits_descriptors_and_its_parent_waits_for_it() {
    let recording = recorded(&[
        "7 open(\"log\", O_WRONLY|O_CREAT|O_APPEND, 0600) = 3</w/log>",
        "7 vfork( <unfinished ...>",
        "8 chdir(\"d\") = 0",
        "8 write(3</w/log>, \"\"..., 5) = 5",
        "8 unlink(\"f\") = 0",
        "8 execve(\"/bin/true\", [\"true\"], 0x7 /* 9 vars */ <unfinished ...>",
        "7 <... vfork resumed>) = 8",
        "8 <... execve resumed>) = 0",
        "7 close(3</w/log>) = 0",
        "7 wait4(-1,  <unfinished ...>",
        "8 mkdir(\"h\", 0777) = 0",
        "8 +++ exited with 0 +++",
        "7 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8",
        "7 unlink(\"old\") = 0",
        "7 +++ exited with 0 +++",
    ]);
    assert_eq!(
        short(&recording),
        [
            (0, "open", vec![]),
            (1, "write", vec![(0, 1)]),
            (1, "unlink", vec![]),
            (1, "mkdir", vec![]),
            (1, "close", vec![]),
            (0, "unlink", vec![(1, 4)]),
        ],
        "the last descriptor was the child's"
    );
    assert!(recording.paths.iter().any(|path| path == "0/d/h"));
    assert_eq!(recording.head.left_out, [].into());
}

#[test]
fn threads_share_descriptors_and_processes_that_follow_each_other_share_a_thread() {
    let thread = "clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD}, 88) = 8";
    let recording = recorded(&[
        &format!("7 {thread}"),
        "8 openat(AT_FDCWD</w>, \"d\", O_RDONLY|O_DIRECTORY) = 4</w/d>",
        "7 getdents64(4</w/d>, 0x55 /* 4 entries */, 32768) = 96",
        "7 newfstatat(4</w/d>, \"f\", {st_mode=S_IFREG|0644, ...}, AT_SYMLINK_NOFOLLOW) = 0",
        "7 newfstatat(4</w/d>, \"\", {st_mode=S_IFDIR|0755, ...}, AT_EMPTY_PATH) = 0",
        "8 +++ exited with 0 +++",
        "7 clone(child_stack=NULL, flags=SIGCHLD) = 9",
        "9 close_range(3, 4294967295, 0) = 0",
        "9 unlinkat(AT_FDCWD</w>, \"d/f\", 0) = 0",
        "9 +++ exited with 0 +++",
        "7 +++ exited with 0 +++",
    ]);
    assert_eq!(
        short(&recording),
        [
            (0, "open", vec![]),
            (1, "list", vec![(0, 1)]),
            (1, "stat", vec![]),
            (1, "stat", vec![]),
            (0, "unlink", vec![(1, 3)]),
            (1, "close", vec![]),
        ]
    );
    let laid: Vec<_> =
        recording.entries.iter().map(|it| &recording.paths[it.path as usize]).collect();
    assert_eq!(laid, ["0", "0/d", "0/d/f", "0/d/g"], "g was listed");
    assert_eq!(recording.entries[3].what, Laid::File { bytes: 0, mode: 0o644, data: vec![] });
}

#[test]
fn what_can_not_be_replayed_is_counted() {
    let recording = recorded(&[
        "7 openat(AT_FDCWD</w>, \"/etc/passwd\", O_RDONLY) = 3</etc/passwd>",
        "7 read(3</etc/passwd>, \"\"..., 4096) = 100",
        "7 read(5<pipe:[7]>, \"\"..., 4096) = 100",
        "7 write(1</w/out>, \"\"..., 10) = 10",
        "7 open(\"old\", O_RDWR) = 4</w/old>",
        "7 io_uring_setup(8, {flags=0}) = 6<anon_inode:[io_uring]>",
        "7 io_uring_enter(6<anon_inode:[io_uring]>, 8, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 8",
        "7 io_uring_enter(6<anon_inode:[io_uring]>, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 0",
        "7 io_uring_setup(8, {flags=IORING_SETUP_SQPOLL, sq_thread_idle=0}) = 7",
        "7 open(\"secret\", O_RDWR) = -1 EACCES (Permission denied)",
        "7 fsync(4</w/old>) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)",
        "7 unlink(\"made by another\") = 0",
        "7 something odd",
        "7 mkdirat(11, \"below\", 0777) = 0",
        &format!("7 mkdir(\"{}\", 0777) = -1 ENAMETOOLONG (File name too long)", "d/".repeat(2100)),
        "7 write(12, \"\"..., 10) = 10",
        "7 close(99) = -1 EBADF (Bad file descriptor)",
        "7 bind(8<socket:[9]>, {sa_family=AF_UNIX, sun_path=\"/w/.s\"}, 110) = 0",
        "7 open(\".s\", O_RDWR) = -1 ENXIO (No such device or address)",
    ]);
    assert_eq!(short(&recording), [(0, "open", vec![]), (0, "mknod", vec![])]);
    for (what, count) in [
        (why::ELSEWHERE, 2),
        (why::PIPES, 3),
        (why::LONG, 2),
        (why::TOO_LONG, 1),
        (why::PASSED, 1),
        (why::RINGS, 9),
        (why::RIGHTS, 1),
        (why::INTERRUPTED, 1),
        (why::OTHERS, 1),
        (why::LINES, 1),
    ] {
        assert_eq!(left_out(&recording, what), count, "{what}");
    }
}

#[test]
fn paths_may_be_longer_than_the_kernel_takes_at_once() {
    let part = "d".repeat(200);
    let below = |count: usize| vec![part.as_str(); count].join("/");
    let mut lines = Vec::new();
    for _ in 0..25 {
        lines.push(format!("7 mkdir(\"{part}\", 0777) = 0"));
        lines.push(format!("7 chdir(\"{part}\") = 0"));
    }
    // strace has no path for what lies there.
    lines.extend([
        String::from("7 openat(AT_FDCWD, \".\", O_RDONLY|O_DIRECTORY) = 3"),
        String::from("7 openat(3, \"f\", O_WRONLY|O_CREAT, 0600) = 4"),
        String::from("7 write(4, \"\"..., 5) = 5"),
        String::from("7 chdir(\"/w\") = 0"),
        String::from("7 fchdir(3) = 0"),
        String::from("7 unlink(\"../f\") = -1 ENOENT (No such file or directory)"),
        String::from("7 unlink(\"f\") = 0"),
    ]);
    let recording = recorded(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(recording.head.left_out, [].into());
    assert_eq!(recording.calls.len(), 30);
    let deep = format!("0/{}/f", below(25));
    assert!(deep.len() > 4096);
    let at = |path: u32| recording.paths[path as usize].as_str();
    assert!(matches!(recording.calls[26].action, Action::Open { path, .. } if at(path) == deep));
    let up = format!("0/{}/f", below(24));
    assert!(matches!(recording.calls[28].action, Action::Unlink { path } if at(path) == up));
    assert!(matches!(recording.calls[29].action, Action::Unlink { path } if at(path) == deep));
}

#[test]
fn requests_that_are_handed_over_at_once_are_calls_one_by_one() {
    let of = |opcode: &str, rest: &str| {
        format!("{{aio_data=0, aio_lio_opcode=IOCB_CMD_{opcode}, aio_fildes=3</w/old>{rest}}}")
    };
    let write = of("PWRITE", r#", aio_buf="}, aio_nbytes=1"..., aio_nbytes=4096, aio_offset=8192"#);
    let read = of("PREAD", ", aio_buf=0x55e0, aio_nbytes=512, aio_offset=0");
    let vector = "[{iov_base=0x1, iov_len=100}, {iov_base=0x2, iov_len=28}]";
    let reads = of("PREADV", &format!(", aio_buf={vector}, aio_nbytes=2, aio_offset=4"));
    let [sync, poll] = [of("FDSYNC", ""), of("POLL", "")];
    let recording = recorded(&[
        "7 open(\"old\", O_RDWR|O_DIRECT) = 3</w/old>",
        &format!("7 io_submit(0x7f00, 3, [{write}, {read}, {reads}]) = 3"),
        &format!("7 io_submit(0x7f00, 3, [{sync}, {poll}, {read}]) = 2"),
        &format!("7 io_submit(0x7f00, 200, [{write}, ...]) = 200"),
        &format!("7 io_submit(0x7f00, 1, [{write}]) = -1 EAGAIN (Resource unavailable)"),
    ]);
    let calls: Vec<_> = recording.calls[1..].iter().map(|call| call.action.clone()).collect();
    let write = Action::Pwrite { handle: 0, bytes: 4096, place: 8192 };
    let expected = [
        write.clone(),
        Action::Pread { handle: 0, bytes: 512, place: 0 },
        Action::Pread { handle: 0, bytes: 128, place: 4 },
        Action::Fdatasync { handle: 0 },
        write,
    ];
    assert_eq!(calls, expected);
    assert!(recording.calls[1..].iter().all(|call| call.gave == Gave::Unseen));
    assert_eq!(recording.head.one_by_one, 5);
    assert_eq!(left_out(&recording, why::UNKNOWN), 1, "a poll");
    assert_eq!(left_out(&recording, why::REQUESTS), 199);
    assert_eq!(left_out(&recording, why::INTERRUPTED), 1);
    assert_eq!(missing(&recording.head), 200);
    let mut written = Vec::new();
    super::write(&recording, &mut written).unwrap();
    assert!(String::from_utf8_lossy(&written).contains(r#""gave":null"#));
    assert_eq!(super::read(written.as_slice()).unwrap(), recording);
}

#[test]
fn what_a_write_asks_for_by_its_own_flags_is_done_or_counted() {
    let vectored =
        |rest: &str| format!("7 pwritev2(3</w/old>, [{{iov_base=\"\"..., iov_len=40}}], 1, {rest}");
    let write = |flags: &str| {
        format!(
            "{{aio_data=0, {flags}aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</w/old>, \
             aio_buf=\"\\0\"..., aio_nbytes=40, aio_offset=80}}"
        )
    };
    let [durable, appended] = ["aio_rw_flags=RWF_DSYNC, ", "aio_rw_flags=RWF_APPEND, "].map(write);
    let recording = recorded(&[
        "7 open(\"old\", O_RDWR) = 3</w/old>",
        &vectored("80, RWF_DSYNC) = 40"),
        &vectored("-1, RWF_HIPRI|RWF_SYNC) = 40"),
        &vectored("80, RWF_APPEND) = 40"),
        &vectored("80, RWF_SYNC) = -1 EINVAL (Invalid argument)"),
        "7 preadv2(3</w/old>, [{iov_base=\"\"..., iov_len=40}], 1, -1, RWF_NOWAIT) = 40",
        &format!("7 io_submit(0x7f00, 3, [{durable}, {appended}, {}]) = 3", write("")),
    ]);
    let placed = Action::Pwrite { handle: 0, bytes: 40, place: 80 };
    let expected = [
        placed.clone(),
        Action::Fdatasync { handle: 0 },
        Action::Write { handle: 0, bytes: 40 },
        Action::Fsync { handle: 0 },
        placed.clone(),
        Action::Read { handle: 0, bytes: 40 },
        placed.clone(),
        Action::Fdatasync { handle: 0 },
        placed,
    ];
    let calls: Vec<_> = recording.calls[1..].iter().map(|call| call.action.clone()).collect();
    assert_eq!(calls, expected);
    assert_eq!(recording.calls[1].gave, Gave::Value(40));
    assert_eq!(recording.calls[5].gave, Gave::Error("EINVAL".into()), "and nothing is synced");
    assert_eq!(left_out(&recording, why::UNKNOWN), 2, "what goes to the end");
}

#[test]
fn data_moved_in_the_kernel_is_a_call_of_what_is_watched() {
    let recording = recorded(&[
        "7 open(\"old\", O_RDONLY) = 3</w/old>",
        "7 open(\"copy\", O_WRONLY|O_CREAT, 0600) = 4</w/copy>",
        "7 copy_file_range(3</w/old>, NULL, 4</w/copy>, NULL, 1048576, 0) = 9000",
        "7 sendfile(4</w/copy>, 9</etc/passwd>, [0] => [50], 100) = 50",
        "7 copy_file_range(3</w/old>, [10], 9</tmp/x>, NULL, 100, 0) = 100",
        "7 ioctl(4</w/copy>, BTRFS_IOC_CLONE or FICLONE, 3</w/old>) = 0",
        "7 ioctl(4</w/copy>, BTRFS_IOC_CLONE or FICLONE, 3</w/old>) = -1 EOPNOTSUPP (No)",
        "7 ioctl(4</w/copy>, TCGETS, 0x7) = -1 ENOTTY (Inappropriate ioctl for device)",
        "7 writev(4</w/copy>, [{iov_base=\"a\", iov_len=7}, {iov_base=\"b\", iov_len=8}], 2) = 12",
        "7 splice(3</w/old>, [20], 6<pipe:[9]>, NULL, 4096, 0) = 70",
        "7 splice(5<pipe:[9]>, NULL, 4</w/copy>, NULL, 4096, 0) = 70",
        "7 splice(5<pipe:[9]>, NULL, 4</w/copy>, NULL, 4096, 0) = -1 EINVAL (Invalid argument)",
        "7 splice(5<pipe:[9]>, NULL, 6<pipe:[8]>, NULL, 4096, 0) = 70",
    ]);
    let actions: Vec<_> = recording.calls.iter().skip(2).map(|call| call.action.clone()).collect();
    let (from_place, to_place) = (None, None);
    assert_eq!(
        actions,
        [
            Action::CopyRange { from: 0, from_place, to: 1, to_place, bytes: 1_048_576 },
            Action::Write { handle: 1, bytes: 50 },
            Action::Pread { handle: 0, bytes: 100, place: 10 },
            Action::Clone { from: 0, to: 1 },
            Action::Write { handle: 1, bytes: 15 },
            Action::Pread { handle: 0, bytes: 70, place: 20 },
            Action::Write { handle: 1, bytes: 70 },
        ]
    );
    assert_eq!(left_out(&recording, why::UNSUPPORTED), 2);
    assert_eq!(left_out(&recording, why::PIPES), 1);
}

#[test]
fn the_tracers_own_time_is_the_median_between_calls_that_follow_each_other() {
    let line = |number: u64| {
        let late = if number.is_multiple_of(9) { 500 } else { 0 };
        format!("7 1.{:09} read(0</dev/zero>, \"\", 1) = 1 <0.000000010>", number * 40 + late)
    };
    let lines: Vec<String> = (1..300).map(line).collect();
    assert_eq!(tracer_ns(lines.iter().map(String::as_str)), Some(30));
    assert_eq!(tracer_ns(lines.iter().take(50).map(String::as_str)), None);
}

/// An action of each kind, with these numbers in it.
fn action(kind: usize, number: u32, text: &str) -> Action {
    let (handle, path, bytes, place) = (number % 5, number % 7, number.into(), 7);
    let map = handle;
    let on = if number.is_multiple_of(2) { On::Path(path) } else { On::Handle(handle) };
    let (flags, mode) = (text.to_string(), 0o600);
    let all = [
        Action::Open { path, flags: flags.clone(), mode, handle: Some(handle) },
        Action::Open { path, flags: flags.clone(), mode, handle: None },
        Action::Close { handle },
        Action::Pread { handle, bytes, place },
        Action::Pwrite { handle, bytes, place: u64::MAX },
        Action::SetFlags { handle, flags: flags.clone() },
        Action::SyncRange { handle, place, bytes, flags: flags.clone() },
        Action::Sync {},
        Action::Truncate { on, bytes },
        Action::Rename { from: path, to: path, flags },
        Action::Symlink { target: "x".into(), path },
        Action::Stat { on, follow: false },
        Action::Setxattr { on, name_bytes: 5, bytes },
        Action::SetAcl { on, default: false, entries: vec![[1, 7, number]] },
        Action::LinkOpen { handle, to: path },
        Action::CopyRange { from: handle, from_place: None, to: handle, to_place: Some(5), bytes },
        Action::Map { handle, map, place, bytes, flags: text.into(), writes: bytes > 9 },
        Action::Touch { map, place, bytes, writes: bytes > 9 },
        Action::SyncMap { map, place, bytes, flags: text.into() },
        Action::AdviseMap { map, place, bytes, advice: text.into() },
        Action::Grow { map, bytes },
        Action::Unmap { map },
    ];
    all[kind % all.len()].clone()
}

proptest! {
    #[test]
    fn a_recording_that_is_written_reads_back_equal(
        names in proptest::collection::vec("[^/\0]{3,9}", 7),
        drawn in proptest::collection::vec(
            (0usize..26, any::<u32>(), "[A-Z_|]{0,12}", any::<u64>()),
            5..40,
        ),
        keep in any::<bool>(),
    ) {
        let paths: Vec<String> = names.iter().map(|name| format!("0/d/{name}")).collect();
        let calls: Vec<Call> = (0_u64..).zip(&drawn).map(|(done, (kind, number, text, bits))| Call {
            thread: 0,
            pause_ns: *bits,
            waits: if done > 0 { vec![(0, done)] } else { vec![] },
            action: action(*kind, *number, text),
            gave: if *kind > 9 { Gave::Error(format!("E{text}")) } else { Gave::Value(*bits) },
        }).collect();
        let entries = vec![
            Entry { path: 0, what: Laid::Directory { mode: 0o755 } },
            Entry { path: 1, what: Laid::File { bytes: 5, mode: 0, data: vec![(0, 5)] } },
            Entry { path: 2, what: Laid::Link { target: "../d".into() } },
            Entry { path: 3, what: Laid::NameOf { path: 1 } },
            Entry { path: 4, what: Laid::Special {} },
        ];
        let head = Head {
            recording: RECORDING,
            names_kept: keep,
            threads: 1,
            handles: 5,
            maps: 5,
            paths: paths.len() as u64,
            entries: entries.len() as u64,
            calls: calls.len() as u64,
            ends: entries.len() as u64 - 1,
            left_out: [("calls".to_string(), 7)].into(),
            ..Head::default()
        };
        let recording = Recording { head, paths, ends: entries[1..].to_vec(), entries, calls };
        let mut text = Vec::new();
        write(&recording, &mut text).unwrap();
        prop_assert_eq!(read(text.as_slice()).unwrap(), recording);
        let cut = text.len() - 2;
        prop_assert!(read(&text[..cut]).is_err());
    }

    #[test]
    fn no_line_is_too_odd(text in "[0-9 .a-z(){}\\[\\]<>\"\\\\,/=?+-]{0,60}") {
        let mut watch = Watch::new(Wanted::default(), Vec::new());
        let call = |name: &str| format!("7 1.5 {name}({text}) = 0");
        let calls = ["read", "mmap", "mremap", "madvise", "munmap"].map(call);
        for line in [text.clone(), format!("7 1.5 {text}")].into_iter().chain(calls) {
            watch.foresee(&line);
            watch.read(&line);
            watch.fault(&Fault { thread: 7, at_ns: 5, address: 0, writes: None });
        }
        watch.finish(Vec::new());
    }
}

#[test]
fn a_file_without_a_name_gets_one() {
    let recording = recorded(&[
        "7 openat(AT_FDCWD</w>, \".\", O_RDWR|O_TMPFILE, 0644) = 3</w/#17>(deleted)",
        "7 linkat(AT_FDCWD</w>, \"/proc/self/fd/3\", AT_FDCWD</w>, \"one\", AT_SYMLINK_FOLLOW) = 0",
        "7 linkat(3</w/one>, \"\", AT_FDCWD</w>, \"two\", AT_EMPTY_PATH) = 0",
        "7 linkat(AT_FDCWD</w>, \"one\", AT_FDCWD</w>, \"three\", AT_SYMLINK_FOLLOW) = 0",
        "7 fsetxattr(3</w/one>, \"system.posix_acl_access\", \"\\2\\0\\0\\0\", 4, 0) = 0",
        "7 lremovexattr(\"two\", \"system.posix_acl_default\") = 0",
    ]);
    let path = |name: &str| {
        let place = recording.paths.iter().position(|it| it == &format!("0/{name}"));
        place.unwrap_or_else(|| panic!("{name}: {recording:#?}")) as u32
    };
    let actions: Vec<_> = recording.calls.iter().skip(1).map(|it| it.action.clone()).collect();
    let entries = Vec::new();
    assert_eq!(
        actions,
        [
            Action::LinkOpen { handle: 0, to: path("one") },
            Action::LinkOpen { handle: 0, to: path("two") },
            Action::SetAcl { on: On::Handle(0), default: false, entries: entries.clone() },
            Action::SetAcl { on: On::Path(path("two")), default: true, entries },
        ]
    );
    assert_eq!(left_out(&recording, why::UNKNOWN), 1);
}

#[test]
fn modes_are_less_the_umask_of_the_process_that_gives_them() {
    let recording = recorded(&[
        "7 umask(027) = 022",
        "7 mkdir(\"a\", 0777) = 0",
        "7 clone(child_stack=NULL, flags=SIGCHLD) = 8",
        "8 umask(077) = 027",
        "8 mkdir(\"b\", 0777) = 0",
        "7 openat(AT_FDCWD</w>, \"c\", O_WRONLY|O_CREAT, 0666) = 3</w/c>",
    ]);
    let modes = recording.calls.iter().filter_map(|call| match call.action {
        Action::Mkdir { mode, .. } | Action::Open { mode, .. } => Some(mode),
        _ => None,
    });
    assert_eq!(modes.collect::<Vec<_>>(), [0o750, 0o700, 0o640]);
}

#[test]
fn what_is_there_at_the_end_is_what_a_replay_has_and_ought_to_have() {
    let wanted = Wanted { folders: vec![("/w".into(), 0)], keep_names: true, ..Wanted::default() };
    let mut watch = Watch::new(wanted, found());
    let line = "7 1.5 unlink(\"/w/old\") = 0 <0.000001>";
    watch.foresee(line);
    watch.read(line);
    let file = |path: &str, bytes| Found {
        path: path.into(),
        what: Laid::File { bytes, mode: 0o644, data: vec![(0, 9)] },
        identity: None,
    };
    // Nobody has seen who wrote to f; g is as it was, and of no call.
    let mut after = found();
    after.retain(|it| !["/w/old", "/w/d/f"].contains(&it.path.as_str()));
    after.extend([file("/w/d/f", 9), file("/w/new", 5)]);
    let recording = watch.finish(after);
    let ends = recording.ends.iter().map(|entry| match &entry.what {
        Laid::File { bytes, data, .. } if data.is_empty() => (entry.path, *bytes),
        _ => (entry.path, 0),
    });
    let ends = ends.map(|(path, bytes)| (recording.paths[path as usize].as_str(), bytes));
    assert_eq!(ends.collect::<Vec<_>>(), [("0", 0), ("0/d/f", 9), ("0/new", 5)]);
    let mut text = Vec::new();
    write(&recording, &mut text).unwrap();
    assert_eq!(read(text.as_slice()).unwrap(), recording);
}

#[test]
fn the_recording_in_the_documents_is_one() {
    let text = include_str!("../../../../../FORMAT.md").split("\n## A recording\n").nth(1).unwrap();
    let text = text.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let recording = read(text.as_bytes()).unwrap();
    assert_eq!(recording.calls[1].action, Action::Pwrite { handle: 0, bytes: 8192, place: 0 });
    let mut written = Vec::new();
    super::write(&recording, &mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), text);
}

#[test]
fn a_recording_that_would_lead_astray_is_refused() {
    let recording = recorded(&["7 mkdir(\"new\", 0777) = 0", "7 symlink(\"d\", \"l\") = 0"]);
    let mut text = Vec::new();
    write(&recording, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(read(text.as_bytes()).unwrap(), recording);
    for (from, to, says) in [
        ("\"recording\":1", "\"recording\":9", "of version 9"),
        ("{\"recording\"", "{\"something\"", "not a recording of fsverdict record"),
        ("\"threads\":1", "\"threads\":4000000000", "claims 4000000000 threads, and 4096 is"),
        ("\"threads\":1", "\"threads\":4096", "claims 4096 threads for 2 calls"),
        ("\"handles\":0", "\"handles\":4000000000", "claims 4000000000 open files for 2 calls"),
        ("\"handles\":0", "\"handles\":0,\"maps\":9", "claims 9 mappings for 2 calls"),
        ("{\"mkdir\":{\"path\":0,\"mode\":511}}", "{\"unmap\":{\"map\":0}}", "no mapping"),
        ("\"paths\":3", "\"paths\":18446744073709551615", "paths, which have numbers of 32"),
        ("\"entries\":1", "\"entries\":4", "claims 4 files and directories with 3 paths"),
        ("\"calls\":2", "\"calls\":18446744073709551615", "line 8: missing field `thread`"),
        ("\"ends\":1", "\"ends\":3", "ends too early, at line 8"),
        ("\"ends\":1", "\"ends\":4", "claims 4 files and directories at its end with 3 paths"),
        ("\"0/new\"", "\"0/../../new\"", "line 2: a path leads out"),
        ("\"0/new\"", "\"/new\"", "a path leads out"),
        ("\"target\":\"d\"", "\"target\":\"../../d\"", "a link leads out"),
        ("{\"thread\":0", "{\"thread\":1", "has no thread"),
        ("{\"thread\":0", "{\"waits\":[[0,5]],\"thread\":0", "waits for one that comes later"),
        ("\"mkdir\":{\"path\":0", "\"mkdir\":{\"path\":77", "no path"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let error = read(text.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{to}: {error}");
    }
    let file = |bytes: u64, data: &[(u64, u64)]| {
        let mut with = recording.clone();
        with.entries[0].what = Laid::File { bytes, mode: 0o600, data: data.to_vec() };
        let mut text = Vec::new();
        write(&with, &mut text).unwrap();
        read(text.as_slice()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(file(9, &[(0, 4), (4, 9)]), Ok(()));
    for (bytes, data) in
        [(u64::MAX, &[][..]), (9, &[(0, 10)]), (9, &[(4, 3)]), (9, &[(4, 8), (0, 2)])]
    {
        assert!(file(bytes, data).unwrap_err().contains("a file's data"), "{bytes}: {data:?}");
    }
    let cut = text.lines().take(3).collect::<Vec<_>>().join("\n");
    assert!(read(cut.as_bytes()).unwrap_err().to_string().contains("ends too early"));
}

fn laid(recording: &Recording) -> Vec<&str> {
    let entries = recording.entries.iter();
    entries.map(|entry| recording.paths[entry.path as usize].as_str()).collect()
}

#[test]
fn a_directory_in_which_something_is_made_is_laid_out() {
    let makes = [
        "open(\"d/new\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/d/new>",
        "mkdir(\"d/new\", 0777) = 0",
        "rename(\"old\", \"d/new\") = 0",
        "link(\"old\", \"d/new\") = 0",
        "symlink(\"f\", \"d/new\") = 0",
        "stat(\"d/new\", 0x7ffd) = -1 ENOENT (No such file or directory)",
    ];
    for call in makes {
        let recording = recorded(&[&format!("7 {call}")]);
        assert!(laid(&recording).contains(&"0/d"), "{call}: {:?}", laid(&recording));
    }
    let through = recorded(&["7 stat(\"old/x\", 0x7ffd) = -1 ENOTDIR (Not a directory)"]);
    assert_eq!(laid(&through), ["0", "0/old"]);
}

#[test]
fn what_keeps_a_directory_from_going_is_laid_out() {
    for call in [
        "7 rmdir(\"d\") = -1 ENOTEMPTY (Directory not empty)",
        "7 rename(\"e\", \"d\") = -1 ENOTEMPTY (Directory not empty)",
        "7 renameat2(AT_FDCWD</w>, \"e\", AT_FDCWD</w>, \"d\", 0) = -1 EEXIST (File exists)",
    ] {
        let recording = recorded(&["7 mkdir(\"e\", 0777) = 0", call]);
        assert_eq!(laid(&recording), ["0", "0/d", "0/d/f", "0/d/g"], "{call}");
        assert_eq!(recording.calls.len(), 2);
    }
}

#[test]
fn children_that_make_no_calls_leave_one_need_for_each_thread() {
    let mut lines = vec![String::from("7 open(\"old\", O_WRONLY) = 3</w/old>")];
    for child in 100..140 {
        lines.push(format!("7 clone(child_stack=NULL, flags=SIGCHLD) = {child}"));
        lines.push(format!("{child} +++ exited with 0 +++"));
        lines.push(format!("7 wait4(-1, [], 0, NULL) = {child}"));
    }
    lines.push(String::from("7 clone(child_stack=NULL, flags=SIGCHLD) = 8"));
    lines.push(String::from("8 unlink(\"d/f\") = 0"));
    let recording = recorded(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(short(&recording)[1], (1, "unlink", vec![(0, 1)]));
}

#[test]
fn a_call_that_was_refused_for_how_its_path_ends_is_not_made_without_that_end() {
    let recording = recorded(&[
        "7 unlink(\"old/\") = -1 ENOTDIR (Not a directory)",
        "7 rmdir(\"d/.\") = -1 EINVAL (Invalid argument)",
        "7 rmdir(\"d/..\") = -1 ENOTEMPTY (Directory not empty)",
        "7 rename(\"old\", \"new/\") = -1 ENOTDIR (Not a directory)",
        "7 open(\"new/\", O_WRONLY|O_CREAT, 0666) = -1 EISDIR (Is a directory)",
        "7 stat(\"\", 0x7ffd) = -1 ENOENT (No such file or directory)",
        "7 mkdir(\"new/\", 0777) = 0",
    ]);
    assert_eq!(short(&recording), [(0, "mkdir", vec![])]);
    assert_eq!(left_out(&recording, why::PATH_END), 6);
    assert_eq!(missing(&recording.head), 0);
}

#[test]
fn flags_that_change_after_the_open_are_set_and_others_are_none() {
    let recording = recorded(&[
        "7 open(\"old\", O_RDWR|O_APPEND) = 3</w/old>",
        "7 fcntl(3</w/old>, F_SETFL, O_RDWR|O_APPEND|O_NONBLOCK) = 0",
        "7 fcntl(3</w/old>, F_SETFL, O_RDWR|O_DIRECT) = 0",
        "7 fcntl(3</w/old>, F_SETFL, O_RDWR|O_DIRECT) = 0",
        "7 fcntl(3</w/old>, F_SETFL, O_RDWR) = 0",
        "7 fcntl(3</w/old>, F_SETFL, O_RDWR|O_DIRECT) = -1 EINVAL (Invalid argument)",
        "7 fcntl(5<pipe:[7]>, F_SETFL, O_RDONLY|O_NONBLOCK) = 0",
        "7 fcntl(3</w/old>, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)",
    ]);
    let set = |flags: &str| Action::SetFlags { handle: 0, flags: flags.into() };
    let actions: Vec<_> = recording.calls[1..].iter().map(|call| call.action.clone()).collect();
    assert_eq!(actions, [set("O_DIRECT"), set("")]);
    assert_eq!(recording.head.left_out, [(why::UNSUPPORTED.to_string(), 1)].into());
}

#[test]
fn what_an_ioctl_changes_is_counted() {
    let recording = recorded(&[
        "7 open(\"old\", O_RDWR) = 3</w/old>",
        "7 ioctl(3</w/old>, FS_IOC_SETFLAGS, [FS_NOCOW_FL]) = 0",
        "7 ioctl(3</w/old>, BTRFS_IOC_CLONE_RANGE or FICLONERANGE, {src_fd=3</w/old>}) = 0",
        "7 ioctl(3</w/old>, BTRFS_IOC_CLONE or FICLONE, 9</tmp/x>) = 0",
        "7 ioctl(3</w/old>, FS_IOC_GETFLAGS, [FS_EXTENT_FL]) = 0",
        "7 ioctl(3</w/old>, FS_IOC_FIEMAP, {fm_start=0}) = 0",
        "7 ioctl(3</w/old>, FIOCLEX) = 0",
        "7 ioctl(3</w/old>, TCGETS, 0x7) = -1 ENOTTY (Inappropriate ioctl for device)",
        "7 ioctl(1</dev/tty>, TCSETS, {c_iflag=0}) = 0",
    ]);
    assert_eq!(recording.head.left_out, [(why::UNKNOWN.to_string(), 3)].into());
}

#[test]
fn what_a_replay_has_no_word_for_is_counted_and_not_recorded() {
    let recording = recorded(&[
        "7 open(\"old\", O_RDWR) = 3</w/old>",
        "7 fallocate(3</w/old>, 0x80 /* FALLOC_FL_??? */, 0, 4096) = 0",
        "7 fallocate(3</w/old>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 4096) = 0",
        "7 fallocate(3</w/old>, 0, 0, 4096) = 0",
        "7 fadvise64(3</w/old>, 0, 0, 0x9 /* POSIX_FADV_??? */) = 0",
        "7 fsync(3</w/old>) = -1 EREMOTEIO (Remote I/O error)",
        "7 lseek(3</w/old>, 9000, SEEK_DATA) = -1 ENXIO (No such device or address)",
        "7 _llseek(3</w/old>, 70, [70], SEEK_SET) = 0",
    ]);
    assert_eq!(short(&recording)[1..3], ["allocate"; 2].map(|name| (0, name, vec![])));
    assert_eq!(recording.calls[3].action, Action::Seek { handle: 0, place: 70 });
    let counted = [(why::UNKNOWN.to_string(), 3), (why::UNSUPPORTED.to_string(), 1)];
    assert_eq!(recording.head.left_out, counted.into());
}

#[test]
fn a_mode_is_read_wherever_an_open_has_it() {
    let how = "{flags=O_WRONLY|O_CREAT, mode=0640, resolve=RESOLVE_BENEATH}";
    let recording = recorded(&[
        &format!("7 openat2(AT_FDCWD</w>, \"a\", {how}, 24) = 3</w/a>"),
        "7 creat(\"b\", 0604) = 4</w/b>",
        "7 open(\"old\", O_RDONLY) = 5</w/old>",
    ]);
    let modes = recording.calls.iter().map(|call| match call.action {
        Action::Open { mode, .. } => mode,
        _ => panic!("an open"),
    });
    assert_eq!(modes.collect::<Vec<_>>(), [0o640, 0o604, 0o600]);
}

#[test]
fn attributes_of_links_and_what_their_flags_refused_are_left_out() {
    let recording = recorded(&[
        "7 symlink(\"old\", \"l\") = 0",
        "7 llistxattr(\"l\", NULL, 0) = 0",
        "7 lgetxattr(\"l\", \"security.selinux\", 0x7, 255) = -1 ENODATA (No data available)",
        "7 lsetxattr(\"l\", \"trusted.a\", \"x\", 1, 0) = 0",
        "7 setxattr(\"old\", \"user.a\", \"x\", 1, XATTR_CREATE) = -1 EEXIST (File exists)",
        "7 setxattr(\"old\", \"user.b\", \"x\", 1, XATTR_REPLACE) = -1 ENODATA (No data available)",
        "7 lgetxattr(\"old\", \"user.a\", 0x7, 255) = 1",
    ]);
    assert_eq!(short(&recording), ["symlink", "getxattr"].map(|name| (0, name, vec![])));
    assert_eq!(left_out(&recording, why::OF_LINKS), 2);
    assert_eq!([why::UNKNOWN, why::UNSUPPORTED].map(|it| left_out(&recording, it)), [1, 2]);
    assert_eq!(missing(&recording.head), 1);
}

#[test]
fn exec_closes_what_it_is_to_close_and_leaves_one_thread_with_the_first_ones_number() {
    let recording = recorded(&[
        "7 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD}, 88) = 8",
        "8 open(\"old\", O_RDONLY) = 3</w/old>",
        "8 open(\"d/f\", O_RDONLY) = 4</w/d/f>",
        "7 close_range(4, 4294967295, CLOSE_RANGE_CLOEXEC) = 0",
        "8 execve(\"/bin/true\", [\"true\"], 0x7 /* 9 vars */ <unfinished ...>",
        "7 +++ superseded by execve in pid 8 +++",
        "7 <... execve resumed>) = 0",
        "7 read(3</w/old>, \"\"..., 10) = 10",
        "7 +++ exited with 0 +++",
    ]);
    let names = ["open", "open", "close", "read", "close"];
    assert_eq!(short(&recording), names.map(|name| (0, name, vec![])));
    let closed = recording.calls.iter().filter_map(|call| match call.action {
        Action::Close { handle } => Some(handle),
        _ => None,
    });
    assert_eq!(closed.collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_link_may_lead_up_from_where_it_led_down() {
    let recording = recorded(&["7 symlink(\"d/../d/../old\", \"l\") = 0"]);
    let mut text = Vec::new();
    write(&recording, &mut text).unwrap();
    assert_eq!(read(text.as_slice()).unwrap(), recording);
}
