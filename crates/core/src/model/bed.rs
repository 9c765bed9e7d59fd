//! What the file systems are made on.

use serde::{Deserialize, Serialize};

use super::{Bytes, Limits};

/// What the file systems are made on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BedKind {
    /// An image file behind a loop device.
    #[default]
    Loop,
    /// Memory behind a loop device, or zram.
    Ram,
    /// Real disks or partitions.
    Device,
    /// Something already mounted; never formatted.
    Directory,
}

impl BedKind {
    /// The name in a plan and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            BedKind::Loop => "loop",
            BedKind::Ram => "ram",
            BedKind::Device => "device",
            BedKind::Directory => "directory",
        }
    }
}

/// The bed, as the plan describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bed {
    /// What kind.
    pub kind: BedKind,
    /// Size of each image or memory device.
    pub size: Bytes,
    /// How many devices, on beds that make them. A file system that takes one gets the first.
    pub devices: u32,
    /// The folder for image files; the run's own folder where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// On bed `ram`: zram instead of a loop device on tmpfs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub zram: bool,
    /// The devices, or the directory; a single one may be written as `path = "..."`.
    #[serde(alias = "path", deserialize_with = "one_or_several")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The disk that it is to be like: `nvme`, `ssd`, `hdd`, `virtio`, or the path of one. Where
    /// none is named, images are like the disk that they lie on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// What every device is held down to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Contenders have limits of their own: [`super::Plan::whole_bed`] says so.
    #[serde(skip)]
    pub limits_of_contenders: bool,
}

/// A text, or a list of texts.
fn one_or_several<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Texts::deserialize(from)? {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    })
}

impl Bed {
    /// How many devices a trial has at most.
    pub fn devices_of_trial(&self) -> usize {
        match self.kind {
            BedKind::Loop | BedKind::Ram => self.devices as usize,
            BedKind::Device => self.paths.len(),
            BedKind::Directory => 0,
        }
    }

    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        if self.zram { "ram:zram" } else { self.kind.name() }
    }

    /// Whether its devices are to be held down, for all contenders or for some.
    pub fn is_limited(&self) -> bool {
        self.limits.is_some() || self.limits_of_contenders
    }
}

impl Default for Bed {
    fn default() -> Self {
        Bed {
            kind: BedKind::Loop,
            size: Bytes(4 << 30),
            devices: 1,
            dir: None,
            zram: false,
            paths: Vec::new(),
            like: None,
            limits: None,
            limits_of_contenders: false,
        }
    }
}
