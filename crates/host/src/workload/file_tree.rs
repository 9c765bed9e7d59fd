//! The tree workload: a tree of files is made, copied, walked and deleted.
//!
//! - *fill*: `tree` is generated in the work directory, or copied there from a source.
//! - *copy*: `tree` is copied to `copy`.
//! - *walk*, *walk_again*: the directories of `tree` are read; *stat*: and every entry's status.
//! - *delete*: all there is is deleted, both trees with their uppermost directories.
//!
//! Operations are entries of the tree. What a phase did is checked after its timed part: it must
//! have met every entry, a new tree must hold what it should, a copy must equal its source, byte by
//! byte, and nothing may be left after a deletion.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Device, Phase, PhaseRecord, Reflink, Tree, TreePhase, Turns};
use fsverdict_core::run::{HostError, Step};
use thiserror::Error;

use super::PathError;
use super::engine::{Act, Done, Engine, OVER, Scene, TimedPart, no_phase};
use super::relay::{self, Relay};
use crate::sys::ChangedRoot;
use crate::tree::{self, Counts, Shape, TreeError, UnderWay};

/// Why it could not be done, or was not what was asked for.
#[derive(Debug, Error)]
enum FileTreeError {
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("{0}")]
    Tree(#[from] TreeError),
    #[error("its turns: {0}")]
    InTurns(#[from] io::Error),
    #[error("{}: found {met} entries instead of {expected}", phase.name())]
    Entries { phase: TreePhase, met: u64, expected: u64 },
    #[error("{} holds {found:?} instead of {expected:?}", path.display())]
    Made { path: PathBuf, found: Counts, expected: Counts },
    #[error("{} differs from {}, first in {}", copy.display(), from.display(), path.display())]
    Copied { copy: PathBuf, from: PathBuf, path: PathBuf },
    #[error("{} lacks the end of {}", copy.display(), from.display())]
    Lacking { copy: PathBuf, from: PathBuf },
    #[error("{} is left after everything was deleted", path.display())]
    Left { path: PathBuf },
}

impl Engine for Tree {
    fn lay_out(&self, scene: &Scene) -> Result<(), HostError> {
        if self.is_filled() {
            lay_out(self, &scene.directory, scene.seed)?;
        }
        Ok(())
    }

    fn prepare<'a>(
        &'a self,
        phase: Phase,
        scene: &'a Scene,
    ) -> Result<Box<dyn TimedPart + 'a>, HostError> {
        let Phase::Tree(pass) = phase else { return Err(no_phase(phase)) };
        let prepared = prepare(self, pass, &scene.directory, scene.seed)?;
        Ok(Box::new(Pass { prepared, relay: scene.relay, devices: scene.devices, done: None }))
    }

    fn dry(&self, step: Step, _scene: &Scene) -> Result<Vec<Act>, HostError> {
        let shown = match &self.source {
            Some(source) => format!("the tree of {source}"),
            None => format!("a tree of {} files in {} directories", self.files, self.directories()),
        };
        Ok(match step {
            Step::Fill if self.is_filled() => vec![Act::Within(shown)],
            Step::Work(Phase::Tree(_)) => {
                vec![Act::Within(format!("{shown}, {} threads", self.threads))]
            }
            Step::Work(phase) => return Err(no_phase(phase)),
            _ => Vec::new(),
        })
    }
}

/// One pass, and what it did.
struct Pass<'a> {
    prepared: Prepared<'a>,
    relay: Option<&'a Relay>,
    devices: &'a [Device],
    done: Option<Done>,
}

impl TimedPart for Pass<'_> {
    fn run(&mut self) -> Result<(), HostError> {
        if self.done.is_some() {
            return Err(OVER.into());
        }
        self.done = Some(self.prepared.run(self.relay, self.devices)?);
        Ok(())
    }

    fn figures(&mut self, record: &mut PhaseRecord) -> Result<(), HostError> {
        self.done.clone().unwrap_or_default().enter(record);
        Ok(self.prepared.check_result()?)
    }
}

/// Makes the tree where that is not to be timed.
fn lay_out(tree: &Tree, directory: &Path, seed: u64) -> Result<(), FileTreeError> {
    let prepared = prepare(tree, TreePhase::Fill, directory, seed)?;
    prepared.run(None, &[])?;
    prepared.check_result()
}

/// One phase, with all it needs to know.
struct Prepared<'a> {
    tree: &'a Tree,
    phase: TreePhase,
    seed: u64,
    directory: PathBuf,
    /// For a tree that is copied there: the real path of its source.
    source: Option<PathBuf>,
    /// For a tree that is generated.
    shape: Option<Shape>,
    /// What is in the tree.
    expected: Counts,
}

