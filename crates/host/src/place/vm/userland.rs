//! What guests for other processors have in place of this machine's programs: Debian's, for
//! theirs, unpacked into a folder and never installed, and fsverdict itself.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use siphasher::sip::SipHasher24;

use super::apt::{self, Apt};
use super::arch::Arch;
use super::elf;
use super::error::{VmError, failed};
use super::{fetch, kernel, toolbox};
use crate::machine::plain;
use crate::sys;
use crate::tool::{self, DIRECTORIES};

/// What trials and most work need.
const BASE: [&str; 15] = [
    "base-files",
    "bash",
    "btrfs-progs",
    "coreutils",
    "dash",
    "e2fsprogs",
    "findutils",
    "fio",
    "grep",
    "libgcc-s1",
    "mount",
    "rsync",
    "sed",
    "util-linux",
    "xfsprogs",
];
/// Where this machine's own release is none of Debian's.
const RELEASE: &str = "trixie";
/// The release of the packages; the packages that are unpacked, a line each.
const FROM: &str = "release";
const PACKAGES: &str = "packages";
/// Their versions, too.
const VERSIONS: &str = "versions";
/// It is there while some are unpacked.
const UNFINISHED: &str = "unfinished";

/// The programs that were fetched for one kind of processors.
#[derive(Clone, Debug)]
pub struct Userland {
    arch: Arch,
    folder: PathBuf,
}

impl Userland {
    /// In a folder of one's own.
    #[cfg(test)]
    pub fn at(arch: Arch, folder: &Path) -> Userland {
        Userland { arch, folder: folder.into() }
    }

    /// Those for `arch`, be they there or not.
    pub fn of(arch: Arch) -> Userland {
        Userland { arch, folder: kernel::cache().join("userland").join(arch.name()) }
    }

    /// For which processors they are.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The folder that is `/` to them.
    pub fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Their fsverdict.
    pub fn ourselves(&self) -> PathBuf {
        self.folder.join("fsverdict")
    }

    /// What is to be done before a guest can have them.
    pub fn missing(&self) -> Option<String> {
        let arch = self.arch.name();
        if self.packages().is_empty() || self.is_unfinished() {
            return Some(format!("fsverdict kernels tools --arch {arch}"));
        }
        (!self.ourselves().is_file()).then(|| {
            format!(
                "fsverdict kernels tools --arch {arch} --program FILE, where FILE is fsverdict for \
                 {} (packaging/build --arch {arch} static)",
                self.arch.shown()
            )
        })
    }

    /// None was fetched yet, and this one would be with the first, as far as is known.
    pub fn is_yet_to_bring(&self, package: Option<&str>) -> bool {
        self.packages().is_empty() && package.is_none_or(|it| BASE.contains(&it))
    }

    /// What they are, for a person: it differs for another set of packages.
    pub fn told(&self) -> String {
        let (release, versions) = (self.release(), self.versions());
        let mut hash = SipHasher24::new();
        versions.iter().for_each(|it| hash.write(it.as_bytes()));
        format!("Debian {release}, {} packages, {:016x}", versions.len(), hash.finish())
    }

