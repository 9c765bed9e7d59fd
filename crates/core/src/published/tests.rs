//! Real outputs of fio and hyperfine, CSVs, and files that are none of these.

use super::*;
use crate::model::{Audit, Part, Percent, Quantity, Severity, Statistic};

/// `fio --rw=randrw --bs=4k --size=16m --numjobs=2 --iodepth=8 --ioengine=libaio --direct=0
/// --runtime=1 --time_based --group_reporting --output-format=json`, without what is not read.
const FIO: &str = include_str!("samples/fio-3.33.json");
/// `hyperfine --runs 5 true 'sleep 0.01' --export-json`.
const HYPERFINE: &str = include_str!("samples/hyperfine-1.15.json");

#[test]
fn the_output_of_fio_has_its_parameters_and_its_figures() {
    let table = read(FIO).unwrap();
    assert_eq!(table.kind, "JSON of fio-3.33");
    let test = &table.tests[0];
    let job = &test.job;
    assert_eq!((job.block_bytes, job.jobs, job.depth), (Some(4096), Some(2), Some(8)));
    assert_eq!((job.mode.as_deref(), job.engine.as_deref()), (Some("randrw"), Some("libaio")));
    assert_eq!((job.direct, job.synced, job.closed_loop), (Some(false), Some(false), true));
    assert_eq!((job.size_bytes, test.runs), (Some(16 << 20), Some(1)));
    let figure = |quantity, part, statistic| {
        let is_it = |column: &crate::model::Column| {
            (column.quantity, column.part, column.statistic) == (quantity, part, statistic)
        };
        let at = test.columns.iter().position(is_it).unwrap();
        test.rows[0].cells[at].as_ref().unwrap().value
    };
    assert_eq!(figure(Quantity::Iops, Part::Read, None), 158_235.059_761);
    assert_eq!(figure(Quantity::Bandwidth, Part::Write, None), 648_775_394.0);
    let mean = figure(Quantity::Latency, Part::Write, Some(Statistic::Mean));
    assert_eq!(mean, 50_164.022_977);
    let tail = figure(Quantity::Latency, Part::Read, Some(Statistic::Quantile(0.9999)));
    assert_eq!(tail, 16_056_320.0);
    // What fio writes before the document does not matter, and what it failed at does.
    assert_eq!(read(&format!("fio: this is a note\n{FIO}")).unwrap(), table);
    let failed = read(&FIO.replace("\"error\" : 0", "\"error\" : 5")).unwrap_err();
    assert_eq!(failed, wrong("fio's job job ended with error 5: its figures are of a part"));
}

#[test]
fn rounds_that_only_paths_number_are_noted() {
    let wanted = Wanted {
        columns: Columns::default(),
        better: None,
        reference: None,
        margin: Percent(0.05),
        confidence: Percent(0.95),
    };
    let found = |contender: [Option<&str>; 2]| {
        let paths = ["ext4-1.json", "ext4-2.json", "xfs-1.json", "xfs-2.json"];
        let file = |(at, path)| File { contender: contender[at / 2], path, text: FIO };
        let files: Vec<File> = paths.into_iter().enumerate().map(file).collect();
        let findings = measured(&files, &wanted).unwrap().findings;
        let orders = findings.into_iter().filter(|it| it.audit == Audit::A14);
        orders.map(|it| it.severity).collect::<Vec<_>>()
    };
    assert_eq!(found([None, None]), [Severity::Note]);
    assert_eq!(found([Some("ext4"), Some("xfs")]), [Severity::Warning]);
}

#[test]
fn tasks_that_fio_reports_together_are_not_guessed() {
    let more = FIO.replace("\"job_runtime\" : 2003", "\"job_runtime\" : 9003");
    assert_ne!(more, FIO);
    assert_eq!(read(&more).unwrap().tests[0].job.jobs, None);
    let open = FIO.replace("\"bs\" : \"4k\"", "\"bs\" : \"4k,8k\", \"rate_iops\" : \"100\"");
    let job = &read(&open).unwrap().tests[0].job;
    assert_eq!((job.block_bytes, job.closed_loop), (None, false));
}

#[test]
fn the_output_of_hyperfine_has_the_times_of_its_runs() {
    let table = read(HYPERFINE).unwrap();
    assert_eq!(
        table.tests.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
        ["true", "sleep 0.01"]
    );
    let test = &table.tests[1];
    assert_eq!((test.runs, test.rows[0].times_s.len()), (Some(5), 5));
    let means = test.columns.iter().position(|it| it.statistic == Some(Statistic::Mean)).unwrap();
    assert_eq!(test.rows[0].cells[means].as_ref().unwrap().value, 0.008_686_841_520_000_002);
}

