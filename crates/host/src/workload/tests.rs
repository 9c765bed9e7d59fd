//! The conformance suite: what every engine keeps to, each with a small piece of its work.
//!
//! An engine whose program is not installed is left out, and the test says so.

mod jobs;
mod stage;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use fsverdict_core::model::{
    MetadataOperation, Need, Operation, Outcome, Phase, PhaseRecord, Record, TreePhase, Trial,
};
use fsverdict_core::run::{self, Step};
use serde_json::json;

use super::engine::Act;
use crate::bed;
use crate::place::lease::Grant;
use crate::place::trial::TrialHost;
use crate::tool;
use crate::undo::Journal;
use stage::{Stage, found, one_line, told};

/// One engine's pass through the suite.
pub struct Case {
    /// Keys of a plan's workload, as JSON; `FOLDER` is outside the work's folder.
    work: &'static str,
    /// For each timed part: operations, bytes read, bytes written.
    parts: &'static [(Option<u64>, u64, u64)],
    figures: Figures,
    seed: Seed,
}

/// How near its figures come to what is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figures {
    /// They are just that.
    Exact,
    /// Reads and writes are dealt out at random: their sum is exact.
    Summed,
    /// No less: the kernel counts what all of our threads do, too, and nothing written to tmpfs.
    AtLeast,
    /// The tool prints rounded rates: the bytes of an operation are within a tenth.
    Rates,
}

/// What another seed changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seed {
    /// What the files hold, or which there are.
    Files,
    /// The tool's arguments; its files' content depends on more than that.
    Tool,
    /// There is nothing random in it.
    Nothing,
}

/// Where the suite runs: on a disk, as a rule, and on tmpfs.
fn bases() -> Vec<PathBuf> {
    let bases = [std::env::temp_dir(), "/dev/shm".into()];
    bases.into_iter().filter(|base| tempfile::tempdir_in(base).is_ok()).collect()
}

fn staged(case: &Case) -> Option<Stage> {
    Stage::new(case.work, &std::env::temp_dir())
}

/// A dry run says what each part does, starts nothing but what is needed, and changes nothing.
fn says_what_it_does(case: &Case) {
    let Some(stage) = staged(case) else { return };
    let before = found(stage.folder.path());
    let said = stage.said();
    assert_eq!(found(stage.folder.path()), before);
    let is_filled = stage.workload.work().unwrap().is_filled();
    for (step, acts) in &said {
        match step {
            Step::Work(_) => assert_eq!(acts.len(), 1, "{step}"),
            Step::Fill => assert_eq!(!acts.is_empty(), is_filled, "{step}"),
            _ => {}
        }
    }
    let mut programs = BTreeSet::new();
    for act in said.iter().flat_map(|(_, acts)| acts) {
        match act {
            Act::Command(argv) => programs.extend(argv.first().cloned()),
            Act::Within(what) => assert!(!what.is_empty() && !what.contains('\n'), "{what:?}"),
        }
    }
    let command = stage.workload.command.as_ref().map(|command| command.argv()[0].clone());
    let tool = stage.workload.tool().map(String::from);
    assert_eq!(programs, tool.or(command).into_iter().collect());
    let needs = stage.workload.needs();
    assert!(stage.workload.tool().is_none_or(|tool| needs.contains(&Need::Tool(tool))));
}

/// It does its work in a folder, counts what it did, and leaves alone what is not its own.
fn counts_what_it_does(case: &Case) {
    for base in bases() {
        let Some(mut stage) = Stage::new(case.work, &base) else { return };
        stage.seeded(7);
        let beside = found(&stage.path("beside"));
        let seen = stage.run();
        assert_eq!(seen.len(), case.parts.len() + 1);
        for (pair, expected) in seen.windows(2).zip(case.parts) {
            if let Some(record) = &pair[1].record {
                check_figures(case, record, *expected);
                let grown = pair[1].bytes.saturating_sub(pair[0].bytes);
                let written = record.application_write_bytes.unwrap_or_default();
                let counted = case.figures != Figures::AtLeast;
                assert!(!counted || grown <= written, "{grown} of {written}: {record:?}");
            }
        }
        let bystander = stage.path("work/bystander");
        fs::write(&bystander, "nobody's").unwrap();
        stage.engine().clean_up(&stage.scene()).unwrap();
        assert_eq!(fs::read_to_string(bystander).unwrap(), "nobody's");
        assert_eq!(found(&stage.path("beside")), beside);
    }
}

