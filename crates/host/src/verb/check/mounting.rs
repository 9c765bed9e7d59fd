//! Mount options: what the kernel shows, and what a mounted file system then does.

use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fsverdict_core::model::{Checked, Judged};
use fsverdict_core::script::{Call, Choice, Mount, is_unknown};

use super::bench::{Bench, Disk, Mounted, Refused};
use super::elsewhere::elsewhere;
use super::sort::{Change, Facts, Fate, sort};
use super::{documented, finding};
use crate::file_system::Site;
use crate::machine::mount;
use crate::{file_system, sys, tool};

/// Names of what is measured. They hold a space, which options don't.
const FLUSHES: &str = "flushes of one fsync";
const DISCARDS: &str = "discards when a file is deleted";
const FILE_TIME: &str = "reading a file updates its access time";
const FOLDER_TIME: &str = "listing a folder updates its access time";

/// What is deleted to see discards. Large enough not to lie within an inode or a leaf.
const DELETED_BYTES: usize = 8 << 20;
/// How long discards are waited for at most, where the kernel says that there will be some. A busy
/// machine's workers have been later than half a second.
const DISCARD_PATIENCE: Duration = Duration::from_secs(20);
/// And where it sends them when it finds the time (btrfs(5), discard=async; kernel,
/// filesystems/f2fs, discard).
const ASYNC_PATIENCE: Duration = Duration::from_millis(500);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Options that mount(8) or systemd reads and the file system never sees: mount(8),
/// "filesystem-independent mount options"; systemd.mount(5), "fstab".
const READ_ABOVE: [&str; 9] =
    ["auto", "noauto", "user", "nouser", "users", "owner", "group", "_netdev", "nofail"];

/// Options that turn the command into another one, or want what an empty image lacks.
const OTHER_COMMANDS: [&str; 9] =
    ["bind", "rbind", "move", "remount", "loop", "offset", "sizelimit", "subvol", "subvolid"];

/// The kind of file system that is mounted: as given, or as the file makes it on that device.
pub fn kind(wish: &Mount, calls: &[(&Call, Vec<Choice>)]) -> String {
    let given = wish.file_system.clone().filter(|kind| !kind.is_empty() && kind != "auto");
    let made = || {
        let on_it = |call: &&(&Call, _)| call.0.devices.contains(&wish.device);
        let program = &calls.iter().rfind(on_it)?.0.program;
        program.strip_prefix("mkfs.").map(String::from)
    };
    given.or_else(made).unwrap_or_default()
}

/// Findings for a mount. `made` are the options with which the file makes such a file system.
pub fn check(
    bench: &Bench,
    wish: &Mount,
    kind: &str,
    made: &[Choice],
    blank: &Checked,
) -> Vec<Checked> {
    let options: Vec<Choice> = wish.options.iter().filter_map(|it| option(it)).collect();
    let none_tried = |why: &str| options.iter().map(|it| untried(blank, it, why, kind)).collect();
    if kind.is_empty() {
        return none_tried(
            "its file system is given neither here (-t) nor by a mkfs of this device",
        );
    }
    if !bench.root {
        return none_tried("mounting needs root: run it with sudo");
    }
    let mut mounter = Mounter { bench, kind, made, log: Vec::new() };
    let mut findings = Vec::new();
    let (mine, other): (Vec<Choice>, Vec<Choice>) = options.iter().cloned().partition(|it| {
        !elsewhere(it, "mount")
            && !is_unknown(it.key())
            && above(it).is_none()
            && !OTHER_COMMANDS.contains(&it.key())
    });
    findings.extend(other.iter().map(|it| match above(it) {
        Some(said) => {
            let (setting, said) = (it.to_string(), Some(said));
            Checked { setting, said, ..blank.clone() }
        }
        None if OTHER_COMMANDS.contains(&it.key()) => {
            finding::untried(blank, it, "it makes no sense for an empty image of its own")
        }
        None if is_unknown(it.key()) => finding::unknown(blank, &it.to_string()),
        None => finding::elsewhere(blank, it),
    }));
    match sort(&mine, &mut |choices| mounter.facts(choices)) {
        Err(why) => findings.extend(mine.iter().map(|it| untried(blank, it, &why, kind))),
        Ok(fates) => {
            let none = mounter.facts(&[]).unwrap_or_default();
            let pairs = mine.iter().zip(&fates);
            findings.extend(pairs.map(|(it, fate)| mounter.judged(blank, it, fate, &none)));
        }
    }
    let place = |it: &Checked| options.iter().position(|choice| choice.to_string() == it.setting);
    findings.sort_by_key(|it| place(it));
    findings
}

