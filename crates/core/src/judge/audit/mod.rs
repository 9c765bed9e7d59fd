//! What speaks against a measurement: those audits of docs/audits.md that follow from a plan and
//! its records.
//!
//! The audits of single trials are in [`trial`], [`queue`], [`steady`], [`foreign`], [`heat`],
//! [`cpu`], [`limits`], [`leak`], [`network`], [`outside`], [`replayed`], [`trouble`] and
//! [`figures`], and [`over_trials`] sums them up over all trials; those of the terms on which
//! contenders are compared are in [`conditions`] and [`rotation`]; those that look at all rounds in
//! [`drift`], [`order`] and [`modes`]; what the duplicate and the bare device show is in [`arms`],
//! contenders at the run's own limits in [`held`], their queues under such limits in [`depths`];
//! work that runs for a time whatever it does in [`fixed_time`]; how long the work should run in
//! [`length`]; work that reached the device of one contender and not another's in [`spared`]. Each
//! is one function.

mod arms;
pub(super) mod batches;
pub(super) mod case;
mod conditions;
mod cpu;
mod depths;
mod drift;
mod figures;
mod fixed_time;
mod foreign;
pub(super) mod guests;
mod heat;
mod held;
mod leak;
mod length;
pub(super) mod limits;
mod modes;
pub(super) mod mounted;
mod network;
mod order;
mod outside;
mod over_trials;
pub(super) mod pace;
pub(super) mod queue;
mod replayed;
mod rotation;
mod series;
mod spared;
mod steady;
pub(super) mod trial;
mod trouble;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::judge::kept::{Common, Kept};
use crate::judge::lane::Lane;
use crate::judge::shared::Shared;
use crate::judge::stopping::Rule;
use crate::judge::trials::Trials;
use crate::model::{Finding, Plan, Record, Workload};

pub use arms::DUPLICATE_ALPHA;
pub use conditions::{
    DEPTH_ADVICE, EARLY, Promise, depth_ignored_by, durability_advice, spared_by,
};
pub use trial::{CACHE_ADVICE, HARNESS_ADVICE, PROCESS_S, SYNC_ADVICE};

use conditions::Said;
use mounted::Terms;
use over_trials::OverTrials;

/// The trials of a plan, and what the audits have seen of them so far.
#[derive(Debug)]
pub struct Audited {
    trials: Trials,
    /// By the places of workload and contender in the plan.
    over_trials: BTreeMap<(usize, usize), OverTrials>,
    /// By the place of the workload: in how many trials of a round one was void by itself.
    void_rounds: Vec<BTreeMap<u32, u32>>,
    /// By the place of the contender.
    terms: Vec<Terms>,
    taken: usize,
    emulated: usize,
    user_mode: usize,
    /// By the place of the workload: the reference against its duplicate.
    duplicates: Vec<Lane>,
}

impl Audited {
    /// Before the first trial of `plan`.
    pub fn new(plan: &Plan) -> Audited {
        let workloads = plan.workloads.len();
        Audited {
            trials: Trials::default(),
            over_trials: BTreeMap::new(),
            void_rounds: vec![BTreeMap::new(); workloads],
            terms: vec![Terms::default(); plan.contenders.len()],
            taken: 0,
            emulated: 0,
            user_mode: 0,
            duplicates: (0..workloads).map(|_| Lane::default()).collect(),
        }
    }

    /// All of these.
    pub fn of(plan: &Plan, records: &[Record]) -> Audited {
        let mut audited = Audited::new(plan);
        let mut common = Common::default();
        for (at, record) in records.iter().enumerate() {
            audited.take(plan, &Rc::new(Kept::of(plan, record, at, &mut common)));
        }
        audited
    }

    /// Takes one more trial.
    pub fn take(&mut self, plan: &Plan, kept: &Rc<Kept>) {
        self.taken += 1;
        self.emulated += kept.terms.emulated;
        self.user_mode += kept.terms.user_mode;
        let before = self.trials.take(kept);
        let contender = plan.contenders.iter().position(|it| *it.name == *kept.contender);
        let Some(contender) = contender else { return };
        self.terms[contender].add(&kept.terms);
        let workload = plan.workloads.iter().position(|it| *it.name == *kept.workload);
        let Some(workload) = workload.filter(|_| kept.is_measured) else { return };
        let void_trials = self.void_rounds[workload].entry(kept.round).or_default();
        *void_trials += u32::from(kept.void().is_some());
        if let Some(before) = &before {
            *void_trials -= u32::from(before.void().is_some());
        }
        if *void_trials == 0 {
            self.void_rounds[workload].remove(&kept.round);
        }
        self.over_trials.entry((workload, contender)).or_default().take(kept, before.as_deref());
    }

    /// The trials.
    pub fn trials(&self) -> &Trials {
        &self.trials
    }

    /// How many were taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The rounds in which a trial of the workload at that place was void by itself.
    pub fn void_rounds(&self, workload: usize) -> &BTreeMap<u32, u32> {
        &self.void_rounds[workload]
    }

