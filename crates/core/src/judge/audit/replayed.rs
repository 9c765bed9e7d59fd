//! ReplayGap: a replay that lacks some of what was recorded.

use crate::model::{PhaseRecord, Replayed, Severity};

use super::case::{Case, Seen, most};

/// The advice.
pub const ADVICE: &str = "record the application as root, alone in its folder and with \
                          --no-io-uring; or compare the application itself, as a command";

/// So much may be lacking without a doubt about the rest.
const SLIGHT: f64 = 0.05;

/// From here on it is another work: most calls are not made, or one file in ten is not as it was.
const VOID_CALLS: f64 = 0.5;
const VOID_FILES: f64 = 0.1;

/// What the recording left out, and files that the replay leaves unlike the application did.
pub fn gaps(case: &Case) -> Option<Seen> {
    most(case.record.phases.iter().filter_map(seen))
}

fn seen(phase: &PhaseRecord) -> Option<Seen> {
    let replayed = phase.replayed.as_ref()?;
    let missing = replayed.missing()?;
    let Replayed { calls, left_out, entries, unlike, first, .. } = replayed;
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let (of_calls, of_files) = (share(*left_out, calls + left_out), share(*unlike, *entries));
    let severity = if of_calls > VOID_CALLS || of_files > VOID_FILES {
        Severity::Void
    } else if of_calls > SLIGHT || *unlike > 0 {
        Severity::Warning
    } else {
        Severity::Note
    };
    let first = first.as_ref().map(|first| format!(": {first}")).unwrap_or_default();
    let evidence = format!("the replay {missing}{first}");
    Some(Seen { severity, figure: of_calls.max(of_files), evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::phase;
    use crate::model::Phase;

    fn told([calls, left_out, entries, unlike]: [u64; 4]) -> Option<(Severity, String)> {
        let first = (unlike > 0).then(|| "0/a is not there".to_string());
        let replayed =
            Some(Replayed { calls, left_out, entries, unlike, first, ..Replayed::default() });
        let seen = seen(&PhaseRecord { replayed, ..phase(Phase::Whole) })?;
        Some((seen.severity, seen.evidence))
    }

    #[test]
    fn what_a_replay_leaves_out_is_told_and_above_a_share_it_is_void() {
        assert_eq!(told([100, 0, 9, 0]), None);
        let (severity, evidence) = told([2, 111, 9, 0]).unwrap();
        assert_eq!(severity, Severity::Void);
        assert_eq!(evidence, "the replay lacks 111 of 113 calls");
        assert_eq!(told([99, 1, 9, 0]).unwrap().0, Severity::Note);
        assert_eq!(told([80, 20, 9, 0]).unwrap().0, Severity::Warning);
        let (severity, evidence) = told([99, 1, 100, 10]).unwrap();
        assert_eq!(severity, Severity::Warning);
        let said = "the replay lacks 1 of 100 calls and ends with 10 of 100 files unlike the \
                    application's: 0/a is not there";
        assert_eq!(evidence, said);
        assert_eq!(told([99, 0, 100, 11]).unwrap().0, Severity::Void);
    }
}
