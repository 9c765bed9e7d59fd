//! What the program says: every text leaves here, on standard output or standard error, and nothing
//! in it controls the terminal. Names and messages in it come from plans, runs and programs.

use std::io::{self, Write, stderr, stdout};

use fsverdict_core::render;

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

/// On standard error, with the program's name, as shells have it.
macro_rules! remark {
    ($($text:tt)*) => { $crate::say::tell(&format!("fsverdict: {}", format_args!($($text)*))) };
}

pub(crate) use remark;
