//! The cache of the kernel's own ZFS, the ARC: `arcstats`, a line of name, type and value for each
//! counter (OpenZFS, module/os/linux/spl/spl-kstat.c). It is read before the work and after it, and
//! not meanwhile: the kernel adds up counters of all processors for it.

use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::ArcTotals;

const FILE: &str = "proc/spl/kstat/zfs/arcstats";

/// What there is to read.
#[derive(Debug)]
pub(super) struct ArcReader(PathBuf);

impl ArcReader {
    /// `None` where no ZFS is loaded.
    pub fn open(root: &Path) -> Option<ArcReader> {
        Some(ArcReader(root.join(FILE))).filter(|reader| reader.0.exists())
    }

    /// The counters; `None` where one is missing.
    pub fn read(&self) -> Option<ArcTotals> {
        let text = fs::read_to_string(&self.0).ok()?;
        let value = |name: &str| {
            let mut words = text.lines().map(str::split_whitespace);
            words.find_map(|mut it| (it.next()? == name).then(|| it.nth(1)?.parse().ok())?)
        };
        Some(ArcTotals {
            hits: value("hits")?,
            misses: value("misses")?,
            max_bytes: value("c_max")?,
        })
    }
}

/// What came about between `first` and `last`.
pub(super) fn since(last: &ArcTotals, first: &ArcTotals) -> ArcTotals {
    ArcTotals {
        hits: last.hits.saturating_sub(first.hits),
        misses: last.misses.saturating_sub(first.misses),
        max_bytes: last.max_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 2.3.9 writes it.
    const ARCSTATS: &str = "\
19 1 0x01 148 40256 5549831840 12568281460
name                            type data
hits                            4    4558
iohits                          4    2
misses                          4    41
demand_data_hits                4    7
c_max                           4    718612480
memory_available_bytes          3    929999360
";

    #[test]
    fn the_cache_is_read_where_there_is_one() {
        let root = tempfile::tempdir().unwrap();
        assert!(ArcReader::open(root.path()).is_none());
        let path = root.path().join(FILE);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, ARCSTATS).unwrap();
        let reader = ArcReader::open(root.path()).unwrap();
        let first = reader.read().unwrap();
        let all = ArcTotals { hits: 4558, misses: 41, max_bytes: 718_612_480 };
        assert_eq!(first, all);
        fs::write(&path, ARCSTATS.replace("4558", "4600")).unwrap();
        let passed = since(&reader.read().unwrap(), &first);
        assert_eq!((passed.hits, passed.misses, passed.max_bytes), (42, 0, all.max_bytes));
        fs::write(&path, "name type data\nhits 4 1\n").unwrap();
        assert_eq!(reader.read(), None);
    }
}
