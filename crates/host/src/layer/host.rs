//! Layers on a host, which goes on after the trial: what it can make, and how that is taken down
//! again.
//!
//! Devices of layers belong to the kernel and not to a process: no namespace ends them. So they
//! have names of their own run ([`Names::of_run`]), by which a later process finds them in sysfs,
//! and only them; and from there it finds what is below them, whatever its number is by now. The
//! kernel itself takes them down, because the tools would look at other devices, and wait for udev.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fsverdict_core::model::need::Answer;
use fsverdict_core::model::{Device, Layer, Plan};

use super::known::find;
use super::words::{clear_argv, words};
use super::{Kind, Names, Place};
use crate::machine::answers::not_installed;
use crate::machine::mount::is_module;
use crate::machine::registry::OF_ROOT;
use crate::machine::throttle::Means;
use crate::{sys, tool};

const PAUSE: Duration = Duration::from_millis(50);
/// How long a device is waited for that somebody looks at, as udev does.
const LOOKED_AT: Duration = Duration::from_secs(30);
/// How long one is waited for by the run itself: the mount of a trial that was killed writes out
/// what it has to, and goes then.
const HELD: Duration = Duration::from_secs(3600);

/// Whether this machine can make the layer.
pub fn answer(root: &Path, kind: &Kind) -> Answer {
    if !kind.on_hosts {
        let why = format!("{} is made in virtual machines, and ends with them", kind.name);
        return Answer::no(why).but("write --place vm");
    }
    let missing = kind.programs.iter().find(|program| tool::find(program).is_none());
    if let Some(program) = missing {
        return not_installed(program);
    }
    let has = |module: &&&str| root.join("sys/module").join(module).exists() || is_module(module);
    match kind.modules.iter().find(|module| !has(module)) {
        Some(module) => Answer::no(format!("this kernel has no {module}")).but("--place vm"),
        None => Answer::yes("the kernel makes it, and fsverdict takes it down after each trial"),
    }
}

/// What in `plan` only a virtual machine can do.
pub fn check(plan: &Plan) -> Result<(), String> {
    // There kernel threads, which do much of what layers do, are not held down with the trial.
    let only_trials = Means::of(Path::new("/")).is_ok_and(|means| means == Means::Own);
    for contender in &plan.contenders {
        let limits = contender.limits.or(plan.bed.limits);
        for layer in &contender.layers {
            if is_for_all(layer) {
                return Err(format!(
                    "{layer}: speed holds for all arrays of a machine: write --place vm, or set \
                     sysctl dev.raid.speed_limit_min and dev.raid.speed_limit_max"
                ));
            }
            if limits.is_some() && (caches(layer) || only_trials) {
                return Err(format!(
                    "{layer}: limits hold what it writes in virtual machines alone: write --place \
                     vm, or leave them out"
                ));
            }
        }
    }
    Ok(())
}

/// It sets something that others of the machine have, too.
pub(super) fn is_for_all(layer: &Layer) -> bool {
    layer.settings.contains_key("speed")
}

fn caches(layer: &Layer) -> bool {
    find(&layer.name).is_some_and(|kind| kind.place == Place::WithCache)
}

/// Has the kernel take names for arrays: without md there is no file to write them to.
pub fn prepare() {
    // It may be built in, without a modprobe. If it is missing, mdadm says so.
    let _ = tool::run(&words(&["modprobe", "--quiet", "md_mod"]));
}

/// A device that is to go.
#[derive(Debug, PartialEq, Eq)]
struct Raised {
    /// The kernel's name for it.
    name: String,
    /// What the device mapper knows it by; an array has none.
    mapping: Option<String>,
}

impl Raised {
    /// The device of that name, if it is a mapping or an array.
    fn of(root: &Path, name: String) -> Option<Raised> {
        let folder = root.join(BLOCK).join(&name);
        let mapping = fs::read_to_string(folder.join("dm/name")).ok();
        let mapping = mapping.map(|text| text.trim_end().to_string());
        (mapping.is_some() || folder.join("md").is_dir()).then_some(Raised { name, mapping })
    }

