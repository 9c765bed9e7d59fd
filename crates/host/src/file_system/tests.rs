//! The commands as they are typed, and the conformance suite: each file system that this machine
//! can mount is made, mounted, filled, remounted, read and checked as a trial does it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fsverdict_core::model::Trial;
use fsverdict_core::run::{Effect, Host, Step};
use serde_json::json;

use super::*;
use crate::bed::{Identity, LoopDevice};
use crate::machine::token::Token;
use crate::machine::{cache, mount};
use crate::place::lease::Grant;
use crate::place::trial::TrialHost;
use crate::place::trial::site::{devices, work_directory};
use crate::place::trial_process;
use crate::undo::Journal;
use crate::{sys, tool};

const DEVICES: [&str; 2] = ["/dev/loop1", "/dev/loop2"];

fn lines(commands: &[Argv]) -> String {
    commands.iter().map(|argv| argv.join(" ")).collect::<Vec<_>>().join("\n")
}

fn on_two<T>(use_it: impl FnOnce(&Site) -> T) -> T {
    use_it(&Site { devices: &words(&DEVICES), at: "/mnt", ..Site::default() })
}

fn known(name: &str) -> &'static FileSystem {
    ALL.into_iter().find(|file_system| file_system.name == name).unwrap()
}

fn made(name: &str, options: &[&str]) -> String {
    on_two(|site| lines(&known(name).make(&words(options), site)))
}

fn mounted(name: &str, options: &[&str]) -> String {
    on_two(|site| lines(&known(name).mount(&words(options), site)))
}

/// What mounts `name` on one that is at `/below`, and was mounted before.
fn started(name: &str, options: &[&str]) -> String {
    let (devices, options) = (words(&DEVICES), words(options));
    let site =
        Site { devices: &devices, at: "/mnt", below: "/below", again: true, zoned: false, run: "" };
    let mut commands = known(name).mount(&options, &site);
    commands.extend(known(name).server(&options, &site));
    lines(&commands)
}

#[test]
fn the_judge_knows_who_has_no_journal() {
    let without = ALL.iter().filter(|it| it.without.contains(&"a journal")).map(|it| it.name);
    let mut without: Vec<&str> = without.collect();
    let mut known = fsverdict_core::model::WITHOUT_JOURNAL.to_vec();
    without.sort_unstable();
    known.sort_unstable();
    assert_eq!(without, known);
}

#[test]
fn what_stands_on_another_is_told_where_that_is() {
    let folders = "lowerdir=/below/lower,upperdir=/below/upper,workdir=/below/work overlay /mnt";
    let overlay = format!("mount -t overlay -o metacopy=on,{folders}");
    assert_eq!(started("overlay", &["metacopy=on"]), overlay);
    let volatile = started("overlay", &["volatile"]);
    let sign = ["/below", "work", "work", "incompat"].join("/");
    let gone = format!("rm -rf {sign}");
    assert_eq!(volatile, format!("{gone}\nmount -t overlay -o volatile,{folders}"));
    let site = Site { at: "/mnt", below: "/below", ..Site::default() };
    let first = |options: &[&str]| lines(&known("overlay").mount(&words(options), &site));
    assert_eq!(first(&["metacopy=on"]), "mount --bind /below/lower /mnt");
    let in_upper = first(&["prepared=upper", "noatime"]);
    assert_eq!(in_upper, format!("mount -t overlay -o noatime,{folders}"));
    assert_eq!(started("bindfs", &[]), "bindfs -f /below/shown /mnt");
    let bindfs = "bindfs -f -o multithreaded,noatime /below/shown /mnt";
    assert_eq!(started("bindfs", &["multithreaded", "noatime"]), bindfs);
    let mergerfs = "mergerfs -f -o allow_other,minfreespace=0,cache.files=full /below/shown /mnt";
    assert_eq!(started("mergerfs", &["cache.files=full"]), mergerfs);
    let password = "-extpass echo -extpass fsverdict /below/shown";
    let gocryptfs =
        format!("gocryptfs -fg -allow_other -nosyslog -sharedstorage -ko noatime {password} /mnt");
    assert_eq!(started("gocryptfs", &["aessiv", "sharedstorage", "noatime"]), gocryptfs);
    let init = lines(&known("gocryptfs").make(&words(&["aessiv", "sharedstorage"]), &site));
    let wanted = format!("gocryptfs -init -q -scryptn 10 -aessiv {password}");
    assert_eq!(init, format!("mkdir /below/shown\n{wanted}"));
    assert_eq!(started("ntfs-3g", &["acl"]), "ntfs-3g -o no_detach,acl /dev/loop1 /mnt");
}