/// Makes `phase` of `tree` ready in `directory`. The same seed gives the same tree.
fn prepare<'a>(
    tree: &'a Tree,
    phase: TreePhase,
    directory: &Path,
    seed: u64,
) -> Result<Prepared<'a>, FileTreeError> {
    let shape = tree.source.is_none().then(|| Shape::new(tree, seed));
    let real = |source: &String| {
        fs::canonicalize(source).map_err(PathError::of("find", Path::new(source)))
    };
    let source = tree.source.as_ref().map(real).transpose()?;
    let expected = match (&source, &shape) {
        (Some(source), _) => tree::walk(source, true, tree.threads)?.counts,
        (None, shape) => shape.as_ref().map(Shape::counts).unwrap_or_default(),
    };
    let directory = directory.into();
    let prepared = Prepared { tree, phase, seed, directory, source, shape, expected };
    let made = match phase {
        TreePhase::Fill => Some(prepared.path()),
        TreePhase::Copy => Some(prepared.copy_path()),
        _ => None,
    };
    if let Some(path) = made {
        fs::create_dir(&path).map_err(PathError::of("make", &path))?;
    }
    Ok(prepared)
}

impl Prepared<'_> {
    /// Does it: all at once, or in its turns.
    fn run(&self, relay: Option<&Relay>, devices: &[Device]) -> Result<Done, FileTreeError> {
        let phase = self.phase;
        let expected = match phase {
            TreePhase::Delete => (self.expected.entries() + 1) * self.tree.trees(),
            _ => self.expected.entries(),
        };
        let wrong = PathError::of("open", &self.directory);
        let directory = File::open(&self.directory).map_err(wrong)?;
        let mut under_way = self.under_way()?;
        // What it needs is open; no link leads out of the directory.
        let mut go_on = |until| {
            let _inside = ChangedRoot::enter_if_allowed(directory.as_fd())?;
            under_way.go_on(until)?;
            Ok::<_, FileTreeError>(under_way.entries())
        };
        let turns = match relay {
            None => go_on(tree::TO_THE_END).map(|_| None)?,
            Some(relay) => Some(in_turns(relay, devices, &mut go_on, expected)?),
        };
        let did = under_way.done();
        let met = did.counts.entries();
        if met != expected {
            return Err(FileTreeError::Entries { phase, met, expected });
        }
        let bytes_if = |does| if does { did.counts.bytes } else { 0 };
        let from_source = self.source.is_some();
        let copies = phase == TreePhase::Copy || phase == TreePhase::Fill && from_source;
        let named = |(name, taken)| (format!("{}_{name}", phase.name()), taken);
        Ok(Done {
            operations: Some(met),
            application_read_bytes: bytes_if(copies),
            application_write_bytes: bytes_if(copies || phase == TreePhase::Fill),
            histograms: did.histograms.into_iter().map(named).collect(),
            work_ns: turns.as_ref().map_or(did.work_ns, Turns::all_ns),
            turns,
            ..Done::default()
        })
    }

    fn under_way(&self) -> Result<Box<dyn UnderWay + '_>, TreeError> {
        let (path, threads) = (self.path(), self.tree.threads);
        Ok(match self.phase {
            TreePhase::Fill => self.filling(&path)?,
            TreePhase::Copy => {
                Box::new(tree::copying(&path, &self.copy_path(), self.tree.reflink, threads)?)
            }
            TreePhase::Walk | TreePhase::WalkAgain => {
                Box::new(tree::walking(&path, false, threads)?)
            }
            TreePhase::Stat => Box::new(tree::walking(&path, true, threads)?),
            TreePhase::Delete => Box::new(tree::deleting(&self.directory, threads)?),
        })
    }

    fn filling(&self, path: &Path) -> Result<Box<dyn UnderWay + '_>, TreeError> {
        Ok(match (&self.shape, &self.source) {
            (None, Some(source)) => {
                // The source lies on another file system: there is nothing to share.
                Box::new(tree::copying(source, path, Reflink::Never, self.tree.threads)?)
            }
            (Some(shape), _) => Box::new(tree::generating(self.tree, shape, path, self.seed)?),
            (None, None) => unreachable!("a tree without a source has a shape"),
        })
    }

    /// Whether what it did is what it should have done; not part of the time.
    fn check_result(&self) -> Result<(), FileTreeError> {
        let path = self.path();
        match (self.phase, &self.source) {
            (TreePhase::Fill, None) => {
                let (found, expected) = (tree::walk(&path, true, 1)?.counts, self.expected);
                match found == expected {
                    true => Ok(()),
                    false => Err(FileTreeError::Made { path, found, expected }),
                }
            }
            (TreePhase::Fill, Some(source)) => same(source, &path),
            (TreePhase::Copy, _) => same(&path, &self.copy_path()),
            (TreePhase::Delete, _) => self.check_nothing_left(),
            (TreePhase::Walk | TreePhase::WalkAgain | TreePhase::Stat, _) => Ok(()),
        }
    }

    fn check_nothing_left(&self) -> Result<(), FileTreeError> {
        let wrong = |source| PathError::of("read", &self.directory)(source);
        match fs::read_dir(&self.directory).map_err(wrong)?.next() {
            Some(entry) => Err(FileTreeError::Left { path: entry.map_err(wrong)?.path() }),
            None => Ok(()),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join("tree")
    }

    fn copy_path(&self) -> PathBuf {
        self.directory.join("copy")
    }
}

