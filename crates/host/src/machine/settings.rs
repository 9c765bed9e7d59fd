//! Settings of the block queue, the kernel and the throttle: read, set, read back, put back.
//!
//! A setting is named by its knob, not by a path: whatever a plan or a journal says, only files
//! below `/proc/sys` or a device's queue, and the throttle's, are written.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fsverdict_core::model::{Contender, Device};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::knob::{Knob, READ_AHEAD, queue_of};

/// Knobs that change when another is set: the kernel keeps a ratio or an amount of bytes, and
/// clears the other (Documentation/admin-guide/sysctl/vm.rst; mm/page-writeback.c,
/// `dirty_ratio_handler`; mm/util.c, `overcommit_ratio_handler`).
const COUPLED_SYSCTLS: [(&str, &str); 3] = [
    ("vm/dirty_ratio", "vm/dirty_bytes"),
    ("vm/dirty_background_ratio", "vm/dirty_background_bytes"),
    ("vm/overcommit_ratio", "vm/overcommit_kbytes"),
];

/// A congestion control that is made the default may be chosen by everybody from then on
/// (net/ipv4/tcp_cong.c, `tcp_set_default_congestion_control`).
const CONGESTION: [&str; 2] =
    ["net/ipv4/tcp_congestion_control", "net/ipv4/tcp_allowed_congestion_control"];

/// A setting that did not take.
#[derive(Debug, Error)]
pub enum SettingError {
    #[error("{knob}: {source}")]
    Unreadable { knob: String, source: io::Error },
    #[error("{knob} can't be set to {value:?}: {source}")]
    Refused { knob: String, value: String, source: io::Error },
    #[error("{knob} was set to {value:?} but reads {seen:?}: the setting did not take")]
    NotTaken { knob: String, value: String, seen: String },
    #[error("{knob} reads as several lines: it could not be put back, so it can't be set")]
    NotOneLine { knob: String },
    #[error("limits need a cgroup controller: {0}")]
    NoThrottle(String),
}

impl SettingError {
    /// The kernel has no such setting, or not any more: ENODEV is of a file that was open.
    fn is_gone(&self) -> bool {
        let SettingError::Unreadable { source, .. } = self else { return false };
        source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(libc::ENODEV)
    }
}

fn unreadable(knob: &Knob, source: io::Error) -> SettingError {
    SettingError::Unreadable { knob: knob.to_string(), source }
}

/// A knob with the value it should have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// What is set.
    pub knob: Knob,
    /// The value to write.
    #[serde(deserialize_with = "one_line")]
    pub value: String,
}

/// A file of the kernel's settings is read and written within a page (fs/sysfs/file.c,
/// `sysfs_kf_seq_show`; fs/proc/proc_sysctl.c, `proc_sys_call_handler` takes more, and no setting
/// has so much).
const VALUE_BYTES_MAX: usize = 4096;

/// One line, and in it no control characters but the tabs between numbers: anything else could not
/// be put back.
fn is_one_line(value: &str) -> bool {
    value.len() <= VALUE_BYTES_MAX && value.chars().all(|it| !it.is_control() || it == '\t')
}

fn one_line<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = String::deserialize(deserializer)?;
    let odd = || serde::de::Error::custom("no setting of the kernel has such a value");
    is_one_line(&value).then_some(value).ok_or_else(odd)
}

/// The kernel puts tabs between several numbers, and people spaces.
impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        let same = self.value.split_whitespace().eq(other.value.split_whitespace());
        let switch = |it: &Setting| match it.knob {
            Knob::Module(_) => switch(&it.value),
            _ => None,
        };
        let same_switch = || switch(self).is_some_and(|on| switch(other) == Some(on));
        self.knob == other.knob && (same || same_switch())
    }
}

