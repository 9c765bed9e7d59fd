//! XFS: mkfs.xfs(8), xfs(5).

use super::FileSystem;

pub(super) const XFS: FileSystem = FileSystem {
    name: "xfs",
    mkfs: "mkfs.xfs",
    takes_several: false,
    options: |users| super::then(&["-q", "-f", "-K"], users),
    no_discard: &[],
    version: &["-V"],
};
