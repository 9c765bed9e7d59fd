//! System calls as strace writes them, turned into the calls of a recording.

use super::line::{Ended, Returned, descriptor, number, quoted};
use super::order::Key;
use super::processes::Descriptor;
use super::space::{Kind, Place, parent};
use super::{Handle, Translated, Watch, why};
use crate::model::{Action, Gave, On};

pub(super) type Result<T> = std::result::Result<T, &'static str>;

/// Flags of open(2) that mean nothing to a replay.
const IDLE_FLAGS: [&str; 6] =
    ["O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK", "O_LARGEFILE", "O_ASYNC", "O_NOATIME"];

/// Flags of open(2) that a replay knows.
const OPEN_FLAGS: [&str; 14] = [
    "O_RDONLY",
    "O_WRONLY",
    "O_RDWR",
    "O_CREAT",
    "O_EXCL",
    "O_TRUNC",
    "O_APPEND",
    "O_DIRECT",
    "O_SYNC",
    "O_DSYNC",
    "O_DIRECTORY",
    "O_NOFOLLOW",
    "O_PATH",
    "O_TMPFILE",
];

/// Those that fcntl(2) changes, and that make a difference.
pub const SETTABLE_FLAGS: [&str; 2] = ["O_APPEND", "O_DIRECT"];

/// Requests of ioctl(2) that change nothing of a file, by a part of their names.
const IDLE_REQUESTS: [&str; 13] = [
    "GET", "TCGETS", "TIOC", "FIONREAD", "FIOCLEX", "FIONCLEX", "FIONBIO", "FIOASYNC", "FIEMAP",
    "FIBMAP", "SEARCH", "INFO", "LOOKUP",
];

/// Flags of fallocate(2) that a replay knows.
pub const ALLOCATE_FLAGS: [&str; 6] = [
    "FALLOC_FL_KEEP_SIZE",
    "FALLOC_FL_PUNCH_HOLE",
    "FALLOC_FL_COLLAPSE_RANGE",
    "FALLOC_FL_ZERO_RANGE",
    "FALLOC_FL_INSERT_RANGE",
    "FALLOC_FL_UNSHARE_RANGE",
];

/// Advice of posix_fadvise(2) that a replay knows, by its number: include/uapi/linux/fadvise.h.
pub const ADVICE: [&str; 6] = [
    "POSIX_FADV_NORMAL",
    "POSIX_FADV_RANDOM",
    "POSIX_FADV_SEQUENTIAL",
    "POSIX_FADV_WILLNEED",
    "POSIX_FADV_DONTNEED",
    "POSIX_FADV_NOREUSE",
];

/// Errors that a replay knows.
pub const ERRORS: [&str; 26] = [
    "EBADF",
    "EBUSY",
    "EDEADLK",
    "EEXIST",
    "EFAULT",
    "EFBIG",
    "EINVAL",
    "EIO",
    "EISDIR",
    "ELOOP",
    "EMLINK",
    "ENAMETOOLONG",
    "ENODATA",
    "ENODEV",
    "ENOENT",
    "ENOTDIR",
    "ENOTEMPTY",
    "ENXIO",
    "EOVERFLOW",
    "ERANGE",
    "ESPIPE",
    "ESTALE",
    "ETXTBSY",
    "EUCLEAN",
    "E2BIG",
    "ENOMEM",
];

/// A path that a call is given: as the first argument of its own, or after a directory's.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub directory: Option<&'a str>,
    pub path: &'a str,
}

impl Named<'_> {
    /// It ends in `/`, `.` or `..`, as only a directory's can. Recorded paths end in a name.
    fn ends_as_a_directory(&self) -> bool {
        let path = quoted(self.path).unwrap_or_default();
        matches!(path.rsplit('/').next(), Some("" | "." | ".."))
    }
}

