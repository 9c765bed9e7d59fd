//! One recommendation for a use, on one screen: what to take, why, and how to have it.

use comfy_table::presets::UTF8_BORDERS_ONLY;

use super::advice::{has_ratios, said, standing, turn};
use super::findings::{Kind, kinds};
use super::grid::Grid;
use super::paint::{WIDTH, wrapped};
use super::words;
use crate::model::{Advice, Answer, Standing};

/// How many of the things that would change it are shown.
const TURNS: usize = 2;

/// So many of the verdicts that it rests on.
const STANDINGS: usize = 4;

/// What is known besides the advice.
pub struct Recommendation<'a> {
    /// What the run's figures say.
    pub advice: &'a Advice,
    /// The file system that is there now, where there is one.
    pub now: Option<&'a str>,
    /// Lines that make, mount and keep each contender, by its name.
    pub lines: &'a dyn Fn(&str) -> Vec<String>,
    /// What keeps the run from deciding, a sentence each.
    pub open: &'a [String],
    /// The gravest of what speaks against its figures.
    pub doubt: Option<String>,
    /// How to see all of it, and how to go on.
    pub next: &'a [String],
}

/// For a terminal; ends with a line break.
pub fn recommendation(it: &Recommendation) -> String {
    let taken = taken(it.advice, it.now);
    let mut out = match taken {
        Some(name) if matches!(it.advice.answer, Answer::Undecided(_)) => {
            format!("Stay with {name} for now.\n")
        }
        Some(name) if Some(name) == it.now => format!("Stay with {name}.\n"),
        Some(name) => format!("Take {name}.\n"),
        None if matches!(it.advice.answer, Answer::Even(_)) => "The choice is yours.\n".into(),
        None => "There is nothing to recommend yet.\n".into(),
    };
    for said in said(it.advice) {
        out += &format!("{}\n", wrapped(&said, WIDTH).join("\n"));
    }
    if has_ratios(it.advice) {
        out += &format!("\n{}\n", table(it.advice));
    }
    let mut against: Vec<String> =
        it.advice.left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let unmet = it.advice.conditions.iter().filter(|condition| !condition.met);
    against.extend(unmet.map(|no| format!("{}: {}: {}", no.contender, no.feature, no.evidence)));
    let rest = kinds(&it.advice.findings, &[]);
    let rest = rest.iter().filter(|kind| !kind.findings[0].is_of_terms());
    against.extend(rest.map(Kind::told));
    // Where it is open, that is among what keeps it so.
    let is_open = matches!(it.advice.answer, Answer::Undecided(_));
    against.extend(it.doubt.clone().filter(|_| !is_open));
    // A line that goes on stands further in.
    let broken = |text: String| wrapped(&text, WIDTH - 4).join("\n    ");
    let against = against.into_iter().map(broken).collect();
    let open = match it.advice.answer {
        Answer::Undecided(_) => it.open.iter().cloned().map(broken).collect(),
        _ => Vec::new(),
    };
    let turns = it.advice.turns.iter().take(TURNS);
    let turns = turns.map(|lever| broken(turn(it.advice, lever))).collect();
    let lines = match taken {
        Some(name) if Some(name) != it.now => (it.lines)(name),
        _ => Vec::new(),
    };
    for (title, lines) in [
        ("All parts together, by weight:", together(it.advice).map(broken).collect()),
        ("What is known, and what keeps it open:", open),
        ("Against the others, or against this:", against),
        ("What would change it:", turns),
        ("To set it up:", lines),
        ("More:", it.next.to_vec()),
    ] {
        if !lines.is_empty() {
            out += &format!("\n{title}\n  {}\n", lines.join("\n  "));
        }
    }
    out
}

/// The verdicts that the answer rests on, with their intervals.
fn together(advice: &Advice) -> impl Iterator<Item = String> + '_ {
    let rests_on = |it: &&Standing| match &advice.answer {
        Answer::Best(name) => it.contender == *name,
        Answer::Equivalent(names) | Answer::Even(names) | Answer::Undecided(names) => {
            names.contains(&it.contender) && names.contains(&it.reference)
        }
        Answer::Only(_) | Answer::Nobody | Answer::Unmeasured => false,
    };
    advice.standings.iter().filter(rests_on).take(STANDINGS).map(|it| standing(advice, it))
}

/// Where several are as good, what is there now stays; where it is none of them, the first, if they
/// are alike.
fn taken<'a>(advice: &'a Advice, now: Option<&'a str>) -> Option<&'a str> {
    let stays = |names: &'a [String]| names.iter().map(String::as_str).find(|it| Some(*it) == now);
    match &advice.answer {
        Answer::Best(name) => Some(name),
        // Who was left out was not found to be worse.
        Answer::Only(name) => advice.left_out.is_empty().then_some(name),
        Answer::Equivalent(names) => stays(names).or(names.first().map(String::as_str)),
        // Nobody is found to be better: moving house is not worth it.
        Answer::Even(names) | Answer::Undecided(names) => stays(names),
        Answer::Nobody | Answer::Unmeasured => None,
    }
}

