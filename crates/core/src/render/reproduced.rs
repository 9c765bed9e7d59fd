//! A study's claims, with three answers: what the study says, what this project's published run
//! answered, and what the run here answers.

use std::collections::BTreeMap;

use super::claims::{EXTRAPOLATED, claimed, cut, shown, tally};
use super::paint::{Paint, Painted, filled, hanging};
use super::text::one_line;
use super::words::{self, about, counted};
use crate::model::claim::{Answer, Answered};
use crate::model::{Plan, Precedent, Ruling};

/// Blanks before every line, and between columns.
const INDENT: usize = 2;
/// The width of each column: the claim, the study's ratio, our answer; the last one's ends
/// the line.
const WIDTHS: [usize; 3] = [36, 15, 13];
/// So many of the claims on which the two runs differ are named.
const NAMED: usize = 3;

/// Every claim on a line of its own, what the signs mean, and where the two runs differ.
/// `precedent` is `None` where no run of the study is published.
pub fn reproduced(claims: &[Answered], precedent: Option<&Precedent>) -> Painted {
    let mut out = Painted::default();
    let there = |it: &Answered| precedent.and_then(|known| known.of(it));
    out.add_wrapped(Paint::Strong, INDENT, &summary(claims, precedent));
    out.add(Paint::Plain, "\n");
    let ours = if precedent.is_some() { "our run" } else { "" };
    line(&mut out, ["claim", "the study", ours, "here"].map(|it| (Paint::Soft, it.into())));
    for it in claims {
        let sign = if it.claim.to.is_some() { " *" } else { "" };
        let text = cut(&one_line(&it.claim.text), WIDTHS[0] - INDENT - sign.len());
        let text = (Paint::Plain, text + sign);
        let study = (Paint::Plain, claimed(&it.claim));
        let now = cell(it.answer, it.measured.map(|[_, low, high]| (low, high)));
        line(&mut out, [text, study, there(it).map_or((Paint::Soft, "".into()), ruled), now]);
    }
    out.add(Paint::Plain, "\n");
    out.add_wrapped(Paint::Soft, INDENT, &legend(claims, precedent));
    out
}

/// One line of the table.
fn line(out: &mut Painted, cells: [(Paint, String); 4]) {
    out.add(Paint::Plain, &" ".repeat(INDENT));
    for (at, (paint, text)) in cells.into_iter().enumerate() {
        let text = WIDTHS.get(at).map_or(text.clone(), |width| filled(&text, *width));
        out.add(paint, &text);
    }
    out.add(Paint::Plain, "\n");
}

fn ruled(it: &Ruling) -> (Paint, String) {
    cell(it.answer, it.interval.map(|(low, high)| (low, high.unwrap_or(f64::INFINITY))))
}

/// An answer's sign, and the interval that it rests on.
fn cell(answer: Answer, interval: Option<(f64, f64)>) -> (Paint, String) {
    let (paint, sign, _) = shown(answer);
    // An interval of more than a hundredfold either way is just open: figures would fill the line.
    let span = interval.map_or_else(String::new, |(low, high)| match low < 0.01 && high > 100.0 {
        true => "<0.01->100".into(),
        false => words::span(low, high),
    });
    (paint, format!("{sign} {span}").trim_end().into())
}