impl Ended<'_> {
    pub(super) fn argument(&self, place: usize) -> &str {
        self.arguments.get(place).copied().unwrap_or_default()
    }

    pub(super) fn number(&self, place: usize) -> Result<u64> {
        number(self.argument(place)).ok_or(why::UNKNOWN)
    }

    pub(super) fn has(&self, place: usize, flag: &str) -> bool {
        self.argument(place).split('|').any(|it| it == flag)
    }

    pub(super) fn times_ns(&self) -> [u64; 2] {
        [self.start_ns, self.end_ns]
    }

    pub(super) fn succeeded(&self) -> bool {
        matches!(self.returned, Returned::Value(0.., _))
    }

    pub(super) fn failed_with(&self, error: &str) -> bool {
        self.returned == Returned::Error(error)
    }

    /// What it gave, unless it would be something else in a replay.
    pub(super) fn gave(&self) -> Result<Gave> {
        Ok(match &self.returned {
            Returned::Value(value @ 0.., _) => Gave::Value(value.cast_unsigned()),
            Returned::Error("EACCES" | "EPERM" | "EROFS") => return Err(why::RIGHTS),
            Returned::Error("ENOSPC" | "EDQUOT" | "EMFILE" | "ENFILE") => return Err(why::ROOM),
            // The application went on in another way, which is in the recording, too.
            Returned::Error("EOPNOTSUPP" | "ENOSYS" | "ENOTTY" | "EXDEV") => {
                return Err(why::UNSUPPORTED);
            }
            Returned::Error("EINTR" | "EAGAIN") => return Err(why::INTERRUPTED),
            Returned::Error(error) if ERRORS.contains(error) => Gave::Error((*error).into()),
            Returned::Error(error) if is_error(error) => return Err(why::UNKNOWN),
            Returned::Value(..) | Returned::Error(_) | Returned::Nothing => {
                return Err(why::INTERRUPTED);
            }
        })
    }

    pub(super) fn path(&self, place: usize) -> Named<'_> {
        Named { directory: None, path: self.argument(place) }
    }

    /// A directory's descriptor, and then the path.
    pub(super) fn path_at(&self, place: usize) -> Named<'_> {
        Named { directory: Some(self.argument(place)), path: self.argument(place + 1) }
    }

    /// An offset that a call is given a pointer to: `[4096]`, `[0] => [4096]`; `None` of NULL.
    pub(super) fn offset(&self, place: usize) -> Result<Option<u64>> {
        match self.argument(place) {
            "NULL" => Ok(None),
            text => {
                let inner = text.strip_prefix('[').and_then(|rest| rest.split(']').next());
                inner.and_then(number).map(Some).ok_or(why::UNKNOWN)
            }
        }
    }
}

impl Watch {
    pub(super) fn absolute(&self, thread: u32, path: &str) -> String {
        match path.starts_with('/') {
            true => path.into(),
            false => format!("{}/{path}", self.processes.folder(thread)),
        }
    }

    /// Where the path of a call leads.
    pub(super) fn place(&mut self, thread: u32, named: Named, follow: bool) -> Result<Place> {
        let path = quoted(named.path).ok_or(why::ELSEWHERE)?;
        let from = named.directory.and_then(descriptor).filter(|(fd, _)| *fd >= 0);
        let absolute = match (path.starts_with('/'), from) {
            (false, Some((fd, folder))) => {
                let folder = folder.or_else(|| self.long_path(thread, fd));
                format!("{}/{path}", folder.ok_or_else(|| nameless(named.directory))?)
            }
            _ => self.absolute(thread, &path),
        };
        self.space.place(&absolute, follow).ok_or(why::ELSEWHERE)
    }

    /// The path of a descriptor that strace shows without one, because it is longer than
    /// readlink(2) gives: the one it was opened by.
    pub(super) fn long_path(&self, thread: u32, fd: i32) -> Option<String> {
        let handle = self.processes.descriptor(thread, fd)?.handle;
        self.space.absolute(&self.handles[handle as usize].real)
    }

