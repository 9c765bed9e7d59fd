//! Files of others as a plan and records: formats, contenders, rounds, metrics, and refusals.

use fsverdict_core::judge::{Judge, table_findings};
use fsverdict_core::model::{Audit, Better, Comparison, Intervals, Percent, Unit, Verdict};
use fsverdict_core::published::{Columns, File, Measured, TableError, Wanted, measured, read};

/// Written for these tests, in the formats that the readers' heads cite.
const CRITERION: &str = include_str!("../../src/published/samples/criterion-sample.json");
const CARGO_CRITERION: &str = include_str!("../../src/published/samples/cargo-criterion.jsonl");
const GOOGLE: &str = include_str!("../../src/published/samples/google-benchmark.json");
const MMTESTS: &str = include_str!("../../src/published/samples/mmtests.json");
const PHORONIX: &str = include_str!("../../src/published/samples/composite.xml");
/// As fio and hyperfine wrote them.
const FIO: &str = include_str!("../../src/published/samples/fio-3.33.json");
const HYPERFINE: &str = include_str!("../../src/published/samples/hyperfine-1.15.json");
/// `hyperfine -N --runs 6 -n ext4 'sleep 0.01' -n xfs 'sleep 0.012' --export-json`.
const TWO: &str = include_str!("../../src/published/samples/hyperfine-two.json");

fn wanted() -> Wanted {
    Wanted {
        columns: Columns::default(),
        better: None,
        reference: None,
        margin: Percent(0.05),
        confidence: Percent(0.95),
    }
}

fn of<'a>(files: &[(&'a str, &'a str)], wanted: &Wanted) -> Result<Measured, TableError> {
    let files: Vec<File> =
        files.iter().map(|(path, text)| File { contender: None, path, text }).collect();
    measured(&files, wanted)
}

fn comparisons(measured: &Measured) -> Vec<Comparison> {
    Judge::new(&measured.plan).comparisons(&measured.records)
}

fn names(measured: &Measured) -> Vec<&str> {
    measured.plan.contenders.iter().map(|it| it.name.as_str()).collect()
}

fn audits(measured: &Measured) -> Vec<Audit> {
    measured.findings.iter().map(|it| it.audit).collect()
}

#[test]
fn rounds_of_a_csv_are_paired_and_what_was_taken_is_said() {
    let mut text = "fs,round,untar_s\n".to_string();
    for round in 1..=6 {
        let noise = 1.0 + 0.3 * f64::from(round % 3);
        text += &format!("ext4,{round},{:.3}\nxfs,{round},{:.3}\n", 10.0 * noise, 9.0 * noise);
    }
    let measured = of(&[("a.csv", &text)], &wanted()).unwrap();
    assert_eq!(names(&measured), ["ext4", "xfs"]);
    let compared = &comparisons(&measured)[0];
    assert_eq!((compared.verdict, compared.rounds, compared.runs), (Verdict::Faster, 6, None));
    assert!((compared.ratio.unwrap() - 10.0 / 9.0).abs() < 1e-3, "{compared:?}");
    let taken: Vec<String> =
        measured.taken.iter().map(|(what, why)| format!("{what}: {why}")).collect();
    assert_eq!(
        taken,
        [
            "contender: column fs, by its name",
            "round: column round, by its name",
            "judged: untar_s: less is better, a time by its unit",
        ]
    );
    assert_eq!(audits(&measured), []);
    // Unpaired, the noise that both share would hide it.
    let unpaired = of(&[("a.csv", &text.replace("round", "place"))], &wanted()).unwrap();
    let compared = &comparisons(&unpaired)[0];
    assert_eq!((compared.verdict, compared.runs), (Verdict::Undecided, Some([6, 6])));
    assert_eq!(audits(&unpaired), [Audit::A14]);
}

/// What was taken for `what`, of rows of a contender, a round and a time.
fn said(what: &str, rows: &[&str]) -> Vec<String> {
    let text = format!("fs,round,untar_s\n{}\n", rows.join("\n"));
    let measured = of(&[("a.csv", &text)], &wanted()).unwrap();
    let is_of = |it: &(String, String)| (it.0 == what).then(|| it.1.clone());
    measured.taken.iter().filter_map(is_of).collect()
}

