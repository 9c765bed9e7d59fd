//! Which metrics a workload can be judged by, told before its first trial.

use super::sample::samples;
use crate::model::{
    Cost, DeviceTotals, ExtraProbe, LEAST_AMOUNT_BYTES, NetworkTotals, PageCacheTotals, Phase,
    PhaseRecord, SysstatColumn, Totals, Work, Workload, meant, near, trace,
};

/// What ends the name of a latency.
const OF_LATENCY: [&str; 6] = ["p50", "p90", "p99", "p999", "mean", "max"];

/// What is wrong with the metrics that `workload` is to be judged by, with these probes, as the end
/// of a sentence. A command gives figures of its own: of these only misspelt names are noticed. The
/// jobs of a fio file are known once fio has read it.
pub fn check_metrics(
    workload: &Workload,
    probes: &[ExtraProbe],
    jobs_are_known: bool,
) -> Result<(), String> {
    let Ok(work) = workload.work() else { return Ok(()) };
    let mut known = names(workload, work);
    if probes.contains(&ExtraProbe::Trace) {
        known.extend(trace::Account::metrics());
    }
    if let Some(figure) = workload.figures.keys().find(|figure| known.contains(figure)) {
        return Err(format!(
            "has the figure {figure}, which fsverdict measures: name it otherwise"
        ));
    }
    for metric in &workload.primary {
        let is_known = known.contains(metric)
            || workload.figures.contains_key(metric)
            || has_any_operation(work, metric)
            || !jobs_are_known && is_of_a_job(work, metric)
            || is_of_application(workload, metric)
            || probes.contains(&ExtraProbe::Trace) && Cost::of_blocks(metric).is_some();
        let names = || known.iter().map(String::as_str);
        let is_slip = || near(metric, names()).iter().any(|it| !it.starts_with(metric.as_str()));
        match work {
            _ if is_known => {}
            Work::Command(_) if !is_slip() => {}
            _ => {
                let meant = match near(metric, names()).is_empty() {
                    // There are hundreds: those that it is judged by stand for them.
                    true => {
                        let usual = Workload { primary: Vec::new(), ..workload.clone() }.primary();
                        format!("it is judged by {}, unless you say otherwise", usual.join(", "))
                    }
                    false => meant(metric, names().collect::<Vec<_>>()),
                };
                return Err(format!("has no metric {metric:?}; {meant}"));
            }
        }
    }
    Ok(())
}

/// What a job may have, whatever its name is.
fn is_of_a_job(work: Work, metric: &str) -> bool {
    let is_end =
        |end: String| metric.strip_suffix(&end).is_some_and(|it| it.len() > 1 && it.ends_with('_'));
    matches!(work, Work::Fio(_)) && of_a_job(work).any(is_end)
}

/// What each of several jobs has, behind its name.
fn of_a_job(work: Work) -> impl Iterator<Item = String> {
    ["iops", "bandwidth"].into_iter().map(String::from).chain(of_all(work))
}

fn latencies_of(operations: &[&str]) -> impl Iterator<Item = String> {
    operations.iter().flat_map(|it| OF_LATENCY.map(|end| format!("{it}_latency_{end}")))
}

/// The calls of a recording and of a tree's walk are not known from here.
fn has_any_operation(work: Work, metric: &str) -> bool {
    let latency = metric.rsplit_once("_latency_");
    matches!(work, Work::Replay(_) | Work::Tree(_))
        && latency.is_some_and(|(_, end)| OF_LATENCY.contains(&end))
}

/// Which servers there are is not known from here.
fn is_of_application(workload: &Workload, metric: &str) -> bool {
    workload.phases().iter().any(|phase| {
        let prefix = phase.prefix();
        let own = metric.strip_prefix(&prefix).and_then(|it| it.strip_prefix("application_"));
        ["_read_bytes", "_write_bytes"].iter().any(|what| {
            own.and_then(|it| it.strip_suffix(what)).is_some_and(|name| !name.is_empty())
        })
    })
}

