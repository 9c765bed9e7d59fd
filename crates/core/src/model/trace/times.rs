//! Where the time goes: of an operation, and of requests.

use std::collections::BTreeMap;

use super::{Entry, Op, Operation, Quantiles};

/// What an operation's time was spent with. All of them add up to its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Before the file system asked for the first request.
    Before,
    /// Requests had been asked for, and the device had none of them.
    Waiting,
    /// The device had requests.
    Device,
    /// No request was under way any more.
    Rest,
}

impl Layer {
    /// All, in the order in which they come first.
    pub const ALL: [Layer; 4] = [Layer::Before, Layer::Waiting, Layer::Device, Layer::Rest];
}

impl Operation {
    /// How long each layer had it, as [`Layer::ALL`] has them. A request without a known end does
    /// not count.
    pub fn layers_ns(&self) -> [u64; 4] {
        let clipped = |from: Option<u64>, to: Option<u64>| {
            let (from, to) = (from?.max(self.begin_ns), to?.min(self.end_ns));
            (from < to).then_some((from, to))
        };
        let device = |it: &Entry| clipped(it.issue_ns, it.complete_ns);
        // A stranger's record may have them the other way round.
        let first = |it: &Entry| it.submit_ns.into_iter().chain(it.issue_ns).min();
        let any = |it: &Entry| clipped(first(it), it.complete_ns);
        let at_device: Vec<_> = self.entries.iter().filter_map(device).collect();
        let under_way: Vec<_> = self.entries.iter().filter_map(any).collect();
        let first_ns = under_way.iter().map(|(from, _)| *from).min().unwrap_or(self.end_ns);
        let before = first_ns.saturating_sub(self.begin_ns);
        let [device, any] = [at_device, under_way].map(covered_ns);
        let rest = self.latency_ns().saturating_sub(before + any);
        [before, any - device, device, rest]
    }
}

impl Operation {
    /// It returned before a write that somebody waits for was durable: the write was under way when
    /// it returned; or it was asked for before the device's last flush, and under way when the
    /// device was given that, which covers writes that are complete
    /// (Documentation/block/writeback_cache_control.rst, "Explicit cache flushes"). Where a write
    /// commits (FUA), flushes belong to it, and nothing is concluded from them: Btrfs leaves copies
    /// of its superblock to go down later (fs/btrfs/disk-io.c, `write_dev_supers`). Whose write it
    /// is is unknown: what others wait for at the same time counts, too.
    pub fn is_early(&self) -> bool {
        let commits = self.entries.iter().any(|it| it.flags.fua || it.asked.fua);
        let is_late = |it: &Entry, submit_ns: u64| {
            let is_flush = |of: &&Entry| of.op == Op::Flush && of.device == it.device;
            let flushes = self.entries.iter().filter(is_flush);
            let flushed_ns = flushes.filter_map(|of| of.issue_ns).max();
            let covers = |at_ns: &u64| !commits && submit_ns < *at_ns;
            let until_ns = flushed_ns.filter(covers).unwrap_or(self.end_ns);
            it.complete_ns.is_some_and(|end_ns| end_ns > until_ns)
        };
        let is_early = |it: &Entry| {
            let is_awaited = it.op == Op::Write && (it.flags.sync || it.asked.sync);
            let submit_ns = it.submit_ns.filter(|at_ns| is_awaited && *at_ns >= self.begin_ns);
            submit_ns.is_some_and(|submit_ns| is_late(it, submit_ns))
        };
        self.entries.iter().any(is_early)
    }
}

/// How much time lies within any of the spans.
fn covered_ns(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut covered, mut end) = (0, 0);
    for (from, to) in spans {
        covered += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    covered
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// From when its first part was asked for until the device was given it.
    Waiting,
    /// From then until the device had done it.
    Device,
}

/// How long requests took, by what they do and where they were.
#[derive(Clone, Debug, Default)]
pub struct Stages(BTreeMap<(Op, Stage), Quantiles>);

impl Stages {
    /// Adds a request.
    pub fn take(&mut self, entry: &Entry) {
        let Some(issue_ns) = entry.issue_ns else { return };
        let mut add = |stage, time_ns| self.0.entry((entry.op, stage)).or_default().take(time_ns);
        if let Some(submit_ns) = entry.submit_ns {
            add(Stage::Waiting, issue_ns.saturating_sub(submit_ns));
        }
        if let Some(complete_ns) = entry.complete_ns {
            add(Stage::Device, complete_ns.saturating_sub(issue_ns));
        }
    }

