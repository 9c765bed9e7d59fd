//! Faults of a plan that are found before anything is written: what no place could run, and work
//! that its tool refuses.

use std::path::Path;

use fsverdict_core::model::{
    Arm, Bed, BedKind, Bytes, Compared, Contender, Plan, PlanError, Workload, meant,
};
use fsverdict_core::run::{HostError, check_metrics};
use thiserror::Error;

use crate::tool::ToolError;
use crate::workload::engine::{Reading, Taken};
use crate::{bed, file_system, layer, workload};

/// Why a plan can't be run anywhere, and what to do about it.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PreflightError {
    #[error("contender {contender:?}: no file system is called {name:?}; {}", meant_by(name))]
    UnknownFileSystem { contender: String, name: String },
    #[error("contender {contender:?}: {said}")]
    Words { contender: String, said: String },
    #[error("contender {contender:?}: {said}")]
    Layers { contender: String, said: String },
    #[error("workload {workload:?}: {source}")]
    Work { workload: String, source: HostError },
    #[error("workload {workload:?}: {said}")]
    Job { workload: String, said: String },
    #[error("workload {workload:?} {said}")]
    Metric { workload: String, said: String },
    #[error("{source}")]
    Claims { source: PlanError },
    #[error("contender {contender:?} can't be made on {size}: {said}: give a larger --size")]
    TooSmall { contender: String, size: Bytes, said: String },
    #[error(
        "workload {workload:?} does not fit on contender {contender:?}, which is to hold \
         {shortage}: give a larger --size, or less work"
    )]
    Room { workload: String, contender: String, shortage: String },
    #[error(
        "contender {contender:?} can only be read, and workload {workload:?} writes: give it a \
         command or a fio job that reads what setup or fio lays out"
    )]
    ReadOnly { workload: String, contender: String },
    #[error("{0}")]
    Tool(#[from] ToolError),
    #[error(
        "contender {contender:?} partitions the bed's device, and {path} is a partition itself: \
         give the whole disk"
    )]
    Nested { contender: String, path: String },
    #[error(
        "limits hold a disk down, and {0} lies on none: leave them out, or take bed loop or ram"
    )]
    NoDisk(String),
}

fn meant_by(name: &str) -> String {
    meant(name, file_system::ALL.map(|known| known.name))
}

impl PreflightError {
    /// The plan is wrong, whatever the machine.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Tool(_))
    }
}

/// Checks the plan against what fsverdict knows, without asking anything of the machine.
pub fn check_plan(plan: &Plan) -> Result<(), PreflightError> {
    for contender in plan.contenders.iter().filter(|_| plan.bed.kind != BedKind::Directory) {
        let mut all = file_system::ALL.iter();
        let Some(known) = all.find(|known| known.name == contender.file_system) else {
            return Err(PreflightError::UnknownFileSystem {
                contender: contender.name.clone(),
                name: contender.file_system.clone(),
            });
        };
        let named = |said| PreflightError::Words { contender: contender.name.clone(), said };
        known.check_words(&contender.mkfs, &contender.mount).map_err(named)?;
        known.check_below(&contender.above).map_err(named)?;
        check_above(contender)?;
        if let Some(workload) = plan.workloads.iter().find(|it| known.is_read_only() && writes(it))
        {
            let (workload, name) = (workload.name.clone(), contender.name.clone());
            return Err(PreflightError::ReadOnly { workload, contender: name });
        }
    }
    for contender in &plan.contenders {
        let devices = contender.devices_of(plan.bed.devices_of_trial());
        layer::check(&contender.layers, devices)
            .and_then(|()| layer::check_size(&contender.layers, plan.bed.size))
            .and_then(|()| check_disks(plan, contender))
            .map_err(|said| PreflightError::Layers { contender: contender.name.clone(), said })?;
    }
    for workload in &plan.workloads {
        let Ok(work) = workload.work() else { continue };
        workload::engine(work)
            .check(workload)
            .map_err(|source| PreflightError::Work { workload: workload.name.clone(), source })?;
        let named = |said| PreflightError::Metric { workload: workload.name.clone(), said };
        check_metrics(workload, &plan.probes, false).map_err(named)?;
        check_claimed(plan, workload, false)?;
    }
    Ok(())
}

/// Checks what a plan may do in a guest, and not on this machine.
pub fn check_on_host(plan: &Plan) -> Result<(), PreflightError> {
    for contender in &plan.contenders {
        let named = |said| PreflightError::Words { contender: contender.name.clone(), said };
        let alone = "that takes a machine of its own, --place vm";
        if let Some(word) =
            file_system::panics(&contender.file_system, &contender.mkfs, &contender.mount)
        {
            let said = format!("{word} would have this machine panic at an error: {alone}");
            return Err(named(said));
        }
        if let Some(word) = file_system::with_known_uuid(Path::new("/"), &contender.mkfs) {
            let said = format!("{word} is the UUID of what this machine has already: {alone}");
            return Err(named(said));
        }
    }
    Ok(())
}

