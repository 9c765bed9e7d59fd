//! mkfs and the programs that change what it made: run on images, and what results compared.

use std::collections::BTreeSet;

use fsverdict_core::model::need::install;
use fsverdict_core::model::{Checked, Judged, Unit};
use fsverdict_core::script::{Call, Choice, argv};

use super::bench::{Bench, Disk, Refused};
use super::sort::{Change, Facts, Fate, sort};
use super::{documented, elsewhere, finding, mounting, topology};
use crate::tool::{self, ToolError};

/// What has to be known of a kind of file system to try its options.
struct Kind {
    name: &'static str,
    /// The program that shows what was made, and its arguments before the device.
    shows: &'static [&'static str],
    /// mkfs prints what it has made, or would make.
    tells: bool,
    /// mkfs works over whatever is there: the image is fresh, but partitions and files count.
    force: &'static [&'static str],
    /// mkfs only says what it would do.
    dry: &'static [&'static str],
    /// Its options that take lists of suboptions.
    lists: &'static [&'static str],
}

const EXT: Kind = Kind {
    name: "ext",
    shows: &["dumpe2fs"],
    tells: false,
    force: &["-F"],
    dry: &[],
    lists: &["-O", "-E"],
};

const KINDS: [Kind; 3] = [
    EXT,
    Kind {
        name: "xfs",
        shows: &[],
        tells: true,
        force: &["-f"],
        dry: &["-N"],
        lists: &["-b", "-d", "-i", "-l", "-m", "-n", "-r", "-s"],
    },
    Kind {
        name: "btrfs",
        shows: &["btrfs", "inspect-internal", "dump-super", "-f"],
        tells: true,
        force: &["-f"],
        dry: &[],
        lists: &["-O"],
    },
];

/// Of a file system that is not among [`KINDS`], mkfs's own words are compared.
const ANY: Kind = Kind { name: "", shows: &[], tells: true, force: &[], dry: &[], lists: &[] };

/// Programs that change a file system, by the kind they change, and what shows the change.
const TUNERS: [(&str, &str, &[&str]); 3] = [
    ("tune2fs", "ext4", &["dumpe2fs"]),
    ("xfs_admin", "xfs", &["xfs_db", "-r", "-c", "version", "-c", "sb 0", "-c", "print"]),
    ("btrfstune", "btrfs", &["btrfs", "inspect-internal", "dump-super", "-f"]),
];

fn kind(file_system: &str) -> &'static Kind {
    KINDS.iter().find(|kind| file_system.starts_with(kind.name)).unwrap_or(&ANY)
}

/// The kind of file system that `program` makes or changes.
pub fn file_system(program: &str) -> &str {
    let tuner = TUNERS.iter().find(|(name, ..)| *name == program);
    tuner.map_or(program.trim_start_matches("mkfs."), |(_, file_system, _)| file_system)
}

/// Tries the options of one command.
pub struct Maker<'a> {
    bench: &'a Bench,
    call: &'a Call,
    unstable: BTreeSet<String>,
    /// What the tool said though it did its work.
    warned: Vec<String>,
}

/// Findings for a command that makes or changes a file system; `line` and `command` are filled in.
pub fn check(bench: &Bench, call: &Call, blank: &Checked) -> (Vec<Checked>, Vec<Choice>) {
    let mut maker = Maker { bench, call, unstable: BTreeSet::new(), warned: Vec::new() };
    let (mine, away): (Vec<Choice>, Vec<Choice>) =
        call.choices.iter().cloned().partition(|choice| !elsewhere(choice, &call.program));
    let away = away.iter().map(|choice| finding::elsewhere(blank, choice));
    let mut findings: Vec<Checked> = away.collect();
    if mine.is_empty() && findings.is_empty() {
        findings.push(maker.plain(blank));
        return (findings, Vec::new());
    }
    maker.find_unstable();
    let mut accepted = mine.clone();
    match sort(&mine, &mut |choices| maker.facts(choices)) {
        Err(why) => findings.extend(mine.iter().map(|it| finding::untried(blank, it, &why))),
        Ok(fates) => {
            let refused = |fate: &Fate| matches!(fate, Fate::Refused(_) | Fate::Untried(_));
            let mut kept = fates.iter();
            accepted.retain(|_| kept.next().is_some_and(|fate| !refused(fate)));
            let pairs = mine.iter().zip(&fates);
            findings.extend(pairs.map(|(it, fate)| maker.judged(blank, it, fate, &accepted)));
            findings.extend(maker.unmountable(blank, &accepted));
        }
    }
    let place = |it: &Checked| call.choices.iter().position(|c| c.to_string() == it.setting);
    findings.sort_by_key(|it| place(it).unwrap_or(usize::MAX));
    (findings, accepted)
}

