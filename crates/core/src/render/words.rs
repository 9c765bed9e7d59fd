//! What tests are called in texts for people: "create small files", never `create_rate` of "small
//! files". Programs get the metrics' own names (CSV, JSON).

pub(super) use crate::model::counted;
use crate::model::{NAMELESS, Percent, Phase, Plan, Workload};

/// One metric of one workload, as it is judged: a row of the matrix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The metric's name.
    pub metric: String,
    /// Below its workload's name.
    pub short: String,
    /// By itself.
    pub full: String,
    /// After "better at".
    pub doing: String,
}

/// What a metric of a workload is called, where it is one of several.
pub fn test_name(workload: &Workload, metric: &str) -> String {
    format!("{}: {}", workload.name, figure_of(workload, metric))
}

/// The tests of a plan, in its order.
pub(super) fn tests(plan: &Plan) -> Vec<Test<'_>> {
    plan.workloads.iter().flat_map(|workload| of(plan, workload)).collect()
}

/// The tests of one workload.
pub(super) fn of<'a>(plan: &'a Plan, workload: &'a Workload) -> Vec<Test<'a>> {
    let primary = workload.primary();
    let is_only = primary.len() == 1;
    primary.into_iter().map(|metric| test(plan, workload, metric, is_only)).collect()
}

fn test<'a>(plan: &'a Plan, workload: &'a Workload, metric: String, is_only: bool) -> Test<'a> {
    let name = workload.name.as_str();
    let phase = workload.phase_of(&metric);
    let rate = metric == phase.prefix() + "rate";
    if let Some((verb, gerund)) = verbs(phase).filter(|_| rate) {
        let object = object(plan, workload);
        let [full, doing] = match object {
            Some(object) => [verb, gerund].map(|verb| format!("{verb} {object}")),
            None => [verb, gerund].map(|verb| format!("{name}: {verb}")),
        };
        return Test { workload: name, metric, short: verb.into(), full, doing };
    }
    let figure = figure_of(workload, &metric);
    // A workload's one figure needs no name where it is the figure that one expects.
    let expected = ["wall_time", "iops", "bandwidth", "rate", "transactions_per_s"];
    let is_expected = workload.primary.is_empty() || expected.contains(&metric.as_str());
    let full = match is_only && is_expected {
        true => name.to_string(),
        false if name == NAMELESS || plan.workloads.len() == 1 && !is_only => figure.clone(),
        false => format!("{name}: {figure}"),
    };
    Test { workload: name, metric, short: figure, doing: full.clone(), full }
}

/// A metric in words, after the name of its timed part or of its job where there are several.
fn figure_of(workload: &Workload, metric: &str) -> String {
    let part = workload.phase_of(metric).name();
    let of_part = metric.strip_prefix(part).unwrap_or(metric);
    match (part, workload.job_of(metric)) {
        ("", Some((job, of_job))) => format!("{job}: {}", figure(of_job)),
        ("", None) => figure(metric),
        _ => format!("{}, {}", part.replace('_', " "), figure(of_part)),
    }
}

/// What is done to each file, as an order and as an occupation.
fn verbs(phase: Phase) -> Option<(&'static str, &'static str)> {
    Some(match phase.name() {
        "create" => ("create", "creating"),
        "stat" => ("look up", "looking up"),
        "read" => ("read", "reading"),
        "rename" => ("rename", "renaming"),
        "delete" => ("delete", "deleting"),
        "mkdir" => ("make directories", "making directories"),
        "chmod" => ("change modes", "changing modes"),
        "chown" => ("change owners", "changing owners"),
        "utimes" => ("set times", "setting times"),
        "setxattr" => ("set attributes", "setting attributes"),
        "fill" => ("fill", "filling"),
        "copy" => ("copy", "copying"),
        "walk" => ("list", "listing"),
        "walk_again" => ("list again", "listing again"),
        _ => return None,
    })
}

/// What the work is done to, if the plan has only one such workload, and it is named by its kind.
fn object(plan: &Plan, workload: &Workload) -> Option<&'static str> {
    let kind: fn(&Workload) -> bool = match workload {
        it if it.small_files.is_some() => |it| it.small_files.is_some(),
        it if it.tree.is_some() => |it| it.tree.is_some(),
        _ => return None,
    };
    let is_only = plan.workloads.iter().filter(|it| kind(it)).count() == 1;
    let object = if workload.tree.is_some() { "the tree" } else { "small files" };
    is_only.then_some(object)
}

