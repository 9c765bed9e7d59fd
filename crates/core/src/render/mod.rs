//! Records and verdicts as something to read: for a person at a terminal, as Markdown, as CSV and
//! JSON for programs. All of it can be remade from a run's folder.

mod audited;
mod checked;
mod csv;
mod json;
mod markdown;
mod sentence;
mod table;
mod terminal;

pub use audited::{audited, audited_json, audited_markdown};
pub use checked::{checked, checked_json};
pub use csv::samples as samples_csv;
pub use json::document as json;
pub use markdown::report as markdown;
pub use sentence::sentence;
pub use terminal::report as terminal;

use crate::model::{Beside, Comparison, Contender, Finding, Mounted, Plan, Record, Run};

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
    /// What the audits noticed.
    pub findings: &'a [Finding],
    /// What the plan's study printed, beside what was measured.
    pub published: &'a [Beside],
}

impl Report<'_> {
    /// The finished rounds.
    pub fn rounds(&self) -> u32 {
        self.records.iter().map(|record| record.key.round).max().unwrap_or(0)
    }

    /// How the contender was mounted.
    fn mounted(&self, contender: &Contender) -> Option<&Mounted> {
        let mut its = self.records.iter().filter(|it| it.key.contender == contender.name);
        its.find_map(|record| record.mounted.as_ref())
    }

    /// What the kernel calls the contender's file system, where that is another name: ZFS by a
    /// daemon is `fuse.zfs`, and not what the kernel's own would be.
    fn other_name(&self, contender: &Contender) -> Option<&str> {
        let kernels = self.mounted(contender)?.file_system.as_str();
        let typed = contender.file_system.as_str();
        (!typed.is_empty() && kernels != typed).then_some(kernels)
    }

    /// Records of trials that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| !record.is_measured())
    }
}
