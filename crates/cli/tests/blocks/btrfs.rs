//! Btrfs, as `btrfs inspect-internal dump-tree` has it.

use std::collections::{BTreeMap, BTreeSet};

use fsverdict_core::blocks::{BtrfsTree, Map, ReadAt, What};

use super::{Agreement, Image, parts, paths, tree};
use crate::support::{Scene, tool};

const BLOCK: u64 = 4096;

/// What we say of a block, in words that can be made of what the tool says.
fn ours(map: &Map, block: u64) -> String {
    let parts = parts(map, block * BLOCK, BLOCK);
    assert_eq!(parts.len(), 1, "block {block}: {parts:?}");
    let owner = |tree| match tree {
        BtrfsTree::Root => "ROOT_TREE".into(),
        BtrfsTree::Chunk => "CHUNK_TREE".into(),
        BtrfsTree::Extent => "EXTENT_TREE".into(),
        BtrfsTree::Device => "DEV_TREE".into(),
        BtrfsTree::Subvolume(5) => "FS_TREE".into(),
        BtrfsTree::Subvolume(number) => number.to_string(),
        BtrfsTree::Checksum => "CSUM_TREE".into(),
        BtrfsTree::Log => "TREE_LOG".into(),
        BtrfsTree::Uuid => "UUID_TREE".into(),
        BtrfsTree::FreeSpace => "FREE_SPACE_TREE".into(),
        BtrfsTree::Quota => "QUOTA_TREE".into(),
        BtrfsTree::BlockGroups => "BLOCK_GROUP_TREE".into(),
        BtrfsTree::Other(number) if number == 9_u64.wrapping_neg() => "DATA_RELOC_TREE".into(),
        BtrfsTree::Other(number) => format!("other {number}"),
    };
    match parts[0] {
        What::Padding | What::Free => "free".into(),
        What::Superblock { .. } => "superblock".into(),
        What::Node { tree, level } => format!("node-{} {level}", owner(tree)),
        What::Data { inode, offset_bytes } => format!("data {inode} {offset_bytes}"),
        What::SpaceCache { inode } => format!("cache {}", inode.number),
        other => format!("{other:?}"),
    }
}

/// What dump-tree says: of each block all that it may be, since files share extents.
#[derive(Default)]
struct Theirs {
    chunks: BTreeMap<u64, (u64, Vec<u64>)>,
    blocks: BTreeMap<u64, BTreeSet<String>>,
    /// Blocks of extents that no file has, with those that have another part of them; and
    /// compressed ones, of which nobody can say what they are in the file.
    rest: BTreeMap<u64, BTreeSet<String>>,
}

/// The number that stands behind a word.
fn behind<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.split_once(word)?.1.split_whitespace().next()
}

/// There is a log in a copy of a device: what its superblock says.
pub fn has_log(copy: &str) -> bool {
    let said = tool("btrfs", &["inspect-internal", "dump-super", copy]).unwrap();
    behind(&said, "\nlog_root\t").unwrap() != "0"
}

impl Theirs {
    fn of(image: &Image) -> Theirs {
        let said = tool("btrfs", &["inspect-internal", "dump-tree", &image.path]).unwrap();
        let mut theirs = Theirs::default();
        theirs.chunks(&said);
        let node_bytes: u64 = {
            let said = tool("btrfs", &["inspect-internal", "dump-super", &image.path]).unwrap();
            behind(&said, "\nnodesize").unwrap().parse().unwrap()
        };
        let mut subvolume = 0;
        let (mut inode, mut extent) = (None, [0; 2]);
        let mut files: Vec<(String, u64, [u64; 2], [u64; 2])> = Vec::new();
        for line in said.lines() {
            if !line.starts_with(['\t', ' ']) && line.contains("tree key (") {
                let words: Vec<&str> = line.split(['(', ')', ' ']).collect();
                let at = words.iter().position(|word| *word == "ROOT_ITEM").unwrap();
                let number =
                    if words[at - 1] == "TREE_LOG" { words[at + 1] } else { words[at - 1] };
                subvolume = if number == "FS_TREE" { 5 } else { number.parse().unwrap_or(0) };
            }
            if let Some(owner) = behind(line, " owner ").filter(|_| line.contains(" free space ")) {
                let words: Vec<&str> = line.split(' ').collect();
                let level = behind(line, " level ").unwrap_or("0");
                theirs.put(words[1].parse().unwrap(), node_bytes, &format!("node-{owner} {level}"));
            }
            if line.contains(" EXTENT_DATA ") && line.trim().starts_with("item ") {
                let key = line.split(['(', ')']).nth(1).unwrap();
                let words: Vec<&str> = key.split(' ').collect();
                inode = Some((words[0].to_string(), words[2].parse::<u64>().unwrap()));
            }
            if line.trim().starts_with("extent data disk byte ")
                || line.trim().starts_with("prealloc data disk byte ")
            {
                extent =
                    [" byte ", " nr "].map(|word| behind(line, word).unwrap().parse().unwrap());
            }
            let is_used = ["extent data offset ", "prealloc data offset "];
            if is_used.iter().any(|word| line.trim().starts_with(word)) {
                let used = [" offset ", " nr "].map(|word| behind(line, word).unwrap());
                let (number, offset) = inode.take().unwrap();
                let who = match subvolume {
                    0 => format!("cache {number}"),
                    subvolume => format!("data {subvolume}/{number}"),
                };
                files.push((who, offset, extent, used.map(|it| it.parse().unwrap())));
            }
            if line.trim().starts_with("extent compression ") && !line.contains(" 0 ") {
                // What it has of the extent is no part of it.
                files.last_mut().unwrap().3 = [0, 0];
            }
        }
        files.into_iter().for_each(|file| theirs.file(file));
        theirs
    }

