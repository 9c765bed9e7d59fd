//! The bytes a workload goes over, which show whether memory could answer in place of the device.

use super::{Bytes, Plan, Work, Workload};

/// sysbench's own `file-total-size` (sysbench fileio help).
const SYSBENCH_BYTES: Bytes = Bytes(2 << 30);

/// Bytes that are read or written, each counted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkingSet {
    /// How many.
    pub bytes: Bytes,
    /// They go through the page cache.
    pub buffered: bool,
}

/// A workload's working set, and what part of memory that is.
#[derive(Clone, Debug, PartialEq)]
pub struct OverMemory {
    /// The workload.
    pub workload: String,
    /// What it goes over here.
    pub local: WorkingSet,
    /// That over the memory of this machine, where it is known.
    pub share: Option<f64>,
    /// What the study goes over, and that over its machine's memory.
    pub study: Option<(Bytes, f64)>,
}

/// A share of memory, to be read at a glance: `0.41%`, `42%`, `5.0 times`.
pub fn share_of_memory(share: f64) -> String {
    match share {
        share if share < 0.000_1 => "<0.01%".into(),
        share if share < 0.01 => format!("{:.2}%", share * 100.0),
        share if share < 2.0 => format!("{:.0}%", share * 100.0),
        share => format!("{share:.1} times"),
    }
}

impl Plan {
    /// The working sets that can be told, on a machine of so much memory.
    pub fn working_sets(&self, memory_bytes: Option<u64>) -> Vec<OverMemory> {
        let over = |bytes: Bytes, memory_bytes: u64| bytes.0 as f64 / memory_bytes as f64;
        let set = |workload: &Workload| {
            let local = workload.working_set()?;
            let study = self.study.as_ref().and_then(|study| {
                let bytes = study.working_sets.get(&workload.name).copied().unwrap_or(local.bytes);
                Some((bytes, over(bytes, study.memory?.0)))
            });
            let share = memory_bytes.map(|memory_bytes| over(local.bytes, memory_bytes));
            Some(OverMemory { workload: workload.name.clone(), local, share, study })
        };
        self.workloads.iter().filter_map(set).collect()
    }
}

impl Workload {
    /// The files and directories that are there at once, where the plan tells.
    pub fn files(&self) -> Option<u64> {
        match self.work().ok()? {
            Work::SmallFiles(files) => Some(files.count + u64::from(files.directories)),
            Work::FsyncFiles(files) => Some(files.files.into()),
            Work::Metadata(metadata) => {
                let directories = u64::from(metadata.directories);
                Some(directories * (1 + u64::from(metadata.files_per_directory)))
            }
            Work::Tree(tree) if tree.source.is_none() => Some(tree.files),
            _ => None,
        }
    }

    /// The working set, where it can be told: not that of a job file or of several fio jobs, nor of
    /// metadata, nor of a command that does not say how many bytes it moves.
    pub fn working_set(&self) -> Option<WorkingSet> {
        let buffered = |bytes: u64| Some(WorkingSet { bytes: Bytes(bytes), buffered: true });
        if self.fio.is_some() {
            return self.fio_set();
        }
        if let Some(test) = &self.sysbench {
            let value = |name: &str| {
                let option = |word: String| {
                    Some(
                        word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('=')?.to_string(),
                    )
                };
                test.arguments().into_iter().filter_map(option).next_back()
            };
            let size = value("file-total-size").map(|size| size.parse().ok());
            let direct = value("file-extra-flags").is_some_and(|flags| flags.contains("direct"));
            let bytes = size.unwrap_or(Some(SYSBENCH_BYTES))?;
            return Some(WorkingSet { bytes, buffered: !direct });
        }
        if let Some(files) = &self.small_files {
            return buffered(files.count.saturating_mul(files.size.0));
        }
        if let Some(files) = &self.fsync_files {
            return buffered(files.all_files().saturating_mul(files.size.0));
        }
        buffered(self.bytes?.0)
    }

