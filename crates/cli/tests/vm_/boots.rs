//! A kernel that panics while it boots is booted again, once, and then on a processor that every
//! kernel knows; the record says both.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// `run` with a QEMU whose first boots end as those of a busy host do.
fn with_panics(scene: &Scene, run: &Command, count: u32) -> Command {
    let boots = scene.typed(&format!("boots-{count}"));
    let panics = format!(
        "echo boot >>{boots}\n\
         if [ $(wc -l <{boots}) -le {count} ]; then\n\
         printf '[    0.1] Kernel panic - not syncing: IO-APIC + timer does not work!\\r\\n'\n\
         exit 0\n\
         fi"
    );
    with_qemu(scene, run, &panics)
}

/// `run` with a QEMU that does this before it boots a kernel: it lies over the real one for this
/// run alone.
fn with_qemu(scene: &Scene, run: &Command, before: &str) -> Command {
    let real = tool("which", &["qemu-system-x86_64"]).unwrap().trim().to_string();
    // QEMU finds its modules by where it lies itself.
    let under = "/usr/bin/qemu-system-i386";
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in\n*' -kernel '*)\n{before};;\nesac\nexec {under} \"$@\"\n"
    );
    let fake = scene.write("fake", &script);
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let over = format!("mount --bind {real} {under} && mount --bind {fake} {real} && exec \"$@\"");
    let mut command = program("unshare");
    command.args(["--mount", "sh", "-c", &over, "sh"]).arg(run.get_program()).args(run.get_args());
    command.current_dir(scene.path("")).env("XDG_CACHE_HOME", cache());
    command
}

#[test]
#[ignore = "fetches a kernel, once, and boots virtual machines: run ./test"]
fn a_kernel_that_panics_as_it_boots_is_booted_again_and_then_on_a_plain_processor() {
    or_left_out!();
    let scene = Scene::new();
    for (panics, processor) in [(1, None), (2, Some("qemu64"))] {
        let output = format!("run-{panics}");
        let place = ["run", "--place", "vm", "--kernel", kernels()[0], "--fs", "ext4"];
        let more = ["--size", "64M", "--rounds", "1", "--output", &output, "--json", "-"];
        let words = [&place[..], &more, &["--", "true"]].concat();
        let command = with_panics(&scene, &as_root(&scene, &words), panics);
        let document = Started::new(command).wait().exits(0).json();
        assert_eq!(failures(&document), [""; 0]);
        let guest = &list(&document["trials"])[0]["guest"];
        assert!(text(&guest["panicked"]).contains("IO-APIC + timer"), "{guest:#}");
        let raw = format!("{output}/trials/1/raw");
        // The machine may be as busy as the one that is imitated, and a boot more may panic.
        let boots = scene.read(&format!("boots-{panics}")).lines().count();
        let processor = processor.or((boots > 2).then_some("qemu64"));
        assert_eq!(guest["processor"].as_str(), processor, "{guest:#}");
        assert!(scene.read(&format!("{raw}/console-of-panic.log")).contains("Kernel panic - "));
        let again = scene.path(&format!("{raw}/console-of-processor.log"));
        assert_eq!(again.exists(), processor.is_some());
        let told = guest["lacks"].to_string().contains("its processor is QEMU's qemu64");
        assert_eq!(told, processor.is_some(), "{guest:#}");
        if guest["emulated"] != true {
            eprintln!("left out: KVM gives guests this machine's processor");
            break;
        }
    }
    scene.assert_nothing_left();
}

#[test]
#[ignore = "fetches a kernel, once: run ./test"]
fn a_machine_that_is_never_heard_of_is_ended_after_the_time_that_is_set() {
    or_left_out!();
    let scene = Scene::new();
    let place = ["run", "--place", "vm", "--kernel", kernels()[0], "--fs", "ext4"];
    let limits = ["--step-timeout", "silence=1s,boot=3s", "--size", "64M", "--rounds", "1"];
    let more = ["--output", "run", "--json", "-", "--", "true"];
    let words = [&place[..], &limits, &more].concat();
    let command = with_qemu(&scene, &as_root(&scene, &words), "exec sleep 3600");
    let document = Started::new(command).wait().exits(1).json();
    let errors = failures(&document);
    assert!(errors.len() == 1 && errors[0].contains("not done after 3s"), "{errors:?}");
    // It was given a second boot: now and then a machine of a busy host never begins.
    assert!(scene.path("run/trials/1/raw/console-of-panic.log").exists());
    scene.assert_nothing_left();
}
