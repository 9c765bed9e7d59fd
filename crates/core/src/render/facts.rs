//! Facts of a run besides its figures: what was asked, how it ended, what failed.

use std::collections::BTreeSet;

use super::Report;
use super::ways::ways;
use super::words::{counted, listed};
use crate::model::{
    BedKind, Comparison, Family, Judgement, Key, NAMELESS, Outcome, Percent, Stop, TURN, Verdict,
};

/// The question, or what was compared, by as few names as a line has room for.
pub(super) fn title(report: &Report) -> String {
    let plan = report.plan;
    if !plan.question.is_empty() {
        return plan.question.clone();
    }
    let named = |names: Vec<&str>, what: &str| match names.len() {
        0..=4 => names.join(", "),
        count => counted(count, what),
    };
    let contenders = match ways(plan) {
        Some(ways) => {
            let (at, what) = match ways.second {
                "layers" => ("on", "stack"),
                "above" => ("under", "stack"),
                "attachment" => ("with", "attachment"),
                other => ("on", other),
            };
            let rows = named(ways.rows.iter().map(String::as_str).collect(), "file system");
            format!("{rows} {at} {}", counted(ways.columns.len(), what))
        }
        None => named(plan.contenders.iter().map(|it| it.name.as_str()).collect(), "contender"),
    };
    if plan.workloads.iter().all(|it| it.name == NAMELESS) {
        return contenders;
    }
    let work = named(plan.workloads.iter().map(|it| it.name.as_str()).collect(), "workload");
    format!("{contenders} at {work}")
}

/// The stamp of a run whose sizes are not those of its plan.
pub(super) fn scale(report: &Report) -> String {
    match report.plan.scale {
        Some(scale) if scale < 1.0 => format!(", at 1/{:.3} of the plan's size", 1.0 / scale),
        Some(scale) => format!(", at {scale} times the plan's size"),
        None => String::new(),
    }
    .replace(".000 ", " ")
}

/// The failed trials, those that failed alike in one line: which, at what step, why, and what was
/// left behind.
pub(super) fn failures(report: &Report) -> Vec<String> {
    let mut alike: Vec<(String, Vec<String>)> = Vec::new();
    for record in report.failures() {
        let Outcome::Failed(failure) = &record.outcome else { continue };
        let left = match failure.cleanup_errors.as_slice() {
            [] => String::new(),
            errors => format!("; and could not be cleaned up: {}", errors.join("; ")),
        };
        let Key { round, workload, contender } = &record.key;
        let what = format!("{workload}, {contender}: {}: {}{left}", failure.step, failure.error);
        match alike.iter_mut().find(|(known, _)| *known == what) {
            Some((_, rounds)) => rounds.push(round.to_string()),
            None => alike.push((what, vec![round.to_string()])),
        }
    }
    let line = |(what, rounds): (String, Vec<String>)| {
        let s = if rounds.len() == 1 { "" } else { "s" };
        format!("{what} (round{s} {})", rounds.join(", "))
    };
    alike.into_iter().map(line).collect()
}

/// How the run ended.
pub(super) fn ending(report: &Report) -> String {
    let rounds = report.rounds();
    let trials = report.records.len();
    let seconds = report.run.elapsed_s;
    let is_judged = report.comparisons.iter().any(|it| it.high.is_some());
    let why = match report.run.stop {
        Some(Stop::Failed) if is_judged => format!(
            "The run ended because {} failed for good, and no other comparison was open",
            listed(&report.given_up())
        ),
        Some(stop) => format!("The run ended because {}", stop.because()),
        None => "The run has not ended".into(),
    };
    if report.is_read() {
        let files = report.run.read.iter().filter(|(what, _)| what == "file").count();
        let of = counted(files, "file");
        return format!("Read from {of}: {trials} runs.{}", at_stake(report));
    }
    let seed = report.run.seed;
    let plan = &report.plan;
    let by_time = plan.workloads.iter().all(|it| it.fio.is_some());
    let all = plan.workloads.iter().all(|it| plan.takes_turns(it));
    let in_turns = match (plan.is_duet(), all) {
        (true, true) if by_time => format!(" in turns of {} ms", TURN.as_millis()),
        (true, true) => " in turns".into(),
        (true, false) => " partly in turns".into(),
        (false, _) => String::new(),
    };
    format!(
        "{why}: {}, {}{in_turns}, {seconds:.0} s, seed {seed}.{}{}",
        counted(rounds as usize, "round"),
        counted(trials, "trial"),
        at_stake(report),
        settled_early(report)
    )
}

