//! The audits of the terms on which contenders are compared.

use crate::judge::stopping::FIRST_LOOK;
use crate::judge::trials::Trials;
use crate::model::{
    Audit, Contender, Finding, Given, Intervals, Layer, Loses, Plan, Severity, Workload,
    is_synchronous_engine,
};

use super::mounted::{Spared, Terms, not_whole, waiting};
use super::rotation;

/// A3's evidence.
pub fn depth_ignored_by(engine: &str, depth: u32) -> String {
    format!("iodepth = {depth} with the synchronous engine {engine}: the depth is 1")
}

/// A3's advice.
pub const DEPTH_ADVICE: &str = "use ioengine = \"io_uring\" or \"libaio\" (with direct = 1), or \
                                numjobs for parallel work";

/// A19's advice for a contender from which `setting` takes what fsync has promised.
pub fn durability_advice(setting: &str) -> String {
    format!(
        "take {setting} out, or give it to all; with it a crash loses what fsync promised to keep"
    )
}

/// A19's evidence of such a contender, beside `other`.
pub fn spared_by(given: &Given, other: &str) -> String {
    format!("{}; not so with {other}", given.said())
}

/// What the records say of the terms of the contenders, in the order of the plan, and how many
/// there are.
pub struct Said<'a> {
    pub of_contenders: &'a [Terms],
    pub trials: usize,
    pub emulated: usize,
    pub user_mode: usize,
}

/// What they find.
pub fn findings(plan: &Plan, said: &Said, trials: &Trials) -> Vec<Finding> {
    let each = || plan.contenders.iter().zip(said.of_contenders);
    let mut findings: Vec<Finding> = plan.workloads.iter().filter_map(depth_ignored).collect();
    let spared = Spared::of(plan, said.of_contenders);
    findings.extend(unequal_durability(plan, said, &spared));
    findings.extend(unflushed(plan, said, &spared));
    findings.extend(early(plan, said, &spared));
    findings.extend(damaged(plan, &spared));
    findings.extend(less_redundant(plan, &spared));
    findings.extend(each().filter_map(|(it, terms)| stand_in(it, terms)));
    findings.extend(each().filter_map(|(it, terms)| options_unseen(it, terms)));
    findings.extend(each().filter_map(|(it, terms)| misaligned(it, terms)));
    findings.extend(each().filter_map(|(it, terms)| rotation::finding(plan, it, terms)));
    findings.extend(each().filter_map(|(it, terms)| kernel_silent(it, terms)));
    for workload in &plan.workloads {
        let others = plan.contenders.iter().filter(|it| it.name != plan.reference());
        findings.extend(others.filter_map(|it| descriptive(plan, workload, it, trials)));
    }
    findings
}

/// A3: a synchronous engine with a queue depth, which it ignores.
fn depth_ignored(workload: &Workload) -> Option<Finding> {
    let engines = workload.fio_values("ioengine")?;
    let depths = workload.fio_values("iodepth")?;
    let depth = depths.iter().filter_map(|depth| depth.parse::<u32>().ok()).max()?;
    // Only some of several jobs may be asynchronous, and the depth may be theirs.
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
    trials: &Trials,
) -> Option<Finding> {
    let reference = plan.reference();
    let references = trials.latest(&workload.name, reference);
    let its = trials.latest(&workload.name, &contender.name);
    if plan.judgement.interval == Intervals::Unpaired {
        return too_few_runs(workload, contender, [its.len(), references.len()], reference);
    }
    let rounds = its.keys();
    // More than are asked for need not be counted.
    let both = rounds.filter(|round| references.contains_key(round));
    let both = both.take(FIRST_LOOK as usize).count();
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

/// A18 of runs that are of no rounds.
fn too_few_runs(
    workload: &Workload,
    contender: &Contender,
    [its, references]: [usize; 2],
    reference: &str,
) -> Option<Finding> {
    let name = &contender.name;
    let few = (1..FIRST_LOOK as usize).contains(&its.min(references));
    few.then(|| Finding {
        audit: Audit::A18,
        severity: Severity::Warning,
        workload: Some(workload.name.clone()),
        contender: Some(name.clone()),
        evidence: format!(
            "runs of {name}: {its}, of {reference}: {references}; the figures describe, they \
             decide nothing"
        ),
        advice: format!("measure each {FIRST_LOOK} times or more"),
    })
}

/// A19, a warning on a contender's terms.
fn of_terms(contender: &Contender, evidence: String, advice: impl Into<String>) -> Finding {
    Finding {
        audit: Audit::A19,
        severity: Severity::Warning,
        workload: None,
        contender: Some(contender.name.clone()),
        evidence,
        advice: advice.into(),
    }
}

/// What a contender may give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// What fsync has promised.
    Synced,
    /// That a crash leaves it whole.
    Whole,
    /// That a disk may fail.
    Redundant,
    /// That it is what its name says.
    Itself,
}

