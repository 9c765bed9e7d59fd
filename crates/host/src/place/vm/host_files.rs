//! What a guest has of the host: the programs that its trials need, their libraries, and the files
//! that the work names, at the paths they have on the host. A guest for other processors has the
//! programs that were fetched for these (`userland.rs`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use fsverdict_core::model::{Command, Map, Plan, Vm, is_mapped};

use super::archive::Archive;
use super::elf;
use super::error::VmError;
use super::own_files;
use super::toolbox::{self, Toolbox};
use super::userland::{self, Userland};
use crate::file_system::{FileSystem, Site};
use crate::machine::plain;
use crate::{layer, tool, workload};

/// As much as a guest can reasonably hold in its memory.
const MOST_BYTES: u64 = 1 << 30;
/// How long ldd(1) may take for all programs together.
const LDD_LIMIT: Duration = Duration::from_secs(60);
const HOST: &str = "/";
/// Symbolic links that lead on to others: as many as the kernel follows (path_resolution(7)).
const LINKS_FOLLOWED: u32 = 40;
/// Files that programs look for without being told; the first is of the host's libraries alone.
const USUAL: [&str; 8] = [
    LIBRARY_CACHE,
    "/etc/mke2fs.conf",
    "/etc/nilfs_cleanerd.conf",
    "/etc/zfs/zfsrc",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/localtime",
];
const LIBRARY_CACHE: &str = "/etc/ld.so.cache";
/// Those of [`USUAL`] that name the machine's users.
const ACCOUNTS: [Option<&str>; 2] = [Some("/etc/passwd"), Some("/etc/group")];
/// Programs that read scripts in which a word may be a program's name.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];
/// A longer script is data for the most part.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
/// What a trial itself starts.
const PROGRAMS: [&str; 4] = ["unshare", "mount", "umount", "sh"];
/// Folders that the guest has of its own, and those that hold more than work can mean.
const NOT_BROUGHT: [&str; 12] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/proc", "/run", "/sys", "/tmp", "/usr",
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Directory(u32),
    Link(PathBuf),
    /// Where it lies here, and its bytes.
    File(PathBuf, u64),
}

/// Files of the host that go into a guest.
#[derive(Debug, Default)]
pub struct HostFiles {
    entries: BTreeMap<PathBuf, Entry>,
    /// Programs whose libraries are not looked for yet.
    programs: BTreeSet<PathBuf>,
    /// Programs that are there with their interpreters.
    runnable: BTreeSet<PathBuf>,
    /// Programs that the trials start, and of which is not known yet what they start and read.
    started: BTreeSet<PathBuf>,
    /// Where programs and their libraries are from, if not from the host.
    userland: Option<Userland>,
    /// Tools that the host does not have.
    toolboxes: BTreeSet<Toolbox>,
    /// For a stranger's plan, what it may name; programs of the system besides.
    given: Option<Vec<PathBuf>>,
    /// Folders that the work finds in its own.
    mapped: Map,
}

