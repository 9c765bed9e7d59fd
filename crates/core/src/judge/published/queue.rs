//! A2, A3: the queue that the figures imply, and the one that was asked for. A8: the device's
//! limits.

use super::agree::SLIP_ADVICE;
use super::cells::{Cell, Cells, shown};
use super::found::found;
use super::reach::Reach;
use crate::judge::audit::{DEPTH_ADVICE, depth_ignored_by};
use crate::model::{
    Audit, Bytes, Finding, Job, Limit, Machine, Part, Quantity, Severity, Test,
    is_synchronous_engine,
};

/// Little's law may be missed by so much: operations in flight when the clock starts and stops.
pub const SLACK: f64 = 1.02;
/// Below this share of the queue, something else than operations took the time.
pub const STARVED: f64 = 0.9;
/// Above this multiple of its limit something answered in the device's place.
const FASTER: f64 = 1.05;
/// From this share of the device's limit on, the device was measured.
const CEILING: f64 = 0.95;

/// What they find in one test.
pub fn findings(test: &Test, machine: &Machine) -> Vec<Finding> {
    let mut findings: Vec<Finding> = depth_ignored(test).into_iter().collect();
    let by_themselves = Cells::of(test).filter(|cells| as_if_asynchronous(*cells).is_none());
    findings.extend(by_themselves.filter_map(little));
    findings.extend(limits(test, machine));
    findings
}

/// How many operations the job may have in flight: its tasks times their depth, which is 1 for an
/// engine that waits.
pub fn in_flight(job: &Job) -> Option<f64> {
    let waits = match &job.engine {
        Some(engine) => is_synchronous_engine(engine),
        // fio's own choice on Linux is psync.
        None => job.is_fio,
    };
    let depth = if waits { 1 } else { job.depth? };
    Some(f64::from(job.jobs?) * f64::from(depth))
}

/// A3: a depth that the engine ignores.
fn depth_ignored(test: &Test) -> Option<Finding> {
    let depth = test.job.depth.filter(|depth| *depth > 1)?;
    let engine = match &test.job.engine {
        None if test.job.is_fio => "psync",
        engine => engine.as_deref()?,
    };
    let kind = (Audit::A3, Severity::Warning);
    if let Some(seen) = Cells::of(test).find_map(as_if_asynchronous) {
        let evidence = format!(
            "iodepth {depth} without an engine, where fio's own, psync, has 1 operation in flight; \
             the figures have {seen:.1}, as if it were asynchronous"
        );
        let advice = "ask which engine it was: without one the job printed is not the job run";
        return Some(found(test, "", kind, evidence, advice));
    }
    let evidence = is_synchronous_engine(engine).then(|| depth_ignored_by(engine, depth))?;
    Some(found(test, "", kind, evidence, DEPTH_ADVICE))
}

/// As many operations in flight as the depth has, where no engine is named that keeps it.
fn as_if_asynchronous(cells: Cells) -> Option<f64> {
    let job = &cells.test.job;
    let depth = job.depth.filter(|depth| *depth > 1 && job.is_fio && job.engine.is_none())?;
    let kept = f64::from(depth) * f64::from(job.jobs?);
    let (seen, _) = product(cells, "latency").or_else(|| product(cells, "clat"))?;
    let all = Reach { low: kept * STARVED, high: kept * SLACK };
    (!seen.misses(all)).then(|| seen.middle())
}

