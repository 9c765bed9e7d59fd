//! What a trial's work can't do: reach a disk or a file that is none of its bed's.

use std::fs::{self, File};
use std::io::Read;
use std::process::Child;

use super::{failure, of, printed, run_command, run_plan};
use crate::support::{Done, Scene, Started, list, program, text, tool, wait_for};

const MIB: usize = 1 << 20;
const OPTIONS: &str = "--fs ext4,ext4 --size 64M --rounds 1";

/// Somebody else's disk and file, and what they hold.
pub struct Victim {
    pub node: String,
    file: String,
    image: String,
    holds: Vec<u8>,
}

impl Victim {
    pub fn new(scene: &Scene) -> Victim {
        let holds = vec![b'v'; MIB];
        let [file, image] = ["victim", "victim.disk"].map(|name| scene.typed(name));
        fs::write(&file, &holds).unwrap();
        fs::write(&image, &holds).unwrap();
        let node = tool("losetup", &["--find", "--show", &image]).unwrap().trim().to_string();
        Victim { node, file, image, holds }
    }

    #[track_caller]
    pub fn is_whole(&self, attack: &str) {
        tool("sync", &[&self.node]).unwrap();
        let mut disk = Vec::new();
        File::open(&self.node).unwrap().read_to_end(&mut disk).unwrap();
        for (what, found) in [("disk", disk), ("image", fs::read(&self.image).unwrap())] {
            assert!(found == self.holds, "the {what} was written to by: {attack}");
        }
        let found = fs::read(&self.file).unwrap();
        assert!(found == self.holds, "the file was written to by: {attack}");
    }

    /// Runs `command` with both in its environment, as NODE and FILE.
    fn is_attacked(&self, scene: &Scene, command: &[&str]) -> Done {
        let environment = [format!("NODE={}", self.node), format!("FILE={}", self.file)];
        let mut words = vec!["run", "--output", "run", "--json", "-"];
        words.extend(OPTIONS.split(' '));
        words.push("--");
        words.push("env");
        words.extend(environment.iter().map(String::as_str));
        words.extend(command);
        scene.fsverdict(&words)
    }
}

fn again(scene: &Scene) {
    // What is refused before its first trial leaves none.
    if scene.path("run").exists() {
        fs::remove_dir_all(scene.path("run")).unwrap();
    }
}

