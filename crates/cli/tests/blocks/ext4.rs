//! ext2, ext3 and ext4, as dumpe2fs and debugfs have them.

use std::collections::BTreeMap;

use fsverdict_core::blocks::{Group, Inode, Journal, Map, ReadAt, What};

use super::{Agreement, Image, parts, tree};
use crate::support::{Scene, tool};

/// What we say of a block, in words that can be made of what the tools say.
fn ours(map: &Map, block: u64, bytes: u64) -> String {
    let parts = parts(map, block * bytes, bytes);
    assert_eq!(parts.len(), 1, "block {block}: {parts:?}");
    let at = |offset: u64| offset / bytes;
    match parts[0] {
        What::Padding => "padding".into(),
        What::Superblock { .. } => "superblock".into(),
        What::Descriptors => "descriptors".into(),
        What::ReservedDescriptors => "reserved".into(),
        What::BlockBitmap { group } => format!("block-bitmap {group}"),
        What::InodeBitmap { group } => format!("inode-bitmap {group}"),
        What::Inodes { first, .. } => format!("inodes {first}"),
        What::Directory { inode, offset_bytes } => {
            format!("directory {inode} {}", at(offset_bytes))
        }
        What::Data { inode, offset_bytes } => format!("regular {inode} {}", at(offset_bytes)),
        What::Mapping { inode } => format!("mapping {inode}"),
        What::Symlink { inode } => format!("symlink {inode}"),
        What::Attributes { .. } => "attributes".into(),
        What::Quota { inode } => format!("quota {inode}"),
        What::Journal(_) => "journal".into(),
        What::Orphans => "orphans".into(),
        What::MountGuard => "guard".into(),
        What::Free => "free".into(),
        other => format!("{other:?}"),
    }
}

/// `3-7` or `3`.
fn range(text: &str) -> std::ops::RangeInclusive<u64> {
    let number = |text: &str| text.trim().parse().unwrap_or_else(|_| panic!("{text:?}"));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    number(first)..=number(last)
}

/// What dumpe2fs and debugfs say of every block.
struct Theirs {
    blocks: BTreeMap<u64, String>,
    bytes: u64,
    count: u64,
    /// The blocks of the journal.
    journal: Vec<u64>,
}

