//! Kernels by their packages: through the machine's own apt, and without root, because a package is
//! only downloaded and unpacked, never installed (`apt.rs`).
//!
//! Packages in the machine's own lists come from there. For another release apt gets a state of its
//! own, below the user's cache, with one source: the mirror that the machine's own sources name; if
//! these are of another distribution, one of Debian's that the user names.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::apt::{self, Apt};
use super::arch::{self, Arch};
use super::error::{VmError, failed};
use super::kernel::{self, Kernel};
use super::release::{by_version, is_of_version};

const PACKAGE: &str = "linux-image-";

/// What Debian's releases have, and where versions may be that none of them is known to have
/// (<https://wiki.debian.org/DebianReleases>; `Package: linux-image-amd64` of each).
const RELEASES: [(&str, &str); 8] = [
    ("trixie", "6.12"),
    ("bookworm", "6.1"),
    ("bullseye", "5.10"),
    ("buster", "4.19"),
    ("stretch", "4.9"),
    ("jessie", "3.16"),
    ("wheezy", "3.2"),
    ("sid", ""),
];
/// The newest kernel that there is: Debian's unstable release has it.
pub(super) const NEWEST: (&str, &str) = ("newest", "sid");

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// A version (`6.12`), a package (`linux-image-...`), one of Debian's releases (`trixie`), or
    /// `newest`.
    pub name: &'a str,
    /// The end of the package's name: `cloud-amd64`, `amd64`.
    pub flavour: &'a str,
    /// For which processors.
    pub arch: Arch,
    /// Where to fetch from, instead of where the machine's own packages come from.
    pub mirror: Option<&'a str>,
}

impl Wanted<'_> {
    /// The newest of the packages that match.
    fn pick<'p>(&self, packages: impl Iterator<Item = &'p str>) -> Option<&'p str> {
        let by_name = self.name.starts_with(PACKAGE);
        let version = self.version();
        let fits = |package: &&str| match package.strip_prefix(PACKAGE) {
            _ if by_name => *package == self.name,
            Some(release) => {
                is_kernel(package)
                    && has_flavour(release, self.flavour)
                    && version.is_none_or(|version| is_of_version(release, version))
            }
            None => false,
        };
        packages.filter(fits).max_by(|one, other| by_version(one, other))
    }

    fn version(&self) -> Option<&str> {
        self.name.starts_with(|c: char| c.is_ascii_digit()).then_some(self.name)
    }

    /// Releases in which it may be, the likeliest first.
    fn releases(&self) -> Vec<&str> {
        let is_package = self.name.starts_with(PACKAGE);
        let Some(version) = self.version() else {
            return match is_package {
                true if self.arch == Arch::OWN => Vec::new(),
                // The machine's own lists don't have it.
                true => RELEASES.iter().map(|(release, _)| *release).collect(),
                false if self.name == NEWEST.0 => vec![NEWEST.1],
                false => vec![self.name],
            };
        };
        let has = |of: &str| of.is_empty() || version == of || is_of_version(version, of);
        RELEASES.iter().filter(|(_, of)| has(of)).map(|(release, _)| *release).collect()
    }
}

/// `6.1.0-44-amd64` is of flavour `amd64`, `6.1.0-44-rt-amd64` is not.
fn has_flavour(release: &str, flavour: &str) -> bool {
    let rest = release.strip_suffix(flavour).and_then(|rest| rest.strip_suffix('-'));
    rest.is_some_and(|rest| !["-cloud", "-rt"].iter().any(|other| rest.ends_with(other)))
}

/// `linux-image-amd64` is no kernel, but depends on the newest one.
fn is_kernel(package: &str) -> bool {
    let release = package.strip_prefix(PACKAGE);
    release.is_some_and(|release| release.starts_with(|c: char| c.is_ascii_digit()))
}

/// Fetches a kernel, unless it is there already. `say` hears what is being done.
pub fn get(wanted: Wanted, say: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let _lock = locked(&kernel::cache(), say)?;
    let (apt, package) = find(wanted, say)?;
    unpacked(&apt, &package, wanted.arch, say)
}

/// Only one of a user's processes fetches at a time: they share `cache`, with half-finished work.
/// The others wait, and find what it has fetched.
pub(super) fn locked(cache: &Path, say: &mut dyn FnMut(&str)) -> Result<File, VmError> {
    let path = cache.join("fetch.lock");
    let made = fs::create_dir_all(cache).and_then(|()| File::create(&path));
    let file = made.map_err(failed(format!("making {}", path.display())))?;
    if file.try_lock().is_err() {
        say("waiting for another fsverdict that fetches or builds");
        file.lock().map_err(failed(format!("locking {}", path.display())))?;
    }
    Ok(file)
}

