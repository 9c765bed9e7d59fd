//! db_bench of RocksDB and LevelDB. Its MB are 2^20 bytes (db_bench_tool.cc, db_bench.cc:
//! `bytes / 1048576.0`). LevelDB's prints no rate, only the mean latency.

use super::Program;
use super::text::{MIB, bandwidth, groups, latency, number, rate};
use super::typed::values;
use crate::model::Sample;

pub const PROGRAM: Program = Program {
    prefix: "db_bench",
    names: &["db_bench"],
    marks: &["micros/op"],
    read,
    judged,
    advice: "RocksDB's db_bench prints it for each of its --benchmarks",
};

/// How the names begin of those that read and write; others compact or tell.
const WORK: [&str; 12] = [
    "append",
    "delete",
    "fill",
    "merge",
    "mixgraph",
    "multiread",
    "overwrite",
    "random",
    "read",
    "seek",
    "update",
    "write",
];

fn judged(words: &[String]) -> Vec<String> {
    let lists = values(words, "--benchmarks");
    let names =
        lists.last().copied().unwrap_or_default().split(',').filter_map(|it| it.split('[').next());
    let works = names.filter(|name| WORK.iter().any(|begin| name.starts_with(begin)));
    works.map(|name| format!("db_bench_{name}_rate")).collect()
}

fn read(text: &str) -> Vec<Sample> {
    const ROW: &str = r"^(\w+) +: +([\d.]+) micros/op(?: (\d+) ops/sec)?(?:.*?; +([\d.]+) MB/s)?";
    let mut figures = Vec::new();
    for [name, us, per_s, mib] in groups::<4>(text, ROW) {
        let metric = |what: &str| format!("db_bench_{name}_{what}");
        figures.extend(number(per_s).map(|per_s| rate(metric("rate"), per_s)));
        figures.extend(number(us).map(|us| latency(metric("latency_mean"), us, 1e3)));
        figures.extend(number(mib).map(|mib| bandwidth(metric("bandwidth"), mib * MIB)));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::text::{figure, words};
    use super::*;

    #[test]
    fn rocksdb_7_8_3() {
        let read = read(include_str!("kept/db_bench.txt"));
        assert_eq!(figure(&read, "db_bench_fillseq_rate"), Some(367_998.0));
        assert_eq!(figure(&read, "db_bench_fillseq_bandwidth"), Some(40.7 * MIB));
        assert_eq!(figure(&read, "db_bench_readrandom_latency_mean"), Some(859.0));
        assert_eq!(read.len(), 6);
    }

    /// As its README shows it.
    #[test]
    fn leveldb() {
        let read = read("fillsync     :   12345.0 micros/op;    0.4 MB/s (10000 ops)\n");
        assert_eq!(figure(&read, "db_bench_fillsync_latency_mean"), Some(12_345_000.0));
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn what_reads_and_writes_is_judged() {
        let of = |line: &str| judged(&words(line));
        let line = "--num=9 --benchmarks=fillseq,compact,readrandom[X3],stats";
        assert_eq!(of(line), ["db_bench_fillseq_rate", "db_bench_readrandom_rate"]);
    }
}
