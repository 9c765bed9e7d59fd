//! The rules that hold figures against one another, against what a text concludes from them, and
//! against what they are figures of.

use fsverdict_core::judge::{table_findings, table_missing};
use fsverdict_core::model::{Audit, Severity, Table};
use fsverdict_core::published::read;

use crate::{COLUMNS, SEQUENTIAL, found, table};

/// A table with one test of these lines, and these claims.
fn written(environment: &str, test: &str, claims: &str) -> Table {
    let text = format!("[environment]\n{environment}\n[[test]]\nname = \"w\"\n{test}\n{claims}");
    read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The findings but those of digits and runs.
fn of_figures(table: &Table) -> Vec<(Audit, String)> {
    let mut found = found(table);
    found.retain(|(audit, _)| !matches!(audit, Audit::A17 | Audit::A18));
    found
}

#[test]
fn a_claim_is_worth_what_mean_spread_and_runs_make_of_it() {
    let of = |runs: u32, xfs: &str, ext4: &str, claim: &str| {
        let test = format!(
            "runs = {runs}\ncolumns = [\"bandwidth MB/s\"]\nxfs = [\"{xfs}\"]\next4 = [\"{ext4}\"]"
        );
        let claim = format!("[[claim]]\ntext = \"XFS is faster\"\ncontender = \"xfs\"\n{claim}");
        of_figures(&written("", &test, &claim))
    };
    let better = "better = \"bandwidth MB/s\"";
    let wrong = of(10, "12.1 +- 1.4", "11.9 +- 1.3", better);
    assert_eq!((wrong.len(), wrong[0].0), (1, Audit::A5));
    assert!(wrong[0].1.starts_with("\"XFS is faster\": bandwidth MB/s of xfs 12.1 +- 1.4"));
    assert!(wrong[0].1.contains("10 runs each: 95% interval of the ratio 0.9"), "{wrong:?}");
    assert_eq!(of(10, "12.1 ± 0.05", "11.9 ± 0.05", better), []);
    assert_eq!(of(1000, "12.1 ± 1.4", "11.9 ± 1.3", better), [], "enough runs show it");
    assert_eq!(of(10, "11.9 ± 0.05", "12.1 ± 0.05", better).len(), 1, "the wrong way round");
    let change = "changes = { \"bandwidth MB/s\" = \"+2%\" }";
    assert_eq!(of(10, "12.1 ± 1.4", "11.9 ± 1.3", change).len(), 1, "2% is there, and is noise");
    assert_eq!(of(10, "12.1 ± 0.05", "11.9 ± 0.05", change), []);
    let plain = of(10, "11.9", "12.1", better);
    assert!(plain[0].1.ends_with("11.9 is not better than the 12.1 of ext4"), "{plain:?}");
    assert!(of(3, "12.1 ± 1.4", "11.9 ± 1.3", better)[0].1.contains("3 runs each: 95% interval"));
}

#[test]
fn three_runs_that_lie_far_apart_differ() {
    let of = |runs: u32, claim: &str| {
        let rows = "ext4 = [\"5000 ± 10\"]\nxfs = [\"9000 ± 10\"]";
        let test = format!("runs = {runs}\ncolumns = [\"IOPS\"]\n{rows}");
        let claim = format!("[[claim]]\ntext = \"t\"\ncontender = \"xfs\"\n{claim}");
        found(&written("", &test, &claim))
    };
    for runs in [2, 3] {
        for claim in ["changes = { IOPS = \"1.8x\" }", "better = [\"IOPS\"]"] {
            let few = (Audit::A18, format!("each figure is of {runs} runs only"));
            assert_eq!(of(runs, claim), [few], "{claim}");
        }
    }
}

#[test]
fn a_figure_without_a_spread_beside_one_that_has_it_decides_nothing() {
    let of = |ext4: &str, xfs: &str| {
        let test =
            format!("runs = 5\ncolumns = [\"IOPS\"]\next4 = [\"{ext4}\"]\nxfs = [\"{xfs}\"]");
        let claim = "[[claim]]\ntext = \"t\"\ncontender = \"xfs\"\nbetter = [\"IOPS\"]";
        found(&written("", &test, claim))
    };
    let one_sided = of("5000 ± 4000", "5100");
    let a5 = one_sided.iter().find(|(audit, _)| *audit == Audit::A5).unwrap();
    assert!(a5.1.ends_with("with the other's spread for xfs, which has none"), "{a5:?}");
    let gap = (Audit::A18, "of 5 runs no spread is given for IOPS of xfs".to_string());
    assert!(one_sided.contains(&gap), "{one_sided:?}");
    assert_eq!(of("5000 ± 10", "9000"), [gap]);
    assert_eq!(of("5000 ± 10", "9000 ± 10"), []);
    let columns = "runs = 5\ncolumns = [\"IOPS\", \"delete s\", \"user s\"]\n\
                   a = [\"5000 ± 10\", 12.10, 1.00]";
    let gap = (Audit::A18, "of 5 runs no spread is given for delete s".to_string());
    assert_eq!(found(&written("", columns, "")), [gap]);
}

#[test]
fn a_spread_that_no_runs_have_is_noticed() {
    let of = |runs: u32, columns: &str, row: &str| {
        let test = format!("runs = {runs}\ncolumns = [{columns}]\na = [{row}]");
        let findings = table_findings(&written("", &test, "")).into_iter();
        let its = findings.filter(|it| it.audit == Audit::A5);
        its.map(|it| (it.severity, it.evidence)).collect::<Vec<_>>()
    };
    let iops = |runs, figure: &str| of(runs, "\"IOPS\"", &format!("\"{figure}\""));
    let beyond = "IOPS 5000 ± 12000: 5 runs that can't be below 0 scatter by 11,183 at most";
    assert_eq!(iops(5, "5000 ± 12000"), [(Severity::Warning, beyond.to_string())]);
    let wide = "IOPS 5000 ± 6000: the runs scatter by more than their mean";
    assert_eq!(iops(5, "5000 ± 6000"), [(Severity::Note, wide.to_string())]);
    assert_eq!(iops(200, "5000 ± 12000")[0].0, Severity::Note);
    assert_eq!(iops(5, "5000 ± 4000"), []);
    let beside = of(5, "\"IOPS\", \"IOPS stddev\"", "5000, 12000");
    assert!(beside[0].1.starts_with("IOPS 5000 and a deviation of 12,000: "), "{beside:?}");
    // Single latencies of one run scatter so.
    let latency = "\"mean latency ms\", \"latency stddev ms\"";
    assert_eq!(of(5, latency, "2.00, 9.00"), []);
}

/// What `dd` tells of a test with these lines, on a machine with 16 GiB of memory.
fn of_dd(lines: &str) -> (Vec<(Audit, String)>, String) {
    let test = format!("runs = 5\n{lines}\ncolumns = [\"bandwidth MB/s\"]\next4 = [\"2100 ± 9\"]");
    let table = written("memory = \"16G\"\ndevice = \"a hard disk\"", &test, "");
    (found(&table), table_missing(&table).join("; "))
}

#[test]
fn a_dd_without_fsync_and_one_that_reads_from_memory_are_noticed() {
    let of = |lines: &str| {
        let (found, missing) = of_dd(lines);
        assert!(!missing.contains("A6") && !missing.contains("A9"), "{lines}: {missing}");
        found.into_iter().map(|(audit, _)| audit).collect::<Vec<_>>()
    };
    let writes = "dd if=/dev/zero of=test.img bs=1M count=4096";
    let write = |more: &str| of(&format!("bytes = \"4G\"\ncommand = \"{writes}{more}\""));
    assert_eq!(write(""), [Audit::A9]);
    for durable in [" conv=fsync", " conv=fdatasync", " oflag=direct", " oflag=dsync", " && sync"] {
        assert_eq!(write(durable), [], "{durable}");
    }
    assert_eq!(of(&format!("synced = true\ncommand = \"{writes}\"")), []);
    let reads = "command = \"dd if=test.img of=/dev/null bs=1M\"";
    let read = |more: &str| of(&format!("{more}\n{reads}"));
    assert_eq!(read("bytes = \"4G\""), [Audit::A6]);
    assert_eq!(read("bytes = \"32G\""), []);
    assert_eq!(read("bytes = \"4G\"\ncache = \"dropped before each run\""), []);
    assert_eq!(read("bytes = \"4G\"\ncache = \"not dropped\""), [Audit::A6]);
    let direct = reads.replace("bs=1M", "bs=1M iflag=direct count=4096");
    assert_eq!(of(&direct), []);
    let dropped = reads.replace("dd if", "echo 3 > /proc/sys/vm/drop_caches; dd if");
    assert_eq!(of(&format!("bytes = \"4G\"\n{dropped}")), []);
}

#[test]
fn what_a_command_does_not_say_is_listed() {
    let missing = |lines: &str| of_dd(lines).1;
    let no_size = missing("command = \"dd if=test.img of=/dev/null\"");
    assert!(no_size.contains("how much is read is not stated"), "{no_size}");
    for command in ["cp -a /home/a b", "tar xf a.tar", "./bench.sh", "rsync -a x y"] {
        let said = missing(&format!("command = \"{command}\""));
        assert!(said.contains("A6, reads from cache: what was done to the caches"), "{said}");
        assert!(said.contains("whether the timed part ends with a sync"), "{said}");
    }
    let said = missing("command = \"tar xf a.tar && sync\"\ncache = \"dropped\"");
    assert!(!said.contains("A6") && !said.contains("A9"), "{said}");
    let walked = missing("command = \"find . | wc -l\"");
    assert!(walked.contains("A6") && !walked.contains("A9"), "{walked}");
    let column = written("", "columns = [\"write MB/s\", \"read MB/s\"]\na = [900, 900]", "");
    let column = table_missing(&column).join("; ");
    assert!(column.contains("(cache) (w)") && column.contains("(synced) (w)"), "{column}");
}

#[test]
fn a_job_that_reads_what_was_dropped_reads_it_from_the_device_once() {
    let of = |fio: &str, iops: u32| {
        let job = format!("fio = {{ rw = \"read\", size = \"4G\", numjobs = 4{fio} }}");
        let cache = "cache = \"dropped before each run: echo 3 > drop_caches\"";
        let test = format!("{job}\n{cache}\ncolumns = [\"IOPS\"]\na = [{iops}]");
        let found = of_figures(&written("memory = \"64G\"", &test, ""));
        found.into_iter().map(|(audit, _)| audit).collect::<Vec<_>>()
    };
    assert_eq!(of("", 400_000), []);
    let timed = ", time_based = true, runtime = 60";
    assert_eq!(of(timed, 400_000), [Audit::A6], "94 GB of 16 are gone over again");
    assert_eq!(of(timed, 4000), [], "0.9 GiB of 16 are not");
}

#[test]
fn figures_in_another_unit_are_called_so() {
    let row = |columns: &str, row: &str| {
        let table = table("", SEQUENTIAL, columns, &[("a", row)]);
        let found = table_findings(&table).into_iter().find(|it| it.audit != Audit::A18).unwrap();
        (found.audit, found.evidence, found.advice)
    };
    let kilo = row("\"bandwidth MiB/s\", \"IOPS\"", "[151, \"0.151\"]");
    assert!(kilo.1.ends_with("in blocks of 1048576 bytes: thousands?"), "{kilo:?}");
    assert!(!kilo.2.contains("believe neither"));
    let bits = row("\"bandwidth MB/s\", \"IOPS\"", "[1266, 151]");
    assert!(bits.1.ends_with(": bits?"), "{bits:?}");
    let columns = "\"IOPS\", \"mean latency ms\"";
    for latency in ["105770", "\"0.10577\""] {
        let thousand = row(columns, &format!("[151, {latency}]"));
        assert_eq!(thousand.0, Audit::A2);
        assert!(thousand.1.ends_with("the 16 of the job: µs for ms?"), "{thousand:?}");
    }
    // The heading says it.
    let said = table("", SEQUENTIAL, "\"bandwidth MiB/s\", \"IOPS (k)\"", &[("a", "[151, 0.151]")]);
    assert_eq!(found(&said), []);
}

#[test]
fn a_depth_without_an_engine_is_asked_for_where_the_figures_have_it() {
    let of = |latency: &str| {
        let fio = SEQUENTIAL.replace("ioengine = \"libaio\", ", "");
        let row = format!("[151, 151, {latency}]");
        let findings = table_findings(&table("", &fio, COLUMNS, &[("a", &row)]));
        findings.into_iter().map(|it| (it.audit, it.evidence)).collect::<Vec<_>>()
    };
    let asked = of("105.77");
    assert_eq!((asked.len(), asked[0].0), (1, Audit::A3));
    assert!(asked[0].1.ends_with("the figures have 16.0, as if it were asynchronous"), "{asked:?}");
    let ignored = of("6.61");
    assert_eq!((ignored.len(), ignored[0].0), (1, Audit::A3));
    assert!(ignored[0].1.contains("psync"), "{ignored:?}");
}

#[test]
fn an_option_of_fio_that_is_written_wrong_is_refused() {
    let read = |option: &str| {
        read(&format!(
            "[[test]]\nname = \"w\"\nfio = {{ rw = \"read\", {option} = 1 }}\n\
             columns = [\"IOPS\"]\na = [1]"
        ))
    };
    let wrong = read("ioengin").unwrap_err().to_string();
    assert!(wrong.starts_with("line 3: ioengin is not an option of fio's: did you mean ioengine?"));
    for name in ["io_depth", "num_jobs", "block_size", "dircet"] {
        read(name).unwrap_err();
    }
    for name in [
        "ba",
        "bsrange",
        "buffered",
        "directory",
        "filename",
        "io_size",
        "iodepth_batch",
        "loops",
        "nice",
        "norandommap",
        "nrfiles",
        "offset",
        "ramp_time",
        "rate_cycle",
        "rate_process",
        "ratemin",
        "rwmixwrite",
        "thinktime_blocks",
        "thread",
        "unlink",
        "verify_only",
        "zonesize",
    ] {
        assert!(read(name).is_ok(), "{name}");
    }
}

#[test]
fn a_change_that_is_rounded_to_tens_is_a_note() {
    let of = |change: &str| {
        let test = "runs = 5\ncolumns = [\"bandwidth MB/s\"]\nxfs = [\"4500\"]\next4 = [\"3500\"]";
        let claim = format!(
            "[[claim]]\ntext = \"t\"\ncontender = \"xfs\"\n\
             changes = {{ \"bandwidth MB/s\" = \"{change}\" }}"
        );
        let findings = table_findings(&written("", test, &claim)).into_iter();
        let its = findings.filter(|it| it.audit == Audit::A5);
        its.map(|it| (it.severity, it.evidence)).collect::<Vec<_>>()
    };
    let noted = of("+30%");
    assert_eq!((noted.len(), noted[0].0), (1, Severity::Note));
    assert!(noted[0].1.ends_with("+28.6% over ext4, unless it is rounded to tens"), "{noted:?}");
    assert_eq!([of("~30%"), of("about 30%"), of("+29%")], [const { vec![] }; 3]);
    assert_eq!([of("+40%"), of("+31%")].map(|it| it[0].0), [Severity::Warning; 2]);
}

#[test]
fn a_table_whose_spread_hides_every_difference_says_so() {
    let of = |rows: &str| {
        let columns = "columns = [\"mean s\", \"stddev s\"]";
        found(&written("", &format!("runs = 10\n{columns}\n{rows}"), ""))
    };
    let hidden = of("a = [12.10, 1.4]\nb = [11.90, 1.3]\nc = [12.00, 1.2]");
    assert_eq!((hidden.len(), hidden[0].0), (1, Audit::A18));
    assert!(hidden[0].1.starts_with("no two of them differ: mean s of a 12.10"), "{hidden:?}");
    assert!(hidden[0].1.contains("for all 3 together"), "{hidden:?}");
    assert_eq!(of("a = [12.10, 1.4]\nb = [11.90, 1.3]\nc = [24.00, 1.2]"), []);
}

#[test]
fn what_no_rule_fits_is_listed_as_not_audited() {
    let gap = |test: &str, claims: &str| table_missing(&written("", test, claims)).join("; ");
    let test = "columns = [\"walk s\"]\na = [122.55]\nb = [46.36]";
    let none = gap(test, "");
    assert_eq!(none, "only the rules of digits and runs (A17, A18) apply (w)");
    let claim = "[[claim]]\ntext = \"b is faster\"";
    assert!(gap(test, claim).ends_with("\"b is faster\": it names no figures, changes or better"));
    assert_eq!(gap(test, &format!("{claim}\nchanges = {{ \"walk s\" = \"3x\" }}")), "");
    let score =
        gap("columns = [\"score\"]\na = [1]\nb = [2]", &format!("{claim}\nbetter = \"score\""));
    assert!(score.ends_with("it is unclear whether more or less of score is better"), "{score}");
    assert_eq!(gap("columns = [\"walk s\", \"stat s\", \"total s\"]\na = [1, 2, 3]", ""), "");
}

#[test]
fn rate_time_and_amount_follow_from_each_other() {
    let of = |test: &str| of_figures(&written("", test, ""));
    let columns = "columns = [\"write MB/s\", \"write s\"]";
    let dd = |bytes: &str| of(&format!("bytes = \"{bytes}\"\n{columns}\na = [\"210\", \"50.0\"]"));
    let wrong = dd("39M");
    assert_eq!((wrong.len(), wrong[0].0), (1, Audit::A1));
    assert!(wrong[0].1.ends_with("make 9.78 GiB, and the work is 39.0 MiB"), "{wrong:?}");
    assert_eq!(dd("10013M"), []);
    // The other way round: what the rows imply is one piece of work.
    let rows = |b: &str| of(&format!("{columns}\na = [210, 50.0]\nb = {b}"));
    assert_eq!(rows("[105, 100.0]"), []);
    let other = rows("[210, 100.0]");
    assert!(other[0].1.contains("imply other amounts of work: 9.78 GiB for a, 19.6 GiB for b"));
    assert_eq!(rows("[105, 50.0]"), [], "work for a given time is as much as it comes to");
    let files = |rate: &str| {
        of(&format!(
            "files = 10000\ncolumns = [\"create files/s\", \"create s\"]\na = [{rate}, 20.0]"
        ))
    };
    assert_eq!(files("500"), []);
    assert!(
        files("328")[0].1.ends_with("make 6,560 operations, and the work is 10,000 operations")
    );
}

#[test]
fn processor_time_is_its_share_of_the_time() {
    let of = |share: &str| {
        let columns = "columns = [\"user s\", \"system s\", \"CPU %\", \"wall s\"]";
        let row = format!("a = [161.20, 255.46, {share}, \"32:06.78\"]");
        of_figures(&written("", &format!("{columns}\n{row}"), ""))
    };
    assert_eq!(of("21"), []);
    let wrong = of("31");
    assert!(wrong[0].1.starts_with("CPU % 31 is not 21.6, as user s 161.20"), "{wrong:?}");
    assert_eq!(of("5"), [], "of four processors");
}

#[test]
fn a_figure_that_breaks_its_series_is_named() {
    let sweep = |at_8: u32| {
        let mut text = "fs,test,depth,jobs,engine,iops\n".to_string();
        for (depth, iops) in [(1, 100), (2, 190), (4, 350), (8, at_8), (16, 900), (32, 1100)] {
            text += &format!("xfs,w,{depth},1,libaio,{iops}\n");
        }
        of_figures(&read(&text).unwrap())
    };
    assert_eq!(sweep(600), []);
    let wrong = sweep(60);
    assert_eq!((wrong.len(), wrong[0].0), (1, Audit::A5));
    let says = "iops 60 at depth 8 breaks its series: 350 at depth 4, 900 at depth 16";
    assert_eq!(wrong[0].1, says);
    assert_eq!(sweep(340), [], "noise breaks nothing");
    let rows = "columns = [\"IOPS\"]\n1 = [100]\n2 = [200]\n4 = [4000]\n8 = [800]\n16 = [1600]";
    let broken = of_figures(&written("", rows, ""));
    assert!(broken[0].1.starts_with("IOPS 4000 at 4 breaks its series"), "{broken:?}");
}

#[test]
fn zeros_are_no_data_where_something_may_leave_them_out() {
    let of = |environment: &str, how: &str| {
        let test = format!("{how}\ncolumns = [\"write MB/s\"]\nbtrfs = [900]");
        let mut found = table_findings(&written(environment, &test, ""));
        found.retain(|it| it.audit == Audit::A9);
        found.into_iter().map(|it| (it.severity, it.evidence)).collect::<Vec<_>>()
    };
    let dd = "command = \"dd if=/dev/zero of=f bs=1M count=1000 conv=fsync\"";
    let squeezed =
        of("contenders = [\"btrfs\"]\nmount = { btrfs = \"noatime,compress=zstd\" }", dd);
    assert_eq!(squeezed[0].0, Severity::Warning);
    assert!(squeezed[0].1.ends_with("zeros, and btrfs is mounted with compress=zstd"));
    assert_eq!(of("device = \"a cloud volume\"", dd)[0].0, Severity::Note);
    assert_eq!(of("device = \"one spare HDD\"", dd), []);
    assert_eq!(of("", "command = \"cp -a source .\""), []);
    assert_eq!(of("", "fio = { rw = \"write\", direct = 1, zero_buffers = 1 }").len(), 1);
}

#[test]
fn a_device_has_a_limit_for_reads_and_one_for_writes() {
    let of = |mode: &str| {
        let environment = "device_read_iops = 1000000\ndevice_write_iops = 180000\n\
                           device_write_bandwidth = \"4G\"";
        let job = format!("fio = {{ rw = \"{mode}\", direct = 1 }}");
        let test = format!("{job}\ncolumns = [\"IOPS\"]\na = [400000]\nb = [100000]");
        of_figures(&written(environment, &test, ""))
    };
    let writes = of("randwrite");
    assert_eq!((writes.len(), writes[0].0), (1, Audit::A8));
    assert!(writes[0].1.ends_with("2.222 of the device's 180000 IOPS of writes"), "{writes:?}");
    assert_eq!(of("randread"), []);
}

#[test]
fn a_working_set_is_held_against_memory_and_the_devices_own() {
    let of = |environment: &str, test: &str| {
        let mut found = of_figures(&written(environment, test, ""));
        found.retain(|(audit, _)| *audit == Audit::A6);
        found.into_iter().map(|(_, evidence)| evidence).collect::<Vec<_>>()
    };
    let files = "files = 10000\nfile_size = \"1K\"\ncolumns = [\"read files/s\"]\na = [28388]";
    let cached = of("memory = \"8G\"", files);
    assert!(cached[0].starts_with("read files/s: 9.77 MiB in files that were just written"));
    assert_eq!(of("memory = \"8G\"", &format!("cache = \"dropped\"\n{files}")), [""; 0]);
    assert_eq!(of("memory = \"4M\"", files), [""; 0]);
    let fio = "fio = { rw = \"randread\", direct = 1, size = \"1G\", numjobs = 4 }\n\
               columns = [\"IOPS\"]\na = [400000]";
    assert_eq!(of("device_cache = \"8G\"", fio).len(), 1);
    assert_eq!(of("device_cache = \"1G\"", fio), [""; 0]);
}

#[test]
fn a_latency_that_follows_from_the_rate_is_not_unfounded() {
    let of = |claim: &str| {
        let test = "runs = 5\nfio = { rw = \"randwrite\", numjobs = 16, iodepth = 64, \
                    ioengine = \"libaio\", direct = 1 }\ncolumns = [\"IOPS\"]\n\
                    xfs = [350000]\next4 = [310000]";
        let claim = format!("[[claim]]\ntext = \"t\"\ncontender = \"xfs\"\n{claim}");
        of_figures(&written("", test, &claim))
    };
    // 1,024 in flight at 350,000 a second: 2.93 ms each.
    assert_eq!(of("figures = { \"mean latency ms\" = \"2.9\" }"), []);
    assert_eq!(of("figures = { \"mean latency us\" = \"~2.9 ms\" }"), []);
    assert_eq!(of("figures = { \"mean latency ms\" = \"1.5\" }").len(), 1);
    assert_eq!(of("figures = { \"p99 latency ms\" = \"2.9\" }").len(), 1, "no mean");
    assert_eq!(of("changes = { \"latency ms\" = \"~-10-15%\" }"), []);
    assert_eq!(of("changes = { \"latency ms\" = \"-30%\" }").len(), 1);
}

#[test]
fn figures_of_texts_are_read_as_they_are_written() {
    let of = |claim: &str| {
        let test = "runs = 5\ncolumns = [\"bandwidth MB/s\"]\nxfs = [3210]\next4 = [910]";
        let claim = format!("[[claim]]\ntext = \"t\"\ncontender = \"xfs\"\n{claim}");
        of_figures(&written("", test, &claim))
    };
    let figure = |text: &str| of(&format!("figures = {{ \"bandwidth MB/s\" = \"{text}\" }}"));
    let change = |text: &str| of(&format!("changes = {{ \"bandwidth MB/s\" = \"{text}\" }}"));
    for holds in ["3.2 GB/s", "~3200", "3-4 GB/s", "3.2 GB/s"] {
        assert_eq!(figure(holds), [], "{holds}");
    }
    assert_eq!(figure("3.5 GB/s").len(), 1);
    for holds in ["3-4x", "more than 3x", "~3.5x", "up to 4 times"] {
        assert_eq!(change(holds), [], "{holds}");
    }
    assert_eq!([change("5-6x").len(), change("over 5x").len()], [1, 1]);
}

#[test]
fn a_small_disagreement_is_a_note() {
    let of = |row| {
        let table = table("", SEQUENTIAL, COLUMNS, &[("a", row)]);
        let its = table_findings(&table).into_iter().filter(|it| it.audit == Audit::A1);
        its.map(|it| (it.severity, it.advice)).collect::<Vec<_>>()
    };
    let small = of("[\"153.5\", \"151.0\", 105.77]");
    assert_eq!((small.len(), small[0].0), (1, Severity::Note));
    assert!(!small[0].1.contains("believe neither"));
    let large = of("[\"131.0\", \"151.0\", 105.77]");
    assert!(large[0].0 == Severity::Warning && large[0].1.contains("believe neither"));
}
