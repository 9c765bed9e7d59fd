//! Settings of the block queue, the kernel and the throttle: read, set, read back, put back.

use std::fs;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Contender, Device, Limits};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Knobs that change when another is set: the kernel keeps a ratio or an amount of bytes, and
/// clears the other (Documentation/admin-guide/sysctl/vm.rst).
const COUPLED_SYSCTLS: [(&str, &str); 2] = [
    ("vm.dirty_ratio", "vm.dirty_bytes"),
    ("vm.dirty_background_ratio", "vm.dirty_background_bytes"),
];

/// A setting that did not take.
#[derive(Debug, Error)]
pub enum SettingError {
    #[error("{knob}: {source}")]
    Unreadable { knob: String, source: std::io::Error },
    #[error("{knob} can't be set to {value:?}: {source}")]
    Refused { knob: String, value: String, source: std::io::Error },
    #[error("{knob} was set to {value:?} but reads {seen:?}: the setting did not take")]
    NotTaken { knob: String, value: String, seen: String },
    #[error(
        "limits need the blkio controller of cgroups v1 at {0}, and this machine has none there"
    )]
    NoThrottle(String),
}

/// A file of /proc or /sys with the value it should have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its path.
    pub path: PathBuf,
    /// The value to write.
    pub value: String,
    /// Reading gives something else than was written: the throttle rules, which are one line for
    /// each device. The line that begins with this word is the value; no line means 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl Setting {
    fn plain(path: PathBuf, value: String) -> Self {
        Setting { path, value, line: None }
    }

    /// What people call it.
    pub fn knob(&self) -> String {
        self.path.display().to_string()
    }

    /// The value it has now.
    pub fn current(&self) -> Result<Setting, SettingError> {
        let text = fs::read_to_string(&self.path)
            .map_err(|source| SettingError::Unreadable { knob: self.knob(), source })?;
        let value = match &self.line {
            None => chosen(text.trim()).to_string(),
            Some(word) => text
                .lines()
                .find_map(|line| line.strip_prefix(word.as_str())?.strip_prefix(' '))
                .unwrap_or("0")
                .to_string(),
        };
        Ok(Setting { value, ..self.clone() })
    }

    /// Writes the value and reads it back.
    pub fn set(&self) -> Result<(), SettingError> {
        let text = match &self.line {
            None => self.value.clone(),
            Some(word) => format!("{word} {}", self.value),
        };
        let (knob, value) = (self.knob(), self.value.clone());
        fs::write(&self.path, text).map_err(|source| SettingError::Refused {
            knob: knob.clone(),
            value: value.clone(),
            source,
        })?;
        let seen = self.current()?.value;
        if seen == value { Ok(()) } else { Err(SettingError::NotTaken { knob, value, seen }) }
    }
}

/// A queue file that offers a choice shows it as `none [mq-deadline] kyber`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

/// What `contender` asks for of queue and kernel, in the order it must be set: the scheduler before
/// the other queue settings, which it resets. `root` is `/` but in tests.
pub fn wanted(root: &Path, contender: &Contender, devices: &[Device]) -> Vec<Setting> {
    let mut settings = Vec::new();
    for device in devices {
        let queue = queue_of(root, device);
        let mut knobs: Vec<_> = contender.queue.iter().collect();
        knobs.sort_by_key(|(knob, _)| *knob != "scheduler");
        for (knob, value) in knobs {
            settings.push(Setting::plain(queue.join(file_of(knob)), value.to_string()));
        }
    }
    for (name, value) in &contender.sysctl {
        settings.push(Setting::plain(sysctl(root, name), value.to_string()));
    }
    settings
}

/// The throttle rules that hold `devices` down to `limits`.
pub fn rules(
    root: &Path,
    limits: Option<Limits>,
    devices: &[Device],
) -> Result<Vec<Setting>, SettingError> {
    let mut rules = Vec::new();
    if let Some(limits) = limits {
        for device in devices {
            rules.extend(throttle(root, device, limits)?);
        }
    }
    Ok(rules)
}

