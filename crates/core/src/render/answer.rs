//! The answer in one or two sentences: what differs most, what does not differ, and what could not
//! be told. Each is put together from verdicts, and the shortest words that fit are taken.

use super::Report;
use super::columns;
use super::findings::is_unequal;
use super::matrix::{Compared, Matrix, Tone, others, sign};
use super::ways::matters;
use super::words::{self, counted, listed, quoted};
use crate::model::{Comparison, Verdict};

/// Says how often, or at which tests, a contender is better or worse; the word is given.
type Part<'a> = dyn Fn(&[Compared], Tone, &str) -> Option<String> + 'a;

/// So many words an answer has at most.
const WORDS_MAX: usize = 40;
/// So many tests are named of a contender; more are counted.
const NAMED_MAX: usize = 2;

/// The answer.
pub(super) fn answer(report: &Report, matrix: &Matrix) -> String {
    if let Some(all) = report.failed_all() {
        return match all {
            1 => "Nothing was measured: the one trial failed.".into(),
            _ => format!("Nothing was measured: all {all} trials failed."),
        };
    }
    let all: Vec<Compared> = matrix.judged().collect();
    if all.is_empty() && report.plan.contenders.len() == 1 {
        return alone_measured(report, matrix);
    }
    if all.is_empty() {
        return "Nothing has been compared yet.".into();
    }
    if let [(_, only)] = all[..]
        && let Some(unknown) = report.unknown_metric(only)
    {
        return unknown;
    }
    if let Some(said) = in_two_ways(report, matrix, &all) {
        return said;
    }
    let after: Vec<String> = rest(report, matrix, &all).into_iter().collect();
    let room = WORDS_MAX.saturating_sub(words_of(&after.join(" ")));
    let heads = [by_name, by_count, farthest].map(|head| head(report, matrix, &all));
    let head = heads.into_iter().flatten().find(|head| words_of(head) <= room);
    let head = head.or_else(|| tally(&all));
    head.into_iter().chain(after).collect::<Vec<_>>().join(" ")
}

/// The answer for a single contender.
fn alone_measured(report: &Report, matrix: &Matrix) -> String {
    if let [work] = report.plan.workloads.as_slice() {
        return report.sentences(work).join(" ");
    }
    let (name, tests) = (report.plan.reference(), matrix.rows().count());
    format!("Only {name} was measured, at {tests} tests: there is nothing to compare it with.")
}

/// What the second way changes, and which of the two matters more if both fit. What is open is
/// reported below.
fn in_two_ways(report: &Report, matrix: &Matrix, all: &[Compared]) -> Option<String> {
    let ways = matrix.ways.as_ref()?;
    let heads = columns::heads(report, matrix, ways, all);
    let after = ways.sentence(matters(report.plan, ways, report.comparisons));
    let with_after = heads.iter().map(|head| format!("{head} {after}"));
    let said = with_after.chain(heads.iter().cloned()).find(|it| words_of(it) <= WORDS_MAX);
    Some(
        said.unwrap_or_else(|| tally(all).into_iter().chain([after]).collect::<Vec<_>>().join(" ")),
    )
}

/// What differs, of that alone.
pub(super) fn differs(report: &Report, matrix: &Matrix) -> Option<String> {
    let all: Vec<Compared> = matrix.judged().collect();
    let heads = [by_name, by_count, farthest].map(|head| head(report, matrix, &all));
    heads.into_iter().flatten().find(|head| words_of(head) <= WORDS_MAX).or_else(|| tally(&all))
}

fn words_of(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Those of a tone, the largest difference first.
fn of_tone<'a>(all: &[Compared<'a>], tone: Tone) -> Vec<Compared<'a>> {
    let its = all.iter().filter(|(_, it)| sign(it.verdict).1 == tone);
    let mut its: Vec<_> = its.copied().collect();
    its.sort_by(|(_, one), (_, other)| distance(other).total_cmp(&distance(one)));
    its
}

