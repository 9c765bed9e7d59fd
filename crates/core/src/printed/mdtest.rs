//! mdtest: the table that sums up a run, in operations a second (mdtest.c). The mean is over its
//! iterations; operations that were not done have 0.

use super::Program;
use super::text::{groups, number, rate};
use super::typed::has_letter;
use crate::model::{Sample, as_metric};

pub const PROGRAM: Program = Program {
    prefix: "mdtest",
    names: &["mdtest"],
    marks: &["SUMMARY"],
    read,
    judged,
    advice: "mdtest prints it for the phases that it is told to do (-C, -T, -E, -r)",
};

/// By files, or with `-D` by directories; by the phases that are asked for, or most of them.
fn judged(words: &[String]) -> Vec<String> {
    let kind = if has_letter(words, 'D') { "directory" } else { "file" };
    let all = [('C', "creation"), ('T', "stat"), ('E', "read"), ('r', "removal")];
    let is_read = |(letter, _): &&(char, _)| *letter == 'E';
    let asked: Vec<_> = all.iter().filter(|(letter, _)| has_letter(words, *letter)).collect();
    let phases =
        if asked.is_empty() { all.iter().filter(|it| !is_read(it)).collect() } else { asked };
    phases.into_iter().map(|(_, phase)| format!("mdtest_{kind}_{phase}_rate")).collect()
}

fn read(text: &str) -> Vec<Sample> {
    const ROW: &str = r"^ +((?:Directory|File|Tree) \w+) *:? +([\d.]+(?: +[\d.]+)+) *$";
    // A table of times, which may come after it, has the same rows.
    let begin = text.rfind("SUMMARY rate").or_else(|| text.rfind("SUMMARY (in ops/sec)"));
    let table = begin.map_or("", |begin| &text[begin..]);
    let table = table.split("SUMMARY time").next().unwrap_or(table);
    let rows = groups::<2>(table, ROW).into_iter().filter_map(|[name, values]| {
        // Max, min, mean and deviation come last.
        let mean = values.split_whitespace().rev().nth(1).and_then(number)?;
        (mean > 0.0).then(|| rate(format!("mdtest_{}_rate", as_metric(name)), mean))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::text::{figure, words};
    use super::*;

    #[test]
    fn mdtest_4_1() {
        let read = read(include_str!("kept/mdtest.txt"));
        assert_eq!(figure(&read, "mdtest_file_creation_rate"), Some(35_378.025));
        assert_eq!(figure(&read, "mdtest_directory_removal_rate"), Some(84_123.014));
        assert_eq!(figure(&read, "mdtest_file_read_rate"), None, "it was not done");
        assert_eq!(read.len(), 6);
    }

    #[test]
    fn mdtest_1_9() {
        let older = "SUMMARY: (of 1 iterations)\nSUMMARY (in ops/sec): (of 2 iterations)\n   \
                     File stat         : 146756.613  17447.551  82102.082  64654.531\n";
        assert_eq!(read(older), [rate("mdtest_file_stat_rate", 82_102.082)]);
    }

    #[test]
    fn what_is_asked_for_is_judged() {
        let of = |line: &str| judged(&words(line));
        assert_eq!(of("-n 100 -F").len(), 3);
        assert_eq!(of("-n 100 -D -C"), ["mdtest_directory_creation_rate"]);
    }
}
