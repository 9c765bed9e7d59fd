//! Runs as one file: `pack`.

use std::fs;
use std::path::Path;

use super::joined::two_machines;
use super::{PLAN, noisy, run_plan};
use crate::support::{Left, Scene, assert_same, text, tool, wait_for};

/// Every command that takes a run says the same of the packed one.
#[test]
fn every_command_reads_a_packed_run_in_place_of_the_folder() {
    let scene = Scene::new();
    fs::create_dir(scene.path("folders")).unwrap();
    fs::create_dir(scene.path("packs")).unwrap();
    two_machines(&scene);
    for name in ["old", "new"] {
        let mut run = scene.read_json(&format!("{name}/run.json"));
        // Without paths, of which another test is.
        run["command"] = ["fsverdict", "run"].as_slice().into();
        scene.write(&format!("{name}/run.json"), &run.to_string());
        fs::rename(scene.path(name), scene.path(&format!("folders/{name}"))).unwrap();
        let line = format!("pack folders/{name} --output packs/{name}.tar.gz");
        let done = scene.run(&line).exits(0);
        assert!(done.stdout.starts_with(&format!("packs/{name}.tar.gz: 12 trials, ")));
        assert_eq!(done.said(), [""; 0]);
    }
    let mut lines: Vec<String> = Vec::new();
    for format in ["text", "markdown", "html", "csv", "json"] {
        lines.push(format!("report OLD --format {format}"));
        lines.push(format!("report OLD NEW --format {format}"));
    }
    for format in ["text", "markdown", "json"] {
        lines.push(format!("compare OLD NEW --across-machines --format {format}"));
        lines.push(format!("audit OLD --format {format}"));
        lines.push(format!("advise OLD --for mail --format {format}"));
    }
    for format in ["text", "html", "json"] {
        lines.push(format!("history ALL --format {format}"));
        lines.push(format!("history OLD --format {format}"));
    }
    for line in &lines {
        let all = ["OLD", "NEW", "ALL"];
        let typed = |words: [&str; 3]| {
            let named = all.iter().zip(words);
            named.fold(line.clone(), |line, (name, word)| line.replace(name, word))
        };
        let folder = scene.run(&typed(["folders/old", "folders/new", "folders"]));
        let packed = scene.run(&typed(["packs/old.tar.gz", "packs/new.tar.gz", "packs"]));
        assert!(matches!(folder.code, Some(0 | 4)), "{line}: {}", folder.stderr);
        assert_eq!(packed.code, folder.code, "{line}: {}", packed.stderr);
        // `advise` repeats what was typed.
        let said = packed.stdout.replace("packs/old.tar.gz", "folders/old");
        assert_same(&said, &folder.stdout);
    }
    let both = scene.run("history . --format json").exits(0).json();
    assert_eq!(both["runs"].as_array().unwrap().len(), 2, "each run once, folder and pack");
}

#[test]
fn the_same_run_gives_the_same_bytes_and_tar_reads_them() {
    let scene = Scene::new();
    run_plan(&scene, "run", PLAN);
    fs::create_dir_all(scene.path("run/trials/1/raw")).unwrap();
    scene.write("run/trials/1/raw/output", "what a tool said");
    scene.write("run/notes.txt", "not the run's");
    scene.run("pack run").exits(0);
    let bytes = fs::read(scene.path("run.tar.gz")).unwrap();
    tool("cp", &["-r", &scene.typed("run"), &scene.typed("elsewhere")]).unwrap();
    scene.run("pack elsewhere --output again.tar.gz").exits(0);
    assert!(fs::read(scene.path("again.tar.gz")).unwrap() == bytes);

    let pack = scene.typed("run.tar.gz");
    tool("gzip", &["--test", &pack]).unwrap();
    let listed = tool("tar", &["--list", "--verbose", "--gzip", "--file", &pack]).unwrap();
    let first = listed.lines().next().unwrap();
    assert!(first.starts_with("-rw-r--r-- 0/0") && first.ends_with("run/plan.toml"), "{first}");
    assert!(!listed.contains("raw") && !listed.contains("notes"), "{listed}");
    fs::create_dir(scene.path("unpacked")).unwrap();
    let into = scene.typed("unpacked");
    tool("tar", &["--extract", "--gzip", "--file", &pack, "--directory", &into]).unwrap();
    for name in ["plan.toml", "samples.csv", "report.md", "trials/3/record.json"] {
        let was = scene.read(&format!("run/{name}")).replace(&scene.typed("run "), "RUN ");
        let was = was.replace(&scene.typed("run.toml"), "PLAN");
        assert_same(&scene.read(&format!("unpacked/run/{name}")), &was);
    }
    scene.run("pack unpacked/run --output third.tar.gz").exits(0);
    assert!(fs::read(scene.path("third.tar.gz")).unwrap() == bytes);

    scene.run("pack run --raw --output raw.tar.gz").exits(0);
    let raw = scene.typed("raw.tar.gz");
    let listed = tool("tar", &["--list", "--gzip", "--file", &raw]).unwrap();
    assert!(listed.ends_with("run/trials/1/raw/output\n"), "{listed}");
}

