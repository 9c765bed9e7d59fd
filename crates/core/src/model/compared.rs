//! What a plan's claims compare, where the plan has all of it.

use std::collections::BTreeSet;
use std::{fmt, mem};

use super::claim::Claim;
use super::near::meant;
use super::workload::Work;
use super::{Family, LeftOut, Plan, Workload};

/// A work, and a contender that does it, by their names.
pub type Entrant = (String, String);

/// Works that do the same with more and more operations or files, asked about with more still.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth<'a> {
    /// The works, and how many operations or files each has: more than the one before.
    pub works: Vec<(&'a Workload, u64)>,
    /// How many are asked about: more than any has.
    pub to: u64,
}

/// What a claim compares.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared<'a> {
    /// The work; of some that grow, the one that has most to do.
    pub workload: &'a Workload,
    /// The other work, or the same.
    pub than: &'a Workload,
    /// The metric's name.
    pub metric: String,
    /// The contender's name.
    pub contender: &'a str,
    /// The name of the one it is compared with, or the same.
    pub against: &'a str,
    /// The ratio is extrapolated from those of several works.
    pub growth: Option<Growth<'a>>,
}

impl Growth<'_> {
    /// Why nothing can be extrapolated from them, if so: the end of a sentence. A scale may leave
    /// the smallest as many.
    pub fn flaw(&self) -> Option<String> {
        let Growth { works, to } = self;
        let counts: Vec<f64> = works.iter().map(|(_, count)| *count as f64).collect();
        let grow = counts.is_sorted_by(|one, next| *one > 0.0 && *next >= 1.1 * one);
        match counts.last() {
            _ if counts.len() < 2 => {
                Some("extrapolates from fewer than two workloads: write more as growth".into())
            }
            _ if !grow => Some(
                "extrapolates from workloads that don't grow: put the smallest first, and make \
                 each a tenth larger at least"
                    .into(),
            ),
            Some(most) if *most >= *to as f64 => {
                let instead = "and a workload has as many: name that one as workload";
                Some(format!("is about {to}, {instead}"))
            }
            _ => None,
        }
    }
}

impl Compared<'_> {
    /// The entrants that it is about: a round has to hold them all.
    pub fn entrants(&self) -> BTreeSet<Entrant> {
        let Compared { workload, than, contender, against, growth, .. } = self;
        let both = [(*workload, *contender), (*than, *against)];
        let works = growth.iter().flat_map(|it| &it.works);
        let grown = works.flat_map(|(work, _)| [contender, against].map(|name| (*work, *name)));
        let parts = both.into_iter().chain(grown);
        parts.map(|(work, name)| (work.name.clone(), name.to_string())).collect()
    }

    /// It is no comparison that a plan with this reference judges anyway.
    pub fn is_extra(&self, reference: &str) -> bool {
        self.workload.name != self.than.name
            || self.growth.is_some()
            || !self.workload.primary().contains(&self.metric)
            || ![self.contender, self.against].contains(&reference)
    }
}

impl Workload {
    /// How many operations or files it says it has: as many as grow with it.
    fn count(&self) -> Option<u64> {
        match self.work().ok()? {
            Work::Command(_) => self.operations,
            Work::SmallFiles(files) => Some(files.count),
            Work::FsyncFiles(files) => Some(files.files.into()),
            Work::Metadata(metadata) => Some(metadata.files()),
            Work::Tree(tree) => tree.source.is_none().then_some(tree.files),
            Work::Fio(_) | Work::Sysbench(_) | Work::Replay(_) => None,
        }
    }
}

/// What a plan does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// A contender or a workload.
    pub what: &'static str,
    /// Its name in the claim.
    pub name: String,
    /// What may have been meant.
    meant: String,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unknown { what, name, meant } = self;
        write!(f, "{what} {name:?}, which is not in the plan; {meant}")
    }
}

