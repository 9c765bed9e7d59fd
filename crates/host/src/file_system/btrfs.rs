//! Btrfs: mkfs.btrfs(8), btrfs(5).

use super::FileSystem;

pub(super) const BTRFS: FileSystem = FileSystem {
    name: "btrfs",
    mkfs: "mkfs.btrfs",
    takes_several: true,
    options: |users| super::then(&["-q", "-f", "-K"], users),
    // Since Linux 6.2 discard=async is the default on devices that can discard, and a loop device
    // can: it would punch holes into the image that the next trial has to allocate again.
    no_discard: &["nodiscard"],
    version: &["--version"],
};
