//! Commands that set something: their words as a request.

use super::options::choices;
use super::request::{Call, Knob, Mount, Request};

/// Options that say how a program goes about it and not what comes out: they are no settings.
const MANNERS: [&str; 11] =
    ["-f", "-F", "-q", "-K", "-v", "-V", "-N", "-n", "-s", "--quiet", "--force"];

/// Programs that change a file system that there is.
const TUNERS: [&str; 3] = ["tune2fs", "xfs_admin", "btrfstune"];

/// Programs that set something which can't be tried on an image.
const UNTRIED: [&str; 8] =
    ["nvme", "hdparm", "sfdisk", "fdisk", "gdisk", "tuned-adm", "zpool", "zfs"];

/// What `program` is to do with `arguments`; nothing if it sets nothing that is known here.
pub fn request(program: &str, arguments: &[String]) -> Vec<Request> {
    match program {
        "mkfs" | "mke2fs" => vec![Request::Make(generic_mkfs(arguments))],
        _ if program.starts_with("mkfs.") || TUNERS.contains(&program) => {
            vec![Request::Make(call(program, arguments))]
        }
        "mount" => mount(arguments).map(Request::Mount).into_iter().collect(),
        "sysctl" => sysctls(arguments),
        "blockdev" => blockdev(arguments).into_iter().collect(),
        "parted" | "sgdisk" => partition(program, arguments).into_iter().collect(),
        _ if UNTRIED.contains(&program) => {
            vec![Request::Other(format!("{program} is not among the programs that can be tried"))]
        }
        _ => Vec::new(),
    }
}

fn call(program: &str, arguments: &[String]) -> Call {
    let (mut choices, devices, rest) = choices(arguments);
    choices.retain(|choice| choice.value.is_some() || !MANNERS.contains(&choice.flag.as_str()));
    Call { program: program.into(), choices, devices, rest }
}

/// `mkfs -t xfs` and `mke2fs -t ext4` by the name of what they start. Without a type both make
/// ext2: mkfs(8), mke2fs(8).
fn generic_mkfs(arguments: &[String]) -> Call {
    let mut call = call("mkfs.ext2", arguments);
    let is_type = |flag: &str| matches!(flag, "-t" | "--type");
    if let Some(place) = call.choices.iter().position(|choice| is_type(&choice.flag)) {
        let choice = call.choices.remove(place);
        call.program = format!("mkfs.{}", choice.value.unwrap_or_default());
    }
    call
}

fn mount(arguments: &[String]) -> Option<Mount> {
    let mut mount = Mount::default();
    let mut places = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let (flag, attached) = match word.as_bytes() {
            [b'-', b'-', ..] => word
                .split_once('=')
                .map_or((word.as_str(), None), |(flag, v)| (flag, Some(v.to_string()))),
            [b'-', b't' | b'o', _, ..] => (&word[..2], Some(word[2..].to_string())),
            _ => (word.as_str(), None),
        };
        match flag {
            "-t" | "--types" => mount.file_system = attached.or_else(|| words.next().cloned()),
            "-o" | "--options" => {
                let list = attached.or_else(|| words.next().cloned()).unwrap_or_default();
                mount.options.extend(list.split(',').filter(|o| !o.is_empty()).map(String::from));
            }
            "-r" | "--read-only" => mount.options.push("ro".into()),
            "-B" | "--bind" | "-R" | "--rbind" | "-M" | "--move" | "-a" | "--all" => return None,
            flag if flag.starts_with('-') => {}
            place => places.push(place.to_string()),
        }
    }
    mount.device = places.into_iter().next()?;
    (!mount.options.is_empty()).then_some(mount)
}

fn sysctls(arguments: &[String]) -> Vec<Request> {
    let assigned = arguments.iter().filter_map(|word| word.split_once('='));
    assigned
        .filter(|(name, _)| !name.starts_with('-'))
        .map(|(name, value)| {
            let knob = Knob::Sysctl(name.trim().replace('/', "."));
            Request::Knob { knob, value: value.trim().into() }
        })
        .collect()
}

/// `blockdev --setra` is in sectors of 512 bytes, the queue's file in KiB: blockdev(8).
fn blockdev(arguments: &[String]) -> Option<Request> {
    let place = arguments.iter().position(|word| word == "--setra")?;
    let sectors: u64 = arguments.get(place + 1)?.parse().ok()?;
    let device = arguments.last()?.trim_start_matches("/dev/").to_string();
    let knob = Knob::Queue { device, file: "read_ahead_kb".into() };
    Some(Request::Knob { knob, value: (sectors / 2).to_string() })
}

/// Only what writes a table: `parted DEV print` sets nothing.
fn partition(program: &str, arguments: &[String]) -> Option<Request> {
    const WRITES: [&str; 5] = ["mklabel", "mktable", "mkpart", "resizepart", "set"];
    let writes = program == "sgdisk" || arguments.iter().any(|w| WRITES.contains(&w.as_str()));
    if !writes {
        return None;
    }
    // parted's commands follow its device: options end there, and `-1MiB` is a place.
    let flags = ["-s", "-m", "--script", "-f", "--fix"];
    let is_device = |word: &String| super::is_device(word) || word.starts_with('/');
    let place = arguments.iter().position(is_device)?;
    let (before, after) = match program {
        "parted" => (&arguments[..place], arguments[place + 1..].to_vec()),
        _ => (arguments, Vec::new()),
    };
    let words: Vec<String> = before.iter().chain([&arguments[place]]).cloned().collect();
    let (mut options, _, _) = choices(&words[..words.len() - usize::from(program != "parted")]);
    options.retain(|choice| !flags.contains(&choice.flag.as_str()));
    let devices = vec![arguments[place].clone()];
    Some(Request::Partition(Call {
        program: program.into(),
        choices: options,
        devices,
        rest: after,
    }))
}

/// The knob that a file of /sys or /proc is.
pub fn knob(path: &str) -> Option<Knob> {
    if let Some(name) = path.strip_prefix("/proc/sys/") {
        return Some(Knob::Sysctl(name.replace('/', ".")));
    }
    let below = ["/sys/block/", "/sys/class/block/"].iter().find_map(|d| path.strip_prefix(d));
    if let Some((device, file)) = below.and_then(|rest| rest.split_once("/queue/")) {
        return Some(Knob::Queue { device: device.into(), file: file.into() });
    }
    (path.starts_with("/sys/") || path.starts_with("/proc/")).then(|| Knob::Other(path.into()))
}
