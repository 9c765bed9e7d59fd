//! Kernels a guest can boot: those of this system, those that were fetched, and any image.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::arch::{self, Arch};
use super::built::{self, Found};
use super::error::VmError;
use super::image::{Image, called};
use super::release::{by_version, is_of_version, name_with, with_zfs};
use crate::machine::plain;
use crate::{sys, undo};

/// A kernel's image with its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The bzImage; for arm64 the Image.
    pub image: PathBuf,
    /// For which processors it is.
    pub arch: Arch,
    /// What it calls itself: `6.1.0-44-cloud-amd64`.
    pub release: String,
    /// Which build of that release it is, and of when: `#3 SMP PREEMPT_DYNAMIC Tue Nov ...`; empty
    /// where it does not say.
    pub build: String,
    /// The folder with its modules; `None` where none was found.
    pub modules: Option<PathBuf>,
    /// The OpenZFS that was built for it.
    pub zfs: Option<Zfs>,
}

/// An OpenZFS among the modules of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zfs {
    /// `2.3.9`.
    pub version: String,
    /// The folder with its tools, of the same version.
    pub tools: PathBuf,
}

/// The folder of the tools, beside the kernel's `boot`.
pub const TOOLS: &str = "zfs";
/// The file there that says their version.
pub const VERSION: &str = "version";

/// Where fetched kernels and package lists are kept: below the user's cache.
pub fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    cache.map_or_else(undo::registry, |cache| cache.join("fsverdict"))
}

/// Where [`super::fetch`] puts each kernel, in a folder of its release.
pub fn fetched() -> PathBuf {
    cache().join("kernels")
}

/// All kernels of this system and those that were fetched; the newest first.
pub fn all() -> Vec<Kernel> {
    let folders = fs::read_dir(fetched()).into_iter().flatten().flatten();
    let folders = folders.map(|entry| entry.path().join("boot")).chain(["/boot".into()]);
    let files = folders.flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let is_image = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
    };
    let mut kernels: Vec<Kernel> =
        files.filter(is_image).filter_map(|path| Kernel::at(&path).ok()).collect();
    // For one release the plain kernel first, then the newest OpenZFS.
    let version = |kernel: &Kernel| kernel.zfs.as_ref().map(|zfs| zfs.version.clone());
    kernels.sort_by(|one, other| {
        let zfs = || match (version(one), version(other)) {
            (Some(one), Some(other)) => by_version(&other, &one),
            (one, other) => one.cmp(&other),
        };
        by_version(&other.release, &one.release).then_with(zfs)
    });
    kernels
}

/// The kernels of that name, the first choice first: the one at a path, which is an image or a
/// folder with a kernel (`tree.rs`), or all whose release it is or begins (`6.12`, `6.12+zfs-2.3`),
/// the newest first; for other processors than this machine's where it says so (`6.12:arm64`). No
/// name: the running one, then all there are.
pub fn named(name: Option<&str>) -> Result<Vec<Kernel>, VmError> {
    if let Some(path) = name.filter(|name| name.contains('/')) {
        let unreadable = |source| VmError::Image { path: path.into(), source };
        let kernel = match Path::new(path).is_dir() {
            true => Kernel::in_folder(Path::new(path)),
            false => Kernel::at(Path::new(path)),
        };
        return Ok(vec![kernel.map_err(unreadable)?]);
    }
    let mut kernels = all();
    match name {
        Some(name) => kernels.retain(|kernel| kernel.is_called(name)),
        None => {
            let running = sys::kernel_release();
            kernels.retain(|kernel| kernel.arch == Arch::OWN);
            kernels.sort_by_key(|kernel| kernel.release != running);
        }
    }
    match (kernels.is_empty(), name) {
        (false, _) => Ok(kernels),
        (true, Some(name)) if Path::new(name).exists() => {
            Err(VmError::IsFile { name: name.into() })
        }
        (true, Some(name)) => Err(VmError::NoKernel { name: name.into() }),
        (true, None) => Err(VmError::NoKernelAtAll),
    }
}

impl Kernel {
    /// Its release, with the OpenZFS that was built for it, and its processors where they are not
    /// this machine's and it does not say so: `6.1.0-44-cloud-amd64+zfs-2.3.9`, `6.1.9:arm64`.
    pub fn name(&self) -> String {
        let zfs = self.zfs.as_ref();
        let name = zfs.map_or(self.release.clone(), |zfs| name_with(&self.release, &zfs.version));
        match self.release.ends_with(self.arch.name()) {
            true => name,
            false => name + &arch::end(self.arch),
        }
    }

    /// Its release and its build, with the OpenZFS that was built for it: another kernel of that
    /// name tells another.
    pub fn told(&self) -> String {
        format!("{} {}", self.release, self.build).trim_end().to_string() + &self.its_zfs()
    }

    /// The OpenZFS that was built for it, as the end of a sentence, if there is one.
    pub fn its_zfs(&self) -> String {
        self.zfs.as_ref().map_or(String::new(), |zfs| format!(", OpenZFS {}", zfs.version))
    }

    /// `name` is its release or a beginning of it, likewise for the OpenZFS version in it; and its
    /// processors match, unless `name` is the whole release.
    fn is_called(&self, name: &str) -> bool {
        let (name, arch) = arch::split(name);
        if arch != self.arch && name != self.release {
            return false;
        }
        let Some((release, version)) = with_zfs(name) else {
            return is_of_version(&self.release, name);
        };
        let is_version = |zfs: &Zfs| version.is_empty() || is_of_version(&zfs.version, version);
        is_of_version(&self.release, release) && self.zfs.as_ref().is_some_and(is_version)
    }

