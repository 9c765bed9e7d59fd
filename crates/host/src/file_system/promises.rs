//! What a file system's documentation promises.

/// Whether it is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Not at all.
    No,
    /// Where an option of mkfs or mount, or a file's attribute, asks for it.
    Asked,
    /// To whoever uses it as it comes.
    Yes,
}

/// What the documentation promises; the files of the file systems name their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// The state of the whole, or of a tree, can be kept beside the living one.
    pub snapshots: Promise,
    /// What was stored is told from what comes back.
    pub data_checksums: Promise,
    /// The same of the file system's own structures.
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
            ("metadata\nsums", self.metadata_checksums),
            ("com-\npression", self.compression),
            ("online\ngrowth", self.online_growth),
            ("reflink", self.reflink),
            ("several\ndevices", self.several_devices),
        ]
    }
}
