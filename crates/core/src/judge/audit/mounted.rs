//! The terms of a trial by its record: how it was mounted and partitioned, and on which kernel.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Contender, Disk, Given, Guest, Loses, Mounted, Plan, Probed, Record};

/// The trial's kernel counts flushes.
pub fn counts_flushes(record: &Record) -> bool {
    record.guest.as_ref().is_none_or(Guest::counts_flushes)
}

/// Whether the trial's fsyncs flushed the disk. What a layer in between keeps is not known here.
fn flushes(record: &Record) -> Option<bool> {
    let has_cache = record.disk.as_ref().is_some_and(|disk| disk.write_cache);
    let is_told = has_cache && record.layers.is_empty() && counts_flushes(record);
    let sample = record.sample("fsync_device_flushes").filter(|_| is_told)?;
    Some(sample.value > 0.0)
}

/// Whether the trial's fsyncs returned when the devices had nothing more under way, or half of them
/// at least: others may use the disk, too.
fn awaits(record: &Record) -> Option<bool> {
    const MOST: f64 = 0.5;
    Some(record.sample("fsync_early_share")?.value <= MOST)
}

/// What the records of a contender say of its terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// What the options in effect give up.
    pub given_up: Vec<Given>,
    /// What was mounted is the ZFS of a daemon.
    pub is_zfs_fuse: bool,
    /// Whether any fsync sent a flush to a disk whose cache is lost with the power; `None` where
    /// that was not counted, or the disk has no such cache.
    pub flushes: Option<bool>,
    /// By the workload, where that was counted: whether its fsyncs waited in any trial until the
    /// devices had done what they were given.
    pub awaits: BTreeMap<String, bool>,
    /// Whether the disk says that it has such a cache, where it says anything.
    pub has_cache: Option<bool>,
    /// Options that were asked for and that the kernel does not show.
    pub unseen: BTreeSet<String>,
    /// The first partition whose start does not suit the device: where it begins, and what that
    /// costs.
    pub misaligned: Option<(u64, &'static str)>,
    /// The first kernel that can't tell all, and what it can't.
    pub untold: Option<(String, Vec<String>)>,
    /// How many trials ran on an emulated processor.
    pub emulated: usize,
    /// How many ran in a virtual machine whose processor was not.
    pub not_emulated: usize,
    /// How many ran in User Mode Linux.
    pub user_mode: usize,
    /// What the disk said of itself and how it answered, where both are known.
    pub disk: Option<(Disk, Probed)>,
}

impl Terms {
    /// Those of one trial.
    pub fn of(record: &Record) -> Terms {
        let mounted = record.mounted.iter().flat_map(|it| it.above.iter().chain([it]));
        let options = |it: &Mounted| {
            Given::of_options(&it.file_system, it.options.iter().map(String::as_str))
        };
        let guest = record.guest.as_ref();
        let untold = guest.filter(|guest| !guest.untold.is_empty());
        Terms {
            given_up: mounted.clone().flat_map(options).collect(),
            is_zfs_fuse: record.mounted.as_ref().is_some_and(|it| it.file_system == "fuse.zfs"),
            flushes: flushes(record),
            awaits: awaits(record)
                .map(|it| (record.key.workload.clone(), it))
                .into_iter()
                .collect(),
            has_cache: record.disk.as_ref().map(|disk| disk.write_cache),
            unseen: mounted.flat_map(|it| &it.unseen).cloned().collect(),
            misaligned: record
                .partitions
                .iter()
                .find_map(|it| Some((it.start_bytes, it.misaligned()?))),
            untold: untold.map(|guest| (guest.kernel.clone(), guest.untold.clone())),
            emulated: guest.is_some_and(|guest| guest.emulated).into(),
            not_emulated: guest.is_some_and(|guest| !guest.emulated).into(),
            user_mode: guest.is_some_and(|guest| guest.user_mode).into(),
            disk: record.disk.clone().zip(record.probed.clone()),
        }
    }

