//! Applications recorded, and their replays beside them on the same file system.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::{device, failure, run_plan};
use crate::support::{Done, Scene, Started, list, program, sample, text, verdict, wait_for};

/// Lines for the shell: what is there beforehand, and the work.
struct Application<'a> {
    setup: &'a str,
    command: &'a str,
}

impl Application<'_> {
    /// Records it in a folder of its own, as `NAME.toml`; gives the recording's first line.
    fn record(&self, scene: &Scene, name: &str) -> Value {
        let folder = scene.path(&format!("{name}.d"));
        fs::create_dir(&folder).unwrap();
        let mut setup = program("sh");
        setup.args(["-c", self.setup]).current_dir(&folder);
        Started::new(setup).wait().exits(0);
        let output = scene.typed(&format!("{name}.toml"));
        let mut record =
            scene.command(&["record", "--output", &output, "--", "sh", "-c", self.command]);
        let temporary = scene.path(&format!("{name}.tmp"));
        fs::create_dir(&temporary).unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o777)).unwrap();
        record.current_dir(&folder).env("TMPDIR", &temporary);
        Started::new(record).wait().exits(0).says("Compare: sudo fsverdict run");
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "the trace is left");
        head(scene, name)
    }

    /// The application and its replay, each twice, each on an ext4 of its own.
    /// ext4's timer commits every five seconds, which would be flushes of a slow machine's alone.
    fn beside_its_replay(&self, scene: &Scene) -> Done {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let plan = format!(
            r#"
            bed = {{ size = "512M" }}
            judgement = {{ rounds = 1 }}
            contender = [
                {{ name = "a", file_system = "ext4", mount = ["commit=300"] }},
                {{ name = "b", file_system = "ext4", mount = ["commit=300"] }},
            ]
            [[workload]]
            name = "original"
            setup = {}
            command = {}
            [[workload]]
            name = "replay"
            replay = {{ recording = "one.calls" }}
            "#,
            quoted(self.setup),
            quoted(self.command)
        );
        run_plan(scene, &plan)
    }
}