impl Unknown {
    /// Why it could not be measured: as it was left out, if it was.
    pub fn missing(&self, left_out: &[LeftOut]) -> String {
        let Unknown { what, name, .. } = self;
        let lost = left_out.iter().find(|it| it.what == *what && it.name == *name);
        match lost {
            Some(LeftOut { why, .. }) => format!("{what} {name}: {why}"),
            None => format!("the run has no {what} {name}"),
        }
    }
}

impl Claim {
    /// What it compares, if `plan` has all of it.
    pub fn compared<'a>(&'a self, plan: &'a Plan) -> Result<Compared<'a>, Unknown> {
        let contender = known_contender(plan, self.contender.as_deref().unwrap_or_default())?;
        let against = match (self.against.as_deref(), &self.than) {
            (Some(name), _) => known_contender(plan, name)?,
            (None, Some(_)) => contender,
            (None, None) => plan.reference(),
        };
        let growth = self.growth(plan)?;
        let largest = growth.as_ref().and_then(|it| it.works.last());
        let workload = match largest {
            Some((largest, _)) => largest,
            None => known_workload(plan, self.workload.as_deref().unwrap_or_default())?,
        };
        let than = self.than.as_deref().map(|name| known_workload(plan, name)).transpose()?;
        let usual = || workload.primary().into_iter().next();
        let metric = self.metric.clone().or_else(usual).unwrap_or_default();
        let than = than.unwrap_or(workload);
        Ok(Compared { workload, than, metric, contender, against, growth })
    }

    /// The works that it extrapolates from, if it does. One that says no count has none to do.
    fn growth<'a>(&self, plan: &'a Plan) -> Result<Option<Growth<'a>>, Unknown> {
        let Some(to) = self.to else { return Ok(None) };
        let works = self.growth.iter().map(|name| {
            let work = known_workload(plan, name)?;
            Ok((work, work.count().unwrap_or(0)))
        });
        Ok(Some(Growth { works: works.collect::<Result<_, Unknown>>()?, to }))
    }

    /// What it extrapolates from is of one kind, has counts, and grows. In a plan that is `scaled`
    /// it need not: the claim is then not measurable.
    fn check_growth(&self, compared: &Compared, scaled: bool) -> Result<(), String> {
        let Some(growth) = &compared.growth else { return Ok(()) };
        let works = &growth.works;
        if self.workload.is_some() || self.than.is_some() {
            return Err("names a workload beside those of growth: leave that out".into());
        }
        if let Some((work, _)) = works.iter().find(|(_, count)| *count == 0) {
            let name = &work.name;
            return Err(format!(
                "extrapolates from {name:?}, which has no count: give a command one with \
                 operations; fio, sysbench and replays have none"
            ));
        }
        let kinds = works.iter().filter_map(|(work, _)| work.work().ok());
        let kinds: Vec<_> = kinds.map(|it| mem::discriminant(&it)).collect();
        if kinds.iter().any(|kind| *kind != kinds[0]) {
            return Err(
                "extrapolates from workloads of several kinds: name some that do the same".into()
            );
        }
        if scaled {
            return Ok(());
        }
        if let Some(flaw) = growth.flaw() {
            return Err(flaw);
        }
        let metrics = |work: &Workload| self.metric.is_none().then(|| work.primary());
        match works.iter().any(|(work, _)| metrics(work) != metrics(compared.workload)) {
            true => Err("extrapolates from workloads with other metrics: write a metric".into()),
            false => Ok(()),
        }
    }

    /// What is wrong with it in `plan`: the end of a sentence.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), String> {
        if self.text.trim().is_empty() {
            return Err("has no text".into());
        }
        if self.not_measurable.is_some() {
            return Ok(());
        }
        self.check_size()?;
        if self.growth.is_empty() != self.to.is_none() {
            return Err(
                "has one of growth and to: write both, the workloads it extrapolates from \
                        and the number it is about"
                    .into(),
            );
        }
        let compared = self.compared(plan).map_err(|unknown| format!("names {unknown}"))?;
        self.check_growth(&compared, plan.scale.is_some())?;
        let Compared { workload, than, contender, against, .. } = compared;
        if (&workload.name, contender) == (&than.name, against) {
            return Err(format!("compares {contender:?} with itself: name another as against"));
        }
        let primary = workload.primary();
        if self.metric.is_none() && primary.len() > 1 {
            return Err(format!("names no metric: write one of {}", primary.join(", ")));
        }
        Ok(())
    }
}

