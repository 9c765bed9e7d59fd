//! A kernel in the tree that it was built in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{as_root, failures, full_kernel, image_in};
use crate::support::{Scene, Started, list, text};

/// The files of a fetched kernel in the places where `make` leaves them.
fn tree_of(scene: &Scene, kernel: &Path) {
    let release = kernel.file_name().unwrap().to_str().unwrap();
    let modules = kernel.join("lib/modules").join(release);
    for folder in ["include/config", "arch/x86/boot"] {
        fs::create_dir_all(scene.path("linux").join(folder)).unwrap();
    }
    scene.write("linux/.config", "# Linux/x86 Kernel Configuration\nCONFIG_X86_64=y\n");
    scene.write("linux/include/config/kernel.release", &format!("{release}\n"));
    let order = fs::read_to_string(modules.join("modules.order")).unwrap();
    let mut lines = Vec::new();
    for line in order.lines() {
        let short = line.strip_prefix("kernel/").unwrap();
        let file = scene.path("linux").join(short);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        symlink(modules.join(line), file).unwrap();
        // As Linux 6.2 and later have it.
        lines.push(short.replace(".ko", ".o") + "\n");
    }
    scene.write("linux/modules.order", &lines.concat());
    fs::copy(modules.join("modules.builtin"), scene.path("linux/modules.builtin")).unwrap();
}

#[test]
#[ignore = "fetches a kernel, once, and boots a virtual machine: run ./test"]
fn a_kernel_boots_from_the_tree_that_it_was_built_in() {
    or_left_out!();
    let Some(full) = full_kernel() else { return };
    let scene = Scene::new();
    tree_of(&scene, &full);
    let run = |kernel: &str, output: &str| {
        let words = ["run", "--kernel", kernel, "--fs", "xfs", "--size", "320M", "--rounds", "1"];
        let more = ["--output", output, "--json", "-", "--", "touch", "it"];
        Started::new(as_root(&scene, &[&words[..], &more].concat())).wait()
    };
    run("./linux", "none").exits(1).says("it has no arch/x86/boot/bzImage: make it first: make -C");
    run("linux", "none").exits(1).says("no kernel linux here; if a file or folder of that name");
    symlink(image_in(&full), scene.path("linux/arch/x86/boot/bzImage")).unwrap();
    assert!(!scene.path("none").exists());
    let document = run("./linux/", "run").exits(0).json();
    assert_eq!(failures(&document), [""; 0]);
    let trial = &list(&document["trials"])[0];
    assert_eq!(text(&trial["guest"]["kernel"]), full.file_name().unwrap().to_str().unwrap());
    assert_eq!(trial["mounted"]["file_system"], "xfs");
    scene.assert_nothing_left();
}