    /// The open file that a descriptor is of.
    pub(super) fn handle(&self, thread: u32, argument: &str) -> Result<u32> {
        let (fd, path) = descriptor(argument).ok_or(why::UNKNOWN)?;
        match (self.processes.descriptor(thread, fd), path) {
            (Some(it), _) => Ok(it.handle),
            (None, Some(path)) if self.space.inside(&path).is_some() => Err(why::PASSED),
            (None, Some(_)) => Err(why::ELSEWHERE),
            (None, None) => Err(nameless(Some(argument))),
        }
    }

    pub(super) fn node(&self, handle: u32) -> usize {
        self.handles[handle as usize].node
    }

    /// What a call on a path has in common with others: it looks at every name on its way.
    pub(super) fn looks(&mut self, place: &Place) -> Vec<(Key, bool)> {
        let names = std::iter::successors(Some(place.real.as_str()), |name| parent(name));
        let mut keys: Vec<_> =
            names.map(|name| (Key::Name(self.order.name(name)), false)).collect();
        keys.extend(place.node.map(|node| (Key::Content(node), false)));
        keys
    }

    /// [`Self::looks`] of a call that makes the name, or takes it away.
    pub(super) fn changes(&mut self, place: &Place) -> Vec<(Key, bool)> {
        let mut keys = self.looks(place);
        keys[0].1 = true;
        if let Some(parent) = parent(&place.real) {
            keys.push((Key::Listing(self.order.name(parent)), true));
        }
        changed(keys)
    }

    /// What a call on an open file has in common with others.
    pub(super) fn of_handle(&self, handle: u32, moves: bool, changes: bool) -> Vec<(Key, bool)> {
        vec![(Key::Handle(handle), moves), (Key::Content(self.node(handle)), changes)]
    }

    /// A call on an open file.
    fn on_handle(
        &self,
        call: &Ended,
        handle: u32,
        [moves, changes]: [bool; 2],
        action: Action,
    ) -> Result<Option<Translated>> {
        let keys = self.of_handle(handle, moves, changes);
        Ok(Some(Translated { action, gave: call.gave()?, keys }))
    }

    /// The call as it goes into the recording; `None` where nothing is to be recorded, and what to
    /// count it as where it can't be.
    pub(super) fn translated(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let first = call.argument(0);
        let mode = |place| call.number(place).ok();
        match call.name {
            "open" => self.opened(thread, call, call.path(0), call.argument(1), mode(2)),
            "creat" => self.opened(thread, call, call.path(0), "O_WRONLY|O_CREAT|O_TRUNC", mode(1)),
            "openat" => self.opened(thread, call, call.path_at(0), call.argument(2), mode(3)),
            "openat2" => {
                let field = |name: &str| {
                    let rest = call.argument(2).split(name).nth(1).unwrap_or_default();
                    rest.split([',', '}']).next().unwrap_or_default()
                };
                let mode = number(field("mode="));
                self.opened(thread, call, call.path_at(0), field("flags="), mode)
            }
            "close" => {
                if first.contains("[io_uring]") && call.succeeded() {
                    self.ring_closed(thread, call, first);
                }
                self.handle(thread, first)?;
                let fd = descriptor(first).map_or(-1, |(fd, _)| fd);
                let closed = self.processes.close(thread, |number, _| number == fd);
                self.close(thread, call.times_ns(), closed);
                Ok(None)
            }
            "mmap" | "munmap" | "mremap" | "msync" | "madvise" | "mlock" | "mlock2" => {
                self.on_memory(thread, call)
            }
            "io_uring_setup" | "io_uring_enter" | "io_uring_register" => {
                self.of_rings(thread, call)
            }
            "io_submit" => self.submitted(thread, call),
            "bind" | "mknod" | "mknodat" => self.special(thread, call),
            "ioctl" => self.controlled(thread, call),
            "fcntl" => self.flags_set(thread, call),
            "copy_file_range" | "splice" | "sendfile" | "sendfile64" => self.copied(thread, call),
            "sync" => {
                let gave = call.gave()?;
                Ok(Some(Translated { action: Action::Sync {}, gave, keys: Vec::new() }))
            }
            _ => match self.on_descriptor(thread, call)? {
                Some(translated) => Ok(Some(translated)),
                None => self.on_path(thread, call),
            },
        }
    }

