//! What a report is made of.

use crate::model::claim::Answered;
use crate::model::{
    Beside, Cause, Comparison, Contender, Disk, Finding, Key, LeftOut, Mounted, OverMemory,
    Partition, Plan, Record, Refused, Run, Workload, Zeros, meant,
};

use super::sentence::{alone, sentence};

/// Everything a report is made of.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The run's own facts.
    pub run: &'a Run,
    /// What it was to do.
    pub plan: &'a Plan,
    /// What was measured, in order of the trials.
    pub records: &'a [Record],
    /// What was decided.
    pub comparisons: &'a [Comparison],
    /// What the slower of two pays more of.
    pub causes: &'a [Cause],
    /// What the audits noticed.
    pub findings: &'a [Finding],
    /// What the plan's study printed, beside what was measured.
    pub published: &'a [Beside],
    /// What is claimed, with the answers.
    pub claims: &'a [Answered],
    /// It was read from one file: there is no folder of it.
    pub is_packed: bool,
}

impl Report<'_> {
    /// The finished rounds.
    pub fn rounds(&self) -> u32 {
        self.records.iter().map(|record| record.key.round).max().unwrap_or(0)
    }

    /// The verdicts on a workload, comparison by comparison; for a single contender its figures.
    pub(super) fn sentences(&self, workload: &Workload) -> Vec<String> {
        if let [contender] = self.plan.contenders.as_slice() {
            let trials: Vec<&Record> = self.trials(workload).collect();
            let gaps = self.replay_gaps(&workload.name).unwrap_or_default();
            let of = |metric: &String| {
                alone(&contender.name, metric, &trials, self.plan.judgement.confidence) + &gaps
            };
            return workload.primary().iter().map(of).collect();
        }
        let its = self.comparisons.iter().filter(|it| it.workload == workload.name);
        its.map(|it| self.sentence(it)).collect()
    }

    /// The records of a workload's trials.
    pub(super) fn trials(&self, workload: &Workload) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.key.workload == workload.name)
    }

    /// The records of a contender's trials.
    fn trials_of(&self, contender: &Contender) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.key.contender == contender.name)
    }

    /// What the replay that was measured lacks, to be said with what was decided of it.
    fn replay_gaps(&self, workload: &str) -> Option<String> {
        let its = self.records.iter().filter(|it| it.is_measured() && it.key.workload == workload);
        let replayed = its.flat_map(|it| &it.phases).filter_map(|it| it.replayed.as_ref());
        let apart = replayed.max_by_key(|it| (it.unlike, it.copied))?.apart()?;
        Some(format!(" This replay {apart}."))
    }

    /// A comparison in words.
    pub(super) fn sentence(&self, comparison: &Comparison) -> String {
        let Comparison { metric, contender, reference, .. } = comparison;
        let unknown = self.unknown_metric(comparison);
        let zeros = self.zeros(comparison).map(|it| it.said([contender, reference]));
        let said = match (unknown, zeros) {
            (Some(unknown), _) => unknown,
            (None, Some(zeros)) => format!("{metric}: {zeros}, so that there is no ratio."),
            (None, None) => sentence(comparison, &self.plan.judgement),
        };
        said + &self.replay_gaps(&comparison.workload).unwrap_or_default()
    }

    /// Where figures of the two are zero. Files of others have no rounds, and say what is left out.
    pub(super) fn zeros(&self, comparison: &Comparison) -> Option<Zeros> {
        let Comparison { workload, metric, contender, reference, runs, .. } = comparison;
        let both = [contender, reference].map(|name| (workload.as_str(), name.as_str()));
        Zeros::of(self.records, metric, both).filter(|_| runs.is_none())
    }

    /// That no trial has such a metric, and which may be meant.
    pub(super) fn unknown_metric(&self, comparison: &Comparison) -> Option<String> {
        let of_it = |it: &&Record| it.is_measured() && it.key.workload == comparison.workload;
        let mut measured = self.records.iter().filter(of_it);
        let metric = &comparison.metric;
        let first = measured.clone().next()?;
        let names = first.samples.iter().map(|sample| sample.metric.as_str());
        let is_unknown = measured.all(|record| record.sample(metric).is_none());
        is_unknown.then(|| {
            format!("{metric}: no trial has a figure of this name; {}", meant(metric, names))
        })
    }

    /// How the contender was mounted.
    pub(super) fn mounted(&self, contender: &Contender) -> Option<&Mounted> {
        self.trials_of(contender).find_map(|record| record.mounted.as_ref())
    }

    /// What its disk said of itself.
    pub(super) fn disk(&self, contender: &Contender) -> Option<&Disk> {
        self.trials_of(contender).find_map(|record| record.disk.as_ref())
    }

    /// The driver and the model of its disks in a guest, as its first trial found them.
    pub(super) fn attached(&self, contender: &Contender) -> Option<&str> {
        let guests = self.trials_of(contender).filter_map(|record| record.guest.as_ref());
        guests.map(|guest| guest.disks.as_str()).find(|disks| !disks.is_empty())
    }

    /// The layers that it was made on, as its first trial found them.
    pub(super) fn layers(&self, contender: &Contender) -> &[String] {
        let mut its = self.trials_of(contender).map(|record| record.layers.as_slice());
        its.find(|layers| !layers.is_empty()).unwrap_or_default()
    }

    /// How what stands on it was mounted: what the kernel calls each, with its options.
    pub(super) fn above(&self, contender: &Contender) -> Vec<String> {
        let above = self.mounted(contender).map_or(&[][..], |it| &it.above);
        above.iter().map(|it| format!("{} {}", it.file_system, it.options.join(","))).collect()
    }

    /// The partition it was made on, where it was.
    pub(super) fn partition(&self, contender: &Contender) -> Option<&Partition> {
        self.trials_of(contender).find_map(|record| record.partitions.first())
    }

    /// What the kernel calls the contender's file system, where that is another name: ZFS by a
    /// daemon is `fuse.zfs`, and not what the kernel's own would be.
    pub(super) fn other_name(&self, contender: &Contender) -> Option<&str> {
        let kernels = self.mounted(contender)?.file_system.as_str();
        let typed = contender.file_system.as_str();
        (!typed.is_empty() && kernels != typed).then_some(kernels)
    }

    /// What was measured, where its name does not tell: a daemon's file system, or one whose module
    /// has a version of its own.
    pub(super) fn known_as(&self, contender: &Contender) -> Option<String> {
        let mounted = self.mounted(contender)?;
        let name = match mounted.file_system.as_str() {
            "fuse.zfs" => "ZFS (zfs-fuse)",
            "zfs" => "OpenZFS",
            other => other,
        };
        let version = mounted.version.as_ref();
        match version {
            Some(version) => Some(format!("{name} {version}")),
            None => self.other_name(contender).map(|_| name.to_string()),
        }
    }

    /// What is known of the working sets, where they say something: of a study, or of a plan that
    /// was scaled.
    pub(super) fn working_sets(&self) -> Vec<OverMemory> {
        match self.plan.study.is_some() || self.plan.scale.is_some() {
            true => self.plan.working_sets(self.run.memory_bytes),
            false => Vec::new(),
        }
    }

    /// What was left out of the run, and timed parts that a file system refused, with the reason.
    pub(super) fn left_out(&self) -> Vec<String> {
        let whole = self.run.left_out.iter();
        let mut lines: Vec<String> =
            whole.map(|LeftOut { what, name, why }| format!("{what} {name}: {why}")).collect();
        for record in self.records {
            for Refused { phase, .. } in &record.refused {
                let Key { workload, contender, .. } = &record.key;
                let part = phase.name();
                let line = format!("{workload}, {contender}: the file system has no {part}");
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }

    /// The figures were read from files of others: there is no machine, no order and no seed.
    pub(super) fn is_read(&self) -> bool {
        !self.run.read.is_empty()
    }

    /// Records of trials that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| !record.is_measured())
    }

    /// The contenders whose last trial of some workload failed.
    pub(super) fn given_up(&self) -> Vec<String> {
        let failed = |name: &str| {
            self.plan.workloads.iter().any(|workload| {
                let its = self.trials(workload).filter(|it| it.key.contender == name);
                let last = its.max_by_key(|it| (it.key.round, it.number));
                last.is_some_and(|it| !it.is_measured())
            })
        };
        let names = self.plan.contenders.iter().map(|it| &it.name);
        names.filter(|name| failed(name)).cloned().collect()
    }

    /// No round would compare the two: there were trials of one of them and none was measured, or
    /// figures are zero.
    pub(super) fn is_lost(&self, comparison: &Comparison) -> bool {
        if self.zeros(comparison).is_some() {
            return true;
        }
        let Comparison { workload, contender, reference, .. } = comparison;
        [contender, reference].into_iter().any(|name| {
            let is_its = |it: &&Record| it.key.workload == *workload && it.key.contender == *name;
            let mut its = self.records.iter().filter(is_its).peekable();
            its.peek().is_some() && its.all(|it| !it.is_measured())
        })
    }

    /// So many trials there were, and each has failed; `None` where one has not.
    pub(super) fn failed_all(&self) -> Option<usize> {
        let all = self.records.len();
        (all > 0 && self.failures().count() == all).then_some(all)
    }
}
