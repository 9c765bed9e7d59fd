//! Progress for programs: a JSON object on each line. FORMAT.md, "Progress", describes them.

use std::fmt::Debug;
use std::io::Write;
use std::time::{Duration, Instant};

use fsverdict_core::model::{BedKind, Outcome, Record, SCHEMA, Workload};
use fsverdict_core::render;
use serde_json::{Value, json};

use super::machine::Second;
use super::state::State;
use super::{Listener, News};

/// Between two lines that only say how far something is.
const PERIOD: Duration = Duration::from_secs(1);

/// The lines.
#[derive(Debug)]
pub struct Json<W> {
    out: W,
    /// The last line that only said how far something is.
    passed: Option<Instant>,
}

impl<W: Write> Json<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Json<W> {
        Json { out, passed: None }
    }

    fn write(&mut self, state: &State, event: &str, fields: Value) {
        let elapsed_s = seconds(state.gone());
        let mut line = json!({ "schema": SCHEMA, "event": event, "elapsed_s": elapsed_s });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        // One write, so that no other line comes between.
        let _ = self.out.write_all(format!("{}\n", render::one_line(&line.to_string())).as_bytes());
    }

    /// At most once in a period.
    fn write_now_and_then(&mut self, state: &State, event: &str, fields: impl FnOnce() -> Value) {
        if self.passed.is_none_or(|passed| passed.elapsed() >= PERIOD) {
            self.passed = Some(Instant::now());
            self.write(state, event, fields());
        }
    }
}

/// To the millisecond.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}

fn begun(state: &State) -> Value {
    let contenders: Vec<&str> = state.plan.contenders.iter().map(|it| it.name.as_str()).collect();
    let workloads: Vec<&str> = state.plan.workloads.iter().map(|it| it.name.as_str()).collect();
    json!({
        "run": state.run.name,
        "folder": state.folder.display().to_string(),
        "place": state.run.place,
        "bed": BedKind::name(state.plan.bed.kind),
        "seed": state.run.seed,
        "contenders": contenders,
        "reference": state.plan.reference(),
        "workloads": workloads,
        "rounds_at_most": state.plan.judgement.rounds(),
        "trials_done": state.kept,
    })
}

fn tick(state: &State) -> Value {
    let left = state.left();
    let second = state.machine.seconds.back().copied();
    let Second { cpu_busy_share, device } = second.unwrap_or_default();
    json!({
        "step_s": state.trial.as_ref().map(|trial| seconds(trial.step_since.elapsed())),
        "left_likely_s": left.likely.map(seconds),
        "left_at_most_s": left.at_most.map(seconds),
        "cpu_busy_share": second.map(|_| cpu_busy_share),
        "device_utilisation": device.map(|it| it.utilisation),
        "device_read_bytes_per_s": device.map(|it| it.read_bytes_per_s),
        "device_write_bytes_per_s": device.map(|it| it.write_bytes_per_s),
    })
}

fn kept(state: &State, record: &Record) -> Value {
    let workload = state.plan.workloads.iter().find(|it| it.name == record.key.workload);
    let primary = workload.map(Workload::primary).unwrap_or_default();
    let judged = |metric: &String| primary.contains(metric);
    let samples: Vec<_> = record.samples.iter().filter(|it| judged(&it.metric)).collect();
    let failure = match &record.outcome {
        Outcome::Measured => None,
        Outcome::Failed(failure) => Some(failure),
    };
    let verdicts: Vec<_> =
        state.comparisons.iter().filter(|it| it.workload == record.key.workload).collect();
    let left = state.left();
    json!({
        "number": record.number,
        "round": record.key.round,
        "workload": record.key.workload,
        "contender": record.key.contender,
        "trial_s": record.wall_s(),
        "failed": failure,
        "samples": samples,
        "verdicts": verdicts,
        "new_findings": state.fresh.findings,
        "left_likely_s": left.likely.map(seconds),
        "left_at_most_s": left.at_most.map(seconds),
    })
}

