//! Pages of real files counted by the running kernel, on file systems upon loop devices.

use std::fmt::Debug;
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
    /// `None`, and why, where this kernel can't be asked: it is told so to users, too.
    fn new(file_system: &str) -> Option<Scene> {
        if let Err(why) = Layout::read(Path::new("/")) {
            println!("not tested: {why}");
            return None;
        }
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
        Some(Scene { place, cache, _device: device, _folder: folder, _turn: turn })
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

/// Counts are `expected`, at the latest the tenth time: other tests of this program drop the caches
/// of the whole machine, and what they take between two reads is missed.
#[track_caller]
fn assert_of_ten<T: Debug + PartialEq>(expected: &T, mut count: impl FnMut() -> T) {
    let mut counted = count();
    for _ in 1..10 {
        if counted == *expected {
            break;
        }
        counted = count();
    }
    assert_eq!(counted, *expected);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_file_read_cold_is_missed_and_read_again_is_found() {
    for file_system in ["ext4", "xfs", "btrfs"] {
        let Some(mut scene) = Scene::new(file_system) else { return };
        // Neither whole pages nor whole steps; steps longer than a batch of the kernel's.
        for (step, bytes) in [(PAGE, 300 * PAGE), (1 << 20, 1_000_001), (131_072, 100)] {
            let pages = bytes.div_ceil(PAGE) as u64;
            let expected = (file_system, [(pages, pages), (pages, 0)]);
            assert_of_ten(&expected, || {
                let file = scene.cold(&format!("file{bytes}"), bytes);
                (file_system, [(); 2].map(|()| scene.during(|| read(&file, step))))
            });
        }
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn writes_are_no_misses_and_other_file_systems_are_left_out() {
    for file_system in ["ext4", "xfs", "btrfs"] {
        let Some(mut scene) = Scene::new(file_system) else { return };
        let path = scene.place.join("file");
        assert_of_ten(&(file_system, (200, 0)), || {
            let written_and_read = scene.during(|| {
                let mut file = File::create_new(&path).unwrap();
                file.write_all(&vec![1; 200 * PAGE]).unwrap();
                read(&File::open(&path).unwrap(), 64 * PAGE);
            });
            fs::remove_file(&path).unwrap();
            (file_system, written_and_read)
        });
        let elsewhere = tempfile::tempdir().unwrap();
        let other = elsewhere.path().join("file");
        let device = |path: &Path| path.metadata().unwrap().dev();
        assert_ne!(device(elsewhere.path()), device(&scene.place));
        fs::write(&other, vec![1; 50 * PAGE]).unwrap();
        assert_eq!(scene.during(|| read(&File::open(&other).unwrap(), PAGE)), (0, 0));
    }
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn threads_that_read_at_once_are_told_apart() {
    let Some(mut scene) = Scene::new("ext4") else { return };
    let file = scene.cold("file", 512 * PAGE);
    let reads = || {
        let mut buffer = vec![0; 64 * PAGE];
        for index in 0..8 {
            file.read_exact_at(&mut buffer, index * 64 * PAGE as u64).unwrap();
        }
    };
    assert_of_ten(&(4 * 512, 0), || {
        read(&file, PAGE);
        scene.during(|| {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    std::thread::Builder::new().spawn_scoped(scope, reads).unwrap();
                }
            });
        })
    });
}
