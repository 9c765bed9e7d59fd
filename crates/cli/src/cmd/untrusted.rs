//! `--untrusted`: a stranger's plan, taken away what it may do with this machine.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fsverdict_core::model::{BedKind, Place, Plan};
use fsverdict_core::recording;

use super::arguments::{Arguments, PlaceName};
use crate::exit::Usage;

/// Has the plan run in virtual machines, with no more of this machine than the command line names.
/// Refuses what would take more. Without `--untrusted` only adds what is to be brought.
pub fn distrust(plan: &mut Plan, arguments: &Arguments) -> Result<()> {
    let bring = brought(&arguments.bring)?;
    if !arguments.untrusted {
        if !bring.is_empty() {
            plan.vm.get_or_insert_default().bring.extend(bring);
        }
        return Ok(());
    }
    if matches!(arguments.place, Some(PlaceName::Local | PlaceName::Uml | PlaceName::Sim)) {
        return Err(refused("runs in virtual machines of QEMU: leave --place out"));
    }
    plan.place = Some(Place::Vm);
    check_bed(plan, arguments)?;
    if let Some(folder) = plan.writable.first() {
        return Err(refused(&format!("writes to no folder of this machine: not to {folder}")));
    }
    for contender in &plan.contenders {
        let path = contender.kernel.as_ref().filter(|kernel| kernel.contains('/'));
        let is_named = |path: &String| {
            let mut named = arguments.kernel.iter().filter_map(|it| std::path::absolute(it).ok());
            named.any(|it| it == Path::new(path)) || arguments.kernel.contains(path)
        };
        if let Some(path) = path.filter(|path| !is_named(path)) {
            return Err(refused(&format!("boots no file that the plan names: --kernel {path}")));
        }
    }
    let beside = recordings(plan, arguments.plan.as_deref())?;
    let vm = plan.vm.get_or_insert_default();
    let is_given = |asked: &&String| bring.iter().any(|it| Path::new(asked).starts_with(it));
    if let Some(asked) = vm.bring.iter().find(|asked| !is_given(asked)) {
        return Err(refused(&format!("gets what the command line names: --bring {asked}")));
    }
    // QEMU reads and writes any file of ours that its options name.
    if arguments.vm_qemu.is_none()
        && let Some(option) = vm.qemu.first()
    {
        return Err(refused(&format!("sets no options of QEMU: not {option}")));
    }
    (vm.untrusted, vm.bring) = (true, bring);
    vm.bring.extend(beside);
    Ok(())
}

fn refused(why: &str) -> anyhow::Error {
    Usage(format!("an untrusted plan {why}")).into()
}

/// The paths of `--bring`, without links.
fn brought(paths: &[PathBuf]) -> Result<Vec<String>> {
    let found = paths.iter().map(|path| {
        let found = path.canonicalize().with_context(|| format!("--bring {}", path.display()))?;
        Ok(found.display().to_string())
    });
    found.collect()
}

/// Images are made where the command line says, and nothing but images.
fn check_bed(plan: &Plan, arguments: &Arguments) -> Result<()> {
    if !matches!(plan.bed.kind, BedKind::Loop | BedKind::Ram) {
        let bed = plan.bed.name();
        return Err(refused(&format!("gets no bed {bed}: write --bed loop or --bed ram")));
    }
    match plan.bed.dir.as_ref().filter(|_| arguments.dir.is_none()) {
        Some(dir) => Err(refused(&format!("puts its images where --dir says: --dir {dir}"))),
        None => Ok(()),
    }
}

/// By its first line. Anything else beside the plan is the user's.
fn is_recording(path: &Path) -> bool {
    let opened = || Some(BufReader::new(File::open(path).ok()?));
    path.is_file() && opened().is_some_and(|text| recording::read_head(text).is_ok())
}

/// The recordings of the plan's replays. Those that lie in its folder, and not by a link, are part
/// of it; others have to be named.
fn recordings(plan: &Plan, file: Option<&Path>) -> Result<Vec<String>> {
    let folder = file.and_then(Path::parent).map(|it| it.join(".").canonicalize()).transpose();
    let folder = folder.context("the plan's folder")?;
    let mut all = Vec::new();
    for replay in plan.workloads.iter().filter_map(|workload| workload.replay.as_ref()) {
        let found = Path::new(&replay.recording).canonicalize();
        let found = found.with_context(|| replay.recording.clone())?;
        if !folder.as_ref().is_some_and(|folder| found.starts_with(folder)) {
            continue;
        }
        if !is_recording(&found) {
            let path = &replay.recording;
            return Err(refused(&format!("replays recordings, and {path} is not a recording")));
        }
        all.push(found.display().to_string());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::typed;

    #[test]
    fn a_strangers_plan_sets_no_options_of_qemu() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        let plan = "vm = { qemu = [\"-s\"] }\n[[contender]]\nname = \"ext4\"\n\
                    file_system = \"ext4\"\n[[workload]]\nname = \"w\"\ncommand = \"true\"\n";
        std::fs::write(&path, plan).unwrap();
        let words = format!("{} --untrusted", path.display());
        let refused = typed(&words).unwrap_err().to_string();
        assert_eq!(refused, "an untrusted plan sets no options of QEMU: not -s");
        let ours = typed(&format!("{words} --vm-qemu=-no-shutdown")).unwrap();
        assert_eq!(ours.vm.unwrap().qemu, ["-no-shutdown"]);
    }
}
