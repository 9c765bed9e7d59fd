//! The same ways out as a command's, tried by whatever else a plan or a file has started: servers,
//! sysbench's scripts and its own three commands, and programs in the place of mkfs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::confined::{ESCAPES, Victim, drop_disk, escaped};
use super::escapes::{CALLS, Machine, with_keys};
use super::printed;
use crate::support::{Done, Scene, list, text};

/// Somebody else's disk, file, sockets and process, and a script that goes for them.
struct Attacked {
    victim: Victim,
    machine: Machine,
    script: String,
}

impl Attacked {
    fn new(scene: &Scene) -> Attacked {
        let (victim, machine) = (Victim::new(scene), Machine::new());
        let escapes = scene.write("escapes.sh", ESCAPES);
        let calls = scene.write("calls.pl", CALLS);
        let (node, words) = (&victim.node, machine.words().join(" "));
        let script = format!("NODE={node} sh {escapes}; perl {calls} {words}\n");
        let script = scene.write("attack.sh", &script);
        Attacked { victim, machine, script }
    }

    #[track_caller]
    fn came_through(mut self, scene: &Scene, by: &str) {
        self.victim.is_whole(by);
        self.machine.is_whole();
        drop_disk(&self.victim);
        drop(self.machine);
        scene.assert_nothing_left();
    }
}

/// Runs `work` on ext4, with `env` before the program.
fn run(scene: &Scene, work: &str, env: &[&str]) -> Done {
    let plan = scene.write(
        "plan.toml",
        &format!(
            "bed = {{ size = \"64M\" }}\njudgement = {{ rounds = 1 }}\n\
             contender = [{{ name = \"a\", file_system = \"ext4\" }}, \
             {{ name = \"b\", file_system = \"ext4\" }}]\n[[workload]]\nname = \"work\"\n{work}\n"
        ),
    );
    let words = [env!("CARGO_BIN_EXE_fsverdict"), "run", &plan, "--output", "run", "--json", "-"];
    with_keys(scene, &[env, &words[..]].concat())
}

fn trials(document: &Value) -> &[Value] {
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 2);
    trials
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_way_leads_a_server_out_of_the_cell() {
    let scene = Scene::new();
    let attacked = Attacked::new(&scene);
    let work = format!(
        "prepare = \"(sh {} > said 2>&1; : > ended; exec sleep 6000) &\"\n\
         command = \"until test -e ended; do sleep 0.1; done; cat said\"",
        attacked.script
    );
    let document = run(&scene, &work, &[]).exits(0).json();
    for trial in trials(&document) {
        assert_eq!(escaped(&printed(&scene, trial)), [""; 0]);
    }
    attacked.came_through(&scene, "a server");
}

/// Its LuaJIT calls any function of the C library.
const SCRIPT: &str = r#"
local ffi = require("ffi")
ffi.cdef[[
    int open(const char *, int, ...);
    int rename(const char *, const char *);
    int mount(const char *, const char *, const char *, unsigned long, const char *);
    int mknod(const char *, unsigned, unsigned long);
    long ptrace(int, int, long, long);
    int kill(int, int);
]]
local function tried(what, answer)
    if tonumber(answer) >= 0 then io.write("escaped: ", what, "\n") end