/// A2: operations a second times the time of each is how many are in flight (Little's law).
fn little(cells: Cells) -> Option<Finding> {
    let test = cells.test;
    let asked = in_flight(&test.job)?;
    // fio's clat leaves out the time to submit: it can be too long, but not too short.
    let whole = product(cells, "latency");
    let can_starve = whole.is_some() && test.job.closed_loop && test.job.synced != Some(true);
    let (seen, of) = whole.or_else(|| product(cells, "clat"))?;
    let implied = seen.middle();
    let says =
        |what: &str| format!("{} imply {implied:.3} operations in flight, {what}", shown(&of));
    let is = |factor: f64| (asked * STARVED..=asked * SLACK).contains(&(implied / factor));
    let (evidence, advice) = if is(1e3) || can_starve && is(1e-3) {
        let much = if implied > asked { "a thousand times" } else { "a thousandth of" };
        (says(&format!("{much} the {asked} of the job: µs for ms?")), SLIP_ADVICE)
    } else if Reach::exactly(asked * SLACK).is_below(seen) {
        let what = format!("and the job allows {asked}");
        (says(&what), "the figures are of different runs, units or columns: take them again")
    } else if can_starve && seen.is_below(Reach::exactly(asked * STARVED)) {
        let what = format!("of the {asked} that the job asks for");
        (
            says(&what),
            "the rest of the time went elsewhere: into the tool itself, or a busy processor",
        )
    } else {
        return None;
    };
    let kind = (Audit::A2, Severity::Warning);
    Some(found(test, &cells.row.contender, kind, evidence, advice))
}

/// `8050 IOPS`, `150MiB/s of writes`.
fn shown_limit(limit: &Limit) -> String {
    let of = match limit.part {
        Part::All => "",
        Part::Read => " of reads",
        Part::Write => " of writes",
    };
    match limit.quantity {
        Quantity::Iops => format!("{} IOPS{of}", limit.value),
        _ => format!("{}iB/s{of}", Bytes(limit.value as u64)),
    }
}

/// Operations in flight by the figures of a row, over reads and writes.
pub fn product<'a>(cells: Cells<'a>, kind: &str) -> Option<(Reach, Vec<Cell<'a>>)> {
    let of = |part| {
        let (iops, latency) = (cells.plain(Quantity::Iops, part)?, cells.latency(kind, part)?);
        Some((iops.reach() * latency.reach(), vec![iops, latency]))
    };
    let job = &cells.test.job;
    match (of(Part::Read), of(Part::Write)) {
        (Some((read, of_read)), Some((write, of_write))) => {
            Some((read + write, [of_read, of_write].concat()))
        }
        (Some(read), None) if !job.writes() => Some(read),
        (None, Some(write)) if !job.reads() => Some(write),
        _ => {
            let (iops, of) = cells.total_iops()?;
            let latency = cells.latency(kind, Part::All)?;
            Some((iops * latency.reach(), [of, vec![latency]].concat()))
        }
    }
}

/// A8: more than the device can do, and what lies at its limit.
fn limits(test: &Test, machine: &Machine) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut at_limit: Vec<(Vec<String>, String)> = Vec::new();
    for limit in &machine.limits {
        let (quantity, shown_limit) = (limit.quantity, shown_limit(limit));
        let (part, limit) = (limit.part, limit.value);
        let mut reaching = Vec::new();
        for cells in Cells::of(test) {
            let Some((reach, of)) = cells.of_part(quantity, part) else { continue };
            let contender = &cells.row.contender;
            if Reach::exactly(limit * FASTER).is_below(reach) {
                let share = reach.middle() / limit;
                let evidence = format!("{}: {share:.3} of the device's {shown_limit}", shown(&of));
                let advice = "a cache, compression or zeros answered, or the limit is not what it \
                              is said to be: count the device's own bytes";
                let kind = (Audit::A8, Severity::Warning);
                findings.push(found(test, contender, kind, evidence, advice));
            } else if !reach.is_below(Reach::exactly(limit * CEILING)) {
                reaching.push(contender.clone());
            }
        }
        if reaching.len() > 1 {
            at_limit.push((reaching, shown_limit));
        }
    }
    findings.extend(at_limit.into_iter().map(|(contenders, limit)| {
        let evidence = format!(
            "{} are at the device's limit of {limit}: the device was measured, a tie is no win",
            contenders.join(", ")
        );
        let advice = "compare CPU time and device bytes for each operation, or latency at 70% of \
                      the limit";
        found(test, "", (Audit::A8, Severity::Note), evidence, advice)
    }));
    findings
}
