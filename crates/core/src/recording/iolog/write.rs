//! A recording as an iolog: the reads, writes and syncs of all its threads, in the order in which
//! they ended. A name in the log is one file for ever, so files are numbered: a later file of the
//! same name is another one.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use crate::model::{Action, Call, Gave, Laid, On, Recording};
use crate::recording::Found;
use crate::recording::space::{Kind, Place, Space};

/// What is in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Calls that are in it.
    pub calls: u64,
    /// Calls that such a log has no word for.
    pub left_out: u64,
    /// Files that it finds, by their names in it, with their bytes.
    pub laid: Vec<(String, u64)>,
}

/// Writes it, in version 2: a recording does not tell when calls began, which version 3 asks for.
pub fn write(recording: &Recording, mut out: impl Write) -> io::Result<Written> {
    writeln!(out, "fio version 2 iolog")?;
    let (space, bytes) = before(recording);
    let mut log = Log {
        out,
        paths: &recording.paths,
        space,
        bytes,
        numbers: BTreeMap::new(),
        opens: HashMap::new(),
        open: HashMap::new(),
        maps: HashMap::new(),
        written: Written::default(),
    };
    recording.calls.iter().try_for_each(|call| log.call(call))?;
    log.out.flush()?;
    Ok(log.written)
}

/// What was there before the first call, and the sizes of files.
fn before(recording: &Recording) -> (Space, HashMap<usize, u64>) {
    let Recording { paths, entries, .. } = recording;
    let tops = paths.iter().filter_map(|path| path.split('/').next()?.parse::<usize>().ok());
    let mut roots: Vec<(String, usize)> = tops.map(|top| (format!("/{top}"), top)).collect();
    roots.sort_unstable();
    roots.dedup();
    let found = entries.iter().map(|entry| {
        let identity = match &entry.what {
            Laid::NameOf { path } => Some((0, u64::from(*path))),
            Laid::File { .. } => Some((0, u64::from(entry.path))),
            _ => None,
        };
        let path = format!("/{}", paths[entry.path as usize]);
        Found { path, what: entry.what.clone(), identity }
    });
    let space = Space::new(roots, found.collect());
    let bytes = entries.iter().filter_map(|entry| match entry.what {
        Laid::File { bytes, .. } => Some((space.get(&paths[entry.path as usize])?, bytes)),
        _ => None,
    });
    let bytes = bytes.collect();
    (space, bytes)
}

/// An open file.
struct Open {
    node: usize,
    place: u64,
    appends: bool,
}

struct Log<'a, W> {
    out: W,
    paths: &'a [String],
    space: Space,
    /// How long files are.
    bytes: HashMap<usize, u64>,
    /// Files that were added, with their numbers.
    numbers: BTreeMap<usize, usize>,
    /// How often files are open.
    opens: HashMap<usize, u32>,
    open: HashMap<u32, Open>,
    /// Mapped files, each with where its mapping begins.
    maps: HashMap<u32, (usize, u64)>,
    written: Written,
}

