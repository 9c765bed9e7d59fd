//! The paths of files, as directories tell them.

use std::collections::HashMap;

use super::what::Inode;

/// The first name of each inode, and the directory it is in.
#[derive(Clone, Debug)]
pub struct Names {
    root: Inode,
    named: HashMap<Inode, (Inode, Box<[u8]>)>,
}

impl Names {
    /// Of a file system whose root directory is `root`.
    pub fn new(root: Inode) -> Names {
        Names { root, named: HashMap::new() }
    }

    /// Takes an entry of a directory.
    pub fn add(&mut self, directory: Inode, name: &[u8], inode: Inode) {
        if inode != self.root && ![&b"."[..], b"..", b""].contains(&name) {
            self.named.entry(inode).or_insert_with(|| (directory, name.into()));
        }
    }

    /// The path from the root; `None` where no directory leads there.
    pub fn path(&self, inode: Inode) -> Option<String> {
        let mut parts = Vec::new();
        let mut at = inode;
        while at != self.root {
            let (directory, name) = self.named.get(&at)?;
            parts.push(String::from_utf8_lossy(name));
            // A directory that holds itself, on a damaged file system.
            if parts.len() > self.named.len() {
                return None;
            }
            at = *directory;
        }
        parts.push("".into());
        parts.reverse();
        Some(if parts.len() == 1 { "/".into() } else { parts.join("/") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_from_the_root_and_a_circle_nowhere() {
        let mut names = Names::new(Inode::of(2));
        names.add(Inode::of(2), b".", Inode::of(2));
        names.add(Inode::of(2), b"a", Inode::of(12));
        names.add(Inode::of(12), b"..", Inode::of(2));
        names.add(Inode::of(12), b"b", Inode::of(13));
        names.add(Inode::of(2), b"other name", Inode::of(13));
        names.add(Inode::of(20), b"x", Inode::of(21));
        names.add(Inode::of(21), b"y", Inode::of(20));
        assert_eq!(names.path(Inode::of(2)).unwrap(), "/");
        assert_eq!(names.path(Inode::of(13)).unwrap(), "/a/b");
        assert_eq!(names.path(Inode::of(20)), None);
        assert_eq!(names.path(Inode::of(99)), None);
    }
}
