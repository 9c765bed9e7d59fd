//! The disks of a guest, as its kernel shows them in `/sys`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Names of disks, with their folders. Ports of IDE and SATA, and NVMe drives, are searched at
/// once, and the disk that is found first is `sda`: the order is that of the folders which
/// `/sys/block` leads to.
pub fn in_bus_order(root: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut disks = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let place = match &name {
            name if name.starts_with("sd") || is_nvme(name) => place(&entry.path())?,
            name if ["vd", "hd", "ubd"].iter().any(|it| name.starts_with(it)) => Vec::new(),
            _ => continue,
        };
        disks.push(((place, name.len(), name.clone()), (name, entry.path())));
    }
    disks.sort();
    Ok(disks.into_iter().map(|(_, disk)| disk).collect())
}

/// A path to an NVMe disk (`nvme0c0n1`) is none by itself.
fn is_nvme(name: &str) -> bool {
    name.starts_with("nvme") && !name.contains('c')
}

/// The folders on the way to a disk. Numbers in them have no zeros before them (`target2:0:10`),
/// or are all as long (`0000:00:0a.0`): the longer name comes later.
fn place(entry: &Path) -> io::Result<Vec<(usize, String)>> {
    let folder = entry.canonicalize()?;
    let names = folder.iter().map(|name| name.to_string_lossy().into_owned());
    Ok(names.map(|name| (name.len(), name)).collect())
}

/// The driver of the disk with this folder, and what the disk calls itself, as far as the kernel
/// tells: `ahci, QEMU HARDDISK`.
pub fn attached(disk: &Path) -> String {
    let model = fs::read_to_string(disk.join("device/model")).unwrap_or_default();
    let said = [driver(disk).unwrap_or_default(), model.trim().to_string()];
    said.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The driver of what the disk hangs on: of SCSI disks (`sd`) and of IDE's (`ide-gd`) that is their
/// controller's.
fn driver(disk: &Path) -> Option<String> {
    let folder = disk.canonicalize().ok()?;
    let drivers = folder.ancestors().filter_map(|it| fs::read_link(it.join("driver")).ok());
    let mut names = drivers.filter_map(|it| Some(it.file_name()?.to_string_lossy().into_owned()));
    names.find(|name| name != "sd" && name != "ide-gd")
}

/// Makes the kernel write zeros to SCSI disks itself, instead of having the disk do so (WRITE SAME,
/// drivers/scsi/sd.c, `max_write_same_blocks_store`): that would give an image blocks that were not
/// written, see `bed/image.rs`, `write_out`. Other disks have options for this.
pub fn without_write_same(disk: &Path) -> io::Result<()> {
    for entry in fs::read_dir(disk.join("device/scsi_disk")).into_iter().flatten() {
        let file = entry?.path().join("max_write_same_blocks");
        // Kernels without it have no such request.
        if file.exists() {
            File::options().write(true).open(file)?.write_all(b"0")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Disks by their names and the folders on the way to them.
    fn machine(disks: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("block")).unwrap();
        for (name, on) in disks {
            let folder = root.path().join("devices").join(on).join(name);
            fs::create_dir_all(&folder).unwrap();
            symlink(folder, root.path().join("block").join(name)).unwrap();
        }
        root
    }

    fn names(root: &tempfile::TempDir) -> Vec<String> {
        let disks = in_bus_order(&root.path().join("block")).unwrap();
        disks.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn disks_stand_in_the_order_of_their_buses_whichever_was_found_first() {
        let ports = machine(&[
            ("sdb", "ata1/target0:0:0/block"),
            ("sda", "ata2/target1:0:0/block"),
            ("sdc", "ata1/target0:0:1/block"),
            ("sdd", "ata1/target0:0:10/block"),
            ("sde", "ata1/target0:0:9/block"),
            ("loop0", "virtual/block"),
        ]);
        assert_eq!(names(&ports), ["sdb", "sdc", "sde", "sdd", "sda"]);
        let drives = machine(&[
            ("nvme1n1", "0000:00:09.0/nvme/nvme1"),
            ("nvme0n1", "0000:00:0a.0/nvme/nvme0"),
            ("nvme0c0n1", "0000:00:0a.0/nvme/nvme0"),
        ]);
        assert_eq!(names(&drives), ["nvme1n1", "nvme0n1"]);
        let virtio = machine(&[("vdaa", "virtio2"), ("vdb", "virtio1"), ("vda", "virtio0")]);
        assert_eq!(names(&virtio), ["vda", "vdb", "vdaa"]);
    }

    #[test]
    fn the_driver_is_that_of_the_controller() {
        let root = machine(&[("sda", "0000:00:04.0/ata1/0:0:0:0/block"), ("vda", "virtio0/block")]);
        let at = |path: &str| root.path().join("devices").join(path);
        symlink("drivers/sd", at("0000:00:04.0/ata1/0:0:0:0/driver")).unwrap();
        symlink("drivers/ahci", at("0000:00:04.0/driver")).unwrap();
        symlink("drivers/virtio_blk", at("virtio0/driver")).unwrap();
        symlink(at("0000:00:04.0/ata1/0:0:0:0"), root.path().join("block/sda/device")).unwrap();
        fs::write(root.path().join("block/sda/device/model"), "QEMU HARDDISK   \n").unwrap();
        assert_eq!(attached(&root.path().join("block/sda")), "ahci, QEMU HARDDISK");
        assert_eq!(attached(&root.path().join("block/vda")), "virtio_blk");
        assert_eq!(attached(root.path()), "");
        let scsi = root.path().join("block/sda/device/scsi_disk/0:0:0:0");
        fs::create_dir_all(&scsi).unwrap();
        fs::write(scsi.join("max_write_same_blocks"), "65535\n").unwrap();
        without_write_same(&root.path().join("block/sda")).unwrap();
        without_write_same(&root.path().join("block/vda")).unwrap();
        let written = fs::read_to_string(scsi.join("max_write_same_blocks")).unwrap();
        assert!(written.starts_with('0'), "{written}");
    }
}