impl Maker<'_> {
    fn kind(&self) -> &'static Kind {
        kind(file_system(&self.call.program))
    }

    fn is_tuner(&self) -> bool {
        TUNERS.iter().any(|(name, ..)| *name == self.call.program)
    }

    /// The command as it is, without an option that could be judged.
    fn plain(&self, blank: &Checked) -> Checked {
        let said = match self.make(&[]) {
            Ok(_) => (Judged::Ok, "done, with nothing but defaults".into()),
            Err(Refused::Said(text)) => (Judged::Invalid, text),
            Err(Refused::Unasked(text)) => (Judged::NotTried, text),
        };
        let setting = self.call.program.clone();
        Checked { setting, state: said.0, said: Some(said.1), ..blank.clone() }
    }

    /// What differs between two that were made alike (identities, times) says nothing of options.
    fn find_unstable(&mut self) {
        if let (Ok(first), Ok(second)) = (self.facts(&[]), self.facts(&[])) {
            let changes = super::sort::changes(&first, &second);
            self.unstable.extend(changes.into_iter().map(|change| change.name));
        }
    }

    fn facts(&mut self, choices: &[Choice]) -> Result<Facts, Refused> {
        let (_, mut facts, warned) = self.make(choices)?;
        self.warned.extend(warned);
        facts.retain(|name, _| !self.unstable.contains(name));
        Ok(facts)
    }

    /// Makes the file system, or another that the command then changes.
    fn make(&self, choices: &[Choice]) -> Result<(Vec<Disk>, Facts, Vec<String>), Refused> {
        let count = self.call.devices.len().max(1);
        let disks: Result<Vec<Disk>, String> = (0..count).map(|_| self.bench.disk()).collect();
        let disks = disks.map_err(Refused::Unasked)?;
        let mut shows = self.kind().shows;
        if let Some((_, base, dump)) = TUNERS.iter().find(|it| it.0 == self.call.program) {
            let made = Call { program: format!("mkfs.{base}"), ..Call::default() };
            self.run(&made, &[], &disks, false)?;
            shows = dump;
        }
        let dry = !self.is_tuner();
        // A tuner that is asked for nothing says how it is used, and fails.
        let idle = self.is_tuner() && choices.is_empty();
        let nothing = || Ok((String::new(), Vec::new()));
        let (output, done) = disks[0].during(|| match idle {
            true => nothing(),
            false => self.run(self.call, choices, &disks, dry),
        });
        let (stdout, warned) = output?;
        let mut facts = Facts::new();
        if self.kind().tells && !self.is_tuner() {
            read_facts(&stdout, &disks, &mut facts);
        }
        if let [program, ..] = shows {
            let mut words: Vec<String> = shows.iter().map(ToString::to_string).collect();
            words.push(disks[0].node());
            let answer =
                self.bench.ask(&words).map_err(|e| Refused::Unasked(unasked(&e, program)))?;
            read_facts(&answer.stdout, &disks, &mut facts);
        }
        if let Some(done) = done.filter(|_| !self.is_tuner() && self.kind().dry.is_empty()) {
            // Rounded, for a few blocks more or less are no setting's doing.
            let written = (done.write_bytes + (8 << 20)) >> 24 << 24;
            #[expect(clippy::cast_precision_loss, reason = "it is shown to three figures")]
            facts.insert("written by mkfs".into(), Unit::Bytes.format(written as f64));
            let discards = if done.discards > 0 { "yes" } else { "no" };
            facts.insert("device discarded first".into(), discards.into());
        }
        Ok((disks, facts, warned))
    }

    fn run(
        &self,
        call: &Call,
        choices: &[Choice],
        disks: &[Disk],
        dry: bool,
    ) -> Result<(String, Vec<String>), Refused> {
        let mut words = vec![call.program.clone()];
        if call.program.starts_with("mkfs.") {
            let kind = kind(file_system(&call.program));
            words.extend(kind.force.iter().map(ToString::to_string));
            words.extend(kind.dry.iter().filter(|_| dry).map(ToString::to_string));
        }
        words.extend(argv(choices));
        words.extend(disks.iter().map(Disk::node));
        words.extend(call.rest.iter().filter(|word| !word.contains('/')).cloned());
        let unasked = |error: ToolError| Refused::Unasked(unasked(&error, &call.program));
        let answer = self.bench.ask(&words).map_err(unasked)?;
        let text = complaint(&answer.stderr, disks);
        if answer.status.success() {
            let is_warning = |line: &&str| line.to_lowercase().contains("warning");
            let warned = text.split("; ").filter(is_warning).map(String::from).collect();
            return Ok((answer.stdout, warned));
        }
        let text = if text.is_empty() { complaint(&answer.stdout, disks) } else { text };
        let text = if text.is_empty() { tool::ended(answer.status) } else { format!("{text:?}") };
        Err(Refused::Said(format!("{}: {text}", call.program)))
    }

    fn judged(&self, blank: &Checked, it: &Choice, fate: &Fate, accepted: &[Choice]) -> Checked {
        let mut found = finding::of(blank, it, fate, &self.call.program);
        let unseen = matches!(fate, Fate::Default | Fate::Ignored | Fate::Overridden(_));
        if unseen && self.kind().name.is_empty() {
            let kind = file_system(&self.call.program);
            let said = format!("taken; what it changes in {kind} can't be seen here");
            (found.state, found.said) = (Judged::Ok, Some(said));
        }
        match fate {
            Fate::Refused(text) if finding::is_unknown(text) => {
                found.advice = self.belongs(it, accepted).or_else(|| self.fits_elsewhere(it));
            }
            Fate::Changes(changes) => {
                if let Some(advice) = stripe(changes, self.call.devices.first()) {
                    found.state = Judged::Doubtful;
                    found.advice = Some(advice);
                }
                if self.is_tuner() {
                    mounting::judge_tuned(self.bench, &mut found, &|alone| match alone {
                        true => self.made(std::slice::from_ref(it)),
                        false => self.made(&[]),
                    });
                }
            }
            _ => {}
        }
        if let Some(warning) = self.warned.iter().find(|text| text.contains(it.key())) {
            let said = found.said.take().map(|said| format!("{said}; ")).unwrap_or_default();
            found.said = Some(format!("{said}{}: {warning:?}", self.call.program));
        }
        documented::judge(&mut found, file_system(&self.call.program), it.value.as_deref());
        found
    }

    fn made(&self, choices: &[Choice]) -> Option<Disk> {
        self.make(choices).ok()?.0.into_iter().next()
    }

    /// It is a mount option: one that mount takes, though not just anything.
    fn belongs(&self, it: &Choice, accepted: &[Choice]) -> Option<String> {
        let option = it.value.clone()?;
        if !self.bench.root || self.is_tuner() {
            return None;
        }
        let disk = self.real(accepted)?;
        let kind = file_system(&self.call.program);
        let taken = self.bench.mount(&disk.node(), kind, std::slice::from_ref(&option)).is_ok();
        taken.then(|| format!("it is a mount option: mount -o {option} takes it (tried)"))
    }

    /// The same suboption under another option of the same program.
    fn fits_elsewhere(&self, it: &Choice) -> Option<String> {
        it.value.as_ref()?;
        let others = self.kind().lists.iter().filter(|flag| **flag != it.flag);
        let mut taken = others
            .map(|flag| Choice { flag: (*flag).into(), attached: false, ..it.clone() })
            .filter(|choice| self.make(std::slice::from_ref(choice)).is_ok());
        let first = taken.next()?;
        Some(format!("{} {first} takes it (tried)", self.call.program))
    }

    /// Made in earnest, where mkfs was only asked what it would do.
    fn real(&self, choices: &[Choice]) -> Option<Disk> {
        let disk = self.bench.disk().ok()?;
        let disks = [disk];
        self.run(self.call, choices, &disks, false).ok()?;
        disks.into_iter().next()
    }

    /// mkfs makes what this kernel can't mount.
    fn unmountable(&self, blank: &Checked, accepted: &[Choice]) -> Option<Checked> {
        if !self.bench.root || self.is_tuner() || self.call.devices.len() > 1 {
            return None;
        }
        let kind = file_system(&self.call.program);
        let mount = |choices: &[Choice]| {
            let disk = self.real(choices)?;
            Some(self.bench.mount(&disk.node(), kind, &[]).map(drop))
        };
        let Some(Err(Refused::Said(text))) = mount(accepted) else { return None };
        // A kernel without this file system refuses it without options too.
        mount(&[])?.ok()?;
        let culprit = (0..accepted.len()).find(|&place| {
            let mut rest = accepted.to_vec();
            rest.remove(place);
            matches!(mount(&rest), Some(Ok(())))
        });
        let all = argv(accepted).join(" ");
        Some(Checked {
            setting: culprit.map_or(all, |place| accepted[place].to_string()),
            state: Judged::Invalid,
            said: Some(format!("made, but this kernel can't mount it; {text}")),
            ..blank.clone()
        })
    }
}