/// It could not be tried; what the manual says of it holds all the same.
fn untried(blank: &Checked, it: &Choice, why: &str, kind: &str) -> Checked {
    let mut found = finding::untried(blank, it, why);
    documented::judge(&mut found, kind, it.value.as_deref());
    found
}

/// `defaults` stands for nothing: fstab(5) wants something in its place.
fn option(text: &str) -> Option<Choice> {
    let value = text.trim();
    (!value.is_empty() && value != "defaults").then(|| Choice {
        group: 0,
        flag: "-o".into(),
        attached: false,
        value: Some(value.into()),
    })
}

fn above(it: &Choice) -> Option<String> {
    let key = it.key();
    let systemd = key.to_lowercase().starts_with("x-") || key == "comment";
    (systemd || READ_ABOVE.contains(&key))
        .then(|| "read by mount(8) or systemd; the file system never sees it".into())
}

struct Mounter<'a> {
    bench: &'a Bench,
    kind: &'a str,
    made: &'a [Choice],
    /// What the kernel said of mounts that it made.
    log: Vec<String>,
}

impl Mounter<'_> {
    /// A disk with a file system as the file makes it, or as mkfs does.
    fn disk(&self) -> Result<Disk, Refused> {
        let disk = self.bench.disk().map_err(Refused::Unasked)?;
        make(self.bench, &disk, self.kind, self.made)
            .or_else(|_| make(self.bench, &disk, self.kind, &[]))
            .map_err(Refused::Unasked)?;
        Ok(disk)
    }

    fn facts(&mut self, choices: &[Choice]) -> Result<Facts, Refused> {
        let disk = self.disk()?;
        let options: Vec<String> = choices.iter().filter_map(|it| it.value.clone()).collect();
        let mounted = self.bench.mount(&disk.node(), self.kind, &options)?;
        self.log.extend(mounted.log.iter().cloned());
        let mut facts = shown(&mounted);
        let at_commit = ["ext4", "xfs"].contains(&self.kind);
        let patience = match facts.contains_key("discard") {
            false => Duration::ZERO,
            true if at_commit => DISCARD_PATIENCE,
            true => ASYNC_PATIENCE,
        };
        facts.extend(behaviour(&disk, &mounted.at, patience));
        Ok(facts)
    }

    fn judged(&mut self, blank: &Checked, it: &Choice, fate: &Fate, none: &Facts) -> Checked {
        let mut found = finding::of(blank, it, fate, "the kernel");
        let option = it.value.clone().unwrap_or_default();
        if let Fate::Refused(text) = fate {
            found.said = Some(of_option(text, it.key()));
            found.advice = finding::is_unknown(text).then(|| self.belongs(it)).flatten();
            return found;
        }
        if let Fate::Changes(changes) = fate {
            found.said = Some(told(changes));
            judge_changes(&mut found, changes, &option);
        }
        // Two that each give it up hide one another: so alone, too.
        let alone = self.facts(std::slice::from_ref(it));
        if alone.is_ok_and(|alone| gives_up_flushes(none, &alone)) {
            give_up_flushes(&mut found, none.get(FLUSHES));
        }
        let key = it.key().trim_start_matches("no");
        let said = self.log.iter().find(|line| line.to_lowercase().contains(key));
        if let Some(said) = said.filter(|line| is_ignored(line)) {
            found.said = Some(format!("the kernel: {said:?}"));
            if matches!(found.state, Judged::Redundant | Judged::Ok) {
                found.state = Judged::NoEffect;
            }
        }
        documented::judge(&mut found, self.kind, it.value.as_deref());
        found
    }

    /// It is an option of mkfs.
    fn belongs(&self, it: &Choice) -> Option<String> {
        let value = it.value.clone()?;
        let flags: &[&str] = match self.kind {
            "xfs" => &["-b", "-d", "-i", "-l", "-m", "-n", "-s"],
            kind if kind.starts_with("ext") => &["-O", "-E"],
            _ => &["-O"],
        };
        let taken: Vec<String> = flags
            .iter()
            .map(|flag| Choice { flag: (*flag).into(), value: Some(value.clone()), ..it.clone() })
            .filter(|choice| {
                let only = std::slice::from_ref(choice);
                let make = |disk| make(self.bench, &disk, self.kind, only);
                self.bench.disk().and_then(make).is_ok()
            })
            .map(|choice| choice.to_string())
            .collect();
        let list = taken.join(" or ");
        (!taken.is_empty()).then(|| {
            format!("it is set when the file system is made: mkfs.{} {list} (tried)", self.kind)
        })
    }
}

