//! User Mode Linux: a kernel that is a process of the host, at the processor's own speed and
//! without privileges (Documentation/virt/uml/user_mode_linux_howto_v2.rst). Debian's comes with
//! its modules, and needs a libc that may be newer than the host's: that is kept beside it.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{self, Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::need::Answer;

use super::apt::Apt;
use super::arch::Arch;
use super::archive::Archive;
use super::error::{VmError, failed};
use super::fetch;
use super::heard;
use super::kernel::{self, Kernel, Zfs};
use super::qemu::Machine;
use super::release::by_version;
use crate::machine::answers::nameless_file;
use crate::machine::folder;
use crate::tool;

/// Debian's package, and the release that has one whose kernel knows `seccomp=`: 6.16 was the first
/// (arch/um/os-Linux/start_up.c, `seccomp_config`). With ptrace(2) each system call of the guest
/// takes several switches between processes.
const PACKAGE: &str = "user-mode-linux";
const RELEASE: &str = "sid";
/// The libc that it is linked to.
const LIBC: &str = "libc6";
/// Its name among the kernels that can be fetched.
pub const NAME: &str = "uml";
/// The loader that the program names (its PT_INTERP), and the one in our copy: a path from the
/// directory that it is started in. The kernel must start the program: if the loader loads it, the
/// memory behind the program is not where the program expects it.
const LOADER: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
const OWN_LOADER: &[u8] = b"uml/ld.so\0";
/// The link by which that directory leads to the folder of the kernel, and the folder with its libc
/// there.
const LINK: &str = "uml";
const LIBRARIES: &str = "lib";
const PROGRAM: &str = "linux";
const MODULES: &str = "modules";
/// The files there that say its release, and the version of the package that it came in.
const OF: &str = "release";
const VERSION: &str = "version";
/// Where the disk of that number is found, in the directory that it is started in: a path with a
/// comma or a colon would be taken for two (ubd_kern.c, `ubd_setup_common`).
fn disk(number: usize) -> String {
    format!("disk{number}")
}
/// The kernel's memory is a file there (arch/um/os-Linux/mem.c, `make_tempfile`).
const MEMORY: &str = "/dev/shm";
/// It boots in a third of a second.
const PROBE_LIMIT: Duration = Duration::from_secs(60);
/// Kernel parameters, after those of the machine. Its console is our pipe; it has no other, and no
/// folder of the host (`hostfs`). It ends instead of rebooting.
const PARAMETERS: [&str; 9] = [
    "seccomp=on",
    "con=null",
    "ssl=null",
    "hostfs=/proc/none",
    "noreboot",
    "panic=-1",
    "oops=panic",
    "loglevel=4",
    "rdinit=/init",
];

/// Where each has its folder.
pub(super) fn folder() -> PathBuf {
    kernel::cache().join("uml")
}

/// Those that were fetched: Debian's own before those that were built with OpenZFS, the newest
/// first.
pub fn all() -> Vec<Kernel> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    let mut kernels: Vec<Kernel> = entries.filter_map(|entry| at(&entry.path())).collect();
    kernels.sort_by(the_first_choice);
    kernels
}

fn the_first_choice(one: &Kernel, other: &Kernel) -> Ordering {
    let zfs = one.zfs.is_some().cmp(&other.zfs.is_some());
    let build = || by_version(&other.build, &one.build);
    let version = |it: &Kernel| it.zfs.clone().map_or(String::new(), |zfs| zfs.version);
    zfs.then_with(|| by_version(&other.release, &one.release))
        .then_with(build)
        .then_with(|| by_version(&version(other), &version(one)))
}

