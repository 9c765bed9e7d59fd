//! An application's calls, recorded, and how they are replayed (FORMAT.md, "A recording").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::TreeContent;

/// Version of the recordings that this program writes and reads.
pub const RECORDING: u32 = 1;

/// The native replay workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// The recording's path.
    pub recording: String,
    /// Each thread waits between its calls as the application did; else it goes as fast as it can.
    pub paced: bool,
    /// What is written: no recording holds the application's data.
    pub content: TreeContent,
    /// How many bytes of compressible content a compressor makes one of.
    pub compression: f64,
}

impl Default for Replay {
    fn default() -> Self {
        let (recording, content) = (String::new(), TreeContent::Random);
        Replay { recording, paced: false, content, compression: 2.0 }
    }
}

impl Replay {
    /// The time in calls where it waits between them, else their rate: the pauses are the
    /// application's and would hide what the file system does.
    pub fn primary(&self) -> &'static str {
        if self.paced { "call_time" } else { "rate" }
    }

    /// What is wrong with it, as the end of a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.recording.is_empty() {
            return Err("needs a recording: make one with fsverdict record -- COMMAND".into());
        }
        if !(1.0..=1000.0).contains(&self.compression) {
            return Err(format!("has a compression of {}: from 1 to 1000", self.compression));
        }
        Ok(())
    }
}

/// Everything that a replay needs: neither the application nor its data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What it is.
    pub head: Head,
    /// Every path that a call or an entry names, below the folder that it is replayed in.
    pub paths: Vec<String>,
    /// What was there before the first call; parents come first.
    pub entries: Vec<Entry>,
    /// The calls in the order they ended.
    pub calls: Vec<Call>,
    /// What the application left of the entries, and what it made.
    pub ends: Vec<Entry>,
}

/// The first line of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`RECORDING`].
    pub recording: u32,
    /// The names are the application's; else they are others of the same length.
    pub names_kept: bool,
    /// Threads that do the calls.
    pub threads: u32,
    /// Descriptions of open files, each from its open to its close.
    pub handles: u32,
    /// Mappings of files, each from its mmap to its end; older recordings have none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub maps: u32,
    /// How many lines of paths, entries and calls follow.
    pub paths: u64,
    /// The same.
    pub entries: u64,
    /// The same.
    pub calls: u64,
    /// The same, of what there is at the end; older recordings don't tell.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ends: u64,
    /// How long the recorded command ran.
    pub elapsed_ns: u64,
    /// What the tracer adds between two calls of a thread; taken off from all pauses.
    pub tracer_ns: u64,
    /// How many of the calls the application handed over by io_submit or io_uring, several at once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub one_by_one: u64,
    /// What was seen and can't be replayed, and how often.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}

/// What a replay lacks of its recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// Calls that are made.
    pub calls: u64,
    /// Calls that were seen below the folders and could not be recorded.
    pub left_out: u64,
    /// Calls that the application handed over several at once, and that are made one by one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub one_by_one: u64,
    /// Files that it copied, since the file system can't share their blocks, as it could where the
    /// application did so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copied: u64,
    /// Files and directories that the application and the replay have at their ends, together.
    pub entries: u64,
    /// Those of them that are there once, or differ in kind, size, mode, target or names.
    pub unlike: u64,
    /// The first of those: what is the matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

impl Replayed {
    /// What it lacks and does otherwise, as a sentence says it; `None` where that is nothing.
    pub fn apart(&self) -> Option<String> {
        let Replayed { calls, one_by_one, copied, .. } = self;
        let in_turn = format!(
            "makes {one_by_one} of its {calls} calls one by one, not by io_submit or io_uring"
        );
        let in_turn = (*one_by_one > 0).then_some(in_turn);
        let copies = format!("copies {copied} files whose blocks the application shared");
        let copies = (*copied > 0).then_some(copies);
        let all: Vec<String> = self.missing().into_iter().chain(in_turn).chain(copies).collect();
        (!all.is_empty()).then(|| all.join(", and "))
    }

