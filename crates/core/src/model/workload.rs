//! The work.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::figures::is_metric;
use super::{
    Bytes, FsyncFiles, Jobs, Map, Metadata, MetadataOperation, Network, Operation, Pattern, Replay,
    Rounds, Scalar, SmallFiles, Tree, TreePhase, map,
};

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

impl Fio {
    /// The job with twice the depth for each of its jobs; `None` where that can't be read, or is in
    /// a file.
    fn at_twice_the_depth(&self) -> Option<Fio> {
        let doubled = |depth: &str| Some(2 * depth.parse::<u32>().ok()?);
        match self {
            Fio::File(_) => None,
            Fio::Options(options) => {
                let mut options = options.clone();
                let depth = options.get("iodepth").map_or("1".into(), Scalar::to_string);
                options.insert("iodepth".into(), Scalar::Whole(doubled(&depth)?.into()));
                Some(Fio::Options(options))
            }
            Fio::Arguments(arguments) => {
                let mut words = arguments.iter();
                let mut changed = Vec::new();
                let mut found = false;
                while let Some(word) = words.next() {
                    let depth = match word.strip_prefix("--iodepth") {
                        Some("") => Some(words.next()?.as_str()),
                        Some(rest) => rest.strip_prefix('='),
                        None => None,
                    };
                    found |= depth.is_some();
                    changed.push(match depth {
                        Some(depth) => format!("--iodepth={}", doubled(depth)?),
                        None => word.clone(),
                    });
                }
                if !found {
                    changed.insert(0, "--iodepth=2".into());
                }
                Some(Fio::Arguments(changed))
            }
        }
    }
}

/// fio's engines that wait for each operation before they begin the next, whatever the depth
/// (fio(1), "ioengine").
pub fn is_synchronous_engine(engine: &str) -> bool {
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&engine)
}

/// A run of sysbench's fileio test: its options, without `fileio` and `run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sysbench {
    /// Options as typed on its command line.
    Arguments(Vec<String>),
    /// Options by name: `file-test-mode = "rndrw"`, `threads = 4`.
    Options(BTreeMap<String, Scalar>),
}

impl Sysbench {
    /// The options as sysbench takes them.
    pub fn arguments(&self) -> Vec<String> {
        let written = |(option, value): (&String, &Scalar)| match value {
            Scalar::Flag(on) => format!("--{option}={}", if *on { "on" } else { "off" }),
            value => format!("--{option}={value}"),
        };
        match self {
            Sysbench::Arguments(arguments) => arguments.clone(),
            Sysbench::Options(options) => options.iter().map(written).collect(),
        }
    }

    /// What is wrong with it, as the end of a sentence.
    fn check(&self) -> Result<(), String> {
        let arguments = self.arguments();
        if let Some(word) = arguments.iter().find(|word| !word.starts_with("--")) {
            return Err(format!("has the word {word:?}: give it fileio's options alone"));
        }
        if !arguments.iter().any(|word| word.starts_with("--file-test-mode=")) {
            return Err("needs file-test-mode: seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw".into());
        }
        Ok(())
    }
}

