//! NFS over the loopback interface: nfs(5), exports(5), nfsd(7). The kernel's server exports a
//! folder of the file system below, and its client mounts that.
//!
//! No program takes part. rpc.mountd(8) answers the server's questions, which client is whose and
//! what lies where, by lines in files of /proc; here the answers are written before the questions,
//! so that no guest needs nfs-utils, and its programs are no part of what is measured.
//!
//! The client has the server sync a file at fsync, and each file at syncfs, but never the whole
//! file system below: that is synced separately.

use super::options::{each, only, value};
use super::site::{shown, words};
use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN, Site};
use crate::tool::Argv;

pub(super) const NFS: FileSystem = FileSystem {
    name: "nfs",
    program: "mount",
    version: &["mount", "--version"],
    modules: &["nfsv4", "nfsd"],
    // What it shows lies in a folder, so that lost+found is not part of it.
    make: |_, site| vec![words(&["mkdir", &shown(site)])],
    mount,
    is_upon: true,
    by_loopback: true,
    keeps_syncfs: |_| true,
    take_down: |_| vec![script("echo 0 >threads; cd /; umount /proc/fs/nfsd")],
    kernels: IN_CLOUD_KERNELS,
    helpers: &["date", "mkdir", "sleep"],
    ours: &["sync", "async", "threads"],
    words: |_, mount| check(mount),
    without: &["POSIX ACLs", "O_TMPFILE", "inode flags", "times of birth"],
    ..PLAIN
};

/// Of exports(5) `sync` and `async`, of rpc.nfsd(8) how many threads there are, and those of nfs(5)
/// that name nothing.
const OPTIONS: [&str; 25] = [
    "sync",
    "async",
    "threads",
    "vers",
    "nconnect",
    "rsize",
    "wsize",
    "ac",
    "noac",
    "acregmin",
    "acregmax",
    "acdirmin",
    "acdirmax",
    "actimeo",
    "lookupcache",
    "cto",
    "nocto",
    "hard",
    "soft",
    "softerr",
    "timeo",
    "retrans",
    "write",
    "sharecache",
    "nosharecache",
];

/// Version 3 would take rpcbind(8), and programs for mounts and locks.
const VERSIONS: [&str; 3] = ["4.0", "4.1", "4.2"];

/// As many as Debian's server has (nfs.conf(5)).
const THREADS: u32 = 8;

/// NFSEXP_NOSUBTREECHECK and NFSEXP_FSID of include/uapi/linux/nfsd/export.h, as
/// `no_subtree_check,fsid=0` of exports(5): a tree of its own, with this folder as its root. Root
/// remains root, without NFSEXP_ROOTSQUASH.
const FLAGS: u32 = 0x0400 | 0x2000;

/// NFSEXP_ASYNC: the server answers before anything is on its disk.
const ASYNC: u32 = 0x0010;

fn check(options: &[String]) -> Result<(), String> {
    only(&OPTIONS, options)?;
    let of = |name: &str| each(options).filter(|it| it.split('=').next() == Some(name)).count();
    if of("sync") + of("async") > 1 || each(options).any(|it| it.contains("sync=")) {
        return Err("sync or async: write one of them".into());
    }
    if let Some(version) = value(options, "vers").filter(|it| !VERSIONS.contains(it)) {
        let all = VERSIONS.join(", ");
        return Err(format!("vers={version}: the server here has {all}"));
    }
    match value(options, "threads").map(str::parse::<u16>) {
        None if of("threads") == 0 => Ok(()),
        Some(Ok(1..)) if of("threads") == 1 => Ok(()),
        _ => Err(format!("threads: write how many, threads={THREADS}")),
    }
}

/// Commands in the server's folder. One that fails says so.
fn script(commands: &str) -> Argv {
    words(&["sh", "-ec", &format!("cd /proc/fs/nfsd; {commands}")])
}

fn mount(options: &[String], site: &Site) -> Vec<Argv> {
    let asynchronous = each(options).any(|it| it == "async");
    let flags = FLAGS | if asynchronous { ASYNC } else { 0 };
    let threads = value(options, "threads").map_or(THREADS.to_string(), String::from);
    let folder = shown(site);
    // The words of each are those of its *_parse in net/sunrpc/svcauth_unix.c and fs/nfsd/export.c.
    // They are valid for a day; users without a name become nobody.
    let known = format!(
        "until=$(($(date +%s) + 86400)); cd /proc/net/rpc; \
         echo nfsd 127.0.0.1 $until us >auth.unix.ip/channel; \
         echo us {folder} $until {flags} 65534 65534 0 >nfsd.export/channel || \
         {{ echo 'the kernel exports no such file system' >&2; exit 1; }}; \
         echo us 1 '\\x00000000' $until {folder} >nfsd.fh/channel"
    );
    // No client has anything to reclaim, and all would wait 90 s for that. The folder is where the
    // server keeps the clients it knows, in a guest's memory; a kernel without such folders can't
    // end a grace period at once (fs/nfsd/nfs4state.c, nfsd4_force_end_grace), and has one of at
    // least 10 s.
    let serve = format!(
        "mkdir -p /var/lib/nfs/v4recovery; echo -2 >versions || :; echo -3 >versions; \
         echo 10 >nfsv4gracetime; echo tcp 2049 >portlist; echo {threads} >threads; \
         echo Y >v4_end_grace || sleep 11"
    );
    let mut all = NFS.told(options);
    all.extend(words(&["addr=127.0.0.1", "clientaddr=127.0.0.1"]));
    if value(&all, "vers").is_none() {
        all.insert(0, "vers=4.2".into());
    }
    vec![
        words(&["mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd"]),
        words(&["sh", "-ec", &known]),
        script(&serve),
        // Without mount.nfs(8), which looks addresses up that are known.
        words(&["mount", "-i", "-t", "nfs", "-o", &all.join(","), "127.0.0.1:/", site.at]),
    ]
}
