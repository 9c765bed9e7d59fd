//! apt, used as any user may: with the machine's own state, and with states of our own with a
//! single source. Packages are downloaded and unpacked, never installed.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::arch::{self, Arch};
use super::error::{VmError, failed};
use super::kernel;
use crate::tool;

/// Keys of current and former releases: debian-archive-keyring's, and Ubuntu's where it is Ubuntu.
const KEYRINGS: [&str; 3] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-removed-keys.gpg",
    "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
];
/// Names of Debian's releases, and those that they have by turns
/// (<https://wiki.debian.org/DebianReleases>).
const DEBIANS: [&str; 14] = [
    "wheezy",
    "jessie",
    "stretch",
    "buster",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "sid",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "experimental",
];
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(1800);
/// Package lists of a state of our own are fetched anew after this long.
const LISTS_LAST: Duration = Duration::from_secs(24 * 3600);

/// A state of apt, and how it is named to apt's programs.
#[derive(Debug)]
pub struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// The machine's own, which anybody may read.
    pub fn machines() -> Apt {
        Apt { options: Vec::new() }
    }

    /// One with a single source, in a folder of ours: apt.conf(5), "Directories". `components` are
    /// those of the archive: `main`. Without a `mirror` the release comes from where it is known
    /// to be. Packages are for `arch`.
    pub fn private(
        release: &str,
        mirror: Option<&str>,
        components: &str,
        arch: Arch,
    ) -> Result<Apt, VmError> {
        let mirror = mirror.map_or_else(|| own_mirror(release), |mirror| Ok(mirror.into()))?;
        let part = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name = format!("{release}-{mirror}-{components}{}", arch::end(arch));
        let name: String = name.chars().map(part).collect();
        let folder = kernel::cache().join("apt").join(name);
        let make = |path: &Path| {
            fs::create_dir_all(path).map_err(failed(format!("making {}", path.display())))
        };
        make(&folder.join("lists/partial"))?;
        make(&folder.join("cache/archives/partial"))?;
        let keys: Vec<&str> = KEYRINGS.into_iter().filter(|key| Path::new(key).exists()).collect();
        let signed = match keys.as_slice() {
            [] => String::new(),
            keys => format!(" [signed-by={}]", keys.join(",")),
        };
        let source = format!("deb{signed} {mirror} {release} {components}\n");
        for (name, text) in [("sources.list", source.as_str()), ("status", "")] {
            let path = folder.join(name);
            fs::write(&path, text).map_err(failed(format!("writing {}", path.display())))?;
        }
        let path = |name: &str| folder.join(name).display().to_string();
        let options = [
            format!("Dir::State={}", path("")),
            format!("Dir::State::lists={}", path("lists")),
            format!("Dir::State::status={}", path("status")),
            format!("Dir::Cache={}", path("cache")),
            // Images of containers turn these off, and every question would read all lists anew.
            "Dir::Cache::pkgcache=pkgcache.bin".into(),
            "Dir::Cache::srcpkgcache=srcpkgcache.bin".into(),
            format!("Dir::Etc::SourceList={}", path("sources.list")),
            "Dir::Etc::SourceParts=-".into(),
            // Nothing but the packages themselves.
            "Acquire::Languages=none".into(),
            format!("APT::Architecture={}", arch.name()),
            format!("APT::Architectures={}", arch.name()),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false".into(),
            // A release that gets no updates any more is none the worse for booting its kernel.
            "Acquire::Check-Valid-Until=false".into(),
            // It is we who fetch: apt's own user may not write into our folder.
            "APT::Sandbox::User=".into(),
        ];
        let options = options.into_iter().flat_map(|option| ["-o".to_string(), option]);
        let apt = Apt { options: options.collect() };
        apt.update(&folder).map_err(|error| {
            match has_no_keys(release, Path::new(KEYRINGS[0])) {
                true => VmError::Fetch(format!(
                    "{error}; Debian's keys are not here: apt-get install debian-archive-keyring"
                )),
                false => error,
            }
        })?;
        Ok(apt)
    }

    /// Fetches the lists of a state in `folder`, if they are old.
    fn update(&self, folder: &Path) -> Result<(), VmError> {
        let path = folder.join("updated");
        let at = fs::metadata(&path).and_then(|data| data.modified()).ok();
        let age = at.and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age <= LISTS_LAST) {
            return Ok(());
        }
        self.run("apt-get", &["--error-on=any", "update"], folder).inspect_err(|_| {
            // What could not be read is not kept.
            let _ = fs::remove_dir_all(folder);
        })?;
        fs::write(&path, "").map_err(failed(format!("writing {}", path.display())))
    }

    pub fn run(&self, program: &str, words: &[&str], folder: &Path) -> Result<String, VmError> {
        let mut argv = vec![program.to_string()];
        argv.extend(self.options.iter().cloned());
        argv.extend(words.iter().map(ToString::to_string));
        run(&argv, folder)
    }

    /// The names of all packages that begin so.
    pub fn names(&self, beginning: &str) -> Result<Vec<String>, VmError> {
        let words = ["pkgnames", beginning];
        Ok(self.run("apt-cache", &words, Path::new("/"))?.lines().map(String::from).collect())
    }

    /// The newest version of a package, if the lists have it.
    pub fn version(&self, package: &str) -> Option<String> {
        let words = ["show", "--no-all-versions", package];
        let said = self.run("apt-cache", &words, Path::new("/")).ok()?;
        said.lines().find_map(|line| line.strip_prefix("Version: ")).map(String::from)
    }

    /// `packages` and all that they need, as if nothing were installed.
    pub fn with_all_they_need(&self, packages: &[&str]) -> Result<Vec<String>, VmError> {
        let simulate = ["-o", "Dir::State::status=/dev/null", "--simulate"];
        let words = [&simulate[..], &["--no-install-recommends", "install"], packages];
        Ok(installed(&self.run("apt-get", &words.concat(), Path::new("/"))?))
    }

    /// `packages`, and what they need that is not installed.
    pub fn with_what_is_missing(&self, packages: &[&str]) -> Result<Vec<String>, VmError> {
        let words = [&["--simulate", "--no-install-recommends", "install"], packages].concat();
        Ok(installed(&self.run("apt-get", &words, Path::new("/"))?))
    }

    /// Downloads `packages` and unpacks them below `folder`. Nothing of them is run.
    pub fn unpack(&self, packages: &[String], folder: &Path) -> Result<(), VmError> {
        self.download(packages, folder)?;
        unpack(folder, folder).map(drop)
    }

    /// Downloads `packages` into `folder`.
    pub fn download(&self, packages: &[String], folder: &Path) -> Result<(), VmError> {
        let words: Vec<&str> =
            ["download"].into_iter().chain(packages.iter().map(String::as_str)).collect();
        self.run("apt-get", &words, folder).map(drop)
    }
}