    /// Calls whose first argument is a descriptor of a file.
    fn on_descriptor(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let named = call.argument(1);
        let by_name = ["newfstatat", "statx", "utimensat"].contains(&call.name);
        if by_name && !(named == "\"\"" || named == "NULL") || !ON_DESCRIPTOR.contains(&call.name) {
            return Ok(None);
        }
        let handle = self.handle(thread, call.argument(0))?;
        let number = |place| call.number(place);
        let (mode, on) = (number(1).unwrap_or(0) as u32, On::Handle(handle));
        let flags = |place| call.argument(place).to_string();
        if let Some((action, touches)) = transfer(call, handle)? {
            return self.transferred(thread, call, handle, (action, touches));
        }
        let (action, touches) = match call.name {
            "lseek" | "_llseek" => return self.sought(call, handle),
            "fsync" => (Action::Fsync { handle }, [false, true]),
            "fdatasync" => (Action::Fdatasync { handle }, [false, true]),
            "syncfs" => (Action::Syncfs { handle }, [false, false]),
            "sync_file_range" => {
                let (place, bytes) = (number(1)?, number(2)?);
                (Action::SyncRange { handle, place, bytes, flags: flags(3) }, [false, true])
            }
            "ftruncate" => (Action::Truncate { on, bytes: number(1)? }, [false, true]),
            "fallocate" if !are_known(call.argument(1), &ALLOCATE_FLAGS) => {
                return Err(why::UNKNOWN);
            }
            "fadvise64" if !are_known(call.argument(3), &ADVICE) => return Err(why::UNKNOWN),
            "fallocate" => {
                let (place, bytes) = (number(2)?, number(3)?);
                (Action::Allocate { handle, flags: flags(1), place, bytes }, [false, true])
            }
            "fadvise64" => {
                let (place, bytes) = (number(1)?, number(2)?);
                (Action::Advise { handle, advice: flags(3), place, bytes }, [false, false])
            }
            "readahead" => {
                let (place, bytes) = (number(1)?, number(2)?);
                let advice = "POSIX_FADV_WILLNEED".into();
                (Action::Advise { handle, advice, place, bytes }, [false, false])
            }
            "getdents" | "getdents64" => return self.listed(call, handle),
            "fchmod" => (Action::Chmod { on, mode }, [false, true]),
            "fchown" => (Action::Chown { on }, [false, true]),
            "fstat" | "newfstatat" | "statx" => (Action::Stat { on, follow: true }, [false, false]),
            "utimensat" => (Action::Utimes { on }, [false, true]),
            _ => {
                return self.attribute(call, on).map(|(action, changes, gave)| {
                    let keys = self.of_handle(handle, false, changes);
                    Some(Translated { action, gave, keys })
                });
            }
        };
        self.on_handle(call, handle, touches, action)
    }

    /// A read or a write, and the sync that its flags ask for.
    fn transferred(
        &mut self,
        thread: u32,
        call: &Ended,
        handle: u32,
        (action, touches): (Action, [bool; 2]),
    ) -> Result<Option<Translated>> {
        let sync = match call.name {
            "pwritev2" => WriteFlags::of(call.argument(4)).sync_of(handle)?,
            _ => None,
        };
        let transferred = self.on_handle(call, handle, touches, action)?;
        let (Some(action), true, Some(written)) = (sync, call.succeeded(), &transferred) else {
            return Ok(transferred);
        };
        let keys = written.keys.clone();
        transferred.into_iter().for_each(|it| self.enter(thread, call.times_ns(), it));
        Ok(Some(Translated { action, gave: Gave::Unseen, keys }))
    }

