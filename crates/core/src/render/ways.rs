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

/// At how many tests each of the two matters more, as far as the intervals can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Matters {
    first: usize,
    second: usize,
    /// At which neither makes a difference that matters.
    neither: usize,
    /// All tests.
    of: usize,
}

/// Test by test.
pub(super) fn matters(plan: &Plan, ways: &Ways, comparisons: &[Comparison]) -> Matters {
    let is_same = |one: &Comparison, other: &Comparison| {
        (&one.workload, &one.metric) == (&other.workload, &other.metric)
    };
    let mut matters = Matters::default();
    for test in comparisons.chunk_by(is_same) {
        let [first, second] = ways.effects(plan, test);
        matters.of += 1;
        let least = plan.judgement.margin.0.ln_1p();
        if first.at_most < least && second.at_most < least {
            matters.neither += 1;
            continue;
        }
        matters.first += usize::from(first.surely > second.at_most);
        matters.second += usize::from(second.surely > first.at_most);
    }
    matters
}

/// How large differences are, as logarithms: the largest is at least and at most so large.
#[derive(Default)]
struct Effect {
    surely: f64,
    at_most: f64,
}

/// The ends of ln(ratio) to the reference.
pub(super) type Ends = [f64; 2];

impl Effect {
    /// Takes the difference of two. Where one is not known, as of what a file system refuses, it
    /// may be any.
    fn take(&mut self, both: Option<(Ends, Ends)>) {
        let Some((one, other)) = both else {
            self.at_most = f64::INFINITY;
            return;
        };
        let (low, high) = (one[0] - other[1], one[1] - other[0]);
        let surely = if low > 0.0 || high < 0.0 { low.abs().min(high.abs()) } else { 0.0 };
        self.surely = self.surely.max(surely);
        self.at_most = self.at_most.max(low.abs()).max(high.abs());
    }
}

/// The interval of a comparison; unbounded where there is none.
pub(super) fn ends(comparison: &Comparison) -> Ends {
    let high = comparison.high.filter(|_| comparison.verdict != Verdict::Void);
    match high.filter(|_| comparison.low > 0.0) {
        Some(high) => [comparison.low.ln(), high.ln()],
        None => [f64::NEG_INFINITY, f64::INFINITY],
    }
}

impl Ways {
    /// What each way does at one test: the first in each column against the reference's row, the
    /// second in each row against the reference's column.
    fn effects(&self, plan: &Plan, test: &[Comparison]) -> [Effect; 2] {
        let of = |place: &usize| {
            let name = plan.contenders[*place].name.as_str();
            let its = test.iter().find(|it| it.contender == name).map(ends);
            its.or_else(|| (name == plan.reference()).then_some([0.0; 2]))
        };
        let cells: Vec<Vec<Option<Ends>>> =
            self.places.iter().map(|row| row.iter().map(of).collect()).collect();
        let name = |place: &usize| plan.contenders[*place].name == plan.reference();
        let row = self.places.iter().position(|row| row.iter().any(name)).unwrap_or(0);
        let column = self.places[row].iter().position(name).unwrap_or(0);
        let [mut first, mut second] = [Effect::default(), Effect::default()];
        for (its_row, line) in cells.iter().enumerate() {
            for (its_column, cell) in line.iter().enumerate() {
                if its_row != row {
                    first.take(cell.zip(cells[row][its_column]));
                }
                if its_column != column {
                    second.take(cell.zip(line[column]));
                }
            }
        }
        [first, second]
    }

