//! Layers on a host, which lives on when the trial is over: what it can make, and what takes that
//! down again.
//!
//! Devices of layers belong to the kernel and not to a process: no namespace ends them. So they
//! have names of their run's own ([`Names::of_run`]), by which whoever is left finds them in sysfs,
//! and them alone; and what they lie upon is found from there, whatever its number is by now. The
//! kernel itself takes them down, for the tools would look at other devices, and wait for udev.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fsverdict_core::model::need::Answer;
use fsverdict_core::model::{Layer, Plan};

use super::{Kind, Names, Place, clear_argv, find, words};
use crate::machine::answers::not_installed;
use crate::machine::mount::is_module;
use crate::{sys, tool};

/// How long a device that is still held is waited for: udev may look at it, and the mounts of a
/// trial that was killed may go a little later than its processes.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

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
    for contender in &plan.contenders {
        let limits = contender.limits.or(plan.bed.limits);
        for layer in &contender.layers {
            if layer.settings.contains_key("speed") {
                return Err(format!(
                    "{layer}: speed holds for all arrays of a machine: write --place vm, or set \
                     sysctl dev.raid.speed_limit_min and dev.raid.speed_limit_max"
                ));
            }
            if limits.is_some() && caches(layer) {
                return Err(format!(
                    "{layer}: limits leave the fast disk out in virtual machines alone: write \
                     --place vm, or leave them out"
                ));
            }
        }
    }
    Ok(())
}

fn caches(layer: &Layer) -> bool {
    find(&layer.name).is_some_and(|kind| kind.place == Place::WithCache)
}

/// Has the kernel take names for arrays: without md there is no file to write them to.
pub fn prepare() {
    // It may be built in, and there may be no modprobe then. What is lacking mdadm says.
    let _ = tool::run(&words(&["modprobe", "--quiet", "md_mod"]));
}

/// A device of a run's layers.
#[derive(Debug, PartialEq, Eq)]
struct Raised {
    /// The kernel's name for it.
    name: String,
    /// What the device mapper knows it by.
    mapping: Option<String>,
}

impl Raised {
    fn folder(&self, root: &Path) -> PathBuf {
        root.join("sys/block").join(&self.name)
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

/// The devices with these names.
fn raised(root: &Path, names: &Names) -> Vec<Raised> {
    let of = |name: String| {
        let folder = root.join("sys/block").join(&name);
        let mapping = fs::read_to_string(folder.join("dm/name")).ok();
        let mapping = mapping.map(|text| text.trim_end().to_string());
        let known_by = mapping.as_deref().or(name.strip_prefix("md_"))?;
        known_by.starts_with(&names.prefix).then_some(Raised { mapping, name: name.clone() })
    };
    entries(&root.join("sys/block")).filter_map(of).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Takes down what [`super::raise`] has made with these names, from above, and clears what it lay
/// upon: udev would make an array of its parts again. What is not there is no error.
///
/// # Errors
/// Where the kernel does not let go of one, or what is below can't be cleared.
pub fn take_down(names: &Names) -> io::Result<()> {
    let root = Path::new("/");
    let begin = Instant::now();
    let mut below = BTreeSet::new();
    loop {
        let all = raised(root, names);
        if all.is_empty() {
            break;
        }
        let is_ours = |name: &String| all.iter().any(|it| it.name == *name);
        let parts = all.iter().flat_map(|it| entries(&it.folder(root).join("slaves")));
        below.extend(parts.filter(|name| !is_ours(name)));
        let is_free = |it: &&Raised| entries(&it.folder(root).join("holders")).next().is_none();
        let held: Vec<io::Error> =
            all.iter().filter(is_free).filter_map(|it| it.take_down(root).err()).collect();
        let is_held = !held.is_empty();
        if begin.elapsed() > PATIENCE {
            let why = || io::Error::other(format!("{} does not go", all[0].name));
            return Err(held.into_iter().next().unwrap_or_else(why));
        }
        if is_held {
            std::thread::sleep(PAUSE);
        }
    }
    for name in &below {
        // A name has `!` for `/` there (drivers/base/core.c, `device_get_devnode`).
        let node = format!("/dev/{}", name.replace('!', "/"));
        tool::run(&clear_argv(&node)).map_err(io::Error::other)?;
    }
    remove_nodes(Path::new("/dev"), names)
}

/// The nodes that the tools have made in place of udev.
fn remove_nodes(dev: &Path, names: &Names) -> io::Result<()> {
    for folder in [dev.join("mapper"), dev.join("md"), dev.into()] {
        for name in entries(&folder).filter(|name| name.starts_with(&names.prefix)) {
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

    #[test]
    fn what_has_the_names_of_the_run_is_its_own_and_nothing_else() {
        let tree = tempfile::tempdir().unwrap();
        let names = Names::of_run(&Token::parse("0123456789abcdef").unwrap());
        let block = tree.path().join("sys/block");
        let mapping = |name: &str, text: &str| {
            fs::create_dir_all(block.join(name).join("dm")).unwrap();
            fs::write(block.join(name).join("dm/name"), format!("{text}\n")).unwrap();
        };
        let own = "fsverdict_0123456789abcdef_0_0";
        mapping("dm-0", own);
        mapping("dm-1", "vg-root");
        mapping("dm-2", "fsverdict_0123456789abcdee_0_0");
        for name in ["md_fsverdict_0123456789abcdef_1", "md0", "sda"] {
            fs::create_dir_all(block.join(name)).unwrap();
        }
        let mut found = raised(tree.path(), &names);
        found.sort_by(|one, other| one.name.cmp(&other.name));
        let array = "md_fsverdict_0123456789abcdef_1".to_string();
        assert!(array.len() < 32, "DISK_NAME_LEN");
        let expected = [("dm-0".to_string(), Some(own.to_string())), (array, None)];
        assert_eq!(found, expected.map(|(name, mapping)| Raised { name, mapping }));
        take_down(&names).unwrap();

        let dev = tree.path().join("dev");
        fs::create_dir_all(dev.join("fsverdict_0123456789abcdef_2_0/volume")).unwrap();
        fs::create_dir_all(dev.join("mapper")).unwrap();
        for name in ["mapper/fsverdict_0123456789abcdef_0_0", "mapper/control", "sda"] {
            fs::write(dev.join(name), "").unwrap();
        }
        remove_nodes(&dev, &names).unwrap();
        assert_eq!(
            entries(&dev).collect::<BTreeSet<_>>(),
            ["mapper", "sda"].map(Into::into).into()
        );
        assert_eq!(entries(&dev.join("mapper")).collect::<Vec<_>>(), ["control"]);
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
        assert_eq!(said("luks", limits) + &said("cache", ""), "");
        assert!(said("raid1:state=resync,speed=1M", "").contains("all arrays of a machine"));
        assert!(said("cache", limits).contains("write --place vm, or leave them out"));
        let root = Path::new("/no/such");
        assert!(answer(root, find("zoned").unwrap()).detail.contains("in virtual machines"));
    }
}
