//! Work that comes in over a network: uploads over a link of the trial's own, and what is read of
//! it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{failure, of, run_plan};
use crate::support::{Done, Scene, list, sample, text};

/// As many as the plan says, unchanged.
const CLIENTS: f64 = 6.0;
const UPLOADED_BYTES: f64 = (12 << 20) as f64;

/// Runs plan `upload` once on two file systems, with 12 MiB in volumes of 1 MiB, changed.
fn upload(scene: &Scene, changes: &[(&str, &str)]) -> Done {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut plan = fs::read_to_string(root.join("plans/upload.toml")).unwrap();
    let smaller = [
        ("needs_bytes = \"5G\"\n", ""),
        ("bytes = \"3G\"", "bytes = \"12M\""),
        ("VOLUME_MIB = 64", "VOLUME_MIB = 1"),
        ("size = \"8G\"", "size = \"320M\""),
        ("rounds = 8", "rounds = 1"),
        ("[[contender]]\nname = \"btrfs\"\nfile_system = \"btrfs\"\n", ""),
    ];
    for (from, to) in smaller.iter().chain(changes) {
        assert_eq!(plan.matches(from).count(), 1, "{from}");
        plan = plan.replace(from, to);
    }
    run_plan(scene, &plan)
}

fn bound(document: &Value) -> Vec<&Value> {
    let findings = list(&document["findings"]).iter();
    findings.filter(|it| it["audit"] == "NetworkBound").collect()
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn uploads_over_a_slow_link_go_at_the_links_pace() {
    let scene = Scene::alone();
    let at_rate = |mbit_per_s: u64| {
        let rate = format!("rate = \"{mbit_per_s}M\"");
        upload(&scene, &[("rate = \"10G\"", &rate)]).exits(0).json()
    };
    let (mut document, mut mbit_per_s) = (at_rate(10), 10);
    // Whatever else runs on the machine may keep its processors busy.
    let is_slow = |it: &&Value| !text(&it["evidence"]).starts_with("the link");
    if bound(&document).len() < 2 || bound(&document).iter().any(is_slow) {
        // Where it takes more than a second to begin and to end it, that is less of more time.
        fs::remove_dir_all(scene.path("run")).unwrap();
        (document, mbit_per_s) = (at_rate(2), 2);
    }
    let bound = bound(&document);
    assert_eq!(bound.len(), 2, "{:#}", document["findings"]);
    let rate = if mbit_per_s == 10 { "10.0" } else { "2.00" };
    for finding in bound {
        let evidence = text(&finding["evidence"]);
        assert!(evidence.starts_with("the link set the pace: it carried "), "{evidence}");
        assert!(evidence.contains(&format!("Mbit/s of its {rate} Mbit/s")), "{evidence}");
    }
    for trial in list(&document["trials"]) {
        let network = &trial["phases"][0]["totals"]["network"];
        let [bytes, packets] = ["received_bytes", "received_packets"]
            .map(|counter| network[counter].as_f64().unwrap());
        // Headers of Ethernet, IP and TCP take 66 bytes of each packet of at most 1514.
        assert!((UPLOADED_BYTES * 1.04..UPLOADED_BYTES * 1.2).contains(&bytes), "{network:#}");
        assert!(packets >= bytes / 1514.0, "packets were merged: {network:#}");
        assert_eq!(network["rate_bits_per_s"], mbit_per_s * 1_000_000);
        let share = sample(trial, "network_received_share");
        assert!((0.9..1.02).contains(&share), "{share}");
        assert!(sample(trial, "network_received_share_peak") >= share);
        assert!(sample(trial, "device_write_bytes_per_s_peak") > 0.0);
        let stored = sample(trial, "application_vsftpd_write_bytes");
        assert!((UPLOADED_BYTES..UPLOADED_BYTES * 1.1).contains(&stored), "{stored}");
        assert!(sample(trial, "dirty_bytes_max") > 0.0);
        let volume_s = sample(trial, "volume_time_max");
        let alone_s = (1 << 20) as f64 * 8.0 / (mbit_per_s as f64 * 1e6);
        assert!(volume_s > CLIENTS / 2.0 * alone_s, "six share the link: {volume_s}");
        assert_eq!(trial["phases"][0]["processes_left"], 0, "{trial:#}");
    }
    shape_over_time(&scene);
    let report = scene.read("run/report.md");
    assert!(report.contains("What came in over the network") && report.contains("vsftpd wrote"));
    let page = scene.read("run/report.html");
    for panel in ["Received over the network", "Packets received", "Sent over the network"] {
        assert!(page.contains(&format!("data-title=\"{panel}\"")), "{panel} is not drawn");
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("/run/fsverdict/clients"), "the clients' namespace: {mounts}");
    scene.assert_nothing_left();
}

/// A row for each second, and of each application.
fn shape_over_time(scene: &Scene) {
    let seconds = scene.read("run/trials/1/per_second.csv");
    let mut lines = seconds.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = header.iter().position(|name| *name == "network_received_share").unwrap();
    let shares: Vec<f64> = lines.map(|row| row[column].parse().unwrap()).collect();
    assert!(shares.len() >= 3 && shares.iter().all(|share| *share <= 1.5), "{seconds}");
    let applications = scene.read("run/trials/1/applications.csv");
    let stored = |line: &str| line.rsplit(',').next().unwrap().parse::<u64>().unwrap();
    let vsftpd: Vec<u64> =
        applications.lines().filter(|line| line.contains(",vsftpd,")).map(stored).collect();
    assert!(vsftpd.len() >= 4 && vsftpd.is_sorted(), "{applications}");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn uploads_to_a_slow_device_go_at_the_devices_pace() {
    let scene = Scene::alone();
    let slow = ("[judgement]", "[bed.limits]\nbandwidth = \"4M\"\n[judgement]");
    let document = upload(&scene, &[slow]).exits(0).json();
    let bound = bound(&document);
    // Whatever else runs on the machine may keep its processors busy.
    let by_the_link = |it: &&Value| text(&it["evidence"]).starts_with("the link");
    assert!(!bound.iter().any(by_the_link), "{bound:#?}");
    for trial in list(&document["trials"]) {
        let share = sample(trial, "network_received_share");
        assert!((0.0..0.5).contains(&share), "{share}");
        assert!(sample(trial, "processes_blocked_mean") > 0.0, "who syncs waits: {trial:#}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn an_upload_that_is_not_what_was_sent_does_not_count() {
    let scene = Scene::new();
    let wait = "do wait \"$client\" || failed=$?; done\n";
    for (after, says) in [
        ("echo more >> uploads/backup-1.1\n", "cmp: EOF on"),
        ("rm uploads/backup-6.2\n", "11 of 12 volumes have arrived"),
    ] {
        let document = upload(&scene, &[(wait, &format!("{wait}{after}"))]).exits(1).json();
        for trial in list(&document["trials"]) {
            let (step, error) = failure(trial);
            assert!(step == "check" && error.contains(says), "{step}: {error}");
        }
        fs::remove_dir_all(scene.path("run")).unwrap();
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_client_that_can_not_upload_fails_the_trial() {
    let scene = Scene::new();
    let read_only = [("anon_upload_enable=YES", "anon_upload_enable=NO")];
    let document = upload(&scene, &read_only).exits(1).json();
    for trial in list(&document["trials"]) {
        let (step, error) = failure(trial);
        assert!(step == "work" && error.contains("curl: (25)"), "{step}: {error}");
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn an_interface_of_the_machines_is_watched_and_no_link_made() {
    let scene = Scene::alone();
    let plan = r#"
        bed = { size = "64M" }
        judgement = { rounds = 1 }
        contender = [
            { name = "a", file_system = "ext4" },
            { name = "b", file_system = "ext4" },
        ]
        [[workload]]
        name = "work"
        network = { interface = "lo", rate = "1G" }
        # Nobody listens there: a packet each way, and no answer.
        command = """
            ! curl --noproxy '*' --silent http://127.0.0.1:1/ && test -z "$FSVERDICT_SERVER"
        """
    "#;
    let document = run_plan(&scene, plan).exits(0).json();
    for trial in of(&document, "a") {
        let network = &trial["phases"][0]["totals"]["network"];
        assert!(network["received_packets"].as_u64() >= Some(2), "{network:#}");
        let steps = list(&trial["steps"]);
        assert!(steps.iter().all(|step| step["step"] != "link"));
    }
    let done = run_plan(&scene, &plan.replace("\"lo\"", "\"lo0\"")).exits(1);
    done.says("there is no network interface lo0; did you mean lo?");
    scene.assert_nothing_left();
}
