//! `fsverdict`: which file system, with which settings, on this disk, for this work?

mod cmd;
mod exit;
mod pack;
mod say;
mod shipped;
mod source;
mod store;
mod uses;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};

/// Which file system, with which settings, on this disk, for this work?
///
/// Makes each file system afresh, runs the work on each in interleaved rounds, watches what the
/// CPU, the device and the kernel do meanwhile, and gives a verdict with an interval.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  sudo fsverdict run --fs ext4,xfs,btrfs -- cp -a /usr/share/doc .
  sudo fsverdict run --fs ext4,xfs -- fio --name=job --rw=randwrite --bs=4k --size=256m
  sudo fsverdict run --fs ext4,xfs,btrfs --small-files count=10000,size=1k
  fsverdict run --place vm --kernel 5.10 --kernel 6.12 --fs ext4 --small-files
  fsverdict record --output mine.toml -- COMMAND
  fsverdict doctor

Exit status: 0 done; 1 something could not be done; 2 usage; 3 refused for safety;
4 compare found something slower; 5 every workload is void; 130 interrupted.";

#[derive(Subcommand)]
enum Command {
    Run(Box<cmd::arguments::Arguments>),
    Audit(cmd::audit::Arguments),
    Judge(cmd::judge::Arguments),
    Check(cmd::check::Arguments),
    Report(cmd::report::Arguments),
    Compare(cmd::compare::Arguments),
    Advise(cmd::advise::Arguments),
    History(cmd::history::Arguments),
    Anatomy(cmd::anatomy::Arguments),
    Pack(cmd::pack::Arguments),
    Doctor(cmd::doctor::Arguments),
    List(cmd::list::Arguments),
    Record(cmd::record::Arguments),
    Clean(cmd::clean::Arguments),
    Kernels(cmd::kernels::Arguments),
    Selftest(cmd::selftest::Arguments),
    Tree(cmd::tree::Arguments),
    Trial(cmd::trial::Arguments),
    Man(cmd::man::Arguments),
    Completions(cmd::completions::Arguments),
}

fn main() -> std::process::ExitCode {
    if fsverdict_host::place::vm::guest::is_guest() {
        fsverdict_host::place::vm::guest::live();
    }
    let result = match Arguments::parse().command {
        Command::Run(arguments) => cmd::run::run(&arguments),
        Command::Audit(arguments) => cmd::audit::run(&arguments),
        Command::Judge(arguments) => cmd::judge::run(&arguments),
        Command::Check(arguments) => cmd::check::run(&arguments),
        Command::Report(arguments) => cmd::report::run(&arguments),
        Command::Compare(arguments) => cmd::compare::run(&arguments),
        Command::Advise(arguments) => cmd::advise::run(&arguments),
        Command::History(arguments) => cmd::history::run(&arguments),
        Command::Anatomy(arguments) => cmd::anatomy::run(&arguments),
        Command::Pack(arguments) => cmd::pack::run(&arguments),
        Command::Doctor(arguments) => cmd::doctor::run(&arguments),
        Command::List(arguments) => cmd::list::run(&arguments),
        Command::Record(arguments) => cmd::record::run(&arguments),
        Command::Clean(arguments) => cmd::clean::run(&arguments),
        Command::Kernels(arguments) => cmd::kernels::run(&arguments),
        Command::Selftest(arguments) => cmd::selftest::run(&arguments),
        Command::Tree(arguments) => cmd::tree::run(&arguments),
        Command::Trial(arguments) => cmd::trial::run(&arguments),
        Command::Man(arguments) => cmd::man::run(&arguments, Arguments::command()),
        Command::Completions(arguments) => cmd::completions::run(&arguments, Arguments::command()),
    };
    exit::code(result)
}
