//! What a plan's claims compare, where the plan has all of it.

use std::collections::BTreeSet;
use std::fmt;

use super::claim::Claim;
use super::near::meant;
use super::{Family, LeftOut, Plan, Workload};

/// What a claim compares.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared<'a> {
    /// The work.
    pub workload: &'a Workload,
    /// The other work, or the same.
    pub than: &'a Workload,
    /// The metric's name.
    pub metric: String,
    /// The contender's name.
    pub contender: &'a str,
    /// The name of the one it is compared with, or the same.
    pub against: &'a str,
}

impl Compared<'_> {
    /// It is no comparison that a plan with this reference judges anyway.
    pub fn is_extra(&self, reference: &str) -> bool {
        self.workload.name != self.than.name
            || !self.workload.primary().contains(&self.metric)
            || ![self.contender, self.against].contains(&reference)
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
    pub fn lack(&self, left_out: &[LeftOut]) -> String {
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
        let workload = known_workload(plan, self.workload.as_deref().unwrap_or_default())?;
        let than = self.than.as_deref().map(|name| known_workload(plan, name)).transpose()?;
        let usual = || workload.primary().into_iter().next();
        let metric = self.metric.clone().or_else(usual).unwrap_or_default();
        Ok(Compared { workload, than: than.unwrap_or(workload), metric, contender, against })
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
        let compared = self.compared(plan).map_err(|unknown| format!("names {unknown}"))?;
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

    /// Names in each claim whom it compares with. What is claimed against today's reference is
    /// not claimed against another that takes its place.
    pub fn name_references(&mut self) {
        if self.contenders.is_empty() {
            return;
        }
        let reference = self.reference().to_string();
        for claim in self.claims.iter_mut().filter(|it| it.than.is_none()) {
            claim.against.get_or_insert_with(|| reference.clone());
        }
    }

    /// What the claims compare of which all is there.
    fn claims_compared(&self) -> impl Iterator<Item = Compared<'_>> {
        let asked = self.claims.iter().filter(|it| it.not_measurable.is_none());
        asked.filter_map(|it| it.compared(self).ok())
    }

    /// The metrics of the workload of that name that something is claimed of.
    pub fn claimed_metrics(&self, workload: &str) -> BTreeSet<String> {
        let is_its = |it: &Compared| [it.workload, it.than].iter().any(|it| it.name == workload);
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

    /// What is claimed of something that the plan has not, or no longer, can't be measured.
    pub fn give_up_claims(&mut self, left_out: &[LeftOut]) {
        let lacks = |claim: &Claim| claim.compared(self).err().map(|it| it.lack(left_out));
        let lacking: Vec<Option<String>> = self.claims.iter().map(lacks).collect();
        for (claim, lack) in self.claims.iter_mut().zip(lacking) {
            if claim.not_measurable.is_none() {
                claim.not_measurable = lack;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(of("").contains("in no way or in two"));
        assert!(of("is = \"better\"\ntimes = 2").contains("in no way or in two"));
        assert!(of("times = -2").contains("ratios are above 0"));
        assert!(of("at_least = inf").contains("ratios are above 0"));
        assert!(of("times = [2, 1.5]").contains("above its greatest"));
        assert!(of("is = \"faster\"").contains("unknown variant"));
        checked("not_measurable = \"nothing here does so\"").unwrap();
    }

    #[test]
    fn a_claim_of_what_is_gone_says_so() {
        let mut plan = checked("contender = \"xfs\"\nworkload = \"w\"\nis = \"better\"").unwrap();
        plan.give_up_claims(&[]);
        assert_eq!(plan.claims[0].not_measurable, None);
        plan.contenders.pop();
        let lack = |left_out: &[LeftOut]| {
            let mut plan = plan.clone();
            plan.give_up_claims(left_out);
            plan.check_claims().unwrap();
            plan.claims.remove(0).not_measurable.unwrap()
        };
        assert_eq!(lack(&[]), "the run has no contender xfs");
        let why = "no mkfs.xfs".into();
        let lost = LeftOut { what: "contender".into(), name: "xfs".into(), why };
        assert_eq!(lack(&[lost]), "contender xfs: no mkfs.xfs");
    }
}
