//! One processor alone, while the kernel changes its own code.
//!
//! A tracepoint is switched on and off by changing instructions (Documentation/staging/
//! static-keys.rst): the kernel puts an `int3` there first (arch/x86/kernel/alternative.c,
//! `text_poke_bp_batch`). Before version 8.1, QEMU's emulation read code before it watched the page
//! for writes (its commit deba78709ae8, "Always lock pages before translation"): a processor may
//! keep the `int3` that another removes meanwhile. It hits that for ever, because the kernel finds
//! no breakpoint there and tries again (arch/x86/kernel/kprobes/core.c, `kprobe_int3_handler`).
//! With one processor, the one that changes the code is the one that reads it.
//!
//! Seen with QEMU 7.2 and Linux 6.1: switching events on and off during writes hung a guest of two
//! processors after 10 to 200 times, and in 1,220 times never with one of them set aside.

use std::fs;
use std::io::{self, Write, stderr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::within;
use crate::sys;

const PROCESSORS: &str = "sys/devices/system/cpu";
/// Where it has such a file at all, it comes back by another way than the others
/// (Documentation/core-api/cpu_hotplug.rst).
const FIRST: &str = "cpu0";
/// One that is slow to answer on a busy host is asked again.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// All processors but the first are put aside while this lives, in a guest of ours that is
/// emulated; anywhere else this is nothing. One thread at a time. What is bound to such a processor
/// is bound to none afterwards.
#[derive(Debug)]
#[must_use]
pub struct Alone(Vec<PathBuf>);

impl Alone {
    /// Takes some 30 ms for each processor, and as long when it is let go of.
    pub fn to_patch() -> Alone {
        match within::is_guest() && sys::is_emulated() {
            true => Alone::on(Path::new("/")),
            false => Alone(Vec::new()),
        }
    }

    /// A processor that can't be put aside stays: the code is changed all the same.
    fn on(root: &Path) -> Alone {
        let on = switches(root).into_iter().filter(|file| says(file, "1"));
        Alone(on.filter(|file| fs::write(file, "0").is_ok()).collect())
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        for file in &self.0 {
            if let Err(error) = back(file) {
                let _ = writeln!(stderr(), "{} stays 0: {error}", file.display());
            }
        }
    }
}

fn back(file: &Path) -> io::Result<()> {
    for _ in 1..TRIES {
        if fs::write(file, "1").is_ok() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    fs::write(file, "1")
}

/// What processors are put aside by.
fn switches(root: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(root.join(PROCESSORS)).into_iter().flatten().flatten();
    let others = folders.filter(|folder| folder.file_name() != FIRST);
    others.map(|folder| folder.path().join("online")).collect()
}

fn says(file: &Path, text: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|it| it.trim() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_are_on_are_put_aside_and_come_back() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str| root.path().join(PROCESSORS).join(name).join("online");
        for (name, text) in [("cpu1", "1\n"), ("cpu2", "0\n"), ("cpu3", "1\n")] {
            fs::create_dir_all(file(name).parent().unwrap()).unwrap();
            fs::write(file(name), text).unwrap();
        }
        fs::create_dir_all(file(FIRST).parent().unwrap()).unwrap();
        fs::write(file(FIRST), "1\n").unwrap();
        let all = || ["cpu1", "cpu2", "cpu3"].map(|it| fs::read_to_string(file(it)).unwrap());
        let alone = Alone::on(root.path());
        assert_eq!(all(), ["0", "0\n", "0"]);
        assert!(Alone::on(root.path()).0.is_empty(), "one within another does nothing");
        drop(alone);
        assert_eq!(all(), ["1", "0\n", "1"]);
        assert_eq!(fs::read_to_string(file(FIRST)).unwrap(), "1\n");
    }

    #[test]
    fn out_of_a_guest_no_processor_is_put_aside() {
        assert!(Alone::to_patch().0.is_empty());
    }
}
