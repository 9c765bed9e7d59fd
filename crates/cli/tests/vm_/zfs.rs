//! OpenZFS in a guest: built once for a kernel, and measured as any file system.

use std::fs;
use std::path::{Path, PathBuf};

use std::process::Command;

use super::{KERNELS, failures, missing, said_in_guest};
use crate::support::{Done, Scene, Started, list, program, text, tool};

/// A cache of its own, since tests of users copy the other one.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("openzfs")
}

fn command(cache: &Path, words: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
    command.args(words).env("XDG_CACHE_HOME", cache);
    command
}

fn fsverdict(cache: &Path, words: &[&str]) -> Done {
    Started::new(command(cache, words)).wait()
}

/// The folder of a kernel with OpenZFS, built once; `None` where the archive has no source.
/// It takes as long as it takes.
fn built() -> Option<PathBuf> {
    // It waits where another test, or what ./test begins with, is at it.
    let mut command = program(env!("CARGO_BIN_EXE_fsverdict"));
    command.args(["kernels", "get", KERNELS[0], "--with", "zfs"]);
    let output = command.env("XDG_CACHE_HOME", cache()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("was found: ") {
        eprintln!("left out: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let image = printed.trim().split_once(' ').unwrap().1;
    Path::new(image).ancestors().nth(2).map(PathBuf::from)
}

/// A cache whose only kernel is that of `folder`, with half of its module.
fn with_half_a_module(scene: &Scene, folder: &Path) -> PathBuf {
    let kernels = scene.path("cache/fsverdict/kernels");
    fs::create_dir_all(&kernels).unwrap();
    let copy = kernels.join(folder.file_name().unwrap());
    let words = [folder, &copy].map(|path| path.display().to_string());
    tool("cp", &["-r", &words[0], &words[1]]).unwrap();
    let found = tool("find", &[&words[1], "-name", "zfs.ko"]).unwrap();
    let module = Path::new(found.trim());
    let content = fs::read(module).unwrap();
    fs::write(module, &content[..content.len() / 2]).unwrap();
    scene.path("cache")
}

/// What ZFS may hold in memory: as a parameter of its module.
const ARC_BYTES: u64 = 128 << 20;

/// The guests have the file `brought`, and wipefs, with which a host's disks are looked at.
fn plan(brought: &str) -> String {
    let contender = |name: &str, more: &str| {
        let kernel = KERNELS[0];
        format!("{{ name = \"{name}\", file_system = \"{name}\", kernel = \"{kernel}\"{more} }}")
    };
    let module = format!(", module = {{ \"zfs.zfs_arc_max\" = {ARC_BYTES} }}");
    format!(
        "place = \"vm\"\nbed = {{ size = \"256M\" }}\njudgement = {{ rounds = 1 }}\n\
         contender = [{}, {}]\n[[workload]]\nname = \"fsyncs\"\n\
         fsync_files = {{ files = 3, repetitions = 4 }}\ncheck = [\"cat\", {brought:?}]\n\
         cleanup = [\"wipefs\", \"--version\"]\n",
        contender("ext4", ""),
        contender("zfs", &module)
    )
}

/// In a guest whose trial is over, another copy of the program takes the guest for a host with
/// OpenZFS of its own, whose pool it leaves alone. There is no udev, for which zpool would wait
/// where a disk's name tells that it can be partitioned.
fn as_host(version: &str) -> String {
    format!(
        r#"
wipefs --all /dev/vdb > /tmp/wiped
cp $(command -v sync) /usr/bin/true
mkdir /tmp/host; cp /proc/1/exe /tmp/host/fsverdict; cd /tmp/host
head -c 80M /dev/zero > /tmp/own; zpool create tank /tmp/own
zpool export tank; echo sound $(zdb -e -p /tmp -bcc tank 2>&1 | grep -c 'No leaks')
zpool import -d /tmp tank
run="./fsverdict run --bed device:/dev/bed0 --erase-data --fs zfs --rounds 1 --erase /dev/bed0"
left() {{
    echo "What is left:"; zpool list -H -o name
    ls /run/fsverdict/journals | grep . || echo no journals
}}
$run --output run --fsync-files files=3,repetitions=4 > /tmp/said 2>&1; tail -n 30 /tmp/said
echo measured $(cat run/trials/*/record.json | grep -c '"measured"')
echo told $(grep -c '"version":"{version}' run/trials/1/record.json)
left
$run=zfs_member --output killed -- sleep 1000 > /tmp/said 2>&1 &
run=$!
until zpool list -H -o name | grep -v tank; do kill -0 $run || break; sleep 1; done
cat /tmp/said; kill -9 $run; wait
./fsverdict clean; left
"#
    )
}

/// `./test` begins with it, beside others.
#[test]
#[ignore = "builds OpenZFS, once: run ./test"]
fn openzfs_is_built_once() {
    if missing().is_none() {
        built();
    }
}

#[test]
#[ignore = "builds OpenZFS, once, and boots virtual machines: run ./test"]
fn openzfs_is_built_for_a_kernel_and_measured_in_its_guest() {
    or_left_out!();
    let Some(folder) = built() else { return };
    let version = fs::read_to_string(folder.join("zfs/version")).unwrap();
    let shows = |words: &[&str], what: &str| {
        let done = fsverdict(&cache(), words).exits(0);
        assert!(done.stdout.contains(what), "{what}: {}", done.stdout);
    };
    shows(&["kernels", "list"], &format!("zfs {version}"));
    let name = folder.file_name().unwrap().to_str().unwrap();
    let line = format!("OpenZFS {version} in guests: --place vm --kernel {name}\n");
    shows(&["list", "contenders"], &line);

    let release = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let words = ["run", "--place", "vm", "--fs", "zfs,ext4", "--kernel", KERNELS[0], "--zfs"];
    let named = [&words[..], &[&release, "--dry-run", "--", "true"]].concat();
    shows(&named, &format!(" -kernel {}/", folder.display()));
    let none = [&words[..], &["0.9", "--", "true"]].concat();
    fsverdict(&cache(), &none).exits(1).says("fsverdict kernels get");

    let scene = Scene::new();
    let brought = scene.write("as-host", &as_host(&version));
    scene.write("plan.toml", &plan(&brought));
    let run = |cache: &Path, output: &str| {
        let (plan, output) = (scene.typed("plan.toml"), scene.typed(output));
        fsverdict(cache, &["run", &plan, "--json", "-", "--output", &output])
    };
    let document = run(&cache(), "run").exits(0).json();
    let trials = list(&document["trials"]);
    let zfs = trials.iter().find(|trial| trial["contender"] == "zfs").unwrap();
    let mounted = &zfs["mounted"];
    assert_eq!(mounted["file_system"], "zfs", "{:?}", failures(&document));
    assert!(text(&mounted["version"]).starts_with(&version), "{mounted}");
    let arc = &zfs["phases"][0]["totals"]["arc"];
    assert!(arc["hits"].as_u64() > Some(0), "{arc}");
    assert_eq!(arc["max_bytes"].as_u64(), Some(ARC_BYTES), "the parameter of its contender");
    let tools = document["run"]["tools"].as_object().unwrap();
    assert!(tools.contains_key("mkfs.ext4") && !tools.contains_key("zfs-fuse"), "{tools:?}");
    let says = format!("measured is OpenZFS {version}");
    assert!(scene.read("run/report.md").contains(&says), "{says}");

    let (run_folder, number) = (scene.typed("run"), zfs["number"].to_string());
    let shell = command(&cache(), &["vm", "shell", &run_folder, "--trial", &number]);
    let said = said_in_guest(&scene, shell, "as-host");
    let parts: Vec<&str> = said.split("What is left:\n").collect();
    let [whole, killed, cleaned] = parts[..] else { panic!("{said}") };
    assert!(whole.contains("\nmeasured 1\n") && whole.contains("\ntold 1\n"), "{said}");
    assert!(whole.contains("\nsound 1\n"), "{said}");
    assert!(killed.contains("cleaned up after the run of /tmp/host/killed"), "{said}");
    // The pool of the host's own stays, and no other.
    for left in [killed, cleaned] {
        assert!(left.starts_with("tank\n") && left.lines().nth(1) == Some("no journals"), "{said}");
    }

    let document = run(&with_half_a_module(&scene, &folder), "half").json();
    let says = "module updates/zfs.ko does not load";
    assert!(failures(&document).iter().any(|error| error.contains(says)), "{document:#}");
    scene.assert_nothing_left();
}
