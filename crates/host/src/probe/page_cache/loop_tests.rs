//! Pages of real files counted by the running kernel, on file systems upon loop devices.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;
use crate::bed::LoopDevice;
use crate::machine::mount;
use crate::tool;

const PAGE: usize = 4096;

/// All drop the caches of the machine: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A file system of its own, mounted and watched.
struct Scene {
    place: PathBuf,
    cache: PageCache,
    _device: LoopDevice,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    fn new(file_system: &str) -> Scene {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        sys::private_mounts().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        File::create(&image).unwrap().set_len(320 << 20).unwrap();
        let device = LoopDevice::attach(&image, false).unwrap();
        let node = device.device().path;
        let place = folder.path().join("mnt");
        fs::create_dir(&place).unwrap();
        tool::run_words(&[&format!("mkfs.{file_system}"), "-q", &node]).unwrap();
        tool::run_words(&["mount", &node, place.to_str().unwrap()]).unwrap();
        let mounted = mount::of_thread(place.to_str().unwrap()).unwrap().unwrap();
        let cache = PageCache::watch(Path::new("/"), mounted.number).unwrap();
        Scene { place, cache, _device: device, _folder: folder, _turn: turn }
    }

    /// Writes a file, and lets its pages go.
    fn cold(&self, name: &str, bytes: usize) -> File {
        let path = self.place.join(name);
        fs::write(&path, vec![7; bytes]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
        file
    }

    /// Looked up and missed pages during `work`.
    fn during(&mut self, work: impl FnOnce()) -> (u64, u64) {
        let before = self.cache.read().unwrap();
        work();
        let PageCacheTotals { looked_up, missed } = since(&self.cache.read().unwrap(), &before);
        (looked_up, missed)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = tool::run_words(&["umount", self.place.to_str().unwrap()]);
    }
}

/// Reads all of a file, `step` bytes at a time.
fn read(mut file: &File, step: usize) {
    let mut buffer = vec![0; step];
    file.seek(SeekFrom::Start(0)).unwrap();
    while file.read(&mut buffer).unwrap() > 0 {}
}

/// Btrfs has its trees in the page cache, as nodes of four pages: who drops all caches beside this
/// test takes these, too, and a few are read again.
#[track_caller]
fn assert_told(file_system: &str, told: (u64, u64), expected: (u64, u64)) {
    let more = told.1.wrapping_sub(expected.1);
    let are_nodes = file_system == "btrfs" && more.is_multiple_of(4) && more <= 16;
    let is_missed = more == 0 || are_nodes;
    assert!(told.0 == expected.0 && is_missed, "{file_system}: {told:?} for {expected:?}");
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_file_read_cold_is_missed_and_read_again_is_found() {
    for file_system in ["ext4", "xfs", "btrfs"] {
        let mut scene = Scene::new(file_system);
        // Neither whole pages nor whole steps; steps longer than a batch of the kernel's.
        for (step, bytes) in [(PAGE, 300 * PAGE), (1 << 20, 1_000_001), (131_072, 100)] {
            let pages = bytes.div_ceil(PAGE) as u64;
            let file = scene.cold(&format!("file{bytes}"), bytes);
            let cold = scene.during(|| read(&file, step));
            assert_told(file_system, cold, (pages, pages));
            let warm = scene.during(|| read(&file, step));
            assert_told(file_system, warm, (pages, 0));
        }
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn writes_are_no_misses_and_other_file_systems_are_left_out() {
    for file_system in ["ext4", "xfs", "btrfs"] {
        let mut scene = Scene::new(file_system);
        let path = scene.place.join("file");
        let write_and_read = scene.during(|| {
            let mut file = File::create_new(&path).unwrap();
            file.write_all(&vec![1; 200 * PAGE]).unwrap();
            read(&File::open(&path).unwrap(), 64 * PAGE);
        });
        assert_eq!(write_and_read, (200, 0), "{file_system}");
        let elsewhere = tempfile::tempdir().unwrap();
        let other = elsewhere.path().join("file");
        assert_ne!(elsewhere.path().metadata().unwrap().dev(), path.metadata().unwrap().dev());
        fs::write(&other, vec![1; 50 * PAGE]).unwrap();
        assert_eq!(scene.during(|| read(&File::open(&other).unwrap(), PAGE)), (0, 0));
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn threads_that_read_at_once_are_told_apart() {
    let mut scene = Scene::new("ext4");
    let file = scene.cold("file", 512 * PAGE);
    read(&file, PAGE);
    let counted = scene.during(|| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let reads = || {
                    let mut buffer = vec![0; 64 * PAGE];
                    for index in 0..8 {
                        file.read_exact_at(&mut buffer, index * 64 * PAGE as u64).unwrap();
                    }
                };
                std::thread::Builder::new().spawn_scoped(scope, reads).unwrap();
            }
        });
    });
    assert_eq!(counted, (4 * 512, 0));
}