/// What a run as root leaves in its documents, with paths of who ran it.
#[test]
fn paths_of_the_machine_are_not_in_it() {
    let scene = Scene::new();
    run_plan(&scene, "run", PLAN);
    let (home, was) = (scene.typed(""), "/tmp/then/run");
    let mut run = scene.read_json("run/run.json");
    let command = ["fsverdict", "run", &format!("{home}plan.toml"), "/home/anna/jobs", "-o=/root"];
    run["command"] = command.as_slice().into();
    run["host"]["kernel 6.1"] =
        "Linux 6.1.0 (/tmp/guest/.cache/fsverdict/kernels/6.1.0/boot/vmlinuz)".into();
    scene.write("run/run.json", &run.to_string());
    let trial = format!(
        "{{\"number\": 1, \"raw\": \"{was}/trials/1/raw\", \"directory\": \"{home}bed\", \
         \"series\": \"{was}/trials/1/series.csv\", \"bed\": \"{was}/fsverdict-1.img\"}}"
    );
    scene.write("run/trials/1/trial.json", &trial);
    let mut record = scene.read_json("run/trials/1/record.json");
    let folder = scene.typed("run");
    let error = format!("{folder}/x: no space; {was}/y too");
    let failure = serde_json::json!({"step": "work", "error": error, "cleanup_errors": []});
    record["outcome"] = serde_json::json!({ "failed": failure });
    record["samples"] = [0u8; 0].as_slice().into();
    scene.write("run/trials/1/record.json", &record.to_string());
    let mut pack = scene.command(&["pack", "run"]);
    pack.env("HOME", &home);
    crate::support::Started::new(pack).wait().exits(0);

    let pack = scene.typed("run.tar.gz");
    let all = tool("tar", &["--extract", "--to-stdout", "--gzip", "--file", &pack]).unwrap();
    let scene_path = scene.typed("");
    for path in [&*scene_path, "/tmp/then", "/tmp/guest", "/home/", "anna", "/root"] {
        assert!(!all.contains(path), "{path} is in {all}");
    }
    for word in ["~/plan.toml", "~/jobs", "-o=~", "(~/.cache/fsverdict/kernels/6.1.0", "RUN/y"] {
        assert!(all.contains(word), "{word} is not in {all}");
    }
    let report = scene.run("report run.tar.gz --format json").exits(0).json();
    assert_eq!(
        text(&report["trials"][0]["outcome"]["failed"]["error"]),
        "RUN/x: no space; RUN/y too"
    );
}

#[test]
fn what_can_not_be_packed_is_refused_and_nothing_is_overwritten() {
    let scene = Scene::new();
    run_plan(&scene, "run", PLAN);
    scene.run("pack gone").exits(1).says("is not the folder of a run");
    scene.write("run.tar.gz", "mine");
    scene.run("pack run").exits(1).says("run.tar.gz is there already");
    assert_eq!(scene.read("run.tar.gz"), "mine");
    scene.run("report run.tar.gz").exits(1).says("neither the folder of a run nor a packed run");
    scene.run("pack run --output no/such/folder").exits(1).says("making no/such/folder");

    scene.run("pack run --output a.tar.gz").exits(0);
    scene.run("pack a.tar.gz").exits(1).says("a.tar.gz is a packed run already");
    let resumed = scene.run("run --resume a.tar.gz").exits(1);
    resumed.says("a.tar.gz is a packed run: tar -xzf a.tar.gz makes a folder that can be resumed");

    let name = scene.read("run/run.json").replace("\"name\": \"run\"", "\"name\": \"../run\"");
    scene.write("run/run.json", &name);
    scene.run("pack run --output b.tar.gz").exits(1).says("can't be the name of a folder");
    fs::remove_dir_all(scene.path("run/trials")).unwrap();
    fs::create_dir(scene.path("run/trials")).unwrap();
    scene.run("pack run --output b.tar.gz").exits(1).says("nothing to pack");
    let left = fs::read_dir(scene.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["a.tar.gz", "run", "run.tar.gz", "run.toml"]);
}

