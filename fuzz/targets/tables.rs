//! Published tables: TOML, CSV, the JSON of fio and hyperfine, and the audits of what they hold.
#![no_main]

use fsverdict_core::judge::{table_findings, table_lacking};
use fsverdict_core::published;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(table) = published::read(text) else { return };
    table_findings(&table);
    table_lacking(&table);
    for test in &table.tests {
        published::described(&test.job);
        test.columns.iter().for_each(|column| drop(published::meaning(column)));
    }
});
