//! What docs/check.md says of each kind of setting is what `check` says.

use std::fs;
use std::path::Path;

use crate::support::{Done, Scene, list};

/// A row of the page's table: the settings as a file, one of them, and what it is.
struct Row {
    kind: String,
    text: String,
    setting: String,
    state: String,
}

fn rows() -> Vec<Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/check.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("## Kinds of settings").unwrap();
    let code = |cell: &str| cell.trim().trim_matches('`').to_string();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [kind, settings, setting, state] = cells.as_slice() else { panic!("{line}") };
        let text = settings.split("<br>").map(|line| code(line) + "\n").collect();
        let (setting, state) = (code(setting), (*state).to_string());
        Row { kind: (*kind).into(), text, setting, state }
    };
    let table = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let rows: Vec<Row> = table.map(row).collect();
    assert!(section.contains(&format!("{} kinds", rows.len())), "{} rows", rows.len());
    rows
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn each_kind_of_setting_is_judged_as_the_page_says() {
    let scene = Scene::new();
    let mut wrong = Vec::new();
    for row in rows() {
        let file = scene.write("settings", &row.text);
        // Tests beside this one change kernel settings, too.
        let is_kept_waiting = |done: &Done| done.stdout.contains("another run that changes");
        let mut tries = (0..600).map(|_| scene.fsverdict(&["check", "--json", &file]));
        let done = tries.find(|done| !is_kept_waiting(done)).unwrap();
        let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let all = list(&found["settings"]).iter();
        let states: Vec<&str> = all
            .filter(|it| it["setting"] == row.setting.as_str())
            .map(|it| it["state"].as_str().unwrap())
            .collect();
        if states != [row.state.as_str()] {
            wrong.push(format!("{}: {states:?} is not {}: {found:#}", row.kind, row.state));
        }
        let any = |states: &[&str]| {
            let mut all = list(&found["settings"]).iter();
            all.any(|it| states.contains(&it["state"].as_str().unwrap()))
        };
        let status = match () {
            () if any(&["invalid", "unsafe"]) => 1,
            () if any(&["not-tried"]) => 6,
            () => 0,
        };
        assert_eq!(done.code, Some(status), "{}: {found:#}", row.kind);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    scene.assert_nothing_left();
}