#[test]
fn a_run_is_packed_when_it_is_over_and_has_left_nothing() {
    let scene = Scene::new();
    for name in ["one", "two"] {
        fs::create_dir(scene.path(name)).unwrap();
    }
    let bed = format!("directory:{},{}", scene.typed("one"), scene.typed("two"));
    // Its first trial ends, and its second one does not.
    let first = scene.typed("first");
    let line = format!("[ -e {first} ] || {{ touch {first}; exit; }}; echo; sleep 600");
    let words = ["run", "--warm", "--rounds", "1", "--output", "run", "--bed", &bed];
    let open = ["--writable", "."];
    let mut run = scene.start(&[&words[..], &open, &["--", "sh", "-c", &line]].concat());
    let second = scene.path("run/trials/2/raw/command.stdout");
    run.reaches("the second trial", || fs::metadata(&second).is_ok_and(|data| data.len() > 0));
    scene.run("pack run --output a.tar.gz").exits(1).says("is under way: wait for its end");
    run.signal("KILL");
    run.wait();
    wait_for("the trial's end", || Left::of(&scene.path("run/trials")).processes.is_empty());
    // Each run that begins undoes what killed ones left, and others may run: of another test, too.
    let packed = scene.run("pack run --output a.tar.gz");
    if packed.code != Some(0) {
        packed.exits(1).says("fsverdict clean ");
        scene.run("clean").exits(0);
        scene.run("pack run --output a.tar.gz").exits(0);
    }
    scene.assert_nothing_left();
}

#[test]
fn a_run_that_never_ended_is_packed_as_far_as_it_went_and_goes_on_from_there() {
    let scene = Scene::new();
    let whole = run_plan(&scene, "run", &noisy(3));
    let mut run = scene.read_json("run/run.json");
    run["stop"] = serde_json::Value::Null;
    scene.write("run/run.json", &run.to_string());
    for number in 20..=24 {
        fs::remove_dir_all(scene.path(&format!("run/trials/{number}"))).unwrap();
    }
    for name in ["samples.csv", "report.md", "report.html"] {
        fs::remove_file(scene.path(&format!("run/{name}"))).unwrap();
    }
    let done = scene.run("pack run").exits(0).says("run never ended: packed is what it has");
    assert!(done.stdout.starts_with("run.tar.gz: 19 trials, "), "{}", done.stdout);
    fs::remove_dir_all(scene.path("run")).unwrap();
    tool("tar", &["-xzf", &scene.typed("run.tar.gz"), "-C", &scene.typed("")]).unwrap();
    let resumed = scene.run("run --resume run --json -").exits(0).json();
    assert_eq!(super::trials(&resumed), super::trials(&whole));
}

#[test]
fn a_damaged_pack_is_told_from_a_wrong_one() {
    let scene = Scene::new();
    run_plan(&scene, "run", PLAN);
    scene.run("pack run").exits(0);
    let bytes = fs::read(scene.path("run.tar.gz")).unwrap();
    fs::write(scene.path("cut.tar.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    fs::write(scene.path("flipped.tar.gz"), flipped).unwrap();
    for line in ["report", "audit", "advise --for mail", "compare run.tar.gz"] {
        let run = |name: &str| scene.run(&format!("{line} {name}")).exits(1);
        run("cut.tar.gz").says("cut.tar.gz ends too early: copy it again");
        run("flipped.tar.gz").says("flipped.tar.gz is damaged: copy it again");
    }
    scene.run("history .").exits(0).says("left out: ").says("cut.tar.gz ends too early");
    // Other archives in the folder are nobody's business.
    tool("tar", &["-czf", &scene.typed("other.tar.gz"), "-C", &scene.typed(""), "run.toml"])
        .unwrap();
    let done = scene.run("history .").exits(0);
    assert!(!done.stderr.contains("other.tar.gz"), "{}", done.stderr);
    let error = scene.run("report other.tar.gz").exits(1).stderr;
    assert!(error.contains("which is not a file below a folder"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// A run with timelines, which a simulated one lacks: packed and as tar(1) unpacks it.
#[test]
fn published_runs_are_whole() {
    let scene = Scene::new();
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let folders = entries(&record).filter(|it| it.is_dir());
    let files: Vec<_> = folders.flat_map(|folder| entries(&folder).collect::<Vec<_>>()).collect();
    let packs: Vec<_> = files.iter().filter(|it| it.extension() == Some("gz".as_ref())).collect();
    assert!(packs.len() >= 40, "{packs:?}");
    for pack in packs {
        let pack = pack.display().to_string();
        let texts = tool("tar", &["--extract", "--to-stdout", "--gzip", "--file", &pack]).unwrap();
        // A plan's own folder of that name.
        let texts = texts.replace("$PWD/root", "");
        for path in ["/home/", "/root", "/tmp/rec", "/tmp/vmuser", "fsverdict run /"] {
            assert!(!texts.contains(path), "{path} is in {pack}");
        }
        assert!(texts.lines().count() > 1000, "{pack}");
    }
    let pack = record.join("2026-11-22-small-files/run.tar.gz").display().to_string();
    tool("tar", &["-xzf", &pack, "-C", &scene.typed("")]).unwrap();
    let html = |run: &str| scene.fsverdict(&["report", run, "--format", "html"]).exits(0).stdout;
    let packed = html(&pack);
    assert_same(&packed, &html("20261122-small-files"));
    assert!(packed.contains("timeline"), "it has timelines");
}
