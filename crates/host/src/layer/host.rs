//! Layers on a host, which lives on when the trial is over: what it can make, and what takes that
//! down again.
//!
//! Devices of layers belong to the kernel and not to a process: no namespace ends them. So they
//! have names of their run's own ([`Names::of_run`]), by which whoever is left finds them in sysfs,
//! and them alone; and what they lie upon is found from there, whatever its number is by now. The
//! kernel itself takes them down, for the tools would look at other devices, and wait for udev.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fsverdict_core::model::need::Answer;
use fsverdict_core::model::{Device, Layer, Plan};

use super::{Kind, Names, Place, clear_argv, find, words};
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
    // It may be built in, and there may be no modprobe then. What is lacking mdadm says.
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

    /// What cryptsetup makes for a while, and leaves where it is killed (lib/utils_wipe.c,
    /// lib/luks2/luks2_keyslot.c).
    fn is_temporary(&self) -> bool {
        self.mapping.as_ref().is_some_and(|name| name.starts_with("temporary-cryptsetup-"))
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

/// Who takes layers down.
#[derive(Clone, Copy, Debug)]
pub enum By<'a> {
    /// The run, which has the devices below for itself: whatever stands on them is its own, and
    /// nothing is left on them. An interruption ends the wait for what is held.
    Run(&'a AtomicBool),
    /// Who comes after it was killed: somebody else may have taken the devices since.
    Another,
}

/// A device of the bed, held open: its name stays its own meanwhile, and is that of no other.
#[derive(Debug)]
struct Below {
    name: String,
    node: File,
}

impl Below {
    /// The device that sysfs knows by that name, if its node is the right one.
    fn open(root: &Path, name: &str) -> io::Result<Below> {
        // A name has `!` for `/` there (drivers/base/core.c, `device_get_devnode`).
        let path = root.join("dev").join(name.replace('!', "/"));
        let node = File::open(&path)?;
        let number = fs::read_to_string(root.join("sys/class/block").join(name).join("dev"))?;
        let device = node.metadata()?.rdev();
        let [major, minor] = [libc::major(device), libc::minor(device)];
        match number.trim() == format!("{major}:{minor}") {
            true => Ok(Below { name: name.into(), node }),
            false => Err(io::Error::other(format!("{} is another device", path.display()))),
        }
    }

    /// Takes the signatures from it. Who looks at it for a moment is waited for.
    fn clear(&self) -> io::Result<()> {
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.node.as_raw_fd());
        let begin = Instant::now();
        loop {
            match tool::run(&clear_argv(&path)) {
                Ok(_) => return Ok(()),
                Err(error) if begin.elapsed() > LOOKED_AT => {
                    return Err(io::Error::other(format!("{}: {error}", self.name)));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// The names in sysfs of `devices`.
fn names_of(root: &Path, devices: &[Device]) -> BTreeSet<String> {
    let of = |device: &Device| {
        let [major, minor] = device.number;
        let folder = fs::canonicalize(root.join(format!("sys/dev/block/{major}:{minor}"))).ok()?;
        Some(folder.file_name()?.to_str()?.to_string())
    };
    devices.iter().filter_map(of).collect()
}

/// What is to go of all devices: what has these names, and of what stands on that or on `below`
/// all, or what is temporary.
fn raised(root: &Path, names: &Names, below: &BTreeSet<String>, all: bool) -> Vec<Raised> {
    let mut others: Vec<Raised> =
        entries(&root.join(BLOCK)).filter_map(|name| Raised::of(root, name)).collect();
    let (mut ground, mut found) = (below.clone(), Vec::new());
    loop {
        let stands =
            |it: &Raised| entries(&it.folder(root).join("slaves")).any(|on| ground.contains(&on));
        let goes = |it: &Raised| it.is_called(names) || ((all || it.is_temporary()) && stands(it));
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

/// Takes down what [`super::raise`] has made with these names on `devices`, from above, and clears
/// what it lay upon: udev would make an array of its parts again. What is not there is no error.
///
/// # Errors
/// Where the kernel does not let go of one, or what is below can't be cleared.
pub fn take_down(names: &Names, devices: &[Device], by: By) -> io::Result<()> {
    let (root, begin) = (Path::new("/"), Instant::now());
    let bed = names_of(root, devices);
    let is_run = matches!(by, By::Run(_));
    let mut below: Vec<Below> = Vec::new();
    if is_run {
        below = bed.iter().map(|name| Below::open(root, name)).collect::<io::Result<_>>()?;
    }
    loop {
        let all = raised(root, names, &bed, is_run);
        if all.is_empty() {
            break;
        }
        let parts = all.iter().flat_map(|it| entries(&it.folder(root).join("slaves")));
        for name in parts.filter(|name| all.iter().all(|it| it.name != *name)) {
            if below.iter().all(|it| it.name != name) {
                below.push(Below::open(root, &name)?);
            }
        }
        let is_free = |it: &&Raised| entries(&it.folder(root).join("holders")).next().is_none();
        let held: Vec<io::Error> =
            all.iter().filter(is_free).filter_map(|it| it.take_down(root).err()).collect();
        if by.gives_up(begin) {
            let why = || io::Error::other(format!("{} does not go", all[0].name));
            return Err(held.into_iter().next().unwrap_or_else(why));
        }
        std::thread::sleep(PAUSE);
    }
    let cleared = below.iter().map(Below::clear).fold(Ok(()), Result::and);
    cleared.and(remove_nodes(root, names))
}

impl By<'_> {
    fn gives_up(self, begin: Instant) -> bool {
        match self {
            By::Run(interrupted) => {
                begin.elapsed() > HELD
                    || interrupted.load(Ordering::Relaxed) && begin.elapsed() > LOOKED_AT
            }
            By::Another => begin.elapsed() > LOOKED_AT,
        }
    }
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
            ("md127", "md", &["sdb"]),
        ]);
        assert!(array.len() < 32, "DISK_NAME_LEN");
        let of = |below: &[&str], all: bool| {
            let below = below.iter().map(ToString::to_string).collect();
            let found = raised(tree.path(), &own(), &below, all).into_iter().map(|it| it.name);
            found.collect::<BTreeSet<_>>()
        };
        let named = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(of(&[], false), named(&["dm-0", &array]));
        assert_eq!(of(&["sdb"], false), named(&["dm-0", "dm-3", &array]));
        assert_eq!(of(&["sdb"], true), named(&["dm-0", "dm-3", "md127", &array]));
        take_down(&own(), &[], By::Another).unwrap();
    }

    #[test]
    fn a_node_is_believed_where_it_has_the_number() {
        let tree = machine(&[]);
        fs::create_dir_all(tree.path().join("sys/class/block/null")).unwrap();
        fs::create_dir_all(tree.path().join("dev")).unwrap();
        std::os::unix::fs::symlink("/dev/null", tree.path().join("dev/null")).unwrap();
        let number = tree.path().join("sys/class/block/null/dev");
        fs::write(&number, "1:3\n").unwrap();
        assert_eq!(Below::open(tree.path(), "null").unwrap().name, "null");
        fs::write(number, "7:3\n").unwrap();
        let error = Below::open(tree.path(), "null").unwrap_err().to_string();
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