    /// Those of each kind.
    pub fn iter(&self) -> impl Iterator<Item = (Op, Stage, &Quantiles)> {
        self.0.iter().map(|((op, stage), times)| (*op, *stage, times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(submit_ns: u64, issue_ns: u64, complete_ns: u64) -> Entry {
        let flush: Entry = serde_json::from_str(r#"{"op":"flush"}"#).unwrap();
        let [submit_ns, issue_ns, complete_ns] = [submit_ns, issue_ns, complete_ns].map(Some);
        Entry { submit_ns, issue_ns, complete_ns, ..flush }
    }

    #[test]
    fn layers_add_up_to_the_latency() {
        let of = |entries: Vec<Entry>| Operation {
            inode: 1,
            begin_ns: 100,
            end_ns: 200,
            files: Vec::new(),
            entries,
            is_whole: true,
        };
        assert_eq!(of(Vec::new()).layers_ns(), [100, 0, 0, 0]);
        // Two at once count once; what lies before the beginning or behind the end does not.
        let overlapping = vec![entry(110, 120, 150), entry(115, 130, 160), entry(170, 190, 250)];
        assert_eq!(of(overlapping).layers_ns(), [10, 10 + 20, 40 + 10, 10]);
        assert_eq!(of(vec![entry(50, 90, 110)]).layers_ns(), [0, 0, 10, 90]);
        let strange = entry(140, 120, 150);
        assert_eq!(of(vec![strange]).layers_ns(), [20, 0, 30, 50], "given before it was asked for");
        let lost = Entry { complete_ns: None, ..entry(110, 120, 0) };
        assert_eq!(of(vec![lost]).layers_ns(), [100, 0, 0, 0]);
    }

    #[test]
    fn requests_are_apart_by_what_they_do_and_where_they_were() {
        let mut stages = Stages::default();
        stages.take(&entry(10, 30, 100));
        stages.take(&Entry { submit_ns: None, ..entry(0, 30, 90) });
        stages.take(&Entry { issue_ns: None, ..entry(0, 0, 1) });
        let told: Vec<_> =
            stages.iter().map(|(op, at, it)| (op, at, it.count(), it.largest)).collect();
        let [waiting, device] = [Stage::Waiting, Stage::Device];
        assert_eq!(told, [(Op::Flush, waiting, 1, 20), (Op::Flush, device, 2, 70)]);
    }

    #[test]
    fn what_is_under_way_at_its_end_or_at_its_last_flush_is_too_late() {
        let write = |submit_ns: u64, complete_ns, words: &str| {
            let text = format!(r#"{{"op":"write","sectors":8,"flags":{{{words}}}}}"#);
            let write: Entry = serde_json::from_str(&text).unwrap();
            let submit_ns = Some(submit_ns);
            Entry { submit_ns, issue_ns: submit_ns, complete_ns: Some(complete_ns), ..write }
        };
        let is_early = |entries: &[Entry]| {
            let entries = entries.to_vec();
            Operation { begin_ns: 10, end_ns: 50, entries, ..Operation::default() }.is_early()
        };
        let sync = r#""sync":true"#;
        assert!(is_early(&[write(12, 51, sync)]) && !is_early(&[write(12, 50, sync)]));
        assert!(!is_early(&[write(12, 51, "")]), "nobody waits for it");
        assert!(!is_early(&[write(9, 51, sync)]), "it belongs to something else");
        let flush = entry(30, 30, 40);
        assert!(is_early(&[write(12, 31, sync), flush.clone()]), "the flush may not cover it");
        assert!(!is_early(&[write(12, 30, sync), flush.clone()]));
        let elsewhere = Entry { device: 1, ..flush.clone() };
        assert!(!is_early(&[write(12, 31, sync), elsewhere]), "another device's");
        assert!(!is_early(&[write(35, 45, sync), flush.clone()]), "not the flush's matter");
        let fua = write(11, 29, r#""sync":true,"fua":true"#);
        assert!(!is_early(&[fua.clone(), write(12, 31, sync), flush]), "the flush is the commit's");
        assert!(is_early(&[fua, write(12, 51, sync)]));
    }
}
