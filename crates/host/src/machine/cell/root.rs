//! What a cell shows: a root put together of mounts, in a mount namespace of one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use fsverdict_core::model::Astray;

use super::{CellError, Ground, Mapped, mapped};
use crate::machine::folder::Folder;
use crate::machine::mount::{self, Mount};
use crate::sys;

/// Folders with programs and their data: mounts there, or two folders deeper, are kept. Other
/// mounts, such as a user's stick, are not in the cell and can be unmounted.
const SYSTEM: [&str; 12] = [
    "/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin", "/srv", "/usr",
    "/var",
];
/// The root is put together here, unseen by others: every machine has this folder, and nothing that
/// is shown lies below it.
const SITE: &str = "/sys/kernel";
/// In it: a folder with nothing in it.
const EMPTY: &str = "/sys/kernel/empty";
/// Put together anew.
const OWN: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Read as they are; writes there stay in the cell. Homes are treated likewise.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/run"];
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// How a path is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// As it is, to be read.
    ReadOnly,
    /// The same, by its own mount: the file system under test, where no one else has a socket.
    Bed,
    /// As it is; what is written goes elsewhere.
    Private,
    /// As it is, to be written.
    Writable,
    /// A folder with nothing in it but the way to what is shown below.
    Shut,
    /// Its entries, to be read, and room for folders that are mapped.
    Furnished,
}

/// Puts the cell's root together and makes it this thread's, in a mount namespace of its own. Gives
/// the folder that holds what is private: by the numbers of [`Grown::private`].
pub fn grow(ground: &Ground, is_sealed: bool) -> Result<Grown, CellError> {
    sys::private_mounts().map_err(CellError::of("mounts of its own"))?;
    let at = |path: &Path| CellError::of(path.display().to_string());
    let site = Path::new(SITE);
    let mounts = mount::of_this_thread().map_err(CellError::of("its mounts"))?;
    let mut shown = shown(ground, is_sealed, &mounts, &homes(&mounts));
    let folders = mapped::found(ground)?;
    shown.extend(to_furnish(&folders, &shown));
    sys::mount_virtual(c"tmpfs", site, "mode=700").map_err(at(site))?;
    let (root, private) = (site.join("root"), site.join("private"));
    let made = [&root, &private, Path::new(EMPTY)].into_iter().try_for_each(fs::create_dir);
    made.map_err(at(site))?;
    show(Path::new("/"), &root, Shown::ReadOnly).map_err(at(&root))?;
    let mut grown = Grown {
        folder: sys::open_place(&private).map_err(at(&private))?,
        private: Vec::new(),
        mapped: folders.iter().map(|it| it.at.clone()).collect(),
    };
    let places: Vec<PathBuf> = shown.keys().cloned().collect();
    for (number, (path, how)) in shown.into_iter().enumerate() {
        let there = within(&root, &path);
        let made = match how {
            Shown::Private => {
                let upper = private.join(grown.private.len().to_string());
                grown.private.push(path.clone());
                hide(&path, &there, &upper, ground)
            }
            Shown::Furnished => {
                let new = grown.mapped.iter().filter(|it| nearest(it) == Some(&path));
                let new = new.map(|it| within(&root, it)).collect::<Vec<_>>();
                // Without what is mounted below it.
                let bare = site.join(format!("bare{number}"));
                show(&path, &bare, Shown::ReadOnly)
                    .and_then(|()| mapped::furnish(&bare, &there, &new))
            }
            Shown::Shut => {
                let ways = places.iter().filter(|it| **it != path && it.starts_with(&path));
                shut(&path, &there, ways.map(|it| within(&root, it)))
            }
            _ => show(&path, &there, how),
        };
        made.map_err(at(&path))?;
    }
    for folder in &folders {
        mapped::show(folder, &within(&root, &folder.at)).map_err(at(&folder.at))?;
    }
    devices(ground, &root.join("dev")).map_err(CellError::of("/dev"))?;
    let proc = root.join("proc");
    let made = if ground.for_tools { no_processes(&proc) } else { processes(&proc) };
    made.map_err(CellError::of("/proc"))?;
    bind_to_read(Path::new("/sys"), &root.join("sys")).map_err(CellError::of("/sys"))?;
    sys::enter_root(&root).map_err(CellError::of("its root"))?;
    Ok(grown)
}

