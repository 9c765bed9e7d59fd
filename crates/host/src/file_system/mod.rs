//! The file systems that can be made: one file and one line of [`ALL`] each.

mod bcachefs;
mod btrfs;
pub mod daemon;
mod erofs;
mod exfat;
mod ext;
mod f2fs;
mod fuse;
mod gfs2;
mod jfs;
mod nfs;
mod nilfs2;
mod nine_p;
mod ntfs;
mod ocfs2;
mod options;
mod overlay;
mod promises;
mod reiserfs;
mod site;
mod smb;
#[cfg(test)]
mod tests;
mod udf;
mod vfat;
mod xfs;
pub mod zfs;

use std::io;
use std::path::Path;

use fsverdict_core::model::Above;

use crate::machine::mount;
use crate::tool::Argv;
use options::each;
pub use options::{check_options, panics, with_known_uuid};
pub use promises::{Promise, Promises};
pub use site::Site;
use site::words;

/// What fsverdict needs to know of a file system.
#[derive(Debug)]
pub struct FileSystem {
    /// Its name in plans and on the command line.
    pub name: &'static str,
    /// The program without which there is nothing of it.
    pub program: &'static str,
    /// What prints that program's version.
    pub version: &'static [&'static str],
    /// Its name in `/proc/filesystems`, where that is not its own.
    driver: Option<&'static str>,
    /// What it takes of the kernel's modules besides that of its driver.
    modules: &'static [&'static str],
    /// Makes it with the user's options among ours: quietly, over whatever is there, all of it now
    /// and not during the work, and without discard, so that every trial finds its blocks in the
    /// same state.
    make: fn(&[String], &Site) -> Vec<Argv>,
    /// The option with which mkfs only says what it would do.
    pub dry: Option<&'static str>,
    /// Mounts it with the user's options after ours, which keep it from discarding by itself.
    mount: fn(&[String], &Site) -> Vec<Argv>,
    /// The program that gives it out to its mount.
    listener: Option<Listener>,
    /// The program that mounts it with these options, and does its work in the foreground until it
    /// is unmounted.
    server: Option<fn(&[String], &Site) -> Argv>,
    /// What that prints when it is ready, if the mount alone does not show it.
    pub server_says: &'static str,
    /// Makes it, on the first device, of the tree that is mounted where it will be: it is read
    /// only.
    of_tree: Option<fn(&[String], &Site) -> Argv>,
    /// It stands on another file system, and not on devices.
    pub is_upon: bool,
    /// A server on this machine exports another file system as this one, over the loopback
    /// interface. The kernel's server outlives a trial: file systems that need it can be had in
    /// virtual machines only.
    pub by_loopback: bool,
    /// With these mount options syncfs on it does not reach what it stands on.
    keeps_syncfs: fn(&[String]) -> bool,
    /// Overlays don't stand on what has a comparison of names of its own (fs/overlayfs/util.c,
    /// ovl_dentry_weird).
    has_no_overlay: bool,
    /// Mount options that are fsverdict's own: the kernel does not get them.
    ours: &'static [&'static str],
    /// Unmounts it.
    unmount: fn(&Site) -> Vec<Argv>,
    /// Ends what has served it, once it is unmounted.
    take_down: fn(&Site) -> Vec<Argv>,
    /// Looks whether it is whole while it is not mounted, and changes nothing.
    check: Option<fn(&Site) -> Vec<Argv>>,
    /// What brings everything to the devices, where syncfs does not.
    commit: Option<fn(&Site) -> Argv>,
    /// The mkfs option that gives it a label.
    pub label: Option<&'static str>,
    /// The program that does its work, where the kernel does not.
    pub daemon: Option<&'static Daemon>,
    /// What takes its place where the kernel does not have it.
    instead: Option<&'static FileSystem>,
    /// Programs that mounting it starts.
    pub helpers: &'static [&'static str],
    /// Where a kernel that has it is to be had, for one that lacks it.
    pub kernels: &'static str,
    /// Whether the user's words for mkfs and mount name no other device and no file. mkfs finds
    /// none where it runs; the kernel does, when it mounts.
    words: fn(&[String], &[String]) -> Result<(), String>,
    /// The kernel keeps hold of the devices even when the last mount is gone.
    held: bool,
    /// Its tools partition what they take for a whole disk, and then wait for udev.
    pub partitions_disks: bool,
    /// It can be made on zoned disks, where each zone is written from its start.
    pub takes_zones: bool,
    /// What was made on that device tells the kernel to panic on an error.
    pub has_panic: fn(&Path) -> io::Result<bool>,
    /// What its documentation promises.
    pub promises: Promises,
    /// What that version promises, given what most versions promise.
    of_version: fn(Promises, &str) -> Promises,
    /// What nearly all others have, and it does not.
    pub without: &'static [&'static str],
}

