//! A log as it is kept: lines of JSON, described in FORMAT.md.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use crate::model::Device;
use crate::model::trace::Item;

/// The version of the format; readers refuse later ones.
pub const VERSION: u32 = 2;

/// The recorder of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recorder {
    /// The running kernel, by its trace events.
    Tracefs,
    /// QEMU's blklogwrites, or dm-log-writes.
    LogWrites,
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// [`VERSION`].
    pub trace: u32,
    /// Its recorder.
    pub recorder: Recorder,
    /// The timed part.
    pub phase: String,
    /// The file system.
    pub file_system: String,
    /// The devices, in the order of their numbers in the log.
    pub devices: Vec<Device>,
    /// Why the blocks' kinds were not looked up, if they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<String>,
}

/// The last line: without it the log was cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// How many lines there are between the first and the last.
    pub items: u64,
    /// How many events the kernel says it has lost.
    pub lost_events: u64,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// The first: of a log of its own, because each timed part has one.
    Head(Head),
    /// One in between.
    Item(Item),
    /// The last.
    End(End),
}

/// Writes a log, item by item.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    items: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the first line.
    pub fn new(out: W, head: &Head) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, items: 0 };
        writer.line(head)?;
        Ok(writer)
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }

    /// Writes one in between.
    pub fn item(&mut self, item: &Item) -> io::Result<()> {
        self.items += 1;
        self.line(item)
    }

    /// Writes the last one.
    pub fn finish(mut self, lost_events: u64) -> io::Result<()> {
        let items = self.items;
        self.line(&End { items, lost_events })?;
        self.out.flush()
    }
}

/// No line that is written has so many: an entry names up to some hundred parts.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Hands over each line; an error tells its number. A log may be cut off within a line, which is
/// then left out: that the last one is missing tells it.
pub fn read(
    mut input: impl BufRead,
    each: &mut dyn FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        if input.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX {
            return Err(invalid(format!("line {number} has more than {LINE_BYTES_MAX} bytes")));
        }
        match serde_json::from_str(&line) {
            Ok(Line::Head(head)) if head.trace > VERSION => return Err(later(head.trace)),
            Ok(parsed) => each(parsed)?,
            Err(error) if error.is_eof() && !line.ends_with('\n') => break,
            // A later version may have fields that are unknown here.
            Err(error) => {
                let stamp =
                    serde_json::from_str(&line).ok().filter(|it: &Stamp| it.trace > VERSION);
                let strange = || invalid(format!("line {number}: {error}"));
                return Err(stamp.map_or_else(strange, |it| later(it.trace)));
            }
        }
    }
    Ok(())
}

/// What the first line has in all versions.
#[derive(Deserialize)]
struct Stamp {
    trace: u32,
}

fn later(of: u32) -> io::Error {
    invalid(format!("it is of version {of}, this fsverdict reads {VERSION}"))
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trace::{Entry, Lost, Mark};

    fn head() -> Head {
        Head {
            trace: VERSION,
            recorder: Recorder::Tracefs,
            phase: "whole".into(),
            file_system: "ext4".into(),
            devices: vec![Device { path: "/dev/loop1".into(), number: [7, 1], size_bytes: 4096 }],
            unnamed: None,
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let endless = io::BufReader::new(io::repeat(b' '));
        let error = read(endless, &mut |_| Ok(())).unwrap_err().to_string();
        assert!(error.starts_with("line 1 has more than"), "{error}");
    }

    #[test]
    fn a_log_is_read_as_it_was_written() {
        let entry = r#"{"op":"write","sector":8,"sectors":8,"flags":{"sync":true},
            "asked":{"preflush":true,"fua":true},"process":"jbd2/loop1-8","submit_ns":5,
            "issue_ns":6,"complete_ns":9,
            "parts":[{"sectors":8,"kind":"journal","what":"journal commit"}]}"#;
        let entry: Entry = serde_json::from_str(entry).unwrap();
        let items = [
            Item::Mark(Mark { at_ns: 4, mark: "fsync 12".into() }),
            Item::Entry(entry),
            Item::Lost(Lost { at_ns: 7, lost: 3 }),
        ];
        let mut text = Vec::new();
        let mut writer = Writer::new(&mut text, &head()).unwrap();
        items.iter().for_each(|item| writer.item(item).unwrap());
        writer.finish(3).unwrap();
        let mut lines = Vec::new();
        read(text.as_slice(), &mut |line| {
            lines.push(line);
            Ok(())
        })
        .unwrap();
        let end = Line::End(End { items: 3, lost_events: 3 });
        let between = items.map(Line::Item);
        assert_eq!(lines, [&[Line::Head(head())][..], &between, &[end]].concat());
    }

    #[test]
    fn a_log_that_ends_within_a_line_has_those_before_it() {
        let whole = r#"{"at_ns":5,"mark":"fsync 12"}"#;
        for end in 1..whole.len() {
            let mut lines = 0;
            let text = format!("{whole}\n{}", &whole[..end]);
            read(text.as_bytes(), &mut |_| {
                lines += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(lines, 1, "{text}");
        }
    }

    #[test]
    fn what_is_no_log_is_refused_with_its_line() {
        let refused = |text: &str| read(text.as_bytes(), &mut |_| Ok(())).unwrap_err().to_string();
        assert!(refused("{\"items\":0,\"lost_events\":0}\n{}").starts_with("line 2: "));
        let later = serde_json::to_string(&Head { trace: 3, ..head() }).unwrap();
        assert_eq!(refused(&later), "it is of version 3, this fsverdict reads 2");
        assert!(refused("\n").starts_with("line 1: "), "nothing is cut off");
        let unknown = r#"{"trace":3,"what":"nobody knows yet"}"#;
        assert_eq!(refused(unknown), "it is of version 3, this fsverdict reads 2");
    }
}
