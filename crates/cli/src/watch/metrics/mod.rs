//! The run as OpenMetrics, for Prometheus, Netdata and their like.
//!
//! The page is written when there is news and once a second, and a request only gets a copy: a
//! scrape during a timed part costs the machine a connection and a copy.

mod exposition;
mod http;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use fsverdict_core::model::{
    Better, Comparison, Histogram, Record, Sample, Severity, Unit, Verdict, Workload,
};

use super::state::State;
use super::{Listener, News};
use crate::say::remark;
use exposition::{Dialect, Exposition, Kind};

/// Where the page is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(SocketAddr);

impl FromStr for Listen {
    type Err = String;

    /// A port alone is one of the loopback address: other addresses have to be given.
    fn from_str(text: &str) -> Result<Listen, String> {
        let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let named = || text.strip_prefix("localhost:")?.parse().ok().map(local);
        let address = text.parse().ok().map(local).or_else(named).or_else(|| text.parse().ok());
        address.map(Listen).ok_or_else(|| {
            "write a port, 9464, or an address and a port, 127.0.0.1:9464 or [::1]:9464".into()
        })
    }
}

const DIALECTS: [Dialect; 2] = [Dialect::OpenMetrics, Dialect::Prometheus];

/// The page in each format: what changes with a record, and what changes from second to second.
#[derive(Debug, Default)]
struct Page {
    kept: [String; 2],
    now: [String; 2],
}

/// The highest latencies of the buckets, in seconds: three for each power of ten.
const LATENCIES_S: [f64; 22] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,
    0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// Latencies of the trials since the program was started.
#[derive(Clone, Debug, Default)]
struct Latencies {
    /// How many were up to each of [`LATENCIES_S`].
    up_to: [u64; LATENCIES_S.len()],
    count: u64,
    sum_ns: u64,
}

impl Latencies {
    fn add(&mut self, histogram: &Histogram) {
        for &(highest_ns, operations) in &histogram.buckets {
            let latency_s = highest_ns.min(histogram.max_ns) as f64 / 1e9;
            let first = LATENCIES_S.partition_point(|&highest_s| highest_s < latency_s);
            self.up_to[first..].iter_mut().for_each(|count| *count += operations);
        }
        self.count += histogram.count();
        self.sum_ns += histogram.sum_ns;
    }

    fn buckets(&self) -> Vec<(f64, u64)> {
        LATENCIES_S.into_iter().zip(self.up_to).collect()
    }
}

/// What the latencies are of: workload, contender, operation.
type Operation = [String; 3];

/// The server, and what it counts itself.
#[derive(Debug)]
pub struct Metrics {
    page: Arc<Mutex<Page>>,
    latencies: BTreeMap<Operation, Latencies>,
    /// The last figures of what is judged, by workload, contender and metric.
    figures: BTreeMap<[String; 3], Sample>,
}

impl Metrics {
    /// Serves from now on. Fails where the address is not to be had.
    pub fn new(Listen(address): &Listen) -> Result<Metrics> {
        let listener = TcpListener::bind(address);
        let listener = listener.with_context(|| format!("--metrics {address}"))?;
        let address = listener.local_addr()?;
        let page = Arc::new(Mutex::new(Page::default()));
        let shown = Arc::clone(&page);
        http::serve(listener, move |dialect| {
            let page = shown.lock().unwrap_or_else(PoisonError::into_inner);
            let place = usize::from(dialect == DIALECTS[1]);
            format!("{}{}{}", page.now[place], page.kept[place], dialect.end())
        })?;
        remark!("metrics at http://{address}/metrics");
        let (latencies, figures) = (BTreeMap::new(), BTreeMap::new());
        Ok(Metrics { page, latencies, figures })
    }

    fn count(&mut self, record: &Record, state: &State) {
        let key = &record.key;
        let of = |what: &str| [key.workload.clone(), key.contender.clone(), what.to_string()];
        for (operation, histogram) in record.phases.iter().flat_map(|phase| &phase.histograms) {
            self.latencies.entry(of(operation)).or_default().add(histogram);
        }
        let workload = state.plan.workloads.iter().find(|it| it.name == key.workload);
        for metric in workload.map(Workload::primary).unwrap_or_default() {
            if let Some(sample) = record.sample(&metric) {
                self.figures.insert(of(&metric), sample.clone());
            }
        }
    }

