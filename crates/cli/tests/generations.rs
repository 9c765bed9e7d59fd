//! The model of ext4's generations beside every fsync that is published, kernel by kernel.
//!
//! Both are what `fsverdict anatomy` prints. The files of a recorded fsync may lie anywhere within
//! a block of inodes, so that what most fsyncs wrote must be within the model's range, which is a
//! single figure for all but the inodes. Of these it may be the largest figure: on a slow machine
//! ext4's timer has committed part of them before the fsync.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::support::Scene;

/// What was recorded on which kernel; the contender's name tells the options.
const RECORDED: [(&str, &str); 8] = [
    ("2026-11-23-fsync-generations/linux-3.4.4.txt", "3.4.4"),
    ("2026-11-23-fsync-generations/linux-3.4.4-commit-300.txt", "3.4.4"),
    ("2026-11-23-fsync-generations/linux-3.16.4.txt", "3.16.4"),
    ("2026-11-23-fsync-generations/linux-4.2.2.txt", "4.2.2"),
    ("2026-11-23-fsync-generations/linux-6.12.txt", "6.12"),
    ("2026-11-22-fsync-blocks/fsync.txt", "6.18"),
    ("2026-11-22-fsync-blocks/ext4-modes.txt", "6.18"),
    ("2026-11-22-fsync-blocks/fast-commit.txt", "6.18"),
];

/// Where they disagree, because the timer had other files' data written, too: marking a thousand
/// writes took that guest longer than the five seconds after which ext4 commits.
const BY_TIMER: (&str, &str) =
    ("2026-11-23-fsync-generations/linux-3.4.4.txt", "fsync of 1 of 1000 files, extending");

/// What the first fsync after a mount writes, and reads: the model leaves it out.
const ONCE: [&str; 2] = ["journal superblock", "journal copy: superblock"];

const INODES: &str = "journal copy: inodes";

/// What fsyncs of one workload wrote: blocks by what they are, and flushes.
type Figures = BTreeMap<String, Figure>;

/// What most have, and the extremes.
#[derive(Clone, Debug, PartialEq)]
struct Figure {
    most: f64,
    range: RangeInclusive<f64>,
}

/// `blocks: journal copy: inodes   63   5 of 10  63 to 64`.
fn figure(line: &str) -> Option<(String, Figure)> {
    let line = line.trim().trim_start_matches("blocks: ");
    let (name, rest) = line.split_once("  ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |place: usize| words.get(place)?.parse::<f64>().ok();
    let most = number(0).filter(|_| words.get(2) == Some(&"of"))?;
    let range = number(4).zip(number(6)).map_or(most..=most, |(least, largest)| least..=largest);
    // Where a fast commit lay, the next one lies.
    let name = match name.trim() {
        "journal, written again since" => "journal fast commit",
        name => name,
    };
    Some((name.into(), Figure { most, range }))
}

/// What was printed, by workload and contender.
fn printed(text: &str) -> BTreeMap<(String, String), Figures> {
    let mut all = BTreeMap::new();
    for section in text.split("\nfsync of ").skip(1) {
        // A long head goes on in the next line; the table at the beginning has heads without one.
        let Some((head, body)) = section.split_once(" fsyncs") else { continue };
        let head = head.replace('\n', " ");
        let Some((what, _)) = head.rsplit_once(": ") else { continue };
        let mut parts = what.splitn(3, ", ");
        let [files, case, contender] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let workload = format!("fsync of {files}, {case}");
        let table = body.split("latency:").next().unwrap_or_default();
        let table = table.split("in full").next().unwrap_or_default();
        let figures = table.lines().filter_map(figure).collect();
        all.insert((workload, contender.to_string()), figures);
    }
    all
}

/// How the model is asked for the contender's file system; `None` where it has no such.
fn options(contender: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = contender.split(' ').collect();
    let (first, rest) = words.split_first()?;
    let rest: Vec<&str> = rest.iter().copied().filter(|word| !is_kernel(word)).collect();
    if *first != "ext4" || rest.contains(&"data=journal") {
        return None;
    }
    // As anatomy names its contenders: mount options, then those of mkfs.
    let mkfs = rest.iter().position(|word| word.starts_with('-')).unwrap_or(rest.len());
    let (mount, mkfs) = rest.split_at(mkfs);
    let said = |name: &str, words: &[&str]| match words {
        [] => Vec::new(),
        words => vec![name.to_string(), words.join(" ")],
    };
    Some([said("--mount", mount), said("--mkfs", mkfs)].concat())
}

fn is_kernel(word: &str) -> bool {
    word.contains('/') || word.starts_with(|letter: char| letter.is_ascii_digit())
}

/// What the model says of the workload, on Linux `version`.
fn modelled(scene: &Scene, version: &str, workload: &str, options: &[String]) -> Figures {
    let (files, case) = workload.split_once(", ").unwrap();
    let files = files.split(' ').nth(4).unwrap();
    let mut words = vec!["anatomy", "--model", version, "--files", files, "--case", case];
    words.extend(options.iter().map(String::as_str));
    let text = scene.fsverdict(&words).exits(0).stdout;
    let mut all = printed(&format!("\n{text}"));
    assert_eq!(all.len(), 1, "{text}");
    all.pop_first().unwrap().1
}

/// What the model says otherwise than the recorded run.
fn differences(recorded: &Figures, modelled: &Figures) -> Vec<String> {
    let mut all = Vec::new();
    for (name, figure) in modelled {
        let Some(real) = recorded.get(name) else {
            all.push(format!("no {name} was recorded"));
            continue;
        };
        // How many requests the journal takes is the disk's and the block layer's business.
        let is_same = name.starts_with("requests")
            || figure.range.contains(&real.most)
            || (name == INODES && figure.range.contains(real.range.end()));
        all.extend((!is_same).then(|| format!("{name}: {figure:?}, but {real:?} was recorded")));
    }
    let unforeseen = recorded.iter().filter(|(name, figure)| {
        let is_known = modelled.contains_key(*name) || ONCE.contains(&name.as_str());
        !is_known && !name.starts_with("requests") && figure.most > 0.0
    });
    all.extend(unforeseen.map(|(name, figure)| format!("{name} is {figure:?}, and not foreseen")));
    all
}

#[test]
fn the_model_says_what_every_recorded_kernel_wrote() {
    let scene = Scene::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let mut compared = 0;
    for (file, version) in RECORDED {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        for ((workload, contender), recorded) in printed(&text) {
            let Some(options) = options(&contender) else { continue };
            if (file, workload.as_str()) == BY_TIMER {
                continue;
            }
            let modelled = modelled(&scene, version, &workload, &options);
            let differences = differences(&recorded, &modelled);
            assert!(differences.is_empty(), "{file}, {workload}, {contender}: {differences:#?}");
            compared += 1;
        }
    }
    assert!(compared >= 82, "{compared} workloads were compared");
}