#[test]
fn nfs_is_given_out_by_the_kernel_and_mounted_by_the_loopback_interface() {
    let site = Site { at: "/mnt", below: "/below", ..Site::default() };
    let nfs = |options: &[&str]| lines(&known("nfs").mount(&words(options), &site));
    let mount = "mount -i -t nfs -o";
    let plain = nfs(&[]);
    let mounted = format!("{mount} vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /mnt");
    assert!(plain.starts_with("mount -t nfsd nfsd /proc/fs/nfsd\n"), "{plain}");
    assert!(plain.ends_with(&mounted), "{plain}");
    for part in ["echo us /below/shown $until 9216 65534 65534 0 >", "echo 8 >threads;"] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    let other = nfs(&["async,threads=3", "vers=4.0,nconnect=2"]);
    for part in [" 9232 65534", "echo 3 >threads;", "-o vers=4.0,nconnect=2,addr="] {
        assert!(other.contains(part), "{part}: {other}");
    }
    assert_eq!(lines(&known("nfs").unmount(&site)), "umount /mnt");
    assert!(lines(&known("nfs").take_down(&site)).contains("echo 0 >threads"));
    let check =
        |options: &str| known("nfs").check_stands(&words(&options.split(',').collect::<Vec<_>>()));
    check("vers=4.1,sync,nconnect=4,rsize=4096,threads=16,noatime,noac").unwrap();
    for wrong in
        ["vers=3", "sync,async", "sync=1", "threads", "threads=0", "threads=2;x", "sec=krb5", "fsc"]
    {
        assert!(check(wrong).is_err(), "{wrong}");
    }
    let stack = |text: &str| known("ext4").check_below(&Above::parse_stack(text).unwrap());
    stack("bindfs+nfs").unwrap();
    stack("nfs+gocryptfs").unwrap();
    assert!(stack("nfs+overlay").unwrap_err().contains("the kernel refuses it"));
    stack("overlay:index=on,nfs_export=on+nfs").unwrap();
    assert!(
        stack("overlay+nfs").unwrap_err().ends_with(": write overlay:index=on,nfs_export=on+nfs")
    );
    assert!(stack("nfs+bindfs+nfs").unwrap_err().contains("twice"));
}

#[test]
fn diod_gives_out_what_is_mounted_by_9p() {
    let site = Site { at: "/mnt", below: "/below", ..Site::default() };
    let options = words(&["msize=65536", "threads=4"]);
    let (argv, port) = known("9p").listener(&options, &site).unwrap();
    let diod = "diod -f -n -N -L stderr -c /dev/null -t 4 -l 127.0.0.1:564 -e /below/shown";
    assert_eq!((argv.join(" ").as_str(), port), (diod, 564));
    let mount = "mount -i -t 9p -o trans=tcp,port=564,version=9p2000.L,uname=root,\
                 aname=/below/shown,msize=65536,access=user 127.0.0.1 /mnt";
    assert_eq!(lines(&known("9p").mount(&options, &site)), mount);
    for wrong in ["threads=many", "aname=x", "trans=fd", "uname=x"] {
        assert!(known("9p").check_stands(&words(&[wrong])).is_err(), "{wrong}");
    }
}

#[test]
fn smbd_gives_out_what_is_mounted_by_cifs() {
    let site = Site { at: "/mnt", below: "/below", ..Site::default() };
    let (argv, port) = known("smb").listener(&[], &site).unwrap();
    assert_eq!((argv[0].as_str(), port), ("sh", 445));
    assert!(argv[2].contains("\npath = /below/shown\n"), "{}", argv[2]);
    let options = words(&["cache=none,rsize=65536"]);
    let mount = "mount -i -t cifs -o ip=127.0.0.1,username=guest,password=guest,vers=3.1.1,\
                 cache=none,rsize=65536 //127.0.0.1/shown /mnt";
    assert_eq!(lines(&known("smb").mount(&options, &site)), mount);
    for wrong in ["vers=1.0", "ip=10.0.0.1", "credentials=x", "username=x", "sec=krb5"] {
        assert!(known("smb").check_stands(&words(&[wrong])).is_err(), "{wrong}");
    }
}

#[test]
fn what_can_only_be_read_is_made_of_what_was_laid_out() {
    let packed = |name: &str, options: &[&str]| {
        on_two(|site| lines(&[known(name).pack(&words(options), site).unwrap()]))
    };
    assert_eq!(packed("erofs", &["-zlz4"]), "mkfs.erofs --quiet -zlz4 /dev/loop1 /mnt");
    let squashfs = "mksquashfs /mnt /dev/loop1 -noappend -quiet -no-progress -comp zstd";
    assert_eq!(packed("squashfs", &["-comp", "zstd"]), squashfs);
    assert_eq!(mounted("erofs", &[]), "mount -t tmpfs -o mode=0755 fsverdict /mnt");
    assert_eq!(
        started("squashfs", &["noatime"]),
        "mount -t squashfs -o ro,noatime /dev/loop1 /mnt"
    );
    for word in ["-p", "-ef", "-zlz4/x"] {
        assert!(known("squashfs").check_words(&words(&[word]), &[]).is_err(), "{word}");
    }
    for odd in [&["--blobdev=x"][..], &["plan.toml"], &["-zlz4", "plan.toml"], &["-z", "lz4", "x"]]
    {
        assert!(known("erofs").check_words(&words(odd), &[]).is_err(), "{odd:?}");
    }
    known("erofs").check_words(&words(&["-z", "lz4", "-Ededupe"]), &[]).unwrap();
    known("squashfs")
        .check_words(&words(&["-comp", "zstd", "-Xcompression-level", "3"]), &[])
        .unwrap();
    let above = ["overlay".parse().unwrap()];
    assert!(known("erofs").check_below(&above).unwrap_err().contains("read only"));
}