/// How far apart the two are, in ln units.
pub(super) fn distance(comparison: &Comparison) -> f64 {
    comparison.ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

/// The comparisons without a difference that matters: within the margin, open, void.
fn rest(report: &Report, matrix: &Matrix, all: &[Compared]) -> Option<String> {
    let [alike, open, void] =
        [Tone::Alike, Tone::Open, Tone::Void].map(|tone| of_tone(all, tone).len());
    let total = all.len();
    if let [one] = all {
        return alone(matrix, one);
    }
    let reference = short(report.plan.reference());
    let within = format!("within {} of {reference}", matrix.margin);
    match (alike, open, void) {
        (0, 0, 0) => return None,
        (it, 0, 0) if it == total => return Some(format!("All {total} are {within}.")),
        (0, it, 0) if it == total => {
            return Some(format!("None of the {total} comparisons has a verdict."));
        }
        (0, 0, it) if it == total => return Some(format!("All {total} are void.")),
        _ => {}
    }
    let mut parts: Vec<String> = Vec::new();
    let kinds = [(alike, within.as_str()), (open, "open"), (void, "void")];
    for (count, what) in kinds.into_iter().filter(|it| it.0 > 0) {
        let are = if count == 1 { "is" } else { "are" };
        parts.push(match parts.len() {
            0 => format!("{count} of {total} comparisons {are} {what}"),
            _ => format!("{count} {what}"),
        });
    }
    Some(parts.join(", ") + ".")
}

/// The same of the one comparison there is.
fn alone(matrix: &Matrix, (test, it): &Compared) -> Option<String> {
    let (contender, reference, margin) = (&it.contender, &it.reference, matrix.margin);
    let doing = quoted(&matrix.tests[*test].doing);
    let both = format!("{contender} against {reference} at {doing}");
    Some(match (sign(it.verdict).1, it.verdict) {
        (Tone::Alike, Verdict::TriviallyFaster) => format!("Better by less than {margin}: {both}."),
        (Tone::Alike, Verdict::TriviallySlower) => format!("Worse by less than {margin}: {both}."),
        (Tone::Alike, _) => format!("{contender} is within {margin} of {reference} at {doing}."),
        (Tone::Open, _) => format!("No verdict yet: {both}."),
        (Tone::Void, _) => format!("Void: {both}."),
        _ => return None,
    })
}

/// The reference's name, if it is short; else "the reference".
fn short(reference: &str) -> &str {
    /// So many words a name has at most.
    const MOST: usize = 4;
    if words_of(reference) > MOST { "the reference" } else { reference }
}

/// For each contender, the tests at which it is better and worse: their names if few, otherwise
/// their number.
fn by_name(report: &Report, matrix: &Matrix, all: &[Compared]) -> Option<String> {
    if matrix.ways.is_some() {
        return None;
    }
    each(report, matrix, all, &|its, tone, word| {
        let (total, its) = (its.len(), of_tone(its, tone));
        let named = |(test, it): &Compared| {
            let ratio = words::ratio_by(it.ratio.unwrap_or(1.0), matrix.margin);
            format!("{} ({ratio}×)", quoted(&matrix.tests[*test].doing))
        };
        match its.len() {
            0 => None,
            count if count > NAMED_MAX => {
                let most = named(&its[0]);
                Some(format!("{word} at {count} of {total} tests, most at {most}"))
            }
            _ => Some(format!("{word} at {}", listed(&its.iter().map(named).collect::<Vec<_>>()))),
        }
    })
}

/// How often each contender is better and worse.
fn by_count(report: &Report, matrix: &Matrix, all: &[Compared]) -> Option<String> {
    each(report, matrix, all, &|its, tone, word| {
        let (total, count) = (its.len(), of_tone(its, tone).len());
        (count > 0).then(|| format!("{word} at {count} of {total}"))
    })
}

/// The subjects of the answer: each contender, or in two ways all contenders of one file system.
fn parties<'a>(report: &Report<'a>, matrix: &'a Matrix) -> Vec<(&'a str, Vec<&'a str>)> {
    let contenders = &report.plan.contenders;
    match &matrix.ways {
        None => others(report.plan).map(|name| (name, vec![name])).collect(),
        Some(ways) => {
            let name = |place: &usize| contenders[*place].name.as_str();
            let rows = ways.rows.iter().zip(&ways.places);
            rows.map(|(row, places)| (row.as_str(), places.iter().map(name).collect())).collect()
        }
    }
}

