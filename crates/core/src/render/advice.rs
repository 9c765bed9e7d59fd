//! Advice, for a terminal, as Markdown and for programs.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_BORDERS_ONLY};

use super::findings::headline;
use super::grid::Grid;
use super::json;
use super::paint::fitted;
use super::sentence::{interval, rounds};
use super::text::{marked, marked_list, visible};
use super::words::{self, figure, listed, ratio};
use crate::model::{Advice, Answer, Basis, Condition, Finding, Lever, Standing, Turn, Verdict};

/// For a terminal; ends with a line break. `command` is what was typed, but for its options.
pub fn advice(advice: &Advice, command: &str) -> String {
    let mut out = format!("{}: {}\n\n", advice.purpose, advice.about);
    out += &format!("{}\n", answer(advice));
    if let Some([write, run]) = way(advice, command) {
        out += &format!("To measure what is missing:\n  {write}\n  {run}\n");
    }
    if has_ratios(advice) {
        out += &format!("\n{}\n", table(advice, UTF8_BORDERS_ONLY));
    }
    for (title, lines) in sections(advice) {
        if !lines.is_empty() {
            out += &format!("\n{title}\n  {}\n", lines.join("\n  "));
        }
    }
    fitted(&out)
}

/// As Markdown; ends with a line break.
pub fn advice_markdown(advice: &Advice, command: &str) -> String {
    let mut out = format!("# {}\n\n{}\n\n", marked(&advice.purpose), marked(&advice.about));
    out += &format!("**{}**\n", marked(&answer(advice)));
    if let Some([write, run]) = way(advice, command) {
        out += &format!("\nTo measure what is missing: `{write}`, and then `{run}`\n");
    }
    if has_ratios(advice) {
        out += &format!("\n{}\n", table(advice, ASCII_MARKDOWN));
    }
    for (title, lines) in sections(advice) {
        if !lines.is_empty() {
            out += &format!("\n## {title}\n\n{}", marked_list(&lines));
        }
    }
    visible(&out).into_owned()
}

/// As a JSON document; ends with a line break.
pub fn advice_json(advice: &Advice) -> String {
    json::stamped(advice)
}

/// The answer as a sentence.
pub(super) fn answer(advice: &Advice) -> String {
    let (purpose, run) = (&advice.purpose, &advice.run);
    let part = match measured_share(advice) {
        None => String::new(),
        Some((measured, all)) => {
            let missing: Vec<String> = advice.missing.iter().map(|it| it.what.clone()).collect();
            format!(", by {measured} of {all} of what counts (not by {}),", listed(&missing))
        }
    };
    match &advice.answer {
        Answer::Best(name) => {
            format!("{name} is the best here for {purpose}{part} as {run} measured it.")
        }
        Answer::Equivalent(names) => format!(
            "They are equivalent here for {purpose}{part} as {run} measured it: {} differ by less \
             than {}.",
            listed(names),
            advice.margin
        ),
        Answer::Even(names) => format!(
            "{} come out even here for {purpose}{part} as {run} measured it, but are not alike: \
             by the means, which have no interval here, {}. Which of these counts more to you \
             decides.",
            listed(names),
            ahead(advice, names)
        ),
        Answer::Undecided(names) => format!(
            "No verdict for {purpose}{part} by {run}: the best is one of {}, and the data do not \
             say which.",
            listed(names)
        ),
        Answer::Only(name) => {
            format!("{name} alone is left for {purpose}: there is nothing to compare it with.")
        }
        Answer::Nobody => format!("No contender of {run} can be advised for {purpose}."),
        Answer::Unmeasured => {
            let decisive: Vec<String> =
                advice.missing.iter().filter(|it| it.decides).map(|it| it.what.clone()).collect();
            match decisive.is_empty() {
                true => format!("No opinion on {purpose}: {run} measured nothing of what counts."),
                false => format!(
                    "No advice on {purpose} yet: {run} did not measure what decides, {}.",
                    listed(&decisive)
                ),
            }
        }
    }
}

/// Who is ahead of the others in what, by the means: no interval stands behind it.
fn ahead(advice: &Advice, names: &[String]) -> String {
    let mut leads: Vec<String> = Vec::new();
    for it in &advice.weighed {
        let mut ratios: Vec<(&String, f64)> =
            names.iter().filter_map(|name| Some((name, *it.ratios.get(name)?))).collect();
        ratios.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let (Some((first, most)), Some((_, least))) = (ratios.first(), ratios.last()) else {
            continue;
        };
        if *most > least * (1.0 + advice.margin.0) {
            leads.push(format!("{first} is ahead in {} ({} times)", it.what, ratio(most / least)));
        }
    }
    listed(&leads)
}

