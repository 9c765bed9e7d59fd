//! XFS, as xfs_db has it.

use std::collections::{BTreeMap, BTreeSet};

use fsverdict_core::blocks::{GroupTree, Header, Inode, Journal, Map, ReadAt, What};

use super::{Agreement, Image, parts, paths};
use crate::support::{Scene, tool};

/// What we say of a block, in the words of `blockuse`.
fn ours(map: &Map, block: u64, bytes: u64) -> String {
    let parts = parts(map, block * bytes, bytes);
    let same = |what: &What| matches!(what, What::Inodes { .. } | What::Journal(_));
    let is_head = matches!(parts[0], What::Superblock { .. } | What::Header { .. });
    assert!(parts.len() == 1 || is_head || parts.iter().all(same), "block {block}: {parts:?}");
    match parts[0] {
        What::Superblock { .. } => "sb".into(),
        What::Header { header: Header::Space, .. } => "agf".into(),
        What::Header { header: Header::Inodes, .. } => "agi".into(),
        What::Header { header: Header::Reserve, .. } => "agfl".into(),
        What::GroupTree { tree, .. } => match tree {
            GroupTree::FreeByPlace => "btbno".into(),
            GroupTree::FreeByLength => "btcnt".into(),
            GroupTree::Inodes => "btino".into(),
            GroupTree::FreeInodes => "btfino".into(),
            GroupTree::Owners => "btrmap".into(),
            GroupTree::References => "btrefcnt".into(),
        },
        What::Inodes { .. } => "inode".into(),
        What::Journal(_) => "log".into(),
        What::Reserve { .. } => "freelist".into(),
        What::Free => "free".into(),
        What::Directory { inode, .. } => format!("dir {inode}"),
        What::Data { inode, .. } => format!("data {inode}"),
        What::Mapping { inode } => format!("btbmap {inode}"),
        What::Attributes { inode } => format!("attr {inode}"),
        What::Symlink { inode } => format!("symlink {inode}"),
        What::Quota { inode } => format!("qdata {inode}"),
        other => format!("{other:?}"),
    }
}

fn xfs_db(image: &Image, commands: &[&str]) -> String {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    let words: Vec<&str> = ["-r"].into_iter().chain(commands).chain([&*image.path]).collect();
    tool("xfs_db", &words).unwrap()
}

fn number(image: &Image, field: &str) -> u64 {
    let said = xfs_db(image, &["sb 0", &format!("print {field}")]);
    said.trim().rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{said}"))
}

/// What `blockuse` says of every block, in order of place.
fn theirs(image: &Image) -> Vec<String> {
    let [blocks, groups, each] = ["dblocks", "agcount", "agblocks"].map(|it| number(image, it));
    let mut commands = vec!["blockget -n".to_string()];
    for group in 0..groups {
        let count = each.min(blocks - group * each);
        commands.push(format!("sb {group}"));
        commands.push(format!("blockuse -c {count}"));
    }
    let said = xfs_db(image, &commands.iter().map(String::as_str).collect::<Vec<_>>());
    let types = said.lines().filter(|line| line.starts_with("block "));
    let types = types.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let kind = match words[4] {
            "free1" | "free2" => "free",
            "btbmapa" | "btbmapd" => "btbmap",
            kind => kind,
        };
        match words[5..] {
            ["inode", inode, ..] if kind != "inode" => format!("{kind} {inode}"),
            _ => kind.to_string(),
        }
    });
    let types: Vec<String> = types.collect();
    assert_eq!(types.len() as u64, blocks, "{said}");
    types
}

/// Compares every block with `blockuse`, and every file's offsets with `bmap`.
#[track_caller]
pub fn assert_agree(image: &Image, of: &str, kinds: &[&str]) {
    let (map, theirs) = (image.map(), theirs(image));
    assert_eq!(map.file_system(), "xfs");
    let bytes = u64::from(map.block_bytes());
    let mut agreement = Agreement::default();
    for (block, said) in (0..).zip(&theirs) {
        // xfs_db counts the blocks that map a file among its data.
        let ours = ours(&map, block, bytes);
        let said = match ours.strip_prefix("btbmap ") {
            Some(inode) if *said == format!("data {inode}") && is_mapping(image, block * bytes) => {
                &ours
            }
            _ => said,
        };
        agreement.block(block, &ours, said);
    }
    agreement
        .holds(of, &[&["sb", "btbno", "btcnt", "btino", "inode", "log", "free"], kinds].concat());
    let files = theirs.iter().filter_map(|said| said.strip_prefix("data ")?.parse().ok());
    for inode in files.collect::<BTreeSet<u64>>() {
        assert_offsets(image, &map, inode, bytes);
    }
}

/// By its magic, of version 4 or 5.
fn is_mapping(image: &Image, place: u64) -> bool {
    let mut magic = [0; 4];
    image.read_at(place, &mut magic).unwrap();
    [b"BMAP", b"BMA3"].contains(&&magic)
}