/// "Against ext4, xfs is better at a and worse at b; btrfs is worse at 6 of 7 tests."
fn each(report: &Report, matrix: &Matrix, all: &[Compared], part: &Part) -> Option<String> {
    let clause = |(name, contenders): &(&str, Vec<&str>)| {
        let is_its = |(_, it): &&Compared| contenders.contains(&it.contender.as_str());
        let its: Vec<_> = all.iter().filter(is_its).copied().collect();
        let parts = [(Tone::Better, "better"), (Tone::Worse, "worse")];
        let parts: Vec<String> =
            parts.iter().filter_map(|(tone, word)| part(&its, *tone, word)).collect();
        let is_better = !of_tone(&its, Tone::Better).is_empty();
        let is_unequal = is_better && contenders.iter().all(|it| is_unequal(report.findings, it));
        let terms = if is_unequal { ", on unequal terms," } else { "" };
        (!parts.is_empty()).then(|| format!("{name}{terms} is {}", parts.join(" and ")))
    };
    let clauses: Vec<String> = parties(report, matrix).iter().filter_map(clause).collect();
    let reference = report.plan.reference();
    (!clauses.is_empty()).then(|| format!("Against {reference}, {}.", clauses.join("; ")))
}

/// The best and the worst of all. The best is one on equal terms, if any of these is better.
fn farthest(report: &Report, matrix: &Matrix, all: &[Compared]) -> Option<String> {
    let end = |words: &str, (test, it): &Compared| {
        let ratio = words::ratio_by(it.ratio?, matrix.margin);
        let doing = quoted(&matrix.tests[*test].doing);
        Some(format!("{words} is {} at {doing} ({ratio}×)", it.contender))
    };
    let better = of_tone(all, Tone::Better);
    let equal = better.iter().find(|(_, it)| !is_unequal(report.findings, &it.contender));
    let best = match (better.first(), equal) {
        (Some((_, first)), Some(equal)) if is_unequal(report.findings, &first.contender) => {
            end("best on equal terms", equal)
        }
        (_, Some(equal)) => end("best", equal),
        (first, None) => first.and_then(|it| end("best, on unequal terms,", it)),
    };
    let worst = of_tone(all, Tone::Worse).first().and_then(|it| end("worst", it));
    let ends: Vec<String> = best.into_iter().chain(worst).collect();
    let reference = report.plan.reference();
    (!ends.is_empty()).then(|| format!("Against {reference}, {}.", ends.join("; ")))
}

