//! What can lie between the disk and the file system: one file for each kind, and a line of [`ALL`]
//! for each layer.
//!
//! A layer is its commands, as a file system is: they take the devices below, and the devices above
//! have names that are known before. It lives in a virtual machine and ends with it, so that
//! nothing takes it down. No udev runs there: [`WITHOUT_UDEV`] has the tools make nodes themselves.

mod integrity;
mod luks;
mod lvm;
mod md;

use fsverdict_core::model::{Bytes, Layer, meant};

use crate::tool::{self, Argv, ToolError};

/// In the environment of what raises layers: libdevmapper then makes the nodes itself
/// (libdm-common.c, `_check_udev_is_running`), and mdadm waits for nobody else to (udev.c,
/// `udev_is_available`).
pub const WITHOUT_UDEV: [(&str, &str); 2] = [("DM_DISABLE_UDEV", "1"), ("MDADM_NO_UDEV", "1")];

/// What fsverdict needs to know of a layer.
#[derive(Debug)]
pub struct Kind {
    /// Its name in plans and on the command line.
    pub name: &'static str,
    /// What it is, for `list`.
    pub about: &'static str,
    /// Its settings, and what their values have to be.
    pub settings: &'static [(&'static str, Value)],
    /// The programs that make it.
    pub programs: &'static [&'static str],
    /// Modules without which a kernel does not have it.
    pub modules: &'static [&'static str],
    /// Modules that the kernel asks for by name where it can: in a guest there is no modprobe.
    asked_for: fn(&Layer) -> Vec<String>,
    /// The fewest devices that it is made of.
    devices_min: usize,
    /// How it is made.
    up: fn(&Seat) -> Made,
}

/// What a setting's value has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A power of two, in bytes: `64k`.
    Size,
    /// A [`Value::Size`] of a page or more: what is spread over devices has no smaller pieces.
    Chunk,
    /// `yes` or `no`.
    Switch,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A word of the tool's own.
    Word,
}

/// Where a layer is to be.
#[derive(Clone, Copy, Debug)]
struct Seat<'a> {
    /// How many layers are below.
    level: usize,
    /// The devices below.
    devices: &'a [String],
    /// It with its settings.
    layer: &'a Layer,
}

/// How a layer is made, and what comes out.
#[derive(Debug, Default)]
pub struct Made {
    /// The commands, in order.
    pub commands: Vec<Argv>,
    /// Commands that describe what was made.
    facts: Vec<Argv>,
    /// The devices above.
    pub devices: Vec<String>,
}

/// All layers, in the order `list` shows them.
pub const ALL: [&Kind; 10] = [
    &luks::LUKS,
    &integrity::INTEGRITY,
    &md::RAID0,
    &md::RAID1,
    &md::RAID5,
    &md::RAID6,
    &md::RAID10,
    &lvm::LINEAR,
    &lvm::STRIPED,
    &lvm::THIN,
];

/// The layer of that name.
pub fn find(name: &str) -> Option<&'static Kind> {
    ALL.into_iter().find(|kind| kind.name == name)
}

/// Looks whether `layers` can be made on so many devices.
pub fn check(layers: &[Layer], devices: usize) -> Result<(), String> {
    let mut below: Vec<String> = (0..devices).map(|number| number.to_string()).collect();
    for (level, layer) in layers.iter().enumerate() {
        let named = || meant(&layer.name, ALL.map(|kind| kind.name));
        let kind = find(&layer.name)
            .ok_or_else(|| format!("no layer is called {:?}; {}", layer.name, named()))?;
        kind.check(layer)?;
        let (least, count) = (kind.devices_min, below.len());
        if count < least {
            return Err(format!(
                "{} is made of {least} devices or more, and gets {count}: --devices {least}, and \
                 below what joins them",
                kind.name
            ));
        }
        below = (kind.up)(&Seat { level, devices: &below, layer }).devices;
    }
    Ok(())
}

/// How `layers` are made on `devices`, one after the other; unknown ones are left out.
pub fn stack(layers: &[Layer], devices: &[String]) -> Vec<Made> {
    let mut made: Vec<Made> = Vec::new();
    for (level, layer) in layers.iter().enumerate() {
        let below = made.last().map_or(devices, |it| &it.devices);
        let seat = Seat { level, devices: below, layer };
        made.extend(find(&layer.name).map(|kind| (kind.up)(&seat)));
    }
    made
}

/// The devices on which the file system is made.
pub fn top(layers: &[Layer], devices: Vec<String>) -> Vec<String> {
    stack(layers, &devices).pop().map_or(devices, |it| it.devices)
}

/// The command that takes from `device` what earlier trials have left: a layer's tool would find
/// its own there, and ask.
pub fn clear_argv(device: &str) -> Argv {
    words(&["wipefs", "--all", "--quiet", device])
}

