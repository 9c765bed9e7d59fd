//! `docs/notebook.md` with the real pandas and DuckDB.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Scene, Started, program};

/// Where `./test` has put them.
fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_fsverdict")).ancestors().nth(2).unwrap();
    let python = target.join("notebook/bin/python3");
    assert!(python.exists(), "{} is not there: ./test installs it", python.display());
    python
}

/// The text of the document's blocks of `kind`.
fn blocks(kind: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notebook.md");
    let text = fs::read_to_string(path).unwrap();
    let fence = format!("```{kind}\n");
    let after = text.split(&fence).skip(1);
    let blocks: Vec<&str> = after.map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty(), "docs/notebook.md shows no {kind}");
    blocks.concat()
}

#[test]
#[ignore = "needs pandas and DuckDB: run ./test"]
fn pandas_and_duckdb_read_a_run_as_the_document_shows() {
    let scene = Scene::new();
    for line in blocks("console").lines() {
        scene.run(line.strip_prefix("$ fsverdict ").unwrap()).exits(0);
    }
    // What is shown, and then that both have read the same as stands there.
    let check = "\nother = duckdb.sql(\"select round, contender, value from 'run/samples.csv' \
                 where metric = 'create_rate' order by trial\").df()\n\
                 mine = samples[samples.metric == 'create_rate'].reset_index()\n\
                 assert list(other.value) == list(mine.value), (other, mine)\n\
                 print('alike:', len(mine))\n";
    scene.write("notebook.py", &(blocks("python") + check));
    let mut command = program(python());
    command.arg("notebook.py").current_dir(scene.path("")).env("HOME", scene.path(""));
    let done = Started::new(command).wait().exits(0);
    let rounds = scene.records("run").len();
    assert!(done.stdout.contains(&format!("alike: {rounds}")), "{}", done.stdout);
    for name in ["ext4", "xfs", "small_files", "system_ns", "75%"] {
        assert!(done.stdout.contains(name), "{name} is not in {}", done.stdout);
    }
}
