//! A study's claims as this project's published run has answered them: runs elsewhere are compared
//! with that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Plan;
use super::claim::{Answer, Answered};

/// What a published run of a study said, and how long it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precedent {
    /// Its folder in `record/`.
    pub run: String,
    /// The folder of the run that gave the answers, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// What its plan was multiplied by.
    pub scale: f64,
    /// Seconds that one trial of each work took there, with all its steps: the mean.
    pub trial_s: BTreeMap<String, f64>,
    /// Its answers.
    pub claims: Vec<Ruling>,
}

/// One claim's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruling {
    /// The claim's own text.
    pub text: String,
    /// The answer.
    pub answer: Answer,
    /// The ends of the interval of the ratio; `None` where there is none, and for the upper one
    /// where it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, Option<f64>)>,
    /// The folder of the run that answered this one, where the others' left it undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl Precedent {
    /// The folder in `record/` of the run that gave the answers.
    pub fn answered(&self) -> &str {
        self.answered.as_deref().unwrap_or(&self.run)
    }

    /// The ruling on that claim.
    pub fn of(&self, claim: &Answered) -> Option<&Ruling> {
        self.claims.iter().find(|it| it.text == claim.claim.text)
    }

    /// Seconds that all rounds of `plan` would take there, if a trial's time went with its size. A
    /// work that the run did not have is taken for one of its mean ones.
    pub fn seconds(&self, plan: &Plan) -> Option<f64> {
        let rounds = f64::from(plan.judgement.rounds()?);
        let mean = self.trial_s.values().sum::<f64>() / self.trial_s.len().max(1) as f64;
        let trial = |name: &String| self.trial_s.get(name).copied().unwrap_or(mean);
        let round: f64 = plan.workloads.iter().map(|it| trial(&it.name)).sum();
        let larger = plan.scale.unwrap_or(1.0) / self.scale;
        Some(round * plan.contenders.len() as f64 * rounds * larger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_with_rounds_contenders_and_scale() {
        let known = |name: &str, seconds: f64| (name.to_string(), seconds);
        let precedent = Precedent {
            run: "run".into(),
            answered: None,
            scale: 0.5,
            trial_s: [known("copy", 2.0), known("delete", 4.0)].into(),
            claims: Vec::new(),
        };
        let text = "judgement.rounds = 4\n\
                    contender = [{ name = \"ext4\" }, { name = \"xfs\" }, { name = \"btrfs\" }]\n\
                    workload = [{ name = \"copy\", command = \"cp a b\" }, \
                    { name = \"walk\", command = \"find\" }]";
        let mut plan = Plan::parse(text).unwrap();
        assert_eq!(precedent.seconds(&plan), Some((2.0 + 3.0) * 3.0 * 4.0 * 2.0));
        plan.scale = Some(0.25);
        assert_eq!(precedent.seconds(&plan), Some((2.0 + 3.0) * 3.0 * 4.0 * 0.5));
    }
}
