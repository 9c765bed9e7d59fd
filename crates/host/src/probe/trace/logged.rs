//! Every write of a guest's disk, as QEMU's blklogwrites logged it outside the guest.
//!
//! The log is of all that the guest did, in the order in which requests were completed. The work's
//! marks, written to a disk of their own, are in the same log: they say where its timed parts begin
//! and end, and what is between.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::Path;

use fsverdict_core::model::Device;
use fsverdict_core::model::trace::{Account, Item};
use fsverdict_core::trace::LogWrites;
use fsverdict_core::trace::file::{Head, Recorder, VERSION, Writer};

use super::name::Names;
use super::{TraceError, at};

/// So much of the disk behind the device under test is for marks.
pub const MARKS_BYTES: u64 = 64 << 10;
/// What a mark begins with that says where a timed part begins, before its name.
pub const BEGIN: &str = "begin ";
/// The same where it ends.
pub const END: &str = "end ";

/// Writes the timed parts that `log` has of `device`, on which nothing is mounted now, to `out`.
/// Gives what each of them adds up to.
pub fn write(
    log: &Path,
    device: &Device,
    file_system: &str,
    out: &Path,
) -> Result<Vec<Account>, TraceError> {
    let mut names = Names::of(file_system, std::slice::from_ref(device));
    each(log, device, &mut |item, _| {
        if let Item::Entry(entry) = &item {
            names.hear(entry);
        }
        Ok(())
    })?;
    names.begin();
    let mut parts = Parts { device, file_system, out, why_none: names.why_none(), open: None };
    let mut accounts = Vec::new();
    each(log, device, &mut |mut item, written| {
        if let Item::Entry(entry) = &mut item {
            names.name(entry, Some(written));
        }
        accounts.extend(parts.take(&item)?);
        Ok(())
    })?;
    Ok(accounts)
}

/// Hands over the timed parts of the log, item by item with its data, from the mark of each
/// beginning to that of its end.
fn each(
    log: &Path,
    device: &Device,
    each: &mut dyn FnMut(Item, &[u8]) -> io::Result<()>,
) -> Result<(), TraceError> {
    let file = File::open(log).map_err(at(log))?;
    let mut entries = LogWrites::new(BufReader::new(file))?.with_marks_behind(device.size_bytes);
    let (mut data, mut is_within) = (Vec::new(), false);
    while let Some(mut item) = entries.next(&mut data)? {
        let says = |word: &str| matches!(&item, Item::Mark(it) if it.mark.starts_with(word));
        let [begins, ends] = [BEGIN, END].map(says);
        if let Item::Entry(entry) = &mut item {
            // The log does not stay.
            entry.data = None;
        }
        if is_within || begins {
            each(item, &data).map_err(TraceError::Decode)?;
        }
        is_within = (is_within || begins) && !ends;
    }
    Ok(())
}

/// The timed parts, one after the other.
struct Parts<'a> {
    device: &'a Device,
    file_system: &'a str,
    out: &'a Path,
    why_none: Option<String>,
    open: Option<(Writer<BufWriter<File>>, Account)>,
}

impl Parts<'_> {
    /// Takes the next item; gives what a part adds up to that has ended with it.
    fn take(&mut self, item: &Item) -> io::Result<Option<Account>> {
        if let Item::Mark(mark) = item {
            if let Some(phase) = mark.mark.strip_prefix(BEGIN) {
                self.open = Some((self.begin(phase)?, Account::default()));
                return Ok(None);
            }
            if mark.mark.starts_with(END) {
                let ended = self.open.take();
                return ended.map(|(writer, sums)| writer.finish(0).map(|()| sums)).transpose();
            }
        }
        let Some((writer, account)) = &mut self.open else { return Ok(None) };
        if let Item::Entry(entry) = item {
            account.take(entry);
        }
        writer.item(item).map(|()| None)
    }

    fn begin(&self, phase: &str) -> io::Result<Writer<BufWriter<File>>> {
        let head = Head {
            trace: VERSION,
            recorder: Recorder::LogWrites,
            phase: phase.into(),
            file_system: self.file_system.into(),
            devices: vec![self.device.clone()],
            unnamed: self.why_none.clone(),
        };
        let file = File::options().create(true).append(true).open(self.out)?;
        Writer::new(BufWriter::new(file), &head)
    }
}