impl Theirs {
    fn of(image: &Image) -> Theirs {
        let said = tool("dumpe2fs", &[&image.path]).unwrap();
        let field = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| value.trim().to_string())
        };
        let number = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
        let mut theirs = Theirs {
            blocks: BTreeMap::new(),
            bytes: number("Block size").unwrap(),
            count: number("Block count").unwrap(),
            journal: Vec::new(),
        };
        theirs.groups(&said, number("Inodes per group").unwrap(), number("Inode size").unwrap());
        theirs.blocks.extend(number("MMP block number").map(|block| (block, "guard".into())));
        if number("First block") == Some(1) {
            theirs.blocks.insert(0, "padding".into());
        }
        let special = [
            ("Journal inode", "journal"),
            ("Orphan file inode", "orphans"),
            ("User quota inode", "quota"),
            ("Group quota inode", "quota"),
            ("Project quota inode", "quota"),
        ];
        let special = special.into_iter().filter_map(|(name, what)| Some((number(name)?, what)));
        theirs.inodes(image, &special.collect());
        theirs
    }

    fn put(&mut self, text: &str, what: &str) {
        for block in range(text.split(' ').next().unwrap()) {
            self.blocks.entry(block).or_insert_with(|| what.into());
        }
    }

    fn groups(&mut self, said: &str, inodes: u64, inode_bytes: u64) {
        let mut group = 0;
        for line in said.lines().skip_while(|line| !line.starts_with("Group 0:")) {
            if let Some(rest) = line.strip_prefix("Group ") {
                group = rest.split(':').next().unwrap().parse().unwrap();
            }
            if let Some(free) = line.trim().strip_prefix("Free blocks: ") {
                free.split(", ").filter(|it| !it.is_empty()).for_each(|it| self.put(it, "free"));
            }
            for part in line.trim().split(", ") {
                let Some((what, at)) = part.split_once(" at ") else { continue };
                match what {
                    "Primary superblock" | "Backup superblock" => self.put(at, "superblock"),
                    "Group descriptors" | "Group descriptor" => self.put(at, "descriptors"),
                    "Reserved GDT blocks" => self.put(at, "reserved"),
                    "Block bitmap" => self.put(at, &format!("block-bitmap {group}")),
                    "Inode bitmap" => self.put(at, &format!("inode-bitmap {group}")),
                    "Inode table" => {
                        let blocks = range(at.split(' ').next().unwrap());
                        for (number, block) in (0..).zip(blocks) {
                            let first = group * inodes + number * (self.bytes / inode_bytes) + 1;
                            self.blocks.insert(block, format!("inodes {first}"));
                        }
                    }
                    _ => panic!("dumpe2fs says {line:?}"),
                }
            }
        }
    }

    /// Who has which block by `icheck`, and as what by `stat` of each.
    fn inodes(&mut self, image: &Image, special: &BTreeMap<u64, &str>) {
        let mut owners = BTreeMap::new();
        let all: Vec<String> = (1..self.count).map(|block| block.to_string()).collect();
        for some in all.chunks(10_000) {
            let asked = format!("icheck {}", some.join(" "));
            let said = tool("debugfs", &["-R", &asked, &image.path]).unwrap();
            owners.extend(said.lines().filter_map(|line| {
                let (block, inode) = line.split_once('\t')?;
                Some((block.parse::<u64>().ok()?, inode.parse::<u64>().ok()?))
            }));
        }
        let inodes: std::collections::BTreeSet<u64> = owners.values().copied().collect();
        assert!(inodes.len() > 5, "{inodes:?}");
        for inode in inodes {
            let said = tool("debugfs", &["-R", &format!("stat <{inode}>"), &image.path]).unwrap();
            self.inode(inode, &said, special.get(&inode).copied());
        }
        for (block, inode) in owners {
            assert!(self.blocks.contains_key(&block), "block {block} of inode {inode} is not told");
        }
    }

    fn inode(&mut self, inode: u64, said: &str, special: Option<&str>) {
        let kind = said.split("Type: ").nth(1).unwrap().split(' ').next().unwrap();
        let acl = said.split("File ACL: ").nth(1).unwrap().split_whitespace().next().unwrap();
        if acl != "0" {
            self.put(acl, "attributes");
        }
        let list = said.split_once("EXTENTS:\n").or_else(|| said.split_once("BLOCKS:\n"));
        let Some((_, list)) = list else { return };
        let list = list.lines().next().unwrap_or_default();
        for run in list.split(", ").filter(|run| !run.is_empty()) {
            let (logical, blocks) = run.split_once("):").unwrap();
            let logical = logical.trim_start_matches('(').replace("[u]", "");
            if logical.ends_with("IND") || logical.starts_with("ETB") {
                self.put(blocks, &format!("mapping {inode}"));
                continue;
            }
            for (logical, block) in range(&logical).zip(range(blocks)) {
                let what = match special.unwrap_or(kind) {
                    "journal" => {
                        self.journal.push(block);
                        "journal".into()
                    }
                    what @ ("orphans" | "attributes") => what.into(),
                    what @ ("quota" | "symlink") => format!("{what} {inode}"),
                    what => format!("{what} {inode} {logical}"),
                };
                self.blocks.entry(block).or_insert(what);
            }
        }
    }
}

#[track_caller]
fn assert_agree(image: &Image, of: &str, kinds: &[&str]) -> Theirs {
    let (map, theirs) = (image.map(), Theirs::of(image));
    assert_eq!(map.file_system(), "ext4");
    assert_eq!(u64::from(map.block_bytes()), theirs.bytes);
    let mut agreement = Agreement::default();
    for block in 0..theirs.count {
        let said = theirs.blocks.get(&block).map_or("Unknown", String::as_str);
        agreement.block(block, &ours(&map, block, theirs.bytes), said);
    }
    agreement
        .holds(of, &[&["superblock", "inodes", "directory", "regular", "free"], kinds].concat());
    theirs
}

