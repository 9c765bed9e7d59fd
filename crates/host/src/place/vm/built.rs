//! A kernel in a folder: as `make` leaves it in its own tree, or as `make modules_install` and
//! `make install` put it below a folder (Documentation/kbuild/kbuild.rst, kernel's Makefile).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::arch::Arch;
use super::elf;
use crate::machine::plain;

/// What `make` writes into a tree that it has built.
const RELEASE: &str = "include/config/kernel.release";
/// Modules in the order in which they were linked; modules that are built in.
const ORDER: &str = "modules.order";
pub const BUILTIN: &str = "modules.builtin";

/// A kernel with its modules.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The bzImage; for arm64 the Image.
    pub image: PathBuf,
    /// What it calls itself.
    pub release: String,
    /// The tree itself, or the folder to which its modules were installed.
    pub modules: PathBuf,
}

/// The kernel in that folder.
pub fn find(folder: &Path) -> io::Result<Found> {
    if is_built(folder) {
        return built(folder);
    }
    if let Some(found) = installed(folder)? {
        return Ok(found);
    }
    let is_source = ["Makefile", "Kconfig", "Kbuild"].iter().all(|it| folder.join(it).exists());
    Err(match is_source {
        true => not_built("it is not built", folder, ""),
        false => io::Error::other(format!(
            "it is not a kernel's folder: there is neither {RELEASE}, as in a tree that is built, \
             nor lib/modules/RELEASE, to which make modules_install INSTALL_MOD_PATH=... puts \
             modules"
        )),
    })
}

/// Something is to be made first.
fn not_built(what: &str, folder: &Path, target: &str) -> io::Error {
    let target = if target.is_empty() { String::new() } else { format!(" {target}") };
    let folder = folder.display();
    io::Error::other(format!("{what}: make it first: make -C {folder} -j$(nproc){target}"))
}

/// `make` has been there, as far as the version.
pub fn is_built(folder: &Path) -> bool {
    folder.join(RELEASE).is_file()
}

/// The tree with modules in which the image of that release lies where `make` has put it.
pub fn around(image: &Path, arch: Arch, release: &str) -> Option<PathBuf> {
    let at = arch.image();
    let tree = image.ancestors().nth(at.split('/').count()).filter(|_| image.ends_with(at))?;
    let its = plain::text(&tree.join(RELEASE)).ok()?;
    (its.trim() == release && tree.join(ORDER).is_file()).then(|| tree.into())
}

fn built(folder: &Path) -> io::Result<Found> {
    let config = plain::text(&folder.join(".config")).unwrap_or_default();
    let at = processors(&config)
        .map_err(|other| {
            io::Error::other(format!(
                "it is built for {other}, and guests are x86-64 or arm64: make it for one of \
                 these (ARCH=x86_64)"
            ))
        })?
        .image();
    let release = plain::text(&folder.join(RELEASE))?.trim().to_string();
    let image = folder.join(at);
    if !image.is_file() {
        let target = at.rsplit('/').next().unwrap_or(at);
        return Err(not_built(&format!("it has no {at}"), folder, target));
    }
    Ok(Found { image, release, modules: folder.into() })
}

/// For which processors a kernel of that configuration is, or the name of others: `# Linux/riscv
/// 6.1.0 Kernel Configuration` is its title.
fn processors(config: &str) -> Result<Arch, String> {
    let is_set = |option: &str| config.lines().any(|line| line.strip_suffix("=y") == Some(option));
    if config.is_empty() {
        return Ok(Arch::OWN);
    }
    if is_set("CONFIG_X86_64") {
        return Ok(Arch::X86);
    }
    if is_set("CONFIG_ARM64") {
        return Ok(Arch::Arm64);
    }
    if is_set("CONFIG_X86_32") {
        return Err("32-bit processors (i386)".into());
    }
    let title = config.lines().find_map(|line| line.strip_prefix("# Linux/"));
    Err(title.and_then(|it| it.split(' ').next()).unwrap_or("another processor").into())
}

/// The kernel whose modules were installed below `folder`, if any were.
fn installed(folder: &Path) -> io::Result<Option<Found>> {
    let all = ["lib/modules", "usr/lib/modules"].map(|at| folder.join(at));
    let entries = all.iter().filter_map(|at| fs::read_dir(at).ok()).flatten();
    // `lib` may be a link to `usr/lib`.
    let mut modules =
        entries.map(|it| it?.path().canonicalize()).collect::<io::Result<Vec<_>>>()?;
    modules.retain(|it| it.join("modules.dep").exists() || it.join("kernel").is_dir());
    modules.sort();
    modules.dedup();
    let [modules] = modules.as_slice() else {
        return match modules.len() {
            0 => Ok(None),
            several => Err(io::Error::other(format!(
                "it has modules of {several} kernels: name the image of one"
            ))),
        };
    };
    let release = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut images = [
        folder.join(format!("boot/vmlinuz-{release}")),
        folder.join(format!("vmlinuz-{release}")),
        modules.join("vmlinuz"),
    ]
    .to_vec();
    // A link to the tree that they were built in.
    images.extend(Arch::ALL.map(|arch| modules.join("build").join(arch.image())));
    let image = images.iter().find(|it| it.is_file()).ok_or_else(|| {
        let looked = images.iter().map(|it| it.display().to_string()).collect::<Vec<_>>();
        io::Error::other(format!("it has modules, and no image: none of {}", looked.join(", ")))
    })?;
    Ok(Some(Found { image: image.clone(), release, modules: modules.clone() }))
}

