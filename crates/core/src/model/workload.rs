//! The work.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Bytes, Scalar};

/// A program with its arguments, or a line for the shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Command {
    /// Run as it is: no shell, no expansion.
    Argv(Vec<String>),
    /// Run by `sh -c`.
    Shell(String),
}

impl Command {
    /// The argument vector that is executed.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Command::Argv(argv) => argv.clone(),
            Command::Shell(line) => vec!["sh".into(), "-c".into(), line.clone()],
        }
    }
}

impl fmt::Display for Command {
    /// As one would type it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Shell(line) => f.write_str(line),
            Command::Argv(argv) => {
                for (place, word) in argv.iter().enumerate() {
                    let space = if place == 0 { "" } else { " " };
                    write!(f, "{space}{}", quoted(word))?;
                }
                Ok(())
            }
        }
    }
}

/// `word` as a POSIX shell would have to be given it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A fio job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fio {
    /// Path of an existing job file, run unchanged.
    File(String),
    /// fio's arguments as typed on its command line: options, job files.
    Arguments(Vec<String>),
    /// One job's options: `rw = "randwrite"`, `bs = "4k"`.
    Options(BTreeMap<String, Scalar>),
}

impl Fio {
    /// The arguments that describe the job to fio; `job` names it where it has no name.
    pub fn arguments(&self, job: &str) -> Vec<String> {
        match self {
            Fio::File(path) => vec![path.clone()],
            Fio::Arguments(arguments) => {
                let names_jobs =
                    |word: &String| word.starts_with("--name") || !word.starts_with('-');
                let name = (!arguments.iter().any(names_jobs)).then(|| format!("--name={job}"));
                name.into_iter().chain(arguments.iter().cloned()).collect()
            }
            Fio::Options(options) => {
                let name = options.get("name").map_or(job.to_string(), Scalar::to_string);
                let mut arguments = vec![format!("--name={name}")];
                for (option, value) in options.iter().filter(|(option, _)| *option != "name") {
                    arguments.push(match value {
                        Scalar::Flag(true) => format!("--{option}"),
                        Scalar::Flag(false) => format!("--{option}=0"),
                        value => format!("--{option}={value}"),
                    });
                }
                arguments
            }
        }
    }
}

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

/// Whether the timed part finds the caches empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Caches are dropped before the timed part.
    #[default]
    Cold,
    /// Whatever preparation left in them stays.
    Warm,
}

/// The work, with what goes before it. Exactly one of `command`, `fio` and `small_files` is given;
/// [`Workload::work`] says which.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What the report calls it; its own within a plan.
    pub name: String,
    /// Run before the remount, untimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Command>,
    /// Run after the remount, untimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<Command>,
    /// Any command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// A fio job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<Fio>,
    /// Many small files, natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_files: Option<SmallFiles>,
    /// Whether the timed part finds the caches empty.
    #[serde(default)]
    pub cache: Cache,
    /// How many operations a command performs, so that it has a rate and a cost per operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// How many bytes a command reads or writes, so that it has a bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// The metrics that are judged; the rest is shown. Empty: the workload's own choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub primary: Vec<String>,
}

/// Which kind of work a workload is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work<'a> {
    /// Any command.
    Command(&'a Command),
    /// A fio job.
    Fio(&'a Fio),
    /// Many small files, natively.
    SmallFiles(&'a SmallFiles),
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

/// One timed part of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The whole of a command or a fio job.
    Whole,
    /// One operation of the small-file workload over all files.
    SmallFiles(Operation),
}

impl Phase {
    /// The phase's name, which begins its metrics; empty for the whole.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Whole => "",
            Phase::SmallFiles(operation) => operation.name(),
        }
    }
}

impl Workload {
    /// The work, or what is wrong with the workload as a sentence.
    pub fn work(&self) -> Result<Work<'_>, String> {
        let name = &self.name;
        match (&self.command, &self.fio, &self.small_files) {
            (Some(command), None, None) if command.argv().is_empty() => {
                Err(format!("workload {name:?} has an empty command"))
            }
            (Some(command), None, None) => Ok(Work::Command(command)),
            (None, Some(fio), None) => Ok(Work::Fio(fio)),
            (None, None, Some(files)) => Ok(Work::SmallFiles(files)),
            _ => Err(format!("workload {name:?} needs exactly one of: command, fio, small_files")),
        }
    }

    /// The timed parts, in order.
    pub fn phases(&self) -> Vec<Phase> {
        match self.small_files {
            Some(_) => Operation::ALL.map(Phase::SmallFiles).to_vec(),
            None => vec![Phase::Whole],
        }
    }

    /// The metrics that are judged.
    pub fn primary(&self) -> Vec<String> {
        if !self.primary.is_empty() {
            return self.primary.clone();
        }
        match (&self.fio, &self.small_files) {
            (Some(_), _) => vec!["iops".into()],
            (_, Some(_)) => Operation::ALL.map(|op| format!("{}_rate", op.name())).to_vec(),
            _ => vec!["wall_time".into()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let argv = Command::Argv(["cp", "-a", "it's here", "."].map(String::from).to_vec());
        assert_eq!(argv.to_string(), r"cp -a 'it'\''s here' .");
        assert_eq!(Command::Shell("a | b".into()).argv(), ["sh", "-c", "a | b"]);
    }

    #[test]
    fn fio_options_become_arguments() {
        let options: BTreeMap<_, _> = [
            ("rw".to_string(), Scalar::Text("randwrite".into())),
            ("direct".into(), Scalar::Whole(1)),
            ("time_based".into(), Scalar::Flag(true)),
        ]
        .into();
        assert_eq!(
            Fio::Options(options).arguments("job"),
            ["--name=job", "--direct=1", "--rw=randwrite", "--time_based"]
        );
        let typed = |words: &[&str]| {
            Fio::Arguments(words.iter().map(ToString::to_string).collect()).arguments("job")
        };
        assert_eq!(typed(&["--rw=read"]), ["--name=job", "--rw=read"]);
        assert_eq!(typed(&["--name=a", "--rw=read"]), ["--name=a", "--rw=read"]);
        assert_eq!(typed(&["a.fio"]), ["a.fio"]);
    }
}
