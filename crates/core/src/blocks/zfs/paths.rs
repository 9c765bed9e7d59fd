//! Names of files, from the directories of data sets.

use super::super::names::Names;
use super::super::what::Inode;

/// The file with this number in a data set.
pub(super) fn inode(set: u64, number: u64) -> Inode {
    Inode { subvolume: set, number }
}

/// Names in directories: the data set, the directory, the name, and whose it is.
pub(super) type Entry = (u64, u64, Vec<u8>, u64);

/// The paths of the first of these data sets; the others are its snapshots, the latest first.
pub(super) fn paths(sets: &[u64], root: u64, mut entries: Vec<Entry>) -> Names {
    // ZFS_DIRENT_OBJ: the number is in the lower 48 bits.
    pub(super) const NUMBER: u64 = (1 << 48) - 1;
    let place = |set| sets.iter().position(|it| *it == set);
    entries.sort_by_key(|(set, ..)| place(*set));
    let mut names = Names::new(inode(sets[0], root));
    for (set, directory, name, value) in entries {
        if place(set).is_some() {
            names.add(inode(sets[0], directory), &name, inode(sets[0], value & NUMBER));
        }
    }
    names
}