    fn is_called(&self, names: &Names) -> bool {
        let known_by = self.mapping.as_deref().or(self.name.strip_prefix("md_"));
        known_by.is_some_and(|name| name.starts_with(&names.prefix))
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join(BLOCK).join(&self.name)
    }

    fn take_down(&self, root: &Path) -> io::Result<()> {
        match &self.mapping {
            Some(name) => sys::remove_mapping(name),
            // "Writing this is equivalent to STOP_ARRAY ioctl": Documentation/admin-guide/md.rst.
            None => fs::write(self.folder(root).join("md/array_state"), "clear"),
        }
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.name)))
    }
}

const BLOCK: &str = "sys/block";

/// A device below, held open: its name stays its own meanwhile, and is that of no other.
#[derive(Debug)]
struct Below {
    name: String,
    node: File,
}

impl Below {
    /// The device of that number at that path, which sysfs knows by that name.
    fn open(path: &Path, number: &str, name: &str) -> io::Result<Below> {
        let node = File::open(path)?;
        let device = node.metadata()?.rdev();
        let [major, minor] = [libc::major(device), libc::minor(device)];
        match number == format!("{major}:{minor}") {
            true => Ok(Below { name: name.into(), node }),
            false => Err(io::Error::other(format!("{} is another device", path.display()))),
        }
    }

    /// What something stands on, by its name in sysfs; `None` where it is gone.
    fn part(root: &Path, name: &str) -> Option<io::Result<Below>> {
        let number =
            fs::read_to_string(root.join("sys/class/block").join(name).join("dev")).ok()?;
        // A name has `!` for `/` there (drivers/base/core.c, `device_get_devnode`).
        let path = root.join("dev").join(name.replace('!', "/"));
        let gone = [libc::ENOENT, libc::ENXIO, libc::ENODEV];
        match Below::open(&path, number.trim(), name) {
            Err(error) if error.raw_os_error().is_some_and(|it| gone.contains(&it)) => None,
            opened => Some(opened),
        }
    }

    /// A device of the run's own.
    fn own(root: &Path, device: &Device) -> io::Result<Below> {
        let [major, minor] = device.number;
        let number = format!("{major}:{minor}");
        let folder = fs::canonicalize(root.join("sys/dev/block").join(&number))?;
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Below::open(Path::new(&device.path), &number, name)
    }

    /// Removes its signatures. Waits for a process that examines it for a moment.
    fn clear(&self) -> io::Result<()> {
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.node.as_raw_fd());
        let begin = Instant::now();
        loop {
            match tool::run(&clear_argv(&path)) {
                Ok(_) => return Ok(()),
                Err(error) if error.is_busy() && begin.elapsed() < LOOKED_AT => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(io::Error::other(format!("{}: {error}", self.name))),
            }
        }
    }
}