#[test]
#[ignore = "needs e2fsprogs: run ./test"]
fn every_block_is_what_debugfs_says_with_every_layout() {
    let scene = Scene::new();
    let tree = tree(&scene);
    for (size, options, kinds) in [
        ("64M", "-t ext2 -b 1024", &["mapping", "symlink", "reserved", "padding"][..]),
        ("64M", "-t ext3 -b 2048", &["mapping", "journal"]),
        ("200M", "-t ext4 -b 4096", &["journal", "descriptors", "mapping"]),
        ("64M", "-t ext4 -b 1024 -O ^flex_bg,^64bit", &["journal", "block-bitmap"]),
        ("64M", "-t ext4 -b 1024 -O meta_bg,^resize_inode", &["descriptors"]),
        ("64M", "-t ext4 -b 1024 -O sparse_super2", &["superblock"]),
        ("64M", "-t ext4 -b 1024 -I 256 -O inline_data", &["symlink"]),
        ("64M", "-t ext4 -O mmp,quota,orphan_file", &["guard", "quota", "orphans"]),
        ("64M", "-t ext4 -O ^has_journal,^metadata_csum,uninit_bg", &["inode-bitmap"]),
        ("64M", "-t ext4 -O fast_commit -J fast_commit_size=1", &["journal"]),
    ] {
        let image = Image::made(&scene, size, &format!("mke2fs -q -F {options} -d {tree}"));
        assert_agree(&image, options, kinds);
    }
}

#[test]
#[ignore = "needs e2fsprogs: run ./test"]
fn paths_and_attributes_are_those_of_debugfs() {
    let scene = Scene::new();
    let tree = tree(&scene);
    for inline in ["inline_data", "^inline_data"] {
        let command = format!("mke2fs -q -F -t ext4 -b 1024 -O {inline} -d {tree}");
        let image = Image::made(&scene, "64M", &command);
        let value = scene.write("value", &"v".repeat(800));
        let asked = format!("ea_set -f {value} /numbers user.long");
        tool("debugfs", &["-w", "-R", &asked, &image.path]).unwrap();
        assert_agree(&image, "with attributes", &["attributes"]);
        let map = image.map();
        let mut checked = 0;
        for number in 11..400 {
            let said = tool("debugfs", &["-R", &format!("ncheck {number}"), &image.path]).unwrap();
            let path = said.lines().nth(1).and_then(|line| line.split('\t').nth(1));
            let ours = map.path(Inode { subvolume: 0, number });
            // ncheck begins with one slash, two or none.
            let bare = |path: &str| path.trim_start_matches('/').to_string();
            assert_eq!(ours.as_deref().map(bare), path.map(bare), "inode {number}");
            checked += usize::from(path.is_some());
        }
        assert!(checked > 300, "{checked}");
    }
}

/// What `logdump` says of the journal's blocks, by their number in it.
fn logdump(image: &Image) -> BTreeMap<u64, String> {
    let said = tool("debugfs", &["-R", "logdump -aO", &image.path]).unwrap();
    let mut blocks = BTreeMap::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["FS", "block", of, "logged", "at", "journal", "block", at, ..] => {
                blocks.insert(at.parse().unwrap(), format!("copy {of}"));
            }
            ["Found", "expected", "sequence", transaction, "type", _, what, .., at] => {
                let transaction = transaction.trim_end_matches(',');
                let what = what.trim_start_matches('(');
                blocks.insert(at.parse().unwrap(), format!("{what} {transaction}"));
            }
            _ => {}
        }
    }
    blocks
}

fn journal_part(part: Journal, bytes: u64) -> String {
    match part {
        Journal::Copy { of, .. } => format!("copy {}", of / bytes),
        Journal::Descriptor { transaction, .. } => format!("descriptor {transaction}"),
        Journal::Commit { transaction } => format!("commit {transaction}"),
        Journal::Revoke { transaction, .. } => format!("revoke {transaction}"),
        other => format!("{other:?}"),
    }
}

