//! Several runs side by side, each with its own verdicts: what they have in common, and what not.
//!
//! Nothing is calculated over runs. A ratio is of two contenders that had the same disk at nearly
//! the same time, and is shown beside that of another run only if contender and reference have the
//! same names; if the same name is not the same thing, that is said with it.

use super::terms::{self, Side};
use crate::model::{Abreast, Accord, Comparison, Joined};

/// Sets `sides` beside each other, with the verdicts of each.
pub fn joined(sides: &[Side], comparisons: &[&[Comparison]]) -> Joined {
    Joined {
        names: names(sides),
        terms: terms::all(sides),
        unlike: terms::conditions(sides).into_iter().filter(|term| !term.equal).collect(),
        one_machine: terms::on_one_machine(sides),
        verdicts: verdicts(sides, comparisons),
    }
}

/// The runs' names, those that others have too with a number.
fn names(sides: &[Side]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for side in sides {
        let name = &side.run.name;
        let mut own = name.clone();
        let mut number = 1;
        while names.contains(&own) {
            number += 1;
            own = format!("{name} ({number})");
        }
        names.push(own);
    }
    names
}

/// Every comparison of any run once: workload by workload, metric by metric, as the first run that
/// holds each has them.
fn verdicts(sides: &[Side], comparisons: &[&[Comparison]]) -> Vec<Abreast> {
    let mut rows: Vec<Abreast> = Vec::new();
    for (run, its) in comparisons.iter().enumerate() {
        for comparison in *its {
            let place = rows.iter().position(|row| is_of(row, comparison)).unwrap_or_else(|| {
                let row = row(sides, comparison);
                let place = place(&rows, &row);
                rows.insert(place, row);
                place
            });
            rows[place].runs[run] = Some(comparison.clone());
        }
    }
    for row in &mut rows {
        row.unlike = unlike(sides, row);
        row.accord = Accord::of(row.runs.iter().flatten());
    }
    rows
}

fn is_of(row: &Abreast, comparison: &Comparison) -> bool {
    let Comparison { workload, metric, contender, reference, .. } = comparison;
    [&row.workload, &row.metric, &row.contender, &row.reference]
        == [workload, metric, contender, reference]
}

fn row(sides: &[Side], comparison: &Comparison) -> Abreast {
    Abreast {
        workload: comparison.workload.clone(),
        metric: comparison.metric.clone(),
        unit: comparison.unit,
        better: comparison.better,
        contender: comparison.contender.clone(),
        reference: comparison.reference.clone(),
        unlike: Vec::new(),
        runs: vec![None; sides.len()],
        accord: Accord::Alone,
    }
}

/// After the last row of the same metric, or else of the same workload, or else of all.
fn place(rows: &[Abreast], new: &Abreast) -> usize {
    let after = |alike: &dyn Fn(&Abreast) -> bool| rows.iter().rposition(alike).map(|it| it + 1);
    after(&|row| row.workload == new.workload && row.metric == new.metric)
        .or_else(|| after(&|row| row.workload == new.workload))
        .unwrap_or(rows.len())
}

/// What is not the same in the runs that have the comparison.
fn unlike(sides: &[Side], row: &Abreast) -> Vec<String> {
    let its = sides.iter().zip(&row.runs).filter(|(_, comparison)| comparison.is_some());
    let its: Vec<Side> = its.map(|(side, _)| *side).collect();
    let mut works = Vec::new();
    for side in &its {
        works.push(side.plan.workloads.iter().find(|it| it.name == row.workload));
    }
    let mut terms = terms::of_work(&works);
    terms.extend(terms::of_contender(&its, &row.contender));
    terms.extend(terms::of_contender(&its, &row.reference));
    terms.into_iter().filter(|term| !term.equal).map(|term| term.what).collect()
}

#[cfg(test)]
mod tests {
    use super::super::compare::Judge;
    use super::super::testing::{self, plan, record};
    use super::*;
    use crate::model::{Plan, Record, Run, Sample, Unit, Verdict};

    const PLAN: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                        [[workload]]\nname = \"w\"\ncommand = \"true\"\ncache = \"warm\"\n";

    fn run(name: &str, kernel: &str, processor: &str) -> Run {
        testing::run(name, &[("kernel", kernel), ("processor", processor), ("devices", name)])
    }