/// What a parameter of a module that is a switch takes for on and off; it reads `Y` and `N`
/// (kernel/params.c, `param_set_bool` and `param_get_bool`).
fn switch(value: &str) -> Option<bool> {
    match value.trim() {
        "1" | "y" | "Y" | "true" => Some(true),
        "0" | "n" | "N" | "false" => Some(false),
        _ => None,
    }
}

impl Eq for Setting {}

impl Setting {
    /// The value it has now. `root` is `/` but in tests, here and below.
    pub fn current(&self, root: &Path) -> Result<Setting, SettingError> {
        let text = self.knob.text(root).map_err(|source| unreadable(&self.knob, source))?;
        let value = match self.knob.line() {
            None => chosen(text.trim()).to_string(),
            Some(word) => text
                .lines()
                .find_map(|line| line.strip_prefix(word.as_str())?.strip_prefix(' '))
                .unwrap_or("0")
                .to_string(),
        };
        Ok(Setting { value, knob: self.knob.clone() })
    }

    /// Writes the value and reads it back.
    pub fn set(&self, root: &Path) -> Result<(), SettingError> {
        let text = match self.knob.line() {
            // Writing no byte makes no system call, and the knob stays as it is.
            None if self.value.is_empty() => "\n".into(),
            None => self.value.clone(),
            Some(word) => format!("{word} {}", self.value),
        };
        let (knob, value) = (self.knob.to_string(), self.value.clone());
        let opened = self.knob.open(root, libc::O_WRONLY | libc::O_TRUNC);
        if let Err(source) = opened.and_then(|mut file| file.write_all(text.as_bytes())) {
            return Err(SettingError::Refused { knob, value, source });
        }
        let seen = self.current(root)?;
        if seen == *self {
            return Ok(());
        }
        Err(SettingError::NotTaken { knob, value, seen: seen.value })
    }

    /// Has it again what it had, where it has something else now.
    fn put(&self, root: &Path) -> Result<(), SettingError> {
        if self.value == "0" && other_half(&self.knob).is_some() {
            // The other half is cleared where this one changes, and this one may be 0 by that.
            Setting { value: "1".into(), knob: self.knob.clone() }.set(root)?;
        } else if self.current(root).is_ok_and(|now| now == *self) {
            return Ok(());
        }
        self.set(root)
    }
}

/// A queue file that offers a choice shows it as `none [mq-deadline] kyber`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

/// The queue and kernel settings of `contender`, in the order to set them: those that reset others
/// come before these.
pub fn wanted(contender: &Contender, devices: &[Device]) -> Vec<Setting> {
    let mut settings = Vec::new();
    for device in devices {
        let mut knobs: Vec<_> = contender.queue.iter().collect();
        knobs.sort_by_key(|(knob, _)| match knob.as_str() {
            "scheduler" => 0,
            // mq-deadline takes its depth from it (block/mq-deadline.c, `dd_depth_updated`).
            "nr_requests" => 1,
            // Raised by what is a limit: see `coupled`.
            "read_ahead" | READ_AHEAD => 3,
            _ => 2,
        });
        for (knob, value) in knobs {
            let knob = Knob::queue(device.number, knob);
            settings.push(Setting { knob, value: value.to_string() });
        }
    }
    for (name, value) in &contender.sysctl {
        settings.push(Setting { knob: Knob::sysctl(name), value: value.to_string() });
    }
    for (name, value) in &contender.module {
        settings.push(Setting { knob: Knob::module(name), value: value.to_string() });
    }
    settings
}

/// A setting that is changed, and what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What it was.
    pub back: Setting,
    /// What we set: the same knob, or the one that changes it along.
    pub ours: Setting,
    /// For a device's knob: which disk since boot it belongs to (diskseq, Linux 5.15:
    /// Documentation/ABI/stable/sysfs-block). A loop device that is attached anew is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
}