/// The result of [`grow`].
#[derive(Debug)]
pub struct Grown {
    /// The folder of what is private.
    pub folder: OwnedFd,
    /// Whose private files are there, in folders `0`, `1` and so on.
    pub private: Vec<PathBuf>,
    /// Folders that are mapped, for which room was made there.
    pub mapped: Vec<PathBuf>,
}

impl Grown {
    /// What is private, by the paths that the work knows. What it only read is not there; folders
    /// that hold something of its own, and temporary files that it removed, don't count.
    pub fn left(&self) -> Astray {
        let mut left = Astray::default();
        let base = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        for (number, path) in self.private.iter().enumerate() {
            collect(&base.join(number.to_string()).join("own"), path, &self.mapped, &mut left);
        }
        left
    }
}

/// Adds what is below `own`, which stands for `path`, to `left`, without what can't be read and the
/// path to what is `mapped`.
fn collect(own: &Path, path: &Path, mapped: &[PathBuf], left: &mut Astray) {
    let mut entries: Vec<_> = fs::read_dir(own).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let real = path.join(entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_way = mapped.iter().any(|it| it.starts_with(&real));
        if !is_folder || !is_way && fs::symlink_metadata(&real).is_err() {
            left.add(real.display().to_string());
        }
        if is_folder {
            collect(&entry.path(), &real, mapped, left);
        }
    }
}

fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Folders of users: there people keep programs and inputs, too.
fn homes(mounts: &[Mount]) -> BTreeSet<PathBuf> {
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let own = own.filter(|home| home.is_absolute() && home.parent().is_some());
    let below = |mount: &&Mount| Path::new(&mount.at).parent() == Some(Path::new("/home"));
    let mounted = mounts.iter().filter(below).map(|mount| PathBuf::from(&mount.at));
    ["/root", "/home"].into_iter().map(PathBuf::from).chain(own).chain(mounted).collect()
}

/// The folders that root's cells show as private ones, to be held open: the kernel keeps their
/// inodes then when a trial drops its caches, and no cell waits for the disk to give them, some 0.3
/// ms each. Only those that lie on the root's own mount: any other may be unmounted meanwhile.
pub fn private_folders() -> Vec<OwnedFd> {
    let (true, Ok(mounts)) = (sys::is_root(), mount::of_this_thread()) else { return Vec::new() };
    let is_above = |mount: &Mount, path: &Path| mount.at != "/" && path.starts_with(&mount.at);
    let is_of_root = |path: &PathBuf| {
        let is_itself = path.canonicalize().is_ok_and(|real| real == *path);
        is_itself && !mounts.iter().any(|mount| is_above(mount, path))
    };
    let paths = TEMPORARY.iter().map(PathBuf::from).chain(homes(&[])).filter(is_of_root);
    paths.filter_map(|path| sys::open_place(&path).ok()).collect()
}

/// What the cell shows of the machine besides the root's own file system, those above before
/// those below.
fn shown(
    ground: &Ground,
    is_sealed: bool,
    mounts: &[Mount],
    homes: &BTreeSet<PathBuf>,
) -> BTreeMap<PathBuf, Shown> {
    let own = |path: &Path| OWN.iter().any(|own| path.starts_with(own));
    let of_system = |path: &Path| {
        SYSTEM.iter().any(|it| path.starts_with(it)) && path.components().count() <= 4
    };
    let holds = |path: &Path| ground.places().any(|place| place.starts_with(path));
    let mut shown = BTreeMap::new();
    for mount in mounts.iter().filter(|mount| mount.file_system != "autofs") {
        let path = Path::new(&mount.at);
        if path.parent().is_some() && !own(path) && (of_system(path) || holds(path)) {
            let is_bed = ground.bed.as_deref() == Some(path);
            let how = if is_bed { Shown::Bed } else { Shown::ReadOnly };
            shown.insert(path.to_path_buf(), how);
        }
    }
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    let private = TEMPORARY.iter().map(PathBuf::from).chain(homes.iter().cloned());
    shown.extend(private.filter(is_folder).map(|path| (path, Shown::Private)));
    shown.extend(ground.kept.iter().map(|path| (path.clone(), Shown::ReadOnly)));
    // What is private has nothing of the machine's to be reached from outside.
    let is_private = |path: &&PathBuf| shown.get(*path) == Some(&Shown::Private);
    let shut: Vec<&PathBuf> = ground.shut.iter().filter(|it| !is_private(it)).collect();
    shown.extend(shut.into_iter().map(|path| (path.clone(), Shown::Shut)));
    shown.extend(ground.writable.iter().map(|path| (path.clone(), Shown::Writable)));
    let how = if is_sealed { Shown::ReadOnly } else { Shown::Writable };
    shown.extend(ground.kept_back.iter().map(|path| (path.clone(), how)));
    shown
}