#[test]
fn rows_of_a_csv_are_runs_of_their_contender() {
    let text = "fs,job,bs,jobs,depth,engine,iops,bw_mib_s,mood\n\
                ext4,a,4k,1,8,libaio,100,0.4,well\n\
                xfs,a,4k,1,8,libaio,101,0.4,well\n\
                xfs,a,4k,1,8,libaio,102,,well\n\
                xfs,a,8k,1,8,libaio,102,0.8,well\n";
    let table = read(text).unwrap();
    assert_eq!(table.tests.len(), 2, "another block size is another test");
    let test = &table.tests[0];
    assert_eq!((test.rows.len(), test.runs), (3, Some(2)));
    assert_eq!(test.rows[2].contender, "xfs");
    assert_eq!(test.rows[2].cells.iter().flatten().count(), 1);
    assert_eq!(
        (test.job.block_bytes, test.job.jobs, test.job.depth),
        (Some(4096), Some(1), Some(8))
    );
    assert_eq!((test.job.direct, test.job.is_fio), (None, false), "no program, no defaults");
    let names: Vec<&str> = test.columns.iter().map(|it| it.heading.as_str()).collect();
    assert_eq!(names, ["iops", "bw_mib_s", "mood"]);
}

#[test]
fn the_csv_of_hyperfine_counts_seconds() {
    let text = "command,mean,stddev,median,user,system,min,max\ntrue,0.5,0.1,0.5,0,0,0.4,0.6\n";
    let table = read(text).unwrap();
    assert_eq!(table.kind, "CSV of hyperfine");
    assert!(table.tests[0].columns.iter().all(|it| it.quantity == Quantity::Time));
}

#[test]
fn a_figure_keeps_the_digits_it_was_printed_with() {
    let text = "[[test]]\nname = \"w\"\ncolumns = [\"a s\", \"b s\", \"c s\"]\n\
                ext4 = [16.0, \"16.00\", \"-\"]\n";
    let cells = read(text).unwrap().tests.remove(0).rows.remove(0).cells;
    let steps: Vec<_> = cells.iter().map(|cell| cell.as_ref().map(|it| it.step)).collect();
    assert_eq!(steps, [Some(0.1), Some(0.01), None]);
}

#[test]
fn what_is_wrong_with_a_table_is_said_with_its_line() {
    let test =
        "[environment]\ncontenders = [\"ext4\"]\n[[test]]\nname = \"w\"\ncolumns = [\"IOPS\"]\n";
    for (rest, says) in [
        ("ext4 = [1, 2]", "line 6: ext4 has 2 figures for 1 columns"),
        ("ext4 = [\"fast\"]", "line 6: \"fast\" is not a figure; for none write \"-\""),
        ("xfs = [1]", "line 6: xfs is not a key of a test, and none of the contenders"),
        ("ext4 = [1]\nprocesses = { iops = 1 }", "line 7: no column of the test is \"iops\""),
        ("ext4 = [1]\nfiles = \"many\"", "line 7: files is a whole number"),
        ("", "test \"w\" has no rows"),
        ("ext4 = [1]\n[[claim]]\ntest = \"w\"", "line 7: a claim has a text"),
        ("ext4 = [1]\n[[claim]]\ntext = \"t\"\nwho = 1", "line 9: who is not a key of a claim"),
        (
            "ext4 = [1]\n[[claim]]\ntext = \"t\"\nchanges = { IOPS = \"more\" }",
            "line 9: a change is written +9%, -12%, ~8-12%, 6.9x or 3-4x",
        ),
    ] {
        assert_eq!(read(&format!("{test}{rest}\n")), Err(wrong(says)), "{rest}");
    }
    let memory = test.replace("[environment]", "[environment]\nmemory = \"lots\"");
    let said = read(&format!("{memory}ext4 = [1]")).unwrap_err().to_string();
    assert_eq!(said, "line 2: memory is a size: write \"8G\"");
    assert!(read("[[test]]\nname = ").unwrap_err().to_string().contains("line 2"));
}

#[test]
fn what_is_no_table_is_told_apart() {
    assert_eq!(read("[[contender]]\nname = \"a\"\n"), Err(TableError::Plan));
    for text in ["", "hello\nworld\n", "{}", "{\"jobs\": []}", "[global]\nrw=read\n", "a = 1\n"] {
        assert_eq!(read(text), Err(TableError::Unknown), "{text}");
    }
    assert!(
        read("{\"schema\": 1, \"findings\": []}").unwrap_err().to_string().contains("run's folder")
    );
    let empty = read("iops,bw_mib_s\n").unwrap_err().to_string();
    assert_eq!(empty, "the CSV has a heading and no rows");
    let cut = read("iops,bw_mib_s\n1,2\n3\n").unwrap_err().to_string();
    assert!(cut.starts_with("the CSV's line 3: "), "{cut}");
}