/// The one whose folder that is. Its build is the version of the package that it came in.
pub(super) fn at(folder: &Path) -> Option<Kernel> {
    let (image, modules) = (folder.join(PROGRAM), folder.join(MODULES));
    let said = |name: &str| fs::read_to_string(folder.join(name)).ok();
    // Earlier programs had a folder for each release, of that name, and told no build of it.
    let (release, build) = match said(OF) {
        Some(release) => (release, said(VERSION).unwrap_or_default()),
        None => (folder.file_name()?.to_str()?.to_string(), String::new()),
    };
    let zfs = Zfs::in_folder(&folder.join(kernel::TOOLS));
    let kernel = Kernel { image, arch: Arch::OWN, release, build, modules: Some(modules), zfs };
    kernel.image.exists().then_some(kernel)
}

/// Fetches it, unless it is there already. `say` hears what is being done.
pub fn get(mirror: Option<&str>, say: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let _lock = fetch::locked(&kernel::cache(), say)?;
    let apt = packages(mirror, say)?;
    let version = apt.version(PACKAGE).ok_or_else(|| {
        VmError::Fetch(format!("{RELEASE} has no {PACKAGE}: name another --mirror"))
    })?;
    let known = all().into_iter().find(|it| packaged(it).as_ref() == Some(&version));
    if let Some(kernel) = known {
        say(&format!("{PACKAGE} {version} is there already"));
        return Ok(kernel);
    }
    say(&format!("fetching {PACKAGE} {version}"));
    let beside = folder().join("new");
    let _ = fs::remove_dir_all(&beside);
    fs::create_dir_all(&beside).map_err(failed(format!("making {}", beside.display())))?;
    let result = unpack(&apt, &version, &beside);
    let _ = fs::remove_dir_all(&beside);
    result
}

/// Those of the release that has it.
pub(super) fn packages(mirror: Option<&str>, say: &mut dyn FnMut(&str)) -> Result<Apt, VmError> {
    say(&format!("reading the package lists of {RELEASE}"));
    Apt::private(RELEASE, mirror, "main", Arch::OWN)
        .map_err(|error| VmError::Fetch(format!("{RELEASE}: {error}; or name a --mirror")))
}

/// The version of the package that it came in.
fn packaged(kernel: &Kernel) -> Option<String> {
    fs::read_to_string(kernel.image.with_file_name(VERSION)).ok()
}

fn unpack(apt: &Apt, version: &str, beside: &Path) -> Result<Kernel, VmError> {
    apt.unpack(&[PACKAGE, LIBC].map(String::from), beside)?;
    let whole = beside.join("whole");
    let arranged = arrange(beside, version, &whole);
    arranged.map_err(failed(format!("unpacking {PACKAGE} {version}")))?;
    // Another one of its release may be in use, or what a run goes on with.
    let its = folder().join(version);
    let _ = fs::remove_dir_all(&its);
    fs::rename(&whole, &its).map_err(failed(format!("making {}", its.display())))?;
    at(&its).ok_or(VmError::NoUml)
}

/// Puts what is needed of the packages below `from` into the folder `to`.
fn arrange(from: &Path, version: &str, to: &Path) -> io::Result<()> {
    let missing = |what: &str| io::Error::other(format!("the package has no {what}"));
    let modules = from.join("usr/lib/uml/modules");
    let entry = fs::read_dir(&modules)?.next().ok_or_else(|| missing("modules"))??;
    fs::create_dir_all(to.join(LIBRARIES))?;
    fs::rename(entry.path(), to.join(MODULES))?;
    let libraries = from.join("usr/lib/x86_64-linux-gnu");
    fs::rename(libraries.join("libc.so.6"), to.join(LIBRARIES).join("libc.so.6"))?;
    fs::rename(libraries.join("ld-linux-x86-64.so.2"), to.join("ld.so"))?;
    let program = with_own_loader(fs::read(from.join("usr/bin/linux.uml"))?)
        .ok_or_else(|| missing("program that asks for the usual loader"))?;
    fs::write(to.join(PROGRAM), program)?;
    fs::set_permissions(to.join(PROGRAM), fs::Permissions::from_mode(0o755))?;
    name(to, &entry.file_name().to_string_lossy(), version)
}