impl Change {
    /// Its disk is the one that it was, and what we set is still set.
    ///
    /// # Errors
    /// If either can't be read: then it may be ours.
    fn is_still_ours(&self, root: &Path) -> Result<bool, SettingError> {
        let knob = &self.back.knob;
        let disk = || knob.disk(root).map_err(|source| unreadable(knob, source));
        let is_same_disk = self.disk.is_none() || self.disk == disk()?;
        Ok(is_same_disk && self.ours.current(root)? == self.ours)
    }
}

/// What must be put back after `settings` are set: their own values now, and those of the knobs
/// that change along with them, once for each setting that changes them. For a knob that is `known`
/// to be changed, its value from before that.
pub fn before(
    root: &Path,
    settings: &[Setting],
    known: &[Change],
) -> Result<Vec<Change>, SettingError> {
    let mut changes = known.to_vec();
    for ours in settings {
        for knob in [vec![ours.knob.clone()], coupled(root, &ours.knob)].concat() {
            let mut of_it = changes.iter().filter(|it| it.back.knob == knob);
            let first = of_it.clone().next();
            if of_it.any(|it| it.ours == *ours) {
                continue;
            }
            let may_be_gone = knob != ours.knob || knob.is_of_a_scheduler();
            let back = match first {
                Some(first) => first.back.clone(),
                None => match (Setting { knob, value: String::new() }).current(root) {
                    Err(error) if error.is_gone() && may_be_gone => continue,
                    back => back?,
                },
            };
            if !is_one_line(&back.value) {
                return Err(SettingError::NotOneLine { knob: back.knob.to_string() });
            }
            let disk = back.knob.disk(root).map_err(|source| unreadable(&back.knob, source))?;
            changes.push(Change { back, ours: ours.clone(), disk });
        }
    }
    Ok(changes.split_off(known.len()))
}

/// Sets `settings`, whose `changes` are known. A setting that did not take effect is put back at
/// once: later its value would look like somebody else's.
pub fn set_all(root: &Path, settings: &[Setting], changes: &[Change]) -> Result<(), SettingError> {
    settings.iter().try_for_each(|setting| {
        // What a scheduler has only once it is chosen goes with it.
        let is_known = setting.knob.is_of_a_scheduler()
            || changes.iter().any(|it| it.ours == *setting && it.back.knob == setting.knob);
        assert!(is_known, "{}: what it was is known before it is set", setting.knob);
        setting.set(root).inspect_err(|error| {
            if matches!(error, SettingError::NotTaken { .. }) {
                let is_its = |it: &&Change| it.ours == *setting || it.back.knob == setting.knob;
                // The error reported is that it did not take effect.
                drop(take_back(root, changes.iter().filter(is_its).collect()));
            }
        })
    })
}

/// Puts back what is still as we set it; returns what could not be. A setting with another value
/// was never changed, is back already, or was changed by somebody else since. One that is gone went
/// with its device, whose number may now be another run's; one that can't be read may still be as
/// we set it.
pub fn put_back(root: &Path, changes: &[Change]) -> Vec<SettingError> {
    let (mut ours, mut errors) = (Vec::new(), Vec::new());
    // Read together, because putting one back changes those that are coupled to it.
    for change in changes {
        match change.is_still_ours(root) {
            Ok(true) => ours.push(change),
            Ok(false) => {}
            Err(error) if error.is_gone() => {}
            Err(error) => errors.push(error),
        }
    }
    errors.extend(take_back(root, ours));
    errors
}

/// Puts `changes` back whatever is there now, and read-ahead last; gives what could not be.
pub fn take_back(root: &Path, mut changes: Vec<&Change>) -> Vec<SettingError> {
    changes.sort_by_key(|it| it.back.knob.queue_file() == Some(Path::new(READ_AHEAD)));
    let wanted = changes.iter().filter(|it| !comes_along(it, &changes));
    wanted.filter_map(|it| it.back.put(root).err()).collect()
}

