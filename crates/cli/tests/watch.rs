//! What one sees of a run while it goes on: progress as lines and as JSON, the live view in a real
//! terminal, and OpenMetrics, scraped by hand, by a real Prometheus and by a real Netdata.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Done, Left, Scene, Started, list, program, text, tool, wait_for};

const PLAN: &str = r#"
    place = "sim"
    seed = 3
    contender = [{ name = "a", file_system = "ext4" }, { name = "b", file_system = "xfs" }]
    judgement = { rounds = 6 }
    workload = [
        { name = "work", command = ["true"] },
        { name = "files", small_files = {}, primary = ["create_rate"] },
    ]
    [sim]
    speed = { b = 2.0 }
"#;

/// A run on two directories, which needs no root and takes some seconds; the words to start it.
fn slow_run(scene: &Scene, rounds: u32) -> Vec<String> {
    for name in ["one", "two"] {
        fs::create_dir_all(scene.path(name)).unwrap();
    }
    let bed = format!("directory:{},{}", scene.typed("one"), scene.typed("two"));
    let rounds = rounds.to_string();
    let words = ["run", "--bed", &bed, "--warm", "--rounds", &rounds, "--output", "run"];
    words.map(String::from).to_vec()
}

/// The work of it. Not as long in each round: then its time would say nothing (FixedTime).
const WORK: [&str; 4] =
    ["--", "sh", "-c", "seq 99999 > numbers; sleep 0.$((3 + FSVERDICT_ROUND % 3))"];

/// The run's events. All is JSON, remarks too: others may run on the machine, and be told of.
fn lines(stderr: &str) -> Vec<Value> {
    let lines = stderr.lines().map(|line| serde_json::from_str(line).expect(line));
    lines.filter(|line: &Value| line["event"] != "remark").collect()
}

#[test]
fn every_trial_is_told_as_json_and_the_last_verdicts_are_the_reports() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    let done = scene.run("run plan.toml --output run --progress json --json result.json").exits(0);
    let lines = lines(&done.stderr);
    assert!(done.stdout.contains("The run ended because"), "{}", done.stdout);
    let of = |event: &str| -> Vec<&Value> {
        lines.iter().filter(|line| line["event"] == event).collect()
    };
    let begin = of("begin")[0];
    assert_eq!((&begin["bed"], &begin["rounds_at_most"]), (&"loop".into(), &6.into()));
    assert_eq!(list(&begin["workloads"]).len(), 2);
    let records = scene.records("run");
    let numbers = |lines: &[&Value]| -> Vec<Value> {
        lines.iter().map(|line| line["number"].clone()).collect()
    };
    let kept: Vec<Value> = records.iter().map(|record| record["number"].clone()).collect();
    assert_eq!(numbers(&of("trial")), kept);
    assert_eq!(numbers(&of("record")), kept);
    let result = scene.read_json("result.json");
    for workload in ["work", "files"] {
        let told = of("record").into_iter().rfind(|line| line["workload"] == workload).unwrap();
        let verdicts = list(&result["verdicts"]).iter();
        let reported: Vec<&Value> = verdicts.filter(|it| it["workload"] == workload).collect();
        assert_eq!(list(&told["verdicts"]).iter().collect::<Vec<_>>(), reported);
    }
    assert_eq!(lines.last().unwrap()["event"], "end");
    assert_eq!(lines.last().unwrap()["stop"], result["run"]["stop"]);
}

#[test]
fn with_both_as_json_there_is_no_text_among_the_objects() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    let done = scene.run("run plan.toml --output run --progress json --json -").exits(0);
    assert_eq!(done.stdout.trim_start().chars().next(), Some('{'));
    assert!(lines(&done.stderr).iter().all(Value::is_object));
    assert!(list(&done.json()["verdicts"]).len() > 1);
}

#[test]
fn failures_are_told_as_json_and_a_resumed_run_goes_on() {
    let scene = Scene::new();
    scene.write("plan.toml", &PLAN.replace("[sim]", "[sim]\n    fail_at = 60"));
    let done = scene.run("run plan.toml --output run --progress json").exits(1);
    let lines_first = lines(&done.stderr);
    let failed: Vec<&Value> = lines_first.iter().filter(|it| it["failed"].is_object()).collect();
    assert_eq!(failed.len(), 1, "{}", done.stderr);
    assert!(text(&failed[0]["failed"]["error"]).contains("simulated failure"));
    let last = scene.records("run").len();
    fs::remove_dir_all(scene.path(&format!("run/trials/{last}"))).unwrap();
    let done = scene.run("run --resume run --progress json");
    let again = lines(&done.stderr);
    assert_eq!(again[0]["trials_done"], last - 1);
    let next = again.iter().find(|line| line["event"] == "record");
    assert!(next.is_none_or(|it| it["number"] == last), "{}", done.stderr);
}