    /// One job's: its size once for each of `numjobs`, but once alone where all share a file.
    fn fio_set(&self) -> Option<WorkingSet> {
        let last = |option| self.fio_values(option).and_then(|values| values.last().cloned());
        // These touch no file.
        let is_idle = |engine: String| ["null", "cpuio", "cpu"].contains(&engine.as_str());
        if self.fio_values("name")?.len() != 1 || last("ioengine").is_some_and(is_idle) {
            return None;
        }
        let size: Bytes = last("size")?.parse().ok()?;
        let jobs: u64 = match last("filename") {
            Some(_) => 1,
            None => last("numjobs").map_or(Ok(1), |jobs| jobs.parse()).ok()?,
        };
        let direct = last("direct").is_some_and(|value| value != "0");
        Some(WorkingSet { bytes: Bytes(size.0.saturating_mul(jobs)), buffered: !direct })
    }

    /// The values of one of a fio job's options in the order given, when its options are in the
    /// plan: `None` for a job file, which only fio reads.
    pub fn fio_values(&self, option: &str) -> Option<Vec<String>> {
        let of_it = self.fio_options()?.into_iter().filter(|(name, _)| name == option);
        Some(of_it.map(|(_, value)| value).collect())
    }

    /// All options of the fio job, in order; `None` where they can't all be seen: in a job file.
    pub fn fio_options(&self) -> Option<Vec<(String, String)>> {
        let arguments = self.fio.as_ref()?.arguments(&self.name);
        let mut options = Vec::new();
        let mut words = arguments.iter().peekable();
        while let Some(word) = words.next() {
            let word = word.strip_prefix("--")?;
            let (name, value) = match word.split_once('=') {
                Some(pair) => pair,
                // `--direct 1` as well as the flag `--direct`.
                None => (word, words.next_if(|next| !next.starts_with("--")).map_or("1", |it| it)),
            };
            options.push((name.into(), value.into()));
        }
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(work: &str) -> Option<(u64, bool)> {
        let workload: Workload = toml::from_str(&format!("name = \"w\"\n{work}")).unwrap();
        workload.working_set().map(|set| (set.bytes.0, set.buffered))
    }

    #[test]
    fn shares_are_never_shown_as_nothing() {
        let shown = [1e-9, 0.0041, 0.42, 1.5, 5.0].map(share_of_memory);
        assert_eq!(shown, ["<0.01%", "0.41%", "42%", "150%", "5.0 times"]);
    }

    #[test]
    fn the_bytes_of_each_kind_of_work_are_known_where_they_can_be() {
        const MIB: u64 = 1 << 20;
        for (work, expected) in [
            ("fio = { size = \"1m\", numjobs = 4 }", Some((4 * MIB, true))),
            ("fio = { size = \"1m\", numjobs = 4, filename = \"f\" }", Some((MIB, true))),
            ("fio = { size = \"1m\", direct = 1 }", Some((MIB, false))),
            ("fio = [\"--size=1m\", \"--direct=0\"]", Some((MIB, true))),
            ("fio = [\"--name=a\", \"--size=1m\", \"--name=b\", \"--size=1m\"]", None),
            ("fio = { size = \"10%\" }", None),
            ("fio = { size = \"1m\", ioengine = \"null\" }", None),
            ("fio = \"job.fio\"", None),
            ("sysbench = { file-test-mode = \"rndrw\" }", Some((2048 * MIB, true))),
            (
                "sysbench = [\"--file-total-size=1M\", \"--file-extra-flags=direct\"]",
                Some((MIB, false)),
            ),
            ("small_files = { count = 1024, size = \"2k\" }", Some((2 * MIB, true))),
            ("fsync_files = { files = 10, repetitions = 10, size = 10 }", Some((1000, true))),
            ("command = \"dd\"\nbytes = \"1M\"", Some((MIB, true))),
            ("command = \"dd\"", None),
            ("metadata = {}", None),
        ] {
            assert_eq!(set(work), expected, "{work}");
        }
    }
}
