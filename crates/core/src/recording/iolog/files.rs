//! The files that an iolog names, and the folders above them.

use std::collections::{BTreeMap, BTreeSet};

use super::ranges::Ranges;
use crate::model::{Entry, Laid};

/// As fio makes files and folders (filesetup.c), where the umask is the usual one.
pub const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// NAME_MAX.
const PART_BYTES_MAX: usize = 255;

/// A file that was added.
#[derive(Debug, Default)]
pub struct File {
    /// Its place among the recording's paths.
    pub path: u32,
    /// Its number while it is open.
    pub handle: Option<u32>,
    /// The log changes it.
    pub is_written: bool,
    /// How much of it is read that the log did not write before.
    laid_bytes: u64,
    /// Where it ends.
    end_bytes: u64,
    written: Ranges,
}

impl File {
    /// Bytes are read: what was not written before was there.
    pub fn reads(&mut self, begin: u64, end: u64) {
        if !self.written.cover(begin, end) {
            self.laid_bytes = self.laid_bytes.max(end);
            self.end_bytes = self.end_bytes.max(end);
        }
    }

    /// Bytes are written.
    pub fn writes(&mut self, begin: u64, end: u64) {
        self.is_written = true;
        self.written.add(begin, end);
        self.end_bytes = self.end_bytes.max(end);
    }

    /// It was there before: else the log makes it.
    fn is_laid(&self) -> bool {
        self.laid_bytes > 0 || !self.is_written
    }
}

/// All files, by their names below the folder of a replay.
#[derive(Debug, Default)]
pub struct Files {
    /// Absolute paths of the folders that are called 0, 1 and so on.
    folders: Vec<String>,
    /// Their names, and then those of the folders above.
    pub paths: Vec<String>,
    pub all: BTreeMap<String, File>,
    directories: BTreeSet<String>,
}

/// How long a folder's name is, its number, and what of `typed` lies below it.
fn below<'a>(
    (number, folder): (usize, &String),
    typed: &'a str,
) -> Option<(usize, usize, &'a str)> {
    let rest = typed.strip_prefix(folder.trim_end_matches('/'))?;
    Some((folder.len(), number, rest.strip_prefix('/')?))
}

impl Files {
    /// None yet, below these.
    pub fn new(folders: Vec<String>) -> Files {
        Files { folders, ..Files::default() }
    }

    /// Adds a file; what is wrong with it, where that can't be.
    pub fn add(&mut self, typed: &str) -> Result<(), String> {
        let name = self.name(typed)?;
        let parents = name.match_indices('/').map(|(at, _)| name[..at].to_string());
        let parents: Vec<String> = parents.collect();
        let is_file = |it: &String| self.all.contains_key(it);
        if self.directories.contains(&name) || parents.iter().any(is_file) {
            return Err(format!("{typed} is both a file and a folder"));
        }
        self.directories.extend(parents);
        if !self.all.contains_key(&name) {
            let path = self.paths.len() as u32;
            self.paths.push(name.clone());
            self.all.insert(name, File { path, ..File::default() });
        }
        Ok(())
    }

    /// The file of that name; what is wrong, where it was not added.
    pub fn get(&mut self, typed: &str) -> Result<&mut File, String> {
        let name = self.name(typed)?;
        self.all.get_mut(&name).ok_or_else(|| format!("{typed} was not added"))
    }

    /// The name below the folder of a replay: `0/a` of what is called `a` there.
    fn name(&self, typed: &str) -> Result<String, String> {
        // A relative path is in the first folder, and so perhaps in one within it.
        let first = self.folders.first().map_or("", |it| it.trim_end_matches('/'));
        let whole = match typed.starts_with('/') {
            true => typed.to_string(),
            false => format!("{first}/{typed}"),
        };
        let innermost = self.folders.iter().enumerate().filter_map(|it| below(it, &whole)).max();
        let (_, number, rest) = innermost.ok_or_else(|| {
            let folders = self.folders.join(" or ");
            format!("{typed} is not below {folders}: name its folder with --below")
        })?;
        let mut name = number.to_string();
        for part in rest.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." || part.contains('\0') || part.len() > PART_BYTES_MAX {
                return Err(format!("{typed:?} is not the name of a file below a folder"));
            }
            name = format!("{name}/{part}");
        }
        match name.contains('/') {
            true => Ok(name),
            false => Err(format!("{typed:?} is not the name of a file below a folder")),
        }
    }

    /// What is there before the first call, and what the last one leaves: folders first.
    pub fn entries(&mut self) -> [Vec<Entry>; 2] {
        let first = self.paths.len() as u32;
        self.paths.extend(self.directories.iter().cloned());
        let what = Laid::Directory { mode: DIRECTORY_MODE };
        let folders =
            (first..self.paths.len() as u32).map(|path| Entry { path, what: what.clone() });
        let folders: Vec<Entry> = folders.collect();
        let of = |file: &File, bytes: u64| Entry {
            path: file.path,
            what: Laid::File { bytes, mode: FILE_MODE, data: Vec::new() },
        };
        let laid = self.all.values().filter(|file| file.is_laid());
        let laid: Vec<Entry> = laid.map(|file| of(file, file.laid_bytes)).collect();
        let ends = self.all.values().map(|file| of(file, file.end_bytes));
        let ends = folders.iter().cloned().chain(ends).collect();
        [folders.into_iter().chain(laid).collect(), ends]
    }
}