#[test]
fn zoned_disks_are_neither_discarded_nor_mounted_without_resets() {
    let devices = words(&["/dev/nullb0"]);
    let site = Site { devices: &devices, at: "/mnt", zoned: true, ..Site::default() };
    let f2fs = known("f2fs");
    assert_eq!(lines(&f2fs.make(&[], &site)), "mkfs.f2fs -q -f -m /dev/nullb0");
    assert_eq!(lines(&f2fs.mount(&[], &site)), "mount -t f2fs /dev/nullb0 /mnt");
    let takes: Vec<&str> = ALL.iter().filter(|it| it.takes_zones).map(|it| it.name).collect();
    assert_eq!(takes, ["btrfs", "f2fs"]);
}

#[test]
fn syncfs_ends_at_what_a_program_serves_and_at_what_is_volatile() {
    let keeps = |name: &str, options: &[&str]| known(name).keeps_syncfs(&words(options));
    assert!(!keeps("ext4", &[]) && !keeps("overlay", &["metacopy=on"]));
    assert!(keeps("overlay", &["metacopy=on,volatile"]) && keeps("overlay", &["fsync=volatile"]));
    for name in ["9p", "bindfs", "gocryptfs", "mergerfs", "nfs", "ntfs-3g", "smb"] {
        assert!(keeps(name, &[]), "{name}");
    }
}

#[test]
fn words_that_name_files_or_start_programs_go_to_no_program_of_ours() {
    for (name, option) in [
        ("overlay", "lowerdir=/etc"),
        ("overlay", "upperdir=up"),
        ("overlay", "metacopy=on,workdir=work"),
        ("overlay", "prepared=both"),
        ("gocryptfs", "extpass=touch"),
        ("gocryptfs", "config=/etc/passwd"),
        ("gocryptfs", "cpuprofile=out"),
        ("mergerfs", "config=/etc/passwd"),
        ("mergerfs", "fsname=/etc"),
        ("bindfs", "map-passwd=passwd"),
        ("bindfs", "modules=x"),
    ] {
        let said = known(name).check_stands(&words(&[option]));
        assert!(said.is_err(), "{name} {option}");
    }
    assert!(known("ntfs-3g").check_words(&[], &words(&["streams_interface=x,loop"])).is_err());
    known("overlay").check_stands(&words(&["prepared=upper", "volatile", "noatime"])).unwrap();
    known("gocryptfs").check_stands(&words(&["xchacha", "openssl=true", "noexec"])).unwrap();
}

#[test]
fn what_stands_on_another_and_what_is_made_on_devices_do_not_change_places() {
    let overlay: [Above; 1] = ["overlay".parse().unwrap()];
    let said = known("overlay").check_below(&[]).unwrap_err();
    assert!(said.ends_with("--fs ext4 --above overlay"), "{said}");
    assert!(known("xfs").check_stands(&[]).unwrap_err().ends_with("--fs xfs"));
    assert!(known("vfat").check_below(&overlay).unwrap_err().contains("the kernel refuses it"));
    known("vfat").check_below(&["bindfs".parse().unwrap()]).unwrap();
    known("xfs").check_below(&overlay).unwrap();
}

