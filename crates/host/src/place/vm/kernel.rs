//! Kernels a guest can boot: those of this system, those that were fetched, and any bzImage.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::VmError;
use super::release::{by_version, is_of_version, name_with, with_zfs};
use super::tree::{self, Found};
use crate::machine::plain;
use crate::{sys, undo};

/// A kernel's image with its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The bzImage.
    pub image: PathBuf,
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
    // Of one release the plain kernel first, then the newest OpenZFS.
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
/// the newest first. No name: the running one, then all there are.
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
    /// Its release, with the OpenZFS that was built for it: `6.1.0-44-cloud-amd64+zfs-2.3.9`.
    pub fn name(&self) -> String {
        self.zfs.as_ref().map_or(self.release.clone(), |zfs| name_with(&self.release, &zfs.version))
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

    /// `name` is its release or a beginning of it, and so is what it says of OpenZFS.
    fn is_called(&self, name: &str) -> bool {
        let Some((release, version)) = with_zfs(name) else {
            return is_of_version(&self.release, name);
        };
        let is_version = |zfs: &Zfs| version.is_empty() || is_of_version(&zfs.version, version);
        is_of_version(&self.release, release) && self.zfs.as_ref().is_some_and(is_version)
    }

    /// That image is one of the same build.
    pub fn is_that_of(&self, image: &Path) -> bool {
        let called = || called(plain::open(image)?, fs::metadata(image)?.len());
        called().is_ok_and(|(release, build)| release == self.release && build == self.build)
    }

    /// Where its modules were looked for, as the end of a sentence, if there are none.
    pub fn without_modules(&self) -> Option<String> {
        if self.modules.is_some() {
            return None;
        }
        let roots = roots(&self.image);
        let looked = folders(&roots, &self.release).map(|folder| folder.display().to_string());
        let looked = looked.collect::<Vec<_>>().join(", ");
        Some(format!("; no modules of it were found in {looked}"))
    }

    /// The kernel in that folder, with its modules.
    fn in_folder(folder: &Path) -> io::Result<Kernel> {
        let Found { image, release, modules } = tree::find(&folder.canonicalize()?)?;
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
        let (release, build) = called(plain::open(&image)?, fs::metadata(&image)?.len())?;
        let roots = roots(&image);
        let modules = folders(&roots, &release).find(|folder| folder.is_dir());
        let modules = modules.or_else(|| tree::around(&image, &release));
        // `/zfs` is this system's own, and nothing that belongs to a kernel of /boot.
        let package = Some(roots[1]).filter(|root| root.parent().is_some());
        let zfs = package.and_then(|root| Zfs::in_folder(&root.join(TOOLS)));
        Ok(Kernel { image, release, build, modules, zfs })
    }
}

/// Where modules of an image are: beside it; beside its folder, as in a package; and where this
/// system has its own.
fn roots(image: &Path) -> [&Path; 3] {
    let beside = image.parent().unwrap_or(Path::new("/"));
    [beside, beside.parent().unwrap_or(beside), Path::new("/")]
}

fn folders(roots: &[&Path], release: &str) -> impl Iterator<Item = PathBuf> {
    let libraries = roots.iter().flat_map(|root| ["lib", "usr/lib"].map(|lib| root.join(lib)));
    libraries.map(move |lib| lib.join("modules").join(release))
}

impl Zfs {
    fn in_folder(tools: &Path) -> Option<Zfs> {
        let version = fs::read_to_string(tools.join(VERSION)).ok()?.trim().to_string();
        tools.join("zpool").exists().then_some(())?;
        Some(Zfs { version, tools: tools.into() })
    }
}

