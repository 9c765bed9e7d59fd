//! Nodes of devices, where the kernel makes none itself: devtmpfs is an option, of Linux 2.6.32 and
//! later.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use crate::sys;

/// What a device says of itself (drivers/base/core.c, `dev_uevent`).
#[derive(Debug, PartialEq, Eq)]
struct Node {
    /// Below `/dev`: `vda`, `mapper/control`.
    name: String,
    number: [u32; 2],
}

impl Node {
    /// By its folder's `uevent`; `None` where it is to have no node.
    fn of(uevent: &str) -> Option<Node> {
        let value =
            |name: &str| uevent.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let number = |name| value(name)?.parse().ok();
        let number = [number("MAJOR")?, number("MINOR")?];
        Some(Node { name: value("DEVNAME")?.into(), number })
    }
}

/// Makes those of all devices that the kernel has.
pub fn make(root: &Path) -> io::Result<()> {
    for kind in ["sys/dev/block", "sys/dev/char"] {
        for device in fs::read_dir(root.join(kind))? {
            make_one(&device?.path(), &root.join("dev"))?;
        }
    }
    Ok(())
}

/// Makes the one of the device with this folder in `/sys`, unless it is there.
pub fn make_one(device: &Path, dev: &Path) -> io::Result<()> {
    let uevent = fs::read_to_string(device.join("uevent"))?;
    let Some(Node { name, number: [major, minor] }) = Node::of(&uevent) else { return Ok(()) };
    let path = dev.join(&name);
    if path.exists() {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(dev);
    DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    let is_block = is_block(device)?;
    let kind = if is_block { libc::S_IFBLK } else { libc::S_IFCHR };
    let name = CString::new(name)?;
    let number = libc::makedev(major, minor);
    sys::make_node_at(File::open(dev)?.as_fd(), &name, kind | 0o666, number)?;
    // The mask of what a process makes is not for these: servers run under users of their own.
    fs::set_permissions(path, Permissions::from_mode(0o666))
}

/// All others are character devices. The path to an NVMe drive's disk, as to every device whose
/// parent has a class, has no folder `block` (drivers/base/core.c, `get_device_parent`).
fn is_block(device: &Path) -> io::Result<bool> {
    let is_of = |path: &Path| path.components().any(|part| part.as_os_str() == "block");
    let class = device.join("subsystem").canonicalize();
    Ok(is_of(&device.canonicalize()?) || class.is_ok_and(|class| is_of(&class)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_a_block_device_wherever_it_lies() {
        let sys = tempfile::tempdir().unwrap();
        let root = sys.path().canonicalize().unwrap();
        let device = |path: &str, class: &str| {
            let device = root.join(path);
            fs::create_dir_all(&device).unwrap();
            fs::create_dir_all(root.join(class)).unwrap();
            std::os::unix::fs::symlink(root.join(class), device.join("subsystem")).unwrap();
            is_block(&device).unwrap()
        };
        assert!(device("devices/pci0/virtio1/block/vdb", "class/block"));
        assert!(device("devices/pci0/nvme/nvme0/nvme0n1", "class/block"));
        assert!(!device("devices/pci0/nvme/nvme0", "class/nvme"));
        assert!(!device("devices/virtual/mem/null", "class/mem"));
    }

    #[test]
    fn a_device_names_its_node() {
        let node = |name: &str, number| Some(Node { name: name.into(), number });
        let of = |text: &str| Node::of(text);
        assert_eq!(of("MAJOR=253\nMINOR=16\nDEVNAME=vdb\nDEVTYPE=disk\n"), node("vdb", [253, 16]));
        assert_eq!(
            of("MAJOR=10\nMINOR=236\nDEVNAME=mapper/control\n"),
            node("mapper/control", [10, 236])
        );
        assert_eq!(of("DRIVER=virtio_blk\n"), None, "no node");
    }

    #[test]
    fn a_node_that_is_there_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/dev/char/1:3");
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
        fs::create_dir_all(root.path().join("dev")).unwrap();
        fs::write(device.join("uevent"), "MAJOR=1\nMINOR=3\nDEVNAME=null\n").unwrap();
        fs::write(root.path().join("dev/null"), "as it was").unwrap();
        make(root.path()).unwrap();
        assert_eq!(fs::read_to_string(root.path().join("dev/null")).unwrap(), "as it was");
    }
}