/// Unpacks the packages that lie in `from` below `to`, and removes them; gives their names, with
/// versions.
pub fn unpack(from: &Path, to: &Path) -> Result<Vec<String>, VmError> {
    let entries = fs::read_dir(from).map_err(failed(format!("reading {}", from.display())))?;
    let mut names = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_package(path)) {
        let name = path.display().to_string();
        run(&["dpkg", "-x", &name, "."].map(String::from), to)?;
        fs::remove_file(&path).map_err(failed(format!("removing {name}")))?;
        names.extend(path.file_stem().map(|it| it.to_string_lossy().into_owned()));
    }
    Ok(names)
}

fn is_package(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "deb")
}

/// What apt-get(8) says it would install: `Inst libc6 (2.36-9 Debian:12.11/oldstable [amd64])`.
fn installed(said: &str) -> Vec<String> {
    let names = said.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    names.map(String::from).collect()
}

pub fn run(argv: &[String], folder: &Path) -> Result<String, VmError> {
    let answer = tool::ask(argv, folder, DOWNLOAD_LIMIT)?;
    if answer.status.success() {
        return Ok(answer.stdout);
    }
    // What hooks of the machine's own configuration say is not what failed.
    let said = answer.stderr.lines().find_map(|line| line.strip_prefix("E: "));
    let said = said.unwrap_or(answer.stderr.trim()).trim_end_matches('.');
    let program = &argv[0];
    Err(VmError::Fetch(format!("{program} {}: {said}", tool::ended(answer.status))))
}

