//! What a block is, after work on mounted file systems: their own tools say the same of every one.

use std::os::unix::fs::FileExt;

use crate::blocks::{Image, ext4, tree, xfs};
use crate::support::{Scene, tool};

/// Mounts the image, works on it, and unmounts it: files in many pieces, many names, deleted ones,
/// and a commit for each of some files.
fn work(scene: &Scene, image: &Image, options: &str) {
    let at = scene.typed("mounted");
    std::fs::create_dir_all(&at).unwrap();
    tool("mount", &["-o", options, &image.path, &at]).unwrap();
    tool("cp", &["-a", &tree(scene), &at]).unwrap();
    tool("sync", &["--file-system", &at]).unwrap();
    let pieces = std::fs::File::create(format!("{at}/pieces")).unwrap();
    for number in 0..600 {
        pieces.write_all_at(&[1; 4096], number * 12288).unwrap();
        let path = format!("{at}/synced-{number}");
        if number % 10 == 0 {
            let file = std::fs::File::create(&path).unwrap();
            file.write_all_at(b"synced", 0).unwrap();
            file.sync_all().unwrap();
        }
    }
    drop(pieces);
    std::fs::remove_dir_all(format!("{at}/tree/directory/below")).unwrap();
    tool("umount", &[&at]).unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn ext4_after_work_is_what_debugfs_says_journal_included() {
    let scene = Scene::alone();
    for (make, mount) in [
        ("-t ext4 -b 4096", "loop"),
        ("-t ext4 -b 1024 -O ^64bit,^metadata_csum -J size=32", "loop,data=journal"),
        ("-t ext3 -b 1024", "loop"),
        ("-t ext4 -b 1024 -J size=1", "loop,journal_checksum"),
    ] {
        let image = Image::made(&scene, "96M", &format!("mke2fs -q -F {make}"));
        work(&scene, &image, mount);
        ext4::assert_journal(&image, make);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn xfs_after_work_is_what_xfs_db_says() {
    let scene = Scene::alone();
    for make in ["", " -m rmapbt=1 -b size=1024"] {
        let image = Image::made(&scene, "320M", &format!("mkfs.xfs -q -f{make}"));
        work(&scene, &image, "loop");
        xfs::assert_agree(&image, make, &["data", "dir", "btbmap", "symlink"]);
        xfs::assert_log(&image);
        xfs::assert_named(&image);
    }
    scene.assert_nothing_left();
}
