//! Pages that reads looked up in the page cache, and those that were not there.
//!
//! The kernel says at three tracepoints what happens (include/trace/events/filemap.h and
//! writeback.h; `mm_filemap_get_pages` is there since Linux 6.13): a read has got its pages, a page
//! was added, a page was made dirty. A small program at each counts within the kernel: events that
//! go through a buffer cost more, and get lost. The programs are ours alone, see only the file
//! system under test, and end with the process that loaded them.
//!
//! METHODOLOGY.md says what is counted; [`program`] how.

#[cfg(test)]
mod loop_tests;
mod program;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use fsverdict_core::model::PageCacheTotals;
use thiserror::Error;

use super::ProbeError;
use super::btf::{Btf, TYPES};
use crate::machine::alone::Alone;
use crate::sys::{self, MapKind};
use program::Target;

/// The processors that may ever be there: `0-3` (Documentation/admin-guide/cputopology.rst).
const POSSIBLE: &str = "sys/devices/system/cpu/possible";

/// How many threads have an entry. If more read at once, some of their reads are taken for new
/// ones.
const THREADS: u32 = 16_384;

const COUNTS_WORDS: usize = program::COUNTS_BYTES as usize / 8;

/// Why pages can't be counted.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PageCacheError {
    #[error("the kernel does not describe its types: /{TYPES}: {0}")]
    Types(io::Error),
    #[error("this kernel has no {0}")]
    Missing(&'static str),
    #[error("the kernel takes no programs for its tracepoints: {0}")]
    Refused(io::Error),
}

/// Where the kernel keeps what the programs read, and the numbers of the tracepoints.
#[derive(Debug, PartialEq)]
struct Layout {
    mapping_host: i16,
    inode_mode: i16,
    inode_size: i16,
    inode_super: i16,
    inode_number: i16,
    super_device: i16,
    folio_mapping: i16,
    folio_index: i16,
    folio_flags: i16,
    /// The lowest byte holds the order of a folio with several pages; `large_bit` of the flags
    /// tells whether it has several.
    folio_order: i16,
    large_bit: u32,
    added: u32,
    dirtied: u32,
    looked_up: u32,
}

impl Layout {
    /// The running kernel's, if it has the tracepoints.
    fn read(root: &Path) -> Result<Layout, PageCacheError> {
        const ADDED: &str = "btf_trace_mm_filemap_add_to_page_cache";
        const DIRTIED: &str = "btf_trace_writeback_dirty_folio";
        const LOOKED_UP: &str = "btf_trace_mm_filemap_get_pages";
        let structures = ["address_space", "inode", "super_block", "folio", "pageflags"];
        let wanted = [&structures[..], &[ADDED, DIRTIED, LOOKED_UP]].concat();
        let data = fs::read(root.join(TYPES)).map_err(PageCacheError::Types)?;
        let btf = Btf::parse(data, &wanted).ok_or(PageCacheError::Missing("readable BTF"))?;
        let tracepoint = |name, what| btf.typedef(name).ok_or(PageCacheError::Missing(what));
        let offset = |structure, member| {
            let missing = PageCacheError::Missing("page cache as this program knows it");
            btf.offset(structure, member).ok_or(missing)
        };
        Ok(Layout {
            looked_up: tracepoint(
                LOOKED_UP,
                "tracepoint mm_filemap_get_pages, which is there since Linux 6.13",
            )?,
            added: tracepoint(ADDED, "tracepoint mm_filemap_add_to_page_cache")?,
            dirtied: tracepoint(DIRTIED, "tracepoint writeback_dirty_folio")?,
            mapping_host: offset("address_space", "host")?,
            inode_mode: offset("inode", "i_mode")?,
            inode_size: offset("inode", "i_size")?,
            inode_super: offset("inode", "i_sb")?,
            inode_number: offset("inode", "i_ino")?,
            super_device: offset("super_block", "s_dev")?,
            folio_index: offset("folio", "index")?,
            folio_mapping: offset("folio", "mapping")?,
            folio_flags: offset("folio", "flags")?,
            folio_order: offset("folio", "_flags_1")?,
            large_bit: btf
                .value("pageflags", "PG_head")
                .ok_or(PageCacheError::Missing("folios of several pages"))?,
        })
    }
}

