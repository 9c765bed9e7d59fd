//! What commands print: kept up to a cap, and counted beyond it. It comes through pipes that are
//! always emptied, so that nothing holds up or fails the work.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sys;

/// As much of an output is kept.
pub const KEPT_BYTES: u64 = 16 << 20;
/// The last of it, where a program says why it has failed.
const LAST_BYTES: usize = 4096;
/// More than a pipe holds (pipe(7)): with so much read, all is read that was in it.
const PIPE_BYTES: u64 = 2 << 20;

/// One output of a command, on its way into a file.
#[derive(Clone, Debug)]
pub struct Printed(Arc<Mutex<Way>>);

#[derive(Debug)]
struct Way {
    pipe: PipeReader,
    file: File,
    kept_bytes: u64,
    unkept_bytes: u64,
    last: Vec<u8>,
    /// Why the file takes no more.
    error: Option<io::Error>,
}

impl Printed {
    /// On its way into `file`; what is written to the pipe goes there.
    pub fn into_file(file: File) -> io::Result<(Printed, PipeWriter)> {
        let (pipe, writer) = io::pipe()?;
        sys::never_wait(&pipe)?;
        let watched = pipe.try_clone()?;
        let (last, error) = (Vec::new(), None);
        let way = Way { pipe, file, kept_bytes: 0, unkept_bytes: 0, last, error };
        let printed = Printed(Arc::new(Mutex::new(way)));
        let ours = printed.clone();
        // The thread starts before the work is timed, and ends with the last writer.
        std::thread::Builder::new()
            .name("printed".into())
            .spawn(move || while sys::wait_readable(&watched).is_ok() && ours.way().empty() {})?;
        Ok((printed, writer))
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in all that is there now. An ended process prints no more.
    pub fn take_in(&self) -> io::Result<()> {
        let mut way = self.way();
        way.empty();
        way.error.take().map_or(Ok(()), Err)
    }

    /// How much of it is not in the file.
    pub fn unkept_bytes(&self) -> u64 {
        self.way().unkept_bytes
    }

    /// The last of it.
    pub fn last(&self) -> String {
        String::from_utf8_lossy(&self.way().last).into_owned()
    }
}

impl Way {
    /// Reads what is there; whether more may come.
    fn empty(&mut self) -> bool {
        let mut buffer = [0; 64 << 10];
        let mut read_bytes = 0;
        while read_bytes < PIPE_BYTES {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => {
                    read_bytes += length as u64;
                    self.keep(&buffer[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = if self.error.is_some() { 0 } else { KEPT_BYTES - self.kept_bytes };
        let (kept, unkept) = piece.split_at(piece.len().min(room as usize));
        self.unkept_bytes += unkept.len() as u64;
        match self.file.write_all(kept) {
            Ok(()) => self.kept_bytes += kept.len() as u64,
            Err(error) => {
                self.unkept_bytes += kept.len() as u64;
                self.error = Some(error);
            }
        }
        let piece = &piece[piece.len().saturating_sub(LAST_BYTES)..];
        let over = (self.last.len() + piece.len()).saturating_sub(LAST_BYTES);
        self.last.drain(..over);
        self.last.extend_from_slice(piece);
    }
}

/// The outputs of a trial's commands, by their files.
#[derive(Debug, Default)]
pub struct Outputs(Mutex<BTreeMap<String, Printed>>);

impl Outputs {
    /// Adds one. Another of that name has been written over.
    pub fn add(&self, name: String, printed: &Printed) {
        self.all().insert(name, printed.clone());
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Printed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much is missing from the files, for those that lack something.
    pub fn unkept_bytes(&self) -> BTreeMap<String, u64> {
        let all = self.all();
        let unkept = all.iter().map(|(name, it)| (name.clone(), it.unkept_bytes()));
        unkept.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// How much this process has read from the pipes and written to the files: that is none of the
    /// work's.
    pub fn moved_bytes(&self) -> (u64, u64) {
        self.all().values().fold((0, 0), |(read, written), it| {
            let way = it.way();
            (read + way.kept_bytes + way.unkept_bytes, written + way.kept_bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (File, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (File::create_new(folder.path().join("x")).unwrap(), folder)
    }

    #[test]
    fn what_is_over_the_cap_is_counted_and_holds_nobody_up() {
        let (file, folder) = file();
        let (printed, mut writer) = Printed::into_file(file).unwrap();
        let line = [b'x'; 4096];
        let over = 5 * 4096;
        // A pipe holds less than this: without a reader it would wait for ever.
        for _ in 0..(KEPT_BYTES + over) / 4096 {
            writer.write_all(&line).unwrap();
        }
        writer.write_all(b"\nthe last line\n").unwrap();
        printed.take_in().unwrap();
        assert_eq!(printed.unkept_bytes(), over + 15);
        assert_eq!(folder.path().join("x").metadata().unwrap().len(), KEPT_BYTES);
        assert!(printed.last().ends_with("x\nthe last line\n"));
        assert!(printed.last().len() <= LAST_BYTES);
        let outputs = Outputs::default();
        outputs.add("x".into(), &printed);
        assert_eq!(outputs.unkept_bytes(), BTreeMap::from([("x".to_string(), over + 15)]));
        assert_eq!(outputs.moved_bytes(), (KEPT_BYTES + over + 15, KEPT_BYTES));
    }

    #[test]
    fn a_file_that_takes_nothing_is_said_and_the_pipe_is_emptied() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let (printed, mut writer) = Printed::into_file(file).unwrap();
        for _ in 0..64 {
            writer.write_all(&[0; 4096]).unwrap();
        }
        drop(writer);
        let told = (0..).find_map(|_| printed.take_in().err()).unwrap();
        assert_eq!(told.kind(), io::ErrorKind::StorageFull);
    }
}