#[test]
fn each_is_made_quietly_and_without_discard() {
    const EXT: &str = "-q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0";
    for name in ["ext4", "ext3", "ext2"] {
        let wanted = format!("mkfs.{name} {EXT} -b 1024 /dev/loop1");
        assert_eq!(made(name, &["-b", "1024"]), wanted);
    }
    assert_eq!(made("xfs", &["-l", "size=256m"]), "mkfs.xfs -q -f -K -l size=256m /dev/loop1");
    let both = DEVICES.join(" ");
    assert_eq!(made("btrfs", &["-d", "raid1"]), format!("mkfs.btrfs -q -f -K -d raid1 {both}"));
    let f2fs = "mkfs.f2fs -q -f -t 0 -c /dev/loop2 -o 5 /dev/loop1";
    assert_eq!(made("f2fs", &["-o", "5"]), f2fs);
    assert_eq!(made("nilfs2", &["-m", "9"]), "mkfs.nilfs2 -q -f -K -m 9 /dev/loop1");
    assert_eq!(made("jfs", &["-s", "4"]), "mkfs.jfs -q -s 4 /dev/loop1");
    let bcachefs = format!("mkfs.bcachefs -q -f --replicas=2 {both}");
    assert_eq!(made("bcachefs", &["--replicas=2"]), bcachefs);
    assert_eq!(made("exfat", &["-c", "32K"]), "mkfs.exfat -c 32K /dev/loop1");
    assert_eq!(made("vfat", &["-F", "32"]), "mkfs.fat -I -F 32 /dev/loop1");
    assert_eq!(made("udf", &["-b", "512"]), "mkudffs --media-type=hd -b 512 /dev/loop1");
    let ntfs3 = "mkntfs --quiet --force --quick -c 64K /dev/loop1";
    assert_eq!(made("ntfs3", &["-c", "64K"]), ntfs3);
    assert_eq!(made("reiserfs", &["-h", "tea"]), "mkreiserfs -q -f -h tea /dev/loop1");
    let gfs2 = "mkfs.gfs2 -q -O -K -p lock_nolock -J 64 /dev/loop1";
    assert_eq!(made("gfs2", &["-J", "64"]), gfs2);
    let ocfs2 = "mkfs.ocfs2 -q -F -x -M local --nodiscard -N 2 /dev/loop1";
    assert_eq!(made("ocfs2", &["-N", "2"]), ocfs2);
}

#[test]
fn extended_options_of_ext4_are_joined_because_the_last_list_would_win() {
    assert_eq!(
        made("ext4", &["-E", "stride=16,lazy_itable_init=1", "-Elazy_journal_init=1"]),
        "mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,\
         stride=16,lazy_itable_init=1,lazy_journal_init=1 /dev/loop1"
    );
}

#[test]
fn each_is_mounted_by_its_name_and_with_our_options_before_the_users() {
    assert_eq!(mounted("ext3", &[]), "mount -t ext3 /dev/loop1 /mnt");
    // One of its own alone would be refused.
    let ocfs2 = "mount -t ocfs2 -o heartbeat=none,barrier=1 /dev/loop1 /mnt";
    assert_eq!(mounted("ocfs2", &["barrier=1"]), ocfs2);
    let btrfs = "mount -t btrfs -o nodiscard,noatime,ssd /dev/loop1 /mnt";
    assert_eq!(mounted("btrfs", &["noatime", "ssd"]), btrfs);
    assert_eq!(mounted("f2fs", &[]), "mount -t f2fs -o nodiscard /dev/loop1 /mnt");
    assert_eq!(mounted("bcachefs", &[]), "mount -t bcachefs /dev/loop1:/dev/loop2 /mnt");
    let zfs = "zpool import -o cachefile=none -d /dev -o noatime,nodev fsverdict-loop1";
    assert_eq!(mounted("zfs", &["noatime", "nodev"]), zfs);
    // A run that was killed takes no pool from one that has got its device since.
    let devices = words(&DEVICES);
    let pool = |run| zfs::pool(&Site { devices: &devices, run, ..Site::default() });
    assert_eq!(pool("0123456789abcdef"), "fsverdict-loop1-0123456789abcdef");
    zfs::Pool::try_from(pool("0123456789abcdef")).unwrap();
}

#[test]
fn words_that_are_no_options_of_zpool_create_get_the_devices_dealt_out() {
    let made = |options: &[&str], count: usize| {
        let devices: Argv = (1..=count).map(|number| format!("d{number}")).collect();
        let site = Site { devices: &devices, at: "/mnt", ..Site::default() };
        lines(&known("zfs").make(&words(options), &site))
    };
    let create = "zpool create -f -o cachefile=none -m /mnt";
    let plain = format!("{create} fsverdict-d1 d1 d2\nzpool export fsverdict-d1");
    assert_eq!(made(&[], 2), plain);
    assert_eq!(made(&["mirror"], 2), plain.replace("d1 d1", "d1 mirror d1"));
    let options = ["-O", "compression=on", "-oashift=12", "mirror", "mirror"];
    let striped = "-O compression=on -oashift=12 fsverdict-d1 mirror d1 d2 mirror d3 d4\n";
    assert!(made(&options, 4).starts_with(&format!("{create} {striped}")));
    assert!(made(&["raidz", "log"], 3).contains(" raidz d1 d2 log d3\n"));
}

