//! Which OpenZFS there is for a kernel: Debian's releases have one each, and each says which
//! kernels it supports.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::apt::Apt;
use super::super::arch::Arch;
use super::super::error::{VmError, failed};
use super::super::kernel;

use super::super::release::{by_version, is_of_version, version_of};

/// Debian's releases and what they are known to have (<https://tracker.debian.org/pkg/zfs-linux>):
/// first what is stable and supports most kernels.
const RELEASES: [(&str, &str); 4] =
    [("trixie", "2.3"), ("sid", "2.4"), ("bookworm-backports", "2.3"), ("bookworm", "2.1")];
/// Its source, of the component contrib.
pub const PACKAGE: &str = "zfs-dkms";

/// An OpenZFS of Debian's.
#[derive(Debug)]
pub struct Source {
    /// `2.3.9`.
    pub version: String,
    /// The state of apt that has source and tools.
    pub apt: Apt,
}

/// The kernels that a source supports, by the file META in it.
#[derive(Debug, PartialEq, Eq)]
struct Supports {
    first: String,
    last: String,
}

impl Supports {
    fn parse(meta: &str) -> Option<Supports> {
        let field = |name: &str| {
            let value = meta.lines().find_map(|line| line.strip_prefix(name));
            value.map(|value| value.trim().to_string())
        };
        Some(Supports { first: field("Linux-Minimum:")?, last: field("Linux-Maximum:")? })
    }

    fn has(&self, release: &str) -> bool {
        let version = version_of(release);
        by_version(&self.first, version).is_le() && by_version(version, &self.last).is_le()
    }
}

/// `2.3.9-0+deb13u1` is Debian's package of 2.3.9: deb-version(7).
pub fn upstream(package: &str) -> &str {
    package.rsplit_once('-').map_or(package, |(upstream, _)| upstream)
}

/// The releases in which a version may be, the likeliest first.
fn releases(version: Option<&str>) -> Vec<&'static str> {
    let has = |of: &str| version.is_none_or(|version| version == of || is_of_version(version, of));
    let known: Vec<&str> =
        RELEASES.iter().filter(|(_, of)| has(of)).map(|(release, _)| *release).collect();
    if known.is_empty() { RELEASES.map(|(release, _)| release).into() } else { known }
}

/// Those of `versions` that support the kernel; where none is named, the first that does.
pub fn all(
    versions: &[String],
    kernel: &str,
    mirror: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Source>, VmError> {
    let mut find = |version: Option<&str>| find(version, kernel, mirror, say);
    match versions {
        [] => Ok(vec![find(None)?]),
        some => some.iter().map(|it| find(Some(it))).collect(),
    }
}

/// The OpenZFS of that version that supports the kernel; without a version the first that does.
fn find(
    version: Option<&str>,
    kernel: &str,
    mirror: Option<&str>,
    say: &mut dyn FnMut(&str),
) -> Result<Source, VmError> {
    let mut why = Vec::new();
    for release in releases(version) {
        say(&format!("looking for OpenZFS in {release}"));
        match in_release(release, mirror).and_then(|source| source.fit(release, version, kernel)) {
            Ok(source) => return Ok(source),
            Err(error) => why.push(error.to_string()),
        }
    }
    let asked = version.map_or(String::new(), |version| format!(" {version}"));
    let why = why.join("; ");
    Err(VmError::Fetch(format!("no OpenZFS{asked} for Linux {kernel} was found: {why}")))
}

fn in_release(release: &str, mirror: Option<&str>) -> Result<Source, VmError> {
    let apt = Apt::private(release, mirror, "main contrib", Arch::OWN)
        .map_err(|error| VmError::Fetch(format!("{release}: {error}")))?;
    let missing = || VmError::Fetch(format!("{release} has no {PACKAGE}"));
    let package = apt.version(PACKAGE).ok_or_else(missing)?;
    Ok(Source { version: upstream(&package).into(), apt })
}

impl Source {
    /// It, where it is of that version and supports the kernel.
    fn fit(self, release: &str, version: Option<&str>, kernel: &str) -> Result<Source, VmError> {
        let no = |why: String| Err(VmError::Fetch(why));
        let its = &self.version;
        if version.is_some_and(|version| !is_of_version(its, version)) {
            return no(format!("{release} has {its}"));
        }
        let path = self.folder()?.join("META");
        let meta = fs::read_to_string(&path);
        let meta = meta.map_err(failed(format!("reading {}", path.display())))?;
        match Supports::parse(&meta) {
            Some(supports) if !supports.has(kernel) => {
                let Supports { first, last } = supports;
                no(format!("{its} of {release} is for Linux {first} to {last}"))
            }
            _ => Ok(self),
        }
    }

    /// Its source, in the user's cache.
    pub fn folder(&self) -> Result<PathBuf, VmError> {
        let folder = kernel::cache().join("openzfs").join(&self.version);
        let source = Path::new("usr/src").join(format!("zfs-{}", self.version));
        if !folder.exists() {
            // Unpacked elsewhere and renamed, so that what is there is complete.
            let beside = folder.with_extension("new");
            let _ = fs::remove_dir_all(&beside);
            let making = |folder: &Path| failed(format!("making {}", folder.display()));
            fs::create_dir_all(&beside).map_err(making(&beside))?;
            self.apt.unpack(&[PACKAGE.into()], &beside)?;
            fs::rename(&beside, &folder).map_err(making(&folder))?;
        }
        Ok(folder.join(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_says_which_kernels_it_supports() {
        let meta = "Meta:          1\nVersion:       2.3.2\nRelease:       2~bpo12+2\n\
                    Linux-Maximum: 6.14\nLinux-Minimum: 4.18\n";
        let supports = Supports::parse(meta).unwrap();
        for release in ["4.18.0-1-amd64", "6.1.0-56-cloud-amd64", "6.14.9+deb13-amd64"] {
            assert!(supports.has(release), "{release}");
        }
        for release in ["4.17.9-amd64", "6.15.1-amd64", "7.2.13+deb14-cloud-amd64"] {
            assert!(!supports.has(release), "{release}");
        }
        assert_eq!(Supports::parse("Version: 2.3.2\n"), None);
    }

    #[test]
    fn a_version_is_looked_for_in_the_releases_that_have_it() {
        assert_eq!(releases(Some("2.3")), ["trixie", "bookworm-backports"]);
        assert_eq!(releases(Some("2.1.11")), ["bookworm"]);
        assert_eq!(releases(Some("2.5")).len(), RELEASES.len(), "one may have got it meanwhile");
        assert_eq!(releases(None)[0], "trixie");
        assert_eq!(upstream("2.3.2-2~bpo12+2"), "2.3.2");
    }
}
