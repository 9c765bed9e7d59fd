//! The jobs of one fio file, each with figures of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Histogram, Queue, Sample};

/// The jobs that a fio workload has, where it has several: fio itself says which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// What begins the metrics of each, in order. Jobs that fio reports as one are one.
    pub names: Vec<String>,
    /// All run at once, so that their rates may be added up.
    pub together: bool,
}

/// How metrics of the whole begin: no job may be called so.
const TAKEN: [&str; 4] = ["fio_read", "fio_write", "fio_trim", "fio_steady"];

impl Jobs {
    /// What begins the metrics of jobs of these names: their names, with `_` for anything but
    /// letters, digits, `-` and `.`, and numbered if they would be the same.
    pub fn metric_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut given: Vec<String> = Vec::new();
        for name in names {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            let name = name.replace(|c: char| !plain(c), "_");
            let is_free = |it: &String| !given.contains(it) && !TAKEN.contains(&it.as_str());
            let numbered = (2..).map(|number| format!("{name}_{number}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(is_free);
            given.extend(free);
        }
        given
    }

    /// The job that `metric` is of, and what it is there.
    pub fn split<'a>(&'a self, metric: &'a str) -> Option<(&'a str, &'a str)> {
        let of = |name: &'a String| {
            let rest = metric.strip_prefix(name.as_str())?.strip_prefix('_')?;
            Some((name.as_str(), rest))
        };
        // `a` and `a_b` may both be jobs.
        self.names.iter().filter_map(of).max_by_key(|(name, _)| name.len())
    }
}

/// What one job of several did, by its tool's own figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// What begins its metrics.
    pub name: String,
    /// The tool's time for it.
    pub tool_ns: u64,
    /// It writes and nothing runs after it, so that its time ends with the closing syncfs.
    pub synced: bool,
    /// Operations done.
    pub operations: u64,
    /// Bytes it asked to have read.
    pub application_read_bytes: u64,
    /// Bytes it asked to have written.
    pub application_write_bytes: u64,
    /// The requests it had under way, where the tool tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Latencies by kind of operation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub histograms: BTreeMap<String, Histogram>,
    /// Figures of the tool's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

impl JobRecord {
    /// What its rates divide by, in seconds, where the timed part's syncfs took so long.
    pub fn rated_s(&self, syncfs_ns: u64) -> f64 {
        (self.tool_ns + if self.synced { syncfs_ns } else { 0 }) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_has_a_name_of_its_own_in_metrics() {
        let names = Jobs::metric_names(["SEQ1M-read", "both a", "both_a", "both a"]);
        assert_eq!(names, ["SEQ1M-read", "both_a", "both_a_2", "both_a_3"]);
        let taken = Jobs::metric_names(["fio_read", "fio_steady"]);
        assert_eq!(taken, ["fio_read_2", "fio_steady_2"]);
    }

    #[test]
    fn a_metric_is_of_the_job_whose_name_it_begins_with() {
        let names = ["a", "a_b", "c"].map(String::from).to_vec();
        let jobs = Jobs { names, together: false };
        assert_eq!(jobs.split("a_iops"), Some(("a", "iops")));
        assert_eq!(jobs.split("a_b_iops"), Some(("a_b", "iops")));
        assert_eq!(jobs.split("c_read_latency_p99"), Some(("c", "read_latency_p99")));
        assert_eq!(jobs.split("iops"), None);
        assert_eq!(jobs.split("cpu_time"), None);
    }
}
