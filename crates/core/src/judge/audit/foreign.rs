//! A13: others who used the disk during the timed part.

use crate::model::{PhaseRecord, Severity};

use super::case::{Case, Seen, bytes, most, percent, prefix};

/// A13's advice where others were seen.
pub const ADVICE: &str = "stop whatever else uses the disk meanwhile, or give the bed a disk of \
                          its own (bed device); compare no figures of single trials";

/// What others may move, over the bytes of the device under test.
const SHARE: f64 = 0.01;

/// What the file system that holds an image writes by itself during a timed part: its log, of which
/// it writes some blocks every few seconds.
const ALLOWANCE_BYTES: u64 = 1 << 20;

/// The same for each flush, which for it is an fsync of the image: the image's new time of change
/// goes through its log. ext4 was seen to write 3 to 7 KiB for it.
const FLUSH_ALLOWANCE_BYTES: u64 = 16 << 10;

/// A13: the disk that the device under test lies on moved more bytes than the device.
pub fn others_at_work(case: &Case) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let (foreign, device) = (phase.totals.foreign?, phase.totals.device?);
        let own = device.read_bytes + device.write_bytes;
        let others = foreign.read_bytes + foreign.write_bytes;
        let allowed = ALLOWANCE_BYTES + device.flushes * FLUSH_ALLOWANCE_BYTES;
        let share = others.saturating_sub(allowed) as f64 / own.max(1) as f64;
        (share > SHARE).then(|| Seen {
            severity: Severity::Warning,
            figure: share,
            evidence: format!(
                "{}others read {} and wrote {} on the same disk meanwhile, {} of what the device \
                 under test moved",
                prefix(phase.phase),
                bytes(foreign.read_bytes),
                bytes(foreign.write_bytes),
                percent(others as f64 / own.max(1) as f64)
            ),
        })
    };
    most(case.record.phases.iter().filter_map(phase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{DeviceTotals, ForeignTotals, Phase, Record, Totals};

    const MIB: u64 = 1 << 20;

    fn seen(foreign: Option<ForeignTotals>, flushes: u64) -> Option<String> {
        let plan = plan(
            "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\ncommand = \"work\"",
        );
        let (read_bytes, write_bytes) = (100 * MIB, 100 * MIB);
        let device = DeviceTotals { read_bytes, write_bytes, flushes, ..DeviceTotals::default() };
        let totals = Totals { device: Some(device), foreign, ..Totals::default() };
        let phases = vec![PhaseRecord { totals, ..phase(Phase::Whole) }];
        let record = &Record { phases, ..record(1, "w", "a") };
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        others_at_work(&case).map(|seen| seen.evidence)
    }

    fn moved(read_bytes: u64, write_bytes: u64) -> Option<ForeignTotals> {
        Some(ForeignTotals { read_bytes, write_bytes })
    }

    #[test]
    fn a13_others_move_more_than_a_hundredth() {
        assert_eq!(seen(None, 0), None, "no disk is known");
        assert_eq!(seen(moved(0, 0), 0), None);
        assert_eq!(seen(moved(MIB, 2 * MIB), 0), None, "a hundredth, and the log");
        let evidence = "others read 1.00 MiB and wrote 3.00 MiB on the same disk meanwhile, 2.0% \
                        of what the device under test moved";
        assert_eq!(seen(moved(MIB, 3 * MIB), 0).as_deref(), Some(evidence));
        assert_eq!(seen(moved(MIB, 3 * MIB), 64), None, "each flush writes the log");
    }
}