/// What an image of so many bytes calls itself, its release and its build, if it is whole and for
/// this processor (Documentation/arch/x86/boot.rst: `header`, `kernel_version`; what that is made
/// of is in arch/x86/boot/version.c: `RELEASE (USER@HOST) BUILD`).
fn called(image: impl Read, image_bytes: u64) -> io::Result<(String, String)> {
    const HEAD_BYTES: u64 = 64 << 10;
    let wrong = || io::Error::other("it is no bzImage");
    let mut head = Vec::new();
    image.take(HEAD_BYTES).read_to_end(&mut head)?;
    if head.get(0x202..0x206) != Some(b"HdrS") {
        return Err(wrong());
    }
    check(&head, image_bytes)?;
    let at = usize::from(u16::from_le_bytes([head[0x20e], head[0x20f]])) + 0x200;
    let text = head.get(at..).ok_or_else(wrong)?;
    let end = text.iter().position(|&byte| byte == 0).ok_or_else(wrong)?;
    let text = String::from_utf8_lossy(&text[..end]);
    let (release, rest) = text.split_once(' ').unwrap_or((&text, ""));
    let build = rest.split_once(") ").map_or("", |(_, build)| build);
    Ok((release.into(), build.trim().into()))
}

/// How a 64-bit kernel enables long mode before it is unpacked, which a 32-bit one never does
/// (arch/x86/boot/compressed/head_64.S, `startup_32`): `mov $MSR_EFER, %ecx; rdmsr; bts
/// $_EFER_LME, %eax; wrmsr`.
const LONG_MODE: [u8; 13] =
    [0xb9, 0x80, 0, 0, 0xc0, 0x0f, 0x32, 0x0f, 0xba, 0xe8, 0x08, 0x0f, 0x30];

/// `setup_sects` and `syssize` say how long it is, from protocol 2.12 on (Linux 3.8) `xloadflags`
/// whether it has the 64-bit entry.
fn check(head: &[u8], image_bytes: u64) -> io::Result<()> {
    let number = |at: usize, bytes: usize| {
        let field = head.get(at..at + bytes).unwrap_or_default();
        field.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let sectors = match number(0x1f1, 1) {
        0 => 4,
        sectors => sectors,
    };
    let whole_bytes = (sectors + 1) * 512 + number(0x1f4, 4) * 16;
    if image_bytes < whole_bytes {
        return Err(io::Error::other(format!(
            "it is cut off: {image_bytes} of {whole_bytes} bytes are there; fetch or copy it again"
        )));
    }
    let is_for_64_bits = match number(0x206, 2) {
        0x020c.. => number(0x236, 2) & 1 == 1,
        _ => head.windows(LONG_MODE.len()).any(|code| code == LONG_MODE),
    };
    if !is_for_64_bits {
        return Err(io::Error::other("it is for 32-bit processors: name one for x86-64"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_says_its_release() {
        let mut image = vec![0; 0x2000];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x1000_u16.to_le_bytes());
        let text = b"5.10.0-32-amd64 (builder@host) #1 SMP Debian 5.10.223-1 (2024-08-10)\0";
        image[0x1200..0x1200 + text.len()].copy_from_slice(text);
        let asked =
            |image: &[u8]| called(image, image.len() as u64).map_err(|error| error.to_string());
        let its = ("5.10.0-32-amd64".to_string(), "#1 SMP Debian 5.10.223-1 (2024-08-10)".into());
        // Protocol 2.10 says nothing of it, its code does.
        image[0x206..0x208].copy_from_slice(&0x020a_u16.to_le_bytes());
        assert!(asked(&image).unwrap_err().contains("32-bit processors"));
        image[0x1801..0x1801 + LONG_MODE.len()].copy_from_slice(&LONG_MODE);
        assert_eq!(asked(&image).unwrap(), its);
        assert_eq!(asked(b"MZ").unwrap_err(), "it is no bzImage");
        // Protocol 2.15, with and without the 64-bit entry.
        image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
        assert!(asked(&image).unwrap_err().contains("32-bit processors"));
        image[0x236] = 1;
        assert_eq!(asked(&image).unwrap(), its);
        image[0x1f4..0x1f8].copy_from_slice(&0x200_u32.to_le_bytes());
        let says = "it is cut off: 8192 of 10752 bytes are there; fetch or copy it again";
        assert_eq!(asked(&image).unwrap_err(), says);
    }

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
    }
}