    /// What the records say of the terms.
    fn said(&self) -> Said<'_> {
        Said {
            of_contenders: &self.terms,
            trials: self.taken,
            emulated: self.emulated,
            user_mode: self.user_mode,
        }
    }

    /// What the audits notice of the terms on which contenders are compared.
    pub fn of_terms(&self, plan: &Plan) -> Vec<Finding> {
        let said = self.said();
        let mut findings = conditions::findings(plan, &said, &self.trials);
        findings.extend(guests::findings(plan, &said, &self.trials));
        findings
    }

    /// What each contender gives up, whatever it is compared with.
    pub fn own_terms(&self, plan: &Plan) -> Vec<(Promise, Finding)> {
        conditions::own_terms(plan, &self.terms)
    }

    /// What the audits notice that can make a workload void; `rules` are for the duplicate, by the
    /// number of metrics that share its error.
    pub fn voiding(&mut self, plan: &Plan, rules: &BTreeMap<usize, Shared>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (place, workload) in plan.workloads.iter().enumerate() {
            let spared = spared::findings(plan, workload, &self.trials);
            for (contender, it) in plan.contenders.iter().enumerate() {
                let Some(over) = self.over_trials.get(&(place, contender)) else { continue };
                let latest = self.trials.latest(&workload.name, &it.name);
                let mut of_trials = over.findings(latest, &workload.name, &it.name);
                let is_said = |finding: &Finding| {
                    let same = |it: &&Finding| it.audit == finding.audit;
                    spared.iter().filter(same).any(|it| it.contender == finding.contender)
                };
                of_trials.retain(|finding| !is_said(finding));
                findings.extend(of_trials);
            }
            findings.extend(spared);
            findings.extend(fixed_time::finding(plan, workload, &self.trials));
            let lane = &mut self.duplicates[place];
            let differs = arms::duplicate_differs(plan, workload, rules, &self.trials, lane);
            findings.extend(differs);
        }
        findings
    }

    /// What the audits notice that look at all rounds of a workload; `rule` is that of its
    /// comparisons. This reads all of its trials.
    pub fn over_rounds(&self, plan: &Plan, workload: &Workload, rule: &Rule) -> OverRounds {
        let trials = &self.trials;
        let mut findings: Vec<Finding> = drift::findings(plan, workload, trials).collect();
        findings.extend(order::findings(plan, workload, trials));
        findings.extend(modes::findings(plan, workload, trials));
        findings.extend(arms::against_the_device(plan, workload, rule, trials));
        findings.extend(held::findings(plan, workload, trials));
        findings.extend(depths::findings(plan, workload, trials));
        OverRounds { findings, length: length::finding(plan, workload, trials) }
    }
}

/// What the audits notice that look at all rounds of a workload.
#[derive(Clone, Debug, Default)]
pub struct OverRounds {
    /// What speaks against the measurement.
    pub findings: Vec<Finding>,
    /// How long the work had better run.
    pub length: Option<Finding>,
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, record};
    use super::*;
    use crate::model::{Audit, CacheState, Severity};

    const PLAN: &str = r#"
        [[contender]]
        name = "a"
        [[contender]]
        name = "b"
        [[workload]]
        name = "unpack"
        command = "tar xf source.tar"
    "#;

    /// Trials of a, with `cached_bytes` still cached after the drop.
    fn trials(cached_bytes: &[u64]) -> Vec<Record> {
        let state = |&cached_bytes_after| {
            vec![CacheState { dropped: true, cached_bytes_after, ..CacheState::default() }]
        };
        (1..)
            .zip(cached_bytes)
            .map(|(round, bytes)| Record { caches: state(bytes), ..record(round, "unpack", "a") })
            .collect()
    }

    fn seen(records: &[Record]) -> Vec<Finding> {
        let plan = plan(PLAN);
        let mut findings = Audited::of(&plan, records).voiding(&plan, &BTreeMap::new());
        findings.retain(|finding| finding.audit != Audit::A18);
        findings
    }

    #[test]
    fn most_trials_void_and_a_few_warn() {
        assert_eq!(seen(&trials(&[0, 4096, 1 << 20])), []);
        let few = seen(&trials(&[8 << 20, 8 << 20, 0, 0]));
        assert_eq!((few.len(), few[0].severity), (1, Severity::Warning));
        let most = seen(&trials(&[9 << 20, 8 << 20, 0, 7 << 20]));
        assert_eq!((most.len(), most[0].severity), (1, Severity::Void));
        assert_eq!(most[0].contender.as_deref(), Some("a"));
        assert!(most[0].evidence.ends_with("8.00 MiB cached after it; in 3 of 4 trials"));
    }

    #[test]
    fn a_trial_run_again_is_judged_by_its_later_record() {
        let again = [trials(&[8 << 20]), trials(&[0])].concat();
        let found = seen(&again);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Note));
        assert!(found[0].evidence.starts_with("round 1 was run again: "), "{found:?}");
    }

    #[test]
    fn fio_options_are_found_however_they_are_written() {
        let workload = |fio: &str| {
            plan(&PLAN.replace("command = \"tar xf source.tar\"", fio)).workloads[0].clone()
        };
        let direct = |fio: &str| workload(fio).fio_values("direct");
        let one = Some(vec!["1".to_string()]);
        assert_eq!(direct("fio = { rw = \"read\", direct = 1 }"), one);
        assert_eq!(direct("fio = { direct = true, rw = \"read\" }"), one);
        assert_eq!(direct("fio = [\"--name=x\", \"--direct\", \"1\", \"--rw=read\"]"), one);
        assert_eq!(direct("fio = [\"--direct\", \"--rw=read\"]"), one);
        assert_eq!(direct("fio = [\"--rw=read\"]"), Some(vec![]));
        assert_eq!(direct("fio = \"/srv/job.fio\""), None);
        assert_eq!(direct("command = \"true\""), None);
    }
}
