//! YCSB, and what prints as it does: `[READ], AverageLatency(us), 123`.

use super::Program;
use super::text::{MS_NS, groups, latency, number, rate};
use super::typed::metrics;
use crate::model::{Sample, as_metric};

pub const PROGRAM: Program = Program {
    prefix: "ycsb",
    names: &["ycsb", "ycsb.sh"],
    marks: &["[OVERALL]"],
    read,
    judged: |_| metrics(&["ycsb_rate"]),
    advice: "YCSB prints it at its end",
};

/// What tells a latency, as ours is named.
const LATENCIES: [(&str, &str); 6] = [
    ("AverageLatency", "mean"),
    ("50thPercentileLatency", "p50"),
    ("95thPercentileLatency", "p95"),
    ("99thPercentileLatency", "p99"),
    ("99.9PercentileLatency", "p999"),
    ("MaxLatency", "max"),
];

fn read(text: &str) -> Vec<Sample> {
    let mut figures = Vec::new();
    for [of, what, unit, value] in
        groups::<4>(text, r"^\[([\w-]+)\], ([\w.]+)\(([\w/]+)\), ([\d.eE+]+)$")
    {
        let Some(value) = number(value) else { continue };
        let known = LATENCIES.iter().find(|(printed, _)| *printed == what);
        let unit_ns = if unit == "us" { 1e3 } else { MS_NS };
        match (of, what, known) {
            ("OVERALL", "Throughput", _) => figures.push(rate("ycsb_rate", value)),
            ("CLEANUP", ..) => {}
            (_, _, Some((_, name))) if unit == "us" || unit == "ms" => {
                let metric = format!("ycsb_{}_latency_{name}", as_metric(of));
                figures.push(latency(metric, value, unit_ns));
            }
            _ => {}
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::text::figure;
    use super::*;

    #[test]
    fn ycsb_0_17() {
        let read = read(include_str!("kept/ycsb.txt"));
        assert_eq!(figure(&read, "ycsb_rate"), Some(199.608_766_817_038_6));
        assert_eq!(figure(&read, "ycsb_read_latency_mean"), Some(456_825.0));
        assert_eq!(figure(&read, "ycsb_read_latency_p95"), Some(604_000.0));
        assert_eq!(figure(&read, "ycsb_update_latency_max"), Some(5_311_000.0));
        assert_eq!(read.len(), 1 + 2 * 4);
    }
}
