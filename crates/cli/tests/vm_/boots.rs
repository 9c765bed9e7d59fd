//! A kernel that panics while it boots is booted again, once, and then on a processor that every
//! kernel knows; the record says both.

use std::env;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A QEMU before the real one on `PATH`, whose first boots end as those of a busy host do.
fn with_panics(scene: &Scene, count: u32) -> String {
    let real = tool("which", &["qemu-system-x86_64"]).unwrap();
    let [boots, bin] = ["boots", "bin"].map(|name| scene.path(&format!("{count}/{name}")));
    let script = format!(
        "#!/bin/sh\n\
         case \" $* \" in\n\
         *' -kernel '*)\n\
         echo boot >>{boots}\n\
         if [ $(wc -l <{boots}) -le {count} ]; then\n\
         printf '[    0.1] Kernel panic - not syncing: IO-APIC + timer does not work!\\r\\n'\n\
         exit 0\n\
         fi;;\n\
         esac\n\
         exec {} \"$@\"\n",
        real.trim(),
        boots = boots.display(),
    );
    let qemu = format!("{count}/bin/qemu-system-x86_64");
    scene.write(&qemu, &script);
    fs::set_permissions(scene.path(&qemu), fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), env::var("PATH").unwrap())
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
        let mut command = as_root(&scene, &words);
        command.env("PATH", with_panics(&scene, panics));
        let document = Started::new(command).wait().exits(0).json();
        assert_eq!(failures(&document), [""; 0]);
        let guest = &list(&document["trials"])[0]["guest"];
        assert!(text(&guest["panicked"]).contains("IO-APIC + timer"), "{guest:#}");
        assert_eq!(guest["processor"].as_str(), processor, "{guest:#}");
        let raw = format!("{output}/trials/1/raw");
        assert!(scene.read(&format!("{raw}/console-of-panic.log")).contains("Kernel panic - "));
        let again = scene.path(&format!("{raw}/console-of-processor.log"));
        assert_eq!(again.exists(), processor.is_some());
        let findings = list(&document["findings"]);
        assert!(findings.iter().any(|it| it["audit"] == "A23"), "{findings:#?}");
        if guest["emulated"] != true {
            eprintln!("left out: KVM gives guests this machine's processor");
            break;
        }
    }
    scene.assert_nothing_left();
}
