//! Figures that are zero: they have no logarithm, and so no ratio to another.

use std::collections::BTreeMap;

use super::Record;

/// The values of two in the rounds that hold both, where some are zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Zeros {
    values: Vec<[f64; 2]>,
}

impl Zeros {
    /// Those of `metric` for two, each a workload and a contender. If a trial was run again the
    /// later record counts. `None` if no round with both has a zero.
    pub fn of(records: &[Record], metric: &str, both: [(&str, &str); 2]) -> Option<Zeros> {
        let of = |(work, name): (&str, &str)| {
            let is_its = |it: &&Record| {
                it.is_measured() && it.key.workload == work && it.key.contender == name
            };
            let value = |it: &Record| Some((it.key.round, it.sample(metric)?.value));
            records.iter().filter(is_its).filter_map(value).collect::<BTreeMap<u32, f64>>()
        };
        let [one, other] = both.map(of);
        let values = one.iter().filter_map(|(round, value)| Some([*value, *other.get(round)?]));
        let zeros = Zeros { values: values.collect() };
        (zeros.counts() != [0, 0]).then_some(zeros)
    }

    /// How many are zero of each of the two.
    fn counts(&self) -> [usize; 2] {
        [0, 1].map(|side| self.values.iter().filter(|it| it[side] == 0.0).count())
    }

    /// How much more the first has than the other, round by round, where one of the two has nothing
    /// in any round and the other something in each.
    pub fn differences(&self) -> Option<Vec<f64>> {
        let all = self.values.len();
        let is_apart = [[all, 0], [0, all]].contains(&self.counts());
        is_apart.then(|| self.values.iter().map(|[one, other]| one - other).collect())
    }

    /// "xfs was 0 in 12 of 12 rounds, ext4 in none".
    pub fn said(&self, names: [&str; 2]) -> String {
        let count = |count: usize| if count == 0 { "none".into() } else { count.to_string() };
        let ([one, other], all) = (self.counts().map(count), self.values.len());
        format!("{} was 0 in {one} of {all} rounds, {} in {other}", names[0], names[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Key, Sample, Unit};

    #[test]
    fn zeros_are_counted_in_the_rounds_of_both() {
        let record = |round, name: &str, value| {
            let key = Key { round, workload: "w".into(), contender: name.into() };
            let samples = vec![Sample::lower("flushes", value, Unit::Count)];
            Record { samples, ..Record::new(round, key, 0, 0) }
        };
        let of = |values: &[[f64; 2]]| {
            let rounds = (1..).zip(values);
            let both = |(round, [one, other]): (u32, &[f64; 2])| {
                [record(round, "a", *one), record(round, "b", *other)]
            };
            let mut records: Vec<Record> = rounds.flat_map(both).collect();
            records.push(record(9, "a", 0.0));
            Zeros::of(&records, "flushes", [("w", "a"), ("w", "b")])
        };
        assert_eq!(of(&[[1.0, 2.0]]), None, "round 9 holds one alone");
        let some = of(&[[0.0, 2.0], [1.0, 0.0], [0.0, 1.0]]).unwrap();
        assert_eq!(some.said(["a", "b"]), "a was 0 in 2 of 3 rounds, b in 1");
        assert_eq!(some.differences(), None);
        let apart = of(&[[0.0, 2.0], [0.0, 1.0]]).unwrap();
        assert_eq!(apart.said(["a", "b"]), "a was 0 in 2 of 2 rounds, b in none");
        assert_eq!(apart.differences(), Some(vec![-2.0, -1.0]));
    }
}