fn check_figures(case: &Case, record: &PhaseRecord, expected: (Option<u64>, u64, u64)) {
    let bytes = [record.application_read_bytes, record.application_write_bytes];
    let [read, written] = bytes.map(Option::unwrap);
    let seen = (record.operations, read, written);
    match case.figures {
        Figures::Exact => assert_eq!(seen, expected, "{record:?}"),
        Figures::Summed => {
            let wanted = (expected.0, expected.1 + expected.2);
            assert_eq!((record.operations, read + written), wanted);
        }
        Figures::AtLeast => {
            assert_eq!(seen.0, expected.0);
            assert!(read >= expected.1 && written >= expected.2, "{seen:?}");
        }
        Figures::Rates => {
            let of_one = (read + written) as f64 / seen.0.unwrap() as f64;
            let wanted = (expected.1 + expected.2) as f64 / expected.0.unwrap() as f64;
            assert!((0.9..1.1).contains(&(of_one / wanted)), "{seen:?}");
        }
    }
    assert!(record.histograms.values().all(|histogram| histogram.count() > 0));
}

/// The same seed gives the same work, another one other work where it is random.
fn depends_on_the_seed_alone(case: &Case) {
    let Some(mut stage) = staged(case) else { return };
    let mut with = |seed| {
        stage.seeded(seed);
        let files: Vec<_> = stage.run().into_iter().map(|seen| seen.found).collect();
        let sizes = files.iter().map(|found| {
            found.iter().map(|(path, what)| (path.clone(), what.len())).collect::<Vec<_>>()
        });
        match case.seed {
            Seed::Files | Seed::Nothing => (stage.said(), files, Vec::new()),
            Seed::Tool => (stage.said(), Vec::new(), sizes.collect()),
        }
    };
    let one = with(7);
    assert_eq!(one, with(7));
    assert_eq!(one != with(8), case.seed != Seed::Nothing);
}

/// A phase of another engine's is refused, and nothing is touched.
fn refuses_what_it_has_not(case: &Case) {
    let Some(stage) = staged(case) else { return };
    let before = found(stage.folder.path());
    let own = stage.workload.phases();
    let all = [
        Phase::Whole,
        Phase::SmallFiles(Operation::Create),
        Phase::Metadata(MetadataOperation::Mkdir),
        Phase::Tree(TreePhase::Fill),
    ];
    for phase in all.into_iter().filter(|phase| !own.contains(phase)) {
        let scene = stage.scene();
        let refused = stage.engine().prepare(phase, &scene).err().unwrap();
        assert_eq!(one_line(&refused), format!("the work has no phase {phase:?}"));
        let refused = stage.engine().dry(Step::Work(phase), &scene).unwrap_err();
        assert_eq!(one_line(&refused), format!("the work has no phase {phase:?}"));
    }
    assert_eq!(found(stage.folder.path()), before);
}

/// A part that is prepared twice is refused, or does the same; and none runs twice.
fn is_prepared_for_one_run(case: &Case) {
    let Some(mut stage) = staged(case) else { return };
    stage.seeded(7);
    let (engine, scene) = (stage.engine(), stage.scene());
    engine.lay_out(&scene).unwrap();
    let phase = stage.workload.phases()[0];
    let mut part = engine.prepare(phase, &scene).unwrap();
    match engine.prepare(phase, &scene) {
        Ok(again) => part = again,
        Err(refused) => drop(one_line(&refused)),
    }
    check_figures(case, &told(&mut *part, phase).unwrap(), case.parts[0]);
    let before = found(&scene.directory);
    assert_eq!(one_line(&part.run().unwrap_err()), super::engine::OVER);
    assert_eq!(found(&scene.directory), before);
}

