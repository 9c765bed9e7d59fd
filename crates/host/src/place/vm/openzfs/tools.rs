//! The tools of OpenZFS, of the same release as its module.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::super::archive::Archive;
use super::super::error::{VmError, failed};
use super::super::kernel::{VERSION, Zfs};
use super::super::toolbox;
use super::source::Source;

/// zdb dlopens libgcc_s.
const PACKAGES: [&str; 2] = ["zfsutils-linux", "libgcc-s1"];
const PROGRAMS: [&str; 3] = ["zpool", "zfs", "zdb"];
/// Where a guest has them.
const IN_GUEST: &str = "fsverdict/zfs";

/// Fetches the tools into `folder`; `root` is where their packages are unpacked.
pub fn collect(source: &Source, root: &Path, folder: &Path) -> Result<(), VmError> {
    fs::create_dir_all(root).map_err(failed(format!("making {}", root.display())))?;
    source.apt.unpack(&source.apt.with_all_they_need(&PACKAGES)?, root)?;
    let programs = PROGRAMS.iter().map(|name| found(root, name));
    toolbox::collect(&[root], &programs.collect::<Result<Vec<_>, _>>()?, folder)?;
    let version = folder.join(VERSION);
    let made = fs::write(&version, &source.version);
    made.map_err(failed(format!("making {}", version.display())))
}

fn found(root: &Path, name: &str) -> Result<PathBuf, VmError> {
    toolbox::found(root, &["usr/sbin", "sbin"], name)
        .ok_or_else(|| VmError::Fetch(format!("{name} is not in the packages {PACKAGES:?}")))
}

/// Writes the tools of `zfs` into a guest's `archive`.
pub fn pack<W: Write>(zfs: &Zfs, archive: &mut Archive<W>) -> Result<(), VmError> {
    toolbox::pack(&zfs.tools, IN_GUEST, &PROGRAMS, archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_not_in_the_packages_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = found(root.path(), "zdb").unwrap_err().to_string();
        assert!(error.starts_with("zdb is not in the packages"), "{error}");
    }
}