#[test]
fn rounds_that_pair_nothing_and_runs_without_a_figure_are_said() {
    let twice = ["a,1,3.0", "a,1,3.1", "b,1,2.0", "b,2,2.1"];
    let by_name = "column round, by its name";
    let unpaired = "not used, a has two runs of round 1: runs are compared unpaired (Welch)";
    assert_eq!(said("round", &twice), [by_name, unpaired]);
    let none = ["a,1,3.0", "a,,3.1", "b,1,2.0", "b,2,2.1"];
    let unpaired = "not used, some runs have none: runs are compared unpaired (Welch)";
    assert_eq!(said("round", &none), [by_name, unpaired]);
    let empty = ["a,1,3.0", "a,2,NaN", "b,1,2.0", "b,2,", "b,3,2.1"];
    let without = |who| format!("all rows: 1 run of {who} without a figure of untar_s");
    assert_eq!(said("left out", &empty), [without("a"), without("b")]);
    let nobodys = of(&[("a.csv", "fs,untar_s\na,1.0\n,2.0\nb,1.5\n")], &wanted()).unwrap_err();
    assert!(nobodys.to_string().starts_with("some runs name no contender"), "{nobodys}");
}

#[test]
fn a_row_for_each_figure_is_read_as_our_own_samples_are() {
    let mut text = "trial,round,workload,contender,metric,value,unit,better\n".to_string();
    for round in 1..=4 {
        for (contender, rate) in [("a", 100.0), ("b", 120.0)] {
            let head = format!("{round},{round},w,{contender}");
            text += &format!("{head},rate,{rate},1/s,higher\n{head},cost,{rate},,lower\n");
        }
    }
    let wanted = Wanted {
        columns: Columns { metrics: vec!["cost".into()], ..Columns::default() },
        ..wanted()
    };
    let measured = of(&[("samples.csv", &text)], &wanted).unwrap();
    let compared = &comparisons(&measured)[0];
    assert_eq!((compared.metric.as_str(), compared.verdict), ("cost", Verdict::Slower));
    assert_eq!(compared.rounds, 4);
}

#[test]
fn figures_of_no_known_unit_need_a_direction() {
    let text = "who,score\na,1\na,1.01\na,1.02\na,1\nb,3\nb,3.1\nb,3\nb,3\n";
    let said = of(&[("s.csv", text)], &wanted()).unwrap_err().to_string();
    assert!(said.contains("\"score\"") && said.contains("--better"), "{said}");
    let better = |better| Wanted { better: Some(better), ..wanted() };
    let verdict =
        |better_is| comparisons(&of(&[("s.csv", text)], &better(better_is)).unwrap())[0].verdict;
    assert_eq!(verdict(Better::Higher), Verdict::Faster);
    assert_eq!(verdict(Better::Lower), Verdict::Slower);
}

#[test]
fn columns_are_named_where_their_names_do_not_tell() {
    let text = "kernel,disk,nr,tput_mb_s\n6.1,a,x,1\n6.1,b,y,2\n6.12,a,x,3\n6.12,b,y,4\n";
    let columns = Columns {
        contender: Some("kernel".into()),
        round: Some("nr".into()),
        metrics: vec!["tput_mb_s".into()],
    };
    let measured = of(&[("t.csv", text)], &Wanted { columns, ..wanted() }).unwrap();
    assert_eq!(names(&measured), ["6.1", "6.12"]);
    let rounds: Vec<u32> = measured.records.iter().map(|it| it.key.round).collect();
    assert_eq!(rounds, [1, 2, 1, 2]);
    assert_eq!(measured.records[3].samples[0].value, 4e6);
    let wrong = Columns { contender: Some("fs".into()), ..Columns::default() };
    let said = of(&[("t.csv", text)], &Wanted { columns: wrong, ..wanted() }).unwrap_err();
    let words = "t.csv: no column \"fs\" for the contender: there are kernel, disk, nr, tput_mb_s";
    assert_eq!(said.to_string(), words);
}

