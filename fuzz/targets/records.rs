//! A run's facts on the first line and its records on the others, judged, and shown by every
//! renderer.
#![no_main]

use std::sync::OnceLock;

use fsverdict_core::campaign::Campaign;
use fsverdict_core::judge::{self, Fold, Judge, Side};
use fsverdict_core::model::{Plan, Record, Run, Timeline, from_json};
use fsverdict_core::render::{self, Kept, Report};
use libfuzzer_sys::fuzz_target;

const PLAN: &str = "seed = 5\nplace = \"sim\"\njudgement = { rounds = 6 }\n\
    contender = [{ name = \"ext4\", file_system = \"ext4\" },\
    { name = \"xfs\", file_system = \"xfs\" }]\n\
    [[workload]]\nname = \"work\"\ncommand = \"true\"\n";

fuzz_target!(|text: &str| {
    static MADE: OnceLock<(Plan, Judge)> = OnceLock::new();
    let (plan, rules) = MADE.get_or_init(|| {
        let plan = Plan::parse(PLAN).expect("a plan");
        let rules = Judge::new(&plan);
        (plan, rules)
    });
    let mut lines = text.lines();
    let Some(Ok(run)) = lines.next().map(serde_json::from_str::<Run>) else { return };
    let mut records: Vec<Record> =
        lines.filter_map(|line| from_json(line).ok()).collect();
    records.sort_by_key(|record| record.number);
    let mut campaign = Campaign::of(run.seed, rules, &records);
    let _ = campaign.next(std::time::Duration::ZERO);
    let mut fold = Fold::of(rules, &records);
    let (comparisons, findings) = (fold.comparisons(), fold.findings());
    let causes = judge::causes(rules, &records, &comparisons);
    let side = Side { run: &run, plan, records: &records };
    let claims = fold.claims(side, &comparisons, &findings);
    let report = Report {
        run: &run,
        plan,
        records: &records,
        comparisons: &comparisons,
        causes: &causes,
        claims: &claims,
        findings: &findings,
        published: &[],
        is_packed: false,
    };
    let kept = Kept { path: "run", is_packed: false };
    for all in [false, true] {
        render::answered(&report, kept, all);
    }
    render::details(&report);
    render::markdown(&report, None);
    render::json(&report);
    render::samples_csv(&records);
    let timelines: Vec<Timeline> = records
        .first()
        .and_then(|record| Timeline::parse(&record.key, text).ok())
        .unwrap_or_default();
    render::html(&report, &timelines);
});
