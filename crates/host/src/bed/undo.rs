//! The undoing of each change that a bed makes, as a value that a journal can hold.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{BedError, failed};
use super::{loop_device, own, ram};
use crate::machine::settings::{self, Change};
use crate::machine::token::Token;

/// Takes one change back. Told before the change is made, so that a run that is killed at any
/// point can be cleared away; play them back last to first. There is nothing in it but what
/// fsverdict makes, and each is looked at before it is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo", deny_unknown_fields)]
pub enum Undo {
    /// Removes a folder of our own, with all that is in it.
    Folder {
        /// The folder in which it is, as an absolute path without links.
        parent: PathBuf,
        /// The token in its name.
        folder: Token,
    },
    /// Detaches the loop devices upon images in our folder, and those upon such a device,
    /// whatever their numbers.
    DetachLoop {
        /// The token in the folder's name.
        folder: Token,
    },
    /// Has a device say of itself again what it did before.
    Queue {
        /// For a loop device of ours its number, and the token in the name of the folder with its
        /// image, or of the run: by now it may be another's.
        image: Option<(u32, Token)>,
        /// What was changed.
        changes: Vec<Change>,
    },
    /// Removes a zram device, and a loop device upon it.
    RemoveZram {
        /// The number of the device.
        number: u32,
        /// The start of the machine it was made in: it did not outlive that, and the number may
        /// since belong to somebody's swap.
        boot: String,
        /// Which disk it is, once it is made. Before, only its expected number is known, and a disk
        /// with a size is not it.
        sequence: Option<u64>,
    },
}

impl Undo {
    /// The undo of `changes`. A loop device gets a new disk sequence when it is detached, also when
    /// its run is killed (drivers/block/loop.c, `__loop_clr_fd`, `disk_force_media_change`), and
    /// keeps its settings. So the sequence can't tell which it was.
    pub fn queue(image: Option<(u32, Token)>, mut changes: Vec<Change>) -> Undo {
        if image.is_some() {
            changes.iter_mut().for_each(|it| it.disk = None);
        }
        Undo::Queue { image, changes }
    }

    /// Takes the change back. One that was never made, or is undone already, is no error.
    pub fn apply(&self) -> Result<(), BedError> {
        match self {
            Undo::Folder { parent, folder } => {
                let path = || parent.join(own::name(folder)).display().to_string();
                let removed = own::remove(parent, folder);
                match removed.map_err(failed(|| format!("removing {}", path())))? {
                    // What has that name now and no mark of ours is somebody else's.
                    own::Removal::Gone | own::Removal::Foreign => Ok(()),
                    own::Removal::Alive => Err(BedError::Held { device: path() }),
                }
            }
            Undo::DetachLoop { folder } => loop_device::detach_all(folder),
            Undo::Queue { image, changes } => {
                let is_others = |(number, folder): &(u32, Token)| {
                    !loop_device::is_nobody_elses(*number, folder)
                };
                match image.as_ref().is_some_and(is_others) {
                    true => Ok(()),
                    false => put_back(changes),
                }
            }
            Undo::RemoveZram { number, boot, sequence } => {
                let now = ram::boot().map_err(failed(|| "reading the boot id"))?;
                match *boot == now && ram::is_ours(*number, *sequence) {
                    true => loop_device::detach_upon(&ram::node(*number))
                        .and_then(|()| ram::remove_zram(*number)),
                    false => Ok(()),
                }
            }
        }
    }
}

/// Puts back what still is as we set it.
pub(super) fn put_back(changes: &[Change]) -> Result<(), BedError> {
    let mut errors = settings::put_back(Path::new("/"), changes).into_iter().map(BedError::Setting);
    errors.next().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_done_is_undone_twice() {
        let dir = tempfile::TempDir::new().unwrap();
        let (folder, parent) = (Token::random().unwrap(), dir.path().canonicalize().unwrap());
        let boot = "an earlier one".into();
        let zram = Undo::RemoveZram { number: 0, boot, sequence: None };
        let detach = Undo::DetachLoop { folder: folder.clone() };
        for undo in [Undo::Folder { parent, folder }, detach, zram] {
            undo.apply().unwrap();
            undo.apply().unwrap();
        }
    }

    #[test]
    fn an_undo_survives_writing_and_reading() {
        let undo = Undo::DetachLoop { folder: Token::parse("0123456789abcdef").unwrap() };
        let text = serde_json::to_string(&undo).unwrap();
        assert_eq!(text, r#"{"undo":"detach_loop","folder":"0123456789abcdef"}"#);
        assert_eq!(serde_json::from_str::<Undo>(&text).unwrap(), undo);
    }
}