/// How many hold here, and of how many that both runs decide they point the same way.
fn summary(claims: &[Answered], precedent: Option<&Precedent>) -> String {
    let tallied = tally(claims).unwrap_or_else(|| "The study claims nothing.".into());
    let Some(precedent) = precedent else {
        return format!("{tallied} No run of this study is published: nothing stands beside it.");
    };
    let both = claims.iter().filter_map(|it| Some((it, precedent.of(it)?)));
    let both = both.filter(|(it, there)| is_decided(it.answer) && is_decided(there.answer));
    let (alike, apart): (Vec<_>, Vec<_>) =
        both.partition(|(it, there)| confirms(it.answer) == confirms(there.answer));
    let all = alike.len() + apart.len();
    if all == 0 {
        return format!("{tallied} No claim is decided by both the published run and this one.");
    }
    let beside = match apart.len() {
        0 => format!("Of {all} claims that both runs decide, all point the same way"),
        _ => format!("Of {all} claims that both runs decide, {} point the same way", alike.len()),
    };
    let named = apart.iter().take(NAMED).map(|(it, _)| format!("{:?}", one_line(&it.claim.text)));
    let named: Vec<String> = named.collect();
    let more = match apart.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {}", counted(more, "other")),
    };
    let but = if named.is_empty() { "" } else { "; not: " };
    format!("{tallied} {beside}{but}{}{more}.", named.join(", "))
}

fn is_decided(answer: Answer) -> bool {
    confirms(answer) || matches!(answer, Answer::DoesNotHold | Answer::TooSmallToMatter)
}

fn confirms(answer: Answer) -> bool {
    matches!(answer, Answer::Holds | Answer::HoldsInDirection)
}

/// What the signs mean that are there, and the ratios.
fn legend(claims: &[Answered], precedent: Option<&Precedent>) -> String {
    let there = precedent.into_iter().flat_map(|it| it.claims.iter().map(|it| it.answer));
    let all: Vec<Answer> = claims.iter().map(|it| it.answer).chain(there).collect();
    let said = Answer::ALL.into_iter().filter(|it| all.contains(it));
    let signs: Vec<String> = said.map(|it| format!("{} {}", shown(it).1, it.label())).collect();
    let ratios = "Ratios: above 1, the one that the claim names is better.";
    let run =
        precedent.map_or_else(String::new, |it| format!(" The published run: {}.", records(it)));
    let has_sign = claims.iter().any(|it| it.claim.to.is_some());
    let beyond = if has_sign { format!(" {EXTRAPOLATED}") } else { String::new() };
    format!("{}. {ratios}{beyond}{run}", signs.join(", "))
}

/// Where our answers are from: one run, and those that answered what it left undecided.
fn records(precedent: &Precedent) -> String {
    let mut again: BTreeMap<&str, usize> = BTreeMap::new();
    for run in precedent.claims.iter().filter_map(|it| it.run.as_deref()) {
        *again.entry(run).or_default() += 1;
    }
    let again = again.into_iter().map(|(run, claims)| {
        format!(", and record/{run} for {} that it left undecided", counted(claims, "claim"))
    });
    format!("record/{}{}", precedent.answered(), again.collect::<String>())
}

/// What a run of the study would do here, and how long that takes by the published one.
pub fn reproduced_soon(name: &str, plan: &Plan, precedent: Option<&Precedent>) -> String {
    let names: Vec<&str> = plan.contenders.iter().map(|it| it.name.as_str()).collect();
    let time = precedent.and_then(|it| Some((it.seconds(plan)?, it)));
    let time = match time {
        Some((seconds, it)) => {
            let from = words::ratio(it.scale);
            format!(
                "about {} for all rounds, going by record/{} at {from} of the size",
                about(seconds),
                it.run
            )
        }
        None => "unknown: no run of it is published; its first round will tell".into(),
    };
    let budget = plan.judgement.budget.map_or_else(String::new, |it| format!("; ends after {it}"));
    let work = counted(plan.workloads.len(), "workload");
    let claims = counted(plan.claims.len(), "claim");
    let scale = words::ratio(plan.scale.unwrap_or(1.0));
    let rounds = plan.judgement.rounds();
    let rounds = rounds.map_or_else(String::new, |it| format!(", up to {it} rounds"));
    let mut rows = vec![
        ("compared", names.join(", ")),
        ("by", format!("{work}, {claims}")),
        ("size", format!("{scale} of the study's{rounds}")),
        ("time", format!("{time}{budget}")),
    ];
    let held = plan.held_down();
    rows.extend((!held.is_empty()).then(|| ("limits", held.join("; "))));
    beforehand(&format!("{name}: {}", plan.question), &rows)
}