/// What is said of a contender whose fsyncs don't wait for the disk.
pub const EARLY: &str = "fsync returned while the disk had requests under way: what it promised to \
                         keep may be lost with the power";

/// A19 of each contender by itself, as if others gave nothing up.
pub fn own_terms(plan: &Plan, terms: &[Terms]) -> Vec<(Promise, Finding)> {
    let spared = Spared::of(plan, terms);
    let of = |(place, contender): (usize, &Contender)| {
        let synced = spared
            .synced(place)
            .map(|given| of_terms(contender, given.said(), durability_advice(&given.setting)));
        let unflushed = || {
            let is_silent = terms[place].flushes == Some(false);
            let evidence = "no flush at fsync: what the disk's cache holds is lost with the power";
            is_silent.then(|| of_terms(contender, evidence.into(), SILENT_ADVICE))
        };
        let early = || {
            let is_early = terms[place].early(plan, contender).is_some();
            is_early.then(|| of_terms(contender, EARLY.into(), EARLY_ADVICE))
        };
        let whole = not_whole(plan, &spared, place);
        let redundant = spared.first(place, &[Loses::Disk, Loses::Copy]);
        [
            (Promise::Synced, synced.or_else(unflushed).or_else(early)),
            (Promise::Whole, whole.map(|why| of_terms(contender, why, WHOLE_ADVICE))),
            (
                Promise::Redundant,
                redundant.map(|it| of_terms(contender, it.said(), REDUNDANT_ADVICE)),
            ),
            (Promise::Itself, stand_in(contender, &terms[place])),
        ]
    };
    let all = plan.contenders.iter().enumerate().flat_map(of);
    all.filter_map(|(promise, finding)| Some((promise, finding?))).collect()
}

const SILENT_ADVICE: &str = "don't rely on its fsync or count the speed it gains, unless the \
                             disk's cache survives a power failure";
const EARLY_ADVICE: &str = "don't rely on its fsync, or count the speed it gains";
const WHOLE_ADVICE: &str = "use it only where a full check after a crash, and losing files \
                            written long before, are acceptable";
const REDUNDANT_ADVICE: &str = "don't count the speed it gains, unless losing data with a failed \
                                disk is acceptable";

/// A19: some contenders are spared what the others pay for, so that fsync keeps its promise.
fn unequal_durability(plan: &Plan, said: &Said, spared: &Spared) -> Vec<Finding> {
    let each = || plan.contenders.iter().enumerate().zip(said.of_contenders);
    // Nor does one whose fsyncs were seen to flush nothing, though no setting spares them that.
    let keeps = |((place, contender), terms): &((usize, &Contender), &Terms)| {
        let is_silent = terms.flushes == Some(false);
        spared.synced(*place).is_none() && !is_silent && terms.early(plan, contender).is_none()
    };
    let Some(((_, keeping), _)) = each().find(keeps) else {
        return Vec::new();
    };
    let finding = |((place, contender), _): ((usize, &Contender), _)| {
        let given = spared.synced(place)?;
        let evidence = spared_by(given, &keeping.name);
        Some(of_terms(contender, evidence, durability_advice(&given.setting)))
    };
    each().filter_map(finding).collect()
}

/// A19: fsyncs that send the disk no flush, as others' do, though no setting spares them that.
fn unflushed(plan: &Plan, said: &Said, spared: &Spared) -> Vec<Finding> {
    let each = || plan.contenders.iter().enumerate().zip(said.of_contenders);
    let Some(((_, flushing), _)) = each().find(|(_, terms)| terms.flushes == Some(true)) else {
        return Vec::new();
    };
    let is_silent = |((place, _), terms): &((usize, &Contender), &Terms)| {
        terms.flushes == Some(false) && spared.synced(*place).is_none()
    };
    let finding = |((_, contender), _): ((usize, &Contender), _)| {
        let evidence = format!(
            "no flush at fsync, where {} sends some: what the disk's cache holds is lost with the \
             power",
            flushing.name
        );
        of_terms(contender, evidence, SILENT_ADVICE)
    };
    each().filter(is_silent).map(finding).collect()
}

