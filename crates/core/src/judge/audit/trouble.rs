//! A26: the kernel met errors beneath the work. A27: a command printed more than is kept.

use crate::model::{Room, Severity};

use super::case::{Case, Seen, bytes};

/// A26's advice where something was lost.
pub const LOSS_ADVICE: &str = "no figure of such a trial holds: look at the kernel's log and at \
                               the device (smartctl -a, the cable, what lies beneath an image), \
                               and repeat the run";

/// A26's advice where the kernel warned.
pub const WARNED_ADVICE: &str = "look up the kernel's message: the kernel met an unexpected \
                                 state, and may have behaved differently from then on; repeat the \
                                 run with another --kernel";

/// A26's advice where the file system was full.
pub const FULL_ADVICE: &str = "give the bed more room (--size) or the work less to do: what did \
                               not fit was not measured, and what just fitted may have been slow";

/// A27's advice.
pub const UNKEPT_ADVICE: &str = "have the command print less, or print into the file system under \
                                 test";

/// A26: requests failed on the device, or the file system gave up writing. Whatever the work made
/// of it, that is not what was to be measured.
pub fn lost(case: &Case) -> Option<Seen> {
    let trouble = Some(&case.record.trouble).filter(|trouble| trouble.is_loss())?;
    let mut told = Vec::new();
    if let Some(first) = trouble.kernel.first() {
        let more = match trouble.kernel_lines {
            1 => String::new(),
            lines => format!(", the first of {lines} such lines"),
        };
        told.push(format!("the kernel said \"{first}\"{more}"));
    }
    if trouble.errors > 0 {
        told.push(format!("the file system counted {} errors", trouble.errors));
    }
    if trouble.read_only {
        told.push("the file system had become read-only".into());
    }
    let figure = (trouble.kernel_lines + trouble.errors) as f64;
    Some(Seen { severity: Severity::Void, figure, evidence: told.join("; ") })
}

/// A26: the kernel of the trial's own machine warned of itself.
pub fn warned(case: &Case) -> Option<Seen> {
    let warnings = &case.record.trouble.warnings;
    let evidence = format!("the guest's kernel said \"{}\"", warnings.first()?);
    Some(Seen { severity: Severity::Warning, figure: warnings.len() as f64, evidence })
}

/// A26: no room was left, so that writes may have failed.
pub fn full(case: &Case) -> Option<Seen> {
    let Room { free_bytes, size_bytes, free_files } = case.record.trouble.full?;
    let (free, size) = (bytes(free_bytes), bytes(size_bytes));
    let evidence = match free_files {
        Some(0) => "after the work no file could be made any more (ENOSPC)".to_string(),
        _ => format!("after the work {free} of {size} were free: writes may have failed (ENOSPC)"),
    };
    Some(Seen { severity: Severity::Warning, figure: free_bytes as f64, evidence })
}

/// A27: not all of what commands printed is in their files.
pub fn unkept(case: &Case) -> Option<Seen> {
    let unkept = &case.record.unkept_bytes;
    let (name, most) = unkept.iter().max_by_key(|(_, bytes)| **bytes)?;
    let others = if unkept.len() > 1 { ", and of others" } else { "" };
    let evidence = format!("the last {} of raw/{name} are not kept{others}", bytes(*most));
    Some(Seen { severity: Severity::Note, figure: *most as f64, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{plan, record};
    use crate::model::{Record, Trouble};

    fn seen(test: fn(&Case) -> Option<Seen>, record: &Record) -> Option<(Severity, String)> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"work\"",
        );
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        test(&case).map(|seen| (seen.severity, seen.evidence))
    }

    fn with(trouble: Trouble) -> Record {
        Record { trouble, ..record(1, "w", "a") }
    }

    #[test]
    fn a26_what_the_file_system_lost_is_void() {
        assert_eq!(seen(lost, &with(Trouble::default())), None);
        let mut trouble = Trouble { errors: 3, read_only: true, ..Trouble::default() };
        for sector in 1..=7 {
            trouble.add(format!("I/O error, dev loop0, sector {sector}"));
        }
        assert_eq!(trouble.kernel.len(), Trouble::LINES);
        let evidence = "the kernel said \"I/O error, dev loop0, sector 1\", the first of 7 such \
                        lines; the file system counted 3 errors; the file system had become \
                        read-only";
        assert_eq!(seen(lost, &with(trouble)), Some((Severity::Void, evidence.into())));
        let read_only = Trouble { read_only: true, ..Trouble::default() };
        assert_eq!(seen(lost, &with(read_only)).unwrap().1, "the file system had become read-only");
    }

    #[test]
    fn a26_a_kernel_that_warns_of_itself_is_a_warning() {
        let mut trouble = Trouble::default();
        assert_eq!(seen(warned, &with(trouble.clone())), None);
        trouble.warn("WARNING: CPU: 0 PID: 9 at fs/x.c:1".into());
        trouble.warn("WARNING: CPU: 0 PID: 9 at fs/x.c:1".into());
        assert_eq!(trouble.warnings.len(), 1);
        assert_eq!(seen(lost, &with(trouble.clone())), None, "nothing was lost");
        let says = "the guest's kernel said \"WARNING: CPU: 0 PID: 9 at fs/x.c:1\"";
        assert_eq!(seen(warned, &with(trouble)), Some((Severity::Warning, says.into())));
    }

    #[test]
    fn a26_a_full_file_system_is_a_warning() {
        let full_of = |room: Room| {
            let trouble = Trouble { full: Some(room), ..Trouble::default() };
            assert_eq!(seen(lost, &with(trouble.clone())), None);
            seen(full, &with(trouble)).unwrap()
        };
        let room = Room { free_bytes: 4096, size_bytes: 1 << 30, free_files: Some(9) };
        let evidence = "after the work 4.00 KiB of 1.00 GiB were free: writes may have failed \
                        (ENOSPC)";
        assert_eq!(full_of(room), (Severity::Warning, evidence.into()));
        assert!(full_of(Room { free_files: Some(0), ..room }).1.contains("no file could be made"));
    }

    #[test]
    fn a27_what_is_not_kept_is_told() {
        let mut record = record(1, "w", "a");
        assert_eq!(seen(unkept, &record), None);
        record.unkept_bytes.insert("command.stdout".into(), 1 << 30);
        let evidence = "the last 1.00 GiB of raw/command.stdout are not kept";
        assert_eq!(seen(unkept, &record), Some((Severity::Note, evidence.into())));
    }
}