#[test]
fn each_says_all_there_is_to_say_under_a_name_of_its_own() {
    for file_system in ALL.into_iter().chain(ALL.into_iter().filter_map(|it| it.instead)) {
        let name = file_system.name;
        assert!(!name.is_empty() && !file_system.program.is_empty(), "{name}");
        assert!(file_system.is_read_only() || !made(name, &[]).is_empty(), "{name}");
        assert!(!started(name, &[]).is_empty(), "{name}");
        assert!(!file_system.version.is_empty(), "{name}");
        if file_system.is_upon {
            assert!(file_system.label.is_none() && file_system.check.is_none(), "{name}");
            // Who tries mount options on devices of their own is not to make its folders.
            assert_eq!(file_system.mkfs(&[], &Site::default()), None, "{name}");
            continue;
        }
        let without = ["nilfs2", "udf", "squashfs"];
        assert!(file_system.check.is_some() || without.contains(&name), "{name}");
        let has_name = name == "zfs" || file_system.is_read_only();
        assert!(file_system.label.is_some() || has_name, "{name}: its pool has a name");
    }
    let names: BTreeSet<&str> = ALL.iter().map(|file_system| file_system.name).collect();
    assert_eq!(names.len(), ALL.len());
}

#[test]
fn what_was_mounted_tells_zfs_from_zfs_fuse() {
    let program = |kernels: &str| mounted_as("zfs", kernels).map(|it| it.program);
    assert_eq!((program("zfs"), program("fuse.zfs")), (Some("zpool"), Some("zfs-fuse")));
    assert!(mounted_as("none", "none").is_none());
}

/// What one pass of the suite is about.
struct Case {
    name: &'static str,
    above: &'static [&'static str],
    work: &'static str,
    devices: usize,
    mkfs: &'static [&'static str],
    /// As mountinfo names it.
    kind: &'static [&'static str],
}

#[test]
fn what_panics_is_told_by_keys_and_values() {
    let words = |text: &str| -> Vec<String> { text.split(' ').map(String::from).collect() };
    let panics =
        |mkfs: &str, mount: &str| super::panics("ext4", &words(mkfs), &words(mount)).is_some();
    for mount in
        ["errors=panic", "noatime,errors=panic", "noatime fatal_errors=panic", "failmode=panic"]
    {
        assert!(panics("", mount), "{mount}");
    }
    for mount in ["errors=remount-ro", "errors=continue,nopanic", "subvol=panic", "panic"] {
        assert!(!panics("", mount), "{mount}");
    }
    assert!(panics("--errors=panic", "") && panics("-e panic", ""));
    assert!(!panics("-L panic-room", "") && !panics("", "debug"));
    assert_eq!(super::panics("gfs2", &[], &words("noatime,debug")), Some("debug"));
}

#[test]
fn the_uuid_of_what_there_is_already_is_known_in_any_case() {
    let root = tempfile::tempdir().unwrap();
    let uuid = "0b3e6e1c-8c4b-4f5e-9a0c-0123456789ab";
    std::fs::create_dir_all(root.path().join("sys/fs/btrfs").join(uuid)).unwrap();
    std::fs::create_dir_all(root.path().join("sys/fs/btrfs/features")).unwrap();
    let known = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        super::with_known_uuid(root.path(), &words).is_some()
    };
    assert!(known(&["-U", uuid]) && known(&[&format!("--uuid={}", uuid.to_uppercase())]));
    assert!(!known(&["-U", "1b3e6e1c-8c4b-4f5e-9a0c-0123456789ab"]));
    assert!(!known(&["-O", "features"]) && !known(&[]));
}

#[test]
fn a_pool_has_settings_of_its_own_and_no_others() {
    let check = |mkfs: &[&str], mount: &[&str]| {
        let (mkfs, mount) = (words(mkfs), words(mount));
        known("zfs").check_words(&mkfs, &mount)
    };
    for right in [&["-o", "ashift=12", "-O", "recsize=8K", "mirror"][..], &["-f", "raidz2"]] {
        check(right, &["noatime,nodev", "ro"]).unwrap();
    }
    for right in ["feature@block_cloning=enabled", "compatibility=openzfs-2.1-linux"] {
        check(&["-o", right, "-O", "compress=lz4"], &[]).unwrap();
    }
    for wrong in ["sharenfs=on", "sharesmb=on", "keylocation=prompt", "mountpoint=none", "a:x=y"] {
        assert!(check(&["-O", wrong], &[]).is_err(), "{wrong}");
        assert!(check(&[], &[wrong]).is_err(), "{wrong}");
    }
    assert!(check(&["-o", "cachefile=x"], &[]).is_err() && check(&["/dev/sdx"], &[]).is_err());
    // Of the pool and of its file system, each by its own option.
    assert!(
        check(&["-o", "recordsize=8K"], &[]).is_err() && check(&[], &["recordsize=8K"]).is_err()
    );
}

/// Images behind loop devices, which go with it, also when the test panics.
struct Bed {
    devices: Vec<LoopDevice>,
    folder: tempfile::TempDir,
}

const LABEL: &str = "fsvtest";
/// The work after whose sync the daemon is killed.
const CRASH: &str = "crash";
/// The work after which the devices are put back to what they were when its sync was over.
const CUT: &str = "cut";
/// Tells [`within_a_trial`] where its trial is.
const TRIAL: &str = "FSVERDICT_TEST_TRIAL";