/// Where that release comes from, by the machine's own sources: the index targets of apt-get(8).
fn own_mirror(release: &str) -> Result<String, VmError> {
    const FORMAT: &str = "$(CREATED_BY)|$(COMPONENT)|$(REPO_URI)|$(ORIGIN)";
    let said = Apt::machines().run(
        "apt-get",
        &["indextargets", "--format", FORMAT, "Created-By: Packages"],
        Path::new("/"),
    )?;
    mirror_among(&said, release).map(String::from).ok_or_else(|| {
        VmError::Fetch(match is_debians(release) {
            true => "this machine's packages are not Debian's, or it has no lists of them: name \
                     a mirror of Debian with --mirror"
                .into(),
            false => "the machine has no lists of packages: apt-get update".into(),
        })
    })
}

/// Of Debian's releases other archives have none; of others the machine's own may.
fn mirror_among<'a>(targets: &'a str, release: &str) -> Option<&'a str> {
    let main = targets.lines().filter_map(|line| line.strip_prefix("Packages|main|"));
    // Security updates have a place of their own, which holds no whole release.
    let mut whole =
        main.filter_map(|rest| rest.split_once('|')).filter(|(uri, _)| !uri.contains("security"));
    let debian = whole.clone().find(|(_, origin)| *origin == "Debian");
    let others = || whole.next().filter(|_| !is_debians(release));
    debian.or_else(others).map(|(uri, _)| uri)
}

/// Debian's, or what it has beside one: `bookworm-backports`.
fn is_debians(release: &str) -> bool {
    release.split('-').next().is_some_and(|of| DEBIANS.contains(&of))
}

/// The machine has no keys for a release of Debian's.
fn has_no_keys(release: &str, keyring: &Path) -> bool {
    is_debians(release) && !keyring.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_would_install_is_read() {
        let said = "Reading package lists...\nThe following NEW packages will be installed:\n  \
                    make libc6\nInst libc6 (2.36-9 Debian:12.11/oldstable [amd64]) []\nInst make \
                    (4.3-4.1 Debian:12.11/oldstable [amd64])\nConf libc6 (2.36-9 Debian [amd64])\n";
        assert_eq!(installed(said), ["libc6", "make"]);
        assert!(installed("0 upgraded, 0 newly installed\n").is_empty());
    }

    #[test]
    fn packages_are_told_by_their_ending() {
        assert!(is_package(Path::new("/x/libc6_2.36-9_amd64.deb")));
        assert!(!is_package(Path::new("/x/lib")) && !is_package(Path::new("/x/debian")));
    }

    #[test]
    fn debians_releases_come_from_debian() {
        let debian = "Packages|main|http://security.example/debian-security/|Debian\n\
                      Packages|main|https://vendor.example/apt/|Vendor\n\
                      Packages|contrib|http://other.example/|Debian\n\
                      Packages|main|http://mirror.example/debian/|Debian\n";
        let ubuntu = "Packages|main|http://mirror.example/ubuntu/|Ubuntu\n";
        for release in ["trixie", "bookworm-backports", "noble"] {
            assert_eq!(mirror_among(debian, release), Some("http://mirror.example/debian/"));
        }
        assert_eq!(mirror_among(ubuntu, "trixie"), None);
        assert_eq!(mirror_among(ubuntu, "bookworm-backports"), None);
        assert_eq!(mirror_among(ubuntu, "noble"), Some("http://mirror.example/ubuntu/"));
        assert_eq!(mirror_among("", "trixie"), None);
        let without_keys = |release: &str| has_no_keys(release, Path::new("/no/keyring.gpg"));
        assert!(
            without_keys("sid") && !without_keys("noble") && !has_no_keys("sid", Path::new("/"))
        );
    }
}
