//! The audits of the terms on which contenders are compared.

use std::collections::BTreeSet;

use crate::judge::stopping::FIRST_LOOK;
use crate::model::{
    Audit, Contender, Finding, Mounted, Plan, Record, Severity, Workload, is_synchronous_engine,
};

use super::{measured, options};

/// A3's evidence.
pub fn depth_ignored_by(engine: &str, depth: u32) -> String {
    format!("iodepth = {depth} with the synchronous engine {engine}: the depth is 1")
}

/// A3's advice.
pub const DEPTH_ADVICE: &str = "use ioengine = \"io_uring\" or \"libaio\" (with direct = 1), or \
                                numjobs for parallel work";

/// A19's advice for a contender that `option` spares flushes.
pub fn durability_advice(option: &str) -> String {
    format!(
        "take {option} out, or give it to all; without flushes a power cut loses what fsync \
         promised to keep"
    )
}

/// Mount options with which fsync does not flush the device's cache: ext4(5), f2fs, ZFS.
pub const WITHOUT_FLUSH: [&str; 4] =
    ["nobarrier", "barrier=0", "fsync_mode=nobarrier", "sync=disabled"];

/// What they find.
pub fn findings(plan: &Plan, records: &[Record]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = plan.workloads.iter().filter_map(depth_ignored).collect();
    findings.extend(unequal_durability(plan, records));
    findings.extend(plan.contenders.iter().filter_map(|it| options_unseen(it, records)));
    findings.extend(plan.contenders.iter().filter_map(|it| misaligned(it, records)));
    findings.extend(emulated(records));
    findings.extend(plan.contenders.iter().filter_map(|it| kernel_lacks(it, records)));
    for workload in &plan.workloads {
        let others = plan.contenders.iter().filter(|it| it.name != plan.reference());
        findings.extend(others.filter_map(|it| descriptive(plan, workload, it, records)));
    }
    findings
}

/// A3: a synchronous engine with a queue depth, which it ignores.
fn depth_ignored(workload: &Workload) -> Option<Finding> {
    let engines = workload.fio_values("ioengine")?;
    let depths = workload.fio_values("iodepth")?;
    let depth = depths.iter().filter_map(|depth| depth.parse::<u32>().ok()).max()?;
    // Of several jobs only some may be asynchronous, and the depth may be theirs.
    let synchronous = engines.iter().all(|engine| is_synchronous_engine(engine));
    // fio's own choice on Linux.
    let engine = engines.last().map_or("psync", String::as_str);
    (synchronous && depth > 1).then(|| Finding {
        audit: Audit::A3,
        severity: Severity::Warning,
        workload: Some(workload.name.clone()),
        contender: None,
        evidence: depth_ignored_by(engine, depth),
        advice: DEPTH_ADVICE.into(),
    })
}

/// A18: too few rounds for an interval.
fn descriptive(
    plan: &Plan,
    workload: &Workload,
    contender: &Contender,
    records: &[Record],
) -> Option<Finding> {
    let reference = plan.reference();
    let references = measured(records, &workload.name, reference);
    let rounds = measured(records, &workload.name, &contender.name);
    let both = rounds.keys().filter(|round| references.contains_key(round)).count();
    // Of none at all the verdict's own sentence speaks.
    (1..FIRST_LOOK as usize).contains(&both).then(|| Finding {
        audit: Audit::A18,
        severity: Severity::Warning,
        workload: Some(workload.name.clone()),
        contender: Some(contender.name.clone()),
        evidence: format!(
            "{both} {} both {} and {reference}: the figures describe, they decide nothing",
            if both == 1 { "round holds" } else { "rounds hold" },
            contender.name
        ),
        advice: format!("run {FIRST_LOOK} rounds or more"),
    })
}

/// A19: some contenders are spared the flushes that the others pay for.
fn unequal_durability(plan: &Plan, records: &[Record]) -> Vec<Finding> {
    let found: Vec<_> = plan.contenders.iter().map(|it| (it, without_flush(it, records))).collect();
    let Some((flushing, _)) = found.iter().find(|(_, option)| option.is_none()) else {
        return Vec::new();
    };
    let finding = |(contender, option): &(&Contender, Option<String>)| {
        let option = option.as_ref()?;
        Some(Finding {
            audit: Audit::A19,
            severity: Severity::Warning,
            workload: None,
            contender: Some(contender.name.clone()),
            evidence: format!(
                "mounted with {option}: fsync does not flush the device's cache, as it does for {}",
                flushing.name
            ),
            advice: durability_advice(option),
        })
    };
    found.iter().filter_map(finding).collect()
}

