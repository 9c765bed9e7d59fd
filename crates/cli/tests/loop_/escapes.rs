//! What a trial's work can't reach but by system calls: daemons, processes, keys, the kernel.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Child;

use super::{of, printed};
use crate::support::{Scene, Started, program};

/// A daemon's sockets and a process that are none of the trial's; gone with this.
struct Machine {
    folder: tempfile::TempDir,
    _sockets: [UnixListener; 2],
    process: Child,
}

/// Starts what follows in a session with a key, as a login has one (pam_keyinit(8)): by the numbers
/// of x86-64, as all calls below. Literals can't be given to syscall.
const WITH_A_KEY: &str = r#"syscall(250, 1, 0) > 0 or die $!;
    my ($type, $name, $secret) = ("user", "fsverdict-test", "secret");
    syscall(248, $type, $name, $secret, 6, -3) > 0 or die $!;
    exec @ARGV"#;

impl Machine {
    fn new() -> Machine {
        // Where databases and LXD have theirs: not in /run.
        let folder = tempfile::tempdir_in("/var/lib").unwrap();
        let name = SocketAddr::from_abstract_name(folder.path().as_os_str().as_encoded_bytes());
        let by_name = UnixListener::bind_addr(&name.unwrap()).unwrap();
        let by_path = UnixListener::bind(folder.path().join("socket")).unwrap();
        let process = program("sleep").arg("600").spawn().unwrap();
        Machine { folder, _sockets: [by_path, by_name], process }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

/// Says what it could do. What sets something of the machine sets it as it is.
const CALLS: &str = r#"
use Errno;
use Socket;
my ($folder, $process) = @ARGV;
sub call { my ($number, @words) = @_; syscall($number, @words) }
sub tried { my ($what, $answer) = @_; print "escaped: $what\n" if $answer >= 0; }
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
tried "signal", kill("KILL", $process) - 1;
tried "pidfd_send_signal", call(424, call(434, $process, 0), 9, 0, 0);
tried "pidfd_getfd of the trial", call(438, call(434, 1, 0), 0, 0);
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
print "done\n";
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_system_call_leads_out_of_the_cell() {
    let scene = Scene::new();
    let mut machine = Machine::new();
    let [folder, process] =
        [machine.folder.path().display().to_string(), machine.process.id().to_string()];
    for map in ["--warm", "--map=/no-such-data=."] {
        let mut command = program("perl");
        command.args(["-e", WITH_A_KEY, env!("CARGO_BIN_EXE_fsverdict"), "run", "--json", "-"]);
        command.args(["--output", "run", "--fs", "ext4,ext4", "--size", "64M", "--rounds", "1"]);
        command.args([map, "--", "perl", "-e", CALLS, &folder, &process]);
        command.current_dir(scene.path(""));
        let document = Started::new(command).wait().exits(0).json();
        for trial in of(&document, "ext4") {
            assert_eq!(printed(&scene, trial), "done\n");
        }
        fs::remove_dir_all(scene.path("run")).unwrap();
    }
    assert!(machine.process.try_wait().unwrap().is_none(), "the process was ended");
    drop(machine);
    scene.assert_nothing_left();
}