/// Makes `layers` on `devices`; gives what their own tools say of them.
pub fn raise(layers: &[Layer], devices: &[String]) -> Result<Vec<String>, ToolError> {
    devices.iter().try_for_each(|device| tool::run(&clear_argv(device)).map(drop))?;
    let mut said = Vec::new();
    for (made, layer) in stack(layers, devices).iter().zip(layers) {
        tool::run_all(&made.commands)?;
        said.push(format!("{}: {}", layer.name, told(&tool::run_all(&made.facts)?)));
    }
    Ok(said)
}

/// What a tool printed, in one line; what it repeats for each device once.
fn told(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.dedup();
    lines.join("; ")
}

impl Kind {
    /// Modules of the kernel that `layer` can use: each may be lacking.
    pub fn asked_for(&self, layer: &Layer) -> Vec<String> {
        (self.asked_for)(layer)
    }

    /// Its settings, each with the words that it takes where these are few.
    pub fn choices(&self) -> Vec<String> {
        let choice = |(name, value): &(&str, Value)| match value {
            Value::OneOf(words) => format!("{name}={}", words.join("|")),
            Value::Switch => format!("{name}=yes|no"),
            Value::Size | Value::Chunk | Value::Word => name.to_string(),
        };
        self.settings.iter().map(choice).collect()
    }

    /// Its settings are known, and have values that they can have.
    fn check(&self, layer: &Layer) -> Result<(), String> {
        for (key, value) in &layer.settings {
            let known = self.settings.iter().find(|(name, _)| name == key);
            let (_, kind) = known.ok_or_else(|| {
                let names = self.settings.iter().map(|(name, _)| *name);
                format!("{} has no setting {key:?}; {}", self.name, meant(key, names))
            })?;
            kind.check(value).map_err(|wanted| format!("{layer}: {key} is {wanted}"))?;
        }
        let state = layer.settings.get("state").map(String::as_str);
        if layer.settings.contains_key("speed") && !matches!(state, Some("resync" | "check")) {
            return Err(format!("{layer}: speed is that of state=resync or of state=check"));
        }
        Ok(())
    }
}

impl Value {
    fn check(self, value: &str) -> Result<(), String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || ":-_.,()".contains(c);
        let is_size = |least| bytes(value).is_some_and(|it| it >= least && it.is_power_of_two());
        let (is_right, wanted) = match self {
            Value::Size => (is_size(512), "a power of two, as in 64k"),
            Value::Chunk => (is_size(4096), "a power of two from 4k on, as in 64k"),
            Value::OneOf(words) => {
                let wanted = format!("one of {}", words.join(", "));
                return if words.contains(&value) { Ok(()) } else { Err(wanted) };
            }
            Value::Switch => (matches!(value, "yes" | "no"), "yes or no"),
            Value::Word => {
                (!value.starts_with('-') && value.chars().all(is_word), "a word of its tool's")
            }
        };
        if is_right { Ok(()) } else { Err(wanted.into()) }
    }
}

fn bytes(value: &str) -> Option<u64> {
    value.parse::<Bytes>().ok().map(|bytes| bytes.0)
}

impl Seat<'_> {
    /// The value of a setting.
    fn setting(&self, name: &str) -> Option<&str> {
        self.layer.settings.get(name).map(String::as_str)
    }

    /// A size that was set, in bytes.
    fn size_bytes(&self, name: &str) -> Option<u64> {
        self.setting(name).and_then(bytes)
    }

    /// What the device upon the one of that number is called.
    fn name(&self, number: usize) -> String {
        format!("fsverdict{}_{number}", self.level)
    }

    /// Each device below, and the name of that upon it.
    fn each(&self) -> impl Iterator<Item = (&String, String)> {
        self.devices.iter().enumerate().map(|(number, device)| (device, self.name(number)))
    }
}

fn words(words: &[&str]) -> Argv {
    words.iter().map(ToString::to_string).collect()
}

/// `words`, and `option=value` where that is set.
fn with(mut argv: Argv, options: &[(&str, Option<String>)]) -> Argv {
    for (option, value) in options {
        argv.extend(value.as_ref().map(|value| format!("{option}={value}")));
    }
    argv
}

