//! What is claimed of the contenders of a plan, as data that the judge can answer: by a study's
//! authors, or in a plan of one's own ("our change costs less than 2%").

use serde::{Deserialize, Serialize};

use super::Percent;

/// One claim. What it compares is named as the plan names it; how the two compare is said in
/// exactly one of three ways: `is`, `times`, or `at_least` and `at_most`, either or both.
///
/// Ratios are of goodness, as in every report: above 1, the contender is better than what it is
/// compared with, whether the figure is a rate or a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The sentence, in our own words.
    pub text: String,
    /// Where it stands: a table, a figure, a section.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stands: String,
    /// On what condition, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// The contender that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contender: Option<String>,
    /// The one that it is compared with; where none is named, the reference, or with `than` the
    /// contender itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// The work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The other work, where two works are compared and not two contenders at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub than: Option<String>,
    /// Instead of a work: some that do the same, the one with the fewest operations or files first.
    /// The ratio at `to` is extrapolated from theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<String>,
    /// The number of operations or files that the ratio is claimed of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// The figure; where none is named, the only one that the work is judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Which of the two is better, if that is all that is claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<Way>,
    /// The ratio: a figure, meant within the plan's margin, or its least and its greatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// The least that the ratio is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The greatest that the ratio is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Why nothing that the plan measures could answer it; the rest may then be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_measurable: Option<String>,
}

/// Which of two is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The contender.
    Better,
    /// The other.
    Worse,
    /// Neither, by more than the margin.
    Equal,
}

/// A claimed ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Times {
    /// About this.
    About(f64),
    /// From the first to the second.
    Range([f64; 2]),
}

/// The ratios that a claim allows; `high` may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claimed {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// Whether it is claimed that the contender is better, or worse: which of the two, or neither.
    pub way: Way,
}

impl Claimed {
    /// A range of ratios. One that begins or ends at 1 says nothing of a difference: "at least as
    /// good".
    fn range(low: f64, high: f64) -> Claimed {
        let way = match () {
            () if low > 1.0 => Way::Better,
            () if high < 1.0 => Way::Worse,
            () => Way::Equal,
        };
        Claimed { low, high, way }
    }

    /// The claim from the other contender's side.
    pub fn mirrored(self) -> Claimed {
        let way = match self.way {
            Way::Better => Way::Worse,
            Way::Worse => Way::Better,
            Way::Equal => Way::Equal,
        };
        Claimed { low: 1.0 / self.high, high: 1.0 / self.low, way }
    }

    /// Nothing from `low` to `high` is claimed.
    pub fn excludes(self, low: f64, high: f64) -> bool {
        high < self.low || self.high < low
    }
}

impl Claim {
    /// The ratios that it allows. The claim has been checked.
    pub fn claimed(&self, margin: Percent) -> Claimed {
        let wide = 1.0 + margin.0;
        match (self.is, self.times) {
            (Some(way @ Way::Better), _) => Claimed { low: 1.0, high: f64::INFINITY, way },
            (Some(way @ Way::Worse), _) => Claimed { low: 0.0, high: 1.0, way },
            (Some(Way::Equal), _) => Claimed::range(1.0 / wide, wide),
            (_, Some(Times::Range([low, high]))) => Claimed::range(low, high),
            // A ratio just above 1 is no claim of being worse.
            (_, Some(Times::About(ratio))) => Claimed {
                low: if ratio > 1.0 { (ratio / wide).max(1.0) } else { ratio / wide },
                high: if ratio < 1.0 { (ratio * wide).min(1.0) } else { ratio * wide },
                way: Claimed::range(ratio, ratio).way,
            },
            _ => {
                Claimed::range(self.at_least.unwrap_or(0.0), self.at_most.unwrap_or(f64::INFINITY))
            }
        }
    }

    /// Something that a plan measures can answer it.
    pub fn is_asked(&self) -> bool {
        self.not_measurable.is_none()
    }

    /// How the two compare is said, once, and can be.
    pub(super) fn check_size(&self) -> Result<(), String> {
        let bounds = [self.at_least, self.at_most];
        let is_bounded = bounds.iter().any(Option::is_some);
        let ways = [self.is.is_some(), self.times.is_some(), is_bounded];
        if ways.iter().filter(|said| **said).count() != 1 {
            return Err("must say once how the two compare: by is, by times, or by at_least, \
                        at_most or both"
                .into());
        }
        let ratios = match self.times {
            Some(Times::About(ratio)) => vec![ratio],
            Some(Times::Range(both)) => both.into(),
            None => bounds.into_iter().flatten().collect(),
        };
        match ratios.iter().find(|ratio| !(ratio.is_finite() && **ratio > 0.0)) {
            Some(ratio) => Err(format!("has a ratio of {ratio}: ratios are above 0")),
            None if ratios.windows(2).any(|it| it[0] > it[1]) => {
                Err("has a least ratio that is above its greatest".into())
            }
            None => Ok(()),
        }
    }
}

