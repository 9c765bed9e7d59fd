//! Requests of io_uring, as lines tell of them.

use super::*;

fn request(opcode: u64, flags: u64, file: &str, [off, addr, len, op]: [u64; 4]) -> String {
    format!(
        "{{opcode={opcode}, flags={flags}, {file}, off={off}, addr={addr}, len={len}, op={op}, \
         slot=0}}"
    )
}

/// What the requests of a ring become, to `/w/old` as descriptor 3 and file 7 of the ring.
fn of(requests: &[String]) -> Recording {
    let count = requests.len();
    let enter = format!("7 io_uring_enter(5, {count}, [{}]) = {count}", requests.join(", "));
    recorded(&[
        "7 open(\"old\", O_RDWR) = 3</w/old>",
        "7 io_uring_register(5, [{index=6, fd=9</etc/x>}, {index=7, fd=3</w/old>}]) = 0",
        &enter,
    ])
}

#[test]
fn what_lies_in_a_ring_is_calls_one_by_one() {
    let old = "fd=3</w/old>";
    let recording = of(&[
        request(22, 0, old, [8192, 1, 512, 0]),
        request(23, 4, old, [u64::MAX, 1, 100, 2]),
        request(23, 4, old, [7, 1, 100, 4]),
        request(1, 0, old, [4096, 1, 2, 0]).replace('}', ", bytes=700}"),
        request(5, 1, "index=7", [0, 1, 4096, 0]),
        request(3, 0, old, [0, 0, 0, 0]),
        request(3, 1, "index=7", [0, 0, 0, 1]),
        request(8, 0, old, [10, 0, 20, 2]),
        request(17, 0, old, [30, 40, 3, 0]),
        request(24, 0, old, [50, 0, 60, 4]),
        request(24, 0, old, [50, 80, 0, 4]),
        request(55, 0, old, [70, 0, 0, 0]),
    ]);
    let handle = 0;
    let calls: Vec<_> = recording.calls[1..].iter().map(|call| call.action.clone()).collect();
    let expected = [
        Action::Pread { handle, bytes: 512, place: 8192 },
        Action::Write { handle, bytes: 100 },
        Action::Fdatasync { handle },
        Action::Pwrite { handle, bytes: 100, place: 7 },
        Action::Fsync { handle },
        Action::Pread { handle, bytes: 700, place: 4096 },
        Action::Pwrite { handle, bytes: 4096, place: 0 },
        Action::Fsync { handle },
        Action::Fdatasync { handle },
        Action::SyncRange { handle, place: 10, bytes: 20, flags: "SYNC_FILE_RANGE_WRITE".into() },
        Action::Allocate {
            handle,
            flags: "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE".into(),
            place: 30,
            bytes: 40,
        },
        Action::Advise { handle, advice: "POSIX_FADV_DONTNEED".into(), place: 50, bytes: 60 },
        Action::Advise { handle, advice: "POSIX_FADV_DONTNEED".into(), place: 50, bytes: 80 },
        Action::Truncate { on: On::Handle(handle), bytes: 70 },
    ];
    assert_eq!(calls, expected);
    assert!(recording.calls[1..].iter().all(|call| call.gave == Gave::Unseen));
    assert_eq!((recording.head.one_by_one, missing(&recording.head)), (14, 0));
    assert_eq!(recording.head.left_out, [].into());
}