/// All that is measured of it on a machine that lacks nothing, the work's own figures first.
fn names(workload: &Workload, work: Work) -> Vec<String> {
    let jobs = workload.jobs.iter().flat_map(|jobs| &jobs.names);
    let of_job = |job| of_a_job(work).map(move |figure| format!("{job}_{figure}"));
    let mut names: Vec<String> = jobs.flat_map(of_job).collect();
    // What did not run at once is not added up.
    let adds_up = workload.jobs.as_ref().is_none_or(|jobs| jobs.together);
    names.extend(of_all(work).filter(|_| adds_up));
    for phase in workload.phases() {
        let device = DeviceTotals { write_bytes: 1, flushes: Some(0), ..DeviceTotals::default() };
        let totals = Totals { device: Some(device), ..Totals::default() };
        let is_command = matches!(work, Work::Command(_));
        let record = PhaseRecord {
            operations: if is_command { workload.operations } else { adds_up.then_some(1) },
            application_write_bytes: Some(LEAST_AMOUNT_BYTES),
            totals,
            ..PhaseRecord::new(phase, 1, 1)
        };
        names.extend(samples(workload, &[record]).into_iter().map(|sample| sample.metric));
        if phase != Phase::Whole {
            names.extend(latencies_of(&[phase.name()]));
        }
        let prefix = phase.prefix();
        names.extend(columns().map(|column| format!("{prefix}{column}")));
    }
    names
}

/// The columns of what went on meanwhile, whether they have a figure or not, and their peaks.
fn columns() -> impl Iterator<Item = String> {
    let mut columns = DeviceTotals::default().columns(1.0);
    columns.extend(PageCacheTotals::default().columns(1.0));
    columns.extend(NetworkTotals::default().columns(1.0));
    columns.extend(Totals::default().cpu.columns());
    let names = columns.into_iter().map(|column| column.name.to_string());
    names.chain(SysstatColumn::PEAKS.map(|name| format!("{name}_peak")))
}

/// The work's own figures of all that it does.
fn of_all(work: Work) -> impl Iterator<Item = String> {
    let (operations, own) = own(work);
    own.iter().map(ToString::to_string).chain(latencies_of(operations))
}

