//! A kernel in the tree that it was built in, and one beside which a newer one is put.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{as_root, cache, failures, full_kernel, image_in, kernels};
use crate::support::{Done, Scene, Started, list, text};

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

/// Puts `kernel` into the folder of fetched ones once more, as if it were of a later release.
fn put_later(kernel: &Path, fetched: &Path) {
    let release = kernel.file_name().unwrap().to_str().unwrap();
    let later = release.replacen(".0-", ".9-", 1);
    assert_ne!(later, release);
    let (boot, modules) =
        (fetched.join(&later).join("boot"), fetched.join(&later).join("lib/modules"));
    fs::create_dir_all(&boot).unwrap();
    fs::create_dir_all(&modules).unwrap();
    symlink(kernel.join("lib/modules").join(release), modules.join(&later)).unwrap();
    let mut image = fs::read(image_in(kernel)).unwrap();
    let its = format!("{release} (");
    let at = image.windows(its.len()).position(|text| text == its.as_bytes()).unwrap();
    image[at..at + later.len()].copy_from_slice(later.as_bytes());
    fs::write(boot.join(format!("vmlinuz-{later}")), image).unwrap();
}

#[test]
#[ignore = "fetches a kernel, once, and boots virtual machines: run ./test"]
fn a_run_goes_on_with_the_kernel_that_it_had_and_with_no_other() {
    or_left_out!();
    let Some(version) = kernels().first() else { return };
    let scene = Scene::new();
    let fetched = scene.path("cache/fsverdict/kernels");
    fs::create_dir_all(&fetched).unwrap();
    let folders = fs::read_dir(cache().join("fsverdict/kernels")).unwrap();
    let mut folders = folders.map(|entry| entry.unwrap().path());
    let its = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().starts_with(version);
    let kernel = folders.find(|folder| its(folder)).unwrap();
    let release = kernel.file_name().unwrap().to_str().unwrap();
    symlink(&kernel, fetched.join(release)).unwrap();
    let run = |words: &str| -> Done {
        let mut command = scene.command(&words.split(' ').collect::<Vec<_>>());
        command.env("XDG_CACHE_HOME", scene.path("cache"));
        Started::new(command).wait()
    };
    let size = "--fs ext4 --size 64M --rounds 1 --output run";
    run(&format!("run --place vm --kernel {version} {size} -- touch it")).exits(0);
    put_later(&kernel, &fetched);
    let all = run("kernels list").exits(0).stdout;
    assert!(all.contains(&release.replacen(".0-", ".9-", 1)), "{all}");
    run("run --resume run --rounds 2").exits(0);
    let images: Vec<_> =
        scene.records("run").iter().map(|it| it["guest"]["kernel"].clone()).collect();
    assert_eq!(images, [release, release]);
    let told =
        scene.read_json("run/run.json")["host"][format!("build of kernel {version}")].clone();
    assert!(text(&told).starts_with(release), "{told}");
    fs::remove_file(fetched.join(release)).unwrap();
    let before = scene.read("run/run.json");
    let refused = run("run --resume run --rounds 3").exits(2);
    refused.says(&format!("the kernel {version} was {told}").replace('"', ""));
    assert_eq!(scene.read("run/run.json"), before);
    scene.assert_nothing_left();
}