/// Of the kernel's lines those that name the option, if any does.
fn of_option(said: &str, key: &str) -> String {
    let Some(lines) = said.strip_prefix("the kernel: \"") else { return said.into() };
    let lines: Vec<&str> = lines.trim_end_matches('"').split("; ").collect();
    let named: Vec<&str> = lines.iter().filter(|line| line.contains(key)).copied().collect();
    let lines = if named.is_empty() { lines } else { named };
    format!("the kernel: \"{}\"", lines.join("; "))
}

/// What the kernel shows, and what the file system does that it did not do without.
fn told(changes: &[Change]) -> String {
    let is_option = |change: &&Change| !change.name.contains(' ');
    let shown: Vec<String> = changes
        .iter()
        .filter(is_option)
        .map(|change| match change.to.as_deref() {
            None => format!("no {} any more", change.name),
            Some("") => change.name.clone(),
            Some(value) => format!("{}={value}", change.name),
        })
        .collect();
    let mut texts: Vec<String> = Vec::new();
    if !shown.is_empty() {
        texts.push(format!("the kernel shows {}", shown.join(", ")));
    }
    // What could not be tried with the option, as on a read-only mount, says nothing.
    let done = changes.iter().filter(|change| !is_option(change));
    texts.extend(done.filter_map(|change| {
        let (from, to) = (change.from.as_ref()?, change.to.as_ref()?);
        Some(format!("{}: {from} -> {to}", change.name))
    }));
    texts.join("; ")
}

/// Makes a file system with our own options beside those of `choices`.
pub fn make(bench: &Bench, disk: &Disk, kind: &str, choices: &[Choice]) -> Result<(), String> {
    let options = fsverdict_core::script::argv(choices);
    let site = Site { devices: &[disk.node()], ..Site::default() };
    let argv = match file_system::find(kind).and_then(|known| known.mkfs(&options, &site)) {
        Some(argv) => argv,
        None => {
            let start = [format!("mkfs.{kind}")].into_iter();
            let force = kind.starts_with("ext").then(|| "-F".to_string());
            start.chain(force).chain(options).chain([disk.node()]).collect()
        }
    };
    let answer = bench.ask(&argv, std::slice::from_ref(disk)).map_err(|error| error.to_string())?;
    match answer.status.success() {
        true => Ok(()),
        false => Err(format!("{} {}", argv[0], tool::ended(answer.status))),
    }
}

/// The options that the kernel shows. Those of access times are left to what reading does.
fn shown(mounted: &Mounted) -> Facts {
    let mount = mount::of_thread(&mounted.at.display().to_string()).ok().flatten();
    let options = mount.map(|mount| mount.options).unwrap_or_default();
    let of_times = |option: &String| option.contains("atime") && !option.contains("lazy");
    options
        .into_iter()
        .filter(|option| !of_times(option))
        .map(|option| match option.split_once('=') {
            Some((key, value)) => (key.to_string(), value.to_string()),
            None => (option, String::new()),
        })
        .collect()
}

