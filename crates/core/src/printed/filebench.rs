//! Filebench: the line that sums up a run (stats.c). Its mb are 2^20 bytes (filebench.h, MB_FLOAT).

use super::Program;
use super::text::{MIB, MS_NS, bandwidth, last_number, latency, rate};
use super::typed::metrics;
use crate::model::Sample;

pub const PROGRAM: Program = Program {
    prefix: "filebench",
    names: &["filebench"],
    marks: &["IO Summary:"],
    read,
    judged: |_| metrics(&["filebench_rate"]),
    advice: "filebench prints it where its script runs for a time (run 60)",
};

fn read(text: &str) -> Vec<Sample> {
    // Version 1.4.9 wrote "ops," and "ms latency".
    let ops = last_number(text, r"IO Summary: +\d+ ops,? +([\d.]+) ops/s");
    let Some(ops) = ops else { return Vec::new() };
    let mut figures = vec![rate("filebench_rate", ops)];
    let mib = last_number(text, r"IO Summary: .*? ([\d.]+)mb/s");
    figures.extend(mib.map(|mib| bandwidth("filebench_bandwidth", mib * MIB)));
    let ms = last_number(text, r"IO Summary: .*? ([\d.]+)ms(?:/op| latency)");
    figures.extend(ms.map(|ms| latency("filebench_latency_mean", ms, MS_NS)));
    figures
}

#[cfg(test)]
mod tests {
    use super::super::text::figure;
    use super::*;

    #[test]
    fn filebench_1_5() {
        let read = read(include_str!("kept/filebench.txt"));
        assert_eq!(figure(&read, "filebench_rate"), Some(2468.923));
        assert_eq!(figure(&read, "filebench_bandwidth"), Some(57.9 * MIB));
        assert_eq!(figure(&read, "filebench_latency_mean"), Some(1_200_000.0));
    }

    #[test]
    fn filebench_1_4_9() {
        let line = "61.1: IO Summary: 12345 ops, 2468.9 ops/s, (224/449 r/w),  57.9mb/s, \
                    123us cpu/op,   1.2ms latency\n";
        let read = read(line);
        assert_eq!(figure(&read, "filebench_rate"), Some(2468.9));
        assert_eq!(figure(&read, "filebench_latency_mean"), Some(1_200_000.0));
    }
}
