//! The audits of virtual machines whose times are unlike a real machine's, because of an emulated
//! processor, or a disk in the host's page cache.

use super::conditions::Said;
use super::mounted::Terms;
use crate::judge::trials::Trials;
use crate::model::{Audit, Contender, Finding, Layer, Plan, Severity, Workload};

const EMULATED: &str = "read times and rates as those of this emulation, in which the processor's \
                        work takes far longer and the disk's does not; counts, bytes, flushes and \
                        their order hold. Times need KVM, and a kernel for this machine's \
                        processors: fsverdict doctor";
const USER_MODE: &str = "ignore fsync latencies, and times and rates in which the disk or \
                         system calls have a share; counts, bytes, flushes and their order hold, \
                         and requests over 127 KiB are counted in pieces. Times need the machine \
                         itself, --place vm with KVM, or a layer delay";
const DELAYED: &str = "read times as those of a disk with these delays that is otherwise as fast \
                       as memory, with slow system calls; requests over 127 KiB are counted in \
                       pieces";

/// What they find: a warning where a test is judged by a time or a rate, otherwise a note.
pub(super) fn findings(plan: &Plan, said: &Said, trials: &Trials) -> Vec<Finding> {
    let (emulated, user_mode, all) = (said.emulated, said.user_mode, said.trials);
    let mut findings = Vec::new();
    if said.emulated > 0 {
        let evidence = format!("{emulated} of {all} trials ran on an emulated processor (TCG)");
        findings.extend(match emulated_beside_others(plan, said) {
            Some(names) => vec![beside_others(&evidence, &names)],
            None => told(plan, trials, Audit::A22, &evidence, EMULATED),
        });
    }
    if user_mode > 0 {
        let evidence = format!(
            "{user_mode} of {all} trials ran in User Mode Linux, whose flushes don't reach the \
             host's disk"
        );
        findings.extend(match flushes_wait(plan) {
            true => vec![finding(
                Audit::A28,
                None,
                format!("{evidence}: they take as long as the layer delay makes them"),
                DELAYED,
            )],
            false => told(plan, trials, Audit::A28, &evidence, USER_MODE),
        });
    }
    findings
}

/// Whether times of `metric` are those of the virtual machine alone, where these contenders at
/// these works are compared: the audit that says so, and why.
pub(in crate::judge) fn of_times(
    plan: &Plan,
    trials: &Trials,
    entrants: &[(&str, &str)],
    metric: &str,
) -> Option<Finding> {
    let any = |has: &dyn Fn(&Terms) -> bool| {
        let mut its = entrants.iter().flat_map(|(work, name)| trials.latest(work, name).values());
        its.any(|kept| has(&kept.terms))
    };
    let is_timed = |audit| entrants.iter().any(|(work, _)| is_timed(trials, audit, work, metric));
    if is_timed(Audit::A22) && any(&|it| it.emulated > 0) {
        let why = format!("{metric} is a time of an emulated processor (TCG), or a rate by it");
        return Some(finding(Audit::A22, None, why, EMULATED));
    }
    let is_users = is_timed(Audit::A28) && !flushes_wait(plan) && any(&|it| it.user_mode > 0);
    is_users.then(|| {
        let why = format!(
            "{metric} is a time of User Mode Linux, whose flushes don't reach the host's disk"
        );
        finding(Audit::A28, None, why, USER_MODE)
    })
}

/// A layer above every contender's disks makes each flush wait.
fn flushes_wait(plan: &Plan) -> bool {
    let waits = |contender: &Contender| contender.layers.iter().any(Layer::delays_flushes);
    plan.contenders.iter().all(waits)
}

/// The metric is a time or a rate that the audit is about: in a User Mode Linux work takes the same
/// CPU time as anywhere.
fn is_timed(trials: &Trials, audit: Audit, workload: &str, metric: &str) -> bool {
    let is_cpus = ["cpu_time", "cpu_per_operation"].iter().any(|it| metric.contains(it));
    let of_cpu = audit == Audit::A28 && is_cpus;
    trials.unit_of(workload, metric).0.is_of_time() && !of_cpu
}