/// The programs at work for one file system. Clones count the same.
#[derive(Clone, Debug)]
pub struct PageCache {
    loaded: Arc<Loaded>,
    /// Room for the counts of every processor.
    counts: Vec<u64>,
}

#[derive(Debug)]
struct Loaded {
    counts: OwnedFd,
    _threads: OwnedFd,
    /// Emptied when nobody counts any more.
    programs: Vec<(OwnedFd, OwnedFd)>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _alone = Alone::to_patch();
        self.programs.clear();
    }
}

impl PageCache {
    /// Begins to count reads of the file system with this number, as mountinfo has it
    /// (proc_pid_mountinfo(5)). Takes some 20 ms. Fails where the kernel has no such tracepoints,
    /// and without root.
    pub fn watch(root: &Path, [major, minor]: [u32; 2]) -> Result<PageCache, PageCacheError> {
        let layout = Layout::read(root)?;
        let refused = PageCacheError::Refused;
        let threads = sys::bpf_map(MapKind::LruHash, program::THREAD_BYTES, THREADS);
        let threads = threads.map_err(refused)?;
        let counts = sys::bpf_map(MapKind::PerCpuArray, program::COUNTS_BYTES, 1);
        let counts = counts.map_err(refused)?;
        let target = Target {
            layout: &layout,
            device: major << 20 | minor,
            page_shift: sys::page_bytes().trailing_zeros(),
            threads: threads.as_raw_fd(),
            counts: counts.as_raw_fd(),
        };
        let attach = |code: &[u64], id| sys::bpf_attach(code, id).map_err(refused);
        let processors = processors(root).map_err(refused)?;
        let alone = Alone::to_patch();
        let programs = vec![
            attach(&program::added(&target), layout.added)?,
            attach(&program::dirtied(&target), layout.dirtied)?,
            attach(&program::looked_up(&target), layout.looked_up)?,
        ];
        drop(alone);
        let loaded = Arc::new(Loaded { counts, _threads: threads, programs });
        Ok(PageCache { loaded, counts: vec![0; processors * COUNTS_WORDS] })
    }

    /// Pages since [`PageCache::watch`].
    pub fn read(&mut self) -> Result<PageCacheTotals, ProbeError> {
        let processors = self.counts.len() / COUNTS_WORDS;
        let counts = &mut self.counts;
        sys::bpf_lookup_each(&self.loaded.counts, 0, counts, COUNTS_WORDS, processors)
            .map_err(ProbeError::PageCache)?;
        let sum = |word| counts.iter().skip(word).step_by(COUNTS_WORDS).sum();
        Ok(PageCacheTotals { looked_up: sum(0), missed: sum(1) })
    }
}

/// What passed between two readings.
pub(super) fn since(last: &PageCacheTotals, first: &PageCacheTotals) -> PageCacheTotals {
    PageCacheTotals {
        looked_up: last.looked_up.saturating_sub(first.looked_up),
        missed: last.missed.saturating_sub(first.missed),
    }
}

pub(super) fn processors(root: &Path) -> io::Result<usize> {
    let text = fs::read_to_string(root.join(POSSIBLE))?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::Error::other(format!("/{POSSIBLE} has no numbers")))
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    #[test]
    fn processors_are_counted_up_to_the_last_possible_one() {
        for (text, expected) in [("0\n", 1), ("0-3\n", 4), ("0,2-15\n", 16)] {
            assert_eq!(processors(fake::tree(&[(POSSIBLE, text)]).path()).unwrap(), expected);
        }
        assert!(processors(fake::tree(&[(POSSIBLE, "\n")]).path()).is_err());
    }

    #[test]
    fn a_kernel_without_types_is_told() {
        let error = PageCache::watch(Path::new("/nonexistent"), [7, 0]).unwrap_err().to_string();
        assert!(
            error.starts_with("the kernel does not describe its types: /sys/kernel"),
            "{error}"
        );
        let tree = fake::tree(&[(TYPES, "nothing of the kind")]);
        let error = PageCache::watch(tree.path(), [7, 0]).unwrap_err().to_string();
        assert_eq!(error, "this kernel has no readable BTF");
    }
}
