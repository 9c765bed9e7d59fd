//! Guests with processors of another kind than this machine's.

use std::path::{Path, PathBuf};

use super::{list, text};
use crate::support::{Scene, Started, program, tool};

/// The program for them, built; made by the gate beside other tests.
fn guests_program() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut build = program("nice");
    build.arg(repository.join("packaging/build"));
    let built = build.args(["--dev", "--arch", "arm64"]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    repository.join(target).join("packages/fsverdict-arm64")
}

#[test]
#[ignore = "fetches a kernel and programs, once, and boots virtual machines: run ./test"]
fn an_arm64_kernel_is_compared_with_this_machines_kind() {
    or_left_out!();
    if cfg!(target_arch = "aarch64") || tool("which", &["qemu-system-aarch64"]).is_err() {
        eprintln!("left out: qemu-system-aarch64 is not installed, or has nothing to emulate");
        return;
    }
    let guests = guests_program();
    let scene = Scene::new();
    // Its own: tests of users copy the other one.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("arm64");
    let run = |words: &[&str]| {
        let mut command = scene.command(words);
        command.env("XDG_CACHE_HOME", &cache);
        Started::new(command).wait()
    };
    let work = "cp -r /usr/share/doc/dash . && seq 1000 >numbers && sync numbers && uname -m";
    let words = "run --kernel 6.1 --kernel 6.1:arm64 --fs ext4 --size 64M --rounds 1 --output run";
    let words: Vec<&str> =
        words.split(' ').chain(["--json", "-", "--", "sh", "-c", work]).collect();
    let tools = ["kernels", "tools", "--arch", "arm64", "--program"];

    // Where the one can be fetched the other can.
    let own = run(&["kernels", "get", "6.1"]);
    if own.code != Some(0) {
        eprintln!("left out: no kernel: {}", own.stderr);
        return;
    }
    let kernel = run(&["kernels", "get", "6.1", "--arch", "arm64"]).exits(0);
    assert!(kernel.stdout.contains("-cloud-arm64 /"), "{}", kernel.stdout);
    let wrong = env!("CARGO_BIN_EXE_fsverdict");
    run(&[&tools[..], &[wrong]].concat()).exits(1).says("is not a program for arm64");
    run(&[&tools[..], &[guests.to_str().unwrap()]].concat()).exits(0);
    let missing = "run --kernel 6.1:arm64 --fs jfs,ext4 --size 64M --output other -- true";
    let missing: Vec<&str> = missing.split(' ').collect();
    run(&missing).exits(1).says("fsverdict kernels get 6.1 --arch arm64 --flavour arm64");
    assert!(!scene.path("other").exists());

    let document = run(&words).exits(0).json();
    let trials = list(&document["trials"]);
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert_eq!(trial["outcome"], "measured", "{trial:#}");
        let printed = scene.read(&format!("run/trials/{}/raw/command.stdout", trial["number"]));
        let is_other = text(&trial["contender"]).ends_with("6.1:arm64");
        assert_eq!(printed, if is_other { "aarch64\n" } else { "x86_64\n" });
        assert!(!is_other || trial["guest"]["emulated"] == true, "{trial:#}");
        let device = &trial["phases"][0]["totals"]["device"];
        assert!(device["write_bytes"].as_u64() > Some(0), "{trial:#}");
        assert!(device["flushes"].as_u64() > Some(0), "{trial:#}");
    }
    let kernel = text(&document["run"]["host"]["kernel 6.1:arm64"]);
    assert!(kernel.contains(" for arm64, emulated "), "{kernel}");
    scene.assert_nothing_left();
}
