//! What all the answers together mean.

use std::collections::BTreeSet;

use fsverdict_core::model::need::{Asked, Remedy, install};
use fsverdict_core::model::{Bed, BedKind, Need};

use crate::file_system;

/// A bed of each kind, of the usual size.
pub fn beds() -> [Bed; 5] {
    let of = |kind| Bed { kind, ..Bed::default() };
    let zram = Bed { zram: true, ..of(BedKind::Ram) };
    [of(BedKind::Loop), of(BedKind::Ram), zram, of(BedKind::Device), of(BedKind::Directory)]
}

/// What can be run, and one command for all of `needs` that can be installed, a line each.
pub fn conclusion(asked: &Asked, needs: &[Need]) -> String {
    let mut text = available(asked);
    let remedies = needs.iter().filter_map(|need| asked.answer(need).remedy);
    let packages: BTreeSet<String> = remedies
        .filter_map(|remedy| match remedy {
            Remedy::Install { package, .. } => Some(package),
            Remedy::Sudo | Remedy::Words(_) => None,
        })
        .collect();
    if !packages.is_empty() {
        let packages: Vec<String> = packages.into_iter().collect();
        text += &format!("For what is missing: {}\n", install(&packages.join(" ")));
    }
    text
}

fn available(asked: &Asked) -> String {
    let able = |need: &Need| asked.answer(need).is_able();
    let can_be_made = |bed: &Bed| bed.needs().iter().all(able);
    let beds = beds();
    let beds: Vec<&str> = beds.iter().filter(|bed| can_be_made(bed)).map(Bed::name).collect();
    // Bed directory needs nothing, so that there is always one.
    if let [only] = beds.as_slice() {
        let is_root = able(&Need::Root);
        let root = if is_root { "" } else { "; the others need root: sudo fsverdict doctor" };
        return format!("Bed {only} is available{root}.\n");
    }
    let made = file_system::ALL.iter().map(|it| it.name);
    let made: Vec<&str> = made.filter(|name| able(&Need::FileSystem((*name).into()))).collect();
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
