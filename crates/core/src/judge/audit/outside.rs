//! A25: the work wrote, or tried to write, outside its folder.

use crate::model::{Severity, counted};

use super::case::{Case, Seen};

/// A25's advice.
pub const ADVICE: &str = "have the work write in its own folder, which is what is measured, or \
                          allow the other by --writable";

/// A25: the work has written outside its folder, into memory.
pub fn astray(case: &Case) -> Option<Seen> {
    let astray = case.record.astray.as_ref().filter(|astray| astray.files > 0)?;
    let evidence = format!(
        "the work wrote {} outside its folder, in memory, now gone: {}",
        counted(astray.files, "file"),
        listed(&astray.paths, astray.files)
    );
    Some(Seen { severity: Severity::Note, figure: astray.files as f64, evidence })
}

/// A25: the kernel has refused to write there. A file system that became read-only refuses as
/// well, and A26 says so.
pub fn forbidden(case: &Case) -> Option<Seen> {
    let forbidden = case.record.forbidden.as_ref().filter(|it| it.writes > 0)?;
    if case.record.trouble.read_only {
        return None;
    }
    let evidence = format!(
        "the kernel refused the work {} outside its folder: {} (only the first round is watched)",
        counted(forbidden.writes, "write"),
        listed(&forbidden.first, forbidden.writes)
    );
    Some(Seen { severity: Severity::Note, figure: forbidden.writes as f64, evidence })
}

fn listed(first: &[String], count: u64) -> String {
    let more = if count > first.len() as u64 { " and others" } else { "" };
    format!("{}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{plan, record};
    use crate::model::{Forbidden, Record, Trouble};

    fn seen(record: &Record) -> Option<String> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"work\"",
        );
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        forbidden(&case).map(|seen| seen.evidence)
    }

    #[test]
    fn a25_refused_writes_are_told_unless_the_file_system_refused_them() {
        assert_eq!(seen(&record(1, "w", "a")), None, "it was not looked at");
        let with = |writes| {
            let first = vec!["touch /etc/motd".into()];
            Record { forbidden: Some(Forbidden { writes, first }), ..record(1, "w", "a") }
        };
        assert_eq!(seen(&with(0)), None);
        let one = "the kernel refused the work 1 write outside its folder: touch /etc/motd (only \
                   the first round is watched)";
        assert_eq!(seen(&with(1)), Some(one.into()));
        let three = seen(&with(3)).unwrap();
        assert!(
            three.contains(" 3 writes ") && three.contains("/etc/motd and others ("),
            "{three}"
        );
        let trouble = Trouble { read_only: true, ..Trouble::default() };
        assert_eq!(seen(&Record { trouble, ..with(3) }), None);
    }
}