impl Bed {
    fn new(count: usize) -> Bed {
        let folder = tempfile::tempdir().unwrap();
        let device = |number: usize| {
            let path = folder.path().join(format!("{number}.img"));
            File::create_new(&path).unwrap().set_len(384 << 20).unwrap();
            LoopDevice::attach(&path, true).unwrap()
        };
        Bed { devices: (0..count).map(device).collect(), folder }
    }

    fn trial(&self, case: &Case, lab: &Token) -> PathBuf {
        let path = |name: &str| self.folder.path().join(name);
        fs::create_dir(path("mnt")).unwrap();
        let label = known(case.name).label.map(|option| [option, LABEL]);
        let mkfs: Vec<&str> =
            label.into_iter().flatten().chain(case.mkfs.iter().copied()).collect();
        let devices: Vec<_> = self.devices.iter().map(LoopDevice::device).collect();
        let trial = json!({
            "schema": 1, "number": 1, "round": 1, "workload": "w", "contender": "c",
            "position": 1, "seed": 7, "work": { "name": case.work, "command": ["true"] },
            "settings": { "name": "c", "file_system": case.name, "mkfs": mkfs,
                          "above": case.above, "mount": ["noatime"] },
            "bed": { "kind": "loop", "devices": devices, "lab": lab },
            "directory": path("mnt"), "raw": self.folder.path(), "series": path("series.csv"),
        });
        fs::write(path("trial.json"), trial.to_string()).unwrap();
        path("trial.json")
    }
}

fn conforms(case: &Case) {
    if find(case.name).is_none_or(|it| !mount::mountable(it.driver())) {
        println!("not tested: this kernel has no {}", case.name);
        return;
    }
    let stacked = case.above.iter().map(|it| it.parse::<Above>().unwrap().name);
    for known in stacked.map(|name| find(&name).unwrap()).chain(find(case.name)) {
        if !mount::mountable(known.driver()) || tool::find(known.program).is_none() {
            println!("not tested: there is no {} here", known.name);
            return;
        }
    }
    let bed = Bed::new(case.devices);
    let journal = Journal::open(None).unwrap();
    let identities = bed.devices.iter().map(|device| Identity::of(&device.device()).unwrap());
    let document = bed.trial(case, journal.token());
    let trial = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    let granted = Grant::new(&journal, &trial, identities.collect(), None).unwrap();
    let namespaces = trial_process::trial_argv(Path::new(""), Path::new(""));
    let count = namespaces.iter().position(|word| word == "--").unwrap() + 1;
    let mut command = tool::command(&namespaces[0]).unwrap();
    command.args(&namespaces[1..count]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "file_system::tests::within_a_trial", "--ignored", "--nocapture"]);
    let output = command.env(TRIAL, document).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    drop(granted);
    let token = journal.token().to_string();
    journal.close().unwrap();
    assert!(output.status.success() && said.contains("conforms: "), "{}: {said}", case.name);
    let kind = said.lines().find_map(|line| line.split_once("conforms: ")).unwrap().1;
    assert!(case.kind.contains(&kind), "{}: {kind}", case.name);
    let node = bed.devices[0].device().path;
    let label = tool::run_words(&["blkid", "-p", "-s", "LABEL", "-o", "value", &node]).unwrap();
    let wanted = match known(case.name).label {
        Some(_) => LABEL.into(),
        None if case.name == "zfs" => on(&node, |site| zfs::pool(&Site { run: &token, ..*site })),
        None => String::new(),
    };
    assert_eq!(label.trim(), wanted, "{}", case.name);
    // A mount, a daemon or a pool that is left would hold them.
    bed.devices.into_iter().for_each(|device| device.detach().unwrap());
}

fn on<T>(node: &str, use_it: impl FnOnce(&Site) -> T) -> T {
    use_it(&Site { devices: &words(&[node]), at: "/mnt", ..Site::default() })
}

