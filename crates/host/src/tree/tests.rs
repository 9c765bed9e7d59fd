//! Trees made, walked, copied, compared and deleted, in a temporary folder.

use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Bytes, Reflink, Tree, TreeContent};
use tempfile::TempDir;

use super::*;
use crate::sys;

fn small(threads: u32) -> Tree {
    Tree { files: 600, mean_size: Some(Bytes(3000)), threads, ..Tree::default() }
}

fn generated(tree: &Tree, seed: u64) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    generate(tree, &Shape::new(tree, seed), dir.path(), seed).unwrap();
    dir
}

fn folder(within: &TempDir, name: &str) -> PathBuf {
    let path = within.path().join(name);
    fs::create_dir(&path).unwrap();
    path
}

#[test]
fn the_same_seed_gives_the_same_tree_whatever_the_threads() {
    let digest_of = |threads, seed| digest(generated(&small(threads), seed).path(), false).unwrap();
    let first = digest_of(1, 7);
    assert_eq!(digest_of(1, 7), first);
    assert_eq!(digest_of(3, 7), first);
    assert_ne!(digest_of(1, 8), first);
    for content in [TreeContent::Compressible, TreeContent::Text] {
        let tree = |threads| Tree { content, ..small(threads) };
        let digests = [1, 2].map(|it| digest(generated(&tree(it), 7).path(), false).unwrap());
        assert_eq!(digests[0], digests[1]);
        assert_ne!(digests[0], first, "{content:?}");
    }
}