#[test]
fn without_a_terminal_there_is_a_line_for_each_round() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    let done = scene.run("run plan.toml --output run").exits(0);
    let said = done.said();
    assert!(said[0].ends_with("/run: a, b"), "{said:?}");
    assert!(said[1..].iter().all(|line| line.starts_with("[")), "{said:?}");
    let rounds = said.iter().filter(|line| line.contains("round 1/6, ")).count();
    assert_eq!(rounds, 2, "one for each workload: {said:?}");
    let verdict = "files: create_rate: b is faster than a, 2.0";
    assert_eq!(said.iter().filter(|line| line.contains(verdict)).count(), 1, "{said:?}");
    let silent = scene.run("run plan.toml --output silent --progress none").exits(0);
    assert_eq!(silent.said(), [""; 0]);
}

#[test]
fn what_can_not_be_shown_is_refused_before_anything_is_made() {
    let scene = Scene::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let port = format!("--metrics {}", taken.port());
    let there = format!("--metrics {taken}: ");
    let bar = "the argument '--live' cannot be used with '--progress <HOW>'";
    for (option, code, says) in [
        ("--live", 2, "--live needs a terminal on standard error; --progress plain or json needs"),
        ("--live --progress json", 2, bar),
        ("--progress loud", 2, "[possible values: bar, plain, json, live, none]"),
        ("--metrics :9464", 2, "write a port, 9464, or an address and a port, 127.0.0.1:9464"),
        ("--metrics example:1", 2, "write a port"),
        (&port, 1, &there),
    ] {
        let line = format!("run --place sim --fs ext4,xfs {option} --output run -- true");
        scene.run(&line).exits(code).says(says);
        assert!(!scene.path("run").exists(), "{option}");
    }
}

/// The program in a terminal of its own, by script(1): what it shows is in `seen`, what is written
/// to its input is typed. The shell around it outlives Ctrl-C, to tell how the terminal is left.
fn in_terminal(scene: &Scene, [columns, rows]: [u16; 2], words: &[String]) -> Started {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!(
        "trap : INT; stty cols {columns} rows {rows}; {} {}; echo status=$?; stty -a",
        env!("CARGO_BIN_EXE_fsverdict"),
        quoted.join(" ")
    );
    let mut command = program("script");
    command.args(["--quiet", "--flush", "--command", &line, "seen"]).stdin(Stdio::piped());
    command.current_dir(scene.path("")).env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
    Started::new(command)
}

/// What the terminal showed just before the view ended.
fn view(scene: &Scene, [columns, rows]: [u16; 2]) -> String {
    let seen = fs::read(scene.path("seen")).unwrap();
    let end = seen.windows(8).rposition(|window| window == b"\x1b[?1049l");
    let mut parser = vt100::Parser::new(rows, columns, 0);
    parser.process(&seen[..end.unwrap_or(seen.len())]);
    parser.screen().contents()
}

/// What is on the terminal in the end, and whether it is as a shell expects it.
fn assert_given_back(scene: &Scene, code: i32) -> String {
    let seen = fs::read(scene.path("seen")).unwrap();
    let mut parser = vt100::Parser::new(60, 200, 0);
    parser.process(&seen);
    let screen = parser.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
    let shown = screen.contents();
    assert!(shown.contains(&format!("status={code}")), "{shown}");
    let modes: BTreeSet<&str> = shown.split([' ', ';', '\n']).collect();
    assert!(modes.contains("echo") && modes.contains("icanon"), "{shown}");
    shown
}

