//! Partition tables: written to an image, and the starts of the partitions looked at.

use std::collections::BTreeMap;

use fsverdict_core::model::{Bytes, Checked, Judged, Partition};
use fsverdict_core::script::{Call, argv};

use super::bench::{Bench, Disk};
use super::topology;

/// The tables written so far, by device, and the commands that wrote them.
pub struct PartitionTables<'a> {
    bench: &'a Bench,
    disks: BTreeMap<String, (Disk, Vec<Vec<String>>)>,
}

impl<'a> PartitionTables<'a> {
    pub fn new(bench: &'a Bench) -> PartitionTables<'a> {
        PartitionTables { bench, disks: BTreeMap::new() }
    }

    /// Runs one command of parted or sgdisk after those before it.
    pub fn check(&mut self, call: &Call, blank: &Checked) -> Vec<Checked> {
        let setting = if call.rest.is_empty() { argv(&call.choices) } else { call.rest.clone() };
        let setting = setting.join(" ");
        let blank = Checked { setting, ..blank.clone() };
        let untried = |why: &str| {
            vec![Checked { state: Judged::NotTried, said: Some(why.into()), ..blank.clone() }]
        };
        let words = [argv(&call.choices), call.rest.clone()].concat();
        if words.iter().any(|word| word.contains('/')) {
            return untried("it names another device or a file, which is not touched");
        }
        let name = call.devices.first().cloned().unwrap_or_default();
        if !self.disks.contains_key(&name) {
            match self.bench.file() {
                Ok(disk) => self.disks.insert(name.clone(), (disk, Vec::new())),
                Err(why) => return untried(&why),
            };
        }
        let Some((disk, history)) = self.disks.get_mut(&name) else { return Vec::new() };
        match run(self.bench, disk, call, &call.choices) {
            Err(why) => untried(&why),
            Ok((false, said)) => {
                vec![Checked { state: Judged::Invalid, said: Some(said), ..blank }]
            }
            Ok((true, said)) => {
                let starts = starts(self.bench, disk);
                let mut found = vec![judged(&blank, &starts, &said, &name)];
                found.extend(spare_alignment(self.bench, call, history, &starts, &blank));
                history.push(command(call, &call.choices));
                found
            }
        }
    }
}

fn command(call: &Call, choices: &[fsverdict_core::script::Choice]) -> Vec<String> {
    let mut words = vec![call.program.clone()];
    words.extend((call.program == "parted").then(|| "-s".to_string()));
    words.extend(argv(choices));
    words.push("DEVICE".into());
    words.extend(call.rest.iter().cloned());
    words
}

/// Whether it did, and what it said.
fn run(
    bench: &Bench,
    disk: &Disk,
    call: &Call,
    choices: &[fsverdict_core::script::Choice],
) -> Result<(bool, String), String> {
    let words = command(call, choices);
    ask(bench, disk, &words)
}

fn ask(bench: &Bench, disk: &Disk, words: &[String]) -> Result<(bool, String), String> {
    let node = disk.node();
    let at = |word: &String| if word == "DEVICE" { node.clone() } else { word.clone() };
    let words: Vec<String> = words.iter().map(at).collect();
    let answer =
        bench.ask(&words, std::slice::from_ref(disk)).map_err(|error| error.to_string())?;
    let text = format!("{}\n{}", answer.stderr, answer.stdout);
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.contains("udevadm"));
    let said = lines.take(2).collect::<Vec<_>>().join("; ").replace(&node, "DEVICE");
    let said = if said.is_empty() { said } else { format!("{}: {said:?}", words[0]) };
    Ok((answer.status.success(), said))
}

/// Where the partitions begin, by parted's machine-readable list: `1:1048576B:...`.
fn starts(bench: &Bench, disk: &Disk) -> Vec<(u32, u64)> {
    let words = ["parted", "-s", "-m", &disk.node(), "unit", "B", "print"].map(String::from);
    let text = bench
        .ask(&words, std::slice::from_ref(disk))
        .map(|answer| answer.stdout)
        .unwrap_or_default();
    text.lines().filter_map(start).collect()
}

fn start(line: &str) -> Option<(u32, u64)> {
    let mut fields = line.split(':');
    Some((fields.next()?.parse().ok()?, fields.next()?.strip_suffix('B')?.parse().ok()?))
}

/// The last partition is the one that the command has just made.
fn judged(blank: &Checked, starts: &[(u32, u64)], said: &str, device: &str) -> Checked {
    let made = blank.setting.contains("mkpart") || blank.setting.contains("-n");
    let Some((number, start)) = starts.iter().max().filter(|_| made) else {
        let said = Some(if said.is_empty() { "done".into() } else { said.to_string() });
        return Checked { said, ..blank.clone() };
    };
    let topology = topology::of(device);
    let partition = Partition {
        path: String::new(),
        start_bytes: *start,
        physical_bytes: topology.physical_bytes,
        optimal_bytes: topology.optimal_bytes,
    };
    let Some(cost) = partition.misaligned() else {
        let said = format!("partition {number} begins at {}: aligned", Bytes(*start).rounded());
        return Checked { said: Some(said), ..blank.clone() };
    };
    let quoted = if said.is_empty() { String::new() } else { format!("; {said}") };
    let said = format!("partition {number} begins at {start} B, not a multiple of 1 MiB{quoted}");
    Checked {
        state: Judged::Doubtful,
        said: Some(said),
        advice: Some(format!("misaligned: {cost}; let it begin at 1MiB")),
        ..blank.clone()
    }
}

/// `-a` that asks for what comes out without it.
fn spare_alignment(
    bench: &Bench,
    call: &Call,
    history: &[Vec<String>],
    with: &[(u32, u64)],
    blank: &Checked,
) -> Option<Checked> {
    let place = call.choices.iter().position(|c| matches!(c.flag.as_str(), "-a" | "--align"))?;
    let mut rest = call.choices.clone();
    let choice = rest.remove(place);
    let disk = bench.file().ok()?;
    for words in history {
        ask(bench, &disk, words).ok()?;
    }
    run(bench, &disk, call, &rest).ok()?.0.then_some(())?;
    let same = starts(bench, &disk) == with;
    same.then(|| Checked {
        setting: choice.to_string(),
        state: Judged::Redundant,
        said: Some(
            "makes no difference: the partitions begin at the same places without it".into(),
        ),
        ..blank.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_read_from_parteds_list() {
        assert_eq!(start("1:1048576B:4293918719B:4292870144B::primary:;"), Some((1, 1_048_576)));
        assert_eq!(start("BYT;"), None);
        assert_eq!(start("/dev/x:4294967296B:file:512:512:gpt::;"), None);
    }

    #[test]
    fn a_start_that_is_no_multiple_of_a_mebibyte_is_misaligned() {
        let blank = super::super::blank(1, "parted");
        let blank = Checked { setting: "mkpart primary 34s 100%".into(), ..blank };
        let state = |start| judged(&blank, &[(1, start)], "", "").state;
        assert_eq!([state(1 << 20), state(34 * 512)], [Judged::Ok, Judged::Doubtful]);
        let advice = |start| judged(&blank, &[(1, start)], "", "").advice.unwrap();
        assert!(advice(34 * 512).contains("a read and two writes"));
        assert!(advice(4096).contains("don't straddle"));
    }
}
