//! The view, drawn into memory, and in a terminal that a panic must give back.

use fsverdict_host::tool;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::testing::{self, PLAN, begun, judged, rounds, trial};
use super::*;
use crate::watch::machine::{DeviceSecond, Second};

fn drawn(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |row: u16| -> String {
        let cells = (0..width).map(|column| buffer[(column, row)].symbol());
        cells.collect::<String>().trim_end().to_string()
    };
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

/// After six rounds, in the seventh.
fn state() -> State {
    let mut state = begun(PLAN);
    let plan = state.plan.clone();
    let mut records = rounds(6);
    records[3] = testing::failed(2, "b");
    for done in 1..=records.len() {
        let judged = (done == records.len()).then(|| judged(&plan, &records));
        state.hear(&News::Kept(&records[..done], judged));
    }
    state.hear(&News::Trial(&trial(&plan, 7, "a")));
    state.hear(&News::Step("work"));
    let device = DeviceSecond {
        utilisation: 0.5,
        read_bytes_per_s: 0.0,
        write_bytes_per_s: 3.0 * 1024.0 * 1024.0,
    };
    for _ in 0..5 {
        let second = Second { cpu_busy_share: 1.0, device: Some(device) };
        state.machine.seconds.push_back(second);
    }
    state
}

#[test]
fn the_view_shows_rounds_verdicts_and_the_machine() {
    for (width, height) in [(80, 24), (120, 40)] {
        let text = drawn(&state(), width, height);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with(" fsverdict a run"), "{text}");
        assert!(lines[1].starts_with("round 7/12, work, a: work 0:0"), "{text}");
        assert!(lines[2].starts_with("0:0") && lines[2].contains(" gone"), "{text}");
        assert_eq!(lines[4], "a  ■ ■ ■ ■ ■ ■ ▶ - - - - -", "{text}");
        assert_eq!(lines[5], "b  ■ × ■ ■ ■ ■ - - - - - -", "{text}");
        let verdict = lines.iter().find(|line| line.starts_with("wall_time b")).unwrap();
        assert!(verdict.contains('●') && verdict.contains('░'), "{text}");
        assert!(verdict.ends_with("  faster"), "{text}");
        let device = lines.iter().find(|line| line.starts_with("device")).unwrap();
        assert!(device.contains("▄▄▄▄▄"), "{text}");
        assert!(device.ends_with(" 50%  read 0 B/s, write 3.00 MiB/s"), "{text}");
        let cpu = lines.iter().find(|line| line.starts_with("CPU")).unwrap();
        assert!(cpu.contains("█████") && cpu.ends_with("100%"), "{text}");
    }
}

#[test]
fn no_terminal_is_too_small_and_no_run_too_long() {
    let plan = format!("{PLAN}[judgement]\nrounds = 500\n");
    let mut state = begun(&plan);
    let plan = state.plan.clone();
    state.hear(&News::Trial(&trial(&plan, 400, "b")));
    for (width, height) in [(1, 1), (60, 2), (10, 3), (40, 10), (80, 24)] {
        drawn(&state, width, height);
    }
    let text = drawn(&state, 80, 24);
    assert!(text.contains("rounds 343 to 419"), "{text}");
    assert_eq!(text.matches('▶').count(), 2, "one of them is the legend's: {text}");
}

/// Run by the test below in a terminal of its own.
#[test]
#[should_panic(expected = "in the view")]
fn a_view_that_panics() {
    if std::env::var_os("FSVERDICT_TEST_TERMINAL").is_some() {
        show();
    }
    panic!("in the view");
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let ourselves = std::env::current_exe().unwrap();
    let test = "watch::live::tests::a_view_that_panics";
    let line = format!("{} --exact {test} --nocapture; stty -a", ourselves.display());
    let mut command = tool::command("script").unwrap();
    command.args(["--quiet", "--command", &line]).arg(&seen);
    command.env("FSVERDICT_TEST_TERMINAL", "yes").stdout(std::process::Stdio::null());
    assert!(command.status().unwrap().success());
    let seen = String::from_utf8_lossy(&std::fs::read(&seen).unwrap()).into_owned();
    let place = |text: &str| seen.find(text).unwrap_or_else(|| panic!("no {text:?} in {seen:?}"));
    let (shown, hidden) = (place("\x1b[?1049h"), place("\x1b[?1049l"));
    assert!(shown < hidden && hidden < place("in the view"), "{seen:?}");
    assert!(place("\x1b[?25h") > shown, "the cursor is back: {seen:?}");
    assert!(seen.contains(" echo ") || seen.contains("\necho "), "{seen:?}");
}