    fn write_kept(&self, state: &State) {
        let texts = DIALECTS.map(|dialect| {
            let mut text = Exposition::new(dialect);
            run(&mut text, state);
            figures(&mut text, &self.figures);
            latencies(&mut text, &self.latencies);
            verdicts(&mut text, &state.comparisons);
            findings(&mut text, state);
            text.into_text()
        });
        self.page.lock().unwrap_or_else(PoisonError::into_inner).kept = texts;
    }

    fn write_now(&self, state: &State) {
        let texts = DIALECTS.map(|dialect| {
            let mut text = Exposition::new(dialect);
            progress(&mut text, state);
            machine(&mut text, state);
            text.into_text()
        });
        self.page.lock().unwrap_or_else(PoisonError::into_inner).now = texts;
    }
}

impl Listener for Metrics {
    fn hear(&mut self, news: &News, state: &State) {
        match news {
            News::Kept(record, _) => {
                self.count(record, state);
                self.write_kept(state);
            }
            News::Begun => self.write_kept(state),
            News::Tick if !state.machine.has_beaten => return,
            News::Writing(..) => return,
            News::Trial(_) | News::Step(_) | News::Tick | News::Ended(_) => {}
        }
        self.write_now(state);
    }
}

fn run(text: &mut Exposition, state: &State) {
    text.family(Kind::Info, "fsverdict_run", "", "The run and who runs it.");
    let place = format!("{:?}", state.run.place).to_lowercase();
    let version = state.run.program_version.as_str();
    text.sample(&[("run", &state.run.name), ("place", &place), ("version", version)], 1.0);
    if let Some(rounds) = state.plan.judgement.rounds() {
        text.gauge("fsverdict_rounds_at_most", "", "Rounds at most.", rounds.into());
    }
    let margin = state.plan.judgement.margin.0;
    let help = "Differences smaller than this are trivial.";
    text.gauge("fsverdict_margin_ratio", "ratio", help, margin);
    text.family(Kind::Counter, "fsverdict_trials", "", "Trials kept.");
    for ((workload, contender), counts) in state.counts() {
        for (outcome, count) in ["measured", "failed"].into_iter().zip(counts) {
            let of = [("workload", workload), ("contender", contender), ("outcome", outcome)];
            text.sample(&of, count.into());
        }
    }
}

fn progress(text: &mut Exposition, state: &State) {
    let seconds = |time: std::time::Duration| time.as_secs_f64();
    let gone = seconds(state.gone());
    text.gauge("fsverdict_run_elapsed_seconds", "seconds", "Time of the run so far.", gone);
    let left = state.left();
    if let Some(likely) = left.likely.map(seconds) {
        let help = "Time until everything is settled, as it looks now.";
        text.gauge("fsverdict_run_left_likely_seconds", "seconds", help, likely);
    }
    if let Some(at_most) = left.at_most.map(seconds) {
        let help = "Time left at most.";
        text.gauge("fsverdict_run_left_at_most_seconds", "seconds", help, at_most);
    }
    text.gauge("fsverdict_round", "", "The round under way.", state.round().into());
    if let Some(trial) = &state.trial {
        text.family(Kind::Info, "fsverdict_trial", "", "The trial under way.");
        let (workload, contender) = (&*trial.key.workload, &*trial.key.contender);
        let of = [("workload", workload), ("contender", contender), ("step", &trial.step)];
        text.sample(&of, 1.0);
    }
}

