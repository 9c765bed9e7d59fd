//! The audits of published tables: each with a table that shows it and one that does not, and what
//! must hold for any table.

mod measured;
mod rules;

use proptest::prelude::*;

use fsverdict_core::judge::{table_findings, table_missing};
use fsverdict_core::model::{Audit, Finding, Severity, Table};
use fsverdict_core::published::read;

const ROW: &str = "[151, 151, 105.77]";

/// One test by `fio`, with three runs and what else `more` says of the machine.
fn table(more: &str, fio: &str, columns: &str, rows: &[(&str, &str)]) -> Table {
    let rows: String = rows.iter().map(|(name, row)| format!("{name} = {row}\n")).collect();
    let names: Vec<String> = ["a", "b", "c"].iter().map(|it| format!("{it:?}")).collect();
    let text = format!(
        "title = \"t\"\n[environment]\ncontenders = [{}]\n{more}\n[[test]]\nname = \"w\"\n\
         runs = 5\n\
         {fio}\ncolumns = [{columns}, \"jitter stddev ms\"]\n{}",
        names.join(", "),
        rows.replace(']', ", 9999]")
    );
    read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn found(table: &Table) -> Vec<(Audit, String)> {
    table_findings(table).into_iter().map(|it| (it.audit, it.evidence)).collect()
}

fn audits(table: &Table) -> Vec<Audit> {
    found(table).into_iter().map(|(audit, _)| audit).collect()
}

const SEQUENTIAL: &str = "fio = { rw = \"write\", bs = \"1M\", size = \"4G\", iodepth = 16, \
                          ioengine = \"libaio\", direct = 1, time_based = true }";
const COLUMNS: &str = "\"bandwidth MiB/s\", \"IOPS\", \"mean latency ms\"";

#[test]
fn figures_that_agree_are_left_alone() {
    assert_eq!(found(&table("", SEQUENTIAL, COLUMNS, &[("a", ROW), ("b", ROW)])), []);
}

#[test]
fn a1_bandwidth_follows_from_iops() {
    let row = |row| found(&table("", SEQUENTIAL, COLUMNS, &[("a", row)]));
    let off = row("[131, 151, 105.77]");
    assert_eq!((off.len(), off[0].0), (1, Audit::A1));
    assert!(
        off[0].1.contains("0.868 of what follows from IOPS 151 in blocks of 1048576 bytes"),
        "{off:?}"
    );
    let mixed = row("[158.3, 151.0, 105.77]");
    assert!(mixed[0].1.ends_with("MB and MiB are mixed"), "{mixed:?}");
}

#[test]
fn a2_the_queue_is_neither_longer_nor_much_shorter_than_asked_for() {
    let row = |fio: &str, row| found(&table("", fio, COLUMNS, &[("a", row)]));
    let long = row(SEQUENTIAL, "[151, 151, 125.77]");
    assert_eq!((long.len(), long[0].0), (1, Audit::A2));
    assert!(long[0].1.contains("imply 18.991 operations in flight, and the job allows 16"));
    let short = row(SEQUENTIAL, "[151, 151, 85.77]");
    assert!(short[0].1.ends_with("of the 16 that the job asks for"), "{short:?}");
    // What may begin later, or whose fsync takes time, needs no full queue.
    let synced = SEQUENTIAL.replace("direct = 1", "direct = 1, fsync = 1");
    assert_eq!(row(&synced, "[151, 151, 85.77]"), []);
    assert_eq!(row(&SEQUENTIAL.replace(", time_based = true", ""), "[151, 151, 85.77]"), []);
    assert_eq!(row(&SEQUENTIAL.replace("libaio", "psync"), "[151, 151, 85.77]").len(), 2);
}

#[test]
fn a3_a_synchronous_engine_has_no_depth() {
    let of = |fio: &str| audits(&table("", fio, "\"IOPS\"", &[("a", "[151]")]));
    assert_eq!(of(&SEQUENTIAL.replace("libaio", "sync")), [Audit::A3]);
    assert_eq!(of(&SEQUENTIAL.replace("ioengine = \"libaio\", ", "")), [Audit::A3]);
    assert_eq!(of(SEQUENTIAL), []);
}

#[test]
fn a5_summaries_that_nothing_has() {
    let of = |columns: &str, row: &str| found(&table("", "", columns, &[("a", row)]));
    let latency = "\"latency min ms\", \"latency p50 ms\", \"latency p99 ms\", \"latency max ms\", \
                   \"latency mean ms\"";
    assert_eq!(of(latency, "[1.00, 2.00, 9.00, 20.0, 3.00]"), []);
    for (row, says) in [
        ("[3.00, 2.00, 9.00, 20.0, 3.00]", "latency min ms 3.00 can't be with latency p50 ms 2.00"),
        ("[1.00, 2.00, 21.0, 20.0, 3.00]", "latency p99 ms 21.0 can't be with latency max ms 20.0"),
        ("[1.00, 2.00, 9.00, 20.0, 21.0]", "latency mean ms 21.0 can't be"),
        ("[1.00, 7.00, 9.00, 20.0, 3.00]", "latency mean ms 3.00 can't be with latency p50 ms"),
    ] {
        let found = of(latency, row);
        assert!(
            found.iter().any(|(audit, it)| *audit == Audit::A5 && it.contains(says)),
            "{found:?}"
        );
    }
    let apart = of("\"mean s\", \"median s\", \"stddev s\"", "[90.00, 80.00, 5.00]");
    assert_eq!((apart.len(), apart[0].0), (1, Audit::A5));
    let parts = "\"mkdir s\", \"create s\", \"total s\"";
    assert_eq!(of(parts, "[2.00, 6.25, 8.25]"), []);
    assert_eq!(of(parts, "[2.00, 6.25, 9.25]")[0].0, Audit::A5);
    let sum = of("\"read IOPS\", \"write IOPS\", \"total IOPS\"", "[500, 200, 720]");
    assert!(sum[0].1.contains("total IOPS 720 is not read IOPS 500 and write IOPS 200 together"));
}

#[test]
fn a5_rates_of_a_known_number_take_their_time() {
    let columns = "\"create files/s\", \"read files/s\", \"total s\"";
    let of = |row| found(&table("", "files = 10000", columns, &[("a", row)]));
    assert_eq!(of("[328, 4123, 32.91]"), []);
    assert!(of("[328, 4123, 30.91]")[0].1.contains("is not what its parts take together, 32.91 s"));
}

#[test]
fn a6_and_a9_need_what_the_cache_can_do() {
    let of = |more: &str, fio: &str| audits(&table(more, fio, "\"IOPS\"", &[("a", "[151]")]));
    let reads = "fio = { rw = \"randread\", size = \"1G\", numjobs = 4 }";
    assert_eq!(of("memory = \"8G\"", reads), [Audit::A6]);
    assert_eq!(of("memory = \"4G\"", reads), []);
    assert_eq!(of("", reads), []);
    let direct = reads.replace("numjobs", "direct = 1, numjobs");
    assert_eq!(of("memory = \"8G\"", &direct), []);
    let writes = "fio = { rw = \"randwrite\", size = \"1G\" }";
    assert_eq!(of("", writes), [Audit::A9]);
    assert_eq!(of("", &writes.replace("size", "end_fsync = 1, size")), []);
    assert_eq!(of("", &writes.replace("size", "direct = 1, size")), []);
    assert_eq!(of("", "synced = false"), [Audit::A9]);
    let missing = table_missing(&table("", reads, "\"IOPS\"", &[("a", "[151]")]));
    assert!(missing[0].contains("--memory") && missing[1].contains("--device-iops"), "{missing:?}");
}

#[test]
fn a8_the_device_has_limits() {
    let rows = |b| vec![("a", "[8048]"), ("b", b)];
    let of = |b| table_findings(&table("device_iops = 8050", "", "\"IOPS\"", &rows(b)));
    let kinds = |found: &[Finding]| -> Vec<_> { found.iter().map(|it| it.severity).collect() };
    let faster = of("[9000]");
    assert_eq!(kinds(&faster), [Severity::Warning]);
    assert_eq!(faster[0].contender.as_deref(), Some("b"));
    assert!(faster[0].evidence.contains("1.118 of the device's 8050 IOPS"));
    let tie = of("[7900]");
    assert_eq!(kinds(&tie), [Severity::Note]);
    assert!(tie[0].evidence.starts_with("a, b are at the device's limit of 8050 IOPS"));
    assert_eq!(of("[6000]"), []);
}

#[test]
fn a10_a_process_for_each_operation_is_what_was_measured() {
    let of = |counts: &str, row: &str| {
        table_findings(&table("", counts, "\"create files/s\"", &[("a", row)]))
    };
    let counts = "files = 10000\nprocesses = { \"create files/s\" = 10000 }";
    let found = of(counts, "[328]");
    assert_eq!((found.len(), found[0].audit, found[0].severity), (1, Audit::A10, Severity::Void));
    assert!(found[0].evidence.ends_with("one every 3.05 ms"), "{found:?}");
    assert_eq!(of(&counts.replace("= 10000 }", "= 1 }"), "[328]"), []);
    assert_eq!(of(&counts.replace("files = 10000", "files = 10001"), "[328]"), []);
    // A process that works for a tenth of a second is no harness.
    assert_eq!(of(counts, "[10.00]"), []);
}

#[test]
fn a17_a_hundred_units_or_more() {
    let of = |row| found(&table("", "", "\"delete s\"", &[("a", row)]));
    assert_eq!(
        of("[0.10]"),
        [(Audit::A17, "units of the last digit: delete s 0.10 has 10".into())]
    );
    assert_eq!(of("[1.00]"), []);
}

#[test]
fn a18_once_is_not_enough() {
    let of = |runs: &str, columns: &str| {
        let table = table("", "", columns, &[("a", "[151]")]);
        let mut table = Table { claims: Vec::new(), ..table };
        table.tests[0].runs = runs.parse().ok();
        table.tests[0].columns.pop();
        table_findings(&table)
    };
    assert_eq!(of("1", "\"IOPS\"")[0].evidence, "each figure is of one run");
    assert_eq!(of("3", "\"IOPS\"")[0].evidence, "each figure is of 3 runs only");
    assert_eq!(of("9", "\"IOPS\"")[0].evidence, "of 9 runs no spread is given");
    assert!(of("", "\"IOPS\"")[0].evidence.starts_with("neither the number of runs"));
    assert_eq!(of("9", "\"IOPS stddev\""), []);
}

#[test]
fn a19_the_terms_are_the_same_for_all() {
    let of = |more: &str| found(&table(more, "", "\"IOPS\"", &[("a", "[151]"), ("b", "[151]")]));
    let unequal = of("mount = { a = \"noatime,nobarrier\", b = \"noatime\" }");
    assert_eq!((unequal.len(), unequal[0].0), (1, Audit::A19));
    assert_eq!(
        unequal[0].1,
        "nobarrier: fsync sends no flush: what it has promised is lost when the power fails; not \
         so with b"
    );
    assert_eq!(of("mount = { a = \"noatime\", b = \"defaults\" }").len(), 1);
    assert_eq!(of("mount = \"noatime,nobarrier\""), [], "what all do is no unequal term");
    assert_eq!(of("kernel = { a = \"5.10\", b = \"6.1\" }").len(), 1);
    assert_eq!(of("kernel = \"5.10\""), []);
}

#[test]
fn a_claim_is_held_against_the_tables() {
    let of = |claim: &str| {
        let text = format!(
            "[[test]]\nname = \"w\"\nruns = 5\ncolumns = [\"IOPS\", \"IOPS stddev\"]\n\
             a = [8019, 5]\nb = [6218, 5]\n[[claim]]\ntext = \"it\"\n{claim}"
        );
        read(&text).map(|table| found(&table))
    };
    let says = |claim: &str| of(claim).unwrap().pop().map(|(_, evidence)| evidence);
    assert_eq!(says("contender = \"b\"\nfigures = { IOPS = \"6,219\" }"), None);
    let wrong = "\"it\": IOPS 8,141 is in no table, which has 8019";
    assert_eq!(says("contender = \"a\"\nfigures = { IOPS = \"8,141\" }").as_deref(), Some(wrong));
    let nowhere = "\"it\": no table has jitter ms";
    assert_eq!(says("figures = { \"jitter ms\" = \"1\" }").as_deref(), Some(nowhere));
    assert_eq!(says("contender = \"a\"\nchanges = { IOPS = \"+29%\" }"), None);
    assert_eq!(says("contender = \"b\"\nchanges = { IOPS = \"-20-25%\" }"), None);
    let other = says("contender = \"a\"\nagainst = \"b\"\nchanges = { IOPS = \"2.0x\" }").unwrap();
    assert!(other.ends_with("2.0x of IOPS follows from no table; +29.0% over b"), "{other}");
    let unknown = of("contender = \"c\"\nfigures = { IOPS = \"1\" }").unwrap_err().to_string();
    assert!(unknown.contains("names \"c\", which is not there"), "{unknown}");
}

/// How a figure is printed: so many digits after the point, the rest rounded or cut.
#[derive(Clone, Copy, Debug)]
struct Style {
    decimals: usize,
    cuts: bool,
}

impl Style {
    fn print(self, value: f64) -> String {
        let scale = 10_f64.powi(self.decimals as i32);
        let kept = if self.cuts { (value * scale).floor() } else { (value * scale).round() };
        format!("{:.*}", self.decimals, kept / scale)
    }
}

fn style() -> impl Strategy<Value = Style> {
    (0_usize..4, any::<bool>()).prop_map(|(decimals, cuts)| Style { decimals, cuts })
}

/// Findings without their words.
fn kinds(table: &Table) -> Vec<(Audit, Severity, Option<String>, Option<String>)> {
    let findings = table_findings(table).into_iter();
    findings.map(|it| (it.audit, it.severity, it.workload, it.contender)).collect()
}

fn disagreements(table: &Table) -> Vec<(Audit, String)> {
    let mut found = found(table);
    found.retain(|(audit, _)| matches!(audit, Audit::A1 | Audit::A2 | Audit::A5));
    found
}

proptest! {
    /// A closed loop with a full queue, printed in any style: nothing disagrees.
    #[test]
    fn true_figures_of_a_job_never_disagree(
        iops in 1.0..1e6_f64, reads in 0.05..0.95_f64, slower in 0.2..5.0_f64,
        (jobs, depth) in (1_u32..16, 1_u32..256), block_kib in 1_u32..1024,
        styles in proptest::collection::vec(style(), 6),
    ) {
        let (read, write) = (iops * reads, iops * (1.0 - reads));
        // Reads take one time and writes `slower` times it, so that the queue is full.
        let read_s = f64::from(jobs * depth) / (read + write * slower);
        let mib = f64::from(block_kib) / 1024.0;
        let true_figures =
            [read, write, read * mib, write * mib, read_s * 1e3, read_s * slower * 1e3];
        let figures: Vec<String> =
            true_figures.iter().zip(&styles).map(|(value, style)| style.print(*value)).collect();
        let fio = format!(
            "fio = {{ rw = \"randrw\", bs = \"{block_kib}k\", numjobs = {jobs}, iodepth = {depth}, \
             ioengine = \"libaio\", direct = 1, time_based = true }}"
        );
        let columns = "\"read IOPS\", \"write IOPS\", \"read bandwidth MiB/s\", \
                       \"write bandwidth MiB/s\", \"read latency ms\", \"write latency ms\"";
        let row = format!("[{}]", figures.join(", "));
        prop_assert_eq!(disagreements(&table("", &fio, columns, &[("a", &row)])), []);
    }

    /// The summary of any figures, printed in any style, is a summary.
    #[test]
    fn true_summaries_are_never_impossible(
        mut times in proptest::collection::vec(0.0..1e4_f64, 1..40),
        styles in proptest::collection::vec(style(), 6),
    ) {
        times.sort_by(f64::total_cmp);
        let count = times.len();
        let mean = times.iter().sum::<f64>() / count as f64;
        let deviation =
            (times.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
        let quantile = |share: f64| times[((share * count as f64).ceil() as usize).max(1) - 1];
        let median = (times[(count - 1) / 2] + times[count / 2]) / 2.0;
        let summary = [times[0], median, quantile(0.99), times[count - 1], mean, deviation];
        let figures: Vec<String> =
            summary.iter().zip(&styles).map(|(value, style)| style.print(*value)).collect();
        let columns = "\"min ms\", \"p50 ms\", \"p99 ms\", \"max ms\", \"mean ms\", \"stddev ms\"";
        let columns = columns.replace(" ms", " latency ms");
        let row = format!("[{}]", figures.join(", "));
        prop_assert_eq!(disagreements(&table("", "", &columns, &[("a", &row)])), []);
    }

    /// The parts of a piece of work, one of them as a rate, and their sum.
    #[test]
    fn true_parts_never_miss_their_total(
        first_s in 0.01..1e3_f64, second_s in 0.01..1e3_f64, files in 1_u32..1_000_000,
        styles in proptest::collection::vec(style(), 3),
    ) {
        let true_figures = [f64::from(files) / first_s, second_s, first_s + second_s];
        let figures: Vec<String> =
            true_figures.iter().zip(&styles).map(|(value, style)| style.print(*value)).collect();
        let columns = "\"create files/s\", \"delete s\", \"total s\"";
        let row = format!("[{}]", figures.join(", "));
        let table = table("", &format!("files = {files}"), columns, &[("a", &row)]);
        prop_assert_eq!(disagreements(&table), []);
    }

    /// Any figures, agreeing or not: what is found does not depend on the units they are given in.
    #[test]
    fn the_choice_of_units_changes_no_finding(
        figures in proptest::collection::vec((1_u32..100_000, 0_usize..4), 4),
        block_kib in 1_u32..1024, depth in 1_u32..64,
    ) {
        let fio = format!(
            "fio = {{ rw = \"read\", bs = \"{block_kib}k\", iodepth = {depth}, direct = 1, \
             ioengine = \"libaio\", time_based = true }}"
        );
        let text = |place: usize, shift: &str| {
            let (digits, decimals) = figures[place];
            format!("\"{:.*}{shift}\"", decimals, f64::from(digits) / 10_f64.powi(decimals as i32))
        };
        let of = |columns: &str, shifts: [&str; 4]| {
            let cells: Vec<String> = (0..4).map(|place| text(place, shifts[place])).collect();
            let row = format!("[{}]", cells.join(", "));
            kinds(&table("device_iops = 20000", &fio, columns, &[("a", &row), ("b", &row)]))
        };
        let one = "\"IOPS\", \"bandwidth MB/s\", \"mean latency ms\", \"p99 latency ms\"";
        let other = "\"kIOPS\", \"bandwidth kB/s\", \"mean latency us\", \"p99 latency s\"";
        prop_assert_eq!(of(one, [""; 4]), of(other, ["e-3", "e3", "e3", "e-3"]));
    }
}