/// The folders in which room has to be made for those that are mapped: the nearest there is, where
/// nothing can be made because it is only to be read.
fn to_furnish(mapped: &[Mapped], shown: &BTreeMap<PathBuf, Shown>) -> BTreeMap<PathBuf, Shown> {
    let missing = mapped.iter().filter(|it| !it.at.exists());
    let folders = missing.filter_map(|it| nearest(&it.at));
    let is_private =
        |path: &Path| path.ancestors().any(|it| shown.get(it) == Some(&Shown::Private));
    let folders = folders.filter(|path| !is_private(path));
    folders.map(|path| (path.to_path_buf(), Shown::Furnished)).collect()
}

/// The nearest existing folder above a path.
fn nearest(path: &Path) -> Option<&Path> {
    path.ancestors().find(|above| above.exists())
}

/// Shows `path` at `there`, which is made where it is hidden by something private. A folder that is
/// only read is shown by an overlay, where the kernel has one: in a mount that is read only a
/// socket can be connected to (unix(7)), and its daemon asked to write; an overlay has none.
fn show(path: &Path, there: &Path, how: Shown) -> io::Result<()> {
    place_for(path, there)?;
    match how {
        Shown::Writable => {
            // The owner of a folder above may have put a link there meanwhile.
            let held = Folder::open(path)?;
            return sys::bind(&held.path(), there).and_then(|()| sys::forbid_devices(there));
        }
        Shown::Bed => return bind_to_read(path, there),
        _ => {}
    }
    match path.is_dir() && overlay_to_read(path, there).is_ok() {
        true => Ok(()),
        false => bind_to_read(path, there),
    }
}

/// Shows a folder at `there` in which nothing is but `ways`.
fn shut(path: &Path, there: &Path, mut ways: impl Iterator<Item = PathBuf>) -> io::Result<()> {
    place_for(path, there)?;
    sys::mount_virtual(c"tmpfs", there, "mode=755")?;
    ways.try_for_each(fs::create_dir_all)?;
    sys::make_read_only(there)
}

fn overlay_to_read(path: &Path, there: &Path) -> io::Result<()> {
    sys::mount_layers(&format!("{}:{EMPTY}", escaped(path)), path, there)
}

/// Whether the root can be shown by an overlay. It takes mounts of its own from this thread, which
/// is to end then.
pub fn try_overlay() -> io::Result<()> {
    sys::private_mounts()?;
    let there = Path::new(SITE).join("root");
    sys::mount_virtual(c"tmpfs", Path::new(SITE), "mode=700")?;
    fs::create_dir(&there).and_then(|()| fs::create_dir(EMPTY))?;
    overlay_to_read(Path::new("/"), &there)
}

fn bind_to_read(path: &Path, there: &Path) -> io::Result<()> {
    sys::bind(path, there)?;
    sys::forbid_devices(there)?;
    sys::make_read_only(there)
}

/// Something at `there` on which `path` can be mounted.
fn place_for(path: &Path, there: &Path) -> io::Result<()> {
    if fs::symlink_metadata(there).is_ok() {
        return Ok(());
    }
    if path.is_dir() {
        return fs::create_dir_all(there);
    }
    there.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create(there).map(drop)
}

