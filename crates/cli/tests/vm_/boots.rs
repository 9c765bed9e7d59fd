//! A kernel that panics while it boots is booted again, once, and then on a processor that every
//! kernel knows; the record says both.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// `run` with a QEMU whose first boots end as those of a busy host do: it lies over the real one
/// for this run alone.
fn with_panics(scene: &Scene, run: &Command, count: u32) -> Command {
    let real = tool("which", &["qemu-system-x86_64"]).unwrap().trim().to_string();
    let boots = scene.typed(&format!("boots-{count}"));
    // QEMU finds its modules by where it lies itself.
    let under = "/usr/bin/qemu-system-i386";
    let panics = format!(
        "#!/bin/sh\n\
         case \" $* \" in\n\
         *' -kernel '*)\n\
         echo boot >>{boots}\n\
         if [ $(wc -l <{boots}) -le {count} ]; then\n\
         printf '[    0.1] Kernel panic - not syncing: IO-APIC + timer does not work!\\r\\n'\n\
         exit 0\n\
         fi;;\n\
         esac\n\
         exec {under} \"$@\"\n"
    );
    let fake = scene.write(&format!("fake-{count}"), &panics);
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
