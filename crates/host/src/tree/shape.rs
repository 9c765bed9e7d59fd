//! What a tree looks like, from a seed.
//!
//! - *Directories* grow one by one: a new one goes into directory d with a chance in proportion to
//!   C(d) + 2, where C(d) is how many subdirectories d has already (Agrawal, Bolosky, Douceur and
//!   Lorch, *A Five-Year Study of File-System Metadata*, FAST 2007).
//! - *Depth*: files lie at depths that follow a Poisson distribution with mean 6.49, as far as
//!   there are directories so deep. Among those of one depth they are dealt out in proportion to
//!   numbers drawn from an inverse polynomial of degree 2 and offset 2.36 (Agrawal,
//!   Arpaci-Dusseau and Arpaci-Dusseau, *Generating Realistic Impressions for File-System
//!   Benchmarking*, FAST 2009, table 2), cut at [`DRAWN_FILES_MAX`].
//! - *Sizes* are lognormal (μ = 9.48, σ = 2.46) but for six in 100,000, which follow a Pareto
//!   distribution from 512 MiB up (k = 0.91; same table), and are then multiplied to hold what was
//!   asked for. With that k there is no mean: no file is drawn larger than a sixteenth of what all
//!   are expected to hold, because a single one would often be most of a small tree.
//! - *Names*: 4 to 16 letters and a number in base 36; and of sixteen files three without an
//!   extension and two each with the commonest. Lengths and extensions are ours: they
//!   come near the mean of 19 bytes that a Debian system has below /usr.
//! - *Links* are to an earlier regular file of the same directory.
//!
//! What a directory holds depends on the seed and its number alone, so that any thread can make it.
//! A tree takes [20 bytes](Shape) of memory for each of its directories, and each thread what it
//! needs for one directory.

use std::ffi::CStr;

use fsverdict_core::model::{Draws, Tree, derived_seed};

use super::Counts;

const SIZE_MU: f64 = 9.48;
const SIZE_SIGMA: f64 = 2.46;
const TAIL_SHARE: f64 = 0.00006;
const TAIL_START_BYTES: f64 = 536_870_912.0;
const TAIL_EXPONENT: f64 = 0.91;
const DEPTH_MEAN: f64 = 6.49;
const FILES_OFFSET: f64 = 2.36;

/// A directory is drawn for no more files than this, before all are scaled to what there are.
const DRAWN_FILES_MAX: f64 = 1000.0;

/// What a single file may hold of what all are expected to.
const SIZE_SHARE_MAX: f64 = 1.0 / 16.0;

/// Letters in the name before its number: from the first to, not including, the second.
const LETTERS: (u64, u64) = (4, 17);

const EXTENSIONS: [&str; 16] = [
    "", "", "", ".txt", ".txt", ".html", ".html", ".h", ".h", ".jpg", ".jpg", ".c", ".gif", ".pdf",
    ".py", ".log",
];

/// No directory: the end of a list of siblings.
const NONE: u32 = u32::MAX;

/// The directories of a tree, and how many files each has.
pub struct Shape {
    seed: u64,
    /// Each is below one of lower number; the first is the tree itself.
    directories: Vec<Directory>,
    hard_links: f64,
    symlinks: f64,
    size_max: f64,
    /// What sizes are multiplied by.
    size_factor: f64,
    counts: Counts,
}

#[derive(Clone, Copy)]
struct Directory {
    first_below: u32,
    next_beside: u32,
    files: u32,
    parent: u32,
    depth: u32,
}

/// What a file is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Made {
    /// A regular file of so many bytes.
    File(u64),
    /// Another name of the file at that place in the directory.
    HardLink(u32),
    /// A symbolic link to it.
    Symlink(u32),
}

/// The files of one directory.
#[derive(Default)]
pub struct Files {
    sizes: Vec<f64>,
    made: Vec<Made>,
    names: Vec<u8>,
    names_at: Vec<u32>,
}

impl Files {
    /// What is at `place`, and its name.
    pub fn get(&self, place: usize) -> (Made, &CStr) {
        (self.made[place], self.name(place))
    }

    /// The name of what is at `place`.
    pub fn name(&self, place: usize) -> &CStr {
        let name = CStr::from_bytes_until_nul(&self.names[self.names_at[place] as usize..]);
        name.expect("each was written with its NUL")
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.made.len()
    }
}