    /// Adds those of a later trial.
    pub fn add(&mut self, later: &Terms) {
        let new = later.given_up.iter().filter(|it| !self.given_up.contains(it));
        let new = new.cloned().collect::<Vec<_>>();
        self.given_up.extend(new);
        self.is_zfs_fuse |= later.is_zfs_fuse;
        self.flushes = match (self.flushes, later.flushes) {
            (Some(one), Some(other)) => Some(one || other),
            (one, other) => one.or(other),
        };
        for (workload, awaits) in &later.awaits {
            *self.awaits.entry(workload.clone()).or_default() |= *awaits;
        }
        self.has_cache = self.has_cache.or(later.has_cache);
        self.unseen.extend(later.unseen.iter().cloned());
        self.misaligned = self.misaligned.or(later.misaligned);
        match (&mut self.untold, &later.untold) {
            (Some((_, all)), Some((_, more))) => {
                let new = more.iter().filter(|it| !all.contains(it)).cloned().collect::<Vec<_>>();
                all.extend(new);
            }
            (none @ None, some) => none.clone_from(some),
            (Some(_), None) => {}
        }
        self.emulated += later.emulated;
        self.not_emulated += later.not_emulated;
        self.user_mode += later.user_mode;
        if self.disk.is_none() {
            self.disk.clone_from(&later.disk);
        }
    }
}

impl Terms {
    /// The first workload at which fsyncs of `contender` were seen to return while its disk still
    /// had something under way.
    pub fn early(&self, plan: &Plan, contender: &Contender) -> Option<&str> {
        let early = self.awaits.iter().find(|(_, awaits)| !**awaits);
        early.filter(|_| plan.owns_disks(contender)).map(|(workload, _)| workload.as_str())
    }
}

/// The contender whose fsyncs waited where those of the one at `place` returned early, if they did
/// and no setting spares them that; one with another file system, if any.
pub fn waiting<'a>(
    plan: &'a Plan,
    terms: &[Terms],
    spared: &Spared,
    place: usize,
) -> Option<&'a Contender> {
    let contender = &plan.contenders[place];
    let workload = terms[place].early(plan, contender)?;
    let keeps = |at: &usize| spared.synced(*at).is_none() && plan.owns_disks(&plan.contenders[*at]);
    let waits = |at: &usize| keeps(at) && terms[*at].awaits.get(workload) == Some(&true);
    let all = (0..plan.contenders.len()).filter(waits).map(|at| &plan.contenders[at]);
    let waiting = all.min_by_key(|it| it.file_system == contender.file_system);
    waiting.filter(|_| spared.synced(place).is_none())
}

/// What the contenders of a plan give up, by their own words and by what their records show, in the
/// plan's order.
pub struct Spared(Vec<Vec<Given>>);

impl Spared {
    /// What the contenders of `plan` give up, by their terms. On a disk that reports no cache,
    /// declaring one without cache changes nothing; a contender that does so hides what the disk
    /// reports.
    pub fn of(plan: &Plan, terms: &[Terms]) -> Spared {
        let each = || plan.contenders.iter().zip(terms);
        let sets = |it: &Contender| it.queue.contains_key("write_cache");
        let mut plain = each().filter(|(it, _)| !sets(it));
        let is_cacheless = plain.any(|(_, terms)| terms.has_cache == Some(false));
        let of = |(contender, terms): (&Contender, &Terms)| {
            let declared = contender.given_up().into_iter();
            let declared = declared.filter(|it| !is_cacheless || !it.is_of_queue());
            declared.chain(terms.given_up.iter().cloned()).collect()
        };
        Spared(each().map(of).collect())
    }

    /// The first loss of these kinds of the contender at that place.
    pub fn first(&self, contender: usize, kinds: &[Loses]) -> Option<&Given> {
        self.0[contender].iter().find(|it| kinds.contains(&it.fact.loses))
    }

    /// What fsync has promised: the first that takes it from the contender at that place.
    pub fn synced(&self, contender: usize) -> Option<&Given> {
        self.first(contender, &[Loses::Flushes, Loses::Synced])
    }
}

/// Why a crash may leave a contender damaged, which is the one at that place: by its file system,
/// or by what gives it up.
pub fn not_whole(plan: &Plan, spared: &Spared, place: usize) -> Option<String> {
    let given = spared.first(place, &[Loses::Whole]).map(Given::said);
    let why = "no journal: a crash can damage the file system, and what it holds";
    (!plan.contenders[place].keeps_journal()).then(|| why.into()).or(given)
}
