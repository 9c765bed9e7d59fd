//! `fsverdict tree`: a tree of files made, walked, copied, deleted or digested by itself.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;
use fsverdict_core::model::{Bytes, Histogram, Reflink, Tree, TreeContent, Unit};
use fsverdict_host::tree::{self, Done, Shape};
use serde::de::DeserializeOwned;
use serde::de::value::StrDeserializer;

use crate::exit::{self, Usage};
use crate::say;

/// Make, walk, copy, delete or digest a tree of files.
///
/// Without a trial around it: for the setup of a plan, and for use by itself. Nothing is synced.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// Threads that share the directories.
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    threads: u32,
}

#[derive(Subcommand)]
enum Action {
    /// Make a realistic tree: the same seed, the same tree.
    Generate(Generated),
    /// Read every directory, and count what there is.
    Walk {
        /// The tree.
        directory: PathBuf,
        /// Ask for every entry's status, too.
        #[arg(long)]
        stat: bool,
    },
    /// Copy as `cp -a` does, but for extended attributes.
    Copy {
        /// The tree.
        from: PathBuf,
        /// The copy, which must not exist yet.
        to: PathBuf,
        /// Whether blocks may be shared: auto, always, never.
        #[arg(long, default_value = "auto", value_parser = named::<Reflink>)]
        reflink: Reflink,
    },
    /// Delete a directory with all that is in it.
    Delete {
        /// The tree.
        directory: PathBuf,
    },
    /// A number that equal trees share.
    Digest {
        /// The tree.
        directory: PathBuf,
        /// The times of the last change, too.
        #[arg(long)]
        times: bool,
    },
}

#[derive(clap::Args)]
struct Generated {
    /// Where; a new folder, or an empty one.
    directory: PathBuf,
    /// Files altogether, links among them.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    files: u64,
    /// Bytes in a file on average [default: 16k].
    #[arg(long, value_name = "SIZE")]
    mean_size: Option<Bytes>,
    /// Bytes in all files together.
    #[arg(long, value_name = "SIZE")]
    total: Option<Bytes>,
    /// Of names, sizes and contents.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What files hold: random, compressible, text.
    #[arg(long, default_value = "random", value_parser = named::<TreeContent>)]
    content: TreeContent,
    /// How many compressible bytes a compressor turns into one.
    #[arg(long, value_name = "RATIO", default_value_t = 2.0)]
    compression: f64,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict tree generate /tmp/tree --files 100000 --mean-size 16k --seed 7 --threads 2
  fsverdict tree walk --stat /usr/share
  fsverdict tree delete /tmp/tree";

/// A word of a plan.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    T::deserialize(StrDeserializer::<serde::de::value::Error>::new(text))
        .map_err(|error| error.to_string())
}

/// What a path leads to.
fn real(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).with_context(|| path.display().to_string())
}

/// Does it, and prints what there was and how long each operation took.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let threads = arguments.threads;
    let done = match &arguments.action {
        Action::Generate(wanted) => generate(wanted, threads)?,
        Action::Walk { directory, stat } => tree::walk(&real(directory)?, *stat, threads)?,
        Action::Copy { from, to, reflink } => {
            fs::create_dir(to).with_context(|| format!("make {}", to.display()))?;
            tree::copy(&real(from)?, to, *reflink, threads)?
        }
        Action::Delete { directory } => {
            let done = tree::delete(directory, threads)?;
            fs::remove_dir(directory).with_context(|| format!("delete {}", directory.display()))?;
            done
        }
        Action::Digest { directory, times } => {
            say::print(&format!("{:016x}\n", tree::digest(&real(directory)?, *times)?))?;
            return Ok(exit::DONE);
        }
    };
    say::print(&text(&done))?;
    Ok(exit::DONE)
}

fn generate(wanted: &Generated, threads: u32) -> Result<Done> {
    let tree = Tree {
        files: wanted.files,
        mean_size: wanted.mean_size,
        total: wanted.total,
        content: wanted.content,
        compression: wanted.compression,
        threads,
        ..Tree::default()
    };
    tree.check().map_err(|wrong| Usage(format!("the tree {wrong}")))?;
    let directory = &wanted.directory;
    let shown = || directory.display().to_string();
    fs::create_dir_all(directory).with_context(shown)?;
    if fs::read_dir(directory).with_context(shown)?.next().is_some() {
        return Err(Usage(format!("{} is not empty: name a new directory", shown())).into());
    }
    Ok(tree::generate(&tree, &Shape::new(&tree, wanted.seed), directory, wanted.seed)?)
}

fn text(done: &Done) -> String {
    let counts = &done.counts;
    let work_s = done.work_ns as f64 / 1e9;
    let mut text = format!(
        "{} files, {} directories, {} symbolic links, {} others, {} in {}\n",
        counts.files,
        counts.directories,
        counts.links,
        counts.specials,
        Unit::Bytes.format(counts.bytes as f64),
        Unit::Seconds.format(work_s),
    );
    for (operation, histogram) in &done.histograms {
        text += &latencies(operation, histogram);
    }
    text
}

fn latencies(operation: &str, histogram: &Histogram) -> String {
    let shown = |value_ns: Option<f64>| {
        value_ns.map_or("-".into(), |value_ns| Unit::Nanoseconds.format(value_ns))
    };
    let quantile = |q| shown(histogram.quantile_ns(q).map(|value_ns| value_ns as f64));
    format!(
        "{operation}: {} times, mean {}, median {}, 99% within {}, longest {}\n",
        histogram.count(),
        shown(histogram.mean_ns()),
        quantile(0.5),
        quantile(0.99),
        shown(Some(histogram.max_ns as f64)),
    )
}