/// Shows `path` at `there` so that what is written goes to `upper`. Where the kernel has no overlay
/// the folder is empty, but for what the work names.
fn hide(path: &Path, there: &Path, upper: &Path, ground: &Ground) -> io::Result<()> {
    let (real, own, work) = (fs::metadata(path)?, upper.join("own"), upper.join("work"));
    fs::create_dir_all(&own).and_then(|()| fs::create_dir(&work))?;
    fs::set_permissions(&own, fs::Permissions::from_mode(real.mode() & 0o7777))?;
    chown(&own, Some(real.uid()), Some(real.gid()))?;
    let layers = [path, &own, &work].map(escaped);
    let options = format!("lowerdir={},upperdir={},workdir={}", layers[0], layers[1], layers[2]);
    if sys::mount_virtual(c"overlay", there, &options).is_ok() {
        return Ok(());
    }
    sys::bind(&own, there).and_then(|()| sys::forbid_devices(there))?;
    let below = |place: &&Path| place.starts_with(path) && *place != path && place.exists();
    for place in ground.named.iter().map(PathBuf::as_path).filter(below) {
        show(place, &there.join(place.strip_prefix(path).unwrap_or(place)), Shown::ReadOnly)?;
    }
    Ok(())
}

/// A path among the options of an overlay (Documentation/filesystems/overlayfs.rst, "Multiple
/// lower layers"; a comma ends an option).
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.display().to_string().chars() {
        if matches!(letter, '\\' | ':' | ',') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// Devices that are none but in name, terminals of its own, and what the work may open. Nodes are
/// mounted, since a user namespace can make none.
fn devices(ground: &Ground, at: &Path) -> io::Result<()> {
    sys::mount_virtual(c"tmpfs", at, "mode=755")?;
    let nodes = NODES.iter().filter(|name| !ground.for_tools || **name != "tty");
    let nodes = nodes.map(|name| Path::new("/dev").join(name));
    let mut places = Vec::new();
    for node in nodes.filter(|node| node.exists()).chain(ground.devices.iter().cloned()) {
        let there = at.join(node.strip_prefix("/dev").unwrap_or(&node));
        place_for(&node, &there)?;
        sys::bind(&node, &there)?;
        places.push(there);
    }
    // A node is written to all the same; its mode and owner, which are the machine's, are not.
    make_read_only_below(at, &places)?;
    for (link, to) in LINKS {
        symlink(to, at.join(link))?;
    }
    let (terminals, shared) = (at.join("pts"), at.join("shm"));
    fs::create_dir(&terminals).and_then(|()| fs::create_dir(&shared))?;
    sys::mount_virtual(c"tmpfs", &shared, "mode=1777")?;
    // Not every kernel has them.
    let _ = sys::mount_virtual(c"devpts", &terminals, "newinstance,ptmxmode=0666,mode=620");
    sys::make_read_only(at)
}

/// Processes as they are, and all that is of the machine to be read only. The owner of those files
/// is root by its number, which the work may have: it could set what they set, and give them modes
/// and owners, which the kernel keeps for all (fs/proc/generic.c, proc_notify_change).
fn processes(at: &Path) -> io::Result<()> {
    sys::bind(Path::new("/proc"), at)?;
    let places: Vec<PathBuf> = of_the_machine()?.iter().map(|name| at.join(name)).collect();
    places.iter().try_for_each(|there| sys::bind(there, there))?;
    make_read_only_below(at, &places)
}

/// Lets nothing be written by way of the mounts at `places`, which are all that are below `at`.
fn make_read_only_below(at: &Path, places: &[PathBuf]) -> io::Result<()> {
    match sys::make_read_only_below(at)? {
        true => Ok(()),
        false => places.iter().try_for_each(|there| sys::make_read_only(there)),
    }
}

/// What is in `/proc` and neither a process nor a link.
fn of_the_machine() -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let name = entry.file_name();
        let is_process = name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        // The folder says it along with the names: nothing is looked at one by one.
        if !is_process && !entry.file_type()?.is_symlink() {
            names.push(name);
        }
    }
    Ok(names)
}

/// What tools that make file systems, pools, layers and partitions read of the machine: devices,
/// file systems and drivers, mounts and swaps, processors, memory, and settings.
const FOR_TOOLS: [&str; 16] = [
    "cmdline",
    "cpuinfo",
    "crypto",
    "devices",
    "diskstats",
    "filesystems",
    "fs",
    "mdstat",
    "meminfo",
    "misc",
    "modules",
    "partitions",
    "stat",
    "swaps",
    "sys",
    "version",
];

