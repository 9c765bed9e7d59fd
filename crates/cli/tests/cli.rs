//! What is typed: errors, help, the dry run, and reports remade from a run's folder.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{Scene, Started, assert_same, is_root, list, one_line, sample, text};

/// Two contenders and a workload, on the simulated host.
const PLAN: &str = r#"
    place = "sim"
    seed = 3
    contender = [{ name = "a", file_system = "ext4" }, { name = "b", file_system = "xfs" }]
    judgement = { rounds = 4 }
    workload = [{ name = "work", command = ["true"] }]
"#;

#[test]
fn a_wrong_command_line_is_one_clear_line_and_exit_2() {
    let scene = Scene::new();
    for (line, says) in [
        ("run --fs ext4,xfs --bed floppy -- true", "\"floppy\" is not a bed: write loop, ram"),
        ("run --fs ext4,xfs --bed device: -- true", "bed device needs a path"),
        ("run --fs ext4,xfs", "a plan needs a workload"),
        ("run -- true", "a contender, or several to compare; it has 0"),
        ("run --fs ext4,btfs -- true", "no file system is called \"btfs\"; did you mean btrfs?"),
        ("run --fs ext4,zebra -- true", "no file system is called \"zebra\"; there are ext4, xfs"),
        ("run --fs ext4,xfs --reference zfs -- true", "none of the contenders; did you mean xfs?"),
        ("run --fs ext4,xfs --small-files colour=red", "unknown field `colour`, expected one of"),
        ("run --fs ext4,xfs --small-files count=many", "--small-files count=many: invalid type"),
        ("run --fs ext4,xfs --small-files count=5 -- true", "not both"),
        ("run --fs ext4,xfs --tree files=0", "workload \"tree\" needs at least one file"),
        ("run --fs ext4,xfs --tree depth=3", "unknown field `depth`, expected one of"),
        ("run --fs ext4,xfs --rounds 0 -- true", "rounds = 0 measures nothing"),
        ("run --fs ext4,xfs --margin 90% -- true", "margin 90% is not between"),
        ("run --fs ext4,xfs --confidence 10% -- true", "confidence 10% is not between"),
        ("run --fs ext4,xfs --devices 0 -- true", "a bed of 0 devices"),
        ("run --fs ext4,xfs -- fio --name=a --filename=/dev/vda", "filename=/dev/vda, outside"),
        ("run --fs ext4,xfs -- fio gone.fio", "job file gone.fio: No such file"),
    ] {
        let done = scene.run(line).exits(2).says(says);
        let said = done.said();
        assert!(said.len() == 1 && said[0].starts_with("fsverdict: "), "{line}: {said:?}");
        assert_eq!(done.stdout, "", "{line}");
    }
    assert_eq!(fs::read_dir(scene.path("")).unwrap().count(), 0, "something was made");
}

#[test]
fn what_a_workload_needs_is_said_before_anything_is_made() {
    let scene = Scene::new();
    let beds = ["one", "other"].map(|name| scene.typed(name));
    beds.iter().for_each(|bed| fs::create_dir(bed).unwrap());
    let plan = |needs: &str| {
        format!(
            "[bed]\nkind = \"directory\"\npaths = {beds:?}\n\
             [[workload]]\nname = \"database\"\ncommand = \"true\"\n{needs}\n"
        )
    };
    for (needs, says) in [
        (
            r#"needs = ["sh", "no-bench:no-db", "/no/such/tool:no-db-tools"]"#,
            "\"database\" needs no-bench, /no/such/tool: apt-get install no-db no-db-tools",
        ),
        ("needs_bytes = \"1000000G\"", "workload \"database\": 977 TiB are needed, "),
    ] {
        let file = scene.write("plan.toml", &plan(needs));
        let done = scene.fsverdict(&["run", &file, "--output", "run"]).exits(1).says(says);
        assert_eq!(done.said().len(), 1, "{done:?}");
        assert!(!scene.path("run").exists());
    }
}