    fn chunks(&mut self, said: &str) {
        let mut logical = 0;
        for line in said.lines() {
            if let Some(at) = behind(line, " CHUNK_ITEM ") {
                logical = at.trim_end_matches(')').parse().unwrap();
            }
            if line.contains(" stripe_len ") {
                let length = behind(line, "length ").unwrap().parse().unwrap();
                self.chunks.insert(logical, (length, Vec::new()));
            }
            if line.contains("stripe ") && line.contains(" devid ") {
                let place = behind(line, " offset ").unwrap().parse().unwrap();
                self.chunks.get_mut(&logical).unwrap().1.push(place);
            }
        }
    }

    /// The blocks at a logical address, each by its place.
    fn places(&self, logical: u64, length: u64) -> Vec<(u64, u64)> {
        let (begin, (_, places)) = self.chunks.range(..=logical).next_back().unwrap();
        let blocks = (0..length).step_by(BLOCK as usize);
        let each = blocks.flat_map(|skip| {
            places.iter().map(move |place| (skip, (place + logical - begin + skip) / BLOCK))
        });
        each.collect()
    }

    fn put(&mut self, logical: u64, length: u64, what: &str) {
        for (_, block) in self.places(logical, length) {
            self.blocks.entry(block).or_default().insert(what.into());
        }
    }

    fn file(
        &mut self,
        (who, offset, [byte, length], [skip, used]): (String, u64, [u64; 2], [u64; 2]),
    ) {
        if byte == 0 {
            return;
        }
        for (at, block) in self.places(byte, length) {
            if !(skip..skip + used).contains(&at) {
                self.rest.entry(block).or_default().insert(who.clone());
                continue;
            }
            let what = match who.starts_with("cache") {
                true => who.clone(),
                false => format!("{who} {}", offset + at - skip),
            };
            self.blocks.entry(block).or_default().insert(what);
        }
    }

    /// What to compare with: what we say, where that is one of what it may be.
    fn says(&self, block: u64, ours: &str) -> String {
        let is_superblock = [16, 16384].contains(&block);
        if is_superblock {
            return "superblock".into();
        }
        if let Some(may_be) = self.blocks.get(&block) {
            let same = may_be.iter().find(|it| *it == ours);
            return same.unwrap_or_else(|| may_be.first().unwrap()).clone();
        }
        match self.rest.get(&block) {
            Some(files) if files.iter().any(|file| ours.starts_with(file)) => ours.into(),
            Some(files) => format!("{files:?}"),
            None => "free".into(),
        }
    }
}

/// Compares every block with dump-tree, and nodes with what they say of themselves.
#[track_caller]
pub fn assert_agree(image: &Image, of: &str, kinds: &[&str]) {
    let (map, theirs) = (image.map(), Theirs::of(image));
    assert_eq!((map.file_system(), u64::from(map.block_bytes())), ("btrfs", BLOCK));
    let mut agreement = Agreement::default();
    for block in 0..image.bytes() / BLOCK {
        let ours = ours(&map, block);
        agreement.block(block, &ours, &theirs.says(block, &ours));
    }
    let always = ["superblock", "node-ROOT_TREE", "node-EXTENT_TREE", "node-CHUNK_TREE", "free"];
    agreement.holds(of, &[&always, kinds].concat());
    let mut checked = 0;
    for piece in map.what(0, image.bytes()) {
        let What::Node { .. } = piece.what else { continue };
        let mut bytes = vec![0; piece.length as usize];
        image.read_at(piece.offset, &mut bytes).unwrap();
        assert_eq!(map.what_with(piece.offset, &bytes), [piece]);
        checked += 1;
    }
    assert!(checked > 8, "{checked}");
}

#[test]
#[ignore = "needs btrfs-progs: run ./test"]
fn every_block_is_what_dump_tree_says_with_every_layout() {
    let scene = Scene::new();
    let tree = tree(&scene);
    for options in ["", " -m single -n 4096", " -O ^no-holes -R ^free-space-tree --csum xxhash"] {
        let command = format!("mkfs.btrfs -q -f{options} -r {tree}");
        let image = Image::made(&scene, "300M", &command);
        assert_agree(&image, options, &["data", "node-FS_TREE", "node-CSUM_TREE"]);
        let paths = paths(&image);
        assert_eq!(paths.iter().collect::<Vec<_>>(), ["/numbers", "/sparse"]);
    }
}

#[test]
#[ignore = "needs btrfs-progs: run ./test"]
fn btrfs_over_several_devices_is_refused_in_words() {
    let scene = Scene::new();
    let other = scene.typed("other.raw");
    tool("truncate", &["--size=200M", &other]).unwrap();
    let image = Image::made(&scene, "200M", &format!("mkfs.btrfs -q -f -d raid0 -m raid1 {other}"));
    let error = Map::of(&image).unwrap_err().to_string();
    assert!(error.contains("several devices; make it on one"), "{error}");
}
