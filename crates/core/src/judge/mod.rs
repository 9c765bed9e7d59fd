//! From records to verdicts.
//!
//! The judge pairs the trials of each round, takes the differences of ln(goodness), and after every
//! round gives an interval that stays valid although it is looked at so often ([`Rule`]); that of
//! the last look gives the verdict ([`Course`]). A [`Judge`] does that for every comparison of a
//! plan, with the error shared over their family. Besides, [`Judge::findings`] audits the
//! measurement itself: if it did not measure the file system it is void, whatever the figures say;
//! [`table_findings`] does so for figures that somebody else published. The method is that of
//! METHODOLOGY, "Rounds, not runs" to "The verdicts", and of docs/audits.md.

mod across;
mod advise;
mod apart;
mod audit;
mod beside;
mod bill;
mod causes;
mod claims;
mod compare;
mod durability;
mod fold;
mod growth;
mod history;
mod hosts;
mod in_both;
mod interval;
mod joined;
mod kept;
mod lane;
mod memory;
mod middle;
mod nights;
mod not_measured;
mod pairs;
#[cfg(test)]
pub(crate) mod plain;
mod published;
mod shared;
mod steps;
mod terms;
#[cfg(test)]
pub(crate) mod testing;
mod trials;
mod unpaired;

pub use across::{Asked, across, before_changes, give_up_other_work};
pub use advise::advise;
pub use beside::beside;
pub use causes::causes;
pub use claims::Undecided;
pub use compare::Judge;
pub use fold::Fold;
pub use fsverdict_statistics::stopping::{FIRST_LOOK, Layout, Rule, level_of_last_look};
pub use fsverdict_statistics::student::two_sided_tail;
use fsverdict_statistics::{estimate, stopping, student};
pub use history::history;
pub use interval::{Course, Interval};
pub use joined::joined;
pub(crate) use kept::{Common, Kept};
pub use memory::of_memory;
pub use not_measured::not_measured;
pub use published::{table_findings, table_missing};
pub use terms::Side;
