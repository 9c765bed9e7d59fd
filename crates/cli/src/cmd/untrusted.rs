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
    use std::path::Path;

    use super::super::plan::tests::typed;

    /// Writes a stranger's plan with these lines and that work, and gives the words that run it.
    fn plan(folder: &Path, lines: &str, work: &str) -> String {
        let path = folder.join("plan.toml");
        let plan = format!(
            "{lines}\n[[contender]]\nname = \"ext4\"\nfile_system = \"ext4\"\n\
             [[workload]]\nname = \"w\"\n{work}\n"
        );
        std::fs::write(&path, plan).unwrap();
        format!("{} --untrusted", path.display())
    }

    #[test]
    fn a_strangers_plan_sets_no_options_of_qemu() {
        let folder = tempfile::tempdir().unwrap();
        let words = plan(folder.path(), "vm = { qemu = [\"-s\"] }", "command = \"true\"");
        let refused = typed(&words).unwrap_err().to_string();
        assert_eq!(refused, "an untrusted plan sets no options of QEMU: not -s");
        let ours = typed(&format!("{words} --vm-qemu=-no-shutdown")).unwrap();
        assert_eq!(ours.vm.unwrap().qemu, ["-no-shutdown"]);
    }

    #[test]
    fn a_strangers_plan_chooses_no_disk_and_no_folder_and_reads_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |lines: &str, work: &str| {
            format!("{:#}", typed(&plan(folder.path(), lines, work)).unwrap_err())
        };
        let command = "command = \"true\"";
        let device = "[bed]\nkind = \"device\"\npaths = [\"/dev/vdz\"]";
        for bed in [device, "[bed]\nkind = \"directory\"\npaths = [\"/srv\"]"] {
            let said = refused(bed, command);
            assert!(said.starts_with("an untrusted plan gets no bed "), "{bed}: {said}");
        }
        let said = refused("writable = [\"/srv\"]", command);
        assert_eq!(said, "an untrusted plan writes to no folder of this machine: not to /srv");
        let said = refused("vm = { bring = [\"/etc/shadow\"] }", command);
        let named = "an untrusted plan gets what the command line names: --bring /etc/shadow";
        assert_eq!(said, named);
        let said = refused("[bed]\nkind = \"loop\"\ndir = \"/srv\"", command);
        assert_eq!(said, "an untrusted plan puts its images where --dir says: --dir /srv");
        // A file beside the plan is its user's, unless it is a recording.
        std::fs::write(folder.path().join("secret"), "TOKEN\n").unwrap();
        let replay = |path: &str| format!("replay = {{ recording = \"{path}\" }}");
        let said = refused("", &replay("secret"));
        assert!(said.starts_with("an untrusted plan replays recordings, and "), "{said}");
        let words = plan(folder.path(), "", command);
        let said = typed(&format!("{words} --place local")).unwrap_err().to_string();
        assert!(said.contains("untrusted"), "{said}");
        let said = typed(&format!("{words} --bring /no/such/file")).unwrap_err().to_string();
        assert_eq!(said, "--bring /no/such/file");
    }
}