impl HostFiles {
    /// All that the trials of `plan` need, on file systems as its kernels have them, and `more`
    /// programs, as far as the host has them.
    pub fn of<'a>(
        plan: &Plan,
        file_systems: impl Iterator<Item = &'a FileSystem>,
        more: &[&str],
        userland: Option<Userland>,
    ) -> Result<HostFiles, VmError> {
        if let Some((userland, how)) = userland.as_ref().and_then(|it| Some((it, it.missing()?))) {
            return Err(VmError::NoUserland { arch: userland.arch().shown(), how });
        }
        let given = plan.vm.as_ref().and_then(Vm::given);
        let given = given.map(|given| given.iter().map(PathBuf::from).collect());
        let mut host_files = HostFiles { given, userland, ..HostFiles::default() };
        // A stranger must not learn who uses this machine.
        let is_told =
            |path: &&Path| host_files.given.is_none() || !ACCOUNTS.contains(&path.to_str());
        let is_there = |path: &&Path| path.exists() || host_files.is_of_userland(path);
        let usual: Vec<&Path> =
            USUAL.iter().map(Path::new).filter(is_there).filter(is_told).collect();
        for path in usual {
            match &host_files.userland {
                Some(_) if path == Path::new(LIBRARY_CACHE) => {}
                Some(its) if its.has(path) => drop(host_files.add_program(path)?),
                _ => drop(host_files.add(path)?),
            }
        }
        for program in PROGRAMS.into_iter().chain(workload::programs(plan)) {
            host_files.system_program(program)?;
        }
        for name in more {
            host_files.find(name).map_or(Ok(()), |path| host_files.program(&path))?;
        }
        for known in file_systems {
            host_files.file_system(known)?;
        }
        let layers = plan.contenders.iter().flat_map(|it| &it.layers);
        for kind in layers.filter_map(|layer| layer::find(&layer.name)) {
            let programs = kind.programs.iter().chain(&["wipefs"]);
            programs.into_iter().try_for_each(|program| host_files.system_program(program))?;
        }
        for path in plan.vm.iter().flat_map(|vm| &vm.bring).map(Path::new) {
            host_files.tree(path)?;
        }
        let environments = plan.workloads.iter().map(|it| &it.environment);
        let environments = environments.chain(plan.contenders.iter().map(|it| &it.environment));
        for value in environments.flat_map(|it| it.values()) {
            host_files.started_in(&value.to_string())?;
        }
        for workload in &plan.workloads {
            host_files.mapped.clone_from(&workload.map);
            for command in workload.commands() {
                let is_the_work = workload.command.as_ref() == Some(command);
                host_files.command(command, is_the_work)?;
            }
            for (needed, _) in workload.needed() {
                host_files.needed(needed)?;
            }
            let source = workload.tree.iter().filter_map(|tree| tree.source.as_ref());
            source.into_iter().try_for_each(|path| host_files.named(Path::new(path)))?;
            let files = workload.work().map(|work| workload::engine(work).files());
            files.iter().flatten().try_for_each(|path| host_files.named(Path::new(path)))?;
        }
        host_files.examine()?;
        let reads = plan.workloads.iter().flat_map(|it| &it.reads).map(PathBuf::from);
        host_files.add_if_there(&reads.collect::<BTreeSet<_>>());
        host_files.libraries()?;
        let bytes = host_files.bytes();
        if bytes > MOST_BYTES { Err(VmError::HostFiles { bytes }) } else { Ok(host_files) }
    }

    /// Where programs are from, if not from the host.
    pub fn userland(&self) -> Option<&Userland> {
        self.userland.as_ref()
    }

    fn file_system(&mut self, known: &FileSystem) -> Result<(), VmError> {
        self.system_program(known.program)?;
        let devices = ["/dev/vdb".to_string()];
        let site = Site { devices: &devices, at: "/mnt", ..Site::default() };
        let commands = [known.make(&[], &site), known.mount(&[], &site), known.unmount(&site)];
        let listener = known.listener(&[], &site).map(|(argv, _)| argv);
        let others = [known.commit(&site), known.server(&[], &site), known.pack(&[], &site)];
        let others = others.into_iter().flatten().chain(listener);
        for argv in commands.into_iter().flatten().chain(others) {
            self.system_program(&argv[0])?;
        }
        // mount(8) and umount(8) start them where there are any.
        let found = ["mount", "umount"].map(|it| self.find(&format!("{it}.{}", known.driver())));
        found.iter().flatten().try_for_each(|helper| self.program(helper))?;
        known.helpers.iter().try_for_each(|helper| self.system_program(helper))
    }

    /// Its program, and whatever its words may mean: programs, and paths that exist here.
    fn command(&mut self, command: &Command, must_be_there: bool) -> Result<(), VmError> {
        let argv = command.argv();
        if must_be_there && self.users_program(&argv[0]).is_none() {
            return Err(self.missing(&argv[0]));
        }
        for argument in &argv {
            for word in words(argument).chain([argument.as_str()]).collect::<BTreeSet<_>>() {
                match word.starts_with('/') {
                    true if is_mapped(&self.mapped, word) => {}
                    true if self.is_of_userland(Path::new(word)) => {
                        self.program(Path::new(word))?;
                    }
                    true if self.is_for_the_host_alone(word) => return Err(self.missing(word)),
                    true if Path::new(word).exists() => self.named(Path::new(word))?,
                    true => {}
                    false => self.users_program(word).map_or(Ok(()), |it| self.program(&it))?,
                }
            }
        }
        Ok(())
    }

    /// A program, or a file by its path; preflight has said what is not there.
    fn needed(&mut self, need: &str) -> Result<(), VmError> {
        if self.userland.is_some() {
            let its = self.userland.as_ref();
            if let Some(path) = its.and_then(|its| its.needed(need)) {
                return self.program(&path);
            }
            let mut files = tool::needed(need).filter(|it| userland::is_data(Path::new(it)));
            let first = || self.missing(need.split('|').next().unwrap_or(need));
            return self.named(Path::new(&files.next().ok_or_else(first)?));
        }
        let Some(name) = tool::needed(need).find(|name| tool::is_there(name)) else {
            return Ok(());
        };
        match self.users_program(&name) {
            Some(path) => self.program(&path),
            None if Path::new(&name).is_file() => self.named(Path::new(&name)),
            None => Ok(()),
        }
    }

    /// The host's own, or one that was fetched for guests.
    fn system_program(&mut self, name: &str) -> Result<(), VmError> {
        if let Some(path) = self.find(name) {
            return self.program(&path);
        }
        let toolbox = toolbox::find(name).filter(|_| self.userland.is_none());
        self.toolboxes.insert(toolbox.ok_or_else(|| self.missing(name))?);
        Ok(())
    }

    /// A program of the system, where trials look for it.
    fn find(&self, name: &str) -> Option<PathBuf> {
        self.userland.as_ref().map_or_else(|| tool::find(name), |its| its.find(name))
    }

    fn is_of_userland(&self, path: &Path) -> bool {
        self.userland.as_ref().is_some_and(|its| its.has(path))
    }

    /// It is a program that this machine can run, and the guest can't.
    fn is_for_the_host_alone(&self, path: &str) -> bool {
        let Some(its) = self.userland.as_ref().map(Userland::arch) else { return false };
        let path = Path::new(path);
        if self.given.is_some() || is_left_out(path) {
            return false;
        }
        let machine = plain::open(path).and_then(|mut file| userland::machine(&mut file));
        machine.is_ok_and(|it| it.is_some_and(|arch| arch != its))
    }

    fn missing(&self, program: &str) -> VmError {
        let program = program.to_string();
        match &self.userland {
            None => tool::ToolError::Missing { program }.into(),
            Some(its) => VmError::NotInUserland { arch: its.arch(), program },
        }
    }

    fn program(&mut self, path: &Path) -> Result<(), VmError> {
        let path = self.runnable(path)?;
        self.started.insert(path);
        Ok(())
    }

    /// A program with what it can't run without; returns its path without links.
    fn runnable(&mut self, path: &Path) -> Result<PathBuf, VmError> {
        let path = self.add_program(path)?;
        if self.runnable.insert(path.clone()) {
            self.with_interpreter(&path)?;
        }
        Ok(path)
    }

    /// Adds what the programs that the trials start do start and read in turn, and nobody names.
    fn examine(&mut self) -> Result<(), VmError> {
        let mut examined = BTreeSet::new();
        while let Some(path) = self.started.pop_first() {
            if !examined.insert(path.clone()) {
                continue;
            }
            let Some((first, lines)) = script(&self.source(&path)) else { continue };
            for word in first.split_whitespace() {
                self.users_program(word).map_or(Ok(()), |found| self.program(&found))?;
            }
            if first.split(|c: char| c == '/' || c.is_whitespace()).any(|it| SHELLS.contains(&it)) {
                self.started_in(&lines)?;
            }
        }
        // No program is run for a stranger, and none of the host's reads what is in another guest.
        if self.given.is_none() && self.userland.is_none() {
            for program in examined.iter().filter(|path| is_systems(path)) {
                self.add_own_files(program);
            }
        }
        Ok(())
    }

    /// The system's programs that lines for the shell name; of files and folders none, which may be
    /// large, and meant for another time.
    fn started_in(&mut self, lines: &str) -> Result<(), VmError> {
        let code = lines.lines().filter(|line| !line.trim_start().starts_with('#'));
        for word in code.flat_map(words).collect::<BTreeSet<_>>() {
            let is_fit =
                |it: &PathBuf| self.is_of_userland(it) || is_systems(it) && File::open(it).is_ok();
            self.find(word).filter(is_fit).map_or(Ok(()), |found| self.program(&found))?;
        }
        Ok(())
    }

    /// What the program says that it reads.
    fn add_own_files(&mut self, program: &Path) {
        let folders = own_files::folders(program);
        self.add_if_room(&folders, &own_files::LEFT_OUT);
        let real: Vec<PathBuf> = folders.iter().filter_map(|it| it.canonicalize().ok()).collect();
        let is_module = |path: &&PathBuf| {
            path.extension() == Some("so".as_ref()) && real.iter().any(|it| path.starts_with(it))
        };
        // They are no programs by their modes, and have libraries.
        let modules: Vec<PathBuf> = match real.as_slice() {
            [] => Vec::new(),
            _ => self.entries.keys().filter(is_module).cloned().collect(),
        };
        self.programs.extend(modules);
    }

    /// What programs of the work read, of what the plan says: each that is there, from `/` on, and
    /// that a stranger's plan was given.
    fn add_if_there(&mut self, paths: &BTreeSet<PathBuf>) {
        for path in paths.iter().filter(|path| path.is_absolute()) {
            let Ok(found) = path.canonicalize() else { continue };
            let is_allowed = match &self.given {
                None => self.userland.is_none(),
                Some(given) => given.iter().any(|it| found.starts_with(it)),
            };
            if is_allowed {
                self.add_if_room(&[path], &[]);
            }
        }
    }

    /// Adds these, less the folders of these names, if all can be read and half of a guest's room
    /// stays for the rest; the work may do without.
    fn add_if_room<P: AsRef<Path>>(&mut self, paths: &[P], less: &[&str]) {
        if paths.is_empty() {
            return;
        }
        let before = (self.entries.clone(), self.programs.clone(), self.runnable.clone());
        let all = paths.iter().try_for_each(|path| self.tree_without(path.as_ref(), less));
        if all.is_err() || self.bytes() > MOST_BYTES / 2 {
            (self.entries, self.programs, self.runnable) = before;
        }
    }

    /// Where the file lies here that is a guest's `path`.
    fn source(&self, path: &Path) -> PathBuf {
        match self.entries.get(path) {
            Some(Entry::File(from, _)) => from.clone(),
            _ => path.into(),
        }
    }

    /// A script brings the program that reads it; any other its libraries.
    fn with_interpreter(&mut self, path: &Path) -> Result<(), VmError> {
        let mut head = [0; 128];
        let source = self.source(path);
        let length = File::open(source).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
        let head = &head[..length];
        let its = self.userland.as_ref().map(Userland::arch);
        let is_theirs = its.is_none() || userland::machine(&mut &*head).ok().flatten() == its;
        if head.starts_with(b"\x7fELF") {
            // One that the guest can't run may be what the work reads.
            is_theirs.then(|| self.programs.insert(path.into()));
        } else if let Some(line) = head.strip_prefix(b"#!") {
            let line = String::from_utf8_lossy(line);
            let line = line.lines().next().unwrap_or_default();
            // `/usr/bin/env python3` is two programs.
            for word in line.split_whitespace() {
                let found = self.users_program(word).filter(|found| found != path);
                found.map_or(Ok(()), |found| self.runnable(&found).map(drop))?;
            }
        }
        Ok(())
    }

    /// A program as its user's shell would find it. A stranger's plan gets those of the system.
    fn users_program(&self, name: &str) -> Option<PathBuf> {
        if let Some(its) = &self.userland {
            // Scripts are for all processors, and so may be a program that the user has built.
            let is_runnable = |path: &PathBuf| {
                let machine = File::open(path).and_then(|mut file| userland::machine(&mut file));
                machine.is_ok_and(|it| it.is_none_or(|arch| arch == its.arch()))
            };
            let own = || users_program(name).filter(|_| name.contains('/')).filter(is_runnable);
            return its.find(name).or_else(|| own().filter(|_| self.given.is_none()));
        }
        match self.given {
            None => users_program(name),
            Some(_) if name.contains('/') => Some(PathBuf::from(name)).filter(|it| is_systems(it)),
            Some(_) => tool::find(name).filter(|path| is_systems(path)),
        }
    }

    /// What the plan names, from `/` on. A stranger's is looked at only as far as it was given.
    fn named(&mut self, path: &Path) -> Result<(), VmError> {
        if !path.is_absolute() || is_left_out(path) {
            return Ok(());
        }
        if let Some(given) = &self.given {
            if is_systems(path) {
                return self.program(path);
            }
            let found = path.canonicalize().map_err(reading(path))?;
            if !given.iter().any(|it| found.starts_with(it)) {
                return Err(VmError::NotGiven { path: found });
            }
        }
        let started = users_program(&path.to_string_lossy());
        self.started.extend(started.and_then(|it| it.canonicalize().ok()));
        self.tree(path)
    }

    /// A file, or a folder with all that is in it; programs among them with what they need. For a
    /// stranger's plan no program is examined: ldd(1) may run it.
    fn tree(&mut self, path: &Path) -> Result<(), VmError> {
        self.tree_without(path, &[])
    }

    /// [`HostFiles::tree`], less the folders in it of these names.
    fn tree_without(&mut self, path: &Path, names: &[&str]) -> Result<(), VmError> {
        if is_left_out(path) {
            return Ok(());
        }
        let path = self.add(path)?;
        if !path.is_dir() {
            return if self.given.is_some() { Ok(()) } else { self.with_interpreter(&path) };
        }
        let entries = fs::read_dir(&path).map_err(reading(&path))?;
        for entry in entries {
            let entry = entry.map_err(reading(&path))?;
            match entry.file_type().map_err(reading(&path))? {
                kind if kind.is_dir() && names.iter().any(|it| entry.file_name() == *it) => {}
                kind if kind.is_dir() => self.tree_without(&entry.path(), names)?,
                // What it leads to may be elsewhere, or nowhere.
                kind if kind.is_symlink() => self.step(Path::new(HOST), entry.path()).map(drop)?,
                kind if kind.is_file() => {
                    self.step(Path::new(HOST), entry.path())?;
                    let is_program = entry.metadata().is_ok_and(|data| data.mode() & 0o111 != 0);
                    if is_program && self.given.is_none() {
                        self.with_interpreter(&entry.path())?;
                    }
                }
                _ => {}
            }
            if self.entries.len().is_multiple_of(256) && self.bytes() > MOST_BYTES {
                return Err(VmError::HostFiles { bytes: self.bytes() });
            }
        }
        Ok(())
    }

    /// [`HostFiles::add`], of where programs are from.
    fn add_program(&mut self, path: &Path) -> Result<PathBuf, VmError> {
        match self.userland.as_ref().map(Userland::root) {
            Some(root) if self.is_of_userland(path) => self.add_below(&root, path),
            _ => self.add(path),
        }
    }

    /// Adds what is at `path`, the links on the way to it and the folders above it; returns its
    /// path without links.
    fn add(&mut self, path: &Path) -> Result<PathBuf, VmError> {
        self.add_below(Path::new(HOST), path)
    }

    fn add_below(&mut self, root: &Path, path: &Path) -> Result<PathBuf, VmError> {
        let mut parts: VecDeque<PathBuf> = parts(path);
        let mut at = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = parts.pop_front() {
            if part == Path::new("..") {
                at.pop();
                continue;
            }
            let next = at.join(part);
            let Some(target) = self.step(root, next.clone())? else {
                at = next;
                continue;
            };
            links += 1;
            if links > LINKS_FOLLOWED {
                return Err(reading(path)(io::Error::from_raw_os_error(libc::ELOOP)));
            }
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            for part in self::parts(&target).into_iter().rev() {
                parts.push_front(part);
            }
        }
        Ok(at)
    }

    /// Adds one entry from below `root`; its folder is there already. Returns its target if it is a
    /// link.
    fn step(&mut self, root: &Path, path: PathBuf) -> Result<Option<PathBuf>, VmError> {
        let from = root.join(path.strip_prefix("/").unwrap_or(&path));
        let data = fs::symlink_metadata(&from).map_err(reading(&from))?;
        let entry = match data.file_type() {
            kind if kind.is_dir() => Entry::Directory(data.mode() & 0o7777),
            kind if kind.is_symlink() => Entry::Link(fs::read_link(&from).map_err(reading(&from))?),
            _ => Entry::File(from, data.len()),
        };
        let target = if let Entry::Link(target) = &entry { Some(target.clone()) } else { None };
        // `/bin` may be a folder for fetched programs and a link to `/usr/bin` here, or the
        // reverse: the first one stays, and what is below is at either path.
        match (self.entries.get(&path), &entry) {
            (Some(Entry::Directory(_)), Entry::Link(_)) => return Ok(None),
            (Some(Entry::Link(_)), Entry::Directory(_)) => {}
            _ => drop(self.entries.insert(path, entry)),
        }
        Ok(target)
    }

    /// What ldd(1) says the programs need: it asks the host's own loader, which looks where the
    /// guest's will.
    fn libraries(&mut self) -> Result<(), VmError> {
        let programs = std::mem::take(&mut self.programs);
        if programs.is_empty() {
            return Ok(());
        }
        if let Some(userland) = self.userland.clone() {
            return self.libraries_of(&userland, programs);
        }
        let paths = programs.iter().map(|path| path.display().to_string());
        let argv: Vec<String> = ["ldd".to_string()].into_iter().chain(paths).collect();
        // Its status is not looked at: it fails on a static program, which needs nothing.
        let answer = tool::ask(&argv, Path::new("/"), LDD_LIMIT)?;
        for path in toolbox::listed(&answer.stdout) {
            self.add(Path::new(path))?;
        }
        Ok(())
    }

    /// What programs for other processors need, as they say themselves: none of them can be run
    /// here.
    fn libraries_of(
        &mut self,
        userland: &Userland,
        programs: BTreeSet<PathBuf>,
    ) -> Result<(), VmError> {
        let mut wanted: Vec<PathBuf> = programs.into_iter().collect();
        wanted.extend(userland.library(toolbox::OPENED_LATER));
        let mut seen = BTreeSet::new();
        while let Some(path) = wanted.pop() {
            let path = self.add_program(&path)?;
            if !seen.insert(path.clone()) {
                continue;
            }
            let source = self.source(&path);
            let file = File::open(&source).map_err(reading(&source))?;
            for name in elf::needed(&file) {
                let found = match name.starts_with('/') {
                    true => Some(PathBuf::from(&name)),
                    false => userland.library(&name),
                };
                let of = || VmError::NoLibrary { program: path.clone(), name: name.clone() };
                wanted.push(found.ok_or_else(of)?);
            }
        }
        Ok(())
    }

    /// This program, as `name`; its symbols for debuggers stay behind.
    pub fn with_ourselves(mut self, name: &str) -> Result<(HostFiles, Ourselves), VmError> {
        let path = match &self.userland {
            None => std::env::current_exe().map_err(reading(Path::new("/proc/self/exe")))?,
            Some(its) => its.ourselves(),
        };
        // One that was made for guests is static.
        if self.userland.is_none() {
            self.programs.insert(path.clone());
        }
        self.libraries()?;
        let content = loaded_part(fs::read(&path).map_err(reading(&path))?);
        Ok((self, Ourselves { name: name.trim_start_matches('/').into(), content }))
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.entries
            .values()
            .map(|entry| if let Entry::File(_, bytes) = entry { *bytes } else { 0 })
            .sum()
    }

    /// Writes everything into `archive`.
    pub fn pack<W: Write>(&self, archive: &mut Archive<W>) -> Result<(), VmError> {
        if self.given.is_some() {
            let accounts = archive.directory("etc", 0o755).and_then(|()| {
                archive.bytes("etc/passwd", 0o644, b"root:x:0:0::/root:/bin/sh\n")?;
                archive.bytes("etc/group", 0o644, b"root:x:0:\n")
            });
            accounts.map_err(reading(Path::new("/etc")))?;
        }
        // Entries below a link come after the folder that it leads to.
        let is_link = |path: &Path| matches!(self.entries.get(path), Some(Entry::Link(_)));
        let mut order: Vec<(&PathBuf, &Entry)> = self.entries.iter().collect();
        order.sort_by_key(|(path, entry)| match entry {
            _ if path.ancestors().skip(1).any(is_link) => 2,
            Entry::Directory(_) => 0,
            Entry::Link(_) => 1,
            Entry::File(..) => 2,
        });
        for (path, entry) in order {
            let name = path.to_string_lossy();
            let name = name.trim_start_matches('/');
            let done = match entry {
                Entry::Directory(mode) => archive.directory(name, *mode),
                Entry::Link(target) => archive.link(name, target),
                Entry::File(from, _) => archive.file(name, from),
            };
            done.map_err(reading(path))?;
        }
        self.toolboxes.iter().try_for_each(|toolbox| toolbox.pack(archive))
    }
}