/// One that was built here. It is linked statically and needs no libc.
#[derive(Debug)]
pub(super) struct Built<'a> {
    /// The kernel, whoever's file it is.
    pub(super) program: &'a Path,
    /// The folder with its modules.
    pub(super) modules: &'a Path,
    /// Those of OpenZFS.
    pub(super) tools: &'a Path,
    pub(super) release: &'a str,
    /// Of the package with its source.
    pub(super) version: &'a str,
}

impl Built<'_> {
    /// Puts it into the folder `to`, by way of the folder `beside`.
    pub(super) fn put(&self, beside: &Path, to: &Path) -> Result<Kernel, VmError> {
        self.arrange(beside).map_err(failed(format!("making {}", beside.display())))?;
        let making = || failed(format!("making {}", to.display()));
        fs::create_dir_all(to.parent().unwrap_or(to)).map_err(making())?;
        fs::rename(beside, to).map_err(making())?;
        at(to).ok_or(VmError::NoUml)
    }

    fn arrange(&self, beside: &Path) -> io::Result<()> {
        fs::create_dir(beside)?;
        fs::copy(self.program, beside.join(PROGRAM))?;
        fs::rename(self.modules, beside.join(MODULES))?;
        fs::rename(self.tools, beside.join(kernel::TOOLS))?;
        name(beside, self.release, self.version)
    }
}

/// What [`at`] reads of it, and the link by which it is started in its own folder.
fn name(folder: &Path, release: &str, version: &str) -> io::Result<()> {
    symlink(".", folder.join(LINK))?;
    fs::write(folder.join(OF), release)?;
    fs::write(folder.join(VERSION), version)
}

/// The program, which asks for [`OWN_LOADER`].
fn with_own_loader(mut program: Vec<u8>) -> Option<Vec<u8>> {
    let at = program.windows(LOADER.len()).position(|bytes| bytes == LOADER)?;
    let place = &mut program[at..at + LOADER.len()];
    place.fill(0);
    place[..OWN_LOADER.len()].copy_from_slice(OWN_LOADER);
    Some(program)
}

/// The kernel `image`, started in `folder` with these words: without our environment, and without a
/// dump of its memory when it panics.
fn started(image: &Path, folder: &Path, words: impl IntoIterator<Item = String>) -> Vec<String> {
    let [image, folder] = [image, folder].map(|path| path.display().to_string());
    let first = ["prlimit", "--core=0", "env", "-i", "-C"].map(String::from);
    let library_path = format!("LD_LIBRARY_PATH={LINK}/{LIBRARIES}");
    first.into_iter().chain([folder, library_path, image]).chain(words).collect()
}

/// The command that starts the machine in the folder of its archive: its console on standard
/// output.
pub fn argv(machine: &Machine) -> Vec<String> {
    let folder = machine.initrd.parent().unwrap_or(Path::new("."));
    let initrd = machine.initrd.file_name().unwrap_or_default().to_string_lossy();
    let console = if machine.has_terminal { "con0=fd:0,fd:1" } else { "con0=null,fd:1" };
    let mut words = vec![
        format!("mem={}M", machine.memory_bytes.div_ceil(1 << 20)),
        format!("initrd={initrd}"),
        // Its own files there go with the folder.
        "uml_dir=./".into(),
        console.into(),
    ];
    // `t`: without discards, which would give blocks of the image back, and without writing zeros,
    // which it would do by the same way: see `bed/image.rs`, `write_out`.
    words.extend((0..machine.disks.len()).map(|number| format!("ubd{number}t={}", disk(number))));
    words.extend(PARAMETERS.map(String::from));
    started(machine.kernel, folder, words)
}

/// Makes the links in the machine's folder by which [`argv`] names its files.
pub fn link(machine: &Machine) -> io::Result<()> {
    let folder = machine.initrd.parent().unwrap_or(Path::new("."));
    let its = machine.kernel.parent().unwrap_or(Path::new("/"));
    let disks = machine.disks.iter().enumerate().map(|(at, it)| (disk(at), it.path.as_path()));
    for (name, to) in [(LINK.to_string(), its)].into_iter().chain(disks) {
        let at = folder.join(name);
        match fs::remove_file(&at) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // No link on the way is followed: a path to a held file stays as it is.
            _ => symlink(path::absolute(to)?, at)?,
        }
    }
    Ok(())
}