    fn sought(&self, call: &Ended, handle: u32) -> Result<Option<Translated>> {
        let place = match call.returned {
            // _llseek gives the place by its third argument.
            Returned::Value(0.., _) if call.name == "_llseek" => {
                call.offset(2)?.ok_or(why::UNKNOWN)?
            }
            Returned::Value(value @ 0.., _) => value.cast_unsigned(),
            // If it found no data, or no hole, there is nothing to replay.
            _ => return call.gave().and(Err(why::UNSUPPORTED)),
        };
        // Places in a directory mean something to its own file system only.
        let is_directory = *self.space.kind(self.node(handle)) == Kind::Directory;
        if is_directory && place > 0 {
            return Err(why::UNKNOWN);
        }
        self.on_handle(call, handle, [true, false], Action::Seek { handle, place })
    }

    fn listed(&mut self, call: &Ended, handle: u32) -> Result<Option<Translated>> {
        self.space.list(self.node(handle));
        let mut keys = self.of_handle(handle, true, false);
        let real = self.handles[handle as usize].real.clone();
        keys.push((Key::Listing(self.order.name(&real)), false));
        let action = Action::List { handle, bytes: call.number(2)? };
        Ok(Some(Translated { action, gave: call.gave()?, keys }))
    }

    /// Where the path of a call leads, unless the call was refused for how it ends: without that
    /// end a replay would be let do it.
    pub(super) fn place_of(
        &mut self,
        thread: u32,
        call: &Ended,
        named: Named,
        follow: bool,
    ) -> Result<Place> {
        let place = self.place(thread, named, follow)?;
        match named.ends_as_a_directory() && matches!(call.returned, Returned::Error(_)) {
            true => Err(why::PATH_END),
            false => Ok(place),
        }
    }

    /// The place of a path that a call does not change: the call's result must match what is there
    /// by the trace so far.
    pub(super) fn seen(
        &mut self,
        thread: u32,
        call: &Ended,
        named: Named,
        follow: bool,
    ) -> Result<Place> {
        let place = self.place_of(thread, call, named, follow)?;
        let is_there = place.node.is_some();
        match call.succeeded() && !is_there || call.failed_with("ENOENT") && is_there {
            true => Err(why::OTHERS),
            false => Ok(place),
        }
    }

    /// The place of a path that a call makes.
    pub(super) fn unseen_yet(&mut self, thread: u32, call: &Ended, named: Named) -> Result<Place> {
        let place = self.place_of(thread, call, named, false)?;
        let is_there = place.node.is_some();
        match call.succeeded() && is_there || call.failed_with("EEXIST") && !is_there {
            true => Err(why::OTHERS),
            false => Ok(place),
        }
    }

