//! IOR: the best of its repetitions (ior-output.c, `Max Write`).

use super::Program;
use super::text::{MIB, bandwidth, groups, number};
use super::typed::has_letter;
use crate::model::Sample;

pub const PROGRAM: Program = Program {
    prefix: "ior",
    names: &["ior", "IOR"],
    marks: &["MiB/sec"],
    read,
    judged,
    advice: "IOR prints it for what it is told to do (-w, -r), and not as JSON or CSV",
};

/// By what is asked for, or by both.
fn judged(words: &[String]) -> Vec<String> {
    let all = [('w', "write"), ('r', "read")];
    let asked: Vec<_> = all.iter().filter(|(letter, _)| has_letter(words, *letter)).collect();
    let asked = if asked.is_empty() { all.iter().collect() } else { asked };
    asked.into_iter().map(|(_, what)| format!("ior_{what}_bandwidth")).collect()
}

fn read(text: &str) -> Vec<Sample> {
    let best = groups::<2>(text, r"^\s*Max (Write|Read): +([\d.]+) MiB/sec").into_iter();
    let figure = |[what, mib]: [&str; 2]| {
        let metric = format!("ior_{}_bandwidth", what.to_lowercase());
        Some(bandwidth(metric, number(mib)? * MIB))
    };
    best.filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::super::text::words;
    use super::*;

    #[test]
    fn ior_4() {
        let expected = [
            bandwidth("ior_write_bandwidth", 1299.23 * MIB),
            bandwidth("ior_read_bandwidth", 5429.38 * MIB),
        ];
        assert_eq!(read(include_str!("kept/ior.txt")), expected);
    }

    #[test]
    fn what_is_asked_for_is_judged() {
        let of = |line: &str| judged(&words(line));
        assert_eq!(of("-t 1m -b 16m -F").len(), 2);
        assert_eq!(of("-t 1m -w"), ["ior_write_bandwidth"]);
    }
}