    /// The path of a program to them, where trials look for programs.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return Some(PathBuf::from(program)).filter(|it| self.has(it));
        }
        let mut paths = DIRECTORIES.iter().map(|folder| Path::new(folder).join(program));
        paths.find(|path| self.has(path))
    }

    /// The program that meets a workload's need among them: [`tool::needed`].
    pub fn needed(&self, need: &str) -> Option<PathBuf> {
        tool::needed_below(&self.root(), need).find_map(|name| self.find(&name))
    }

    /// `path` is a file to them, be it by links: these lead nowhere outside.
    pub fn has(&self, path: &Path) -> bool {
        let found = File::open(self.root())
            .and_then(|root| sys::open_in_root(root.as_fd(), &sys::c_path(path)?, libc::O_PATH, 0))
            .and_then(|file| File::from(file).metadata());
        found.is_ok_and(|it| it.is_file())
    }

    /// The path of a library to them.
    pub fn library(&self, name: &str) -> Option<PathBuf> {
        let folders = toolbox::library_folders(self.arch);
        let mut paths = folders.iter().map(|folder| Path::new("/").join(folder).join(name));
        paths.find(|path| self.has(path))
    }

    /// A process that unpacked some was killed, or is still at it.
    fn is_unfinished(&self) -> bool {
        self.folder.join(UNFINISHED).exists()
    }

    fn packages(&self) -> BTreeSet<String> {
        self.lines(PACKAGES)
    }

    fn versions(&self) -> BTreeSet<String> {
        self.lines(VERSIONS)
    }

    fn lines(&self, name: &str) -> BTreeSet<String> {
        let text = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        text.lines().map(String::from).collect()
    }

    /// Their release of Debian: one for all, because they share libraries.
    fn release(&self) -> String {
        let known = fs::read_to_string(self.folder.join(FROM)).ok();
        known.map_or_else(own_release, |release| release.trim().into())
    }

    fn keep(&self, name: &str, text: &str) -> Result<(), VmError> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(failed(format!("writing {}", path.display())))
    }

    /// Takes that file as their fsverdict.
    fn take(&self, program: &Path) -> Result<(), VmError> {
        let shown = program.display();
        let found = File::open(program).and_then(|mut file| machine(&mut file));
        let found = found.map_err(failed(format!("reading {shown}")))?;
        if found != Some(self.arch) {
            let arch = self.arch.shown();
            return Err(VmError::Fetch(format!("{shown} is not a program for {arch}")));
        }
        let file = File::open(program).map_err(failed(format!("reading {shown}")))?;
        if let Some(library) = elf::needed(&file).first() {
            return Err(VmError::Fetch(format!(
                "{shown} needs {library}: take one that is linked statically (packaging/build)"
            )));
        }
        let (to, beside) = (self.ourselves(), self.folder.join("fsverdict.new"));
        fs::copy(program, &beside)
            .and_then(|_| fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)))
            .and_then(|()| fs::rename(&beside, &to))
            .map_err(failed(format!("making {}", to.display())))
    }
}

impl Userland {
    /// Fetches packages, and all that they need, as far as they are not there.
    fn fetch(
        &self,
        mut named: BTreeSet<String>,
        mirror: Option<&str>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), VmError> {
        let (mut there, is_unfinished) = (self.packages(), self.is_unfinished());
        if is_unfinished {
            // Some of the files may be cut off: all come again.
            named.append(&mut there);
        }
        if named.is_subset(&there) {
            return Ok(());
        }
        let (release, shown) = (self.release(), self.arch.shown());
        say(&format!("reading the package lists of {release} for {shown}"));
        let apt = Apt::private(&release, mirror, "main", self.arch)?;
        let words: Vec<&str> = named.iter().map(String::as_str).collect();
        let all = apt.with_all_they_need(&words)?;
        let new: Vec<String> = all.iter().filter(|it| !there.contains(*it)).cloned().collect();
        say(&format!("fetching {} packages for {shown}", new.len()));
        let (root, beside) = (self.root(), self.folder.join("downloading"));
        empty(&beside)?;
        apt.download(&new, &beside)?;
        self.keep(UNFINISHED, "")?;
        if is_unfinished || !root.exists() {
            empty(&root)?;
        }
        let mut versions = if is_unfinished { BTreeSet::new() } else { self.versions() };
        versions.extend(apt::unpack(&beside, &root)?);
        // A named package may be one that others provide.
        there.extend(all.into_iter().chain(named));
        let lines = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join("\n");
        self.keep(FROM, &release)?;
        self.keep(VERSIONS, &lines(versions))?;
        self.keep(PACKAGES, &lines(there))?;
        for (path, is_folder) in [(beside, true), (self.folder.join(UNFINISHED), false)] {
            let gone = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.map_err(failed(format!("removing {}", path.display())))?;
        }
        Ok(())
    }
}

/// Makes the folder, with nothing in it.
fn empty(folder: &Path) -> Result<(), VmError> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(failed(format!("making {}", folder.display())))
}