    fn opened(
        &mut self,
        thread: u32,
        call: &Ended,
        named: Named,
        flags: &str,
        mode: Option<u64>,
    ) -> Result<Option<Translated>> {
        let all: Vec<&str> = flags.split('|').filter(|flag| !IDLE_FLAGS.contains(flag)).collect();
        let has = |flag: &str| all.contains(&flag);
        let (creates, exclusive) = (has("O_CREAT"), has("O_EXCL"));
        let stays = has("O_NOFOLLOW") || creates && exclusive;
        let mut place = match self.place_of(thread, call, named, !stays) {
            Ok(place) => place,
            Err(wrong) => self.place_opened(call).ok_or(wrong)?,
        };
        if let Returned::Value(_, Some(path)) = &call.returned
            && self.space.inside(path).is_none()
        {
            return Err(why::ELSEWHERE);
        }
        if all.iter().any(|flag| !OPEN_FLAGS.contains(flag)) {
            return Err(why::UNKNOWN);
        }
        let gave = call.gave()?;
        let is_there = place.node.is_some();
        let others = match &gave {
            Gave::Value(_) | Gave::Unseen => {
                creates && exclusive && is_there || !creates && !is_there
            }
            Gave::Error(error) => error == "ENOENT" && is_there || error == "EEXIST" && !is_there,
        };
        if others {
            return Err(why::OTHERS);
        }
        if place.node.is_some_and(|node| *self.space.kind(node) == Kind::Special) {
            return Err(why::PIPES);
        }
        let makes = call.succeeded() && !is_there;
        let mut keys = if makes { self.changes(&place) } else { self.looks(&place) };
        if makes {
            place.node = Some(self.space.make(&place.real, Kind::File));
        } else if has("O_TRUNC") && call.succeeded() {
            keys = changed(keys);
        }
        let (flags, path) = (all.join("|"), self.path(&place.written));
        let mode = self.processes.masked(thread, mode.unwrap_or(0o600) as u32);
        let handle = self.opened_handle(thread, call, &place, &flags);
        keys.extend(handle.map(|handle| (Key::Handle(handle), true)));
        Ok(Some(Translated { action: Action::Open { path, flags, mode, handle }, gave, keys }))
    }

    /// The place of a file that was opened by a path from elsewhere: the descriptor has it.
    fn place_opened(&mut self, call: &Ended) -> Option<Place> {
        match &call.returned {
            Returned::Value(_, Some(path)) => self.space.place(path, false),
            _ => None,
        }
    }

    /// The open file that a call has made, if it has; one without a name is not its path's.
    fn opened_handle(
        &mut self,
        thread: u32,
        call: &Ended,
        place: &Place,
        flags: &str,
    ) -> Option<u32> {
        let Returned::Value(fd @ 0.., _) = call.returned else { return None };
        let node = match flags.contains("O_TMPFILE") {
            true => self.space.make_unnamed(),
            false => place.node?,
        };
        let handle = self.handles.len() as u32;
        let real = place.real.clone();
        self.handles.push(Handle { node, real, descriptors: 1, flags: settable(flags) });
        let closes_on_exec = call.arguments.iter().any(|it| it.contains("O_CLOEXEC"));
        let before = self.processes.open(thread, fd as i32, Descriptor { handle, closes_on_exec });
        // A descriptor that was closed without our seeing it.
        self.close(thread, [call.start_ns; 2], before.into_iter().collect());
        Some(handle)
    }

    fn both(
        &self,
        call: &Ended,
        action: Action,
        [from, to]: [u32; 2],
    ) -> Result<Option<Translated>> {
        let mut keys = self.of_handle(from, true, false);
        keys.extend(self.of_handle(to, true, true));
        Ok(Some(Translated { action, gave: call.gave()?, keys }))
    }

    /// ioctl(2): a replay only does the sharing of a file's blocks.
    fn controlled(&self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let (request, to) = (call.argument(1), self.handle(thread, call.argument(0)));
        if !request.contains("FICLONE") || request.contains("RANGE") {
            let is_idle = IDLE_REQUESTS.iter().any(|part| request.contains(part));
            return match to.is_ok() && call.succeeded() && !is_idle {
                true => Err(why::UNKNOWN),
                false => Ok(None),
            };
        }
        match (self.handle(thread, call.argument(2)), to) {
            (Ok(from), Ok(to)) => self.both(call, Action::Clone { from, to }, [from, to]),
            // Nobody knows how much there is.
            (Err(_), Ok(_)) if call.succeeded() => Err(why::UNKNOWN),
            (Err(what), _) | (_, Err(what)) => Err(what),
        }
    }

    /// Flags of an open file are changed: nothing is recorded where none makes a difference.
    fn flags_set(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let Ok(handle) = self.handle(thread, call.argument(0)) else { return Ok(None) };
        let flags = settable(call.argument(2));
        if self.handles[handle as usize].flags == flags {
            return Ok(None);
        }
        if !call.succeeded() {
            return Err(why::UNSUPPORTED);
        }
        self.handles[handle as usize].flags.clone_from(&flags);
        self.on_handle(call, handle, [true, false], Action::SetFlags { handle, flags })
    }

