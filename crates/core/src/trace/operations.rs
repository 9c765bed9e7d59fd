//! Single operations of a log: what was asked of the device between a mark and its counterpart.

use crate::model::trace::{Item, Operation};

/// The marks between which an operation lies; each is followed by the file's inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    begin: &'static str,
    end: &'static str,
}

impl Between {
    /// The fsyncs that our own work marks.
    pub const FSYNC: Between = Between { begin: "fsync", end: "synced" };
    /// Those that ext4 sees, from any process; fdatasync is one, too.
    pub const EXT4_FSYNC: Between =
        Between { begin: "ext4_sync_file_enter", end: "ext4_sync_file_exit" };
}

/// The mark of a write to a file.
const WRITE: &str = "write";

/// Takes a log apart, item by item.
#[derive(Debug)]
pub struct Operations {
    between: Between,
    open: Vec<Operation>,
    files: Vec<u64>,
}

impl Operations {
    /// Into the operations between these marks.
    pub fn new(between: Between) -> Operations {
        Operations { between, open: Vec::new(), files: Vec::new() }
    }

    /// Takes the next item of the log, and gives the operation that has ended with it: with the
    /// next one of its file, not whole, where its own end was lost.
    pub fn take(&mut self, item: Item) -> Option<Operation> {
        match item {
            Item::Entry(entry) => {
                for operation in &mut self.open {
                    operation.entries.push(entry.clone());
                }
                None
            }
            Item::Lost(_) => {
                self.open.iter_mut().for_each(|operation| operation.is_whole = false);
                self.files.clear();
                None
            }
            Item::Mark(mark) => {
                let (word, inode) = mark.mark.split_once(' ')?;
                self.mark(mark.at_ns, word, inode.parse().ok()?)
            }
        }
    }

    fn mark(&mut self, at_ns: u64, word: &str, inode: u64) -> Option<Operation> {
        if word == WRITE {
            self.files.push(inode);
        } else if word == self.between.begin {
            let is_left = |it: &Operation| !it.is_whole && it.inode == inode;
            let left = self.open.iter().position(is_left).map(|place| self.open.remove(place));
            let files = std::mem::take(&mut self.files);
            let (begin_ns, entries) = (at_ns, Vec::new());
            let is_whole = true;
            let begun = Operation { inode, begin_ns, end_ns: at_ns, files, entries, is_whole };
            self.open.push(begun);
            return left;
        } else if word == self.between.end {
            let place = self.open.iter().rposition(|operation| operation.inode == inode)?;
            let done = self.open.remove(place);
            return Some(Operation { end_ns: at_ns, ..done });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trace::{Entry, Kind, Lost, Mark, Part, Row};

    fn mark(at_ns: u64, mark: &str) -> Item {
        Item::Mark(Mark { at_ns, mark: mark.into() })
    }

    fn write(kind: Kind, what: &str, inode: Option<u64>) -> Item {
        let text = r#"{"op":"write","sector":0,"sectors":8}"#;
        let entry: Entry = serde_json::from_str(text).unwrap();
        let part = Part { sectors: 8, kind, what: what.into(), inode };
        Item::Entry(Entry { parts: vec![part], ..entry })
    }

    fn flush() -> Item {
        Item::Entry(serde_json::from_str(r#"{"op":"flush"}"#).unwrap())
    }

    fn taken(items: Vec<Item>) -> Vec<Operation> {
        let mut operations = Operations::new(Between::FSYNC);
        items.into_iter().filter_map(|item| operations.take(item)).collect()
    }

    #[test]
    fn an_operation_is_what_lies_between_its_marks() {
        let done = taken(vec![
            mark(1, "write 11"),
            mark(2, "write 12"),
            write(Kind::Data, "data", Some(11)),
            mark(10, "fsync 12"),
            write(Kind::Data, "data", Some(12)),
            write(Kind::Data, "data", Some(11)),
            write(Kind::Journal, "journal commit", None),
            flush(),
            mark(40, "synced 12"),
            flush(),
        ]);
        let [operation] = done.as_slice() else { panic!("{done:?}") };
        assert_eq!((operation.latency_ns(), operation.files.as_slice()), (30, &[11, 12][..]));
        let rows: Vec<(Row, u64)> = operation.rows().into_iter().collect();
        let commit = Row::Journal("journal commit".into());
        let bytes = [(Row::Own, 4096), (Row::Others, 4096), (commit, 4096)];
        assert_eq!(rows[..3], bytes);
        assert_eq!(rows[3..], [(Row::Writes, 3), (Row::Flushes, 1)]);
        assert!(operation.is_whole);
    }

    #[test]
    fn two_at_once_both_have_what_was_done_meanwhile() {
        let done = taken(vec![
            mark(1, "fsync 1"),
            mark(2, "fsync 2"),
            flush(),
            mark(3, "synced 1"),
            Item::Lost(Lost { at_ns: 4, lost: 0 }),
            mark(5, "synced 2"),
            mark(6, "synced 3"),
        ]);
        let told: Vec<_> =
            done.iter().map(|it| (it.inode, it.entries.len(), it.is_whole)).collect();
        assert_eq!(told, [(1, 1, true), (2, 1, false)]);
    }

    #[test]
    fn a_lost_end_spoils_no_later_operation() {
        let done = taken(vec![
            mark(1, "write 8"),
            mark(2, "fsync 7"),
            mark(3, "write 9"),
            Item::Lost(Lost { at_ns: 4, lost: 1 }),
            mark(5, "write 7"),
            mark(6, "fsync 7"),
            flush(),
            mark(8, "synced 7"),
            mark(9, "fsync 7"),
            mark(10, "synced 7"),
        ]);
        let told: Vec<_> = done.iter().map(|it| (it.begin_ns, it.end_ns, it.is_whole)).collect();
        assert_eq!(told, [(2, 2, false), (6, 8, true), (9, 10, true)]);
        assert_eq!(done[1].files, [7], "what was written before the loss may be synced by now");
    }
}