/// The mount option by which the contender's fsync does not flush the device's cache, if any.
pub(in crate::judge) fn without_flush(contender: &Contender, records: &[Record]) -> Option<String> {
    let mounts = of(contender, records).flat_map(|mounted| &mounted.options);
    let mut all = options(contender).chain(mounts.map(String::as_str));
    all.find(|option| WITHOUT_FLUSH.contains(option)).map(String::from)
}

/// A19: mount options that the kernel does not show: defaults, or ignored.
fn options_unseen(contender: &Contender, records: &[Record]) -> Option<Finding> {
    let unseen: BTreeSet<&str> =
        of(contender, records).flat_map(|mounted| &mounted.unseen).map(String::as_str).collect();
    let unseen = Vec::from_iter(unseen).join(", ");
    (!unseen.is_empty()).then(|| Finding {
        audit: Audit::A19,
        severity: Severity::Note,
        workload: None,
        contender: Some(contender.name.clone()),
        evidence: format!("asked for, and not shown by the kernel: {unseen}"),
        advice: "make sure that each is a default of this file system; any other was ignored"
            .into(),
    })
}

/// A19: a partition whose start does not suit the device.
fn misaligned(contender: &Contender, records: &[Record]) -> Option<Finding> {
    let its = records.iter().filter(|record| record.key.contender == contender.name);
    let mut partitions = its.flat_map(|record| &record.partitions);
    let (partition, cost) = partitions.find_map(|it| Some((it, it.misaligned()?)))?;
    Some(Finding {
        audit: Audit::A19,
        severity: Severity::Note,
        workload: None,
        contender: Some(contender.name.clone()),
        evidence: format!(
            "its partition begins at {} B, no multiple of 1 MiB: {cost}",
            partition.start_bytes
        ),
        advice: "let it begin at 1MiB, unless this is what is compared".into(),
    })
}

/// A22: the processor was emulated, so that its work costs many times what it costs elsewhere,
/// and not the same multiple for every instruction.
fn emulated(records: &[Record]) -> Option<Finding> {
    let guests = records.iter().filter_map(|record| record.guest.as_ref());
    let count = guests.filter(|guest| guest.emulated).count();
    (count > 0).then(|| Finding {
        audit: Audit::A22,
        severity: Severity::Note,
        workload: None,
        contender: None,
        evidence: format!("{count} of {} trials ran on an emulated processor (TCG)", records.len()),
        advice: "read times and rates as those of this emulation, in which the processor's work \
                 takes far longer and the disk's does not; counts, bytes, flushes and their order \
                 hold. Times need KVM: fsverdict doctor"
            .into(),
    })
}

/// A23: what the contender's kernel can't tell.
fn kernel_lacks(contender: &Contender, records: &[Record]) -> Option<Finding> {
    let of_it = |record: &&Record| record.key.contender == contender.name;
    let mut guests = records.iter().filter(of_it).filter_map(|record| record.guest.as_ref());
    let guest = guests.find(|guest| !guest.lacks.is_empty())?;
    Some(Finding {
        audit: Audit::A23,
        severity: Severity::Note,
        workload: None,
        contender: Some(contender.name.clone()),
        evidence: format!("Linux {}: {}", guest.kernel, guest.lacks.join("; ")),
        advice: "what is lacking is not compared: between kernels, look only at what all have"
            .into(),
    })
}

