//! The view, drawn into memory, and in a terminal that a panic must give back.

use std::fs::{self, OpenOptions};

use console::{measure_text_width, strip_ansi_codes};
use fsverdict_core::model::{Audit, Finding, Severity};
use fsverdict_host::tool;

use super::super::testing::{self, PLAN, begun, judged, rounds, trial};
use super::*;
use crate::watch::machine::{DeviceSecond, Second};

fn drawn(state: &State, width: usize, height: usize) -> String {
    let page = screen::page(state, width, height);
    let rows = page.iter().take(height).map(|line| {
        let row = line.cut(width);
        assert!(measure_text_width(&row) <= width, "{row:?}");
        strip_ansi_codes(&row).trim_end().to_string()
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// After six rounds, in the seventh.
fn state() -> State {
    let mut state = begun(PLAN);
    let plan = state.plan.clone();
    let mut records = rounds(6);
    records[3] = testing::failed(2, "b");
    for done in 1..=records.len() {
        let judged = (done == records.len()).then(|| judged(&plan, &records));
        state.hear(&News::Kept(&records[done - 1], judged));
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

#[test]
fn findings_are_wrapped_and_can_not_control_the_terminal() {
    let mut state = state();
    let evidence = "the device wrote \x1b[31mmore\x1b[0m than anybody asked it to, \
                    in each and every one of the six rounds";
    state.findings = vec![Finding {
        audit: Audit::A3,
        severity: Severity::Warning,
        workload: None,
        contender: Some("b\x1b[2J".into()),
        evidence: evidence.into(),
        advice: String::new(),
    }];
    for width in [40, 80] {
        let text = drawn(&state, width, 40);
        let findings: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("findings: 1")).skip(1).collect();
        assert!(findings.len() > 1 && findings[0].starts_with("warning "), "{text}");
        let words = findings.join(" ");
        assert!(words.ends_with("asked it to, in each and every one of the six rounds"), "{text}");
    }
    for line in screen::page(&state, 80, 40) {
        let line = line.cut(80);
        assert!(!line.contains("\x1b[31m") && !line.contains("\x1b[2J"), "{line:?}");
    }
}

/// What a canvas wrote for each of `pages`, into a terminal of 24 lines.
fn written(pages: &[Vec<&str>]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("terminal");
    let file = || OpenOptions::new().create(true).append(true).read(true).open(&path).unwrap();
    let mut canvas = Canvas::new(Term::read_write_pair(file(), file()));
    let mut before = 0;
    let draw = |page: &Vec<&str>| {
        let lines = page.iter().map(|text| line::Line::default().plain(text)).collect();
        canvas.draw(|_, _| lines).unwrap();
        let all = fs::read_to_string(&path).unwrap();
        all[std::mem::replace(&mut before, all.len())..].to_string()
    };
    pages.iter().map(draw).collect()
}

#[test]
fn only_lines_that_have_changed_are_written() {
    let full = "x".repeat(79);
    let pages = [
        vec!["title", "round 1", &full, "gone"],
        vec!["title", "round 2", &full],
        vec!["title", "round 2", &full],
        vec!["title"; 30],
    ];
    let written = written(&pages);
    assert!(!written[1].contains("title") && !written[1].contains('x'), "{written:?}");
    assert_eq!(written[2], "");
    let mut parser = vt100::Parser::new(24, 79, 0);
    for (page, written) in pages.iter().zip(&written) {
        parser.process(written.as_bytes());
        let shown = parser.screen().contents();
        let expected: Vec<&str> = page.iter().copied().take(24).collect();
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }
}
