//! Mounts, as `/proc/self/mountinfo` shows them (proc_pid_mountinfo(5)).

use std::fs;
use std::path::Path;

use fsverdict_core::model::Mounted;

use crate::tool;

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub at: String,
    /// What of the file system is there: a folder of it.
    pub root: String,
    /// The file system's type.
    pub file_system: String,
    /// What is mounted.
    pub source: String,
    /// `[major, minor]` of its device; file systems of several devices have a number of their own.
    pub number: [u32; 2],
    /// The mount's options, then the file system's.
    pub options: Vec<String>,
}

/// All mounts of this process's namespace, in the order they were made.
pub fn all(proc: &Path) -> std::io::Result<Vec<Mount>> {
    let text = std::fs::read_to_string(proc.join("self/mountinfo"))?;
    Ok(text.lines().filter_map(parse).collect())
}

/// All mounts of this thread's namespace, which may not be the process's.
pub fn of_this_thread() -> std::io::Result<Vec<Mount>> {
    let text = std::fs::read_to_string("/proc/thread-self/mountinfo")?;
    Ok(text.lines().filter_map(parse).collect())
}

/// The mount on top at `path` in this thread's namespace.
pub fn of_thread(path: &str) -> std::io::Result<Option<Mount>> {
    Ok(of_this_thread()?.into_iter().rfind(|mount| mount.at == path))
}

/// The mount that is on top at `at`.
pub fn at(path: &str) -> std::io::Result<Option<Mount>> {
    Ok(all(Path::new("/proc"))?.into_iter().rev().find(|mount| mount.at == path))
}

/// The mount that `path` lies on.
pub fn holding(path: &Path) -> std::io::Result<Option<Mount>> {
    let path = path.canonicalize()?;
    let mounts = all(Path::new("/proc"))?;
    // The longest mount point counts, and of those at the same place the last.
    Ok(mounts.into_iter().filter(|m| path.starts_with(&m.at)).max_by_key(|m| m.at.len()))
}

fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let before: Vec<&str> = before.split(' ').collect();
    let after: Vec<&str> = after.split(' ').collect();
    let (major, minor) = before.get(2)?.split_once(':')?;
    let list = |text: &str| text.split(',').map(str::to_string).collect::<Vec<_>>();
    let mut options = list(before.get(5)?);
    options.extend(list(after.get(2).unwrap_or(&"")));
    Some(Mount {
        at: unescaped(before.get(4)?),
        root: unescaped(before.get(3)?),
        file_system: (*after.first()?).into(),
        source: unescaped(after.get(1)?),
        number: [major.parse().ok()?, minor.parse().ok()?],
        options,
    })
}

/// mountinfo and swaps write space, tab, newline and backslash as three octal digits.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 4).unwrap_or("");
        match u8::from_str_radix(digits, 8) {
            Ok(byte) => {
                out.push(byte.into());
                rest = &rest[at + 4..];
            }
            Err(_) => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

/// What the kernel made of the options that were asked for.
pub fn effective(mount: &Mount, asked: &[String]) -> Mounted {
    // ext4 shows barrier=0 in other words, and an overlay volatile since about Linux 6.18: as
    // fsync=volatile. 9p shows cache=loose as loose (fs/9p/v9fs.c, v9fs_show_options), and NFS the
    // four times that actimeo sets (fs/nfs/super.c, nfs_show_mount_options).
    let same = |option: &str| match option {
        "barrier=0" => "nobarrier".to_string(),
        "volatile" if mount.file_system == "overlay" => "fsync=volatile".to_string(),
        other if mount.file_system == "9p" => other.trim_start_matches("cache=").to_string(),
        other if mount.file_system == "nfs4" => other.replace("actimeo=", "acregmax="),
        other => other.to_string(),
    };
    // Btrfs shows compress=zstd with the level that it chose: compress=zstd:3.
    let with_level = |shown: &str, option: &str| {
        let rest = shown.strip_prefix(option).filter(|_| option.starts_with("compress"));
        rest.is_some_and(|rest| rest.starts_with(':'))
    };
    let shown = |asked: &str| {
        let option = same(asked);
        mount.options.iter().any(|it| *it == option || it == asked || with_level(it, &option))
    };
    let unseen = asked
        .iter()
        .flat_map(|option| option.split(','))
        .filter(|option| !shown(option) && !matches!(*option, "defaults" | "nodiscard"))
        .map(str::to_string)
        .collect();
    let (file_system, options) = (mount.file_system.clone(), mount.options.clone());
    Mounted { file_system, options, unseen, ..Mounted::default() }
}

/// Options of the mount itself (mount(8), "filesystem-independent"): the kernel shows each that is
/// in effect, so that one it does not show did not take.
pub fn must_show(option: &str) -> bool {
    matches!(option, "ro" | "sync" | "dirsync" | "noatime" | "relatime" | "nosuid" | "noexec")
}

/// The module that has the file system `driver`: fuse has two (fs/fuse/inode.c, fuseblk_fs_type).
pub fn module_of(driver: &str) -> &str {
    if driver == "fuseblk" { "fuse" } else { driver }
}

/// The kernel has the file system, or a module of it.
pub fn mountable(name: &str) -> bool {
    let known = || {
        let text = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        text.lines().any(|line| line.split_whitespace().last() == Some(name))
    };
    known() || (tool::run_words(&["modprobe", "-q", module_of(name)]).is_ok() && known())
}

/// The kernel mounts file systems of that name from devices alone: of others it says `nodev`
/// (proc_filesystems(5)). A module that is not loaded yet is loaded.
pub fn takes_device(name: &str) -> bool {
    let text = || fs::read_to_string("/proc/filesystems").unwrap_or_default();
    mountable(name) && text().lines().any(|line| line.strip_prefix('\t') == Some(name))
}

/// The version that the module `name` says it is. Those that come with Linux say none.
pub fn module_version(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/module/{name}/version")).ok()?;
    Some(text.trim().to_string())
}

/// modprobe(8) finds it; nothing is loaded.
pub fn is_module(name: &str) -> bool {
    tool::run_words(&["modprobe", "--dry-run", "--quiet", module_of(name)]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_read() {
        let line = r"36 35 7:1 /sub /mnt/a\040b rw,noatime shared:1 - ext4 /dev/loop1 rw,nobarrier";
        let mount = parse(line).unwrap();
        assert_eq!(mount.at, "/mnt/a b");
        assert_eq!((mount.file_system.as_str(), mount.number), ("ext4", [7, 1]));
        assert_eq!(mount.options, ["rw", "noatime", "rw", "nobarrier"]);
        let asked = ["noatime,barrier=0,discard".to_string()];
        assert_eq!(effective(&mount, &asked).unseen, ["discard"]);
        let by_9p = Mount {
            file_system: "9p".into(),
            options: vec!["loose".into(), "msize=65536".into()],
            ..mount.clone()
        };
        let asked = ["cache=loose,msize=65536,cache=mmap".to_string()];
        assert_eq!(effective(&by_9p, &asked).unseen, ["cache=mmap"]);
        let times = ["acregmin=0", "acregmax=0"].map(String::from).to_vec();
        let by_nfs = Mount { file_system: "nfs4".into(), options: times, ..mount.clone() };
        let asked = ["actimeo=0,actimeo=9".to_string()];
        assert_eq!(effective(&by_nfs, &asked).unseen, ["actimeo=9"]);
        let levelled = Mount { options: vec!["compress-force=zstd:3".into()], ..mount };
        let asked = ["compress-force=zstd".to_string()];
        assert_eq!(effective(&levelled, &asked).unseen, [""; 0]);
    }
}
