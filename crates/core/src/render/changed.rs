//! What has changed between two runs, in words: the answer, and each change in a sentence. A
//! sentence says only what its interval supports.

use super::findings::{headline, on_terms};
use super::sentence::{interval, rounds};
use super::words::{counted, from_to, listed, ratio as short};
use crate::model::{
    Across, Change, ClaimChange, Measured, Percent, ReferenceChange, Unit, Verdict, Words, precise,
};

/// So many of what is worse, or fails, are named.
const NAMED_MAX: usize = 3;

/// What the gate makes of it, where there is one.
pub(super) fn gated(across: &Across) -> Option<String> {
    let gate = across.gate.as_ref()?;
    Some(match gate.fails.is_empty() {
        true if gate.status != 0 => "Void: nothing could be judged.".into(),
        true => format!("Passes ({}).", gate.on.join(", ")),
        false => format!("Fails: {}.", first(&gate.fails).join("; ")),
    })
}

/// The first few, and how many more.
fn first(all: &[String]) -> Vec<String> {
    let shown = if all.len() > NAMED_MAX + 1 { NAMED_MAX } else { all.len() };
    let more = (shown < all.len()).then(|| format!("{} more", all.len() - shown));
    all[..shown].iter().cloned().chain(more).collect()
}

/// How many changed which way, each figure once, what is worse by name, and with what reservation.
pub(super) fn answer(across: &Across) -> String {
    let counts = counts(across);
    if counts.is_empty() {
        return "Nothing was compared.".into();
    }
    let mut said = vec![format!("{}.", counts.join(", "))];
    said.extend(reference_itself(across));
    said.extend(on_other_terms(across).map(|it| format!("But now {it}.")));
    said.extend(claims_refuted(across));
    let before = on_terms(&across.terms.before);
    said.extend(before.map(|it| format!("The baseline was on other terms: {it}.")));
    let blind = across.count(|it| across.is_blind(it));
    said.extend((blind > 0).then(|| {
        format!(
            "At {blind} of {} these runs would probably have missed a regression of {}.",
            across.changes.len(),
            across.regression
        )
    }));
    said.extend(across.notes.iter().cloned());
    said.join(" ")
}

/// How many claims of the baseline's plan the run refutes that the baseline did not.
fn claims_refuted(across: &Across) -> Option<String> {
    let refuted = across.claims.iter().filter(|it| it.refuted).count();
    let (are, them) = if refuted == 1 { ("is", "it") } else { ("are", "them") };
    let all = counted(across.claims.len(), "claim");
    (refuted > 0).then(|| {
        format!("{refuted} of {all} {are} refuted now; the baseline did not refute {them}.")
    })
}

/// What both runs say of a claim: the end of a sentence.
pub fn answered_anew(it: &ClaimChange) -> String {
    let ClaimChange { text, baseline, run, why, .. } = it;
    format!("“{text}”: {} in the baseline, {} now: {why}", baseline.label(), run.label())
}

/// The contenders on terms that they were not on before, which make a win unfair: the end of a
/// sentence.
pub fn on_other_terms(across: &Across) -> Option<String> {
    Some(format!("on other terms than before: {}", on_terms(&across.terms.now)?))
}

/// Each figure in one class: "1 of 6 is worse (...)", "5 are within 5% of before".
fn counts(across: &Across) -> Vec<String> {
    use Verdict::{Faster, FasterSizeOpen, Slower, SlowerSizeOpen, Undecided, Void};
    let of = |is: &dyn Fn(&Change) -> bool| -> Vec<&Change> {
        across.changes.iter().filter(|it| is(it)).collect()
    };
    let is = |verdict: Verdict| of(&|it| it.verdict == verdict);
    let left_out = |lost: bool| {
        let its = across.left_out.iter().filter(|it| it.lost == lost);
        its.map(|it| it.figures as usize).sum::<usize>()
    };
    let [worse, perhaps] = [Slower, SlowerSizeOpen].map(is);
    let [named_worse, named_perhaps] = [&worse, &perhaps].map(|its| named(its));
    let small = of(&|it| {
        ![Faster, FasterSizeOpen, Slower, SlowerSizeOpen, Undecided, Void].contains(&it.verdict)
    });
    let open = |few: bool| of(&|it| it.verdict == Undecided && it.has_interval() != few).len();
    let beside = match (across.measured, across.changes.first()) {
        (Measured::Apart, Some(change)) => format!(" relative to {}", change.reference),
        _ => String::new(),
    };
    let margin = across.margin;
    let void = across.count(|it| it.verdict == Void);
    let lost = across.count(Change::is_lost);
    let classes = [
        (worse.len(), format!("worse ({named_worse})")),
        (perhaps.len(), format!("worse, but perhaps by less than {margin} ({named_perhaps})")),
        (left_out(true) + lost, "lost".into()),
        (is(Faster).len() + is(FasterSizeOpen).len(), "better".into()),
        (small.len(), format!("within {margin} of before{beside}")),
        (open(false), "undecided".into()),
        (open(true), "measured in too few rounds".into()),
        (void - lost, "void in the baseline".into()),
        (left_out(false), "not in the baseline".into()),
    ];
    let all: usize = classes.iter().map(|(count, _)| count).sum();
    let mut said: Vec<String> = Vec::new();
    for (count, what) in classes.into_iter().filter(|(count, _)| *count > 0) {
        let of = if said.is_empty() { format!(" of {all}") } else { String::new() };
        let are = if count == 1 { "is" } else { "are" };
        said.push(format!("{count}{of} {are} {what}"));
    }
    said
}

