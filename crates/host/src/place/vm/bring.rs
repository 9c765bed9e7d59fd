//! What the machines of a run boot: kernels, and an archive for each.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};

use fsverdict_core::run::HostError;

use super::archive::Archive;
use super::bootable::Bootable;
use super::kernel::Kernel;
use super::runner::Runner;
use super::{Vm, guest, openzfs, uml};
use crate::machine::within;

/// What a machine boots, as it was when the run began: a tree may be built again meanwhile.
pub(super) struct Brought {
    pub(super) image: PathBuf,
    pub(super) initrd: PathBuf,
}

impl Vm<'_> {
    /// Each kernel with its disks, and an archive for it: the host's files, ourselves, and the
    /// modules of all contenders.
    pub(super) fn bring_kernels(&mut self) -> Result<(), HostError> {
        let mut all_files = BTreeMap::new();
        for (arch, files) in mem::take(&mut self.prepared.host_files) {
            all_files.insert(arch, files.with_ourselves(within::PROGRAM)?);
        }
        for (index, (asked, bootable)) in self.prepared.kernels.iter().enumerate() {
            let image = self.image(index, &bootable.kernel)?;
            let initrd = self.own_folder()?.join(format!("{index}.cpio"));
            let mut archive = Archive::new(BufWriter::new(File::create(&initrd)?));
            for folder in ["fsverdict", "fsverdict/modules", "dev"] {
                archive.directory(folder, 0o755)?;
            }
            // The kernel opens it for its first process before anything is mounted; where there is
            // no console, that process opens the other in its place.
            archive.device("dev/console", [5, 1])?;
            archive.device("dev/null", [1, 3])?;
            let (host_files, ourselves) = &all_files[&bootable.kernel.arch];
            archive.bytes(&ourselves.name, 0o755, &ourselves.content)?;
            archive.link(guest::INIT.trim_start_matches('/'), Path::new(within::PROGRAM))?;
            host_files.pack(&mut archive)?;
            let files = bootable.files(asked, &self.plan);
            pack_modules(&mut archive, bootable, &files)?;
            if self.prepared.prints[asked] != bootable.modules.print(&files)? {
                let kernel = asked.shown();
                return Err(format!("kernel {kernel}: {BEING_BUILT}").into());
            }
            if let Some(zfs) = asked.contenders(&self.plan).find_map(|it| bootable.zfs_of(it)) {
                openzfs::pack(zfs, &mut archive)?;
            }
            archive.finish()?;
            if self.runner == Runner::Uml {
                uml::check_memory(self.memory_bytes(&initrd)?)?;
            }
            self.brought.insert(asked.clone(), Brought { image, initrd });
        }
        let files = all_files.into_iter().map(|(arch, (files, _))| (arch, files));
        self.prepared.host_files = files.collect();
        Ok(())
    }

    /// The kernel's own image; a copy where it may be built again. A User Mode Linux lies beside
    /// what it needs, and is never built.
    fn image(&self, index: usize, kernel: &Kernel) -> Result<PathBuf, HostError> {
        if self.runner == Runner::Uml {
            return Ok(kernel.image.clone());
        }
        let copy = self.own_folder()?.join(format!("{index}.kernel"));
        let image = kernel.image.display();
        fs::copy(&kernel.image, &copy).map_err(|error| format!("copying {image}: {error}"))?;
        if !kernel.is_that_of(&copy) {
            return Err(format!("{image}: {BEING_BUILT}").into());
        }
        Ok(copy)
    }

    /// What is brought along is in the guest's memory, twice while the kernel unpacks it.
    pub(super) fn memory_bytes(&self, initrd: &Path) -> io::Result<u64> {
        const UNIT_BYTES: u64 = 64 << 20;
        let memory = self.plan.vm.clone().unwrap_or_default().memory;
        let brought = fs::metadata(initrd)?.len().next_multiple_of(UNIT_BYTES);
        Ok(memory.0 + 2 * brought)
    }
}

const BEING_BUILT: &str = "it is being built again: begin when that is done";

/// The modules of a kernel that any of its contenders needs, of those files.
fn pack_modules<W: Write>(
    archive: &mut Archive<W>,
    bootable: &Bootable,
    files: &[String],
) -> Result<(), HostError> {
    let first = bootable.modules.for_disks(bootable.bus());
    let name = guest::FIRST_MODULES.trim_start_matches('/');
    archive.bytes(name, 0o644, first.join("\n").as_bytes())?;
    let mut folders: Vec<&Path> =
        files.iter().flat_map(|file| Path::new(file).ancestors().skip(1)).collect();
    folders.sort();
    folders.dedup();
    let modules = guest::MODULES.trim_start_matches('/');
    for folder in folders.into_iter().filter(|folder| *folder != Path::new("")) {
        archive.directory(&format!("{modules}/{}", folder.display()), 0o755)?;
    }
    for file in files {
        let content = bootable.modules.content(file)?;
        archive.bytes(&format!("{modules}/{file}"), 0o644, &content)?;
    }
    Ok(())
}
