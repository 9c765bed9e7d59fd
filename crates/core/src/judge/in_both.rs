//! Which figures both runs have, and which can't be compared: what the baseline judged and the run
//! lacks is lost, and a gate has to know.

use std::collections::BTreeSet;

use super::compare::voids;
use super::pairs::pairs;
use super::terms::{self, Side};
use crate::model::{Finding, Incomparable, NotCompared, Plan, Term, Workload, Zeros, meant};

/// One comparison that can be made.
pub struct Task<'a> {
    pub workload: &'a Workload,
    pub metric: String,
    pub contender: &'a str,
}

/// Two runs; the second is judged as the first one's plan declares.
pub struct Both<'a> {
    pub baseline: Side<'a>,
    pub run: Side<'a>,
    /// The run's plan as it was written.
    pub own: &'a Plan,
    /// What is asked for; what the baseline judges where there is none.
    pub metrics: &'a [String],
    /// What voids the baseline.
    pub noticed: &'a [Finding],
}

/// Refuses metrics that no run has: mistyped ones would be left out.
pub fn known(runs: &[Side], metrics: &[String]) -> Result<(), Incomparable> {
    let records = runs.iter().flat_map(|it| it.records);
    let known: BTreeSet<&str> = match metrics {
        [] => return Ok(()),
        _ => records.flat_map(|it| &it.samples).map(|it| it.metric.as_str()).collect(),
    };
    match metrics.iter().find(|it| !known.contains(it.as_str())) {
        None => Ok(()),
        Some(metric) => {
            let meant = meant(metric, known.iter().copied());
            Err(Incomparable::Metric { metric: metric.clone(), meant })
        }
    }
}

impl<'a> Both<'a> {
    /// What can be compared, in the order of the run's plan, and what can't.
    pub fn tasks(&self) -> (Vec<Task<'a>>, Vec<NotCompared>) {
        let Both { baseline, run, .. } = *self;
        let (mut tasks, mut left_out) = (Vec::new(), Vec::new());
        for workload in &run.plan.workloads {
            if let Some(why) = other_work(baseline.plan, workload) {
                left_out.push(self.left(workload, None, None, why));
                continue;
            }
            let metrics = self.metrics_of(workload);
            for name in self.others(run.plan) {
                if baseline.plan.contender(name).is_none() {
                    let why = "the baseline does not hold it".into();
                    left_out.push(self.left(workload, Some(name), None, why));
                    continue;
                }
                for metric in &metrics {
                    match self.missing(workload, metric, name) {
                        Some(why) => {
                            left_out.push(self.left(workload, Some(name), Some(metric), why));
                        }
                        None => {
                            let (metric, contender) = (metric.clone(), name);
                            tasks.push(Task { workload, metric, contender });
                        }
                    }
                }
            }
            let gone = self.others(baseline.plan);
            for name in gone.filter(|name| run.plan.contender(name).is_none()) {
                let why = "the run does not hold it".into();
                left_out.push(self.left(workload, Some(name), None, why));
            }
            for metric in self.judged_by_the_run_alone(workload) {
                let why = "the baseline does not judge it; --metric compares it".into();
                left_out.push(self.left(workload, None, Some(&metric), why));
            }
        }
        let is_gone = |it: &&Workload| work_of(run.plan, &it.name).is_none();
        for workload in baseline.plan.workloads.iter().filter(is_gone) {
            let why = "the run does not hold it".into();
            left_out.push(self.left(workload, None, None, why));
        }
        (tasks, left_out)
    }

