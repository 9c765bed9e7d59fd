//! Advice, for a terminal, as Markdown and for programs.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_BORDERS_ONLY};

use super::findings::{Kind, kinds, unequal};
use super::grid::Grid;
use super::json;
use super::next::command;
use super::paint::fitted;
use super::sentence::{interval, outlying, rounds};
use super::text::{marked, marked_code, marked_list, visible};
use super::words::{self, figure, listed, ratio};
use crate::model::{
    Advice, Answer, Basis, Below, Condition, Layer, Lever, Standing, Turn, Verdict,
};

/// How advice was asked for, and what its run takes.
pub struct Typed<'a> {
    /// What was typed, word by word, but for its options.
    pub words: &'a [&'a str],
    /// The program as the run needs it.
    pub program: &'a str,
    /// Where the plan was written that measures what is missing, too.
    pub written: Option<&'a str>,
}

/// For a terminal; ends with a line break.
pub fn advice(advice: &Advice, typed: &Typed) -> String {
    let mut out = format!("{}: {}\n\n", advice.purpose, advice.about);
    for said in said(advice) {
        out += &format!("{said}\n");
    }
    match way(advice, typed) {
        Some(Way { write: Some(write), run }) => {
            out += &format!("To measure what is missing:\n  {write}\n  {run}\n");
        }
        Some(Way { write: None, run }) => out += &format!("{}\n  {run}\n", written(typed)),
        None => {}
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
pub fn advice_markdown(advice: &Advice, typed: &Typed) -> String {
    let mut out = format!("# {}\n\n{}\n\n", marked(&advice.purpose), marked(&advice.about));
    out += &format!("**{}**\n", marked(&answer(advice)));
    for said in said(advice).iter().skip(1) {
        out += &format!("\n{}\n", marked(said));
    }
    if let Some(Way { write, run }) = way(advice, typed) {
        let run = marked_code(&run);
        out += &match write {
            Some(write) => {
                let write = marked_code(&write);
                format!("\nTo measure what is missing: {write}, and then {run}\n")
            }
            None => format!("\n{} {run}\n", marked(&written(typed))),
        };
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

/// The answer, and what is to be known with it: the answer comes first.
pub(super) fn said(advice: &Advice) -> Vec<String> {
    let rest = [advice.layers.as_ref().map(below), unequal(&advice.findings)];
    [Some(answer(advice))].into_iter().chain(rest).flatten().collect()
}

/// On what the compared ones are, and on what others of the run.
fn below(layers: &Below) -> String {
    let compared = match layers.compared.as_str() {
        Layer::NONE => "the bare disk".into(),
        stack => stack.to_string(),
    };
    format!(
        "Only those on {compared} are compared: layers are a condition, not a choice. The run has \
         others, too: --layers {}.",
        layers.others.join(", --layers ")
    )
}

/// The answer as a sentence.
fn answer(advice: &Advice) -> String {
    let (purpose, run) = (&advice.purpose, format!("the run “{}”", advice.run));
    let part = match measured_share(advice) {
        None => String::new(),
        Some((measured, all)) => {
            let missing: Vec<String> = advice.missing.iter().map(|it| it.what.clone()).collect();
            let [measured, all] = [measured, all].map(weight);
            format!(", by a weight of {measured} of {all} (not by {}),", listed(&missing))
        }
    };
    match &advice.answer {
        Answer::Best(name) => {
            let others = not_compared(advice);
            format!("{name} is the best here for {purpose}{part} as {run} measured it.{others}")
        }
        Answer::Equivalent(names) => format!(
            "They are equivalent here for {purpose}{part} as {run} measured it: {} differ by less \
             than {}.{}{}",
            listed(names),
            advice.margin,
            behind(advice, names),
            not_compared(advice)
        ),
        Answer::Even(names) => format!(
            "{} come out even here for {purpose}{part} as {run} measured it, but are not alike: \
             by the means, which have no interval here, {}. Choose by what counts more to you.{}",
            listed(names),
            ahead(advice, names),
            behind(advice, names)
        ),
        Answer::Undecided(names) => match ahead_of_all(advice, names) {
            Some((name, others)) => format!(
                "No verdict for {purpose}{part} by {run}: {name} is better than {}, and the data \
                 do not say whether by more than {}.",
                listed(&others),
                advice.margin
            ),
            None if are_all(advice, names) => format!(
                "No verdict for {purpose}{part} by {run}: none of {} is found to be better than \
                 another.",
                listed(names)
            ),
            None => format!(
                "No verdict for {purpose}{part} by {run}: the best is one of {}, and the data do \
                 not say which.",
                listed(names)
            ),
        },
        Answer::Only(name) if advice.left_out.is_empty() => {
            format!("Only {name} is left for {purpose}: there is nothing to compare it with.")
        }
        Answer::Only(name) => format!(
            "Only {name} has all figures for {purpose}: there is nothing to compare them with.",
        ),
        Answer::Nobody => format!("No contender of {run} can be recommended for {purpose}."),
        Answer::Unmeasured => {
            let decisive: Vec<String> =
                advice.missing.iter().filter(|it| it.decides).map(|it| it.what.clone()).collect();
            match decisive.is_empty() {
                true => format!("No opinion on {purpose}: {run} measured nothing that counts."),
                false => format!(
                    "No advice on {purpose} yet: {run} did not measure what decides: {}.",
                    listed(&decisive)
                ),
            }
        }
    }
}

/// These are all that were compared, and none is better than another by however little.
fn are_all(advice: &Advice, names: &[String]) -> bool {
    advice.standings.iter().all(|it| {
        let are_both = names.contains(&it.contender) && names.contains(&it.reference);
        are_both && !it.verdict.is_better() && !it.verdict.is_worse()
    })
}

/// The contenders that these, or some of these, are better than.
fn behind(advice: &Advice, names: &[String]) -> String {
    let beats = |one: &String, other: &String| {
        let is_it = |it: &&Standing| (&it.contender, &it.reference) == (one, other);
        let found = advice.standings.iter().find(is_it);
        found.is_some_and(|it| it.verdict == Verdict::Faster)
    };
    let mut said: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for other in advice.standings.iter().map(|it| &it.reference) {
        let better: Vec<String> = names.iter().filter(|it| beats(it, other)).cloned().collect();
        match said.iter_mut().find(|(known, _)| *known == better) {
            _ if better.is_empty() || names.contains(other) => {}
            Some((_, others)) if others.contains(other) => {}
            Some((_, others)) => others.push(other.clone()),
            None => said.push((better, vec![other.clone()])),
        }
    }
    let sentence = |(better, others): &(Vec<String>, Vec<String>)| {
        let are = if better.len() == 1 { "is" } else { "are" };
        format!(" {} {are} better than {}.", listed(better), listed(others))
    };
    said.iter().map(sentence).collect()
}

/// The contenders without an answer.
fn not_compared(advice: &Advice) -> String {
    let names: Vec<String> = advice.left_out.iter().map(|(name, _)| name.clone()).collect();
    match names.len() {
        0 => String::new(),
        1 => format!(" {} was not compared.", names[0]),
        _ => format!(" {} were not compared.", listed(&names)),
    }
}

/// The contender that is better than all others by an open size, and these others.
fn ahead_of_all(advice: &Advice, names: &[String]) -> Option<(String, Vec<String>)> {
    let beats = |one: &String, other: &String| {
        advice
            .standings
            .iter()
            .any(|it| (&it.contender, &it.reference) == (one, other) && it.verdict.is_better())
    };
    let others = |one: &String| names.iter().filter(|it| *it != one).cloned().collect::<Vec<_>>();
    let first = names.iter().find(|one| others(one).iter().all(|other| beats(one, other)))?;
    Some((first.clone(), others(first)))
}

/// Which contender is ahead in what, by the means, without an interval.
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

/// How to measure what is missing.
struct Way {
    /// What writes the plan; `None` where that was done.
    write: Option<String>,
    /// What runs it.
    run: String,
}

fn way(advice: &Advice, typed: &Typed) -> Option<Way> {
    let line = |words: &[&str]| command(words).join(" ");
    let run = |file| line(&typed.program.split(' ').chain(["run", file]).collect::<Vec<_>>());
    if let Some(file) = typed.written {
        return Some(Way { write: None, run: run(file) });
    }
    let file = file_of(&advice.purpose);
    let write = [typed.words, &["--plan", &file]].concat();
    let is_missing = !advice.missing.is_empty();
    is_missing.then(|| Way { write: Some(line(&write)), run: run(&file) })
}

/// That the plan was written.
fn written(typed: &Typed) -> String {
    format!("Written: {}. Now:", typed.written.unwrap_or_default())
}

/// A use's name as that of a file here, whatever it is made of.
fn file_of(purpose: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = purpose.replace(|c| !plain(c), "-");
    match name.trim_matches('-') {
        "" => "use.toml".into(),
        name => format!("{name}.toml"),
    }
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
    // The leader's column has 1 for everything.
    let header = ["times as good at", "measured by", "weight"].map(String::from).into_iter();
    let header = header.chain(names.iter().map(ToString::to_string));
    let mut table = Grid::new(preset, header);
    for it in &advice.weighed {
        let ratio =
            |name: &&String| it.ratios.get(*name).map_or("-".into(), |it| words::ratio(*it));
        let cells = [it.what.clone(), figure(&it.metric), weight(it.weight)].into_iter();
        table.add(cells.chain(names.iter().map(ratio)));
    }
    table.right(2..table.width);
    table
}

fn sections(advice: &Advice) -> [(&'static str, Vec<String>); 6] {
    let standings = advice.standings.iter().map(|it| standing(advice, it)).collect();
    let left_out = advice.left_out.iter().map(|(name, why)| format!("{name}: {why}"));
    let missing = advice.missing.iter().map(|it| {
        let (what, weight, figure) = (&it.what, weight(it.weight), figure(&it.metric));
        format!("{what}, weight {weight}: {figure} of {}; {}", it.workload, it.why)
    });
    let finding = |kind: &Kind| format!("{}: {}", kind.told(), kind.advice());
    [
        ("Everything measured, taken together", standings),
        ("Conditions", advice.conditions.iter().map(condition).collect()),
        ("Left out", left_out.collect()),
        ("Not measured", missing.collect()),
        ("Findings", kinds(&advice.findings, &[]).iter().map(finding).collect()),
        ("What would change the answer", advice.turns.iter().map(|it| turn(advice, it)).collect()),
    ]
}

/// The verdict on two of them, in all that was measured together.
pub(super) fn standing(advice: &Advice, it: &Standing) -> String {
    let Standing { contender, reference, .. } = it;
    let Some(ratio) = it.ratio else {
        return format!("No complete round has both {contender} and {reference}.");
    };
    // Every two contenders have one.
    let all = advice.standings.len() as u32;
    let interval = interval(advice.confidence, all, it.low, it.high);
    let rounds = rounds(it.rounds) + &outlying(&it.outlying);
    let ratio = words::ratio_by(ratio, advice.margin);
    let evidence = format!("{ratio} times as good ({interval}, {rounds})");
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

pub(super) fn turn(advice: &Advice, it: &Turn) -> String {
    let Turn { contender, what, .. } = it;
    let now = advice.weighed.iter().find(|weighed| weighed.what == *what).map(|it| it.weight);
    let (beside, weighs) = match now {
        Some(now) => (now, format!(" (it weighs {})", weight(now))),
        None => (0.0, String::new()),
    };
    match it.lever {
        Lever::WeightAbove(weight) => {
            let weight = apart(weight, beside);
            format!("{contender} would lead if {what} weighed more than {weight}{weighs}")
        }
        Lever::WeightBelow(weight) => {
            let weight = apart(weight, beside);
            format!("{contender} would lead if {what} weighed less than {weight}{weighs}")
        }
        Lever::RatioAbove(ratio) => format!(
            "{contender} would lead if it were more than {} times as good in what was not \
             measured: {what}",
            words::ratio(ratio)
        ),
    }
}

/// A weight, or a sum of some, without what adding them has left.
fn weight(weight: f64) -> String {
    let text = format!("{weight:.6}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// A weight with as many digits, two at least, as tell it from `beside` and from none.
fn apart(weight: f64, beside: f64) -> String {
    let shown = |decimals: usize| format!("{weight:.decimals$}");
    let tells = |text: &String| {
        let read: f64 = text.parse().unwrap_or(weight);
        read > 0.0 && read != beside
    };
    (2..=6).map(shown).find(tells).unwrap_or_else(|| shown(6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Missing, Percent, Weighed};

    fn weighing(all: &[(&str, f64)], missing: f64) -> Advice {
        let weighed = |(what, weight): &(&str, f64)| Weighed {
            what: (*what).into(),
            metric: "iops".into(),
            workloads: Vec::new(),
            weight: *weight,
            ratios: Default::default(),
        };
        let missing = Missing {
            what: "logs".into(),
            workload: "w".into(),
            metric: "iops".into(),
            weight: missing,
            decides: false,
            why: "no workload of the run measures it".into(),
        };
        Advice {
            purpose: "../a use; `id`".into(),
            about: String::new(),
            run: "run".into(),
            layers: None,
            answer: Answer::Best("xfs".into()),
            conditions: Vec::new(),
            left_out: Vec::new(),
            weighed: all.iter().map(weighed).collect(),
            missing: vec![missing],
            standings: Vec::new(),
            findings: Vec::new(),
            turns: Vec::new(),
            margin: Percent(0.05),
            confidence: Percent(0.95),
        }
    }

    #[test]
    fn a_command_is_one_that_can_be_pasted() {
        let typed = Typed {
            words: &["fsverdict", "advise", "a run`"],
            program: "fsverdict",
            written: None,
        };
        let it = weighing(&[("commits", 0.1)], 0.2);
        let text = advice(&it, &typed);
        assert!(text.contains("\n  fsverdict advise 'a run`' --plan a-use---id.toml\n"), "{text}");
        assert!(text.contains("\n  fsverdict run a-use---id.toml\n"), "{text}");
        let text = advice_markdown(&it, &typed);
        assert!(text.contains("``fsverdict advise 'a run`' --plan a-use---id.toml``"), "{text}");
        assert_eq!(file_of("--"), "use.toml");
    }

    #[test]
    fn a_plan_that_was_written_is_not_asked_for_again() {
        let words = ["fsverdict", "advise", "run", "--for", "mail"];
        let typed = Typed { words: &words, program: "sudo fsverdict", written: Some("a b.toml") };
        let it = weighing(&[("commits", 0.1)], 0.2);
        let text = advice(&it, &typed);
        let says = "\nWritten: a b.toml. Now:\n  sudo fsverdict run 'a b.toml'\n";
        assert!(text.contains(says) && !text.contains("--plan"), "{text}");
        let text = advice_markdown(&it, &typed);
        let says = "Written: a b.toml. Now: `sudo fsverdict run 'a b.toml'`\n";
        assert!(text.contains(says) && !text.contains("--plan"), "{text}");
    }

    #[test]
    fn who_is_worse_than_equals_is_named_with_them() {
        let mut it = weighing(&[("commits", 1.0)], 1.0);
        let names = ["ext4", "xfs"].map(String::from);
        it.answer = Answer::Equivalent(names.to_vec());
        let beside = |contender: &str, reference: &str, verdict| Standing {
            contender: contender.into(),
            reference: reference.into(),
            ratio: Some(3.0),
            low: 2.5,
            high: Some(3.5),
            rounds: 12,
            outlying: Vec::new(),
            verdict,
        };
        it.standings = vec![
            beside("ext4", "xfs", Verdict::Equivalent),
            beside("ext4", "zfs 2.3", Verdict::Faster),
            beside("xfs", "zfs 2.3", Verdict::Faster),
            beside("xfs", "f2fs", Verdict::Faster),
            beside("ext4", "f2fs", Verdict::FasterSizeOpen),
        ];
        let said = answer(&it);
        let says = "ext4 and xfs are better than zfs 2.3. xfs is better than f2fs.";
        assert!(said.ends_with(says), "{said}");
    }

    #[test]
    fn layers_are_said_to_be_no_choice() {
        let mut it = weighing(&[("commits", 1.0)], 1.0);
        let others = ["luks", "luks+raid1"].map(String::from).to_vec();
        it.layers = Some(Below { compared: "none".into(), others });
        let says = "Only those on the bare disk are compared: layers are a condition, not a \
                    choice. The run has others, too: --layers luks, --layers luks+raid1.";
        assert_eq!(said(&it)[1], says);
    }

    #[test]
    fn weights_are_shown_as_they_are() {
        let it = weighing(&[("commits", 0.1)], 0.2);
        assert!(answer(&it).contains("by a weight of 0.1 of 0.3 (not by "), "{}", answer(&it));
        let said = |now, lever| {
            let it = weighing(&[("lookups", now)], 1.0);
            let turn = Turn { contender: "ext4".into(), what: "lookups".into(), lever };
            super::turn(&it, &turn).replace("ext4 would lead if lookups weighed ", "")
        };
        assert_eq!(said(3.0, Lever::WeightAbove(3.04)), "more than 3.04 (it weighs 3)");
        assert_eq!(said(3.0, Lever::WeightAbove(3.0004)), "more than 3.0004 (it weighs 3)");
        assert_eq!(said(0.5, Lever::WeightBelow(0.003)), "less than 0.003 (it weighs 0.5)");
    }

    #[test]
    fn who_is_better_by_an_open_size_is_named() {
        let mut it = weighing(&[("commits", 1.0)], 1.0);
        let names = ["xfs", "ext4"].map(String::from);
        it.answer = Answer::Undecided(names.to_vec());
        assert!(answer(&it).ends_with("found to be better than another."), "{}", answer(&it));
        let [contender, reference] = names;
        it.standings = vec![Standing {
            contender,
            reference,
            ratio: Some(1.004),
            low: 1.003,
            high: Some(1.06),
            rounds: 12,
            outlying: vec![3],
            verdict: Verdict::FasterSizeOpen,
        }];
        let says = "xfs is better than ext4, and the data do not say whether by more than 5%.";
        assert!(answer(&it).ends_with(says), "{}", answer(&it));
        let told = standing(&it, &it.standings[0]);
        assert!(told.contains("12 rounds; round 3 is an outlier"), "{told}");
        it.margin = Percent(0.002);
        assert!(standing(&it, &it.standings[0]).contains("1.004 times as good"));
    }
}