/// Job files that leave the file system under test, by `lines` of a job or by its name.
fn attacks(scene: &Scene, victim: &Victim) -> Vec<String> {
    let Victim { node, file, .. } = victim;
    let log = |name: &str, to: &str| {
        let lines = [" add", " open", " write 0 4096"].map(|act| format!("{to}{act}\n"));
        scene.write(name, &format!("fio version 2 iolog\n{}", lines.concat()))
    };
    let [of_node, of_file] = [log("node.log", node), log("file.log", file)];
    let other = scene.write("other.fio", &format!("filename={node}\n"));
    let lines = [
        "filename=${VICTIM}".to_string(),
        "include other.fio".into(),
        format!("include {other}"),
        format!("read_iolog={of_node}"),
        format!("read_iolog={of_file}"),
        format!("read_iolog={of_node}\nreplay_redirect={node}"),
        format!("read_iolog={of_file}\nreplay_redirect={file}"),
        format!("opendir={}", scene.typed("")),
    ];
    let jobs = lines.map(|lines| format!("[job]\nrw=write\nsize=64k\n{lines}\n"));
    let named = [node, file].map(|name| format!("[{name}]\nrw=write\nsize=64k\n"));
    jobs.into_iter().chain(named).collect()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_fio_job_file_leaves_other_disks_and_files_alone() {
    let scene = Scene::new();
    let victim = Victim::new(&scene);
    for job in attacks(&scene, &victim) {
        scene.write("job.fio", &job);
        let mut words = vec!["run", "--output", "run"];
        words.extend(OPTIONS.split(' '));
        let mut command = scene.command(&[&words[..], &["--", "fio", "job.fio"]].concat());
        command.env("VICTIM", &victim.node);
        Started::new(command).wait();
        victim.is_whole(&job);
        again(&scene);
    }
    drop_disk(&victim);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn options_of_fio_leave_other_disks_and_files_alone() {
    let scene = Scene::new();
    let victim = Victim::new(&scene);
    let arguments = ["fio", "--name=job", "--rw=write", "--size=64k", "--directo=/var"];
    run_command(&scene, OPTIONS, &arguments);
    assert!(fs::read_dir("/var").unwrap().all(|it| !is_job(&it.unwrap().file_name())));
    victim.is_whole("--directo");
    again(&scene);
    let log = format!("fio version 2 iolog\n{0} add\n{0} open\n{0} write 0 4096\n", victim.node);
    let plan = format!(
        r#"
        bed = {{ size = "64M" }}
        judgement = {{ rounds = 1 }}
        contender = [{{ name = "a", file_system = "ext4" }}, {{ name = "b", file_system = "ext4" }}]
        [[workload]]
        name = "w"
        fio = {{ rw = "write", size = "64k", read_iolog = "{}", replay_redirect = "{}" }}
        "#,
        scene.write("node.log", &log),
        victim.node,
    );
    run_plan(&scene, &plan);
    victim.is_whole("a plan's read_iolog");
    drop_disk(&victim);
    scene.assert_nothing_left();
}

fn is_job(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with("job.")
}

pub fn drop_disk(victim: &Victim) {
    tool("losetup", &["--detach", &victim.node]).unwrap();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_command_leaves_other_disks_and_files_alone() {
    let scene = Scene::new();
    let victim = Victim::new(&scene);
    let fio = "--name=job --rw=write --size=64k --filename=";
    let attacks = [
        format!("/usr/bin/fio {fio}$NODE"),
        format!("env fio {fio}$NODE"),
        format!("sh -c 'fio {fio}$NODE'"),
        format!("/usr/bin/fio {fio}$FILE"),
        "cat /etc/hostname > $FILE".into(),
        "cat /etc/hostname > $NODE".into(),
        "mv $FILE here".into(),
        "rm $FILE".into(),
        "truncate -s 0 $FILE".into(),
        "dd if=/etc/hostname of=$NODE".into(),
        "blkdiscard -f $NODE".into(),
        "mkfs.ext4 -q -F $NODE".into(),
        "echo x > /proc/1/root$FILE".into(),
        "nsenter -t 1 -m -- truncate -s 0 $FILE".into(),
        "unshare -m sh -c 'mount -o remount,rw /; mount -o remount,bind,rw /; > /etc/fsverdict-x'"
            .into(),
        "mount --bind / /mnt && mount -o remount,bind,rw /mnt && > /mnt$FILE".into(),
    ];
    let script: Vec<String> =
        attacks.iter().map(|attack| format!("( {attack} ) 2>&1 || true")).collect();
    victim.is_attacked(&scene, &["sh", "-c", &script.join("\n")]).exits(0);
    victim.is_whole("one of the commands");
    assert!(!fs::exists("/etc/fsverdict-x").unwrap());
    drop_disk(&victim);
    scene.assert_nothing_left();
}

/// Each says its name where it gets out. What sets something of the machine sets it as it is.
pub const ESCAPES: &str = r#"
exec 2>&1
minor=$(cat /sys/block/$(basename "$NODE")/dev)
out() { echo "escaped: $*"; }
for file in /etc/x /usr/x /var/x /var/lib/x /opt/x /x; do > $file && out open $file; done
mv /etc/hostname /etc/hostnam && out rename
ln /etc/hostname /etc/hostnam && out link
ln -s /etc/hostname /etc/hostnam && out symlink
mount -o remount,rw / && out remount
mount -o remount,bind,rw / && out remount bind
mount -o remount,bind,rw /proc/sys && out remount sys
umount /proc/sys && out umount proc
umount /tmp && out umount tmp
umount /dev && out umount dev
mount -t proc proc /mnt && out mount proc
unshare --pid --fork --mount-proc true && out a proc of its own
mount "$NODE" /mnt && out mount a disk
unshare --cgroup true && out cgroup namespace
mkdir m; mount -t cgroup2 none m && out mount cgroups
unshare --net sh -c 'mount -t sysfs none m && > m/kernel/mm/ksm/run' && out a sysfs of its own
mv ../work ../moved && out move the folder of the work
> ../beside && out beside the work
mknod node b ${minor%:*} ${minor#*:} && out mknod
mknod node c 1 3 && out mknod character
head -c 1 "$NODE" > /dev/null && out read a disk
ls /dev/loop-control /dev/mapper/control /dev/kmsg /dev/mem && out devices
ls /proc/1/root/ && out root
ls /proc/1/cwd/ && out cwd
for fd in /proc/1/fd/*; do readlink "$fd" && out fd; (: < "$fd") && out open fd; done
cat /proc/1/environ && out environ
cat /proc/1/maps && out maps
head -c 1 /proc/1/mem && out mem
nsenter -t 1 -m true && out nsenter
nsenter -t 1 -U true && out nsenter user
command -v strace > /dev/null || out "no strace: ptrace is not tried"
timeout 120 strace -qq -o /dev/null -p 1; [ $? = 124 ] && out ptrace
for number in "7 0" "8 0" "252 0" "254 0" "259 0"; do
    mknod other b $number && out mknod $number
done
mount -t devtmpfs none m && out mount devices
mount -t tmpfs -o dev none m && mknod m/disk b ${minor%:*} ${minor#*:} && out a disk in a tmpfs
umount m
(exec 9< "$NODE") && out keep the disk open
for fd in /proc/[0-9]*/fd/*; do
    case $(readlink "$fd") in
        /dev/[dlsvz]*|/dev/nvme*|/dev/m[dm]*|/dev/xvd*) out "kept descriptor $fd" ;;
    esac
done
head -c 1 /proc/kcore > /dev/null && out kcore
same() { cat "$1" > "$1"; }
same /proc/sys/vm/swappiness && out sysctl
echo h > /proc/sysrq-trigger && out sysrq
same /sys/block/$(basename "$NODE")/queue/nomerges && out sysfs
hostname "$(hostname)" && out hostname
date -s "$(date --rfc-3339=ns)" && out date
for fd in 3 4 5 6 7 8 9; do
    (: >&$fd) && out a file that was left open, $fd
done
for fd in /proc/self/fd/*; do
    to=$(readlink "$fd") || continue
    case $to in
        /dev/null | "$FSVERDICT_RAW"/* | "$PWD"/* | pipe:* | /proc/*/fd) ;;
        *) out "descriptor $fd $to" ;;
    esac
done
> /dev/tty && out terminal
# A session that begins outside has no number here.
[ "$(cut -d ' ' -f 6 /proc/$$/stat)" = 0 ] && out session
echo done
"#;

/// What of `said` tells of a way out; all has to have been tried.
#[track_caller]
pub fn escaped(said: &str) -> Vec<&str> {
    assert!(said.ends_with("done\n"), "{said}");
    said.lines().filter(|line| line.starts_with("escaped: ")).collect()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_way_leads_out_of_the_cell() {
    let scene = Scene::new();
    let victim = Victim::new(&scene);
    let own =
        "[ \"$(cut -d ' ' -f 6 /proc/$$/stat)\" = $$ ] || echo escaped: no session of its own\n";
    let script = [own, ESCAPES].concat();
    let document = victim.is_attacked(&scene, &["sh", "-c", &script]).exits(0).json();
    for trial in of(&document, "ext4") {
        assert_eq!(escaped(&printed(&scene, trial)), [""; 0]);
    }
    victim.is_whole("an escape");
    drop_disk(&victim);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn work_finds_what_it_needs_and_keeps_its_files_to_itself() {
    let scene = Scene::new();
    scene.write("input", "read me\n");
    let name = format!("fsverdict-{}", std::process::id());
    let script = format!(
        "set -e; cat '{}'
         for at in /tmp /var/tmp /run /dev/shm \"$HOME\"; do echo > $at/{name}; done
         mkdir inner; mount -t tmpfs none inner; umount inner
         chown 1000:1000 inner; setpriv --reuid=1000 --regid=1000 --clear-groups touch inner/file
         mount -t tmpfs none inner; echo x > /dev/null; head -c 8 /dev/urandom > random
         echo > '{}'",
        scene.typed("input"),
        scene.typed("output"),
    );
    let document = run_command(&scene, OPTIONS, &["sh", "-c", &script]).exits(0).json();
    for trial in of(&document, "ext4") {
        assert_eq!(printed(&scene, trial), "read me\n");
        assert_eq!(trial["astray"]["files"], 5, "{trial:#}");
    }
    let findings = list(&document["findings"]);
    let told = findings.iter().find(|finding| finding["audit"] == "A25").unwrap();
    assert!(text(&told["evidence"]).contains(&format!("/var/tmp/{name}")), "{told}");
    let home = std::env::var("HOME").unwrap_or("/root".into());
    for at in ["/tmp", "/var/tmp", "/run", "/dev/shm", &home] {
        assert!(!fs::exists(format!("{at}/{name}")).unwrap(), "{at}");
    }
    assert!(!scene.path("output").exists());
    scene.assert_nothing_left();
}

/// By Linux 5.11 and later, of an x86-64.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_the_work_tries_to_write_outside_is_told() {
    let scene = Scene::new();
    let name = format!("fsverdict-{}", std::process::id());
    let script = format!(
        "for at in touch mkdir 'ln -s to'; do $at /etc/{name}; done
         cd /usr; echo > {name}; test -w /etc; test -w .; touch /tmp/{name}; true"
    );
    let two_rounds = "--fs ext4,ext4 --size 64M --rounds 2";
    let document = run_command(&scene, two_rounds, &["sh", "-c", &script]).exits(0).json();
    for trial in of(&document, "ext4") {
        let forbidden = &trial["forbidden"];
        if trial["round"] != 1 {
            assert!(forbidden.is_null(), "only the first round is watched: {trial:#}");
            continue;
        }
        assert_eq!(forbidden["writes"], 4, "{forbidden}");
        let mut first: Vec<&str> = list(&forbidden["first"]).iter().map(text).collect();
        first.sort_unstable();
        let at = |program| format!("{program} /etc/{name}");
        assert_eq!(first, [at("ln"), at("mkdir"), format!("sh {name}"), at("touch")]);
    }
    let findings = list(&document["findings"]);
    let mut evidence = findings.iter().map(|finding| text(&finding["evidence"]));
    assert!(evidence.any(|it| it.starts_with("the kernel refused the work 4 writes")));
    // In a PID namespace of the work's own, and in one within that.
    let inner = format!("unshare -Urpf unshare -pf touch /etc/{name}");
    fs::remove_dir_all(scene.path("run")).unwrap();
    let document = run_command(&scene, two_rounds, &["sh", "-c", &(inner + "; true")]);
    let document = document.exits(0).json();
    let mut first = of(&document, "ext4").into_iter().filter(|trial| trial["round"] == 1);
    let forbidden = &first.next().unwrap()["forbidden"];
    assert_eq!(forbidden["first"], serde_json::json!([format!("touch /etc/{name}")]));
    assert_eq!(forbidden["writes"], 1, "{forbidden}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_stick_that_is_not_the_trials_can_be_unmounted_while_it_runs() {
    let scene = Scene::new();
    let [image, at] = ["stick", "mounted"].map(|name| scene.typed(name));
    File::create(&image).unwrap().set_len(16 << 20).unwrap();
    tool("mkfs.ext4", &["-q", &image]).unwrap();
    fs::create_dir(&at).unwrap();
    // As on a machine with systemd, whose mounts are shared.
    tool("mount", &["--bind", &at, &at]).unwrap();
    tool("mount", &["--make-shared", &at]).unwrap();
    fs::create_dir(format!("{at}/stick")).unwrap();
    tool("mount", &["-o", "loop", &image, &format!("{at}/stick")]).unwrap();
    let attached = || tool("losetup", &["--associated", &image]).unwrap();
    assert!(!attached().is_empty());
    let words = ["run", "--output", "run", "--fs", "ext4,ext4", "--size", "64M", "--rounds", "1"];
    let mut run = scene.start(&[&words[..], &["--", "sh", "-c", "echo works; sleep 600"]].concat());
    let stdout = scene.path("run/trials/1/raw/command.stdout");
    run.reaches("the work", || fs::read_to_string(&stdout).is_ok_and(|said| said == "works\n"));
    tool("umount", &[&format!("{at}/stick")]).unwrap();
    wait_for("the stick's device to be free", || attached().is_empty());
    run.signal("INT");
    run.wait();
    tool("umount", &[&at]).unwrap();
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn links_that_the_work_leaves_lead_the_trial_nowhere() {
    let scene = Scene::new();
    let victim = Victim::new(&scene);
    let link = format!("ln -s {} \"$FSVERDICT_RAW/$name.$of\"", victim.file);
    let setup = format!(
        "for name in command prepare check; do for of in stdout stderr; do {link}; done; done; \
         cd ..; mv work w && ln -s {} work; exit 0",
        scene.typed("")
    );
    let mut words = vec!["run", "--output", "run", "--setup", &setup, "--prepare", "echo x"];
    words.extend(OPTIONS.split(' '));
    scene.fsverdict(&[&words[..], &["--", "echo", "printed"]].concat()).exits(0);
    victim.is_whole("the trial, by a link");
    assert_eq!(scene.read("run/trials/1/raw/command.stdout"), "printed\n");
    drop_disk(&victim);
    scene.assert_nothing_left();
}

/// The trial does native work itself, as root and in no cell: what the plan's own commands put
/// where it works leads it nowhere.
#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn links_in_the_way_of_native_work_lead_it_nowhere() {
    let scene = Scene::new();
    let victim = Victim::new(&scene);
    let theirs = scene.path("theirs");
    fs::create_dir(&theirs).unwrap();
    for name in ["f00000000", "r00000000"] {
        fs::write(theirs.join(name), "precious").unwrap();
    }
    let (file, folder) = (&victim.file, theirs.display().to_string());
    let fsyncs =
        "fsync_files = { files = 1, repetitions = 1, size = \"8k\", case = \"overwriting\" }";
    let metadata = "metadata = { directories = 1, files_per_directory = 1, threads = 1, \
                    operations = [\"mkdir\", \"create\", \"chmod\", \"setxattr\", \"delete\"] }";
    let behind =
        "( while :; do [ -e d0000/f00000000 ] && rm -rf d0000 && ln -s THEIRS d0000; done )";
    let attacks = [
        (fsyncs, format!("ln -sf {} d0000/f00000000", victim.node)),
        (fsyncs, format!("ln -sf {file} d0000/f00000000")),
        (fsyncs, format!("rm -r d0000; ln -s {folder} d0000")),
        (metadata, format!("{} > /dev/null 2>&1 &", behind.replace("THEIRS", &folder))),
        (
            "tree = { files = 4, phases = [\"walk\", \"delete\"] }",
            format!("rm -r tree; ln -s {folder} tree"),
        ),
        ("tree = { files = 4, phases = [\"copy\"] }", format!("ln -s {folder} copy")),
    ];
    for (work, prepare) in attacks {
        let plan = format!(
            "bed = {{ size = \"128M\" }}\njudgement = {{ rounds = 2 }}\n\
             contender = [{{ name = \"ext4\", file_system = \"ext4\" }}]\n[[workload]]\n\
             name = \"native\"\n{work}\nprepare = {prepare:?}\n"
        );
        let done = run_plan(&scene, &plan);
        assert!(done.code.is_some_and(|code| code <= 1), "{prepare}: {}", done.stderr);
        victim.is_whole(&prepare);
        let left = fs::read_dir(&theirs).unwrap().map(|it| it.unwrap().path());
        let left: Vec<_> = left.map(|it| fs::read_to_string(it).unwrap()).collect();
        assert_eq!(left, ["precious"; 2], "{prepare}");
        again(&scene);
    }
    drop_disk(&victim);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_link_in_the_place_of_what_mkfs_says_is_replaced() {
    if tool("sh", &["-c", "grep -w squashfs /proc/filesystems && which mksquashfs"]).is_err() {
        eprintln!("left out: there is no SquashFS here");
        return;
    }
    let scene = Scene::new();
    let victim = Victim::new(&scene);
    let plan = format!(
        "bed = {{ size = \"128M\" }}\njudgement = {{ rounds = 1 }}\n\
         contender = [{{ name = \"squashfs\", file_system = \"squashfs\" }}]\n[[workload]]\n\
         name = \"read\"\nsetup = \"seq 9 > n; ln -sf {} $FSVERDICT_RAW/mkfs.stdout\"\n\
         command = \"cat n\"\n",
        victim.file
    );
    run_plan(&scene, &plan).exits(0);
    victim.is_whole("what mkfs says");
    assert!(fs::symlink_metadata(scene.path("run/trials/1/raw/mkfs.stdout")).unwrap().is_file());
    drop_disk(&victim);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn what_the_work_leaves_to_be_read_is_a_file_of_some_size() {
    let scene = Scene::new();
    for (left, why) in [
        ("ln -s /dev/zero $FSVERDICT_FIGURES", "it is a link, and is not followed"),
        ("ln -s /etc/passwd $FSVERDICT_FIGURES", "it is a link, and is not followed"),
        ("mkfifo $FSVERDICT_FIGURES", "it is not a file"),
        ("truncate -s 1T $FSVERDICT_FIGURES", "it has more than 16 MiB"),
    ] {
        let work = format!("rm -f $FSVERDICT_FIGURES; {left}");
        let document = run_command(&scene, OPTIONS, &["sh", "-c", &work]).exits(1).json();
        let (step, error) = failure(of(&document, "ext4")[0]);
        assert!(step == "figures" && error.contains(why), "{left}: {step}: {error}");
        again(&scene);
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_folder_is_opened_to_the_work_by_name_and_the_report_says_so() {
    let scene = Scene::new();
    fs::create_dir(scene.path("open")).unwrap();
    let open = scene.typed("open");
    let write = ["sh", "-c", &format!("echo $FSVERDICT_ROUND > {open}/round")];
    let options = format!("{OPTIONS} --writable open");
    let document = run_command(&scene, &options, &write).exits(0).json();
    assert_eq!(scene.read("open/round"), "1\n");
    assert!(of(&document, "ext4").iter().all(|trial| trial["astray"].is_null()));
    let report = scene.read("run/report.md");
    assert!(report.contains("writable") && report.contains(&open), "{report}");
    again(&scene);
    let done = run_command(&scene, OPTIONS, &["sh", "-c", "echo > /etc/x"]);
    assert!(done.stdout.contains("--writable DIR opens another"), "{}", done.stdout);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn work_finds_its_own_folder_at_a_path_that_is_mapped() {
    let scene = Scene::new();
    fs::create_dir(scene.path("real")).unwrap();
    fs::write(scene.path("real/mine"), "mine").unwrap();
    let real = scene.typed("real");
    // One that the machine lacks, one that it has, and one in a folder of the work's own.
    let maps = ["/no-such-data=.", &format!("{real}=deep/real"), "/etc/no/such=."];
    let maps = maps.map(|it| format!("--map {it}")).join(" ");
    let script = format!(
        "set -e; echo 1 > /no-such-data/here; [ -e here ]; [ ! -e {real}/mine ]; \
         echo 2 > {real}/new; [ -e deep/real/new ]; [ -e /etc/no/such/here ]; \
         [ -e /etc/passwd ]; [ -d /usr/bin ]; \
         for it in /etc/no/x /etc/x /x; do if touch $it; then exit 1; fi; done"
    );
    let options = format!("{OPTIONS} {maps}");
    let document = run_command(&scene, &options, &["bash", "-c", &script]).exits(0).json();
    assert!(of(&document, "ext4").iter().all(|trial| trial["astray"].is_null()), "{document}");
    assert_eq!(scene.read("real/mine"), "mine");
    assert!(!scene.path("real/new").exists() && !fs::exists("/no-such-data").unwrap());
    assert!(scene.read("run/report.md").contains("/no-such-data=."));
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_map_that_hides_the_program_is_named() {
    let scene = Scene::new();
    let options = format!("{OPTIONS} --map /no-such-data=.");
    run_command(&scene, &options, &["/no-such-data/bin/tool"])
        .exits(2)
        .says("runs /no-such-data/bin/tool, which its map hides");
    // Its setup could have brought it: the program says so where it is started.
    fs::create_dir(scene.path("bin")).unwrap();
    fs::copy("/bin/true", scene.path("bin/tool")).unwrap();
    let bin = scene.typed("bin");
    let setup = format!("--setup true --map {bin}=.");
    let done = run_command(&scene, &format!("{OPTIONS} {setup}"), &[&format!("{bin}/tool")]);
    assert!(done.stdout.contains("--map puts the work's own folder at"), "{}", done.stdout);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_fio_job_by_absolute_paths_runs_where_it_is_mapped() {
    let scene = Scene::new();
    let job = "[global]\nrw=randwrite\nsize=1m\n[a]\ndirectory=/no-such-data\n\
               [b]\nfilename=/no-such-logs/x:/no-such-data/y\n";
    scene.write("job.fio", job);
    let refused = run_command(&scene, OPTIONS, &["fio", "job.fio"]);
    assert!(refused.stderr.contains("by --map /no-such-data=."), "{}", refused.stderr);
    again(&scene);
    let options = format!("{OPTIONS} --map /no-such-data=. --map /no-such-logs=logs");
    let document = run_command(&scene, &options, &["fio", "job.fio"]).exits(0).json();
    assert!(
        of(&document, "ext4").iter().all(|trial| trial["outcome"]["failed"].is_null()),
        "{document}"
    );
    scene.assert_nothing_left();
}

/// A process that ends with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// What is tried by a user's work: `$1` is a folder of the user's, with a file, and `$2` a process.
const OF_A_USER: &str = r#"
out() { echo "escaped: $*"; }
exec 2>/dev/null
echo > "$1/x" && out open
echo >> "$1/file" && out append
true > "$1/file" && out truncate
mv "$1" here && out move
mv "$1/file" here && out rename
ln "$1/file" here && out link
rm "$1/file" && out unlink
ln -s / "$1/link" && out symlink
mkfifo "$1/pipe" && out mkfifo
(: >&9) && out a file that was left open
unshare -Urm mount --bind "$1" . && out mount
echo > "/proc/$2/root$1/x" && out root of a process
cat "/proc/$2/environ" > read && out environment of a process
readlink "/proc/$2/fd/0" && out files of a process
perl -e 'exit(syscall(101, 16, $ARGV[0] + 0, 0, 0) == 0 ? 0 : 1)' "$2" && out ptrace
mkdir m && echo > m/x && mv m/x y && echo > "$TMPDIR/z" && echo done
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_users_work_is_kept_in_its_folder_too() {
    let scene = Scene::new();
    let [one, other, outside] = ["a", "b", "outside"].map(|name| {
        fs::create_dir(scene.path(name)).unwrap();
        scene.typed(name)
    });
    fs::write(scene.path("outside/file"), "whole").unwrap();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "6000"];
    let mut process = Ended(program("setpriv").args(user).spawn().unwrap());
    let bed = format!("directory:{one},{other}");
    let number = process.0.id().to_string();
    let line = ["run", "--bed", &bed, "--rounds", "1", "--output", "run", "--warm", "--"];
    let line = [&line[..], &["sh", "-c", OF_A_USER, "sh", &outside, &number]].concat();
    let nobody = scene.as_nobody(&line);
    // A file of the user's is left open as 9.
    let mut command = program("sh");
    let opened = format!("exec 9>>{outside}/file; exec \"$@\"");
    command.args(["-c", &opened, "sh"]).arg(nobody.get_program()).args(nobody.get_args());
    command.current_dir(scene.path("")).env_clear();
    command.envs(nobody.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Started::new(command).wait().exits(0);
    assert!(process.0.try_wait().unwrap().is_none(), "the process was ended");
    let records = scene.records("run");
    assert_eq!(records.len(), 2);
    for trial in &records {
        assert_eq!(escaped(&printed(&scene, trial)), [""; 0]);
    }
    assert_eq!(fs::read_to_string(scene.path("outside/file")).unwrap(), "whole");
    assert_eq!(fs::read_dir(scene.path("outside")).unwrap().count(), 1, "nothing was made there");
    scene.assert_nothing_left();
}
