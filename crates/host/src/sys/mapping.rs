//! The device mapper.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;

/// include/uapi/linux/dm-ioctl.h.
const DM_DEV_REMOVE: u64 = 0xC138_FD04;
const CONTROL: &str = "/dev/mapper/control";

#[repr(C)]
struct DmIoctl {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_number: u32,
    padding: u32,
    device: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
}

const SIZE: usize = mem::size_of::<DmIoctl>();
const _: () = assert!(SIZE == 312);

/// Removes the mapping of that name; one that is not there is no error. No udev is waited for:
/// there is no cookie (`dm_kobject_uevent` in drivers/md/dm.c).
pub fn remove_mapping(name: &str) -> io::Result<()> {
    let mut request = DmIoctl {
        version: [4, 0, 0],
        data_size: SIZE as u32,
        data_start: SIZE as u32,
        target_count: 0,
        open_count: 0,
        flags: 0,
        event_number: 0,
        padding: 0,
        device: 0,
        name: [0; 128],
        uuid: [0; 129],
        data: [0; 7],
    };
    let length = name.len();
    if length >= request.name.len() || name.bytes().any(|byte| byte == 0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.name[..length].copy_from_slice(name.as_bytes());
    let control = File::options().read(true).write(true).open(CONTROL)?;
    // SAFETY: the kernel reads and writes `data_size` bytes, which is the size of `request`.
    let done = unsafe { libc::ioctl(control.as_raw_fd(), DM_DEV_REMOVE as _, &raw mut request) };
    match io::Error::last_os_error() {
        _ if done == 0 => Ok(()),
        error if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_can_not_be_is_refused() {
        for name in ["x".repeat(128), "a\0b".into()] {
            let error = remove_mapping(&name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
