//! What a block is, after work on mounted file systems: their own tools say the same of every one.

use std::os::unix::fs::FileExt;

use crate::blocks::{Image, btrfs, ext4, tree, xfs, zfs};
use crate::support::{Scene, tool, unmount, wait_for};

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
    unmount_all(image, &at);
}

/// Unmounts, and waits until the last mount namespace that has a copy of the mount has let go.
fn unmount_all(image: &Image, at: &str) {
    unmount(at);
    wait_for("the loop device to be let go of", || {
        tool("losetup", &["--associated", &image.path]).unwrap().trim().is_empty()
    });
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn ext4_after_work_is_what_debugfs_says_journal_included() {
    let scene = Scene::new();
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
fn fast_commits_are_what_debugfs_says() {
    let scene = Scene::new();
    let make = "mke2fs -q -F -t ext4 -b 4096 -O fast_commit";
    let image = Image::made(&scene, "96M", make);
    let at = scene.typed("mounted");
    std::fs::create_dir_all(&at).unwrap();
    tool("mount", &["-o", "loop", &image.path, &at]).unwrap();
    for number in 0..40 {
        let file = std::fs::File::create(format!("{at}/synced-{number}")).unwrap();
        file.write_all_at(&[1; 9000], 0).unwrap();
        file.sync_all().unwrap();
    }
    // As after a crash: debugfs does not look at what a journal that was closed holds.
    let crashed = scene.typed("crashed.raw");
    tool("cp", &[&image.path, &crashed]).unwrap();
    unmount_all(&image, &at);
    let found = ext4::assert_fast_commits(&Image::open(&crashed));
    assert_eq!(ext4::fast_commits(&image), found, "closed, it holds the same");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn xfs_after_work_is_what_xfs_db_says() {
    let scene = Scene::new();
    for make in ["", " -m rmapbt=1 -b size=1024"] {
        let image = Image::made(&scene, "320M", &format!("mkfs.xfs -q -f{make}"));
        work(&scene, &image, "loop");
        xfs::assert_agree(&image, make, &["data", "dir", "btbmap", "symlink"]);
        xfs::assert_log(&image);
        xfs::assert_named(&image);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn btrfs_after_work_is_what_dump_tree_says_shared_and_compressed_extents_included() {
    let scene = Scene::new();
    for (make, mount) in [
        ("", "loop,commit=300"),
        (" -m single -n 4096 -R ^free-space-tree", "loop,commit=300,compress=zstd,space_cache=v1"),
    ] {
        // A commit, by default every 30 seconds, would end the log before it is copied.
        let image = Image::made(&scene, "400M", &format!("mkfs.btrfs -q -f{make}"));
        work(&scene, &image, mount);
        let at = scene.typed("mounted");
        tool("mount", &["-o", mount, &image.path, &at]).unwrap();
        tool("btrfs", &["subvolume", "snapshot", &at, &format!("{at}/snapshot")]).unwrap();
        tool("cp", &["--reflink=always", &format!("{at}/pieces"), &format!("{at}/same")]).unwrap();
        tool("sync", &["--file-system", &at]).unwrap();
        let copy = scene.typed("crashed.raw");
        // An fsync may take a whole commit instead, as after a new chunk, and then there is no log.
        for _ in 0..9 {
            // Overwrites part of what is shared, and leaves a log behind in a copy of the device.
            let pieces = std::fs::OpenOptions::new().write(true).open(format!("{at}/pieces"));
            let pieces = pieces.unwrap();
            pieces.write_all_at(&[2; 4096], 4096 * 6).unwrap();
            pieces.write_all_at(&[2; 100_000], 4096 * 900).unwrap();
            pieces.sync_all().unwrap();
            tool("cp", &[&image.path, &copy]).unwrap();
            if btrfs::has_log(&copy) {
                break;
            }
        }
        unmount_all(&image, &at);
        btrfs::assert_agree(&image, make, &["data", "node-FS_TREE"]);
        btrfs::assert_agree(&Image::open(&copy), make, &["data", "node-TREE_LOG"]);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and zfs-fuse: run ./test"]
fn zfs_after_work_is_what_zdb_says_and_so_is_what_it_has_freed() {
    let scene = Scene::new();
    if tool("sh", &["-c", "command -v zfs-fuse"]).is_err() {
        println!("not tested: there is no zfs-fuse");
        return;
    }
    for options in ["-o ashift=12", "-o ashift=9 -O compression=on -O recordsize=8k"] {
        let [(image, said), (crashed, said_crashed)] = zfs::made(&scene, options);
        zfs::assert_labels(&image);
        zfs::assert_agree(&image, &said, options, false);
        zfs::assert_agree(&crashed, &said_crashed, options, true);
        zfs::assert_freed(&image, &crashed, &said_crashed);
        let paths = zfs::paths(&image);
        assert!(paths.contains("/tree/numbers") && paths.contains("/large"), "{paths:?}");
    }
    scene.assert_nothing_left();
}