/// A19: fsyncs that return before the disk has done what they gave it, as others' don't.
fn early(plan: &Plan, said: &Said, spared: &Spared) -> Vec<Finding> {
    let finding = |place| {
        let waiting = waiting(plan, said.of_contenders, spared, place)?;
        let evidence = format!("{EARLY}; not so with {}", waiting.name);
        Some(of_terms(&plan.contenders[place], evidence, EARLY_ADVICE))
    };
    (0..plan.contenders.len()).filter_map(finding).collect()
}

/// A19: contenders that a crash can damage, against those that it leaves whole.
fn damaged(plan: &Plan, spared: &Spared) -> Vec<Finding> {
    // On bed `directory` the file system is not named, and a bare device has none.
    let is_known = |it: &Contender| !matches!(&*it.file_system, "" | Contender::RAW);
    let why: Vec<Option<String>> =
        (0..plan.contenders.len()).map(|place| not_whole(plan, spared, place)).collect();
    let each = || plan.contenders.iter().zip(&why);
    if !each().any(|(it, why)| is_known(it) && why.is_none()) {
        return Vec::new();
    }
    let finding = |(it, why): (_, &Option<String>)| Some(of_terms(it, why.clone()?, WHOLE_ADVICE));
    each().filter_map(finding).collect()
}

/// A19: what is lost with a disk, and not by others: with a cache that writes back, against all
/// without one; with a degraded RAID, against whole ones.
fn less_redundant(plan: &Plan, spared: &Spared) -> Vec<Finding> {
    let each = || plan.contenders.iter().enumerate();
    let finding = |(place, contender): (usize, &Contender)| {
        let given = spared.first(place, &[Loses::Disk, Loses::Copy])?;
        let loses = given.fact.loses;
        let is_like = |it: &Contender| {
            let is_such = |layer: &Layer| given.fact.of.contains(&layer.name.as_str());
            loses == Loses::Disk || it.layers.iter().any(is_such)
        };
        let keeps = |place| spared.first(place, &[loses]).is_none();
        let is_unequal = each().any(|(other, it)| keeps(other) && is_like(it));
        is_unequal.then(|| of_terms(contender, given.said(), REDUNDANT_ADVICE))
    };
    each().filter_map(finding).collect()
}

/// A19: another program stands in for a file system, and its name does not say so: readers take a
/// column named ZFS for OpenZFS.
fn stand_in(contender: &Contender, terms: &Terms) -> Option<Finding> {
    let is_hidden = terms.is_zfs_fuse && !contender.name.contains("fuse");
    is_hidden.then(|| Finding {
        audit: Audit::A19,
        severity: Severity::Warning,
        workload: None,
        contender: Some(contender.name.clone()),
        evidence: "zfs-fuse, an old ZFS in a daemon: no figure of it is OpenZFS's".into(),
        advice: "measure OpenZFS in a virtual machine: fsverdict kernels get 6.12 --with zfs"
            .into(),
    })
}

/// A19: mount options that the kernel does not show: defaults, or ignored.
fn options_unseen(contender: &Contender, terms: &Terms) -> Option<Finding> {
    let unseen = Vec::from_iter(terms.unseen.iter().cloned()).join(", ");
    (!unseen.is_empty()).then(|| Finding {
        audit: Audit::A19,
        severity: Severity::Note,
        workload: None,
        contender: Some(contender.name.clone()),
        evidence: format!("asked for, and not shown by the kernel: {unseen}"),
        advice: "check that each is a default of this file system; if not, it was ignored".into(),
    })
}

/// A19: a partition whose start does not suit the device.
fn misaligned(contender: &Contender, terms: &Terms) -> Option<Finding> {
    let (start_bytes, cost) = terms.misaligned?;
    Some(Finding {
        audit: Audit::A19,
        severity: Severity::Note,
        workload: None,
        contender: Some(contender.name.clone()),
        evidence: format!(
            "its partition begins at {start_bytes} B, not a multiple of 1 MiB: {cost}"
        ),
        advice: "let it begin at 1MiB, unless this is what is compared".into(),
    })
}

