//! Why there is no virtual machine for a plan.

use std::io;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Attachment, Bytes};
use thiserror::Error;

use super::arch::Arch;
use super::release;
use crate::tool::{self, ToolError};

/// Why there is no virtual machine for a plan, and what to do about it.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum VmError {
    #[error("there is no kernel {name} here: {}", release::how_to_get(name))]
    NoKernel { name: String },
    #[error(
        "there is no kernel {name} here; if a file or folder of that name is meant, write ./{name}"
    )]
    IsFile { name: String },
    #[error("there is no kernel to boot here: fsverdict kernels get 6.12")]
    NoKernelAtAll,
    #[error("there is no User Mode Linux here: fsverdict kernels get uml")]
    NoUml,
    #[error(
        "{folder} has {} free, and a User Mode Linux has its {} of memory there: give it less \
         ([vm] memory), or enlarge it (mount -o remount,size=...)",
        Bytes(*free).rounded(), Bytes(*bytes).rounded()
    )]
    SharedMemory { folder: &'static str, free: u64, bytes: u64 },
    #[error("kernel {}: {source}", path.display())]
    Image { path: PathBuf, source: io::Error },
    #[error(
        "{} has no list of what its modules need ({source}); make it: depmod -b {} {release}",
        folder.display(), root_of(folder).display()
    )]
    Dependencies { folder: PathBuf, release: String, source: io::Error },
    #[error("kernel {release} has neither virtio nor IDE disks: choose another kernel")]
    NoDisks { release: String },
    #[error(
        "kernel {release} has no {name}: choose another one (fsverdict kernels list; Debian's \
         cloud kernels leave many out: {})", release::how_to_get_full(release, *arch)
    )]
    NoFileSystem { release: String, arch: Arch, name: String },
    #[error("User Mode Linux {name} has no {what}: {}write --place vm", debians(name))]
    NotInUml { name: String, what: String },
    #[error("User Mode Linux {name} has no layer {layer}: {}write --place vm", debians(name))]
    NoLayerInUml { name: String, layer: &'static str },
    #[error(
        "kernel {release} has no {module}, which layer {layer} is made by: choose another one \
         (fsverdict kernels list)"
    )]
    NoLayer { release: String, layer: &'static str, module: &'static str },
    #[error(
        "kernel {release} has no {driver}, which {disks} disks need: choose another one (fsverdict \
         kernels list; Debian's cloud kernels leave many out: {}), or other --disks",
        release::how_to_get_full(release, *arch)
    )]
    NoDriver { release: String, arch: Arch, driver: &'static str, disks: Attachment },
    #[error(
        "the QEMU that is installed has no {device}, which {disks} disks need: choose other --disks"
    )]
    NoDevice { device: &'static str, disks: Attachment },
    #[error(
        "kernel {release} has drivers for {most} disks at most: give the bed fewer, or take a \
         kernel with virtio_scsi and write --disks virtio-scsi, which has room for 64"
    )]
    TooManyDisks { release: String, most: usize },
    #[error(
        "the work names {} of files, which a guest would have to hold in its memory: name less, \
         or write what it needs with --setup", Bytes(*bytes).rounded()
    )]
    HostFiles { bytes: u64 },
    #[error(
        "the plan names {}, a file of this machine: --bring {} gives it to an untrusted plan",
        path.display(), path.display()
    )]
    NotGiven { path: PathBuf },
    #[error("there are no programs for guests with {arch} processors: {how}")]
    NoUserland { arch: &'static str, how: String },
    #[error(
        "{program} is not among the programs for guests with {} processors: fsverdict kernels \
         tools --arch {} {}",
        arch.shown(), arch.name(), tool::package(program).unwrap_or("PACKAGE")
    )]
    NotInUserland { arch: Arch, program: String },
    #[error("{} needs {name}, and no package that was fetched has it", program.display())]
    NoLibrary { program: PathBuf, name: String },
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error(
        "OpenZFS {version} could not be built for Linux {release}: {what}; all that it said is in \
         {}",
        log.display()
    )]
    Build { version: String, release: String, what: String, log: PathBuf },
    #[error("{0}")]
    Fetch(String),
    #[error(transparent)]
    Tool(#[from] ToolError),
}

impl VmError {
    /// Another kernel of the same name may have what this one lacks, or be whole where it is not.
    pub fn is_of_one_kernel(&self) -> bool {
        matches!(
            self,
            VmError::NoFileSystem { .. }
                | VmError::NoLayer { .. }
                | VmError::NotInUml { .. }
                | VmError::NoLayerInUml { .. }
                | VmError::NoDriver { .. }
                | VmError::NoDisks { .. }
                | VmError::Dependencies { .. }
        )
    }
}

/// How to get Debian's, which has more than one that was built with OpenZFS.
fn debians(name: &str) -> &'static str {
    if release::with_zfs(name).is_some() { "fsverdict kernels get uml, or " } else { "" }
}

/// `/x/lib/modules/6.1` is below `/x`, where depmod(8) looks for it.
fn root_of(folder: &Path) -> &Path {
    folder.ancestors().nth(3).unwrap_or(folder)
}

pub fn failed(what: String) -> impl FnOnce(io::Error) -> VmError {
    move |source| VmError::Io { what, source }
}