/// A plan on the usual bed, whose work needs a program that nobody has.
const LACKING: &str = r#"
    [[contender]]
    name = "a"
    file_system = "ext4"
    [[contender]]
    name = "b"
    file_system = "ext4"
    [[workload]]
    name = "database"
    command = "true"
    needs = ["no-bench:no-db"]
"#;

#[test]
fn a_program_that_is_nowhere_is_said_at_once_and_sends_nobody_into_a_machine() {
    let scene = Scene::new();
    let file = scene.write("plan.toml", LACKING);
    let says = "workload \"database\" needs no-bench: apt-get install no-db";
    for words in [&["run", &file][..], &["run", &file, "--place", "vm"]] {
        let words = [words, &["--output", "run"]].concat();
        let done = scene.fsverdict(&words).exits(1).says(says);
        assert!(!done.stderr.contains("each trial runs in a virtual machine"), "{done:?}");
        assert_eq!(done.said().len(), 1, "{done:?}");
    }
    assert!(!scene.path("run").exists());
}

#[test]
fn a_plan_that_comes_along_is_run_by_its_name() {
    let scene = Scene::new();
    let names = ["mariadb", "postgresql", "sqlite", "streams", "unpack-and-build", "upload"];
    let listed = scene.run("list plans").exits(0).stdout;
    for name in names {
        assert!(listed.contains(name), "{name} in {listed}");
        let done = scene.run(&format!("run {name} --dry-run")).exits(0);
        assert!(done.stdout.contains("mkfs.btrfs"), "{}", done.stdout);
        let output = scene.typed(&format!("{name}-run"));
        let line = ["run", name, "--place", "sim", "--rounds", "4", "--output", &output];
        scene.fsverdict(&line).exits(0);
    }
    let dry = scene.run("run postgresql --dry-run").exits(0).stdout;
    let order = [
        "pgbench -h \"$PWD\" -U postgres -i",
        "--log-prefix",
        "--heapallindexed",
        "immediate stop",
    ];
    let places = order.map(|words| dry.find(words));
    assert!(places[0].is_some() && places.is_sorted(), "{places:?}");
    let dry = scene.run("run upload --dry-run").exits(0).stdout;
    let order = ["ip link add server0 type veth", "root tbf rate 10000000000bit", "setsid vsftpd"];
    let places = order.map(|words| dry.find(words));
    assert!(places[0].is_some() && places.is_sorted(), "{places:?}");
    // A file of that name is a plan like any other.
    scene.write("sqlite", PLAN);
    scene.run("run sqlite --output own").exits(0);
    assert_eq!(scene.records("own").len(), 8);
}

#[test]
fn what_the_parser_refuses_names_the_option_and_exits_2() {
    let scene = Scene::new();
    for (line, says) in [
        ("run --colour --fs ext4,xfs -- true", "unexpected argument '--colour'"),
        ("run --fs ext4,xfs --size huge -- true", "'huge' for '--size <SIZE>'"),
        ("run --fs ext4,xfs --budget soon -- true", "'soon' for '--budget <TIME>'"),
        ("run --fs ext4,xfs --place moon -- true", "'moon' for '--place <PLACE>'"),
        ("run --fs ext4,xfs --erase sdb -- true", "'sdb' for '--erase"),
        ("run --resume there --fs ext4,xfs", "cannot be used with"),
        ("report", "<RUN>..."),
        ("report there --format pdf", "'pdf' for '--format <FORMAT>'"),
        ("trial", "--in"),
        ("dance", "unrecognized subcommand 'dance'"),
        ("rnu --fs ext4,xfs -- true", "did you mean run?"),
    ] {
        scene.run(line).exits(2).says(says);
    }
    scene.run("").exits(2).says("Usage:");
}

