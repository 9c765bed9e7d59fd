//! The names below the watched folders: what was there, and what the traced calls made of it.
//!
//! A name is written `0/a/b`: the number of its watched folder, and the path from there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Found;
use crate::model::Laid;

/// Links that are followed in one path: the kernel's MAXSYMLINKS.
const LINKS_MAX: u32 = 40;

/// What has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    /// With its target as the application wrote it.
    Link(String),
    Special,
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    /// What was found before the first call.
    found: Option<Laid>,
    /// The names it had then.
    names: Vec<String>,
    /// A call was made on it.
    touched: bool,
    /// Its entries were read.
    listed: bool,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name as the application wrote it.
    pub written: String,
    /// The name it stands for, with no link before its last part, or none at all if the last is
    /// followed, too.
    pub real: String,
    /// What is there.
    pub node: Option<usize>,
}

/// Something to be laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laying {
    /// Its name.
    pub name: String,
    /// What it is.
    pub what: Laid,
    /// The name before it that stands for the same file.
    pub same_as: Option<String>,
}

/// The names and what they stand for.
#[derive(Debug, Default)]
pub struct Space {
    /// Absolute paths of watched folders with their numbers, the longest first.
    roots: Vec<(String, usize)>,
    nodes: Vec<Node>,
    names: BTreeMap<String, usize>,
}

impl Space {
    /// `roots` are absolute paths, each with the number of the folder it leads to; `found` is the
    /// content of these, parents first.
    pub fn new(mut roots: Vec<(String, usize)>, found: Vec<Found>) -> Space {
        roots.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        let mut space = Space { roots, ..Space::default() };
        let mut known: HashMap<(u64, u64), usize> = HashMap::new();
        for Found { path, what, identity } in found {
            let Some(name) = space.inside(&path) else { continue };
            let node = match identity.and_then(|identity| known.get(&identity)) {
                Some(&node) => node,
                None => space.add(kind_of(&what), Some(what)),
            };
            known.extend(identity.map(|identity| (identity, node)));
            space.nodes[node].names.push(name.clone());
            space.names.insert(name, node);
        }
        space
    }

    fn add(&mut self, kind: Kind, found: Option<Laid>) -> usize {
        let names = Vec::new();
        self.nodes.push(Node { kind, found, names, touched: false, listed: false });
        self.nodes.len() - 1
    }

    /// The name of an absolute path; `None` where it leads out of the watched folders.
    pub fn inside(&self, absolute: &str) -> Option<String> {
        let path = format!("/{}", normal(absolute)?);
        self.roots.iter().find_map(|(root, number)| {
            let rest = path.strip_prefix(root.trim_end_matches('/'))?;
            let is_below = rest.is_empty() || rest.starts_with('/');
            is_below.then(|| format!("{number}{}", rest.trim_end_matches('/')))
        })
    }

    /// An absolute path of a name.
    pub fn absolute(&self, name: &str) -> Option<String> {
        let (number, rest) = name.split_at(name.find('/').unwrap_or(name.len()));
        let number: usize = number.parse().ok()?;
        let (root, _) = self.roots.iter().find(|(_, of)| *of == number)?;
        Some(format!("{root}{rest}"))
    }

    /// Where an absolute path leads; `None`: out of the watched folders.
    pub fn place(&mut self, absolute: &str, follow: bool) -> Option<Place> {
        let written = self.without_ups(absolute)?;
        let real = self.resolved(started(&written), follow)?;
        let node = self.names.get(&real).copied();
        // A missing name is looked for in an existing directory: that is touched, too.
        let ways = std::iter::successors(Some(real.as_str()), |name| parent(name));
        let met = ways.filter_map(|name| self.names.get(name)).next();
        if let Some(&met) = met {
            self.nodes[met].touched = true;
        }
        Some(Place { written, real, node })
    }

    /// Where an absolute path leads that is a directory's: without a link on the way.
    pub fn real_directory(&mut self, absolute: &str) -> Option<String> {
        let written = self.without_ups(absolute)?;
        let real = self.resolved(started(&written), true)?;
        self.absolute(&real)
    }

