//! Limits and figures of cgroup v2, as hosts have it, tried in a guest that plays the host: this
//! machine's may have version 1.

use super::*;

/// In a guest another copy of the program takes the guest for a host whose cgroups are of version
/// 2. A host has `true`, which any program can be that does nothing.
const AS_HOST: &str = r#"
cp $(command -v sync) /usr/bin/true; wipefs --all /dev/vdb
mkdir /tmp/host; cp /proc/1/exe /tmp/host/fsverdict; cd /tmp/host
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo CONTROLLERS $(cat /sys/fs/cgroup/cgroup.controllers)
run="./fsverdict run --bed device:/dev/vdb --erase-data --fs ext4 --rounds 1
     --limits write-iops=40"
left() { echo LEFT; ls -d /sys/fs/cgroup/fsverdict*; ls /run/fsverdict/journals
         echo $(cat /sys/fs/cgroup/cgroup.subtree_control) ALL-TOLD; }
$run --erase /dev/vdb --output run --fsync-files files=3,repetitions=40
echo; echo "RECORD $(cat run/trials/1/record.json)"; left
$run --erase /dev/vdb=ext4 --output killed -- sleep 1000 > /tmp/said 2>&1 &
while kill -0 $! && ! cat /sys/fs/cgroup/fsverdict-trial-*/io.max 2>/dev/null | grep wiops=40
do sleep 1; done
ls /run/fsverdict/journals; kill -9 $!; wait; cat /tmp/said
./fsverdict clean; left
cd /sys/fs/cgroup; mkdir -p a.slice/b.scope; echo +memory > cgroup.subtree_control
echo +memory > a.slice/cgroup.subtree_control; echo 0 > a.slice/b.scope/cgroup.procs; cd /tmp/host
./fsverdict run --bed device:/dev/vdb --erase /dev/vdb=ext4 --fs ext4 --rounds 1 --output own \
     -- sh -c 'cat /proc/self/cgroup'
echo; echo "OWN $(cat own/trials/1/record.json)"; echo "IN $(cat own/trials/1/raw/*.stdout)"
echo "BESIDE $(ls -d /sys/fs/cgroup/a.slice/fsverdict* /sys/fs/cgroup/a.slice/b.scope/*/ 2>&1)"
"#;

#[test]
#[ignore = "fetches a kernel, once, and boots virtual machines: run ./test"]
fn limits_of_cgroup_v2_hold_the_trial_down_and_go_with_a_killed_run() {
    or_left_out!();
    let scene = Scene::new();
    scene.write("as-host", AS_HOST);
    let place = ["run", "--place", "vm", "--kernel", kernels()[0], "--fs", "ext4"];
    let script = scene.typed("as-host");
    // What is named comes along.
    let tools = ["--setup", "wipefs --version && blkid --version && sleep 0 && mkdir -p a"];
    let work = ["--size", "128M", "--rounds", "1", "--output", "run", "--", "cat", &script];
    let words = [&place[..], &tools, &work].concat();
    Started::new(as_root(&scene, &words)).wait().exits(0);

    let said = said_in_guest(&scene, as_root(&scene, &["vm", "shell", "run"]), "as-host");
    let controllers = said.lines().find_map(|it| it.strip_prefix("CONTROLLERS ")).unwrap();
    assert!(controllers.contains("io") && controllers.contains("memory"), "{said}");
    let record = said.lines().find_map(|it| it.strip_prefix("RECORD ")).unwrap();
    let record: Value = serde_json::from_str(record).unwrap_or_else(|why| panic!("{why}: {said}"));
    assert_eq!(record["outcome"], "measured", "{said}");
    // An fsync of ext4's is two writes and more, of which 40 a second are let through.
    assert!(sample(&record, "fsync_latency_mean") > 20e6, "{record:#}");
    let own = &record["phases"][0]["totals"]["own"];
    assert!(own["memory_max_bytes"].as_u64() > Some(0), "{own:#}");
    let [_, whole, killed] = said.split("LEFT\n").collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(whole.contains(" wiops=40"), "the rule of the second run: {said}");
    assert!(whole.contains(".jsonl"), "the journal of the second run: {said}");
    for left in [whole, killed].map(|it| it.split_once("ALL-TOLD").map(|(left, _)| left)) {
        let left = left.unwrap_or_else(|| panic!("{said}"));
        assert!(!left.contains("/fsverdict-trial") && !left.contains(".jsonl"), "{left}: {said}");
    }
    // Without limits it lies beside ours, where memory is counted, as below systemd's slices.
    let line = |begin: &str| said.lines().find_map(|it| it.strip_prefix(begin)).unwrap_or("");
    assert!(line("IN ").starts_with("0::/a.slice/fsverdict-trial-"), "{said}");
    let record: Value = serde_json::from_str(line("OWN ")).unwrap_or_else(|_| panic!("{said}"));
    let own = &record["phases"][0]["totals"]["own"];
    assert!(own["memory_max_bytes"].as_u64() > Some(0), "{own:#}");
    assert!(line("BESIDE ").starts_with("ls: "), "{said}");
    scene.assert_nothing_left();
}