#[test]
fn a_wrong_plan_file_is_named_with_what_is_wrong() {
    let scene = Scene::new();
    scene.run("run gone.toml").exits(2).says("no plan and no file is called \"gone.toml\"");
    for (from, to, says) in [
        ("command =", "comand =", "unknown field `comand`"),
        ("command =", "comand =", "did you mean command?"),
        ("\"b\"", "\"a\"", "two contenders are named \"a\""),
        ("\"work\",", "\"work\", small_files = {},", "exactly one of: command, fio, small_files"),
        (", command = [\"true\"]", "", "exactly one of"),
        ("seed = 3", "seed = ", "seed = "),
        ("\"ext4\" }", "\"ext4\", mount = [\"discard\"] }", "\"a\" has discard"),
        ("judgement", "bed = { kind = \"device\" }\njudgement", "bed device needs a path"),
        ("\"xfs\" }", "\"xfs\", path = 5 }", "path"),
    ] {
        assert!(PLAN.contains(from), "{from}");
        scene.write("plan.toml", &PLAN.replacen(from, to, 1));
        scene.run("run plan.toml").exits(2).says(says);
    }
    assert!(!scene.path("runs").exists());
}

#[test]
fn a_device_that_is_not_there_or_not_one_is_refused() {
    if !is_root() {
        return; // Without root the bed itself is refused; `as_nobody` has that.
    }
    let scene = Scene::new();
    let file = scene.write("file", "not a disk");
    let device = |path: &str| {
        let line = format!("run --fs ext4,xfs --output out --bed device:{path} --erase {path}");
        let done = scene.run(&format!("{line} -- true")).exits(3);
        assert!(!scene.path("out").exists(), "a refused run left a folder");
        done
    };
    device("/dev/no-such-disk").says("/dev/no-such-disk can't be found");
    device(&file).says("is not a block device");
    scene.assert_nothing_left();
}

#[test]
fn a_job_file_that_leaves_the_file_system_is_refused() {
    let scene = Scene::new();
    scene.write("job.fio", "[global]\nbs=4k\n[a]\nrw=randwrite\nfilename=/dev/vda\n");
    scene.run("run --fs ext4,xfs -- fio job.fio").exits(2).says("filename=/dev/vda, outside");
    scene.run("run --dry-run --fs ext4,xfs -- fio job.fio").exits(2).says("filename=/dev/vda");
    scene.write("large.fio", "[a]\nrw=write\nsize=8g\n");
    let scaled = "run --dry-run --scale 1/8 --fs ext4,xfs -- fio large.fio";
    scene.run(scaled).exits(2).says("is a fio job that --scale can't change");
}

#[test]
fn a_job_that_fio_does_not_understand_is_refused_in_its_words() {
    let scene = Scene::new();
    let run = |job: &str| {
        let line = format!(
            "run --warm --bed directory:{},/tmp --output out -- fio {job}",
            scene.typed("")
        );
        let done = scene.run(&line).exits(2);
        assert!(!scene.path("out").exists(), "a refused run left a folder");
        done
    };
    run("--rw=write --size=1m --ioengine=psnc").says("engine psnc not loadable").says("psync");
    run("--rw=write --size=1m --ramptime=5").says("unrecognized option '--ramptime=5'");
}

#[test]
fn as_nobody_a_bed_that_is_made_is_refused_with_the_way_out() {
    let scene = Scene::new();
    let line = ["run", "--place", "local", "--fs", "ext4,xfs", "--", "true"];
    let done = match is_root() {
        true => Started::new(scene.as_nobody(&line)).wait(),
        false => scene.fsverdict(&line),
    };
    let done = done.exits(1).says("bed loop needs root: run it with sudo");
    assert_eq!(done.said().len(), 1, "{}", done.stderr);
    assert!(!scene.path("runs").exists());
}