/// What tools need of what the machine shows of itself, to be read only, and no processes. Of its
/// own a tool finds what is mounted, as it was when this was made.
fn no_processes(at: &Path) -> io::Result<()> {
    let mounted = ["mounts", "mountinfo"]
        .map(|name| (name, fs::read(Path::new("/proc/thread-self").join(name))));
    sys::mount_virtual(c"tmpfs", at, "mode=755")?;
    let mut places = Vec::new();
    for name in FOR_TOOLS {
        let (path, there) = (Path::new("/proc").join(name), at.join(name));
        // Not every kernel has each.
        if path.exists() {
            place_for(&path, &there)?;
            sys::bind(&path, &there)?;
            places.push(there);
        }
    }
    make_read_only_below(at, &places)?;
    fs::create_dir(at.join("self"))?;
    for (name, text) in mounted {
        fs::write(at.join("self").join(name), text?)?;
    }
    symlink("self/mounts", at.join("mounts"))?;
    sys::make_read_only(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(at: &str) -> Mount {
        Mount {
            root: "/".into(),
            at: at.into(),
            file_system: "ext4".into(),
            source: String::new(),
            number: [7, 1],
            options: Vec::new(),
        }
    }

    #[test]
    fn a_stick_is_not_kept_but_for_work_that_names_it() {
        let mounts = ["/", "/dev", "/usr", "/var/lib/big", "/var/lib/docker/a/b", "/media/stick"];
        let mounts = mounts.map(mount);
        let named = |named: &[&str]| {
            let named = named.iter().map(PathBuf::from).collect();
            let ground = Ground { named, ..Ground::default() };
            let shown = shown(&ground, true, &mounts, &BTreeSet::new());
            let kept = shown.into_iter().filter(|(_, how)| *how == Shown::ReadOnly);
            kept.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(named(&[]), ["/usr", "/var/lib/big"]);
        let named = named(&["/media/stick/script"]);
        assert_eq!(named, ["/media/stick", "/usr", "/var/lib/big"]);
    }

    #[test]
    #[ignore = "needs root: run ./test"]
    fn a_folder_that_may_be_unmounted_is_not_held() {
        let held = || {
            let folders = private_folders();
            let paths = folders.iter().map(|it| format!("/proc/self/fd/{}", it.as_raw_fd()));
            paths.map(|it| fs::read_link(it).unwrap()).collect::<Vec<_>>()
        };
        let around = move || {
            sys::private_mounts().unwrap();
            let before = held();
            sys::bind(Path::new("/tmp"), Path::new("/tmp")).unwrap();
            (before, held())
        };
        let thread = std::thread::Builder::new().spawn(around).unwrap();
        let (mut before, after) = thread.join().unwrap();
        before.retain(|path| !path.starts_with("/tmp"));
        assert_eq!(after, before);
    }

    #[test]
    fn room_is_made_only_where_there_is_none() {
        let shown = BTreeMap::from([("/tmp".into(), Shown::Private)]);
        let furnished = |path: &str| {
            let mapped = [Mapped { at: path.into(), to: None }];
            let found = to_furnish(&mapped, &shown).into_keys();
            found.map(|it| it.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(furnished("/no-such-folder/data"), ["/"]);
        assert_eq!(furnished("/etc/no-such-folder"), ["/etc"]);
        assert_eq!(furnished("/etc"), [""; 0], "it is there");
        assert_eq!(furnished("/tmp/no-such-folder"), [""; 0], "it can be made there");
    }

    #[test]
    fn what_may_be_written_lies_above_what_is_private() {
        let ground = Ground { writable: vec!["/tmp/run/raw".into()], ..Ground::default() };
        let shown = shown(&ground, true, &[], &BTreeSet::new());
        let order: Vec<_> =
            shown.into_iter().filter(|(path, _)| path.starts_with("/tmp")).collect();
        let wanted = [("/tmp", Shown::Private), ("/tmp/run/raw", Shown::Writable)];
        assert_eq!(order, wanted.map(|(path, how)| (PathBuf::from(path), how)));
        assert_eq!(escaped(Path::new("/home/a:b")), r"/home/a\:b");
    }
}
