//! Limits on devices. Both throttles count bios, the pieces that a file system hands down, before
//! they are merged into requests (block/blk-throttle.c, `__blk_throtl_bio`). A disk gets requests.
//! So a bed with limits has two devices, and [`held`] names the lower one: each request of the
//! upper one is one bio there (drivers/block/loop.c, `lo_rw_aio`, with direct I/O), charged to the
//! cgroup of the request's first bio (`loop_queue_rq`).

use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{BedKind, Device, Limits, TrialBed};

use super::below;
use super::cgroup::Hierarchy;
use super::knob::{Knob, Rate, throttle_group};
use super::settings::{Setting, SettingError};

/// By what devices can be held down on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Rules of the root group of version 1's blkio
    /// (Documentation/admin-guide/cgroup-v1/blkio-controller.rst). They bind the device for every
    /// process, and for the kernel's threads.
    Root,
    /// `io.max` of the trial's own cgroup: the root of version 2 can have no limits
    /// (Documentation/admin-guide/cgroup-v2.rst, "IO Interface Files"). They bind the trial's
    /// processes, what is written back of theirs, and the threads of its file system, which are put
    /// in there, too; the kernel's shared workers go past them.
    Own,
}

impl Means {
    /// Those of this machine. `root` is `/` but in tests, here and below.
    pub fn of(root: &Path) -> Result<Means, SettingError> {
        if throttle_group(root).join("blkio.throttle.read_iops_device").exists() {
            return Ok(Means::Root);
        }
        let missing = |why: &str| Err(SettingError::NoThrottle(why.into()));
        let Some(at) = Hierarchy::Unified.at(root) else {
            return missing("there is no cgroup v2, and no blkio of cgroup v1");
        };
        let text = fs::read_to_string(at.join("cgroup.controllers")).unwrap_or_default();
        let has = |name: &str| text.split_whitespace().any(|controller| controller == name);
        if !has("io") || !has("memory") {
            return missing("cgroup v2 lacks io or memory, and there is no blkio of cgroup v1");
        }
        // The root alone has no type.
        match at.join("cgroup.type").exists() {
            true => missing("a container's cgroups can't be given io"),
            false => Ok(Means::Own),
        }
    }
}

/// The devices of `bed` that limits are put on. Devices below a disk of the user's are left alone.
///
/// # Errors
/// If one can't be read: the lab, which puts them back, and the trial, which sets them, have to
/// mean the same.
pub fn held(root: &Path, bed: &TrialBed) -> Result<Vec<Device>, SettingError> {
    if !matches!(bed.kind, BedKind::Loop | BedKind::Ram) {
        return Ok(bed.devices.clone());
    }
    let held = |device: &Device| match below::below(root, device) {
        Ok(below) => Ok(below.unwrap_or_else(|| device.clone())),
        Err(source) => Err(SettingError::Unreadable { knob: device.path.clone(), source }),
    };
    bed.devices.iter().map(held).collect()
}

/// The rules that hold `devices` down to `limits` by [`Means::Root`]; none where the trial's own
/// cgroup does it.
pub fn rules(
    root: &Path,
    limits: Option<Limits>,
    devices: &[Device],
) -> Result<Vec<Setting>, SettingError> {
    let Some(limits) = limits else { return Ok(Vec::new()) };
    Ok(match Means::of(root)? {
        Means::Root => devices.iter().flat_map(|device| of_root(device, limits)).collect(),
        Means::Own => Vec::new(),
    })
}

fn of_root(device: &Device, limits: Limits) -> Vec<Setting> {
    let rule = |rate: Rate, value: u64| Setting {
        knob: Knob::Throttle { device: device.number, rate },
        value: value.to_string(),
    };
    let iops = [Rate::ReadIops, Rate::WriteIops].into_iter().zip(limits.operations());
    let bytes = [Rate::ReadBps, Rate::WriteBps].into_iter().zip(limits.bytes());
    iops.chain(bytes).filter_map(|(rate, value)| Some(rule(rate, value?))).collect()
}

