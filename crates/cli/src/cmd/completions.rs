//! `fsverdict completions`: what a shell needs to complete commands, options and names.

use std::io::Write;

use anyhow::{Result, bail};
use clap::ValueEnum;
use clap_complete::env::Shells;

use crate::exit;

/// Print what a shell needs to complete commands, options, and the names of plans, uses and runs.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict completions bash > /usr/share/bash-completion/completions/fsverdict
  fsverdict completions zsh > /usr/local/share/zsh/site-functions/_fsverdict
  fsverdict completions fish > ~/.config/fish/completions/fsverdict.fish

The shell asks fsverdict itself for what to offer: runs come and go.";

/// Prints the completions of the program.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let name = format!("{:?}", arguments.shell).to_lowercase();
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&name) else { bail!("nothing is known of {name}") };
    let mut text = Vec::new();
    shell.write_registration("COMPLETE", "fsverdict", "fsverdict", "fsverdict", &mut text)?;
    std::io::stdout().write_all(&text)?;
    Ok(exit::DONE)
}
