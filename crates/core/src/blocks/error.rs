//! Why there is no map of a device.

use std::io;

use thiserror::Error;

/// Why the blocks of a device can't be told apart.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the device can't be read at byte {offset}: {error}")]
    Read { offset: u64, error: io::Error },
    #[error(
        "no file system that can be read was found: name one with ext2, ext3, ext4, XFS, Btrfs or \
         ZFS"
    )]
    NoFileSystem,
    #[error("the {file_system} superblock is damaged: {what}; let its fsck look at it")]
    Damaged { file_system: &'static str, what: &'static str },
    #[error("this {file_system} can't be read: {why}")]
    Unsupported { file_system: &'static str, why: String },
}
