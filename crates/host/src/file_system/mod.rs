//! The file systems that can be made: one file and one line of [`ALL`] each.

mod btrfs;
mod ext4;
mod xfs;

/// What fsverdict needs to know of a file system.
#[derive(Debug)]
pub struct FileSystem {
    /// Its name in plans and on the command line, and its type for mount(8).
    pub name: &'static str,
    /// The program that makes it.
    pub mkfs: &'static str,
    /// It takes several devices at once.
    pub takes_several: bool,
    /// mkfs options, the user's among them: quiet, over whatever is there, and without discard,
    /// so that every trial finds its blocks in the same state.
    options: fn(&[String]) -> Vec<String>,
    /// Mount options without which it would discard by itself.
    no_discard: &'static [&'static str],
    /// Arguments that make mkfs print its version.
    pub version: &'static [&'static str],
}

/// All file systems, in the order `list` shows them.
pub const ALL: [&FileSystem; 3] = [&ext4::EXT4, &xfs::XFS, &btrfs::BTRFS];

/// The file system of that name.
pub fn find(name: &str) -> Option<&'static FileSystem> {
    ALL.iter().find(|file_system| file_system.name == name).copied()
}

impl FileSystem {
    /// The command that makes it on `devices`.
    pub fn mkfs_argv(&self, options: &[String], devices: &[String]) -> Vec<String> {
        let mut argv = vec![self.mkfs.to_string()];
        argv.extend((self.options)(options));
        argv.extend(self.used(devices).iter().cloned());
        argv
    }

    /// The command that mounts it at `at`. Any one of its devices stands for all of them.
    pub fn mount_argv(&self, options: &[String], devices: &[String], at: &str) -> Vec<String> {
        let mut all: Vec<String> = self.no_discard.iter().map(ToString::to_string).collect();
        all.extend(options.iter().cloned());
        let mut argv = vec!["mount".to_string(), "-t".into(), self.name.into()];
        if !all.is_empty() {
            argv.extend(["-o".into(), all.join(",")]);
        }
        argv.extend([devices[0].clone(), at.into()]);
        argv
    }

    /// Those of the bed's devices it is made on.
    pub fn used<'a>(&self, devices: &'a [String]) -> &'a [String] {
        if self.takes_several { devices } else { &devices[..1] }
    }
}

/// `words` and then the user's options, as owned strings.
fn then(words: &[&str], options: &[String]) -> Vec<String> {
    words.iter().map(ToString::to_string).chain(options.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mkfs(name: &str, options: &[&str]) -> String {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let devices = ["/dev/loop1".to_string(), "/dev/loop2".to_string()];
        find(name).unwrap().mkfs_argv(&options, &devices).join(" ")
    }

    #[test]
    fn each_is_made_quietly_and_without_discard() {
        assert_eq!(
            mkfs("ext4", &["-b", "1024"]),
            "mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -b 1024 /dev/loop1"
        );
        assert_eq!(mkfs("xfs", &["-l", "size=256m"]), "mkfs.xfs -q -f -K -l size=256m /dev/loop1");
        assert_eq!(
            mkfs("btrfs", &["-d", "raid1"]),
            "mkfs.btrfs -q -f -K -d raid1 /dev/loop1 /dev/loop2"
        );
    }

    #[test]
    fn extended_options_of_ext4_are_joined_because_the_last_list_would_win() {
        assert_eq!(
            mkfs("ext4", &["-E", "stride=16,lazy_itable_init=1", "-Elazy_journal_init=1"]),
            "mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,\
             stride=16,lazy_itable_init=1,lazy_journal_init=1 /dev/loop1"
        );
    }
}