/// What a command is about to do: a heading, and rows of what and how.
pub fn beforehand(heading: &str, rows: &[(&str, String)]) -> String {
    let rows = rows.iter().map(|(what, how)| format!("  {what:9}  {}", hanging(how, 13)));
    std::iter::once(hanging(heading, 2)).chain(rows).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::paint::{WIDTH, columns};
    use super::super::testing::answered;
    use super::*;

    fn precedent(claims: &[Answered]) -> Precedent {
        let ruling = |it: &Answered| Ruling {
            text: it.claim.text.clone(),
            answer: it.answer,
            interval: Some((0.00123, None)),
            run: None,
        };
        let claims = claims.iter().map(ruling).collect();
        Precedent {
            run: "2026-01-01-it".into(),
            answered: None,
            scale: 1.0,
            trial_s: Default::default(),
            claims,
        }
    }

    #[test]
    fn what_devices_are_held_down_to_is_said_before_a_run() {
        let text = "[[contender]]\nname = \"c0\"\n[[workload]]\nname = \"t0\"\ncommand = \"x\"\n";
        let of =
            |bed: &str| reproduced_soon("it", &Plan::parse(&format!("{bed}{text}")).unwrap(), None);
        let said = of("bed.limits = { iops = 8050 }\n");
        assert!(said.ends_with("  limits     each device is limited to 8050 IOPS"), "{said}");
        assert!(!of("").contains("limits"));
    }

    #[test]
    fn every_answer_fits_its_line() {
        let claims: Vec<Answered> =
            Answer::ALL.iter().map(|it| answered(*it, &"long ".repeat(30))).collect();
        for (place, known) in [None, Some(precedent(&claims))].into_iter().enumerate() {
            let mut claims = claims.clone();
            claims[0].claim.to = (place == 1).then_some(1_000_000);
            let shown = reproduced(&claims, known.as_ref()).plain();
            assert!(shown.lines().all(|line| columns(line) <= WIDTH), "{shown}");
            assert!(shown.contains("\n  long long"), "{shown}");
            assert!(shown.contains("  at least 2.00  "), "{shown}");
            let legend = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(legend.contains("+ holds, ~ holds in direction, - does not hold"), "{shown}");
            assert_eq!(shown.matches("… *").count(), place, "{shown}");
            assert_eq!(legend.contains(EXTRAPOLATED), place == 1, "{shown}");
        }
    }

    #[test]
    fn a_run_that_answered_what_another_left_undecided_is_named() {
        let claims: Vec<Answered> =
            ["a", "b", "c"].map(|text| answered(Answer::Holds, text)).to_vec();
        let mut known = precedent(&claims);
        for ruling in &mut known.claims[1..] {
            ruling.run = Some("2026-02-02-again".into());
        }
        assert_eq!(
            records(&known),
            "record/2026-01-01-it, and record/2026-02-02-again for 2 claims that it left undecided"
        );
    }

    #[test]
    fn what_two_runs_decide_apart_is_named() {
        let all = |answers: [Answer; 4]| -> Vec<Answered> {
            let texts = ["a", "b", "c", "d"].into_iter();
            texts.zip(answers).map(|(text, answer)| answered(answer, text)).collect()
        };
        let there = precedent(&all([
            Answer::Holds,
            Answer::DoesNotHold,
            Answer::Undecided,
            Answer::HoldsInDirection,
        ]));
        let of = |answers| summary(&all(answers), Some(&there));
        let said = of([Answer::HoldsInDirection, Answer::Holds, Answer::Holds, Answer::Holds]);
        let beside = "Of 3 claims that both runs decide, 2 point the same way; not: \"b\".";
        assert!(said.ends_with(beside), "{said}");
        assert!(of([Answer::Undecided; 4]).ends_with("by both the published run and this one."));
        assert!(summary(&all([Answer::Holds; 4]), None).contains("No run of this study"));
    }
}