/// What is wrong with the names of variables, as the end of a sentence.
pub(super) fn check_environment(environment: &BTreeMap<String, Scalar>) -> Result<(), String> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = |name: &String| {
        name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
    };
    match environment.keys().find(|name| !is_name(name) || name.starts_with("FSVERDICT_")) {
        None => Ok(()),
        Some(name) if is_name(name) => {
            Err(format!("sets {name}: names beginning with FSVERDICT_ are fsverdict's own"))
        }
        Some(name) => Err(format!("sets {name:?}, which is not a variable's name")),
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

/// The work, with what goes before it. Exactly one kind of work is given; [`Workload::work`] says
/// which.
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
    /// Run after the timed part, untimed: its exit status says whether the work's result is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Command>,
    /// Run last, also where something before it has failed: stops what `prepare` has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Command>,
    /// How its trials go in a round, where not as the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Rounds>,
    /// What the commands find in their environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Scalar>,
    /// Programs, or files by their paths, that must be there, with their Debian packages:
    /// `pgbench:postgresql-15`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Paths of files and folders that its programs read, and that no command names: guests get
    /// those that are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// The least size of a device under test, or the least space free in a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_bytes: Option<Bytes>,
    /// Folders that a program names by absolute paths, in the work's own folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub map: Map,
    /// The network over which a command's work comes in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Any command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// A fio job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<Fio>,
    /// The jobs of that, where it has several: entered before the first trial, from fio's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Jobs>,
    /// Many small files, natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_files: Option<SmallFiles>,
    /// Many files written and one synced, natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync_files: Option<FsyncFiles>,
    /// Metadata operations, natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// A tree of files, natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    /// sysbench's fileio test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sysbench: Option<Sysbench>,
    /// An application's recorded calls, natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Whether the timed part finds the caches empty.
    #[serde(default)]
    pub cache: Cache,
    /// How many operations a command performs, so that it has a rate and a cost per operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// How many bytes a command reads or writes, so that it has a bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Figures to look for in what a command prints, each as [`Pattern`] reads it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, String>,
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
    /// Many files written and one synced, natively.
    FsyncFiles(&'a FsyncFiles),
    /// Metadata operations, natively.
    Metadata(&'a Metadata),
    /// A tree of files, natively.
    Tree(&'a Tree),
    /// sysbench's fileio test.
    Sysbench(&'a Sysbench),
    /// An application's recorded calls, natively.
    Replay(&'a Replay),
}

impl Work<'_> {
    /// The keys in a plan.
    pub const KEYS: &'static str =
        "command, fio, small_files, fsync_files, metadata, tree, sysbench, replay";

    /// What is wrong with it, as the end of a sentence.
    fn check(self) -> Result<(), String> {
        match self {
            Work::Command(command) if command.argv().is_empty() => {
                Err("has an empty command".into())
            }
            Work::SmallFiles(files) => files.check(),
            Work::FsyncFiles(files) => files.check(),
            Work::Metadata(metadata) => metadata.check(),
            Work::Tree(tree) => tree.check(),
            Work::Sysbench(test) => test.check(),
            Work::Replay(replay) => replay.check(),
            Work::Command(_) | Work::Fio(_) => Ok(()),
        }
    }

    /// Its files are laid out before the caches are dropped, by [`crate::run::Step::Fill`].
    pub fn is_filled(self) -> bool {
        match self {
            Work::Fio(_) | Work::FsyncFiles(_) | Work::Sysbench(_) | Work::Replay(_) => true,
            Work::Tree(tree) => tree.is_filled(),
            Work::Command(_) | Work::SmallFiles(_) | Work::Metadata(_) => false,
        }
    }

    /// It has requests of its tool's, whose rate is called `iops`.
    pub fn has_requests(self) -> bool {
        matches!(self, Work::Fio(_) | Work::Sysbench(_))
    }
}

/// One timed part of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The whole of the work, where it has no parts.
    Whole,
    /// One operation of the small-file workload over all files.
    SmallFiles(Operation),
    /// One operation of the metadata workload over all files.
    Metadata(MetadataOperation),
    /// One pass of the tree workload over the whole tree.
    Tree(TreePhase),
}

impl Phase {
    /// What begins its metrics: its name and `_`; nothing for the whole.
    pub fn prefix(self) -> String {
        match self.name() {
            "" => String::new(),
            name => format!("{name}_"),
        }
    }

    /// The phase's name; empty for the whole.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Whole => "",
            Phase::SmallFiles(operation) => operation.name(),
            Phase::Metadata(operation) => operation.name(),
            Phase::Tree(phase) => phase.name(),
        }
    }
}

impl Workload {
    /// The work, or what is wrong with the workload as a sentence.
    pub fn work(&self) -> Result<Work<'_>, String> {
        let name = &self.name;
        let kinds = [
            self.command.as_ref().map(Work::Command),
            self.fio.as_ref().map(Work::Fio),
            self.small_files.as_ref().map(Work::SmallFiles),
            self.fsync_files.as_ref().map(Work::FsyncFiles),
            self.metadata.as_ref().map(Work::Metadata),
            self.tree.as_ref().map(Work::Tree),
            self.sysbench.as_ref().map(Work::Sysbench),
            self.replay.as_ref().map(Work::Replay),
        ];
        let mut given = kinds.into_iter().flatten();
        let (Some(work), None) = (given.next(), given.next()) else {
            return Err(format!("workload {name:?} needs exactly one of: {}", Work::KEYS));
        };
        work.check().map_err(|wrong| format!("workload {name:?} {wrong}"))?;
        self.check_commands().map_err(|wrong| format!("workload {name:?} {wrong}"))?;
        check_environment(&self.environment)
            .map_err(|wrong| format!("workload {name:?} {wrong}"))?;
        self.check_map(work).map_err(|wrong| format!("workload {name:?} {wrong}"))?;
        self.check_network(work).map_err(|wrong| format!("workload {name:?} {wrong}"))?;
        self.check_figures(work).map_err(|wrong| format!("workload {name:?} {wrong}"))?;
        if let Some(path) = self.reads.iter().find(|path| !path.starts_with('/')) {
            return Err(format!("workload {name:?} reads {path:?}: give a path from / on"));
        }
        Ok(work)
    }

    /// The same fio job at twice its depth, where it has an engine for which the depth counts.
    pub fn at_twice_the_depth(&self) -> Option<Workload> {
        let engines = self.fio_values("ioengine")?;
        engines.iter().find(|engine| !is_synchronous_engine(engine))?;
        let fio = self.fio.as_ref()?.at_twice_the_depth()?;
        Some(Workload { fio: Some(fio), ..self.clone() })
    }

    /// Every command of it: the work, if it is one, and those beside it.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        let beside = [&self.setup, &self.prepare, &self.check, &self.cleanup];
        [&self.command].into_iter().chain(beside).flatten()
    }

    /// The commands beside the work.
    fn check_commands(&self) -> Result<(), String> {
        let commands = [
            ("setup", &self.setup),
            ("prepare", &self.prepare),
            ("check", &self.check),
            ("cleanup", &self.cleanup),
        ];
        let is_empty = |command: &Option<Command>| {
            command.as_ref().is_some_and(|command| command.argv().is_empty())
        };
        match commands.into_iter().find(|(_, command)| is_empty(command)) {
            Some((key, _)) => Err(format!("has an empty {key}: leave it out")),
            None => Ok(()),
        }
    }

    fn check_map(&self, work: Work) -> Result<(), String> {
        match work {
            Work::Command(command) => {
                map::check(&self.map)?;
                self.check_hidden(command)
            }
            Work::Fio(_) | Work::Sysbench(_) => map::check(&self.map),
            _ if self.map.is_empty() => Ok(()),
            _ => Err("has a map, which only programs need: fsverdict's own work is in its folder \
                      already"
                .into()),
        }
    }

    /// A program is not where a map has put a folder that nothing has been brought to.
    fn check_hidden(&self, command: &Command) -> Result<(), String> {
        let program = match command {
            Command::Argv(argv) => argv.first().map(String::as_str),
            Command::Shell(line) => line.split_whitespace().next(),
        };
        match program {
            Some(program)
                if map::is_mapped(&self.map, program)
                    && self.setup.is_none()
                    && self.prepare.is_none() =>
            {
                Err(format!(
                    "runs {program}, which its map hides: the new file system's folder is there \
                     instead; map the folder of the data alone, or run a copy from elsewhere"
                ))
            }
            _ => Ok(()),
        }
    }

    fn check_network(&self, work: Work) -> Result<(), String> {
        match &self.network {
            Some(network) if matches!(work, Work::Command(_)) => network.check(),
            Some(_) => Err("has a network, which only a command can use".into()),
            None => Ok(()),
        }
    }

    fn check_figures(&self, work: Work) -> Result<(), String> {
        let Some((name, _)) = self.figures.first_key_value() else { return Ok(()) };
        if !matches!(work, Work::Command(_)) {
            return Err(format!("has the figure {name:?}, which only a command can print"));
        }
        for (name, pattern) in &self.figures {
            if !is_metric(name) {
                return Err(format!("has the figure {name:?}: write its name in a-z, 0-9 and _"));
            }
            let wrong = pattern.parse::<Pattern>().err();
            if let Some(wrong) = wrong {
                return Err(format!("has the figure {name}, whose expression is wrong: {wrong}"));
            }
        }
        Ok(())
    }

    /// The link that the trial makes for its clients, if it does.
    pub fn link(&self) -> Option<&Network> {
        self.network.as_ref().filter(|network| network.interface.is_none())
    }

    /// The programs or files it needs, each with its Debian package where one is named.
    pub fn needed(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.needs.iter().map(|need| match need.split_once(':') {
            Some((program, package)) => (program, Some(package)),
            None => (need.as_str(), None),
        })
    }

    /// The timed parts, in order.
    pub fn phases(&self) -> Vec<Phase> {
        match (&self.small_files, &self.metadata, &self.tree) {
            (Some(_), _, _) => Operation::ALL.map(Phase::SmallFiles).to_vec(),
            (_, Some(metadata), _) => {
                metadata.operations.iter().copied().map(Phase::Metadata).collect()
            }
            (_, _, Some(tree)) => tree.phases.iter().copied().map(Phase::Tree).collect(),
            _ => vec![Phase::Whole],
        }
    }

    /// The timed part that `metric` is of: its name begins the metric's; of `walk` and `walk_again`
    /// the longer one.
    pub fn phase_of(&self, metric: &str) -> Phase {
        let begins = |phase: &Phase| {
            let rest = metric.strip_prefix(phase.name());
            rest.is_some_and(|rest| rest.starts_with('_'))
        };
        let its = self.phases().into_iter().filter(begins);
        its.max_by_key(|phase| phase.name().len()).unwrap_or(Phase::Whole)
    }

    /// The job that `metric` is of, where there are several, and what it is of that.
    pub fn job_of<'a>(&'a self, metric: &'a str) -> Option<(&'a str, &'a str)> {
        self.jobs.as_ref()?.split(metric)
    }

    /// The metrics that are judged.
    pub fn primary(&self) -> Vec<String> {
        if !self.primary.is_empty() {
            return self.primary.clone();
        }
        if !self.figures.is_empty() {
            return self.figures.keys().cloned().collect();
        }
        match self.work() {
            Ok(work) if work.has_requests() => match &self.jobs {
                Some(jobs) => jobs.names.iter().map(|name| format!("{name}_iops")).collect(),
                None => vec!["iops".into()],
            },
            Ok(Work::SmallFiles(_) | Work::Metadata(_) | Work::Tree(_)) => {
                self.phases().iter().map(|phase| format!("{}_rate", phase.name())).collect()
            }
            Ok(Work::FsyncFiles(files)) => vec![files.primary().into()],
            Ok(Work::Replay(replay)) => vec![replay.primary().into()],
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
    fn small_files_that_can_not_be_made_are_refused() {
        let of = |text: &str| {
            let text = format!("name = \"w\"\nsmall_files = {{ {text} }}");
            toml::from_str::<Workload>(&text).unwrap().work().map(drop)
        };
        of("threads = 2, directories = 2").unwrap();
        for (wrong, says) in [
            ("count = 0", "needs at least one file, one directory and one thread"),
            ("threads = 2", "has 2 threads for 1 directories"),
            ("size = \"64G\"", "has files of 64G: at most"),
        ] {
            let said = of(wrong).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn an_empty_command_is_none() {
        for key in ["setup", "prepare", "check", "cleanup", "command"] {
            let text = format!("name = \"w\"\nfio = {{ rw = \"write\" }}\n{key} = []");
            let text =
                if key == "command" { text.replace("fio = ", "environment = ") } else { text };
            let workload: Workload = toml::from_str(&text).unwrap();
            let wrong = workload.work().unwrap_err();
            assert!(wrong.contains(&format!("has an empty {key}")), "{wrong}");
        }
    }

    #[test]
    fn a_metric_is_of_the_part_whose_whole_name_begins_it() {
        let workload: Workload = toml::from_str("name = \"w\"\ntree = {}").unwrap();
        for phase in workload.phases() {
            let metric = format!("{}_rate", phase.name());
            assert_eq!(workload.phase_of(&metric), phase, "{metric}");
        }
        assert_eq!(workload.phase_of("walk_again_rate").name(), "walk_again");
        assert_eq!(workload.phase_of("wall_time"), Phase::Whole);
    }

    #[test]
    fn a_network_is_a_commands() {
        let of = |text: &str| toml::from_str::<Workload>(&format!("name = \"w\"\n{text}")).unwrap();
        let linked = of("network = {}\ncommand = \"true\"");
        assert!(linked.work().is_ok() && linked.link().is_some());
        let outside = of("network = { interface = \"eth0\" }\ncommand = \"true\"");
        assert!(outside.work().is_ok() && outside.link().is_none());
        let wrong = of("network = {}\nmetadata = {}").work().unwrap_err();
        assert!(wrong.starts_with("workload \"w\" has a network, which only"), "{wrong}");
        assert!(of("network = { mtu = 1 }\ncommand = \"true\"").work().is_err());
    }

    #[test]
    fn figures_are_a_commands_and_judge_it() {
        let of = |text: &str| toml::from_str::<Workload>(&format!("name = \"w\"\n{text}")).unwrap();
        let figures = "figures = { x = '^x: (\\S+):MB/s', a = 'a (\\d+)' }\n";
        let printed = of(&format!("command = \"true\"\n{figures}"));
        assert!(printed.work().is_ok());
        assert_eq!(printed.primary(), ["a", "x"]);
        let named = of(&format!("primary = [\"x\"]\ncommand = \"true\"\n{figures}"));
        assert_eq!(named.primary(), ["x"]);
        for (wrong, says) in [
            (format!("metadata = {{}}\n{figures}"), "which only a command can print"),
            ("command = \"x\"\nfigures = { X = \"a\" }".into(), "\"X\": write its name in a-z"),
            ("command = \"x\"\nfigures = { x = \"(\" }".into(), "the figure x, whose expression"),
        ] {
            let error = of(&wrong).work().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_a_workload_needs_is_a_program_and_its_package() {
        let needs = ["pgbench:postgresql-15", "tar"].map(String::from).to_vec();
        let workload = Workload { needs, ..Workload::default() };
        let needed: Vec<_> = workload.needed().collect();
        assert_eq!(needed, [("pgbench", Some("postgresql-15")), ("tar", None)]);
    }

    #[test]
    fn fsverdicts_own_variables_are_not_to_be_set() {
        let wrong = |name: &str| {
            check_environment(&[(name.to_string(), Scalar::Whole(1))].into()).unwrap_err()
        };
        assert!(wrong("FSVERDICT_SEED").contains("fsverdict's own"));
        assert!(wrong("FULL PAGE").contains("not a variable's name"));
        assert!(wrong("").contains("not a variable's name"));
        check_environment(&[("_Scale9".to_string(), Scalar::Whole(1))].into()).unwrap();
    }

    #[test]
    fn a_depth_is_doubled_however_it_is_written() {
        let deep = |fio: &str| -> Option<Vec<String>> {
            let workload: Workload = toml::from_str(&format!("name = \"w\"\nfio = {fio}")).unwrap();
            Some(workload.at_twice_the_depth()?.fio?.arguments("w")[1..].to_vec())
        };
        let table = deep("{ ioengine = \"io_uring\", iodepth = \"8\" }");
        assert_eq!(table.unwrap(), ["--iodepth=16", "--ioengine=io_uring"]);
        let words = |words: &str| deep(&format!("[\"--name=w\", \"--ioengine=libaio\"{words}]"));
        assert_eq!(words(", \"--iodepth=4\"").unwrap(), ["--ioengine=libaio", "--iodepth=8"]);
        assert_eq!(words(", \"--iodepth\", \"4\"").unwrap(), ["--ioengine=libaio", "--iodepth=8"]);
        let kept = words(", \"--iodepth_batch=4\"").unwrap();
        assert_eq!(kept, ["--name=w", "--ioengine=libaio", "--iodepth_batch=4"]);
        assert_eq!(words(", \"--iodepth=x\""), None);
        assert_eq!(deep("{ ioengine = \"sync\", iodepth = 8 }"), None);
        assert_eq!(deep("\"job.fio\""), None);
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
