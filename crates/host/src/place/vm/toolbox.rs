//! Tools for guests only, from packages that the machine does not have: fetched through its own
//! apt, unpacked, and never installed. Each comes with the libraries and the loader that it was
//! built for, and is started by a script of its name.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::apt::Apt;
use super::arch::Arch;
use super::archive::Archive;
use super::error::{VmError, failed};
use super::{fetch, kernel};
use crate::tool::{self, DIRECTORIES};

const LOADER: &str = Arch::OWN.loader();
/// pthread_cancel(3) opens it while a program runs: no list of libraries has it.
pub const OPENED_LATER: &str = "libgcc_s.so.1";
/// Where a guest finds the scripts: before the programs of the host.
const SCRIPTS: &str = "usr/local/sbin";
/// A package's version, and the names of its programs, a line each.
const VERSION: &str = "version";
const PROGRAMS: &str = "programs";
/// What of them is unpacked into, until it is whole.
const WORK: &str = "unpacking";

/// A package's tools, fetched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toolbox {
    package: String,
    folder: PathBuf,
}

impl Toolbox {
    fn of(package: &str) -> Toolbox {
        Toolbox { package: package.into(), folder: kernel::cache().join("tools").join(package) }
    }

    /// The version of its package.
    pub fn version(&self) -> Option<String> {
        let version = fs::read_to_string(self.folder.join(VERSION)).ok()?;
        Some(version.trim().into())
    }

    /// Its programs.
    pub fn programs(&self) -> Vec<String> {
        let names = fs::read_to_string(self.folder.join(PROGRAMS)).unwrap_or_default();
        names.lines().map(String::from).collect()
    }

    /// Writes it into a guest's `archive`.
    pub fn pack<W: Write>(&self, archive: &mut Archive<W>) -> Result<(), VmError> {
        let at = format!("fsverdict/{}", self.package);
        pack(&self.folder, &at, &self.programs(), archive)
    }
}

/// The one that has `program`, if it was fetched.
pub fn find(program: &str) -> Option<Toolbox> {
    let toolbox = Toolbox::of(tool::package(program)?);
    toolbox.programs().iter().any(|it| it == program).then_some(toolbox)
}

/// Fetches the tools of Debian's `package`, unless they are there already.
pub fn get(package: &str, say: &mut dyn FnMut(&str)) -> Result<Toolbox, VmError> {
    let toolbox = Toolbox::of(package);
    if toolbox.version().is_some() {
        return Ok(toolbox);
    }
    let _lock = fetch::locked(&kernel::cache(), say)?;
    // Another has fetched them meanwhile.
    if toolbox.version().is_some() {
        return Ok(toolbox);
    }
    let source = Source::of(package, say)?;
    let version = &source.version;
    say(&format!("fetching {package} {version}"));
    let work = kernel::cache().join(WORK);
    let _ = fs::remove_dir_all(&work);
    let beside = work.join("toolbox");
    let made = fill(&source, package, &work, &beside).and_then(|programs| {
        let write = |name: &str, text: &str| {
            let path = beside.join(name);
            fs::write(&path, text).map_err(failed(format!("writing {}", path.display())))
        };
        write(PROGRAMS, &programs.join("\n"))?;
        write(VERSION, version)?;
        make_folder(toolbox.folder.parent().unwrap_or(Path::new("/")))?;
        let making = failed(format!("making {}", toolbox.folder.display()));
        fs::rename(&beside, &toolbox.folder).map_err(making)
    });
    let _ = fs::remove_dir_all(&work);
    made.map(|()| toolbox)
}

/// Where a package comes from.
#[derive(Debug)]
struct Source {
    apt: Apt,
    version: String,
    /// Its release is the machine's own, whose installed libraries fit it.
    is_own: bool,
}

impl Source {
    /// The machine's own release, or Debian's newest where that one does not have the package.
    fn of(package: &str, say: &mut dyn FnMut(&str)) -> Result<Source, VmError> {
        let own = Apt::machines();
        if let Some(version) = own.version(package) {
            return Ok(Source { apt: own, version, is_own: true });
        }
        let newest = fetch::NEWEST.1;
        say(&format!(
            "{package} is not in this machine's package lists: reading those of {newest}"
        ));
        let none = |why: &str| {
            VmError::Fetch(format!(
                "no package {package} was found: apt-get update, or install it{why}"
            ))
        };
        let apt = Apt::private(newest, None, "main", Arch::OWN)
            .map_err(|error| none(&format!(" ({newest}: {error})")))?;
        let version = apt.version(package).ok_or_else(|| none(""))?;
        Ok(Source { apt, version, is_own: false })
    }

