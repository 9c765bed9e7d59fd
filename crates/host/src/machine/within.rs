//! Whether we run in a guest of our own.

use std::path::Path;

/// Where the program is there.
pub const PROGRAM: &str = "/fsverdict/fsverdict";

/// We are a process of a guest.
pub fn is_guest() -> bool {
    std::env::current_exe().is_ok_and(|program| program == Path::new(PROGRAM))
}
