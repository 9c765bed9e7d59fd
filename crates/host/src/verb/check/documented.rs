//! What can't be measured in a second: what an option gives up according to the file system's own
//! documentation.
//!
//! Flushes, discards and access times are measured (`mounting`); this is for what shows only after
//! a crash, on a broken disk, or in years, and for what can't be tried on this machine.

use fsverdict_core::model::{Checked, GivenUp, Judged, Loses};

/// How often a journal is written without `commit=`, in seconds: ext4(5), btrfs(5).
const COMMITS: [(&str, u64); 2] = [("ext", 5), ("btrfs", 30)];

/// Makes a finding of something that works, or that can't be tried here, what its documentation
/// says it is.
pub fn judge(found: &mut Checked, file_system: &str, option: Option<&str>) {
    if !matches!(found.state, Judged::Ok | Judged::Doubtful | Judged::NotTried) {
        return;
    }
    let option = option.unwrap_or("");
    let known =
        GivenUp::by(file_system, option).or_else(|| GivenUp::by(file_system, &found.setting));
    known.into_iter().for_each(|it| say(found, it));
    let seconds = option.strip_prefix("commit=").and_then(|text| text.parse::<u64>().ok());
    let row = COMMITS.iter().find(|(kind, _)| file_system.starts_with(kind));
    if let (Some(seconds), Some((_, usual))) = (seconds, row)
        && seconds > *usual
    {
        found.state = Judged::Doubtful;
        found.advice = Some(format!(
            "what was written in the last {seconds} seconds and not synced is lost in a crash: \
             {usual} without it ({file_system}(5), commit)"
        ));
    }
}

fn say(found: &mut Checked, given_up: &GivenUp) {
    found.state = match given_up.loses {
        Loses::InYears => Judged::Doubtful,
        _ => Judged::Unsafe,
    };
    found.advice = Some(format!("{} ({})", given_up.what, given_up.source));
}

/// Judges a queue's setting, if it was taken, by what the documentation says of it.
pub fn judge_queue(found: &mut Checked) {
    let known = GivenUp::by_queue(&found.setting).filter(|_| found.state == Judged::Ok);
    known.into_iter().for_each(|it| say(found, it));
}

/// What the documentation says of features that are there no longer, whichever option took them.
pub fn judge_lost(found: &mut Checked, file_system: &str, lost: &[String]) {
    for feature in lost {
        judge(found, file_system, Some(&format!("^{feature}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::check::blank;

    fn state(file_system: &str, setting: &str, option: &str, state: Judged) -> Judged {
        let mut found = Checked { setting: setting.into(), state, ..blank(1, "") };
        judge(&mut found, file_system, Some(option));
        found.state
    }

    #[test]
    fn a_queue_without_flushes_is_unsafe_also_where_none_could_be_counted() {
        for (setting, state) in [
            ("write_cache = write through", Judged::Unsafe),
            ("write_cache = write back", Judged::Ok),
            ("scheduler = none", Judged::Ok),
        ] {
            let mut found = Checked { setting: setting.into(), state: Judged::Ok, ..blank(1, "") };
            judge_queue(&mut found);
            assert_eq!(found.state, state, "{setting}");
        }
    }

    #[test]
    fn what_is_given_up_is_told_of_what_works_and_of_what_could_not_be_tried() {
        use Judged::{Doubtful, Invalid, NotTried, Ok, Unsafe};
        for (file_system, setting, before, after) in [
            ("ext4", "norecovery", Ok, Unsafe),
            ("ext4", "barrier=0", NotTried, Unsafe),
            ("btrfs", "raid6", Ok, Unsafe),
            ("btrfs", "raid5", Doubtful, Unsafe),
            ("zfs", "sync=disabled", NotTried, Unsafe),
            ("zfs", "sync=always", NotTried, NotTried),
            ("ext4", "-I 128", Ok, Doubtful),
            ("ext4", "-I 256", Ok, Ok),
            ("ext4", "commit=5", Ok, Ok),
            ("ext4", "commit=60", Ok, Doubtful),
            ("btrfs", "commit=30", Ok, Ok),
            ("xfs", "crc=0", Invalid, Invalid),
        ] {
            assert_eq!(state(file_system, setting, setting, before), after, "{setting}");
        }
    }
}
