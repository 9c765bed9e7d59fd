//! What a device is held down to.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Bytes;

/// What a device is held down to, each for reads and for writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Operations a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<Each<u64>>,
    /// Bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Each<Bytes>>,
}

/// A limit on reads and on writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a limit is for reads and writes, 100, or for each: { read = 100, write = 50 }"
)]
pub enum Each<T> {
    /// The same for either.
    Alike(T),
    /// Each its own, or none.
    Apart {
        /// Of reads.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        read: Option<T>,
        /// Of writes.
        #[serde(default = "none", skip_serializing_if = "Option::is_none")]
        write: Option<T>,
    },
}

/// What a limit on operations counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// The pieces that a file system hands down, before the kernel merges them.
    Bios,
    /// What the device gets.
    Requests,
}

impl Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Counted::Bios => "bios",
            Counted::Requests => "requests",
        })
    }
}

/// The kernel's limits on operations have 32 bits (block/blk-throttle.c, `tg_set_conf_uint`).
const IOPS_MOST: u64 = u32::MAX as u64;
/// What a limit on bytes may be: a block a second at least.
const BANDWIDTHS: std::ops::RangeInclusive<u64> = 4096..=1 << 50;

fn none<T>() -> Option<T> {
    None
}

impl<T: Copy> Each<T> {
    /// Of reads, and of writes.
    fn ways(self) -> [Option<T>; 2] {
        match self {
            Each::Alike(both) => [Some(both); 2],
            Each::Apart { read, write } => [read, write],
        }
    }
}

impl<T: Display> Each<T> {
    /// `100 IOPS`, or `100 IOPS of reads` and `50 IOPS of writes`.
    fn said(&self, unit: &str) -> Vec<String> {
        let way = |limit: &Option<T>, of| limit.as_ref().map(|it| format!("{it}{unit} of {of}"));
        match self {
            Each::Alike(both) => vec![format!("{both}{unit}")],
            Each::Apart { read, write } => {
                way(read, "reads").into_iter().chain(way(write, "writes")).collect()
            }
        }
    }
}

impl Limits {
    /// Operations a second: of reads, and of writes.
    pub fn operations(&self) -> [Option<u64>; 2] {
        self.iops.map_or([None; 2], Each::ways)
    }

    /// Bytes a second: of reads, and of writes.
    pub fn bytes(&self) -> [Option<u64>; 2] {
        self.bandwidth.map_or([None; 2], Each::ways).map(|bytes| bytes.map(|it| it.0))
    }

    /// To nothing at all no device can be held down: the kernel and QEMU take 0 for no limit.
    pub(super) fn check(&self) -> Result<(), String> {
        let says_nothing = |[read, write]: [Option<u64>; 2]| read.is_none() && write.is_none();
        let (iops, bytes) = (self.operations(), self.bytes());
        if iops.into_iter().chain(bytes).any(|limit| limit == Some(0)) {
            return Err("limits a device to 0: for no limit leave it out".into());
        }
        if iops.into_iter().flatten().any(|limit| limit > IOPS_MOST) {
            return Err(format!("limits a device to more than {IOPS_MOST} IOPS: leave that out"));
        }
        if bytes.into_iter().flatten().any(|limit| !BANDWIDTHS.contains(&limit)) {
            return Err("limits a device to less than a block a second, 4k, or to more than \
                        1024T: give another bandwidth"
                .into());
        }
        if self.iops.is_some() && says_nothing(iops)
            || self.bandwidth.is_some() && says_nothing(bytes)
        {
            return Err("has a limit of neither reads nor writes: give it read or write".into());
        }
        Ok(())
    }
}

impl Display for Limits {
    /// `100 IOPS and 150MiB/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iops = self.iops.map_or_else(Vec::new, |iops| iops.said(" IOPS"));
        let bandwidth = self.bandwidth.map_or_else(Vec::new, |bytes| bytes.said("iB/s"));
        f.write_str(&[iops, bandwidth].concat().join(" and "))
    }
}

impl FromStr for Limits {
    type Err = String;