/// A warning for each test that is judged by a time or a rate; a note where none is.
fn told(plan: &Plan, trials: &Trials, audit: Audit, evidence: &str, advice: &str) -> Vec<Finding> {
    let timed = |workload: &Workload| {
        let metrics = workload.primary();
        let timed = metrics.iter().find(|it| is_timed(trials, audit, &workload.name, it))?;
        let evidence = format!("judged by {timed}, and {evidence}");
        let severity = Severity::Warning;
        Some(Finding { severity, ..finding(audit, Some(&workload.name), evidence, advice) })
    };
    let warnings: Vec<Finding> = plan.workloads.iter().filter_map(timed).collect();
    match warnings.is_empty() {
        true => vec![finding(audit, None, evidence.into(), advice)],
        false => warnings,
    }
}

fn finding(audit: Audit, workload: Option<&str>, evidence: String, advice: &str) -> Finding {
    Finding {
        audit,
        severity: Severity::Note,
        workload: workload.map(String::from),
        contender: None,
        evidence,
        advice: advice.into(),
    }
}

/// The contenders whose processors were emulated, where those of others were not.
fn emulated_beside_others(plan: &Plan, said: &Said) -> Option<String> {
    let each = plan.contenders.iter().zip(said.of_contenders);
    let names: Vec<&str> =
        each.filter(|(_, it)| it.emulated > 0).map(|(it, _)| it.name.as_str()).collect();
    // One that was emulated in some rounds alone is among them.
    let mut all = said.of_contenders.iter();
    let is_mixed = all.any(|it| it.emulated == 0 && it.not_emulated > 0);
    is_mixed.then(|| names.join(", "))
}