/// "btrfs at mixed's iops 0.80×, xfs at build's wall_time 0.91× and 2 more".
fn named(changes: &[&Change]) -> String {
    let name = |it: &&Change| {
        let times = it.ratio.map_or(String::new(), |it| format!(" {}×", short(it)));
        format!("{} at {}'s {}{times}", it.contender, it.workload, it.metric)
    };
    listed(&first(&changes.iter().map(name).collect::<Vec<_>>()))
}

/// Where the reference itself moved beyond the margin, in one sentence: what makes all slower alike
/// is seen in it alone.
fn reference_itself(across: &Across) -> Option<String> {
    let moved: Vec<&ReferenceChange> = across.references_moved().collect();
    let words: Vec<Words> = moved.iter().map(|it| words_of(it)).collect();
    let fast = match words.first() {
        Some(first) if words.iter().all(|it| it == first) => first.goodness(),
        _ => "good",
    };
    let ratios = || moved.iter().filter_map(|it| it.ratio);
    let [low, high] = [
        short(ratios().fold(f64::INFINITY, f64::min)),
        short(ratios().fold(f64::NEG_INFINITY, f64::max)),
    ];
    let times = if low == high { low } else { format!("{low} to {high}") };
    let reference = &moved.first()?.reference;
    let (some, all) = (moved.len(), across.references.len());
    Some(format!(
        "{reference} itself is {times} times as {fast} as before at {some} of {all} figures."
    ))
}

fn words_of(it: &ReferenceChange) -> Words {
    Words::of(&it.metric, it.unit, it.better)
}

/// What a reference took that moved beyond the margin. No verdict: the hour is part of it.
pub fn reference_moved(it: &ReferenceChange) -> String {
    let took = took(it.unit, &words_of(it), [it.baseline, it.run], it.ratio);
    let ReferenceChange { workload, metric, reference, .. } = it;
    format!(
        "{workload}, {metric}: {reference} {took}; if only the hour did that, the others did not \
         change, only their ratios did"
    )
}

/// What a contender itself took that changed against the reference; no verdict either.
pub(super) fn of_itself(it: &Change) -> Option<String> {
    use Verdict::{Faster, FasterSizeOpen, Slower, SlowerSizeOpen};
    let differs = [Faster, FasterSizeOpen, Slower, SlowerSizeOpen].contains(&it.verdict);
    let medians = it.medians.filter(|_| differs)?;
    let words = Words::of(&it.metric, it.unit, it.better);
    let took = took(it.unit, &words, medians, it.of_itself());
    Some(format!("{}, {}: {} {took}", it.workload, it.metric, it.contender))
}

/// Medians of the baseline and the run, and how many times as good the latter is.
fn took(unit: Unit, words: &Words, medians: [f64; 2], ratio: Option<f64>) -> String {
    let [before, now] = medians.map(|value| unit.format(value));
    let times = ratio.map_or(String::new(), |ratio| format!(", {}", words.times(ratio)));
    format!("{before} in the baseline, {now} in the run{times}")
}

/// The verdict in a table's cell.
pub(super) fn label(across: &Across, change: &Change) -> String {
    let mark = if change.moved && change.verdict != Verdict::Void { " (moved)" } else { "" };
    let label = Words::of(&change.metric, change.unit, change.better).label(change.verdict);
    let excluded = match change.verdict == Verdict::Undecided && change.excludes(across.regression)
    {
        true => format!("; no regression of {}", across.regression),
        false => String::new(),
    };
    format!("{label}{mark}{excluded}")
}

/// A change in words.
pub(super) fn sentence(across: &Across, change: &Change) -> String {
    let claim = claim(across, change);
    if change.ratio.is_none() || change.verdict == Verdict::Void {
        return format!("{claim}.");
    }
    let instead = moved_instead(across, change).map_or(String::new(), |it| it + "; ");
    let open = match change.verdict {
        Verdict::Undecided => power(across, change),
        _ => String::new(),
    };
    format!("{claim} ({instead}{}){open}.", evidence(across, change))
}