#[test]
fn what_is_no_run_can_not_be_reported_or_resumed() {
    let scene = Scene::new();
    let folder = scene.typed("");
    scene.fsverdict(&["report", &folder]).exits(1).says("is not the folder of a run");
    scene.fsverdict(&["run", "--resume", &folder]).exits(1).says("is not the folder of a run");
    scene.write("plan.toml", PLAN);
    scene.run("run plan.toml --output taken").exits(0);
    scene.run("run plan.toml --output taken").exits(1).says("holds a run already: --resume it");
    let later = scene.read("taken/run.json").replacen("\"schema\": 1", "\"schema\": 99", 1);
    scene.write("taken/run.json", &later);
    scene.run("report taken").exits(1).says("schema 99");
    // The plan of a folder is checked as one that is typed.
    scene.run("run plan.toml --output strange").exits(0);
    let plan = scene.read("strange/plan.toml");
    let strange = plan.replacen("file_system = \"ext4\"", "file_system = \"ext5\"", 1);
    assert_ne!(strange, plan);
    scene.write("strange/plan.toml", &strange);
    scene.run("run --resume strange").exits(2).says("no file system is called \"ext5\"");
}

#[test]
fn help_names_every_option_and_gives_an_example() {
    let scene = Scene::new();
    let run = scene.run("run --help").exits(0).stdout;
    for option in [
        "bed",
        "erase",
        "dir",
        "size",
        "place",
        "reference",
        "rounds",
        "budget",
        "margin",
        "seed",
        "setup",
        "prepare",
        "resume",
        "output",
        "json",
        "dry-run",
        "fs",
        "small-files",
        "fsync-files",
        "metadata",
        "tree",
    ] {
        assert!(run.contains(&format!("--{option}")), "run --help has no --{option}");
    }
    let whole = scene.run("--help").exits(0).stdout;
    for command in ["run", "audit", "report", "doctor", "list", "clean", "tree", "trial"] {
        assert!(whole.contains(&format!("\n  {command} ")), "--help has no {command}");
        let help = scene.fsverdict(&[command, "--help"]).exits(0).stdout;
        assert!(help.contains("Usage: fsverdict"), "{help}");
    }
    for command in ["", "run ", "audit ", "report ", "clean "] {
        let help = scene.run(&format!("{command}--help")).exits(0).stdout;
        assert!(help.contains("Example"), "{command}--help has no example");
    }
    let version = scene.run("--version").exits(0).stdout;
    assert_eq!(version.trim(), format!("fsverdict {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_dry_run_prints_every_command_and_makes_nothing() {
    let scene = Scene::new();
    let line = "run --dry-run --fs ext4,xfs,btrfs --size 1G --seed 1";
    let mut words: Vec<&str> = line.split(' ').collect();
    words.extend(["--setup", "seq 9 > in", "--", "cat", "in"]);
    let said = scene.fsverdict(&words).exits(0).stdout;
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    for command in [
        "fallocate -l 1G RUN/0.img",
        "mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 /dev/loop0",
        "mkfs.xfs -q -f -K /dev/loop0",
        "mkfs.btrfs -q -f -K /dev/loop0",
        "echo 3 > /proc/sys/vm/drop_caches",
        "losetup -d /dev/loop0; rm its image",
    ] {
        assert!(lines.contains(&command), "{command:?} is not in\n{said}");
    }
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!((count("mount -t "), count("umount ")), (6, 6), "{said}");
    assert_eq!((count("&& cat in)"), count("seq 9 > in")), (3, 3), "{said}");
    assert_eq!(fs::read_dir(scene.path("")).unwrap().count(), 0, "something was made");
    scene.assert_nothing_left();
}

#[test]
fn a_dry_run_has_the_openzfs_that_is_to_be_fetched_and_no_daemon() {
    let scene = Scene::new();
    let line = "run --dry-run --fs zfs --kernel 99.9 --zfs 9.9 --place vm -- true";
    let said = scene.run(line).exits(0).stdout;
    assert!(said.contains("vmlinuz-99.9+zfs-9.9"), "{said}");
    assert!(said.contains("zpool create ") && !said.contains("zfs-fuse"), "{said}");
}

#[test]
fn a_dry_run_shows_on_which_device_limits_are_put() {
    let scene = Scene::new();
    let bed = "bed = { kind = \"ram\", devices = 2, limits = { iops = 500 } }";
    scene.write("plan.toml", &format!("{bed}{PLAN}"));
    let said = scene.run("run --dry-run plan.toml").exits(0).stdout;
    let of_losetup: Vec<&str> = said.lines().filter(|line| line.starts_with("losetup ")).collect();
    let expected = [
        "losetup /dev/loop0 /dev/shm/0.img",
        "losetup /dev/loop1 /dev/shm/1.img",
        "losetup --direct-io=on /dev/loop2 /dev/loop0",
        "losetup --direct-io=on /dev/loop3 /dev/loop1",
        "losetup -d /dev/loop2",
        "losetup -d /dev/loop3",
        "losetup -d /dev/loop0; rm its image",
        "losetup -d /dev/loop1; rm its image",
    ];
    assert_eq!(of_losetup, expected, "{said}");
    assert!(said.contains("mkfs.ext4") && said.contains(" /dev/loop2\n"), "{said}");
    assert!(said.contains("\n# each device is limited to 500 IOPS\n"), "{said}");
}

#[test]
fn a_dry_run_takes_the_commands_in_the_order_the_run_would() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    let said = scene.run("run --dry-run plan.toml").exits(0).stdout;
    let order: Vec<&str> =
        said.lines().filter_map(|line| line.strip_prefix("# round 1: work, ")).collect();
    scene.run("run plan.toml --output run").exits(0);
    let records = scene.records("run");
    let ran: Vec<&str> = records[..2].iter().map(|record| text(&record["contender"])).collect();
    assert_eq!(order, ran);
}

#[test]
fn a_dry_run_shows_settings_and_a_fio_jobs_own_options() {
    let scene = Scene::new();
    let settings = "\"ext4\", sysctl = { \"vm.dirty_ratio\" = 7 } }";
    let plan = PLAN.replacen("\"ext4\" }", settings, 1);
    let job = "fio = { rw = \"randread\", bs = \"4k\", size = \"8m\" }";
    scene.write("plan.toml", &plan.replacen("command = [\"true\"]", job, 1));
    let said = scene.run("run --dry-run plan.toml").exits(0).stdout;
    assert!(said.contains("echo 7 > /proc/sys/vm/dirty_ratio"), "{said}");
    assert!(said.contains("--output-format=json+"), "{said}");
    assert!(said.contains("--name=work --bs=4k --rw=randread --size=8m"), "{said}");
    assert!(said.contains("--create_only=1"), "a job that reads needs its files: {said}");
}

#[test]
fn json_has_everything_the_format_promises() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    let typed = scene.run("run plan.toml --output run --json -").exits(0);
    let document = typed.json();
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["schema", "run", "plan", "trials", "findings", "verdicts"]);
    assert_eq!(document["schema"], 1);
    assert_eq!(document["run"]["seed"], 3);
    assert_eq!(document["run"]["command"][0], "fsverdict");
    assert!(list(&document["findings"]).iter().all(|f| f["audit"].is_string()));
    let verdicts = list(&document["verdicts"]);
    assert_eq!(verdicts.len(), 1);
    let keys: BTreeSet<&str> =
        verdicts[0].as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "workload",
        "metric",
        "contender",
        "reference",
        "ratio",
        "low",
        "high",
        "rounds",
        "verdict",
    ] {
        assert!(keys.contains(key), "a verdict has no {key}: {keys:?}");
    }
    for trial in list(&document["trials"]) {
        assert!(sample(trial, "wall_time") > 0.0);
        for sample in list(&trial["samples"]) {
            let unit = text(&sample["unit"]);
            assert!(!unit.is_empty() && sample["better"].is_string(), "{sample}");
        }
    }
    let again = scene.run("report run --format json").exits(0);
    assert_same(&again.stdout, &typed.stdout);
    scene.run("run plan.toml --output other --json out.json").exits(0);
    assert_eq!(scene.read_json("out.json")["verdicts"], document["verdicts"]);
}

