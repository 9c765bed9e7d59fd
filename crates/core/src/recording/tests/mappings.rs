//! Files in memory: what of it is replayed.

use super::*;

const OPEN: &str = "7 open(\"old\", O_RDWR) = 4</w/old>";
const SHARED: &str =
    "7 mmap(NULL, 12000, PROT_READ|PROT_WRITE, MAP_SHARED, 4</w/old>, 0x1000) = 0x7f0000000000";

fn actions(recording: &Recording) -> Vec<Action> {
    recording.calls.iter().skip(1).map(|call| call.action.clone()).collect()
}

fn shared(writes: bool) -> Action {
    let flags = "MAP_SHARED".into();
    Action::Map { handle: 0, map: 0, place: 4096, bytes: 12000, flags, writes }
}

fn touch(map: u32, page: u64, writes: bool) -> Action {
    Action::Touch { map, place: page * 4096, bytes: 4096, writes }
}

#[test]
fn page_faults_are_calls_on_the_mapping_whose_pages_they_are_of() {
    let recording = recorded(&[
        OPEN,
        SHARED,
        "7 close(4</w/old>) = 0",
        "7 fault 0x7f0000002abc read",
        "7 fault 0x7f0000000008 write",
        "7 fault 0x7f0000003000 write",
        "9 fault 0x7f0000000008 write",
        "7 msync(0x7f0000001000, 4096, MS_SYNC) = 0",
        "7 madvise(0x7f0000000000, 12000, MADV_RANDOM) = 0",
        "7 madvise(0x7f0000000000, 12000, MADV_HUGEPAGE) = 0",
        "7 mlock(0x7f0000001000, 8192) = 0",
        "7 munmap(0x7f0000001000, 4096) = 0",
        "7 fault 0x7f0000001008 write",
        "7 fault 0x7f0000002000 write",
        "7 +++ exited with 0 +++",
    ]);
    let (map, sync, random) = (0, String::from("MS_SYNC"), String::from("MADV_RANDOM"));
    let expected = [
        shared(true),
        Action::Close { handle: 0 },
        touch(0, 2, false),
        touch(0, 0, true),
        Action::SyncMap { map, place: 4096, bytes: 4096, flags: sync },
        Action::AdviseMap { map, place: 0, bytes: 12288, advice: random },
        Action::Touch { map, place: 4096, bytes: 8192, writes: false },
        touch(0, 2, true),
        Action::Unmap { map },
    ];
    assert_eq!(actions(&recording), expected);
    assert_eq!(recording.head.left_out, [].into());
    assert_eq!(recording.head.maps, 1);
    assert!(recording.calls[3].gave == Gave::Unseen && recording.calls[5].action.is_sync());
    // Ten microseconds from line to line, the call took one; no tracer was in between.
    assert_eq!(recording.calls[4].pause_ns, 10_000);
}

#[test]
fn what_is_written_to_a_copy_is_read_from_the_file() {
    let map = |place: &str, flags: &str, at: &str| {
        format!("7 mmap({place}, 8192, PROT_READ|PROT_WRITE, {flags}, 4</w/old>, 0) = {at}")
    };
    let recording = recorded(&[
        OPEN,
        &map("NULL", "MAP_PRIVATE|MAP_POPULATE", "0x20000"),
        "7 fault 0x20000 write",
        "7 msync(0x20000, 8192, MS_SYNC) = 0",
        &map("0x21000", "MAP_PRIVATE|MAP_FIXED", "0x21000"),
        "7 fault 0x21000 read",
        "7 mmap(0x20000, 8192, PROT_READ, MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS, -1, 0) = 0x20000",
        "7 fault 0x21000 read",
        "7 fault 0x22000 read",
        "7 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 4</w/old>, 0) = -1 ENODEV (No such device)",
        "7 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 9</w/old>, 0) = 0x90000",
        "7 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 9</lib/c>, 0) = 0x90000",
        "7 mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = -1 ENOMEM (No)",
    ]);
    let private = |map, flags: &str| {
        let flags = flags.into();
        Action::Map { handle: 0, map, place: 0, bytes: 8192, flags, writes: false }
    };
    let expected = [
        private(0, "MAP_PRIVATE|MAP_POPULATE"),
        touch(0, 0, false),
        private(1, "MAP_PRIVATE"),
        touch(1, 0, false),
        Action::Unmap { map: 0 },
        touch(1, 1, false),
    ];
    assert_eq!(actions(&recording), expected);
    assert_eq!(left_out(&recording, why::UNSUPPORTED), 1);
    assert_eq!(left_out(&recording, why::PASSED), 1);
    assert_eq!(recording.head.left_out.len(), 2);
}

