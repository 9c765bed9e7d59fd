//! Files with sections: units of systemd (systemd.mount(5), systemd.service(5)) and profiles of
//! tuned (tuned.conf(5)).

use std::collections::BTreeMap;

use super::line::{Reader, VALUE_BYTES_MAX, logical_lines};
use super::request::{Knob, Limit, LimitBy, Mount, Request, Script};

/// A line `key=value` of a section.
struct Entry<'a> {
    line: usize,
    section: &'a str,
    key: &'a str,
    value: String,
}

/// Reads all sections; `None` if the text does not begin with one.
pub fn read(text: &str) -> Option<Script> {
    let lines = logical_lines(text);
    let is_text = |line: &str| !line.is_empty() && !line.starts_with(['#', ';']);
    let first = lines.iter().map(|(_, line)| line.trim()).find(|line| is_text(line))?;
    section(first)?;
    let mut reader = Reader::default();
    let mut current = "";
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut entries: Vec<Entry> = Vec::new();
    for (line, text) in &lines {
        let text = text.trim();
        if let Some(name) = section(text) {
            current = name;
        } else if let Some((key, value)) = text.split_once('=').filter(|_| is_text(text)) {
            let set = |value: String, (name, is): (&String, &String)| expanded(&value, name, is);
            let Some(value) = variables.iter().try_fold(value.trim().to_string(), set) else {
                continue;
            };
            let key = key.trim();
            match current {
                "variables" => drop(variables.insert(key.into(), value)),
                section => entries.push(Entry { line: *line, section, key, value }),
            }
        } else if is_text(text) {
            reader.script.other_lines += 1;
        }
    }
    mount(&mut reader, &entries);
    entries.iter().for_each(|entry| read_entry(&mut reader, entry, &entries));
    reader.script.settings.sort_by_key(|it| it.line);
    Some(reader.script)
}

/// `value` with a variable replaced, if it does not get too long.
fn expanded(value: &str, name: &str, is: &str) -> Option<String> {
    let written = format!("${{{name}}}");
    let count = value.matches(&written).count();
    (value.len() + count * is.len() <= VALUE_BYTES_MAX).then(|| value.replace(&written, is))
}

fn section(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    let part = |c: char| c.is_ascii_alphanumeric() || " _-".contains(c);
    (!name.is_empty() && name.chars().all(part)).then_some(name)
}

/// A unit's mount is one setting, of several lines. If a key is repeated the last one counts.
fn mount(reader: &mut Reader, entries: &[Entry]) {
    let of = |key: &str| entries.iter().rfind(|it| it.section == "Mount" && it.key == key);
    let Some(options) = of("Options") else { return };
    let value = |key: &str| of(key).map(|it| it.value.clone());
    let mount = Mount {
        file_system: value("Type"),
        options: options.value.split(',').map(String::from).collect(),
        device: value("What").unwrap_or_else(|| "DEVICE".into()),
    };
    let kind = value("Type").map(|kind| format!("-t {kind} ")).unwrap_or_default();
    let command = format!("mount {kind}-o {} {}", options.value, mount.device);
    reader.push(options.line, &command, Request::Mount(mount));
}

fn read_entry(reader: &mut Reader, entry: &Entry, all: &[Entry]) {
    let command = format!("{} = {}", entry.key, entry.value);
    let knob = |knob: Knob, value: &str| Some(Request::Knob { knob, value: value.into() });
    let key = entry.key;
    let request = match entry.section {
        "Mount" | "Unit" | "Install" => return,
        "Service" if key.starts_with("Exec") => {
            return reader
                .whole(entry.line, entry.value.trim_start_matches(['-', '@', ':', '+', '!']));
        }
        "Service" => limit(key, &entry.value),
        "sysctl" => knob(Knob::Sysctl(key.replace('/', ".")), &entry.value),
        "vm" if key.starts_with("dirty_") => knob(Knob::Sysctl(format!("vm.{key}")), &entry.value),
        "vm" if key.starts_with("transparent_hugepage") => {
            let path = "/sys/kernel/mm/transparent_hugepage/enabled";
            knob(Knob::Other(path.into()), &entry.value)
        }
        "sysfs" => super::command::knob(key).and_then(|it| knob(it, &entry.value)),
        "disk" if key == "devices" => return,
        "disk" => disk(entry, all),
        "main" if key == "include" => {
            Some(Request::Other("the profile that it includes is not read".into()))
        }
        "bootloader" => Some(Request::Other("words for the kernel act when it starts".into())),
        "script" => Some(Request::Other("the script that it names is not read".into())),
        _ => None,
    };
    match request {
        Some(request) => reader.push(entry.line, &command, request),
        None => reader.script.other_lines += 1,
    }
}

/// tuned's plugin for disks: `readahead` is in KiB, or in sectors with an `s`; `>` raises only.
fn disk(entry: &Entry, all: &[Entry]) -> Option<Request> {
    let devices = all.iter().find(|it| it.section == "disk" && it.key == "devices");
    let device = devices.map_or("DEVICE", |it| it.value.split([',', ' ']).next().unwrap_or(""));
    let queue = |file: &str, value: String| {
        let knob = Knob::Queue { device: device.into(), file: file.into() };
        Some(Request::Knob { knob, value })
    };
    match entry.key {
        "elevator" => queue("scheduler", entry.value.clone()),
        "readahead" => {
            let text = entry.value.trim_start_matches(['>', '<', '=']).trim();
            let sectors = text.strip_suffix('s').and_then(|text| text.trim().parse::<u64>().ok());
            queue("read_ahead_kb", sectors.map_or(text.into(), |count| (count / 2).to_string()))
        }
        "apm" | "spindown" => Some(Request::Other("the drive itself keeps it".into())),
        _ => None,
    }
}

/// A service's limit that is a count: systemd.exec(5), `LimitNOFILE=`.
fn limit(key: &str, value: &str) -> Option<Request> {
    let item = key.strip_prefix("Limit").filter(|item| ["NOFILE", "NPROC"].contains(item))?;
    let value = value.rsplit(':').next()?;
    let kind = "-".to_string();
    let (item, value) = (item.to_lowercase(), value.into());
    Some(Request::Limit(Limit { kind, item, value, by: LimitBy::Systemd }))
}
