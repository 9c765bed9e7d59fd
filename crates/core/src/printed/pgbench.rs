//! pgbench: PostgreSQL's own benchmark.

use super::Program;
use super::text::{MS_NS, groups, last_number, latency, number, rate};
use super::typed::{has, metrics};
use crate::model::Sample;

pub const PROGRAM: Program = Program {
    prefix: "pgbench",
    names: &["pgbench"],
    marks: &["tps = "],
    read,
    judged: |words| {
        let makes_tables = has(words, &["--initialize"]) || words.iter().any(|it| has_i(it));
        metrics(if makes_tables { &[] } else { &["pgbench_transactions"] })
    },
    advice: "pgbench prints it at its end",
};

/// `-i`, `-is`: letters that take no value come before it (pgbench.c, getopt_long).
fn has_i(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    letters.chars().take_while(|letter| "CilnNqrSv".contains(*letter)).any(|letter| letter == 'i')
}

fn read(text: &str) -> Vec<Sample> {
    // Before version 14 there was a second one, "including connections establishing". Since then
    // there is one alone, with -C "including reconnection times" (pgbench.c, printResults).
    let tps = groups::<2>(text, r"^tps = ([\d.]+)(?: \((\w+ \w+))?");
    let without = tps.into_iter().rfind(|[_, what]| *what != "including connections");
    let Some(tps) = without.and_then(|[tps, _]| number(tps)) else { return Vec::new() };
    let mut figures = vec![rate("pgbench_transactions", tps)];
    for (printed, name) in [("average", "mean"), ("stddev", "stddev")] {
        let ms = last_number(text, &format!(r"^latency {printed}(?: =|:) ([\d.]+) ms"));
        figures.extend(ms.map(|ms| latency(format!("pgbench_latency_{name}"), ms, MS_NS)));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::text::{figure, words};
    use super::*;

    #[test]
    fn pgbench_15() {
        let read = read(include_str!("kept/pgbench.txt"));
        assert_eq!(figure(&read, "pgbench_transactions"), Some(3_593.424_506));
        assert_eq!(figure(&read, "pgbench_latency_mean"), Some(557_000.0));
        assert_eq!(read.len(), 2);
    }

    /// As pgbench 15 ends with -C.
    #[test]
    fn one_that_connects_for_each_transaction_counts_that() {
        let printed = "latency average = 20.479 ms\naverage connection time = 6.131 ms\n\
                       tps = 48.830704 (including reconnection times)\n";
        let read = read(printed);
        assert_eq!(figure(&read, "pgbench_transactions"), Some(48.830_704));
    }

    #[test]
    fn making_the_tables_is_no_run() {
        let of = |line: &str| (PROGRAM.judged)(&words(line)).len();
        for line in ["-i", "-is 10", "-qi -s 10", "--initialize -s 10"] {
            assert_eq!(of(line), 0, "{line}");
        }
        for line in ["-T 10", "-Uisabel -T 10", "-f mix.sql", "--log -P 1"] {
            assert_eq!(of(line), 1, "{line}");
        }
    }

    /// As pgbench 9.6 to 13 end.
    #[test]
    fn an_older_one_says_it_twice() {
        let older = "latency average = 2.5 ms\nlatency stddev = 0.5 ms\n\
                     tps = 85.1 (including connections establishing)\n\
                     tps = 86.2 (excluding connections establishing)\n";
        let read = read(older);
        assert_eq!(figure(&read, "pgbench_transactions"), Some(86.2));
        assert_eq!(figure(&read, "pgbench_latency_stddev"), Some(500_000.0));
    }
}
