//! stub
#![allow(missing_docs)]
use crate::model::*;
#[derive(Debug)]
pub struct Judge(Plan);
impl Judge {
    pub fn new(p: &Plan) -> Self {
        Judge(p.clone())
    }
    pub fn comparisons(&self, _: &[Record]) -> Vec<Comparison> {
        let mut v = vec![];
        for w in &self.0.workloads {
            for m in w.primary() {
                for c in &self.0.contenders {
                    if c.name != self.0.reference() {
                        v.push(Comparison {
                            workload: w.name.clone(),
                            metric: m.clone(),
                            unit: Unit::Seconds,
                            better: Better::Lower,
                            contender: c.name.clone(),
                            reference: self.0.reference().into(),
                            ratio: None,
                            low: 0.0,
                            high: None,
                            rounds: 0,
                            verdict: Verdict::Undecided,
                            median: None,
                            reference_median: None,
                            visible: None,
                            moved: false,
                        })
                    }
                }
            }
        }
        v
    }
}
pub fn findings(_: &Plan, _: &[Record]) -> Vec<Finding> {
    vec![]
}
pub fn void(_: &mut Vec<Comparison>, _: &[Finding]) {}
pub fn median(v: &[f64]) -> Option<f64> {
    v.first().copied()
}