/// What it does. No facts if nothing could be tried, as on a read-only mount.
fn behaviour(disk: &Disk, at: &Path, patience: Duration) -> Facts {
    let mut facts = Facts::new();
    let mut tell = |name: &str, value: io::Result<String>| {
        facts.extend(value.ok().map(|value| (name.to_string(), value)));
    };
    tell(FLUSHES, flushes(disk, at).map(|count| count.to_string()));
    tell(DISCARDS, discards(disk, at, patience).map(|some| if some { "yes" } else { "no" }.into()));
    let (file, folder) = (at.join("read"), at.join("listed"));
    let made = fs::write(&file, "text").and_then(|()| fs::create_dir(&folder));
    let made = made.and_then(|()| fs::write(folder.join("entry"), ""));
    if made.is_ok() {
        tell(FILE_TIME, when(&file, |path| fs::read(path).map(drop)));
        tell(FOLDER_TIME, when(&folder, |path| fs::read_dir(path)?.try_for_each(|e| e.map(drop))));
    }
    facts
}

/// The fewest flushes that one fsync of new data sent: a commit of the journal may come between.
fn flushes(disk: &Disk, at: &Path) -> io::Result<u64> {
    let mut file = File::create(at.join("synced"))?;
    let mut fewest = u64::MAX;
    for _ in 0..3 {
        file.write_all(&[1; 4096])?;
        let (synced, done) = disk.during(|| file.sync_all());
        synced?;
        let done = done.ok_or_else(|| io::Error::other("not counted"))?;
        fewest = fewest.min(done.flushes.ok_or_else(|| io::Error::other("not counted"))?);
    }
    Ok(fewest)
}

/// `patience`: ext4 discards from a worker, after the commit.
fn discards(disk: &Disk, at: &Path, patience: Duration) -> io::Result<bool> {
    let path = at.join("deleted");
    let mut file = File::create(&path)?;
    file.write_all(&vec![1; DELETED_BYTES])?;
    file.sync_all()?;
    drop(file);
    let folder = File::open(at)?;
    let remove = || {
        fs::remove_file(&path)?;
        sys::sync_fs(folder.as_fd())
    };
    let (done, seen) = disk.until(remove, |seen| seen.discards > 0, patience);
    done?;
    seen.map(|seen| seen.discards > 0).ok_or_else(|| io::Error::other("not counted"))
}

/// When `read` updates the access time of `path`: always; once a day, as relatime does (mount(8));
/// or never.
fn when(path: &Path, read: impl Fn(&Path) -> io::Result<()>) -> io::Result<String> {
    let now = SystemTime::now();
    let updates = |accessed: SystemTime| -> io::Result<bool> {
        let modified = now - 9 * DAY;
        let file = File::open(path)?;
        file.set_times(FileTimes::new().set_accessed(accessed).set_modified(modified))?;
        let before = file.metadata()?.accessed()?;
        read(path)?;
        // Reading through a second descriptor: this one's answer must not be an older one.
        Ok(File::open(path)?.metadata()?.accessed()? != before)
    };
    // Setting times sets the change time to now: only an access time after that is a recent one
    // for relatime.
    Ok(match (updates(now - 3 * DAY)?, updates(now + DAY / 24)?) {
        (true, true) => "always".into(),
        (true, false) => "after a day or a change".into(),
        _ => "never".into(),
    })
}

fn gives_up_flushes(without: &Facts, with: &Facts) -> bool {
    let count = |facts: &Facts| facts.get(FLUSHES).and_then(|text| text.parse::<u64>().ok());
    count(without).is_some_and(|count| count > 0) && count(with) == Some(0)
}