/// Of a ratio and its bytes one is 0, which can't be written: it becomes 0 with the other's value.
/// Both are 0 if the ratio was set to 0.
fn comes_along(change: &Change, all: &[&Change]) -> bool {
    let Some((is_ratio, other)) = other_half(&change.back.knob) else { return false };
    let has_value = |it: &&Change| it.back.knob == other && it.back.value != "0";
    change.back.value == "0" && (!is_ratio || all.iter().any(has_value))
}

/// For a knob that is a ratio, or the number of bytes in place of one: whether it is the ratio, and
/// the other knob.
fn other_half(knob: &Knob) -> Option<(bool, Knob)> {
    let Knob::Sysctl(file) = knob else { return None };
    let is = |name: &str| file == Path::new(name);
    let sysctl = |name: &str| Knob::Sysctl(name.into());
    COUPLED_SYSCTLS.iter().find_map(|(ratio, bytes)| match () {
        () if is(ratio) => Some((true, sysctl(bytes))),
        () if is(bytes) => Some((false, sysctl(ratio))),
        () => None,
    })
}

/// What changes along with `knob`, in the order in which it is put back after it.
fn coupled(root: &Path, knob: &Knob) -> Vec<Knob> {
    let (device, file) = match knob {
        Knob::Queue { device, file } => (*device, file),
        Knob::Sysctl(file) if file == Path::new(CONGESTION[0]) => {
            return vec![Knob::Sysctl(CONGESTION[1].into())];
        }
        _ => return other_half(knob).into_iter().map(|(_, other)| other).collect(),
    };
    let mut coupled = Vec::new();
    if file == Path::new("scheduler") {
        coupled.push(Knob::queue(device, "nr_requests"));
    }
    // Another scheduler begins with its own, and takes its depth from the requests.
    if [Path::new("scheduler"), Path::new("nr_requests")].contains(&file.as_path()) {
        coupled.extend(of_scheduler(root, device));
    }
    // With each limit the kernel works out anew how far it reads ahead, and never lowers it
    // (block/blk-settings.c, `blk_apply_bdi_limits`, Linux 6.18).
    if file != Path::new(READ_AHEAD) {
        coupled.push(Knob::queue(device, READ_AHEAD));
    }
    coupled
}