impl<W: Write> Log<'_, W> {
    fn call(&mut self, call: &Call) -> io::Result<()> {
        let gave = match (&call.gave, &call.action) {
            (Gave::Value(gave), _) => *gave,
            (Gave::Unseen, Action::Pread { bytes, .. } | Action::Pwrite { bytes, .. }) => *bytes,
            (Gave::Unseen, _) => 0,
            (Gave::Error(_), _) => {
                self.written.left_out += 1;
                return Ok(());
            }
        };
        match &call.action {
            Action::Open { path, flags, handle: Some(handle), .. } => {
                self.open(*path, flags, *handle)
            }
            Action::Close { handle } => self.close(*handle),
            Action::Read { handle, .. } => self.transfer("read", *handle, None, gave),
            Action::Pread { handle, place, .. } => {
                self.transfer("read", *handle, Some(*place), gave)
            }
            Action::Write { handle, .. } => self.transfer("write", *handle, None, gave),
            Action::Pwrite { handle, place, .. } => {
                self.transfer("write", *handle, Some(*place), gave)
            }
            Action::CopyRange { from, from_place, to, to_place, .. } => {
                self.transfer("read", *from, *from_place, gave)?;
                self.transfer("write", *to, *to_place, gave)
            }
            Action::Sendfile { from, place, to, .. } => {
                self.transfer("read", *from, *place, gave)?;
                self.transfer("write", *to, None, gave)
            }
            Action::Seek { handle, place } => {
                // Every line has its own place.
                self.open.entry(*handle).and_modify(|it| it.place = *place);
                Ok(())
            }
            Action::Fsync { handle } => self.line(*handle, "sync", 0, 0),
            Action::Fdatasync { handle } => self.line(*handle, "datasync", 0, 0),
            Action::Allocate { handle, flags, place, bytes } if flags.contains("PUNCH_HOLE") => {
                self.line(*handle, "trim", *place, *bytes)
            }
            other if other.map().is_some() => self.in_memory(other),
            other => {
                self.written.left_out += 1;
                self.names(other);
                Ok(())
            }
        }
    }

    /// Calls on files in memory: their pages are read and written. A file stays open for its
    /// mapping.
    fn in_memory(&mut self, action: &Action) -> io::Result<()> {
        if let &Action::Map { handle, map, place, .. } = action
            && let Some(&Open { node, .. }) = self.open.get(&handle)
        {
            self.written.calls += 1;
            self.maps.insert(map, (node, place));
            *self.opens.entry(node).or_default() += 1;
            return Ok(());
        }
        let mapped = action.map().and_then(|map| Some((map, *self.maps.get(&map)?)));
        match (action, mapped) {
            (Action::Unmap { .. }, Some((map, (node, _)))) => {
                self.maps.remove(&map);
                self.let_go(node)
            }
            (&Action::Touch { place, bytes, writes, .. }, Some((_, (node, begin)))) => {
                // The last page goes beyond the file's end.
                let size = self.bytes.get(&node).copied().unwrap_or(0);
                let begin = begin.saturating_add(place);
                let bytes = begin.saturating_add(bytes).min(size).saturating_sub(begin);
                let action = if writes { "write" } else { "read" };
                self.line_of((bytes > 0).then_some(node), action, begin, bytes)
            }
            (Action::SyncMap { .. }, Some((_, (node, _)))) if action.is_sync() => {
                self.line_of(Some(node), "datasync", 0, 0)
            }
            _ => self.line_of(None, "", 0, 0),
        }
    }

    fn line(&mut self, handle: u32, action: &str, place: u64, bytes: u64) -> io::Result<()> {
        let node = self.open.get(&handle).map(|open| open.node);
        self.line_of(node, action, place, bytes)
    }

    /// A line, or one more call that is left out.
    fn line_of(
        &mut self,
        node: Option<usize>,
        action: &str,
        place: u64,
        bytes: u64,
    ) -> io::Result<()> {
        let Some(node) = node else {
            self.written.left_out += 1;
            return Ok(());
        };
        self.written.calls += 1;
        writeln!(self.out, "{} {action} {place} {bytes}", name(self.numbers[&node]))
    }

    fn place(&mut self, path: u32, follow: bool) -> Option<Place> {
        self.space.place(&format!("/{}", self.paths[path as usize]), follow)
    }

    /// Opens a file, which was there or is made. A directory has no place in the log.
    fn open(&mut self, path: u32, flags: &str, handle: u32) -> io::Result<()> {
        let has = |flag: &str| flags.split('|').any(|it| it == flag);
        let stays = has("O_NOFOLLOW") || has("O_CREAT") && has("O_EXCL");
        let place = self.place(path, !stays);
        let node = match place {
            Some(_) if has("O_TMPFILE") => Some(self.space.make_unnamed()),
            Some(Place { node: Some(node), .. }) => Some(node),
            Some(Place { real, .. }) if has("O_CREAT") => Some(self.space.make(&real, Kind::File)),
            _ => None,
        };
        let Some(node) = node.filter(|node| *self.space.kind(*node) == Kind::File) else {
            self.written.left_out += 1;
            return Ok(());
        };
        let next = self.numbers.len();
        let number = *self.numbers.entry(node).or_insert(next);
        let name = name(number);
        if number == next {
            writeln!(self.out, "{name} add")?;
            let laid = self.bytes.get(&node).filter(|bytes| **bytes > 0);
            self.written.laid.extend(laid.map(|bytes| (name.clone(), *bytes)));
        }
        if has("O_TRUNC") {
            self.bytes.insert(node, 0);
        }
        self.open.insert(handle, Open { node, place: 0, appends: has("O_APPEND") });
        let opens = self.opens.entry(node).or_default();
        *opens += 1;
        self.written.calls += 1;
        match *opens {
            1 => writeln!(self.out, "{name} open"),
            _ => Ok(()),
        }
    }

    fn close(&mut self, handle: u32) -> io::Result<()> {
        let Some(Open { node, .. }) = self.open.remove(&handle) else {
            self.written.left_out += 1;
            return Ok(());
        };
        self.let_go(node)
    }

    /// A descriptor or a mapping of a file is gone.
    fn let_go(&mut self, node: usize) -> io::Result<()> {
        self.written.calls += 1;
        let opens = self.opens.entry(node).or_insert(1);
        *opens -= 1;
        match *opens {
            0 => writeln!(self.out, "{} close", name(self.numbers[&node])),
            _ => Ok(()),
        }
    }

    /// Bytes are read or written, at a place of the call's own or at that of the open file.
    fn transfer(
        &mut self,
        action: &str,
        handle: u32,
        place: Option<u64>,
        bytes: u64,
    ) -> io::Result<()> {
        let Some(open) = self.open.get_mut(&handle).filter(|_| bytes > 0) else {
            self.written.left_out += 1;
            return Ok(());
        };
        let size = self.bytes.entry(open.node).or_default();
        // open(2), under BUGS: at the end, whatever place pwrite is given.
        let ends = action == "write" && open.appends;
        let begin = if ends { *size } else { place.unwrap_or(open.place) };
        let end = begin.saturating_add(bytes);
        if place.is_none() {
            open.place = end;
        }
        if action == "write" {
            *size = end.max(*size);
        }
        self.line(handle, action, begin, bytes)
    }

    /// What a call that is not in the log makes of names and sizes.
    fn names(&mut self, action: &Action) {
        match action {
            &Action::Truncate { on, bytes } => {
                let node = match on {
                    On::Path(path) => self.place(path, true).and_then(|place| place.node),
                    On::Handle(handle) => self.open.get(&handle).map(|open| open.node),
                };
                self.bytes.extend(node.map(|node| (node, bytes)));
            }
            Action::Allocate { handle, flags, place, bytes } if !flags.contains("KEEP_SIZE") => {
                if let Some(open) = self.open.get(handle) {
                    let size = self.bytes.entry(open.node).or_default();
                    *size = place.saturating_add(*bytes).max(*size);
                }
            }
            &Action::LinkOpen { handle, to } => {
                let node = self.open.get(&handle).map(|open| open.node);
                if let (Some(node), Some(to)) = (node, self.place(to, false)) {
                    self.space.name(&to.real, node);
                }
            }
            Action::Mkdir { path, .. } => self.makes(*path, Kind::Directory),
            Action::Symlink { target, path } => self.makes(*path, Kind::Link(target.clone())),
            Action::Mknod { path } => self.makes(*path, Kind::Special),
            &(Action::Unlink { path } | Action::Rmdir { path }) => {
                if let Some(place) = self.place(path, false) {
                    self.space.remove(&place.real);
                }
            }
            &Action::Link { from, to } => {
                if let Some([from, to]) = self.both(from, to) {
                    self.space.link(&from.real, &to.real);
                }
            }
            Action::Rename { from, to, flags } => match self.both(*from, *to) {
                Some([from, to]) if flags.contains("RENAME_EXCHANGE") => {
                    self.space.exchange(&from.real, &to.real);
                }
                // Two names of one file stay as they are: rename(2).
                Some([from, to]) if from.node != to.node => {
                    self.space.rename(&from.real, &to.real);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn makes(&mut self, path: u32, kind: Kind) {
        if let Some(place) = self.place(path, false) {
            self.space.make(&place.real, kind);
        }
    }

    fn both(&mut self, from: u32, to: u32) -> Option<[Place; 2]> {
        Some([self.place(from, false)?, self.place(to, false)?])
    }
}

/// The name of a file in the log.
fn name(number: usize) -> String {
    format!("file{number}")
}