    /// `package` and what it needs besides what is installed.
    fn with_all(&self, package: &str) -> Result<Vec<String>, VmError> {
        match self.is_own {
            true => self.apt.with_what_is_missing(&[package]),
            false => self.apt.with_all_they_need(&[package]),
        }
    }
}

/// Unpacks the package, and what it needs that is not installed; returns its programs.
fn fill(
    source: &Source,
    package: &str,
    work: &Path,
    folder: &Path,
) -> Result<Vec<String>, VmError> {
    let (own, needed) = (work.join("own"), work.join("needed"));
    [&own, &needed].into_iter().try_for_each(|path| make_folder(path))?;
    let (apt, mut others) = (&source.apt, source.with_all(package)?);
    others.retain(|it| it != package);
    apt.unpack(&[package.to_string()], &own)?;
    if !others.is_empty() {
        apt.unpack(&others, &needed)?;
    }
    let programs = programs_in(&own);
    if programs.is_empty() {
        return Err(VmError::Fetch(format!("package {package} has no program")));
    }
    collect(&[&own, &needed, Path::new("/")], &programs, folder)?;
    let name = |path: &PathBuf| path.file_name()?.to_str().map(String::from);
    Ok(programs.iter().filter_map(name).collect())
}

/// The programs of an unpacked package, without scripts and other names: those of LVM are 40.
fn programs_in(root: &Path) -> Vec<PathBuf> {
    let folders = DIRECTORIES.iter().map(|folder| root.join(folder.trim_start_matches('/')));
    let entries = folders.flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let is_program = |path: &PathBuf| {
        let mut head = [0; 4];
        let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok();
        !path.is_symlink() && is_read && head == *b"\x7fELF"
    };
    entries.filter(is_program).collect()
}

pub(super) fn make_folder(folder: &Path) -> Result<(), VmError> {
    fs::create_dir_all(folder).map_err(failed(format!("making {}", folder.display())))
}

/// Copies `programs` into `folder`, with the libraries and the loader that they need, from the
/// first of `roots` that has them.
pub fn collect(roots: &[&Path], programs: &[PathBuf], folder: &Path) -> Result<(), VmError> {
    make_folder(folder)?;
    let folders = library_folders(Arch::OWN);
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let library = |name: &str| roots.iter().find_map(|root| found(root, &folders, name));
    let loader = library(LOADER).ok_or_else(|| VmError::Fetch(format!("there is no {LOADER}")))?;
    let mut files = libraries(roots, &loader, programs)?;
    files.extend([loader].into_iter().chain(library(OPENED_LATER)));
    files.extend(programs.iter().cloned());
    for file in files {
        let to = folder.join(file.file_name().unwrap_or_default());
        fs::copy(&file, &to).map_err(failed(format!("making {}", to.display())))?;
    }
    Ok(())
}

/// Where libraries for `arch` lie below a root: the usual folders, and those of packages that bring
/// some of their own.
pub fn library_folders(arch: Arch) -> [String; 4] {
    let its = arch.libraries();
    ["usr/lib/ITS", "lib/ITS", "usr/lib/ITS/samba", "usr/lib/ITS/systemd"]
        .map(|folder| folder.replace("ITS", its))
}

/// The file of that name in one of `folders` below `root`.
pub fn found(root: &Path, folders: &[&str], name: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| root.join(folder).join(name)).find(|path| path.is_file())
}