impl Shape {
    /// The shape of `tree`, which has been checked, from `seed`.
    pub fn new(tree: &Tree, seed: u64) -> Shape {
        let mut draws = Draws::new(derived_seed(seed, &["tree"], 0));
        let mut directories = directories(tree.directories(), &mut draws);
        deal_out(tree.files, &mut directories, &mut draws);
        let lognormal_mean = (SIZE_MU + SIZE_SIGMA * SIZE_SIGMA / 2.0).exp();
        let mut shape = Shape {
            seed,
            hard_links: tree.hard_links.0,
            symlinks: tree.symlinks.0,
            size_max: lognormal_mean * tree.files as f64 * SIZE_SHARE_MAX,
            size_factor: 1.0,
            counts: Counts::default(),
            directories,
        };
        shape.size_up(tree);
        shape
    }

    /// Goes through all files, to learn how large they are together and what there is.
    fn size_up(&mut self, tree: &Tree) {
        let (mut files, mut drawn) = (Files::default(), 0.0);
        let (mut regular, mut counts) = (0, Counts::default());
        for number in 0..self.directories.len() as u32 {
            self.draw(number, &mut files);
            drawn += files.sizes.iter().sum::<f64>();
            for made in &files.made {
                match made {
                    Made::File(_) => (regular, counts.files) = (regular + 1, counts.files + 1),
                    Made::HardLink(_) => counts.files += 1,
                    Made::Symlink(_) => counts.links += 1,
                }
            }
        }
        self.size_factor = tree.total_bytes(regular) as f64 / drawn.max(1.0);
        for number in 0..self.directories.len() as u32 {
            self.draw(number, &mut files);
            let sizes = files.sizes.iter().map(|size| self.scaled_bytes(*size));
            counts.bytes += sizes.sum::<u64>();
        }
        counts.directories = self.directories.len() as u64 - 1;
        self.counts = counts;
    }

    fn scaled_bytes(&self, size: f64) -> u64 {
        (size * self.size_factor).round() as u64
    }

    /// What there will be. Each file is rounded to whole bytes, so that there may be a few more or
    /// less than were asked for.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The directories below one, by number: the tree itself is 0.
    pub fn below(&self, number: u32) -> impl Iterator<Item = u32> {
        let after = |number: u32| Some(number).filter(|number| *number != NONE);
        let first = after(self.directories[number as usize].first_below);
        std::iter::successors(first, move |&number| {
            after(self.directories[number as usize].next_beside)
        })
    }

    /// Writes the name of a directory to `name`, with its NUL.
    pub fn name(&self, number: u32, name: &mut Vec<u8>) {
        let seed = derived_seed(self.seed, &["tree directory name"], number);
        name.clear();
        letters(seed, name);
        name.push(b'_');
        in_base_36(number, name);
        name.push(0);
    }

    /// Puts what directory `number` holds into `files`, in place of what was there.
    pub fn files(&self, number: u32, files: &mut Files) {
        let mut draws = self.draw(number, files);
        let Files { sizes, made, names, names_at } = files;
        for (made, size) in made.iter_mut().zip(sizes) {
            if let Made::File(size_bytes) = made {
                *size_bytes = self.scaled_bytes(*size);
            }
        }
        names.clear();
        names_at.clear();
        for place in 0..made.len() as u32 {
            names_at.push(names.len() as u32);
            let bits = draws.bits();
            letters(bits, names);
            names.push(b'-');
            in_base_36(place, names);
            names.extend_from_slice(EXTENSIONS[(bits >> 60) as usize].as_bytes());
            names.push(0);
        }
    }

    /// Draws kinds and sizes, before they are multiplied; names are drawn next.
    fn draw(&self, number: u32, files: &mut Files) -> Draws {
        let mut draws = Draws::new(derived_seed(self.seed, &["tree directory"], number));
        let Files { sizes, made, .. } = files;
        sizes.clear();
        made.clear();
        let mut last_regular = None;
        for place in 0..self.directories[number as usize].files {
            let drawn = draws.uniform();
            let (now, size) = match last_regular {
                Some(to) if drawn < self.hard_links => (Made::HardLink(to), 0.0),
                Some(to) if drawn < self.hard_links + self.symlinks => (Made::Symlink(to), 0.0),
                _ => (Made::File(0), self.size(&mut draws)),
            };
            if now == Made::File(0) {
                last_regular = Some(place);
            }
            made.push(now);
            sizes.push(size);
        }
        draws
    }