#[test]
fn a_report_is_remade_from_the_runs_folder() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    let typed = scene.run("run plan.toml --output run").exits(0);
    let report = scene.read("run/report.md");
    assert_same(&scene.run("report run --format markdown").exits(0).stdout, &report);
    assert_same(
        &scene.run("report run --format csv").exits(0).stdout,
        &scene.read("run/samples.csv"),
    );
    let terminal = scene.run("report run").exits(0).stdout;
    assert!(typed.stdout.trim_start().starts_with(&terminal), "{}", typed.stdout);
    assert!(typed.stdout.trim_end().ends_with("run/report.html"), "{}", typed.stdout);
    assert_same(
        &scene.run("report run --format html").exits(0).stdout,
        &scene.read("run/report.html"),
    );
    for heading in ["# a, b at work", "## work", "## Findings", "## Contenders"] {
        assert!(report.lines().any(|line| line == heading), "{heading} is not in\n{report}");
    }
    // The run's plan is complete: it can be run again, and gives the same trials.
    scene.run("run run/plan.toml --output again").exits(0);
    assert_same(&scene.read("again/samples.csv"), &scene.read("run/samples.csv"));
}

#[test]
fn csv_has_a_row_for_each_sample() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    scene.run("run plan.toml --output run").exits(0);
    let csv = scene.read("run/samples.csv");
    let mut rows = csv.lines();
    let header = rows.next().unwrap();
    assert_eq!(header, "trial,round,position,workload,contender,seed,metric,value,unit,better");
    let records = scene.records("run");
    let samples: usize = records.iter().map(|record| list(&record["samples"]).len()).sum();
    assert!(samples >= records.len() * 5, "{samples}");
    assert_eq!(rows.clone().count(), samples);
    let wall: Vec<Vec<&str>> = rows
        .map(|row| row.split(',').collect::<Vec<_>>())
        .filter(|r| r[6] == "wall_time")
        .collect();
    assert_eq!(wall.len(), records.len());
    for (row, record) in wall.iter().zip(&records) {
        assert_eq!(row[0], record["number"].to_string());
        assert_eq!(row[7].parse::<f64>().unwrap(), sample(record, "wall_time"));
        assert_eq!((row[8], row[9]), ("s", "lower"));
    }
}

