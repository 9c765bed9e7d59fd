//! The figures of every trial: a dot each, in the order of the rounds.

use maud::{Markup, html};

use super::super::{Report, table, words};
use super::drawing::{Figure, Live, Place, WIDTH, named};
use super::palette;
use super::plot::{LINE, axis, marks, percent, place, row_text, stretched};
use super::scale::Scale;
use crate::model::{Better, Record, Sample, Workload, median};

/// Height of a row's dots, in px.
const STRIP: f64 = 30.0;
/// From so many dots on they are drawn small.
const MANY: usize = 150;

/// A row: whose dots, and the dots with their records.
struct Row<'a> {
    name: String,
    dots: Vec<(&'a Record, &'a Sample)>,
    median: f64,
}

/// A figure for each metric of `workload` that is judged and that trials have.
pub(super) fn figures(report: &Report, workload: &Workload) -> Vec<Figure> {
    let primary = workload.primary();
    primary.iter().filter_map(|metric| figure(report, workload, metric)).collect()
}

fn figure(report: &Report, workload: &Workload, metric: &str) -> Option<Figure> {
    let rows = rows(report, workload, metric);
    let sample = rows.first()?.dots.first()?.1;
    let scale = Scale::around(rows.iter().flat_map(|row| &row.dots).map(|(_, it)| it.value));
    let mut drawn = Vec::new();
    let mut top = 0.0;
    for row in &rows {
        let shown = table::shown(metric, sample.unit, row.median);
        let trials = row.dots.len();
        let s = if trials == 1 { "" } else { "s" };
        let says = format!("median {shown}, {trials} trial{s}");
        let (text, height) = row_text(top, &row.name, &says);
        drawn.push(text);
        drawn.push(strip(report, row, metric, &scale, top + height));
        top += height + STRIP + 6.0;
    }
    let ticks = scale.ticks(4, sample.unit);
    let shown = |tick: &f64| (scale.place(*tick), table::shown(metric, sample.unit, *tick));
    let drawing = html! {
        (marks(&ticks.iter().map(shown).collect::<Vec<_>>(), 0.0, top))
        @for part in &drawn { (part) }
        (axis(top, &format!("{}, {}", words::figure(metric), better(sample))))
    };
    Some(Figure {
        name: named(&[&workload.name, metric, "rounds"]),
        title: format!("{}: every trial", words::figure(metric)),
        caption: caption(&rows, metric, sample),
        place: Place::Rounds { workload: workload.name.clone(), metric: metric.into() },
        live: Live::Dots,
        height: top + 2.0 * LINE,
        drawing,
    })
}

fn rows<'a>(report: &Report<'a>, workload: &Workload, metric: &str) -> Vec<Row<'a>> {
    let contenders = report.plan.contenders.iter().map(|contender| contender.name.clone());
    let arms = report.plan.arms(workload).into_iter().map(|arm| arm.name);
    let row = |name: String| {
        let records = table::records(report, workload, &name).into_iter();
        let dots: Vec<_> = records.filter_map(|it| Some((it, it.sample(metric)?))).collect();
        let median = median(dots.iter().map(|(_, sample)| sample.value))?;
        Some(Row { name, dots, median })
    };
    contenders.chain(arms).filter_map(row).collect()
}

/// The dots, the first round on top, and a line at their median.
fn strip(report: &Report, row: &Row, metric: &str, scale: &Scale, top: f64) -> Markup {
    let last = (row.dots.len() - 1).max(1) as f64;
    let mut path = String::with_capacity(row.dots.len() * 14);
    let mut shown = String::new();
    for (index, (record, sample)) in row.dots.iter().enumerate() {
        let y = 4.0 + (STRIP - 8.0) * index as f64 / last;
        // A line without length is a dot: its caps are round.
        path += &format!("M{:.1} {y:.1}h.01", scale.place(sample.value) * WIDTH);
        let value = table::shown(metric, sample.unit, sample.value);
        let gap = if index == 0 { "" } else { "|" };
        shown += &format!("{gap}round {}, trial {}: {value}", record.key.round, record.number);
    }
    let is_many = row.dots.len() > MANY;
    let colour = palette::class(place(report, &row.name));
    let middle = percent(scale.place(row.median));
    let dots = html! {
        path.dots.(colour).many[is_many] d=(path) data-name=(row.name) data-shown=(shown) {}
    };
    html! {
        (stretched(top, STRIP, &dots))
        line.middle x1=(middle) x2=(middle) y1=(top) y2=(top + STRIP) {}
    }
}

fn better(sample: &Sample) -> &'static str {
    match sample.better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
    }
}

fn caption(rows: &[Row], metric: &str, sample: &Sample) -> String {
    let shown = |value: f64| table::shown(metric, sample.unit, value);
    let each = rows.iter().map(|row| {
        let values = || row.dots.iter().map(|(_, sample)| sample.value);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        format!("{} {} to {}", row.name, shown(low), shown(high))
    });
    let better = better(sample);
    let ranges = each.collect::<Vec<_>>().join("; ");
    format!(
        "A dot is a trial, the first round on top, the line the median; {better}. From the \
         smallest to the largest: {ranges}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::run;
    use crate::model::Plan;

    #[test]
    fn without_trials_there_is_no_figure() {
        let text = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n[[workload]]\n\
                    name = \"w\"\ncommand = \"x\"\n";
        let plan = Plan::parse(text).unwrap();
        let run = run("", &[]);
        let report = Report {
            run: &run,
            plan: &plan,
            records: &[],
            comparisons: &[],
            findings: &[],
            published: &[],
            causes: &[],
            claims: &[],
            is_packed: false,
        };
        assert!(figures(&report, &plan.workloads[0]).is_empty());
        assert!(super::super::figures(&report, &[]).is_empty());
    }
}