    /// That image is one of the same build.
    pub fn is_that_of(&self, image: &Path) -> bool {
        let called = || called(plain::open(image)?, fs::metadata(image)?.len());
        called().is_ok_and(|it| it.release == self.release && it.build == self.build)
    }

    /// Where its modules were looked for, as the end of a sentence, if there are none.
    pub fn without_modules(&self) -> Option<String> {
        if self.modules.is_some() {
            return None;
        }
        let roots = roots(&self.image);
        let looked =
            folders(&roots, self.arch, &self.release).map(|folder| folder.display().to_string());
        let looked = looked.collect::<Vec<_>>().join(", ");
        Some(format!("; no modules of it were found in {looked}"))
    }

    /// The kernel in that folder, with its modules.
    fn in_folder(folder: &Path) -> io::Result<Kernel> {
        let Found { image, release, modules } = built::find(&folder.canonicalize()?)?;
        let kernel = Kernel::at(&image)?;
        if kernel.release != release {
            return Err(io::Error::other(format!(
                "its image {} calls itself {}, and its modules are for {release}: make both again",
                image.display(),
                kernel.release
            )));
        }
        Ok(Kernel { modules: Some(modules), ..kernel })
    }

    /// The kernel of that image; its modules are looked for beside it, on this system, and in the
    /// tree that it lies in.
    pub fn at(image: &Path) -> io::Result<Kernel> {
        let image = image.canonicalize()?;
        let Image { arch, release, build } = kept(&image)?;
        let roots = roots(&image);
        let modules = folders(&roots, arch, &release).find(|folder| folder.is_dir());
        let modules = modules.or_else(|| built::around(&image, arch, &release));
        // `/zfs` is this system's own, and nothing that belongs to a kernel of /boot.
        let package = Some(roots[1]).filter(|root| root.parent().is_some());
        let zfs = package.and_then(|root| Zfs::in_folder(&root.join(TOOLS)));
        Ok(Kernel { image, arch, release, build, modules, zfs })
    }
}

/// What an image calls itself. One for arm64 has to be read whole for that, and a plan's kernels
/// are looked up often: so the answer is kept as long as the file is the same.
fn kept(image: &Path) -> io::Result<Image> {
    type Known = BTreeMap<PathBuf, (u64, SystemTime, Image)>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let data = fs::metadata(image)?;
    let (bytes, at) = (data.len(), data.modified()?);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(image) {
        Some((its_bytes, its_at, its)) if (*its_bytes, *its_at) == (bytes, at) => Ok(its.clone()),
        _ => {
            let found = called(plain::open(image)?, bytes)?;
            known.insert(image.into(), (bytes, at, found.clone()));
            Ok(found)
        }
    }
}

/// Where modules of an image are: beside it; beside its folder, as in a package; and where this
/// system has its own.
fn roots(image: &Path) -> [&Path; 3] {
    let beside = image.parent().unwrap_or(Path::new("/"));
    [beside, beside.parent().unwrap_or(beside), Path::new("/")]
}

/// This system's own are for its own processors.
fn folders(roots: &[&Path], arch: Arch, release: &str) -> impl Iterator<Item = PathBuf> {
    let is_its = move |root: &&&Path| arch == Arch::OWN || root.parent().is_some();
    let libraries =
        roots.iter().filter(is_its).flat_map(|root| ["lib", "usr/lib"].map(|lib| root.join(lib)));
    libraries.map(move |lib| lib.join("modules").join(release))
}

impl Zfs {
    /// The one whose tools are in that folder.
    pub(super) fn in_folder(tools: &Path) -> Option<Zfs> {
        let version = fs::read_to_string(tools.join(VERSION)).ok()?.trim().to_string();
        tools.join("zpool").exists().then_some(())?;
        Some(Zfs { version, tools: tools.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_version_and_no_tools_is_no_openzfs() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(VERSION), "2.3.9\n").unwrap();
        assert_eq!(Zfs::in_folder(folder.path()), None);
        fs::write(folder.path().join("zpool"), "").unwrap();
        assert_eq!(Zfs::in_folder(folder.path()).unwrap().version, "2.3.9");
    }

    #[test]
    fn a_kernel_is_called_by_its_release_and_its_openzfs() {
        let zfs = Zfs { version: "2.3.9".into(), tools: PathBuf::new() };
        let kernel = |zfs| Kernel {
            image: PathBuf::new(),
            arch: Arch::OWN,
            release: "6.1.0-44-cloud-amd64".into(),
            build: String::new(),
            modules: None,
            zfs,
        };
        let (plain, with) = (kernel(None), kernel(Some(zfs)));
        assert_eq!(with.name(), "6.1.0-44-cloud-amd64+zfs-2.3.9");
        for name in ["6.1", "6.1+zfs", "6.1+zfs-2.3", "6.1.0-44-cloud-amd64+zfs-2.3.9"] {
            assert!(with.is_called(name), "{name}");
            assert_eq!(plain.is_called(name), name == "6.1", "{name}");
        }
        for name in ["6.12+zfs", "6.1+zfs-2.4", "6.1+zfs-2.3.90", "+zfs"] {
            assert!(!with.is_called(name), "{name}");
        }
        let other = if Arch::OWN == Arch::X86 { Arch::Arm64 } else { Arch::X86 };
        let release: String = "6.1.0-mine".into();
        let of_other = Kernel { arch: other, release: release.clone(), ..plain.clone() };
        let name = of_other.name();
        assert_eq!(name, format!("6.1.0-mine:{}", other.name()));
        for name in [&name, &release, &format!("6.1:{}", other.name())] {
            assert!(of_other.is_called(name), "{name}");
        }
        assert!(!of_other.is_called("6.1") && !plain.is_called(&format!("6.1:{}", other.name())));
        assert!(plain.is_called(&format!("6.1:{}", Arch::OWN.name())));
    }
}