/// The inside of [`conforms`]: the first process of a PID namespace, as a trial is.
#[test]
#[ignore = "a part of the tests beside it"]
fn within_a_trial() {
    let Some(path) = std::env::var_os(TRIAL) else { return };
    let trial: Trial = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let (mut host, trial) = TrialHost::new(trial).unwrap();
    let mut perform = |step: Step| host.perform(step, &trial).unwrap();
    perform(Step::MakeFileSystem);
    perform(Step::Mount);
    let directory = work_directory(&trial);
    write_files(&directory);
    // What the work leaves running would hold the file system, and must not.
    let mut straggler = tool::command("sh").unwrap();
    straggler.args(["-c", "sleep 1000 &"]).current_dir(&directory).status().unwrap();
    perform(Step::Sync);
    let images = cache::images(&trial.bed.devices);
    let copy = |from: &Path, to: &Path| {
        let paths = [from, to].map(|path| path.display().to_string());
        tool::run_words(&["cp", "--sparse=always", &paths[0], &paths[1]]).unwrap();
    };
    let is_cut = trial.workload.name == CUT;
    images.iter().filter(|_| is_cut).for_each(|it| copy(it, &it.with_extension("cut")));
    if trial.workload.name == CRASH {
        sys::kill_all_others().unwrap();
        tool::unmount(&trial.directory);
    } else {
        perform(Step::Unmount);
    }
    let mounts = mount::of_this_thread().unwrap();
    assert!(!mounts.iter().any(|mount| mount.at.starts_with(&trial.directory)), "{mounts:?}");
    for image in images.iter().filter(|_| is_cut) {
        fs::copy(image.with_extension("cut"), image).unwrap();
        File::open(image).unwrap().sync_all().unwrap();
    }
    perform(Step::DropCaches);
    let Effect::Mounted(mounted) = perform(Step::Mount) else { panic!("not mounted") };
    assert!(mounted.unseen.is_empty(), "{mounted:?}");
    read_files(&directory);
    let removed = fs::remove_file(directory.join("0/0"));
    let is_read_only = known(&trial.contender.file_system).is_read_only();
    let refused = removed.err().and_then(|error| error.raw_os_error());
    assert_eq!(refused, is_read_only.then_some(libc::EROFS));
    perform(Step::Sync);
    perform(Step::Unmount);
    check(&trial);
    // The test's own name is on the line already.
    let above = mounted.above.iter().map(|it| it.file_system.as_str());
    let kinds: Vec<&str> = [mounted.file_system.as_str()].into_iter().chain(above).collect();
    println!("\nconforms: {}", kinds.join("+"));
}

fn content(number: usize) -> Vec<u8> {
    (0..number * number * 997).map(|at| (at * (number + 7) / 3) as u8).collect()
}

fn write_files(directory: &Path) {
    for number in 0..30 {
        let folder = directory.join((number % 3).to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(number.to_string()), content(number)).unwrap();
    }
    std::os::unix::fs::symlink("0/0", directory.join("link")).unwrap();
}

fn read_files(directory: &Path) {
    for number in 0..30 {
        let path = directory.join(format!("{}/{number}", number % 3));
        assert_eq!(fs::read(&path).unwrap(), content(number), "{}", path.display());
    }
    assert_eq!(fs::read_link(directory.join("link")).unwrap(), Path::new("0/0"));
}

fn check(trial: &Trial) {
    let file_system = find(&trial.contender.file_system).unwrap();
    let devices = devices(trial);
    let site =
        Site { devices: &devices, at: &trial.directory, run: &trial.bed.lab, ..Site::default() };
    let Some(commands) = file_system.check(&site) else { return };
    if let Some(program) = file_system.daemon {
        daemon::start(program, &Path::new(&trial.raw).join("daemon.log")).unwrap();
    }
    tool::run_all(&commands).unwrap();
}

macro_rules! conformance {
    ($($test:ident: $name:literal on $devices:literal $mkfs:expr => $kind:expr;)*) => { $(
        #[test]
        #[ignore = "needs root and loop devices: run ./test"]
        fn $test() {
            let (mkfs, kind) = (&$mkfs, &$kind);
            let (above, work) = (&[], "work");
            conforms(&Case { name: $name, above, work, devices: $devices, mkfs, kind });
        }
    )* };
}

macro_rules! standing {
    ($($test:ident: $work:ident $above:expr, on $name:literal => $kind:literal;)*) => { $(
        #[test]
        #[ignore = "needs root and loop devices: run ./test"]
        fn $test() {
            let (above, work, kind) = (&$above, $work, &[$kind]);
            conforms(&Case { name: $name, above, work, devices: 1, mkfs: &[], kind });
        }
    )* };
}

/// Work that leaves things as they are.
const WORK: &str = "work";

conformance! {
    loop_ext4_conforms: "ext4" on 1 [] => ["ext4"];
    loop_ext3_conforms: "ext3" on 1 [] => ["ext3"];
    loop_ext2_conforms: "ext2" on 1 [] => ["ext2"];
    loop_xfs_conforms: "xfs" on 1 [] => ["xfs"];
    loop_btrfs_conforms: "btrfs" on 1 [] => ["btrfs"];
    loop_btrfs_raid1_conforms: "btrfs" on 2 ["-d", "raid1", "-m", "raid1"] => ["btrfs"];
    loop_zfs_conforms: "zfs" on 1 [] => ["zfs", "fuse.zfs"];
    loop_zfs_mirror_conforms: "zfs" on 2 ["-O", "compression=on", "mirror"] => ["zfs", "fuse.zfs"];
    loop_zfs_raidz_conforms: "zfs" on 3 ["raidz"] => ["zfs", "fuse.zfs"];
    loop_f2fs_conforms: "f2fs" on 1 [] => ["f2fs"];
    loop_nilfs2_conforms: "nilfs2" on 1 [] => ["nilfs2"];
    loop_jfs_conforms: "jfs" on 1 [] => ["jfs"];
    loop_bcachefs_conforms: "bcachefs" on 1 [] => ["bcachefs"];
    loop_ntfs_3g_conforms: "ntfs-3g" on 1 [] => ["fuseblk"];
    loop_erofs_conforms: "erofs" on 1 ["-zlz4hc"] => ["erofs"];
    loop_squashfs_conforms: "squashfs" on 1 ["-b", "128K"] => ["squashfs"];
}

