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
    let (package, version) = newest(&apt)?;
    let release = source::upstream(&version);
    let mut find = |wanted: Option<&str>| source::find(wanted, release, mirror, say);
    let sources: Vec<Source> = match versions {
        [] => vec![find(None)?],
        some => some.iter().map(|it| find(Some(it))).collect::<Result<_, _>>()?,
    };
    sources.iter().map(|source| with_source(&apt, &package, &version, source, say)).collect()
}

/// The newest source of a kernel that there is, and the version of its package.
fn newest(apt: &Apt) -> Result<(String, String), VmError> {
    let names = apt.names(PACKAGE)?;
    let numbered = names
        .iter()
        .filter(|it| is_numbered(it))
        .max_by(|one, other| by_version(one.as_str(), other.as_str()));
    let found = numbered.and_then(|name| Some((name.clone(), apt.version(name)?)));
    found.ok_or_else(|| VmError::Fetch(format!("there is no package {PACKAGE}*")))
}

/// `linux-source-7.2`, and no way to it such as `linux-source`, nor its patches.
fn is_numbered(package: &str) -> bool {
    let number = package.strip_prefix(PACKAGE).unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn with_source(
    apt: &Apt,
    package: &str,
    version: &str,
    source: &Source,
    say: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
    let release = source::upstream(version);
    let folder = uml::folder().join(name_with(version, &source.version));
    if let Some(kernel) = uml::at(&folder) {
        say(&format!("OpenZFS {} for {release} is there already", source.version));
        return Ok(kernel);
    }
    super::in_folder(SPACE_BYTES, |work| {
        let of = For::UserMode { source: package };
        let build = super::build_of(work, release, &source.version, of);
        let tools = super::built(&build, work, apt, source, say)?;
        let program = its(&build.kernel(), "linux")?;
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
        assert!(its(folder.path(), "lib/modules/7.2.13").is_ok());
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
