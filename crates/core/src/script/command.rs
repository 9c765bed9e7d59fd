//! Commands that set something: their words as a request.

use super::device::is_device;
use super::options::{Choice, choices};
use super::request::{Call, Knob, Limit, LimitBy, Mount, Request};

/// Options that say how a program goes about it and not what comes out: they are no settings.
const MANNERS: [&str; 11] =
    ["-f", "-F", "-q", "-K", "-v", "-V", "-N", "-n", "-s", "--quiet", "--force"];

/// Programs that change a file system that there is.
const TUNERS: [&str; 3] = ["tune2fs", "xfs_admin", "btrfstune"];

/// Programs that set something which can't be tried on an image.
const UNTRIED: [&str; 5] = ["nvme", "sfdisk", "fdisk", "gdisk", "tuned-adm"];

/// Options of hdparm(8) that read or measure.
const READING: [&str; 9] = ["-t", "-T", "-tT", "-Tt", "-I", "-i", "-C", "-g", "--direct"];

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
        "hdparm" => hdparm(arguments),
        "ulimit" => ulimit(arguments).into_iter().collect(),
        "zpool" | "zfs" => pool(program, arguments).into_iter().collect(),
        "btrfs" => btrfs(arguments).into_iter().collect(),
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
    let (devices, unknown) = without_unknown(program, devices);
    Call { program: program.into(), choices, devices, rest, unknown }
}

/// The devices, and the variables among them that may be options: `mkfs.ext4 $OPTIONS $DEVICE`.
fn without_unknown(program: &str, devices: Vec<String>) -> (Vec<String>, Vec<String>) {
    let takes_several = ["mkfs.btrfs", "mkfs.bcachefs", "btrfstune"].contains(&program);
    let is_variable = |word: &&String| word.starts_with('$');
    let all_variables = devices.iter().all(|word| is_variable(&word));
    if devices.len() < 2 || (takes_several && all_variables) {
        return (devices, Vec::new());
    }
    let last = devices.len() - 1;
    let kept = |(place, word): &(usize, String)| match all_variables {
        true => *place == last,
        false => !is_variable(&word),
    };
    let (devices, unknown): (Vec<_>, Vec<_>) = devices.into_iter().enumerate().partition(kept);
    let words = |pairs: Vec<(usize, String)>| pairs.into_iter().map(|(_, word)| word).collect();
    (words(devices), words(unknown))
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

/// `--setra` and `--setfra` are the same, in sectors of 512 bytes; the queue's file is in KiB:
/// blockdev(8).
fn blockdev(arguments: &[String]) -> Option<Request> {
    let place = arguments.iter().position(|word| word.starts_with("--set"))?;
    match arguments[place].as_str() {
        "--setra" | "--setfra" => read_ahead(arguments.get(place + 1)?, arguments.last()?),
        other => Some(Request::Other(format!("{other} changes the device that there is"))),
    }
}

fn read_ahead(sectors: &str, device: &str) -> Option<Request> {
    let sectors: u64 = sectors.parse().ok()?;
    let device = device.trim_start_matches("/dev/").to_string();
    let knob = Knob::Queue { device, file: "read_ahead_kb".into() };
    Some(Request::Knob { knob, value: (sectors / 2).to_string() })
}

/// `-a` is the queue's read-ahead; what else hdparm(8) sets is in the drive.
fn hdparm(arguments: &[String]) -> Vec<Request> {
    let Some(device) = arguments.last() else { return Vec::new() };
    let mut found = Vec::new();
    for (place, word) in arguments.iter().enumerate().filter(|(_, word)| word.starts_with('-')) {
        let attached = word.get(2..).map(String::from).filter(|text| !text.is_empty());
        let value = attached.or_else(|| arguments.get(place + 1).cloned()).unwrap_or_default();
        // Without a value it shows what is set.
        let sets = value.starts_with(|c: char| c.is_ascii_digit());
        if word.starts_with("-a") && sets {
            found.extend(read_ahead(&value, device));
        } else if sets && !READING.contains(&word.as_str()) {
            found.push(Request::Other(format!("{word} sets the drive itself, not its queue")));
        }
    }
    found
}

/// bash's ulimit, by the letters of its options. `-f` and the like are in KiB there.
fn ulimit(arguments: &[String]) -> Option<Request> {
    const ITEMS: [(char, &str); 8] = [
        ('n', "nofile"),
        ('u', "nproc"),
        ('l', "memlock"),
        ('f', "fsize"),
        ('s', "stack"),
        ('v', "as"),
        ('c', "core"),
        ('d', "data"),
    ];
    let [flags @ .., value] = arguments else { return None };
    let letters: String = flags.concat();
    let item = ITEMS.iter().find(|(letter, _)| letters.contains(*letter))?.1.to_string();
    let kind = match (letters.contains('S'), letters.contains('H')) {
        (true, false) => "soft",
        (false, true) => "hard",
        _ => "-",
    };
    let is_value = value == "unlimited" || value.chars().all(|c| c.is_ascii_digit());
    let (kind, value) = (kind.into(), value.clone());
    is_value.then_some(Request::Limit(Limit { kind, item, value, by: LimitBy::Shell }))
}

/// Properties that zfs(8) and zpool(8) set.
fn pool(program: &str, arguments: &[String]) -> Option<Request> {
    let (verb, rest) = arguments.split_first()?;
    let mut call = Call { program: program.into(), ..Call::default() };
    let choice = |group, flag: &str, value: &str| Choice {
        group,
        flag: flag.into(),
        attached: false,
        value: Some(value.into()),
    };
    let mut words = rest.iter().enumerate();
    while let Some((group, word)) = words.next() {
        match (verb.as_str(), word.as_str()) {
            ("set", word) if word.contains('=') => call.choices.push(choice(group, "", word)),
            ("create", "-o" | "-O") => {
                call.choices.extend(words.next().map(|(_, value)| choice(group, word, value)));
            }
            ("create", word) if is_device(word) => call.devices.push(word.into()),
            _ => {}
        }
    }
    (!call.choices.is_empty()).then_some(Request::Pool(call))
}

/// What btrfs(8) sets of files and file systems that there are.
fn btrfs(arguments: &[String]) -> Option<Request> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["property", "set", .., _, name, value] => {
            let value = format!("{name}={value}");
            let choice =
                Choice { group: 0, flag: String::new(), attached: false, value: Some(value) };
            Some(Request::Property(choice))
        }
        ["balance", "start", ..] | ["quota", "enable", ..] => {
            Some(Request::Other("it changes the file system that there is".into()))
        }
        _ => None,
    }
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
    let is_device = |word: &String| is_device(word) || word.starts_with('/');
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
        unknown: Vec::new(),
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
