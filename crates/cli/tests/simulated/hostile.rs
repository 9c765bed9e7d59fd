//! Runs, plans, uses and tables of a stranger who has put into every name what controls a terminal,
//! turns the direction of writing, is HTML, Markdown or a formula: no renderer hands it on.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::run_plan;
use crate::support::{Scene, list, text, tool};

/// What a name ends in, whatever it begins with.
const HOSTILE: &str = "|<script>alert(1)</script>\u{1b}[2J\u{7}\r\u{9b}31m\u{202e}fdp\u{2066}\
                       \u{200b}\u{e0041}`x`[a](http://b)![i](http://b)\n# forged\n<img src=x>";

/// On one line of TOML, as a key must be.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " =|<>()[]/:!#".contains(c);
    let escaped = |c: char| match plain(c) {
        true => c.to_string(),
        false => format!("\\U{:08X}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

fn named(start: &str) -> String {
    format!("{start}{HOSTILE}")
}

/// A name at which a spreadsheet would begin to calculate.
fn formula(start: &str) -> String {
    named(&format!("=cmd({start})"))
}

fn plan(seed: u32) -> String {
    let [plain, tuned, work] = ["plain", "tuned", "work"].map(|it| quoted(&formula(it)));
    let [asks, title, protocol, claim] = ["Q", "T", "P", "C"].map(|it| quoted(&named(it)));
    let [value, mount, metric] = ["v", "m", "k"].map(|it| quoted(&named(it)));
    format!(
        "question = {asks}\nplace = \"sim\"\nseed = {seed}\n[judgement]\nrounds = 4\n\
         [study]\ntitle = {title}\nprotocol = {protocol}\nclaims = {{ {work} = {claim} }}\n\
         [[contender]]\nname = {plain}\nfile_system = \"ext4\"\nenvironment = {{ A = {value} }}\n\
         [[contender]]\nname = {tuned}\nfile_system = \"xfs\"\nmount = [{mount}]\n\
         [[workload]]\nname = {work}\ncommand = [\"echo\", {value}]\n\
         primary = [\"wall_time\", {metric}]\n\
         [[claim]]\ntext = {claim}\nstands = {title}\ncondition = {protocol}\n\
         contender = {tuned}\nworkload = {work}\nmetric = \"wall_time\"\nis = \"better\"\n\
         [[claim]]\ntext = {claim}\nnot_measurable = {value}\n\
         [sim]\nnoise = 0.01\nspeed = {{ {tuned} = 1.5 }}\n"
    )
}

/// Runs it, and puts the same into what the machine and the programs said of themselves.
fn hostile_run(scene: &Scene, name: &str, seed: u32) -> Value {
    let document = run_plan(scene, name, &plan(seed));
    let mut run = scene.read_json(&format!("{name}/run.json"));
    for field in ["name", "program_version"] {
        run[field] = formula(name).into();
    }
    run["command"] = vec![named("fsverdict"), HOSTILE.into()].into();
    run["host"][named("kernel")] = named(name).into();
    run["host"]["kernel"] = named(name).into();
    run["tools"]["mkfs"] = HOSTILE.into();
    run["left_out"] = serde_json::json!([{ "what": "contender", "name": HOSTILE, "why": HOSTILE }]);
    scene.write(&format!("{name}/run.json"), &run.to_string());
    let last = scene.records(name).len();
    let mut record = scene.read_json(&format!("{name}/trials/{last}/record.json"));
    let failure = serde_json::json!({
        "step": HOSTILE, "error": named("no"), "cleanup_errors": [HOSTILE]
    });
    record["outcome"] = serde_json::json!({ "failed": failure });
    record["samples"] = Value::Array(Vec::new());
    scene.write(&format!("{name}/trials/{last}/record.json"), &record.to_string());
    document
}

#[track_caller]
fn assert_plain(what: &str, text: &str) {
    assert!(!text.is_empty(), "{what} says nothing");
    let hidden = |c: &char| {
        let is_mark = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}');
        (c.is_control() && *c != '\n') || is_mark
    };
    let found: Vec<char> = text.chars().filter(hidden).collect();
    assert!(found.is_empty(), "{what} has {found:?} in:\n{text}");
}

/// Markdown outside code (CommonMark 0.31, 4.5 and 6.1).
fn without_code(markdown: &str) -> String {
    let (mut out, mut rest) = (String::new(), markdown);
    while let Some(c) = rest.chars().next() {
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        let taken = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '`' => {
                let end = |(place, _): &(usize, &str)| {
                    let before = rest[..*place].ends_with('`');
                    !before && !rest[place + ticks..].starts_with('`')
                };
                let ends = rest.match_indices(&rest[..ticks]).skip(1).filter(end);
                let length = ends.map(|(place, _)| place + ticks).next();
                rest = &rest[length.unwrap_or(ticks)..];
                continue;
            }
            c => c.len_utf8(),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

#[track_caller]
fn assert_shown(what: &str, format: &str, shown: &str) {
    assert_plain(what, shown);
    match format {
        "markdown" => {
            let shown = without_code(shown);
            for mark in ["<script", "<img", "\n# forged", "][a](", "`[a]", "\n<"] {
                let ours = shown.replace("\n<details><summary>", "").replace("\n</details>", "");
                assert!(!ours.contains(mark), "{what} has {mark:?} in:\n{ours}");
            }
            let is_escaped = |(place, _): (usize, _)| shown[..place].ends_with('\\');
            assert!(shown.match_indices("[a").all(is_escaped), "{what} has a link in:\n{shown}");
        }
        "html" => {
            assert!(!shown.contains("<script>alert") && !shown.contains("<img"), "{what}: {shown}");
        }
        "csv" => {
            let cell = |mark: &str| [format!(",{mark}"), format!("\n{mark}"), format!("\"{mark}")];
            for mark in ["=", "+", "@"].map(cell).concat() {
                assert!(!shown.contains(&mark), "{what} has {mark:?} in:\n{shown}");
            }
            assert!(shown.contains("'=cmd("), "{what} lacks the names:\n{shown}");
        }
        "json" => {
            serde_json::from_str::<Value>(shown).unwrap();
        }
        // A name breaks no line.
        "text" if what.starts_with("report runs/one --") || what.starts_with("run ") => {
            assert!(!shown.contains("\n# forged"), "{what} has a line of a name's:\n{shown}");
        }
        _ => {}
    }
}

#[test]
fn no_report_of_a_strangers_run_does_anything() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path("runs")).unwrap();
    hostile_run(&scene, "runs/one", 3);
    hostile_run(&scene, "runs/two", 4);
    let about = quoted(HOSTILE);
    let wants = format!("what = {about}\nworkload = {}\nmetric = \"wall_time\"", {
        quoted(&formula("work"))
    });
    let work = format!("name = {}\ncommand = \"true\"", quoted(&formula("work")));
    scene.write("use.toml", &{
        format!(
            "name = {about}\nabout = {about}\nneeds = [\"snapshots\"]\n\
             [[workload]]\n{work}\n[[want]]\n{wants}\nweight = 1\n"
        )
    });
    for (command, formats) in [
        ("report runs/one", "text markdown html csv json"),
        ("report runs/one --figures figures", "markdown"),
        ("report runs/one runs/two", "text markdown html csv json"),
        ("audit runs/one", "text markdown json"),
        ("compare runs/one runs/two", "text markdown json"),
        ("history runs", "text html json"),
        ("advise runs/one --use use.toml", "text markdown json"),
    ] {
        for format in formats.split(' ') {
            let what = format!("{command} --format {format}");
            let done = scene.run(&what);
            assert_shown(&what, format, &done.stdout);
            assert_plain(&what, &format!("{}\n", done.stderr));
        }
    }
    for figure in std::fs::read_dir(scene.path("figures")).unwrap() {
        let path = figure.unwrap().path();
        if path.extension().is_some_and(|it| it == "svg") {
            let shown = std::fs::read_to_string(&path).unwrap();
            assert_shown("a figure", "html", &shown);
        }
    }
}

#[test]
fn a_run_of_a_strangers_plan_says_nothing_that_does_anything() {
    let scene = Scene::new();
    for how in ["plain", "json"] {
        scene.write("plan.toml", &plan(3));
        let line = format!("run plan.toml --output {how} --progress {how}");
        let done = scene.run(&line);
        assert_shown(&line, "text", &done.stdout);
        assert_plain(&line, &done.stderr);
        for (file, format) in
            [("report.md", "markdown"), ("report.html", "html"), ("samples.csv", "csv")]
        {
            assert_shown(file, format, &scene.read(&format!("{how}/{file}")));
        }
    }
    for line in scene.run("run plan.toml --output again --progress json").stderr.lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap()["event"].is_string(), "{line}");
    }
    let document = scene.run("report json --format json").json();
    let names: Vec<&str> =
        list(&document["plan"]["contender"]).iter().map(|it| text(&it["name"])).collect();
    assert_eq!(names, [formula("plain"), formula("tuned")], "JSON keeps the names as they are");
    let wrong = plan(3).replace("[sim]\n", &format!("[sim]\n{} = 1\n", quoted(HOSTILE)));
    scene.write("wrong.toml", &wrong);
    for line in ["run wrong.toml", "run plan.toml --dry-run", "list"] {
        let done = scene.run(line);
        assert_plain(line, &(done.stdout + &done.stderr));
    }
}