/// Nothing is asked for by name.
fn nothing(_: &Layer) -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn layers(text: &str) -> Vec<Layer> {
        Layer::parse_stack(text).unwrap()
    }

    fn devices(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("/dev/vd{number}")).collect()
    }

    fn typed(text: &str, count: usize) -> String {
        let lines = stack(&layers(text), &devices(count)).into_iter().flat_map(|it| it.commands);
        lines.map(|argv| tool::shown(&argv)).collect::<Vec<_>>().join("\n")
    }

    /// The conformance suite of what needs no kernel: each layer is made of the devices below it,
    /// and gives others, of which its commands speak.
    #[test]
    fn each_layer_takes_all_devices_below_and_names_those_above() {
        for kind in ALL {
            let below = devices(kind.devices_min.max(2));
            let made = stack(&layers(kind.name), &below).remove(0);
            let line: Vec<&String> = made.commands.iter().flatten().collect();
            for device in &below {
                assert!(line.contains(&device), "{}: {device}", kind.name);
            }
            assert!(!made.devices.is_empty() && !made.facts.is_empty(), "{}", kind.name);
            assert!(made.devices.iter().all(|it| !below.contains(it)), "{}", kind.name);
            let named = |argv: &Argv| kind.programs.contains(&argv[0].as_str());
            let all = made.commands.iter().chain(&made.facts);
            assert!(all.clone().all(named), "{}: {made:?}", kind.name);
            assert!(!kind.modules.is_empty() && !kind.about.is_empty(), "{}", kind.name);
            check(&layers(kind.name), below.len()).unwrap();
        }
        assert_eq!(ALL.iter().map(|kind| kind.name).collect::<BTreeSet<_>>().len(), ALL.len());
    }

    #[test]
    fn the_first_layer_is_next_to_the_disks() {
        let made = stack(&layers("luks+raid1+lvm"), &devices(2));
        let devices: Vec<&Vec<String>> = made.iter().map(|it| &it.devices).collect();
        let [encrypted, mirrored, volume] = devices[..] else { panic!("{devices:?}") };
        assert_eq!(encrypted[..], ["/dev/mapper/fsverdict0_0", "/dev/mapper/fsverdict0_1"]);
        assert_eq!((mirrored.len(), volume.len()), (1, 1));
        let all = top(&layers("luks+raid1+lvm"), self::devices(2));
        assert_eq!((&all, top(&[], self::devices(2)).len()), (volume, 2));
    }

    #[test]
    fn what_the_tools_say_is_told_in_a_line() {
        let said = "  volume linear    1  0  496.00m\n  volume linear    1  0  496.00m\n\n  x\n";
        assert_eq!(told(said), "volume linear 1 0 496.00m; x");
    }

    #[test]
    fn settings_are_on_the_command_lines() {
        let luks = typed("luks:cipher=aes-cbc-essiv:sha256,sector_size=4k,workqueues=no", 1);
        for words in ["--cipher=aes-cbc-essiv:sha256", "--sector-size=4096", "no_write_workqueue"] {
            assert!(luks.contains(words), "{words}: {luks}");
        }
        assert!(typed("raid5:chunk=64k", 3).contains("--chunk=64 "), "in KiB");
        assert!(typed("lvm-striped:stripe=16k", 2).contains("--stripes 2 --stripesize=16k "));
        assert!(typed("lvm-thin:chunk=128k,zero=no", 1).contains("--chunksize=128k --zero=n "));
        assert!(typed("raid1", 2).contains("--assume-clean"), "in line from the start");
        let lost = typed("raid5:state=degraded", 3);
        assert!(lost.ends_with("\nmdadm /dev/md0 --fail /dev/vd2"), "{lost}");
        let resync = typed("raid1:state=resync,speed=4M", 2);
        assert!(!resync.contains("--assume-clean") && !resync.contains("--force"), "{resync}");
        assert!(typed("raid5:state=resync", 3).contains(" --force "), "no rebuild of a spare");
        let limits =
            ["max", "min"].map(|it| format!("echo 4096 >/proc/sys/dev/raid/speed_limit_{it}"));
        let all = limits.iter().all(|limit| resync.contains(limit));
        assert!(all && resync.find("echo") < resync.find("mdadm"), "{resync}");
        let check = typed("raid1:state=check", 2);
        assert!(check.contains("echo check >/sys/block/md0/md/sync_action"), "{check}");
        assert!(typed("integrity:mode=bitmap", 1).contains("--integrity-bitmap-mode"));
    }

    #[test]
    fn a_stack_that_can_not_be_is_refused_before_anything_is_made() {
        for (text, count, says) in [
            ("lukz", 1, "no layer is called \"lukz\"; did you mean luks"),
            ("luks:sektor=1", 1, "luks has no setting \"sektor\""),
            ("raid5:chunk=3k", 3, "raid5:chunk=3k: chunk is a power of two"),
            ("raid5:chunk=512", 3, "chunk is a power of two from 4k on"),
            ("lvm-striped:stripe=2k", 2, "stripe is a power of two from 4k on"),
            ("integrity:mode=bitmp", 1, "mode is one of journal, bitmap, direct"),
            ("luks:workqueues=off", 1, "workqueues is yes or no"),
            ("raid1:state=scrub", 2, "state is one of degraded, resync, check"),
            ("raid0:state=degraded", 2, "raid0 has no setting \"state\""),
            ("luks:cipher=--x", 1, "cipher is a word of its tool's"),
            ("raid1", 1, "raid1 is made of 2 devices or more, and gets 1: --devices 2"),
            ("lvm+raid1", 2, "raid1 is made of 2 devices or more, and gets 1"),
            ("raid6", 3, "--devices 4"),
        ] {
            let error = check(&layers(text), count).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        check(&layers("luks+raid10+luks+lvm-thin"), 4).unwrap();
    }
}
