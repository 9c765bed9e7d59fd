//! Files without a name.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file of that name that nobody else can open: it has none any more.
pub(super) fn nameless(folder: &Path, name: &str) -> io::Result<File> {
    let path = folder.join(format!("fsverdict-{}-{name}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}
