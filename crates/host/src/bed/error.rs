//! What goes wrong with beds.

use std::io;
use std::path::PathBuf;

use fsverdict_core::model::Bytes;
use thiserror::Error;

use super::margin::needed;
use super::refusal::Refusal;
use crate::machine::settings::SettingError;

/// A bed that could not be made or cleared away.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum BedError {
    #[error(
        "{} has {} free, the image needs {}: choose another --dir, a smaller --size or, \
         for a study, a smaller --scale",
        folder.display(), Bytes(*free_bytes).rounded(), needed(*size_bytes)
    )]
    Space { folder: PathBuf, free_bytes: u64, size_bytes: u64 },
    #[error(
        "the machine has {} of memory to spare, the bed needs {}: choose a smaller --size or \
         --bed loop",
        Bytes(*free_bytes).rounded(), needed(*size_bytes)
    )]
    Memory { free_bytes: u64, size_bytes: u64 },
    #[error("an image of {size_bytes} bytes: its size must be a multiple of 4 KiB")]
    Size { size_bytes: u64 },
    #[error("this kernel has no zram (modprobe zram): leave it out for a loop device on tmpfs")]
    NoZram,
    #[error(
        "like = {path:?}: no disk is there (lsblk shows those of this machine): name one, or write \
         nvme, ssd, hdd or virtio"
    )]
    NoLike { path: String },
    #[error(
        "like = {path:?}: a zoned disk, which no image can imitate: measure on it, with --bed \
         device:{path}"
    )]
    Zoned { path: String },
    #[error(transparent)]
    Setting(SettingError),
    #[error("{what}: {source}{}", rights(source))]
    Io { what: String, source: io::Error },
    #[error("{device} is still held: something has it mounted or open (see lsof {device})")]
    Held { device: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{}", listed(.0))]
    Several(Vec<BedError>),
    #[error("{cause}; clearing up failed too: {cleanup}")]
    Cleanup { cause: Box<BedError>, cleanup: Box<BedError> },
}

impl BedError {
    /// Something of the bed that could not be made is still there.
    pub fn is_half_made(&self) -> bool {
        matches!(self, BedError::Cleanup { .. })
    }

    /// This error, and that of clearing up after it if there was one.
    pub(super) fn after(self, cleanup: Result<(), BedError>) -> BedError {
        match cleanup {
            Ok(()) => self,
            Err(cleanup) => BedError::Cleanup { cause: self.into(), cleanup: cleanup.into() },
        }
    }
}

/// What was tried, for an error of the system.
pub(super) fn failed<T: Into<String>>(
    what: impl FnOnce() -> T,
) -> impl FnOnce(io::Error) -> BedError {
    |source| BedError::Io { what: what().into(), source }
}

fn rights(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied { " (this bed needs root)" } else { "" }
}

fn listed(errors: &[BedError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