/// Disks in the guest's memory can be made as large as the bed's, and the file system on them.
fn check_disks(plan: &Plan, contender: &Contender) -> Result<(), String> {
    let layers = &contender.layers;
    let Some(disks) = layers.first().filter(|_| layer::takes_place(layers)) else { return Ok(()) };
    // What a kernel, the programs and the page cache have at least.
    const REST_BYTES: u64 = 256 << 20;
    let vm = plan.vm.clone().unwrap_or_default();
    let count = contender.devices_of(plan.bed.devices as usize) as u64;
    let each = plan.bed.size.0.saturating_add(layer::cache_bytes(disks, plan.bed.size));
    let needed = each.saturating_mul(count).saturating_add(REST_BYTES);
    if needed > vm.memory.0 {
        return Err(format!(
            "{} of {} lie in the guest's memory, which is {}: give it {} (--vm-memory), or a \
             smaller --size",
            disks.name,
            plan.bed.size,
            vm.memory,
            Bytes(needed)
        ));
    }
    if let Some(attached) = contender.disks {
        return Err(format!(
            "disks that are attached as {attached} are those of the bed, and {} takes their place: \
             leave either out",
            disks.name
        ));
    }
    if contender.limits.or(plan.bed.limits).is_some() {
        return Err(format!(
            "limits are those of the bed's disks, and {0} takes their place: leave them out, or \
             write {0}:latency=1ms",
            disks.name
        ));
    }
    if plan.judgement.arms.contains(&Arm::Raw) {
        return Err(format!(
            "arm raw is the bare disk of the bed, and {} takes its place: leave the arm out",
            disks.name
        ));
    }
    layer::check_processors(disks, vm.processors_at(plan.named_place().unwrap_or_default()))?;
    let known = file_system::ALL.iter().find(|known| known.name == contender.file_system);
    if layer::is_zoned(layers) && !known.is_some_and(|known| known.takes_zones) {
        let takes = file_system::ALL.iter().filter(|known| known.takes_zones);
        return Err(format!(
            "{} can't be made on zoned disks, but {}",
            contender.file_system,
            takes.map(|known| known.name).collect::<Vec<_>>().join(" and ")
        ));
    }
    if layer::is_zoned(layers)
        && contender.file_system == "f2fs"
        && layer::conventional_zones(disks) == 0
    {
        return Err(format!("{disks}: f2fs has its metadata in conventional zones: give it some"));
    }
    Ok(())
}

/// It does more than to read what lies there, as far as that shows before.
fn writes(workload: &Workload) -> bool {
    workload.work().is_ok_and(|work| !workload::engine(work).only_reads())
}

/// What is stacked on the contender's file system is known, and can be.
fn check_above(contender: &Contender) -> Result<(), PreflightError> {
    for above in &contender.above {
        let mut all = file_system::ALL.iter();
        let known = all.find(|known| known.name == above.name).ok_or_else(|| {
            let (contender, name) = (contender.name.clone(), above.name.clone());
            PreflightError::UnknownFileSystem { contender, name }
        })?;
        known
            .check_stands(&above.options)
            .map_err(|said| PreflightError::Words { contender: contender.name.clone(), said })?;
    }
    Ok(())
}

/// The metrics by which something is claimed of `workload` are among its own.
fn check_claimed(
    plan: &Plan,
    workload: &Workload,
    jobs_are_known: bool,
) -> Result<(), PreflightError> {
    let named = |said| PreflightError::Metric { workload: workload.name.clone(), said };
    let compared = plan.claims.iter().filter_map(|claim| claim.compared(plan).ok());
    let is_its = |it: &Compared| it.entrants().iter().any(|(work, _)| *work == workload.name);
    for it in compared.filter(is_its) {
        let claimed = Workload { primary: vec![it.metric], ..workload.clone() };
        check_metrics(&claimed, &plan.probes, jobs_are_known).map_err(named)?;
    }
    Ok(())
}

/// Checks what only the machine can tell, once all that the plan needs is there, and enters what
/// tools say of their work.
pub fn check_details(plan: &mut Plan) -> Result<(), PreflightError> {
    check_partitions(plan)?;
    check_limits(&plan.bed)?;
    if plan.vm.as_ref().is_some_and(|vm| vm.untrusted) {
        // Its own tool would read a stranger's job here.
        return Ok(());
    }
    // All jobs of a duet take their turns together.
    let in_turns: Vec<bool> = plan.workloads.iter().map(|it| plan.takes_turns(it)).collect();
    for (workload, in_turns) in plan.workloads.iter_mut().zip(in_turns) {
        let taken = read_job(workload)?;
        check_room(&plan.bed, &plan.contenders, workload, taken.least_bytes)?;
        workload.jobs = taken.jobs.filter(|_| !in_turns);
        let named = |said| PreflightError::Metric { workload: workload.name.clone(), said };
        check_metrics(workload, &plan.probes, true).map_err(named)?;
    }
    // By now it is known which figures there are to claim something of.
    plan.check().map_err(|source| PreflightError::Claims { source })?;
    for workload in &plan.workloads {
        check_claimed(plan, workload, true)?;
    }
    Ok(())
}

