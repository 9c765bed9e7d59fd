//! Which rows a picture of an operation has, and what stands in them.

use crate::model::trace::{Op, Operation, Row};

/// Files that have a row each; of more only the synced one has.
const FILES_MAX: usize = 12;

/// What stands in a row: which request, and how many bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the request within the operation, from 0.
    pub request: usize,
    /// Its bytes in this row; 0 of a flush.
    pub bytes: u64,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// What it is of.
    pub name: String,
    /// Which of the figures' colours it has.
    pub colour: usize,
    /// What stands in it, from left to right.
    pub marks: Vec<Mark>,
}

/// What a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    File(u64),
    OtherFiles,
    Journal,
    Metadata,
    Unknown,
    Reads,
    Flushes,
}

/// The rows of a picture: a row for each file, one each for journal, metadata and flushes; and
/// for reads and what is unknown, where there is some.
pub fn lanes(operation: &Operation) -> Vec<Lane> {
    let files = files(operation);
    let mut subjects: Vec<Subject> = files.iter().map(|inode| Subject::File(*inode)).collect();
    let rest = [Subject::OtherFiles, Subject::Journal, Subject::Metadata, Subject::Unknown];
    subjects.extend(rest.into_iter().chain([Subject::Reads, Subject::Flushes]));
    let marks = marks(operation, &files);
    let always = [Subject::Journal, Subject::Metadata, Subject::Flushes];
    let lane = |subject: Subject| {
        let own = marks.iter().filter(|(of, _)| *of == subject).map(|(_, mark)| *mark);
        let name = name(subject, &files, operation.inode);
        Lane { name, colour: colour(subject), marks: own.collect() }
    };
    let wanted = |subject: &Subject| {
        let is_file = matches!(subject, Subject::File(_));
        is_file || always.contains(subject) || marks.iter().any(|(of, _)| of == subject)
    };
    subjects.into_iter().filter(wanted).map(lane).collect()
}

/// The files with a row of their own, in the order in which they were written to; the synced one
/// is among them.
fn files(operation: &Operation) -> Vec<u64> {
    let synced = operation.inode;
    let mut files = operation.files.clone();
    if !(1..=FILES_MAX).contains(&files.len()) {
        return vec![synced];
    }
    if !files.contains(&synced) {
        files.push(synced);
    }
    files
}

fn colour(subject: Subject) -> usize {
    match subject {
        Subject::File(_) | Subject::OtherFiles => 0,
        Subject::Journal => 1,
        Subject::Metadata => 2,
        Subject::Flushes => 3,
        Subject::Reads => 4,
        Subject::Unknown => 6,
    }
}

fn name(subject: Subject, files: &[u64], synced: u64) -> String {
    match subject {
        Subject::File(inode) if files.len() == 1 && inode == synced => "synced file".into(),
        Subject::File(inode) => {
            let number = files.iter().position(|it| *it == inode).map_or(0, |place| place + 1);
            let synced = if inode == synced { ", synced" } else { "" };
            format!("file {number}{synced}")
        }
        Subject::OtherFiles => "other files".into(),
        Subject::Journal => "journal".into(),
        Subject::Metadata => "metadata".into(),
        Subject::Unknown => "unknown".into(),
        Subject::Reads => "reads".into(),
        Subject::Flushes => "flushes".into(),
    }
}

fn marks(operation: &Operation, files: &[u64]) -> Vec<(Subject, Mark)> {
    let mut marks: Vec<(Subject, Mark)> = Vec::new();
    let mut add = |subject, request, bytes| match marks.last_mut() {
        Some((last, mark)) if *last == subject && mark.request == request => mark.bytes += bytes,
        _ => marks.push((subject, Mark { request, bytes })),
    };
    for (request, entry) in operation.entries.iter().enumerate() {
        match entry.op {
            Op::Read => add(Subject::Reads, request, entry.bytes()),
            Op::Flush => add(Subject::Flushes, request, 0),
            Op::Write => {
                let inodes = entry.parts.iter().map(|part| part.inode);
                let inodes = inodes.chain(std::iter::repeat(None));
                for ((row, bytes), inode) in operation.parts(entry).zip(inodes) {
                    let own = inode.filter(|inode| files.contains(inode)).map(Subject::File);
                    let subject = match row {
                        Row::Own | Row::Others => own.unwrap_or(Subject::OtherFiles),
                        Row::Journal(_) => Subject::Journal,
                        Row::Metadata(_) => Subject::Metadata,
                        _ => Subject::Unknown,
                    };
                    add(subject, request, bytes);
                }
            }
            Op::Discard | Op::Other => {}
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn up_to_twelve_files_have_a_row_each_and_the_synced_one_always() {
        let of = |written: std::ops::Range<u64>| {
            files(&Operation { files: written.collect(), ..example() })
        };
        assert_eq!(of(0..0), [13]);
        assert_eq!(of(2..14).len(), FILES_MAX, "13 is among them");
        assert_eq!(of(2..15), [13]);
        assert_eq!(of(20..22), [20, 21, 13]);
    }
}