fn known_contender<'a>(plan: &'a Plan, name: &str) -> Result<&'a str, Unknown> {
    let names = plan.contenders.iter().map(|it| it.name.as_str());
    let known = names.clone().find(|it| *it == name);
    let meant = || meant(name, names);
    known.ok_or_else(|| Unknown { what: "contender", name: name.into(), meant: meant() })
}

fn known_workload<'a>(plan: &'a Plan, name: &str) -> Result<&'a Workload, Unknown> {
    let names = plan.workloads.iter().map(|it| it.name.as_str());
    let known = plan.workloads.iter().find(|it| it.name == name);
    let meant = || meant(name, names);
    known.ok_or_else(|| Unknown { what: "workload", name: name.into(), meant: meant() })
}

impl Plan {
    /// Every claim can be answered by what the plan measures, or says why not.
    pub(super) fn check_claims(&self) -> Result<(), String> {
        for claim in &self.claims {
            claim.check(self).map_err(|wrong| format!("claim {:?} {wrong}", claim.text))?;
        }
        Ok(())
    }

    /// Names in each claim the contender it compares with. A claim against today's reference is
    /// none against another that takes its place.
    pub fn name_references(&mut self) {
        if self.contenders.is_empty() {
            return;
        }
        let reference = self.reference().to_string();
        for claim in self.claims.iter_mut().filter(|it| it.than.is_none()) {
            claim.against.get_or_insert_with(|| reference.clone());
        }
    }

    /// The jobs of a fio work, which fio tells when it is run, as `run` has them.
    pub fn take_jobs(&mut self, run: &Plan) {
        for workload in &mut self.workloads {
            let its = run.workloads.iter().find(|it| it.name == workload.name);
            workload.jobs = its.map_or_else(|| workload.jobs.take(), |it| it.jobs.clone());
        }
    }

    /// Names in each claim the metric that it is about. A claim without one means the metric that
    /// its own plan judges by, and another plan may judge by another.
    pub fn name_metrics(&mut self) {
        let metric = |claim: &Claim| Some(claim.compared(self).ok()?.metric);
        let metrics: Vec<Option<String>> = self.claims.iter().map(metric).collect();
        for (claim, metric) in self.claims.iter_mut().zip(metrics) {
            if claim.not_measurable.is_none() && claim.metric.is_none() {
                claim.metric = metric;
            }
        }
    }