    fn size(&self, draws: &mut Draws) -> f64 {
        let size = match draws.uniform() < TAIL_SHARE {
            true => TAIL_START_BYTES * draws.uniform().powf(-1.0 / TAIL_EXPONENT),
            false => (SIZE_MU + SIZE_SIGMA * draws.normal()).exp(),
        };
        size.min(self.size_max)
    }
}

/// Grows `count` directories.
fn directories(count: u64, draws: &mut Draws) -> Vec<Directory> {
    let alone = Directory { first_below: NONE, next_beside: NONE, files: 0, parent: 0, depth: 0 };
    let mut all = Vec::with_capacity(count as usize);
    all.push(alone);
    for number in 1..count as usize {
        // All C(d) + 2 together: each directory has two chances, and one for each of its own, which
        // are all but the first.
        let drawn = draws.below(3 * number - 1);
        let parent = match drawn.checked_sub(2 * number) {
            None => drawn / 2,
            Some(child) => all[child + 1].parent as usize,
        };
        let above: &mut Directory = &mut all[parent];
        let next_beside = std::mem::replace(&mut above.first_below, number as u32);
        let depth = above.depth + 1;
        all.push(Directory { next_beside, parent: parent as u32, depth, ..alone });
    }
    all
}

/// Deals `files` out to the directories.
fn deal_out(files: u64, directories: &mut [Directory], draws: &mut Draws) {
    let deepest = directories.iter().map(|directory| directory.depth).max().unwrap_or(0);
    // Files lie one deeper than their directory.
    let mut chance = (-DEPTH_MEAN).exp();
    let mut chances = Vec::new();
    for depth in 1..=deepest + 1 {
        chance *= DEPTH_MEAN / f64::from(depth);
        chances.push(chance);
    }
    let weights: Vec<f64> = directories
        .iter()
        .map(|_| (FILES_OFFSET / draws.uniform() - FILES_OFFSET).min(DRAWN_FILES_MAX))
        .collect();
    let mut weights_at = vec![0.0; chances.len()];
    for (directory, weight) in directories.iter().zip(&weights) {
        weights_at[directory.depth as usize] += weight;
    }
    let all: f64 = chances.iter().sum();
    let (mut due, mut given) = (0.0, 0);
    let last = directories.len() - 1;
    for (place, (directory, weight)) in directories.iter_mut().zip(&weights).enumerate() {
        let depth = directory.depth as usize;
        due += files as f64 * chances[depth] / all * weight / weights_at[depth];
        // Rounded by what is due so far, nothing is lost; the last one gets what rounding left.
        let until = if place == last { files } else { (due.round() as u64).min(files) };
        directory.files = (until - given) as u32;
        given = until;
    }
}

/// Writes some letters, consonants and vowels in turn, by the low 48 bits of `bits`.
fn letters(bits: u64, name: &mut Vec<u8>) {
    const CONSONANTS: &[u8; 16] = b"bcdfghklmnprstvz";
    const VOWELS: &[u8; 4] = b"aeio";
    let count = LETTERS.0 + (bits >> 48 & 0xfff) % (LETTERS.1 - LETTERS.0);
    // Six bits make two letters.
    for pair in 0..count.div_ceil(2) {
        let six = (bits >> (pair * 6)) as usize;
        name.push(CONSONANTS[six & 15]);
        if pair * 2 + 1 < count {
            name.push(VOWELS[six >> 4 & 3]);
        }
    }
}