/// A setting that is changed, and what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What it was.
    pub back: Setting,
    /// What we set: the same knob, or the one that changes it along.
    pub ours: Setting,
}

/// What must be put back after `settings` are set, in the order in which it must be: their own
/// values now, and those of the knobs that change along with them.
pub fn before(root: &Path, settings: &[Setting]) -> Result<Vec<Change>, SettingError> {
    let mut changes: Vec<Change> = Vec::new();
    for ours in settings {
        let coupled = coupled(root, ours);
        for knob in [Some(ours.clone()), coupled].into_iter().flatten() {
            let is_it =
                |known: &Change| known.back.path == knob.path && known.back.line == knob.line;
            if !changes.iter().any(is_it) {
                changes.push(Change { back: knob.current()?, ours: ours.clone() });
            }
        }
    }
    // Of a ratio and its bytes, one is 0 and can't be written; it becomes 0 with the other's value.
    changes.retain(|it| !(it.back.value == "0" && is_coupled_sysctl(root, &it.back.path)));
    Ok(changes)
}

/// Puts back what still is as we set it; gives what could not be. What has another value by now was
/// never changed, is put back already, or has been changed by somebody else since: a loop device's
/// number may even be another run's.
pub fn put_back(changes: &[Change]) -> Vec<SettingError> {
    let holds = |change: &&Change| change.ours.current().is_ok_and(|now| now == change.ours);
    // Looked at together, for putting one back changes those that are coupled to it.
    let ours: Vec<&Change> = changes.iter().filter(holds).collect();
    ours.into_iter().filter_map(|change| change.back.set().err()).collect()
}

fn coupled(root: &Path, setting: &Setting) -> Option<Setting> {
    let directory = setting.path.parent()?;
    if setting.path.file_name()? == "scheduler" {
        return Some(Setting::plain(directory.join("nr_requests"), String::new()));
    }
    COUPLED_SYSCTLS.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).find_map(|(name, other)| {
        (sysctl(root, name) == setting.path)
            .then(|| Setting::plain(sysctl(root, other), String::new()))
    })
}

fn is_coupled_sysctl(root: &Path, path: &Path) -> bool {
    COUPLED_SYSCTLS.iter().any(|(a, b)| sysctl(root, a) == path || sysctl(root, b) == path)
}

fn sysctl(root: &Path, name: &str) -> PathBuf {
    root.join("proc/sys").join(name.replace('.', "/"))
}

/// A partition has no queue of its own: its disk's counts.
fn queue_of(root: &Path, device: &Device) -> PathBuf {
    let [major, minor] = device.number;
    let own = root.join(format!("sys/dev/block/{major}:{minor}"));
    match own.join("partition").exists() {
        true => own.join("../queue"),
        false => own.join("queue"),
    }
}

/// `read_ahead` is what people call it, `read_ahead_kb` what the kernel does.
fn file_of(knob: &str) -> &str {
    if knob == "read_ahead" { "read_ahead_kb" } else { knob }
}

/// The group whose throttle rules bind a device for everyone; an error where there is none. `root`
/// is `/` but in tests.
fn check_throttle(root: &Path) -> Result<PathBuf, SettingError> {
    let group = root.join("sys/fs/cgroup/blkio");
    match group.join("blkio.throttle.read_iops_device").exists() {
        true => Ok(group),
        false => Err(SettingError::NoThrottle(group.display().to_string())),
    }
}

