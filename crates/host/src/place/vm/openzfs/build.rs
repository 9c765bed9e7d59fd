//! Builds the module of OpenZFS in a root of its own, with what Debian would install to build it
//! for that kernel: the kernel's headers, which bring its compiler, and the usual build tools. A
//! User Mode Linux has no headers in Debian, and is built before it (`user_mode.rs`).
//!
//! unshare(1) enters the root as the root user of a user namespace, which any user may do. If we
//! are root, we become `nobody` first, so the build has none of root's powers.
//!
//! The commands are those of `dkms.conf` in zfs-dkms, without dkms.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::apt::{self, Apt};
use super::super::error::{VmError, failed};
use super::super::full::FULL_BYTES;
use super::source::Source;
use crate::{sys, tool};

/// What a build takes beside the kernel's headers, where nothing is installed.
const NEEDS: [&str; 16] = [
    "base-files",
    "bash",
    "coreutils",
    "dash",
    "diffutils",
    "findutils",
    "grep",
    "gzip",
    "libc6-dev",
    "libelf1",
    "make",
    "mawk",
    "perl",
    "sed",
    "tar",
    "xz-utils",
];
/// What of the machine itself is needed, before anything is fetched.
const TOOLS: [&str; 12] = [
    "apt-cache",
    "apt-get",
    "chown",
    "chroot",
    "cp",
    "depmod",
    "dpkg",
    "env",
    "mount",
    "nice",
    "setpriv",
    "unshare",
];
/// All that a build finds of the environment: `ARCH`, `KCFLAGS` or `MAKEFLAGS` would change it.
const ENVIRONMENT: [&str; 4] = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"];
/// The user nobody, and its group.
const NOBODY: &str = "65534:65534";
/// Binds the root to a path that the user nobody can reach, unlike root's cache, and becomes
/// nobody. Changing the user clears the signal at our parent's death (prctl(2), PR_SET_PDEATHSIG).
const BECOME_NOBODY: &str = "\
    mount --bind \"$1\" /mnt; shift
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig KILL -- \"$@\"";
/// Kbuild writes to /dev/null, and /proc/self/fd is where shells find /dev/stdin. Within a
/// container the kernel may give no /proc but the one that there is.
const ENTER: &str = "\
    for it in null zero full random urandom; do
        : >\"$1/dev/$it\"
        mount --bind \"/dev/$it\" \"$1/dev/$it\"
    done
    ln -sfn /proc/self/fd \"$1/dev/fd\"
    ln -sfn /proc/self/fd/0 \"$1/dev/stdin\"
    ln -sfn /proc/self/fd/1 \"$1/dev/stdout\"
    ln -sfn /proc/self/fd/2 \"$1/dev/stderr\"
    mount -t proc proc \"$1/proc\" 2>/dev/null || mount --rbind /proc \"$1/proc\"
    exec chroot \"$@\"";
/// The compiler, for both parts of a build.
const FIRST: &str = "\
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/
    for compiler in /usr/bin/gcc-[0-9]*; do CC=$compiler; done
    less=KCFLAGS=-g0