    /// The name of an absolute path, without `..`: what is before one is resolved, because after a
    /// link it leads elsewhere than it seems.
    fn without_ups(&mut self, absolute: &str) -> Option<String> {
        if let Some((root, mut rest)) = self.parts_inside(absolute)
            && let Some(last_up) = rest.iter().position(|part| part == "..")
        {
            let after: Vec<String> = rest.drain(..last_up).collect();
            if let Some(real) = self.resolved((root, rest), true) {
                return Some(after.iter().rev().fold(real, |name, part| format!("{name}/{part}")));
            }
        }
        self.inside(absolute)
    }

    /// The watched folder that a path begins with, as it is written, and the rest of its parts, the
    /// last one first.
    fn parts_inside(&self, absolute: &str) -> Option<(String, Vec<String>)> {
        self.roots.iter().find_map(|(root, number)| {
            let rest = absolute.strip_prefix(root.trim_end_matches('/'))?;
            let is_below = rest.is_empty() || rest.starts_with('/');
            is_below.then(|| (number.to_string(), parts_backwards(rest)))
        })
    }

    /// The name behind all links of a way: a watched folder, and parts, the last one first; `None`
    /// where it leads out.
    fn resolved(&mut self, way: (String, Vec<String>), follow: bool) -> Option<String> {
        let (mut real, mut rest) = way;
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                real = parent(&real)?.into();
                continue;
            }
            let next = format!("{real}/{part}");
            let node = self.names.get(&next).copied();
            let target = node.and_then(|node| match &self.nodes[node].kind {
                Kind::Link(target) if !rest.is_empty() || follow => Some((node, target.clone())),
                _ => None,
            });
            let Some((node, target)) = target else {
                real = next;
                continue;
            };
            self.nodes[node].touched = true;
            links += 1;
            if links > LINKS_MAX {
                return Some(next);
            }
            if !target.starts_with('/') {
                rest.extend(parts_backwards(&target));
                continue;
            }
            let within = self.parts_inside(&target);
            let (begin, more) =
                within.or_else(|| self.inside(&target).map(|name| started(&name)))?;
            real = begin;
            rest.extend(more);
        }
        Some(real)
    }

    /// The name that a link in the directory `real` leads to.
    fn behind(&self, real: &str, target: &str) -> Option<String> {
        match target.starts_with('/') {
            true => self.inside(target),
            false => normal(&format!("{real}/{target}")).filter(|name| below_a_root(real, name)),
        }
    }

    /// What a link called `real` may have as its target where it is replayed: the way to the same
    /// name; one that leads nowhere, of the same length, where it would lead out.
    pub fn target(&self, real: &str, target: &str) -> String {
        let directory = parent(real).unwrap_or(real);
        let nowhere = || "x".repeat(target.len().max(1));
        match self.behind(directory, target) {
            None => nowhere(),
            Some(_) if !target.starts_with('/') => target.into(),
            // Up to the folder of all watched folders, and down again.
            Some(name) => "../".repeat(directory.split('/').count()) + &name,
        }
    }

    /// What a node is.
    pub fn kind(&self, node: usize) -> &Kind {
        &self.nodes[node].kind
    }

    /// There is something called so.
    pub fn get(&self, real: &str) -> Option<usize> {
        self.names.get(real).copied()
    }

    /// The entries of this directory were read.
    pub fn list(&mut self, node: usize) {
        self.nodes[node].listed = true;
    }

    /// Something is made.
    pub fn make(&mut self, real: &str, kind: Kind) -> usize {
        let node = self.add(kind, None);
        self.name(real, node);
        node
    }

    /// A file without a name is made.
    pub fn make_unnamed(&mut self) -> usize {
        self.add(Kind::File, None)
    }

    /// A node gets a name.
    pub fn name(&mut self, real: &str, node: usize) {
        self.names.insert(real.into(), node);
    }

    /// A name is gone.
    pub fn remove(&mut self, real: &str) {
        self.names.remove(real);
    }

    /// Another name.
    pub fn link(&mut self, from: &str, to: &str) {
        if let Some(node) = self.get(from) {
            self.name(to, node);
        }
    }

    /// A name becomes another, with all below it; what had the new name is gone.
    pub fn rename(&mut self, from: &str, to: &str) {
        let moved = self.take(from);
        self.take(to);
        self.put(to, moved);
    }

    /// Two names change places.
    pub fn exchange(&mut self, one: &str, other: &str) {
        let (first, second) = (self.take(one), self.take(other));
        self.put(other, first);
        self.put(one, second);
    }

    /// Removes a name and all below it: returns the rests of the names, with their nodes.
    fn take(&mut self, name: &str) -> Vec<(String, usize)> {
        // '0' comes after '/'.
        let below = self.names.range(format!("{name}/")..format!("{name}0"));
        let below: Vec<String> = below.map(|(name, _)| name.clone()).collect();
        let all = std::iter::once(name.to_string()).chain(below);
        all.filter_map(|it| Some((it[name.len()..].to_string(), self.names.remove(&it)?))).collect()
    }

    fn put(&mut self, name: &str, taken: Vec<(String, usize)>) {
        self.names.extend(taken.into_iter().map(|(rest, node)| (format!("{name}{rest}"), node)));
    }

    /// What to lay out for a replay: what calls were made on, its parents, and, empty, the other
    /// entries of directories that were read. Parents come first, and of several names of a file
    /// the one that the others link to.
    pub fn entries(&self) -> Vec<Laying> {
        let mut wanted: BTreeSet<&str> = BTreeSet::new();
        let roots = self.roots.iter().map(|(_, number)| number.to_string());
        wanted.extend(
            roots.filter_map(|it| self.names.get_key_value(&it)).map(|(it, _)| it.as_str()),
        );
        let found = self.nodes.iter().filter(|node| node.found.is_some());
        for name in found.clone().filter(|node| node.touched).flat_map(|node| &node.names) {
            wanted.extend(std::iter::successors(Some(name.as_str()), |name| parent(name)));
        }
        let listed = found.clone().filter(|node| node.listed).flat_map(|node| &node.names);
        let listed: BTreeSet<&str> = listed.map(String::as_str).collect();
        let beside = found.flat_map(|node| &node.names);
        let beside = beside.filter(|name| parent(name).is_some_and(|it| listed.contains(it)));
        wanted.extend(beside.map(String::as_str));
        let nodes = self.nodes.iter().enumerate();
        let of: HashMap<&str, usize> = nodes
            .flat_map(|(number, node)| node.names.iter().map(move |name| (name.as_str(), number)))
            .collect();
        let mut first: HashMap<usize, &str> = HashMap::new();
        let laid = wanted.into_iter().filter_map(|name| {
            let number = *of.get(name)?;
            let same_as = first.get(&number).map(|&first| first.into());
            first.entry(number).or_insert(name);
            Some(Laying { name: name.into(), what: self.laid(number, name)?, same_as })
        });
        laid.collect()
    }

    /// What is there at the end, of all that a replay has or should have. `found` is what the
    /// folders hold now, parents first. What no call touched and nobody changed is as it was laid
    /// out.
    pub fn ends(&self, found: Vec<Found>, laid: &[Laying]) -> Vec<Laying> {
        let laid: HashMap<&str, &Laying> = laid.iter().map(|it| (it.name.as_str(), it)).collect();
        let nodes = self.nodes.iter();
        let before: HashMap<&str, &Node> = nodes
            .flat_map(|node| node.names.iter().map(move |name| (name.as_str(), node)))
            .collect();
        let mut first: HashMap<(u64, u64), String> = HashMap::new();
        let mut ends = Vec::new();
        for Found { path, what, identity } in found {
            let Some(name) = self.inside(&path) else { continue };
            let was = before.get(name.as_str());
            if was.is_some_and(|node| !node.touched && node.found.as_ref() == Some(&what)) {
                ends.extend(laid.get(name.as_str()).map(|&it| it.clone()));
                continue;
            }
            let what = match what {
                Laid::File { bytes, mode, .. } => Laid::File { bytes, mode, data: Vec::new() },
                Laid::Link { target } => Laid::Link { target: self.target(&name, &target) },
                what => what,
            };
            let same_as = identity.and_then(|identity| first.get(&identity).cloned());
            if let (Some(identity), None) = (identity, &same_as) {
                first.insert(identity, name.clone());
            }
            ends.push(Laying { name, what, same_as });
        }
        ends
    }

    fn laid(&self, number: usize, name: &str) -> Option<Laid> {
        let Node { found, touched, .. } = &self.nodes[number];
        Some(match found.clone()? {
            Laid::File { mode, .. } if !touched => Laid::File { bytes: 0, mode, data: Vec::new() },
            Laid::Link { target } => Laid::Link { target: self.target(name, &target) },
            what => what,
        })
    }
}

