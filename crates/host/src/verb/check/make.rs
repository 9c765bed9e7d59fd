//! mkfs and the programs that change what it made: run on images, and what results compared.

use std::collections::BTreeSet;

use fsverdict_core::model::need::install;
use fsverdict_core::model::{Bytes, Checked, Judged, Unit};
use fsverdict_core::script::{Call, Choice, argv, is_unknown};

use super::bench::{Bench, Disk, Refused};
use super::elsewhere::elsewhere;
use super::facts::{complaint, lost, read_facts};
use super::sort::{Facts, Fate, sort};
use super::target::{LARGE_BYTES, USUAL_BYTES};
use super::{documented, finding, mounting, stripe};
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
    /// Shows what it does not say, of one that was made in earnest.
    rest: &'static [&'static str],
    /// Its options that take lists of suboptions.
    lists: &'static [&'static str],
}

const EXT: Kind = Kind {
    name: "ext",
    shows: &["dumpe2fs"],
    tells: false,
    force: &["-F"],
    dry: &[],
    rest: &[],
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
        rest: &["xfs_db", "-r", "-c", "sb 0", "-c", "print"],
        lists: &["-b", "-d", "-i", "-l", "-m", "-n", "-r", "-s"],
    },
    Kind {
        name: "btrfs",
        shows: &["btrfs", "inspect-internal", "dump-super", "-f"],
        tells: true,
        force: &["-f"],
        dry: &[],
        rest: &[],
        lists: &["-O"],
    },
];

/// For a file system that is not among [`KINDS`], mkfs's own output is compared.
const ANY: Kind =
    Kind { name: "", shows: &[], tells: true, force: &[], dry: &[], rest: &[], lists: &[] };

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
    size_bytes: u64,
}

/// Up to this size the flags of each block group are looked at.
const GROUPS_BYTES_MAX: u64 = 64 << 30;

/// So many images are made for one command at most.
const DEVICES_MAX: usize = 16;

/// The part of what came out that is what the tool said though it did its work.
const WARNING: &str = "warning";

/// Findings for a command that makes or changes a file system; `line` and `command` are filled in.
pub fn check(bench: &Bench, call: &Call, blank: &Checked) -> (Vec<Checked>, Vec<Choice>) {
    let size_bytes = bench.target.size_bytes.unwrap_or(USUAL_BYTES);
    let mut maker = Maker { bench, call, unstable: BTreeSet::new(), size_bytes };
    let unknown = |it: &&Choice| it.value.as_deref().is_some_and(is_unknown);
    let away = |it: &&Choice| !unknown(it) && elsewhere(it, &call.program);
    let of_file =
        call.choices.iter().filter(unknown).map(|it| finding::unknown(blank, &it.to_string()));
    let mut findings: Vec<Checked> =
        call.unknown.iter().map(|word| finding::unknown(blank, word)).chain(of_file).collect();
    findings.extend(call.choices.iter().filter(away).map(|it| finding::elsewhere(blank, it)));
    let mine: Vec<Choice> =
        call.choices.iter().filter(|it| !unknown(it) && !away(it)).cloned().collect();
    if mine.is_empty() && findings.is_empty() {
        findings.push(maker.plain(blank));
        return (findings, Vec::new());
    }
    let mut accepted = mine.clone();
    match maker.fates(&mine) {
        Err(why) => findings.extend(mine.iter().map(|it| finding::untried(blank, it, &why))),
        Ok((fates, small)) => {
            let mut kept = fates.iter();
            accepted.retain(|_| kept.next().is_some_and(|fate| !is_refused(fate)));
            for ((it, fate), small) in mine.iter().zip(&fates).zip(small) {
                let mut found = maker.judged(blank, it, fate, &accepted);
                if small && !is_refused(fate) {
                    found.advice.get_or_insert_with(too_small);
                }
                findings.push(found);
            }
            findings.extend(maker.unmountable(blank, &accepted));
        }
    }
    let place = |it: &Checked| call.choices.iter().position(|c| c.to_string() == it.setting);
    findings.sort_by_key(|it| place(it).unwrap_or(usize::MAX));
    (findings, accepted)
}

