//! The claims of a plan with their answers, before anything else that a report says.

use super::Report;
use super::grid::Grid;
use super::paint::{Paint, Painted, columns, filled};
use super::text::one_line;
use super::words::{self, about, counted};
use crate::model::claim::{Answer, Answered, Claim, Times, Way};

/// Blanks before every line, and between columns.
const INDENT: usize = 2;
/// What the figures behind the claims are.
const RATIOS: &str = "After a claim: the measured ratio; above 1, the one it names is better.";
/// The same below a table.
pub(super) const RATIOS_OF_TABLE: &str =
    "claimed and here are ratios: above 1, the one that the claim names is better.";
/// What is said where some claim is about more than was measured.
pub(super) const EXTRAPOLATED: &str =
    "*: extrapolated, because no trial had so many operations or files.";
/// The width of an answer on a terminal.
const ANSWER: usize = 14;
/// The width of a claim on a terminal; a longer one is cut there, and whole in every table.
const TEXT: usize = 47;

/// "5 of 9 claims hold, 2 do not, 2 are undecided": how often there is which answer.
pub(super) fn tally(claims: &[Answered]) -> Option<String> {
    if claims.is_empty() {
        return None;
    }
    let count = |answer| claims.iter().filter(|it| it.answer == answer).count();
    let part = |answer: Answer| {
        let count = count(answer);
        let (is, does) = if count == 1 { ("is", "does") } else { ("are", "do") };
        let said = match answer {
            Answer::Holds => {
                let s = if count == 1 || claims.len() == 1 { "s" } else { "" };
                return Some(format!("{count} of {} hold{s}", counted(claims.len(), "claim")));
            }
            Answer::HoldsInDirection => "in direction".into(),
            Answer::DoesNotHold => format!("{does} not"),
            Answer::TooSmallToMatter => {
                let said = format!("in {count} the difference is too small to matter");
                return (count > 0).then_some(said);
            }
            Answer::MeasuredSomethingElse => "measured something else".into(),
            open => format!("{is} {}", open.label()),
        };
        (count > 0).then(|| format!("{count} {said}"))
    };
    let parts: Vec<String> = Answer::ALL.into_iter().filter_map(part).collect();
    Some(format!("{}.", parts.join(", ")))
}

/// Whether what is claimed leads a report: where none of it can be measured, the verdicts do.
pub(super) fn lead(claims: &[Answered]) -> bool {
    claims.iter().any(|it| it.answer != Answer::NotMeasurableHere)
}

/// Adds the list, a line each.
pub(super) fn draw(out: &mut Painted, claims: &[Answered]) {
    let Some(tally) = tally(claims) else { return };
    out.add_wrapped(Paint::Strong, INDENT, &tally);
    out.add(Paint::Plain, "\n");
    for it in claims {
        let (paint, _, answer) = shown(it.answer);
        out.add(Paint::Plain, &" ".repeat(INDENT));
        out.add(paint, &filled(answer, ANSWER));
        let span = measured(it) + if is_extrapolated(it) { " *" } else { "" };
        let text = cut(&one_line(&it.claim.text), TEXT);
        let text = if span.is_empty() { text } else { filled(&text, TEXT + INDENT) };
        out.add(Paint::Plain, &format!("{}{text}{span}\n", " ".repeat(INDENT)));
    }
    if claims.iter().any(|it| it.measured.is_some()) {
        out.add(Paint::Soft, "\n");
        out.add_wrapped(Paint::Soft, INDENT, RATIOS);
    }
    if claims.iter().any(is_extrapolated) {
        out.add_wrapped(Paint::Soft, INDENT, EXTRAPOLATED);
    }
    out.add(Paint::Plain, "\n");
}

/// Its interval is of more than any trial had.
pub(super) fn is_extrapolated(answered: &Answered) -> bool {
    answered.measured.is_some() && answered.claim.to.is_some()
}

/// The answer's paint, its sign, and itself in a narrow column.
pub(super) fn shown(answer: Answer) -> (Paint, char, &'static str) {
    match answer {
        Answer::Holds => (Paint::Better, '+', "holds"),
        Answer::HoldsInDirection => (Paint::Better, '~', "in direction"),
        Answer::DoesNotHold => (Paint::Worse, '-', "does not hold"),
        Answer::TooSmallToMatter => (Paint::Worse, '=', "too small"),
        Answer::Undecided => (Paint::Soft, '?', "undecided"),
        Answer::MeasuredSomethingElse => (Paint::Void, 'x', "void"),
        Answer::NotMeasurableHere => (Paint::Soft, '.', "not measurable"),
    }
}

/// `text` in at most `width` columns.
pub(super) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.into();
    }
    let mut short = String::new();
    for c in text.chars() {
        if columns(&short) + columns(&c.to_string()) >= width {
            break;
        }
        short.push(c);
    }
    format!("{}…", short.trim_end())
}

/// Every claim with what is claimed, what was measured, the answer and why.
pub(super) fn table(report: &Report, preset: &str) -> Grid {
    let mut table = Grid::new(preset, ["claim", "claimed", "here", "answer", "why"]);
    for it in report.claims {
        let Claim { text, stands, condition, .. } = &it.claim;
        let mut text = text.clone();
        if !condition.is_empty() {
            text += &format!(", {condition}");
        }
        if !stands.is_empty() {
            text += &format!(" ({stands})");
        }
        table.add([
            text,
            claimed(&it.claim),
            measured(it),
            it.answer.label().into(),
            why(report, it),
        ]);
    }
    table
}