/// The package, and the state of apt that has it.
pub(super) fn find(wanted: Wanted, say: &mut dyn FnMut(&str)) -> Result<(Apt, String), VmError> {
    let machines = Apt::machines();
    let is_own = wanted.mirror.is_none() && wanted.arch == Arch::OWN;
    if is_own && (wanted.version().is_some() || wanted.releases().is_empty()) {
        let packages = machines.names(PACKAGE)?;
        if let Some(package) = wanted.pick(packages.iter().map(String::as_str)) {
            let package = kernel_of(&machines, package)?;
            return Ok((machines, package));
        }
    }
    let mut why = Vec::new();
    for release in wanted.releases() {
        say(&format!("reading the package lists of {release}"));
        let found = Apt::private(release, wanted.mirror, "main", wanted.arch);
        let found = found.and_then(|apt| Ok((apt.names(PACKAGE)?, apt)));
        match found {
            Ok((packages, apt)) => match wanted.pick(packages.iter().map(String::as_str)) {
                Some(package) => {
                    let package = kernel_of(&apt, package)?;
                    return Ok((apt, package));
                }
                None => why.push(format!("{release} has none of flavour {}", wanted.flavour)),
            },
            Err(error) => why.push(format!("{release}: {error}")),
        }
    }
    let why = if why.is_empty() { "no release has it".into() } else { why.join("; ") };
    Err(VmError::Fetch(format!(
        "no kernel {} was found: {why}. Name one of Debian's releases (trixie, bullseye, sid), \
         a package, another --flavour, or for a release that has been archived its --mirror",
        wanted.name
    )))
}

/// Downloads the package and unpacks it into a folder of its own.
pub(super) fn unpacked(
    apt: &Apt,
    package: &str,
    arch: Arch,
    say: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
    let release = package.trim_start_matches(PACKAGE);
    // Others than Debian call it the same for all processors.
    let folder = kernel::fetched().join(format!("{release}{}", arch::end(arch)));
    let image = |folder: &Path| folder.join("boot").join(format!("vmlinuz-{release}"));
    let readable =
        |path: PathBuf| Kernel::at(&path).map_err(failed(format!("reading {}", path.display())));
    if image(&folder).exists() {
        say(&format!("{package} is there already"));
        return readable(image(&folder));
    }
    say(&format!("fetching {package}"));
    let beside = empty_beside(&kernel::cache(), &folder)?;
    let result = unpack(apt, package, release, &beside).and_then(|()| {
        fs::rename(&beside, &folder).map_err(failed(format!("making {}", folder.display())))
    });
    let _ = fs::remove_dir_all(&beside);
    result?;
    readable(image(&folder))
}

/// An empty folder in which to unpack what becomes `folder`. No kernel is looked for there: those
/// that are found are whole. One that a killed process left is removed: the cache is ours alone.
fn empty_beside(cache: &Path, folder: &Path) -> Result<PathBuf, VmError> {
    let beside = cache.join("unpacking");
    // Earlier programs unpacked among the kernels.
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    for former in [&beside, &folder.with_file_name(format!("{name}.new"))] {
        let _ = fs::remove_dir_all(former);
    }
    for needed in [Some(beside.as_path()), folder.parent()].into_iter().flatten() {
        fs::create_dir_all(needed).map_err(failed(format!("making {}", needed.display())))?;
    }
    Ok(beside)
}

/// The package itself, or the kernel that it leads to.
fn kernel_of(apt: &Apt, package: &str) -> Result<String, VmError> {
    if is_kernel(package) {
        return Ok(package.into());
    }
    let depends = apt.run("apt-cache", &["depends", package], Path::new("/"))?;
    let kernel = needs(&depends).find(|name| is_kernel(name));
    kernel.map(String::from).ok_or_else(|| {
        VmError::Fetch(format!("{package} is not a kernel of a release, and depends on none"))
    })
}

/// What a package depends on, by what apt-cache(8) says.
fn needs(depends: &str) -> impl Iterator<Item = &str> {
    depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "))
}

/// The packages of the same release that it depends on: since Linux 7 Debian has image and modules
/// apart, as Ubuntu always had.
fn parts<'a>(depends: &'a str, release: &'a str) -> impl Iterator<Item = &'a str> {
    let is_its =
        move |name: &&str| name.strip_suffix(release).is_some_and(|rest| rest.ends_with('-'));
    needs(depends).filter(is_its)
}

fn unpack(apt: &Apt, package: &str, release: &str, folder: &Path) -> Result<(), VmError> {
    let depends = apt.run("apt-cache", &["depends", package], folder)?;
    let others = parts(&depends, release).map(String::from);
    let packages: Vec<String> = [package.to_string()].into_iter().chain(others).collect();
    apt.unpack(&packages, folder)?;
    // As installing would have done; the modules are below lib, since Debian 13 below usr/lib.
    let usr = folder.join("usr");
    let root = if usr.join("lib/modules").exists() { &usr } else { folder };
    depmod(root, release)?;
    // Since Linux 7 the image comes among the modules, and installing would have copied it.
    let boot = folder.join("boot");
    let image = boot.join(format!("vmlinuz-{release}"));
    let among = root.join("lib/modules").join(release).join("vmlinuz");
    if image.exists() {
        return Ok(());
    }
    let made = fs::create_dir_all(&boot).and_then(|()| fs::rename(among, &image));
    made.map_err(failed(format!("looking for the image in {package}")))
}

