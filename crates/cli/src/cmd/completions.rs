//! `fsverdict completions`: what a shell needs to complete the options, from their definition.

use std::io::Write;

use anyhow::Result;
use clap_complete::Shell;

use crate::exit;

/// Print what a shell needs to complete commands and options.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict completions bash > /usr/share/bash-completion/completions/fsverdict
  fsverdict completions zsh > /usr/local/share/zsh/site-functions/_fsverdict
  fsverdict completions fish > ~/.config/fish/completions/fsverdict.fish";

/// Prints the completions of `program`.
pub fn run(arguments: &Arguments, mut program: clap::Command) -> Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "fsverdict", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(exit::DONE)
}