/// This program's own file, ready to be packed.
#[derive(Debug)]
pub struct Ourselves {
    /// Its name in the archive.
    pub name: String,
    /// What of it is loaded when it is run.
    pub content: Vec<u8>,
}

fn parts(path: &Path) -> VecDeque<PathBuf> {
    let named = |part: Component| match part {
        Component::Normal(_) | Component::ParentDir => Some(PathBuf::from(part.as_os_str())),
        _ => None,
    };
    path.components().filter_map(named).collect()
}

fn reading(path: &Path) -> impl FnOnce(io::Error) -> VmError {
    let what = format!("bringing {} into the guest", path.display());
    move |source| VmError::Io { what, source }
}

/// It is not brought: the guest has its own, or it is more than work can mean.
fn is_left_out(path: &Path) -> bool {
    let is_own = |folder: &str| path.starts_with(folder);
    let too_broad = NOT_BROUGHT.iter().any(|folder| path == Path::new(folder));
    too_broad || ["/dev", "/proc", "/sys"].into_iter().any(is_own)
}

/// It is one of the system's programs.
fn is_systems(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let parent = path.parent().and_then(Path::to_str);
    let is_there = |parent| tool::DIRECTORIES.contains(&parent) && path.is_file();
    name.is_some() && parent.is_some_and(is_there)
}

