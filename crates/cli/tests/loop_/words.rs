//! What a plan's words for mkfs, parted, mount and the kernel can't do: reach another disk or file
//! than those of its bed.

use std::fs;
use std::path::PathBuf;

use super::run_plan;
use crate::support::{Done, Scene, tool};

const VICTIM_BYTES: u64 = 160 << 20;

/// Somebody else's disk with nothing but zeros, which any tool takes, and a file beside it.
struct Victim {
    node: String,
    image: PathBuf,
    folder: PathBuf,
}

impl Victim {
    fn new(scene: &Scene) -> Victim {
        let (image, folder) = (scene.path("victim.disk"), scene.path("theirs"));
        fs::File::create_new(&image).unwrap().set_len(VICTIM_BYTES).unwrap();
        fs::create_dir(&folder).unwrap();
        let words = ["--find", "--show", &image.display().to_string()];
        let node = tool("losetup", &words).unwrap().trim().to_string();
        Victim { node, image, folder }
    }

    #[track_caller]
    fn is_whole(&self, attack: &str) {
        tool("sync", &[&self.node]).unwrap();
        let found = fs::read(&self.image).unwrap();
        assert!(found.len() as u64 == VICTIM_BYTES, "the disk was resized by: {attack}");
        let is_empty = found == vec![0; found.len()];
        assert!(is_empty, "the disk was written to by: {attack}");
        let left = fs::read_dir(&self.folder).unwrap().count();
        assert_eq!(left, 0, "files were made by: {attack}");
    }
}

/// A run of a contender that has these words, beside one without.
fn with(scene: &Scene, contender: &str) -> Done {
    let _ = fs::remove_dir_all(scene.path("run"));
    let plan = format!(
        "bed = {{ size = \"128M\" }}\njudgement = {{ rounds = 1 }}\ncontender = [\n\
         {{ name = \"plain\", file_system = \"ext4\" }},\n{{ name = \"odd\", {contender} }}]\n\
         [[workload]]\nname = \"seq\"\ncommand = \"seq 1000 > numbers\"\n"
    );
    run_plan(scene, &plan)
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn mkfs_finds_no_disk_and_no_file_but_those_of_their_bed() {
    let scene = Scene::new();
    let victim = Victim::new(&scene);
    let node = &victim.node;
    let file = victim.folder.join("file").display().to_string();
    let attacks = [
        format!("file_system = \"btrfs\", mkfs = [\"{node}\"]"),
        format!("file_system = \"xfs\", mkfs = [\"-l\", \"logdev={node},size=64m\"]"),
        format!("file_system = \"xfs\", mkfs = [\"-r\", \"rtdev={node}\"]"),
        format!("file_system = \"ext4\", mkfs = [\"-z\", \"{file}\"]"),
        format!("file_system = \"ext4\", mkfs = [\"-J\", \"device={node}\"]"),
        // The trial is the first process that its tools could see, and has the machine's root.
        format!("file_system = \"btrfs\", mkfs = [\"/proc/1/root{node}\"]"),
        format!("file_system = \"xfs\", mkfs = [\"-l\", \"logdev=/proc/1/root{node},size=64m\"]"),
        format!("file_system = \"ext4\", mkfs = [\"-z\", \"/proc/1/root{file}\"]"),
        format!(
            "file_system = \"ext4\", partition = [\"select\", \"/proc/1/root{node}\", \"mklabel\", \
             \"gpt\", \"mkpart\", \"p\", \"1MiB\", \"100%\"]"
        ),
    ];
    for attack in attacks {
        with(&scene, &attack);
        victim.is_whole(&attack);
    }
    tool("losetup", &["--detach", node]).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_mkfs_puts_in_the_place_of_the_works_folder_fails_the_trial() {
    let scene = Scene::new();
    fs::create_dir(scene.path("elsewhere")).unwrap();
    fs::create_dir(scene.path("tree")).unwrap();
    std::os::unix::fs::symlink(scene.path("elsewhere"), scene.path("tree/work")).unwrap();
    let tree = scene.typed("tree");
    let done = with(&scene, &format!("file_system = \"ext4\", mkfs = [\"-d\", \"{tree}\"]"));
    done.exits(1);
    let records = scene.records("run");
    let odd = records.iter().find(|record| record["contender"] == "odd").unwrap();
    let error = odd["outcome"]["failed"]["error"].as_str().unwrap();
    assert!(error.contains("/work: ") && error.contains("exists"), "{error}");
    let left = fs::read_dir(scene.path("elsewhere")).unwrap().count();
    assert_eq!(left, 0, "the work was done elsewhere");
    scene.assert_nothing_left();
}

#[test]
fn words_that_name_a_device_or_set_more_than_storage_are_refused() {
    let scene = Scene::new();
    let refused = |contender: &str, says: &str| {
        with(&scene, contender).exits(2).says(says);
        assert!(!scene.path("run").exists(), "{contender}");
    };
    let device = "has the kernel open another device";
    refused("file_system = \"xfs\", mount = [\"logdev=/dev/loop0\"]", device);
    refused("file_system = \"ext4\", mount = [\"noatime,journal_dev=0x701\"]", device);
    let mounts = "is for mount(8), and the file system never hears of it";
    for word in
        ["X-mount.subdir=../../etc", "x-mount.mode=0777", "verity.hashdevice=/x", "uhelper=x"]
    {
        refused(&format!("file_system = \"ext4\", mount = [\"noatime,{word}\"]"), mounts);
    }
    let other = "names a device, a file or a place other than its bed's";
    for word in ["/dev/loop0", "loop0"] {
        refused(&format!("file_system = \"zfs\", mkfs = [\"mirror\", \"{word}\"]"), other);
    }
    for word in ["cachefile=/etc/x", "altroot=x", "cachefile=x"] {
        refused(&format!("file_system = \"zfs\", mkfs = [\"-o\", \"{word}\"]"), other);
    }
    refused("file_system = \"zfs\", mkfs = [\"-R\", \"x\"]", other);
    refused("file_system = \"zfs\", mount = [\"altroot=/x\"]", other);
    let more = "which affects more than storage";
    let stays = "net.ipv4.ip_forward";
    for name in ["kernel.core_pattern", "kernel/modprobe", "fs.binfmt_misc.register", stays] {
        refused(&format!("file_system = \"ext4\", sysctl = {{ \"{name}\" = \"|/x\" }}"), more);
    }
    refused("file_system = \"ext4\", module = { \"firmware_class.path\" = \"/tmp\" }", more);
}