/// Whether its memory, a file in memory, has room.
pub fn check_memory(bytes: u64) -> Result<(), VmError> {
    match crate::sys::free_bytes(Path::new(MEMORY)) {
        Ok(free) if free < bytes => Err(VmError::SharedMemory { folder: MEMORY, free, bytes }),
        _ => Ok(()),
    }
}

/// Whether the newest that is there runs on this machine, found out by booting it.
pub fn check() -> Answer {
    if !cfg!(target_arch = "x86_64") {
        return Answer::no("the kernel that Debian has is for x86-64");
    }
    let Some(kernel) = all().into_iter().next() else {
        return Answer::no("it is not fetched").but(format!("fsverdict kernels get {NAME}"));
    };
    match boot(&kernel) {
        Ok(said) => judged(&kernel.release, &said),
        Err(error) => Answer::no(format!("Linux {} can't be tried: {error}", kernel.release)),
    }
}

/// What the first process of [`init`] says.
const WORDS: &[u8] = b"fsverdict was here\n";

/// Boots it with a first process that says a word and ends it; gives all that was said.
fn boot(kernel: &Kernel) -> io::Result<String> {
    let mut archive = Archive::new(nameless_file(Path::new(MEMORY))?);
    archive.directory("dev", 0o755)?;
    archive.device("dev/console", [5, 1])?;
    archive.bytes("init", 0o755, &init())?;
    let mut file: File = archive.finish()?;
    file.flush()?;
    let its = kernel.image.parent().unwrap_or(Path::new("/"));
    let us = std::process::id();
    let (name, notes) = (format!("probe-{us}"), its.join("notes"));
    let words = [
        "mem=64M".to_string(),
        format!("initrd={}/fd/{}", folder::us()?.display(), file.as_raw_fd()),
        format!("uml_dir={}/", notes.file_name().unwrap_or_default().display()),
        format!("umid={name}"),
        "con0=null,fd:1".into(),
    ];
    let words = words.into_iter().chain(PARAMETERS.map(String::from));
    fs::create_dir_all(&notes)?;
    let answer = tool::ask(&started(&kernel.image, its, words), its, PROBE_LIMIT);
    let _ = fs::remove_dir_all(notes.join(name));
    let answer = answer.map_err(io::Error::other)?;
    Ok(answer.stderr + &answer.stdout)
}

/// What the boot of the kernel `release` tells.
fn judged(release: &str, said: &str) -> Answer {
    let has_started =
        said.as_bytes().windows(WORDS.len() - 1).any(|it| it == &WORDS[..WORDS.len() - 1]);
    if has_started {
        return Answer::yes(format!("Linux {release}, a process of this machine's"));
    }
    let end = heard::end_of(said);
    // Theirs are of a fixed size, and the processor's may be larger (AVX-512, AMX).
    let is_old = by_version(release, "6.13").is_lt();
    let why =
        if is_old { "; before 6.13 it has no room for large floating-point states" } else { "" };
    Answer::no(format!("Linux {release} does not run on this processor: {end}{why}"))
        .but(format!("fsverdict kernels get {NAME}, or write --place vm"))
}