/// What is claimed of the ratio.
pub(super) fn claimed(claim: &Claim) -> String {
    let at = |word: &str, end: f64| format!("{word} {}", words::ratio(end));
    match claim {
        Claim { is: Some(Way::Better), .. } => "better".into(),
        Claim { is: Some(Way::Worse), .. } => "worse".into(),
        Claim { is: Some(Way::Equal), .. } => "equal".into(),
        Claim { times: Some(Times::About(ratio)), .. } => words::ratio(*ratio),
        Claim { times: Some(Times::Range([low, high])), .. } => words::span(*low, *high),
        Claim { at_least: Some(low), at_most: Some(high), .. } => words::span(*low, *high),
        Claim { at_least: Some(low), .. } => at("at least", *low),
        Claim { at_most: Some(high), .. } => at("at most", *high),
        _ => String::new(),
    }
}

/// The interval that was measured.
fn measured(answered: &Answered) -> String {
    answered.measured.map_or_else(String::new, |[_, low, high]| words::span(low, high))
}

/// Why, and what would settle it.
fn why(report: &Report, answered: &Answered) -> String {
    let Answered { why, open, measured, rounds_to_settle, .. } = answered;
    let done = f64::from(report.rounds().max(1));
    match rounds_to_settle {
        Some(rounds) => {
            let rounds_more = counted(*rounds as usize, "round");
            let seconds = report.run.elapsed_s / done * f64::from(*rounds);
            let time = if seconds > 0.0 { format!(", {}", about(seconds)) } else { String::new() };
            format!("{why}; about {rounds_more} more would settle it{time}")
        }
        None if *open && is_extrapolated(answered) => {
            format!("{why}; a larger workload would tell more than more rounds")
        }
        None if *open && measured.is_some() => format!("{why}; more rounds would not settle it"),
        None => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use comfy_table::presets::ASCII_MARKDOWN;

    use super::super::paint::WIDTH;
    use super::super::testing::{grid, report};
    use super::*;
    use crate::model::Verdict;

    fn answered(answer: Answer, text: &str) -> Answered {
        Answered {
            claim: Claim { text: text.into(), times: Some(Times::About(2.0)), ..Claim::default() },
            answer,
            open: answer == Answer::Undecided,
            claimed: [Some(1.9), Some(2.1)],
            measured: Some([2.0, 0.00123, 234.5]),
            why: "so it is".into(),
            rounds_to_settle: (answer == Answer::Undecided).then_some(9),
        }
    }

    #[test]
    fn answers_are_counted() {
        let counted = |answers: &[Answer]| {
            let claims: Vec<Answered> = answers.iter().map(|it| answered(*it, "x")).collect();
            tally(&claims).unwrap_or_default()
        };
        assert_eq!(counted(&[]), "");
        assert_eq!(counted(&[Answer::Holds]), "1 of 1 claim holds.");
        assert_eq!(
            counted(&Answer::ALL),
            "1 of 7 claims holds, 1 in direction, 1 does not, in 1 the difference is too small to \
             matter, 1 is undecided, 1 measured something else, 1 is not measurable here."
        );
        let twice = [Answer::DoesNotHold, Answer::Undecided].repeat(2);
        assert_eq!(counted(&twice), "0 of 4 claims hold, 2 do not, 2 are undecided.");
    }

    #[test]
    fn what_can_not_be_measured_does_not_lead() {
        let leads = |answers: &[Answer]| {
            lead(&answers.iter().map(|it| answered(*it, "x")).collect::<Vec<_>>())
        };
        assert!(!leads(&[Answer::NotMeasurableHere; 2]) && !leads(&[]));
        assert!(leads(&[Answer::NotMeasurableHere, Answer::Undecided]));
    }

    #[test]
    fn each_claim_has_one_line_of_a_terminal() {
        let texts = ["short", &"long ".repeat(30), &"日本".repeat(40)];
        let all = Answer::ALL.iter().flat_map(|it| texts.iter().map(|text| answered(*it, text)));
        let claims: Vec<Answered> = all.collect();
        let mut out = Painted::default();
        draw(&mut out, &claims);
        let shown = out.plain();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|line| columns(line) <= WIDTH), "{shown}");
        assert_eq!(lines.iter().filter(|line| line.ends_with("0.0012-234")).count(), claims.len());
    }

    #[test]
    fn an_extrapolated_claim_is_marked_and_says_what_tells_more() {
        let mut it = answered(Answer::Undecided, "a is b");
        (it.claim.to, it.rounds_to_settle) = (Some(1_000_000), None);
        let claims = [it, answered(Answer::Holds, "b is c")];
        let mut out = Painted::default();
        draw(&mut out, &claims);
        let shown = out.plain();
        assert_eq!(shown.matches("0.0012-234 *\n").count(), 1, "{shown}");
        assert!(shown.contains(EXTRAPOLATED), "{shown}");
        let made = grid(&[vec![(Verdict::Undecided, 1.0)]]);
        let report = Report { claims: &claims, ..report(&made) };
        let table = table(&report, ASCII_MARKDOWN).to_string();
        assert_eq!(
            table.matches("; a larger workload would tell more than more rounds").count(),
            1
        );
    }

    #[test]
    fn an_open_claim_says_what_would_settle_it() {
        let (plan, mut run, comparisons) = grid(&[vec![(Verdict::Undecided, 1.0)]]);
        run.elapsed_s = 60.0;
        let made = (plan, run, comparisons);
        let claims = [answered(Answer::Undecided, "a is b")];
        let report = Report { claims: &claims, ..report(&made) };
        let shown = table(&report, ASCII_MARKDOWN).to_string();
        let said = "so it is; about 9 rounds more would settle it, 9 minutes";
        assert!(shown.contains(said), "{shown}");
        assert!(shown.contains("| a is b | 2.00 "), "{shown}");
    }
}
