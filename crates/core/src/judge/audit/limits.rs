//! PastLimits: the device did more than its limit. LimitedBios: the limit counted bios that the
//! device never got.

use crate::model::{Counted, DeviceTotals, Limits, Phase, PhaseRecord, Severity, Unit};

use super::case::{Case, Seen, bytes, most, percent, prefix};

/// The advice.
pub const ADVICE: &str = "run it in place vm, where QEMU limits whole disks; or compare \
                          without limits";

/// The advice where bios were counted, which limits of this machine's images once did, too.
pub const BIOS_ADVICE: &str = "measure it on bed loop or ram, whose limits now count requests \
                               as a cloud disk does; or limit the bandwidth alone";

/// A limit is what the work met from this share of it on.
const MET: f64 = 0.8;

/// Where a request stands for so many bios, the limit is another one than it says.
const BIOS_A_REQUEST: f64 = 2.0;

/// What a throttle lets pass at once: its slices are a tenth of a second long, and two may follow
/// each other (block/blk-throttle.c, `DFL_THROTL_SLICE_HD`).
const BURST_S: f64 = 0.2;

/// Up to this factor a limit counts as kept: rates are rounded to whole slices.
const ALLOWED: f64 = 1.1;

/// From here on the limits are not what was measured.
const VOID: f64 = 2.0;

/// What may go past them: so much is a file system's own.
const PAST: f64 = 0.05;

/// The device moved more than the limits allow, and more than was charged to the trial's own
/// cgroup, whose limits bind only the trial. If they bind the whole device there is no such charge.
pub fn gone_past(case: &Case) -> Option<Seen> {
    let limits = case.limits?;
    let phase = |phase: &PhaseRecord| {
        let (device, held) = (phase.totals.device?, phase.totals.own?.device?);
        let all = device.read_bytes + device.write_bytes;
        let past = all.saturating_sub(held.read_bytes + held.write_bytes);
        let share = past as f64 / all.max(1) as f64;
        let done = operations(case, &device);
        let (_, times) = nearest(limits, done, &device, phase.timed_s() + BURST_S)?;
        (share > PAST && times > ALLOWED).then(|| Seen {
            severity: if times > VOID { Severity::Void } else { Severity::Warning },
            figure: times,
            evidence: format!(
                "{}the device did {times:.1} times its limit: {} of the {} that it moved ({}) went \
                 past it, by workers that the kernel's file systems share",
                prefix(phase.phase),
                bytes(past),
                bytes(all),
                percent(share)
            ),
        })
    };
    most(case.record.phases.iter().filter_map(phase))
}

/// How near a timed part came to one of its limits.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    pub phase: Phase,
    /// Which one: its place in [`said`].
    pub limit: usize,
    /// So much of it the device did on average.
    pub share: f64,
}

/// The limits one by one, in words.
pub fn said(limits: Limits) -> [Option<String>; 4] {
    let ways = ["reads", "writes"];
    let [[read, write], [read_bytes, write_bytes]] = [
        limits.operations().map(|it| it.map(|it| format!("{it} IOPS"))),
        limits.bytes().map(|it| it.map(|it| Unit::BytesPerSecond.format(it as f64))),
    ];
    let of = |(limit, way): (Option<String>, &str)| Some(format!("{} of {way}", limit?));
    let all = [read, write, read_bytes, write_bytes].into_iter().zip(ways.into_iter().cycle());
    let mut said = all.map(of);
    std::array::from_fn(|_| said.next().flatten())
}

/// For each timed part the limit that it came nearest to. If a tool reports its own time, that
/// counts: its start takes time, and only its work met the limit.
pub fn reached(case: &Case) -> Vec<Reached> {
    let Some(limits) = case.limits else { return Vec::new() };
    let phase = |phase: &PhaseRecord| {
        let device = phase.totals.device.filter(|_| !phase.ramped)?;
        let mut done = operations(case, &device);
        // A flush is an operation, too, where requests are counted.
        if case.record.limits_counted() == Counted::Requests {
            done[1] += device.flushes.unwrap_or(0);
        }
        let time_s = phase.rated_s() * device.devices.max(1) as f64;
        let (limit, share) = nearest(limits, done, &device, time_s)?;
        Some(Reached { phase: phase.phase, limit, share })
    };
    case.record.phases.iter().filter_map(phase).collect()
}

/// What the limits counted: reads and writes.
fn operations(case: &Case, device: &DeviceTotals) -> [u64; 2] {
    match case.record.limits_counted() {
        Counted::Requests => [device.reads, device.writes],
        Counted::Bios => bios(device),
    }
}

fn bios(device: &DeviceTotals) -> [u64; 2] {
    [device.reads + device.reads_merged, device.writes + device.writes_merged]
}

