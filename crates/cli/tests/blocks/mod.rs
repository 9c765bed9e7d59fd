//! What a block is, held against what the file systems' own tools say: on real images, every block.

pub mod btrfs;
pub mod ext4;
pub mod xfs;
pub mod zfs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use fsverdict_core::blocks::{Map, ReadAt, What};

use crate::support::{Scene, tool};

/// An image of a file system.
pub struct Image {
    pub path: String,
    file: File,
}

impl ReadAt for Image {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

impl Image {
    pub fn open(path: &str) -> Image {
        Image { path: path.into(), file: File::open(path).unwrap() }
    }

    /// An image of `size`, as truncate(1) has it, made by a command that gets its path last.
    pub fn made(scene: &Scene, size: &str, command: &str) -> Image {
        let path = scene.typed("blocks.raw");
        let _ = std::fs::remove_file(&path);
        tool("truncate", &["--size", size, &path]).unwrap();
        let mut words = command.split(' ');
        let name = words.next().unwrap();
        tool(name, &words.chain([path.as_str()]).collect::<Vec<_>>()).unwrap();
        Image::open(&path)
    }

    pub fn bytes(&self) -> u64 {
        self.file.metadata().unwrap().len()
    }

    pub fn map(&self) -> Map {
        Map::of(self).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }
}

/// A tree of files to copy in: small ones, a large one, links, many names, a hole.
pub fn tree(scene: &Scene) -> String {
    let folder = scene.path("tree");
    let _ = std::fs::remove_dir_all(&folder);
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    std::fs::create_dir_all(folder.join("directory/below")).unwrap();
    write("numbers", &(0..300_000).map(|number| format!("{number}\n")).collect::<String>());
    write("directory/few", "few");
    write("empty", "");
    for number in 0..400 {
        write(&format!("directory/below/a-file-with-a-rather-long-name-{number}"), "1");
    }
    std::os::unix::fs::symlink("few", folder.join("directory/short-link")).unwrap();
    std::os::unix::fs::symlink("x".repeat(900), folder.join("directory/long-link")).unwrap();
    let sparse = File::create(folder.join("sparse")).unwrap();
    for part in 0..200 {
        sparse.write_all_at(b"here", part * 100_000).unwrap();
    }
    folder.display().to_string()
}

/// What two say of every block: how often they agree, and where they do not.
#[derive(Default)]
pub struct Agreement {
    /// By the kind that the tool says: agreed, and the first that differ.
    kinds: BTreeMap<String, (u64, u64, Vec<String>)>,
}

impl Agreement {
    pub fn block(&mut self, block: u64, ours: &str, theirs: &str) {
        let kind = theirs.split(' ').next().unwrap_or_default();
        let (agreed, differ, first) = self.kinds.entry(kind.into()).or_default();
        if ours == theirs {
            *agreed += 1;
            return;
        }
        *differ += 1;
        if first.len() < 5 {
            first.push(format!("block {block}: {ours} and not {theirs}"));
        }
    }

    /// Fails unless all agree, and there are blocks of each of `kinds`.
    #[track_caller]
    pub fn holds(&self, of: &str, kinds: &[&str]) {
        let table: String = self
            .kinds
            .iter()
            .map(|(kind, (agreed, differ, first))| {
                format!("{kind:>20} {agreed:>8} agree {differ:>8} differ {first:?}\n")
            })
            .collect();
        assert!(self.kinds.values().all(|(_, differ, _)| *differ == 0), "{of}:\n{table}");
        for kind in kinds {
            assert!(self.kinds.contains_key(*kind), "{of}: no {kind}\n{table}");
        }
    }
}

/// The parts of a block, but for padding where there is anything else.
pub fn parts(map: &Map, offset: u64, length: u64) -> Vec<What> {
    let pieces = map.what(offset, length);
    assert_eq!(pieces.iter().map(|piece| piece.length).sum::<u64>(), length);
    let mut parts: Vec<What> = pieces.iter().map(|piece| piece.what).collect();
    if parts.len() > 1 {
        parts.retain(|what| *what != What::Padding);
    }
    parts
}

/// The paths of all files that have blocks.
pub fn paths(image: &Image) -> BTreeSet<String> {
    let map = image.map();
    let pieces = map.what(0, image.bytes()).into_iter();
    let files = pieces.filter_map(|piece| match piece.what {
        What::Data { inode, .. } => Some(inode),
        _ => None,
    });
    files.map(|inode| map.path(inode).unwrap_or_else(|| panic!("no path of {inode}"))).collect()
}
