//! What a trial's work can't reach but by system calls: daemons, processes, keys, the kernel.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Child;
use std::sync::{Mutex, PoisonError};

use super::{of, printed, run_plan};
use crate::support::{Done, Scene, Started, program, tool};

/// A daemon's sockets and a process that are none of the trial's; gone with this.
pub struct Machine {
    folder: tempfile::TempDir,
    _sockets: [UnixListener; 2],
    process: Child,
}

/// Starts what follows in a session with a key, as a login has one (pam_keyinit(8)), and with
/// another that root has in all sessions: by the numbers of x86-64, as all calls below. Literals
/// can't be given to syscall.
const WITH_KEYS: &str = r#"syscall(250, 1, 0) > 0 or die $!;
    my ($type, $name, $secret) = ("user", "fsverdict-test", "secret");
    syscall(248, $type, $name, $secret, 6, -3) > 0 or die $!;
    syscall(248, $type, $name, $secret, 6, -4) > 0 or die $!;
    exec @ARGV"#;
/// Takes root's away, which is still there.
const WITHOUT_KEYS: &str = r#"my ($type, $name) = ("user", "fsverdict-test");
    my $key = syscall(250, 10, -4, $type, $name, 0);
    $key > 0 && syscall(250, 9, $key, -4) == 0 or die "the key is gone: $!\n""#;

impl Machine {
    pub fn new() -> Machine {
        // Where databases and LXD have theirs: not in /run.
        let folder = tempfile::tempdir_in("/var/lib").unwrap();
        let name = SocketAddr::from_abstract_name(folder.path().as_os_str().as_encoded_bytes());
        let by_name = UnixListener::bind_addr(&name.unwrap()).unwrap();
        let by_path = UnixListener::bind(folder.path().join("socket")).unwrap();
        let process = program("sleep").arg("6000").spawn().unwrap();
        Machine { folder, _sockets: [by_path, by_name], process }
    }

    /// What [`CALLS`] is told: the sockets' folder, the process, and our IPC namespace.
    pub fn words(&self) -> [String; 3] {
        let ipc = fs::read_link("/proc/self/ns/ipc").unwrap().display().to_string();
        [self.folder.path().display().to_string(), self.process.id().to_string(), ipc]
    }

    #[track_caller]
    pub fn is_whole(&mut self) {
        assert!(self.process.try_wait().unwrap().is_none(), "the process was ended");
    }
}