fn in_base_36(number: u32, name: &mut Vec<u8>) {
    let start = name.len();
    let mut rest = number;
    loop {
        name.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize]);
        rest /= 36;
        if rest == 0 {
            break;
        }
    }
    name[start..].reverse();
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::{Bytes, median};

    use super::*;

    fn shape(files: u64) -> Shape {
        Shape::new(&Tree { files, ..Tree::default() }, 3)
    }

    fn sizes(shape: &Shape) -> Vec<f64> {
        let mut files = Files::default();
        let mut sizes = Vec::new();
        for number in 0..shape.directories.len() as u32 {
            shape.files(number, &mut files);
            sizes.extend(files.made.iter().filter_map(|made| match made {
                Made::File(size_bytes) => Some(*size_bytes as f64),
                _ => None,
            }));
        }
        sizes
    }

    #[test]
    fn all_files_are_there_and_hold_what_was_asked_for() {
        for files in [1, 7, 100, 50_000] {
            let shape = shape(files);
            let counts = shape.counts();
            assert_eq!(counts.files + counts.links, files);
            assert_eq!(counts.directories + 1, files.div_ceil(10));
            let sizes = sizes(&shape);
            let bytes: f64 = sizes.iter().sum();
            assert_eq!(bytes, counts.bytes as f64);
            let wanted = sizes.len() as f64 * 16384.0;
            assert!((bytes - wanted).abs() <= sizes.len() as f64, "{bytes} for {wanted}");
        }
        let total = Tree { files: 1000, total: Some(Bytes(1 << 20)), ..Tree::default() };
        assert!(Shape::new(&total, 1).counts().bytes.abs_diff(1 << 20) <= 1000);
    }

    #[test]
    fn sizes_have_the_lognormals_spread_and_none_is_most_of_the_tree() {
        let shape = shape(100_000);
        let sizes = sizes(&shape);
        // Quantiles of a lognormal lie at exp(σ z), and multiplying leaves their ratios alone.
        let mut ordered = sizes.clone();
        ordered.sort_by(f64::total_cmp);
        let at = |q: f64| ordered[(q * ordered.len() as f64) as usize];
        let (upper, lower) = (at(0.8413).ln() - at(0.5).ln(), at(0.5).ln() - at(0.1587).ln());
        for spread in [upper, lower] {
            assert!((spread / SIZE_SIGMA - 1.0).abs() < 0.05, "{spread}");
        }
        let total: f64 = sizes.iter().sum();
        assert!(ordered[ordered.len() - 1] < total / 5.0);
        assert!(median(sizes) < Some(16384.0));
    }

    #[test]
    fn directories_are_as_deep_and_as_full_as_the_studies_have_it() {
        let shape = shape(500_000);
        let all = &shape.directories;
        let files: f64 = all.iter().map(|it| f64::from(it.files)).sum();
        let deep: f64 = all.iter().map(|it| f64::from(it.files * (it.depth + 1))).sum();
        assert!((6.0..7.0).contains(&(deep / files)), "{}", deep / files);
        let mut below = vec![0u32; all.len()];
        all[1..].iter().for_each(|it| below[it.parent as usize] += 1);
        // In the long run p = 1 - 2p/3 have none: each new one has none, and goes into one of them
        // with a chance of 2p in 3.
        let leaves = below.iter().filter(|count| **count == 0).count() as f64 / all.len() as f64;
        assert!((0.58..0.62).contains(&leaves), "{leaves}");
        let listed: usize = (0..all.len() as u32).map(|it| shape.below(it).count()).sum();
        assert_eq!(listed, all.len() - 1);
    }

    #[test]
    fn names_differ_within_a_directory_and_links_lead_to_files() {
        let shape =
            Shape::new(&Tree { files: 2000, files_per_directory: 1000, ..Tree::default() }, 5);
        let (mut files, mut name) = (Files::default(), Vec::new());
        for number in 0..2 {
            shape.files(number, &mut files);
            let mut names: Vec<_> = (0..files.len()).map(|it| files.name(it).to_owned()).collect();
            let lengths: Vec<f64> = names.iter().map(|it| it.count_bytes() as f64).collect();
            assert!(median(lengths).is_some_and(|length| (14.0..22.0).contains(&length)));
            for below in shape.below(number) {
                shape.name(below, &mut name);
                names.push(CStr::from_bytes_with_nul(&name).unwrap().to_owned());
            }
            names.sort();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
            for made in &files.made {
                if let Made::HardLink(to) | Made::Symlink(to) = made {
                    assert!(matches!(files.made[*to as usize], Made::File(_)));
                }
            }
        }
        let counts = shape.counts();
        assert!((10..80).contains(&counts.links), "{counts:?}");
    }
}
