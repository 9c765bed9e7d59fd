//! Other programs beside a trial: they are found and named, and what the work does is its own.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::cpu::burn;
use crate::support::{Scene, Started, list, program, text, wait_for};

const MIB: u64 = 1 << 20;

/// Something that runs beside, and ends with the test.
struct Beside(Child);

impl Beside {
    fn new(mut command: Command) -> Beside {
        Beside(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// User and system time, in ticks.
    fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let rest = stat.rsplit_once(')').unwrap().1.split_whitespace();
        rest.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two trials whose work waits in the midst of it until `meanwhile` is over.
fn run_beside(scene: &Scene, mut meanwhile: impl FnMut(u32)) -> Value {
    let work = "head -c 8M /dev/urandom > own; touch $FSVERDICT_RAW/begun; \
                until [ -e $FSVERDICT_RAW/over ]; do sleep 0.05; done";
    let options = "--fs ext4,ext4 --size 64M --rounds 1 --output run --json -";
    let mut words = vec!["run"];
    words.extend(options.split(' '));
    words.extend(["--", "sh", "-c", work]);
    let mut started = Started::new(scene.command(&words));
    for trial in 1..=2 {
        let raw = scene.path(&format!("run/trials/{trial}/raw"));
        started.reaches("the work", || raw.join("begun").exists());
        meanwhile(trial);
        fs::write(raw.join("over"), "").unwrap();
    }
    started.wait().exits(0).json()
}

/// What is known of a stranger in a trial.
fn stranger<'a>(trial: &'a Value, name: &str) -> &'a Value {
    let most = list(&trial["phases"][0]["strangers"]["most"]);
    most.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("no {name}: {trial:#}"))
}

/// The contenders of which A13 says so.
fn warned<'a>(document: &'a Value, what: &str) -> Vec<&'a str> {
    let findings = list(&document["findings"]).iter().filter(|it| it["audit"] == "A13");
    let findings = findings.filter(|it| text(&it["evidence"]).contains(what));
    let mut named: Vec<&str> = findings.map(|it| text(&it["contender"])).collect();
    named.sort_unstable();
    named
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn another_writer_on_the_same_disk_is_noticed_and_named() {
    let scene = Scene::alone();
    let mut writers = Vec::new();
    let document = run_beside(&scene, |trial| {
        let file = scene.path(&format!("other-{trial}"));
        let mut command = program("dd");
        command.arg(format!("of={}", file.display()));
        command.args(["bs=1M", "iflag=fullblock", "oflag=direct", "status=none"]);
        let mut writer = Beside::new(command);
        let zeros = vec![0; 48 << 20];
        writer.0.stdin.as_mut().unwrap().write_all(&zeros).unwrap();
        wait_for("48 MiB", || fs::metadata(&file).is_ok_and(|it| it.len() == 48 * MIB));
        writers.push(writer);
    });
    for trial in list(&document["trials"]) {
        let wrote = stranger(trial, "dd")["write_bytes"].as_u64().unwrap();
        // There may be others of its name on this machine.
        assert!(wrote >= 48 * MIB, "{trial:#}");
        let foreign = &trial["phases"][0]["totals"]["foreign"];
        if foreign.is_null() {
            println!("the image is cached, or lies on no disk: there is nothing to see");
            return;
        }
        assert!(foreign["write_bytes"].as_u64().unwrap() >= 48 * MIB, "{foreign}");
    }
    assert_eq!(warned(&document, "on the same disk"), ["ext4", "ext4#2"], "{document:#}");
    drop(writers);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn others_who_have_the_processors_are_noticed_and_named() {
    let scene = Scene::alone();
    let burn = burn(&scene);
    let processors = std::thread::available_parallelism().unwrap().get();
    let forever = i64::MAX.to_string();
    // Before most that may run on this machine, and not so far that the run hardly gets on.
    let others = (0..processors).map(|_| {
        let mut command = program("nice");
        command.args(["-n", "-5", &burn, "user", &forever]);
        Beside::new(command)
    });
    let others: Vec<Beside> = others.collect();
    let ticks = || others.iter().map(Beside::ticks).sum::<u64>();
    let document = run_beside(&scene, |_| {
        let begun = ticks();
        wait_for("a second of it", || ticks() > begun + 100);
    });
    for trial in list(&document["trials"]) {
        let phase = &trial["phases"][0];
        let others_ns = stranger(trial, "burn")["cpu_ns"].as_u64().unwrap();
        assert!(others_ns >= 900_000_000, "{phase:#}");
        let work_ns = phase["totals"]["cpu_time"]["work_ns"].as_u64().unwrap();
        assert!(work_ns < others_ns, "what others do is not the work's: {phase:#}");
    }
    // Where this test has few of the machine's processors, all of these are hardly any of them.
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let of_machine = stat.lines().filter(|line| line.starts_with("cpu")).count() - 1;
    if processors * 10 >= of_machine {
        let warned = warned(&document, "other programs had");
        assert_eq!(warned, ["ext4", "ext4#2"], "{document:#}");
    }
    drop(others);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_the_work_reads_elsewhere_is_its_own() {
    let scene = Scene::alone();
    let source = scene.path("source");
    fs::write(&source, vec![7; 16 << 20]).unwrap();
    fs::File::open(&source).unwrap().sync_all().unwrap();
    let work = format!("cat {} > copy", source.display());
    let options = "--fs ext4,ext4 --size 64M --rounds 1";
    let document = super::run_command(&scene, options, &["sh", "-c", &work]).exits(0).json();
    for trial in list(&document["trials"]) {
        let phase = &trial["phases"][0];
        let read = |of: &Value| of["read_bytes"].as_u64();
        // A file system in memory has nothing to be read from.
        let foreign = &phase["totals"]["foreign"];
        let Some(foreign_read) = read(foreign).filter(|&it| it >= 16 * MIB) else {
            continue;
        };
        let work = read(&phase["totals"]["work_io"]).unwrap();
        assert!(work >= 16 * MIB, "of {foreign_read}: {phase:#}");
        // Who has ended by then is not named, and has moved it all the same.
        let moved =
            foreign_read - work.min(foreign_read) + foreign["write_bytes"].as_u64().unwrap();
        let is_blamed = warned(&document, "on the same disk").contains(&text(&trial["contender"]));
        assert!(!is_blamed || moved > MIB, "nobody else has done anything: {phase:#}");
    }
    scene.assert_nothing_left();
}