#[test]
fn a_strangers_table_is_audited_without_harm() {
    let scene = Scene::new();
    let [name, test, column] = ["ext4", "seq", "rate"].map(|it| quoted(&named(it)));
    scene.write("table.toml", &{
        format!(
            "title = {name}\n[environment]\nos = {name}\nkernel = {name}\n\
             contenders = [{name}, \"xfs\"]\n[[test]]\nname = {test}\n\
             columns = [\"bandwidth MiB/s\", \"IOPS\", {column}]\n\
             fio = {{ rw = \"write\", bs = \"4k\", size = \"1g\" }}\n\
             {name} = [1, 9999, 3]\nxfs = [1, 2, 3]\n"
        )
    });
    let results = serde_json::json!([
        { "command": HOSTILE, "mean": 1.0, "stddev": 0.1, "times": [1.0, 1.1, 0.9] },
        { "command": "b", "mean": 2.0, "stddev": 0.1, "times": [2.0, 2.1, 1.9] },
    ]);
    scene.write("times.json", &serde_json::json!({ "results": results }).to_string());
    scene.write("wrong.toml", &format!("[[test]]\n{name} = [1]\n"));
    for file in ["table.toml", "times.json"] {
        for format in ["text", "markdown", "json"] {
            let what = format!("audit {file} --format {format}");
            assert_shown(&what, format, &scene.run(&what).exits(0).stdout);
        }
    }
    let done = scene.run("audit wrong.toml");
    assert_plain("a table that is wrong", &done.stderr);
    scene.write("script", &format!("mount -o {} /dev/x /mnt\n", HOSTILE.replace('\n', " ")));
    assert_plain("check", &scene.run("check script").stdout);
}

#[test]
fn a_strangers_run_of_pipes_and_devices_holds_nobody_up() {
    let scene = Scene::new();
    fs::create_dir(scene.path("run")).unwrap();
    tool("mkfifo", &[&scene.typed("run/run.json")]).unwrap();
    symlink("/dev/zero", scene.path("run/plan.toml")).unwrap();
    for line in ["report run", "audit run", "run --resume run", "compare run run"] {
        let done = scene.run(line);
        assert!(done.stderr.contains("it is not a plain file"), "{line}: {}", done.stderr);
    }
    scene.run("clean run").exits(0);
}
