//! Makes a guest's kernel panic if one of its processors hangs: its trial would go on until its
//! time is up, because the guest still says that it lives.

use std::fs;
use std::path::Path;

/// A processor that is kept from all else for twice as long hangs
/// (Documentation/admin-guide/lockup-watchdogs.rst): the most that can be set.
const THRESHOLD: (&str, &str) = ("proc/sys/kernel/watchdog_thresh", "60");
/// What RCU says earlier would have the former wait once more (kernel/rcu/tree_stall.h).
const PATIENCE: (&str, &str) = ("sys/module/rcupdate/parameters/rcu_cpu_stall_timeout", "150");
const PANICS: [(&(&str, &str), &str); 2] = [
    (&THRESHOLD, "proc/sys/kernel/softlockup_panic"),
    (&PATIENCE, "proc/sys/kernel/panic_on_rcu_stall"),
];
/// If the kernel's command line has one of these, we change nothing.
const WORDS: [&str; 4] = ["watchdog", "softlockup", "rcu_stall", "rcu_cpu_stall"];

/// From now on. A kernel that can't be told to wait so long does not panic: on a busy host an
/// emulated processor stands still for half a minute and goes on.
pub fn panics(root: &Path) {
    let words = fs::read_to_string(root.join("proc/cmdline")).unwrap_or_default();
    if WORDS.iter().any(|word| words.contains(word)) {
        return;
    }
    for ((knob, value), panic) in PANICS {
        let knob = root.join(knob);
        let is_set = fs::write(&knob, value).and_then(|()| fs::read_to_string(knob));
        if is_set.is_ok_and(|text| text.trim() == *value) {
            // A kernel may lack it.
            let _ = fs::write(root.join(panic), "1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(words: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let set = |name: &str, text: &str| {
            fs::create_dir_all(root.path().join(name).parent().unwrap()).unwrap();
            fs::write(root.path().join(name), text).unwrap();
        };
        set("proc/cmdline", words);
        set(THRESHOLD.0, "10\n");
        set(PATIENCE.0, "21\n");
        PANICS.iter().for_each(|(_, panic)| set(panic, "0\n"));
        root
    }

    fn told(root: &tempfile::TempDir) -> [String; 2] {
        PANICS.map(|(_, panic)| fs::read_to_string(root.path().join(panic)).unwrap_or_default())
    }

    #[test]
    fn only_a_kernel_that_waits_long_enough_panics() {
        let root = kernel("quiet");
        panics(root.path());
        assert_eq!(told(&root), ["1", "1"]);
        let root = kernel("quiet");
        fs::remove_file(root.path().join(THRESHOLD.0)).unwrap();
        fs::create_dir(root.path().join(THRESHOLD.0)).unwrap();
        panics(root.path());
        assert_eq!(told(&root), ["0\n", "1"]);
    }

    #[test]
    fn words_of_ones_own_win() {
        for words in ["quiet softlockup_panic=0", "rcupdate.rcu_cpu_stall_timeout=60"] {
            let root = kernel(words);
            panics(root.path());
            assert_eq!(told(&root), ["0\n", "0\n"], "{words}");
        }
    }
}