/// Which of all devices must go: those with these names, and all that are stacked on these or on
/// `own`.
fn raised(root: &Path, names: &Names, own: &[Below]) -> Vec<Raised> {
    let mut others: Vec<Raised> =
        entries(&root.join(BLOCK)).filter_map(|name| Raised::of(root, name)).collect();
    let mut ground: BTreeSet<String> = own.iter().map(|it| it.name.clone()).collect();
    let mut found = Vec::new();
    loop {
        let stands =
            |it: &Raised| entries(&it.folder(root).join("slaves")).any(|on| ground.contains(&on));
        let goes = |it: &Raised| it.is_called(names) || stands(it);
        let (new, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(goes);
        if new.is_empty() {
            return found;
        }
        others = rest;
        ground.extend(new.iter().map(|it| it.name.clone()));
        found.extend(new);
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Takes down what has these names, as [`super::raise`] gives them, and clears what was below: udev
/// would make an array of its parts again. All that is stacked on `own` devices, which are the
/// run's alone, goes, a tool's temporary mapping too, and these devices are all cleared. A missing
/// device is no error. If `interrupted` is set the waits are short.
///
/// # Errors
/// Where the kernel does not let go of one, or what is below can't be cleared.
pub fn take_down(names: &Names, own: &[Device], interrupted: &AtomicBool) -> io::Result<()> {
    let (root, begin) = (Path::new("/"), Instant::now());
    let own: Vec<Below> = own.iter().map(|it| Below::own(root, it)).collect::<io::Result<_>>()?;
    let mut parts: BTreeMap<String, io::Result<Below>> = BTreeMap::new();
    loop {
        let all = raised(root, names, &own);
        if all.is_empty() {
            break;
        }
        let named = all.iter().filter(|it| it.is_called(names));
        let below = named.flat_map(|it| entries(&it.folder(root).join("slaves")));
        let is_known =
            |name: &String| parts.contains_key(name) || all.iter().any(|it| it.name == *name);
        let new: Vec<String> = below.filter(|name| !is_known(name)).collect();
        parts.extend(new.into_iter().filter_map(|name| {
            let opened = Below::part(root, &name)?;
            Some((name, opened))
        }));
        let is_free = |it: &&Raised| entries(&it.folder(root).join("holders")).next().is_none();
        let held: Vec<io::Error> =
            all.iter().filter(is_free).filter_map(|it| it.take_down(root).err()).collect();
        let patience = if interrupted.load(Ordering::Relaxed) { LOOKED_AT } else { HELD };
        if begin.elapsed() > patience {
            let why = || io::Error::other(format!("{} does not go", all[0].name));
            return Err(held.into_iter().next().unwrap_or_else(why));
        }
        std::thread::sleep(PAUSE);
    }
    let cleared = own.iter().map(Below::clear).fold(Ok(()), Result::and);
    let parts = parts.into_values().map(|part| part?.clear());
    parts.fold(cleared, Result::and).and(remove_nodes(root, names))
}

/// The nodes that the tools have made in place of udev, and mdadm's configuration.
fn remove_nodes(root: &Path, names: &Names) -> io::Result<()> {
    let array = format!("md_{}", names.prefix);
    let own = Path::new(OF_ROOT).strip_prefix("/").unwrap_or(Path::new(OF_ROOT));
    let folders = [Path::new("dev/mapper"), Path::new("dev/md"), Path::new("dev"), own];
    for folder in folders.map(|folder| root.join(folder)) {
        let is_ours = |name: &String| name.starts_with(&names.prefix) || name.starts_with(&array);
        for name in entries(&folder).filter(is_ours) {
            let path = folder.join(name);
            // A group has a folder, with links.
            let is_folder = fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir());
            let gone = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            match gone {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::token::Token;

    const OWN: &str = "fsverdict_0123456789abcdef_";

    /// A tree of sysfs, and in it devices with what they are mapped as and what they stand on.
    fn machine(devices: &[(&str, &str, &[&str])]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (name, mapping, on) in devices {
            let folder = tree.path().join(BLOCK).join(name);
            fs::create_dir_all(folder.join("slaves")).unwrap();
            for below in *on {
                fs::write(folder.join("slaves").join(below), "").unwrap();
            }
            match *mapping {
                "" => {}
                "md" => fs::create_dir(folder.join("md")).unwrap(),
                text => {
                    fs::create_dir(folder.join("dm")).unwrap();
                    fs::write(folder.join("dm/name"), format!("{text}\n")).unwrap();
                }
            }
        }
        tree
    }

    fn own() -> Names {
        Names::of_run(&Token::parse("0123456789abcdef").unwrap())
    }

    #[test]
    fn what_has_the_names_of_the_run_goes_and_what_stands_on_its_bed_while_it_lives() {
        let (luks, array) = (format!("{OWN}0_0"), format!("md_{OWN}1"));
        let tree = machine(&[
            ("sda", "", &[]),
            ("sdb", "", &[]),
            ("dm-0", &luks, &["sdb"]),
            (&array, "md", &["dm-0"]),
            ("dm-1", "vg-root", &["sda"]),
            ("dm-2", "fsverdict_0123456789abcdee_0_0", &["sda"]),
            ("dm-3", "temporary-cryptsetup-7", &["sdb"]),
            ("dm-4", "temporary-cryptsetup-8", &["sda"]),
            ("md126", "md", &["dm-0"]),
            ("md127", "md", &["sdb"]),
        ]);
        assert!(array.len() < 32, "DISK_NAME_LEN");
        let of = |own: &[&str]| {
            let null = || File::open("/dev/null").unwrap();
            let own: Vec<Below> =
                own.iter().map(|&name| Below { name: name.into(), node: null() }).collect();
            let found = raised(tree.path(), &self::own(), &own).into_iter().map(|it| it.name);
            found.collect::<BTreeSet<_>>()
        };
        let named = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(of(&[]), named(&["dm-0", "md126", &array]));
        assert_eq!(of(&["sdb"]), named(&["dm-0", "dm-3", "md126", "md127", &array]));
        take_down(&own(), &[], &AtomicBool::new(true)).unwrap();
    }

    #[test]
    fn a_node_is_believed_where_it_has_the_number() {
        let tree = machine(&[]);
        let root = tree.path();
        fs::create_dir_all(root.join("sys/class/block/null")).unwrap();
        fs::create_dir_all(root.join("dev")).unwrap();
        assert!(Below::part(root, "gone").is_none());
        let number = root.join("sys/class/block/null/dev");
        fs::write(&number, "1:3\n").unwrap();
        assert!(Below::part(root, "null").is_none(), "it has no node");
        std::os::unix::fs::symlink("/dev/null", root.join("dev/null")).unwrap();
        assert_eq!(Below::part(root, "null").unwrap().unwrap().name, "null");
        fs::write(number, "7:3\n").unwrap();
        let error = Below::part(root, "null").unwrap().unwrap_err().to_string();
        assert!(error.contains("is another device"), "{error}");
    }

    #[test]
    fn nodes_of_the_run_are_removed_and_no_others() {
        let tree = tempfile::tempdir().unwrap();
        let (dev, run) = (tree.path().join("dev"), tree.path().join("run/fsverdict"));
        fs::create_dir_all(dev.join(format!("{OWN}2_0/volume"))).unwrap();
        fs::create_dir_all(dev.join("mapper")).unwrap();
        fs::create_dir_all(&run).unwrap();
        for name in [format!("mapper/{OWN}0_0"), "mapper/control".into(), format!("md_{OWN}1")] {
            fs::write(dev.join(name), "").unwrap();
        }
        fs::write(run.join(format!("{OWN}1.conf")), "").unwrap();
        fs::write(run.join("settings.lock"), "").unwrap();
        remove_nodes(tree.path(), &own()).unwrap();
        assert_eq!(entries(&dev).collect::<Vec<_>>(), ["mapper"]);
        assert_eq!(entries(&dev.join("mapper")).collect::<Vec<_>>(), ["control"]);
        assert_eq!(entries(&run).collect::<Vec<_>>(), ["settings.lock"]);
    }

    #[test]
    fn what_a_host_can_not_do_is_refused() {
        let said = |layer: &str, more: &str| {
            let text = format!(
                "[[contender]]\nname = \"it\"\nfile_system = \"ext4\"\nlayers = [\"{layer}\"]\n\
                 [bed]\nkind = \"loop\"\nsize = \"512M\"\ndevices = 2\n{more}\n[[workload]]\n\
                 name = \"w\"\ncommand = \"true\"\n"
            );
            check(&Plan::parse(&text).unwrap()).err().unwrap_or_default()
        };
        let limits = "limits = { iops = 100 }";
        assert_eq!(said("luks", "") + &said("cache", ""), "");
        assert!(said("raid1:state=resync,speed=1M", "").contains("all arrays of a machine"));
        assert!(said("cache", limits).contains("write --place vm, or leave them out"));
        let root = Path::new("/no/such");
        assert!(answer(root, find("zoned").unwrap()).detail.contains("in virtual machines"));
    }
}