    /// Which matters, as a sentence.
    pub fn sentence(&self, matters: Matters) -> String {
        let Matters { first, second, neither, of } = matters;
        let more = |one: &str, other: &str| {
            let s = if one.ends_with('s') { "" } else { "s" };
            format!("he {one} matter{s} more than the {other}")
        };
        let [firsts, seconds] = [more(self.first, self.second), more(self.second, self.first)];
        let mut rest = String::new();
        if neither > 0 {
            rest += &format!("; at {neither} neither does");
        }
        if first + second + neither < of {
            rest += "; the rest is open";
        }
        match (first, second) {
            (0, 0) if neither == of => {
                format!("Neither the {} nor the {} matters.", self.first, self.second)
            }
            (0, 0) => {
                let (first, second) = (self.first, self.second);
                format!("Whether the {first} or the {second} matters more is open.")
            }
            (all, 0) if all == of => format!("T{firsts}."),
            (0, all) if all == of => format!("T{seconds}."),
            (some, 0) => format!("At {some} of {of} tests t{firsts}{rest}."),
            (0, some) => format!("At {some} of {of} tests t{seconds}{rest}."),
            _ => format!("At {first} of {of} tests t{firsts}, at {second} less{rest}."),
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
        let mut missing = plan.clone();
        missing.contenders.pop();
        assert_eq!(ways(&missing), None);
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
            let both = of("xfs on 6.12", system * kernel);
            // Of btrfs as of ext4.
            let others = [of("btrfs on 5.10", 1.0), of("btrfs on 6.12", kernel), both];
            let all = [of("xfs on 5.10", system), of("ext4 on 6.12", kernel)];
            let all: Vec<Comparison> = all.into_iter().chain(others).collect();
            ways.sentence(matters(&plan, &ways, &all))
        };
        let first = "The file system matters more than the kernel.";
        let open = "Whether the file system or the kernel matters more is open.";
        assert_eq!(told(3.0, 1.01, Verdict::Faster), first);
        assert_eq!(
            told(0.9, 0.3, Verdict::Faster),
            "The kernel matters more than the file system."
        );
        assert_eq!(told(1.3, 1.2, Verdict::Faster), open);
        assert_eq!(told(2.0, 1.0, Verdict::Void), open);
    }

    #[test]
    fn what_matters_is_told_test_by_test_and_by_every_cell() {
        let plan = plan();
        let ways = ways(&plan).unwrap();
        let of = |metric: &str, system: f64, kernel: f64, both: f64| {
            let all = [
                ("xfs on 5.10", system),
                ("ext4 on 6.12", kernel),
                ("xfs on 6.12", both),
                ("btrfs on 5.10", 1.0),
                ("btrfs on 6.12", kernel),
            ];
            let of = |(name, ratio)| Comparison {
                metric: metric.into(),
                ..comparison("w", name, Verdict::Faster, ratio)
            };
            all.map(of)
        };
        let told =
            |tests: &[[Comparison; 5]]| ways.sentence(matters(&plan, &ways, &tests.concat()));
        let (bytes, flushes) = (of("bytes", 3.0, 1.0, 3.0), of("flushes", 1.0, 0.3, 0.3));
        let open = of("writes", 1.0, 1.0, 1.0);
        assert_eq!(
            told(&[bytes.clone(), flushes]),
            "At 1 of 2 tests the file system matters more than the kernel, at 1 less."
        );
        let alike = of("reads", 1.0, 1.0, 1.0);
        let alike = alike.map(|it| Comparison { low: 0.99, high: Some(1.01), ..it });
        assert_eq!(
            told(&[bytes.clone(), alike.clone()]),
            "At 1 of 2 tests the file system matters more than the kernel; at 1 neither does."
        );
        assert_eq!(told(&[alike]), "Neither the file system nor the kernel matters.");
        assert_eq!(
            told(&[bytes, open]),
            "At 1 of 2 tests the file system matters more than the kernel; the rest is open."
        );
        // On xfs the kernel takes away all that xfs is ahead, and more.
        let crossed = of("bytes", 3.0, 1.0, 0.3);
        assert_eq!(told(&[crossed]), "The kernel matters more than the file system.");
        // Nothing was measured of xfs and btrfs: they may differ by more.
        let kernels = of("bytes", 1.0, 0.3, 0.3);
        let refused = [kernels[1].clone()];
        let said = ways.sentence(matters(&plan, &ways, &refused));
        assert!(said.starts_with("Whether the file system or the kernel"), "{said}");
        let halved = of("bytes", 3.0, 1.0, 1.0);
        assert!(told(&[halved]).starts_with("Whether the file system or the kernel"));
    }
}