/// Goes over so many entries, a share of them in each turn. A directory is not divided, so that a
/// turn may have more than its share, and later ones less.
fn in_turns(
    relay: &Relay,
    devices: &[Device],
    go_on: &mut dyn FnMut(u64) -> Result<u64, FileTreeError>,
    entries: u64,
) -> Result<Turns, FileTreeError> {
    let turns = relay::shares(entries);
    let (mut operations, mut before) = (Vec::new(), 0);
    relay.share_out(turns, devices, |turn| {
        let is_last = turn + 1 == turns;
        let share = entries * (u64::from(turn) + 1) / u64::from(turns);
        let now = go_on(if is_last { tree::TO_THE_END } else { share })?;
        operations.push(now - before);
        before = now;
        Ok::<_, FileTreeError>(())
    })?;
    Ok(relay.taken().turns.of_whole_cycles(operations))
}

/// An error unless `copy` is `from`, byte by byte.
fn same(from: &Path, copy: &Path) -> Result<(), FileTreeError> {
    let (from_path, copy_path) = (from.into(), copy.into());
    match tree::compare(from, copy)? {
        None => Ok(()),
        Some(tree::Difference { path }) if path.as_os_str().is_empty() => {
            Err(FileTreeError::Lacking { copy: copy_path, from: from_path })
        }
        Some(tree::Difference { path }) => {
            Err(FileTreeError::Copied { copy: copy_path, from: from_path, path })
        }
    }
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::{Bytes, Histogram};

    use super::*;

    fn tree() -> Tree {
        let mean_size = Some(Bytes(2000));
        Tree {
            files: 400,
            mean_size,
            threads: 2,
            hard_links: "5%".parse().unwrap(),
            ..Tree::default()
        }
    }

    fn phase(tree: &Tree, phase: TreePhase, directory: &Path) -> Result<Done, FileTreeError> {
        let prepared = prepare(tree, phase, directory, 5)?;
        let done = prepared.run(None, &[])?;
        prepared.check_result()?;
        Ok(done)
    }

    #[test]
    fn every_phase_meets_every_entry_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let tree = tree();
        for pass in TreePhase::ALL {
            let done = phase(&tree, pass, dir.path()).unwrap();
            assert_eq!(done.operations, Some(tree.entries(pass)), "{pass:?}");
            let stat = done.histograms.get("stat_stat").map(Histogram::count);
            assert_eq!(stat, (pass == TreePhase::Stat).then_some(439));
            let bytes = [done.application_read_bytes, done.application_write_bytes];
            let moved = bytes.map(|bytes| bytes > 700_000);
            let fill = pass == TreePhase::Fill;
            assert_eq!(moved, [pass == TreePhase::Copy, fill || pass == TreePhase::Copy]);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_real_directory_is_a_source() {
        let [source, dir] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::create_dir_all(source.path().join("a/b")).unwrap();
        fs::write(source.path().join("a/b/file"), [7; 5000]).unwrap();
        let source = Some(source.path().display().to_string());
        let tree = Tree { source, ..tree() };
        for pass in TreePhase::ALL {
            let done = phase(&tree, pass, dir.path()).unwrap();
            let expected = if pass == TreePhase::Delete { 8 } else { 3 };
            assert_eq!(done.operations, Some(expected), "{pass:?}");
        }
    }

    #[test]
    fn a_wrong_result_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let told = |pass| phase(&tree(), pass, dir.path()).unwrap_err().to_string();
        let shown = dir.path().join("tree").display().to_string();
        phase(&tree(), TreePhase::Fill, dir.path()).unwrap();
        fs::write(dir.path().join("tree/more"), "").unwrap();
        assert_eq!(told(TreePhase::Walk), "walk: found 440 entries instead of 439");
        fs::remove_file(dir.path().join("tree/more")).unwrap();
        let tree = tree();
        let prepared = prepare(&tree, TreePhase::Copy, dir.path(), 5).unwrap();
        prepared.run(None, &[]).unwrap();
        fs::write(dir.path().join("copy/zz"), "").unwrap();
        let wrong = prepared.check_result().unwrap_err().to_string();
        let copy = dir.path().join("copy").display().to_string();
        assert!(wrong.starts_with(&format!("{copy} differs from {shown}, first in ")), "{wrong}");
        assert!(told(TreePhase::Fill).starts_with(&format!("make {shown}: File exists")));
    }
}
