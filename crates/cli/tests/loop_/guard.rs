//! The guard before a real disk, for which a loop device stands in.

use std::fs;

use super::of;
use crate::support::{Done, Scene, tool};

/// A disk of the test's own. It goes with the scene.
struct Disk<'a> {
    scene: &'a Scene,
    node: String,
}

impl<'a> Disk<'a> {
    fn new(scene: &'a Scene) -> Disk<'a> {
        let file = scene.path("disk");
        fs::File::create_new(&file).unwrap().set_len(96 << 20).unwrap();
        let file = file.display().to_string();
        let node = tool("losetup", &["--find", "--show", &file]).unwrap().trim().to_string();
        assert!(node.starts_with("/dev/loop"), "{node}");
        Disk { scene, node }
    }

    fn kind(&self) -> String {
        tool("wipefs", &["--no-act", "--noheadings", "--output", "TYPE", &self.node]).unwrap()
    }

    /// Compares two ext4 on the disk, with these `--erase`.
    fn run(&self, erase: &[&str]) -> Done {
        let bed = format!("device:{}", self.node);
        let mut words = vec!["run", "--fs", "ext4,ext4", "--bed", &bed, "--rounds", "1"];
        words.extend(["--output", "run", "--json", "-"]);
        words.extend(erase.iter().flat_map(|path| ["--erase", path]));
        words.extend(["--", "sh", "-c", "seq 100000 > numbers"]);
        self.scene.fsverdict(&words)
    }

    fn refuses(&self, erase: &[&str], says: &str) {
        let before = self.kind();
        self.run(erase).exits(3).says(says);
        assert_eq!(self.kind(), before, "a refused disk was changed");
        assert!(!self.scene.path("run").exists());
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_disk_is_erased_only_with_its_owners_word() {
    let scene = Scene::alone();
    let disk = Disk::new(&scene);
    let node = disk.node.as_str();
    disk.refuses(&[], &format!("say so by --erase {node}"));
    disk.refuses(&["/dev/no-such-disk"], &format!("say so by --erase {node}"));
    tool("mkfs.ext4", &["-q", "-L", "photos", node]).unwrap();
    disk.refuses(&[node], "carries ext4 (label photos)");
    disk.refuses(&[&format!("{node}=xfs")], &format!("--erase {node}=ext4"));
    let at = scene.typed("mounted");
    fs::create_dir(&at).unwrap();
    tool("mount", &[node, &at]).unwrap();
    disk.refuses(&[&format!("{node}=ext4")], "is in use: ");
    tool("umount", &[&at]).unwrap();

    let document = disk.run(&[&format!("{node}=ext4")]).exits(0).json();
    for name in ["ext4", "ext4#2"] {
        assert_eq!(of(&document, name)[0]["outcome"], "measured");
    }
    let trial = scene.read_json("run/trials/1/trial.json");
    assert_eq!(trial["bed"]["devices"][0]["path"], node);
    assert_eq!(disk.kind().trim(), "ext4");
    let label = tool("blkid", &["-s", "LABEL", "-o", "value", node]).unwrap_or_default();
    assert_eq!(label.trim(), "", "the old file system is still there");
    tool("losetup", &["--detach", node]).expect("the run has detached somebody's disk");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_dry_run_on_a_disk_touches_nothing() {
    let scene = Scene::alone();
    let disk = Disk::new(&scene);
    tool("mkfs.xfs", &["-q", "--unsupported", &disk.node])
        .or_else(|_| tool("mkfs.ext4", &["-q", &disk.node]))
        .unwrap();
    let before = fs::read(scene.path("disk")).unwrap();
    let bed = format!("device:{}", disk.node);
    let words = ["run", "--dry-run", "--fs", "ext4,xfs", "--bed", &bed, "--", "true"];
    let said = scene.fsverdict(&words).exits(0).stdout;
    assert!(said.contains(&format!("lazy_journal_init=0 {}", disk.node)), "{said}");
    assert!(fs::read(scene.path("disk")).unwrap() == before, "the disk was changed");
}
