//! Where a file system is made and mounted, and the commands for it.

use crate::tool::Argv;

/// What a file system is made on, and where it is mounted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site<'a> {
    /// All devices of the bed.
    pub devices: &'a [String],
    /// The mount point.
    pub at: &'a str,
    /// Where the file system is mounted that it stands on; empty for one on devices.
    pub below: &'a str,
    /// It has been mounted before: what the work finds in it is there.
    pub again: bool,
    /// Its devices are zoned.
    pub zoned: bool,
    /// The token of the run, for what outlives a trial that is killed; empty where nothing does.
    pub run: &'a str,
}

impl Site<'_> {
    /// `mkfs` with the user's options, on the first device.
    pub(super) fn make(&self, mkfs: &[&str], options: &[String]) -> Vec<Argv> {
        vec![then(mkfs, &[options, &self.devices[..1]])]
    }

    /// mount(8), with `ours` before the user's options. Any one device stands for all of them.
    pub(super) fn mount(&self, kind: &str, ours: &[&str], options: &[String]) -> Vec<Argv> {
        self.mount_source(&self.devices[0], kind, ours, options)
    }

    pub(super) fn mount_source(
        &self,
        source: &str,
        kind: &str,
        ours: &[&str],
        options: &[String],
    ) -> Vec<Argv> {
        let mut argv = words(&["mount", "-t", kind]);
        let all = then(ours, &[options]);
        if !all.is_empty() {
            argv.extend(["-o".to_string(), all.join(",")]);
        }
        argv.extend([source.to_string(), self.at.to_string()]);
        vec![argv]
    }

    /// `check` on the first device.
    pub(super) fn check(&self, check: &[&str]) -> Vec<Argv> {
        vec![then(check, &[&self.devices[..1]])]
    }
}

/// The folder below whose content one that stands on it shows.
pub(super) fn shown(site: &Site) -> String {
    format!("{}/shown", site.below)
}

pub(super) fn words(words: &[&str]) -> Argv {
    words.iter().map(ToString::to_string).collect()
}

/// `words` and what follows them, as owned strings.
pub(super) fn then(first: &[&str], rest: &[&[String]]) -> Argv {
    words(first).into_iter().chain(rest.iter().flat_map(|part| part.iter().cloned())).collect()
}