fn head(scene: &Scene, name: &str) -> Value {
    let text = scene.read(&format!("{name}.calls"));
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

/// Two counts are within 5% of each other, or `slack` apart.
#[track_caller]
fn assert_alike(what: &str, one: u64, other: u64, slack: u64) {
    let apart = one.abs_diff(other);
    assert!(apart * 20 <= one.max(other) || apart <= slack, "{what}: {one} and {other}");
}

/// What the devices were asked for each trial of a workload: bytes to write, requests before any
/// were merged, which is a matter of time, and flushes.
fn counters(document: &Value, workload: &str) -> Vec<[u64; 3]> {
    let trials = list(&document["trials"]).iter().filter(|it| it["workload"] == workload);
    let of = |trial: &Value| {
        let counted = |counter| device(trial, 0, counter);
        let asked = counted("writes") + counted("writes_merged");
        [counted("write_bytes"), asked, counted("flushes")]
    };
    trials.map(of).collect()
}

/// The replay writes and syncs as the original does, by the kernel's counters of the device; and
/// the original makes as many calls when it is recorded again.
fn assert_faithful(scene: &Scene, application: &Application) -> Value {
    let [one, _] = ["one", "other"].map(|name| application.record(scene, name));
    // Of page faults there are as many as pages that the cache has not beside one that is met.
    let calls = |name: &str| {
        let text = scene.read(&format!("{name}.calls"));
        let calls = text.lines().filter(|line| line.contains("\"do\":{"));
        calls.filter(|line| !line.contains("\"do\":{\"touch\"")).count() as u64
    };
    assert_alike("calls", calls("one"), calls("other"), 0);
    let document = application.beside_its_replay(scene).exits(0).json();
    // Flushes of work in memory were seen to differ by two commits on a busy machine. Probably a
    // page that is written changes its file's time only if the clock has ticked since the last.
    let commits = if one["maps"].as_u64().is_some_and(|maps| maps > 0) { 3 } else { 1 };
    let [originals, replays] = ["original", "replay"].map(|name| counters(&document, name));
    assert_eq!((originals.len(), replays.len()), (2, 2));
    for (original, replay) in originals.iter().zip(&replays) {
        assert_alike("bytes written", original[0], replay[0], 0);
        // A request or two more or less are the journal's.
        assert_alike("writes", original[1], replay[1], 3 * commits);
        assert_alike("flushes", original[2], replay[2], 2 * commits);
    }
    for trial in list(&document["trials"]).iter().filter(|it| it["workload"] == "replay") {
        let phase = &trial["phases"][0];
        assert_eq!(phase["operations"], one["calls"]);
        let replayed = &phase["replayed"];
        assert_eq!(
            (&replayed["unlike"], &replayed["calls"]),
            (&json!(0), &one["calls"]),
            "{replayed}"
        );
        assert_eq!(replayed["entries"], one["ends"]);
        assert!(sample(trial, "call_time") > 0.0);
    }
    scene.assert_nothing_left();
    document
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_replay_of_git_writes_what_git_writes() {
    let scene = Scene::new();
    // What git meets in the second in which it has changed it is looked at twice.
    let setup = "\
        mkdir tree && cd tree && for i in 1 2 3 4 5 6 7 8; do mkdir d$i; seq $((i * 5000)) > d$i/f
        for j in 1 2 3 4 5 6 7 8 9; do echo $i $j > d$i/$j; done; done
        find . -exec touch -d 2020-01-01 {} +";
    let command = "\
        cd tree && git init -q . && git add . &&
        git -c user.name=a -c user.email=a@b commit -qm one && git gc -q";
    let document = assert_faithful(&scene, &Application { setup, command });
    let replay = list(&document["trials"]).iter().find(|it| it["workload"] == "replay").unwrap();
    assert!(sample(replay, "syncs") >= 1.0, "gc syncs its pack");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_replay_of_rsync_writes_what_rsync_writes() {
    let scene = Scene::new();
    let generate = "tree generate source --files 600 --mean-size 16k --seed 7";
    scene.run(generate).exits(0);
    // The second run finds half of the files there.
    let source = scene.typed("source");
    let setup =
        format!("mkdir to && cp -a {source}/. to && find to -type f | sort | awk NR%2 | xargs rm");
    let command = format!("rsync -a --fsync {source}/ to");
    assert_faithful(&scene, &Application { setup: &setup, command: &command });
}

/// One client and no background writers: nothing depends on how fast the server is, which strace
/// slows down.
const POSTGRESQL_SETUP: &str = r#"
set -eu
PATH=/usr/lib/postgresql/15/bin:$PATH
chown postgres .
as="setpriv --reuid=postgres --regid=postgres --clear-groups --"
$as initdb -D db --auth=trust --username=postgres --encoding=UTF8 --locale=C --no-sync
cat >> db/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '$PWD'
dynamic_shared_memory_type = sysv
shared_buffers = 32MB
max_wal_size = 128MB
checkpoint_timeout = 1h
autovacuum = off
wal_writer_delay = 10s
bgwriter_lru_maxpages = 0
END
$as pg_ctl -t 900 -D db -w -s start -l db/log
pgbench -h "$PWD" -U postgres -i -q -s 1 postgres
$as pg_ctl -t 900 -D db -w -s -m fast stop
"#;

const POSTGRESQL: &str = r#"
set -eu
PATH=/usr/lib/postgresql/15/bin:$PATH
as="setpriv --reuid=postgres --regid=postgres --clear-groups --"
$as pg_ctl -t 900 -D db -w -s start -l db/log
pgbench -h "$PWD" -U postgres -n -c 1 -t 500 --random-seed=7 postgres
$as pg_ctl -t 900 -D db -w -s -m fast stop
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_replay_of_postgresql_writes_what_postgresql_writes() {
    let scene = Scene::new();
    fs::set_permissions(scene.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let application = Application { setup: POSTGRESQL_SETUP, command: POSTGRESQL };
    let document = assert_faithful(&scene, &application);
    let replay = list(&document["trials"]).iter().find(|it| it["workload"] == "replay").unwrap();
    assert!(sample(replay, "syncs") >= 500.0, "each transaction is durable");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_recording_is_a_plan_that_compares_file_systems() {
    let scene = Scene::new();
    let work = "\
        head -c 5000 /dev/zero > a && sync a && mkdir secret && cp a secret/b && ls secret";
    scene
        .fsverdict(&["record", "--output", "mine.toml", "--paced", "--", "sh", "-c", work])
        .exits(0);
    let recorded = scene.read("mine.calls");
    assert!(!recorded.contains("secret"), "names say nothing: {recorded}");
    let run = "run mine.toml --fs ext4,xfs,btrfs --size 512M --rounds 4 --output run --json -";
    let document = scene.run(run).exits(0).json();
    assert_eq!(list(&document["trials"]).len(), 12);
    assert!(text(&verdict(&document, "xfs", "call_time")["verdict"]).len() > 2);
    // What is not there any more is met before anything is measured; what gives something else
    // makes the trial void.
    assert!(recorded.contains("\"gave\":5000"), "{recorded}");
    scene.write("mine.calls", &recorded.replace("\"gave\":5000", "\"gave\":4999"));
    let document = scene.run("run mine.toml --fs ext4,xfs --size 512M --rounds 1 --json -");
    let document = document.exits(1).json();
    for trial in list(&document["trials"]) {
        let (step, error) = failure(trial);
        assert!(step == "work" && error.contains("calls gave something else than"), "{error}");
    }
    fs::remove_file(scene.path("mine.calls")).unwrap();
    let run = "run mine.toml --fs ext4,xfs --output none";
    scene.run(run).exits(2).says("mine.calls: No such file");
    assert!(!Path::new(&scene.typed("none/trials/1")).exists());
    scene.assert_nothing_left();
}

/// All make the same calls in the same turns, and so end alike.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn replays_take_turns_with_each_other() {
    let scene = Scene::new();
    let work = "for i in $(seq 40); do echo $i > f$i; done; sync f9; mkdir d; cp f* d; rm -r d";
    scene.fsverdict(&["record", "--output", "mine.toml", "--", "sh", "-c", work]).exits(0);
    let run = "run mine.toml --duet --fs ext4,xfs --size 320M --rounds 1 --output run --json -";
    let document = scene.run(run).exits(0).json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert_eq!(trial["outcome"], "measured", "{trial:#}");
        let (phase, turns) = (&trial["phases"][0], &trial["phases"][0]["turns"]);
        assert_eq!(
            list(&turns["operations"]),
            list(&trials[0]["phases"][0]["turns"]["operations"])
        );
        let done = list(&turns["operations"]).iter().map(|it| it.as_u64().unwrap());
        assert_eq!(phase["operations"], done.sum::<u64>());
        assert_eq!(list(&turns["lasted_ns"]).len(), 20, "{turns:#}");
        assert!(sample(trial, "call_time") > 0.0);
        assert_eq!(phase["replayed"]["unlike"], 0, "its tree is the same: {phase:#}");
    }
    scene.write("paced.toml", &scene.read("mine.toml").replace("paced = false", "paced = true"));
    let refused = scene.run("run paced.toml --duet --fs ext4,xfs --output none").exits(2);
    refused.says("goes by the clock");
    scene.assert_nothing_left();
}

/// Runs fio in a folder of the scene; gives the bytes that it read and wrote.
fn fio(scene: &Scene, folder: &str, arguments: &[&str]) -> [u64; 2] {
    let folder = scene.path(folder);
    fs::create_dir_all(&folder).unwrap();
    let mut fio = program("fio");
    fio.args(arguments).arg("--output-format=json").current_dir(&folder);
    let done = Started::new(fio).wait().exits(0);
    let report = &done.stdout[done.stdout.find('{').unwrap()..];
    let report: Value = serde_json::from_str(report).unwrap();
    let sum = |what: &str| {
        let bytes = list(&report["jobs"]).iter().map(|job| job[what]["io_bytes"].as_u64());
        bytes.map(Option::unwrap).sum()
    };
    [sum("read"), sum("write")]
}

/// The trials of a replay of `one.calls` on one ext4.
fn replayed(scene: &Scene) -> Vec<Value> {
    let run = "run one.toml --fs ext4 --size 512M --rounds 1 --output run --json -";
    let document = scene.run(run).exits(0).json();
    list(&document["trials"]).to_vec()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_log_of_fios_is_replayed_and_fio_replays_a_recording() {
    let scene = Scene::new();
    let job = "--name=a --filename=f1:f2 --size=2m --bs=4k --rw=randrw --ioengine=psync \
               --fsync=16 --randseed=7 --write_iolog=../job.iolog";
    let bytes = fio(&scene, "original", &job.split_whitespace().collect::<Vec<_>>());
    let log = scene.typed("job.iolog");
    let output = scene.typed("one.toml");
    let record = ["record", "--output", &output, "--below", &scene.typed("original")];
    scene.fsverdict(&[&record[..], &["--from-iolog", &log]].concat()).exits(0);
    for trial in replayed(&scene) {
        let phase = &trial["phases"][0];
        let moved = ["application_read_bytes", "application_write_bytes"];
        assert_eq!(moved.map(|it| phase[it].as_u64().unwrap()), bytes);
        assert_eq!(phase["replayed"]["unlike"], 0, "{phase}");
        assert!(sample(&trial, "syncs") >= 16.0);
    }
    // And back: an application's log, which fio replays in another folder.
    let work = "head -c 300000 /dev/urandom > new && sync new && cat old > copy && mv new old";
    fs::create_dir(scene.path("work")).unwrap();
    fs::write(scene.path("work/old"), [7; 70_001]).unwrap();
    let iolog = scene.typed("mine.iolog");
    let mut arguments = vec!["record", "--output", "mine.toml", "--below", "work"];
    arguments.extend(["--iolog", &iolog, "--", "sh", "-c"]);
    let work = format!("cd work && {work}");
    arguments.push(&work);
    scene.fsverdict(&arguments).exits(0).says("replays it");
    let [read, written] = fio(&scene, "again", &[&scene.typed("mine.fio")]);
    assert_eq!([read, written], [70_001, 370_001]);
    let sizes = ["file0", "file1", "file2"]
        .map(|name| fs::metadata(scene.path(&format!("again/{name}"))).unwrap().len());
    assert_eq!(sizes.iter().sum::<u64>(), 440_002);
    // A recording that was made before is the same log.
    for (from, to) in [("mine.toml", "plan.iolog"), ("mine.calls", "calls.iolog")] {
        let record = ["record", "--from-recording", from, "--iolog", to];
        scene.fsverdict(&record).exits(0).says("replays it");
        assert_eq!(scene.read(to), scene.read("mine.iolog"));
    }
    let record = ["record", "--from-recording", "mine.calls", "--iolog", "calls.iolog"];
    scene.fsverdict(&record).exits(2).says("calls.iolog is there already");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn requests_that_fio_submits_are_replayed_one_by_one_and_said() {
    let scene = Scene::new();
    fs::create_dir(scene.path("work")).unwrap();
    let job = "fio --name=a --filename=f --size=1m --bs=4k --rw=randwrite --ioengine=libaio \
               --iodepth=8 --direct=1 --fallocate=none --end_fsync=1";
    let mut arguments = vec!["record", "--output", "one.toml", "--below", "work", "--", "sh", "-c"];
    let work = format!("cd work && {job} > /dev/null");
    arguments.push(&work);
    scene.fsverdict(&arguments).exits(0).says("256 calls of io_submit or io_uring one by one");
    assert_eq!(head(&scene, "one")["one_by_one"], 256);
    for trial in replayed(&scene) {
        let replayed = &trial["phases"][0]["replayed"];
        assert_eq!((&replayed["one_by_one"], &replayed["unlike"]), (&json!(256), &json!(0)));
        assert!(trial["phases"][0]["application_write_bytes"].as_u64().unwrap() >= 1 << 20);
    }
    assert!(scene.read("run/report.md").contains("This replay "));
    assert!(scene.read("run/report.md").contains("makes 256 of its "));
    scene.assert_nothing_left();
}

/// What fio does by io_uring, as itself says, and what a replay of it does. Of files that are the
/// ring's own the descriptors are closed.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn requests_in_a_ring_are_read_there_and_replayed() {
    // 0: everybody may; kernels before 6.6 have no such switch.
    let switch = fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    if switch.is_ok_and(|switch| switch.trim() != "0") {
        return eprintln!("io_uring is disabled here: nothing is shown");
    }
    let ways = ["--nonvectored=1", "--nonvectored=0", "--fixedbufs=1 --registerfiles=1"];
    for (way, number) in ways.iter().zip(0..) {
        let scene = Scene::new();
        fs::create_dir(scene.path("work")).unwrap();
        let job = format!(
            "fio --name=a --filename=f --size=1m --bs=4k --rw=randrw --rwmixread=50 \
             --ioengine=io_uring --iodepth=8 --direct=1 --fallocate=none --fsync=16 \
             --norandommap=0 --output-format=json --output=fio.json {way}"
        );
        let mut arguments = vec!["record", "--output", "one.toml", "--below", "work"];
        let work = format!("cd work && {job}");
        arguments.extend(["--", "sh", "-c", &work]);
        scene.fsverdict(&arguments).exits(0).says("calls of io_submit or io_uring one by one");
        let head = head(&scene, "one");
        let said: Value = serde_json::from_str(&scene.read("work/fio.json")).unwrap();
        let count = |what: &str| said["jobs"][0][what]["total_ios"].as_u64().unwrap();
        let all = count("read") + count("write") + count("sync");
        assert_eq!(head["one_by_one"], all, "{way}: {head}");
        let unseen = "operations of io_uring that can't be seen";
        assert_eq!(head["left_out"].get(unseen), None, "{way}");
        // One of them is enough to be run.
        if number != 2 {
            continue;
        }
        for trial in replayed(&scene) {
            let replayed = &trial["phases"][0]["replayed"];
            assert_eq!((&replayed["one_by_one"], &replayed["unlike"]), (&json!(all), &json!(0)));
            let written = trial["phases"][0]["application_write_bytes"].as_u64().unwrap();
            assert!(written >= 4096 * count("write"), "{written}");
        }
        scene.assert_nothing_left();
    }
}

/// Nobody can take a filter of system calls back: the command goes on all the same.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_command_goes_on_when_its_recorder_is_killed() {
    let scene = Scene::new();
    fs::create_dir(scene.path("work")).unwrap();
    let job = "fio --name=a --filename=work/f --size=1m --bs=4k --rw=randwrite --ioengine=io_uring \
               --fdatasync=1 --output=said";
    // It begins, waits until its recorder is gone, and only then uses a ring.
    let wait = "touch begun; while [ ! -e killed ]; do sleep 0.05; done";
    let work = format!("{wait}; {job} && touch done");
    let arguments = ["record", "--output", "one.toml", "--below", "work", "--", "sh", "-c", &work];
    let mut record = scene.command(&arguments);
    fs::create_dir(scene.path("tmp")).unwrap();
    record.env("TMPDIR", scene.path("tmp"));
    let recorder = Started::new(record);
    wait_for("the command to begin", || scene.path("begun").exists());
    recorder.signal("KILL");
    scene.write("killed", "");
    wait_for("the command to end", || scene.path("done").exists());
    recorder.wait();
    assert!(!scene.path("one.calls").exists());
}

/// A command that can do without io_uring does, and what it does is seen; fio can't.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn io_uring_is_refused_to_a_command_that_is_to_do_without() {
    let scene = Scene::new();
    fs::create_dir(scene.path("work")).unwrap();
    let job = "fio --name=a --filename=work/f --size=64k --ioengine=";
    let work = format!("{job}io_uring > said 2>&1 || {job}psync > /dev/null");
    let arguments =
        ["record", "--no-io-uring", "--output", "one.toml", "--below", "work", "--", "sh", "-c"];
    let arguments = [&arguments[..], &[&work]].concat();
    scene.fsverdict(&arguments).exits(0);
    let said = scene.read("said");
    assert!(said.contains("Function not implemented"), "{said}");
    let head = head(&scene, "one");
    assert!(head["calls"].as_u64().unwrap() >= 16, "{head}");
    assert_eq!(head.get("one_by_one"), None);
    assert!(scene.read("one.toml").contains("# io_uring was refused to the command"));
}

/// Writes some pages of a file in memory, syncs some of them, and writes one again; reads another
/// file in memory, by itself and by a call that gets its address.
const IN_MEMORY: &str = "\
import mmap, os
old = os.open('old', os.O_RDONLY)
read = mmap.mmap(old, 0, prot=mmap.PROT_READ)
os.close(old)
first = read[5000]
with open('new', 'w+b') as new:
    new.truncate(4 << 20)
    written = mmap.mmap(new.fileno(), 4 << 20)
    for page in range(0, 1024, 3):
        written[page * 4096] = 7
    written.flush(0, 2 << 20)
    written[9 * 4096] = 8
    written.flush()
    os.pwrite(new.fileno(), memoryview(read)[1 << 20:(1 << 20) + 8192], 3 << 20)
    written.close()
read.close()
os.fsync(os.open('.', os.O_RDONLY))
";

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_replay_of_mapped_files_writes_what_the_application_writes() {
    let scene = Scene::new();
    let setup = "head -c 3000000 /dev/zero > old";
    let command = format!("exec /usr/bin/python3 -c \"{IN_MEMORY}\"");
    let document = assert_faithful(&scene, &Application { setup, command: &command });
    let recorded = head(&scene, "one");
    assert_eq!(recorded["maps"], 2);
    assert_eq!(recorded["left_out"].get("mappings of files for writing"), None);
    let replay = list(&document["trials"]).iter().find(|it| it["workload"] == "replay").unwrap();
    let phase = &replay["phases"][0];
    assert_eq!(phase["replayed"]["left_out"], 0, "{phase}");
    // 342 pages, one of them again, and a call of two.
    assert_eq!(phase["application_write_bytes"], (342 + 1 + 2) * 4096);
    assert_eq!(sample(replay, "syncs"), 3.0);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_replay_of_sqlite_in_memory_writes_what_sqlite_writes() {
    let scene = Scene::new();
    let setup = "sqlite3 db 'PRAGMA journal_mode=wal; CREATE TABLE t(a INTEGER PRIMARY KEY, b);'";
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)";
    let command = format!(
        "sqlite3 db 'PRAGMA mmap_size=268435456; INSERT INTO t {rows} SELECT i, hex(zeroblob(200)) \
         FROM n; PRAGMA wal_checkpoint; SELECT count(*), sum(length(b)) FROM t;'"
    );
    let document = assert_faithful(&scene, &Application { setup, command: &command });
    assert!(head(&scene, "one")["maps"].as_u64().unwrap() >= 2, "its index and its data");
    let replay = list(&document["trials"]).iter().find(|it| it["workload"] == "replay").unwrap();
    assert_eq!(replay["phases"][0]["replayed"]["left_out"], 0);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn files_deeper_than_a_path_can_lead_are_recorded_and_replayed() {
    let scene = Scene::new();
    let work = "\
        d=$(printf %0200d 0)
        for i in $(seq 25); do mkdir $d; cd $d; done; echo here > f; chmod 640 f; mv f g; cat g";
    fs::create_dir(scene.path("work")).unwrap();
    let mut arguments = vec!["record", "--output", "one.toml", "--below", "work", "--", "bash"];
    let work = format!("cd work; {work}");
    arguments.extend(["-c", &work]);
    scene.fsverdict(&arguments).exits(0);
    let recorded = head(&scene, "one");
    assert_eq!(recorded["ends"], 27, "{recorded}");
    for trial in replayed(&scene) {
        assert_eq!(trial["outcome"], "measured", "{trial:#}");
        let replayed = &trial["phases"][0]["replayed"];
        let counts = ["unlike", "left_out", "entries"].map(|it| replayed[it].as_u64().unwrap());
        assert_eq!(counts, [0, 0, 27], "{replayed}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_can_not_be_recorded_is_said() {
    let scene = Scene::new();
    for (arguments, status, says) in [
        (&["record", "--output", "a.toml", "--", "no-such-program"][..], 1, "no such program"),
        (&["record", "--output", "a.toml", "--", "true"], 1, "made no call on a file below"),
        (&["record", "--output", "a.json", "--", "true"], 2, "write NAME.toml"),
        (&["record", "--output", "a.toml", "--below", "none", "--", "true"], 1, "none: No such"),
        (
            &["record", "--output", "a.toml", "--", "sh", "-c", "echo > f; exit 3"],
            1,
            "exit status 3",
        ),
        (&["record", "--output", "a.toml", "--", "true"], 2, "a.toml is there already"),
        (&["record"], 2, "<COMMAND>"),
        (&["record", "--output", "b.toml", "--from-iolog", "none"], 1, "none: No such file"),
        (&["record", "--output", "b.toml", "--from-iolog", "a.calls"], 1, "not an iolog of fio"),
        (&["record", "--output", "b.toml", "--iolog", "b", "--", "true"], 2, "NAME.iolog"),
        (&["record", "--from-recording", "none", "--iolog", "b.iolog"], 1, "none: No such file"),
        (&["record", "--from-recording", "a.calls"], 2, "--iolog <NAME.iolog>"),
    ] {
        scene.fsverdict(arguments).exits(status).says(says);
    }
    assert!(scene.path("a.calls").exists(), "what a failing command did is recorded");
    scene.assert_nothing_left();
}
