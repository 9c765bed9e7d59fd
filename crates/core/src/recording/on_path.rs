//! System calls on paths.

use super::calls::{Named, Result, changed};
use super::line::{Ended, quoted};
use super::order::Key;
use super::space::{Kind, Place};
use super::{Translated, Watch, why};
use crate::model::{Action, Gave, On};

impl Watch {
    /// Calls on paths.
    pub(super) fn on_path(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let (own, at) = (call.path(0), call.path_at(0));
        let stays = |place| call.has(place, "AT_SYMLINK_NOFOLLOW");
        let (named, follow) = match call.name {
            "stat" | "access" | "chmod" | "chown" | "truncate" | "utime" | "utimes"
            | "setxattr" | "getxattr" | "listxattr" | "removexattr" => (own, true),
            "lstat" | "readlink" | "lchown" | "lsetxattr" | "lgetxattr" | "llistxattr"
            | "lremovexattr" => (own, false),
            "newfstatat" | "utimensat" | "faccessat2" | "fchmodat2" => (at, !stays(3)),
            "statx" => (at, !stays(2)),
            "fchownat" => (at, !stays(4)),
            "faccessat" | "fchmodat" | "futimesat" => (at, true),
            "readlinkat" => (at, false),
            _ => return self.on_name(thread, call),
        };
        let place = self.seen(thread, call, named, follow)?;
        let keys = self.looks(&place);
        // Where something is changed, what a link leads to: a replay follows none then.
        let looks = ["stat", "access", "readlink"].iter().any(|it| call.name.contains(it));
        let path = self.path(if looks { &place.written } else { &place.real });
        let mode_at = if named.directory.is_some() { 2 } else { 1 };
        let on = On::Path(path);
        let action = match call.name {
            "stat" | "lstat" | "newfstatat" | "statx" => Action::Stat { on, follow },
            "access" | "faccessat" | "faccessat2" => {
                Action::Access { path, flags: call.argument(mode_at).into() }
            }
            "readlink" | "readlinkat" => Action::Readlink { path },
            "chmod" | "fchmodat" | "fchmodat2" => {
                let action = Action::Chmod { on, mode: call.number(mode_at)? as u32 };
                return altered(call, action, keys);
            }
            "chown" | "lchown" | "fchownat" => return altered(call, Action::Chown { on }, keys),
            "utime" | "utimes" | "utimensat" | "futimesat" => {
                return altered(call, Action::Utimes { on }, keys);
            }
            "truncate" => {
                return altered(call, Action::Truncate { on, bytes: call.number(1)? }, keys);
            }
            _ => {
                let is_link = place.node.map(|node| matches!(self.space.kind(node), Kind::Link(_)));
                if is_link == Some(true) {
                    return Err(of_link(call));
                }
                let (action, changes, gave) = self.attribute(call, on)?;
                let keys = if changes { changed(keys) } else { keys };
                return Ok(Some(Translated { action, gave, keys }));
            }
        };
        Ok(Some(Translated { action, gave: call.gave()?, keys }))
    }

    /// Calls that make names, take them away or change them.
    fn on_name(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let (own, at) = (call.path(0), call.path_at(0));
        let second = |directory: bool| match directory {
            true => call.path_at(2),
            false => call.path(1),
        };
        match call.name {
            "mkdir" => self.made_directory(thread, call, own, 1),
            "mkdirat" => self.made_directory(thread, call, at, 2),
            "rmdir" => self.removed(thread, call, own, true),
            "unlink" => self.removed(thread, call, own, false),
            "unlinkat" => self.removed(thread, call, at, call.has(2, "AT_REMOVEDIR")),
            "rename" => self.renamed(thread, call, [own, second(false)], ""),
            "renameat" => self.renamed(thread, call, [at, second(true)], ""),
            "renameat2" => self.renamed(thread, call, [at, second(true)], call.argument(4)),
            "link" => self.linked(thread, call, [own, second(false)]),
            "linkat" if call.argument(4) == "0" => self.linked(thread, call, [at, second(true)]),
            "linkat" => self.linked_open(thread, call),
            "symlink" => self.linked_to(thread, call, call.path(1)),
            "symlinkat" => self.linked_to(thread, call, call.path_at(1)),
            _ => Err(why::UNKNOWN),
        }
    }

    fn made_directory(
        &mut self,
        thread: u32,
        call: &Ended,
        named: Named,
        mode_at: usize,
    ) -> Result<Option<Translated>> {
        let place = self.unseen_yet(thread, call, named)?;
        let gave = call.gave()?;
        let mode = self.processes.masked(thread, call.number(mode_at)? as u32);
        let keys = match call.succeeded() {
            true => self.changes(&place),
            false => self.looks(&place),
        };
        if call.succeeded() {
            self.space.make(&place.real, Kind::Directory);
        }
        let path = self.path(&place.written);
        Ok(Some(Translated { action: Action::Mkdir { path, mode }, gave, keys }))
    }

    /// A directory could not be removed because it is not empty: its content is laid out.
    fn list_if_not_empty(&mut self, call: &Ended, place: &Place) -> bool {
        let is_full = ["ENOTEMPTY", "EEXIST"].iter().any(|error| call.failed_with(error));
        let node = place.node.filter(|node| *self.space.kind(*node) == Kind::Directory);
        let Some(node) = node.filter(|_| is_full) else { return false };
        self.space.list(node);
        true
    }