impl<W: Write + Debug> Listener for Json<W> {
    fn hear(&mut self, news: &News, state: &State) {
        match news {
            News::Begun => self.write(state, "begin", begun(state)),
            News::Writing(done_bytes, total_bytes) => {
                self.write_now_and_then(
                    state,
                    "writing",
                    || json!({ "done_bytes": done_bytes, "total_bytes": total_bytes }),
                );
            }
            News::Trial(trial) => {
                let fields = json!({
                    "number": trial.number,
                    "round": trial.key.round,
                    "workload": trial.key.workload,
                    "contender": trial.key.contender,
                    "position": trial.position,
                });
                self.write(state, "trial", fields);
            }
            News::Step(step) => self.write(state, "step", json!({ "step": step })),
            News::Tick => self.write_now_and_then(state, "tick", || tick(state)),
            News::Kept(record, _) => self.write(state, "record", kept(state, record)),
            News::Ended(Ok(stop)) => self.write(state, "end", json!({ "stop": stop })),
            News::Ended(Err(error)) => {
                self.write(state, "end", json!({ "stop": null, "error": format!("{error:#}") }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::testing;
    use super::*;

    /// The further fields of each event, by FORMAT.md's table.
    fn documented() -> Vec<(String, BTreeSet<String>)> {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../FORMAT.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, section) = page.split_once("\n## Progress\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let quoted = |cell: &str| -> Vec<String> {
            // A name with a dot is a document's.
            let words = cell.split('`').skip(1).step_by(2).filter(|word| !word.contains('.'));
            words.map(String::from).collect()
        };
        rows.map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            (quoted(cells[1]).concat(), quoted(cells[3]).into_iter().collect())
        })
        .collect()
    }

    /// What a line has besides what every line has.
    fn further(line: &Value) -> (String, BTreeSet<String>) {
        let keys = line.as_object().unwrap().keys().cloned();
        let common = ["schema", "event", "elapsed_s"];
        let event = line["event"].as_str().unwrap().to_string();
        (event, keys.filter(|key| !common.contains(&key.as_str())).collect())
    }

    #[test]
    fn each_line_is_an_object_of_its_own() {
        let mut state = testing::begun(testing::PLAN);
        let plan = state.plan.clone();
        let mut json = Json::new(Vec::new());
        let records = testing::rounds(6);
        let judged = testing::judged(&plan, &records);
        for news in [
            News::Begun,
            News::Writing(1 << 20, 1 << 30),
            News::Writing(2 << 20, 1 << 30),
            News::Trial(&testing::trial(&plan, 6, "b")),
            News::Step("work"),
            News::Kept(records.last().unwrap(), Some(judged)),
            News::Ended(&Err(anyhow::anyhow!("no\nspace"))),
        ] {
            state.hear(&news);
            json.hear(&news, &state);
        }
        let text = String::from_utf8(json.out).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["begin", "writing", "trial", "step", "record", "end"]);
        assert!(lines.iter().all(|line| line["schema"] == 1 && line["elapsed_s"].is_number()));
        let record = &lines[4];
        assert_eq!(record["verdicts"][0]["verdict"], "faster");
        assert_eq!(record["samples"][0]["metric"], "wall_time");
        assert_eq!(record["failed"], Value::Null);
        assert_eq!(lines[5]["error"], "no\nspace");

        let mut json = Json::new(Vec::new());
        json.hear(&News::Tick, &state);
        let tick: Value = serde_json::from_slice(&json.out).unwrap();
        let remark = ("remark".to_string(), ["text".to_string()].into());
        let mut written: Vec<_> =
            lines.iter().chain([&tick]).map(further).chain([remark]).collect();
        let mut documented = documented();
        written.sort();
        documented.sort();
        assert_eq!(written, documented, "FORMAT.md differs");
    }
}