fn is_refused(fate: &Fate) -> bool {
    matches!(fate, Fate::Refused(_) | Fate::Untried(_))
}

fn too_small() -> String {
    format!(
        "a disk of {} refuses it, one of {} takes it: name yours with --for or --size",
        Bytes(USUAL_BYTES),
        Bytes(LARGE_BYTES)
    )
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
            // Not what is called without options: `tune2fs /dev/sdb`.
            Ok(_) if self.is_tuner() => (Judged::Redundant, "nothing is asked of it".into()),
            Ok(_) => (Judged::Ok, "done, with nothing but defaults".into()),
            Err(Refused::Said(text)) => (Judged::Invalid, text),
            Err(Refused::Unasked(text)) => (Judged::NotTried, text),
        };
        let setting = self.call.program.clone();
        Checked { setting, state: said.0, said: Some(said.1), ..blank.clone() }
    }

    /// How each option did, and whether it was refused on a disk of the usual size. Where the
    /// target's is not known, what is refused for too small a disk is tried on a large one.
    fn fates(&mut self, mine: &[Choice]) -> Result<(Vec<Fate>, Vec<bool>), String> {
        let count = |fates: &[Fate]| fates.iter().filter(|fate| is_refused(fate)).count();
        self.find_unstable();
        let mut fates = sort(mine, &mut |choices| self.facts(choices))?;
        let small: Vec<bool> = fates.iter().map(is_refused).collect();
        if self.bench.target.size_bytes.is_none() && count(&fates) > 0 {
            self.size_bytes = LARGE_BYTES;
            match sort(mine, &mut |choices| self.facts(choices)) {
                Ok(large) if count(&large) < count(&fates) => fates = large,
                _ => self.size_bytes = USUAL_BYTES,
            }
        }
        self.find_untold(mine, &mut fates);
        Ok((fates, small))
    }

    /// Looks for what a dry run does not say, where an option seems to change nothing.
    fn find_untold(&self, mine: &[Choice], fates: &mut [Fate]) {
        let unseen = |fate: &Fate| matches!(fate, Fate::Default | Fate::Ignored);
        if self.kind().rest.is_empty() || self.is_tuner() || !fates.iter().any(unseen) {
            return;
        }
        let pairs = mine.iter().zip(fates.iter()).filter(|(_, fate)| !is_refused(fate));
        let taken: Vec<Choice> = pairs.map(|(it, _)| it.clone()).collect();
        let Some(with) = self.rest(&taken) else { return };
        for (it, fate) in mine.iter().zip(fates).filter(|(_, fate)| unseen(fate)) {
            let others: Vec<Choice> = taken.iter().filter(|other| *other != it).cloned().collect();
            let Some(without) = self.rest(&others) else { continue };
            let changes = super::sort::changes(&without, &with);
            if !changes.is_empty() {
                *fate = Fate::Changes(changes);
            }
        }
    }

    /// What a dry run does not say, of one made in earnest. Identities and sums over them differ
    /// between any two.
    fn rest(&self, choices: &[Choice]) -> Option<Facts> {
        let disk = self.real(choices)?;
        let mut words: Vec<String> = self.kind().rest.iter().map(ToString::to_string).collect();
        words.push(disk.node());
        let mut facts = Facts::new();
        let disks = [disk];
        read_facts(&self.bench.ask(&words, &disks).ok()?.stdout, &disks, &mut facts);
        facts.retain(|name, _| !["uuid", "crc"].iter().any(|own| name.contains(own)));
        Some(facts)
    }

    /// What differs between two that were made alike (identities, times) says nothing of options.
    fn find_unstable(&mut self) {
        if let (Ok(first), Ok(second)) = (self.facts(&[]), self.facts(&[])) {
            let changes = super::sort::changes(&first, &second);
            self.unstable.extend(changes.into_iter().map(|change| change.name));
        }
    }

    fn facts(&mut self, choices: &[Choice]) -> Result<Facts, Refused> {
        let (_, mut facts) = self.make(choices)?;
        facts.retain(|name, _| !self.unstable.contains(name));
        Ok(facts)
    }

    /// Makes the file system, or another that the command then changes.
    fn make(&self, choices: &[Choice]) -> Result<(Vec<Disk>, Facts), Refused> {
        let count = self.call.devices.len().max(1);
        if count > DEVICES_MAX {
            let why = format!("it names more than {DEVICES_MAX} devices");
            return Err(Refused::Unasked(why));
        }
        let disks: Result<Vec<Disk>, String> =
            (0..count).map(|_| self.bench.disk_of(self.size_bytes)).collect();
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
        let nothing = || Ok((String::new(), String::new()));
        let (output, done) = disks[0].during(|| match idle {
            true => nothing(),
            false => self.run(self.call, choices, &disks, dry),
        });
        let (stdout, warned) = output?;
        let mut facts = Facts::new();
        facts.extend((!warned.is_empty()).then(|| (WARNING.to_string(), warned)));
        if self.kind().tells && !self.is_tuner() {
            read_facts(&stdout, &disks, &mut facts);
        }
        if let [program, ..] = shows {
            let mut words: Vec<String> = shows.iter().map(ToString::to_string).collect();
            // The thousands of groups of a large disk would take seconds to print.
            let is_brief = *program == "dumpe2fs" && self.size_bytes > GROUPS_BYTES_MAX;
            words.extend(is_brief.then(|| "-h".to_string()));
            words.push(disks[0].node());
            let answer = self
                .bench
                .ask(&words, &disks)
                .map_err(|e| Refused::Unasked(unasked(&e, program)))?;
            read_facts(&answer.stdout, &disks, &mut facts);
        }
        if let Some(done) = done.filter(|_| !self.is_tuner() && self.kind().dry.is_empty()) {
            // Rounded, because no setting causes a few blocks more or less.
            let written = (done.write_bytes + (8 << 20)) >> 24 << 24;
            #[expect(clippy::cast_precision_loss, reason = "it is shown to three figures")]
            facts.insert("written by mkfs".into(), Unit::Bytes.format(written as f64));
            let discards = if done.discards > 0 { "yes" } else { "no" };
            facts.insert("device discarded first".into(), discards.into());
        }
        Ok((disks, facts))
    }

    fn run(
        &self,
        call: &Call,
        choices: &[Choice],
        disks: &[Disk],
        dry: bool,
    ) -> Result<(String, String), Refused> {
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
        let answer = self.bench.ask_on(&words, disks)?.map_err(unasked)?;
        let text = complaint(&answer.stderr, disks);
        if answer.status.success() {
            let warns = text.to_lowercase().contains("warning");
            return Ok((answer.stdout, if warns { text } else { String::new() }));
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
                let warning = changes.iter().find(|change| change.name == WARNING);
                if let Some(text) = warning.and_then(|change| change.to.as_ref()) {
                    found.state = Judged::Doubtful;
                    found.said = Some(format!("{}: {text:?}", self.call.program));
                }
                documented::judge_lost(&mut found, file_system(&self.call.program), &lost(changes));
                if self.is_tuner() {
                    mounting::judge_tuned(self.bench, &mut found, &|alone| match alone {
                        true => self.made(std::slice::from_ref(it)),
                        false => self.made(&[]),
                    });
                }
            }
            _ => {}
        }
        let make = |choices: &[Choice]| self.make(choices).ok().map(|(_, facts)| facts);
        if matches!(fate, Fate::Changes(_) | Fate::Needed) && stripe::lays_out(it) {
            let (target, device) = (self.bench.target, self.call.devices.first());
            if let Some(advice) = stripe::advice(target, device, self.kind().name, accepted, &make)
            {
                (found.state, found.advice) = (Judged::Doubtful, Some(advice));
            }
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
        let disk = self.bench.disk_of(self.size_bytes).ok()?;
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