#[test]
fn many_outputs_of_fio_are_told_apart_by_their_paths() {
    let paths: Vec<String> = (1..=4)
        .flat_map(|round| ["ext4", "xfs"].map(|name| format!("out/{name}-{round}.json")))
        .collect();
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), FIO)).collect();
    let measured = of(&files, &wanted()).unwrap();
    assert_eq!(names(&measured), ["ext4", "xfs"]);
    assert_eq!(measured.plan.judgement.interval, Intervals::Paired);
    let metrics = &measured.plan.workloads[0].primary;
    assert_eq!(*metrics, ["read IOPS", "write IOPS"]);
    assert_eq!(comparisons(&measured)[0].verdict, Verdict::Equivalent);
    assert_eq!(measured.table.tests[0].rows.len(), 8);
    assert!(table_findings(&measured.table).iter().all(|it| it.audit != Audit::A5));
    let tails = Columns { metrics: vec!["read clat p99 ns".into()], ..Columns::default() };
    let measured = of(&files, &Wanted { columns: tails, ..wanted() }).unwrap();
    assert_eq!(comparisons(&measured)[0].unit, Unit::Seconds);
    let other = FIO.replace("\"bs\" : \"4k\"", "\"bs\" : \"8k\"");
    let said = of(&[("ext4.json", FIO), ("xfs.json", &other)], &wanted()).unwrap_err().to_string();
    assert!(said.contains("is not the same work for all: randrw, blocks of 4k"), "{said}");
}

/// `workflows/fio-tests/results/HOST/results_PATTERN_SIZE_DEPTH_JOBS.json` (kdevops).
#[test]
fn a_run_of_kdevops_has_a_contender_for_each_folder_and_a_test_for_each_file() {
    let deeper = FIO.replace("\"iodepth\" : \"8\"", "\"iodepth\" : \"32\"");
    assert_ne!(deeper, FIO);
    let of_host = |host: &str| {
        let path = |name: &str| format!("results/debian13-fio-tests-{host}/results_{name}.json");
        [(path("randrw_4k_8_2"), FIO), (path("randrw_4k_32_2"), deeper.as_str())]
    };
    let files = ["ext4-bigalloc", "xfs-16k"].map(of_host).concat();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let measured = of(&files, &wanted()).unwrap();
    assert_eq!(
        names(&measured),
        ["debian13-fio-tests-ext4-bigalloc", "debian13-fio-tests-xfs-16k"]
    );
    let tests: Vec<&str> = measured.plan.workloads.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(tests, ["results_randrw_4k_8_2", "results_randrw_4k_32_2"]);
    assert!(measured.taken[0].1.starts_with("the files' folders"), "{:?}", measured.taken);
}

#[test]
fn the_times_of_hyperfine_are_runs_of_its_commands() {
    let measured = of(&[("times.json", TWO)], &wanted()).unwrap();
    assert_eq!(names(&measured), ["ext4", "xfs"]);
    let compared = &comparisons(&measured)[0];
    assert_eq!((compared.runs, compared.metric.as_str()), (Some([6, 6]), "time"));
    assert_eq!(compared.verdict, Verdict::Slower);
    let zeros = of(&[("times.json", HYPERFINE)], &wanted()).unwrap();
    let left_out = ("left out".to_string(), "work: 5 runs of true are not above zero".to_string());
    assert!(zeros.taken.contains(&left_out), "{:?}", zeros.taken);
    assert_eq!(audits(&measured), [Audit::A14]);
    // A file of its own for each contender: the commands are the tests.
    let each = of(&[("ext4.json", HYPERFINE), ("xfs.json", HYPERFINE)], &wanted()).unwrap();
    let tests: Vec<&str> = each.plan.workloads.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names(&each), tests), (vec!["ext4", "xfs"], vec!["true", "sleep 0.01"]));
}

#[test]
fn criterions_samples_are_times_of_an_iteration_and_of_one_process() {
    let slower = CRITERION.replace("[2100.0", "[2300.0");
    let paths = ["criterion/w/base/sample.json", "criterion/w/new/sample.json"];
    let measured = of(&[(paths[0], CRITERION), (paths[1], &slower)], &wanted()).unwrap();
    assert_eq!(names(&measured), ["base", "new"]);
    assert!((measured.records[0].samples[0].value - 1.05e-6).abs() < 1e-15);
    assert_eq!(audits(&measured), [Audit::A14, Audit::A18]);
    let messages = of(&[("bench.jsonl", CARGO_CRITERION)], &wanted()).unwrap();
    assert_eq!(names(&messages), ["ext4", "xfs"]);
    let compared = &comparisons(&messages)[0];
    assert_eq!((compared.workload.as_str(), compared.verdict), ("fsync", Verdict::Faster));
    assert!((compared.median.unwrap() - 0.0041).abs() < 1e-6, "{compared:?}");
}