";
/// `vmlinux` among newer headers has the build ask for pahole(1), to describe types to BPF. What
/// debuggers want is nine tenths of a module, and an eighth of the time to make it: `KCFLAGS` stand
/// behind the flags of the kernel's configuration, and the last one counts. Since Linux 6.14 a
/// kernel may make its symbols' versions of it (`CONFIG_GENDWARFKSYMS`).
const FIND_KERNEL: &str = "\
    kernel=/lib/modules/$1/build
    source=/lib/modules/$1/source
    [ -e \"$source\" ] || source=$kernel
    rm -f \"$kernel/vmlinux\"
    [ ! -e \"$kernel/include/config/GENDWARFKSYMS\" ] || less=
";
/// With nothing that [`OPTIONS`] don't need. Here `linux` is what is started, and modules
/// are those of the kernel itself.
const MAKE_KERNEL: &str = "\
    kernel=/usr/src/$4
    source=$kernel
    export ARCH=um
    echo KERNEL
    tar -C /usr/src --no-same-owner -xf \"$kernel.tar.xz\"
    rm \"$kernel.tar.xz\"
    make -C \"$kernel\" CC=\"$CC\" KCONFIG_ALLCONFIG=/configuration allnoconfig
    make -C \"$kernel\" CC=\"$CC\" -j\"$3\" $less
    make -C \"$kernel\" CC=\"$CC\" INSTALL_MOD_PATH=/kernel DEPMOD=true modules_install
    cp \"$kernel/linux\" /kernel/
    echo CONFIGURING
";
const MAKE_MODULE: &str = "\
    cd \"/usr/src/zfs-$2\"
    ./configure --disable-dependency-tracking --prefix=/usr --with-config=kernel \\
        --with-linux=\"$source\" --with-linux-obj=\"$kernel\" CC=\"$CC\"
    echo BUILDING
    make -j\"$3\" $less
    mkdir /modules
    find module -name '*.ko' -exec cp -t /modules {} +
    strip --strip-debug /modules/*.ko";
/// What [`MAKE_MODULE`] says between its two parts.
const BUILDING: &str = "BUILDING";
/// What [`MAKE_KERNEL`] says at its beginning and its end.
const KERNEL: &str = "KERNEL";
const CONFIGURING: &str = "CONFIGURING";
const LIMIT: Duration = Duration::from_secs(2 * 3600);
/// How often it says how far it is.
const NEWS_S: u64 = 30;
/// How many of the last lines of a build that failed are shown.
const LINES_SHOWN: usize = 8;

/// What a module is built for.
#[derive(Clone, Copy, Debug)]
pub enum For<'a> {
    /// A kernel of Debian's, which has a package of headers.
    Packaged,
    /// A User Mode Linux, which is built before it from that package of Debian's.
    UserMode { source: &'a str },
}

/// What a kernel's build takes beside a module's.
const KERNEL_NEEDS: [&str; 5] = ["bc", "bison", "flex", "gcc", "libelf-dev"];
/// What the kernel is to have, and where [`MAKE_KERNEL`] finds it.
const OPTIONS: &str = include_str!("user_mode.config");
const CONFIGURATION: &str = "configuration";

/// A build.
#[derive(Clone, Debug)]
pub struct Build<'a> {
    /// Where its root is made.
    pub root: PathBuf,
    /// The kernel's.
    pub release: &'a str,
    /// Of OpenZFS.
    pub version: &'a str,
    /// What of it is there.
    pub of: For<'a>,
    /// What it says.
    pub log: PathBuf,
}

/// Checks that this machine can build at all, before anything is fetched.
pub fn check_tools() -> Result<(), VmError> {
    for program in TOOLS {
        tool::command(program)?;
    }
    let answer = tool::ask(&unshared("/", "true", &[]), Path::new("/"), LIMIT)?;
    match answer.status.success() {
        true => Ok(()),
        false => Err(VmError::Fetch(format!(
            "building OpenZFS needs user namespaces, which this machine does not give ({}): allow \
             them (sysctl kernel.unprivileged_userns_clone, \
             kernel.apparmor_restrict_unprivileged_userns), or build on another machine",
            answer.stderr.trim()
        ))),
    }
}

/// `script` in namespaces of its own, with `root` as `$1` and `words` after it.
fn unshared(root: &str, script: &str, words: &[&str]) -> Vec<String> {
    const UNSHARE: [&str; 7] =
        ["unshare", "-Ur", "--mount", "--net", "--pid", "--fork", "--kill-child"];
    let become_nobody = ["unshare", "--mount", "sh", "-ec", BECOME_NOBODY, "sh", root];
    let (before, root) = match sys::is_root() {
        true => (&become_nobody[..], "/mnt"),
        false => (&[][..], root),
    };
    let script = ["sh", "-ec", script, "sh", root];
    let all = [&ENVIRONMENT[..], before, &UNSHARE, &script, words].concat();
    all.iter().map(ToString::to_string).collect()
}

impl Build<'_> {
    /// Unpacks the root, with the source in it.
    pub fn unpack(&self, apt: &Apt, source: &Source) -> Result<(), VmError> {
        let root = &self.root;
        let making = || failed(format!("making {}", root.display()));
        fs::create_dir_all(root).map_err(making())?;
        let headers = format!("linux-headers-{}", self.release);
        let packages = match self.of {
            For::Packaged if apt.version(&headers).is_none() => {
                return Err(VmError::Fetch(format!(
                    "{headers} is not in the archive (any more), and OpenZFS can't be built \
                     without: take another kernel (fsverdict kernels get VERSION --with zfs)"
                )));
            }
            For::Packaged => [&[headers.as_str()], &NEEDS[..]].concat(),
            For::UserMode { source } => {
                let configuration = root.join(CONFIGURATION);
                fs::write(&configuration, OPTIONS).map_err(making())?;
                [&[source], &KERNEL_NEEDS[..], &NEEDS[..]].concat()
            }
        };
        apt.unpack(&apt.with_all_they_need(&packages)?, root)?;
        // Installing mawk would have made it.
        let awk = root.join("usr/bin/awk");
        if !awk.exists() {
            symlink("mawk", &awk).map_err(making())?;
        }
        let (from, to) = (source.folder()?, root.join("usr/src"));
        let words = ["cp", "-r", &from.display().to_string(), &to.display().to_string()];
        apt::run(&words.map(String::from), Path::new("/")).map(drop)
    }

    /// Runs it. `say` hears how far it is.
    pub fn run(&self, say: &mut dyn FnMut(&str)) -> Result<(), VmError> {
        let log = File::create(&self.log).map_err(failed("writing a log".into()))?;
        let root = self.root.display().to_string();
        let jobs = std::thread::available_parallelism().map_or(1, usize::from).to_string();
        if sys::is_root() {
            apt::run(&["chown", "-R", "-h", NOBODY, &root].map(String::from), Path::new("/"))?;
        }
        let (kernel, source) = match self.of {
            For::Packaged => (FIND_KERNEL, ""),
            For::UserMode { source } => (MAKE_KERNEL, source),
        };
        let script = [FIRST, kernel, MAKE_MODULE].concat();
        let words = ["/bin/sh", "-ec", &script, "sh", self.release, self.version, &jobs, source];
        let words = unshared(&root, ENTER, &words);
        let argv: Vec<String> =
            ["nice", "-n", "10"].map(String::from).into_iter().chain(words).collect();
        let mut told_s = 0;
        let status = tool::logged(&argv, log, LIMIT, &mut |elapsed| {
            if elapsed.as_secs() >= told_s + NEWS_S {
                told_s = elapsed.as_secs();
                say(&format!("{}, {told_s} s", progress(&self.said())));
            }
        })?;
        let said = self.said();
        if status.success() && !said.contains(FULL) {
            return Ok(());
        }
        for line in last_lines(&said) {
            say(line.trim());
        }
        Err(VmError::Build {
            version: self.version.into(),
            release: self.release.into(),
            what: self.what_failed(&said),
            log: self.log.clone(),
        })
    }

    fn said(&self) -> String {
        fs::read(&self.log).map(|it| String::from_utf8_lossy(&it).into_owned()).unwrap_or_default()
    }

    /// configure writes what the compiler said into logs of its own. They are kept beside ours.
    fn what_failed(&self, said: &str) -> String {
        let source = self.root.join("usr/src").join(format!("zfs-{}", self.version));
        let configs = self.log.with_file_name("config.log");
        let _ = fs::copy(source.join("config.log"), &configs);
        let logs = [configs.clone(), source.join("build/build.log")].map(fs::read);
        let is_full = |text: &[u8]| String::from_utf8_lossy(text).contains(FULL);
        let is_full = is_full(said.as_bytes()) || logs.iter().flatten().any(|log| is_full(log));
        let free_bytes = sys::free_bytes(&self.root).unwrap_or(u64::MAX);
        match () {
            () if is_full || free_bytes < FULL_BYTES => "the disk is full".into(),
            () if said.lines().any(|line| line == BUILDING) => "its compilation failed".into(),
            () if matches!(self.of, For::UserMode { .. }) && !said.contains(CONFIGURING) => {
                "the compilation of that kernel failed".into()
            }
            () => format!("its configure failed (see also {})", configs.display()),
        }
    }

    /// The folder with the modules that were built.
    pub fn modules(&self) -> PathBuf {
        self.root.join("modules")
    }

    /// The folder with the kernel that was built, and with its own modules as below `/`.
    pub fn kernel(&self) -> PathBuf {
        self.root.join("kernel")
    }
}

/// strerror(3) of ENOSPC.
const FULL: &str = "No space left on device";

/// How far a build is, by what it has said: configure asks, and Kbuild names each file.
fn progress(said: &str) -> String {
    let count = |said: &str, beginning: &str| {
        said.lines().filter(|line| line.trim_start().starts_with(beginning)).count()
    };
    let says = |word: &str| said.lines().any(|line| line == word);
    let after = |word: &str| said.split_once(&format!("{word}\n")).map_or(said, |(_, it)| it);
    if says(BUILDING) {
        format!("compiling OpenZFS: {} files so far", count(after(BUILDING), "CC [M]"))
    } else if says(KERNEL) && !says(CONFIGURING) {
        format!("compiling Linux: {} files so far", count(said, "CC "))
    } else {
        format!("configuring OpenZFS: {} checks so far", count(after(CONFIGURING), "checking "))
    }
}

fn last_lines(said: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(LINES_SHOWN);
    lines.into_iter().skip(first)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::super::super::toolbox;
    use super::*;

    #[test]
    fn the_configuration_has_each_option_once() {
        let options: Vec<&str> =
            OPTIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let name = |line: &&str| line.split('=').next().map(String::from);
        let mut names: Vec<_> = options.iter().filter_map(name).collect();
        assert!(options.iter().all(|it| it.ends_with("=y") || it.ends_with("=m")), "{options:?}");
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_build_says_how_far_it_is() {
        let mut said = "checking for gcc... gcc-12\nchecking whether it works... ".to_string();
        assert_eq!(progress(&said), "configuring OpenZFS: 2 checks so far");
        said += "yes\nBUILDING\n  CC [M]  module/a.o\n  LD [M] module/b.o\n";
        assert_eq!(progress(&said), "compiling OpenZFS: 1 files so far");
        let mut said = "KERNEL\n  CC      fs/a.o\n  CC [M]  fs/b.o\n".to_string();
        assert_eq!(progress(&said), "compiling Linux: 2 files so far");
        said += "CONFIGURING\nchecking for gcc... gcc-16\n";
        assert_eq!(progress(&said), "configuring OpenZFS: 1 checks so far");
        said += "BUILDING\n  CC [M]  module/a.o\n";
        assert_eq!(progress(&said), "compiling OpenZFS: 1 files so far");
    }

    #[test]
    fn a_build_that_fails_says_at_what_and_shows_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_path_buf();
        let of = For::Packaged;
        let build = Build { release: "6.1", version: "2.3.9", of, log: root.join("log"), root };
        assert!(build.what_failed("checking x\n").starts_with("its configure failed (see also /"));
        assert_eq!(build.what_failed("BUILDING\nerror: x\n"), "its compilation failed");
        let kernels = Build { of: For::UserMode { source: "linux-source-7.2" }, ..build.clone() };
        let says = "the compilation of that kernel failed";
        assert_eq!(kernels.what_failed("KERNEL\nerror: x\n"), says);
        let source = build.root.join("usr/src/zfs-2.3.9/build");
        fs::create_dir_all(&source).unwrap();
        // What configure itself says of it is that the licence is incompatible.
        fs::write(source.join("build.log"), format!("x.c: {FULL}\n")).unwrap();
        assert_eq!(build.what_failed("configure: error: license\n"), "the disk is full");
        let said = (0..20).map(|number| format!("{number}\n\n")).collect::<String>();
        assert_eq!(
            last_lines(&said).collect::<Vec<_>>(),
            (12..20).map(|it| it.to_string()).collect::<Vec<_>>()
        );
    }

    /// A root with a shell and its usual tools, where scripts play what builds.
    fn pretend(root: &Path) {
        for folder in ["bin", "dev", "proc", "usr/bin", "usr/src/zfs-2.3.9/module"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for name in ["sh", "rm", "mkdir", "find", "cp"] {
            let program = tool::find(name).unwrap();
            let said = tool::run_words(&["ldd", &program.display().to_string()]).unwrap();
            for library in toolbox::listed(&said).map(Path::new) {
                let to = root.join(library.strip_prefix("/").unwrap());
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(library, to).unwrap();
            }
            fs::copy(program, root.join("bin").join(name)).unwrap();
        }
        let write = |path: &str, script: &str| {
            let path = root.join(path);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        };
        write("usr/bin/strip", "echo strip $*");
        write(
            "usr/bin/make",
            "echo \"  CC [M]  module/a.o\"; [ ! -e /broken ] && echo a >module/a.ko",
        );
        let configure = "echo checking $*; echo devices /dev/*; echo flags [$PATH$MAKEFLAGS$HOME]
            read -r _ outside _ </proc/self/uid_map; echo outside $outside
            [ ! -e /odd ]";
        write("usr/src/zfs-2.3.9/configure", configure);
    }

    /// A build in such a root; says why there can be none here.
    fn pretended(folder: &Path) -> Option<Build<'static>> {
        if let Err(error) = check_tools() {
            eprintln!("left out: {error}");
            return None;
        }
        let (root, log) = (folder.join("root"), folder.join("log"));
        pretend(&root);
        Some(Build { root, release: "6.1.0-1-amd64", version: "2.3.9", of: For::Packaged, log })
    }

    #[test]
    fn a_build_is_made_in_its_root_and_its_failures_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let Some(build) = pretended(folder.path()) else { return };
        let mut told = Vec::new();
        let mut run = || build.run(&mut |text| told.push(text.to_string()));
        run().unwrap();
        let said = build.said();
        assert!(said.contains("--with-linux=/lib/modules/6.1.0-1-amd64/build"), "{said}");
        assert!(said.contains("strip --strip-debug /modules/a.ko"), "{said}");
        let devices = "fd /dev/full /dev/null /dev/random /dev/stderr /dev/stdin /dev/stdout \
                       /dev/urandom /dev/zero\n";
        assert!(said.contains(&format!("devices /dev/{devices}")), "{said}");
        assert!(said.contains("flags [/usr/sbin:/usr/bin:/sbin:/bin/]"), "{said}");
        assert!(said.contains("outside ") && !said.contains("outside 0\n"), "{said}");
        assert_eq!(fs::read_to_string(build.modules().join("a.ko")).unwrap(), "a\n");
        fs::write(build.root.join("broken"), "").unwrap();
        let error = run().unwrap_err().to_string();
        let says =
            "OpenZFS 2.3.9 could not be built for Linux 6.1.0-1-amd64: its compilation failed";
        assert!(error.starts_with(says), "{error}");
        fs::write(build.root.join("odd"), "").unwrap();
        let error = run().unwrap_err().to_string();
        assert!(error.contains("its configure failed"), "{error}");
        assert!(told.iter().any(|line| line.starts_with("checking ")), "{told:?}");
        assert!(told.iter().any(|line| line == "CC [M]  module/a.o"), "{told:?}");
    }

    /// What is tried in configure's place: with the machine's settings as they are, and by what a
    /// shell has of its own.
    const ATTACKS: &str = "\
        out() { echo \"escaped: $*\"; }
        for it in kernel/core_pattern vm/drop_caches kernel/hostname; do
            read -r is <\"/proc/sys/$it\" || is=
            (echo \"$is\" >\"/proc/sys/$it\") 2>/dev/null && out \"$it\"
        done
        (kill -0 OUTSIDE) 2>/dev/null && out a signal
        for it in /dev/*; do
            case $it in
                */null | */zero | */full | */random | */urandom | */std* | */fd) ;;
                *) out \"$it\" ;;
            esac
        done
        for it in 3 4 5 6 7 8 9; do
            (: >&$it) 2>/dev/null && out what is open as $it
        done
        [ -e FOLDER ] && out the path of a folder
        while read -r _ _ _ _ _ _ _ name; do
            case $name in *FOLDER) out a socket by its name ;; esac
        done </proc/net/unix
        (: >/proc/OUTSIDE/rootFOLDER/x) 2>/dev/null && out the root of another
        echo tried
        exit 1";

    #[test]
    #[ignore = "needs root: run ./test"]
    fn a_build_reaches_no_process_socket_or_setting_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let Some(build) = pretended(folder.path()) else { return };
        // The user's own, who may end it.
        let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let sleeps = [&user[..], &["sleep", "6000"]].concat();
        let sleeps: Vec<String> = sleeps.into_iter().map(String::from).collect();
        let path = folder.path().as_os_str().as_encoded_bytes();
        let name = SocketAddr::from_abstract_name(path).unwrap();
        let _socket = UnixListener::bind_addr(&name).unwrap();
        let mut outside = tool::users(&sleeps).spawn().unwrap();
        let attacks = ATTACKS
            .replace("OUTSIDE", &outside.id().to_string())
            .replace("FOLDER", &folder.path().display().to_string());
        let path = build.root.join("usr/src/zfs-2.3.9/configure");
        fs::write(path, format!("#!/bin/sh\n{attacks}\n")).unwrap();
        let ended = build.run(&mut |_| {});
        outside.kill().and_then(|()| outside.wait()).unwrap();
        ended.unwrap_err();
        let said = build.said();
        let escapes: Vec<&str> = said.lines().filter(|it| it.starts_with("escaped: ")).collect();
        assert!(escapes.is_empty() && said.contains("tried\n"), "{said}");
    }
}
