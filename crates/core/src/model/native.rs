//! The work that fsverdict does by itself, without another program.

use serde::{Deserialize, Serialize};

use super::{Bytes, Histogram};

/// Files there can be: their names have eight digits.
pub const FILES_MAX: u64 = 100_000_000;

/// Bytes a file can have: a thread holds one in memory.
pub const FILE_SIZE_MAX: Bytes = Bytes(1 << 30);

/// When small files become durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// fsync after each file is written.
    Each,
    /// One syncfs at the end of the phase.
    #[default]
    End,
}

/// The native small-file workload: create, stat, read, rename and delete many files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmallFiles {
    /// Files altogether.
    pub count: u64,
    /// Bytes in each.
    pub size: Bytes,
    /// Directories they are spread over.
    pub directories: u32,
    /// Threads that share the directories; a directory belongs to one thread.
    pub threads: u32,
    /// When they become durable.
    pub sync: Sync,
}

impl Default for SmallFiles {
    /// The openEuler study's test: 10,000 files of about 1 KB in one directory, by one process.
    fn default() -> Self {
        SmallFiles { count: 10_000, size: Bytes(1024), directories: 1, threads: 1, sync: Sync::End }
    }
}

impl SmallFiles {
    /// What is wrong with it, as the end of a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        let SmallFiles { count, size, directories, threads, .. } = *self;
        if count == 0 || directories == 0 || threads == 0 {
            return Err("needs at least one file, one directory and one thread".into());
        }
        if size > FILE_SIZE_MAX {
            return Err(format!("has files of {size}: at most {FILE_SIZE_MAX}"));
        }
        if threads > directories {
            return Err(format!(
                "has {threads} threads for {directories} directories: a directory belongs to one"
            ));
        }
        check_count(count)
    }
}

/// What the small-file workload does in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operation {
    Create,
    Stat,
    Read,
    Rename,
    Delete,
}

impl Operation {
    /// All, in the order they are done.
    pub const ALL: [Operation; 5] =
        [Operation::Create, Operation::Stat, Operation::Read, Operation::Rename, Operation::Delete];

    /// The operation's name in metrics: `create` of `create_rate`.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Stat => "stat",
            Operation::Read => "read",
            Operation::Rename => "rename",
            Operation::Delete => "delete",
        }
    }

    /// It looks at what is there, so that a warm cache would answer for the device.
    pub fn is_read(self) -> bool {
        matches!(self, Operation::Stat | Operation::Read)
    }
}

/// Where the writes of [`FsyncFiles`] go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FsyncCase {
    /// The files are there and empty: the write needs a new block.
    #[default]
    Allocating,
    /// The files are there with their content: the write goes to blocks that are allocated.
    Overwriting,
    /// The files are there with as much content again: the write goes on behind it, and as long as
    /// both fit into a block, needs no new one.
    Extending,
}

impl FsyncCase {
    /// Its name in plans.
    pub fn name(self) -> &'static str {
        match self {
            FsyncCase::Allocating => "allocating",
            FsyncCase::Overwriting => "overwriting",
            FsyncCase::Extending => "extending",
        }
    }
}

/// What [`FsyncFiles`] measures, of the last file that it has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FsyncOperation {
    /// fsync(2).
    #[default]
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// Its write itself, the file being open with O_DSYNC.
    ODsync,
    /// sync_file_range(2) of the whole file, waiting for it.
    SyncFileRange,
    /// rename(2) over the first file, with nothing synced.
    Rename,
    /// fsync(2) of it, which was made just before, and of its directory.
    Create,
    /// syncfs(2).
    Syncfs,
}

impl FsyncOperation {
    /// All.
    pub const ALL: [FsyncOperation; 7] = [
        FsyncOperation::Fsync,
        FsyncOperation::Fdatasync,
        FsyncOperation::ODsync,
        FsyncOperation::SyncFileRange,
        FsyncOperation::Rename,
        FsyncOperation::Create,
        FsyncOperation::Syncfs,
    ];

    /// Its name in plans.
    pub fn name(self) -> &'static str {
        match self {
            FsyncOperation::Fsync => "fsync",
            FsyncOperation::Fdatasync => "fdatasync",
            FsyncOperation::ODsync => "o_dsync",
            FsyncOperation::SyncFileRange => "sync_file_range",
            FsyncOperation::Rename => "rename",
            FsyncOperation::Create => "create",
            FsyncOperation::Syncfs => "syncfs",
        }
    }

    /// It promises that one file is durable when it returns (fsync(2), open(2);
    /// sync_file_range(2) warns that it does not).
    pub fn keeps_file(self) -> bool {
        use FsyncOperation::{Rename, SyncFileRange, Syncfs};
        !matches!(self, SyncFileRange | Rename | Syncfs)
    }

    fn is_fsync(&self) -> bool {
        *self == FsyncOperation::Fsync
    }
}