/// Processors and devices as the lab sees them from outside the trials.
fn machine(text: &mut Exposition, state: &State) {
    let machine = &state.machine;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let help = "Time of all processors since the run began.";
    text.family(Kind::Counter, "fsverdict_cpu_seconds", "seconds", help);
    let cpu = &machine.cpu;
    for (mode, ns) in [
        ("user", cpu.user_ns),
        ("system", cpu.system_ns),
        ("iowait", cpu.iowait_ns),
        ("steal", cpu.steal_ns),
        ("idle", cpu.idle_ns),
    ] {
        text.sample(&[("mode", mode)], seconds(ns));
    }
    let help = "Dirty memory of the whole system.";
    text.gauge("fsverdict_memory_dirty_bytes", "bytes", help, machine.dirty_bytes as f64);
    let Some(device) = &machine.device else { return };
    let mut counter = |name: &str, unit: &str, help: &str, value: f64| {
        text.family(Kind::Counter, name, unit, help);
        text.sample(&[], value);
    };
    let of = "the devices under test since the run began.";
    let said = |what: &str| format!("{what} {of}");
    let (read, written) = (device.read_bytes as f64, device.write_bytes as f64);
    counter("fsverdict_device_read_bytes", "bytes", &said("Bytes read from"), read);
    counter("fsverdict_device_written_bytes", "bytes", &said("Bytes written to"), written);
    counter("fsverdict_device_reads", "", &said("Reads of"), device.reads as f64);
    counter("fsverdict_device_writes", "", &said("Writes to"), device.writes as f64);
    if let Some(flushes) = device.flushes {
        counter("fsverdict_device_flushes", "", &said("Flushes of"), flushes as f64);
    }
    let busy = seconds(device.busy_ns);
    let help = said("Time with a request under way at");
    counter("fsverdict_device_busy_seconds", "seconds", &help, busy);
    let in_flight = machine.in_flight as f64;
    let help = "Requests under way at the devices under test.";
    text.gauge("fsverdict_device_requests_in_flight", "", help, in_flight);
}

/// How a figure's unit is called, and what it is multiplied by: base units alone.
fn base_unit(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Seconds => ("seconds", 1.0),
        Unit::Nanoseconds => ("seconds", 1e-9),
        Unit::Bytes => ("bytes", 1.0),
        Unit::BytesPerSecond => ("bytes_per_second", 1.0),
        Unit::BitsPerSecond => ("bytes_per_second", 0.125),
        Unit::PerSecond => ("per_second", 1.0),
        Unit::Count => ("number", 1.0),
        Unit::Ratio => ("ratio", 1.0),
    }
}

/// A family for each unit: the samples of one must all have the same.
fn figures(text: &mut Exposition, figures: &BTreeMap<[String; 3], Sample>) {
    for unit in ["seconds", "bytes", "bytes_per_second", "per_second", "number", "ratio"] {
        let its = figures.iter().filter(|(_, sample)| base_unit(sample.unit).0 == unit);
        let its: Vec<_> = its.collect();
        if its.is_empty() {
            continue;
        }
        let help = "What is judged, as measured last.";
        text.family(Kind::Gauge, &format!("fsverdict_sample_{unit}"), unit, help);
        for ([workload, contender, metric], sample) in its {
            let better = match sample.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
            };
            let value = sample.value * base_unit(sample.unit).1;
            let of = [("workload", workload.as_str()), ("contender", contender)];
            let what = [("metric", metric.as_str()), ("better", better)];
            text.sample(&[of, what].concat(), value);
        }
    }
}

fn latencies(text: &mut Exposition, latencies: &BTreeMap<Operation, Latencies>) {
    if latencies.is_empty() {
        return;
    }
    let help = "Latencies of the operations of measured trials.";
    text.family(Kind::Histogram, "fsverdict_latency_seconds", "seconds", help);
    for ([workload, contender, operation], latencies) in latencies {
        let of = [("workload", &**workload), ("contender", contender), ("operation", operation)];
        let sum_s = latencies.sum_ns as f64 / 1e9;
        text.histogram(&of, &latencies.buckets(), latencies.count, sum_s);
    }
}

fn verdicts(text: &mut Exposition, comparisons: &[Comparison]) {
    type Figure = fn(&Comparison) -> Option<f64>;
    let families: [(&str, &str, &str, Figure); 4] = [
        (
            "fsverdict_comparison_ratio",
            "ratio",
            "Goodness of the contender over the reference's: above 1 it is better.",
            |it| it.ratio,
        ),
        (
            "fsverdict_comparison_low_ratio",
            "ratio",
            "Lower end of the interval of the ratio.",
            |it| Some(it.low),
        ),
        (
            "fsverdict_comparison_high_ratio",
            "ratio",
            "Upper end of the interval of the ratio.",
            |it| Some(it.high.unwrap_or(f64::INFINITY)),
        ),
        ("fsverdict_comparison_rounds", "", "Rounds in which both were measured.", |it| {
            Some(it.rounds.into())
        }),
    ];
    for (name, unit, help, figure) in families {
        text.family(Kind::Gauge, name, unit, help);
        for comparison in comparisons {
            if let Some(value) = figure(comparison) {
                text.sample(&compared(comparison), value);
            }
        }
    }
    text.family(Kind::StateSet, "fsverdict_verdict", "", "The verdict on the contender.");
    for comparison in comparisons {
        for verdict in Verdict::ALL {
            // As it is called in a result.
            let state = serde_json::to_string(&verdict).unwrap_or_default();
            let state = ("fsverdict_verdict", state.trim_matches('"'));
            let labels = [&compared(comparison)[..], &[state]].concat();
            text.sample(&labels, f64::from(u8::from(comparison.verdict == verdict)));
        }
    }
}

