//! What people install: packages in roots that hold nothing else, and a CI job's steps.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Scene, assert_same, program, tool};

/// The repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Makes the packages and gives their folder.
fn packages() -> PathBuf {
    build(&[])
}

/// Makes packages of these kinds, or all. What rustc makes of them is kept for the next time.
fn build(kinds: &[&str]) -> PathBuf {
    let mut build = program("nice");
    build.arg(repository().join("packaging/build")).arg("--dev").args(kinds);
    let built = build.output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    repository().join(target.unwrap_or("target".into())).join("packages")
}

fn one(folder: &Path, ending: &str) -> String {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0).display().to_string()
}

/// What the program in `root`, which has no C library and no shell, prints.
fn installed(root: &str, arguments: &[&str]) -> String {
    let words = [&[root, "/usr/bin/fsverdict"], arguments].concat();
    tool("chroot", &words).unwrap()
}

/// The program in `root` tells of a published run what the one that was built tells.
fn reports_as_ever(scene: &Scene, root: &str) {
    let run = repository().join("record/2026-11-22-small-files/run.tar.gz");
    fs::copy(&run, scene.path("run.tar.gz")).unwrap();
    fs::copy(&run, format!("{root}/run.tar.gz")).unwrap();
    // A path's length says where the lines break that name it: both get the same.
    let expected = scene.fsverdict(&["report", "run.tar.gz"]).exits(0);
    assert_same(&installed(root, &["report", "run.tar.gz"]), &expected.stdout);
    fs::remove_file(format!("{root}/run.tar.gz")).unwrap();
}

fn has(root: &str, path: &str, words: &str) {
    let text = match path.ends_with(".gz") {
        true => tool("zcat", &[&format!("{root}/{path}")]).unwrap(),
        false => fs::read_to_string(format!("{root}/{path}")).unwrap(),
    };
    assert!(text.contains(words), "{path}: {text}");
}

#[test]
#[ignore = "needs root"]
fn packages_are_installed_into_bare_roots_work_there_and_go_again() {
    // Before the scene: tests that want the machine to themselves don't wait for what is built.
    let packages = packages();
    let scene = Scene::new();

    let root = scene.typed("debian");
    for folder in ["updates", "info"] {
        fs::create_dir_all(format!("{root}/var/lib/dpkg/{folder}")).unwrap();
    }
    fs::write(format!("{root}/var/lib/dpkg/status"), "").unwrap();
    let into = format!("--root={root}");
    tool("dpkg", &[&into, "--install", &one(&packages, ".deb")]).unwrap();
    assert_eq!(tool("dpkg", &[&into, "--verify", "fsverdict"]).unwrap(), "");
    reports_as_ever(&scene, &root);
    assert!(installed(&root, &["list", "plans"]).contains("postgresql"));
    has(&root, "usr/share/man/man1/fsverdict-run.1.gz", "small\\-files");
    has(&root, "usr/share/bash-completion/completions/fsverdict", "COMPLETE");
    has(&root, "usr/share/zsh/vendor-completions/_fsverdict", "COMPLETE");
    has(&root, "usr/share/fish/vendor_completions.d/fsverdict.fish", "COMPLETE");
    has(&root, "usr/share/fsverdict/plans/postgresql.toml", "pgbench");
    has(&root, "usr/share/doc/fsverdict/copyright", "MIT License");
    has(&root, "usr/share/doc/fsverdict/changelog.gz", "0.1.0");
    has(&root, "usr/share/doc/fsverdict/docs/studies/block-volume.md", "dd");
    tool("dpkg", &[&into, "--purge", "fsverdict"]).unwrap();
    assert!(!Path::new(&root).join("usr").exists());

    let root = scene.typed("fedora");
    fs::create_dir_all(&root).unwrap();
    let into = ["--root", root.as_str()];
    tool("rpm", &[&into[..], &["--install", &one(&packages, ".rpm")]].concat()).unwrap();
    assert_eq!(tool("rpm", &[&into[..], &["--verify", "fsverdict"]].concat()).unwrap(), "");
    reports_as_ever(&scene, &root);
    has(&root, "usr/share/licenses/fsverdict/LICENSE", "MIT License");
    has(&root, "usr/share/zsh/site-functions/_fsverdict", "COMPLETE");
    tool("rpm", &[&into[..], &["--erase", "fsverdict"]].concat()).unwrap();
    assert!(!Path::new(&root).join("usr/bin/fsverdict").exists());
}