#[test]
fn google_benchmarks_repetitions_are_taken_and_its_aggregates_not() {
    let measured = of(&[("g.json", GOOGLE)], &wanted()).unwrap();
    assert_eq!(names(&measured), ["ext4", "xfs"]);
    let compared = &comparisons(&measured)[0];
    assert_eq!((compared.workload.as_str(), compared.runs), ("BM_Append", Some([4, 4])));
    assert_eq!(compared.verdict, Verdict::Faster);
    assert_eq!(measured.records[0].samples[0].value, 5e-6);
    let aggregates = GOOGLE.replace("\"iteration\"", "\"aggregate\"");
    let said = of(&[("g.json", &aggregates)], &wanted()).unwrap_err().to_string();
    assert!(said.contains("--benchmark_report_aggregates_only"), "{said}");
}

#[test]
fn mmtests_iterations_are_runs() {
    let faster = MMTESTS.replace("33", "43").replace("3290", "4290");
    let measured = of(&[("ext4/f.json", MMTESTS), ("xfs/f.json", &faster)], &wanted()).unwrap();
    let compared = &comparisons(&measured)[0];
    assert_eq!((compared.workload.as_str(), compared.unit), ("1-files/sec", Unit::PerSecond));
    assert_eq!((compared.verdict, compared.runs), (Verdict::Faster, Some([4, 4])));
    assert_eq!(measured.records[0].samples[0].value, 3300.0);
}

#[test]
fn the_phoronix_test_suites_raw_values_are_runs() {
    let measured = of(&[("composite.xml", PHORONIX)], &wanted()).unwrap();
    assert_eq!(names(&measured), ["ext4", "xfs"]);
    let compared = comparisons(&measured);
    let of_test = |at: usize| (compared[at].verdict, compared[at].runs, compared[at].better);
    assert_eq!(of_test(0), (Verdict::Faster, Some([4, 4]), Better::Higher));
    assert_eq!(of_test(1), (Verdict::Undecided, Some([1, 4]), Better::Lower));
    assert_eq!(compared[0].workload, "FS-Mark Test: 1000 Files, 1MB Size");
    let said = read("<?xml version=\"1.0\"?><html/>").unwrap_err().to_string();
    assert_eq!(said, "the XML begins with html: looked for PhoronixTestSuite");
}

/// The error is shared over all that is compared, whatever the tests.
#[test]
fn more_comparisons_widen_each_interval() {
    let width = |tests: &[&str]| {
        let mut text = "fs,test,wall_s\n".to_string();
        for test in tests {
            for value in [10, 11, 12, 13] {
                text += &format!("a,{test},{value}\nb,{test},{value}.5\n");
            }
        }
        let compared = comparisons(&of(&[("t.csv", &text)], &wanted()).unwrap());
        assert_eq!(compared.len(), tests.len());
        compared[0].high.unwrap() / compared[0].low
    };
    assert!(width(&["x", "y", "z"]) > 1.1 * width(&["x"]));
}

#[test]
fn what_cannot_be_compared_is_one_clear_error() {
    let said = |files: &[(&str, &str)]| of(files, &wanted()).unwrap_err().to_string();
    let one = said(&[("ext4-1.json", FIO), ("ext4-2.json", &FIO.replace("\"job\"", "\"k\""))]);
    assert!(one.contains("no test has runs of two of the contenders"), "{one}");
    let alone = said(&[("a.json", FIO)]);
    assert!(alone.starts_with("nothing to compare: all runs are of one contender, job"), "{alone}");
    let unknown = said(&[("a.json", FIO), ("notes.txt", "hello\n")]);
    assert!(unknown.starts_with("notes.txt: this is neither a table in TOML"), "{unknown}");
    let table = "[[test]]\nname = \"w\"\ncolumns = [\"IOPS\"]\na = [1]\nb = [2]\n";
    assert!(said(&[("t.toml", table)]).starts_with("t.toml: this is a table of means: "));
    let hyperfine = "command,mean,stddev,median,user,system,min,max\nx,1,0,1,0,0,1,1\n";
    assert!(said(&[("h.csv", hyperfine)]).ends_with("give hyperfine's --export-json"));
    let cut = CRITERION.replace("2.0,4.0", "4.0");
    assert!(said(&[("s.json", &cut)]).contains("5 times of 4 counts of iterations"));
    let nobody = Wanted { reference: Some("zfs".into()), ..wanted() };
    let csv = "fs,wall_s\na,1\nb,2\na,1\nb,2\n";
    let said = of(&[("t.csv", csv)], &nobody).unwrap_err().to_string();
    assert_eq!(said, "no contender is \"zfs\": there are a, b");
}