fn give_up_flushes(found: &mut Checked, without: Option<&String>) {
    found.state = Judged::Unsafe;
    let count = without.map_or("some", String::as_str);
    found.said = Some(format!(
        "gives up durability: an fsync sends no flush ({count} without it, 0 with it)"
    ));
    found.advice = Some(
        "leave it out: what fsync has promised is lost when the power fails, unless the device's \
         cache survives that, and then a flush costs next to nothing"
            .into(),
    );
}

fn judge_changes(found: &mut Checked, changes: &[Change], option: &str) {
    let change = |name: &str| changes.iter().find(|change| change.name == name);
    if change(DISCARDS).is_some_and(|change| change.to.as_deref() == Some("yes")) {
        found.state = Judged::Doubtful;
        found.said = Some("deleting a file sends discards at once (none without it)".into());
        found.advice = Some(
            "they may hold up other requests; fstrim.timer, which discards once a week, is the \
             usual alternative (fstrim(8))"
                .into(),
        );
    }
    let Some((key, asked)) = option.split_once('=') else { return };
    let Some(seen) = change(key).and_then(|change| change.to.clone()) else { return };
    if seen != asked && !equal_amounts(&seen, asked) {
        found.state = Judged::Doubtful;
        found.said = Some(format!("the kernel made it {key}={seen}"));
    }
}

/// `256k` and `262144` are the same.
fn equal_amounts(one: &str, other: &str) -> bool {
    let amount =
        |text: &str| text.parse::<fsverdict_core::model::Bytes>().ok().map(|bytes| bytes.0);
    amount(one).is_some() && amount(one) == amount(other)
}

fn is_ignored(line: &str) -> bool {
    let line = line.to_lowercase();
    ["ignor", "deprecat", "removed", "no effect", "unsupported"].iter().any(|w| line.contains(w))
}

/// Whether a file system that was changed (tune2fs) still flushes: its own default mount options
/// may say otherwise. `made` gives one with the change alone, or without it.
pub fn judge_tuned(bench: &Bench, found: &mut Checked, made: &dyn Fn(bool) -> Option<Disk>) {
    if !bench.root {
        return;
    }
    let count = |disk: Option<Disk>| {
        let disk = disk?;
        let mounted = bench.mount(&disk.node(), "ext4", &[]).ok()?;
        flushes(&disk, &mounted.at).ok()
    };
    if let (Some(without @ 1..), Some(0)) = (count(made(false)), count(made(true))) {
        give_up_flushes(found, Some(&without.to_string()));
    }
}

/// The flushes of one fsync on an ext4 upon `disk`, whose queue may have been set meanwhile.
pub fn flushes_of_ext4(bench: &Bench, disk: &Disk) -> Option<u64> {
    make(bench, disk, "ext4", &[]).ok()?;
    let mounted = bench.mount(&disk.node(), "ext4", &[]).ok()?;
    flushes(disk, &mounted.at).ok()
}

/// The words of mkfs that make the kind of file system a mount needs, as the file has them.
pub fn made_by<'a>(calls: &'a [(&'a Call, Vec<Choice>)], kind: &str) -> &'a [Choice] {
    let program = format!("mkfs.{kind}");
    let last = calls.iter().rfind(|(call, _)| call.program == program);
    last.map_or(&[], |(_, accepted)| accepted.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_compared_as_numbers() {
        assert!(equal_amounts("256k", "262144"));
        assert!(!equal_amounts("zstd:15", "zstd:99"));
    }

    #[test]
    fn what_systemd_reads_is_not_the_kernels() {
        for (text, is) in [("nofail", true), ("x-systemd.automount", true), ("noatime", false)] {
            assert_eq!(above(&option(text).unwrap()).is_some(), is, "{text}");
        }
        assert!(option("defaults").is_none());
    }

    #[test]
    fn an_access_time_is_seen_where_it_is_written() {
        // Whatever this folder's mount does, the answer is one of the three.
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = when(file.path(), |path| fs::read(path).map(drop)).unwrap();
        assert!(["always", "after a day or a change", "never"].contains(&text.as_str()), "{text}");
    }
}