    /// Data moved from file to file within the kernel. Where one of them is elsewhere, or a pipe,
    /// it is a read or a write of the other.
    fn copied(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let is_range = call.name != "sendfile" && call.name != "sendfile64";
        let (from_at, to_at) = if is_range { (0, 2) } else { (1, 0) };
        let from = self.handle(thread, call.argument(from_at));
        let to = self.handle(thread, call.argument(to_at));
        let (from_place, to_place, bytes) = match is_range {
            true => (call.offset(1)?, call.offset(3)?, call.number(4)?),
            false => (call.offset(2)?, None, call.number(3)?),
        };
        let given = match call.returned {
            Returned::Value(value @ 0.., _) => value.cast_unsigned(),
            _ => bytes,
        };
        match (from, to) {
            (Ok(from), Ok(to)) => {
                let action = match is_range {
                    true => Action::CopyRange { from, from_place, to, to_place, bytes },
                    false => Action::Sendfile { from, place: from_place, to, bytes },
                };
                self.both(call, action, [from, to])
            }
            // A read or a write would not have been refused.
            (Err(_), Ok(_)) | (Ok(_), Err(_)) if matches!(call.gave()?, Gave::Error(_)) => {
                Err(why::UNSUPPORTED)
            }
            (Err(_), Ok(handle)) => {
                let (action, moves) = match to_place {
                    Some(place) => (Action::Pwrite { handle, bytes: given, place }, false),
                    None => (Action::Write { handle, bytes: given }, true),
                };
                self.on_handle(call, handle, [moves, true], action)
            }
            (Ok(handle), Err(_)) => {
                let (action, moves) = match from_place {
                    Some(place) => (Action::Pread { handle, bytes: given, place }, false),
                    None => (Action::Read { handle, bytes: given }, true),
                };
                self.on_handle(call, handle, [moves, false], action)
            }
            (Err(what), Err(_)) => Err(what),
        }
    }
}

/// Those of the flags that fcntl(2) changes.
fn settable(flags: &str) -> String {
    let has = |wanted: &&str| flags.split('|').any(|flag| flag == *wanted);
    SETTABLE_FLAGS.into_iter().filter(has).collect::<Vec<_>>().join("|")
}

/// All words of `text` are.
fn are_known(text: &str, known: &[&str]) -> bool {
    text == "0" || text.split('|').all(|word| known.contains(&word))
}

fn is_error(word: &str) -> bool {
    word.starts_with('E') && word.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit())
}

/// Calls whose first argument is a descriptor of a file; of some it may be a directory's.
const ON_DESCRIPTOR: [&str; 32] = [
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "lseek",
    "_llseek",
    "fsync",
    "fdatasync",
    "syncfs",
    "sync_file_range",
    "ftruncate",
    "fallocate",
    "fadvise64",
    "readahead",
    "getdents",
    "getdents64",
    "fchmod",
    "fchown",
    "fstat",
    "newfstatat",
    "statx",
    "utimensat",
    "fsetxattr",
    "fgetxattr",
    "flistxattr",
    "fremovexattr",
];

/// The place -1, which is where the file's own offset is (preadv2(2), io_uring_enter(2)).
pub(super) const OWN_OFFSET: u64 = u64::MAX;

/// What one write asks for by flags of its own (include/uapi/linux/fs.h, `RWF_...`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriteFlags {
    /// It goes to the end, wherever that is.
    pub appends: bool,
    /// It is durable when it is done, with all that is known of the file.
    pub syncs: bool,
    /// The same, with what is needed to read it.
    pub syncs_data: bool,
}