/// Many files written, one of them synced: the fsync-anatomy study's test program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FsyncFiles {
    /// Files that are opened and written; the last one is synced.
    pub files: u32,
    /// Bytes written to each.
    pub size: Bytes,
    /// How often, each time with files of its own.
    pub repetitions: u32,
    /// Whether the write needs a new block.
    pub case: FsyncCase,
    /// What is measured.
    #[serde(skip_serializing_if = "FsyncOperation::is_fsync")]
    pub operation: FsyncOperation,
}

impl Default for FsyncFiles {
    /// The study's 2 KB and the 10 files that it traced. A hundred repetitions give a median.
    fn default() -> Self {
        FsyncFiles {
            files: 10,
            size: Bytes(2048),
            repetitions: 100,
            case: FsyncCase::Allocating,
            operation: FsyncOperation::Fsync,
        }
    }
}

impl FsyncFiles {
    /// Files of all repetitions together.
    pub fn all_files(&self) -> u64 {
        u64::from(self.files) * u64::from(self.repetitions)
    }

    /// The median, because a few fsyncs that wait for something else would decide the mean; the
    /// mean where there are too few for a median.
    pub fn primary(&self) -> &'static str {
        match Histogram::holds(0.5, self.repetitions.into()) {
            true => "fsync_latency_p50",
            false => "fsync_latency_mean",
        }
    }

    /// What is wrong with it, as the end of a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        let FsyncFiles { files, size, repetitions, operation, .. } = *self;
        if files == 0 || repetitions == 0 || size.0 == 0 {
            return Err("needs at least one file, one byte and one repetition".into());
        }
        if size > FILE_SIZE_MAX {
            return Err(format!("has files of {size}: at most {FILE_SIZE_MAX}"));
        }
        if operation == FsyncOperation::Rename && files < 2 {
            return Err("renames the last file over the first: needs at least two files".into());
        }
        check_count(self.all_files())
    }
}

pub(super) fn check_count(files: u64) -> Result<(), String> {
    if files > FILES_MAX {
        return Err(format!("needs {files} files: at most {FILES_MAX}"));
    }
    Ok(())
}

/// Metadata operations by themselves, one kind after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metadata {
    /// Directories that are made.
    pub directories: u32,
    /// Empty files in each.
    pub files_per_directory: u32,
    /// Threads that share the directories; a directory belongs to one thread.
    pub threads: u32,
    /// What is done, in this order.
    pub operations: Vec<MetadataOperation>,
}

impl Default for Metadata {
    /// The openEuler study's test, with the attribute changes that it announces and never makes.
    fn default() -> Self {
        Metadata {
            directories: 1000,
            files_per_directory: 10,
            threads: 1,
            operations: MetadataOperation::ALL.to_vec(),
        }
    }
}

impl Metadata {
    /// Files altogether.
    pub fn files(&self) -> u64 {
        u64::from(self.directories) * u64::from(self.files_per_directory)
    }

    /// How many directories have their files renamed: the first half, as in the study.
    pub fn renamed_directories(&self) -> u32 {
        self.directories.div_ceil(2)
    }

    /// Operations of that kind altogether.
    pub fn count(&self, operation: MetadataOperation) -> u64 {
        let directories = u64::from(self.directories);
        match operation {
            MetadataOperation::Mkdir => directories,
            MetadataOperation::Rename => {
                u64::from(self.renamed_directories()) * u64::from(self.files_per_directory)
            }
            MetadataOperation::Delete => self.files() + directories,
            _ => self.files(),
        }
    }

    /// What is wrong with it, as the end of a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        let Metadata { directories, files_per_directory, threads, .. } = *self;
        if directories == 0 || files_per_directory == 0 || threads == 0 {
            return Err("needs at least one directory, one file in each and one thread".into());
        }
        if threads > directories {
            return Err(format!(
                "has {threads} threads for {directories} directories: a directory belongs to one"
            ));
        }
        let places = self.operations.iter().map(|operation| *operation as u8);
        if !places.is_sorted_by(|one, next| one < next)
            || !self.operations.starts_with(&[MetadataOperation::Mkdir, MetadataOperation::Create])
        {
            let all = MetadataOperation::ALL.map(MetadataOperation::name).join(", ");
            return Err(format!("must begin with mkdir and create, and keep this order: {all}"));
        }
        check_count(self.files())
    }
}

