//! A13: others who used the disk during the timed part.

use crate::model::{ForeignTotals, PhaseRecord, Severity};

use super::case::{Case, Seen, bytes, most, named, prefix};

/// A13's advice where others were seen.
pub const ADVICE: &str = "stop whatever else uses the disk meanwhile, or give the bed a disk of \
                          its own (bed device); compare no figures of single trials";

/// What others may move, over the bytes of the device under test.
const SHARE: f64 = 0.01;

/// What the file system that holds an image writes by itself during a timed part: some blocks of
/// its log every few seconds.
const ALLOWANCE_BYTES: u64 = 1 << 20;

/// The same for each flush, which for it is an fsync of the image: the image's new time of change
/// goes through its log. ext4 was seen to write 3 to 7 KiB for it.
const FLUSH_ALLOWANCE_BYTES: u64 = 16 << 10;

/// A13: the disk that the device under test lies on moved more bytes than the device and the work.
pub fn others_at_work(case: &Case) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let device = phase.totals.device?;
        let own = device.read_bytes + device.write_bytes;
        let others = strangers(phase)?;
        let sum = others.read_bytes + others.write_bytes;
        let flushes_bytes = device.flushes.unwrap_or(0).saturating_mul(FLUSH_ALLOWANCE_BYTES);
        let allowed = flushes_bytes.saturating_add(ALLOWANCE_BYTES);
        let share = sum.saturating_sub(allowed) as f64 / own.max(1) as f64;
        (share > SHARE).then(|| Seen {
            severity: Severity::Warning,
            figure: share,
            evidence: format!(
                "{}others read {} and wrote {} on the same disk, while the device under test moved \
                 {}{}",
                prefix(phase.phase),
                bytes(others.read_bytes),
                bytes(others.write_bytes),
                bytes(own),
                who(phase)
            ),
        })
    };
    most(case.record.phases.iter().filter_map(phase))
}

/// What moved on the disk for neither the device nor the work. Whatever the work's processes read
/// and wrote beyond their device's I/O was elsewhere: sources, programs.
///
/// A program is charged for a read when that reaches the disk, so strangers read no more than they
/// were charged for. A write may be of pages that were dirty before: it has no such bound.
fn strangers(phase: &PhaseRecord) -> Option<ForeignTotals> {
    let (foreign, device) = (phase.totals.foreign?, phase.totals.device?);
    let work = phase.totals.work_io.unwrap_or_default();
    let own_read_bytes = work.read_bytes.saturating_sub(device.read_bytes);
    let own_write_bytes = work.write_bytes.saturating_sub(device.write_bytes);
    let fetched_bytes = phase.strangers.as_ref().map_or(u64::MAX, |all| all.read_bytes);
    let read_bytes = foreign.read_bytes.saturating_sub(own_read_bytes).min(fetched_bytes);
    let write_bytes = foreign.write_bytes.saturating_sub(own_write_bytes);
    Some(ForeignTotals { read_bytes, write_bytes })
}

/// The programs that read and wrote meanwhile, on this disk or another.
fn who(phase: &PhaseRecord) -> String {
    let Some(all) = &phase.strangers else { return String::new() };
    let both = |read_bytes, write_bytes| read_bytes + write_bytes;
    let by_name = all.by(|it| both(it.read_bytes, it.write_bytes));
    named(&by_name, both(all.read_bytes, all.write_bytes), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{DeviceTotals, Phase, Record, Stranger, Strangers, Totals, WorkIo};

    const MIB: u64 = 1 << 20;

    fn seen(phase: PhaseRecord) -> Option<String> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"work\"",
        );
        let record = &Record { phases: vec![phase], ..record(1, "w", "a") };
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        others_at_work(&case).map(|seen| seen.evidence)
    }

    fn moved(foreign_mib: Option<[u64; 2]>, flushes: u64) -> PhaseRecord {
        let (read_bytes, write_bytes) = (100 * MIB, 100 * MIB);
        let flushes = Some(flushes);
        let device = DeviceTotals { read_bytes, write_bytes, flushes, ..DeviceTotals::default() };
        let foreign = foreign_mib.map(|[read, write]| ForeignTotals {
            read_bytes: read * MIB,
            write_bytes: write * MIB,
        });
        let totals = Totals { device: Some(device), foreign, ..Totals::default() };
        PhaseRecord { totals, ..phase(Phase::Whole) }
    }

    #[test]
    fn a13_others_move_more_than_a_hundredth() {
        assert_eq!(seen(moved(None, 0)), None, "no disk is known");
        assert_eq!(seen(moved(Some([0, 0]), 0)), None);
        assert_eq!(seen(moved(Some([1, 2]), 0)), None, "a hundredth, and the log");
        let evidence = "others read 1.00 MiB and wrote 3.00 MiB on the same disk, while the \
                        device under test moved 200 MiB";
        assert_eq!(seen(moved(Some([1, 3]), 0)).as_deref(), Some(evidence));
        assert_eq!(seen(moved(Some([1, 3]), 64)), None, "each flush writes the log");
    }

    fn beside(work_mib: [u64; 2], strangers_mib: &[(&str, [u64; 2])]) -> PhaseRecord {
        let mut phase = moved(Some([50, 3]), 0);
        let [read_bytes, write_bytes] = work_mib.map(|mib| mib * MIB);
        phase.totals.work_io = Some(WorkIo { read_bytes, write_bytes });
        let mut all = Strangers::default();
        for &(name, [read, write]) in strangers_mib {
            let (read_bytes, write_bytes) = (read * MIB, write * MIB);
            all.read_bytes += read_bytes;
            all.write_bytes += write_bytes;
            let stranger =
                Stranger { name: name.into(), read_bytes, write_bytes, ..Default::default() };
            all.most.push(stranger);
        }
        phase.strangers = Some(all);
        phase
    }

    #[test]
    fn a13_what_the_work_reads_elsewhere_is_nobody_elses() {
        // Of 150 MiB it read 100 from its own device; of the 3 written 1 was its own.
        assert_eq!(seen(beside([150, 101], &[])), None);
        assert_eq!(seen(beside([150, 100], &[("dd", [90, 0])])), None, "and of another disk");
        let evidence = "others read 40.0 MiB and wrote 3.00 MiB on the same disk, while the \
                        device under test moved 200 MiB (dd 39.0 MiB, tar 1.00 MiB)";
        let others = [("tar", [0, 1]), ("dd", [39, 0]), ("idle", [0, 0])];
        let mut phase = beside([110, 100], &others);
        phase.strangers.as_mut().unwrap().read_bytes = 40 * MIB;
        let others_evidence = evidence.replace("1.00 MiB)", "1.00 MiB, others 1.00 MiB)");
        assert_eq!(seen(phase).as_deref(), Some(others_evidence.as_str()));
    }
}