/// A program that does a file system's work.
#[derive(Debug)]
pub struct Daemon {
    /// It with its arguments: it stays in the foreground.
    pub argv: &'static [&'static str],
    /// Where it keeps its socket and what it remembers. Within a trial's mount namespace these are
    /// covered, so that it meets no other one's.
    pub folders: &'static [&'static str],
    /// There when it is ready.
    pub socket: &'static str,
}

/// A program that serves by the loopback interface.
#[derive(Debug)]
struct Listener {
    /// It with its arguments, for these options: it stays in the foreground.
    argv: fn(&[String], &Site) -> Argv,
    /// Where it is heard when it is ready.
    port: u16,
}

/// What a file system is unless it says otherwise.
const PLAIN: FileSystem = FileSystem {
    name: "",
    program: "",
    version: &[],
    driver: None,
    modules: &[],
    make: |_, _| Vec::new(),
    dry: None,
    mount: |_, _| Vec::new(),
    listener: None,
    server: None,
    server_says: "",
    of_tree: None,
    is_upon: false,
    by_loopback: false,
    keeps_syncfs: |_| false,
    has_no_overlay: false,
    ours: &[],
    unmount: |site| vec![words(&["umount", site.at])],
    take_down: |_| Vec::new(),
    check: None,
    commit: None,
    label: None,
    daemon: None,
    instead: None,
    helpers: &[],
    kernels: "boot a kernel that has it",
    words: |_, mount| check_options(mount),
    held: false,
    partitions_disks: false,
    takes_zones: false,
    has_panic: |_| Ok(false),
    promises: Promises::NONE,
    of_version: |promises, _| promises,
    without: &[],
};

/// For what Debian's cloud kernels leave out and its full ones have.
const IN_FULL_KERNELS: &str = "--place vm, Debian's full 6.1";

/// For what Debian's cloud kernels have, too.
const IN_CLOUD_KERNELS: &str = "--place vm, Debian's 6.1";

/// All file systems, in the order `list` shows them.
pub const ALL: [&FileSystem; 28] = [
    &ext::EXT4,
    &xfs::XFS,
    &btrfs::BTRFS,
    &zfs::ZFS,
    &ext::EXT3,
    &ext::EXT2,
    &f2fs::F2FS,
    &nilfs2::NILFS2,
    &jfs::JFS,
    &bcachefs::BCACHEFS,
    &exfat::EXFAT,
    &vfat::VFAT,
    &udf::UDF,
    &ntfs::NTFS3,
    &ntfs::NTFS,
    &ntfs::NTFS_3G,
    &reiserfs::REISERFS,
    &gfs2::GFS2,
    &ocfs2::OCFS2,
    &erofs::EROFS,
    &erofs::SQUASHFS,
    &overlay::OVERLAY,
    &fuse::BINDFS,
    &fuse::GOCRYPTFS,
    &fuse::MERGERFS,
    &nfs::NFS,
    &nine_p::NINE_P,
    &smb::SMB,
];

/// The file system of that name, as this machine has it.
pub fn find(name: &str) -> Option<&'static FileSystem> {
    ALL.iter().find(|file_system| file_system.name == name).map(|it| it.local())
}

/// The file system of that name, or what takes its place, as the kernel calls what was mounted.
pub fn mounted_as(name: &str, kernels: &str) -> Option<&'static FileSystem> {
    let known = ALL.iter().find(|file_system| file_system.name == name);
    known.map(|it| it.of_kernel(|driver| driver == kernels))
}