fn compared(comparison: &Comparison) -> [(&str, &str); 4] {
    let Comparison { workload, metric, contender, reference, .. } = comparison;
    [("workload", workload), ("metric", metric), ("contender", contender), ("reference", reference)]
}

fn findings(text: &mut Exposition, state: &State) {
    text.family(Kind::Gauge, "fsverdict_findings", "", "What the audits notice.");
    let severities =
        [("void", Severity::Void), ("warning", Severity::Warning), ("note", Severity::Note)];
    for (name, severity) in severities {
        let count = state.findings.iter().filter(|it| it.severity == severity).count();
        text.sample(&[("severity", name)], count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        let read = |text: &str| text.parse::<Listen>().map(|listen| listen.0.to_string());
        assert_eq!(read("9464").unwrap(), "127.0.0.1:9464");
        assert_eq!(read("localhost:9464").unwrap(), "127.0.0.1:9464");
        assert_eq!(read("0.0.0.0:9464").unwrap(), "0.0.0.0:9464");
        assert_eq!(read("[::1]:9464").unwrap(), "[::1]:9464");
        for wrong in ["", ":9464", "example:9464", "99999", "127.0.0.1"] {
            assert!(read(wrong).unwrap_err().starts_with("write a port"), "{wrong}");
        }
    }

    #[test]
    fn latencies_are_counted_up_to_each_bound() {
        let mut latencies = Latencies::default();
        let buckets = vec![(900, 5), (1_000, 2), (1_500_000, 1), (60_000_000_000, 1)];
        latencies.add(&Histogram { max_ns: 50_000_000_000, sum_ns: 7, buckets });
        let up_to = |bound: f64| {
            let buckets = latencies.buckets();
            buckets.into_iter().find(|(highest, _)| *highest == bound).unwrap().1
        };
        assert_eq!((up_to(1e-6), up_to(1e-3), up_to(2e-3), up_to(10.0)), (7, 7, 8, 8));
        assert_eq!((latencies.count, latencies.sum_ns), (9, 7));
    }

    #[test]
    fn the_page_tells_of_the_last_record_and_the_verdicts() {
        let mut state = testing::begun(testing::PLAN);
        let plan = state.plan.clone();
        let records = testing::rounds(6);
        let mut metrics = Metrics::new(&"0".parse().unwrap()).unwrap();
        for news in [
            News::Begun,
            News::Trial(&testing::trial(&plan, 6, "b")),
            News::Step("work"),
            News::Kept(records.last().unwrap(), Some(testing::judged(&plan, &records))),
        ] {
            state.hear(&news);
            metrics.hear(&news, &state);
            let page = metrics.page.lock().unwrap();
            let step = page.now[0].contains("fsverdict_trial_info{workload=\"work\"");
            assert_eq!(step, matches!(news, News::Trial(_) | News::Step(_)), "{news:?}");
        }
        let page = metrics.page.lock().unwrap();
        for line in [
            "fsverdict_run_info{run=\"a run\",place=\"sim\",version=\"0.1.0\"} 1",
            "fsverdict_trials_total{workload=\"work\",contender=\"b\",outcome=\"measured\"} 1",
            "_seconds_count{workload=\"work\",contender=\"b\",operation=\"write\"} 12",
            "contender=\"b\",reference=\"a\",fsverdict_verdict=\"faster\"} 1",
            "contender=\"b\",reference=\"a\",fsverdict_verdict=\"faster-size-open\"} 0",
            "# TYPE fsverdict_verdict stateset",
            "fsverdict_findings{severity=\"void\"} 0",
        ] {
            assert!(page.kept[0].contains(line), "{line} is not in\n{}", page.kept[0]);
        }
        assert!(page.kept[0].contains("fsverdict_sample_seconds{workload=\"work\""));
        assert!(page.kept[1].contains("# TYPE fsverdict_verdict gauge"));
    }
}