/// The operations whose latencies the work keeps besides its phases, and figures of its own.
fn own(work: Work) -> (&'static [&'static str], &'static [&'static str]) {
    match work {
        Work::Fio(_) => (
            &["read", "write", "trim", "fsync"],
            &[
                "fio_read_iops",
                "fio_write_iops",
                "fio_trim_iops",
                "fio_read_bandwidth",
                "fio_write_bandwidth",
                "fio_trim_bandwidth",
                "fio_latency_depth",
                "fio_steady_iops",
                "fio_steady_bandwidth",
            ],
        ),
        Work::FsyncFiles(_) => (
            &["write", "fsync", "syncfs"],
            &[
                "fsync_device_writes",
                "fsync_device_write_bytes",
                "fsync_device_flushes",
                "fsync_early_share",
            ],
        ),
        Work::Metadata(_) => (&["unlink", "rmdir"], &[]),
        Work::Sysbench(_) => (
            &["event", "sysbench"],
            &[
                "sysbench_reads",
                "sysbench_writes",
                "sysbench_fsyncs",
                "sysbench_read_bandwidth",
                "sysbench_write_bandwidth",
                "sysbench_latency_p95",
            ],
        ),
        Work::Replay(_) => (&[], &["call_time", "syncs"]),
        Work::Command(_) | Work::SmallFiles(_) | Work::Tree(_) => (&[], &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(work: &str, metric: &str) -> Result<(), String> {
        let text = format!("name = \"w\"\nprimary = [\"{metric}\"]\n{work}");
        check_metrics(&toml::from_str(&text).unwrap(), &[], true)
    }

    #[test]
    fn a_metric_that_no_trial_will_have_is_told_with_the_nearest() {
        for (work, metric, says) in [
            ("small_files = {}", "creat_rate", "did you mean create_rate"),
            ("fio = { rw = \"read\" }", "iop", "did you mean iops?"),
            ("fio = { rw = \"read\" }", "foo", "it is judged by iops, unless"),
            ("metadata = {}", "iops", "it is judged by mkdir_rate, "),
            ("command = \"true\"", "wall_tme", "did you mean wall_time?"),
            ("tree = {}", "fill_rat", "did you mean fill_rate?"),
        ] {
            let error = told(work, metric).unwrap_err();
            assert!(error.contains(says), "{metric}: {error}");
        }
    }

    #[test]
    fn what_a_trial_has_is_known_and_a_command_may_have_more() {
        for (work, metric) in [
            ("small_files = {}", "delete_latency_p99"),
            ("small_files = {}", "read_device_write_bytes_per_s"),
            ("fsync_files = {}", "fsync_device_flushes"),
            ("fio = { rw = \"read\" }", "read_latency_mean"),
            ("fio = { rw = \"read\" }", "device_read_await_ns"),
            ("fio = { rw = \"read\" }", "device_bytes_per_application_byte"),
            ("metadata = {}", "rmdir_latency_p50"),
            ("tree = {}", "stat_stat_latency_p50"),
            ("sysbench = { file-test-mode = \"rndrw\" }", "sysbench_latency_p95"),
            ("command = \"true\"", "transactions_per_s"),
            ("command = \"true\"", "network_received_bits_per_s_peak"),
            ("fio = { rw = \"read\" }", "application_smbd_0_read_bytes"),
            ("small_files = {}", "create_application_work_write_bytes"),
            ("command = \"true\"\nbytes = \"1M\"", "bandwidth"),
        ] {
            assert_eq!(told(work, metric), Ok(()), "{metric}");
        }
        assert!(told("fio = { rw = \"read\" }", "application_read_bytes").is_err());
    }

    #[test]
    fn jobs_have_metrics_of_their_own_and_the_whole_where_all_run_at_once() {
        let workload = |metric: &str, jobs: &str| -> Workload {
            let text = format!("name = \"w\"\nprimary = [\"{metric}\"]\nfio = \"a.fio\"\n{jobs}");
            toml::from_str(&text).unwrap()
        };
        let told = |metric: &str, together: bool| {
            let jobs = format!("jobs = {{ names = [\"a\", \"b\"], together = {together} }}");
            check_metrics(&workload(metric, &jobs), &[], true)
        };
        for metric in ["a_iops", "b_bandwidth", "b_fio_read_iops", "a_read_latency_p99"] {
            assert_eq!(told(metric, false), Ok(()));
        }
        assert_eq!(told("cpu_time", false), Ok(()));
        assert!(told("c_iops", false).unwrap_err().contains("did you mean a_iops"));
        for metric in ["iops", "bandwidth", "read_latency_p99"] {
            assert_eq!(told(metric, true), Ok(()));
            assert!(told(metric, false).is_err(), "{metric} of what ran one after the other");
        }
        for (metric, known) in [("c_iops", true), ("_iops", false), ("c_iop", false)] {
            let before = check_metrics(&workload(metric, ""), &[], false);
            assert_eq!(before.is_ok(), known, "{metric} before fio has read it");
        }
    }

    #[test]
    fn a_figure_that_is_looked_for_has_a_name_of_its_own() {
        let told = |name: &str| {
            let text = format!("name = \"w\"\ncommand = \"x\"\nfigures = {{ {name} = \"a\" }}");
            check_metrics(&toml::from_str(&text).unwrap(), &[], true)
        };
        assert_eq!(told("mine"), Ok(()));
        assert!(told("wall_time").unwrap_err().contains("which fsverdict measures"));
    }

    #[test]
    fn what_a_trace_counts_is_known_where_it_is_asked_for() {
        let text = "name = \"w\"\nprimary = [\"trace_journal_bytes\", \"trace_sequential_share\"]\n\
                    fio = { rw = \"write\" }";
        let workload = toml::from_str(text).unwrap();
        assert_eq!(check_metrics(&workload, &[ExtraProbe::Trace], true), Ok(()));
        assert!(check_metrics(&workload, &[], true).is_err());
    }
}