/// Why a change shuts the gate: the end of a sentence.
pub fn failing(across: &Across, change: &Change) -> String {
    let instead = moved_instead(across, change).map_or(String::new(), |it| format!(" ({it})"));
    format!("{}, {}{instead}", change.workload, claim(across, change))
}

/// That a change may be a regression which its interval does not rule out, likewise.
pub fn perhaps(across: &Across, change: &Change) -> String {
    let Change { workload, metric, contender, low, high, .. } = change;
    let interval = match high {
        Some(high) => from_to(*low, *high, precise),
        None => "no interval yet".into(),
    };
    let regression = across.regression;
    format!("{workload}, {metric}: {contender} may be worse by {regression} or more ({interval})")
}

fn claim(across: &Across, change: &Change) -> String {
    let Change { metric, reference, contender: name, .. } = change;
    let (margin, contender) = (across.margin, across.whose(change));
    let Some(ratio) = change.ratio else {
        return format!(
            "{metric}: no ratio of {name} and {reference}: no round has both, or one of their \
             figures is 0"
        );
    };
    let words = Words::of(metric, change.unit, change.better);
    let (times, than) = (words.times(ratio), words.than(change.verdict));
    let way = match across.moved_instead(change) {
        Some(_) if change.verdict.is_worse() => Some(format!("{name} fell behind {reference}")),
        Some(_) => Some(format!("{name} gained on {reference}")),
        None => None,
    };
    let said = match (change.verdict, way) {
        (Verdict::Faster | Verdict::Slower, Some(way)) => format!("{way}: {times} relative to it"),
        (Verdict::Faster | Verdict::Slower, None) => format!("{contender} {than} before, {times}"),
        (Verdict::TriviallyFaster | Verdict::TriviallySlower, way) => {
            let way = way.unwrap_or_else(|| format!("{contender} {than} before,"));
            format!("{way} but by less than {margin}: {times}")
        }
        (Verdict::FasterSizeOpen | Verdict::SlowerSizeOpen, way) => {
            let is = match way {
                Some(way) => format!("{way}: {times} relative to it"),
                None => format!("{contender} is {times} as before"),
            };
            format!("{is}; whether by more than {margin} is open")
        }
        (Verdict::Equivalent, _) => {
            format!("{contender} is as before, any change is under {margin}")
        }
        (Verdict::Undecided, _) => format!("no verdict on {name}"),
        (Verdict::Void, _) => void(change),
    };
    format!("{metric}: {said}")
}

fn void(change: &Change) -> String {
    let Change { contender, reference, .. } = change;
    match &change.voided {
        Some(it) => format!(
            "void, the {} did not measure {contender} against {reference}: {}",
            if it.by_run { "run" } else { "baseline" },
            headline(&it.finding)
        ),
        None => format!(
            "void, this did not measure {contender} against {reference}; see the findings of the \
             new run's report"
        ),
    }
}

/// "ext4 1.72×, btrfs 1.23× as fast as before": where it is the reference that moved.
fn moved_instead(across: &Across, change: &Change) -> Option<String> {
    let [reference, own] = across.moved_instead(change)?.map(short);
    let fast = Words::of(&change.metric, change.unit, change.better).goodness();
    let Change { contender, reference: name, .. } = change;
    Some(format!("{name} {reference}×, {contender} {own}× as {fast} as before"))
}

/// What two runs apart would have shown, and what they would need.
fn power(across: &Across, change: &Change) -> String {
    let mut text = String::new();
    let regression = across.regression;
    if change.excludes(regression) {
        text += &format!("; a regression of {regression} is ruled out");
    } else if let Some(missed) = change.missed {
        let percent = missed * 100.0;
        text += &format!(
            "; this pair of runs would miss a regression of {regression} in {percent:.0}% of cases"
        );
    }
    if let Some(rounds) = change.rounds_needed {
        text += &format!(
            "; if nothing has changed, some {rounds} rounds each would show them equivalent"
        );
    }
    text
}

