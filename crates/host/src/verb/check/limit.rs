//! Limits of processes, set for a process that does nothing.

use std::fs;

use fsverdict_core::model::{Checked, Judged};
use fsverdict_core::script::{Limit, LimitBy};

use super::bench::Bench;
use super::facts::complaint;

/// Items of limits.conf(5) that the kernel holds processes to, and how much one of their unit is.
const ITEMS: [(&str, u64); 13] = [
    ("as", 1024),
    ("core", 1024),
    ("cpu", 60),
    ("data", 1024),
    ("fsize", 1024),
    ("locks", 1),
    ("memlock", 1024),
    ("msgqueue", 1),
    ("nofile", 1),
    ("nproc", 1),
    ("rss", 1024),
    ("sigpending", 1),
    ("stack", 1024),
];

/// What becomes of an unlimited `nofile`.
const MOST_FILES: &str = "taken as sysctl fs.nr_open, the maximum";

/// Whether the kernel takes the limit, as prlimit(1) sets it.
pub fn check(bench: &Bench, limit: &Limit, blank: &Checked) -> Checked {
    let setting = format!("{} {} {}", limit.kind, limit.item, limit.value);
    let blank = Checked { setting, ..blank.clone() };
    let (state, said) = tried(bench, limit);
    let too_many = state == Judged::Invalid && limit.item == "nofile" && count(limit).is_ok();
    let advice = too_many.then(|| {
        "nofile can't be above sysctl fs.nr_open (proc(5)): there pam_limits leaves the limit out, \
         or refuses the login"
            .into()
    });
    Checked { state, said: Some(said), advice, ..blank }
}

/// The count that is asked for, or none for no limit.
fn count(limit: &Limit) -> Result<Option<u64>, String> {
    match limit.value.as_str() {
        "unlimited" | "infinity" | "-1" => Ok(None),
        value if value.bytes().all(|byte| byte.is_ascii_digit()) => {
            value.parse().map(Some).map_err(|_| "it is more than the kernel can count".into())
        }
        _ => Err("it is neither a count nor infinity".into()),
    }
}

fn tried(bench: &Bench, limit: &Limit) -> (Judged, String) {
    let untried = |why: &str| (Judged::NotTried, why.to_string());
    let Some((item, unit)) = ITEMS.iter().find(|(item, _)| *item == limit.item) else {
        return untried("the kernel has no such limit: pam_limits alone would know it");
    };
    let count = match count(limit) {
        Ok(count) => count.map(|count| count.saturating_mul(*unit)),
        Err(why) => return (Judged::Invalid, why),
    };
    if limit.item == "nofile" && count.is_none() {
        // systemd.exec(5): a limit that it can't raise that far it raises as far as the kernel
        // allows (rlimit-util.c, `setrlimit_closest`). limits.conf(5) of Linux-PAM 1.5.2: "it will
        // be set to the contents of /proc/sys/fs/nr_open instead".
        match limit.by {
            LimitBy::Systemd => return (Judged::Ok, MOST_FILES.into()),
            LimitBy::Pam => return (Judged::Ok, format!("{MOST_FILES}, by Linux-PAM since 1.5.2")),
            LimitBy::Shell => {}
        }
    }
    if !bench.root {
        return untried("raising a limit needs root: run it with sudo");
    }
    let value = count.map_or("unlimited".into(), |count| count.to_string());
    let words = ["prlimit".to_string(), format!("--{item}={value}:{value}"), "true".into()];
    match bench.ask(&words, &[]) {
        Ok(answer) if answer.status.success() => (Judged::Ok, "taken by the kernel".into()),
        // A process with so little can't even start.
        Ok(answer) if answer.stderr.is_empty() => {
            (Judged::Doubtful, "taken by the kernel, but no program starts under it".into())
        }
        Ok(answer) => {
            let most = fs::read_to_string("/proc/sys/fs/nr_open").ok();
            let most = most.and_then(|text| text.trim().parse().ok());
            let said = complaint(&answer.stderr, &[]);
            (refusal(item, count, most, &said), format!("prlimit: {said:?}"))
        }
        Err(error) => untried(&error.to_string()),
    }
}

/// Without the right to raise limits (CAP_SYS_RESOURCE) a value can't be judged; but one of
/// `nofile` may be more than any process may have: `files_max` is fs.nr_open (setrlimit(2)).
fn refusal(item: &str, count: Option<u64>, files_max: Option<u64>, said: &str) -> Judged {
    let is_over = || count.is_none_or(|count| files_max.is_none_or(|most| count > most));
    let is_invalid = item == "nofile" && is_over();
    match said.contains("Operation not permitted") && !is_invalid {
        true => Judged::NotTried,
        false => Judged::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(value: &str) -> Limit {
        let (kind, item, value) = ("-".into(), "nofile".into(), value.into());
        Limit { kind, item, value, by: LimitBy::Shell }
    }

    #[test]
    fn a_limit_is_a_count_or_none() {
        assert_eq!(count(&limit("4096")), Ok(Some(4096)));
        assert_eq!(count(&limit("infinity")), Ok(None));
        for value in ["foo", "4x", "-5", "99999999999999999999"] {
            assert!(count(&limit(value)).is_err(), "{value}");
        }
    }

    #[test]
    fn a_limit_that_may_not_be_raised_is_not_invalid() {
        let denied = "failed to set the NOFILE resource limit: Operation not permitted";
        for (item, count, said, state) in [
            ("nofile", Some(100), denied, Judged::NotTried),
            ("nofile", Some(2000), denied, Judged::Invalid),
            ("nofile", None, denied, Judged::Invalid),
            ("nproc", None, denied, Judged::NotTried),
            ("nproc", Some(1), "Invalid argument", Judged::Invalid),
        ] {
            assert_eq!(refusal(item, count, Some(1000), said), state, "{item} {count:?}");
        }
    }
}