fn unasked(error: &ToolError, program: &str) -> String {
    match (error, program) {
        (ToolError::Missing { .. }, "mkfs.f2fs") => {
            format!("{error}: {}", install("f2fs-tools"))
        }
        _ => error.to_string(),
    }
}

/// What a tool complained of: the first paragraph, without its name card and without its usage.
fn complaint(text: &str, disks: &[Disk]) -> String {
    let is_card = |line: &str| {
        line.starts_with("mke2fs 1.") || line.starts_with("tune2fs 1.") || line.contains("udevadm")
    };
    let lines = text.lines().map(str::trim).skip_while(|line| line.is_empty() || is_card(line));
    let lines = lines.take_while(|line| !line.is_empty() && !line.starts_with("Usage"));
    let lines: Vec<&str> = lines.filter(|line| !is_card(line)).take(3).collect();
    let bare = |line: &&str| {
        let (first, rest) = line.split_once(": ").unwrap_or(("", line));
        if first.starts_with("mk") || first.contains("tune") {
            rest.into()
        } else {
            line.to_string()
        }
    };
    let text = lines.iter().map(bare).collect::<Vec<String>>().join("; ");
    disks.iter().fold(text, |text, disk| text.replace(&disk.node(), "DEVICE"))
}

/// `name: value` lines, the `key=value` pairs of XFS by their sections, and which flags the block
/// groups of ext4 have.
fn read_facts(text: &str, disks: &[Disk], facts: &mut Facts) {
    let text =
        disks.iter().fold(text.to_string(), |text, disk| text.replace(&disk.node(), "DEVICE"));
    let mut section = String::new();
    let mut groups: std::collections::BTreeMap<String, u32> = Default::default();
    for line in text.lines() {
        let group =
            line.strip_prefix("Group ").filter(|rest| rest.starts_with(|c: char| c.is_numeric()));
        if let Some(rest) = group {
            let flags = rest.split_once('[').map_or("", |(_, flags)| flags.trim_end_matches(']'));
            *groups.entry(String::new()).or_default() += 1;
            for flag in flags.split(", ").filter(|flag| !flag.is_empty()) {
                *groups.entry(flag.into()).or_default() += 1;
            }
        } else if groups.is_empty() {
            read_line(line, &mut section, facts);
        }
    }
    for (flags, count) in groups {
        facts.insert(format!("block groups {flags}").trim().into(), count.to_string());
    }
}