/// Throttle rules of the root group (Documentation/admin-guide/cgroup-v1/blkio-controller.rst).
/// They bind the device for every process, its kernel threads included.
fn throttle(root: &Path, device: &Device, limits: Limits) -> Result<Vec<Setting>, SettingError> {
    let group = check_throttle(root)?;
    let [major, minor] = device.number;
    let rule = |file: &str, value: u64| Setting {
        path: group.join(file),
        value: value.to_string(),
        line: Some(format!("{major}:{minor}")),
    };
    let mut rules = Vec::new();
    if let Some(iops) = limits.iops {
        rules.push(rule("blkio.throttle.read_iops_device", iops));
        rules.push(rule("blkio.throttle.write_iops_device", iops));
    }
    if let Some(bandwidth) = limits.bandwidth {
        rules.push(rule("blkio.throttle.read_bps_device", bandwidth.0));
        rules.push(rule("blkio.throttle.write_bps_device", bandwidth.0));
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsverdict_core::model::Scalar;

    fn machine() -> (tempfile::TempDir, Device) {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/dev/block/7:1/queue/scheduler", "[none] mq-deadline\n");
        write("sys/dev/block/7:1/queue/nr_requests", "128\n");
        write("proc/sys/vm/dirty_background_ratio", "10\n");
        write("proc/sys/vm/dirty_background_bytes", "0\n");
        let device = Device { path: "/dev/loop1".into(), number: [7, 1], size_bytes: 0 };
        (root, device)
    }

    fn contender() -> Contender {
        Contender {
            name: "tuned".into(),
            queue: [("nr_requests", Scalar::Whole(64)), ("scheduler", Scalar::Text("none".into()))]
                .map(|(knob, value)| (knob.to_string(), value))
                .into(),
            sysctl: [("vm.dirty_background_bytes".to_string(), Scalar::Whole(4096))].into(),
            ..Contender::default()
        }
    }

    #[test]
    fn the_scheduler_comes_first_and_what_changes_along_is_remembered() {
        let (root, device) = machine();
        let wanted = wanted(root.path(), &contender(), &[device]);
        let name = |setting: &Setting| setting.path.file_name().unwrap().to_owned();
        let names: Vec<_> = wanted.iter().map(name).collect();
        assert_eq!(names, ["scheduler", "nr_requests", "dirty_background_bytes"]);
        let before = before(root.path(), &wanted).unwrap();
        let values: Vec<_> =
            before.iter().map(|c| (name(&c.back), c.back.value.as_str())).collect();
        let expected =
            [("scheduler", "none"), ("nr_requests", "128"), ("dirty_background_ratio", "10")];
        assert_eq!(values, expected.map(|(name, value)| (name.into(), value)));
    }

    #[test]
    fn a_setting_that_reads_back_differently_is_an_error() {
        let (root, _) = machine();
        let queue = root.path().join("sys/dev/block/7:1/queue");
        Setting::plain(queue.join("nr_requests"), "64".into()).set().unwrap();
        // A plain file keeps what was written; the kernel's would still say [none].
        let path = queue.join("scheduler");
        let error = Setting::plain(path, "[none] bfq".into()).set().unwrap_err().to_string();
        assert!(error.contains("did not take"), "{error}");
        let gone = Setting::plain(queue.join("gone/knob"), "1".into()).set().unwrap_err();
        assert!(gone.to_string().contains("can't be set"), "{gone}");
    }

    #[test]
    fn only_what_still_is_as_we_set_it_is_put_back() {
        let (root, _) = machine();
        let knob = root.path().join("sys/dev/block/7:1/queue/nr_requests");
        let ours = Setting::plain(knob.clone(), "64".into());
        let changes = before(root.path(), std::slice::from_ref(&ours)).unwrap();
        let now = || fs::read_to_string(&knob).unwrap().trim().to_string();
        assert!(put_back(&changes).is_empty());
        assert_eq!(now(), "128", "it was never changed");
        ours.set().unwrap();
        fs::write(&knob, "32").unwrap();
        assert!(put_back(&changes).is_empty());
        assert_eq!(now(), "32", "somebody else has changed it since");
        ours.set().unwrap();
        assert!(put_back(&changes).is_empty());
        assert_eq!(now(), "128");
    }

    #[test]
    fn limits_without_the_controller_are_refused() {
        let (root, device) = machine();
        let limits = Limits { iops: Some(100), bandwidth: None };
        let error = rules(root.path(), Some(limits), &[device]);
        assert!(matches!(error, Err(SettingError::NoThrottle(_))));
        fs::create_dir_all(root.path().join("sys/fs/cgroup/blkio")).unwrap();
        assert!(check_throttle(root.path()).is_err(), "the group alone is not the controller");
    }
}
