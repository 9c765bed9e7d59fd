//! What an audit noticed.

use serde::{Deserialize, Serialize};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// The verdict holds with a reservation.
    Warning,
    /// The measurement is not of the file system: the verdict is void.
    Void,
}

/// The audits, by their numbers in docs/audits.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "docs/audits.md describes them; each is documented where it is made"
)]
pub enum Audit {
    A1,
    A2,
    A3,
    A4,
    A5,
    A6,
    A7,
    A8,
    A9,
    A10,
    A11,
    A12,
    A13,
    A14,
    A15,
    A16,
    A17,
    A18,
    A19,
    A20,
    A21,
    A22,
    A23,
    A24,
    A25,
    A26,
    A27,
    A28,
    /// The disk says of itself what it is not, or the bed what the disk does not say.
    DiskFlag,
    /// The device is the limit, whichever the file system.
    DeviceBound,
    /// The depth of the work is the limit: at twice of it the bare device does more.
    DepthBound,
    /// The work runs for a time, whatever the file system does in it.
    FixedTime,
    /// How long the work had better run.
    RunLength,
    /// The link, or the processors at its ends, are the limit, whichever the file system.
    NetworkBound,
    /// Limits bound a part of what moved.
    PastLimits,
    /// A limit counted pieces that the device got as few requests.
    LimitedBios,
    /// A device was at work between its contender's turns.
    Leak,
    /// A replay lacks some of what was recorded.
    ReplayGap,
}

impl Audit {
    /// Its name, with what it is about: "A13 (others at work)".
    pub fn label(self) -> String {
        self.title().map_or(format!("{self:?}"), |about| format!("{self:?} ({about})"))
    }

    /// What it is about, in words, where its name is a number.
    pub fn title(self) -> Option<&'static str> {
        Some(match self {
            Audit::A1 => "units that do not agree",
            Audit::A2 => "requests under way",
            Audit::A3 => "a depth that is ignored",
            Audit::A4 => "a depth the device never saw",
            Audit::A5 => "a summary that contradicts itself",
            Audit::A6 => "read from memory",
            Audit::A7 => "a cold run that was not cold",
            Audit::A8 => "the device's limit",
            Audit::A9 => "writes that never reached the device",
            Audit::A10 => "the harness was measured",
            Audit::A11 => "a slowed-down machine",
            Audit::A12 => "a change over the rounds",
            Audit::A13 => "others at work",
            Audit::A14 => "the order shows",
            Audit::A15 => "the duplicate differs",
            Audit::A16 => "two modes",
            Audit::A17 => "a clock too coarse",
            Audit::A18 => "too few rounds",
            Audit::A19 => "unequal terms",
            Audit::A20 => "an fsync faster than the device",
            Audit::A21 => "memory changed sides",
            Audit::A22 => "an emulated processor",
            Audit::A23 => "a kernel that tells less",
            Audit::A24 => "no steady state",
            Audit::A25 => "files outside the work's folder",
            Audit::A26 => "errors beneath the work",
            Audit::A27 => "output that is not kept",
            Audit::A28 => "flushes that reach no disk",
            _ => return None,
        })
    }
}

/// What an audit noticed, with its evidence and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which audit.
    pub audit: Audit,
    /// How grave.
    pub severity: Severity,
    /// The workload it concerns; `None`: all.
    pub workload: Option<String>,
    /// The contender it concerns; `None`: all.
    pub contender: Option<String>,
    /// What was seen, with its figures.
    pub evidence: String,
    /// What to do about it.
    pub advice: String,
}

impl Finding {
    /// It says on which terms a contender was measured, whatever was measured: readers of its
    /// ratios have to know.
    pub fn is_of_terms(&self) -> bool {
        (self.audit, self.severity) == (Audit::A19, Severity::Warning) && self.contender.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audits_are_called_as_their_page_calls_them() {
        let page = include_str!("../../../../docs/audits.md").to_lowercase();
        let numbered = page.lines().filter_map(|line| line.strip_prefix("## a"));
        let numbered: Vec<&str> =
            numbered.filter(|line| line.starts_with(|it: char| it.is_ascii_digit())).collect();
        for heading in &numbered {
            let (number, title) = heading.split_once(' ').unwrap();
            let audit: Audit = serde_json::from_str(&format!("\"A{number}\"")).unwrap();
            assert_eq!(audit.title().map(str::to_lowercase).as_deref(), Some(title));
        }
        assert_eq!((numbered.len(), Audit::Leak.title()), (28, None));
    }
}
