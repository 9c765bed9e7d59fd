//! Runs whose contenders differ in two ways at once: each file system on each kernel, or with each
//! of some settings.

use crate::model::{Comparison, Contender, Plan, Verdict};

/// Two ways, and which contender is where.
#[derive(Debug, PartialEq)]
pub(super) struct Ways {
    /// What differs from row to row.
    pub first: &'static str,
    /// What differs from column to column.
    pub second: &'static str,
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    /// Places of contenders in the plan, row by row.
    pub places: Vec<Vec<usize>>,
}

/// The ways, where every level of one meets every level of the other once.
pub(super) fn ways(plan: &Plan) -> Option<Ways> {
    let contenders = &plan.contenders;
    let settings: Vec<String> = contenders.iter().map(settings).collect();
    let firsts = each_once(contenders.iter().map(|it| it.file_system.as_str()));
    let seconds = each_once(settings.iter().map(String::as_str));
    if firsts.len() < 2 || seconds.len() < 2 || firsts.len() * seconds.len() != contenders.len() {
        return None;
    }
    let place = |first: &str, second: &str| {
        let mut pairs = contenders.iter().zip(&settings);
        pairs.position(|(it, settings)| it.file_system == first && settings == second)
    };
    let row = |first: &&str| seconds.iter().map(|second| place(first, second)).collect();
    let places: Vec<Vec<usize>> = firsts.iter().map(row).collect::<Option<_>>()?;
    let columns = places[0].iter().map(|place| level(&contenders[*place]));
    Some(Ways {
        first: "file system",
        second: second(contenders),
        rows: firsts.iter().map(ToString::to_string).collect(),
        columns: columns.collect(),
        places,
    })
}

/// What differs besides the file system, in a word.
fn second(contenders: &[Contender]) -> &'static str {
    let first = &contenders[0];
    let differ = [
        ("layers", contenders.iter().any(|it| it.layers != first.layers)),
        ("above", contenders.iter().any(|it| it.above != first.above)),
        ("attachment", contenders.iter().any(|it| it.disks != first.disks)),
        ("kernel", contenders.iter().any(|it| it.kernel != first.kernel)),
    ];
    let mut differing = differ.into_iter().filter_map(|(what, is_so)| is_so.then_some(what));
    let is_kernel = contenders.iter().all(|it| it.kernel.is_some());
    match (differing.next(), differing.next()) {
        (Some(one), None) => one,
        (None, _) if is_kernel => "kernel",
        _ => "setting",
    }
}

/// All that is set besides the file system, as one text.
fn settings(contender: &Contender) -> String {
    let besides =
        Contender { name: String::new(), file_system: String::new(), ..contender.clone() };
    toml::to_string(&besides).unwrap_or_default()
}

fn each_once<'a>(levels: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut once = Vec::new();
    for level in levels {
        if !once.contains(&level) {
            once.push(level);
        }
    }
    once
}

/// What a contender is called besides its file system: "6.12" of "ext4 on 6.12".
fn level(contender: &Contender) -> String {
    let name = contender.name.replacen(&contender.file_system, "", 1);
    let name = name.trim_matches([' ', '-', ',', '_']);
    let named = ["on ", "with ", "under "].iter().find_map(|word| name.strip_prefix(word));
    let name = named.unwrap_or(name).trim();
    if name.is_empty() { "default".into() } else { name.into() }
}

/// Which of the two matters more, as far as the intervals can tell: the largest difference that one
/// surely makes is beyond the largest that the other can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matters {
    First,
    Second,
    Open,
}

/// By the cells that differ from the reference in one way alone.
pub(super) fn matters(plan: &Plan, ways: &Ways, comparisons: &[Comparison]) -> Matters {
    let reference = plan.contenders.iter().position(|it| it.name == plan.reference());
    let at = |wanted: usize| {
        let row = ways.places.iter().position(|row| row.contains(&wanted))?;
        Some([row, ways.places[row].iter().position(|it| *it == wanted)?])
    };
    let Some([row, column]) = reference.and_then(at) else { return Matters::Open };
    let of = |comparison: &Comparison| {
        let place = plan.contenders.iter().position(|it| it.name == comparison.contender);
        place.and_then(at)
    };
    let mut firsts = Effect::default();
    let mut seconds = Effect::default();
    for comparison in comparisons {
        match of(comparison) {
            Some([_, its]) if its == column => firsts.take(comparison),
            Some([its, _]) if its == row => seconds.take(comparison),
            _ => {}
        }
    }
    match (firsts.surely > seconds.at_most, seconds.surely > firsts.at_most) {
        (true, _) => Matters::First,
        (_, true) => Matters::Second,
        _ => Matters::Open,
    }
}

/// How far from 1 ratios are, as logarithms: at least the farthest, and at most any of them.
#[derive(Default)]
struct Effect {
    surely: f64,
    at_most: f64,
}