/// The modules of a tree by their names, with `_` for `-`: the file, and those of all others that
/// it needs, directly or not.
pub type Files = BTreeMap<String, (String, Vec<String>)>;

/// `kernel/fs/xfs/xfs.ko.xz` is `xfs`.
pub fn name(file: &str) -> String {
    let file = file.rsplit('/').next().unwrap_or(file);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// The modules of the tree that is built in `folder`.
pub fn modules(folder: &Path) -> io::Result<Files> {
    let Ok(order) = plain::text(&folder.join(ORDER)) else {
        let config = plain::text(&folder.join(".config")).unwrap_or_default();
        return match config.lines().any(|line| line.ends_with("=m")) {
            true => Err(not_built("its modules are not built", folder, "modules")),
            false => Ok(Files::new()),
        };
    };
    let mut files = BTreeMap::new();
    for line in order.lines() {
        let file = file(folder, line)
            .ok_or_else(|| not_built(&format!("module {line} is not built"), folder, "modules"))?;
        let needs = needs(&folder.join(&file))
            .map_err(|error| io::Error::other(format!("module {file}: {error}")))?;
        files.insert(name(&file), (file, needs));
    }
    let all = files.iter().map(|(name, (file, _))| {
        let mut needed = BTreeSet::new();
        add_needed(name, &files, &mut needed);
        let needed = needed.iter().filter(|it| *it != name).map(|it| files[it].0.clone());
        (name.clone(), (file.clone(), needed.collect()))
    });
    Ok(all.collect())
}

/// The file within the tree of a line of `modules.order`: of `fs/xfs/xfs.o` since Linux 6.2, of
/// `fs/xfs/xfs.ko` before, and before 5.3 of `kernel/fs/xfs/xfs.ko`, as it is installed.
fn file(folder: &Path, line: &str) -> Option<String> {
    let is_within = Path::new(line).components().all(|part| matches!(part, Component::Normal(_)));
    let line = Some(line).filter(|_| is_within)?;
    let file = line.strip_suffix(".o").map_or(line.into(), |it| format!("{it}.ko"));
    let shorter = file.strip_prefix("kernel/").map(String::from);
    [Some(file), shorter].into_iter().flatten().find(|it| folder.join(it).is_file())
}

/// Adds the module and all that it needs, of those that are modules.
fn add_needed(name: &str, files: &Files, all: &mut BTreeSet<String>) {
    let mut wanted = vec![name];
    while let Some(name) = wanted.pop() {
        let Some((_, needs)) = files.get(name) else { continue };
        if all.insert(name.into()) {
            wanted.extend(needs.iter().map(String::as_str));
        }
    }
}

/// The names of the modules that the one in that file needs, as it says itself: `depends=` in its
/// section `.modinfo` (scripts/mod/modpost.c).
fn needs(path: &Path) -> io::Result<Vec<String>> {
    let info = elf::section(&plain::open(path)?, ".modinfo")?;
    let info = String::from_utf8_lossy(&info).into_owned();
    let needs = info.split('\0').find_map(|it| it.strip_prefix("depends=")).unwrap_or_default();
    Ok(needs.split(',').filter(|it| !it.is_empty()).map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::super::elf::tests::module;
    use super::*;

    /// A folder with these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    const X86: (&str, &str) =
        (".config", "# Linux/x86 6.12.9 Kernel Configuration\nCONFIG_X86_64=y\nCONFIG_XFS_FS=m\n");

    fn refused(files: &[(&str, &str)]) -> String {
        find(folder(files).path()).unwrap_err().to_string()
    }

    #[test]
    fn a_tree_that_is_built_has_its_image_and_its_release() {
        let image = Arch::X86.image();
        let tree = folder(&[X86, (RELEASE, "6.12.9-mine\n"), (image, "")]);
        let found = find(tree.path()).unwrap();
        assert_eq!((found.release.as_str(), &*found.modules), ("6.12.9-mine", tree.path()));
        assert_eq!(found.image, tree.path().join(image));
        let around = |image: &Path, release: &str| super::around(image, Arch::X86, release);
        assert_eq!(around(&found.image, &found.release), None, "no modules");
        fs::write(tree.path().join(ORDER), "").unwrap();
        assert_eq!(around(&found.image, &found.release), Some(tree.path().into()));
        assert_eq!(around(&found.image, "6.12.9"), None);
        assert_eq!(around(&tree.path().join("bzImage"), &found.release), None);
        fs::remove_file(tree.path().join(ORDER)).unwrap();
        // What is there, by ways that lead out of a tree.
        let there = tree.path().join("x.ko");
        fs::write(&there, "").unwrap();
        for outside in ["fs/../x.o", "kernel/../x.ko", there.to_str().unwrap()] {
            fs::create_dir_all(tree.path().join("fs")).unwrap();
            fs::write(tree.path().join(ORDER), outside).unwrap();
            let error = modules(tree.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("module {outside} is not built")), "{error}");
        }
        fs::remove_file(tree.path().join(ORDER)).unwrap();
        let no_modules = modules(tree.path()).unwrap_err().to_string();
        assert!(no_modules.contains("its modules are not built: make it first: make -C /"));
        assert!(no_modules.ends_with(" -j$(nproc) modules"), "{no_modules}");
    }

    #[test]
    fn what_is_not_built_or_for_another_processor_says_so() {
        let source = [("Makefile", ""), ("Kconfig", ""), ("Kbuild", "")];
        let said = refused(&source);
        assert!(said.starts_with("it is not built: make it first: make -C /"), "{said}");
        assert!(said.ends_with(" -j$(nproc)"), "{said}");
        let said = refused(&[X86, (RELEASE, "6.12.9")]);
        assert!(said.starts_with("it has no arch/x86/boot/bzImage: make it first: "), "{said}");
        let arm = "# Linux/arm64 6.1.0 Kernel Configuration\nCONFIG_ARM64=y\nCONFIG_64BIT=y\n";
        let said = refused(&[(".config", arm), (RELEASE, "6.1.0")]);
        assert!(said.starts_with("it has no arch/arm64/boot/Image: make it first: "), "{said}");
        let other = "# Linux/riscv 6.1.0 Kernel Configuration\nCONFIG_64BIT=y\n";
        let said = refused(&[(".config", other), (RELEASE, "6.1.0")]);
        assert!(
            said.starts_with("it is built for riscv, and guests are x86-64 or arm64"),
            "{said}"
        );
        let said = refused(&[(".config", "CONFIG_X86_32=y\n"), (RELEASE, "6.1.0")]);
        assert!(said.starts_with("it is built for 32-bit processors (i386), and"), "{said}");
        let said = refused(&[("notes", "")]);
        assert!(said.starts_with("it is not a kernel's folder: "), "{said}");
    }

    #[test]
    fn modules_are_found_where_they_were_installed() {
        let dep = ("lib/modules/6.1.0/modules.dep", "");
        let found = find(folder(&[dep, ("boot/vmlinuz-6.1.0", "")]).path()).unwrap();
        assert!(found.image.ends_with("boot/vmlinuz-6.1.0"), "{found:?}");
        assert!(found.modules.ends_with("lib/modules/6.1.0"), "{found:?}");
        let build = ("lib/modules/6.1.0/build/arch/x86/boot/bzImage", "");
        assert!(find(folder(&[dep, build]).path()).unwrap().image.ends_with("boot/bzImage"));
        assert!(refused(&[dep]).starts_with("it has modules, and no image: none of /"));
        let other = ("lib/modules/6.12.9/modules.dep", "");
        assert!(refused(&[dep, other]).starts_with("it has modules of 2 kernels: "));
    }

    #[test]
    fn a_module_in_a_tree_says_what_it_needs_and_old_lists_and_new_ones_are_read() {
        let tree = folder(&[X86]);
        let at = |path: &str| tree.path().join(path);
        let all = [("fs/xfs/xfs", "libcrc32c"), ("lib/libcrc32c", "crc-x"), ("crypto/crc-x", "")];
        for (path, needs) in all {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            let info = format!("license=GPL\0depends={needs}\0intree=Y\0");
            fs::write(at(&format!("{path}.ko")), module(&[(".modinfo", &info)])).unwrap();
        }
        for (begin, end) in [("kernel/", ".ko"), ("", ".ko"), ("", ".o")] {
            let order = all.map(|(path, _)| format!("{begin}{path}{end}\n")).concat();
            fs::write(at(ORDER), order).unwrap();
            let files = modules(tree.path()).unwrap();
            let (file, needs) = &files["xfs"];
            assert_eq!(file, "fs/xfs/xfs.ko");
            assert_eq!(*needs, ["crypto/crc-x.ko", "lib/libcrc32c.ko"]);
            assert_eq!(files["crc_x"], ("crypto/crc-x.ko".to_string(), Vec::new()));
        }
        fs::remove_file(at("lib/libcrc32c.ko")).unwrap();
        let said = modules(tree.path()).unwrap_err().to_string();
        assert!(said.starts_with("module lib/libcrc32c.o is not built: make it first: "), "{said}");
        fs::write(at("lib/libcrc32c.ko"), "text").unwrap();
        assert!(modules(tree.path()).unwrap_err().to_string().contains("libcrc32c.ko: "));
    }
}
