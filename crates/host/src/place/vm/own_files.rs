//! What a program reads besides its own file and its libraries, and no command names: an
//! interpreter's own modules, git's other programs. The program itself says where these lie.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::tool;

/// Folders that are not brought: the modules of others, which have no end, and tests.
pub const LEFT_OUT: [&str; 4] = ["site-packages", "dist-packages", "test", "tests"];
/// How long a program may take to say it.
const LIMIT: Duration = Duration::from_secs(10);

/// Programs, and the arguments with which each says its folders, a line each. Config(3perl) has
/// perl's; the smallest one of Debian has others.
const ASKED: [(&str, &[&str]); 3] = [
    (
        "perl",
        &[
            "-MConfig",
            "-e",
            r#"print "$_\n" for @Config{"privlibexp", "archlibexp"}, grep /perl-base$/, @INC"#,
        ],
    ),
    (
        "python3",
        &[
            "-I",
            "-S",
            "-c",
            "import sysconfig\nfor its in 'stdlib', 'platstdlib': print(sysconfig.get_path(its))",
        ],
    ),
    ("git", &["--exec-path"]),
];

/// The folders of `program`, a path without links. None of one that is not known, or that can't
/// say. It is run, and must be one of the system's; nobody's variables tell it what to answer.
pub fn folders(program: &Path) -> Vec<PathBuf> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let Some((_, arguments)) = ASKED.iter().find(|(known, _)| is_known_as(&name, known)) else {
        return Vec::new();
    };
    let path = program.display().to_string();
    let argv: Vec<String> =
        [path.as_str()].iter().chain(*arguments).map(ToString::to_string).collect();
    let answer = tool::ask_where(&argv, LIMIT, |command| {
        command.env_clear().current_dir("/");
        Ok(())
    });
    let answer = answer.map(|it| it.stdout).unwrap_or_default();
    let mut folders: Vec<PathBuf> = answer
        .lines()
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && path.is_dir())
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// It is that program, perhaps with a version: `python3.11`.
fn is_known_as(name: &str, known: &str) -> bool {
    let rest = name.strip_prefix(known);
    rest.is_some_and(|rest| rest.chars().all(|c| c == '.' || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_says_where_its_modules_are() {
        let perl = tool::find("perl").unwrap().canonicalize().unwrap();
        let holds = |name: &str| folders(&perl).iter().any(|folder| folder.join(name).is_file());
        assert!(holds("strict.pm") && holds("POSIX.pm"), "{:?}", folders(&perl));
        assert!(folders(Path::new("/bin/sh")).is_empty(), "it is not asked");
        let names =
            ["python3.11", "python3", "python3-config", "perl5.36.0", "perldoc", "git-shell"];
        let known = |name: &&str| ASKED.iter().any(|(known, _)| is_known_as(name, known));
        let known: Vec<&str> = names.into_iter().filter(known).collect();
        assert_eq!(known, ["python3.11", "python3", "perl5.36.0"]);
    }
}