/// Has depmod(8) list what the modules below `root` need.
pub(super) fn depmod(root: &Path, release: &str) -> Result<(), VmError> {
    let root_path = root.display().to_string();
    apt::run(&["depmod", "-b", &root_path, release].map(String::from), root).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fetches_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let first = locked(&cache, &mut |said| panic!("{said}")).unwrap();
        let mut first = Some(first);
        let mut waits = 0;
        // A process that waits says so, and goes on once the other is done.
        locked(&cache, &mut |said| {
            assert!(said.starts_with("waiting for another fsverdict"), "{said}");
            waits += 1;
            first = None;
        })
        .unwrap();
        assert_eq!(waits, 1);
    }

    #[test]
    fn what_a_killed_one_unpacked_is_no_kernel_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, kernels) = (folder.path(), folder.path().join("kernels"));
        for left in ["unpacking/boot/vmlinuz-6.1.0-9", "kernels/6.1.0-9.new/boot/vmlinuz-6.1.0-9"] {
            fs::create_dir_all(cache.join(left)).unwrap();
        }
        let beside = empty_beside(cache, &kernels.join("6.1.0-9")).unwrap();
        assert!(!beside.starts_with(&kernels), "{beside:?}");
        assert_eq!(fs::read_dir(&beside).unwrap().count(), 0);
        assert_eq!(fs::read_dir(&kernels).unwrap().count(), 0);
    }

    const PACKAGES: [&str; 8] = [
        "linux-image-cloud-amd64",
        "linux-image-6.1.0-9-cloud-amd64",
        "linux-image-6.1.0-44-cloud-amd64",
        "linux-image-6.1.0-44-cloud-amd64-dbg",
        "linux-image-6.1.0-44-rt-amd64",
        "linux-image-6.1.0-44-amd64",
        "linux-image-6.12.57+deb13-cloud-amd64",
        "linux-image-6.12.57+deb13-cloud-amd64-unsigned",
    ];

    fn wanted(name: &str) -> Wanted<'_> {
        Wanted { name, flavour: "cloud-amd64", arch: Arch::OWN, mirror: None }
    }

    #[test]
    fn the_newest_of_the_version_and_flavour_is_taken() {
        let pick = |wanted: Wanted| wanted.pick(PACKAGES.into_iter());
        assert_eq!(pick(wanted("6.1")), Some("linux-image-6.1.0-44-cloud-amd64"));
        assert_eq!(pick(wanted("trixie")), Some("linux-image-6.12.57+deb13-cloud-amd64"));
        assert_eq!(pick(wanted("6.2")), None);
        let full = Wanted { flavour: "amd64", ..wanted("6.1") };
        assert_eq!(pick(full), Some("linux-image-6.1.0-44-amd64"));
        for package in ["linux-image-6.1.0-9-cloud-amd64", "linux-image-cloud-amd64"] {
            assert_eq!(pick(wanted(package)), Some(package));
        }
        let full = Wanted { flavour: "amd64", ..wanted("trixie") };
        assert_eq!(pick(full), Some("linux-image-6.1.0-44-amd64"), "and no way to a kernel");
    }

    #[test]
    fn a_package_that_leads_to_the_newest_kernel_is_followed() {
        let depends = "linux-image-amd64\n  Depends: linux-base\n  Depends: \
                       linux-image-6.1.0-56-amd64\n  Suggests: linux-image-6.1.0-9-amd64\n";
        assert_eq!(needs(depends).find(|it| is_kernel(it)), Some("linux-image-6.1.0-56-amd64"));
        let kernel = "linux-image-6.1.0-9-amd64";
        assert_eq!(kernel_of(&Apt::machines(), kernel).unwrap(), kernel);
        assert!(!is_kernel("linux-image-generic") && !is_kernel("linux-base"));
    }

    #[test]
    fn a_kernel_in_parts_is_fetched_whole() {
        let depends = "linux-image-7.2.1-amd64\n  PreDepends: linux-base\n |Depends: dracut\n  \
                       Depends: linux-binary-7.2.1-amd64\n  Depends: linux-modules-7.2.1-amd64\n";
        let found: Vec<&str> = parts(depends, "7.2.1-amd64").collect();
        assert_eq!(found, ["linux-binary-7.2.1-amd64", "linux-modules-7.2.1-amd64"]);
    }

    #[test]
    fn a_version_is_looked_for_in_the_release_that_has_it() {
        assert_eq!(wanted("5.10").releases(), ["bullseye", "sid"]);
        assert_eq!(wanted("6.12.57").releases(), ["trixie", "sid"]);
        assert_eq!(wanted("6.17").releases(), ["sid"]);
        assert_eq!(wanted("newest").releases(), ["sid"]);
        assert_eq!(wanted("bookworm-backports").releases(), ["bookworm-backports"]);
        let package = wanted("linux-image-6.1.0-9-amd64");
        assert!(package.releases().is_empty());
        let other = if Arch::OWN == Arch::X86 { Arch::Arm64 } else { Arch::X86 };
        assert_eq!(Wanted { arch: other, ..package }.releases().len(), RELEASES.len());
    }
}
