//! What single operations asked of the device, for a terminal: a table of how they differ, a
//! picture of one, and its requests.

mod access;
mod lanes;
mod picture;
mod times;
mod words;

use comfy_table::presets::NOTHING;

use super::grid::Grid;
use super::words::counted;
use crate::model::trace::{Account, Anatomy, Kind, Origin, Parts, Row, Spread, Traced, bytes_of};

pub(super) use access::op_name;
pub(super) use lanes::{Lane, lanes};
pub(super) use words::{all_written, blocks, flushes, flushes_shown, noun, time, written};
use words::{bytes, lines, name, trimmed};

/// A terminal's width.
const WIDTH: usize = 80;
/// Blocks are counted in this size, that of most file systems and of pages.
const BLOCK_BYTES: u64 = 4096;

/// All that was recorded, one workload and contender after the other; of several a table first.
pub fn anatomy(traced: &[Traced]) -> String {
    let shown: Vec<String> = traced.iter().map(one).collect();
    let several = traced.iter().filter(|it| it.fsyncs.operations > 0).count() > 1;
    let first = if several { format!("{}\n", overview(traced)) } else { String::new() };
    first + &shown.join("\n")
}

/// What most fsyncs of each wrote.
fn overview(traced: &[Traced]) -> String {
    let text = "What most operations of each contender wrote, in blocks of 4 KiB: data of the \
                synced file and of others, the journal, and the rest in its place. Only operations \
                whose blocks could all be named count.";
    let row = |name: &str, cells: [String; 6]| {
        let [own, others, journal, rest, flushes, median] = cells;
        format!(
            "  {name:24} {own:>6} {others:>7} {journal:>8} {rest:>6} {flushes:>8} {median:>9}\n"
        )
    };
    let header = ["own", "others", "journal", "rest", "flushes", "median"];
    let mut out = lines(text, 0) + &row("", header.map(String::from));
    let mut before = "";
    for it in traced {
        let Some((operation, _)) = it.fsyncs.typical() else { continue };
        if it.workload != before {
            out += &lines(&it.workload, 0);
            before = &it.workload;
        }
        let [own, others, journal, rest] = written(operation).map(blocks);
        let flushes = flushes(operation).to_string();
        let median = median(&it.fsyncs).map_or("-".into(), time);
        out += &row(&it.contender, [own, others, journal, rest, flushes, median]);
    }
    out
}

/// What was recorded of a workload on a contender.
pub(super) fn one(traced: &Traced) -> String {
    let Traced { workload, contender, fsyncs, account, .. } = traced;
    let noun = noun(traced);
    let count = counted(fsyncs.operations as usize, noun);
    let of = match traced.origin {
        Origin::Trials(trials) => {
            format!("{contender}: {count} in {}", counted(trials as usize, "trial"))
        }
        Origin::Others => contender.clone(),
        Origin::Model => format!("{contender}: {count}, by the model"),
    };
    let mut text = lines(&format!("{workload}, {of}"), 0);
    for doubt in doubts(traced) {
        text += &lines(&doubt, 2);
    }
    text += &too_early(traced).map_or_else(String::new, |it| lines(&it, 2));
    if fsyncs.operations > 0 {
        text += &format!("\n{}", table(fsyncs, noun));
    }
    if let Some((operation, like_it)) = fsyncs.typical() {
        let what = match like_it {
            1 if fsyncs.operations == 1 => format!("The {noun} in full."),
            1 => format!("One {noun} in full; no two wrote the same."),
            like_it => format!(
                "One {noun} in full: of the {like_it} that wrote the same, one with middle \
                 latency. The device's requests, in order."
            ),
        };
        text += &format!("\n{}{}", lines(&what, 0), picture::picture(operation));
    }
    if traced.origin != Origin::Model {
        text += &format!("\n{}", times::stages(&traced.stages));
        text += &access::pattern(&account.access);
        text += &access::queue(&account.queue);
        text += &whole(account, traced.origin);
    }
    text
}

