//! What lies behind a loop device: a file, or a block device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fsverdict_core::model::Device;

use super::plain;

/// The file behind the loop device of that number; `None` where there is none, it can't be read, or
/// it is no loop device. `root` is `/` but in tests, here and below.
pub fn backing_file(root: &Path, number: [u32; 2]) -> Option<PathBuf> {
    behind(root, number).ok().flatten()
}

fn behind(root: &Path, [major, minor]: [u32; 2]) -> io::Result<Option<PathBuf>> {
    let path = root.join(format!("sys/dev/block/{major}:{minor}/loop/backing_file"));
    let text = plain::text_if_there(&path)?;
    Ok(text.map(|text| text.trim_end_matches('\n').into()))
}

/// The block device behind the loop device `device`; `None` where a file is, or nothing.
///
/// # Errors
/// If it can't be read: there may be one all the same.
pub fn below(root: &Path, device: &Device) -> io::Result<Option<Device>> {
    let Some(node) = behind(root, device.number)? else { return Ok(None) };
    let Ok(name) = node.strip_prefix("/dev") else { return Ok(None) };
    let folder = root.join("sys/block").join(name);
    let Some(number) = plain::text_if_there(&folder.join("dev"))? else { return Ok(None) };
    let size = fs::read_to_string(folder.join("size"))?;
    let parsed = || {
        let (major, minor) = number.trim().split_once(':')?;
        let number = [major.parse().ok()?, minor.parse().ok()?];
        // In units of 512 bytes: Documentation/ABI/stable/sysfs-block.
        let size_bytes = size.trim().parse::<u64>().ok()?.checked_mul(512)?;
        Some(Device { path: node.display().to_string(), number, size_bytes })
    };
    Ok(parsed())
}

/// So many loop devices may lie upon each other. The kernel lets them form no ring (drivers/block/
/// loop.c, `loop_validate_file`), but their files are known by names alone.
pub const DEEPEST: usize = 8;

/// The lowest below `device`: itself, where it lies on no other.
pub fn lowest(root: &Path, device: &Device) -> Device {
    let next = |it: &Device| below(root, it).ok().flatten();
    let chain = std::iter::successors(Some(device.clone()), next);
    chain.take(DEEPEST).last().unwrap_or_else(|| device.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_loop_device_lies_on_a_device_or_on_a_file() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        write(root, "sys/dev/block/7:1/loop/backing_file", "/dev/shm/.fsverdict-7/1.img\n");
        write(root, "sys/dev/block/7:2/loop/backing_file", "/dev/loop1\n");
        write(root, "sys/block/loop1/dev", "7:1\n");
        write(root, "sys/block/loop1/size", "8\n");
        let device = |minor: u32, size_bytes| Device {
            path: format!("/dev/loop{minor}"),
            number: [7, minor],
            size_bytes,
        };
        assert_eq!(below(root, &device(2, 0)).unwrap(), Some(device(1, 4096)));
        assert_eq!(below(root, &device(1, 0)).unwrap(), None);
        assert_eq!(lowest(root, &device(2, 0)), device(1, 4096));
        assert_eq!(lowest(root, &device(3, 0)), device(3, 0));
        write(root, "sys/dev/block/7:4/loop/backing_file", "/dev/loop4\n");
        write(root, "sys/block/loop4/dev", "7:4\n");
        write(root, "sys/block/loop4/size", "8\n");
        assert_eq!(lowest(root, &device(4, 0)), device(4, 4096), "a ring of names ends");
        fs::remove_file(root.join("sys/block/loop4/size")).unwrap();
        assert!(below(root, &device(4, 0)).is_err(), "what can't be read is not nothing");
        let image = Some("/dev/shm/.fsverdict-7/1.img".into());
        assert_eq!(backing_file(root, [7, 1]), image);
    }
}