    /// Eight rounds in which `b` takes so many times as long as `a`.
    fn records(plan: &Plan, times: f64) -> Vec<Record> {
        let timed = |round: u32, name: &str, seconds: f64| {
            let seconds = seconds * (1.0 + f64::from(round * 7 % 5) / 500.0);
            let samples = vec![Sample::lower("wall_time", seconds, Unit::Seconds)];
            Record { samples, ..record(round, "w", name) }
        };
        let of = |name: &str| if name == "b" { times } else { 1.0 };
        let names = plan.contenders.iter().map(|it| it.name.as_str()).collect::<Vec<_>>();
        (1..=8)
            .flat_map(|round| names.iter().map(move |name| timed(round, name, of(name))))
            .collect()
    }

    fn of(parts: &[(Run, Plan, f64)]) -> Joined {
        let records: Vec<_> = parts.iter().map(|(_, plan, it)| records(plan, *it)).collect();
        let sides: Vec<Side> = parts
            .iter()
            .zip(&records)
            .map(|((run, plan, _), records)| Side { run, plan, records })
            .collect();
        let judged: Vec<_> =
            sides.iter().map(|s| Judge::new(s.plan).comparisons(s.records)).collect();
        joined(&sides, &judged.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn differing(joined: &Joined) -> Vec<&str> {
        joined.terms.iter().filter(|term| !term.equal).map(|term| term.what.as_str()).collect()
    }

    #[test]
    fn runs_of_two_kernels_stand_beside_each_other() {
        let parts = [("6.1", 2.0), ("6.12", 0.5)]
            .map(|(kernel, times)| (run("same", kernel, "x"), plan(PLAN), times));
        let joined = of(&parts);
        assert_eq!(joined.names, ["same", "same (2)"]);
        assert_eq!(differing(&joined), ["kernel"], "which loop device was free is chance");
        assert!(joined.one_machine && joined.unlike.is_empty());
        let [row] = &joined.verdicts[..] else { panic!("{:?}", joined.verdicts) };
        assert_eq!((row.accord, row.unlike.len()), (Accord::Opposed, 0));
        let verdicts: Vec<_> = row.runs.iter().flatten().map(|it| it.verdict).collect();
        assert_eq!(verdicts, [Verdict::Slower, Verdict::Faster]);
    }

    #[test]
    fn what_bears_a_name_and_is_not_the_same_is_said() {
        let other = PLAN.replace("\"true\"", "\"false\"").replace(
            "name = \"b\"",
            "name = \"b\"\nmount = [\"noatime\"]\n[[contender]]\nname = \"c\"",
        ) + "[bed]\nsize = \"1G\"\n";
        let joined = of(&[
            (run("one", "6.1", "x"), plan(PLAN), 2.0),
            (run("two", "6.1", "y"), plan(&other), 2.0),
        ]);
        assert!(!joined.one_machine);
        assert_eq!(
            differing(&joined),
            ["processor", "bed: size", "b: mount", "contender c", "w: command"]
        );
        assert_eq!(joined.unlike[0].what, "the bed's size");
        let rows: Vec<_> =
            joined.verdicts.iter().map(|it| (it.contender.as_str(), it.accord)).collect();
        assert_eq!(rows, [("b", Accord::Same), ("c", Accord::Alone)]);
        assert_eq!(joined.verdicts[0].unlike, ["w: command", "b: mount"]);
        assert!(joined.verdicts[1].runs[0].is_none() && joined.verdicts[1].unlike.is_empty());
    }

    #[test]
    fn another_reference_is_another_comparison() {
        let other = format!("{PLAN}[judgement]\nreference = \"b\"\n");
        let joined = of(&[
            (run("one", "6.1", "x"), plan(PLAN), 2.0),
            (run("two", "6.1", "x"), plan(&other), 2.0),
        ]);
        let rows: Vec<_> = joined
            .verdicts
            .iter()
            .map(|it| (it.contender.as_str(), it.reference.as_str(), it.runs[0].is_some()))
            .collect();
        assert_eq!(rows, [("b", "a", true), ("a", "b", false)]);
        assert_eq!(differing(&joined), ["judgement: reference"]);
    }
}