    /// What those claims compare whose workloads and contenders are all there.
    fn claims_compared(&self) -> impl Iterator<Item = Compared<'_>> {
        let asked = self.claims.iter().filter(|it| it.not_measurable.is_none());
        asked.filter_map(|it| it.compared(self).ok())
    }

    /// The metrics of the workload of that name that something is claimed of.
    pub fn claimed_metrics(&self, workload: &str) -> BTreeSet<String> {
        let is_its = |it: &Compared| it.entrants().iter().any(|(work, _)| work == workload);
        let its = self.claims_compared().filter(is_its);
        its.map(|it| it.metric).collect()
    }

    /// How many claims that no verdict compares share the error with those of that workload.
    pub fn claims_sharing(&self, workload: &str) -> usize {
        let extra = self.claims_compared().filter(|it| it.is_extra(self.reference()));
        match self.judgement.family {
            Family::Run => extra.count(),
            Family::Workload => extra.filter(|it| it.workload.name == workload).count(),
        }
    }

    /// Claims about something that the plan does not have, or no longer has, can't be measured.
    pub fn give_up_claims(&mut self, left_out: &[LeftOut]) {
        let unmet = |claim: &Claim| claim.compared(self).err().map(|it| it.missing(left_out));
        let missing: Vec<Option<String>> = self.claims.iter().map(unmet).collect();
        for (claim, missing) in self.claims.iter_mut().zip(missing) {
            if claim.not_measurable.is_none() {
                claim.not_measurable = missing;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Jobs;

    const PLAN: &str = "[[contender]]\nname = \"ext4\"\n[[contender]]\nname = \"xfs\"\n\
                        [[workload]]\nname = \"w\"\ncommand = \"true\"\n";

    fn checked(claim: &str) -> Result<Plan, String> {
        let text = format!("{PLAN}[[claim]]\ntext = \"it is so\"\n{claim}\n");
        Plan::parse(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_claim_names_what_the_plan_has_and_one_size() {
        let plan = checked("contender = \"xfs\"\nworkload = \"w\"\nat_least = 0.98").unwrap();
        let again = Plan::parse(&toml::to_string(&plan).unwrap()).unwrap();
        assert_eq!(plan, again);
        let wrong = |claim: &str| checked(claim).unwrap_err();
        let of = |rest: &str| wrong(&format!("contender = \"xfs\"\nworkload = \"w\"\n{rest}"));
        let names = |claim: &str| wrong(&format!("is = \"better\"\n{claim}"));
        assert_eq!(
            names("contender = \"xfz\"\nworkload = \"w\""),
            "claim \"it is so\" names contender \"xfz\", which is not in the plan; did you mean \
             xfs?"
        );
        let unknown = "workload \"v\", which is not in the plan; did you mean w?";
        assert!(names("contender = \"xfs\"\nworkload = \"v\"").ends_with(unknown));
        let than = "contender = \"xfs\"\nworkload = \"w\"\nthan = \"w\"";
        assert!(names(than).contains("compares \"xfs\" with itself"));
        assert!(names("contender = \"ext4\"\nworkload = \"w\"").contains("with itself"));
        assert!(of("").contains("must say once how"));
        assert!(of("is = \"better\"\ntimes = 2").contains("must say once how"));
        assert!(of("times = -2").contains("ratios are above 0"));
        assert!(of("at_least = inf").contains("ratios are above 0"));
        assert!(of("times = [2, 1.5]").contains("above its greatest"));
        assert!(of("is = \"faster\"").contains("unknown variant"));
        checked("not_measurable = \"nothing here does so\"").unwrap();
    }

    #[test]
    fn a_claim_about_several_jobs_is_about_the_first_as_the_run_has_them() {
        let mut plan = checked("contender = \"xfs\"\nworkload = \"w\"\nat_least = 0.98").unwrap();
        let work = &mut plan.workloads[0];
        (work.command, work.fio) = (None, Some(toml::from_str("job = \"[a]\\n[b]\"").unwrap()));
        let mut run = plan.clone();
        let jobs = Jobs { names: vec!["a".into(), "b".into()], together: false };
        run.workloads[0].jobs = Some(jobs.clone());
        plan.take_jobs(&run);
        plan.name_metrics();
        assert_eq!(plan.workloads[0].jobs, Some(jobs));
        assert_eq!(plan.claims[0].metric.as_deref(), Some("a_iops"));
    }

    #[test]
    fn a_claim_names_the_metric_of_its_own_plan() {
        let mut plan = checked("contender = \"xfs\"\nworkload = \"w\"\nat_least = 0.98").unwrap();
        plan.name_metrics();
        assert_eq!(plan.claims[0].metric.as_deref(), Some("wall_time"));
        plan.workloads[0].primary = vec!["cpu_time".into()];
        plan.name_metrics();
        assert_eq!(plan.claims[0].metric.as_deref(), Some("wall_time"));
        (plan.claims[0].metric, plan.claims[0].workload) = (None, Some("v".into()));
        plan.name_metrics();
        assert_eq!(plan.claims[0].metric, None, "of what is not there nothing is known");
    }

    #[test]
    fn a_claim_extrapolates_from_works_that_grow() {
        let work = "[[workload]]\nname = \"v\"\ncommand = \"true\"\noperations = 10\n\
                    [[workload]]\nname = \"t\"\ncommand = \"false\"\noperations = 100\n\
                    [[workload]]\nname = \"p\"\ncommand = \"true\"\noperations = 200\n\
                    primary = [\"cpu_time\"]\n\
                    [[workload]]\nname = \"tree\"\ntree = { files = 100 }\n\
                    [[workload]]\nname = \"f\"\nfio = [\"--rw=read\", \"--size=4k\"]\n";
        let claim = |rest: &str| {
            let text = "text = \"so\"\ncontender = \"xfs\"\nis = \"better\"";
            let plan = format!("{PLAN}{work}[[claim]]\n{text}\n{rest}\n");
            Plan::parse(&plan).map_err(|error| error.to_string())
        };
        let plan = claim("growth = [\"v\", \"t\"]\nto = 1000\nmetric = \"cpu_time\"").unwrap();
        let compared = plan.claims[0].compared(&plan).unwrap();
        assert_eq!((compared.workload.name.as_str(), compared.against), ("t", "ext4"));
        assert_eq!(compared.entrants().len(), 4);
        assert_eq!(plan.claimed_metrics("v").len(), 1);
        assert_eq!([plan.claims_sharing("v"), plan.claims_sharing("t")], [0, 1]);
        let wrong = |rest: &str| claim(rest).unwrap_err();
        for (rest, said) in [
            ("to = 1000\nworkload = \"v\"", "has one of growth and to"),
            ("growth = [\"v\", \"t\"]\nworkload = \"v\"", "has one of growth and to"),
            ("growth = [\"v\", \"t\"]\nto = 9\nworkload = \"v\"", "beside those of growth"),
            ("growth = [\"v\", \"t\"]\nto = 9\nthan = \"v\"", "beside those of growth"),
            ("growth = [\"v\", \"x\"]\nto = 1000", "names workload \"x\""),
            ("growth = [\"w\", \"t\"]\nto = 1000", "\"w\", which has no count"),
            ("growth = [\"v\", \"f\"]\nto = 1000", "\"f\", which has no count"),
            ("growth = [\"v\"]\nto = 1000", "from fewer than two workloads"),
            ("growth = [\"t\", \"v\"]\nto = 1000", "put the smallest first"),
            ("growth = [\"v\", \"v\"]\nto = 1000", "put the smallest first"),
            ("growth = [\"v\", \"t\"]\nto = 100", "and a workload has as many"),
            ("growth = [\"v\", \"p\"]\nto = 1000", "with other metrics: write a metric"),
            ("growth = [\"v\", \"tree\"]\nto = 1000", "of several kinds"),
        ] {
            assert!(wrong(rest).contains(said), "{rest}: {}", wrong(rest));
        }
    }

    #[test]
    fn a_claim_of_what_is_gone_says_so() {
        let mut plan = checked("contender = \"xfs\"\nworkload = \"w\"\nis = \"better\"").unwrap();
        plan.give_up_claims(&[]);
        assert_eq!(plan.claims[0].not_measurable, None);
        plan.contenders.pop();
        let missing = |left_out: &[LeftOut]| {
            let mut plan = plan.clone();
            plan.give_up_claims(left_out);
            plan.check_claims().unwrap();
            plan.claims.remove(0).not_measurable.unwrap()
        };
        assert_eq!(missing(&[]), "the run has no contender xfs");
        let why = "no mkfs.xfs".into();
        let lost = LeftOut { what: "contender".into(), name: "xfs".into(), why };
        assert_eq!(missing(&[lost]), "contender xfs: no mkfs.xfs");
    }
}
