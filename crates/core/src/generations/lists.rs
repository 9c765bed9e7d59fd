//! The files whose data a commit writes: those on its transaction's list (`t_inode_list`), before
//! anything goes into the journal (fs/jbd2/commit.c, `journal_submit_data_buffers`). What puts a
//! file there has changed twice.
//!
//! What a commit writes of a file on the list has changed, too: all of its dirty pages; from Linux
//! 4.7 on nothing of a file whose delayed blocks were just allocated by writeback, because that has
//! written them ("ext4: do not ask jbd2 to write data for delalloc buffers"); from 5.3 on only the
//! bytes that were listed ("jbd2: introduce jbd2_inode dirty range scoping"). Here a file has one
//! dirty piece, so that these do not differ. It does not matter either that with delayed allocation
//! blocks are allocated as unwritten, since 5.6 by default (244adf6426ee, "ext4: make
//! dioread_nolock the default"): such files are not listed, and need not be, because the fsync has
//! written the only one.

use super::Modelled;
use super::version::Version;
use crate::model::FsyncCase;

/// "ext4: remove calls to ext4_jbd2_file_inode() from delalloc write path".
const WITHOUT_DELAYED: Version = Version::new(3, 8, 0);
/// "ext4: fix data exposure after a crash": a file is listed by `ext4_map_blocks` alone, when it
/// has new blocks whose content will be seen.
const BY_ALLOCATION: Version = Version::new(4, 6, 2);

/// Whether each write(2) has put its file on the list. The one that is synced does not matter: its
/// data are on the disk already.
pub fn has_written_files(modelled: &Modelled) -> bool {
    let Modelled { version, options, case, .. } = modelled;
    // `ext4_should_order_data`.
    if !options.orders_data {
        return false;
    }
    match options.delays_allocation {
        // `ext4_da_write_end`, "Updating i_disksize when extending file without needing block
        // allocation".
        true => *version < WITHOUT_DELAYED && *case == FsyncCase::Extending,
        // `ext4_ordered_write_end`, later `ext4_write_end` (EXT4_STATE_ORDERED_MODE).
        false if *version < BY_ALLOCATION => true,
        false => *case == FsyncCase::Allocating,
    }
}