/// The line that holds `device` down in `io.max`.
pub fn line(device: &Device, limits: Limits) -> String {
    let [major, minor] = device.number;
    let mut line = format!("{major}:{minor}");
    for (kind, values) in [("iops", limits.operations()), ("bps", limits.bytes())] {
        for (way, value) in ["r", "w"].into_iter().zip(values) {
            line += &value.map_or(String::new(), |value| format!(" {way}{kind}={value}"));
        }
    }
    line
}

/// Holds `devices` down to `limits`: from within the trial, whose cgroup it is.
pub fn hold_down(root: &Path, limits: Limits, devices: &[Device]) -> Result<(), SettingError> {
    if devices.is_empty() {
        return Err(SettingError::NoThrottle(
            "limits are a disk's, and the bed lies on none".into(),
        ));
    }
    match Means::of(root)? {
        Means::Root => rules(root, Some(limits), devices)?.iter().try_for_each(|it| it.set(root)),
        Means::Own => {
            let own = Hierarchy::Unified.own(root).map(|own| own.join("io.max"));
            let none = || SettingError::NoThrottle("the trial has no cgroup of its own".into());
            let file = own.filter(|file| file.exists()).ok_or_else(none)?;
            devices.iter().try_for_each(|device| put(&file, line(device, limits)))
        }
    }
}

fn put(file: &PathBuf, value: String) -> Result<(), SettingError> {
    let knob = || file.display().to_string();
    let written = fs::write(file, &value);
    written.map_err(|source| SettingError::Refused { knob: knob(), value, source })
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::{Bytes, Each};

    use super::*;

    const MOUNTS: &str = "32 1 0:28 / /cg rw - cgroup2 cgroup2 rw\n";

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn device() -> Device {
        Device { path: "/dev/loop1".into(), number: [7, 1], size_bytes: 0 }
    }

    const LIMITS: Limits = Limits {
        iops: Some(Each::Alike(100)),
        bandwidth: Some(Each::Apart { read: Some(Bytes(4096)), write: None }),
    };

    #[test]
    fn limits_without_a_controller_are_refused() {
        let refused = |files: &[(&str, &str)]| {
            let root = machine(files);
            let error = rules(root.path(), Some(LIMITS), &[device()]).unwrap_err();
            assert!(rules(root.path(), None, &[device()]).unwrap().is_empty());
            error.to_string()
        };
        assert!(refused(&[]).contains("no cgroup v2"));
        let mounts = ("proc/self/mountinfo", MOUNTS);
        assert!(
            refused(&[mounts, ("cg/cgroup.controllers", "cpu iox memory\n")]).contains("lacks io")
        );
        let container = ("cg/cgroup.type", "domain\n");
        let within = refused(&[mounts, ("cg/cgroup.controllers", "cpu io memory\n"), container]);
        assert!(within.contains("container"), "{within}");
    }

    #[test]
    fn version_1_goes_first_and_version_2_has_the_trials_own() {
        let own = "cg/fsverdict-trial-7";
        let v2 = [
            ("proc/self/mountinfo", MOUNTS),
            ("proc/self/cgroup", "0::/fsverdict-trial-7\n"),
            ("cg/cgroup.controllers", "cpu io memory\n"),
            (&format!("{own}/io.max"), ""),
        ];
        let root = machine(&v2);
        assert!(rules(root.path(), Some(LIMITS), &[device()]).unwrap().is_empty());
        hold_down(root.path(), LIMITS, &[device()]).unwrap();
        let text = fs::read_to_string(root.path().join(own).join("io.max")).unwrap();
        assert_eq!(text, "7:1 riops=100 wiops=100 rbps=4096");
        fs::write(root.path().join("proc/self/cgroup"), "0::/user.slice\n").unwrap();
        let error = hold_down(root.path(), LIMITS, &[device()]).unwrap_err().to_string();
        assert!(error.contains("no cgroup of its own"), "{error}");
        let rule = ("sys/fs/cgroup/blkio/blkio.throttle.read_iops_device", "");
        let both = machine(&[&v2[..], &[rule]].concat());
        assert_eq!(rules(both.path(), Some(LIMITS), &[device()]).unwrap().len(), 3);
    }
}
