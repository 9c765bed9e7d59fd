//! A disk of the user's, held from the guard's check to the end of the run.
//!
//! Between trials it is claimed exclusively, so that neither mkfs nor a mount gets it, and locked
//! as programs that partition lock a disk (flock(2); systemd's "Locking Block Device Access"). A
//! trial's own mkfs and mount need the claim, and the file system's tools may wait for udev, which
//! leaves a locked disk alone: then a shared lock remains, which udev ignores. Locks of our own
//! keep other runs away all the time, also from parts of the disk: an open partition could not be
//! removed.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use fsverdict_core::model::Device;

use super::block::Block;
use super::identity::Identity;
use super::loop_device::wait_for;
use super::refusal::Refusal;
use crate::machine::registry;

/// How long a lock is waited for: udev has one while it looks at a disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// A disk that may be erased, and that nobody else can get meanwhile.
#[derive(Debug)]
pub struct Hold {
    /// As it was typed.
    path: String,
    device: Device,
    identity: Identity,
    /// None during a trial.
    exclusive: Option<File>,
    node: File,
    /// Never read: locks against other runs, on it and on the disk that it is a part of.
    _ours: Vec<File>,
}

impl Hold {
    pub(super) fn take(path: &str, block: &Block) -> Result<Hold, Refusal> {
        let another = || Refusal::AnotherRun { path: path.into() };
        let own = ours(path, block)?;
        lock(|| own.try_lock(), another)?;
        let whole = block.whole().map(|disk| ours(path, &disk)).transpose()?;
        // Other parts of it may be another run's.
        whole.iter().try_for_each(|disk| lock(|| disk.try_lock_shared(), another))?;
        let exclusive = Some(claimed(path, &block.node)?);
        let node = open(path, &block.node, 0)?;
        lock(|| node.try_lock(), locked(path))?;
        let (device, identity) = (block.device(), block.identity());
        let _ours = std::iter::once(own).chain(whole).collect();
        Ok(Hold { path: path.into(), device, identity, exclusive, node, _ours })
    }

    /// The disk.
    pub fn device(&self) -> Device {
        self.device.clone()
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn file(&self) -> &File {
        &self.node
    }

    /// Leaves the disk to a trial.
    pub(super) fn lend(&mut self) -> Result<(), Refusal> {
        assert!(self.exclusive.is_some(), "{}: only a disk that is held is lent", self.path);
        lock(|| self.node.try_lock_shared(), locked(&self.path))?;
        self.exclusive = None;
        Ok(())
    }

    /// It still stands at its path.
    pub(super) fn check_same(&self) -> Result<(), Refusal> {
        match Identity::of(&self.device).as_ref() == Some(&self.identity) {
            true => Ok(()),
            false => Err(Refusal::Changed { path: self.path.clone() }),
        }
    }

    /// Takes it again, if it is the same.
    pub(super) fn take_back(&mut self) -> Result<(), Refusal> {
        self.check_same()?;
        if self.exclusive.is_none() {
            self.exclusive = Some(claimed(&self.path, &self.device.path)?);
        }
        lock(|| self.node.try_lock(), locked(&self.path))
    }
}

/// Opens the device as mkfs would. For a block device O_EXCL fails with EBUSY while the kernel
/// holds it or a part of it (open(2)), in any mount namespace.
pub(super) fn claim(path: &str, node: &str) -> Result<File, Refusal> {
    open(path, node, libc::O_EXCL)
}

/// [`claim`], once a brief holder has let go: udev starts tools that look for arrays and volumes.
fn claimed(path: &str, node: &str) -> Result<File, Refusal> {
    let mut claimed = claim(path, node);
    let _ = wait_for(PATIENCE, || {
        if matches!(claimed, Err(Refusal::Busy { .. })) {
            claimed = claim(path, node);
        }
        !matches!(claimed, Err(Refusal::Busy { .. }))
    });
    claimed
}

fn open(path: &str, node: &str, flags: i32) -> Result<File, Refusal> {
    let path = path.to_string();
    OpenOptions::new().read(true).custom_flags(flags).open(node).map_err(|source| {
        match source.raw_os_error() {
            Some(libc::EBUSY) => Refusal::Busy { path },
            _ => Refusal::Unreadable { path, source },
        }
    })
}

/// What stands for the device among runs.
fn ours(path: &str, block: &Block) -> Result<File, Refusal> {
    let [major, minor] = block.number;
    let unreadable = |source| Refusal::Unreadable { path: path.into(), source };
    registry::lock_file(&format!("disk-{major}:{minor}.lock")).map_err(unreadable)
}

fn lock(
    try_lock: impl Fn() -> Result<(), std::fs::TryLockError>,
    refusal: impl FnOnce() -> Refusal,
) -> Result<(), Refusal> {
    wait_for(PATIENCE, || try_lock().is_ok()).map_err(|()| refusal())
}

fn locked(path: &str) -> impl FnOnce() -> Refusal {
    move || Refusal::Locked { path: path.into() }
}
