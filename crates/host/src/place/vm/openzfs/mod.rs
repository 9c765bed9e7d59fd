//! OpenZFS for a fetched kernel. Debian has it as source (`zfs-dkms`, in contrib), whose licence
//! (CDDL) allows nobody to distribute a Linux module made of it: so it is built here, on the user's
//! machine, for the user's guests. That needs neither root nor a compiler on the machine.
//!
//! A kernel with OpenZFS is a folder of its own beside the plain one, with hard links to its files,
//! so that several versions are there at a time. Its tools are of the same release, and bring their
//! own libraries.

mod build;
mod source;
mod tools;
pub mod user_mode;

use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::Bytes;

use super::apt::{self, Apt};
#[cfg(test)]
use super::arch::Arch;
use super::error::{VmError, failed};
use super::fetch::{self, Wanted};
use super::kernel::{self, Kernel};
use super::{release, toolbox};
use crate::sys;
use build::{Build, For};
use source::Source;
pub use tools::pack;

/// What the kernel calls it.
pub const DRIVER: &str = "zfs";

/// For source, compiler, tools and what is built: 0.9 GiB on 6.12, removed when it is done.
const SPACE_BYTES: u64 = 1536 << 20;

/// Fetches a kernel, and builds each of `versions` of OpenZFS for it that is not there already;
/// where none is named, the one that supports it. What can't be had is said before the first build.
pub fn get(
    wanted: Wanted,
    versions: &[String],
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Kernel>, VmError> {
    build::check_tools()?;
    let _lock = fetch::locked(&kernel::cache(), say)?;
    let (apt, package) = fetch::find(wanted, say)?;
    let plain = fetch::unpacked(&apt, &package, wanted.arch, say)?;
    let sources = source::all(versions, &plain.release, wanted.mirror, say)?;
    sources.iter().map(|source| with_source(&plain, &apt, source, say)).collect()
}

/// The kernel with that OpenZFS, built unless it is there already.
fn with_source(
    plain: &Kernel,
    apt: &Apt,
    source: &Source,
    say: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
    let name = release::name_with(&plain.release, &source.version);
    let folder = kernel::fetched().join(&name);
    let image = folder.join("boot").join(plain.image.file_name().unwrap_or_default());
    if image.exists() {
        say(&format!("OpenZFS {} for {} is there already", source.version, plain.release));
    } else {
        make(plain, apt, source, &folder, say)?;
    }
    Kernel::at(&image).map_err(failed(format!("reading {}", image.display())))
}

/// Builds elsewhere and renames, so that what is there is complete.
fn make(
    plain: &Kernel,
    apt: &Apt,
    source: &Source,
    folder: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<(), VmError> {
    in_folder(SPACE_BYTES, |work| {
        let (release, version) = (plain.release.as_str(), source.version.as_str());
        let build = build_of(work, release, version, For::Packaged);
        let tools = built(&build, work, apt, source, say)?;
        let beside = work.join("kernel");
        put_together(plain, &build.modules(), &tools, &beside)?;
        let made = fs::rename(&beside, folder);
        made.map_err(failed(format!("making {}", folder.display())))
    })
}

/// Does `work` in a folder of the cache that is removed after it.
fn in_folder<T>(
    space_bytes: u64,
    work: impl FnOnce(&Path) -> Result<T, VmError>,
) -> Result<T, VmError> {
    let folder = kernel::cache().join("build");
    let _ = fs::remove_dir_all(&folder);
    toolbox::make_folder(&folder)?;
    check_space(&folder, space_bytes)?;
    let made = work(&folder);
    if made.is_ok() {
        let _ = fs::remove_dir_all(&folder);
    }
    // The logs of a failed build remain, for the user to read.
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    made
}

fn build_of<'a>(work: &Path, release: &'a str, version: &'a str, of: For<'a>) -> Build<'a> {
    Build { root: work.join("root"), release, version, of, log: work.join("build.log") }
}