fn evidence(across: &Across, change: &Change) -> String {
    let declared = across.confidence;
    let sides = if change.is_one_sided { 2.0 } else { 1.0 };
    let confidence = Percent(1.0 - sides * (1.0 - declared.0));
    let mut interval = interval(confidence, change.sharing, change.low, change.high);
    if change.is_one_sided {
        interval += &format!(": two one-sided tests at {declared}");
    }
    match across.measured {
        Measured::Together => format!("{interval}, {}", rounds(change.rounds)),
        Measured::Apart => format!(
            "{interval}, {} and {}, each against {}",
            change.baseline_rounds,
            rounds(change.rounds),
            change.reference
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{apart as of, change};
    use super::*;
    use crate::model::{Gate, NotCompared};

    /// It became faster itself: "is slower than before" would contradict its figures.
    #[test]
    fn who_became_better_fell_behind_a_reference_that_did_more() {
        let mut slower = change(Verdict::Slower, 0.77);
        slower.medians = Some([3.06, 2.49]);
        let across = of(vec![slower], 1.72);
        let said = failing(&across, &across.changes[0]);
        let says = "w, wall_time: b fell behind a: 0.770 times as fast relative to it (a 1.72×, b \
                    1.23× as fast as before)";
        assert_eq!(said, says);
        assert!(sentence(&across, &across.changes[0]).contains("b 1.23× as fast as before; "));
        let own = of(vec![change(Verdict::Slower, 0.77)], 1.0);
        let says = "w, wall_time: relative to a, b is slower than before, 0.770 times as fast";
        assert_eq!(failing(&own, &own.changes[0]), says);
        let mut better = change(Verdict::Faster, 1.3);
        better.medians = Some([1.0, 1.0]);
        let gained = of(vec![better], 0.77);
        assert!(sentence(&gained, &gained.changes[0]).contains("b gained on a: 1.300 times as"));
    }

    #[test]
    fn a_reference_that_moved_is_in_the_answer() {
        let same = of(vec![change(Verdict::Equivalent, 1.0)], 0.66);
        let says = "1 of 1 is within 5% of before relative to a. a itself is 0.66 times as fast \
                    as before at 1 of 1 figures.";
        assert_eq!(answer(&same), says);
        assert!(!answer(&of(same.changes, 1.01)).contains("itself"));
    }

    #[test]
    fn each_figure_is_counted_once() {
        let mut few = change(Verdict::Undecided, 1.0);
        (few.high, few.rounds) = (None, 3);
        let mut across = of(vec![few, change(Verdict::Slower, 0.8)], 1.0);
        let left_out = |lost: bool, figures| NotCompared {
            workload: "v".into(),
            contender: None,
            metric: None,
            figures,
            lost,
            why: "it is gone".into(),
        };
        across.left_out = vec![left_out(true, 4), left_out(false, 2)];
        let says = "1 of 8 is worse (b at w's wall_time 0.80×), 4 are lost, 1 is measured in too \
                    few rounds, 2 are not in the baseline.";
        assert_eq!(answer(&across), says);
    }

    #[test]
    fn what_is_ruled_out_is_not_called_missed() {
        let mut open = change(Verdict::Undecided, 1.02);
        (open.low, open.high, open.missed) = (0.993, Some(1.057), Some(0.56));
        let across = of(vec![open.clone()], 1.0);
        assert_eq!(label(&across, &open), "undecided; no regression of 10%");
        assert!(sentence(&across, &open).contains("a regression of 10% is ruled out"));
        assert!(!answer(&across).contains("missed"));
        open.low = 0.85;
        assert_eq!(label(&across, &open), "undecided");
        assert!(sentence(&across, &open).contains("would miss a regression of 10% in 56%"));
        assert!(answer(&of(vec![open], 1.0)).contains("would probably have missed"));
    }

    #[test]
    fn an_interval_of_two_tests_says_so() {
        let same = Change { is_one_sided: true, ..change(Verdict::Equivalent, 1.0) };
        let said = sentence(&of(vec![same.clone()], 1.0), &same);
        assert!(said.contains("90%") && said.contains(": two one-sided tests at 95%"), "{said}");
    }

    #[test]
    fn a_size_that_is_open_begins_with_the_estimate() {
        let open = change(Verdict::SlowerSizeOpen, 0.94);
        let said = failing(&of(vec![open.clone()], 1.0), &open);
        let says = "w, wall_time: relative to a, b is 0.940 times as fast as before; whether by \
                    more than 5% is open";
        assert_eq!(said, says);
    }

    #[test]
    fn what_the_gate_says_comes_first() {
        let fails = |count: usize| (0..count).map(|it| format!("f{it}")).collect::<Vec<_>>();
        let gate = |count| {
            let status = if count == 0 { 0 } else { 4 };
            Some(Gate { status, on: vec!["slower".into()], fails: fails(count) })
        };
        let mut across = of(vec![change(Verdict::Slower, 0.8)], 1.0);
        assert_eq!(gated(&across), None);
        let mut said = |count| {
            across.gate = gate(count);
            gated(&across).unwrap()
        };
        assert_eq!(said(0), "Passes (slower).");
        assert_eq!(said(2), "Fails: f0; f1.");
        assert_eq!(said(9), "Fails: f0; f1; f2; 6 more.");
        across.gate = Some(Gate { status: 5, on: vec!["slower".into()], fails: Vec::new() });
        assert_eq!(gated(&across).unwrap(), "Void: nothing could be judged.");
    }
}