/// What a run that ends as soon as a difference is settled does to the ratio that it prints: it
/// ended because that was large (docs/validation.md).
fn settled_early(report: &Report) -> &'static str {
    let most = report.plan.judgement.rounds().unwrap_or(u32::MAX);
    let is_early = |it: &Comparison| {
        matches!(it.verdict, Verdict::Faster | Verdict::Slower) && it.rounds < most
    };
    match report.run.stop {
        Some(Stop::Settled | Stop::Decided | Stop::Failed)
            if report.comparisons.iter().any(is_early) =>
        {
            " It ended early, which makes large differences look a little larger: go by the \
             intervals."
        }
        _ => "",
    }
}

/// How many verdicts the run gives, and how many false ones its confidence allows for. The
/// confidence holds for all verdicts of a family together, so we expect a number of families with a
/// false one. All families with an interval count, because the outcome decides which comparisons
/// are settled. What is void or undecided says nothing that could be false.
fn at_stake(report: &Report) -> String {
    let judged = report
        .comparisons
        .iter()
        .filter(|it| it.high.is_some() && !matches!(it.verdict, Verdict::Void));
    let verdicts = judged.clone().filter(|it| it.verdict != Verdict::Undecided);
    fn workloads<'a>(of: impl Iterator<Item = &'a Comparison>) -> usize {
        of.map(|it| it.workload.as_str()).collect::<BTreeSet<_>>().len()
    }
    let Judgement { family, confidence, .. } = &report.plan.judgement;
    let families = match family {
        Family::Workload => workloads(judged),
        Family::Run => workloads(judged).min(1),
    };
    let error = Percent(1.0 - confidence.0);
    carried(verdicts.clone().count(), workloads(verdicts), families, error)
}

/// `count` verdicts on `workloads`, in families that each allow for `error`.
fn carried(count: usize, workloads: usize, families: usize, error: Percent) -> String {
    let s = |count: usize| if count == 1 { "" } else { "s" };
    let carried =
        format!(" It gives {count} verdict{} on {workloads} workload{}.", s(count), s(workloads));
    match (count, families) {
        (0, _) => String::new(),
        (1, 1) => format!("{carried} The chance that it is false is at most {error}."),
        (_, 1) => format!("{carried} The chance that any is false is at most {error}."),
        _ => {
            let each = match families == workloads {
                true => "each workload".to_string(),
                false => format!("each of {families} workloads"),
            };
            match families as f64 * error.0 {
                expected if expected < 0.5 => {
                    format!("{carried} For {each} the chance that any is false is at most {error}.")
                }
                expected => format!(
                    " It gives {count} verdict{}. Each of {families} workloads may have a false \
                     one with a chance of {error}: expect up to {expected:.1} workloads with one.",
                    s(count)
                ),
            }
        }
    }
}

/// What the file systems were made on: `loop, 4GiB`.
pub(super) fn bed(report: &Report) -> String {
    let bed = &report.plan.bed;
    let what = match (bed.kind, bed.devices) {
        (BedKind::Device | BedKind::Directory, _) => bed.paths.join(", "),
        (_, 1) => format!("{}iB", bed.size),
        (_, devices) => format!("{devices} of {}iB", bed.size),
    };
    format!("{}, {what}", bed.kind.name())
}

#[cfg(test)]
mod tests {
    use super::super::next::open_of;
    use super::super::testing::{grid, report};
    use super::*;
    use crate::model::{Failure, Record};