#[test]
fn the_live_view_shows_the_run_in_a_real_terminal() {
    for size in [[80, 24], [120, 40]] {
        let scene = Scene::alone();
        let mut words = slow_run(&scene, 4);
        words.push("--live".into());
        words.extend(WORK.map(String::from));
        in_terminal(&scene, size, &words).wait().exits(0);
        let view = view(&scene, size);
        println!("{view}\n");
        let lines: Vec<&str> = view.lines().collect();
        assert!(lines[0].starts_with(" fsverdict run"), "{view}");
        assert!(lines[1].starts_with("round 4/4"), "{view}");
        assert!(lines[2].contains(" gone"), "{view}");
        assert!(view.contains("■ ■ ■ ■"), "four rounds are measured: {view}");
        assert!(view.contains("against ") && view.contains("wall_time "), "{view}");
        assert!(lines.iter().any(|line| line.starts_with("CPU") && line.ends_with('%')), "{view}");
        let shown = assert_given_back(&scene, 0);
        assert!(shown.contains("The run ended because"), "the report follows: {shown}");
        scene.assert_nothing_left();
    }
}

#[test]
fn ctrl_c_in_the_live_view_ends_the_run_and_gives_the_terminal_back() {
    let scene = Scene::alone();
    let mut words = slow_run(&scene, 40);
    words.push("--live".into());
    words.extend(WORK.map(String::from));
    let mut started = in_terminal(&scene, [80, 24], &words);
    started.reaches("the third trial", || scene.path("run/trials/3").exists());
    started.typed(b"\x03");
    started.wait();
    let shown = assert_given_back(&scene, 130);
    assert!(shown.contains("The run ended because it was interrupted"), "{shown}");
    scene.assert_nothing_left();
}

/// A run that serves its metrics, where it does, and the file with what it says.
fn serving(scene: &Scene, rounds: u32, work: &[&str]) -> (Started, String) {
    let mut words = slow_run(scene, rounds);
    // So small a margin that nothing is settled early.
    words.extend(["--margin", "0.1%", "--progress", "none"].map(String::from));
    words.extend(["--metrics", "127.0.0.1:0"].map(String::from));
    words.extend(work.iter().map(ToString::to_string));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = scene.command(&words);
    let said = fs::File::create(scene.path("said")).unwrap();
    command.stderr(said);
    let mut started = Started::telling(command);
    started.reaches("the address", || scene.read("said").contains("/metrics"));
    let said = scene.read("said");
    let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap().to_string();
    (started, address)
}

/// The page, in the format asked for: head and body; empty where it does not come in time.
fn scrape(address: &str, accept: &str) -> (String, String) {
    get(address, "/metrics", accept).unwrap_or_default()
}

/// What is at `path`: head and body; `None` where nobody answers.
fn get(address: &str, path: &str, accept: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.into(), body.into()))
}

#[test]
fn metrics_tell_of_the_trial_under_way_and_of_those_before() {
    let scene = Scene::alone();
    // In the third round the work goes on until we have looked.
    let looked = scene.typed("looked");
    let waits = format!(
        "seq 99999 > numbers
        [ $FSVERDICT_ROUND != 3 ] || until [ -e {looked} ]; do sleep 0.1; done"
    );
    let (mut started, address) = serving(&scene, 4, &["--writable", ".", "--", "sh", "-c", &waits]);
    let measured = |body: &str| body.contains("outcome=\"measured\"} 2");
    let working = |body: &str| body.contains("step=\"work\"}");
    let mut body = String::new();
    started.reaches("a trial of the third round at work", || {
        body = scrape(&address, "application/openmetrics-text; version=1.0.0").1;
        measured(&body) && working(&body) && body.contains("fsverdict_round 3")
    });
    scene.write("looked", "");
    assert!(body.ends_with("# EOF\n"), "{body}");
    for line in [
        "# TYPE fsverdict_run info",
        "# UNIT fsverdict_run_elapsed_seconds seconds",
        "fsverdict_rounds_at_most 4",
        "fsverdict_cpu_seconds_total{mode=\"user\"} ",
        "fsverdict_sample_seconds{workload=\"sh -c",
        "fsverdict_comparison_rounds{",
        "fsverdict_verdict=\"undecided\"} 1",
    ] {
        assert!(body.contains(line), "{line} is not in {body}");
    }
    started.wait().exits(0);
    assert!(TcpStream::connect(&address).is_err(), "the server ends with the run");
    scene.assert_nothing_left();
}

/// Work as a stranger's plan may have it: its name sets a terminal's title and clears it, turns the
/// direction of writing, and begins a line of its own.
const HOSTILE: &str = "sleep 0.3 # \u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\n# forged 1\n\
                       fsverdict_forged=1 # \\ \"";