end
if io.open("/etc/fsverdict-x", "w") then io.write("escaped: io.open\n") end
if io.open("NODE", "r") then io.write("escaped: io.open of a disk\n") end
tried("open", ffi.C.open("NODE", 2))
tried("rename", ffi.C.rename("/etc/hostname", "/etc/hostnam"))
tried("mount", ffi.C.mount("NODE", "/mnt", "ext4", 0, ""))
tried("mount of a tmpfs on /etc", ffi.C.mount("none", "/usr", "proc", 0, ""))
tried("mknod", ffi.C.mknod("node", 0x6180, 0x701))
tried("ptrace", ffi.C.ptrace(16, PROCESS, 0, 0))
tried("ptrace of the trial", ffi.C.ptrace(16, 1, 0, 0))
tried("kill", ffi.C.kill(PROCESS, 9))
tried("root", ffi.C.open("/proc/1/root/etc", 0))
tried("a descriptor that was kept", ffi.C.open("/proc/1/fd/3", 0))
os.execute("sh ATTACK")
function event() end
"#;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_way_leads_a_script_of_sysbench_out_of_the_cell() {
    let scene = Scene::new();
    let attacked = Attacked::new(&scene);
    let [_, process, _] = attacked.machine.words();
    let script = SCRIPT.replace("NODE", &attacked.victim.node).replace("PROCESS", &process);
    let script = scene.write("script.lua", &script.replace("ATTACK", &attacked.script));
    let work = format!("command = [\"sysbench\", \"{script}\", \"--events=1\", \"run\"]");
    let document = run(&scene, &work, &[]).exits(0).json();
    for trial in trials(&document) {
        let said = printed(&scene, trial);
        // It is loaded by each thread, too. What sysbench says of itself comes before and after.
        let (tried, _) = said.rsplit_once("done\n").unwrap_or_else(|| panic!("{said}"));
        assert!(tried.contains("done\n"), "{said}");
        assert_eq!(escaped(&format!("{tried}done\n")), [""; 0]);
    }
    attacked.came_through(&scene, "a script of sysbench");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_way_leads_what_is_called_sysbench_out_of_the_cell() {
    let scene = Scene::new();
    let attacked = Attacked::new(&scene);
    fs::create_dir(scene.path("bin")).unwrap();
    let program = format!(
        "#!/bin/sh\nfor command; do :; done\n\
         sh {} > \"$FSVERDICT_RAW/said.$command\" 2>&1\nexec /usr/bin/sysbench \"$@\"\n",
        attacked.script
    );
    scene.write("bin/sysbench", &program);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(scene.path("bin/sysbench"), mode).unwrap();
    let path = format!("PATH={}:{}", scene.typed("bin"), std::env::var("PATH").unwrap());
    let work = "sysbench = { file-test-mode = \"rndrw\", file-num = 2, \
                file-total-size = \"1M\", events = 9 }";
    // What it measures is void: the program is a shell that starts others.
    let document = run(&scene, work, &["env", &path]).json();
    for trial in trials(&document) {
        assert_eq!(trial["outcome"], "measured", "{trial:#}");
        for command in ["prepare", "run", "cleanup"] {
            let said = format!("run/trials/{}/raw/said.{command}", trial["number"]);
            assert_eq!(escaped(&scene.read(&said)), [""; 0], "{command}");
        }
    }
    attacked.came_through(&scene, "what is called sysbench");
}

/// Runs a command of the program where another is in the place of mkfs.ext4. It may do what it
/// likes: a hole in mkfs is no more than that. It needs the kernel's settings of a device, and so
/// is no root of another user namespace.
fn in_the_place_of_mkfs(scene: &Scene, attacked: &Attacked, words: &[&str]) -> Done {
    // Asked for its version, it is no tool of a plan's.
    let program = format!(
        "#!/bin/sh\n[ \"$1\" != -V ] || exit 0\ncd /dev/shm || exit 1\nsh {} > said 2>&1\n\
         ways=$(grep ^escaped said | grep -v btrfs-control | tr '\\n' ' ')\n\
         echo \"tried $(grep -c '^done$' said): ${{ways}}end\" >&2\nexit 1\n",
        attacked.script
    );
    let program = scene.write("program", &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let place = "mount --bind \"$1\" \"$(command -v mkfs.ext4)\" && shift && exec \"$@\"";
    let us = env!("CARGO_BIN_EXE_fsverdict");
    let before = ["unshare", "--mount", "sh", "-c", place, "sh", &program, us];
    with_keys(scene, &[&before[..], words].concat())
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_way_leads_a_tool_of_check_out_of_its_cell() {
    let scene = Scene::new();
    let attacked = Attacked::new(&scene);
    let file = scene.write("tune.sh", "mkfs.ext4 -O ^has_journal DEV\n");
    let done = in_the_place_of_mkfs(&scene, &attacked, &["check", "--json", &file]);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    let settings = list(&found["settings"]);
    let told: Vec<&str> = settings.iter().map(|it| text(&it["said"])).collect();
    assert!(!told.is_empty() && told.iter().all(|it| it.contains("tried 2: end")), "{told:#?}");
    attacked.came_through(&scene, "a tool of check");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn no_way_leads_a_trials_mkfs_out_of_its_fence() {
    let scene = Scene::new();
    let attacked = Attacked::new(&scene);
    let words = ["run", "--json", "-", "--output", "run", "--fs", "ext4,ext4", "--rounds", "1"];
    let words = [&words[..], &["--size", "64M", "--", "true"]].concat();
    let document = in_the_place_of_mkfs(&scene, &attacked, &words).json();
    for trial in trials(&document) {
        let failed = &trial["outcome"]["failed"];
        assert_eq!(failed["step"], "mkfs", "{trial:#}");
        assert!(text(&failed["error"]).contains("tried 2: end"), "{failed:#}");
    }
    attacked.came_through(&scene, "a trial's mkfs");
}
