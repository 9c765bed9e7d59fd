//! `fsverdict`: which file system, with which settings, on this disk, for this work?

mod cmd;
mod exit;
mod help;
mod offers;
mod pack;
mod say;
mod shipped;
mod source;
mod store;
mod uses;
mod watch;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;

/// Which file system, with which settings, on this disk, for this work?
///
/// Makes each file system afresh, runs the work on each in interleaved rounds, watches what the
/// CPU, the device and the kernel do meanwhile, and gives a verdict with an interval.
#[derive(Parser)]
#[command(version, after_help = STATUS, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const STATUS: &str = "\
Exit status: 0 done; 1 something could not be done; 2 usage; 3 refused for safety;
4 compare found something slower, or report a claim that does not hold; 5 every workload is void;
6 check could not judge all; 130 interrupted.";

#[derive(Subcommand)]
enum Command {
    Run(Box<cmd::arguments::Arguments>),
    Audit(cmd::audit::Arguments),
    Judge(cmd::judge::Arguments),
    Check(cmd::check::Arguments),
    Report(cmd::report::Arguments),
    Reproduce(Box<cmd::reproduce::Arguments>),
    Compare(cmd::compare::Arguments),
    Advise(cmd::advise::Arguments),
    History(cmd::history::Arguments),
    Anatomy(Box<cmd::anatomy::Arguments>),
    Pack(cmd::pack::Arguments),
    Doctor(cmd::doctor::Arguments),
    For(Box<cmd::for_use::Arguments>),
    List(cmd::list::Arguments),
    Record(cmd::record::Arguments),
    Clean(cmd::clean::Arguments),
    Kernels(cmd::kernels::Arguments),
    Selftest(cmd::selftest::Arguments),
    Show(cmd::show::Arguments),
    Tree(cmd::tree::Arguments),
    Vm(cmd::vm::Arguments),
    Trial(cmd::trial::Arguments),
    Man(cmd::man::Arguments),
    Completions(cmd::completions::Arguments),
}

fn main() -> std::process::ExitCode {
    if fsverdict_host::place::vm::guest::is_guest() {
        fsverdict_host::place::vm::guest::live();
    }
    CompleteEnv::with_factory(program).complete();
    let result = match typed().command {
        Command::Run(arguments) => cmd::run::run(&arguments),
        Command::Audit(arguments) => cmd::audit::run(&arguments),
        Command::Judge(arguments) => cmd::judge::run(&arguments),
        Command::Check(arguments) => cmd::check::run(&arguments),
        Command::Report(arguments) => cmd::report::run(&arguments),
        Command::Reproduce(arguments) => cmd::reproduce::run(&arguments),
        Command::Compare(arguments) => cmd::compare::run(&arguments),
        Command::Advise(arguments) => cmd::advise::run(&arguments),
        Command::History(arguments) => cmd::history::run(&arguments),
        Command::Anatomy(arguments) => cmd::anatomy::run(&arguments),
        Command::Pack(arguments) => cmd::pack::run(&arguments),
        Command::Doctor(arguments) => cmd::doctor::run(&arguments),
        Command::For(arguments) => cmd::for_use::run(&arguments),
        Command::List(arguments) => cmd::list::run(&arguments),
        Command::Record(arguments) => cmd::record::run(&arguments),
        Command::Clean(arguments) => cmd::clean::run(&arguments),
        Command::Kernels(arguments) => cmd::kernels::run(&arguments),
        Command::Selftest(arguments) => cmd::selftest::run(&arguments),
        Command::Show(arguments) => cmd::show::run(&arguments),
        Command::Tree(arguments) => cmd::tree::run(&arguments),
        Command::Vm(arguments) => cmd::vm::run(&arguments),
        Command::Trial(arguments) => cmd::trial::run(&arguments),
        Command::Man(arguments) => cmd::man::run(&arguments, Arguments::command()),
        Command::Completions(arguments) => cmd::completions::run(&arguments),
    };
    exit::code(result)
}

/// The command line's definition, as its help shows it.
fn program() -> clap::Command {
    help::grouped(Arguments::command())
}

/// What was typed; where that is wrong, it is said and the program ends.
fn typed() -> Arguments {
    let program = program();
    let typed = program.clone().try_get_matches().and_then(|it| Arguments::from_arg_matches(&it));
    typed.unwrap_or_else(|error| help::with_near(error, &program).exit())
}
