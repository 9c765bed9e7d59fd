//! DiskFlag: a disk says that it rotates but answers faster than any that does, or its bed does not
//! repeat what it says; and a file system's defaults depend on that.

use super::case::options;
use super::mounted::Terms;
use crate::model::{
    Audit, BedKind, Choice, Contender, Disk, Finding, Plan, Probed, Severity, udev_rule,
};

/// What the contender chooses by that flag, unless its own options choose.
fn choice(contender: &Contender) -> Option<Choice> {
    Choice::of(&contender.file_system, options(contender))
}

/// The finding for a contender.
pub fn finding(plan: &Plan, contender: &Contender, terms: &Terms) -> Option<Finding> {
    let (disk, probed) = terms.disk.as_ref()?;
    let Choice { does, decides } = choice(contender)?;
    let reads = &probed.reads;
    let at = probed.disk.as_deref().unwrap_or("the disk beneath");
    let name = &contender.name;
    let contradicts = reads.contradict_rotation();
    let (severity, evidence, advice) = match (disk.rotational, probed.mended) {
        (true, _) if contradicts => {
            let grave = decides && !asks_for_rotation(plan);
            let severity = if grave { Severity::Warning } else { Severity::Note };
            let evidence =
                format!("the disk says that it rotates, but {reads}: the file system {does}");
            (severity, evidence, mend(plan, probed))
        }
        (false, true) if decides => {
            let evidence = format!(
                "{at} says that it rotates, but {reads}: the bed does not repeat it; on {at} \
                 itself the file system {does}"
            );
            let advice = format!("{}; to measure it as it is: --like {at}", rule(at));
            (Severity::Note, evidence, advice)
        }
        _ => return None,
    };
    let (workload, contender) = (None, Some(name.clone()));
    Some(Finding { audit: Audit::DiskFlag, severity, workload, contender, evidence, advice })
}

/// The plan names a disk that says so: it is what was asked for.
fn asks_for_rotation(plan: &Plan) -> bool {
    let like = plan.bed.like.as_deref();
    like.is_some_and(|like| Disk::named(like).is_none_or(|disk| disk.rotational))
}

/// What makes the disk say what it is.
fn mend(plan: &Plan, probed: &Probed) -> String {
    let bed_only = "give --like ssd";
    if let Some(like) = plan.bed.like.as_ref().filter(|_| asks_for_rotation(plan)) {
        return format!("--like {like} asked for it; to measure as on an SSD {bed_only}");
    }
    match (&probed.disk, plan.bed.kind) {
        (Some(disk), BedKind::Directory) => format!("{}, and mount again", rule(disk)),
        (None, BedKind::Directory) => "have its disk say what it is, and mount again".into(),
        (Some(disk), BedKind::Device) => format!("{bed_only}; for good: {}", rule(disk)),
        _ => format!("{bed_only}, unless the bed stands for a disk that says so too"),
    }
}

fn rule(disk: &str) -> String {
    format!("write {} into /etc/udev/rules.d/99-rotational.rules", udev_rule(disk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::testing::{plan, record};
    use crate::model::{Reads, Record};

    fn seen(bed: &str, rotational: bool, median_ns: u64, mended: bool) -> Vec<Finding> {
        let plan = plan(&format!(
            "[bed]\n{bed}\n[[contender]]\nname = \"ext4\"\nfile_system = \"ext4\"\n\
             [[contender]]\nname = \"btrfs\"\nfile_system = \"btrfs\"\n\
             [[contender]]\nname = \"tuned\"\nfile_system = \"btrfs\"\nmount = [\"noatime,ssd\"]\n\
             [[workload]]\nname = \"w\"\ncommand = \"true\""
        ));
        let disk = Disk { rotational, ..Disk::named("ssd").unwrap() };
        let reads = Reads { count: 64, median_ns, p90_ns: 2 * median_ns };
        let probed = Probed { reads, disk: Some("/dev/vda".into()), mended };
        let of = |name: &str| Record {
            disk: Some(disk.clone()),
            probed: Some(probed.clone()),
            ..record(1, "w", name)
        };
        let records = ["ext4", "btrfs", "tuned"].map(of);
        let mut findings = Audited::of(&plan, &records).of_terms(&plan);
        findings.retain(|it| it.audit == Audit::DiskFlag);
        findings
    }

    #[test]
    fn a_flag_that_contradicts_the_disk_is_named_with_those_that_chose_by_it() {
        let found = seen("kind = \"device\"\npath = \"/dev/vda\"", true, 97_000, false);
        let of = |name: &str| found.iter().find(|it| it.contender.as_deref() == Some(name));
        assert_eq!((found.len(), of("ext4").unwrap().severity), (2, Severity::Note));
        let btrfs = of("btrfs").unwrap();
        assert_eq!(btrfs.severity, Severity::Warning);
        assert!(btrfs.evidence.starts_with(
            "the disk says that it rotates, but random reads of 4 KiB take 97.0 µs (median of 64; "
        ));
        assert!(btrfs.advice.starts_with("give --like ssd; for good: write ACTION=="));
        assert!(btrfs.advice.contains(r#"KERNEL=="vda""#), "{}", btrfs.advice);
        assert_eq!(seen("", true, 6_000_000, false), [], "it does rotate");
        assert_eq!(seen("", false, 97_000, false), []);
    }

    #[test]
    fn what_was_asked_for_is_noted_only() {
        let found = seen("like = \"hdd\"", true, 97_000, false);
        assert!(found[0].advice.starts_with("--like hdd asked for it; to"), "{found:?}");
        assert!(found.iter().all(|it| it.severity == Severity::Note), "{found:?}");
        let found = seen("like = \"/dev/vda\"", true, 97_000, false);
        assert!(found.iter().all(|it| it.severity == Severity::Note), "{found:?}");
    }

    #[test]
    fn a_mended_bed_says_what_the_disk_itself_would_do() {
        let found = seen("", false, 97_000, true);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Note));
        assert!(found[0].evidence.contains("on /dev/vda itself the file system leaves ssd off"));
        assert!(found[0].advice.ends_with("to measure it as it is: --like /dev/vda"));
    }
}