    /// What it lacks, as a sentence says it; `None` where it lacks nothing.
    pub fn missing(&self) -> Option<String> {
        let Replayed { calls, left_out, entries, unlike, .. } = self;
        let calls = format!("lacks {left_out} of {} calls", calls + left_out);
        let files = format!("ends with {unlike} of {entries} files unlike the application's");
        match (left_out, unlike) {
            (0, 0) => None,
            (_, 0) => Some(calls),
            (0, _) => Some(files),
            _ => Some(format!("{calls} and {files}")),
        }
    }
}

/// Something that was there before the first call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place in [`Recording::paths`].
    pub path: u32,
    /// What it is.
    #[serde(flatten)]
    pub what: Laid,
}

/// What is laid out for a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Laid {
    Directory {
        mode: u32,
    },
    File {
        bytes: u64,
        mode: u32,
        /// Begin and end of the parts that are no holes, in bytes; empty: all of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        data: Vec<(u64, u64)>,
    },
    Link {
        target: String,
    },
    /// Another name of a file before it.
    NameOf {
        path: u32,
    },
    /// A pipe or a socket.
    Special {},
}

/// One call of the application's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The thread that makes it.
    pub thread: u32,
    /// How long the thread was busy with something else since it could have begun.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pause_ns: u64,
    /// What must be done before it: a thread, and how many of its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<(u32, u64)>,
    /// The call.
    #[serde(rename = "do")]
    pub action: Action,
    /// Its result.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gave: Gave,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Gave {
    /// Success; of calls that tell one, the count of bytes or the place.
    Value(u64),
    /// The name of the error: `ENOENT`.
    Error(String),
    /// Nobody saw it: a replay must succeed.
    Unseen,
}

impl Default for Gave {
    fn default() -> Self {
        Gave::Value(0)
    }
}

/// What a call is on: a path, or an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// By its place in [`Recording::paths`].
    Path(u32),
    /// By its number.
    Handle(u32),
}

/// A call with its arguments. Paths are places in [`Recording::paths`], handles are numbers of
/// open files, flags have the kernel's names, as strace(1) writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the calls and their arguments")]
pub enum Action {
    /// One that failed has no handle.
    Open {
        path: u32,
        flags: String,
        mode: u32,
        handle: Option<u32>,
    },
    Close {
        handle: u32,
    },
    Read {
        handle: u32,
        bytes: u64,
    },
    Pread {
        handle: u32,
        bytes: u64,
        place: u64,
    },
    Write {
        handle: u32,
        bytes: u64,
    },
    Pwrite {
        handle: u32,
        bytes: u64,
        place: u64,
    },
    Seek {
        handle: u32,
        place: u64,
    },
    /// What of its flags fcntl(2) changes (F_SETFL): these, and no others.
    SetFlags {
        handle: u32,
        flags: String,
    },
    Fsync {
        handle: u32,
    },
    Fdatasync {
        handle: u32,
    },
    SyncRange {
        handle: u32,
        place: u64,
        bytes: u64,
        flags: String,
    },
    Syncfs {
        handle: u32,
    },
    Sync {},
    Truncate {
        on: On,
        bytes: u64,
    },
    Allocate {
        handle: u32,
        flags: String,
        place: u64,
        bytes: u64,
    },
    Advise {
        handle: u32,
        advice: String,
        place: u64,
        bytes: u64,
    },
    Rename {
        from: u32,
        to: u32,
        flags: String,
    },
    Unlink {
        path: u32,
    },
    Mkdir {
        path: u32,
        mode: u32,
    },
    Rmdir {
        path: u32,
    },
    Link {
        from: u32,
        to: u32,
    },
    /// An open file is given a name.
    LinkOpen {
        handle: u32,
        to: u32,
    },
    Symlink {
        target: String,
        path: u32,
    },
    /// A pipe or a socket is made.
    Mknod {
        path: u32,
    },
    Stat {
        on: On,
        follow: bool,
    },
    Access {
        path: u32,
        flags: String,
    },
    Readlink {
        path: u32,
    },
    List {
        handle: u32,
        bytes: u64,
    },
    Chmod {
        on: On,
        mode: u32,
    },
    Chown {
        on: On,
    },
    Utimes {
        on: On,
    },
    Setxattr {
        on: On,
        name_bytes: u64,
        bytes: u64,
    },
    /// An access control list: tag, rights and number of each entry (linux/posix_acl_xattr.h).
    SetAcl {
        on: On,
        default: bool,
        entries: Vec<[u32; 3]>,
    },
    Getxattr {
        on: On,
        name_bytes: u64,
        bytes: u64,
    },
    Listxattr {
        on: On,
        bytes: u64,
    },
    Removexattr {
        on: On,
        name_bytes: u64,
    },
    CopyRange {
        from: u32,
        from_place: Option<u64>,
        to: u32,
        to_place: Option<u64>,
        bytes: u64,
    },
    Sendfile {
        from: u32,
        place: Option<u64>,
        to: u32,
        bytes: u64,
    },
    Clone {
        from: u32,
        to: u32,
    },
    /// A file is mapped, for writing too where a page of it is written.
    Map {
        handle: u32,
        map: u32,
        place: u64,
        bytes: u64,
        flags: String,
        #[serde(default, skip_serializing_if = "is_default")]
        writes: bool,
    },
    /// Pages of a mapping are met for the first time: a page fault each, unless the kernel has
    /// mapped them with another. `place` is from the mapping's beginning.
    Touch {
        map: u32,
        place: u64,
        bytes: u64,
        #[serde(default, skip_serializing_if = "is_default")]
        writes: bool,
    },
    SyncMap {
        map: u32,
        place: u64,
        bytes: u64,
        flags: String,
    },
    AdviseMap {
        map: u32,
        place: u64,
        bytes: u64,
        advice: String,
    },
    /// A mapping becomes as long as that.
    Grow {
        map: u32,
        bytes: u64,
    },
    Unmap {
        map: u32,
    },
}

