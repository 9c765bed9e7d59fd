//! Options beside a plan: each acts, or is refused.

use fsverdict_core::model::{BedKind, Cache, Command, Place, Plan, Workload};

use super::arguments::Arguments;
use crate::exit::Usage;

/// Whether the command line says how the work is done, whatever it is.
pub fn changes_work(arguments: &Arguments) -> bool {
    let mut changed = Workload::default();
    change_work(&mut changed, arguments);
    changed != Workload::default()
}

/// The work as the command line has it done: beside a plan, each workload.
pub fn change_work(workload: &mut Workload, arguments: &Arguments) {
    let parts = [
        (&mut workload.setup, &arguments.setup),
        (&mut workload.prepare, &arguments.prepare),
        (&mut workload.check, &arguments.check),
        (&mut workload.cleanup, &arguments.cleanup),
    ];
    for (part, typed) in parts {
        if let Some(line) = typed {
            *part = Some(Command::Shell(line.clone()));
        }
    }
    if arguments.warm {
        workload.cache = Cache::Warm;
    }
    if arguments.operations.is_some() {
        workload.operations = arguments.operations;
    }
    if !arguments.figure.is_empty() {
        workload.figures = arguments.figure.iter().cloned().collect();
    }
    workload.map.extend(arguments.map.iter().cloned());
    if !arguments.primary.is_empty() {
        workload.primary.clone_from(&arguments.primary);
    }
}

const NO_MACHINES: &str = "this place has no virtual machines";

/// Refuses what would do nothing on the plan's bed and place.
pub fn check_idle(plan: &Plan, arguments: &Arguments) -> Result<(), Usage> {
    let kind = plan.bed.kind;
    let is_made = matches!(kind, BedKind::Loop | BedKind::Ram);
    let is_elsewhere = matches!(plan.place, Some(Place::Local | Place::Sim));
    let idle = [
        (arguments.size.is_some() && !is_made, "--size", "this bed exists already"),
        (arguments.devices.is_some() && !is_made, "--devices", "this bed exists already"),
        (arguments.dir.is_some() && kind != BedKind::Loop, "--dir", "the bed has no image files"),
        (
            (!arguments.erase.is_empty() || arguments.erase_data) && kind != BedKind::Device,
            "--erase",
            "only bed device is erased",
        ),
        (!arguments.bring.is_empty() && is_elsewhere, "--bring", NO_MACHINES),
        (arguments.vm_qemu.is_some() && is_elsewhere, "--vm-qemu", NO_MACHINES),
        (arguments.vm_memory.is_some() && is_elsewhere, "--vm-memory", NO_MACHINES),
    ];
    match idle.iter().find(|(is_idle, ..)| *is_idle) {
        Some((_, option, why)) => Err(Usage(format!("leave {option} out: {why}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Args;

    use super::super::arguments::FIXED;
    use super::super::plan::tests::typed;
    use super::*;

    /// An option of each, with a value that is not the plan's.
    const CHANGES: [&str; 43] = [
        "--scale 0.5",
        "--fs ext4,f2fs",
        "--bed ram",
        "--like hdd",
        "--limits iops=9",
        "--dir /tmp",
        "--writable /tmp",
        "--map /data=.",
        "--size 9G",
        "--devices 2",
        "--place vm",
        "--kernel 6.1",
        "--zfs 2.3 --kernel 6.1",
        "--vm-append nosmt",
        "--vm-qemu -s",
        "--vm-memory 2G",
        "--disks nvme",
        "--layers luks",
        "--above overlay",
        "--bring /usr/bin",
        "--untrusted",
        "--small-files count=5",
        "--fsync-files files=5",
        "--metadata directories=5",
        "--tree files=5",
        "--probe page-cache",
        "--setup true",
        "--prepare true",
        "--check true",
        "--cleanup true",
        "--warm",
        "--operations 7",
        "--primary wall_time",
        "--figure x=y",
        "--reference xfs",
        "--rounds 99",
        "--budget 9h",
        "--trial-timeout 5m",
        "--step-timeout mkfs=5m",
        "--margin 1%",
        "--confidence 80%",
        "--seed 5",
        "-- true",
    ];

    /// Options that are no part of a plan, or that take its place.
    const NOT_THE_PLANS: [&str; 12] = [
        "plan",
        "study",
        "erase",
        "erase_data",
        "resume",
        "output",
        "json",
        "dry_run",
        "verbose",
        "color",
        "progress",
        "live",
    ];

    fn ids() -> BTreeSet<String> {
        let all = Arguments::augment_args(clap::Command::default());
        let ids = all.get_arguments().map(|it| it.get_id().to_string());
        ids.filter(|id| !["help", "version", "metrics"].contains(&id.as_str())).collect()
    }

    #[test]
    fn each_option_beside_a_plan_acts() {
        let plain = typed("sqlite").unwrap();
        let mut known: BTreeSet<String> = NOT_THE_PLANS.iter().map(ToString::to_string).collect();
        for option in CHANGES {
            let changed = typed(&format!("sqlite {option}")).unwrap_or_else(|error| {
                panic!("{option}: {error:#}");
            });
            assert!(changed != plain, "{option} does nothing beside a plan");
            let name = option.split(' ').next().unwrap().trim_start_matches('-');
            known.insert(if name.is_empty() { "command".into() } else { name.replace('-', "_") });
        }
        // One of several workloads.
        assert_eq!(typed("restic --only check").unwrap().workloads.len(), 1);
        known.insert("only".into());
        // It is for work that can pause, and is refused beside any other.
        assert!(typed("sqlite --duet").is_err());
        known.insert("duet".into());
        assert_eq!(ids(), known);
    }

    #[test]
    fn what_would_do_nothing_is_refused() {
        for (words, says) in [
            ("sqlite --bed directory:/a,/b --size 1G", "leave --size out"),
            ("sqlite --bed ram --dir /tmp", "leave --dir out"),
            ("sqlite --erase /dev/none", "leave --erase out"),
            ("restic --only chekc", "did you mean check?"),
            ("--fs ext4,xfs --only check -- true", "leave --only out"),
            ("--fs ext4,xfs --only check", "name a plan or a study"),
            ("sqlite --place sim --bring /usr/bin", "leave --bring out"),
        ] {
            let error = format!("{:#}", typed(words).unwrap_err());
            assert!(error.contains(says), "{words}: {error}");
        }
    }

    #[test]
    fn a_run_that_was_begun_has_its_plan() {
        let free = [
            "resume",
            "rounds",
            "budget",
            // The run's own permissions have to be given again.
            "writable",
            "place",
            "vm_qemu",
            "erase",
            "erase_data",
            "json",
            "dry_run",
            "verbose",
            "color",
            "progress",
            "live",
        ];
        let expected: BTreeSet<String> =
            ids().into_iter().filter(|id| !free.contains(&id.as_str())).collect();
        assert_eq!(FIXED.map(String::from).into_iter().collect::<BTreeSet<_>>(), expected);
    }
}