/// What is to be known before the figures are believed.
fn doubts(traced: &Traced) -> Vec<String> {
    let mut doubts = Vec::new();
    if traced.lost_events > 0 {
        let lost = counted(traced.lost_events as usize, "event");
        let partial = counted(traced.fsyncs.partial as usize, noun(traced));
        doubts.push(format!("The kernel lost {lost}; {partial} left out because of it."));
    }
    if traced.cut_off > 0 {
        let logs = counted(traced.cut_off as usize, "log");
        doubts.push(format!("{logs} cut off: what follows covers only their beginnings."));
    }
    if let Some(why) = &traced.unnamed {
        doubts.push(format!("What the blocks are is unknown: {why}."));
    }
    doubts
}

/// What is said of operations that returned before what they had promised was true.
fn too_early(traced: &Traced) -> Option<String> {
    let Anatomy { early, operations, .. } = traced.fsyncs;
    (traced.promises && early > 0).then(|| {
        format!(
            "Of {}, {early} returned too early: a write was still under way when it returned, or \
             when the device was told to flush its cache. What was promised may be lost with the \
             power.",
            counted(operations as usize, noun(traced))
        )
    })
}

/// How they differ: what most of them have, how many these are, and the extremes.
fn table(fsyncs: &Anatomy, noun: &str) -> String {
    let header = [&format!("each {noun}"), "most often", &format!("{noun}s"), "range"];
    let mut grid = Grid::new(NOTHING, header);
    for (row, spread) in fsyncs.rows() {
        let Spread { most, operations, least, largest } = spread;
        let shown = |value| figure(row, value);
        let range = match least == largest {
            true => String::new(),
            false => format!("{} to {}", shown(least), shown(largest)),
        };
        let share = format!("{operations} of {}", fsyncs.operations);
        grid.add([name(row), shown(most), share, range]);
    }
    grid.right(1..3);
    let mut text = trimmed(&grid.to_string());
    if median(fsyncs).is_none() {
        return text;
    }
    let latency = |share| fsyncs.latency_ns(share).map_or("-".into(), time);
    text += &format!(
        " latency: median {}, 90% within {}, longest {}\n",
        latency(0.5),
        latency(0.9),
        latency(1.0)
    );
    text + &times::layers(fsyncs)
}

/// The median latency; `None` where the recorder told no times.
fn median(fsyncs: &Anatomy) -> Option<u64> {
    fsyncs.latency_ns(0.5).filter(|_| fsyncs.latency_ns(1.0) > Some(0))
}

fn figure(row: &Row, value: u64) -> String {
    match row {
        Row::Writes | Row::FuaWrites | Row::Flushes | Row::Reads => value.to_string(),
        _ => blocks(value),
    }
}

/// The whole timed part, or recording.
fn whole(account: &Account, origin: Origin) -> String {
    let what = match origin {
        Origin::Trials(_) => "The whole timed part, its closing sync included",
        Origin::Others | Origin::Model => "The whole recording",
    };
    let mut text = format!("{what}: {} written", bytes(account.write_bytes));
    text += &kinds(&account.parts);
    if account.writes > 0 {
        let share = account.sequential_writes as f64 / account.writes as f64 * 100.0;
        text += &format!(" by {}", counted(account.writes as usize, "request"));
        text += &format!(", {share:.0}% of them where the write before ended");
    }
    text += &format!("; {}", flushes_shown(account.flushes));
    if account.fua_writes > 0 {
        text += &format!(", {} with FUA", counted(account.fua_writes as usize, "write"));
    }
    // Logs of earlier programs name no reads.
    let are_named = account.read_parts.keys().any(|(kind, _)| *kind != Kind::Unknown);
    let read = if are_named { kinds(&account.read_parts) } else { String::new() };
    text += &format!("; {} read{read}.", bytes(account.read_bytes));
    if let Some(merges) = account.access.merges.filter(|it| *it > 0) {
        text += &format!(
            " {merges} of the file system's reads and writes were merged into requests with others."
        );
    }
    lines(&text, 0)
}