/// What the loader says the programs need (ld.so(8), `--list`).
fn libraries(
    roots: &[&Path],
    loader: &Path,
    programs: &[PathBuf],
) -> Result<Vec<PathBuf>, VmError> {
    let folders = library_folders(Arch::OWN);
    let folders = roots.iter().flat_map(|root| folders.iter().map(|folder| root.join(folder)));
    let path = folders.map(|it| it.display().to_string()).collect::<Vec<_>>().join(":");
    let loader = loader.display().to_string();
    let mut files = Vec::new();
    for program in programs {
        let program = program.display().to_string();
        let said = tool::run_words(&[&loader, "--list", "--library-path", &path, &program])?;
        if let Some(line) = said.lines().find(|line| line.contains("not found")) {
            return Err(VmError::Fetch(format!("{program}: {}", line.trim())));
        }
        files.extend(listed(&said).map(PathBuf::from));
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// The paths in what ldd(1) printed: `libc.so.6 => /lib/libc.so.6 (0x7f...)`, and the loader's own.
pub fn listed(said: &str) -> impl Iterator<Item = &str> {
    let lines = said.lines().filter(|line| line.starts_with(char::is_whitespace));
    let paths = lines.filter_map(|line| {
        let line = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
        line.rsplit_once(" (0x").map(|(path, _)| path)
    });
    paths.filter(|path| path.starts_with('/'))
}

/// Writes what is in `folder` into a guest's `archive`, at `at`, with a script for each program.
pub fn pack<W: Write>(
    folder: &Path,
    at: &str,
    programs: &[impl AsRef<str>],
    archive: &mut Archive<W>,
) -> Result<(), VmError> {
    let packing = || failed(format!("bringing {} into the guest", folder.display()));
    let mut path = String::new();
    for part in SCRIPTS.split('/') {
        path = format!("{path}{part}");
        archive.directory(&path, 0o755).map_err(packing())?;
        path.push('/');
    }
    archive.directory(at, 0o755).map_err(packing())?;
    archive.folder(&format!("{at}/"), folder).map_err(packing())?;
    // Where guests have it, too: /bin is not there on every host.
    let shell =
        tool::find("sh").ok_or_else(|| tool::ToolError::Missing { program: "sh".into() })?;
    for program in programs.iter().map(AsRef::as_ref) {
        let script = script(&shell, at, program);
        let name = format!("{SCRIPTS}/{program}");
        archive.bytes(&name, 0o755, script.as_bytes()).map_err(packing())?;
    }
    Ok(())
}

fn script(shell: &Path, at: &str, program: &str) -> String {
    format!(
        "#!{}\nexec /{at}/{LOADER} --library-path /{at} /{at}/{program} \"$@\"\n",
        shell.display()
    )
}

#[cfg(test)]
mod tests {
    use super::super::archive;
    use super::*;

    #[test]
    fn a_guest_gets_the_tools_and_scripts_that_start_them_by_their_own_loader() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["zpool", "libzfs.so.6", LOADER] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let mut archive = Archive::new(Vec::new());
        pack(folder.path(), "fsverdict/zfs", &["zpool"], &mut archive).unwrap();
        let files = archive::files(&archive.finish().unwrap()[..]).unwrap();
        assert_eq!(files["fsverdict/zfs/libzfs.so.6"], b"libzfs.so.6");
        let script = String::from_utf8_lossy(&files["usr/local/sbin/zpool"]).into_owned();
        let line = format!(
            "exec /fsverdict/zfs/{LOADER} --library-path /fsverdict/zfs /fsverdict/zfs/zpool \"$@\""
        );
        assert_eq!(script.lines().nth(1), Some(line.as_str()));
    }

    #[test]
    fn ldd_is_understood() {
        let said = "/bin/sh:\n\tlinux-vdso.so.1 (0x00007ffe)\n\tlibc.so.6 => \
                    /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 \
                    (0x00007f)\n\tlibgone.so => not found\n";
        let found: Vec<&str> = listed(said).collect();
        assert_eq!(found, ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }

    #[test]
    fn a_program_is_collected_with_its_libraries_and_runs_with_them_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::copy(tool::find("ls").unwrap(), root.join("usr/bin/ls")).unwrap();
        fs::write(root.join("usr/bin/script"), "#!/bin/sh\n").unwrap();
        let programs = programs_in(&root);
        assert_eq!(programs, [root.join("usr/bin/ls")], "a script is no program");
        let to = folder.path().join("box");
        collect(&[&root, Path::new("/")], &programs, &to).unwrap();
        let path = |name: &str| to.join(name).display().to_string();
        let words = [&path(LOADER), "--library-path", &path(""), &path("ls"), &path("")];
        assert!(tool::run_words(&words).unwrap().contains("libc.so.6"));
    }
}
