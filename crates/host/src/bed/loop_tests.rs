//! The beds and the guard on real loop devices, which stand in for disks.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fsverdict_core::model::{Bed, BedKind, Bytes};
use tempfile::TempDir;

use super::own;
use super::*;
use crate::machine::token::Token;
use crate::tool;

const MIB: u64 = 1 << 20;

/// Who looks whether a zram device is there: the number of one that is gone is the next one's.
static ZRAM: Mutex<()> = Mutex::new(());

/// Only one of these tests makes zram devices and looks for them at a time.
pub(super) fn no_other_zram() -> MutexGuard<'static, ()> {
    ZRAM.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(argv: &[&str]) {
    tool::run_words(argv).unwrap();
}

/// A disk that is a loop device upon a sparse file. All that the test put on it goes with it, also
/// when the test panics.
struct Disk {
    device: Option<LoopDevice>,
    node: String,
    folder: TempDir,
    swap: bool,
    mounts: Vec<PathBuf>,
    children: Vec<Child>,
}

impl Disk {
    fn new() -> Disk {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("disk");
        fs::File::create_new(&path).unwrap().set_len(128 * MIB).unwrap();
        let device = LoopDevice::attach(&path, false).unwrap();
        let node = device.device().path;
        let (mounts, children) = (Vec::new(), Vec::new());
        Disk { device: Some(device), node, folder, swap: false, mounts, children }
    }

    /// Not every kernel reads partition tables: the partition is made by name. Its number is 259:N,
    /// which has nothing to do with its disk's.
    fn partition(&self, number: u32) -> String {
        let start = number * 65536;
        run(&["addpart", &self.node, &number.to_string(), &start.to_string(), "32768"]);
        format!("{}p{number}", self.node)
    }

    fn mount(&mut self, node: &str) -> String {
        let place = self.folder.path().join(format!("my mount {}", self.mounts.len()));
        fs::create_dir(&place).unwrap();
        run(&["mount", node, place.to_str().unwrap()]);
        self.mounts.push(place.clone());
        place.display().to_string()
    }

    /// Starts a shell, and waits until it says that it is ready.
    fn child(&mut self, script: &str, arguments: &[&str]) {
        let mut command = tool::command("unshare").unwrap();
        command.args(["--mount", "sh", "-c", script]).args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.children.push(child);
        assert_eq!(line, "ready\n");
    }

    fn check(&self, signatures: &str) -> Result<Device, Refusal> {
        check_path(&self.node, signatures)
    }

    fn refused(&self, signatures: &str) -> String {
        self.check(signatures).unwrap_err().to_string()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        if self.swap {
            let _ = tool::run_words(&["swapoff", &self.node]);
        }
        for place in &self.mounts {
            let at = place.to_str().unwrap();
            // As a disk's claim, an open file may be another test's for a moment.
            let is_gone = || matches!(crate::machine::mount::at(at), Ok(None));
            let _ =
                loop_device::wait_until(|| is_gone() || tool::run_words(&["umount", at]).is_ok());
        }
        // Partitions outlive the file behind the disk otherwise.
        let _ = tool::run_words(&["partx", "--delete", &self.node]);
        let _ = self.device.take().map(LoopDevice::detach);
    }
}

fn check_path(path: &str, signatures: &str) -> Result<Device, Refusal> {
    check_named(path, &[&format!("{path}={signatures}")])
}

fn check_named(path: &str, named: &[&str]) -> Result<Device, Refusal> {
    let held = check(&[path.to_string()], &consents(named))?;
    Ok(held[0].device())
}