/// What the metadata workload does in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum MetadataOperation {
    Mkdir,
    Create,
    Rename,
    Chmod,
    Chown,
    Utimes,
    Setxattr,
    Delete,
}

impl MetadataOperation {
    /// All, in the order they are done.
    pub const ALL: [MetadataOperation; 8] = [
        MetadataOperation::Mkdir,
        MetadataOperation::Create,
        MetadataOperation::Rename,
        MetadataOperation::Chmod,
        MetadataOperation::Chown,
        MetadataOperation::Utimes,
        MetadataOperation::Setxattr,
        MetadataOperation::Delete,
    ];

    /// The operation's name in metrics: `mkdir` of `mkdir_rate`.
    pub fn name(self) -> &'static str {
        match self {
            MetadataOperation::Mkdir => "mkdir",
            MetadataOperation::Create => "create",
            MetadataOperation::Rename => "rename",
            MetadataOperation::Chmod => "chmod",
            MetadataOperation::Chown => "chown",
            MetadataOperation::Utimes => "utimes",
            MetadataOperation::Setxattr => "setxattr",
            MetadataOperation::Delete => "delete",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;

    fn wrong(work: &str) -> String {
        let workload: Workload = toml::from_str(&format!("name = \"w\"\n{work}")).unwrap();
        workload.work().unwrap_err()
    }

    #[test]
    fn work_that_would_do_nothing_or_too_much_is_refused() {
        for (work, says) in [
            ("fsync_files = { files = 0 }", "at least one file"),
            ("fsync_files = { size = 0 }", "one byte"),
            ("fsync_files = { size = \"2G\" }", "at most 1G"),
            ("fsync_files = { files = 100000, repetitions = 10000 }", "at most 100000000"),
            ("fsync_files = { files = 1, operation = \"rename\" }", "at least two files"),
            ("metadata = { directories = 0 }", "at least one directory"),
            ("metadata = { directories = 2, threads = 3 }", "3 threads for 2 directories"),
            ("metadata = { operations = [\"mkdir\"] }", "must begin with mkdir and create"),
            ("metadata = { operations = [\"mkdir\", \"create\", \"create\"] }", "keep this order"),
            ("sysbench = { threads = 4 }", "needs file-test-mode"),
            ("sysbench = [\"fileio\", \"--file-test-mode=rndrw\"]", "\"fileio\""),
            ("fsync_files = {}\nmetadata = {}", "exactly one of"),
        ] {
            let wrong = wrong(work);
            assert!(wrong.starts_with("workload \"w\" ") && wrong.contains(says), "{wrong}");
        }
    }

    #[test]
    fn fsyncs_are_judged_by_their_median_where_there_are_enough() {
        let primary = |repetitions| {
            let text = format!("name = \"w\"\nfsync_files = {{ repetitions = {repetitions} }}");
            toml::from_str::<Workload>(&text).unwrap().primary()
        };
        assert_eq!(primary(60), ["fsync_latency_p50"]);
        assert_eq!(primary(59), ["fsync_latency_mean"]);
    }

    #[test]
    fn an_operation_has_the_name_that_plans_have_and_fsync_needs_none() {
        for operation in super::FsyncOperation::ALL {
            let name = operation.name();
            let text = format!("name = \"w\"\nfsync_files = {{ operation = \"{name}\" }}");
            let files = toml::from_str::<Workload>(&text).unwrap().fsync_files.unwrap();
            assert_eq!(files.operation, operation);
            let text = toml::to_string(&files).unwrap();
            assert_eq!(text.contains("operation"), name != "fsync", "older programs refuse it");
        }
    }

    #[test]
    fn metadata_has_a_rate_for_each_operation() {
        let text = "name = \"w\"\nmetadata = { operations = [\"mkdir\", \"create\", \"delete\"] }";
        let workload: Workload = toml::from_str(text).unwrap();
        assert_eq!(workload.primary(), ["mkdir_rate", "create_rate", "delete_rate"]);
        assert_eq!(workload.phases().len(), 3);
        let metadata = workload.metadata.unwrap();
        let counts = super::MetadataOperation::ALL.map(|operation| metadata.count(operation));
        assert_eq!(counts, [1000, 10_000, 5000, 10_000, 10_000, 10_000, 10_000, 11_000]);
    }
}
