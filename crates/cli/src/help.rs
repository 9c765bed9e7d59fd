//! The first screen of the help: examples, then the commands by purpose; and the message for a
//! command that does not exist.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use fsverdict_core::model::meant;

/// The commands by what they are for. A test sees to it that none is left out.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["for", "run", "reproduce", "anatomy", "record"]),
    ("Read what was measured", &["report", "compare", "history", "advise", "pack"]),
    ("Look at figures and settings of others", &["judge", "audit", "check"]),
    ("See what there is", &["list", "show", "doctor", "kernels", "vm", "tree"]),
    ("Look after it", &["clean", "selftest", "trial", "man", "completions"]),
];

const EXAMPLES: &str = "\
Examples:
  sudo fsverdict for postgresql --on /srv
  sudo fsverdict run --fs ext4,xfs,btrfs -- cp -a /usr/share/doc .
  sudo fsverdict run --fs ext4,xfs -- fio --name=job --rw=randwrite --bs=4k --size=256m
  sudo fsverdict run --fs ext4,xfs,btrfs --small-files count=10000,size=1k
  fsverdict run --kernel 5.10 --kernel 6.12 --fs ext4 --size 1G --fsync-files files=10
  fsverdict doctor";

/// `program` with its commands in groups, below examples.
pub fn grouped(program: clap::Command) -> clap::Command {
    let line = |name: &&str| {
        let found = program.find_subcommand(name);
        let about = found.and_then(clap::Command::get_about).map(StyledStr::to_string);
        let about = about.unwrap_or_default();
        let first = about.lines().next().unwrap_or_default();
        format!("  {name:<12} {first}\n")
    };
    let group = |(title, names): &(&str, &[&str])| {
        format!("{title}:\n{}\n", names.iter().map(line).collect::<String>())
    };
    let commands: String = GROUPS.iter().map(group).collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{EXAMPLES}\n\n{commands}\
         Options:\n{{options}}{{after-help}}"
    );
    program.help_template(template)
}

/// The error with the nearest command, where one was typed that does not exist: clap's own measure
/// takes two letters in the wrong order for another word.
pub fn with_near(error: clap::Error, program: &clap::Command) -> clap::Error {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) if error.kind() == ErrorKind::InvalidSubcommand => typed,
        _ => return error,
    };
    let names: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
    let text = format!("unrecognized subcommand '{typed}'; {}", meant(typed, names));
    program.clone().error(ErrorKind::InvalidSubcommand, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let program = Arguments::command();
        let mut known: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn a_slip_in_a_command_is_seen_through() {
        let program = Arguments::command();
        let told = |word: &str| {
            let error = program.clone().try_get_matches_from(["fsverdict", word]).unwrap_err();
            with_near(error, &program).to_string()
        };
        assert!(told("rnu").contains("unrecognized subcommand 'rnu'; did you mean run?"));
        assert!(told("advice").contains("did you mean advise?"));
        assert!(told("dance").contains("there are run, "), "{}", told("dance"));
    }
}