/// How many differ.
fn tally(all: &[Compared]) -> Option<String> {
    let [better, worse] = [Tone::Better, Tone::Worse].map(|tone| of_tone(all, tone).len());
    let total = counted(all.len(), "comparison");
    (better + worse > 0).then(|| format!("Of {total} {better} are better and {worse} worse."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{grid, report};
    use super::*;
    use crate::model::{Audit, Finding, Severity, Verdict};

    fn answered(verdicts: &[Vec<(Verdict, f64)>]) -> String {
        answered_of(verdicts, &[])
    }

    /// Where contenders of these numbers were measured on other terms.
    fn answered_of(verdicts: &[Vec<(Verdict, f64)>], unequal: &[usize]) -> String {
        let made = grid(verdicts);
        let finding = |number: &usize| Finding {
            audit: Audit::A19,
            severity: Severity::Warning,
            workload: None,
            contender: Some(format!("c{number}")),
            evidence: "no journal".into(),
            advice: String::new(),
        };
        let findings: Vec<Finding> = unequal.iter().map(finding).collect();
        let report = Report { findings: &findings, ..report(&made) };
        answer(&report, &Matrix::of(&report))
    }

    #[test]
    fn the_best_is_none_that_was_measured_on_other_terms() {
        use Verdict::{Faster, Slower};
        // Too many for names.
        let row = [3.6, 11.5, 0.5].map(|ratio| (if ratio > 1.0 { Faster } else { Slower }, ratio));
        let rows: Vec<Vec<_>> =
            (0..3).map(|_| row.iter().cycle().take(15).copied().collect()).collect();
        let of = |unequal: &[usize]| answered_of(&rows, unequal);
        assert_eq!(of(&[]), "Against c0, best is c2 at t0 (11.5×); worst is c3 at t0 (0.50×).");
        let others: Vec<usize> = (1..=15).filter(|it| it % 3 == 2).collect();
        let says =
            "Against c0, best on equal terms is c1 at t0 (3.60×); worst is c3 at t0 (0.50×).";
        assert_eq!(of(&others), says);
        let all: Vec<usize> = (1..=15).collect();
        let says = "Against c0, best, on unequal terms, is c2 at t0 (11.5×); worst is c3 at t0 \
                    (0.50×).";
        assert_eq!(of(&all), says);
        let two = [vec![(Faster, 2.0), (Slower, 0.5)]];
        let says = "Against c0, c1, on unequal terms, is better at t0 (2.00×); c2 is worse at t0 \
                    (0.50×).";
        assert_eq!(answered_of(&two, &[1, 2]), says);
    }

    #[test]
    fn the_answer_says_what_differs_what_does_not_and_what_is_open() {
        use Verdict::{Equivalent, Faster, Slower, TriviallySlower, Undecided, Void};
        let said = |rows: &[&[(Verdict, f64)]]| {
            answered(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>())
        };
        assert_eq!(
            said(&[&[(Faster, 1.66), (Slower, 0.5)], &[(Equivalent, 1.0), (Undecided, 0.9)]]),
            "Against c0, c1 is better at t0 (1.66×); c2 is worse at t0 (0.50×). 1 of 4 comparisons \
             is within 5% of c0, 1 open."
        );
        let many = vec![vec![(Slower, 0.5)]; 7];
        assert_eq!(answered(&many), "Against c0, c1 is worse at 7 of 7 tests, most at t0 (0.50×).");
        assert_eq!(
            said(&[&[(Undecided, 0.5), (Undecided, 2.0)]]),
            "None of the 2 comparisons has a verdict."
        );
        assert_eq!(said(&[&[(Void, 0.5)]]), "Void: c1 against c0 at t0.");
        assert_eq!(said(&[&[(Equivalent, 1.0)]]), "c1 is within 5% of c0 at t0.");
        let slightly = (TriviallySlower, 0.98);
        assert_eq!(said(&[&[slightly]]), "Worse by less than 5%: c1 against c0 at t0.");
        assert_eq!(said(&[&[slightly, (Equivalent, 1.0)]]), "All 2 are within 5% of c0.");
        let open = "1 of 2 comparisons is within 5% of c0, 1 open.";
        assert_eq!(said(&[&[slightly, (Undecided, 1.0)]]), open);
    }

    #[test]
    fn a_name_with_a_comma_or_a_stop_is_quoted() {
        for (name, verdict, answered) in [
            ("a, b", Verdict::Faster, "Against c0, c1 is better at “a, b” (2.00×)."),
            ("cp a .", Verdict::Undecided, "No verdict yet: c1 against c0 at “cp a .”."),
        ] {
            let (mut plan, run, mut comparisons) = grid(&[vec![(verdict, 2.0)]]);
            plan.workloads[0].name = name.into();
            comparisons[0].workload = name.into();
            let made = (plan, run, comparisons);
            let report = report(&made);
            assert_eq!(answer(&report, &Matrix::of(&report)), answered);
        }
    }

    /// What a part of an answer says of contender `of`, or of all, checked against the cells.
    fn check(part: &str, of: Option<usize>, rows: &[Vec<(Verdict, f64)>]) {
        let tone_of = |test: usize, place: usize| sign(rows[test][place].0).1;
        let count = |tone: Tone| {
            let all = rows.iter().flat_map(|row| row.iter().enumerate());
            all.filter(|(at, it)| of.is_none_or(|of| *at == of) && sign(it.0).1 == tone).count()
        };
        let mut tone = None;
        let words: Vec<&str> = part.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let word = word.trim_matches([',', '.', ';']);
            match word {
                "better" | "best" => tone = Some(Tone::Better),
                "worse" | "worst" => tone = Some(Tone::Worse),
                _ => {}
            }
            if let Some(test) = word.strip_prefix('t').and_then(|it| it.parse::<usize>().ok()) {
                // A single comparison has its tone in the sentence, which is checked below.
                let Some(of) = of else {
                    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{part}");
                    continue;
                };
                assert_eq!(Some(tone_of(test, of)), tone, "{part}");
                let ratio = words[at + 1].trim_matches(['(', '×', ')', ',', '.', ';']);
                assert_eq!(ratio, words::ratio(rows[test][of].1), "{part}");
            }
            let Ok(number) = word.parse::<usize>() else { continue };
            let next = words.get(at + 1).map_or("", |it| it.trim_matches([',', '.']));
            let wanted = match (next, of) {
                ("of", Some(_)) => tone,
                ("of", None) => {
                    match words.get(at + 5).map_or("", |it| it.trim_matches([',', '.'])) {
                        "within" => Some(Tone::Alike),
                        "open" => Some(Tone::Open),
                        "void" => Some(Tone::Void),
                        _ => None,
                    }
                }
                ("open", _) => Some(Tone::Open),
                ("void", _) => Some(Tone::Void),
                ("are", None) if words[at + 2] == "better" => Some(Tone::Better),
                ("worse", None) => Some(Tone::Worse),
                _ => None,
            };
            if let Some(wanted) = wanted {
                assert_eq!(number, count(wanted), "{wanted:?}: {part}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Whatever the cells hold, nothing that is said of them is untrue, and it is short.
        #[test]
        fn every_claim_of_the_answer_is_a_verdict_of_the_cells(
            rows in (1usize..5).prop_flat_map(|contenders| {
                let cell = (0usize..Verdict::ALL.len(), 0.05f64..9.0);
                let cell = cell.prop_map(|(at, it)| (Verdict::ALL[at], it));
                prop::collection::vec(prop::collection::vec(cell, contenders), 1..14)
            }),
            unequal in prop::collection::vec(1usize..5, 0..3)
        ) {
            let said = answered_of(&rows, &unequal);
            prop_assert!(words_of(&said) <= WORDS_MAX, "{said}");
            for part in said.split_inclusive(['.', ';']).collect::<String>().split("; ")
                .flat_map(|it| it.split(". "))
            {
                let part = part.trim_start_matches("Against c0, ");
                let on_others = part.contains(", on unequal terms,");
                let part = &part.replace(", on unequal terms,", "");
                let is_best = part.starts_with("best ");
                let part = &part.replace("best on equal terms ", "best ");
                let end = ["best is ", "worst is "].iter().find_map(|it| part.strip_prefix(it));
                let of = match end {
                    Some(name) => name.strip_prefix('c').and_then(|it| it.split_once(" at ")),
                    None => part.strip_prefix('c').and_then(|it| it.split_once(" is ")),
                };
                let of = of.filter(|(_, what)| !what.starts_with("within "));
                let of = of.and_then(|(of, _)| of.parse::<usize>().ok());
                if let Some(of) = of.filter(|_| is_best || part.contains("is better ")) {
                    prop_assert_eq!(unequal.contains(&of), on_others, "{}", said);
                }
                check(part, of.map(|of| of - 1), &rows);
            }
            let tones = rows.iter().flatten().map(|it| sign(it.0).1);
            let differs = tones.clone().any(|it| matches!(it, Tone::Better | Tone::Worse));
            let is_said = ["better", "worse", "best", "worst"].iter().any(|it| said.contains(it));
            prop_assert_eq!(differs, is_said);
            let has = |tone| tones.clone().any(|it| it == tone);
            prop_assert_eq!(has(Tone::Void), said.contains("oid"), "{}", said);
            let by = [" within ", " by less than "];
            let is_within = by.iter().any(|it| said.contains(it));
            prop_assert_eq!(has(Tone::Alike), is_within, "{}", said);
            let open = ["open", "No verdict", "has a verdict"].iter().any(|it| said.contains(it));
            prop_assert_eq!(has(Tone::Open), open, "{}", said);
        }
    }
}