/// Fetches `packages`, with what every trial needs, for `arch`, as far as they are not there; and
/// takes `program` as their fsverdict.
pub fn get(
    arch: Arch,
    packages: &[String],
    program: Option<&Path>,
    mirror: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<Userland, VmError> {
    let _lock = fetch::locked(&kernel::cache(), say)?;
    let userland = Userland::of(arch);
    let named = BASE.into_iter().map(String::from).chain(packages.iter().cloned()).collect();
    userland.fetch(named, mirror, say)?;
    let beside = std::env::current_exe().ok();
    let beside =
        beside.and_then(|it| Some(it.parent()?.join(format!("fsverdict-{}", arch.name()))));
    let program = program.map(PathBuf::from).or_else(|| beside.filter(|it| it.is_file()));
    program.map_or(Ok(()), |program| userland.take(&program))?;
    Ok(userland)
}

/// That of this machine, where it is one of Debian's (os-release(5)).
fn own_release() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let codename = field("VERSION_CODENAME=").filter(|_| field("ID=") == Some("debian"));
    codename.unwrap_or(RELEASE).into()
}

/// A file of this machine's that any guest can have: no program.
pub fn is_data(path: &Path) -> bool {
    let found = plain::open(path).and_then(|mut file| machine(&mut file));
    path.is_absolute() && found.is_ok_and(|it| it.is_none())
}

/// For which processors the program in a file is: elf(5), `e_machine`.
pub fn machine(file: &mut impl Read) -> std::io::Result<Option<Arch>> {
    let mut head = Vec::new();
    file.take(20).read_to_end(&mut head)?;
    Ok(match head.get(18..20).filter(|_| head.starts_with(b"\x7fELF\x02\x01")) {
        Some([62, 0]) => Some(Arch::X86),
        Some([183, 0]) => Some(Arch::Arm64),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn programs_and_libraries_are_found_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let userland = Userland::at(Arch::Arm64, folder.path());
        assert_eq!(userland.missing().unwrap(), "fsverdict kernels tools --arch arm64");
        for name in ["sbin/mkfs.ext4", "usr/lib/aarch64-linux-gnu/samba/libx.so.1", "etc/x"] {
            let path = userland.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(userland.find("mkfs.ext4"), Some("/sbin/mkfs.ext4".into()));
        assert_eq!(userland.find("/sbin/mkfs.ext4"), Some("/sbin/mkfs.ext4".into()));
        assert_eq!((userland.find("sh"), userland.find("/bin/sh")), (None, None));
        let link = |to: &str, name: &str| symlink(to, userland.root().join("sbin").join(name));
        link("/sbin/mkfs.ext4", "mkfs.ext3").unwrap();
        assert_eq!(userland.find("mkfs.ext3"), Some("/sbin/mkfs.ext3".into()));
        link("/bin/sh", "host").unwrap();
        assert_eq!(userland.find("host"), None, "it leads to no program of theirs");
        let library = userland.library("libx.so.1").unwrap();
        assert_eq!(library, Path::new("/usr/lib/aarch64-linux-gnu/samba/libx.so.1"));
        assert_eq!(userland.library("libc.so.6"), None);
        userland.keep(PACKAGES, "fio\nlibc6").unwrap();
        assert_eq!(userland.packages(), ["fio", "libc6"].map(String::from).into());
        let before = userland.told();
        userland.keep(VERSIONS, "fio_3.33-3_arm64").unwrap();
        assert!(before != userland.told() && userland.told().contains("1 packages"));
        assert!(userland.missing().unwrap().contains("--program FILE"));
        userland.keep(UNFINISHED, "").unwrap();
        assert_eq!(userland.missing().unwrap(), "fsverdict kernels tools --arch arm64");
    }

    #[test]
    fn a_program_is_taken_that_is_for_these_processors() {
        let folder = tempfile::tempdir().unwrap();
        let userland = Userland::at(Arch::Arm64, folder.path());
        let file = folder.path().join("program");
        let mut head = b"\x7fELF\x02\x01".to_vec();
        head.resize(64, 0);
        head[18] = 183;
        fs::write(&file, &head).unwrap();
        userland.take(&file).unwrap();
        assert_eq!(fs::read(userland.ourselves()).unwrap(), head);
        for wrong in [&b"#!/bin/sh\n"[..], b"\x7fELF\x02\x01"] {
            fs::write(&file, wrong).unwrap();
            let says = userland.take(&file).unwrap_err().to_string();
            assert!(says.ends_with("program is not a program for arm64"), "{says}");
        }
        let own = Userland { arch: Arch::OWN, ..userland };
        let says = own.take(&std::env::current_exe().unwrap()).unwrap_err().to_string();
        assert!(says.contains(": take one that is linked statically"), "{says}");
    }
}
