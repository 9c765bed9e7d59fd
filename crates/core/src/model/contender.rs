//! A file system with its settings.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Bytes, Scalar};

/// What a device is held down to, for reads and writes each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Operations a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bytes>,
}

impl fmt::Display for Limits {
    /// `100 IOPS and 150MiB/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iops = self.iops.map(|iops| format!("{iops} IOPS"));
        let bandwidth = self.bandwidth.map(|bytes| format!("{bytes}iB/s"));
        let limits: Vec<String> = iops.into_iter().chain(bandwidth).collect();
        f.write_str(&limits.join(" and "))
    }
}

/// A file system with its mkfs and mount options, block-queue and sysctl settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    /// What the report calls it; its own within a plan.
    pub name: String,
    /// `ext4`, `xfs`, `btrfs`: a name of the registry. Bed `directory` takes what is there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file_system: String,
    /// parted's words, with which each device is partitioned afresh before mkfs. The file system
    /// is made on the one partition that comes out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition: Vec<String>,
    /// Arguments for mkfs, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs: Vec<String>,
    /// Mount options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount: Vec<String>,
    /// Files of `/sys/block/DEVICE/queue` and their values; the scheduler is set first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queue: BTreeMap<String, Scalar>,
    /// Sysctls and their values: `vm.dirty_ratio`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, Scalar>,
    /// What the work's commands find in their environment, before what the workload says: the
    /// settings of an application that are compared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Scalar>,
    /// What its device is held down to; instead of the bed's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The kernel it runs under, in place `vm`: a version, or the path of a bzImage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The directory it works in, on bed `directory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Contender {
    /// The `file_system` of the bare device.
    pub const RAW: &str = "raw";

    /// It is the bare device, without a file system.
    pub fn is_raw(&self) -> bool {
        self.file_system == Contender::RAW
    }
}
