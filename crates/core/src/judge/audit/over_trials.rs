//! The audits of single trials, summed up over all trials of one contender in one workload.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::judge::kept::Kept;
use crate::judge::middle::Middle;
use crate::model::{Finding, Severity};

use super::trial::AUDITS;

/// What has been seen in the trials so far.
#[derive(Debug, Default)]
pub struct OverTrials {
    trials: usize,
    /// By the place of the audit: the rounds in which it saw something, by the figure it saw.
    seen: BTreeMap<usize, Middle>,
    /// Void trials that were run again, by the place of their record: round, audit and evidence.
    repeated: BTreeMap<usize, Repeated>,
}

/// A trial that was void and was run again.
#[derive(Debug)]
struct Repeated {
    round: u32,
    audit: usize,
    evidence: String,
}

impl OverTrials {
    /// Takes one more trial that ran whole, and that stands for the one `before` of its round.
    pub fn take(&mut self, kept: &Kept, before: Option<&Kept>) {
        let round = kept.round;
        match before {
            None => self.trials += 1,
            Some(before) => self.supersede(before),
        }
        for (audit, seen) in &kept.seen {
            self.seen.entry(*audit).or_default().put(seen.figure, round);
        }
        let counts = self.seen.values().map(Middle::len);
        assert!(counts.max() <= Some(self.trials), "no audit sees more trials than there are");
    }

    fn supersede(&mut self, before: &Kept) {
        for (audit, seen) in &before.seen {
            if let Some(middle) = self.seen.get_mut(audit) {
                middle.remove(seen.figure, before.round);
            }
        }
        if let Some((audit, seen)) = before.void() {
            let (round, evidence) = (before.round, seen.evidence.clone());
            self.repeated.insert(before.at, Repeated { round, audit, evidence });
        }
    }

    /// One finding at most for each audit, with the trial of the median figure as its evidence,
    /// and a note on each trial that was void and was run again.
    ///
    /// It voids where more than half of the trials show it; where fewer do it is a warning: one
    /// trial out of many that went wrong widens the interval, it does not make the verdict false.
    pub fn findings(
        &self,
        latest: &BTreeMap<u32, Rc<Kept>>,
        workload: &str,
        contender: &str,
    ) -> Vec<Finding> {
        let finding = |audit: usize, severity, evidence, advice: &str| Finding {
            audit: AUDITS[audit].audit,
            severity,
            workload: Some(workload.into()),
            contender: Some(contender.into()),
            evidence,
            advice: advice.into(),
        };
        let over = |(&audit, middle): (&usize, &Middle)| {
            let trial = latest.get(&middle.tag()?)?;
            let (_, median) = trial.seen.iter().find(|(place, _)| *place == audit)?;
            let (count, all) = (middle.len(), self.trials);
            let mostly = count * 2 > all;
            let severity =
                if mostly { median.severity } else { median.severity.min(Severity::Warning) };
            let evidence = format!("{}; in {count} of {all} trials", median.evidence);
            Some(finding(audit, severity, evidence, AUDITS[audit].advice))
        };
        let mut findings: Vec<Finding> = self.seen.iter().filter_map(over).collect();
        findings.extend(self.repeated.values().map(|it| {
            let evidence = format!("round {} was run again: {}", it.round, it.evidence);
            let advice = "no action: the verdict holds with the first trials and with the later \
                          ones";
            finding(it.audit, Severity::Note, evidence, advice)
        }));
        findings
    }
}
