//! The tools of OpenZFS, of the same release as its module, with the libraries and the loader that
//! they were built for: a guest's other programs have those of the host.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::super::archive::Archive;
use super::super::error::{VmError, failed};
use super::super::host_files;
use super::super::kernel::{VERSION, Zfs};
use super::source::Source;
use crate::tool;

const PACKAGES: [&str; 2] = ["zfsutils-linux", "libgcc-s1"];
const PROGRAMS: [&str; 3] = ["zpool", "zfs", "zdb"];
const LOADER: &str = "ld-linux-x86-64.so.2";
/// pthread_cancel(3) opens it while zdb runs: no list of libraries has it.
const OPENED_LATER: &str = "libgcc_s.so.1";
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
/// Where a guest has them, and where it finds scripts that start them: before those of the host,
/// which may be of zfs-fuse.
const IN_GUEST: &str = "fsverdict/zfs";
const SCRIPTS: &str = "usr/local/sbin";

/// Fetches the tools into `folder`; `root` is where their packages are unpacked.
pub fn collect(source: &Source, root: &Path, folder: &Path) -> Result<(), VmError> {
    let making = |path: &Path| failed(format!("making {}", path.display()));
    for path in [root, folder] {
        fs::create_dir_all(path).map_err(making(path))?;
    }
    source.apt.unpack(&source.apt.with_all_they_need(&PACKAGES)?, root)?;
    let programs = PROGRAMS.map(|name| found(root, &["usr/sbin", "sbin"], name));
    let programs = programs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut files = libraries(root, &programs)?;
    files.extend([found(root, &LIBRARIES, LOADER)?, found(root, &LIBRARIES, OPENED_LATER)?]);
    files.extend(programs);
    for file in files {
        let to = folder.join(file.file_name().unwrap_or_default());
        fs::copy(&file, &to).map_err(making(&to))?;
    }
    let version = folder.join(VERSION);
    fs::write(&version, &source.version).map_err(making(&version))
}

fn found(root: &Path, folders: &[&str], name: &str) -> Result<PathBuf, VmError> {
    let mut paths = folders.iter().map(|folder| root.join(folder).join(name));
    let lacking = || VmError::Fetch(format!("{name} is not in the packages {PACKAGES:?}"));
    paths.find(|path| path.is_file()).ok_or_else(lacking)
}

/// What the loader of `root` says the programs need (ld.so(8), `--list`).
fn libraries(root: &Path, programs: &[PathBuf]) -> Result<Vec<PathBuf>, VmError> {
    let path = LIBRARIES.map(|folder| root.join(folder).display().to_string()).join(":");
    let loader = found(root, &LIBRARIES, LOADER)?.display().to_string();
    let mut files = Vec::new();
    for program in programs {
        let program = program.display().to_string();
        let said = tool::run_words(&[&loader, "--list", "--library-path", &path, &program])?;
        if let Some(line) = said.lines().find(|line| line.contains("not found")) {
            return Err(VmError::Fetch(format!("{program}: {}", line.trim())));
        }
        files.extend(host_files::libraries(&said).map(PathBuf::from));
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Writes the tools of `zfs` into a guest's `archive`.
pub fn pack<W: Write>(zfs: &Zfs, archive: &mut Archive<W>) -> Result<(), VmError> {
    let packing = || failed(format!("bringing {} into the guest", zfs.tools.display()));
    let mut at = String::new();
    for part in SCRIPTS.split('/') {
        at = format!("{at}{part}");
        archive.directory(&at, 0o755).map_err(packing())?;
        at.push('/');
    }
    archive.directory(IN_GUEST, 0o755).map_err(packing())?;
    archive.folder(&format!("{IN_GUEST}/"), &zfs.tools).map_err(packing())?;
    // Where guests have it, too: /bin is not there on every host.
    let shell =
        tool::find("sh").ok_or_else(|| tool::ToolError::Missing { program: "sh".into() })?;
    for program in PROGRAMS {
        let name = format!("{SCRIPTS}/{program}");
        let script = script(&shell, program);
        archive.bytes(&name, 0o755, script.as_bytes()).map_err(packing())?;
    }
    Ok(())
}

fn script(shell: &Path, program: &str) -> String {
    format!(
        "#!{}\nexec /{IN_GUEST}/{LOADER} --library-path /{IN_GUEST} /{IN_GUEST}/{program} \
         \"$@\"\n",
        shell.display()
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::archive;
    use super::*;

    #[test]
    fn a_guest_gets_the_tools_and_scripts_that_start_them_by_their_own_loader() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["zpool", "libzfs.so.6", LOADER] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let zfs = Zfs { version: "2.3.9".into(), tools: folder.path().into() };
        let mut archive = Archive::new(Vec::new());
        pack(&zfs, &mut archive).unwrap();
        let files = archive::files(&archive.finish().unwrap()[..]).unwrap();
        assert_eq!(files["fsverdict/zfs/libzfs.so.6"], b"libzfs.so.6");
        let script = String::from_utf8_lossy(&files["usr/local/sbin/zpool"]).into_owned();
        let line = "exec /fsverdict/zfs/ld-linux-x86-64.so.2 --library-path /fsverdict/zfs \
                    /fsverdict/zfs/zpool \"$@\"";
        assert_eq!(script.lines().nth(1), Some(line));
    }

    #[test]
    fn a_tool_that_is_not_in_the_packages_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = found(root.path(), &["usr/sbin", "sbin"], "zdb").unwrap_err().to_string();
        assert!(error.starts_with("zdb is not in the packages"), "{error}");
    }
}