/// This test program again, for one of its tests, behind `argv`.
fn again(argv: &[&str], test: &str, case: &str) -> Output {
    let mut command = tool::command(argv[0]).unwrap();
    command.args(&argv[1..]).arg("--").arg(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("workload::tests::{test}")]);
    command.args(["--include-ignored", "--nocapture"]).env(CASE, case).output().unwrap()
}

/// Tells [`without_room`] which engine it is about.
const CASE: &str = "FSVERDICT_TEST_ENGINE";

#[track_caller]
fn passed(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("test result: ok. 1 passed"), "{said}");
}

/// A user's rights are enough, in a folder of the user's.
fn needs_no_root(name: &str) {
    let user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"];
    let probed = tool::run_words(&[&user[..], &["true"]].concat());
    match probed {
        Ok(_) => passed(&again(&user, &format!("{name}::counts_what_it_does"), name)),
        Err(error) => println!("not tested: {error}"),
    }
}

/// Without room, and where nothing may be written, it fails with one clear line, and the record of
/// the trial says so.
fn fails_without_room(name: &str) {
    let mounts = ["unshare", "--mount", "--propagation", "private"];
    passed(&again(&mounts, "without_room", name));
}

/// The inside of [`fails_without_room`], in a mount namespace of its own.
#[test]
#[ignore = "a part of the tests beside it"]
fn without_room() {
    let Ok(name) = std::env::var(CASE) else { return };
    let (_, case) = CASES.iter().find(|(it, _)| *it == name).unwrap();
    let Some(mut stage) = staged(case) else { return };
    fails_in_a_full_file_system(&stage);
    stage.seeded(7);
    fails_where_nothing_is_written(&stage);
}

fn mount_tmpfs(at: &Path, options: &str) {
    let at = at.display().to_string();
    tool::run_words(&["mount", "-t", "tmpfs", "-o", options, "none", &at]).unwrap();
}

/// Native work says what the kernel said; a tool has words of its own.
fn says(stage: &Stage, error: &str, reason: &str) {
    assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
    assert!(stage.workload.tool().is_some() || error.contains(reason), "{error}");
}

fn fails_in_a_full_file_system(stage: &Stage) {
    let small = stage.path("work");
    mount_tmpfs(&small, "size=20k,nr_inodes=8");
    let journal = Journal::open(None).unwrap();
    let held = bed::own_folder(&small, journal.token(), 0o700, &mut |_| Ok(())).unwrap();
    let own = held.path().to_path_buf();
    let trial: Trial = serde_json::from_value(json!({
        "schema": 1, "number": 1, "round": 1, "workload": "w", "contender": "c", "position": 1,
        "seed": 7, "work": stage.workload, "settings": { "name": "c" },
        "bed": { "kind": "directory", "devices": [], "lab": journal.token() },
        "directory": own, "raw": stage.raw, "series": stage.path("series.csv"),
    }))
    .unwrap();
    let granted = Grant::new(&journal, &trial, Vec::new(), None).unwrap();
    let (mut host, trial) = TrialHost::new(trial).unwrap();
    let record = run::trial(&mut host, &trial);
    let Outcome::Failed(failure) = &record.outcome else { panic!("{record:?}") };
    says(stage, &failure.error, "No space left on device");
    assert_eq!(failure.cleanup_errors, [""; 0]);
    assert_eq!(found(&own).len(), 1, "its mark");
    let kept: Record = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(kept, record);
    drop((granted, held));
    journal.close().unwrap();
    tool::unmount(&small.display().to_string());
}

fn fails_where_nothing_is_written(stage: &Stage) {
    let (engine, scene) = (stage.engine(), stage.scene());
    mount_tmpfs(&scene.directory, "size=64m");
    engine.lay_out(&scene).unwrap();
    mount_tmpfs_again_read_only(&scene.directory);
    let before = found(&scene.directory);
    let phase = stage.workload.phases()[0];
    let failed = engine.prepare(phase, &scene).and_then(|mut part| told(&mut *part, phase));
    says(stage, &one_line(&failed.unwrap_err()), "Read-only file system");
    assert_eq!(found(&scene.directory), before);
    tool::unmount(&scene.directory.display().to_string());
}

fn mount_tmpfs_again_read_only(at: &Path) {
    tool::run_words(&["mount", "-o", "remount,ro", &at.display().to_string()]).unwrap();
}