/// A metric in words: "median fsync latency", "written to the device".
pub(super) fn figure(metric: &str) -> String {
    let metric = metric.trim_start_matches('_');
    let known = match metric {
        "wall_time" => "time",
        "cpu_time" => "CPU time",
        "cpu_per_operation" => "CPU time of an operation",
        "iops" => "requests",
        "rate" => "operations",
        "transactions_per_s" => "transactions",
        "fio_read_iops" => "read requests",
        "fio_write_iops" => "write requests",
        "fio_read_bandwidth" => "read bandwidth",
        "fio_write_bandwidth" => "write bandwidth",
        "fio_trim_iops" => "trim requests",
        "fio_trim_bandwidth" => "trim bandwidth",
        "fio_latency_depth" => "requests under way within the target",
        "fio_steady_iops" => "requests once steady",
        "fio_steady_bandwidth" => "bandwidth once steady",
        "fsync_device_write_bytes" => "bytes written by an fsync",
        "fsync_device_writes" => "writes of an fsync",
        "fsync_device_flushes" => "flushes of an fsync",
        "fsync_early_share" => "fsyncs that return early",
        "device_write_bytes_per_s" => "written to the device",
        "network_received_bits_per_s_peak" => "received at most",
        "device_bytes_per_application_byte" => "write amplification",
        _ => "",
    };
    if !known.is_empty() {
        return known.into();
    }
    const KINDS: [(&str, &str); 8] = [
        ("_latency_p50", "median"),
        ("_latency_mean", "mean"),
        ("_latency_max", "longest"),
        ("_latency_p90", "p90"),
        ("_latency_p95", "p95"),
        ("_latency_p99", "p99"),
        ("_latency_p999", "p99.9"),
        ("_latency_p9999", "p99.99"),
    ];
    let latency = KINDS.iter().find_map(|(end, kind)| Some((metric.strip_suffix(end)?, kind)));
    match latency {
        Some((operation, kind)) => format!("{kind} {} latency", spaced(operation)),
        None => spaced(metric),
    }
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

/// A ratio for a person: three digits, and as many as it takes below a tenth.
pub(super) fn ratio(ratio: f64) -> String {
    match ratio {
        it if it >= 99.5 => format!("{it:.0}"),
        it if it >= 9.995 => format!("{it:.1}"),
        it if it >= 0.0995 => format!("{it:.2}"),
        it if it >= 0.00995 => format!("{it:.3}"),
        it if it >= 0.000_05 => format!("{it:.4}"),
        // Rounded it would be none.
        it if it > 0.0 => "<0.0001".into(),
        _ => "0".into(),
    }
}

/// The same with as many decimals near 1 as tell a difference of this margin.
pub(super) fn ratio_by(value: f64, margin: Percent) -> String {
    let decimals = (-margin.0.log10()).ceil().clamp(2.0, 6.0) as usize;
    match (0.5..2.0).contains(&value) {
        true => format!("{value:.decimals$}"),
        false => ratio(value),
    }
}

/// An interval of a ratio, for a cell.
pub(super) fn span(low: f64, high: f64) -> String {
    match beyond(low, high) {
        [false, false] => format!("{}-{}", ratio(low), ratio(high)),
        [is_low, is_high] => {
            let low = if is_low { "<0.001".into() } else { ratio(low) };
            let high = if is_high { ">1000".into() } else { ratio(high) };
            format!("{low} to {high}")
        }
    }
}

/// An interval of a ratio, whose ends `shown` shows.
pub fn from_to(low: f64, high: f64, shown: fn(f64) -> String) -> String {
    let [is_low, is_high] = beyond(low, high);
    let low = if is_low { "under 0.001".into() } else { shown(low) };
    let high = if is_high { "over 1,000".into() } else { shown(high) };
    format!("{low} to {high}")
}

/// Which ends of an interval are too far out to be meant as a size: with few rounds it can be as
/// wide as numbers go. Those of a narrow one were measured.
pub(super) fn beyond(low: f64, high: f64) -> [bool; 2] {
    const MOST: f64 = 1000.0;
    let is_wide = high > low * MOST;
    [is_wide && low < 1.0 / MOST, is_wide && high > MOST]
}

/// `text` with shares of a thousand percent and more as multiples, which somebody can imagine:
/// "39941.1% of what moved" is "399 times what moved".
pub(super) fn without_huge_shares(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
        let start = before.trim_end_matches(is_part).len();
        let number = before[start..].replace(',', "").parse::<f64>();
        match number {
            Ok(share) if share >= 1000.0 => {
                out += &format!("{}{} times", &before[..start], ratio(share / 100.0));
                rest = after.strip_prefix(" of").unwrap_or(after);
            }
            _ => {
                out += before;
                out.push('%');
                rest = after;
            }
        }
    }
    out + rest
}

/// "a", "a and b", "a, b and c".
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [names @ .., last] if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        _ => names.concat(),
    }
}

/// A length of time to be guessed at: "50 s", "6 minutes", "3 hours".
pub(super) fn about(seconds: f64) -> String {
    match seconds {
        it if it < 90.0 => format!("{:.0} s", (it / 10.0).ceil() * 10.0),
        it if it < 5400.0 => format!("{:.0} minutes", (it / 60.0).ceil()),
        it => format!("{:.0} hours", (it / 3600.0).ceil()),
    }
}