#[track_caller]
fn assert_harmless(what: &str, shown: &str) {
    for harm in ["\u{1b}]0;", "\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!shown.contains(harm), "{what} hands {harm:?} on: {shown:?}");
    }
}

#[test]
fn a_strangers_names_do_nothing_in_the_live_view_nor_to_who_scrapes() {
    let scene = Scene::alone();
    // Work that sleeps is void where nothing disturbs it (FixedTime).
    let has_ended = |done: Done| {
        assert!([Some(0), Some(5)].contains(&done.code), "{:?}: {}", done.code, done.stderr);
    };
    let mut words = slow_run(&scene, 2);
    words.push("--live".into());
    words.extend(["--", "sh", "-c", HOSTILE].map(String::from));
    has_ended(in_terminal(&scene, [80, 24], &words).wait());
    let seen = String::from_utf8_lossy(&fs::read(scene.path("seen")).unwrap()).into_owned();
    // script(1) itself writes the command line before it.
    let (_, shown) = seen.split_once("\u{1b}[?1049h").unwrap();
    assert_harmless("the live view", shown);
    fs::remove_dir_all(scene.path("run")).unwrap();
    let (mut started, address) = serving(&scene, 4, &["--", "sh", "-c", HOSTILE]);
    let mut body = String::new();
    started.reaches("a sample", || {
        body = scrape(&address, "application/openmetrics-text; version=1.0.0").1;
        body.contains("fsverdict_sample_seconds{")
    });
    has_ended(started.wait());
    assert_harmless("the page", &body);
    for line in body.lines() {
        let is_forged = line.starts_with("# forged") || line.starts_with("fsverdict_forged");
        assert!(!is_forged && !line.contains(char::is_control), "{line:?}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs Prometheus: run ./test"]
fn a_real_prometheus_scrapes_and_answers() {
    let scene = Scene::alone();
    let (run, address) = serving(&scene, 200, &WORK);
    check_by_promtool(&scene, &address);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: fsverdict\n    \
         static_configs: [{{ targets: ['{address}'] }}]\n"
    );
    scene.write("prometheus.yml", &config);
    let mut command = program("prometheus");
    command.arg("--config.file=prometheus.yml").arg("--storage.tsdb.path=data");
    command.arg(format!("--web.listen-address={free}")).current_dir(scene.path(""));
    let prometheus = Started::new(command);
    let ask = |query: &str| -> Value {
        let url = format!("http://{free}/");
        let answer = tool("promtool", &["query", "instant", "--format=json", &url, query]);
        answer.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    };
    let answers = |query: &str| ask(query).as_array().is_some_and(|found| !found.is_empty());
    for query in [
        "up{job=\"fsverdict\"} == 1",
        "fsverdict_run_info{place=\"local\"}",
        "sum(fsverdict_trials_total{outcome=\"measured\"}) > 2",
        "fsverdict_trial_info{step=\"work\"}",
        "rate(fsverdict_cpu_seconds_total{mode=\"user\"}[10s]) > 0",
        "sum(fsverdict_verdict) == 1",
        "fsverdict_sample_seconds{metric=\"wall_time\", better=\"lower\"} > 0.3",
    ] {
        wait_for(query, || answers(query));
    }
    assert!(!answers("up == 0"), "no scrape was refused");
    drop(prometheus);
    run.signal("INT");
    run.wait().exits(130);
    scene.assert_nothing_left();
}

/// Both lint and parse the page as Prometheus' own text format.
fn check_by_promtool(scene: &Scene, address: &str) {
    wait_for("a record", || scrape(address, "*/*").1.contains("fsverdict_verdict{"));
    let (head, body) = scrape(address, "text/plain");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    scene.write("page", &body);
    let mut command = program("sh");
    command.args(["-c", "promtool check metrics < page"]).current_dir(scene.path(""));
    let done = Started::new(command).wait().exits(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
}

/// A Netdata of the test's own that runs our plugin and nothing else, keeps everything in memory,
/// and talks to nobody but this machine; and where it answers.
fn netdata(scene: &Scene, metrics: &str) -> (Started, String) {
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/netdata/fsverdict.plugin");
    for folder in ["etc", "cache", "lib", "log", "plugins"] {
        fs::create_dir_all(scene.path("netdata").join(folder)).unwrap();
    }
    scene.write("netdata/etc/.opt-out-from-anonymous-statistics", "");
    fs::copy(plugin, scene.path("netdata/plugins/fsverdict.plugin")).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let user = tool("id", &["-un"]).unwrap().trim().to_string();
    let at = scene.typed("netdata");
    let off = "timex idlejitter tc diskspace proc cgroups statsd";
    let off: String = off.split(' ').map(|name| format!("    {name} = no\n")).collect();
    let config = format!(
        "[global]\n    run as user = {user}\n[directories]\n    config = {at}/etc\n    \
         stock config = {at}/etc\n    cache = {at}/cache\n    lib = {at}/lib\n    \
         home = {at}/lib\n    log = {at}/log\n    web = {at}/etc\n    plugins = {at}/plugins\n\
         [db]\n    mode = ram\n    retention = 600\n[web]\n    bind to = 127.0.0.1\n    \
         default port = {port}\n[health]\n    enabled = no\n[registry]\n    enabled = no\n\
         [ml]\n    enabled = no\n[plugins]\n    netdata monitoring = no\n{off}\
         [plugin:fsverdict]\n    command options = http://{metrics}/metrics\n",
        port = free.port(),
    );
    scene.write("netdata/netdata.conf", &config);
    let mut command = program("netdata");
    command.arg("-D").arg("-c").arg(format!("{at}/netdata.conf"));
    command.env("NETDATA_PIPENAME", format!("{at}/pipe"));
    (Started::new(command), free.to_string())
}

#[test]
#[ignore = "needs Netdata: run ./test"]
fn a_real_netdata_charts_the_run() {
    let scene = Scene::alone();
    let (run, address) = serving(&scene, 200, &WORK);
    let (netdata, at) = netdata(&scene, &address);
    let ask = |path: &str| -> Value {
        let answer = get(&at, path, "*/*").map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(&answer).unwrap_or_default()
    };
    type Holds = fn(f64) -> bool;
    // A dimension of a chart of that context, by the end of its name, with such a value.
    let shows = |context: &str, dimension: &str, holds: Holds| {
        let charts = ask("/api/v1/allmetrics?format=json");
        let charts = charts.as_object().into_iter().flatten().map(|(_, chart)| chart);
        let its = charts.filter(|chart| chart["context"] == context);
        let mut dimensions =
            its.flat_map(|chart| chart["dimensions"].as_object().into_iter().flatten());
        dimensions.any(|(_, it)| {
            text(&it["name"]).ends_with(dimension) && it["value"].as_f64().is_some_and(holds)
        })
    };
    let wanted: [(&str, &str, Holds); 6] = [
        ("fsverdict.trial", "/one", |it| it == 1.0),
        ("fsverdict.trial", "/two", |it| it == 1.0),
        ("fsverdict.cpu_seconds", "user", |it| it > 0.0),
        ("fsverdict.sample_seconds", "/two", |it| (0.3..600.0).contains(&it)),
        ("fsverdict.verdict", "/two undecided", |it| it == 1.0),
        ("fsverdict.findings", "void", |it| it == 0.0),
    ];
    for (context, dimension, holds) in wanted {
        wait_for(&format!("{dimension} in {context}"), || shows(context, dimension, holds));
    }
    let data = ask("/api/v1/data?chart=fsverdict.cpu_seconds&after=-3&points=3");
    assert_eq!(list(&data["labels"])[1], "user", "{data}");
    let history = |row: &Value| row[1].as_f64().is_some_and(|user| user > 0.0);
    assert!(list(&data["data"]).iter().any(history), "{data}");
    run.signal("INT");
    run.wait().exits(130);
    netdata.signal("TERM");
    netdata.wait().exits(0);
    // Its plugins end after it.
    wait_for("netdata's plugins", || Left::of_folder(&scene.path("")).processes.is_empty());
    let log = scene.read("netdata/log/error.log");
    assert!(log.contains("fsverdict.plugin") && !log.contains("no OpenMetrics"), "{log}");
    scene.assert_nothing_left();
}

#[test]
fn nobody_but_this_machine_hears_unless_it_is_said() {
    let scene = Scene::new();
    scene.write("plan.toml", PLAN);
    for (name, option, address) in [("one", "0", "127.0.0.1"), ("other", "0.0.0.0:0", "0.0.0.0")] {
        let line = format!("run plan.toml --output {name} --metrics {option}");
        scene.run(&line).exits(0).says(&format!("metrics at http://{address}:"));
    }
}
