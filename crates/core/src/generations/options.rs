//! A file system's options, as far as they decide what an fsync writes.

use super::{INODE_BYTES, Unmodelled};

/// How the file system was made and mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a block.
    pub(super) block_bytes: u64,
    /// Blocks are allocated when they are written, not by write(2).
    pub(super) delays_allocation: bool,
    /// A commit has data reach the disk before what points to it.
    pub(super) orders_data: bool,
    /// Metadata have checksums, and the journal's blocks, too.
    pub(super) has_checksums: bool,
    /// Numbers of blocks have 64 bits, in the journal, too (fs/ext4/super.c, `ext4_load_journal`).
    pub(super) has_64_bits: bool,
    /// It may commit what has changed of inodes in place of blocks.
    pub(super) fast_commits: bool,
}

impl Options {
    /// From mount options between commas, and options of mkfs between blanks. Blocks have 4 KiB,
    /// as mke2fs makes them from 512 MiB on.
    pub fn of(mount: &str, mkfs: &str) -> Result<Options, Unmodelled> {
        let mut options = Options {
            block_bytes: 4096,
            delays_allocation: true,
            orders_data: true,
            has_checksums: true,
            has_64_bits: true,
            fast_commits: false,
        };
        for option in mount.split(',').filter(|option| !option.is_empty()) {
            match option {
                "delalloc" => options.delays_allocation = true,
                "nodelalloc" => options.delays_allocation = false,
                "data=ordered" => options.orders_data = true,
                "data=writeback" => options.orders_data = false,
                // There is no timer in the model.
                timer if timer.starts_with("commit=") => {}
                other => return Err(Unmodelled::Mount(other.into())),
            }
        }
        let mut words = mkfs.split_whitespace();
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_default();
            let unknown = || Unmodelled::Mkfs(format!("{word} {value}").trim().into());
            match word {
                "-b" => options.block_bytes = block_bytes(value).ok_or_else(unknown)?,
                "-O" => value.split(',').try_for_each(|it| options.feature(it))?,
                _ => return Err(unknown()),
            }
        }
        Ok(options)
    }

    fn feature(&mut self, feature: &str) -> Result<(), Unmodelled> {
        let (name, is_on) = match feature.strip_prefix('^') {
            Some(name) => (name, false),
            None => (feature, true),
        };
        match name {
            "fast_commit" => self.fast_commits = is_on,
            "metadata_csum" => self.has_checksums = is_on,
            // It makes descriptors of groups longer, too, and no more blocks of them.
            "64bit" => self.has_64_bits = is_on,
            _ => return Err(Unmodelled::Mkfs(feature.into())),
        }
        Ok(())
    }
}

/// mke2fs(8), `-b`: a power of two.
fn block_bytes(text: &str) -> Option<u64> {
    let bytes: u64 = text.parse().ok()?;
    let is_size = bytes.is_power_of_two() && (1024..=65536).contains(&bytes);
    (is_size && bytes >= INODE_BYTES).then_some(bytes)
}
