//! Published tables in TOML and CSV, what benchmark programs write, their audits, and plan and
//! records made of them.
#![no_main]

use fsverdict_core::judge::{table_findings, table_missing};
use fsverdict_core::model::Judgement;
use fsverdict_core::published::{self, Columns, File, Wanted};
use libfuzzer_sys::fuzz_target;

fn wanted() -> Wanted {
    let Judgement { margin, confidence, .. } = Judgement::default();
    let columns = Columns { contender: None, round: None, metrics: Vec::new() };
    Wanted { columns, better: None, reference: None, margin, confidence }
}

fuzz_target!(|text: &str| {
    let files = ["a-1", "b-1"].map(|path| File { contender: None, path, text });
    drop(published::measured(&files, &wanted()));
    let Ok(table) = published::read(text) else { return };
    table_findings(&table);
    table_missing(&table);
    for test in &table.tests {
        published::described(&test.job);
        test.columns.iter().for_each(|column| drop(published::meaning(column)));
    }
});
