//! What a file system's documentation promises.

use fsverdict_core::model::Feature;

/// Whether it is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Not at all.
    No,
    /// Where an option of mkfs or mount, or a file's attribute, asks for it.
    Asked,
    /// By default.
    Yes,
}

/// What the documentation promises; the files of the file systems name their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// The state of the whole, or of a tree, can be kept beside the living one.
    pub snapshots: Promise,
    /// Data that comes back changed is noticed.
    pub data_checksums: Promise,
    /// The same for the file system's own structures.
    pub metadata_checksums: Promise,
    /// Data is stored smaller.
    pub compression: Promise,
    /// It grows while it is mounted.
    pub online_growth: Promise,
    /// Copies of files share their blocks (ioctl_ficlone(2)).
    pub reflink: Promise,
    /// It spreads its data over several devices.
    pub several_devices: Promise,
}

impl Promises {
    /// Nothing.
    pub const NONE: Promises = Promises {
        snapshots: Promise::No,
        data_checksums: Promise::No,
        metadata_checksums: Promise::No,
        compression: Promise::No,
        online_growth: Promise::No,
        reflink: Promise::No,
        several_devices: Promise::No,
    };

    /// Each with a name for a table's head.
    pub fn named(&self) -> [(&'static str, Promise); 7] {
        [
            ("snap-\nshots", self.snapshots),
            ("data\nsums", self.data_checksums),
            ("meta-\ndata\nsums", self.metadata_checksums),
            ("com-\npres-\nsion", self.compression),
            ("online\ngrowth", self.online_growth),
            ("reflink", self.reflink),
            ("several\ndevices", self.several_devices),
        ]
    }

    /// Whether it has `feature` when it is made and mounted with `options`, among them parameters
    /// of its module as `NAME=VALUE`, and what says so. Durability is not promised but measured:
    /// nothing is known of it here.
    pub fn keeps(&self, feature: Feature, options: &[String]) -> (bool, String) {
        let words: Vec<&str> = options.iter().flat_map(|it| it.split([',', ' '])).collect();
        let find =
            |marks: &[&str]| words.iter().find(|word| marks.iter().any(|mark| word.contains(mark)));
        if let Some(word) = find(gives_up(feature)) {
            return (false, format!("{word} gives it up"));
        }
        match (self.of(feature), find(asks_for(feature))) {
            (Promise::Yes, _) => (true, "as it comes".into()),
            (Promise::Asked, Some(word)) => (true, format!("asked for by {word}")),
            (Promise::Asked, None) => (false, "only where an option asks for it".into()),
            (Promise::No, _) => (false, "not promised".into()),
        }
    }

    fn of(&self, feature: Feature) -> Promise {
        match feature {
            Feature::Durability => Promise::No,
            Feature::Snapshots => self.snapshots,
            Feature::DataChecksums => self.data_checksums,
            Feature::MetadataChecksums => self.metadata_checksums,
            Feature::Compression => self.compression,
            Feature::OnlineGrowth => self.online_growth,
            Feature::Reflink => self.reflink,
            Feature::SeveralDevices => self.several_devices,
        }
    }
}

/// What options that ask for it contain: btrfs(5), zfsprops(7), zfs(4), bcachefs(8), mkfs.f2fs(8),
/// mkfs.ocfs2(8).
fn asks_for(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::Compression => &["compress", "-z"],
        Feature::MetadataChecksums => &["inode_checksum", "metaecc"],
        Feature::Reflink => &["zfs_bclone_enabled=1"],
        _ => &[],
    }
}

/// What options that give it up contain: btrfs(5), ext4(5), mkfs.xfs(8), zfsprops(7),
/// zpool-features(7), zfs(4).
fn gives_up(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::DataChecksums => &["nodatasum", "nodatacow", "checksum=off"],
        Feature::MetadataChecksums => &["^metadata_csum", "crc=0"],
        Feature::Compression => &["compress=no", "compression=off", "compression=none"],
        Feature::Reflink => &["reflink=0", "block_cloning=disabled", "zfs_bclone_enabled=0"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::find;

    #[test]
    fn options_ask_for_what_is_promised_and_give_it_up() {
        let keeps = |name: &str, feature, options: &[&str]| {
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            find(name).unwrap().promises.keeps(feature, &options).0
        };
        assert!(!keeps("btrfs", Feature::Compression, &[]));
        assert!(keeps("btrfs", Feature::Compression, &["noatime,compress=zstd"]));
        assert!(!keeps("btrfs", Feature::Compression, &["compress=no"]));
        assert!(!keeps("ext4", Feature::Compression, &["compress=zstd"]));
        assert!(keeps("btrfs", Feature::DataChecksums, &[]));
        assert!(!keeps("btrfs", Feature::DataChecksums, &["nodatacow"]));
        assert!(keeps("xfs", Feature::Reflink, &[]));
        assert!(!keeps("xfs", Feature::Reflink, &["-m", "crc=1,reflink=0"]));
        assert!(!keeps("ext4", Feature::MetadataChecksums, &["-O", "^metadata_csum"]));
    }

    #[test]
    fn an_openzfs_promises_what_its_version_has() {
        let zfs = crate::file_system::mounted_as("zfs", "zfs").unwrap();
        let keeps = |version: &str, feature, option: &str| {
            zfs.promises_of(Some(version)).keeps(feature, &[option.to_string()]).0
        };
        let (compression, reflink) = (Feature::Compression, Feature::Reflink);
        assert!(!keeps("2.1.11-1+deb12u1", compression, ""));
        assert!(keeps("2.1.11-1+deb12u1", compression, "compression=lz4"));
        assert!(keeps("2.3.9-0+deb13u1", compression, ""));
        assert!(!keeps("2.3.9-0+deb13u1", compression, "compression=off"));
        assert!(!keeps("2.1.11-1+deb12u1", reflink, "zfs.zfs_bclone_enabled=1"));
        assert!(!keeps("2.2.7", reflink, ""));
        assert!(keeps("2.2.7", reflink, "zfs.zfs_bclone_enabled=1"));
        assert!(keeps("2.4.4-1", reflink, ""));
        assert!(!keeps("2.4.4-1", reflink, "zfs.zfs_bclone_enabled=0"));
        assert!(!keeps("2.4.4-1", reflink, "feature@block_cloning=disabled"));
        // If its version is unknown: as most versions.
        assert_eq!(zfs.promises_of(None), zfs.promises);
        assert_eq!(zfs.promises_of(Some("unknown")), zfs.promises);
    }
}
