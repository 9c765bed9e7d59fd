//! What all the answers together mean.

use std::collections::BTreeSet;

use super::{Ability, LOOP, NAMESPACES, ROOT, State, ZRAM, install, mkfs_check, mount_check};
use crate::file_system::{self, FileSystem};

/// The beds as `--bed` names them, with the abilities each needs.
pub const BEDS: [(&str, &[&str]); 5] = [
    ("loop", &[ROOT, NAMESPACES, LOOP]),
    ("ram", &[ROOT, NAMESPACES, LOOP]),
    ("ram:zram", &[ROOT, NAMESPACES, ZRAM]),
    ("device", &[ROOT, NAMESPACES]),
    ("directory", &[]),
];

/// What can be run, and one command for all that can be installed, a line each.
pub fn conclusion(abilities: &[Ability]) -> String {
    let mut text = available(abilities);
    let packages: BTreeSet<&str> = abilities.iter().filter_map(|a| a.answer.package).collect();
    if !packages.is_empty() {
        let packages: Vec<&str> = packages.into_iter().collect();
        text += &format!("For what is missing: {}\n", install(&packages.join(" ")));
    }
    text
}

fn available(abilities: &[Ability]) -> String {
    let able =
        |name: &str| abilities.iter().any(|a| a.name == name && a.answer.state == State::Yes);
    let beds = BEDS.iter().filter(|(_, needs)| needs.iter().all(|name| able(name)));
    let beds: Vec<&str> = beds.map(|(bed, _)| *bed).collect();
    // Bed directory needs nothing, so that there is always one.
    if beds.len() == 1 {
        let root = if able(ROOT) { "" } else { "; the others need root: sudo fsverdict doctor" };
        return format!("Bed {} is available{root}.\n", beds[0]);
    }
    let made = file_system::ALL.map(FileSystem::here).into_iter();
    let made = made.filter(|it| able(&mkfs_check(it)) && able(&mount_check(it)));
    let made: Vec<&str> = made.map(|it| it.name).collect();
    let with = match made.as_slice() {
        [] => "but no file system can be made".into(),
        made => format!("with {}", listed(made)),
    };
    format!("Beds {} are available, {with}.\n", listed(&beds))
}

/// `a, b and c`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