/// " (data 1.17 MiB, journal 1.53 MiB)", or nothing.
fn kinds(parts: &Parts) -> String {
    let kinds = [
        ("data", Kind::Data),
        ("journal", Kind::Journal),
        ("other metadata", Kind::Metadata),
        ("unknown", Kind::Unknown),
    ];
    let kinds = kinds.map(|(name, kind)| (name, bytes_of(parts, kind))).into_iter();
    let kinds = kinds.filter(|(_, count)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(name, of)| format!("{name} {}", bytes(of))).collect();
    if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) }
}

#[cfg(test)]
pub(in crate::render) mod tests {
    use super::*;
    use crate::model::trace::{Entry, Operation, Stages};

    /// An fsync of the second of two files, as ext4 does it.
    pub(in crate::render) fn example() -> Operation {
        let entries = [
            r#"{"op":"write","sector":80,"sectors":8,"submit_ns":1010,"issue_ns":1020,
               "complete_ns":51020,
               "parts":[{"sectors":8,"kind":"data","what":"data","inode":13}]}"#,
            r#"{"op":"write","sector":800,"sectors":24,"issue_ns":61000,"complete_ns":90000,
               "parts":[{"sectors":8,"kind":"journal","what":"journal descriptor"},
                        {"sectors":16,"kind":"journal","what":"journal copy: inodes"}]}"#,
            r#"{"op":"flush","issue_ns":91000,"complete_ns":591000}"#,
            r#"{"op":"write","sector":824,"sectors":8,"issue_ns":592000,"complete_ns":600000,
               "asked":{"preflush":true,"fua":true},
               "parts":[{"sectors":8,"kind":"journal","what":"journal commit"}]}"#,
            r#"{"op":"flush","issue_ns":601000,"complete_ns":1001000}"#,
        ];
        Operation {
            inode: 13,
            begin_ns: 1000,
            end_ns: 1_011_000,
            files: vec![12, 13],
            entries: entries.map(|text| serde_json::from_str::<Entry>(text).unwrap()).into(),
            is_whole: true,
        }
    }

    #[test]
    fn fsyncs_that_did_not_wait_are_told() {
        let mut early = Operation { end_ns: 40_000, ..example() };
        early.entries.truncate(1);
        early.entries[0].flags.sync = true;
        let mut fsyncs = Anatomy::default();
        [early, example()].into_iter().for_each(|it| fsyncs.take(it));
        let shown =
            |promises| one(&Traced { fsyncs: fsyncs.clone(), promises, ..Traced::default() });
        assert!(shown(true).contains("\n  Of 2 fsyncs, 1 returned too early: a write"));
        assert!(!shown(false).contains("early"), "somebody else's, perhaps");
    }

    #[test]
    fn a_terminal_of_80_columns_shows_one_fsync_in_full() {
        let mut fsyncs = Anatomy::default();
        fsyncs.take(example());
        let (mut account, mut stages) = (Account::default(), Stages::default());
        for entry in &example().entries {
            account.take(entry);
            stages.take(entry);
        }
        let traced = Traced {
            workload: "fsync of 1 of 2 files".into(),
            contender: "ext4".into(),
            origin: Origin::Trials(1),
            account,
            stages,
            fsyncs,
            lost_events: 2,
            ..Traced::default()
        };
        let text = anatomy(&[traced]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let expected = include_str!("../../../tests/trace/anatomy.txt");
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn several_have_a_table_first() {
        let of = |contender: &str| {
            let mut fsyncs = Anatomy::default();
            fsyncs.take(example());
            let workload = "fsync of 1 of 1000 files, overwriting".to_string();
            Traced { workload, contender: contender.into(), fsyncs, ..Traced::default() }
        };
        let text = anatomy(&[of("ext4"), of("ext4 data=journal")]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let row = text.lines().find(|line| line.contains("ext4")).unwrap();
        let figures: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(figures, ["ext4", "1", "0", "4", "0", "2", "1.01", "ms"], "{text}");
    }

    #[test]
    fn parts_of_blocks_are_shown_as_such() {
        assert_eq!([4096, 512, 6144, 0].map(blocks), ["1", "0.125", "1.5", "0"]);
    }
}
