//! A pack, written. The same texts always give the same bytes, for any user at any time.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};
use tar::{Builder, Header};

use super::{FILE_BYTES_MAX, place};

/// Packs the named files below a folder called `top`. All are said to be of `time_s`, the run's
/// beginning in Unix time: of their own one learns nothing, and tar(1) warns of 1970.
pub fn write(
    file: &File,
    top: &str,
    time_s: u64,
    mut names: Vec<String>,
    content: &mut dyn FnMut(&str) -> Result<Option<Vec<u8>>>,
) -> Result<()> {
    // gzip's header may hold a time and a system; these are the words for none (RFC 1952).
    let gzip = GzBuilder::new().mtime(0).operating_system(255);
    let mut archive = Builder::new(gzip.write(BufWriter::new(file), Compression::best()));
    names.sort_by(|one, other| place(one).cmp(&place(other)));
    for name in names {
        let Some(bytes) = content(&name)? else { continue };
        let fits = bytes.len() as u64 <= FILE_BYTES_MAX;
        ensure!(
            fits,
            "{name} has {} bytes: a packed run's files have at most 256 MiB",
            bytes.len()
        );
        // The oldest format that everybody reads: POSIX.1-1988.
        let mut header = Header::new_ustar();
        header.set_path(format!("{top}/{name}")).with_context(|| format!("packing {name}"))?;
        header.set_size(bytes.len() as u64);
        header.set_mtime(time_s);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_cksum();
        archive.append(&header, bytes.as_slice())?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(file.sync_all()?)
}
