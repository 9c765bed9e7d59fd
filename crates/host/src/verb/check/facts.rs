//! Facts from tools' output: what a new file system is, and what they complain about.

use std::collections::BTreeMap;

use super::bench::Disk;
use super::sort::{Change, Facts};

/// What a tool complained of: the first paragraph, without its name card and without its usage.
pub fn complaint(text: &str, disks: &[Disk]) -> String {
    let is_card = |line: &str| {
        line.starts_with("mke2fs 1.") || line.starts_with("tune2fs 1.") || line.contains("udevadm")
    };
    let lines = text.lines().map(str::trim).skip_while(|line| line.is_empty() || is_card(line));
    let lines = lines.take_while(|line| !line.is_empty() && !line.starts_with("Usage"));
    let lines: Vec<&str> = lines.filter(|line| !is_card(line)).take(3).collect();
    let bare = |line: &&str| {
        let (first, rest) = line.split_once(": ").unwrap_or(("", line));
        if first.starts_with("mk") || first.contains("tune") {
            rest.into()
        } else {
            line.to_string()
        }
    };
    let text = lines.iter().map(bare).collect::<Vec<String>>().join("; ");
    disks.iter().fold(text, |text, disk| text.replace(&disk.node(), "DEVICE"))
}

/// `name: value` lines, the `key=value` pairs of XFS by their sections, and which flags the block
/// groups of ext4 have.
pub fn read_facts(text: &str, disks: &[Disk], facts: &mut Facts) {
    let text =
        disks.iter().fold(text.to_string(), |text, disk| text.replace(&disk.node(), "DEVICE"));
    let mut section = String::new();
    let mut groups: BTreeMap<String, u32> = Default::default();
    for line in text.lines() {
        let group =
            line.strip_prefix("Group ").filter(|rest| rest.starts_with(|c: char| c.is_numeric()));
        if let Some(rest) = group {
            let flags = rest.split_once('[').map_or("", |(_, flags)| flags.trim_end_matches(']'));
            *groups.entry(String::new()).or_default() += 1;
            for flag in flags.split(", ").filter(|flag| !flag.is_empty()) {
                *groups.entry(flag.into()).or_default() += 1;
            }
        } else if groups.is_empty() {
            read_line(line, &mut section, facts);
        }
    }
    for (flags, count) in groups {
        facts.insert(format!("block groups {flags}").trim().into(), count.to_string());
    }
}

fn read_line(line: &str, section: &mut String, facts: &mut Facts) {
    let pairs: Vec<(&str, &str)> = line
        .split([' ', ','])
        .filter_map(|word| word.split_once('='))
        .filter(|(key, value)| !key.is_empty() && !value.is_empty())
        .collect();
    if let Some((name, value)) = line.split_once(": ").or_else(|| line.split_once('\t')) {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if !is_of_its_own(name) {
            facts.insert(name.trim().to_string(), value);
        }
        return;
    }
    if !line.starts_with(' ') {
        *section = line.split([' ', '=']).next().unwrap_or("").to_string();
    }
    for (key, value) in pairs.into_iter().filter(|(key, _)| key != section) {
        facts.insert(format!("{section} {key}"), value.into());
    }
    if let Some((name, value)) = line.split_once(" = ").filter(|(name, _)| !name.trim().is_empty())
    {
        facts.insert(name.trim().into(), value.trim().into());
    }
}

/// Identities and times, which differ between any two that are not made in the same second.
fn is_of_its_own(name: &str) -> bool {
    let name = name.to_lowercase();
    let own =
        ["uuid", "hash seed", "checksum ", "created", "checked", "time", "csum\t", "generation"];
    let remark = ["note", "warning", "backup_", "dev_item"];
    own.iter().any(|part| name.contains(part))
        || remark.iter().any(|start| name.trim().starts_with(start))
}

/// Features that are there no longer.
pub fn lost(changes: &[Change]) -> Vec<String> {
    let features = |change: &&Change| change.name.to_lowercase().contains("filesystem features");
    let Some(change) = changes.iter().find(features) else { return Vec::new() };
    let words = |text: &Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.split_whitespace()).map(String::from).collect()
    };
    let to = words(&change.to);
    words(&change.from).into_iter().filter(|feature| !to.contains(feature)).collect()
}