/// A program that writes [`WORDS`] to the console and restarts the machine: write(2) and
/// reboot(2), as `arch/x86/entry/syscalls/syscall_64.tbl` numbers them, in an ELF file with one
/// segment (elf(5)).
fn init() -> Vec<u8> {
    const ADDRESS: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let code = [
        &[0xb8, 1, 0, 0, 0][..],                         // mov eax, 1: write
        &[0xbf, 1, 0, 0, 0],                             // mov edi, 1
        &[0x48, 0x8d, 0x35, 31, 0, 0, 0],                // lea rsi, the words behind the code
        &[0xba, WORDS.len() as u8, 0, 0, 0, 0x0f, 0x05], // mov edx, their length; syscall
        &[0xb8, 0xa9, 0, 0, 0],                          // mov eax, 169: reboot
        &[0xbf, 0xad, 0xde, 0xe1, 0xfe],                 // mov edi, LINUX_REBOOT_MAGIC1
        &[0xbe, 0x69, 0x19, 0x12, 0x28],                 // mov esi, LINUX_REBOOT_MAGIC2
        &[0xba, 0x67, 0x45, 0x23, 0x01, 0x0f, 0x05],     // mov edx, _CMD_RESTART; syscall
        &[0xeb, 0xfe],                                   // jmp to itself
    ]
    .concat();
    let length = HEADERS + (code.len() + WORDS.len()) as u64;
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // Executable, x86-64.
    elf.extend([2, 0, 0x3e, 0, 1, 0, 0, 0]);
    // Entry, program headers, no section headers.
    elf.extend([ADDRESS + HEADERS, 64, 0].into_iter().flat_map(u64::to_le_bytes));
    elf.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    // To be loaded, to be read and executed.
    elf.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    let segment = [0, ADDRESS, ADDRESS, length, length, 0x1000];
    elf.extend(segment.into_iter().flat_map(u64::to_le_bytes));
    elf.extend(code);
    elf.extend(WORDS);
    elf
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::need::State;

    use super::super::modules::Bus;
    use super::super::qemu::Disk;
    use super::*;

    #[test]
    fn it_is_started_by_the_names_of_its_folder_alone() {
        let disks =
            ["/run,of:me/vm/exchange", "/a b,c:d/1.img"].map(|it| Disk::exchange(it.as_ref()));
        let machine = Machine {
            kernel: Path::new("/cache/uml/7.2.7/linux"),
            initrd: Path::new("/run,of:me/vm/0.cpio"),
            disks: &disks,
            bus: Bus::Ubd,
            memory_bytes: (1 << 30) + 1,
            arch: Arch::OWN,
            processors: 1,
            kvm: false,
            processor: None,
            parameters: &[],
            options: &[],
            has_terminal: false,
            is_untrusted: false,
        };
        assert_eq!(
            argv(&machine).join(" "),
            "prlimit --core=0 env -i -C /run,of:me/vm LD_LIBRARY_PATH=uml/lib \
             /cache/uml/7.2.7/linux mem=1025M initrd=0.cpio uml_dir=./ con0=null,fd:1 \
             ubd0t=disk0 ubd1t=disk1 seccomp=on con=null ssl=null hostfs=/proc/none noreboot \
             panic=-1 oops=panic loglevel=4 rdinit=/init"
        );
        let typed_at = argv(&Machine { has_terminal: true, ..machine });
        assert!(typed_at.contains(&"con0=fd:0,fd:1".into()), "{typed_at:?}");
    }

    #[test]
    fn two_of_one_release_are_told_apart_by_the_packages_that_they_came_in() {
        let folder = tempfile::tempdir().unwrap();
        let (from, kernels) = (folder.path().join("new"), folder.path().join("uml"));
        let told = |version: &str| {
            let libraries = from.join("usr/lib/x86_64-linux-gnu");
            for needed in
                [&from.join("usr/lib/uml/modules/7.2.7"), &libraries, &from.join("usr/bin")]
            {
                fs::create_dir_all(needed).unwrap();
            }
            fs::write(libraries.join("libc.so.6"), "").unwrap();
            fs::write(libraries.join("ld-linux-x86-64.so.2"), "").unwrap();
            fs::write(from.join("usr/bin/linux.uml"), LOADER).unwrap();
            arrange(&from, version, &kernels.join(version)).unwrap();
            at(&kernels.join(version)).unwrap().told()
        };
        assert_eq!(told("7.2.7-1"), "7.2.7 7.2.7-1");
        assert_eq!(told("7.2.7-2"), "7.2.7 7.2.7-2");
        assert!(at(&kernels.join("7.2.7-1")).is_some(), "it may be in use");
        let former = kernels.join("7.2.6");
        fs::create_dir(&former).unwrap();
        assert_eq!(at(&former), None);
        fs::write(former.join(PROGRAM), "").unwrap();
        fs::write(former.join(VERSION), "7.2um0").unwrap();
        let former = at(&former).unwrap();
        assert_eq!(
            (former.told().as_str(), packaged(&former).as_deref()),
            ("7.2.6", Some("7.2um0"))
        );
    }

    #[test]
    fn one_that_was_built_has_its_modules_and_tools_and_comes_after_debians() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["kernel/linux", "kernel/lib/modules/7.2.13/updates/zfs.ko", "zfs/zpool"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), path).unwrap();
        }
        fs::write(root.join("zfs/version"), "2.3.9").unwrap();
        let built = Built {
            program: &root.join("kernel/linux"),
            modules: &root.join("kernel/lib/modules/7.2.13"),
            tools: &root.join("zfs"),
            release: "7.2.13",
            version: "7.2.13-1",
        };
        let kernel = built.put(&root.join("whole"), &root.join("uml/one")).unwrap();
        assert_eq!(kernel.told(), "7.2.13 7.2.13-1, OpenZFS 2.3.9");
        assert!(kernel.modules.as_ref().unwrap().join("updates/zfs.ko").exists());
        assert!(kernel.zfs.as_ref().unwrap().tools.join("zpool").exists());
        assert!(root.join("uml/one/uml/linux").exists(), "it can be started in its own folder");
        let debians = Kernel { release: "7.2.7".into(), zfs: None, ..kernel.clone() };
        let newer = Kernel { release: "7.3.1".into(), ..kernel.clone() };
        let zfs = Some(Zfs { version: "2.4.4".into(), tools: PathBuf::new() });
        let other = Kernel { zfs, ..kernel.clone() };
        let mut all = [kernel, other, newer, debians];
        all.sort_by(the_first_choice);
        let names = ["7.2.7", "7.3.1+zfs-2.3.9", "7.2.13+zfs-2.4.4", "7.2.13+zfs-2.3.9"];
        assert_eq!(all.map(|it| it.name()), names);
    }

    #[test]
    fn our_copy_asks_for_the_loader_beside_it() {
        let program = [&[1, 2], LOADER, &[3]].concat();
        let patched = with_own_loader(program.clone()).unwrap();
        assert_eq!(patched.len(), program.len());
        assert!(patched[2..].starts_with(OWN_LOADER) && patched.ends_with(&[0, 3]));
        assert_eq!(with_own_loader(patched), None);
    }

    #[test]
    fn a_boot_tells_whether_it_runs_and_why_not() {
        assert_eq!(judged("7.2.7", "Checking...\nfsverdict was here\r\n").state, State::Yes);
        let panic = "<6>one\n<0>Kernel panic - not syncing: Segfault with no mm\n<4>CPU: 0\n";
        let unmet = judged("6.12.41", panic).unmet().unwrap();
        assert_eq!(
            unmet,
            "Linux 6.12.41 does not run on this processor: the kernel panicked: <6>one | <0>Kernel \
             panic - not syncing: Segfault with no mm; before 6.13 it has no room for large \
             floating-point states: fsverdict kernels get uml, or write --place vm"
        );
        let silent = judged("7.2.7", "").unmet().unwrap();
        assert!(silent.contains("processor: its console is empty: fsverdict"), "{silent}");
    }

    /// The first process of the probe is right where this machine can start it, too: it says its
    /// word, and may not restart the machine.
    #[test]
    fn the_first_process_of_the_probe_is_a_program() {
        let elf = init();
        assert_eq!(elf.len(), 120 + 48 + WORDS.len());
        assert_eq!(elf[24..32], 0x40_0078_u64.to_le_bytes());
        assert_eq!(elf[120 + 48..], *WORDS);
        assert_eq!(usize::from(elf[120 + 13]) + 17, 48);
    }
}