/// The steps of `docs/ci/gate.yml` in shell, from the first that measures: each with its name.
fn steps() -> Vec<(String, String)> {
    let text = fs::read_to_string(repository().join("docs/ci/gate.yml")).unwrap();
    let steps = text.split("      - name: ").skip(1).filter_map(|step| {
        let (name, rest) = step.split_once('\n').unwrap();
        let shell = rest.split_once("        run: ")?.1.trim_start_matches("|\n");
        Some((name.into(), shell.lines().map(|line| format!("{}\n", line.trim())).collect()))
    });
    steps.filter(|(name, _)| name != "install").collect()
}

/// Runs one step as a CI job does, and gives its exit status.
fn take(step: &str, scene: &Scene) -> i32 {
    let path = format!("{}:{}", scene.typed("bin"), std::env::var("PATH").unwrap());
    let mut shell = program("bash");
    shell.args(["-e", "-c", step]).current_dir(scene.path("repository")).env("PATH", path);
    shell.env("GITHUB_BASE_REF", "main").env("GITHUB_STEP_SUMMARY", scene.path("summary.md"));
    shell.status().unwrap().code().unwrap()
}

/// Does what the job does where `mount` becomes ext4's options; gives the status of its comparison.
fn gated(mount: &str) -> (i32, String) {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("bin")).unwrap();
    fs::create_dir_all(scene.path("repository")).unwrap();
    fs::write(scene.path("bin/sudo"), "#!/bin/sh\nexec \"$@\"\n").unwrap();
    tool("chmod", &["755", &scene.typed("bin/sudo")]).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fsverdict"), scene.path("bin/fsverdict"))
        .unwrap();

    let plan = |mount: &str| {
        let text = format!(
            r#"
            bed = {{ kind = "loop", size = "320M" }}
            contender = [
                {{ name = "xfs", file_system = "xfs" }},
                {{ name = "ext4", file_system = "ext4", mount = ["{mount}"] }},
            ]
            workload = [{{ name = "copy", command = ["dd", "if=/dev/urandom", "of=file",
                "bs=1M", "count=16", "conv=fsync"], primary = ["device_write_bytes"] }}]
            judgement = {{ rounds = 4 }}
            "#
        );
        fs::write(scene.path("repository/gate.toml"), text).unwrap();
    };
    let git = |line: &str| {
        let words = ["-C", &scene.typed("repository"), "-c", "user.name=a", "-c", "user.email=a@b"]
            .into_iter()
            .chain(line.split(' '))
            .map(str::to_string)
            .collect::<Vec<_>>();
        tool("git", &words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap()
    };
    git("init --quiet");
    plan("noatime");
    git("add gate.toml");
    git("commit --quiet --message plan");
    git("update-ref refs/remotes/origin/main HEAD");
    plan(mount);

    let mut status = None;
    for (name, step) in steps() {
        match (name.as_str(), take(&step, &scene)) {
            ("compare", code) => status = Some(code),
            (_, code) => assert_eq!(code, 0, "{name}: {step}"),
        }
    }
    assert!(scene.path("repository/after.tar.gz").exists());
    (status.unwrap(), scene.read("summary.md"))
}

#[test]
#[ignore = "needs root"]
fn a_ci_job_passes_what_is_as_fast_and_stops_what_writes_twice() {
    let (status, summary) = gated("noatime");
    assert_eq!(status, 0, "{summary}");
    let (status, summary) = gated("data=journal");
    assert_eq!(status, 4, "{summary}");
    assert!(summary.contains("ext4"), "{summary}");
}