#[test]
fn a_mapping_is_a_childs_too_until_both_are_gone_or_begin_anew() {
    let recording = recorded(&[
        OPEN,
        SHARED,
        "7 clone(child_stack=NULL, flags=SIGCHLD) = 8",
        "8 fault 0x7f0000000000 write",
        "7 munmap(0x7f0000000000, 12000) = 0",
        "8 fault 0x7f0000001000 read",
        "8 vfork() = 9",
        "9 execve(\"/bin/true\", [\"true\"], 0x7 /* 9 vars */) = 0",
        "9 fault 0x7f0000001000 read",
        "8 fault 0x7f0000002000 read",
        "8 execve(\"/bin/true\", [\"true\"], 0x7 /* 9 vars */) = 0",
        "8 fault 0x7f0000002000 read",
    ]);
    let lanes: Vec<_> = short(&recording).into_iter().skip(1).collect();
    let expected = [
        (0, "map", vec![]),
        (1, "fault", vec![(0, 2)]),
        (1, "fault", vec![]),
        (1, "fault", vec![]),
        (1, "unmap", vec![]),
    ];
    assert_eq!(lanes, expected);
}

#[test]
fn threads_meet_pages_in_no_order_and_syncs_wait_for_all() {
    let thread = "clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD}, 88) = 8";
    let recording = recorded(&[
        OPEN,
        SHARED,
        &format!("7 {thread}"),
        "8 fault 0x7f0000000000 write",
        "7 fault 0x7f0000001000 write",
        "8 fault 0x7f0000002000 write",
        "7 fsync(4</w/old>) = 0",
        "8 mremap(0x7f0000000000, 12288, 24576, MREMAP_MAYMOVE) = 0x7f0000100000",
        "7 fault 0x7f0000105000 write",
        "7 mremap(0x7f0000100000, 24576, 4096, 0) = 0x7f0000100000",
        "7 fault 0x7f0000101000 write",
        "7 munmap(0x7f0000100000, 4096) = 0",
    ]);
    let calls: Vec<_> = short(&recording).into_iter().skip(1).collect();
    let expected = [
        (0, "map", vec![]),
        (1, "fault", vec![(0, 2)]),
        (0, "fault", vec![]),
        (1, "fault", vec![]),
        (0, "fsync", vec![(1, 2)]),
        (1, "map", vec![(0, 3)]),
        (0, "fault", vec![(1, 3)]),
        (0, "unmap", vec![]),
    ];
    assert_eq!(calls, expected);
    assert_eq!(recording.calls[6].action, Action::Grow { map: 0, bytes: 24576 });
    assert_eq!(recording.calls[7].action, touch(0, 5, true));
}

#[test]
fn where_faults_are_not_seen_all_is_read_and_what_is_written_is_counted() {
    let lines = [
        OPEN,
        SHARED,
        "7 fault 0x7f0000000000 write",
        "7 msync(0x7f0000000000, 12000, MS_SYNC) = 0",
        "7 mmap(NULL, 8192, PROT_READ, MAP_SHARED, 4</w/old>, 0) = 0x20000",
        "7 fault 0x21000 read",
    ];
    let names = |recording: &Recording| -> Vec<_> {
        recording.calls.iter().skip(1).map(|call| call.action.name()).collect()
    };
    let seen = recorded_with(Faults::Seen, &lines);
    assert_eq!(names(&seen), ["map", "msync", "map", "fault"]);
    assert_eq!(seen.calls[4].action, touch(1, 1, false));
    let unseen = recorded_with(Faults::Unseen, &[&lines[..2], &lines[3..5]].concat());
    assert_eq!(names(&unseen), ["map", "msync", "map", "fault"]);
    let whole = Action::Touch { map: 1, place: 0, bytes: 8192, writes: false };
    assert_eq!(unseen.calls[4].action, whole);
    for (recording, reads) in [(seen, 0), (unseen, 1)] {
        assert_eq!(left_out(&recording, why::MAPPED), 1);
        assert_eq!(left_out(&recording, why::MAPPED_BYTES), 12000);
        assert_eq!(left_out(&recording, why::MAPPED_WHOLE), reads);
        assert_eq!(missing(&recording.head), 1 + reads);
    }
}