impl FileSystem {
    /// It, or what takes its place on this machine.
    pub fn local(&'static self) -> &'static FileSystem {
        self.of_kernel(mount::mountable)
    }

    /// It, or what takes its place with a kernel that `has` these drivers.
    pub fn of_kernel(&'static self, has: impl Fn(&str) -> bool) -> &'static FileSystem {
        match self.instead {
            Some(other) if !has(self.driver()) => other,
            _ => self,
        }
    }

    /// Its name in `/proc/filesystems`.
    pub fn driver(&self) -> &'static str {
        self.driver.unwrap_or(self.name)
    }

    /// What is said if a daemon serves it in place of the kernel.
    pub fn stand_in(&self) -> Option<String> {
        let program = self.daemon?.argv[0];
        Some(format!(
            "by {program}, whose figures are not the kernel driver's (for that: {})",
            self.kernels
        ))
    }

    /// The module of the kernel that has its driver.
    pub fn module(&self) -> &'static str {
        mount::module_of(self.driver())
    }

    /// All that it takes of the kernel's modules: first that of its driver.
    pub fn modules(&self) -> impl Iterator<Item = &'static str> {
        [self.module()].into_iter().chain(self.modules.iter().copied())
    }

    /// The work's files have inodes of its own in the page cache, and not of what is below.
    pub fn has_inodes(&self) -> bool {
        !self.is_upon || self.is_programs() || self.by_loopback
    }

    /// It takes several devices at once.
    pub fn takes_several(&self) -> bool {
        self.promises.several_devices != Promise::No
    }

    /// What it promises; if `version` is known, what that version does.
    pub fn promises_of(&self, version: Option<&str>) -> Promises {
        version.map_or(self.promises, |version| (self.of_version)(self.promises, version))
    }

    /// The commands that make it.
    pub fn make(&self, options: &[String], site: &Site) -> Vec<Argv> {
        (self.make)(options, site)
    }

    /// What one types to make and to mount it for good, and its line of fstab(5): as its users have
    /// it, without what the lab adds. Nothing where another program than mkfs makes it.
    pub fn typed(&self, mkfs: &[String], mount: &[String], device: &str, at: &str) -> Vec<String> {
        if !self.program.starts_with("mkfs.") || self.is_read_only() {
            return Vec::new();
        }
        let (with, options) = match mount {
            [] => (String::new(), "defaults".into()),
            some => (format!(" -o {}", some.join(",")), some.join(",")),
        };
        let kind = self.driver();
        // fsck.xfs(8) and fsck.btrfs(8) do nothing: fstab(5) has 0 for such.
        let pass = if matches!(self.name, "xfs" | "btrfs") { 0 } else { 2 };
        let words = [&[self.program.to_string()], mkfs, &[device.to_string()]].concat();
        vec![
            words.join(" "),
            format!("mount -t {kind}{with} {device} {at}"),
            format!("{device} {at} {kind} {options} 0 {pass}   # in /etc/fstab, better by UUID="),
        ]
    }

    /// The one command that makes it on a device; `None` where it takes several, or a daemon, or
    /// stands on another file system.
    pub fn mkfs(&self, options: &[String], site: &Site) -> Option<Argv> {
        if self.is_upon {
            return None;
        }
        let mut commands = self.make(options, site);
        (commands.len() == 1 && self.daemon.is_none()).then(|| commands.remove(0))
    }

    /// The commands that mount it.
    pub fn mount(&self, options: &[String], site: &Site) -> Vec<Argv> {
        (self.mount)(options, site)
    }

    /// The program that mounts it and stays, if one does: it is started after [`Self::mount`].
    pub fn server(&self, options: &[String], site: &Site) -> Option<Argv> {
        self.server.map(|server| server(options, site))
    }

    /// The program that gives it out, if one does, and its port: it is started before
    /// [`Self::mount`].
    pub fn listener(&self, options: &[String], site: &Site) -> Option<(Argv, u16)> {
        self.listener.as_ref().map(|it| ((it.argv)(options, site), it.port))
    }

    /// Those of the options, one each, that are not fsverdict's own.
    pub fn told(&self, options: &[String]) -> Vec<String> {
        let name = |option: &str| option.split('=').next().unwrap_or_default().to_string();
        each(options)
            .filter(|it| !self.ours.contains(&name(it).as_str()))
            .map(String::from)
            .collect()
    }

    /// It is read only, and made of a tree ([`Self::pack`]).
    pub fn is_read_only(&self) -> bool {
        self.of_tree.is_some()
    }

    /// The command that makes it of what is laid out at the site, if that is how it is made.
    pub fn pack(&self, options: &[String], site: &Site) -> Option<Argv> {
        self.of_tree.map(|pack| pack(options, site))
    }

    /// A program does its work, and not the kernel.
    pub fn is_programs(&self) -> bool {
        self.daemon.is_some() || self.server.is_some()
    }

    /// With these mount options syncfs on it does not reach what is below, devices or a file
    /// system: that has to be synced, too.
    pub fn keeps_syncfs(&self, options: &[String]) -> bool {
        (self.keeps_syncfs)(options)
    }

    /// The commands that unmount it.
    pub fn unmount(&self, site: &Site) -> Vec<Argv> {
        (self.unmount)(site)
    }

    /// The commands that end what has served it, once it is unmounted.
    pub fn take_down(&self, site: &Site) -> Vec<Argv> {
        (self.take_down)(site)
    }

    /// The commands that look whether it is whole; `None` where there is no such tool.
    pub fn check(&self, site: &Site) -> Option<Vec<Argv>> {
        self.check.map(|check| check(site))
    }

    /// What brings everything to the devices after syncfs, where that alone does not.
    pub fn commit(&self, site: &Site) -> Option<Argv> {
        self.commit.map(|commit| commit(site))
    }

    /// It is made by the kernel or by a daemon, and not by a tool that has the devices to itself.
    pub fn makes_pools(&self) -> bool {
        self.held || self.daemon.is_some()
    }

    /// Whether the user's words for it name no other device and no file.
    pub fn check_words(&self, mkfs: &[String], mount: &[String]) -> Result<(), String> {
        (self.words)(mkfs, mount)
    }

    /// Whether it is made on devices, and `above` can stand on it.
    pub fn check_below(&self, above: &[Above]) -> Result<(), String> {
        if self.is_upon {
            let name = self.name;
            return Err(format!(
                "{name} stands on another file system: name that, and {name} above it, as in \
                 --fs ext4 --above {name}"
            ));
        }
        if self.is_read_only() && !above.is_empty() {
            return Err(format!("{} is read only, and nothing stands on it here", self.name));
        }
        if let Some(above) = above.first().filter(|it| it.name == "overlay" && self.has_no_overlay)
        {
            return Err(format!(
                "{} can't be mounted on {}: the kernel refuses it as an upper layer",
                above.name, self.name
            ));
        }
        check_served(above)
    }

    /// Whether it stands on other file systems, with these options.
    pub fn check_stands(&self, options: &[String]) -> Result<(), String> {
        match self.is_upon {
            true => self.check_words(&[], options),
            false => Err(format!(
                "{} is made on devices, and stands on no other file system: --fs {}",
                self.name, self.name
            )),
        }
    }

    /// The pool by which the kernel holds the devices beyond the last mount, if it does.
    pub fn held_pool(&self, site: &Site) -> Option<zfs::Pool> {
        self.held.then(|| zfs::Pool::of(site))
    }
}

/// A server has one port, the kernel's exports no overlay except one that is made for it, and an
/// overlay's upper layer can't be on a network file system (fs/overlayfs/super.c, ovl_mount_dir).
fn check_served(stack: &[Above]) -> Result<(), String> {
    let is_served = |it: &&Above| find(&it.name).is_some_and(|known| known.by_loopback);
    for (place, above) in stack.iter().enumerate().filter(|(_, it)| is_served(it)) {
        let name = &above.name;
        let (below, on_it) = (&stack[..place], stack.get(place + 1));
        if below.iter().any(|it| it.name == *name) {
            return Err(format!("{name} is there twice, but its server can serve only one"));
        }
        let is_lost = |it: &&Above| {
            let has = |word: &str| it.options.iter().any(|option| option == word);
            it.name == "overlay" && !has("nfs_export=on")
        };
        if name == "nfs" && below.last().filter(is_lost).is_some() {
            let why = "the kernel exports no overlay without a way back from handles to names";
            return Err(format!("{why}: write overlay:index=on,nfs_export=on+{name}"));
        }
        if on_it.is_some_and(|it| it.name == "overlay") {
            return Err(format!("overlay can't be mounted on {name}: the kernel refuses it"));
        }
    }
    Ok(())
}
