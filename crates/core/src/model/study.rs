//! A published study that a plan reproduces, and the figures it printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Better, Bytes};

/// What is known of the study besides its tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its title.
    pub title: String,
    /// The machine it was done on, in its own words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Its machine's memory, to compare with the size of what it read and wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// The working sets at full size, by workload: written down when they are scaled.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub working_sets: BTreeMap<String, Bytes>,
    /// How it was done, and where this plan does it otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// What it claims, by the part of it that claims so: in plans from before a claim was data
    /// ([`Claim`](super::claim::Claim)).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<String, String>,
}

/// One printed column of one test: a figure for each contender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The workload of this plan that repeats the test.
    pub workload: String,
    /// The column's heading, with its unit.
    pub column: String,
    /// The metric of ours that measures the same; without one the figures are only shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Which direction of the figures is better.
    pub better: Better,
    /// The figures as printed, by contender.
    pub printed: BTreeMap<String, f64>,
    /// Why they can't be compared with anything measured, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<String>,
}

impl Published {
    /// Goodness of `contender` over `reference` by the printed figures: above 1, it is better.
    pub fn ratio(&self, contender: &str, reference: &str) -> Option<f64> {
        let ratio = self.printed.get(contender)? / self.printed.get(reference)?;
        let ratio = match self.better {
            Better::Higher => ratio,
            Better::Lower => 1.0 / ratio,
        };
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }
}

/// Whether what was published is borne out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The same rank, or the published ratio lies within the interval.
    Agrees,
    /// Another rank.
    Differs,
    /// Nothing here answers it.
    NotComparable,
}

/// A published figure beside what was measured. Only rank and ratio are compared: rates of two
/// machines say nothing about each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The workload.
    pub workload: String,
    /// The printed column's heading.
    pub column: String,
    /// The contender.
    pub contender: String,
    /// The contender it is compared with.
    pub reference: String,
    /// The printed figure of the contender, and of the reference.
    pub printed: [f64; 2],
    /// The published ratio of goodness.
    pub published_ratio: f64,
    /// The measured ratio with its interval, where it was judged.
    pub measured: Option<[f64; 3]>,
    /// Whether they agree.
    pub agreement: Agreement,
    /// Why, as a sentence.
    pub sentence: String,
}
