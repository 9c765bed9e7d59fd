//! A stranger's plan: what it tries on this machine comes to nothing.

use std::fs;

use super::{as_root, failures};
use crate::support::{Scene, Started, list, text};

const SECRET: &str = "nobody else's";

/// Runs the command as a plan of a stranger, with these options.
fn untrusted(scene: &Scene, workload: &str, options: &[&str]) -> crate::support::Done {
    scene.write("secret", SECRET);
    let plan = format!(
        "bed = {{ size = \"64M\" }}\njudgement = {{ rounds = 1 }}\n\
         [[contender]]\nname = \"a\"\nfile_system = \"ext4\"\n\
         [[contender]]\nname = \"b\"\nfile_system = \"ext4\"\n\
         [[workload]]\nname = \"hostile\"\n{workload}\n"
    );
    scene.write("plan/plan.toml", &plan);
    let words = ["run", "plan/plan.toml", "--untrusted", "--output", "run", "--json", "-"];
    Started::new(as_root(scene, &[&words[..], options].concat())).wait()
}

#[test]
#[ignore = "boots virtual machines: run ./test"]
fn nothing_of_the_host_is_there_for_a_strangers_plan() {
    or_left_out!();
    let scene = Scene::new();
    fs::create_dir(scene.path("plan")).unwrap();
    // Names that no look at the words finds.
    let line = "h=HERE; s=sec; r=root; w=wd; cat \"$h/${s}ret\" $h/s*t /$r/.??* /home/*/.??*; \
                mkdir -p \"$h\" && echo escaped > \"$h/${s}ret\"; echo escaped > /etc/escaped; \
                cat /etc/pass$w; echo links: $(ls /sys/class/net | grep -v lo); \
                for d in /dev/vd? /dev/sd?; do echo escaped > $d; done; env; true";
    // No word of it is the path of anything.
    let folder = scene.typed("").trim_end_matches('/').replace('/', "'/'");
    let work = format!("command = \"\"\"{}\"\"\"", line.replace("HERE", &folder));
    let document = untrusted(&scene, &work, &[]).json();
    assert_eq!(failures(&document), [""; 0]);
    let printed = scene.read("run/trials/1/raw/command.stdout");
    assert!(!printed.contains(SECRET), "{printed}");
    assert!(printed.contains("root:x:0:0::/root:/bin/sh\n"), "{printed}");
    assert_eq!(printed.matches(":x:").count(), 1, "an account of the host: {printed}");
    assert!(printed.contains("links:\n"), "a network: {printed}");
    for own in ["SUDO_", "XDG_CACHE_HOME"] {
        assert!(!printed.contains(own), "{own} of the host's: {printed}");
    }
    assert_eq!(scene.read("secret"), SECRET);
    assert!(!fs::exists("/etc/escaped").unwrap());
    let plan = scene.read("run/plan.toml");
    assert!(plan.contains("untrusted = true"), "it can't be resumed as another: {plan}");
    scene.assert_nothing_left();
}

#[test]
#[ignore = "boots virtual machines: run ./test"]
fn a_file_of_the_host_is_given_by_the_command_line_or_not_at_all() {
    or_left_out!();
    let scene = Scene::new();
    fs::create_dir(scene.path("plan")).unwrap();
    let secret = scene.path("secret").display().to_string();
    let work = format!("command = \"cat {secret}\"");
    let refused = untrusted(&scene, &work, &[]).exits(1);
    assert!(refused.stderr.contains(&format!("--bring {secret}")), "{}", refused.stderr);
    assert!(!scene.path("run").exists(), "something was written before it was refused");
    let given = untrusted(&scene, &work, &["--bring", &secret]).exits(0).json();
    assert_eq!(list(&given["trials"]).len(), 2);
    assert_eq!(scene.read("run/trials/1/raw/command.stdout"), SECRET);
    assert_eq!(text(&given["run"]["place"]), "vm");
    fs::remove_dir_all(scene.path("run")).unwrap();
    let outside = "replay = { recording = \"../secret\" }";
    let refused = untrusted(&scene, outside, &[]);
    assert_ne!(refused.code, Some(0), "it read a file that is no part of it");
    scene.write("plan/notes", SECRET);
    for (name, shown) in [(".", "plan"), ("notes", "notes")] {
        let beside = format!("replay = {{ recording = \"{name}\" }}");
        let refused = untrusted(&scene, &beside, &[]).exits(2);
        refused.says(&format!("{shown} is not a recording"));
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "boots virtual machines: run ./test"]
fn a_machine_whose_work_hangs_is_ended() {
    or_left_out!();
    let scene = Scene::new();
    fs::create_dir(scene.path("plan")).unwrap();
    let hangs = "command = \"sleep 3000\"";
    let document = untrusted(&scene, hangs, &["--step-timeout", "work=2s"]).exits(1).json();
    let failed = failures(&document);
    assert_eq!(failed.len(), 2, "the run did not go on");
    assert!(failed.iter().all(|it| it.starts_with("not done after 2s")), "{failed:?}");
    scene.assert_nothing_left();
}
