//! Which options of a command are refused, which make a difference, and which make none: found by
//! leaving each of them out, giving it alone, and giving its opposite.

use std::collections::BTreeMap;

use fsverdict_core::script::Choice;

use super::bench::Refused;

/// What came out, by the names of its parts.
pub type Facts = BTreeMap<String, String>;

/// Tries a command with some of its options.
pub type Try<'a> = &'a mut dyn FnMut(&[Choice]) -> Result<Facts, Refused>;

/// A part of what came out that an option changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which part.
    pub name: String,
    /// What it is without the option, if it is there.
    pub from: Option<String>,
    /// What it is with it.
    pub to: Option<String>,
}

/// How an option did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is refused, with these words.
    Refused(String),
    /// It could not be tried.
    Untried(String),
    /// It changes this.
    Changes(Vec<Change>),
    /// The others are refused without it.
    Needed,
    /// The result is the same without it: it asks for the default.
    Default,
    /// It would make a difference alone, but this other one decides.
    Overridden(Option<String>),
    /// Neither it nor its opposite makes a difference.
    Ignored,
}

/// The fates of `choices`, in their order. An error says why nothing can be tried at all.
pub fn sort(choices: &[Choice], make: Try) -> Result<Vec<Fate>, String> {
    let none = match make(&[]) {
        Ok(facts) => facts,
        Err(Refused::Said(text)) => {
            return Err(format!("it fails without these options too: {text}"));
        }
        Err(Refused::Unasked(text)) => return Err(text),
    };
    let refusals = refusals(choices, make);
    let accepted: Vec<Choice> = without_refused(choices, &refusals);
    let full = make(&accepted).unwrap_or_default();
    let mut fates = Vec::new();
    let mut place = 0;
    for refusal in refusals {
        fates.push(match refusal {
            Some(Refused::Said(text)) => Fate::Refused(text),
            Some(Refused::Unasked(text)) => Fate::Untried(text),
            None => {
                place += 1;
                fate(&accepted, place - 1, &none, &full, make)
            }
        });
    }
    Ok(fates)
}

/// Those of `choices` that were not refused.
fn without_refused(choices: &[Choice], refusals: &[Option<Refused>]) -> Vec<Choice> {
    let pairs = choices.iter().zip(refusals);
    pairs.filter(|(_, refusal)| refusal.is_none()).map(|(choice, _)| choice.clone()).collect()
}

fn without(choices: &[Choice], place: usize) -> Vec<Choice> {
    let mut rest = choices.to_vec();
    rest.remove(place);
    rest
}

/// Why each of them is refused.
fn refusals(choices: &[Choice], make: Try) -> Vec<Option<Refused>> {
    let mut refusals = vec![None; choices.len()];
    let Err(said) = make(choices) else { return refusals };
    let culprits: Vec<usize> =
        (0..choices.len()).filter(|&place| make(&without(choices, place)).is_ok()).collect();
    if let [only] = culprits.as_slice() {
        refusals[*only] = Some(said);
        return refusals;
    }
    // Several are wrong, or two don't go together: the options are added one list at a time,
    // because some need each other (sunit and swidth), and those of a refused list one at a time.
    let mut kept: Vec<Choice> = Vec::new();
    let numbered: Vec<(usize, &Choice)> = choices.iter().enumerate().collect();
    for list in numbered.chunk_by(|a, b| a.1.group == b.1.group) {
        let whole: Vec<Choice> =
            kept.iter().cloned().chain(list.iter().map(|(_, choice)| (*choice).clone())).collect();
        if make(&whole).is_ok() {
            kept = whole;
            continue;
        }
        one_by_one(list, &mut kept, &mut refusals, make);
    }
    refusals
}

/// Adds those of a refused list that are taken: each alone, or with another that needs it.
fn one_by_one(
    list: &[(usize, &Choice)],
    kept: &mut Vec<Choice>,
    refusals: &mut [Option<Refused>],
    make: Try,
) {
    let mut pending: Vec<(usize, &Choice, Refused)> = Vec::new();
    for &(place, choice) in list {
        kept.push(choice.clone());
        let Err(said) = make(kept) else { continue };
        kept.pop();
        let with = |other: &Choice| [kept.as_slice(), &[other.clone(), choice.clone()]].concat();
        let partner = pending.iter().position(|(_, other, _)| make(&with(other)).is_ok());
        match partner {
            Some(partner) => {
                let (_, other, _) = pending.remove(partner);
                kept.extend([other.clone(), choice.clone()]);
            }
            None => pending.push((place, choice, said)),
        }
    }
    for (place, _, said) in pending {
        refusals[place] = Some(said);
    }
}

fn fate(accepted: &[Choice], place: usize, none: &Facts, full: &Facts, make: Try) -> Fate {
    let Ok(rest) = make(&without(accepted, place)) else { return Fate::Needed };
    let changes = changes(&rest, full);
    if !changes.is_empty() {
        return Fate::Changes(changes);
    }
    let choice = &accepted[place];
    let alone = make(std::slice::from_ref(choice));
    if alone.is_ok_and(|alone| alone != *none) {
        return Fate::Overridden(decider(accepted, place, make));
    }
    let ignored = opposites(choice).into_iter().any(|opposite| {
        let mut turned = accepted.to_vec();
        turned[place] = opposite;
        make(&turned).is_ok_and(|facts| facts == *full)
    });
    if ignored { Fate::Ignored } else { Fate::Default }
}