#[test]
fn a_tree_is_what_its_shape_says_and_walks_agree() {
    let tree = small(2);
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape::new(&tree, 3);
    let made = generate(&tree, &shape, dir.path(), 3).unwrap();
    assert_eq!(made.counts, shape.counts());
    for threads in [1, 4] {
        let with_status = walk(dir.path(), true, threads).unwrap();
        assert_eq!(with_status.counts, shape.counts());
        assert_eq!(with_status.histograms["stat"].count(), shape.counts().entries());
        let names = walk(dir.path(), false, threads).unwrap();
        assert_eq!(names.counts, Counts { bytes: 0, ..shape.counts() });
        assert_eq!(names.histograms["list"].count(), shape.counts().directories + 1);
        assert!(!names.histograms.contains_key("stat"));
    }
    let deleted = delete(dir.path(), 3).unwrap();
    assert_eq!(deleted.counts.entries(), shape.counts().entries());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Has it go on in ten turns; gives what it did, and how many entries each turn had.
fn in_ten_turns(mut under_way: Box<dyn UnderWay + '_>, entries: u64) -> (Done, Vec<u64>) {
    let mut had = Vec::new();
    for turn in 1..=10 {
        let (before, share) = (under_way.entries(), entries * turn / 10);
        under_way.go_on(if turn == 10 { TO_THE_END } else { share }).unwrap();
        assert!(under_way.entries() >= share, "turn {turn}: {} of {share}", under_way.entries());
        had.push(under_way.entries() - before);
    }
    (under_way.done(), had)
}

#[test]
fn what_stands_still_between_two_directories_goes_on_from_there() {
    for threads in [1, 3] {
        let tree = small(threads);
        let (shape, whole) = (Shape::new(&tree, 7), generated(&tree, 7));
        let dir = tempfile::tempdir().unwrap();
        let (made, copied) = (folder(&dir, "made"), folder(&dir, "copied"));
        let counts = shape.counts();
        let in_turns = |under_way: Box<dyn UnderWay + '_>, entries: u64| {
            let (done, had) = in_ten_turns(under_way, entries);
            // A turn ends with the directory in which it has its share, and those under way.
            assert!(had.iter().filter(|&&had| had > 0).count() >= 5, "{had:?}");
            assert_eq!(had.iter().sum::<u64>(), entries);
            assert_eq!(done.counts.entries(), entries);
            assert!(done.work_ns > 0);
        };
        in_turns(Box::new(generating(&tree, &shape, &made, 7).unwrap()), counts.entries());
        assert_eq!(digest(&made, false).unwrap(), digest(whole.path(), false).unwrap());
        in_turns(Box::new(walking(&made, true, threads).unwrap()), counts.entries());
        let copying = copying(&made, &copied, Reflink::Never, threads).unwrap();
        in_turns(Box::new(copying), counts.entries());
        assert_eq!(compare(&made, &copied).unwrap(), None);
        in_turns(Box::new(deleting(dir.path(), threads).unwrap()), 2 * (counts.entries() + 1));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn what_went_wrong_in_a_turn_is_told_where() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    let mut walk = walking(dir.path(), true, 2).unwrap();
    walk.go_on(1).unwrap();
    fs::remove_dir_all(dir.path().join("a")).unwrap();
    let error = walk.go_on(TO_THE_END).unwrap_err().to_string();
    assert!(error.starts_with(&format!("open {}", dir.path().join("a").display())), "{error}");
}

/// A tree with everything that a copy has to keep.
fn motley(top: &Path) {
    fs::create_dir_all(top.join("a/b/c")).unwrap();
    fs::create_dir_all(top.join("z")).unwrap();
    fs::write(top.join("a/file"), vec![5; 300_000]).unwrap();
    fs::write(top.join("a/empty"), "").unwrap();
    fs::write(top.join("a/b/program"), "#!").unwrap();
    fs::set_permissions(top.join("a/b/program"), Permissions::from_mode(0o4751)).unwrap();
    fs::write(top.join("a/b/secret"), "x").unwrap();
    fs::set_permissions(top.join("a/b/secret"), Permissions::from_mode(0o400)).unwrap();
    fs::hard_link(top.join("a/file"), top.join("z/same")).unwrap();
    fs::hard_link(top.join("a/file"), top.join("a/b/c/same too")).unwrap();
    symlink("../no such", top.join("a/b/broken")).unwrap();
    symlink("file", top.join("a/link")).unwrap();
    let sparse = File::create(top.join("z/sparse")).unwrap();
    sparse.set_len(3 << 20).unwrap();
    sparse.write_all_at(b"island", 1 << 20).unwrap();
    drop(sparse);
    let top_fd = File::open(top).unwrap();
    let pipe = CString::new("z/pipe").unwrap();
    sys::make_node_at(top_fd.as_fd(), &pipe, libc::S_IFIFO | 0o640, 0).unwrap();
    if sys::is_root() {
        std::os::unix::fs::chown(top.join("a/b/program"), Some(12), Some(34)).unwrap();
        fs::set_permissions(top.join("a/b/program"), Permissions::from_mode(0o4751)).unwrap();
        std::os::unix::fs::lchown(top.join("a/link"), Some(12), Some(34)).unwrap();
    }
    let nodes = ["a/b/program", "a/b/c", "a/b", "a", "a/link"];
    for (number, name) in (1i64..).zip(nodes) {
        let times = [(1_000_000_000 + number, 5), (1_100_000_000 + number, 123_456_789)];
        let name = CString::new(name).unwrap();
        sys::change_times_at(top_fd.as_fd(), &name, times).unwrap();
    }
    fs::set_permissions(top.join("a/b"), Permissions::from_mode(0o555)).unwrap();
}

#[test]
fn a_copy_keeps_what_cp_keeps() {
    for (reflink, threads) in [(Reflink::Auto, 1), (Reflink::Never, 3)] {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (folder(&dir, "from"), folder(&dir, "to"));
        motley(&from);
        let done = copy(&from, &to, reflink, threads).unwrap();
        assert_eq!(done.counts, walk(&from, true, 1).unwrap().counts);
        assert_eq!(done.histograms["link"].count(), 2);
        assert_eq!(compare(&from, &to).unwrap(), None);
        let [one, other] = ["a/file", "z/same"].map(|it| fs::metadata(to.join(it)).unwrap());
        assert_eq!((one.ino(), one.nlink()), (other.ino(), 3));
        let sparse = fs::metadata(to.join("z/sparse")).unwrap();
        assert_eq!(sparse.len(), 3 << 20);
        assert!(sparse.blocks() * 512 < 1 << 20, "{} blocks", sparse.blocks());
        let directory = fs::metadata(to.join("a/b")).unwrap();
        assert_eq!((directory.mtime(), directory.mtime_nsec()), (1_100_000_003, 123_456_789));
        assert_eq!(fs::metadata(to.join("a/b/program")).unwrap().mode() & 0o7777, 0o4751);
        for top in [&from, &to] {
            fs::set_permissions(top.join("a/b"), Permissions::from_mode(0o755)).unwrap();
        }
    }
}

#[test]
fn a_difference_is_found_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (folder(&dir, "from"), folder(&dir, "to"));
    motley(&from);
    copy(&from, &to, Reflink::Auto, 1).unwrap();
    let first = || compare(&from, &to).unwrap().map(|difference| difference.path);
    let file = File::options().write(true).open(to.join("z/same")).unwrap();
    let times = [(1, 0), (fs::metadata(to.join("a/file")).unwrap().mtime(), 0)];
    file.write_all_at(b"!", 299_999).unwrap();
    sys::change_times(file.as_fd(), times).unwrap();
    assert_eq!(first(), Some("a/file".into()));
    assert_ne!(digest(&from, false).unwrap(), digest(&to, false).unwrap());
    file.write_all_at(&[5], 299_999).unwrap();
    assert_eq!(digest(&from, false).unwrap(), digest(&to, false).unwrap());
    fs::remove_file(to.join("z/pipe")).unwrap();
    assert_ne!(digest(&from, false).unwrap(), digest(&to, false).unwrap());
    fs::set_permissions(from.join("a/b"), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(to.join("a/b"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_tree_is_not_copied_into_itself() {
    let dir = tempfile::tempdir().unwrap();
    let inner = folder(&dir, "inner");
    let told = copy(dir.path(), &inner, Reflink::Auto, 1).unwrap_err().to_string();
    assert!(told.ends_with("a tree can't be copied into itself"), "{told}");
}

/// Deeper than a path may be long, and wider than one call lists.
#[test]
fn deep_and_wide_trees_are_gone_through() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (folder(&dir, "from"), folder(&dir, "to"));
    let mut at = std::os::fd::OwnedFd::from(File::open(&from).unwrap());
    for _ in 0..600 {
        for name in [c"a directory with a long name", c"beside"] {
            sys::make_directory_at(at.as_fd(), name).unwrap();
        }
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        at = sys::open_at(at.as_fd(), c"a directory with a long name", flags).unwrap();
    }
    let wide = folder(&dir, "from/wide");
    for number in 0..5000 {
        File::create(wide.join(format!("a name that takes its room {number}"))).unwrap();
    }
    for threads in [1, 2] {
        assert_eq!(walk(&from, true, threads).unwrap().counts.entries(), 6201);
    }
    assert_eq!(copy(&from, &to, Reflink::Auto, 2).unwrap().counts.entries(), 6201);
    assert_eq!(digest(&from, true).unwrap(), digest(&to, true).unwrap());
    assert_eq!(delete(dir.path(), 2).unwrap().counts.entries(), 2 * 6201 + 2);
}

#[test]
fn a_failure_names_the_path_and_stops_all_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (folder(&dir, "from"), folder(&dir, "to"));
    motley(&from);
    fs::create_dir_all(to.join("a/b")).unwrap();
    let told = copy(&from, &to, Reflink::Auto, 4).unwrap_err().to_string();
    let path = from.join("a").display().to_string();
    assert_eq!(told, format!("make the copy of {path}: File exists (os error 17)"));
    let gone = dir.path().join("gone");
    let told = walk(&gone, false, 1).unwrap_err().to_string();
    assert_eq!(told, format!("open {}: No such file or directory (os error 2)", gone.display()));
    fs::set_permissions(from.join("a/b"), Permissions::from_mode(0o755)).unwrap();
}