/// What a tool does not understand it says before anything is written, once and not in every trial.
fn read_job(workload: &Workload) -> Result<Taken, PreflightError> {
    let Ok(work) = workload.work() else { return Ok(Taken::default()) };
    match workload::engine(work).read(workload)? {
        Reading::Taken(taken) => Ok(taken),
        Reading::Refused(said) => {
            Err(PreflightError::Job { workload: workload.name.clone(), said })
        }
    }
}

/// What a tool says that its files take is there on every contender.
fn check_room(
    bed: &Bed,
    contenders: &[Contender],
    workload: &Workload,
    least_bytes: u64,
) -> Result<(), PreflightError> {
    if !matches!(bed.kind, BedKind::Loop | BedKind::Ram) {
        return Ok(());
    }
    let devices = |it: &Contender| it.devices_of(bed.devices.max(1) as usize) as u64;
    let bytes = |it: &Contender| bed.size.0.saturating_mul(devices(it));
    match contenders.iter().find(|it| bytes(it) < least_bytes) {
        Some(contender) => Err(PreflightError::Room {
            workload: workload.name.clone(),
            contender: contender.name.clone(),
            shortage: format!("{}, and has {}", Bytes(least_bytes), Bytes(bytes(contender))),
        }),
        None => Ok(()),
    }
}

/// A contender can partition a disk, and not a part of one.
fn check_partitions(plan: &Plan) -> Result<(), PreflightError> {
    let Some(one) = plan.contenders.iter().find(|it| !it.partition.is_empty()) else {
        return Ok(());
    };
    match plan.bed.paths.iter().find(|path| bed::is_partition(Path::new(path))) {
        Some(path) => {
            Err(PreflightError::Nested { contender: one.name.clone(), path: path.clone() })
        }
        None => Ok(()),
    }
}

/// There is a disk to hold down below each directory.
fn check_limits(bed: &Bed) -> Result<(), PreflightError> {
    let is_asked = bed.kind == BedKind::Directory && bed.is_limited();
    let mut directories = bed.paths.iter().filter(|_| is_asked);
    match directories.find(|path| bed::beneath(Path::new(path)).is_none()) {
        Some(path) => Err(PreflightError::NoDisk(path.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_refused_where_a_directory_lies_on_no_disk() {
        let refused = |lines: &str, path: &str| {
            let text = format!(
                "[bed]\nkind = \"directory\"\npaths = [\"{path}\"]\n{lines}\n[[contender]]\n\
                 name = \"it\"\nfile_system = \"as-is\"\n[[workload]]\nname = \"w\"\n\
                 command = \"true\"\n"
            );
            check_limits(&Plan::parse(&text).unwrap().bed).err().map(|error| error.to_string())
        };
        let said = refused("limits = { iops = 100 }", "/proc").unwrap_or_default();
        assert!(said.starts_with("limits hold a disk down, and /proc lies on none: "), "{said}");
        assert_eq!(refused("", "/proc"), None);
    }

    /// What is said of one contender on these layers, with disks of 512 MiB.
    fn said(file_system: &str, layers: &str, more: &str) -> String {
        let contender = format!("name = \"it\"\nfile_system = \"{file_system}\"\n");
        let text = format!(
            "place = \"vm\"\n[[contender]]\n{contender}layers = [\"{layers}\"]\n[bed]\nkind = \
             \"loop\"\nsize = \"512M\"\n{more}\n[[workload]]\nname = \"w\"\ncommand = \"true\"\n"
        );
        let checked = check_plan(&Plan::parse(&text).unwrap());
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn disks_in_memory_are_refused_where_they_do_not_fit() {
        assert_eq!(said("btrfs", "zoned", ""), "");
        assert_eq!(said("ext4", "null_blk", ""), "");
        assert!(said("ext4", "bcache:bucket=4M", "devices = 2").contains("give it smaller ones"));
        let ext4 = said("ext4", "zoned", "");
        assert!(ext4.contains("ext4 can't be made on zoned disks, but btrfs and f2fs"), "{ext4}");
        assert!(said("f2fs", "zoned:conventional=0", "").contains("conventional zones: give it"));
        assert_eq!(said("f2fs", "zoned", "") + &said("btrfs", "zoned:conventional=0", ""), "");
        let large = said("ext4", "null_blk", "devices = 2");
        let says = "null_blk of 512M lie in the guest's memory, which is 1G: give it 1280M";
        assert!(large.contains(says), "{large}");
        assert_eq!(said("ext4", "null_blk", "devices = 2\n[vm]\nmemory = \"2G\""), "");
        // Its write cache lies there, too.
        assert!(said("ext4", "null_blk:cache=600M", "").contains("give it 1280M"));
        assert_eq!(said("ext4", "null_blk:cache=64M", ""), "");
        let limited = said("ext4", "null_blk", "limits = { iops = 100 }");
        assert!(limited.contains("leave them out, or write null_blk:latency=1ms"), "{limited}");
        let queues = said("ext4", "null_blk:queues=4", "");
        assert!(queues.contains("[vm] processors = 4"), "{queues}");
    }
}