fn read_line(line: &str, section: &mut String, facts: &mut Facts) {
    let pairs: Vec<(&str, &str)> = line
        .split([' ', ','])
        .filter_map(|word| word.split_once('='))
        .filter(|(key, value)| !key.is_empty() && !value.is_empty())
        .collect();
    if let Some((name, value)) = line.split_once(": ").or_else(|| line.split_once('\t')) {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if !is_of_its_own(name) {
            facts.insert(name.trim().to_string(), value);
        }
        return;
    }
    if !line.starts_with(' ') {
        *section = line.split([' ', '=']).next().unwrap_or("").to_string();
    }
    for (key, value) in pairs.into_iter().filter(|(key, _)| key != section) {
        facts.insert(format!("{section} {key}"), value.into());
    }
    if let Some((name, value)) = line.split_once(" = ") {
        facts.insert(name.trim().into(), value.trim().into());
    }
}

/// Identities and times, which differ between any two that are not made in the same second.
fn is_of_its_own(name: &str) -> bool {
    let name = name.to_lowercase();
    let own =
        ["uuid", "hash seed", "checksum ", "created", "checked", "time", "csum\t", "generation"];
    let remark = ["note", "warning", "backup_", "dev_item"];
    own.iter().any(|part| name.contains(part))
        || remark.iter().any(|start| name.trim().starts_with(start))
}

/// A stripe where there is none to match.
fn stripe(changes: &[Change], device: Option<&String>) -> Option<String> {
    let is_stripe = |change: &Change| {
        let name = change.name.to_lowercase();
        ["stride", "stripe", "sunit", "swidth"].iter().any(|part| name.contains(part))
    };
    if !changes.iter().any(is_stripe) {
        return None;
    }
    let seen = topology::of(device.map_or("", String::as_str));
    (seen.optimal_bytes == 0).then(|| {
        format!(
            "it lays out data for a RAID's stripes, and {} shows none (optimal_io_size 0): leave \
             it out, unless the device is a RAID; then mkfs takes it from there by itself",
            seen.name
        )
    })
}
