//! Whether file systems can be made on a bed of the plan's size, and hold the work: asked of their
//! own mkfs on a sparse file, before anything is made.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use fsverdict_core::model::{BedKind, Bytes, Contender, Plan, Workload};

use super::preflight::PreflightError;
use crate::file_system::{self, FileSystem, Site};
use crate::machine::answers::nameless_file;
use crate::machine::cell;
use crate::machine::folder;
use crate::machine::within;
use crate::{sys, tool};

/// A size on which everything can be made: what fails there, too, has another reason.
const LARGE_BYTES: u64 = 1 << 40;
/// mkfs only says what it would do.
const LIMIT: Duration = Duration::from_secs(20);

/// What mkfs would make.
#[derive(Debug, PartialEq)]
enum Made {
    /// It can't be made so small; these are its words.
    TooSmall(String),
    /// It has so many inodes, where their number is fixed.
    Inodes(Option<u64>),
}

/// Looks whether each contender fits the bed, and each workload the contender. Words of a plan that
/// is not trusted are for no tool of this machine's.
pub fn check(plan: &Plan) -> Result<(), PreflightError> {
    let is_untrusted = plan.vm.as_ref().is_some_and(|vm| vm.untrusted);
    if is_untrusted || !matches!(plan.bed.kind, BedKind::Loop | BedKind::Ram) {
        return Ok(());
    }
    for contender in plan.contenders.iter().filter(|it| it.partition.is_empty()) {
        let inodes = match made(contender, plan.bed.size) {
            Some(Made::TooSmall(said)) => {
                let (contender, size) = (contender.name.clone(), plan.bed.size);
                return Err(PreflightError::TooSmall { contender, size, said });
            }
            Some(Made::Inodes(inodes)) => inodes,
            None => None,
        };
        let devices = contender.devices_of(plan.bed.devices.max(1) as usize) as u64;
        for workload in &plan.workloads {
            let room = Room { inodes, bytes: plan.bed.size.0.saturating_mul(devices) };
            room.holds(workload).map_err(|shortage| PreflightError::Room {
                workload: workload.name.clone(),
                contender: contender.name.clone(),
                shortage,
            })?;
        }
    }
    Ok(())
}

/// What a file system has room for.
struct Room {
    inodes: Option<u64>,
    bytes: u64,
}

impl Room {
    fn holds(&self, workload: &Workload) -> Result<(), String> {
        let files = workload.files();
        if let Some((files, inodes)) = files.zip(self.inodes).filter(|(files, has)| files > has) {
            return Err(format!("{files} files and directories, and has {inodes} inodes"));
        }
        // What a command moves need not be there all at once.
        let set = workload.working_set().filter(|_| workload.command.is_none());
        match set.filter(|set| set.bytes.0 > self.bytes) {
            Some(set) => Err(format!("{}, and has {}", set.bytes, Bytes(self.bytes))),
            None => Ok(()),
        }
    }
}

/// `None`: it can't be asked.
fn made(contender: &Contender, size: Bytes) -> Option<Made> {
    let known = file_system::find(&contender.file_system)?;
    let dry = known.dry?;
    let file = nameless_file(&std::env::temp_dir()).ok()?;
    let small = asked(known, dry, contender, &file, size.0)?;
    if small.status.success() {
        return Some(Made::Inodes(inodes(&small.stdout)));
    }
    let is_of_size = asked(known, dry, contender, &file, LARGE_BYTES)?.status.success();
    let said = if small.stderr.trim().is_empty() { &small.stdout } else { &small.stderr };
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    is_of_size.then(|| Made::TooSmall(line.trim_end_matches('.').into()))
}

fn asked(
    known: &FileSystem,
    dry: &str,
    contender: &Contender,
    file: &File,
    bytes: u64,
) -> Option<tool::Answer> {
    // It is asked with the plan's own words.
    let is_among = sys::is_root() && !within::is_guest();
    let path = format!("{}/fd/{}", folder::us().ok()?.display(), file.as_raw_fd());
    let devices = [if is_among { cell::IMAGE.into() } else { path }];
    let mut argv = known.mkfs(&contender.mkfs, &Site { devices: &devices, ..Site::default() })?;
    argv.retain(|word| word != "-q");
    argv.insert(1, dry.into());
    let ask = |file: &File| {
        file.set_len(bytes).ok()?;
        tool::ask(&argv, Path::new("/"), LIMIT).ok()
    };
    match is_among {
        true => cell::among(&devices[..0], || ask(&File::create_new(cell::IMAGE).ok()?)).ok()?,
        false => ask(file),
    }
}

/// As mke2fs says it: "Creating filesystem with 2097152 4k blocks and 524288 inodes".
fn inodes(said: &str) -> Option<u64> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let number = words.windows(2).find(|pair| pair[1] == "inodes")?[0];
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(size: &str, contender: &str, work: &str) -> String {
        let text = format!(
            "bed = {{ size = \"{size}\" }}\ncontender = [{{ name = \"c\", {contender} }}]\n\
             workload = [{{ name = \"w\", {work} }}]"
        );
        match check(&Plan::parse(&text).unwrap()) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_mkfs_would_refuse_for_its_size_is_told() {
        if tool::find("mkfs.xfs").is_none() {
            return;
        }
        let xfs = "file_system = \"xfs\"";
        let said = told("10M", xfs, "command = \"true\"");
        assert!(said.starts_with("contender \"c\" can't be made on 10M: "), "{said}");
        assert_eq!(told("1G", xfs, "command = \"true\""), "");
        let log = format!("{xfs}, mkfs = [\"-l\", \"size=256m\"]");
        assert!(told("512M", &log, "command = \"true\"").contains("a larger --size"));
        // Words of a plan that is not trusted are for guests alone.
        let untrusted = "command = \"true\" }]\nvm = { untrusted = true }\n#";
        assert_eq!(told("10M", xfs, untrusted), "");
        // What no size would mend is not for the size.
        let wrong = format!("{xfs}, mkfs = [\"-m\", \"crc=7\"]");
        assert_eq!(told("1G", &wrong, "command = \"true\""), "");
    }

    #[test]
    fn more_files_than_inodes_are_told() {
        if tool::find("mkfs.ext4").is_none() {
            return;
        }
        let ext4 = "file_system = \"ext4\"";
        let many = "small_files = { count = 1000000 }";
        let said = told("8G", ext4, many);
        assert!(said.contains("1000001 files and directories, and has 524288 inodes"), "{said}");
        assert_eq!(told("8G", &format!("{ext4}, mkfs = [\"-i\", \"4096\"]"), many), "");
        assert_eq!(told("8G", ext4, "small_files = { count = 500000 }"), "");
        let large = "fio = { rw = \"write\", size = \"9G\" }";
        assert!(told("8G", ext4, large).contains("9G, and has 8G"));
    }
}