#[test]
fn clean_says_when_there_is_nothing_to_do() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    scene.run("run plan.toml --output run").exits(0);
    scene.run("clean run").exits(0);
    scene.assert_nothing_left();
}

#[test]
fn a_trial_document_that_is_none_is_a_usage_error() {
    let scene = Scene::new();
    scene.write("trial.json", "{}");
    scene.run("trial --in trial.json --out record.json").exits(2).says("trial.json is not a trial");
    assert!(!scene.path("record.json").exists());
    scene.run("trial --in gone.json --out record.json").exits(1).says("gone.json: No such file");
}

#[test]
fn where_nothing_was_measured_it_is_said_with_the_reason() {
    let scene = Scene::alone();
    for name in ["one", "two"] {
        fs::create_dir(scene.path(name)).unwrap();
    }
    let line = "run --bed directory:one,two --rounds 4 --warm --output run -- cp nowhere .";
    let said = one_line(&scene.run(line).exits(1).stdout);
    assert!(said.contains("Nothing was measured: all 4 trials failed."), "{said}");
    assert!(said.contains("4 trials failed: cp nowhere ., "), "{said}");
    assert!(said.contains("cannot stat 'nowhere'") && !said.contains("four rounds"), "{said}");
}

#[test]
fn directories_are_compared_without_root_and_left_as_they_were() {
    let scene = Scene::alone();
    for name in ["one", "two"] {
        fs::create_dir(scene.path(name)).unwrap();
        scene.write(&format!("{name}/mine"), "precious");
    }
    let bed = format!("directory:{},{}", scene.typed("one"), scene.typed("two"));
    // Without root the caches can't be dropped.
    let mut line = vec!["run", "--bed", &bed, "--rounds", "2", "--warm"];
    line.extend(["--output", "run", "--json", "-"]);
    line.extend(["--", "sh", "-c", "pwd; seq 99999 > numbers"]);
    let document = scene.fsverdict(&line).exits(0).json();
    let names: BTreeSet<&str> =
        list(&document["trials"]).iter().map(|trial| text(&trial["contender"])).collect();
    assert_eq!(names, BTreeSet::from([scene.typed("one").as_str(), &scene.typed("two")]));
    for trial in list(&document["trials"]) {
        let folder = scene.read(&format!("run/trials/{}/raw/command.stdout", trial["number"]));
        // Root's trial has it where nobody can put another in its place.
        let own = match is_root() {
            true => "/run/fsverdict/mnt/".to_string(),
            false => format!("{}/.fsverdict-", text(&trial["contender"])),
        };
        assert!(folder.starts_with(&own) && folder.ends_with("/work\n"), "{folder}");
        assert!(sample(trial, "wall_time") > 0.0);
    }
    for name in ["one", "two"] {
        let entries: Vec<_> = fs::read_dir(scene.path(name)).unwrap().flatten().collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(scene.read(&format!("{name}/mine")), "precious");
    }
    scene.assert_nothing_left();
}