fn assert_offsets(image: &Image, map: &Map, inode: u64, bytes: u64) {
    let said = xfs_db(image, &[&format!("inode {inode}"), "bmap"]);
    let each = number(image, "agblocks");
    let runs = said.lines().filter(|line| line.starts_with("data offset"));
    let mut checked = 0;
    for line in runs {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (group, block) = words[5].trim_matches(['(', ')']).split_once('/').unwrap();
        let value = |text: &str| text.parse::<u64>().unwrap();
        let place = (value(group) * each + value(block)) * bytes;
        let offset_bytes = value(words[2]) * bytes;
        let what = What::Data { inode: Inode { subvolume: 0, number: inode }, offset_bytes };
        assert_eq!(map.what(place, bytes)[0].what, what, "{line}");
        checked += 1;
    }
    assert!(checked > 0, "inode {inode}: {said}");
}

/// Every block of a written log is of a record, and says so by its own bytes.
pub fn assert_log(image: &Image) {
    let map = image.map();
    let pieces = map.what(0, image.bytes());
    let of = |wanted: fn(&Journal) -> bool| {
        let parts = pieces.iter().filter(|piece| match &piece.what {
            What::Journal(part) => wanted(part),
            _ => false,
        });
        parts.copied().collect::<Vec<_>>()
    };
    let headers = of(|part| matches!(part, Journal::RecordHeader { .. }));
    assert!(headers.len() > 5, "{headers:?}");
    // A mount stamps what is ahead of the head with headers that have none (`xlog_add_record`).
    let mut with_operations = 0;
    let mut by_place: BTreeMap<u64, u64> = BTreeMap::new();
    for header in &headers {
        let What::Journal(Journal::RecordHeader { sequence, operations }) = header.what else {
            unreachable!("they were chosen so")
        };
        with_operations += u64::from(operations > 0);
        assert!(by_place.insert(sequence & 0xffff_ffff, header.offset).is_none());
        let mut bytes = vec![0; 8192];
        image.read_at(header.offset, &mut bytes).unwrap();
        assert_eq!(map.what_with(header.offset, &bytes), map.what(header.offset, 8192));
    }
    assert!(with_operations > 5, "{headers:?}");
    // A record says which sector of the log it begins in.
    let firsts: BTreeSet<u64> =
        by_place.iter().map(|(sector, place)| place - sector * 512).collect();
    assert_eq!(firsts.len(), 1, "{by_place:?}");
    let said = tool("xfs_logprint", &["-t", &image.path]).unwrap();
    let sector = said.split("daddr: ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert_eq!(firsts.first(), Some(&(sector.parse::<u64>().unwrap() * 512)), "{said}");
}

/// Metadata says by itself what it is, whatever the map has there.
pub fn assert_named(image: &Image) {
    let map = image.map();
    let bytes = u64::from(map.block_bytes());
    let mut block = vec![0; bytes as usize];
    let mut named = BTreeSet::new();
    for piece in map.what(0, image.bytes()) {
        let names_itself = match piece.what {
            What::GroupTree { .. } | What::Mapping { .. } | What::Inodes { .. } => true,
            What::Directory { offset_bytes, .. } => offset_bytes == 0,
            _ => false,
        };
        if names_itself {
            image.read_at(piece.offset, &mut block).unwrap();
            assert_eq!(map.what_with(piece.offset, &block), map.what(piece.offset, bytes));
            named.insert(piece.what.name());
        }
    }
    assert!(named.len() > 5, "{named:?}");
}

/// Files by mkfs' own way to make them (`mkfs.xfs -p`).
fn prototype(scene: &Scene) -> String {
    let tree = super::tree(scene);
    let mut text = String::from("boot\n0 0\nd--755 0 0\n");
    text += &format!("numbers ---644 0 0 {tree}/numbers\nbelow d--755 0 0\n");
    for number in 0..400 {
        let name = format!("a-file-with-a-rather-long-name-{number}");
        text += &format!("{name} ---644 0 0 {tree}/directory/below/{name}\n");
    }
    text += "$\n";
    text += &format!("link l--777 0 0 {}\nshort l--777 0 0 numbers\n$\n", "x".repeat(900));
    scene.write("prototype", &text)
}

#[test]
#[ignore = "needs xfsprogs: run ./test"]
fn every_block_is_what_xfs_db_says_with_every_layout() {
    let scene = Scene::new();
    let prototype = prototype(&scene);
    for (options, kinds) in [
        ("", &["data", "dir", "symlink", "btfino", "btrefcnt", "freelist"][..]),
        ("-m rmapbt=1 -b size=1024", &["btrmap", "symlink"]),
        ("-m crc=0", &["dir"]),
        ("-m crc=0 -n ftype=0 -b size=2048 -i size=256", &["dir"]),
        ("-n size=16384 -i sparse=1,size=2048 -s size=4096", &["dir"]),
        ("-d agcount=7 -i nrext64=1", &["dir"]),
    ] {
        let options = options.split(' ').filter(|it| !it.is_empty()).collect::<Vec<_>>();
        let command = [&["mkfs.xfs -q -f"], &options[..], &["-p", &prototype]].concat().join(" ");
        // The log, of at least 64 MiB, lies in one group.
        let image = Image::made(&scene, "640M", &command);
        assert_agree(&image, &options.join(" "), kinds);
        let paths = paths(&image);
        assert!(paths.contains("/numbers"), "{paths:?}");
        assert!(paths.contains("/below/a-file-with-a-rather-long-name-399"), "{paths:?}");
        assert_eq!(paths.len(), 401);
    }
}
