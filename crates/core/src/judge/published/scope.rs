//! What can't be audited, for want of something that the table does not say.

use super::cells::Cells;
use super::{data, queue, volume};
use crate::model::{Column, Conclusion, Limit, Machine, Part, Quantity, Table, Test};

/// Programs that neither read nor write files.
const PLAIN: [&str; 5] = ["cd", "echo", "sleep", "sync", "true"];
/// Programs that write none, whatever their arguments.
const READERS: [&str; 9] = ["cat", "du", "find", "grep", "ls", "md5sum", "sha256sum", "stat", "wc"];
/// Words by which a table says what reaches the device.
const SYNCS: [&str; 4] = ["fdatasync", "fsync", "sync", "syncfs"];

/// One sentence for each.
pub fn missing(table: &Table) -> Vec<String> {
    let tests = || table.tests.iter();
    let mut missing = Vec::new();
    let machine = &table.machine;
    if machine.memory.is_none() && tests().any(data::may_be_cached) {
        missing.push("A6, reads from cache: the machine's memory is not stated (--memory)".into());
    }
    let no_size = |test: &Test| data::may_be_cached(test) && data::working_set(test).is_none();
    let how_much = "A6, reads from cache: how much is read is not stated (bytes, fio's size)";
    missing.extend(without(how_much, table, no_size));
    let what = "A6, reads from cache: what was done to the caches is not stated (cache)";
    missing.extend(without(what, table, |test| says_nothing_of_caches(test, machine)));
    let what = "A9, writes that stay in memory: whether the timed part ends with a sync is not \
                stated (synced)";
    missing.extend(without(what, table, says_nothing_of_syncs));
    if machine.limits.is_empty() && tests().any(is_rated) {
        let options = "--device-iops, --device-bandwidth";
        missing.push(format!("A8, the device's limits: they are not stated ({options})"));
    }
    let no_block = |test: &Test| is_rated(test) && test.job.block_bytes.is_none();
    missing.extend(without("A1, units: no single block size is known", table, no_block));
    let no_queue = |test: &Test| is_rated(test) && queue::in_flight(&test.job).is_none();
    missing.extend(without("A2, the queue: jobs or depth are not known", table, no_queue));
    let unaudited = |test: &Test| !fits(test, machine, &table.claims);
    let what = "only the rules of digits and runs (A17, A18) apply";
    missing.extend(without(what, table, unaudited));
    missing.extend(table.claims.iter().filter_map(unchecked));
    missing
}

fn without(what: &str, table: &Table, is_without: impl Fn(&Test) -> bool) -> Option<String> {
    let names: Vec<&str> =
        table.tests.iter().filter(|test| is_without(test)).map(|test| test.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{what} ({})", names.join(", ")))
}

fn is_rated(test: &Test) -> bool {
    Cells::of(test).any(|cells| cells.total_iops().is_some())
}

/// It has a column of that part, or a program that may do it.
fn may(test: &Test, part: Part, innocent: &[&str]) -> bool {
    let column = |it: &Column| it.part == part && it.better().is_some();
    let program = |name: &String| !innocent.contains(&name.as_str());
    let is_unknown = test.job.mode.is_none();
    !test.job.is_fio
        && (test.columns.iter().any(column) || is_unknown && test.programs.iter().any(program))
}

/// It may read what a cache holds, and no rule can tell whether it does.
fn says_nothing_of_caches(test: &Test, machine: &Machine) -> bool {
    let job = &test.job;
    let is_audited = machine.memory.is_some() && test.files.is_some() && test.file_bytes.is_some();
    let is_said = test.cache.is_some() || data::says_dropped(test);
    let reads = match job.reads() {
        true => job.direct.is_none() && test.programs.is_empty(),
        false => may(test, Part::Read, &PLAIN),
    };
    reads && !is_said && !is_audited
}

/// It may write, and whether that reaches the device does not show.
fn says_nothing_of_syncs(test: &Test) -> bool {
    let job = &test.job;
    let words = || test.words.iter().flat_map(|text| text.split(|c: char| !c.is_alphabetic()));
    let is_said = words().any(|word| SYNCS.contains(&word)) || job.direct == Some(true);
    let writes = job.writes() || may(test, Part::Write, &[&PLAIN[..], &READERS].concat());
    writes && job.synced.is_none() && !is_said
}

/// Why a claim is held against nothing.
fn unchecked(claim: &Conclusion) -> Option<String> {
    if !claim.says_something() {
        let keys = "figures, changes or better";
        return Some(format!("the claim \"{}\": it names no {keys}", claim.text));
    }
    let no_direction =
        |heading: &&String| claim.columns.get(*heading).and_then(Column::better).is_none();
    let heading = claim.better.iter().find(no_direction)?;
    Some(format!(
        "the claim \"{}\": it is unclear whether more or less of {heading} is better",
        claim.text
    ))
}

/// Some rule can find something in the test, besides those of digits and runs.
fn fits(test: &Test, machine: &Machine, claims: &[Conclusion]) -> bool {
    let job = &test.job;
    let has = |quantity| Cells::of(test).any(|cells| cells.total(quantity).is_some());
    let units = job.block_bytes.is_some() && has(Quantity::Bandwidth) && is_rated(test);
    let little = queue::in_flight(job).is_some()
        && Cells::of(test)
            .any(|it| ["latency", "clat"].iter().any(|kind| queue::product(it, kind).is_some()));
    let limited = |limit: &Limit| {
        Cells::of(test).any(|cells| cells.of_part(limit.quantity, limit.part).is_some())
    };
    let claimed = |claim: &Conclusion| {
        let its = claim.columns.keys().any(|it| test.columns.iter().any(|own| own.heading == *it));
        its && claim.test.as_ref().is_none_or(|name| *name == test.name)
    };
    units
        || little
        || machine.limits.iter().any(limited)
        || job.writes() && job.synced.is_some()
        || job.reads() && job.direct.is_some()
        || !test.processes.is_empty()
        || summaries(test)
        || Cells::of(test).any(volume::fits)
        || data::fits(test, machine)
        || claims.iter().any(claimed)
}

/// Statistics of the same thing, parts and their total, or runs with their summary.
fn summaries(test: &Test) -> bool {
    let alike = |one: &Column, other: &Column| {
        one.subject == other.subject
            && one.quantity == other.quantity
            && one.heading != other.heading
    };
    let stated = || test.columns.iter().filter(|it| it.statistic.is_some());
    let parts = || test.columns.iter().filter(|it| it.quantity == Quantity::Time);
    stated().any(|one| stated().any(|other| alike(one, other)))
        || parts().any(|it| it.subject == "total") && parts().count() > 1
        || test.rows.iter().any(|row| !row.times_s.is_empty())
}