impl Action {
    /// The operation's name in metrics: `fsync` of `fsync_latency_p50`.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Open { .. } => "open",
            Action::Close { .. } => "close",
            Action::Read { .. } | Action::Pread { .. } => "read",
            Action::Write { .. } | Action::Pwrite { .. } => "write",
            Action::Seek { .. } => "seek",
            Action::SetFlags { .. } => "set_flags",
            Action::Fsync { .. } => "fsync",
            Action::Fdatasync { .. } => "fdatasync",
            Action::SyncRange { .. } => "sync_range",
            Action::Syncfs { .. } | Action::Sync {} => "sync",
            Action::Truncate { .. } => "truncate",
            Action::Allocate { .. } => "allocate",
            Action::Advise { .. } | Action::AdviseMap { .. } => "advise",
            Action::Rename { .. } => "rename",
            Action::Unlink { .. } => "unlink",
            Action::Mkdir { .. } => "mkdir",
            Action::Rmdir { .. } => "rmdir",
            Action::Link { .. } | Action::LinkOpen { .. } => "link",
            Action::Symlink { .. } => "symlink",
            Action::Mknod { .. } => "mknod",
            Action::Stat { .. } => "stat",
            Action::Access { .. } => "access",
            Action::Readlink { .. } => "readlink",
            Action::List { .. } => "list",
            Action::Chmod { .. } => "chmod",
            Action::Chown { .. } => "chown",
            Action::Utimes { .. } => "utimes",
            Action::Setxattr { .. } | Action::SetAcl { .. } => "setxattr",
            Action::Getxattr { .. } => "getxattr",
            Action::Listxattr { .. } => "listxattr",
            Action::Removexattr { .. } => "removexattr",
            Action::CopyRange { .. } => "copy_range",
            Action::Sendfile { .. } => "sendfile",
            Action::Clone { .. } => "clone",
            Action::Map { .. } | Action::Grow { .. } => "map",
            Action::Touch { .. } => "fault",
            Action::SyncMap { .. } => "msync",
            Action::Unmap { .. } => "unmap",
        }
    }

    /// Shows all that it is on to `see`: its paths, and its open files.
    pub fn each(&self, mut see: impl FnMut(On)) {
        match *self {
            Action::Open { path, handle, .. } => {
                see(On::Path(path));
                handle.into_iter().for_each(|handle| see(On::Handle(handle)));
            }
            Action::Close { handle }
            | Action::Read { handle, .. }
            | Action::Pread { handle, .. }
            | Action::Write { handle, .. }
            | Action::Pwrite { handle, .. }
            | Action::Seek { handle, .. }
            | Action::SetFlags { handle, .. }
            | Action::Fsync { handle }
            | Action::Fdatasync { handle }
            | Action::SyncRange { handle, .. }
            | Action::Syncfs { handle }
            | Action::Allocate { handle, .. }
            | Action::Advise { handle, .. }
            | Action::List { handle, .. }
            | Action::Map { handle, .. } => see(On::Handle(handle)),
            Action::Unlink { path }
            | Action::Mkdir { path, .. }
            | Action::Rmdir { path }
            | Action::Symlink { path, .. }
            | Action::Mknod { path }
            | Action::Access { path, .. }
            | Action::Readlink { path } => see(On::Path(path)),
            Action::Truncate { on, .. }
            | Action::Stat { on, .. }
            | Action::Chmod { on, .. }
            | Action::Chown { on }
            | Action::Utimes { on }
            | Action::Setxattr { on, .. }
            | Action::SetAcl { on, .. }
            | Action::Getxattr { on, .. }
            | Action::Listxattr { on, .. }
            | Action::Removexattr { on, .. } => see(on),
            Action::LinkOpen { handle, to } => {
                see(On::Handle(handle));
                see(On::Path(to));
            }
            Action::Rename { from, to, .. } | Action::Link { from, to } => {
                [from, to].into_iter().for_each(|path| see(On::Path(path)));
            }
            Action::CopyRange { from, to, .. }
            | Action::Sendfile { from, to, .. }
            | Action::Clone { from, to } => {
                [from, to].into_iter().for_each(|handle| see(On::Handle(handle)));
            }
            Action::Sync {}
            | Action::Touch { .. }
            | Action::SyncMap { .. }
            | Action::AdviseMap { .. }
            | Action::Grow { .. }
            | Action::Unmap { .. } => {}
        }
    }

    /// The mapping that it makes or is on.
    pub fn map(&self) -> Option<u32> {
        match *self {
            Action::Map { map, .. }
            | Action::Touch { map, .. }
            | Action::SyncMap { map, .. }
            | Action::AdviseMap { map, .. }
            | Action::Grow { map, .. }
            | Action::Unmap { map } => Some(map),
            _ => None,
        }
    }

    /// It waits until something is durable.
    pub fn is_sync(&self) -> bool {
        match self {
            Action::Fsync { .. }
            | Action::Fdatasync { .. }
            | Action::Syncfs { .. }
            | Action::Sync {} => true,
            Action::SyncMap { flags, .. } => flags.contains("MS_SYNC"),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::Replayed;

    #[test]
    fn what_a_replay_does_otherwise_is_one_sentence() {
        let said = |one_by_one, copied| {
            Replayed { calls: 9, one_by_one, copied, ..Replayed::default() }.apart()
        };
        assert_eq!(said(0, 0), None);
        let copies = "copies 2 files whose blocks the application shared";
        assert_eq!(said(0, 2).unwrap(), copies);
        assert!(said(3, 2).unwrap().ends_with(&format!("io_uring, and {copies}")));
    }

    #[test]
    fn a_replay_needs_a_recording_and_is_judged_by_what_the_file_system_does() {
        let workload = |text: &str| -> Workload {
            toml::from_str(&format!("name = \"w\"\nreplay = {{ {text} }}")).unwrap()
        };
        let none = workload("paced = true").work().unwrap_err();
        assert!(none.contains("fsverdict record -- COMMAND"), "{none}");
        let much = workload("recording = \"a\", compression = 0").work().unwrap_err();
        assert!(much.contains("from 1 to 1000"), "{much}");
        let fast = workload("recording = \"a\"");
        assert!(fast.work().unwrap().is_filled());
        assert_eq!(fast.primary(), ["rate"]);
        assert_eq!(workload("recording = \"a\", paced = true").primary(), ["call_time"]);
    }
}