/// What makes the image of packaging/Containerfile: each instruction and what stands behind it.
fn instructions() -> Vec<(String, String)> {
    let text = fs::read_to_string(repository().join("packaging/Containerfile")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let instructions = joined.lines().filter_map(|line| line.split_once(' '));
    instructions.map(|(word, rest)| (word.into(), rest.trim().into())).collect()
}

/// A copy of the machine's root, in memory, in which the commands of `$@` are run one by one. It
/// has the repository and the devices as they are; no daemon is started in it (policy-rc.d).
const COPY_OF_THE_ROOT: &str = r#"
set -eu
mount -t tmpfs tmpfs "$MEMORY"
cd "$MEMORY"
mkdir upper work root
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay root
# A copy of the machine's own would show journals of runs beside this test without their locks.
mount -t tmpfs tmpfs root/run
for it in /dev /proc /sys "$REPOSITORY"; do
    mkdir -p "root$it"
    mount --rbind "$it" "root$it"
done
mkdir -p root/.outside root/work
cd root
pivot_root . .outside
umount -l .outside
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
for step in "$@"; do
    sh -ec "$step"
done
"#;

/// The image's steps as shell, in a machine whose sources lie in `sources`; the last one runs it.
fn image_steps(sources: &str) -> Vec<String> {
    let (mut place, mut steps) = (sources.to_string(), Vec::new());
    for (word, rest) in instructions() {
        match (word.as_str(), rest.split(' ').collect::<Vec<_>>().as_slice()) {
            ("FROM", ["debian:bookworm-slim", "AS", "build"] | ["debian:bookworm-slim"])
            | ("ARG", ["PROFILE="])
            | ("COPY", [".", "."])
            | ("WORKDIR", ["/fsverdict"]) => {}
            ("WORKDIR", [folder]) => place = folder.to_string(),
            ("COPY", ["--from=build", file, "/tmp/"]) => {
                steps.push(format!("cp {} /tmp/", file.replacen("/fsverdict", sources, 1)));
            }
            ("RUN", _) => steps.push(format!("cd '{place}'; {rest}")),
            ("ENTRYPOINT", _) => {
                let words: Vec<String> = serde_json::from_str(&rest).unwrap();
                let program = format!("cd '{place}'; /usr/bin/{}", words.join(" "));
                let run = "run --fs ext4,ext2 --size 64M --rounds 1 --output run -- true";
                steps.push(format!("{program} {run}; test -s run/report.md"));
            }
            _ => panic!("the test knows no step {word} {rest}"),
        }
    }
    steps
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn the_image_is_made_by_its_lines_as_plain_shell_and_runs() {
    // Before the scene: tests that could run meanwhile don't wait for what is built. Packages are
    // another test's.
    build(&["static"]);
    let scene = Scene::new();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image");
    let kernel = scene.command(&["kernels", "get", "6.1"]).env("XDG_CACHE_HOME", &cache).output();
    if !kernel.unwrap().status.success() {
        eprintln!("no packages can be fetched: the image is not made");
        return;
    }
    let repository = repository();
    fs::create_dir(scene.path("memory")).unwrap();
    let mut copy = program("unshare");
    copy.args(["--mount", "sh", "-c", COPY_OF_THE_ROOT, "sh"]);
    copy.args(image_steps(&repository.display().to_string())).env("REPOSITORY", &repository);
    copy.env("MEMORY", scene.path("memory")).env_remove("TMPDIR");
    copy.env("PROFILE", "--dev").env("XDG_CACHE_HOME", &cache).env_remove("CARGO_TARGET_DIR");
    let made = copy.output().unwrap();
    let said = [made.stdout, made.stderr].concat();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&said));
    scene.assert_nothing_left();
}
