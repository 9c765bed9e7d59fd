//! A User Mode Linux with OpenZFS. Debian ships no headers of its own User Mode Linux, so no module
//! can be built for that: this one is built here, too, from Debian's source of the kernel. OpenZFS
//! supports it (`CONFIG_UML_X86` in its `module/Kbuild.in`).

use std::fs;
use std::path::{Path, PathBuf};

use super::super::apt::{self, Apt};
use super::super::error::VmError;
use super::super::fetch;
use super::super::kernel::{self, Kernel};
use super::super::release::{by_version, name_with};
use super::super::{toolbox, uml};
use super::build::{self, For};
use super::source::{self, Source};

/// Debian's source of a kernel: `linux-source-7.2`.
const PACKAGE: &str = "linux-source-";
/// For source, compiler, tools and what is built, removed when it is done.
const SPACE_BYTES: u64 = 5 << 30;

/// Builds the kernel and each of `versions` of OpenZFS for it, unless it is there already; where
/// none is named, the one that supports the kernel.
pub fn get(
    versions: &[String],
    mirror: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Kernel>, VmError> {
    if !cfg!(target_arch = "x86_64") {
        return Err(VmError::Fetch("User Mode Linux is for x86-64".into()));
    }
    build::check_tools()?;
    let _lock = fetch::locked(&kernel::cache(), say)?;
    let apt = uml::packages(mirror, say)?;
    let (linux, sources) = fitting(&apt, versions, mirror, say)?;
    sources.iter().map(|source| with_source(&apt, &linux, source, say)).collect()
}

/// Debian's source of a kernel.
struct Linux {
    /// `linux-source-7.2`.
    package: String,
    /// Of the package: `7.2.13-1`.
    version: String,
}

impl Linux {
    /// `7.2.13`.
    fn upstream(&self) -> &str {
        source::upstream(&self.version)
    }
}

/// The newest source of a kernel that there are these versions of OpenZFS for.
fn fitting(
    apt: &Apt,
    versions: &[String],
    mirror: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<(Linux, Vec<Source>), VmError> {
    let mut names = apt.names(PACKAGE)?;
    names.retain(|it| is_numbered(it));
    names.sort_by(|one, other| by_version(other, one));
    let mut unfit = None;
    for package in names {
        let Some(version) = apt.version(&package) else { continue };
        let linux = Linux { package, version };
        match source::all(versions, linux.upstream(), mirror, say) {
            Ok(sources) => return Ok((linux, sources)),
            Err(error) => unfit = unfit.or(Some(error)),
        }
    }
    Err(unfit.unwrap_or_else(|| VmError::Fetch(format!("there is no package {PACKAGE}*"))))
}

/// `linux-source-7.2`, and no way to it such as `linux-source`, nor its patches.
fn is_numbered(package: &str) -> bool {
    let number = package.strip_prefix(PACKAGE).unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn with_source(
    apt: &Apt,
    linux: &Linux,
    source: &Source,
    say: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
    let version = linux.version.as_str();
    let folder = uml::folder().join(name_with(version, &source.version));
    if let Some(kernel) = uml::at(&folder) {
        say(&format!("OpenZFS {} for {} is there already", source.version, linux.upstream()));
        return Ok(kernel);
    }
    super::in_folder(SPACE_BYTES, |work| {
        let of = For::UserMode { source: &linux.package };
        let build = super::build_of(work, linux.upstream(), &source.version, of);
        let tools = super::built(&build, work, apt, source, say)?;
        let program = its(&build.kernel(), "linux")?;
        // 7.2 calls itself 7.2.0.
        let release = &only(&its(&build.kernel(), "lib/modules")?)?;
        let own = its(&build.kernel(), &format!("lib/modules/{release}"))?;
        // The build may go on as another user: what we write to is a copy of our own.
        let copy = work.join("copy");
        let modules = copy.join("lib/modules").join(release);
        toolbox::make_folder(&copy.join("lib/modules"))?;
        let [from, to] = [&own, &modules].map(|it| it.display().to_string());
        apt::run(&["cp".into(), "-r".into(), from, to], Path::new("/"))?;
        if fs::symlink_metadata(modules.join("updates")).is_ok() {
            return Err(VmError::Fetch("the kernel's build made updates of its own".into()));
        }
        super::put_modules(&build.modules(), &modules)?;
        fetch::depmod(&copy, release)?;
        let (program, modules) = (program.as_path(), modules.as_path());
        let built = uml::Built { program, modules, tools: &tools, release, version };
        built.put(&work.join("whole"), &folder)
    })
}

/// The name of the only file in that folder.
fn only(folder: &Path) -> Result<String, VmError> {
    let mut names = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.file_name());
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name.to_string_lossy().into_owned()),
        _ => Err(VmError::Fetch(
            "the kernel's build made modules of no or of several kernels".into(),
        )),
    }
}

/// What a build has made at `path` of its folder, where no link leads out of it.
fn its(folder: &Path, path: &str) -> Result<PathBuf, VmError> {
    let at = folder.join(path);
    let [real, whole] = [&at, folder].map(fs::canonicalize);
    let (Ok(real), Ok(whole)) = (real, whole) else {
        return Err(VmError::Fetch(format!("the kernel's build made no {path}")));
    };
    if real == whole.join(path) {
        Ok(real)
    } else {
        Err(VmError::Fetch(format!("the kernel's build made {path} elsewhere")))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_a_build_made_is_taken_from_its_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("lib/modules/7.2.13")).unwrap();
        symlink("/etc", folder.path().join("away")).unwrap();
        let modules = its(folder.path(), "lib/modules").unwrap();
        assert_eq!(only(&modules).unwrap(), "7.2.13");
        assert!(its(folder.path(), "lib/modules/7.2.13").is_ok());
        fs::create_dir(modules.join("7.2.12")).unwrap();
        assert!(only(&modules).is_err());
        let error = |path: &str| its(folder.path(), path).unwrap_err().to_string();
        assert_eq!(error("lib/modules/7.2.0"), "the kernel's build made no lib/modules/7.2.0");
        assert_eq!(error("away/apt"), "the kernel's build made away/apt elsewhere");
    }

    #[test]
    fn a_kernels_source_is_told_from_what_leads_to_it() {
        assert!(is_numbered("linux-source-7.2") && is_numbered("linux-source-6.12"));
        for other in ["linux-source", "linux-source-", "linux-source-7.2-rt", "linux-image-7.2"] {
            assert!(!is_numbered(other), "{other}");
        }
    }
}
