//! What takes back each change that a bed makes, as a value that a journal can hold.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{BedError, image, loop_device, ram};
use crate::bed::failed;

/// Takes one change back. Told before the change is made, so that a run that is killed at any
/// point can be cleared away; play them back last to first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo")]
pub enum Undo {
    /// Removes an image file.
    RemoveImage {
        /// The file; it did not exist before.
        path: PathBuf,
    },
    /// Detaches the loop devices upon that file, whatever their numbers.
    DetachLoop {
        /// The file behind them, as an absolute path without links.
        path: PathBuf,
    },
    /// Removes a zram device.
    RemoveZram {
        /// The number of the device.
        number: u32,
        /// The start of the machine it was made in: it did not outlive that, and the number may
        /// since belong to somebody's swap.
        boot: String,
    },
}

impl Undo {
    /// Takes the change back. One that was never made, or is undone already, is no error.
    pub fn apply(&self) -> Result<(), BedError> {
        match self {
            Undo::RemoveImage { path } => image::remove(path),
            Undo::DetachLoop { path } => loop_device::detach_all(path),
            Undo::RemoveZram { number, boot } => {
                let now = ram::boot().map_err(failed(|| "reading the boot id"))?;
                if *boot == now { ram::remove_zram(*number) } else { Ok(()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_done_is_undone_twice() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("image");
        let zram = Undo::RemoveZram { number: 0, boot: "an earlier one".into() };
        for undo in [Undo::RemoveImage { path: path.clone() }, Undo::DetachLoop { path }, zram] {
            undo.apply().unwrap();
            undo.apply().unwrap();
        }
    }

    #[test]
    fn an_undo_survives_writing_and_reading() {
        let undo = Undo::DetachLoop { path: "/run/a.img".into() };
        let text = serde_json::to_string(&undo).unwrap();
        assert_eq!(text, r#"{"undo":"detach_loop","path":"/run/a.img"}"#);
        assert_eq!(serde_json::from_str::<Undo>(&text).unwrap(), undo);
    }
}
