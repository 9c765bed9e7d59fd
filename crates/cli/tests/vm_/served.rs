//! What a server of the guest's own gives out by the loopback interface.

use serde_json::Value;

use super::{as_root, failures, fetch_tools, kernels, uml};
use crate::support::{Scene, Started, list, text};

fn of<'a>(document: &'a Value, contender: &str) -> &'a Value {
    let mut trials = list(&document["trials"]).iter();
    trials.find(|it| it["contender"] == contender).unwrap()
}

/// How many flushes the timed part had, bytes written and bytes read.
fn device(trial: &Value) -> [u64; 3] {
    let device = &trial["phases"][0]["totals"]["device"];
    ["flushes", "write_bytes", "read_bytes"].map(|name| device[name].as_u64().unwrap())
}

#[test]
#[ignore = "boots virtual machines: run ./test"]
fn nfs_is_compared_with_the_file_systems_that_it_gives_out() {
    or_left_out!();
    let scene = Scene::new();
    // What is laid out is read, each of ten files is made, a byte of one is synced, and 4 MiB not.
    let work = "sha256sum numbers; for i in 0 1 2 3 4 5 6 7 8 9; do : >made$i; done; \
                dd if=/dev/zero of=one bs=1 count=1 conv=fsync status=none; \
                head -c 4M /dev/zero | tr '\\0' x >more";
    let words = ["run", "--place", "vm", "--kernel", kernels()[0], "--fs", "xfs"];
    let above = ["--above", "none", "--above", "nfs:nconnect=2", "--above", "nfs:vers=4.0,async"];
    let more = ["--size", "320M", "--rounds", "1", "--output", "run", "--json", "-"];
    let job = ["--setup", "seq 200000 >numbers", "--check", "test -s numbers", "--"];
    let words = [&words[..], &above, &more, &job, &["sh", "-c", work]].concat();
    let document = Started::new(as_root(&scene, &words)).wait().exits(0).json();
    assert_eq!(failures(&document), [""; 0]);
    let mut sums = Vec::new();
    for stack in ["none", "nfs:nconnect=2", "nfs:vers=4.0,async"] {
        let name = format!("xfs under {stack}");
        let trial = of(&document, &name);
        assert_eq!(trial["mounted"]["file_system"], "xfs");
        let [flushes, written, read] = device(trial);
        assert!(flushes >= 1 && written >= 4 << 20, "{name}: {flushes} flushes, {written} B");
        assert!(read >= 1 << 20, "neither the server nor its client had it cached: {read} B");
        assert_eq!(trial["caches"][0]["cached_bytes_after"], 0, "{name}");
        assert_eq!(trial["phases"][0]["processes_left"].as_u64().unwrap_or(0), 0, "{name}");
        let above = &trial["mounted"]["above"][0];
        match stack {
            "none" => assert_eq!(above, &Value::Null),
            nfs => {
                assert_eq!(above["file_system"], "nfs4");
                let is_async = nfs.ends_with("async");
                let wanted = if is_async { "vers=4.0" } else { "nconnect=2" };
                assert!(list(&above["options"]).iter().any(|it| it == wanted), "{above:#}");
                // What is made is on the disk before the call returns, or not at all.
                assert_eq!(flushes >= 10, !is_async, "{name}: {flushes} flushes");
            }
        }
        let raw = format!("run/trials/{}/raw/command.stdout", trial["number"]);
        sums.push(scene.read(&raw));
    }
    assert!(sums.iter().all(|it| *it == sums[0] && it.len() > 64), "{sums:?}");
    let findings = list(&document["findings"]).iter();
    let spared = findings.clone().filter(|it| it["audit"] == "A19");
    let spared: Vec<&str> = spared.map(|it| text(&it["contender"])).collect();
    assert_eq!(spared, ["xfs under nfs:vers=4.0,async"]);
    for silent in ["A6", "A9", "A25", "A26"] {
        assert!(findings.clone().all(|it| it["audit"] != silent), "{document:#}");
    }
    let report = scene.read("run/report.md");
    assert!(report.contains(", under `nfs:nconnect=2`; in effect: "), "{report}");
    assert!(report.contains("; above it: `nfs4 rw,"), "{report}");
    scene.assert_nothing_left();
}

#[test]
fn what_outlives_a_trial_is_not_served_on_this_machine() {
    let scene = Scene::new();
    let words = ["run", "--place", "local", "--fs", "ext4", "--above", "nfs", "--output", "run"];
    let done = scene.fsverdict(&[&words[..], &["--", "true"]].concat()).exits(1);
    done.says("nfs is served in virtual machines alone, which end its server: --place vm");
    assert!(!scene.path("run").exists());
}

#[test]
#[ignore = "fetches a kernel and two servers, once: run ./test"]
fn diod_and_smbd_give_out_file_systems_that_are_mounted_by_9p_and_smb() {
    if !uml::is_there() {
        return;
    }
    let scene = Scene::new();
    let Some(_) = fetch_tools(&uml::cache(), &["diod", "samba"]) else { return };
    let work = "sha256sum numbers; head -c 4M /dev/zero | tr '\\0' x >more; cat more | wc -c";
    let words = ["run", "--place", "uml", "--fs", "ext4", "--above", "9p"];
    let words = [&words[..], &["--above", "smb:cache=none"]].concat();
    let more = ["--size", "320M", "--rounds", "1", "--output", "run", "--json", "-"];
    let words = [&words[..], &more, &["--setup", "seq 200000 >numbers"]].concat();
    let words = [&words[..], &["--", "sh", "-c", work]].concat();
    let document = uml::measured(&scene, &words);
    let mut said = Vec::new();
    for (stack, mounted) in [("9p", "9p"), ("smb:cache=none", "cifs")] {
        let name = &format!("ext4 under {stack}");
        let trial = of(&document, name);
        assert_eq!(trial["mounted"]["above"][0]["file_system"], mounted, "{trial:#}");
        let [flushes, written, read] = device(trial);
        assert!(flushes >= 1 && written >= 4 << 20, "{name}: {flushes} flushes, {written} B");
        assert!(read >= 1 << 20, "neither the server nor its client had it cached: {read} B");
        assert_eq!(trial["phases"][0]["processes_left"].as_u64().unwrap_or(0), 0, "{name}");
        let raw = format!("run/trials/{}/raw/command.stdout", trial["number"]);
        said.push(scene.read(&raw));
    }
    assert!(said[0] == said[1] && said[0].ends_with("4194304\n"), "{said:?}");
    scene.assert_nothing_left();
}