macro_rules! conformance {
    ($($engine:ident: $case:expr;)*) => {
        const CASES: &[(&str, Case)] = &[$((stringify!($engine), $case)),*];
        $(mod $engine {
            use super::*;

            const NAME: &str = stringify!($engine);
            const CASE: &Case = &$case;

            #[test]
            fn says_what_it_does() {
                super::says_what_it_does(CASE);
            }

            #[test]
            fn counts_what_it_does() {
                super::counts_what_it_does(CASE);
            }

            #[test]
            fn depends_on_the_seed_alone() {
                super::depends_on_the_seed_alone(CASE);
            }

            #[test]
            fn refuses_what_it_has_not() {
                super::refuses_what_it_has_not(CASE);
            }

            #[test]
            fn is_prepared_for_one_run() {
                super::is_prepared_for_one_run(CASE);
            }

            #[test]
            fn needs_no_root() {
                super::needs_no_root(NAME);
            }

            #[test]
            #[ignore = "needs root: run ./test"]
            fn loop_fails_without_room() {
                super::fails_without_room(NAME);
            }
        })*
    };
}

conformance! {
    command: Case {
        work: r#""command": "echo $FSVERDICT_SEED > seed && head -c 90000 /dev/zero > zeros",
                 "operations": 3"#,
        parts: &[(Some(3), 90_000, 0)],
        figures: Figures::AtLeast,
        seed: Seed::Files,
    };
    fio: Case {
        work: r#""fio": { "rw": "randrw", "bs": "4k", "size": "256k", "filename": "file" }"#,
        parts: &[(Some(64), 0, 262_144)],
        figures: Figures::Summed,
        seed: Seed::Tool,
    };
    small_files: Case {
        work: r#""small_files": { "count": 7, "size": 5000, "directories": 2, "threads": 2 }"#,
        parts: &[
            (Some(7), 0, 35_000),
            (Some(7), 0, 0),
            (Some(7), 35_000, 0),
            (Some(7), 0, 0),
            (Some(7), 0, 0),
        ],
        figures: Figures::Exact,
        seed: Seed::Files,
    };
    fsync_files: Case {
        work: r#""fsync_files": { "files": 3, "size": 2000, "repetitions": 4 }"#,
        parts: &[(None, 0, 24_000)],
        figures: Figures::Exact,
        seed: Seed::Files,
    };
    metadata: Case {
        work: r#""metadata": { "directories": 2, "files_per_directory": 3, "threads": 2 }"#,
        parts: &[
            (Some(2), 0, 0),
            (Some(6), 0, 0),
            (Some(3), 0, 0),
            (Some(6), 0, 0),
            (Some(6), 0, 0),
            (Some(6), 0, 0),
            (Some(6), 0, 0),
            (Some(8), 0, 0),
        ],
        figures: Figures::Exact,
        seed: Seed::Nothing,
    };
    tree: Case {
        work: r#""tree": { "files": 20, "total": 65536, "files_per_directory": 5, "threads": 2,
                           "hard_links": "10%", "symlinks": "10%" }"#,
        parts: &[
            (Some(23), 0, 65_536),
            (Some(23), 65_536, 65_536),
            (Some(23), 0, 0),
            (Some(23), 0, 0),
            (Some(23), 0, 0),
            (Some(48), 0, 0),
        ],
        figures: Figures::Exact,
        seed: Seed::Files,
    };
    sysbench: Case {
        work: r#""sysbench": { "file-test-mode": "rndwr", "file-total-size": "1M", "file-num": 2,
                               "events": 5000, "time": 0, "file-fsync-freq": 0 }"#,
        parts: &[(Some(5000), 0, 81_920_000)],
        figures: Figures::Rates,
        seed: Seed::Tool,
    };
    replay: Case {
        work: r#""replay": { "recording": "FOLDER/recording.calls" }"#,
        parts: &[(Some(10), 4096, 12_588)],
        figures: Figures::Exact,
        seed: Seed::Files,
    };
}

/// As many as a plan has keys for work, under their names.
#[test]
fn every_engine_is_in_the_suite() {
    let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.join(", "), fsverdict_core::model::Work::KEYS);
}