/// The option without which this one makes a difference.
fn decider(accepted: &[Choice], place: usize, make: Try) -> Option<String> {
    (0..accepted.len()).filter(|&other| other != place).find_map(|other| {
        let with = without(accepted, other);
        let neither = without(&with, if place > other { place - 1 } else { place });
        let differs = make(&with).ok()? != make(&neither).ok()?;
        differs.then(|| accepted[other].to_string())
    })
}

/// What changes from one outcome to the other.
pub fn changes(from: &Facts, to: &Facts) -> Vec<Change> {
    let mut names: Vec<&String> = from.keys().chain(to.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| Change {
        name: name.clone(),
        from: from.get(name).cloned(),
        to: to.get(name).cloned(),
    };
    names.into_iter().map(change).filter(|change| change.from != change.to).collect()
}

/// What asks for the contrary: another number, `^name`, `noname`. The first that is understood
/// counts.
fn opposites(choice: &Choice) -> Vec<Choice> {
    let Some(value) = &choice.value else { return Vec::new() };
    let turned = match value.split_once('=') {
        Some((key, value)) => other_number(value).map(|value| format!("{key}={value}")),
        None if choice.flag == "-O" => {
            Some(value.strip_prefix('^').map_or(format!("^{value}"), String::from))
        }
        None => Some(value.strip_prefix("no").map_or(format!("no{value}"), String::from)),
    };
    turned.map(|value| Choice { value: Some(value), ..choice.clone() }).into_iter().collect()
}

/// 0 for 1, 1 for 0, half of the rest; its unit stays.
fn other_number(text: &str) -> Option<String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let other = if number == 0 { 1 } else { number / 2 };
    Some(format!("{other}{}", &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsverdict_core::script;

    fn choices(text: &str) -> Vec<Choice> {
        let words: Vec<String> = text.split(' ').chain(["/dev/x"]).map(String::from).collect();
        script::choices(&words).0
    }

    /// A tool that knows a few options: a is on by default, b implies c, d is read and forgotten,
    /// s and t need each other, x and y don't go together, whatever begins with ? is unknown.
    fn tool(choices: &[Choice]) -> Result<Facts, Refused> {
        let has = |name: &str| choices.iter().any(|choice| choice.value.as_deref() == Some(name));
        if let Some(bad) = choices.iter().find(|choice| choice.key().starts_with('?')) {
            return Err(Refused::Said(format!("unknown {bad}")));
        }
        if has("s") != has("t") || (has("x") && has("y")) {
            return Err(Refused::Said("together".into()));
        }
        let mut facts = Facts::new();
        facts.insert("a".into(), (!has("noa")).to_string());
        facts.insert("c".into(), (has("b") || has("c")).to_string());
        for name in ["b", "s", "x"] {
            facts.insert(name.into(), has(name).to_string());
        }
        Ok(facts)
    }

    fn fates(text: &str) -> Vec<Fate> {
        sort(&choices(text), &mut tool).unwrap()
    }

    #[test]
    fn each_option_has_its_fate() {
        let fates = fates("-o a,b,c,d,?e");
        assert_eq!(fates[0], Fate::Default);
        assert!(matches!(&fates[1], Fate::Changes(changes) if changes.len() == 1), "{fates:?}");
        assert_eq!(fates[2], Fate::Overridden(Some("-o b".into())));
        assert_eq!(fates[3], Fate::Ignored);
        assert_eq!(fates[4], Fate::Refused("unknown -o ?e".into()));
    }

    #[test]
    fn several_wrong_ones_are_told_apart_and_partners_stay_together() {
        let fates = fates("-o ?a -d s,t -o b,?c");
        assert!(matches!(fates[0], Fate::Refused(_)));
        assert_eq!([&fates[1], &fates[2]], [&Fate::Needed; 2]);
        assert!(matches!(fates[3], Fate::Changes(_)));
        assert!(matches!(fates[4], Fate::Refused(_)));
    }

    #[test]
    fn partners_in_a_list_with_a_wrong_one_are_taken_together() {
        let fates = fates("-o ?a,s,b,t");
        assert!(matches!(fates[0], Fate::Refused(_)));
        assert_eq!([&fates[1], &fates[3]], [&Fate::Needed; 2]);
        assert!(matches!(fates[2], Fate::Changes(_)));
    }

    #[test]
    fn of_two_that_do_not_go_together_the_later_is_refused() {
        let fates = fates("-o x,y");
        assert!(matches!(fates[0], Fate::Changes(_)));
        assert_eq!(fates[1], Fate::Refused("together".into()));
    }

    #[test]
    fn a_tool_that_fails_anyway_judges_nothing() {
        let mut broken = |_: &[Choice]| Err(Refused::Said("no".into()));
        let error = sort(&choices("-o a"), &mut broken).unwrap_err();
        assert_eq!(error, "it fails without these options too: no");
    }

    #[test]
    fn an_opposite_keeps_the_unit() {
        assert_eq!(other_number("256k").as_deref(), Some("128k"));
        assert_eq!(other_number("1").as_deref(), Some("0"));
        assert_eq!(other_number("zstd"), None);
    }
}