#[test]
fn check_says_what_is_wrong_and_ends_with_1() {
    let scene = Scene::alone();
    let file = scene.path("tune.sh");
    fs::write(&file, "ls\nmkfs.xfs -l logbsize=256k /dev/none\n").unwrap();
    let done = scene.fsverdict(&["check", "--json", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(found["other_lines"], 1);
    assert_eq!(found["settings"][0]["line"], 2);
    assert_eq!(found["settings"][0]["state"], "invalid");
    fs::write(&file, "mkfs.xfs -l size=64m /dev/none\n").unwrap();
    let done = scene.fsverdict(&["check", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    // What could not be judged is not right.
    for text in ["nvme format /dev/none\n", "mkfs.xfs $OPTIONS /dev/none\n", "ls\n"] {
        fs::write(&file, text).unwrap();
        assert_eq!(scene.fsverdict(&["check", file.to_str().unwrap()]).code, Some(6), "{text}");
    }
    let missing = scene.fsverdict(&["check", "nowhere"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("nowhere"), "{}", missing.stderr);
}

#[test]
fn check_judges_for_the_disk_that_is_named() {
    let scene = Scene::alone();
    let text = "mkfs.xfs -d agcount=64,su=64k,sw=4 -l size=512m /dev/none\n";
    let file = scene.write("mkfs.sh", text);
    let states = |options: &[&str]| {
        let done = scene.fsverdict(&[&["check", "--json", &file], options].concat());
        let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let settings = found["settings"].as_array().unwrap().iter();
        settings.map(|it| it["state"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    // mkfs.xfs warns of 64 groups, as each would begin on the same disk.
    let fits = ["doubtful", "ok", "ok", "ok"];
    assert_eq!(states(&["--size", "4T", "--stripe", "su=64k,sw=4"]), fits);
    assert_eq!(states(&["--size", "4T", "--stripe", "su=32k,sw=4"])[1], "doubtful");
    assert_eq!(states(&["--size", "4G"])[0], "invalid");
    assert!(states(&[]).iter().all(|state| state != "invalid"));
    for wrong in
        [&["--stripe", "64k"][..], &["--for", "/etc"], &["--for", "/dev/x", "--size", "1T"]]
    {
        let done = scene.fsverdict(&[&["check", &file], wrong].concat());
        assert_eq!(done.code, Some(2), "{wrong:?}: {}", done.stderr);
    }
}