fn consents(named: &[&str]) -> Consents {
    let named = named.iter().map(|consent| consent.parse().unwrap()).collect();
    Consents { named, data: false }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_an_empty_named_disk_passes() {
    let disk = Disk::new();
    let device = disk.check("").unwrap();
    assert_eq!(device, disk.device.as_ref().unwrap().device());
    assert_eq!((device.number[0], device.size_bytes), (7, 128 * MIB));
    assert!(matches!(check_named(&disk.node, &[]), Err(Refusal::NotNamed { .. })));
    assert!(matches!(check_named(&disk.node, &["/dev/sdb"]), Err(Refusal::NotNamed { .. })));
    let link = disk.folder.path().join("by-id");
    std::os::unix::fs::symlink(&disk.node, &link).unwrap();
    assert_eq!(check_path(link.to_str().unwrap(), "").unwrap(), device);
    let by_link = link.to_str().unwrap();
    assert!(matches!(check_named(&disk.node, &[by_link]), Err(Refusal::NotNamed { .. })));
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_signature_must_be_named() {
    let disk = Disk::new();
    run(&["mkfs.ext4", "-q", "-L", "backup", &disk.node]);
    let node = &disk.node;
    let message = format!(
        "{node} carries ext4 (label backup): to erase it all the same say --erase {node}=ext4"
    );
    assert_eq!(disk.refused(""), message);
    assert_eq!(disk.refused("xfs"), message);
    disk.check("ext4").unwrap();
    disk.check("xfs,EXT4").unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_partitions_signature_must_be_named_too() {
    let disk = Disk::new();
    let (first, second) = (disk.partition(1), disk.partition(2));
    run(&["mkfs.ext4", "-q", &second]);
    assert!(disk.refused("").contains(&format!("{second} carries ext4")));
    disk.check("ext4").unwrap();
    check_path(&first, "").unwrap();
    assert!(check_path(&second, "").unwrap_err().to_string().contains("carries ext4"));
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_mounted_disk_is_refused() {
    let mut disk = Disk::new();
    run(&["mkfs.ext4", "-q", &disk.node]);
    let place = disk.mount(&disk.node.clone());
    let node = &disk.node;
    let message = format!("{node} is in use: {node} is mounted on {place} (umount it first)");
    assert_eq!(disk.refused("ext4"), message);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_mounted_partition_holds_its_disk_and_not_its_sibling() {
    let mut disk = Disk::new();
    let (first, second) = (disk.partition(1), disk.partition(2));
    run(&["mkfs.ext4", "-q", &first]);
    let place = disk.mount(&first);
    assert!(disk.refused("ext4").contains(&format!("{first} is mounted on {place}")));
    assert!(check_path(&first, "ext4").is_err());
    check_path(&second, "").unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_partition_of_a_disk_mounted_whole_is_refused() {
    let mut disk = Disk::new();
    run(&["mkfs.ext4", "-q", &disk.node]);
    let first = disk.partition(1);
    let place = disk.mount(&disk.node.clone());
    let refused = check_path(&first, "ext4").unwrap_err().to_string();
    assert!(refused.contains(&format!("{} is mounted on {place}", disk.node)), "{refused}");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_all_devices_of_a_mounted_btrfs_are_refused() {
    let (mut one, other) = (Disk::new(), Disk::new());
    run(&["mkfs.btrfs", "-q", "-d", "raid0", "-m", "raid0", &one.node, &other.node]);
    run(&["btrfs", "device", "scan", &one.node, &other.node]);
    let place = one.mount(&one.node.clone());
    let refused = one.refused("btrfs") + &other.refused("btrfs");
    assert!(refused.contains(&format!("is mounted on {place}")), "{refused}");
    assert!(refused.contains("is held by the mounted btrfs"), "{refused}");
    tool::unmount(&place);
    // A test beside may have a copy of the mount.
    loop_device::wait_until(|| hold::claim(&other.node, &other.node).is_ok()).unwrap();
    assert!(other.refused("").contains("carries btrfs"));
    other.check("btrfs").unwrap();
    // Else the kernel remembers devices that are about to vanish.
    run(&["btrfs", "device", "scan", "--forget", &one.node, &other.node]);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_swap_is_refused() {
    let mut disk = Disk::new();
    run(&["mkswap", &disk.node]);
    disk.swap = true;
    run(&["swapon", &disk.node]);
    assert!(disk.refused("swap").contains("is swap (swapoff it first)"));
    run(&["swapoff", &disk.node]);
    disk.check("swap").unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_disk_under_another_loop_device_is_refused() {
    let disk = Disk::new();
    let upper = LoopDevice::attach(Path::new(&disk.node), false).unwrap();
    let name = upper.device().path.replace("/dev/", "");
    assert!(disk.refused("").contains(&format!("is held by {name}")));
    upper.detach().unwrap();
    disk.check("").unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_mount_in_another_namespace_is_refused() {
    let mut disk = Disk::new();
    run(&["mkfs.ext4", "-q", &disk.node]);
    let place = disk.folder.path().join("elsewhere");
    fs::create_dir(&place).unwrap();
    let script = "mount \"$0\" \"$1\" && echo ready && exec sleep 60";
    disk.child(script, &[&disk.node.clone(), place.to_str().unwrap()]);
    assert!(matches!(disk.check("ext4"), Err(Refusal::Busy { .. })));
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_disk_that_a_program_writes_to_is_refused() {
    let mut disk = Disk::new();
    disk.child("exec 3<>\"$0\"; echo ready; exec sleep 60", &[&disk.node.clone()]);
    let pid = disk.children[0].id();
    let refused = disk.refused("");
    assert!(refused.contains("is open for writing by s"), "{refused}");
    assert!(refused.contains(&format!("process {pid}")), "{refused}");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_read_only_and_an_empty_one_are_refused() {
    let disk = Disk::new();
    run(&["blockdev", "--setro", &disk.node]);
    assert!(matches!(disk.check(""), Err(Refusal::ReadOnly { .. })));
    run(&["blockdev", "--setrw", &disk.node]);
    disk.check("").unwrap();
    assert!(check_path("/dev/null", "").unwrap_err().to_string().contains("not a block device"));
}

/// Looks for the disk of this very machine; the guard only reads.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_the_disk_of_the_root_file_system_is_refused() {
    let Some(root) = Machine::real().beneath(Path::new("/")) else { return };
    for block in root.overlapping() {
        let refused = check_path(&block.node, "gpt,dos,ext4,xfs,btrfs").unwrap_err().to_string();
        assert!(refused.contains("carries this machine's root file system"), "{refused}");
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_device_lives_as_long_as_its_owner() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("image");
    fs::write(&path, vec![7; 64 << 20]).unwrap();
    let attached = || tool::run_words(&["losetup", "-j", path.to_str().unwrap()]).unwrap();
    let device = LoopDevice::attach(&path, true).unwrap();
    let dio = tool::run_words(&["losetup", "-n", "-O", "DIO", &device.device().path]).unwrap();
    assert_eq!(dio.trim() == "1", device.direct_io());
    // A child that outlives it does not hold it.
    let mut child = tool::command("sleep").unwrap().arg("60").spawn().unwrap();
    let detached = device.detach();
    let left = attached();
    drop(LoopDevice::attach(&path, false).unwrap());
    let gone = loop_device::wait_until(|| attached().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    detached.unwrap();
    assert_eq!(left, "");
    gone.unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_mounted_device_goes_with_its_mount() {
    let mut disk = Disk::new();
    run(&["mkfs.ext4", "-q", &disk.node]);
    let place = disk.mount(&disk.node.clone());
    // Its mount holds it, however long one waits.
    let held = disk.device.take().unwrap().detach_within(Duration::from_millis(1));
    let error = held.unwrap_err().to_string();
    assert!(error.contains(&format!("{} is still held", disk.node)), "{error}");
    tool::unmount(&place);
    let path = disk.folder.path().join("disk");
    let attached = || tool::run_words(&["losetup", "-j", path.to_str().unwrap()]).unwrap();
    loop_device::wait_until(|| attached().is_empty()).unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_undo_detaches_that_file_alone() {
    let (disk, other) = (Disk::new(), Disk::new());
    let path = disk.folder.path().canonicalize().unwrap().join("disk");
    // As a killed run leaves it: attached, and nobody holds it open. (Not autoclear, that is.)
    let folder = Token::random().unwrap();
    let left = disk.folder.path().canonicalize().unwrap().join(own::name(&folder));
    fs::create_dir(&left).unwrap();
    fs::File::create_new(left.join("1.img")).unwrap().set_len(MIB).unwrap();
    run(&["losetup", "--find", left.join("1.img").to_str().unwrap()]);
    fs::remove_file(left.join("1.img")).unwrap();
    let undo = Undo::DetachLoop { folder };
    undo.apply().unwrap();
    undo.apply().unwrap();
    let attached = tool::run_words(&["losetup", "--list", "-n", "-O", "BACK-FILE"]).unwrap();
    assert!(!attached.contains(left.to_str().unwrap()), "{attached}");
    assert!(attached.contains(path.to_str().unwrap()));
    assert!(attached.contains(other.folder.path().to_str().unwrap()));
}

fn bed(kind: BedKind, devices: u32) -> Bed {
    Bed { kind, size: Bytes(64 * MIB), devices, ..Bed::default() }
}

/// Makes the bed, and checks that the journal heard of everything first and that nothing is left.
fn made(bed: &Bed, dir: &Path, look: impl FnOnce(&Made)) -> (Vec<Undo>, u64) {
    let (mut journal, mut written_bytes) = (Vec::new(), 0);
    let mut before = |undo: &Undo| {
        if let Undo::Folder { parent, folder } = undo {
            assert!(!parent.join(own::name(folder)).exists());
        }
        journal.push(undo.clone());
        Ok(())
    };
    let mut progress = |bytes| {
        written_bytes = bytes;
        Ok(())
    };
    let token = Token::random().unwrap();
    let made = make(bed, dir, &token, &Consents::default(), &mut before, &mut progress).unwrap();
    look(&made);
    made.remove().unwrap();
    for undo in journal.iter().rev() {
        undo.apply().unwrap();
    }
    (journal, written_bytes)
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_bed_of_two_images_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let (journal, written_bytes) = made(&bed(BedKind::Loop, 2), folder.path(), |made| {
        assert_eq!((made.devices.len(), made.compresses), (2, false));
        assert!(made.direct_io.is_some());
        assert!(made.devices.iter().all(|device| device.size_bytes == 64 * MIB));
        let own = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let images = ["1.img", "2.img"].map(|name| own.join(name).exists());
        assert_eq!(images, [true, true]);
    });
    // The folder, the loop devices, and what each of them says of itself.
    let of_queues = journal.iter().filter(|undo| matches!(undo, Undo::Queue { .. })).count();
    assert_eq!((journal.len() - of_queues, written_bytes), (2, 128 * MIB));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_bed_that_can_not_be_finished_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let mut steps = 0;
    // The journal's disk is full at the second change: the images are made by then.
    let mut before = |_: &Undo| {
        steps += 1;
        if steps == 2 { Err(io::Error::from_raw_os_error(libc::ENOSPC)) } else { Ok(()) }
    };
    let bed = bed(BedKind::Loop, 2);
    let (token, none) = (Token::random().unwrap(), Consents::default());
    let made = make(&bed, folder.path(), &token, &none, &mut before, &mut |_| Ok(()));
    let error = made.unwrap_err().to_string();
    assert!(error.starts_with("writing the undo journal: No space left"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let dir = folder.path().to_str().unwrap();
    assert!(!tool::run_words(&["losetup", "--list"]).unwrap().contains(dir));
}

fn own_in(dir: &Path) -> Own {
    Own::make(dir, &Token::random().unwrap(), 0o700, |_| Ok(())).unwrap()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_an_image_that_does_not_fit_is_removed() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("small");
    fs::create_dir(&place).unwrap();
    run(&["mount", "-t", "tmpfs", "-o", "size=68m", "none", place.to_str().unwrap()]);
    let own = own_in(&place);
    let path = own.path().join("1.img");
    // Somebody else takes the space while the image is written.
    let result = image::create(&own, c"1.img", 64 * MIB, |written_bytes| {
        if written_bytes == MIB {
            fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
            fs::write(place.join("thief"), vec![1; 60 << 20]).unwrap();
        }
        Ok(())
    });
    let (left, thief) = (path.exists(), fs::remove_file(place.join("thief")));
    drop(own);
    tool::unmount(place.to_str().unwrap());
    thief.unwrap();
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("filling ") && error.contains("No space left"), "{error}");
    assert!(!left);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_an_image_on_btrfs_is_overwritten_in_place() {
    let mut disk = Disk::new();
    run(&["mkfs.btrfs", "-q", &disk.node]);
    let own = own_in(disk.mount(&disk.node.clone()).as_ref());
    let image = image::create(&own, c"1.img", 16 * MIB, |_| Ok(())).unwrap();
    let path = own.path().join("1.img");
    let flags = tool::run_words(&["lsattr", path.to_str().unwrap()]).unwrap();
    assert!(flags.split(' ').next().unwrap().contains('C'), "{flags}");
    let upper = LoopDevice::attach_file(&image, true, 0).unwrap();
    upper.detach().unwrap();
    drop(image);
    own.remove().unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_memory_beds_leave_nothing() {
    let _alone = no_other_zram();
    let folder = TempDir::new().unwrap();
    let mut zram = bed(BedKind::Ram, 2);
    zram.zram = true;
    let (journal, _) = made(&bed(BedKind::Ram, 1), folder.path(), |made| {
        assert_eq!((made.devices.len(), made.compresses), (1, false));
        run(&["mkfs.ext4", "-q", &made.devices[0].path]);
    });
    assert_eq!(journal.len(), 3);
    if !Path::new("/sys/class/zram-control").exists() {
        return;
    }
    let mut nodes = Vec::new();
    let (journal, _) = made(&zram, folder.path(), |made| {
        assert_eq!((made.devices.len(), made.compresses, made.direct_io), (2, true, None));
        assert_eq!(made.devices[0].size_bytes, 64 * MIB);
        run(&["mkfs.ext4", "-q", &made.devices[1].path]);
        nodes.extend(made.devices.iter().map(|device| device.path.clone()));
    });
    assert_eq!(journal.len(), 4);
    assert!(nodes.iter().all(|node| !Path::new(node).exists()), "{nodes:?}");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_who_is_killed_while_a_zram_device_is_added_leaves_none() {
    let _alone = no_other_zram();
    if !Path::new("/sys/class/zram-control").exists() {
        return;
    }
    let boot = ram::boot().unwrap();
    let undo = |number, sequence| Undo::RemoveZram { number, boot: boot.clone(), sequence };
    let exists = |number: u32| Path::new(&format!("/sys/block/zram{number}")).exists();
    // Told, made, and killed before anything more is told. Who adds one between the two takes the
    // number told: then that is tried again.
    let (told, number) = (0..100)
        .find_map(|_| {
            let told = ram::next_zram();
            let number = ram::add_zram().unwrap();
            let added = undo(number, None);
            if told == number {
                return Some((added, number));
            }
            undo(number, Some(ram::sequence(number))).apply().unwrap();
            None
        })
        .expect("another test adds a device each time");
    told.apply().unwrap();
    assert!(!exists(number));
    // Somebody else has got the number since, and uses it.
    let other = ram::add_zram().unwrap();
    ram::size_zram(other, 64 * MIB).unwrap();
    undo(other, None).apply().unwrap();
    undo(other, Some(ram::sequence(other).wrapping_add(1))).apply().unwrap();
    assert!(exists(other));
    undo(other, Some(ram::sequence(other))).apply().unwrap();
    assert!(!exists(other));
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_a_bed_of_disks_is_guarded_and_named_once() {
    let disk = Disk::new();
    let partition = disk.partition(1);
    let mut bed = bed(BedKind::Device, 1);
    let consents = consents(&[&disk.node, &partition]);
    let token = Token::random().unwrap();
    let make = |bed: &Bed, consents: &Consents| {
        let nowhere = Path::new("/nowhere");
        make(bed, nowhere, &token, consents, &mut |_| unreachable!(), &mut |_| Ok(()))
    };
    bed.paths = vec![disk.node.clone()];
    assert!(matches!(make(&bed, &Consents::default()), Err(BedError::Refused(_))));
    let mut made = make(&bed, &consents).unwrap();
    // Held, lent to a trial, and held again.
    let others = || disk.check("").map_err(|refusal| refusal.to_string());
    assert!(others().unwrap_err().contains("is another run's"));
    made.lend().unwrap();
    assert!(others().unwrap_err().contains("is another run's"));
    let mkfs = || tool::run_words(&["mkfs.ext4", "-q", "-F", "-F", &disk.node]);
    // What a test beside has begun has the disk claimed until it is another program.
    loop_device::wait_until(|| mkfs().is_ok()).unwrap();
    made.take_back().unwrap();
    mkfs().unwrap_err();
    made.remove().unwrap();
    disk.check("ext4").unwrap();
    bed.paths.push(partition);
    let refused = make(&bed, &consents).map(drop).unwrap_err().to_string();
    assert!(refused.contains("share bytes"), "{refused}");
}

/// parted abbreviates: `sel` has it go on with another disk.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn confined_parted_finds_its_disk_alone() {
    let (own, other) = (Disk::new(), Disk::new());
    let words = ["sel", &other.node, "mklabel", "gpt"].map(String::from);
    let devices = [own.device.as_ref().unwrap().device()];
    let is_blank = || {
        run(&["sync"]);
        fs::read(other.folder.path().join("disk")).unwrap().iter().all(|byte| *byte == 0)
    };
    partition::make(&words, &devices, true).unwrap_err();
    assert!(is_blank(), "another disk was partitioned");
    let _ = partition::make(&words, &devices, false);
    assert!(!is_blank(), "nothing is shown: parted does not go on with another disk");
}
