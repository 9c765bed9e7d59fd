//! A fio job of each kind, run by fio itself: what is counted, never how fast it went.

use std::fs;

use fsverdict_core::model::{JobRecord, Jobs, Phase, PhaseRecord};
use serde_json::json;

use super::stage::{Stage, one_line, told};
use crate::workload::engine::{Reading, Taken};

fn staged(arguments: &[&str]) -> Option<Stage> {
    let work = format!(r#""fio": {}, "primary": ["cpu_time"]"#, json!(arguments));
    let mut stage = Stage::new(&work, &std::env::temp_dir())?;
    stage.seeded(7);
    Some(stage)
}

/// What is told of the job's work; `None`, and a line of output, without fio.
fn done(arguments: &[&str]) -> Option<PhaseRecord> {
    let stage = staged(arguments)?;
    let (engine, scene) = (stage.engine(), stage.scene());
    engine.lay_out(&scene).unwrap();
    let mut part = engine.prepare(Phase::Whole, &scene).unwrap();
    Some(told(&mut *part, Phase::Whole).unwrap())
}

/// Operations, bytes read and bytes written.
type Counted = (Option<u64>, u64, u64);

fn counted(record: &PhaseRecord) -> Counted {
    let bytes = |bytes: Option<u64>| bytes.unwrap();
    (record.operations, bytes(record.application_read_bytes), bytes(record.application_write_bytes))
}

/// Name, operations, bytes read, bytes written, whether the syncfs is its own.
fn each(record: &PhaseRecord) -> Vec<(&str, u64, u64, u64, bool)> {
    fn of(job: &JobRecord) -> (&str, u64, u64, u64, bool) {
        let bytes = [job.application_read_bytes, job.application_write_bytes];
        (&job.name, job.operations, bytes[0], bytes[1], job.synced)
    }
    record.jobs.iter().map(of).collect()
}

#[test]
fn a_job_of_each_kind_is_counted_as_what_it_is() {
    const KIB: u64 = 1024;
    let kinds: [(&str, Counted); 8] = [
        ("--rw=write", (Some(16), 0, 64 * KIB)),
        ("--rw=write --verify=crc32c --do_verify=1", (Some(32), 64 * KIB, 64 * KIB)),
        ("--rw=randtrim --ioengine=falloc", (Some(16), 0, 0)),
        ("--rw=write --ioengine=falloc", (Some(16), 0, 0)),
        ("--ioengine=filestat --filesize=4k --nrfiles=16", (Some(16), 0, 0)),
        ("--ioengine=filedelete --filesize=4k --nrfiles=16 --unlink=0", (Some(16), 0, 0)),
        ("--rw=write --thread --numjobs=3 --group_reporting", (Some(48), 0, 192 * KIB)),
        ("--rw=randrw --unified_rw_reporting=1", (Some(16), 0, 0)),
    ];
    for (kind, expected) in kinds {
        let words: Vec<&str> =
            ["--bs=4k", "--size=64k"].into_iter().chain(kind.split(' ')).collect();
        let Some(record) = done(&words) else { return };
        assert_eq!(counted(&record), expected, "{kind}");
        assert!(record.jobs.is_empty(), "{kind}");
    }
    let target = "--bs=4k --size=64k --rw=read --latency_target=9s --latency_window=1s";
    let Some(record) = done(&target.split(' ').collect::<Vec<_>>()) else { return };
    assert!(record.samples.iter().any(|sample| sample.metric == "fio_latency_depth"));
}

#[test]
fn jobs_one_after_the_other_have_their_own_figures() {
    let words = "--bs=4k --size=64k --name=w --rw=write --name=r/s --stonewall --rw=randread \
                 --numjobs=2 --name=x --rw=write --stonewall";
    let Some(record) = done(&words.split_whitespace().collect::<Vec<_>>()) else { return };
    assert_eq!(counted(&record), (None, 131_072, 131_072));
    let expected =
        [("w", 16, 0, 65_536, false), ("r_s", 32, 131_072, 0, false), ("x", 16, 0, 65_536, true)];
    assert_eq!(each(&record), expected);
    assert_eq!((record.queue, record.histograms.len()), (None, 0));
    assert_eq!(record.jobs[1].queue.unwrap().declared, 2.0);
    let together = words.replace("--stonewall", "--new_group");
    let record = done(&together.split_whitespace().collect::<Vec<_>>()).unwrap();
    assert_eq!(counted(&record), (Some(64), 131_072, 131_072));
    assert_eq!((record.jobs.len(), record.queue.unwrap().declared), (3, 4.0));
}

#[test]
fn what_a_job_wrote_itself_is_not_laid_out_for_it() {
    let words =
        "--bs=4k --filename=f --name=w --rw=write --size=64k --name=r --stonewall --rw=read";
    let Some(stage) = staged(&words.split(' ').collect::<Vec<_>>()) else { return };
    stage.engine().lay_out(&stage.scene()).unwrap();
    assert!(!stage.path("work/f").exists());
    let record = done(&words.split(' ').collect::<Vec<_>>()).unwrap();
    assert_eq!(counted(&record), (None, 65_536, 65_536));
}

#[test]
fn a_jobs_own_logs_are_as_it_makes_them() {
    let words = "--name=w --rw=randwrite --bs=4k --size=1m --time_based --runtime=300ms \
                 --write_lat_log=own";
    let words: Vec<&str> = words.split_whitespace().collect();
    let Some(stage) = staged(&words) else { return };
    let (engine, scene) = (stage.engine(), stage.scene());
    let mut part = engine.prepare(Phase::Whole, &scene).unwrap();
    let record = told(&mut *part, Phase::Whole).unwrap();
    let log = fs::read_to_string(stage.path("work/own_clat.1.log")).unwrap();
    assert_eq!(Some(log.lines().count() as u64), record.operations, "a line for each operation");
    assert_eq!(record.rate_over_time, None);
}

#[test]
fn fio_says_which_jobs_a_file_has() {
    let Some(mut stage) = staged(&["--rw=write"]) else { return };
    let write = |name: &str, text: &str| {
        let path = stage.path(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    write("more.fio", "stonewall\nrw=read\n");
    let text = "[global]\nbs=${BLOCK}\nsize=64k\n[first]\n[second one]\ninclude more.fio\n";
    let file = write("a.fio", text);
    let other = write("b.fio", "[third]\nsize=1m\nnumjobs=2\n");
    let outside = write("out.fio", "[a]\nsize=1m\ndirectory=${PLACE}\n");
    let engine = write("engine.fio", "[global]\nioengine=libaoi\n[a]\nsize=1m\n");
    let mut read = |words: &[&str]| {
        stage.workload.fio = serde_json::from_value(json!(words)).unwrap();
        let variables = json!({ "BLOCK": "4k", "PLACE": "/srv" });
        stage.workload.environment = serde_json::from_value(variables).unwrap();
        stage.engine().read(&stage.workload).unwrap()
    };
    let jobs = |names: &[&str], least_bytes| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let jobs = (!names.is_empty()).then_some(Jobs { names, together: false });
        Reading::Taken(Taken { jobs, least_bytes })
    };
    assert_eq!(read(&[&file]), jobs(&["first", "second_one"], 128 << 10));
    assert_eq!(
        read(&[&file, &other]),
        jobs(&["first", "second_one", "third"], (2 << 20) + (128 << 10))
    );
    assert_eq!(
        read(&[&other, &file]),
        jobs(&["third", "first", "second_one"], (2 << 20) + (128 << 10))
    );
    assert_eq!(read(&[&other]), jobs(&[], 2 << 20));
    assert_eq!(read(&["--section=first", &file]), jobs(&[], 64 << 10));
    let two = ["--size=1m", "--name=a", "--rw=write", "--name=a", "--rw=read"];
    assert_eq!(read(&two), jobs(&[], 1 << 20), "fio reports both under one name, in one group");
    let Reading::Refused(said) = read(&[&outside]) else { panic!("it leaves the file system") };
    assert!(one_line(&said.into()).contains("directory=/srv, outside the file system"));
    for words in [&["--ioengine=libaoi", "--name=a"][..], &[&engine]] {
        let Reading::Refused(said) = read(words) else { panic!("there is no such engine") };
        assert!(said.contains("did you mean libaio"), "{said}");
    }
}