    fn removed(
        &mut self,
        thread: u32,
        call: &Ended,
        named: Named,
        directory: bool,
    ) -> Result<Option<Translated>> {
        let place = self.seen(thread, call, named, false)?;
        let gave = call.gave()?;
        let mut keys = match call.succeeded() {
            true => self.changes(&place),
            false => self.looks(&place),
        };
        self.list_if_not_empty(call, &place);
        if directory {
            keys.push((Key::Listing(self.order.name(&place.real)), false));
        }
        if call.succeeded() {
            self.space.remove(&place.real);
        }
        let path = self.path(&place.written);
        let action = match directory {
            true => Action::Rmdir { path },
            false => Action::Unlink { path },
        };
        Ok(Some(Translated { action, gave, keys }))
    }

    fn renamed(
        &mut self,
        thread: u32,
        call: &Ended,
        [from, to]: [Named; 2],
        flags: &str,
    ) -> Result<Option<Translated>> {
        let from = self.seen(thread, call, from, false)?;
        let to = self.place_of(thread, call, to, false)?;
        let gave = call.gave()?;
        let succeeded = call.succeeded();
        let mut keys = if succeeded { self.changes(&from) } else { self.looks(&from) };
        keys.extend(if succeeded { self.changes(&to) } else { self.looks(&to) });
        if self.list_if_not_empty(call, &to) {
            keys.push((Key::Listing(self.order.name(&to.real)), false));
        }
        let flags = if flags == "0" { "" } else { flags };
        // Two names of one file stay as they are: rename(2).
        if succeeded && from.node != to.node {
            match flags.contains("RENAME_EXCHANGE") {
                true => self.space.exchange(&from.real, &to.real),
                false => self.space.rename(&from.real, &to.real),
            }
        }
        let (from, to) = (self.path(&from.written), self.path(&to.written));
        let action = Action::Rename { from, to, flags: flags.into() };
        Ok(Some(Translated { action, gave, keys }))
    }

    fn linked(
        &mut self,
        thread: u32,
        call: &Ended,
        [from, to]: [Named; 2],
    ) -> Result<Option<Translated>> {
        let to = self.unseen_yet(thread, call, to)?;
        let from = self.seen(thread, call, from, false)?;
        let gave = call.gave()?;
        let mut keys = changed(self.looks(&from));
        keys.extend(if call.succeeded() { self.changes(&to) } else { self.looks(&to) });
        if call.succeeded() {
            self.space.link(&from.real, &to.real);
        }
        let (from, to) = (self.path(&from.written), self.path(&to.written));
        Ok(Some(Translated { action: Action::Link { from, to }, gave, keys }))
    }

    /// An open file is given a name: one that was made without (open(2), O_TMPFILE).
    fn linked_open(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let from = quoted(call.argument(1)).ok_or(why::UNKNOWN)?;
        let by_path = ["/proc/self/fd/", "/dev/fd/"].iter().find_map(|it| from.strip_prefix(it));
        let number = match (call.argument(4), by_path) {
            ("AT_EMPTY_PATH", _) if from.is_empty() => call.argument(0),
            ("AT_SYMLINK_FOLLOW", Some(number)) => number,
            _ => return Err(why::UNKNOWN),
        };
        let handle = self.handle(thread, number)?;
        let to = self.unseen_yet(thread, call, call.path_at(2))?;
        let gave = call.gave()?;
        let mut keys = self.of_handle(handle, false, true);
        keys.extend(if call.succeeded() { self.changes(&to) } else { self.looks(&to) });
        if call.succeeded() {
            self.space.name(&to.real, self.node(handle));
        }
        let to = self.path(&to.written);
        Ok(Some(Translated { action: Action::LinkOpen { handle, to }, gave, keys }))
    }

    fn linked_to(&mut self, thread: u32, call: &Ended, named: Named) -> Result<Option<Translated>> {
        let place = self.unseen_yet(thread, call, named)?;
        let target = quoted(call.argument(0)).ok_or(why::UNKNOWN)?;
        let gave = call.gave()?;
        let keys = if call.succeeded() { self.changes(&place) } else { self.looks(&place) };
        if call.succeeded() {
            self.space.make(&place.real, Kind::Link(target.clone()));
        }
        // How far up the target leads depends on where the link is.
        let (target, path) = (self.space.target(&place.real, &target), self.path(&place.real));
        Ok(Some(Translated { action: Action::Symlink { target, path }, gave, keys }))
    }

    /// A pipe or a socket with a name.
    pub(super) fn special(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let address;
        let (named, mode) = match call.name {
            "bind" => {
                let rest = call.argument(1).split("sun_path=").nth(1).ok_or(why::PIPES)?;
                address = rest.trim_end_matches('}');
                (Named { directory: None, path: address }, "S_IFSOCK")
            }
            "mknod" => (call.path(0), call.argument(1)),
            _ => (call.path_at(0), call.argument(2)),
        };
        let place = self.unseen_yet(thread, call, named)?;
        if !mode.contains("S_IFSOCK") && !mode.contains("S_IFIFO") || !call.succeeded() {
            return Err(why::UNKNOWN);
        }
        let keys = self.changes(&place);
        self.space.make(&place.real, Kind::Special);
        let path = self.path(&place.written);
        Ok(Some(Translated { action: Action::Mknod { path }, gave: Gave::default(), keys }))
    }
}

/// What a call on a symbolic link's attributes counts as: one that sets them is missing.
fn of_link(call: &Ended) -> &'static str {
    if call.name == "lsetxattr" && call.succeeded() { why::UNKNOWN } else { why::OF_LINKS }
}

/// A call that changes what a path leads to.
fn altered(call: &Ended, action: Action, keys: Vec<(Key, bool)>) -> Result<Option<Translated>> {
    Ok(Some(Translated { action, gave: call.gave()?, keys: changed(keys) }))
}
