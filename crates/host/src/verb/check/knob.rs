//! Values for files of the kernel's: queue settings on a loop device of our own, sysctls on the
//! machine and back at once. Both outlive us, so they are journalled before they are made.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fsverdict_core::model::{Checked, Judged};
use fsverdict_core::script::Knob;

use super::bench::{Bench, Disk};
use super::{documented, mounting, topology, writeback};
use crate::bed;
use crate::machine::knob;
use crate::machine::settings::{self, Change, Setting, SettingError};
use crate::sys;
use crate::undo::{self, Journal, SettingsLock, Undo};

/// One value that a file asks for.
pub struct Wish<'a> {
    pub knob: &'a Knob,
    pub value: &'a str,
    pub blank: Checked,
}

/// Sysctls that may be set for a moment: they are limits and weights that the kernel looks at when
/// it next writes back or reclaims. Writing to others acts at once (`vm.drop_caches`,
/// `vm.nr_hugepages`) or for good (`kernel.modules_disabled`).
const HARMLESS: [&str; 4] =
    ["vm.dirty_", "vm.dirtytime_", "vm.swappiness", "vm.vfs_cache_pressure"];

/// Where `/proc` and `/sys` are.
const ROOT: &str = "/";

/// No setting shows more: a file of /proc or /sys may have no end.
const SHOWN_BYTES_MAX: u64 = 4096;

/// Findings for all knobs of a file, in their order: one setting may undo another.
pub fn check(bench: &Bench, wishes: &[Wish]) -> Vec<Checked> {
    let (queues, rest): (Vec<&Wish>, Vec<&Wish>) =
        wishes.iter().partition(|wish| matches!(wish.knob, Knob::Queue { .. }));
    let (sysctls, others): (Vec<&Wish>, Vec<&Wish>) =
        rest.into_iter().partition(|wish| matches!(wish.knob, Knob::Sysctl(_)));
    let mut findings: Vec<Checked> = others.iter().map(|wish| other(wish)).collect();
    findings.extend(tried(&queues, |changes| check_queues(bench, &queues, changes)));
    findings.extend(tried(&sysctls, |changes| check_sysctls(bench, &sysctls, changes)));
    findings
}

fn tried(
    wishes: &[&Wish],
    check: impl FnOnce(&mut Changes) -> Result<Vec<Checked>, String>,
) -> Vec<Checked> {
    if wishes.is_empty() {
        return Vec::new();
    }
    let found = Changes::new().and_then(|mut changes| check(&mut changes));
    found.unwrap_or_else(|why| wishes.iter().map(|wish| untried(wish, &why)).collect())
}

fn finding(wish: &Wish, state: Judged, said: impl Into<String>) -> Checked {
    let name = match wish.knob {
        Knob::Queue { file, .. } => file,
        Knob::Sysctl(name) | Knob::Other(name) => name,
    };
    let setting = format!("{name} = {}", wish.value);
    Checked { setting, state, said: Some(said.into()), ..wish.blank.clone() }
}

fn untried(wish: &Wish, why: &str) -> Checked {
    finding(wish, Judged::NotTried, why)
}

fn other(wish: &Wish) -> Checked {
    let Knob::Other(path) = wish.knob else { return untried(wish, "") };
    match shown(Path::new(path)) {
        Ok(text) => {
            let said = format!(
                "it exists here, with {:?}; fsverdict tries queues and sysctls only",
                text.trim()
            );
            untried(wish, &said)
        }
        Err(_) => {
            untried(wish, "this machine has no such setting; fsverdict tries queues and sysctls")
        }
    }
}

