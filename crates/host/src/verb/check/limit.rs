//! Limits of processes, set for a process that does nothing.

use fsverdict_core::model::{Checked, Judged};
use fsverdict_core::script::Limit;

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

/// Whether the kernel takes the limit, as prlimit(1) sets it.
pub fn check(bench: &Bench, limit: &Limit, blank: &Checked) -> Checked {
    let setting = format!("{} {} {}", limit.kind, limit.item, limit.value);
    let blank = Checked { setting, ..blank.clone() };
    let (state, said) = tried(bench, limit);
    let too_many = state == Judged::Invalid && limit.item == "nofile";
    let advice = too_many.then(|| {
        "no process may have more open files than sysctl fs.nr_open (proc(5)); pam_limits leaves \
         its session without this limit, or refuses the login"
            .into()
    });
    Checked { state, said: Some(said), advice, ..blank }
}

fn tried(bench: &Bench, limit: &Limit) -> (Judged, String) {
    let untried = |why: &str| (Judged::NotTried, why.to_string());
    let Some((item, unit)) = ITEMS.iter().find(|(item, _)| *item == limit.item) else {
        return untried("the kernel has no such limit: pam_limits alone would know it");
    };
    let value = match limit.value.parse::<u64>() {
        Ok(count) => count.saturating_mul(*unit).to_string(),
        Err(_) => "unlimited".into(),
    };
    if !bench.root {
        return untried("raising a limit needs root: run it with sudo");
    }
    let words = ["prlimit".to_string(), format!("--{item}={value}:{value}"), "true".into()];
    match bench.ask(&words) {
        Ok(answer) if answer.status.success() => (Judged::Ok, "taken by the kernel".into()),
        // A process with so little can't even start.
        Ok(answer) if answer.stderr.is_empty() => {
            (Judged::Doubtful, "taken by the kernel, but no program starts under it".into())
        }
        Ok(answer) => (Judged::Invalid, format!("prlimit: {:?}", complaint(&answer.stderr, &[]))),
        Err(error) => untried(&error.to_string()),
    }
}
