//! The disk that settings are meant for: images have its size, and stripes are compared with its.

use std::path::Path;

use fsverdict_core::model::Bytes;

use super::topology;

/// The size of an image where nothing is known of the target.
pub const USUAL_BYTES: u64 = 4 << 30;
/// A refusal on an image of [`USUAL_BYTES`] is tried again on one of this size.
pub const LARGE_BYTES: u64 = 1 << 40;

/// A RAID's stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// What one disk holds of it.
    pub unit_bytes: u64,
    /// Over so many disks that hold data.
    pub disks: u64,
}

impl std::str::FromStr for Stripe {
    type Err = String;

    /// As mkfs.xfs(8) has it: `su=64k,sw=4`.
    fn from_str(text: &str) -> Result<Stripe, String> {
        let wrong = || format!("{text:?} is not a stripe: write su=64k,sw=4");
        let value = |name: &str| {
            let mut pairs = text.split(',').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let unit = value("su").and_then(|text| text.parse::<Bytes>().ok()).ok_or_else(wrong)?;
        let disks = value("sw").and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        match (unit.0, disks) {
            (0, _) | (_, 0) => Err(wrong()),
            (unit_bytes, disks) => Ok(Stripe { unit_bytes, disks }),
        }
    }
}

/// What is known of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Its size.
    pub size_bytes: Option<u64>,
    /// Its stripe, where it has one.
    pub stripe: Option<Stripe>,
}

impl Target {
    /// That of a block device of this machine. It is only looked at in /sys.
    pub fn of(device: &Path) -> Result<Target, String> {
        let wrong = || format!("{}: no block device of this machine", device.display());
        let path = std::fs::canonicalize(device).map_err(|_| wrong())?;
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(wrong)?;
        let size = std::fs::read_to_string(format!("/sys/class/block/{name}/size"));
        // In sectors of 512 bytes, whatever the device's are: Documentation/ABI/stable/sysfs-block.
        let sectors: u64 = size.ok().and_then(|text| text.trim().parse().ok()).ok_or_else(wrong)?;
        let seen = topology::of(name);
        let unit_bytes = seen.minimum_bytes.max(1);
        let disks = seen.optimal_bytes / unit_bytes;
        let stripe = (disks > 0).then_some(Stripe { unit_bytes, disks });
        Ok(Target { size_bytes: Some(sectors * 512), stripe })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_read_as_mkfs_has_it() {
        let stripe = "su=64k,sw=4".parse::<Stripe>().unwrap();
        assert_eq!(stripe, Stripe { unit_bytes: 64 << 10, disks: 4 });
        for wrong in ["", "64k", "su=64k", "su=0,sw=4", "su=64k,sw=0", "su=64k,sw=x"] {
            assert!(wrong.parse::<Stripe>().unwrap_err().contains("su=64k,sw=4"), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_device_is_refused() {
        assert!(Target::of(Path::new("/etc")).unwrap_err().contains("no block device"));
    }
}