/// The beginning of what a file of the kernel's shows, if it is a setting: a regular file of /proc
/// or /sys, wherever links lead, that its owner can write. Others may hold secrets (/proc/kcore) or
/// lose what is read (/proc/kmsg).
fn shown(path: &Path) -> io::Result<String> {
    let path = fs::canonicalize(path)?;
    if !["/proc", "/sys"].iter().any(|root| path.starts_with(root)) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let file = sys::open_without_links(&path, libc::O_RDONLY | libc::O_NONBLOCK)?;
    let data = file.metadata()?;
    if !data.is_file() || data.mode() & 0o200 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut bytes = Vec::new();
    file.take(SHOWN_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What was changed, to be put back: written to a journal first, for the case that we are killed.
struct Changes {
    journal: Option<Journal>,
    /// The number of the loop device of ours whose queue is changed.
    number: Option<u32>,
    /// What each setting changed, in order.
    made: Vec<Vec<Change>>,
}

impl Changes {
    fn new() -> Result<Changes, String> {
        let journal = Journal::open(None).map_err(|error| format!("the undo journal: {error}"))?;
        Ok(Changes { journal: Some(journal), number: None, made: Vec::new() })
    }

    /// Sets it, its old value and those that it drags along remembered.
    fn set(&mut self, setting: &Setting) -> Result<(), SettingError> {
        let changes = settings::before(ROOT.as_ref(), std::slice::from_ref(setting), &[])?;
        let unwritten =
            |source| SettingError::Unreadable { knob: "the undo journal".into(), source };
        if let Some(journal) = &mut self.journal {
            let undo = match self.number {
                Some(number) => {
                    let image = Some((number, journal.token().clone()));
                    Undo::Bed(bed::Undo::queue(image, changes.clone()))
                }
                None => Undo::Settings(changes.clone()),
            };
            journal.before(&undo).map_err(unwritten)?;
        }
        let done = setting.set(ROOT.as_ref());
        match done {
            // Something else was set than what was asked for: it would not be known as ours later.
            Err(SettingError::NotTaken { .. }) => {
                let errors = settings::take_back(ROOT.as_ref(), changes.iter().collect());
                errors.into_iter().next().map_or(Ok(()), Err)?;
            }
            Ok(()) => self.made.push(changes),
            Err(_) => {}
        }
        done
    }

    /// Step by step backwards: a knob that was set twice has two former values. What could not be
    /// put back stays in the journal, for `clean`.
    fn put_back(&mut self) {
        let made = std::mem::take(&mut self.made);
        let failed =
            made.iter().rev().any(|changes| !settings::put_back(ROOT.as_ref(), changes).is_empty());
        if failed {
            self.journal = None;
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.put_back();
        if let Some(journal) = self.journal.take() {
            let _ = journal.close();
        }
    }
}

fn check_sysctls(
    bench: &Bench,
    wishes: &[&Wish],
    changes: &mut Changes,
) -> Result<Vec<Checked>, String> {
    let mut findings: Vec<Checked> = Vec::new();
    let mut taken = Taken::default();
    let locked = lock();
    for wish in wishes {
        let Knob::Sysctl(name) = wish.knob else { continue };
        let setting = match setting_of(name, wish.value) {
            Ok(setting) => setting,
            Err(said) => {
                findings.push(finding(wish, Judged::Invalid, said));
                continue;
            }
        };
        findings.push(sysctl(bench, wish, name, &setting, &locked, changes));
        let last = findings.len() - 1;
        if matches!(findings[last].state, Judged::Ok | Judged::Redundant) {
            taken.add(&mut findings, last, setting);
        }
    }
    changes.put_back();
    let pairs = wishes.iter().filter_map(|wish| match wish.knob {
        Knob::Sysctl(name) => Some((name.as_str(), wish.value)),
        _ => None,
    });
    writeback::judge(&mut findings, &pairs.collect::<Vec<_>>());
    Ok(findings)
}

/// Sysctls are the whole machine's: a run that has set some would measure under ours for a moment.
fn lock() -> Result<SettingsLock, String> {
    undo::lock_settings().map_err(|error| error.to_string())
}

fn setting_of(name: &str, value: &str) -> Result<Setting, String> {
    let knob = knob::Knob::sysctl(name);
    match knob.exists() {
        true => Ok(Setting { knob, value: value.into() }),
        false => Err(format!("this kernel has no sysctl {name}")),
    }
}

fn sysctl(
    bench: &Bench,
    wish: &Wish,
    name: &str,
    setting: &Setting,
    locked: &Result<SettingsLock, String>,
    changes: &mut Changes,
) -> Checked {
    let Ok(now) = setting.current(ROOT.as_ref()) else {
        return untried(wish, "it can be written only, which would act at once");
    };
    let words = |text: &str| text.split_whitespace().count();
    let is_number = |text: &str| text.split_whitespace().all(|word| word.parse::<i64>().is_ok());
    if words(&now.value) != words(wish.value) || (is_number(&now.value) && !is_number(wish.value)) {
        return finding(
            wish,
            Judged::Invalid,
            format!("this machine has {:?}, a value of another kind", now.value),
        );
    }
    if now.value == wish.value {
        return finding(wish, Judged::Redundant, "this machine has this value already");
    }
    let was = format!("{} on this machine", now.value);
    if !HARMLESS.iter().any(|prefix| name.starts_with(prefix)) {
        return untried(wish, &format!("it exists, {was}; writing it may act at once"));
    }
    if !bench.root {
        return untried(wish, &format!("it exists, {was}; setting it needs root"));
    }
    if let Err(why) = locked {
        return untried(wish, &format!("it exists, {was}; {why}"));
    }
    match changes.set(setting) {
        Ok(()) => finding(wish, Judged::Ok, format!("taken and put back; {was}")),
        Err(error) => finding(wish, Judged::Invalid, format!("the kernel: {:?}", reason(&error))),
    }
}

/// Of an error only what the kernel said.
fn reason(error: &SettingError) -> String {
    let SettingError::Refused { source, .. } = error else { return error.to_string() };
    let text = source.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

/// Settings that were taken, by the numbers of their findings.
#[derive(Default)]
struct Taken(Vec<(usize, Setting)>);

impl Taken {
    /// Looks whether the one just taken has undone an earlier one: the same knob again, or one
    /// that the kernel changes along with it.
    fn add(&mut self, findings: &mut [Checked], index: usize, setting: Setting) {
        let line = findings[index].line;
        self.0.retain(|(earlier, known)| {
            let now = known.current(ROOT.as_ref()).map(|now| now.value).unwrap_or_default();
            if now == known.value {
                return true;
            }
            let how = if known.knob == setting.knob { "sets it again" } else { "undoes it" };
            findings[*earlier].state = Judged::NoEffect;
            findings[*earlier].said =
                Some(format!("line {line} {how}, so that it ends as {now:?}"));
            false
        });
        self.0.push((index, setting));
    }
}

fn check_queues(
    bench: &Bench,
    wishes: &[&Wish],
    changes: &mut Changes,
) -> Result<Vec<Checked>, String> {
    if !bench.root {
        return Err("setting a device's queue needs root: run it with sudo".into());
    }
    let mut findings = vec![None; wishes.len()];
    let mut devices: Vec<&str> = wishes.iter().map(|wish| device(wish)).collect();
    devices.sort_unstable();
    devices.dedup();
    // A disk of ours for each of the file's.
    for name in devices {
        let disk = bench.disk()?;
        let number = disk.device().ok_or("no loop device")?.number;
        changes.number = disk.number();
        let mut trial = QueueTrial { bench, disk, number, changes };
        let mut own: Vec<Checked> = Vec::new();
        let mut taken = Taken::default();
        let mine: Vec<usize> = (0..wishes.len()).filter(|&i| device(wishes[i]) == name).collect();
        for &index in &mine {
            let (finding, setting) = trial.check(wishes[index]);
            own.push(finding);
            if let Some(setting) = setting {
                let last = own.len() - 1;
                taken.add(&mut own, last, setting);
            }
        }
        // They stay with the loop device's number after it is detached: its next user would have
        // them.
        trial.changes.put_back();
        for (index, finding) in mine.into_iter().zip(own) {
            findings[index] = Some(finding);
        }
    }
    Ok(findings.into_iter().flatten().collect())
}

fn device<'a>(wish: &Wish<'a>) -> &'a str {
    match wish.knob {
        Knob::Queue { device, .. } => device,
        _ => "",
    }
}

struct QueueTrial<'a> {
    bench: &'a Bench,
    disk: Disk,
    number: [u32; 2],
    changes: &'a mut Changes,
}

impl QueueTrial<'_> {
    fn setting(&self, file: &str, value: &str) -> Setting {
        Setting { knob: knob::Knob::queue(self.number, file), value: value.into() }
    }

    /// The finding, and the setting if it was taken.
    fn check(&mut self, wish: &Wish) -> (Checked, Option<Setting>) {
        let Knob::Queue { file, device } = wish.knob else {
            return (untried(wish, "no queue"), None);
        };
        let setting = self.setting(file, wish.value);
        if !setting.knob.exists() {
            let said = format!("a queue has no file {file} here");
            return (finding(wish, Judged::Invalid, said), None);
        }
        let yours = topology::queue(device)
            .and_then(|queue| fs::read_to_string(queue.join(file)).ok())
            .map(|text| format!("; {device} has {:?} now", text.trim()))
            .unwrap_or_default();
        let flushes = mounting::flushes_of_ext4(self.bench, &self.disk);
        if let Err(error) = self.changes.set(&setting) {
            if let SettingError::NotTaken { seen, .. } = &error {
                let said = format!("the kernel takes it without a word, but shows {seen:?}{yours}");
                return (finding(wish, Judged::NoEffect, said), None);
            }
            return (self.refused(wish, file, &reason(&error), &yours), None);
        }
        let mut found = finding(wish, Judged::Ok, format!("taken by a loop device's queue{yours}"));
        let after = mounting::flushes_of_ext4(self.bench, &self.disk);
        if flushes.is_some_and(|count| count > 0) && after == Some(0) {
            found.state = Judged::Unsafe;
            found.said =
                Some("gives up durability: an fsync on ext4 sends no flush any more".into());
            found.advice = Some(
                "leave it as the device reports it, unless its cache survives a power failure"
                    .into(),
            );
        }
        // Where no flush could be counted, or the disk had none before.
        documented::judge_queue(&mut found);
        (found, Some(setting))
    }

    fn refused(&mut self, wish: &Wish, file: &str, said: &str, yours: &str) -> Checked {
        let now =
            self.setting(file, "").current(ROOT.as_ref()).map(|now| now.value).unwrap_or_default();
        let text = self.setting(file, "").knob.text(ROOT.as_ref()).unwrap_or_default();
        let mut found = finding(wish, Judged::Invalid, "");
        if text.contains('[') {
            found.said = Some(format!("the kernel: {said:?}; there is {}{yours}", text.trim()));
            if file == "scheduler" {
                let module = format!("modprobe {0} or {0}-iosched may bring it", wish.value);
                found.advice = Some(format!("choose one of these; {module}"));
            }
            return found;
        }
        let scheduler = self.setting("scheduler", "").current(ROOT.as_ref());
        let scheduler = scheduler.map(|setting| setting.value).unwrap_or_default();
        found.said = Some(format!(
            "the kernel: {said:?}, under scheduler {scheduler}, of a loop device with {now}{yours}"
        ));
        found.advice = self.other_scheduler(wish, file, &scheduler);
        found
    }

    /// Whether another scheduler takes the value. The one that was set comes back.
    fn other_scheduler(&mut self, wish: &Wish, file: &str, scheduler: &str) -> Option<String> {
        let text = self.setting("scheduler", "").knob.text(ROOT.as_ref()).ok()?;
        let names: Vec<&str> = text.split_whitespace().filter(|n| !n.starts_with('[')).collect();
        let (limit, mut takers) = (self.setting(file, "").current(ROOT.as_ref()).ok()?, Vec::new());
        for name in names {
            let chosen = self.changes.set(&self.setting("scheduler", name)).is_ok();
            if chosen && self.changes.set(&self.setting(file, wish.value)).is_ok() {
                takers.push(name);
            }
        }
        let _ = self.changes.set(&self.setting("scheduler", scheduler));
        let _ = self.changes.set(&limit);
        if takers.is_empty() {
            return None;
        }
        Some(format!(
            "{} took it (tried): set the scheduler first, as setting one resets {file}. Under \
             {scheduler} the hardware queue is the limit: {} here; on an NVMe it is what {file} \
             shows after boot, maybe more",
            takers.join(", "),
            limit.value,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_the_kernel_are_shown() {
        for path in [
            "/proc/../etc/passwd",
            "/proc/self/root/etc/passwd",
            "/sys/../dev/zero",
            "/proc/kmsg",
            "/proc/self/environ",
            "/proc/self/maps",
            "/proc/self",
        ] {
            assert!(shown(Path::new(path)).is_err(), "{path}");
        }
        assert!(!shown(Path::new("/proc/self/comm")).unwrap().is_empty());
    }

    /// A queue setting stays after its device is detached.
    #[test]
    #[ignore = "needs root and loop devices: run ./test"]
    fn loop_a_queue_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = tempfile::tempfile_in(&folder).unwrap();
        file.set_len(1 << 20).unwrap();
        let device = crate::bed::LoopDevice::attach_file(&file, false, 0).unwrap();
        let number = device.device().number;
        let setting = |file: &str, value: &str| {
            let knob = knob::Knob::queue(number, file);
            Setting { knob, value: value.into() }
        };
        let files = ["scheduler", "nr_requests", "rq_affinity", "write_cache"];
        let read = || files.map(|file| setting(file, "").current(ROOT.as_ref()).unwrap().value);
        let before = read();
        // Kernels differ in what else they have.
        let schedulers = knob::Knob::queue(number, "scheduler").text(ROOT.as_ref()).unwrap();
        let mut others = schedulers.split_whitespace().map(|it| it.trim_matches(['[', ']']));
        let other = others.find(|name| !["none", "mq-deadline"].contains(name));
        let mut changes = Changes::new().unwrap();
        changes.number = Some(device.number());
        for (file, value) in [
            ("scheduler", "mq-deadline"),
            ("nr_requests", "77"),
            ("scheduler", "none"),
            ("scheduler", other.unwrap_or("mq-deadline")),
            ("nr_requests", "99"),
            ("write_cache", "write through"),
        ] {
            changes.set(&setting(file, value)).unwrap();
        }
        let odd = changes.set(&setting("rq_affinity", "7"));
        assert!(matches!(odd, Err(SettingError::NotTaken { .. })), "{odd:?}");
        assert_ne!(read(), before);
        let journal = changes.journal.as_ref().unwrap().path();
        drop(changes);
        assert_eq!(read(), before);
        assert!(!journal.exists());
        device.detach().unwrap();
    }
}