/// A command, from a session with keys, and with a file that was left open as 9.
pub fn with_keys(scene: &Scene, words: &[&str]) -> Done {
    // Root's keyring is the machine's.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = program("sh");
    command.args(["-c", "exec 9>>left-open; exec \"$@\"", "sh", "perl", "-e", WITH_KEYS]);
    command.args(words).current_dir(scene.path(""));
    let done = Started::new(command).wait();
    tool("perl", &["-e", WITHOUT_KEYS]).unwrap();
    done
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// Says what it could do. What sets something of the machine sets it as it is.
pub const CALLS: &str = r#"
use Errno;
use Socket;
my ($folder, $process, $ipc) = @ARGV;
sub call { my ($number, @words) = @_; syscall($number, @words) }
sub tried { my ($what, $answer) = @_; print "escaped: $what\n" if $answer >= 0; }
tried "what is open as 9", open(my $nine, ">&=", 9) ? 0 : -1;
# For lack of a right, or of the call in this kernel: not for what it was given.
sub refused {
    my ($what, $answer) = @_;
    tried $what, $answer;
    print "$what: $!\n" unless $answer >= 0 || $!{EPERM} || $!{ENOSYS};
}
sub connected {
    my ($what, $name) = @_;
    socket(my $it, AF_UNIX, SOCK_STREAM, 0) or die $!;
    tried $what, connect($it, pack("S", AF_UNIX) . $name) ? 0 : -1;
}
connected "a socket by its path", "$folder/socket\0";
# Landlock's sixth version, of Linux 6.12, knows such names.
connected "a socket by its name", "\0$folder" if call(444, 0, 0, 1) >= 6;
# Who has no process numbers of its own is kept from signals by Landlock's sixth version.
if (-e "/proc/$$" || call(444, 0, 0, 1) >= 6) {
    tried "signal", kill("KILL", $process) - 1;
    tried "pidfd_send_signal", call(424, call(434, $process, 0), 9, 0, 0);
}
tried "pidfd_getfd of the trial", call(438, call(434, 1, 0), 0, 0);
my ($keyring) = map { /^(\w+) .* _uid\.0:/ ? hex $1 : () } `cat /proc/keys`;
refused "a keyring of root's", call(250, 8, $keyring, -3);
tried "a key of the session", call(250, 10, -3, "user", "fsverdict-test", 0);
tried "mount_setattr", call(442, -100, "/", 0, pack("QQQQ", 0, 1, 0, 0), 32);
tried "open_tree of init's", call(428, -100, "/proc/1/root", 1);
my ($handle, $mount) = (pack("Lla128", 128, 0, ""), pack("l", 0));
my $name = "/etc/hostname";
syscall(303, -100, $name, $handle, $mount, 0);
sysopen(my $etc, "/etc", 0) or die $!;
refused "open_by_handle_at", call(304, fileno($etc), $handle, 2);
refused "swapoff", call(168, "/etc/hostname");
refused "reboot", call(169, 0xfee1dead, 672274793, 0x89abcdef, 0);
refused "kexec_load", call(246, 0, 0, 0, 0);
refused "init_module", call(175, "", 0, "");
refused "finit_module", call(313, fileno($etc), "", 0);
refused "bpf of the machine", call(321, 11, "\0" x 128, 128);
refused "iopl", call(172, 3);
refused "ioperm", call(173, 0x80, 1, 1);
tried "syslog", call(103, 5, 0, 0);
refused "clock_settime", call(227, 0, pack("qq", time, 0));
tried "adjtimex", call(159, pack("l", 1) . "\0" x 256);
my $host = `uname -n`;
chomp $host;
refused "sethostname", call(170, $host, length $host);
refused "acct", call(163, 0);
tried "oom_score_adj", open(my $score, ">", "/proc/self/oom_score_adj")
    && syswrite($score, "-1000") ? 0 : -1;
tried "core_pattern", open(my $core, ">", "/proc/sys/kernel/core_pattern") ? 0 : -1;
refused "kcmp", call(312, 1, $$, 0, 0, 0);
refused "process_vm_readv", call(310, 1, pack("QQ", 0, 8), 1, pack("QQ", 4096, 8), 1, 0);
refused "fanotify_init", call(300, 0, 0);
refused "setdomainname", call(171, $host, length $host);
refused "settimeofday", call(164, pack("qq", time, 0), 0);
refused "fsconfig", call(431, call(433, -100, "/", 0), 7, 0, 0, 0);
tried "a namespace of control groups", call(272, 0x02000000);
tried "SysV's IPC", readlink("/proc/self/ns/ipc") eq $ipc ? 0 : -1;
opendir(my $bed, ".") or die $!;
for my $frozen ($etc, $bed) {
    tried "FIFREEZE", call(16, fileno($frozen), 0xc0045877, 0);
}
socket(my $udev, 16, SOCK_RAW, 15) or die $!;
my $event = send $udev, "change\@/x\0ACTION=change", 0, pack("SSLL", 16, 0, 0, 1);
tried "an event for udev", defined $event ? 0 : -1;
tried "a raw socket", socket(my $raw, PF_INET, SOCK_RAW, 1) ? 0 : -1;
for my $node ("loop-control", "kmsg", "mem", "fuse", "mapper/control", "btrfs-control") {
    tried "/dev/$node", open(my $it, "<", "/dev/$node") ? 0 : -1;
}
for my $file ("mem", "environ", "maps", "exe", "cwd", "ns/mnt", "fd/0") {
    tried "/proc/1/$file", defined(sysopen my $it, "/proc/1/$file", 0) ? 0 : -1;
}
# What the machine has too is set as it is: modes, owners and times.
for my $file ("/dev/null", "/dev/full", "/proc/devices", "/proc/meminfo", "/sys/kernel/notes") {
    my @is = stat $file or next;
    tried "the mode of $file", chmod($is[2] & 07777, $file) - 1;
    tried "the owner of $file", chown($is[4], $is[5], $file) - 1;
    tried "the times of $file", utime(undef, undef, $file) - 1;
}
open(my $null, "+>", "/dev/null") or die "/dev/null: $!";
print $null "x" or die "/dev/null: $!";
my $left = readlink "/proc/self/fd/9";
tried "what the caller has left open", defined $left && $left =~ /left-open/ ? 0 : -1;
print "done\n";
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_system_call_leads_out_of_the_cell() {
    let scene = Scene::new();
    let mut machine = Machine::new();
    let [folder, process, ipc] = machine.words();
    for map in ["--warm", "--map=/no-such-data=."] {
        let words = ["run", "--json", "-", "--output", "run", "--fs", "ext4,ext4", "--rounds", "1"];
        let more = ["--size", "64M", map, "--", "perl", "-e", CALLS, &folder, &process, &ipc];
        let us = env!("CARGO_BIN_EXE_fsverdict");
        let done = with_keys(&scene, &[&[us], &words[..], &more].concat());
        let document = done.exits(0).json();
        assert!(document["run"]["host"]["keys"].is_string(), "{document:#}");
        for trial in of(&document, "ext4") {
            assert_eq!(printed(&scene, trial), "done\n");
        }
        fs::remove_dir_all(scene.path("run")).unwrap();
    }
    machine.is_whole();
    drop(machine);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn commands_of_a_trial_see_each_others_processes_and_sockets() {
    let scene = Scene::new();
    let plan = r#"
        bed = { size = "64M" }
        judgement = { rounds = 1 }
        [[contender]]
        name = "ext4"
        file_system = "ext4"
        [[contender]]
        name = "ext2"
        file_system = "ext2"
        [[workload]]
        name = "work"
        prepare = """
            perl -MSocket -e '
                socket(my $it, AF_UNIX, SOCK_STREAM, 0) or die $!;
                bind($it, pack("S", AF_UNIX) . "\\0fsverdict-test-$$") && listen($it, 9) or die $!;
                open(my $number, ">", "number") or die $!;
                print $number $$;
                close $number;
                sleep 600' &
            until test -s number; do sleep 0.01; done"""
        command = "readlink /proc/$(cat number)/exe"
        check = """perl -MSocket -e '
            my $number = `cat number`;
            socket(my $it, AF_UNIX, SOCK_STREAM, 0) or die $!;
            connect($it, pack("S", AF_UNIX) . "\\0fsverdict-test-$number") or die $!;
            opendir(my $open, "/proc/$number/fd") or die $!'"""
    "#;
    let document = run_plan(&scene, plan).exits(0).json();
    for contender in ["ext4", "ext2"] {
        for trial in of(&document, contender) {
            assert!(printed(&scene, trial).contains("perl"), "{trial:#}");
        }
    }
    scene.assert_nothing_left();
}