/// A23: what the contender's kernel can't tell.
fn kernel_silent(contender: &Contender, terms: &Terms) -> Option<Finding> {
    let (kernel, untold) = terms.untold.as_ref()?;
    Some(Finding {
        audit: Audit::A23,
        severity: Severity::Note,
        workload: None,
        contender: Some(contender.name.clone()),
        evidence: format!("Linux {kernel}: {}", untold.join("; ")),
        advice: "this is not compared: between kernels, look only at what all have".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Audited;
    use crate::judge::testing::{plan, record};
    use crate::model::{BedKind, Disk, Guest, Mounted, Partition, Record, Sample, Unit};

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

    fn findings(plan: &Plan, records: &[Record]) -> Vec<Finding> {
        let audited = Audited::of(plan, records);
        super::findings(plan, &audited.said(), audited.trials())
    }

    fn fio(options: &str) -> Vec<Finding> {
        findings(&with(&format!("fio = {{ {options} }}"), ""), &rounds(4))
    }

    #[test]
    fn a_kernel_that_tells_less_is_noted() {
        let guest = |emulated, untold: &[&str]| Guest {
            kernel: "3.2.0".into(),
            emulated,
            untold: untold.iter().map(ToString::to_string).collect(),
            ..Guest::default()
        };
        let with_guest = |guest: Guest| {
            let guest = Some(guest);
            let records: Vec<Record> =
                rounds(4).into_iter().map(|it| Record { guest: guest.clone(), ..it }).collect();
            findings(&with("command = \"true\"", ""), &records)
        };
        assert_eq!(with_guest(guest(false, &[])), []);
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
        let evidence = &unequal[0].evidence;
        assert!(evidence.starts_with("barrier=0: ") && evidence.ends_with("; not so with a"));
        assert_eq!(findings(&with(command, "\"barrier=1\""), &rounds(4)), []);

        let mut all = rounds(4);
        for record in &mut all {
            let options = vec!["rw".into(), "nobarrier".into()];
            record.mounted = Some(Mounted { options, ..Mounted::default() });
        }
        assert_eq!(findings(&with(command, ""), &all), [], "what all do is no unequal term");
    }

    #[test]
    fn an_fsync_that_flushes_nothing_is_told_where_others_flush() {
        let plan = with("fsync_files = {}", "");
        let of = |b: f64, write_cache: bool| {
            let mut all = rounds(4);
            for record in &mut all {
                let value = if record.key.contender == "b" { b } else { 2.0 };
                record.samples.push(Sample::lower("fsync_device_flushes", value, Unit::Count));
                record.disk = Some(Disk { write_cache, ..Disk::default() });
            }
            let found = findings(&plan, &all);
            found.into_iter().filter(|it| it.audit == Audit::A19).collect::<Vec<_>>()
        };
        let found = of(0.0, true);
        assert_eq!((found.len(), found[0].contender.as_deref()), (1, Some("b")));
        assert!(found[0].evidence.contains("no flush at fsync, where a sends some"));
        assert_eq!(of(1.0, true), []);
        assert_eq!(of(0.0, false), [], "there is nothing to flush");
    }

    #[test]
    fn an_fsync_that_returns_before_the_disk_is_done_is_told() {
        let found = |b: [f64; 4], words: &str| {
            let mut plan = with("fsync_files = {}", "");
            match words {
                "directory" => plan.bed.kind = BedKind::Directory,
                layers => plan.contenders[1].layers = Layer::parse_stack(layers).unwrap(),
            }
            let mut all = rounds(4);
            for record in &mut all {
                let its = b[record.key.round as usize % b.len()];
                let value = if record.key.contender == "b" { its } else { 0.0 };
                record.samples.push(Sample::lower("fsync_early_share", value, Unit::Ratio));
            }
            let found = findings(&plan, &all);
            found.into_iter().filter(|it| it.audit == Audit::A19).collect::<Vec<_>>()
        };
        let early = found([0.55, 1.0, 0.75, 1.0], "none");
        assert_eq!((early.len(), early[0].contender.as_deref()), (1, Some("b")));
        assert!(early[0].evidence.ends_with("lost with the power; not so with a"), "{early:#?}");
        assert_eq!(found([1.0; 4], "zoned").len(), 1, "it is a disk");
        assert_eq!(found([1.0; 4], "bcache"), [], "it may write back what it keeps");
        assert_eq!(found([1.0; 4], "directory"), [], "others use that disk");
        assert_eq!(found([1.0, 1.0, 0.5, 1.0], "none"), [], "somebody else's, perhaps");
    }

    #[test]
    fn a_journal_that_one_has_not_is_told_beside_those_that_have_one() {
        let of = |files: [&str; 2], mkfs: &str| {
            let mut plan = with("command = \"true\"", "");
            for (contender, name) in plan.contenders.iter_mut().zip(files) {
                contender.file_system = name.into();
            }
            plan.contenders[1].mkfs = mkfs.split_whitespace().map(String::from).collect();
            let found = findings(&plan, &rounds(4));
            found.into_iter().map(|it| (it.audit, it.contender)).collect::<Vec<_>>()
        };
        let of_b = [(Audit::A19, Some("b".to_string()))];
        assert_eq!(of(["ext4", "vfat"], ""), of_b);
        assert_eq!(of(["xfs", "ext4"], "-O ^has_journal"), of_b);
        assert_eq!(of(["ext4", "xfs"], ""), []);
        assert_eq!(of(["ext2", "vfat"], ""), [], "neither has one");
    }

    /// The contenders that A19 names, of two with these lines of a plan.
    fn named(a: &str, b: &str, terms: impl Fn(&mut Record)) -> Vec<(String, String)> {
        let plan = plan(&format!(
            "[[contender]]\nname = \"a\"\nfile_system = \"ext4\"\n{a}\n[[contender]]\n\
             name = \"b\"\nfile_system = \"ext4\"\n{b}\n[[workload]]\nname = \"w\"\n\
             fsync_files = {{}}"
        ));
        let mut records = rounds(4);
        records.iter_mut().for_each(terms);
        let found = findings(&plan, &records).into_iter().filter(Finding::is_of_terms);
        found.map(|it| (it.contender.unwrap_or_default(), it.evidence)).collect()
    }

    #[test]
    fn what_a_queue_or_a_module_is_set_to_takes_flushes_too() {
        for b in [
            "queue = { write_cache = \"write through\" }",
            "module = { \"zfs.zil_nocacheflush\" = 1 }",
        ] {
            let found = named("", b, |_| ());
            let [(name, evidence)] = &found[..] else { panic!("{b}: {found:?}") };
            assert!(name == "b" && evidence.ends_with("; not so with a"), "{found:?}");
            assert_eq!(named(b, b, |_| ()), [], "what all do is no unequal term");
        }
    }

    #[test]
    fn a_disk_without_a_cache_loses_nothing_by_being_called_one() {
        let through = "queue = { write_cache = \"write through\" }";
        let says = |a: bool| {
            move |record: &mut Record| {
                let write_cache = record.key.contender == "a" && a;
                record.disk = Some(Disk { write_cache, ..Disk::default() });
            }
        };
        assert_eq!(named("", through, says(true)).len(), 1);
        assert_eq!(named("", through, says(false)), []);
    }

    #[test]
    fn layers_that_lose_more_are_told_beside_those_that_do_not() {
        for (a, b, is_told) in [
            ("", "layers = [\"integrity:mode=direct\"]", true),
            ("layers = [\"integrity\"]", "layers = [\"integrity:mode=direct\"]", true),
            ("layers = [\"bcache\"]", "layers = [\"bcache:mode=writeback\"]", true),
            ("", "layers = [\"cache:mode=writeback\"]", true),
            ("", "layers = [\"writecache\"]", true),
            ("layers = [\"writecache\"]", "layers = [\"bcache:mode=writeback\"]", false),
            ("layers = [\"raid1\"]", "layers = [\"raid1:state=degraded\"]", true),
            // One disk is no more than what is left of two.
            ("", "layers = [\"raid1:state=degraded\"]", false),
        ] {
            let found = named(a, b, |_| ());
            let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, if is_told { vec!["b"] } else { vec![] }, "{a} {b}: {found:?}");
        }
    }

    #[test]
    fn a_journal_that_is_not_written_is_none() {
        let found = named("", "mount = [\"noload\"]", |_| ());
        assert_eq!(found.len(), 1);
        assert!(found[0].1.starts_with("noload: the journal is not replayed"), "{found:?}");
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
