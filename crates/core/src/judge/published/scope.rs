//! What can't be audited, for want of something that the table does not say.

use super::cells::Cells;
use super::{data, queue, volume};
use crate::model::{Column, Conclusion, Limit, Machine, Quantity, Table, Test};

/// One sentence for each.
pub fn lacking(table: &Table) -> Vec<String> {
    let tests = || table.tests.iter();
    let mut lacking = Vec::new();
    let machine = &table.machine;
    let buffered = |test: &Test| test.job.reads() && test.job.direct == Some(false);
    if machine.memory.is_none() && tests().any(buffered) {
        lacking.push("A6, reads from cache: the machine's memory is not stated (--memory)".into());
    }
    if machine.limits.is_empty() && tests().any(is_rated) {
        let options = "--device-iops, --device-bandwidth";
        lacking.push(format!("A8, the device's limits: they are not stated ({options})"));
    }
    let no_block = |test: &Test| is_rated(test) && test.job.block_bytes.is_none();
    lacking.extend(without("A1, units: no single block size is known", table, no_block));
    let no_queue = |test: &Test| is_rated(test) && queue::in_flight(&test.job).is_none();
    lacking.extend(without("A2, the queue: jobs or depth are not known", table, no_queue));
    let unaudited = |test: &Test| !fits(test, machine, &table.claims);
    let what = "no rule but those of digits and runs (A17, A18) fits";
    lacking.extend(without(what, table, unaudited));
    lacking.extend(table.claims.iter().filter_map(unchecked));
    lacking
}

fn without(what: &str, table: &Table, lacks: impl Fn(&Test) -> bool) -> Option<String> {
    let names: Vec<&str> =
        table.tests.iter().filter(|test| lacks(test)).map(|test| test.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{what} ({})", names.join(", ")))
}

fn is_rated(test: &Test) -> bool {
    Cells::of(test).any(|cells| cells.total_iops().is_some())
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
        "the claim \"{}\": whether more or less of {heading} is better does not show",
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