fn kind_of(what: &Laid) -> Kind {
    match what {
        Laid::Directory { .. } => Kind::Directory,
        Laid::File { .. } | Laid::NameOf { .. } => Kind::File,
        Laid::Link { target } => Kind::Link(target.clone()),
        Laid::Special {} => Kind::Special,
    }
}

/// The number of the watched folder, and the parts of the way from there, the last one first.
fn started(name: &str) -> (String, Vec<String>) {
    let (root, rest) = name.split_once('/').unwrap_or((name, ""));
    (root.into(), parts_backwards(rest))
}

/// The parts of a path, the last one first, without empty ones and `.`.
fn parts_backwards(path: &str) -> Vec<String> {
    let parts = path.split('/').rev().filter(|part| !matches!(*part, "" | "."));
    parts.map(String::from).collect()
}

/// Without empty parts, `.` and `..`; `None` where it climbs above its beginning.
fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." if path.starts_with('/') => drop(parts.pop()),
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// `name` is in the same watched folder as `real`.
fn below_a_root(real: &str, name: &str) -> bool {
    !name.is_empty() && real.split('/').next() == name.split('/').next()
}

/// The name of the directory that something lies in.
pub fn parent(name: &str) -> Option<&str> {
    name.rsplit_once('/').map(|(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, identity: Option<(u64, u64)>) -> Found {
        let what = Laid::File { bytes: 5, mode: 0o644, data: Vec::new() };
        Found { path: path.into(), what, identity }
    }

    fn directory(path: &str) -> Found {
        Found { path: path.into(), what: Laid::Directory { mode: 0o755 }, identity: None }
    }

    fn link(path: &str, target: &str) -> Found {
        let what = Laid::Link { target: target.into() };
        Found { path: path.into(), what, identity: None }
    }

    fn space() -> Space {
        let found = vec![
            directory("/srv/app"),
            directory("/srv/app/d"),
            file("/srv/app/d/one", Some((1, 7))),
            file("/srv/app/d/two", None),
            file("/srv/app/same", Some((1, 7))),
            link("/srv/app/to", "d"),
            link("/srv/app/absolute", "/srv/app/d"),
            link("/srv/app/d/out", "/etc/passwd"),
            link("/srv/app/loop", "loop"),
        ];
        Space::new(vec![("/srv/app".into(), 0), ("/alias".into(), 0)], found)
    }

    fn real(space: &mut Space, path: &str) -> Option<String> {
        space.place(path, true).map(|place| place.real)
    }

    #[test]
    fn a_path_leads_through_links_and_out_of_the_folder() {
        let mut space = space();
        for (path, leads) in [
            ("/srv/app", Some("0")),
            ("/srv/app/./d//one", Some("0/d/one")),
            ("/srv/app/to/one", Some("0/d/one")),
            ("/alias/absolute/../to/x", Some("0/d/x")),
            ("/srv/app/d/out", None),
            ("/srv/application", None),
            ("/etc/../srv/app/d", Some("0/d")),
            ("/srv/app/..", None),
            ("/srv/app/loop", Some("0/loop")),
        ] {
            assert_eq!(real(&mut space, path).as_deref(), leads, "{path}");
        }
        let place = space.place("/srv/app/to", false).unwrap();
        assert_eq!((place.written.as_str(), place.real.as_str()), ("0/to", "0/to"));
    }

    #[test]
    fn two_dots_lead_up_from_where_a_link_has_led() {
        let found = vec![
            directory("/srv/app"),
            directory("/srv/app/d"),
            directory("/srv/app/d/e"),
            link("/srv/app/to", "d/e"),
            link("/srv/app/up", "to/../one"),
            link("/srv/app/round", "/srv/app/round/../x"),
        ];
        let mut space = Space::new(vec![("/srv/app".into(), 0)], found);
        for (path, leads) in [
            ("/srv/app/to/../new", Some("0/d/new")),
            ("/srv/app/to/../../new", Some("0/new")),
            ("/srv/app/up", Some("0/d/one")),
            ("/srv/app/d/../to/./x", Some("0/d/e/x")),
            ("/srv/app/d/../../app/x", Some("0/x")),
            ("/srv/app/round", Some("0/round")),
        ] {
            assert_eq!(real(&mut space, path).as_deref(), leads, "{path}");
        }
        let place = space.place("/srv/app/to/../to", false).unwrap();
        assert_eq!((place.written.as_str(), place.node), ("0/d/to", None));
        let folder = space.real_directory("/srv/app/to").unwrap();
        assert_eq!(folder, "/srv/app/d/e");
    }

    #[test]
    fn a_directory_in_which_something_is_looked_for_is_laid_out() {
        let mut space = space();
        space.place("/srv/app/d/new/below", false);
        let names = |space: &Space| -> Vec<String> {
            space.entries().into_iter().map(|it| it.name).collect()
        };
        assert_eq!(names(&space), ["0", "0/d"]);
        space.place("/srv/app/d/two/below", true);
        let entries = space.entries();
        let what = Laid::File { bytes: 5, mode: 0o644, data: Vec::new() };
        assert_eq!((entries[2].name.as_str(), &entries[2].what), ("0/d/two", &what));
    }

    #[test]
    fn a_directory_takes_what_is_in_it_along() {
        let mut space = space();
        space.rename("0/d", "0/e");
        assert!(space.get("0/d").is_none() && space.get("0/d/one").is_none());
        assert_eq!(space.get("0/e/one"), space.get("0/same"));
        space.exchange("0/e", "0/same");
        assert!(space.get("0/same/two").is_some() && space.get("0/e/two").is_none());
        space.link("0/e", "0/f");
        space.remove("0/e");
        assert!(space.get("0/e").is_none() && space.get("0/f").is_some());
    }

    #[test]
    fn what_was_touched_is_laid_out_and_what_was_listed_lies_empty_beside_it() {
        let mut space = space();
        let names = |space: &Space| -> Vec<String> {
            space.entries().into_iter().map(|it| it.name).collect()
        };
        assert_eq!(names(&space), ["0"]);
        space.place("/srv/app/same", true);
        assert_eq!(names(&space), ["0", "0/d", "0/d/one", "0/same"]);
        let node = space.place("/srv/app/d", true).unwrap().node.unwrap();
        space.list(node);
        let entries = space.entries();
        let of = |name: &str| entries.iter().find(|it| it.name == name).unwrap().what.clone();
        assert_eq!(of("0/d/two"), Laid::File { bytes: 0, mode: 0o644, data: Vec::new() });
        assert_eq!(of("0/d/one"), Laid::File { bytes: 5, mode: 0o644, data: Vec::new() });
        let same = entries.iter().find_map(|it| Some((it.name.as_str(), it.same_as.as_deref()?)));
        assert_eq!(same, Some(("0/same", "0/d/one")));
        assert_eq!(of("0/d/out"), Laid::Link { target: "x".repeat(11) });
        assert_eq!(space.target("0/a/b", "/srv/app/d"), "../../0/d");
        assert_eq!(space.target("0/a/b", "../../../etc"), "x".repeat(12));
    }
}