/// How to measure what is missing: two commands.
fn way(advice: &Advice, command: &str) -> Option<[String; 2]> {
    let file = format!("{}.toml", advice.purpose);
    let is_missing = !advice.missing.is_empty();
    is_missing.then(|| [format!("{command} --plan {file}"), format!("sudo fsverdict run {file}")])
}

/// The weight of what was measured and of all, where something is missing.
fn measured_share(advice: &Advice) -> Option<(f64, f64)> {
    let measured: f64 = advice.weighed.iter().map(|it| it.weight).sum();
    let missing: f64 = advice.missing.iter().map(|it| it.weight).sum();
    (missing > 0.0 && measured > 0.0).then_some((measured, measured + missing))
}

/// Somebody leads, and the others are measured by it.
pub(super) fn has_ratios(advice: &Advice) -> bool {
    advice.weighed.iter().any(|it| !it.ratios.is_empty())
}

fn table(advice: &Advice, preset: &str) -> Grid {
    let names: Vec<&String> =
        advice.weighed.iter().take(1).flat_map(|it| it.ratios.keys()).collect();
    let header = ["what counts", "measured by", "weight"].map(String::from).into_iter();
    let header = header.chain(names.iter().map(ToString::to_string));
    let mut table = Grid::new(preset, header);
    for it in &advice.weighed {
        let ratio =
            |name: &&String| it.ratios.get(*name).map_or("-".into(), |it| words::ratio(*it));
        let cells = [it.what.clone(), figure(&it.metric), it.weight.to_string()].into_iter();
        table.add(cells.chain(names.iter().map(ratio)));
    }
    table.right(2..table.width);
    table
}

fn sections(advice: &Advice) -> [(&'static str, Vec<String>); 6] {
    let standings = advice.standings.iter().map(|it| standing(advice, it)).collect();
    let left_out = advice.left_out.iter().map(|(name, why)| format!("{name}: {why}"));
    let missing = advice.missing.iter().map(|it| {
        let (what, weight, figure) = (&it.what, it.weight, figure(&it.metric));
        format!("{what}, weight {weight}: {figure} of {}; {}", it.workload, it.why)
    });
    let finding = |it: &Finding| format!("{}: {}", headline(it), it.advice);
    [
        ("All that was measured together", standings),
        ("Conditions", advice.conditions.iter().map(condition).collect()),
        ("Left out", left_out.collect()),
        ("Not measured", missing.collect()),
        ("Findings", advice.findings.iter().map(finding).collect()),
        ("What would change the answer", advice.turns.iter().map(turn).collect()),
    ]
}

/// The verdict on two of them, in all that was measured together.
pub(super) fn standing(advice: &Advice, it: &Standing) -> String {
    let Standing { contender, reference, .. } = it;
    let Some(ratio) = it.ratio else {
        return format!("{contender} and {reference} have no whole round together.");
    };
    // Every two contenders have one.
    let all = advice.standings.len() as u32;
    let interval = interval(advice.confidence, all, it.low, it.high);
    let evidence =
        format!("{} times as good ({interval}, {})", words::ratio(ratio), rounds(it.rounds));
    match it.verdict {
        Verdict::Faster => format!("{contender} is better than {reference}, {evidence}."),
        Verdict::TriviallyFaster => format!(
            "{contender} is better than {reference}, but by less than {}: {evidence}.",
            advice.margin
        ),
        Verdict::FasterSizeOpen => format!(
            "{contender} is better than {reference}, {evidence}; whether by more than {} is open.",
            advice.margin
        ),
        Verdict::Equivalent => {
            let word = if are_alike(advice, it) { "are equivalent" } else { "come out even" };
            format!("{contender} and {reference} {word}, {evidence}.")
        }
        _ => format!("No verdict on {contender} against {reference}, {evidence}."),
    }
}

/// Neither is ahead of the other in anything by more than the margin.
fn are_alike(advice: &Advice, it: &Standing) -> bool {
    ahead(advice, &[it.contender.clone(), it.reference.clone()]).is_empty()
}

fn condition(it: &Condition) -> String {
    let Condition { contender, feature, evidence, .. } = it;
    let basis = match it.basis {
        Basis::Documented => "documented",
        Basis::Measured => "measured",
        Basis::Unknown => "unknown",
    };
    let answer = if it.met { "yes" } else { "no" };
    format!("{contender}: {feature}: {answer}, {basis}: {evidence}")
}

pub(super) fn turn(it: &Turn) -> String {
    let Turn { contender, what, .. } = it;
    match it.lever {
        Lever::WeightAbove(weight) => {
            format!("{contender} would lead if {what} weighed more than {weight:.1}")
        }
        Lever::WeightBelow(weight) => {
            format!("{contender} would lead if {what} weighed less than {weight:.1}")
        }
        Lever::RatioAbove(ratio) => format!(
            "{contender} would lead if it were more than {ratio:.2} times as good in what was not \
             measured: {what}"
        ),
    }
}