fn beside_others(evidence: &str, names: &str) -> Finding {
    let evidence = format!("{evidence}, those of {names}; the others did not");
    let advice = "do not compare their times and rates with the others': the processor's work \
                  takes far longer only for them; counts, bytes, flushes and their order hold";
    Finding { severity: Severity::Warning, ..finding(Audit::A22, None, evidence, advice) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::testing::{plan, record};
    use crate::model::{Guest, Record, Sample, Unit};

    fn two(layers: [&str; 2], primary: &str) -> Plan {
        let mut plan = plan(&format!(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n[[workload]]\nname = \"w\"\n\
             command = \"true\"\nprimary = [\"{primary}\"]"
        ));
        for (contender, stack) in plan.contenders.iter_mut().zip(layers) {
            contender.layers = Layer::parse_stack(stack).unwrap();
        }
        plan
    }

    /// What is found of four rounds of both in such guests.
    fn found(plan: &Plan, guest: impl Fn(&str) -> Option<Guest>) -> Vec<Finding> {
        let of = |round, name: &str| {
            let mut made = Record { guest: guest(name), ..record(round, "w", name) };
            made.samples.push(Sample::lower("fsync_latency_p50", 1e6, Unit::Nanoseconds));
            made.samples.push(Sample::lower("fsync_device_writes", 2.0, Unit::Count));
            made.samples.push(Sample::lower("cpu_time", 1.0, Unit::Seconds));
            made
        };
        let records: Vec<Record> =
            (1..=4).flat_map(|round| [of(round, "a"), of(round, "b")]).collect();
        Audited::of(plan, &records).of_terms(plan)
    }

    fn emulated(emulated: bool) -> Option<Guest> {
        Some(Guest { emulated, ..Guest::default() })
    }

    #[test]
    fn times_of_an_emulated_processor_are_warned_of_and_counts_are_not() {
        let plan = two(["none"; 2], "fsync_latency_p50");
        assert_eq!(found(&plan, |_| emulated(false)), []);
        let times = found(&plan, |_| emulated(true));
        assert_eq!((times.len(), times[0].audit), (1, Audit::A22));
        assert_eq!(
            (times[0].severity, times[0].workload.as_deref()),
            (Severity::Warning, Some("w"))
        );
        let says = "judged by fsync_latency_p50, and 8 of 8 trials ran on an emulated processor \
                    (TCG)";
        assert_eq!(times[0].evidence, says);
        let counts = found(&two(["none"; 2], "fsync_device_writes"), |_| emulated(true));
        assert_eq!((counts.len(), counts[0].severity), (1, Severity::Note));
        assert_eq!(counts[0].evidence, "8 of 8 trials ran on an emulated processor (TCG)");
        let cpu = found(&two(["none"; 2], "cpu_time"), |_| emulated(true));
        assert_eq!(cpu[0].severity, Severity::Warning);
    }

    #[test]
    fn one_contender_emulated_beside_another_that_is_not_is_a_warning() {
        let plan = two(["none"; 2], "fsync_device_writes");
        let mixed = found(&plan, |name| emulated(name == "b"));
        assert_eq!((mixed.len(), mixed[0].severity), (1, Severity::Warning));
        let says = "4 of 8 trials ran on an emulated processor (TCG), those of b; the others did \
                    not";
        assert_eq!(mixed[0].evidence, says);
        // Nothing is known of a guest that did not answer.
        let silent = found(&plan, |name| emulated(true).filter(|_| name == "b"));
        assert_eq!((silent.len(), silent[0].severity), (1, Severity::Note));
    }

    #[test]
    fn a_run_that_was_emulated_for_some_rounds_is_warned_of_test_by_test() {
        let plan = two(["none"; 2], "fsync_latency_p50");
        let of = |round: u32, name: &str| {
            let mut made = Record { guest: emulated(round < 3), ..record(round, "w", name) };
            made.samples.push(Sample::lower("fsync_latency_p50", 1e6, Unit::Nanoseconds));
            made
        };
        let records: Vec<Record> =
            (1..=4).flat_map(|round| [of(round, "a"), of(round, "b")]).collect();
        let found = Audited::of(&plan, &records).of_terms(&plan);
        let says = "judged by fsync_latency_p50, and 4 of 8 trials ran on an emulated processor \
                    (TCG)";
        assert_eq!((found.len(), found[0].evidence.as_str()), (1, says));
    }

    #[test]
    fn times_are_refused_of_those_alone_who_were_emulated() {
        let plan = two(["none"; 2], "fsync_latency_p50");
        let of = |name: &str, guest: Guest| {
            let mut made = Record { guest: Some(guest), ..record(1, "w", name) };
            made.samples.push(Sample::lower("fsync_latency_p50", 1e6, Unit::Nanoseconds));
            made.samples.push(Sample::lower("cpu_per_operation", 9.0, Unit::Nanoseconds));
            made.samples.push(Sample::lower("fsync_device_writes", 2.0, Unit::Count));
            made
        };
        let told = |of_b: Guest, name: &str, metric: &str| {
            let records = [of("a", Guest::default()), of("b", of_b)];
            let audited = Audited::of(&plan, &records);
            of_times(&plan, audited.trials(), &[("w", name)], metric).map(|it| it.audit)
        };
        let tcg = || Guest { emulated: true, ..Guest::default() };
        let user_mode = || Guest { user_mode: true, ..Guest::default() };
        assert_eq!(told(tcg(), "b", "fsync_latency_p50"), Some(Audit::A22));
        assert_eq!(told(tcg(), "a", "fsync_latency_p50"), None, "it was not emulated");
        assert_eq!(told(tcg(), "b", "cpu_per_operation"), Some(Audit::A22));
        assert_eq!(told(tcg(), "b", "fsync_device_writes"), None);
        assert_eq!(told(user_mode(), "b", "fsync_latency_p50"), Some(Audit::A28));
        assert_eq!(told(user_mode(), "b", "cpu_per_operation"), None, "that is what it takes");
    }

    #[test]
    fn flushes_that_reach_no_disk_are_told_unless_a_layer_makes_them_wait() {
        let of = |layers, primary: &str| {
            let guest = || Some(Guest { user_mode: true, ..Guest::default() });
            let found = found(&two(layers, primary), |_| guest());
            let a28 = found.into_iter().find(|it| it.audit == Audit::A28).unwrap();
            (a28.severity, a28.advice.starts_with("read times as those of a disk with"))
        };
        let (note, warning) = (Severity::Note, Severity::Warning);
        assert_eq!(of(["none"; 2], "fsync_latency_p50"), (warning, false));
        assert_eq!(of(["none"; 2], "fsync_device_writes"), (note, false));
        assert_eq!(of(["none"; 2], "cpu_time"), (note, false));
        assert_eq!(of(["delay:flush=8ms"; 2], "fsync_latency_p50"), (note, true));
        for layers in [["delay:flush=8ms", "luks"], ["delay:flush=0ms"; 2], ["delay:write=8ms"; 2]]
        {
            assert_eq!(of(layers, "fsync_latency_p50"), (warning, false), "{layers:?}");
        }
    }
}