/// What may be a name or a path in a line for the shell.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || "/._-+@%~".contains(c);
    text.split(move |c| !is_part(c))
}

/// The first line of a script, less its mark, and all of it; nothing of another file, or of one
/// that can't be read.
fn script(path: &Path) -> Option<(String, String)> {
    let mut text = Vec::new();
    let mut file = File::open(path).ok()?;
    let mut mark = [0; 2];
    file.read_exact(&mut mark).ok().filter(|()| mark == *b"#!")?;
    file.take(SCRIPT_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Some((text.lines().next()?.to_string(), text))
}

/// A program as its user's shell would find it, in `PATH` or where system tools are.
fn users_program(name: &str) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|data| data.is_file() && data.mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_absolute()).filter(is_file);
    }
    if name.is_empty() || name.starts_with('.') {
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    let users = folders.find_map(|folder| Some(folder.join(name)).filter(is_file));
    users.or_else(|| tool::find(name)).filter(|path| path.is_absolute()).filter(is_file)
}

/// A program up to the end of its loaded part (elf(5), PT_LOAD): a program that is built for tests
/// is mostly symbols. Anything but a 64-bit little-endian program stays as it is.
fn loaded_part(mut program: Vec<u8>) -> Vec<u8> {
    const LOAD: u64 = 1;
    let number = |at: usize, bytes: usize| {
        let field = program.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
    };
    let end = || {
        let headers = usize::try_from(number(0x20, 8)?).ok()?;
        let (size, count) = (number(0x36, 2)? as usize, number(0x38, 2)? as usize);
        let mut end = headers + size * count;
        for at in (0..count).map(|index| headers + index * size) {
            if number(at, 4)? == LOAD {
                let (offset, bytes) = (number(at + 0x08, 8)?, number(at + 0x20, 8)?);
                end = end.max(usize::try_from(offset + bytes).ok()?);
            }
        }
        Some(end)
    };
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return program;
    }
    let Some(end) = end().filter(|&end| end <= program.len()) else { return program };
    program.truncate(end);
    // There is no table of sections any more: e_shoff, and e_shnum with e_shstrndx.
    program[0x28..0x30].fill(0);
    program[0x3c..0x40].fill(0);
    program
}