/// What the measurement says of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Every ratio of the interval is one that is claimed.
    Holds,
    /// The better one is the one that is claimed; by how much is open, or is not what is claimed.
    HoldsInDirection,
    /// No ratio of the interval is one that is claimed, or in its direction by more than the
    /// margin.
    DoesNotHold,
    /// A difference is claimed, and any that there is is smaller than the margin.
    TooSmallToMatter,
    /// The interval holds both what is claimed and what is not.
    Undecided,
    /// The measurement was not one of the file system.
    MeasuredSomethingElse,
    /// Nothing was measured that could answer it.
    NotMeasurableHere,
}

impl Answer {
    /// Every one.
    pub const ALL: [Answer; 7] = [
        Answer::Holds,
        Answer::HoldsInDirection,
        Answer::DoesNotHold,
        Answer::TooSmallToMatter,
        Answer::Undecided,
        Answer::MeasuredSomethingElse,
        Answer::NotMeasurableHere,
    ];

    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::HoldsInDirection => "holds in direction",
            Answer::DoesNotHold => "does not hold",
            Answer::TooSmallToMatter => "too small to matter",
            Answer::Undecided => "undecided",
            Answer::MeasuredSomethingElse => "measured something else",
            Answer::NotMeasurableHere => "not measurable here",
        }
    }
}

/// A claim with its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answered {
    /// The claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// The answer.
    pub answer: Answer,
    /// More rounds could change the answer: nothing is decided, or not how large the difference is.
    pub open: bool,
    /// The least and the greatest ratio that is claimed; `None` where there is none.
    pub claimed: [Option<f64>; 2],
    /// The ratio that was measured and the ends of its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<[f64; 3]>,
    /// Why, as a sentence.
    pub why: String,
    /// Of an open answer: about so many rounds more would settle it, if the ratio is the one
    /// estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_to_settle: Option<u32>,
}

impl Answered {
    /// A size is claimed, and the interval excludes it.
    pub fn excludes_its_size(&self) -> bool {
        let [low, high] = self.claimed;
        self.measured.is_some_and(|[_, least, most]| {
            low.is_some_and(|low| most < low) || high.is_some_and(|high| high < least)
        })
    }

    /// It is shown not to be so: no ratio of the interval is one that is claimed, or none that
    /// matters.
    pub fn is_refuted(&self) -> bool {
        match self.answer {
            Answer::DoesNotHold | Answer::TooSmallToMatter => true,
            Answer::HoldsInDirection => self.excludes_its_size(),
            _ => false,
        }
    }

    /// It is neither shown to be so nor refuted: open, void, or not measured.
    pub fn is_unanswered(&self) -> bool {
        self.answer != Answer::Holds && !self.is_refuted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_say_it_is_a_range_of_ratios() {
        let range = |claim: &str| {
            let claim: Claim = toml::from_str(&format!("text = \"x\"\n{claim}")).unwrap();
            let Claimed { low, high, way } = claim.claimed(Percent(0.25));
            (low, high, way)
        };
        assert_eq!(range("is = \"better\""), (1.0, f64::INFINITY, Way::Better));
        assert_eq!(range("is = \"worse\""), (0.0, 1.0, Way::Worse));
        assert_eq!(range("is = \"equal\""), (0.8, 1.25, Way::Equal));
        assert_eq!(range("times = 2"), (1.6, 2.5, Way::Better));
        assert_eq!(range("times = 1.1"), (1.0, 1.375, Way::Better));
        assert_eq!(range("times = 1"), (0.8, 1.25, Way::Equal));
        assert_eq!(range("times = [0.5, 0.9]"), (0.5, 0.9, Way::Worse));
        assert_eq!(range("at_least = 0.98"), (0.98, f64::INFINITY, Way::Equal));
        assert_eq!(range("at_least = 1"), (1.0, f64::INFINITY, Way::Equal));
        assert_eq!(range("at_most = 0.5"), (0.0, 0.5, Way::Worse));
    }
}
