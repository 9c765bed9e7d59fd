//! Any command, as a workload and as the untimed steps around one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::ExitStatus;

use thiserror::Error;

use crate::tool;

/// A user's command that could not be run, or said that it failed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CommandError {
    #[error("{path}: {source}")]
    Output { path: String, source: std::io::Error },
    #[error("{command} could not be started: {source}")]
    Start { command: String, source: std::io::Error },
    #[error("{command} {}{said}", tool::ended(*status))]
    Failed { command: String, status: ExitStatus, said: String },
}

/// Where a command runs and where what it prints goes.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// Its working directory: in the file system under test.
    pub directory: &'a Path,
    /// The folder for its output: `NAME.stdout` and `NAME.stderr`.
    pub raw: &'a Path,
    /// The trial's environment.
    pub environment: &'a BTreeMap<String, String>,
}

/// A command with its output files open, so that starting it is all that is left to do.
#[derive(Debug)]
pub struct Ready {
    command: std::process::Command,
    shown: String,
    stderr: std::path::PathBuf,
}

/// Prepares `argv` in `scene`; `name` names its output.
pub fn ready(argv: &[String], name: &str, scene: Scene) -> Result<Ready, CommandError> {
    let open = |suffix: &str| {
        let path = scene.raw.join(format!("{name}.{suffix}"));
        File::create(&path)
            .map(|file| (file, path.clone()))
            .map_err(|source| CommandError::Output { path: path.display().to_string(), source })
    };
    let (stdout, _) = open("stdout")?;
    let (errors, stderr) = open("stderr")?;
    let mut command = tool::users(argv);
    command.current_dir(scene.directory).envs(scene.environment).stdout(stdout).stderr(errors);
    Ok(Ready { command, shown: shown(argv), stderr })
}

impl Ready {
    /// Runs it to its end; an exit status other than 0 is an error.
    pub fn run(mut self) -> Result<(), CommandError> {
        let shown = self.shown;
        let status = match self.command.status() {
            Ok(status) => status,
            Err(source) => return Err(CommandError::Start { command: shown, source }),
        };
        if status.success() {
            return Ok(());
        }
        let said = last_line(&self.stderr);
        Err(CommandError::Failed { command: shown, status, said })
    }
}

/// `argv` in a line: a script of several is not repeated where it fails.
fn shown(argv: &[String]) -> String {
    match argv.iter().any(|word| word.trim().contains('\n')) {
        true => "the script".into(),
        false => tool::shown(argv).replace('\n', " "),
    }
}

fn last_line(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| format!(": {line}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(argv: &[&str]) -> (Result<(), CommandError>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let environment = BTreeMap::from([("FSVERDICT_SEED".to_string(), "7".to_string())]);
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let scene =
            Scene { directory: folder.path(), raw: folder.path(), environment: &environment };
        let result = ready(&argv, "command", scene).and_then(Ready::run);
        (result, folder)
    }

    #[test]
    fn it_runs_in_its_directory_with_the_trials_environment() {
        let (result, folder) = run(&["sh", "-c", "echo $FSVERDICT_SEED > seed; echo done"]);
        result.unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("seed")).unwrap(), "7\n");
        assert_eq!(fs::read_to_string(folder.path().join("command.stdout")).unwrap(), "done\n");
    }

    #[test]
    fn a_failure_carries_the_last_thing_it_said() {
        let (result, _folder) = run(&["sh", "-c", "echo disk on fire >&2; exit 9"]);
        let error = result.unwrap_err().to_string();
        assert!(error.ends_with("failed with exit status 9: disk on fire"), "{error}");
        let (result, _folder) = run(&["sh", "-c", "set -e\nfalse\n"]);
        assert_eq!(result.unwrap_err().to_string(), "the script failed with exit status 1");
        let (result, _folder) = run(&["no-such-program"]);
        assert!(result.unwrap_err().to_string().contains("could not be started"));
    }
}