impl WriteFlags {
    /// As strace writes them.
    pub fn of(text: &str) -> WriteFlags {
        let has = |flag: &str| text.split('|').any(|it| it == flag);
        WriteFlags {
            appends: has("RWF_APPEND"),
            syncs: has("RWF_SYNC"),
            syncs_data: has("RWF_DSYNC"),
        }
    }

    /// The sync that such a write of `handle` is followed by, in a replay.
    pub fn sync_of(self, handle: u32) -> Result<Option<Action>> {
        match self {
            WriteFlags { appends: true, .. } => Err(why::UNKNOWN),
            WriteFlags { syncs: true, .. } => Ok(Some(Action::Fsync { handle })),
            WriteFlags { syncs_data: true, .. } => Ok(Some(Action::Fdatasync { handle })),
            _ => Ok(None),
        }
    }
}

/// Reads and writes: the call, and whether it moves the offset and changes the content.
fn transfer(call: &Ended, handle: u32) -> Result<Option<(Action, [bool; 2])>> {
    let number = |place| call.number(place);
    let given = || match call.returned {
        Returned::Value(value @ 0.., _) => Ok(value.cast_unsigned()),
        _ => Err(why::UNKNOWN),
    };
    Ok(Some(match call.name {
        "read" => (Action::Read { handle, bytes: number(2)? }, [true, false]),
        "pread64" => {
            let (bytes, place) = (number(2)?, number(3)?);
            (Action::Pread { handle, bytes, place }, [false, false])
        }
        "readv" => (Action::Read { handle, bytes: vector(call, given)? }, [true, false]),
        "preadv2" if number(3)? == OWN_OFFSET => {
            (Action::Read { handle, bytes: vector(call, given)? }, [true, false])
        }
        "preadv" | "preadv2" => {
            let (bytes, place) = (vector(call, given)?, number(3)?);
            (Action::Pread { handle, bytes, place }, [false, false])
        }
        "write" => (Action::Write { handle, bytes: number(2)? }, [true, true]),
        "pwrite64" => {
            let (bytes, place) = (number(2)?, number(3)?);
            (Action::Pwrite { handle, bytes, place }, [false, true])
        }
        "writev" => (Action::Write { handle, bytes: vector(call, given)? }, [true, true]),
        "pwritev2" if number(3)? == OWN_OFFSET => {
            (Action::Write { handle, bytes: vector(call, given)? }, [true, true])
        }
        "pwritev" | "pwritev2" => {
            let (bytes, place) = (vector(call, given)?, number(3)?);
            (Action::Pwrite { handle, bytes, place }, [false, true])
        }
        _ => return Ok(None),
    }))
}

/// The bytes of all buffers of a vector, as far as strace has shown them; else what the call gave.
fn vector(call: &Ended, given: impl Fn() -> Result<u64>) -> Result<u64> {
    shown_bytes(call.argument(1)).map_or_else(given, Ok)
}

/// The bytes of all buffers; `None` where strace does not show all of them.
pub(super) fn shown_bytes(buffers: &str) -> Option<u64> {
    let sizes = buffers.split("iov_len=").skip(1);
    let sizes: Vec<Option<u64>> =
        sizes.map(|rest| number(rest.split(['}', ',']).next()?)).collect();
    let bytes = sizes.into_iter().try_fold(0_u64, |all, bytes| all.checked_add(bytes?));
    bytes.filter(|&bytes| bytes > 0 && !buffers.ends_with("...]"))
}

/// The kind of a descriptor without a path: `5<pipe:[7]>`; if strace shows nothing of it, its path
/// is longer than readlink(2) gives.
fn nameless(descriptor: Option<&str>) -> &'static str {
    if descriptor.is_some_and(|it| it.contains('<')) { why::PIPES } else { why::LONG }
}

/// The same, with the content changed.
pub(super) fn changed(mut keys: Vec<(Key, bool)>) -> Vec<(Key, bool)> {
    for (key, changes) in &mut keys {
        *changes |= matches!(key, Key::Content(_));
    }
    keys
}