/// A name that would look like two, or like the end of a sentence, is quoted.
pub(super) fn quoted(name: &str) -> String {
    if name.contains([',', ';', ':']) || name.ends_with('.') {
        format!("“{name}”")
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(workloads: &str) -> Vec<[String; 3]> {
        let text = format!("[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n{workloads}");
        let plan = Plan::parse(&text).unwrap();
        tests(&plan).into_iter().map(|it| [it.short, it.full, it.doing]).collect()
    }

    #[test]
    fn tests_have_names_for_people() {
        let files = "[[workload]]\nname = \"small files\"\nsmall_files = {}\n";
        let all = names(files);
        assert_eq!(all[0], ["create", "create small files", "creating small files"]);
        assert_eq!(all[1], ["look up", "look up small files", "looking up small files"]);
        let other = "[[workload]]\nname = \"big ones\"\nsmall_files = { size = \"1M\" }\n";
        assert_eq!(names(&format!("{files}{other}"))[5][1], "big ones: create");
        let metadata = names("[[workload]]\nname = \"metadata\"\nmetadata = {}\n");
        assert_eq!(metadata[0][1], "metadata: make directories");
        let commands = "[[workload]]\nname = \"copy headers\"\ncommand = \"cp\"\n\
                        [[workload]]\nname = \"write\"\nfio = { rw = \"write\" }\n\
                        primary = [\"iops\", \"write_latency_p99\"]\n";
        let all = names(commands);
        assert_eq!(all[0][1], "copy headers");
        assert_eq!(all[1][1], "write: requests");
        assert_eq!(
            all[2],
            ["p99 write latency", "write: p99 write latency", "write: p99 write latency"]
        );
        let fsync = names("[[workload]]\nname = \"one fsync\"\nfsync_files = {}\n");
        assert_eq!(fsync[0][1], "one fsync");
        let fsync =
            "[[workload]]\nname = \"one fsync\"\nfsync_files = {}\nprimary = [\"cpu_time\"]\n";
        assert_eq!(names(fsync)[0][1], "one fsync: CPU time");
        let jobs = "[[workload]]\nname = \"disk\"\nfio = \"job.fio\"\n\
                    jobs = { names = [\"rnd-read\", \"a_b\"], together = false }\n";
        let of_jobs = names(jobs);
        assert_eq!(of_jobs[0], ["rnd-read: requests"; 3]);
        assert_eq!(of_jobs[1][0], "a_b: requests", "a job keeps its name");
        for [short, full, _] in all {
            assert!(!short.contains('_') && !full.contains('_'), "{full}");
        }
    }

    #[test]
    fn ratios_have_three_digits() {
        let shown = [0.001234, 0.0456, 0.5391, 0.999, 1.0, 1.664, 12.345, 234.5].map(ratio);
        assert_eq!(shown, ["0.0012", "0.046", "0.54", "1.00", "1.00", "1.66", "12.3", "234"]);
        assert_eq!(span(0.379, 0.766), "0.38-0.77");
        assert_eq!(span(1e-19, 0.5), "<0.001 to 0.50");
        assert_eq!(span(1e-19, 7e31), "<0.001 to >1000");
        assert_eq!(span(2000.0, 3000.0), "2000-3000");
        assert_eq!(from_to(0.0003, 0.0004, ratio), "0.0003 to 0.0004");
        assert_eq!(from_to(1e-19, 7e31, ratio), "under 0.001 to over 1,000");
        let by = |margin| [0.0456, 1.0041, 2.5].map(|it| ratio_by(it, Percent(margin)));
        assert_eq!(by(0.05), ["0.046", "1.00", "2.50"]);
        assert_eq!(by(0.002), ["0.046", "1.004", "2.50"]);
        assert_eq!(ratio_by(1.0041, Percent(0.0)), "1.004100");
    }

    #[test]
    fn nobody_is_told_of_forty_thousand_percent() {
        let told = without_huge_shares;
        assert_eq!(
            told("wrote 3 KiB, 39941.1% of what moved"),
            "wrote 3 KiB, 399 times what moved"
        );
        assert_eq!(told("(1,000.0%) and 99.9% of it"), "(10.0 times) and 99.9% of it");
        assert_eq!(told("% and ü2000%"), "% and ü20.0 times");
    }

    #[test]
    fn times_are_round() {
        assert_eq!([44.0, 360.0, 7300.0].map(about), ["50 s", "6 minutes", "3 hours"]);
    }

    #[test]
    fn lists_read_as_sentences() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(listed(&words("a")), "a");
        assert_eq!(listed(&words("a b")), "a and b");
        assert_eq!(listed(&words("a b c")), "a, b and c");
        assert_eq!(listed(&[]), "");
        assert_eq!(counted(1, "cell"), "1 cell");
    }
}