#[cfg(test)]
mod tests {
    use super::super::arch::Arch;
    use super::*;

    #[test]
    fn a_program_comes_with_links_folders_and_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "content").unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let mut host_files = HostFiles::default();
        let path = host_files.add(&root.join("link/../link/file")).unwrap();
        assert_eq!(path, root.join("real/file"));
        assert_eq!(host_files.entries[&root.join("link")], Entry::Link("real".into()));
        let file = root.join("real/file");
        assert_eq!(host_files.entries[&file], Entry::File(file.clone(), 7));
        assert!(matches!(host_files.entries[&root], Entry::Directory(_)));
        std::os::unix::fs::symlink("round", root.join("round")).unwrap();
        host_files.add(&root.join("round")).unwrap_err();

        host_files.system_program("sh").unwrap();
        host_files.libraries().unwrap();
        let has = |name: &str| host_files.entries.keys().any(|path| path.ends_with(name));
        assert!(has("libc.so.6"), "{:?}", host_files.entries.keys());
    }

    #[test]
    fn the_words_of_a_command_bring_programs_and_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("tree/below")).unwrap();
        fs::write(root.join("tree/below/file"), "x").unwrap();
        let mut host_files = HostFiles::default();
        let line = format!("cp -a {}/tree . && seq 9 >numbers; ls /nonexistent", root.display());
        host_files.command(&Command::Shell(line), true).unwrap();
        let has = |name: &str| host_files.entries.keys().any(|path| path.ends_with(name));
        for name in ["cp", "seq", "ls", "tree/below/file"] {
            assert!(has(name), "{name}: {:?}", host_files.entries.keys());
        }
        let missing = Command::Argv(vec!["fsverdict-no-such-program".into()]);
        let error = host_files.command(&missing, true).unwrap_err().to_string();
        assert!(error.contains("is not installed"), "{error}");
    }

    #[test]
    fn a_script_brings_what_it_starts_and_an_interpreter_its_modules() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (script, data) = (root.join("script"), root.join("data"));
        fs::create_dir(&data).unwrap();
        let text = "#!/bin/sh\n# by tac\nrev ROOT/data | perl -n -e 'print'\nROOT/script\n";
        fs::write(&script, text.replace("ROOT", &root.display().to_string())).unwrap();
        // What lies among data is neither read for what it starts nor asked what it reads; two that
        // are each other's interpreters end, too.
        let mark = root.join("asked").display().to_string();
        fs::write(data.join("git"), format!("#!/bin/sh\nnice touch {mark}\n")).unwrap();
        for (one, other) in [("one", "other"), ("other", "one")] {
            fs::write(data.join(one), format!("#!{}/{other}\n", data.display())).unwrap();
        }
        let all = [&script, &data.join("git"), &data.join("one"), &data.join("other")];
        let mut chmod = vec!["chmod".to_string(), "755".into()];
        chmod.extend(all.map(|path| path.display().to_string()));
        tool::run_words(&chmod.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let brought = |given: Option<Vec<PathBuf>>, line: &str| {
            let mut host_files = HostFiles { given, ..HostFiles::default() };
            let line = line.replace("ROOT", &root.display().to_string());
            host_files.command(&Command::Shell(line), false).unwrap();
            host_files.examine().unwrap();
            host_files
        };
        let program = |host_files: &HostFiles, name: &str| {
            let path = tool::find(name).unwrap();
            host_files.entries.contains_key(&path)
        };
        let has_modules = |host_files: &HostFiles| {
            host_files.entries.keys().any(|path| path.ends_with("strict.pm"))
        };
        let all = brought(None, "ROOT/script");
        assert!(all.entries.contains_key(&script) && program(&all, "rev") && program(&all, "perl"));
        let is_module = |path: &PathBuf| path.extension() == Some("so".as_ref());
        assert!(has_modules(&all) && all.programs.iter().any(is_module), "with its libraries");
        assert!(!program(&all, "tac"), "a comment starts nothing");
        assert!(!all.entries.contains_key(&data), "what a script names may be large");
        let read = brought(None, "ls ROOT/data");
        assert!(read.entries.contains_key(&data.join("git")) && program(&read, "sh"));
        assert!(!program(&read, "nice") && !root.join("asked").exists(), "it is data");
        let strangers = brought(Some(vec![root.clone()]), "cat ROOT/script; perl x");
        assert!(program(&strangers, "rev") && program(&strangers, "perl"));
        assert!(!has_modules(&strangers), "no program is run for a stranger");
    }

    #[test]
    fn what_programs_read_is_brought_where_it_is_there_and_a_stranger_was_given_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("file"), "x").unwrap();
        let reads = [root.join("file"), root.join("gone")];
        let has = |given: Option<PathBuf>| {
            let given = given.map(|path| vec![path]);
            let mut host_files = HostFiles { given, ..HostFiles::default() };
            host_files.add_if_there(&reads.iter().cloned().collect());
            host_files.entries.contains_key(&reads[0])
        };
        assert!(has(None) && has(Some(root.clone())) && !has(Some(root.join("gone"))));
        // A path that means one file in this folder, and another one from / on.
        let mut host_files = HostFiles { given: Some(vec!["/".into()]), ..HostFiles::default() };
        let relative = PathBuf::from("Cargo.toml");
        assert!(relative.is_file(), "tests run in the folder of their crate");
        host_files.add_if_there(&[relative.clone()].into());
        host_files.named(&relative).unwrap();
        assert!(host_files.entries.is_empty(), "{:?}", host_files.entries);
    }

    #[test]
    fn a_strangers_plan_gets_what_it_was_given_and_programs_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["given", "kept"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), "x").unwrap();
        }
        std::os::unix::fs::symlink(root.join("kept/file"), root.join("given/link")).unwrap();
        fs::copy("/bin/true", root.join("given/program")).unwrap();
        let brought = |line: &str| {
            let given = Some(vec![root.join("given")]);
            let mut host_files = HostFiles { given, ..HostFiles::default() };
            let line = line.replace("ROOT", &root.display().to_string());
            host_files.command(&Command::Shell(line), true)?;
            Ok::<_, VmError>(host_files)
        };
        let has = |host_files: &HostFiles, name: &str| {
            host_files.entries.keys().any(|path| path.ends_with(name))
        };
        let given = brought("cat ROOT/given/file /dev/null; /bin/ls; ROOT/given/program").unwrap();
        assert!(has(&given, "given/file") && has(&given, "ls") && has(&given, "given/program"));
        assert!(!given.programs.contains(&root.join("given/program")), "ldd(1) may run it");
        for path in ["ROOT/kept/file", "ROOT/given/../kept", "ROOT/given/link", "/etc/hostname"] {
            let Err(refused) = brought(&format!("cat {path}")) else { panic!("{path} was given") };
            let says = refused.to_string();
            assert!(says.contains("a file of this machine: --bring /"), "{says}");
        }
        let whole = brought("cp -r ROOT/given .").unwrap();
        assert!(has(&whole, "given/link") && !has(&whole, "kept/file"), "a link alone");
        assert!(brought("ls / /home /tmp").is_ok_and(|it| !has(&it, "given")));
    }

    #[test]
    fn a_guest_for_other_processors_gets_their_programs_by_their_own_links() {
        let folder = tempfile::tempdir().unwrap();
        let userland = Userland::at(Arch::Arm64, folder.path());
        let root = userland.root();
        let write = |name: &str, content: &[u8]| {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), content).unwrap();
        };
        write("bin/dash", b"#!/bin/dash\n");
        write("usr/lib/aarch64-linux-gnu/libc.so.6", b"library");
        std::os::unix::fs::symlink("/bin/dash", root.join("bin/sh")).unwrap();
        write("home/data", b"theirs");
        let host = folder.path().canonicalize().unwrap().join("script");
        fs::write(&host, "#!/bin/sh\n").unwrap();
        let mut host_files = HostFiles { userland: Some(userland), ..HostFiles::default() };
        let line = format!("{} /etc/hostname", host.display());
        host_files.command(&Command::Shell(line), false).unwrap();
        let from = |files: &HostFiles, path: &str| match &files.entries[Path::new(path)] {
            Entry::File(from, _) => from.clone(),
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(from(&host_files, "/bin/dash"), root.join("bin/dash"));
        assert_eq!(host_files.entries[Path::new("/bin/sh")], Entry::Link("/bin/dash".into()));
        assert_eq!(from(&host_files, host.to_str().unwrap()), host);
        let own = std::env::current_exe().unwrap().display().to_string();
        let error = host_files.command(&Command::Argv(vec![own]), true).unwrap_err().to_string();
        assert!(error.contains("is not among the programs for guests with arm64"), "{error}");
        let error = host_files.system_program("fio").unwrap_err().to_string();
        assert!(error.ends_with(": fsverdict kernels tools --arch arm64 fio"), "{error}");
    }

    #[test]
    fn the_loaded_part_of_a_program_still_runs() {
        let folder = tempfile::tempdir().unwrap();
        let ours = fs::read(std::env::current_exe().unwrap()).unwrap();
        let (before, after) = (ours.len(), loaded_part(ours));
        assert!(after.len() < before, "a test has symbols");
        let [beside, path] = ["beside", "program"].map(|name| folder.path().join(name));
        fs::write(&beside, after).unwrap();
        let [beside, path] = [beside, path].map(|path| path.display().to_string());
        // One that is open to be written can't be executed, and what a test beside begins has our
        // open files until it is another program (execve(2)).
        tool::run_words(&["install", "--mode=755", &beside, &path]).unwrap();
        assert!(tool::run_words(&[&path, "--list"]).unwrap().contains("host_files"));
        assert_eq!(loaded_part(b"#!/bin/sh".to_vec()), b"#!/bin/sh");
    }
}
