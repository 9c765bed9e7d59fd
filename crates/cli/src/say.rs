//! What the program says: every text leaves here, on standard output or standard error, and nothing
//! in it controls the terminal. Names and messages in it come from plans, runs and programs.

use std::env;
use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use fsverdict_core::model::SCHEMA;
use fsverdict_core::render::{self, Painted};
use serde_json::json;

/// How much of a run's report is shown on a terminal, and whether in colours.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Look {
    /// Show all tables, verdicts in words and findings, too.
    #[arg(short, long)]
    pub verbose: bool,
    /// Colours: when the output is a terminal and NO_COLOR is not set, always, or never.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

/// When there are colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl Look {
    /// Whether standard output has colours. NO_COLOR counts where it is not empty (no-color.org).
    fn is_coloured(self) -> bool {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
                stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
            }
        }
    }
}

/// On standard output, in colours where they are wanted.
pub fn show(painted: &Painted, look: Look) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(painted.text(look.is_coloured()).as_bytes())?;
    out.flush()
}

/// On standard output, at once.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(render::visible(text).as_bytes())?;
    out.flush()
}

/// On standard error, as it is said. A terminal that is gone is no reason to end anything.
pub fn tell(text: &str) {
    let _ = writeln!(stderr(), "{}", render::visible(text));
}

/// Whether programs read standard error, and want an object on each line.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on a remark is an object, as all else is on standard error.
pub fn remark_in_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// On standard error, where nobody there wants objects alone.
pub fn tell_people(text: &str) {
    if !IS_JSON.load(Ordering::Relaxed) {
        tell(text);
    }
}

/// On standard error: with the program's name, as shells have it, or as an object.
pub fn make_remark(text: &str) {
    match IS_JSON.load(Ordering::Relaxed) {
        true => {
            let line = json!({ "schema": SCHEMA, "event": "remark", "text": text });
            tell(&render::one_line(&line.to_string()));
        }
        false => tell(&format!("fsverdict: {text}")),
    }
}

/// [`make_remark`], formatted.
macro_rules! remark {
    ($($text:tt)*) => { $crate::say::make_remark(&format!($($text)*)) };
}

pub(crate) use remark;