/// Compares a journal that was written to with logdump, with its own bytes when they are written
/// again, and its copies with what came to their places.
pub fn assert_journal(image: &Image, of: &str) {
    let theirs = assert_agree(image, of, &["journal"]);
    let (map, said) = (image.map(), logdump(image));
    let mut agreement = Agreement::default();
    for (at, theirs_says) in &said {
        let place = theirs.journal[*at as usize] * theirs.bytes;
        let [What::Journal(part)] = parts(&map, place, theirs.bytes)[..] else { panic!("{at}") };
        agreement.block(*at, &journal_part(part, theirs.bytes), theirs_says);
    }
    // It ends at the first block that a second lap has written; with a short journal at once.
    let is_short = theirs.journal.len() <= 1024;
    agreement.holds(of, if is_short { &[] } else { &["copy", "descriptor", "commit"] });
    let mut bytes = vec![0; theirs.bytes as usize];
    let mut again = map.clone();
    for block in &theirs.journal {
        let place = block * theirs.bytes;
        image.read_at(place, &mut bytes).unwrap();
        assert_eq!(map.what_with(place, &bytes), map.what(place, theirs.bytes), "{block}");
        again.note(place, &bytes);
        assert_eq!(again.what(place, theirs.bytes)[0].what.group(), Group::Journal);
    }
    for at in said.keys() {
        let place = theirs.journal[*at as usize] * theirs.bytes;
        assert_eq!(again.what(place, theirs.bytes), map.what(place, theirs.bytes), "{at}");
    }
    assert_copies(image, &map, &theirs);
}

/// The newest copy of a block that is never freed is what is in its place after an unmount.
fn assert_copies(image: &Image, map: &Map, theirs: &Theirs) {
    let mut newest: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for block in &theirs.journal {
        let place = block * theirs.bytes;
        let What::Journal(Journal::Copy { transaction, of }) = map.what(place, 1)[0].what else {
            continue;
        };
        let last = newest.entry(of).or_default();
        *last = (*last).max((transaction, place));
    }
    let read = |place| {
        let mut bytes = vec![0; theirs.bytes as usize];
        image.read_at(place, &mut bytes).unwrap();
        bytes
    };
    let mut checked = 0;
    for (of, (transaction, place)) in newest {
        let what = map.what(of, theirs.bytes)[0].what;
        let stays = matches!(
            what,
            What::Inodes { .. } | What::BlockBitmap { .. } | What::InodeBitmap { .. }
        );
        if stays {
            assert!(read(place) == read(of), "{what}: byte {of}, transaction {transaction}");
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked}");
}

/// What the blocks of fast commits hold together: how many there are, then inodes, ranges, names.
pub fn fast_commits(image: &Image) -> [u32; 4] {
    let mut sums = [0; 4];
    for piece in image.map().what(0, image.bytes()) {
        if let What::Journal(Journal::FastCommit { inodes, ranges, names, .. }) = piece.what {
            let has_any = inodes + ranges + names > 0;
            let found = [u32::from(has_any), inodes, ranges, names];
            sums.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
        }
    }
    sums
}

/// Compares what fast commits hold with what logdump says of them.
#[track_caller]
pub fn assert_fast_commits(image: &Image) -> [u32; 4] {
    let said = tool("debugfs", &["-R", "logdump -aO", &image.path]).unwrap();
    let (_, area) = said.split_once("*** Fast Commit Area ***").expect("fast commits");
    let count = |names: &[&str]| {
        let is_one = |line: &&str| {
            let tag = line.strip_prefix("tag ").and_then(|rest| rest.split(',').next());
            tag.is_some_and(|tag| names.contains(&tag))
        };
        area.lines().filter(is_one).count() as u32
    };
    let found = fast_commits(image);
    let theirs = [
        count(&["INODE"]),
        count(&["ADD_RANGE", "DEL_RANGE"]),
        count(&["CREAT_DENTRY", "ADD_ENTRY", "DEL_ENTRY"]),
    ];
    assert_eq!(found[1..], theirs, "{said}");
    assert!(found.iter().all(|count| *count > 0), "{found:?}");
    found
}