standing! {
    loop_overlay_conforms: WORK ["overlay"], on "ext4" => "ext4+overlay";
    loop_overlay_on_xfs_conforms: WORK ["overlay:metacopy=on"], on "xfs" => "xfs+overlay";
    loop_overlay_on_btrfs_conforms: WORK ["overlay:prepared=upper"], on "btrfs" => "btrfs+overlay";
    loop_bindfs_conforms: WORK ["bindfs"], on "xfs" => "xfs+fuse";
    loop_gocryptfs_conforms: WORK ["gocryptfs:aessiv"], on "ext4" => "ext4+fuse.gocryptfs";
    loop_mergerfs_conforms: WORK ["mergerfs"], on "btrfs" => "btrfs+fuse.mergerfs";
    loop_two_levels_conform: WORK ["bindfs", "gocryptfs"], on "ext4"
        => "ext4+fuse+fuse.gocryptfs";
    // What was synced is on the devices, though fsync and syncfs reach none of them by themselves.
    loop_volatile_overlay_keeps_what_was_synced: CUT ["overlay:volatile"], on "ext4"
        => "ext4+overlay";
    loop_bindfs_keeps_what_was_synced: CUT ["bindfs"], on "xfs" => "xfs+fuse";
    loop_gocryptfs_keeps_what_was_synced: CUT ["gocryptfs"], on "ext4" => "ext4+fuse.gocryptfs";
    loop_mergerfs_keeps_what_was_synced: CUT ["mergerfs"], on "ext4" => "ext4+fuse.mergerfs";
    loop_ntfs_3g_keeps_what_was_synced: CUT [], on "ntfs-3g" => "fuseblk";
}

/// That the timed part ends when the data is durable, though syncfs does not reach the daemon.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_zfs_fuse_keeps_what_was_synced_when_it_is_killed() {
    if find("zfs").is_none_or(|it| it.daemon.is_none() || tool::find(it.program).is_none()) {
        println!("not tested: zfs-fuse is not what makes ZFS here");
        return;
    }
    conforms(&Case {
        name: "zfs",
        above: &[],
        work: CRASH,
        devices: 1,
        mkfs: &[],
        kind: &["fuse.zfs"],
    });
}

/// mkfs needs no kernel: what can't be mounted here can be made at least, and have its label.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_what_can_not_be_mounted_can_be_made() {
    for file_system in [known("f2fs"), known("nilfs2"), known("jfs"), known("bcachefs")] {
        let name = file_system.name;
        if tool::find(file_system.program).is_none() {
            println!("not tested: {} is not installed", file_system.program);
            continue;
        }
        let several = if file_system.takes_several() { 2 } else { 1 };
        let bed = Bed::new(several);
        let devices: Argv = bed.devices.iter().map(|device| device.device().path).collect();
        let site = Site { devices: &devices, at: "/mnt", ..Site::default() };
        let label = words(&[file_system.label.unwrap(), LABEL]);
        tool::run_all(&file_system.make(&label, &site)).unwrap();
        let blkid = ["blkid", "-p", "-s", "LABEL", "-o", "value", &devices[0]];
        assert_eq!(tool::run_words(&blkid).unwrap().trim(), LABEL, "{name}");
        tool::run_all(&file_system.check(&site).unwrap_or_default()).unwrap();
        bed.devices.into_iter().for_each(|device| device.detach().unwrap());
    }
}

#[test]
fn what_is_typed_makes_it_as_its_users_make_it() {
    let typed = |name: &str, mkfs: &[&str], mount: &[&str]| {
        let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let known = find(name).unwrap();
        known.typed(&owned(mkfs), &owned(mount), "/dev/sdb1", "/srv").join("; ")
    };
    assert_eq!(
        typed("xfs", &["-l", "size=256m"], &["noatime"]),
        "mkfs.xfs -l size=256m /dev/sdb1; mount -t xfs -o noatime /dev/sdb1 /srv; \
         /dev/sdb1 /srv xfs noatime 0 0   # in /etc/fstab, better by UUID="
    );
    assert!(typed("ext4", &[], &[]).contains("/srv ext4 defaults 0 2 "));
    assert_eq!(typed("zfs", &[], &[]), "");
}