/// The device's use as a multiple of what its limits allow in that time: for the one of the four
/// that it used, or broke, most; its place, and the multiple.
fn nearest(
    limits: Limits,
    operations: [u64; 2],
    device: &DeviceTotals,
    time_s: f64,
) -> Option<(usize, f64)> {
    let moved = [device.read_bytes, device.write_bytes];
    let done = operations.into_iter().chain(moved);
    let allowed = limits.operations().into_iter().chain(limits.bytes());
    let over = |(place, (done, limit)): (usize, (u64, Option<u64>))| {
        Some((place, done as f64 / (limit?.max(1) as f64 * time_s)))
    };
    let shares = done.zip(allowed).enumerate().filter_map(over);
    shares.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// The limit was met by bios, many of which became one request: a disk that counts requests would
/// not have limited that work so.
pub fn bios_counted(case: &Case) -> Option<Seen> {
    let limits = case.limits?.operations();
    (case.record.limits_counted() == Counted::Bios).then_some(())?;
    let phase = |phase: &PhaseRecord| {
        let device = phase.totals.device?;
        let of = |((bios, requests), limit): ((u64, u64), Option<u64>)| {
            let limit = limit?;
            let allowed = limit.max(1) as f64 * phase.timed_s();
            let times = bios as f64 / requests.max(1) as f64;
            (bios as f64 >= MET * allowed && times >= BIOS_A_REQUEST).then(|| Seen {
                severity: Severity::Warning,
                figure: times,
                evidence: format!(
                    "{}the limit of {limit} operations a second counted {bios} bios, which the \
                     device got as {requests} requests: it held the work down {times:.1} times as \
                     much as a limit of requests would",
                    prefix(phase.phase)
                ),
            })
        };
        let requests = [device.reads, device.writes];
        most(bios(&device).into_iter().zip(requests).zip(limits).filter_map(of))
    };
    most(case.record.phases.iter().filter_map(phase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{OwnTotals, Place, Plan, Record, Totals, WorkIo};

    const MIB: u64 = 1 << 20;

    fn plan_on(bed: &str) -> Plan {
        plan(&format!(
            "{bed}\n[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"work\"",
        ))
    }

    /// What `audit` sees of a trial that wrote 80 MiB in 2,000 bios, 500 requests and 9.8 s.
    fn seen_by(
        audit: fn(&Case) -> Option<Seen>,
        plan: &Plan,
        limits_count: Option<Counted>,
        held_mib: Option<u64>,
    ) -> Option<(Severity, String)> {
        let (writes, writes_merged, write_bytes) = (500, 1500, 80 * MIB);
        let device = DeviceTotals { writes, writes_merged, write_bytes, ..Default::default() };
        let held = |mib| WorkIo { read_bytes: 0, write_bytes: mib * MIB };
        let own = OwnTotals { device: held_mib.map(held), ..OwnTotals::default() };
        let totals = Totals { device: Some(device), own: Some(own), ..Totals::default() };
        let mut phase = PhaseRecord { totals, ..phase(Phase::Whole) };
        (phase.work_ns, phase.syncfs_ns) = (9_000_000_000, 800_000_000);
        let record = &Record { phases: vec![phase], limits_count, ..record(1, "w", "a") };
        let case = Case::new(plan, &plan.workloads[0], &plan.contenders[0], record);
        audit(&case).map(|seen| (seen.severity, seen.evidence))
    }

    fn seen(bed: &str, held_mib: Option<u64>) -> Option<(Severity, String)> {
        let plan = plan_on(bed);
        let counted = plan.whole_bed().limits_count(Place::Local);
        seen_by(gone_past, &plan, counted, held_mib)
    }

    const DISK: &str = "bed.kind = \"device\"\nbed.path = \"/dev/x\"\n";

    #[test]
    fn a_device_that_does_more_than_its_limits_allow_is_noticed() {
        const LIMITED: &str = "bed.limits = { bandwidth = \"5M\" }";
        assert_eq!(seen(LIMITED, None), None, "all of the device is held down");
        assert_eq!(seen("", Some(0)), None, "nothing is");
        assert_eq!(seen(LIMITED, Some(78)), None, "its superblocks");
        assert_eq!(seen("bed.limits = { bandwidth = \"8M\" }", Some(0)), None, "it had no need to");
        let evidence = "the device did 1.6 times its limit: 30.0 MiB of the 80.0 MiB that it \
                        moved (37.5%) went past it, by workers that the kernel's file systems \
                        share";
        assert_eq!(seen(LIMITED, Some(50)), Some((Severity::Warning, evidence.into())));
        let iops = |iops: u32| format!("bed.limits = {{ iops = {iops} }}");
        assert_eq!(seen(&iops(48), Some(0)), None, "500 requests in 10 s are 50 a second");
        assert_eq!(seen(&iops(22), Some(0)).unwrap().0, Severity::Void);
        let disk = |limit: u32| seen(&format!("{DISK}{}", iops(limit)), Some(0));
        assert_eq!(disk(190), None, "2,000 bios in 10 s are 200 a second");
        assert_eq!(disk(90).unwrap().0, Severity::Void);
    }

    #[test]
    fn a_limit_that_counted_bios_is_noticed_where_it_was_met() {
        let limited = |bed: &str, iops: u32| plan_on(&format!("{bed}bed.limits.iops = {iops}"));
        let seen = |bed: &str, iops: u32| {
            let plan = limited(bed, iops);
            let counted = plan.whole_bed().limits_count(Place::Local);
            seen_by(bios_counted, &plan, counted, None)
        };
        let evidence = "the limit of 200 operations a second counted 2000 bios, which the device \
                        got as 500 requests: it held the work down 4.0 times as much as a limit of \
                        requests would";
        assert_eq!(seen(DISK, 200), Some((Severity::Warning, evidence.into())));
        assert_eq!(seen(DISK, 300), None, "it was not met");
        assert_eq!(seen("", 200), None, "the bed's limit counts requests");
        let older = seen_by(bios_counted, &limited("", 200), None, None);
        assert_eq!(older, Some((Severity::Warning, evidence.into())), "it counted bios then");
        assert!(seen_by(bios_counted, &plan_on(DISK), None, None).is_none(), "there is no limit");
    }
}