/// Fetches what a build takes and runs it in the folder `work`; gives the folder with the tools.
fn built(
    build: &Build,
    work: &Path,
    apt: &Apt,
    source: &Source,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, VmError> {
    let Build { version, release, of, .. } = build;
    say(&format!(
        "OpenZFS {version} (CDDL) is built on this machine, for its own guests: nothing of it is \
         given away"
    ));
    say("fetching the tools of OpenZFS");
    let tools = work.join(kernel::TOOLS);
    tools::collect(source, &work.join("tools"), &tools)?;
    match of {
        For::Packaged => say(&format!("fetching the headers of {release} and its compiler")),
        For::UserMode { source } => say(&format!("fetching {source} and a compiler")),
    }
    build.unpack(apt, source)?;
    build.run(say)?;
    Ok(tools)
}

/// The plain kernel's files, the modules in `built` among its own, and the tools.
fn put_together(plain: &Kernel, built: &Path, tools: &Path, beside: &Path) -> Result<(), VmError> {
    let from = plain.image.ancestors().nth(2).unwrap_or(Path::new("/"));
    let words = |from: &Path| {
        ["cp", "-al", &from.display().to_string(), &beside.display().to_string()].map(String::from)
    };
    apt::run(&words(from), Path::new("/"))?;
    let below = plain.modules.as_deref().and_then(|it| it.strip_prefix(from).ok());
    let below = below
        .ok_or_else(|| VmError::Fetch(format!("Linux {} came without modules", plain.release)))?;
    put_modules(built, &beside.join(below))?;
    // lib/modules/RELEASE is below what depmod(8) takes for the root.
    let root = beside.join(below.ancestors().nth(3).unwrap_or(Path::new("")));
    fetch::depmod(&root, &plain.release)?;
    let to = beside.join(kernel::TOOLS);
    fs::rename(tools, &to).map_err(failed(format!("making {}", to.display())))
}

/// Copies what was `built` among the modules of a kernel.
fn put_modules(built: &Path, modules: &Path) -> Result<(), VmError> {
    let updates = modules.join("updates");
    toolbox::make_folder(&updates)?;
    let is_file = |it: &fs::DirEntry| it.file_type().is_ok_and(|kind| kind.is_file());
    for entry in fs::read_dir(built).into_iter().flatten().flatten().filter(is_file) {
        let to = updates.join(entry.file_name());
        fs::copy(entry.path(), &to).map_err(failed(format!("writing {}", to.display())))?;
    }
    Ok(())
}

/// A full disk has configure claim an incompatible licence.
fn check_space(folder: &Path, needed_bytes: u64) -> Result<(), VmError> {
    let free_bytes =
        sys::free_bytes(folder).map_err(failed(format!("reading {}", folder.display())))?;
    if free_bytes >= needed_bytes {
        return Ok(());
    }
    Err(VmError::Fetch(format!(
        "building OpenZFS needs {} in {}, where {} are free: make room, or set XDG_CACHE_HOME",
        Bytes(needed_bytes).rounded(),
        folder.display(),
        Bytes(free_bytes).rounded()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_openzfs_has_the_plain_ones_files_its_modules_and_its_tools() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), path).unwrap();
        };
        let modules = "plain/lib/modules/6.1.0-1-amd64";
        ["plain/boot/vmlinuz", "built/zfs.ko", "tools/zpool"].into_iter().for_each(write);
        for name in ["modules.order", "modules.builtin", "kernel/fs/xfs.ko"] {
            write(&format!("{modules}/{name}"));
        }
        let plain = Kernel {
            image: root.join("plain/boot/vmlinuz"),
            arch: Arch::OWN,
            release: "6.1.0-1-amd64".into(),
            build: String::new(),
            modules: Some(root.join(modules)),
            zfs: None,
        };
        let beside = root.join("beside");
        put_together(&plain, &root.join("built"), &root.join("tools"), &beside).unwrap();
        let its = beside.join("lib/modules/6.1.0-1-amd64");
        for file in ["kernel/fs/xfs.ko", "updates/zfs.ko", "modules.dep"] {
            assert!(its.join(file).exists(), "{file}");
        }
        assert!(beside.join("boot/vmlinuz").exists() && beside.join("zfs/zpool").exists());
        assert!(!root.join(modules).join("modules.dep").exists(), "the plain one is as it was");
    }
}