    /// Reads `iops=8050,read-bandwidth=500M,write-bandwidth=150M`, as it is typed.
    fn from_str(text: &str) -> Result<Limits, String> {
        let mut limits = Limits::default();
        for typed in text.split(',') {
            limits.set(typed).ok_or_else(|| {
                format!(
                    "{typed:?} is not a limit: write iops=8050 or bandwidth=150M, or for one \
                     direction read-iops, write-iops, read-bandwidth, write-bandwidth"
                )
            })?;
        }
        limits.check().map_err(|wrong| format!("{text:?} {wrong}"))?;
        Ok(limits)
    }
}

impl Limits {
    /// Sets what `iops=8050` says; none where that says nothing.
    fn set(&mut self, typed: &str) -> Option<()> {
        let (name, value) = typed.split_once('=')?;
        let (way, what) =
            name.split_once('-').map_or((None, name), |(way, what)| (Some(way), what));
        match what {
            "iops" => self.iops = Some(with(self.iops, way, value.parse().ok()?)?),
            "bandwidth" => {
                self.bandwidth = Some(with(self.bandwidth, way, value.parse().ok()?)?);
            }
            _ => return None,
        }
        Some(())
    }
}

/// `before` with that limit of one way or both; none where it is no way.
fn with<T: Copy>(before: Option<Each<T>>, way: Option<&str>, limit: T) -> Option<Each<T>> {
    let [read, write] = before.map_or([None; 2], Each::ways);
    match way {
        None => Some(Each::Alike(limit)),
        Some("read") => Some(Each::Apart { read: Some(limit), write }),
        Some("write") => Some(Each::Apart { read, write: Some(limit) }),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> Result<Limits, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn reads_and_writes_have_one_limit_or_each_its_own() {
        let alike = limits("iops = 100\nbandwidth = \"150M\"").unwrap();
        assert_eq!(alike.operations(), [Some(100); 2]);
        assert_eq!(alike.bytes(), [Some(150 << 20); 2]);
        assert_eq!(alike.to_string(), "100 IOPS and 150MiB/s");
        let apart =
            limits("iops = { read = 9, write = 5 }\nbandwidth = { write = \"4M\" }").unwrap();
        assert_eq!(apart.operations(), [Some(9), Some(5)]);
        assert_eq!(apart.bytes(), [None, Some(4 << 20)]);
        let said = "9 IOPS of reads and 5 IOPS of writes and 4MiB/s of writes";
        assert_eq!(apart.to_string(), said);
        for it in [alike, apart] {
            assert_eq!(limits(&toml::to_string(&it).unwrap()), Ok(it));
        }
    }

    #[test]
    fn typed_limits_are_those_of_a_plan() {
        let typed: Limits = "iops=100,bandwidth=150M".parse().unwrap();
        assert_eq!(Ok(typed), limits("iops = 100\nbandwidth = \"150M\""));
        let typed: Limits = "read-iops=9,write-iops=5,write-bandwidth=4k".parse().unwrap();
        let plan = limits("iops = { read = 9, write = 5 }\nbandwidth = { write = 4096 }");
        assert_eq!(Ok(typed), plan);
        for wrong in
            ["", "iops", "iops=x", "iops=0", "iops=9,", "any-iops=9", "speed=9", "bandwidth=1"]
        {
            wrong.parse::<Limits>().unwrap_err();
        }
    }

    #[test]
    fn what_is_no_limit_is_refused_with_what_is_one() {
        for wrong in ["iops = { reads = 9 }", "iops = \"many\"", "bandwidth = [1, 2]"] {
            let error = limits(wrong).unwrap_err();
            assert!(error.contains("{ read = 100, write = 50 }"), "{error}");
        }
        for nothing in ["iops = 0", "bandwidth = { read = 0 }", "iops = {}", "iops = 4294967296"] {
            assert!(limits(nothing).unwrap().check().is_err(), "{nothing}");
        }
        assert_eq!(limits("").unwrap().check(), Ok(()));
    }
}