impl Effect {
    fn take(&mut self, comparison: &Comparison) {
        let high = comparison.high.filter(|_| comparison.verdict != Verdict::Void);
        let Some(high) = high.filter(|_| comparison.low > 0.0) else {
            self.at_most = f64::INFINITY;
            return;
        };
        let (low, high) = (comparison.low.ln(), high.ln());
        let surely = if low > 0.0 || high < 0.0 { low.abs().min(high.abs()) } else { 0.0 };
        self.surely = self.surely.max(surely);
        self.at_most = self.at_most.max(low.abs()).max(high.abs());
    }
}

impl Ways {
    /// Which matters, as a sentence.
    pub fn sentence(&self, matters: Matters) -> String {
        let (first, second) = (self.first, self.second);
        match matters {
            Matters::First => format!("The {first} matters more than the {second}."),
            Matters::Second => format!("The {second} matters more than the {first}."),
            Matters::Open => format!("Whether the {first} or the {second} matters more is open."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::comparison;
    use super::*;
    use crate::model::Attachment;

    fn plan() -> Plan {
        let mut text = String::new();
        for kernel in ["5.10", "6.12"] {
            for system in ["ext4", "xfs", "btrfs"] {
                text += &format!(
                    "[[contender]]\nname = \"{system} on {kernel}\"\nfile_system = \"{system}\"\n\
                     kernel = \"{kernel}\"\n"
                );
            }
        }
        text += "[[workload]]\nname = \"w\"\ncommand = \"x\"\n";
        Plan::parse(&text).unwrap()
    }

    #[test]
    fn a_full_grid_has_two_ways_and_nothing_else_has() {
        let plan = plan();
        let found = ways(&plan).unwrap();
        assert_eq!((found.first, found.second), ("file system", "kernel"));
        assert_eq!(found.rows, ["ext4", "xfs", "btrfs"]);
        assert_eq!(found.columns, ["5.10", "6.12"]);
        assert_eq!(found.places, [[0, 3], [1, 4], [2, 5]]);
        let mut lacking = plan.clone();
        lacking.contenders.pop();
        assert_eq!(ways(&lacking), None);
        let mut settings = plan;
        for contender in &mut settings.contenders {
            let is_new = contender.kernel.take().as_deref() == Some("6.12");
            contender.mount = if is_new { vec!["noatime".into()] } else { Vec::new() };
            let end = if is_new { "-noatime" } else { "" };
            contender.name = format!("{}{end}", contender.file_system);
        }
        let mut layered = settings.clone();
        for contender in &mut layered.contenders {
            if !std::mem::take(&mut contender.mount).is_empty() {
                contender.layers = vec!["luks".parse().unwrap()];
            }
        }
        assert_eq!(ways(&layered).unwrap().second, "layers");
        for contender in &mut layered.contenders {
            let above = if contender.layers.is_empty() { "" } else { " under overlay" };
            contender.name = format!("{}{above}", contender.file_system);
            contender.above = std::mem::take(&mut contender.layers)
                .iter()
                .map(|_| "overlay".parse().unwrap())
                .collect();
        }
        let found = ways(&layered).unwrap();
        assert_eq!((found.second, found.columns[1].as_str()), ("above", "overlay"));
        for contender in &mut layered.contenders {
            let is_above = !std::mem::take(&mut contender.above).is_empty();
            contender.disks = is_above.then_some(Attachment::Nvme);
        }
        assert_eq!(ways(&layered).unwrap().second, "attachment");
        for contender in &mut layered.contenders {
            contender.kernel = Some(if contender.disks.is_some() { "6.12" } else { "6.1" }.into());
        }
        assert_eq!(ways(&layered).unwrap().second, "setting", "both differ");
        let found = ways(&settings).unwrap();
        assert_eq!(
            (found.second, found.columns),
            ("setting", ["default", "noatime"].map(String::from).into())
        );
    }

    #[test]
    fn what_matters_more_is_said_only_where_the_intervals_tell() {
        let plan = plan();
        let ways = ways(&plan).unwrap();
        let told = |system: f64, kernel: f64, verdict| {
            let of = |name: &str, ratio| comparison("w", name, verdict, ratio);
            let all =
                [of("xfs on 5.10", system), of("ext4 on 6.12", kernel), of("xfs on 6.12", 9.0)];
            matters(&plan, &ways, &all)
        };
        assert_eq!(told(2.0, 1.01, Verdict::Faster), Matters::First);
        assert_eq!(told(0.9, 0.3, Verdict::Faster), Matters::Second);
        assert_eq!(told(1.3, 1.2, Verdict::Faster), Matters::Open);
        assert_eq!(told(2.0, 1.0, Verdict::Void), Matters::Open);
        assert!(ways.sentence(Matters::First).starts_with("The file system matters more"));
        assert!(ways.sentence(Matters::Open).starts_with("Whether the file system or the kernel"));
    }
}