#[test]
fn requests_of_no_file_are_none_and_those_that_can_not_be_replayed_are_counted() {
    let old = "fd=3</w/old>";
    let recording = of(&[
        request(0, 0, "fd=-1<>", [0; 4]),
        request(6, 0, "fd=8<socket:[9]>", [0; 4]),
        request(26, 0, "fd=8<socket:[9]>", [0; 4]),
        // A path, a buffer of the kernel's choice, an end that moves, and what is not known yet.
        request(18, 0, "fd=-100<>", [0; 4]),
        request(22, 32, old, [0; 4]),
        request(23, 0, old, [0, 0, 1, 16]),
        request(200, 0, old, [0; 4]),
        request(22, 0, "fd=9</etc/x>", [0, 0, 1, 0]),
        request(22, 0, "fd=4</w/d/f>", [0, 0, 1, 0]),
        request(22, 1, "index=8", [0, 0, 1, 0]),
        request(22, 0, "fd=8<socket:[9]>", [0, 0, 1, 0]),
        request(24, 0, old, [0, 0, 0, 6]),
        request(17, 0, old, [0, 1, 128, 0]),
        "{opcode=22}".into(),
    ]);
    assert_eq!(recording.calls.len(), 1);
    for (what, count) in
        [(why::RINGS, 4), (why::ELSEWHERE, 1), (why::PASSED, 2), (why::PIPES, 1), (why::UNKNOWN, 3)]
    {
        assert_eq!(left_out(&recording, what), count, "{what}");
    }
    assert_eq!(recording.head.one_by_one, 0);
}

/// The kernel keeps a ring's files open, until they are others, or the ring goes.
#[test]
fn a_file_of_a_ring_outlives_its_descriptor() {
    let write = |index: u64| {
        let file = format!("index={index}");
        format!("7 io_uring_enter(5, 1, [{}]) = 1", request(23, 1, &file, [0, 0, 9, 0]))
    };
    let closes = |last: &str| {
        let recording = recorded(&[
            "7 open(\"old\", O_RDWR) = 3</w/old>",
            "7 open(\"d/f\", O_RDWR) = 4</w/d/f>",
            "7 io_uring_register(5, [{index=0, fd=3</w/old>}, {index=1, fd=4</w/d/f>}]) = 0",
            "7 close(3</w/old>) = 0",
            "7 close(4</w/d/f>) = 0",
            &write(0),
            "7 io_uring_register(5, [{index=0, fd=-1<>}]) = 0",
            &write(1),
            last,
            "7 mkdir(\"n\", 0777) = 0",
        ]);
        let names = short(&recording).into_iter().map(|(_, name, _)| name.to_string());
        names.collect::<Vec<_>>()
    };
    let expected = ["open", "open", "write", "close", "write", "close", "mkdir"];
    for last in [
        "7 close(5<anon_inode:[io_uring]>) = 0",
        "7 io_uring_register(5, 0) = 0",
        "7 execve(\"/bin/true\", [\"true\"], 0x7 /* 9 vars */) = 0",
    ] {
        assert_eq!(closes(last), expected, "{last}");
    }
    // Closed there, replaced by what is opened, accepted or given to the ring; and with the ring.
    for request in [
        "{opcode=19, flags=0, fd=0<>, slot=2}",
        "{opcode=18, flags=0, fd=-100, slot=2}",
        "{opcode=13, flags=0, fd=9<socket:[9]>, slot=2}",
        "{opcode=20, flags=0, fd=-1<>, off=1, len=1, slot=0}",
        "{opcode=19, flags=0, fd=5<anon_inode:[io_uring]>, slot=0}",
    ] {
        let last = format!("7 io_uring_enter(5, 1, [{request}]) = 1");
        assert_eq!(closes(&last), expected, "{request}");
    }
    let elsewhere = "{opcode=18, flags=0, fd=-100, slot=4294967295}";
    assert_eq!(closes(&format!("7 io_uring_enter(5, 1, [{elsewhere}]) = 1")).len(), 6);
    assert_eq!(closes("7 close(6<anon_inode:[io_uring]>) = 0").len(), 6);
}

#[test]
fn a_request_closes_a_descriptor() {
    let recording = recorded(&[
        "7 open(\"old\", O_RDWR) = 3</w/old>",
        "7 io_uring_enter(5, 1, [{opcode=19, flags=0, fd=3</w/old>, slot=0}]) = 1",
        "7 read(3</w/d/f>, \"\"..., 5) = 5",
    ]);
    assert_eq!(short(&recording).last().unwrap().1, "close");
    assert_eq!(left_out(&recording, why::PASSED), 1);
}
