//! An overlay, which containers run on: Documentation/filesystems/overlayfs.rst.
//!
//! Prepared files are in the lower layer, as the files of a container's image are, and the work's
//! writes go to the upper one; with `prepared=upper` all are in the upper one, like a container's
//! own writes. Both layers lie on the file system below.

use super::options::{each, only};
use super::site::words;
use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN, Site};
use crate::tool::Argv;

pub(super) const OVERLAY: FileSystem = FileSystem {
    name: "overlay",
    program: "mount",
    version: &["mount", "--version"],
    make: |_, site| {
        let folders = ["lower", "upper", "work"].map(|name| folder(site, name));
        vec![[words(&["mkdir"]), folders.into()].concat()]
    },
    mount,
    is_upon: true,
    // overlayfs.rst, "Volatile mount": "all forms of sync calls to upper filesystem are omitted".
    // Otherwise syncfs syncs all of the file system on which the upper layer lies (fs/overlayfs/
    // super.c, ovl_sync_fs).
    keeps_syncfs: |options| is_volatile(options),
    kernels: IN_CLOUD_KERNELS,
    // For what is volatile.
    helpers: &["rm"],
    ours: &["prepared"],
    words: |_, mount| match prepared(mount) {
        Some("lower" | "upper") | None => only(&OPTIONS, mount),
        Some(other) => Err(format!("prepared={other}: write lower or upper")),
    },
    ..PLAIN
};

/// Those of overlayfs.rst that name no folder, and `prepared`, which is ours.
const OPTIONS: [&str; 10] = [
    "prepared",
    "fsync",
    "redirect_dir",
    "metacopy",
    "index",
    "xino",
    "nfs_export",
    "uuid",
    "userxattr",
    "volatile",
];

fn folder(site: &Site, name: &str) -> String {
    format!("{}/{name}", site.below)
}

/// What `prepared` says.
fn prepared(options: &[String]) -> Option<&str> {
    each(options).find_map(|it| it.strip_prefix("prepared="))
}

/// As kernels before 6.18 or so have it, and later ones show it.
const VOLATILE: [&str; 2] = ["volatile", "fsync=volatile"];

fn is_volatile(options: &[String]) -> bool {
    each(options).any(|it| VOLATILE.contains(&it))
}

fn mount(options: &[String], site: &Site) -> Vec<Argv> {
    if !site.again && prepared(options) != Some("upper") {
        // An image is unpacked into its layer without an overlay.
        return vec![words(&["mount", "--bind", &folder(site, "lower"), site.at])];
    }
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| folder(site, name));
    let mut all = OVERLAY.told(options);
    all.push(format!("lowerdir={lower},upperdir={upper},workdir={work}"));
    let mut commands = Vec::new();
    if is_volatile(options) {
        // The kernel refuses a second volatile mount until this is gone, because something may be
        // lost; here everything was synced before.
        let sign = [&work, "work", "incompat"].join("/");
        commands.push(words(&["rm", "-rf", &sign]));
    }
    commands.push(words(&["mount", "-t", "overlay", "-o", &all.join(","), "overlay", site.at]));
    commands
}