/// How the trials of a contender were mounted.
fn of<'a>(contender: &'a Contender, records: &'a [Record]) -> impl Iterator<Item = &'a Mounted> {
    let of_it = records.iter().filter(|record| record.key.contender == contender.name);
    of_it.filter_map(|record| record.mounted.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{plan, record};
    use crate::model::{Guest, Partition};

    fn with(workload: &str, mount: &str) -> Plan {
        plan(&format!(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\nmount = [{mount}]\n\
             [[workload]]\nname = \"w\"\n{workload}"
        ))
    }

    /// Rounds of both, enough for an interval.
    fn rounds(rounds: u32) -> Vec<Record> {
        (1..=rounds).flat_map(|n| [record(n, "w", "a"), record(n, "w", "b")]).collect()
    }

    fn fio(options: &str) -> Vec<Finding> {
        findings(&with(&format!("fio = {{ {options} }}"), ""), &rounds(4))
    }

    #[test]
    fn an_emulated_processor_and_a_kernel_that_tells_less_are_noted() {
        let guest = |emulated, lacks: &[&str]| Guest {
            kernel: "3.2.0".into(),
            emulated,
            lacks: lacks.iter().map(ToString::to_string).collect(),
            ..Guest::default()
        };
        let with_guest = |guest: Guest| {
            let guest = Some(guest);
            let records: Vec<Record> =
                rounds(4).into_iter().map(|it| Record { guest: guest.clone(), ..it }).collect();
            findings(&with("command = \"true\"", ""), &records)
        };
        assert_eq!(with_guest(guest(false, &[])), []);
        let found = with_guest(guest(true, &[]));
        assert_eq!((found.len(), found[0].audit), (1, Audit::A22));
        assert_eq!(found[0].evidence, "8 of 8 trials ran on an emulated processor (TCG)");
        let found = with_guest(guest(false, &["no pressure", "no flushes"]));
        assert_eq!((found.len(), found[1].audit), (2, Audit::A23));
        assert_eq!(found[1].contender.as_deref(), Some("b"));
        assert_eq!(found[1].evidence, "Linux 3.2.0: no pressure; no flushes");
    }

    #[test]
    fn a_depth_needs_an_asynchronous_engine() {
        let found = fio("rw = \"read\", iodepth = 32");
        assert_eq!((found.len(), found[0].audit), (1, Audit::A3));
        assert_eq!(
            found[0].evidence,
            "iodepth = 32 with the synchronous engine psync: the depth is 1"
        );
        assert_eq!(fio("iodepth = 8, ioengine = \"pvsync2\"").len(), 1);
        assert_eq!(fio("iodepth = 8, ioengine = \"libaio\""), []);
        assert_eq!(fio("iodepth = 1, ioengine = \"sync\""), []);
        assert_eq!(fio("ioengine = \"sync\""), []);
        let mixed = "fio = [\"--name=x\", \"--ioengine=psync\", \"--name=y\", \
                     \"--ioengine=io_uring\", \"--iodepth=16\"]";
        assert_eq!(findings(&with(mixed, ""), &rounds(4)), []);
        assert_eq!(findings(&with("fio = \"/srv/job.fio\"", ""), &rounds(4)), []);
    }

    #[test]
    fn fewer_than_four_rounds_are_descriptive() {
        let plan = with("command = \"true\"", "");
        assert_eq!(findings(&plan, &rounds(4)), []);
        let mut lame = rounds(4);
        lame.pop();
        let found = findings(&plan, &lame);
        assert_eq!((found.len(), found[0].audit), (1, Audit::A18));
        assert!(found[0].evidence.starts_with("3 rounds hold both b and a"));
    }

    #[test]
    fn contenders_must_be_durable_alike() {
        let command = "command = \"true\"";
        let unequal = findings(&with(command, "\"noatime,barrier=0\""), &rounds(4));
        assert_eq!((unequal.len(), unequal[0].audit), (1, Audit::A19));
        assert_eq!(unequal[0].contender.as_deref(), Some("b"));
        assert!(unequal[0].evidence.contains("barrier=0") && unequal[0].evidence.contains("for a"));
        assert_eq!(findings(&with(command, "\"barrier=1\""), &rounds(4)), []);

        let mut all = rounds(4);
        for record in &mut all {
            let options = vec!["rw".into(), "nobarrier".into()];
            record.mounted = Some(Mounted { options, ..Mounted::default() });
        }
        assert_eq!(findings(&with(command, ""), &all), [], "what all do is no unequal term");
    }

    #[test]
    fn a_misaligned_partition_is_noted_once() {
        let mut records = rounds(4);
        for record in &mut records {
            let start_bytes = if record.key.contender == "b" { 2049 * 512 } else { 2048 * 512 };
            record.partitions = vec![Partition { start_bytes, ..Partition::default() }];
        }
        let found = findings(&with("command = \"true\"", ""), &records);
        assert_eq!((found.len(), found[0].contender.as_deref()), (1, Some("b")));
        assert!(found[0].evidence.contains("begins at 1049088 B"), "{}", found[0].evidence);
    }

    #[test]
    fn options_that_the_kernel_does_not_show_are_named_once() {
        let mut records = rounds(4);
        for record in records.iter_mut().filter(|record| record.key.contender == "b") {
            let unseen = vec!["logbufs=8".into()];
            record.mounted = Some(Mounted { unseen, ..Mounted::default() });
        }
        let found = findings(&with("command = \"true\"", "\"logbufs=8\""), &records);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Note));
        assert!(found[0].evidence.ends_with("logbufs=8"));
    }
}
