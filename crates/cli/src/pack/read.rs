//! A pack, read from its beginning to its end, and trusted in nothing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flate2::bufread::GzDecoder;
use tar::{Archive, Entry};

use super::{FILE_BYTES_MAX, FILES_MAX, SHORT_BYTES, TIMES_MAX, below_top, place};

/// A plain file begins as every gzip does (RFC 1952, 2.3.1). A pipe is not looked into: what was
/// read from it is gone.
pub fn is_gzip(path: &Path) -> io::Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut magic = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut magic)?;
    Ok(magic == [0x1f, 0x8b])
}

/// A gzip holds a run, by the first file in it.
pub fn is_pack(path: &Path) -> Result<bool> {
    let mut stream = Stream::open(path)?;
    let mut archive = Archive::new(&mut stream);
    let first = archive.entries()?.raw(true).next().transpose();
    let is_plan = |entry: Entry<_>| entry.path_bytes().ends_with(b"/plan.toml");
    let is_pack = first.is_ok_and(|first| first.is_some_and(is_plan));
    match stream.fault {
        Some(fault) => bail!("{} {fault}", path.display()),
        None => Ok(is_pack),
    }
}

/// Hands over the name and text of each file that is wanted, and then compares the checksum.
pub fn read(
    path: &Path,
    wanted: &dyn Fn(&str) -> bool,
    each: &mut dyn FnMut(&str, String) -> Result<()>,
) -> Result<()> {
    let mut stream = Stream::open(path).with_context(|| path.display().to_string())?;
    let content = files(&mut stream, wanted, each);
    // A damaged file holds nonsense. That it is damaged goes before what nonsense it is.
    if let Some(fault) = stream.ended(content.is_ok()) {
        bail!("{} {fault}", path.display());
    }
    content.with_context(|| path.display().to_string())
}

fn files(
    stream: &mut Stream,
    wanted: &dyn Fn(&str) -> bool,
    each: &mut dyn FnMut(&str, String) -> Result<()>,
) -> Result<()> {
    let mut archive = Archive::new(stream);
    let mut before: Option<String> = None;
    // Raw: extensions that rename, link or resize what follows them are refused as they come.
    for (number, entry) in archive.entries()?.raw(true).enumerate() {
        let mut entry = entry.context("it is not a run that was packed")?;
        ensure!(number < FILES_MAX, "it holds more than {FILES_MAX} files");
        let path = checked(&entry)?;
        let (top, name) = below_top(&path)
            .with_context(|| format!("it holds {path:?}, which is not a file below a folder"))?;
        if let Some((top_before, before)) = before.as_deref().and_then(below_top) {
            ensure!(top == top_before, "it holds {path:?}, which is not in {top_before:?}");
            let follows = place(before) < place(name);
            ensure!(follows, "it holds {path:?} after {before:?}: twice, or not in order");
        }
        if wanted(name) {
            let mut text = String::new();
            entry.read_to_string(&mut text).with_context(|| name.to_string())?;
            each(name, text).with_context(|| name.to_string())?;
        }
        before = Some(path);
    }
    Ok(())
}

/// The path of a plain file of sensible length.
fn checked(entry: &Entry<impl Read>) -> Result<String> {
    let path = entry.path_bytes();
    let Ok(path) = std::str::from_utf8(&path) else {
        bail!("it holds {:?}, which is not text", String::from_utf8_lossy(&path));
    };
    ensure!(entry.header().entry_type().is_file(), "it holds {path:?}, which is not a plain file");
    let bytes = entry.size();
    ensure!(bytes <= FILE_BYTES_MAX, "it holds {path:?} of {bytes} bytes: too long for a run's");
    Ok(path.into())
}

/// The content of the gzip, up to a length, and what is wrong with it.
struct Stream {
    gzip: GzDecoder<BufReader<File>>,
    left_bytes: u64,
    fault: Option<String>,
}

impl Stream {
    fn open(path: &Path) -> io::Result<Stream> {
        let file = File::open(path)?;
        let left_bytes = file.metadata()?.len().saturating_mul(TIMES_MAX).max(SHORT_BYTES);
        Ok(Stream { gzip: GzDecoder::new(BufReader::new(file)), left_bytes, fault: None })
    }

    /// Reads the rest, which has the checksum compared, and says what is wrong. After the last file
    /// of a tar that was read whole there are only zeros.
    fn ended(&mut self, is_read: bool) -> Option<String> {
        let (mut buffer, mut only_zeros) = ([0; 1 << 14], true);
        while self.fault.is_none() {
            match self.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => only_zeros &= buffer[..count].iter().all(|byte| *byte == 0),
                Err(_) => {}
            }
        }
        let is_over = self.gzip.get_mut().fill_buf().is_ok_and(<[u8]>::is_empty);
        self.fault.take().or_else(|| match is_over {
            false => Some("goes on after its end".into()),
            true if is_read && !only_zeros => Some("holds something after its last file".into()),
            true => None,
        })
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let fault = match self.gzip.read(buffer) {
            Ok(count) if count as u64 <= self.left_bytes => {
                self.left_bytes -= count as u64;
                return Ok(count);
            }
            Ok(_) => "is refused: it is much longer than a run when it is unpacked".to_string(),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                "ends too early: copy it again, whole".to_string()
            }
            Err(error) => format!("is damaged: copy it again ({error})"),
        };
        let error = io::Error::other(fault.clone());
        self.fault.get_or_insert(fault);
        Err(error)
    }
}