    #[test]
    fn a_run_that_a_difference_ended_early_says_what_that_does_to_ratios() {
        let (plan, mut run, comparisons) = grid(&[vec![(Verdict::Faster, 1.2)]]);
        run.stop = Some(Stop::Settled);
        let mut made = (plan, run, comparisons);
        let says = |made: &_| ending(&report(made)).ends_with("go by the intervals.");
        assert!(says(&made), "six rounds of twelve");
        made.2[0].verdict = Verdict::Equivalent;
        assert!(!says(&made));
        (made.2[0].verdict, made.2[0].rounds) = (Verdict::Slower, 12);
        assert!(!says(&made), "it took all rounds");
        (made.2[0].rounds, made.1.stop) = (6, Some(Stop::Interrupted));
        assert!(!says(&made));
    }

    #[test]
    fn a_contender_that_failed_for_good_is_named_beside_what_was_settled() {
        let verdicts = [(Verdict::Faster, 1.2), (Verdict::Undecided, 1.0)];
        let (plan, mut run, mut comparisons) = grid(&[verdicts.into()]);
        run.stop = Some(Stop::Failed);
        (comparisons[1].ratio, comparisons[1].high) = (None, None);
        let mut made = (plan, run, comparisons);
        let record = |number, name: &str, outcome| {
            let key = Key { round: number, workload: "t0".into(), contender: name.into() };
            Record { outcome, ..Record::new(number, key, 0, 0) }
        };
        let failure = Failure { step: "mount".into(), error: "no".into(), cleanup_errors: vec![] };
        let failed = || Outcome::Failed(failure.clone());
        let records = [
            record(1, "c0", Outcome::Measured),
            record(1, "c1", failed()),
            record(2, "c1", Outcome::Measured),
            record(1, "c2", failed()),
            record(2, "c2", failed()),
        ];
        let says = |made: &_| ending(&Report { records: &records, ..report(made) });
        let named = "The run ended because c2 failed for good, and no other comparison was open:";
        assert!(says(&made).starts_with(named), "{}", says(&made));
        assert_eq!(open_of(&Report { records: &records, ..report(&made) }).len(), 0);
        (made.2[0].ratio, made.2[0].high) = (None, None);
        assert!(says(&made).contains("fewer than two contenders could be measured"));
    }

    #[test]
    fn the_chance_of_a_false_verdict_is_said() {
        let said = |count, workloads, families| carried(count, workloads, families, Percent(0.05));
        assert_eq!(said(0, 0, 0), "");
        let one = " It gives 1 verdict on 1 workload. The chance that it is false is at most 5%.";
        assert_eq!(said(1, 1, 1), one);
        let of_the_run = "4 verdicts on 2 workloads. The chance that any is false is at most 5%.";
        assert!(said(4, 2, 1).ends_with(of_the_run), "{}", said(4, 2, 1));
        let several = said(12, 7, 7);
        assert!(
            several.ends_with(
                "7 workloads. For each workload the chance that any is false is at most 5%."
            ),
            "{several}"
        );
        let many = said(40, 20, 20);
        let expected = "40 verdicts. Each of 20 workloads may have a false one with a chance of \
                        5%: expect up to 1.0 workloads with one.";
        assert!(many.contains(expected), "{many}");
        let few = said(1, 1, 7);
        assert!(few.contains("For each of 7 workloads the chance that any is false"), "{few}");
    }

    #[test]
    fn what_is_not_settled_counts_for_the_chance_of_a_false_verdict() {
        let mut rows = vec![vec![(Verdict::Undecided, 1.0)]; 20];
        rows[0] = vec![(Verdict::Faster, 1.2)];
        let mut made = grid(&rows);
        made.0.judgement.family = Family::Workload;
        let said = at_stake(&report(&made));
        let expected = "1 verdict. Each of 20 workloads may have a false one with a chance of \
                        5%: expect up to 1.0 workloads with one.";
        assert!(said.contains(expected), "{said}");
    }
}
