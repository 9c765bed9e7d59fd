//! A tree of files, made, copied, walked and deleted natively.

use serde::{Deserialize, Serialize};

use super::native::check_count;
use super::{Bytes, Percent};

/// What a file holds on average, unless the plan says otherwise.
const MEAN_SIZE: Bytes = Bytes(16 << 10);

/// What the files of a tree hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeContent {
    /// Random bytes, which nothing compresses.
    #[default]
    Random,
    /// Random bytes and zeros, so that a compressor reaches the ratio that is asked for.
    Compressible,
    /// English words.
    Text,
}

impl TreeContent {
    /// The name in a plan and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TreeContent::Random => "random",
            TreeContent::Compressible => "compressible",
            TreeContent::Text => "text",
        }
    }
}

/// Whether a copy may share blocks with its source, as `cp --reflink` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reflink {
    /// Where the file system can.
    #[default]
    Auto,
    /// It must: FICLONE, and an error where that can't be had.
    Always,
    /// All bytes are read and written.
    Never,
}

/// What the tree workload does in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreePhase {
    /// The tree is made: generated, or copied from a source outside.
    Fill,
    /// It is copied beside itself.
    Copy,
    /// Its directories are read.
    Walk,
    /// The same once more, with whatever is cached by now.
    WalkAgain,
    /// Its directories are read, and every entry's status.
    Stat,
    /// All there is is deleted.
    Delete,
}

impl TreePhase {
    /// All, in the order they are done.
    pub const ALL: [TreePhase; 6] = [
        TreePhase::Fill,
        TreePhase::Copy,
        TreePhase::Walk,
        TreePhase::WalkAgain,
        TreePhase::Stat,
        TreePhase::Delete,
    ];

    /// The phase's name in metrics: `walk` of `walk_rate`.
    pub fn name(self) -> &'static str {
        match self {
            TreePhase::Fill => "fill",
            TreePhase::Copy => "copy",
            TreePhase::Walk => "walk",
            TreePhase::WalkAgain => "walk_again",
            TreePhase::Stat => "stat",
            TreePhase::Delete => "delete",
        }
    }

    /// It begins with what is on the device, so that a warm cache would answer for it.
    pub fn is_cold(self) -> bool {
        !matches!(self, TreePhase::Fill | TreePhase::WalkAgain)
    }
}

/// The native tree workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tree {
    /// Files altogether, links among them; directories come on top.
    pub files: u64,
    /// Bytes in a file on average; not with `total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_size: Option<Bytes>,
    /// Bytes in all files together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Bytes>,
    /// Files for each directory, on average.
    pub files_per_directory: u32,
    /// What of the files is another name of one before it.
    pub hard_links: Percent,
    /// What of the files is a symbolic link.
    pub symlinks: Percent,
    /// What they hold.
    pub content: TreeContent,
    /// How many bytes of compressible content a compressor makes one of.
    pub compression: f64,
    /// A directory outside that is copied instead of generating a tree; none of the above counts
    /// then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Threads that share the directories.
    pub threads: u32,
    /// Whether a copy may share blocks with its source.
    pub reflink: Reflink,
    /// What is done, in this order. A tree that no phase fills is there beforehand.
    pub phases: Vec<TreePhase>,
}

impl Default for Tree {
    /// 10.2 files in a directory is the mean of the five-year study's last year (Agrawal, Bolosky,
    /// Douceur and Lorch, FAST 2007), and Impressions' default. The shares of links are ours.
    fn default() -> Self {
        Tree {
            files: 10_000,
            mean_size: None,
            total: None,
            files_per_directory: 10,
            hard_links: Percent(0.01),
            symlinks: Percent(0.02),
            content: TreeContent::Random,
            compression: 2.0,
            source: None,
            threads: 1,
            reflink: Reflink::Auto,
            phases: TreePhase::ALL.to_vec(),
        }
    }
}

impl Tree {
    /// Directories altogether, the tree's own among them.
    pub fn directories(&self) -> u64 {
        self.files.div_ceil(u64::from(self.files_per_directory).max(1)).max(1)
    }

    /// Bytes that `files` regular files are to hold together.
    pub fn total_bytes(&self, files: u64) -> u64 {
        let mean = self.mean_size.unwrap_or(MEAN_SIZE);
        self.total.map_or_else(|| mean.0.saturating_mul(files), |total| total.0)
    }

    /// The tree is there before the first timed part.
    pub fn is_filled(&self) -> bool {
        !self.phases.contains(&TreePhase::Fill)
    }

    /// Names that a phase deals with: files and directories but the tree's own, or, where all is
    /// deleted, those of the copy too and the uppermost ones.
    pub fn entries(&self, phase: TreePhase) -> u64 {
        let whole = self.files + self.directories();
        match phase {
            TreePhase::Delete => whole * self.trees(),
            _ => whole - 1,
        }
    }

    /// How many trees there are in the end: itself, and its copy if there is one.
    pub fn trees(&self) -> u64 {
        1 + u64::from(self.phases.contains(&TreePhase::Copy))
    }

    /// What is wrong with it, as the end of a sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.files == 0 || self.files_per_directory == 0 || self.threads == 0 {
            return Err("needs at least one file, one in each directory and one thread".into());
        }
        if self.mean_size.is_some() && self.total.is_some() {
            return Err("has a mean_size and a total: give one of them".into());
        }
        let shares = [self.hard_links.0, self.symlinks.0];
        if shares.iter().any(|share| !(0.0..=1.0).contains(share)) || shares[0] + shares[1] > 0.9 {
            return Err("has too many links: hard_links and symlinks are at most 90%".into());
        }
        if !(1.0..=1000.0).contains(&self.compression) {
            return Err(format!("has a compression of {}: from 1 to 1000", self.compression));
        }
        let places = self.phases.iter().map(|phase| *phase as u8);
        if self.phases.is_empty() || !places.is_sorted_by(|one, next| one < next) {
            let all = TreePhase::ALL.map(TreePhase::name).join(", ");
            return Err(format!("needs phases, in this order: {all}"));
        }
        check_count(self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;

    fn workload(tree: &str) -> Workload {
        toml::from_str(&format!("name = \"w\"\ntree = {{ {tree} }}")).unwrap()
    }

    #[test]
    fn trees_that_can_not_be_made_are_refused() {
        for (tree, says) in [
            ("files = 0", "at least one file"),
            ("files = 200000000", "at most 100000000"),
            ("mean_size = \"4k\", total = \"1G\"", "give one of them"),
            ("hard_links = \"60%\", symlinks = \"40%\"", "at most 90%"),
            ("compression = 0.5", "from 1 to 1000"),
            ("phases = []", "fill, copy, walk, walk_again, stat, delete"),
            ("phases = [\"delete\", \"walk\"]", "in this order"),
        ] {
            let wrong = workload(tree).work().unwrap_err();
            assert!(wrong.starts_with("workload \"w\" ") && wrong.contains(says), "{wrong}");
        }
    }

    #[test]
    fn a_tree_has_a_rate_for_each_phase() {
        let some = workload("phases = [\"walk\", \"walk_again\", \"delete\"]");
        assert_eq!(some.primary(), ["walk_rate", "walk_again_rate", "delete_rate"]);
        assert!(some.work().unwrap().is_filled());
        let all = workload("files = 1000");
        assert!(!all.work().unwrap().is_filled());
        let tree = all.tree.unwrap();
        assert_eq!(super::TreePhase::ALL.map(|it| tree.entries(it))[4..], [1099, 2200]);
        assert_eq!(tree.total_bytes(1000), 1000 * 16384);
    }
}