/// What counts, and how good each is at it beside the one that leads.
fn table(advice: &Advice) -> Grid {
    let names: Vec<&String> =
        advice.weighed.iter().take(1).flat_map(|it| it.ratios.keys()).collect();
    let header = ["times as good".to_string()].into_iter();
    let mut table =
        Grid::new(UTF8_BORDERS_ONLY, header.chain(names.iter().map(ToString::to_string)));
    for it in &advice.weighed {
        let ratio =
            |name: &&String| it.ratios.get(*name).map_or("-".into(), |it| words::ratio(*it));
        table.add([it.what.clone()].into_iter().chain(names.iter().map(ratio)));
    }
    table.right(1..table.width);
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::{Percent, Verdict, Weighed};

    fn advice(answer: Answer) -> Advice {
        let ratios = BTreeMap::from([("ext4".to_string(), 0.731), ("xfs".to_string(), 1.0)]);
        let weighed = Weighed {
            what: "commits".into(),
            metric: "iops".into(),
            workloads: vec!["commits".into()],
            weight: 3.0,
            ratios,
        };
        Advice {
            purpose: "database".into(),
            about: String::new(),
            run: "run".into(),
            layers: None,
            answer,
            conditions: Vec::new(),
            left_out: Vec::new(),
            weighed: vec![weighed],
            missing: Vec::new(),
            standings: vec![Standing {
                contender: "xfs".into(),
                reference: "ext4".into(),
                ratio: Some(1.37),
                low: 1.21,
                high: Some(1.55),
                rounds: 7,
                outlying: Vec::new(),
                verdict: Verdict::Faster,
            }],
            findings: Vec::new(),
            turns: Vec::new(),
            margin: Percent(0.05),
            confidence: Percent(0.95),
        }
    }

    fn told(answer: Answer, now: Option<&str>) -> String {
        let lines = |name: &str| vec![format!("mkfs.{name} DEVICE")];
        let next = ["fsverdict report run".to_string()];
        let (advice, open) = (advice(answer), ["Others had the processors.".to_string()]);
        recommendation(&Recommendation {
            advice: &advice,
            now,
            lines: &lines,
            open: &open,
            doubt: Some("warning A13 (others at work)".into()),
            next: &next,
        })
    }

    #[test]
    fn the_best_is_taken_with_the_lines_that_make_it() {
        let text = told(Answer::Best("xfs".into()), Some("ext4"));
        assert!(text.starts_with("Take xfs.\nxfs is the best here for database"), "{text}");
        assert!(text.contains("0.73") && text.contains("mkfs.xfs DEVICE"), "{text}");
        let why =
            "xfs is better than ext4, 1.37 times as good (95% interval 1.210 to 1.550, 7 rounds).";
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(why), "{text}");
        assert!(text.lines().count() <= 26, "{text}");
    }

    #[test]
    fn nobody_moves_for_nothing() {
        let both = || vec!["xfs".to_string(), "ext4".into()];
        let text = told(Answer::Equivalent(both()), Some("ext4"));
        assert!(text.starts_with("Stay with ext4.\n") && !text.contains("mkfs"), "{text}");
        assert!(told(Answer::Equivalent(both()), None).starts_with("Take xfs."));
        assert!(
            told(Answer::Undecided(both()), Some("ext4")).starts_with("Stay with ext4 for now.")
        );
        assert!(told(Answer::Undecided(both()), None).starts_with("There is nothing"));
        assert!(told(Answer::Nobody, Some("ext4")).starts_with("There is nothing"));
        assert!(told(Answer::Even(both()), Some("ext4")).starts_with("Stay with ext4.\n"));
        let open = told(Answer::Even(both()), Some("btrfs"));
        assert!(open.starts_with("The choice is yours.\n") && !open.contains("mkfs"), "{open}");
    }

    #[test]
    fn nobody_is_taken_who_was_compared_with_nobody() {
        let only = || Answer::Only("xfs".into());
        let text = told(only(), Some("ext4"));
        assert!(text.starts_with("Take xfs."), "the others failed a condition: {text}");
        let left_out = |answer| {
            let why = "no round has all of its figures".to_string();
            let advice = Advice { left_out: vec![("ext4".into(), why)], ..advice(answer) };
            let lines = |name: &str| vec![format!("mkfs.{name} DEVICE")];
            recommendation(&Recommendation {
                advice: &advice,
                now: Some("ext4"),
                lines: &lines,
                open: &[],
                doubt: None,
                next: &[],
            })
        };
        let text = left_out(only());
        assert!(text.starts_with("There is nothing to recommend yet.\n"), "{text}");
        assert!(!text.contains("mkfs") && text.contains("ext4: no round has all"), "{text}");
        let text = left_out(Answer::Best("xfs".into()));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("measured it. ext4 was not compared."), "{text}");
    }

    #[test]
    fn what_is_open_says_why() {
        let both = || vec!["xfs".to_string(), "ext4".into()];
        for now in [None, Some("ext4")] {
            assert!(
                told(Answer::Undecided(both()), now).contains("\n  Others had the processors.")
            );
        }
        assert!(!told(Answer::Undecided(both()), None).contains("A13"), "it is said once");
        let best = told(Answer::Best("xfs".into()), None);
        assert!(!best.contains("processors") && best.contains("\n  warning A13 (others"), "{best}");
    }

    #[test]
    fn no_table_stands_where_nobody_has_a_ratio() {
        let mut advice = advice(Answer::Nobody);
        let shown = |advice: &Advice| {
            let (lines, none) = (|_: &str| Vec::new(), &[]);
            recommendation(&Recommendation {
                advice,
                now: None,
                lines: &lines,
                open: none,
                doubt: None,
                next: none,
            })
        };
        assert!(shown(&advice).contains("times as good"));
        advice.weighed[0].ratios.clear();
        assert!(!shown(&advice).contains("times as good"), "{}", shown(&advice));
    }
}