/// What the scheduler of `device` lets be set of itself.
fn of_scheduler(root: &Path, device: [u32; 2]) -> Vec<Knob> {
    let files = fs::read_dir(queue_of(root, device).join("iosched")).into_iter().flatten();
    let is_set = |it: &fs::DirEntry| it.metadata().is_ok_and(|data| data.mode() & 0o600 == 0o600);
    let named = |it: fs::DirEntry| Some(format!("iosched/{}", it.file_name().to_str()?));
    let mut names: Vec<String> = files.flatten().filter(is_set).filter_map(named).collect();
    names.sort_unstable();
    names.iter().map(|name| Knob::queue(device, name)).collect()
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
        write("sys/module/zfs/parameters/zfs_arc_max", "0\n");
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
            module: [("zfs.zfs_arc_max".to_string(), Scalar::Whole(1 << 28))].into(),
            ..Contender::default()
        }
    }

    #[test]
    fn the_scheduler_comes_first_and_what_changes_along_is_remembered() {
        let (root, device) = machine();
        let wanted = wanted(&contender(), &[device]);
        let name = |setting: &Setting| {
            setting.knob.place(Path::new("/")).1.file_name().unwrap().to_owned()
        };
        let names: Vec<_> = wanted.iter().map(name).collect();
        let all = ["scheduler", "nr_requests", "dirty_background_bytes", "zfs_arc_max"];
        assert_eq!(names, all);
        let before = before(root.path(), &wanted, &[]).unwrap();
        let values: Vec<_> =
            before.iter().map(|c| (name(&c.back), c.back.value.as_str())).collect();
        let expected = [
            ("scheduler", "none"),
            ("nr_requests", "128"),
            // By its own setting, too.
            ("nr_requests", "128"),
            ("dirty_background_bytes", "0"),
            ("dirty_background_ratio", "10"),
            ("zfs_arc_max", "0"),
        ];
        assert_eq!(values, expected.map(|(name, value)| (name.into(), value)));
    }

    /// A machine with files that hold these values, and how to read and to change them.
    struct Files(tempfile::TempDir);

    impl Files {
        fn new(values: &[(&str, &str)]) -> Files {
            let files = Files(tempfile::tempdir().unwrap());
            values.iter().for_each(|(file, value)| files.write(file, value));
            files
        }

        fn write(&self, file: &str, value: &str) {
            let path = self.0.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        }

        fn read(&self, file: &str) -> String {
            fs::read_to_string(self.0.path().join(file)).unwrap().trim().into()
        }

        /// Sets them one by one, and has the kernel change `along` after each.
        fn set(&self, settings: &[Setting], along: &[&[(&str, &str)]]) -> Vec<Change> {
            let changes = before(self.0.path(), settings, &[]).unwrap();
            for (at, setting) in settings.iter().enumerate() {
                setting.set(self.0.path()).unwrap();
                along
                    .get(at)
                    .copied()
                    .unwrap_or_default()
                    .iter()
                    .for_each(|(file, value)| self.write(file, value));
            }
            changes
        }

        fn put_back(&self, changes: &[Change]) {
            let errors = put_back(self.0.path(), changes);
            assert!(errors.is_empty(), "{errors:?}");
        }
    }

    fn sysctl(name: &str, value: &str) -> Setting {
        Setting { knob: Knob::sysctl(name), value: value.into() }
    }

    #[test]
    fn a_disk_that_can_not_be_read_is_not_taken_for_another() {
        let number = "sys/dev/block/7:1/diskseq";
        let files = Files::new(&[(number, "4"), ("sys/dev/block/7:1/queue/rotational", "1")]);
        let rotational = Setting { knob: Knob::queue([7, 1], "rotational"), value: "0".into() };
        let changes = files.set(&[rotational], &[]);
        let path = files.0.path().join(number);
        fs::remove_file(&path).and_then(|()| fs::create_dir(&path)).unwrap();
        let errors = put_back(files.0.path(), &changes);
        assert!(matches!(errors[..], [SettingError::Unreadable { .. }]), "{errors:?}");
        fs::remove_dir(&path).unwrap();
        files.write(number, "5");
        files.put_back(&changes);
        assert_eq!(files.read("sys/dev/block/7:1/queue/rotational"), "0", "another disk's");
        files.write(number, "4");
        files.put_back(&changes);
        assert_eq!(files.read("sys/dev/block/7:1/queue/rotational"), "1");
    }

    #[test]
    fn what_could_not_be_put_back_is_not_set() {
        let files = Files::new(&[("proc/sys/fs/binfmt_misc/x", "enabled\ninterpreter /x\n")]);
        let refused = before(files.0.path(), &[sysctl("fs.binfmt_misc.x", "0")], &[]);
        assert!(matches!(refused, Err(SettingError::NotOneLine { .. })), "{refused:?}");
    }

    const RATIO: &str = "proc/sys/vm/dirty_ratio";
    const BYTES: &str = "proc/sys/vm/dirty_bytes";

    #[test]
    fn both_halves_of_a_pair_go_back_whenever_the_run_is_killed() {
        let both = [sysctl("vm.dirty_bytes", "8192"), sysctl("vm.dirty_ratio", "5")];
        let along: [&[_]; 2] = [&[(RATIO, "0")], &[(BYTES, "0")]];
        for (ratio, bytes) in [("20", "0"), ("0", "4096")] {
            for done in 1..=2 {
                let files = Files::new(&[(RATIO, ratio), (BYTES, bytes)]);
                let changes = before(files.0.path(), &both, &[]).unwrap();
                files.set(&both[..done], &along);
                files.put_back(&changes);
                // The kernel would have cleared the other.
                let half = if ratio == "0" { (BYTES, bytes) } else { (RATIO, ratio) };
                assert_eq!(files.read(half.0), half.1, "{done} of {ratio} and {bytes}");
            }
        }
    }

    #[test]
    fn a_ratio_of_nothing_goes_back_too() {
        let files = Files::new(&[(RATIO, "0"), (BYTES, "0")]);
        let changes = files.set(&[sysctl("vm.dirty_ratio", "5")], &[]);
        files.put_back(&changes);
        assert_eq!((files.read(RATIO), files.read(BYTES)), ("0".into(), "0".into()));
        let changes = files.set(&[sysctl("vm.dirty_bytes", "8192")], &[]);
        let ours: Vec<&Change> = changes.iter().collect();
        let is_written = |it: &&Change| !comes_along(it, &ours);
        let written: Vec<_> = changes.iter().filter(is_written).map(|it| &it.back).collect();
        assert_eq!(written, [&sysctl("vm.dirty_ratio", "0")], "0 bytes can't be written");
    }

    #[test]
    fn one_knob_by_two_names_goes_back_to_what_it_was_first() {
        let queue = "sys/dev/block/7:1/queue/read_ahead_kb";
        let files = Files::new(&[(RATIO, "20"), (BYTES, "0"), (queue, "128")]);
        let twice = [
            sysctl("vm.dirty_ratio", "5"),
            sysctl("vm/dirty_ratio", "7"),
            of_queue("read_ahead", "256"),
            of_queue("read_ahead_kb", "512"),
        ];
        let changes = files.set(&twice, &[]);
        files.put_back(&changes);
        assert_eq!((files.read(RATIO), files.read(queue)), ("20".into(), "128".into()));
        // Another contender of a duet comes when the first has set its own.
        let mut changes = files.set(&twice[..1], &[]);
        changes.extend(before(files.0.path(), &twice[1..2], &changes).unwrap());
        twice[1].set(files.0.path()).unwrap();
        files.put_back(&changes);
        assert_eq!(files.read(RATIO), "20");
    }

    #[test]
    fn overcommit_has_a_ratio_and_an_amount() {
        let ratio = "proc/sys/vm/overcommit_ratio";
        let files = Files::new(&[(ratio, "50"), ("proc/sys/vm/overcommit_kbytes", "0")]);
        let changes = files.set(&[sysctl("vm.overcommit_kbytes", "4096")], &[&[(ratio, "0")]]);
        files.put_back(&changes);
        assert_eq!(files.read(ratio), "50");
    }

    #[test]
    fn a_congestion_control_that_was_chosen_is_no_longer_everybodys() {
        let [default, allowed] = CONGESTION.map(|file| format!("proc/sys/{file}"));
        let files = Files::new(&[(&default, "cubic"), (&allowed, "reno cubic")]);
        let bbr = sysctl("net.ipv4.tcp_congestion_control", "bbr");
        let changes = files.set(&[bbr], &[&[(&allowed, "reno cubic bbr")]]);
        files.put_back(&changes);
        assert_eq!(
            (files.read(&default), files.read(&allowed)),
            ("cubic".into(), "reno cubic".into())
        );
    }

    #[test]
    fn a_limit_of_the_queue_raises_read_ahead_which_goes_back_last() {
        let queue = |file: &str| format!("sys/dev/block/7:1/queue/{file}");
        let (ahead, rotates) = (queue("read_ahead_kb"), queue("rotational"));
        let files = Files::new(&[(&ahead, "128"), (&rotates, "0")]);
        let rotational = of_queue("rotational", "1");
        let changes = files.set(std::slice::from_ref(&rotational), &[&[(&ahead, "2560")]]);
        let last = changes.last().unwrap();
        assert_eq!((&last.back, &last.ours), (&of_queue("read_ahead", "128"), &rotational));
        files.put_back(&changes);
        assert_eq!((files.read(&ahead), files.read(&rotates)), ("128".into(), "0".into()));
        let device = machine().1;
        let queue = ["read_ahead", "rotational", "nr_requests", "scheduler"];
        let queue = queue.map(|file| (file.to_string(), Scalar::Whole(1))).into();
        let contender = Contender { queue, ..Contender::default() };
        let wanted = wanted(&contender, &[device]);
        let order = ["scheduler", "nr_requests", "rotational", "read_ahead_kb"];
        assert_eq!(wanted, order.map(|file| of_queue(file, "1")));
    }

    #[test]
    fn a_scheduler_comes_back_with_what_was_set_of_it() {
        let queue = |file: &str| format!("sys/dev/block/7:1/queue/{file}");
        let (batch, scheduler) = (queue("iosched/fifo_batch"), queue("scheduler"));
        let files = Files::new(&[
            (&scheduler, "mq-deadline"),
            (&queue("nr_requests"), "64"),
            (&batch, "32"),
        ]);
        let kyber = of_queue("scheduler", "kyber");
        // Its own are not there yet, and go with it.
        let latency = of_queue("iosched/read_lat_nsec", "1000");
        let changes = before(files.0.path(), &[kyber.clone(), latency], &[]).unwrap();
        kyber.set(files.0.path()).unwrap();
        files.write(&batch, "16");
        let names: Vec<_> = changes.iter().filter_map(|it| it.back.knob.queue_file()).collect();
        assert_eq!(names, ["scheduler", "nr_requests", "iosched/fifo_batch"].map(Path::new));
        files.put_back(&changes);
        assert_eq!(
            (files.read(&scheduler), files.read(&batch)),
            ("mq-deadline".into(), "32".into())
        );
    }

    #[test]
    fn what_was_empty_is_emptied_again() {
        let file = "proc/sys/net/ipv4/ip_local_reserved_ports";
        let files = Files::new(&[(file, "\n")]);
        let changes = files.set(&[sysctl("net.ipv4.ip_local_reserved_ports", "8080")], &[]);
        files.put_back(&changes);
        let text = fs::read_to_string(files.0.path().join(file)).unwrap();
        assert_eq!(text, "\n", "without a byte there is no system call");
    }

    fn of_queue(file: &str, value: &str) -> Setting {
        Setting { knob: Knob::queue([7, 1], file), value: value.into() }
    }

    #[test]
    fn a_setting_that_reads_back_differently_is_an_error() {
        let (root, _) = machine();
        of_queue("nr_requests", "64").set(root.path()).unwrap();
        // A plain file keeps what was written; the kernel's would still say [none].
        let error = of_queue("scheduler", "[none] bfq").set(root.path()).unwrap_err().to_string();
        assert!(error.contains("did not take"), "{error}");
        let gone = of_queue("gone", "1").set(root.path()).unwrap_err();
        assert!(gone.to_string().contains("can't be set"), "{gone}");
    }

    #[test]
    fn what_did_not_take_is_put_back_at_once() {
        let (root, _) = machine();
        let file = root.path().join("sys/dev/block/7:1/queue/nr_requests");
        // It reads back as `none`.
        let wanted = [of_queue("nr_requests", "[none] bfq")];
        let changes = before(root.path(), &wanted, &[]).unwrap();
        let error = set_all(root.path(), &wanted, &changes).unwrap_err();
        assert!(matches!(error, SettingError::NotTaken { .. }), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "128");
    }

    #[test]
    fn a_switch_of_a_module_is_the_same_in_all_its_words() {
        let of_module = |value: &str| Setting { knob: Knob::module("a.b"), value: value.into() };
        assert_eq!(of_module("1"), of_module("Y"));
        assert_eq!(of_module("false"), of_module("N"));
        assert_ne!(of_module("1"), of_module("N"));
        assert_ne!(of_module("2"), of_module("Y"));
        assert_ne!(of_queue("x", "1"), of_queue("x", "Y"));
    }

    #[test]
    fn several_numbers_are_the_same_whatever_is_between_them() {
        let (root, _) = machine();
        let knob = Knob::sysctl("net.ipv4.tcp_rmem");
        let file = root.path().join("proc/sys/net/ipv4/tcp_rmem");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "4096\t131072\t6291456\n").unwrap();
        let setting = |value: &str| Setting { knob: knob.clone(), value: value.into() };
        assert_eq!(setting("").current(root.path()).unwrap(), setting("4096 131072 6291456"));
        assert_ne!(setting("4096 131072"), setting("4096 131072 6291456"));
        assert_ne!(setting("40 96"), setting("4096"));
    }

    #[test]
    fn nothing_but_a_knob_is_written() {
        let (root, _) = machine();
        let victim = root.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, root.path().join("proc/sys/vm/link")).unwrap();
        let absolute = victim.display().to_string();
        let mut knobs: Vec<Knob> =
            ["...victim", "/../victim", "../../victim", "vm.link", "vm/../../../victim", &absolute]
                .map(Knob::sysctl)
                .into();
        knobs.push(Knob::queue([7, 1], "../../../../../victim"));
        knobs.push(Knob::queue([7, 1], &absolute));
        for knob in knobs {
            let error = Setting { knob, value: "HELLO".into() }.set(root.path()).unwrap_err();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{error}");
        }
    }

    #[test]
    fn only_what_still_is_as_we_set_it_is_put_back() {
        let (root, _) = machine();
        let file = root.path().join("sys/dev/block/7:1/queue/nr_requests");
        let (root, ours) = (root.path(), of_queue("nr_requests", "64"));
        let changes = before(root, std::slice::from_ref(&ours), &[]).unwrap();
        let now = || fs::read_to_string(&file).unwrap().trim().to_string();
        assert!(put_back(root, &changes).is_empty());
        assert_eq!(now(), "128", "it was never changed");
        ours.set(root).unwrap();
        fs::write(&file, "32").unwrap();
        assert!(put_back(root, &changes).is_empty());
        assert_eq!(now(), "32", "somebody else has changed it since");
        ours.set(root).unwrap();
        assert!(put_back(root, &changes).is_empty());
        assert_eq!(now(), "128");
    }

    #[test]
    fn a_disk_that_has_got_the_number_since_keeps_what_it_has() {
        let (root, _) = machine();
        let disk = root.path().join("sys/dev/block/7:1");
        let root = root.path();
        let is_put_back = |sequence: &str| {
            fs::write(disk.join("queue/nr_requests"), "128").unwrap();
            fs::write(disk.join("diskseq"), "41\n").unwrap();
            let ours = of_queue("nr_requests", "64");
            let changes = before(root, std::slice::from_ref(&ours), &[]).unwrap();
            ours.set(root).unwrap();
            fs::write(disk.join("diskseq"), sequence).unwrap();
            assert!(put_back(root, &changes).is_empty());
            fs::read_to_string(disk.join("queue/nr_requests")).unwrap().trim() == "128"
        };
        assert!(is_put_back("41\n"));
        assert!(!is_put_back("42\n"));
    }

    #[test]
    fn what_can_not_be_read_is_told_and_what_is_gone_is_not() {
        let (root, _) = machine();
        let file = root.path().join("sys/dev/block/7:1/queue/nr_requests");
        let (root, ours) = (root.path(), of_queue("nr_requests", "64"));
        let changes = before(root, std::slice::from_ref(&ours), &[]).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(put_back(root, &changes).is_empty());
        fs::create_dir(&file).unwrap();
        let errors = put_back(root, &changes);
        assert!(matches!(errors[..], [SettingError::Unreadable { .. }]), "{errors:?}");
    }
}