    fn reference(&self) -> &'a str {
        self.run.plan.reference()
    }

    /// Who is compared with the reference.
    fn others<'p>(&self, plan: &'p Plan) -> impl Iterator<Item = &'p str> + use<'p, 'a> {
        let reference = self.reference();
        plan.contenders.iter().map(|it| it.name.as_str()).filter(move |name| *name != reference)
    }

    fn metrics_of(&self, workload: &Workload) -> Vec<String> {
        if self.metrics.is_empty() { workload.primary() } else { self.metrics.to_vec() }
    }

    fn judged_by_the_run_alone(&self, workload: &Workload) -> Vec<String> {
        let of_run = work_of(self.own, &workload.name).filter(|_| self.metrics.is_empty());
        let mut metrics = of_run.map_or(Vec::new(), Workload::primary);
        let before = workload.primary();
        metrics.retain(|it| !before.contains(it));
        metrics
    }

    /// Why there is no ratio of this contender in both runs, if there is none.
    fn missing(&self, workload: &Workload, metric: &str, name: &str) -> Option<String> {
        let Both { baseline, run, .. } = *self;
        let by = |side: Side| terms::cpu_by(side.records, &workload.name, metric);
        if let (Some(before), Some(now)) = (by(baseline), by(run))
            && before != now
        {
            return Some(format!("the baseline counts it by {before}, the run by {now}"));
        }
        let sides = [("baseline", baseline), ("run", run)];
        let none = |(_, side): &(&str, Side)| !self.has_ratio(*side, &workload.name, metric, name);
        let (which, side) = sides.into_iter().find(none)?;
        let both = [name, self.reference()];
        let of_both = both.map(|it| (workload.name.as_str(), it));
        Some(match Zeros::of(side.records, metric, of_both) {
            Some(zeros) => format!("there is no ratio in the {which}: {}", zeros.said(both)),
            None => format!("no round of the {which} has it for both {} and {}", both[0], both[1]),
        })
    }

    fn has_ratio(&self, side: Side, workload: &str, metric: &str, name: &str) -> bool {
        let both = [name, self.reference()];
        let of_both = both.map(|it| (workload, it));
        !pairs(side.records, workload, metric, both[0], both[1]).is_empty()
            && Zeros::of(side.records, metric, of_both).is_none()
    }

    /// What is left out, with how many figures that is.
    fn left(
        &self,
        workload: &Workload,
        contender: Option<&str>,
        metric: Option<&str>,
        why: String,
    ) -> NotCompared {
        let name = workload.name.as_str();
        let figures = |plan: &Plan| {
            let metrics = work_of(plan, name).map_or(Vec::new(), |it| self.metrics_of(it));
            let its = metrics.into_iter().filter(|it| metric.is_none_or(|metric| metric == it));
            let its: Vec<String> = its.collect();
            let names = self.others(plan).filter(|it| contender.is_none_or(|name| name == *it));
            let names: Vec<String> = names.map(String::from).collect();
            names.into_iter().flat_map(move |name| {
                its.clone().into_iter().map(move |metric| (name.clone(), metric))
            })
        };
        let was_judged = |(contender, metric): &(String, String)| {
            let both = [contender.as_str(), self.reference()];
            let is_void = self.noticed.iter().any(|it| voids(it, name, both));
            !is_void && self.has_ratio(self.baseline, name, metric, contender)
        };
        let lost = figures(self.baseline.plan).filter(was_judged).count();
        // All figures of a new contender count with it.
        let is_known = |it: &(String, String)| {
            metric.is_none() || self.baseline.plan.contender(&it.0).is_some()
        };
        let all = figures(self.own).filter(is_known).count();
        NotCompared {
            workload: name.into(),
            contender: contender.map(String::from),
            metric: metric.map(String::from),
            figures: if lost > 0 { lost } else { all.max(1) } as u32,
            lost: lost > 0,
            why,
        }
    }
}

fn work_of<'a>(plan: &'a Plan, name: &str) -> Option<&'a Workload> {
    plan.workloads.iter().find(|it| it.name == name)
}

/// Why the baseline has no such work, if it has none. The judged figures may differ.
fn other_work(baseline: &Plan, workload: &Workload) -> Option<String> {
    let Some(before) = work_of(baseline, &workload.name) else {
        return Some("the baseline does not hold it".into());
    };
    let terms = terms::of_work(&[Some(before), Some(workload)]);
    let Term { what, values, .. } = terms.into_iter().find(|it| !it.equal)?;
    let [before, now] = terms::both(values);
    Some(format!("it is other work: {what} was {before}, and is {now}"))
}
