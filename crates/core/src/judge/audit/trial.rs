//! The audits of single trials.

use crate::model::{
    Audit, Cache, CacheState, Contender, DeviceTotals, Layer, Operation, Phase, PhaseRecord,
    Severity, Unit,
};

use super::case::{Case, Seen, bytes, least, most, options, percent, prefix};
use super::{
    cpu, figures, foreign, heat, leak, limits, network, outside, queue, replayed, steady, trouble,
};

/// What may stay cached or dirty around a drop: a file system's own superblock and log pages.
const CACHE_ALLOWANCE_BYTES: u64 = 1 << 20;

/// What each process of a command may read elsewhere: of its program, its libraries, its locale. It
/// was 14 KiB for a small one.
const PROGRAM_BYTES: u64 = 64 << 10;

/// Beside less, a file system's own blocks count: times of access, journals, superblocks.
const MUCH_BYTES: u64 = 8 << 20;

/// What the device must give of a command's reads. Where SQLite read 10,000 rows in random order
/// from 96 MB, cold and with its cache of 2 MB, 17% was of pages that it had read before.
const APPLICATION_READ_SHARE: f64 = 0.5;

/// Under this much time a process, starting it is what takes the time: fork, exec and exit cost
/// half a millisecond to two.
pub const PROCESS_S: f64 = 0.01;

/// Under this many processes, those that were counted may be the threads of our own workloads and
/// of the kernel: `processes` of /proc/stat counts each clone (total_forks, kernel/fork.c).
const HARNESS_PROCESSES: u64 = 100;

/// A6's advice.
pub const CACHE_ADVICE: &str = "as root drop the caches first, read with direct = 1, or read once \
                                through a set larger than memory; or, to measure memory, declare \
                                cache = \"warm\" and read the set in prepare";

/// A9's advice.
pub const SYNC_ADVICE: &str = "end the work with fsync or syncfs on the files it writes; don't \
                               rewrite or delete them within the timed part, and don't write zeros";

/// A10's advice.
pub const HARNESS_ADVICE: &str = "do many operations in one process: use small_files or fio, or a \
                                  tool that loops by itself";

/// An audit that looks at one trial at a time.
pub struct TrialAudit {
    pub audit: Audit,
    pub test: fn(&Case) -> Option<Seen>,
    pub advice: &'static str,
}

/// All of them.
pub const AUDITS: &[TrialAudit] = &[
    TrialAudit {
        audit: Audit::A2,
        test: queue::impossible_or_starved,
        advice: "give fio more processors, larger blocks or fewer jobs; where the figures \
                 contradict each other, look at the tool's own output in raw/",
    },
    TrialAudit {
        audit: Audit::A4,
        test: queue::device_never_saw_it,
        advice: "look for what serialises the requests or answers them from memory: the queue's \
                 own depth (queue.nr_requests), writes beyond the end of a file, a lock, a cache \
                 that O_DIRECT does not bypass",
    },
    TrialAudit {
        audit: Audit::A5,
        test: figures::impossible_summary,
        advice: "do not use these figures; look at the tool's own output in raw/",
    },
    TrialAudit { audit: Audit::A6, test: read_from_cache, advice: CACHE_ADVICE },
    TrialAudit {
        audit: Audit::A7,
        test: not_cold,
        advice: "run it as root, on a bed that is unmounted in between (for an image in memory use \
                 bed ram); or declare cache = \"warm\"",
    },
    TrialAudit { audit: Audit::A9, test: not_durable, advice: SYNC_ADVICE },
    TrialAudit { audit: Audit::A10, test: harness_measured, advice: HARNESS_ADVICE },
    TrialAudit {
        audit: Audit::A11,
        test: stolen,
        advice: "run it on a host of its own, or give the virtual machine processors of its own",
    },
    TrialAudit { audit: Audit::A11, test: heat::slowed_down, advice: heat::ADVICE },
    TrialAudit {
        audit: Audit::A13,
        test: not_at_rest,
        advice: "stop whatever else writes to the device; for ext4 give mkfs \
                 -E lazy_itable_init=0,lazy_journal_init=0",
    },
    TrialAudit { audit: Audit::A13, test: foreign::others_at_work, advice: foreign::ADVICE },
    TrialAudit { audit: Audit::A13, test: cpu::others_at_work, advice: cpu::OTHERS_ADVICE },
    TrialAudit { audit: Audit::A17, test: cpu::ticks_missed, advice: cpu::TICKS_ADVICE },
    TrialAudit {
        audit: Audit::A17,
        test: figures::clock_too_coarse,
        advice: "make the work longer: a second or more",
    },
    TrialAudit { audit: Audit::A24, test: steady::never, advice: steady::NEVER_ADVICE },
    TrialAudit { audit: Audit::A24, test: steady::cut, advice: steady::CUT_ADVICE },
    TrialAudit { audit: Audit::A25, test: outside::astray, advice: outside::ADVICE },
    TrialAudit { audit: Audit::A25, test: outside::forbidden, advice: outside::ADVICE },
    TrialAudit { audit: Audit::A26, test: trouble::lost, advice: trouble::LOSS_ADVICE },
    TrialAudit { audit: Audit::A26, test: trouble::warned, advice: trouble::WARNED_ADVICE },
    TrialAudit { audit: Audit::A26, test: trouble::full, advice: trouble::FULL_ADVICE },
    TrialAudit { audit: Audit::A27, test: trouble::unkept, advice: trouble::UNKEPT_ADVICE },
    TrialAudit { audit: Audit::PastLimits, test: limits::gone_past, advice: limits::ADVICE },
    TrialAudit {
        audit: Audit::LimitedBios,
        test: limits::bios_counted,
        advice: limits::BIOS_ADVICE,
    },
    TrialAudit { audit: Audit::Leak, test: leak::between_turns, advice: leak::ADVICE },
    TrialAudit { audit: Audit::ReplayGap, test: replayed::gaps, advice: replayed::ADVICE },
    TrialAudit {
        audit: Audit::NetworkBound,
        test: network::sets_the_pace,
        advice: "a tie says nothing of the file systems: give the link a higher rate or larger \
                 packets (network.rate, network.mtu) or the machine more processors, hold the \
                 device down (bed.limits), or compare the cost: CPU time, device bytes, what was \
                 dirty",
    },
];

/// A6: work that is to read the device read from memory. A command may read elsewhere, and an
/// application the same page again when its own cache is full: there it takes more, and only warns.
fn read_from_cache(case: &Case) -> Option<Seen> {
    let direct =
        case.workload.fio_values("direct").is_some_and(|values| values.contains(&"1".into()));
    if case.workload.cache != Cache::Cold && !direct || compresses(case) {
        return None;
    }
    let least_share = if is_an_applications(case) { APPLICATION_READ_SHARE } else { 0.95 };
    let phase = |phase: &PhaseRecord| {
        let given = Moved::read(case, phase)?;
        let share = given.share();
        (share < least_share).then(|| Seen {
            severity: severity_of(case),
            figure: share,
            evidence: format!(
                "{}the device gave {} of the {} that were read ({})",
                prefix(phase.phase),
                bytes(given.device_bytes),
                bytes(given.asked_bytes),
                percent(share)
            ),
        })
    };
    least(case.record.phases.iter().filter_map(phase))
}

/// What the work asked for in a timed part, and the device's part in it.
struct Moved {
    device_bytes: u64,
    asked_bytes: u64,
}

impl Moved {
    fn share(&self) -> f64 {
        self.device_bytes as f64 / self.asked_bytes as f64
    }

    /// The device, where it was counted for as long as what was asked for.
    fn device(phase: &PhaseRecord) -> Option<DeviceTotals> {
        phase.totals.device.filter(|_| !phase.ramped)
    }

    /// Reads of a part that only reads, if they are more than its programs.
    fn read(case: &Case, phase: &PhaseRecord) -> Option<Moved> {
        let device_bytes = Moved::device(phase)?.read_bytes;
        let only_reads = phase.written_bytes().is_none();
        let processes = phase.totals.processes_started + 1;
        let is_command = case.workload.command.is_some();
        let least = if is_command { processes.saturating_mul(PROGRAM_BYTES) } else { 1 };
        let asked = phase.application_read_bytes.filter(|bytes| *bytes >= least);
        let asked_bytes = asked.filter(|_| only_reads)?;
        Some(Moved { device_bytes, asked_bytes })
    }

    /// Writes of a part that is to keep them.
    fn written(phase: &PhaseRecord) -> Option<Moved> {
        let device_bytes = Moved::device(phase)?.write_bytes;
        let keeps = matches!(phase.phase, Phase::Whole | Phase::SmallFiles(Operation::Create));
        let asked_bytes = phase.written_bytes().filter(|_| keeps)?;
        Some(Moved { device_bytes, asked_bytes })
    }
}

/// The device's part in a command's work: of its cold reads, and of its writes, if they are many.
/// Unknown for other work, because a replay's copies may be reflinks, and for a contender that is
/// set to compress.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DevicesPart {
    pub read: Option<f64>,
    pub written: Option<f64>,
}

impl DevicesPart {
    /// That of a trial.
    pub fn of(case: &Case) -> DevicesPart {
        let whole = case.record.phases.iter().find(|phase| phase.phase == Phase::Whole);
        let whole = whole.filter(|_| case.workload.command.is_some() && !compresses(case));
        let Some(phase) = whole else { return DevicesPart::default() };
        let share = |moved: Option<Moved>| {
            moved.filter(|it| it.asked_bytes >= MUCH_BYTES).map(|it| it.share())
        };
        let is_cold = case.workload.cache == Cache::Cold;
        DevicesPart {
            read: share(Moved::read(case, phase)).filter(|_| is_cold),
            written: share(Moved::written(phase)),
        }
    }
}

/// The work is that of a command, or the calls that one made.
fn is_an_applications(case: &Case) -> bool {
    case.workload.command.is_some() || case.workload.replay.is_some()
}

/// What an application reads again and deletes is its own affair, and of a command it is not even
/// known where it reads and writes: that only warns.
fn severity_of(case: &Case) -> Severity {
    if is_an_applications(case) { Severity::Warning } else { Severity::Void }
}

/// A7: the caches were not empty when cold work began.
fn not_cold(case: &Case) -> Option<Seen> {
    if case.workload.cache != Cache::Cold {
        return None;
    }
    let state = |state: &CacheState| {
        let CacheState { dirty_bytes_before, cached_bytes_after, dropped, .. } = *state;
        let kept = dirty_bytes_before.max(cached_bytes_after);
        let evidence = if !dropped {
            "the caches could not be dropped".to_string()
        } else if kept > CACHE_ALLOWANCE_BYTES {
            let (dirty, cached) = (bytes(dirty_bytes_before), bytes(cached_bytes_after));
            format!("{dirty} were dirty before the caches were dropped, {cached} cached after it")
        } else {
            return None;
        };
        Some(Seen { severity: Severity::Void, figure: kept as f64, evidence })
    };
    most(case.record.caches.iter().filter_map(state))
}

/// A9: what was written had not reached the device when the clock stopped. An application may
/// delete what it wrote, and a command write elsewhere: there it is a warning.
fn not_durable(case: &Case) -> Option<Seen> {
    if compresses(case) {
        return None;
    }
    let severity = severity_of(case);
    let phase = |phase: &PhaseRecord| {
        let taken = Moved::written(phase)?;
        let share = taken.share();
        (share < 0.9).then(|| Seen {
            severity,
            figure: share,
            evidence: format!(
                "{}the device took {} of the {} that were written ({})",
                prefix(phase.phase),
                bytes(taken.device_bytes),
                bytes(taken.asked_bytes),
                percent(share)
            ),
        })
    };
    least(case.record.phases.iter().filter_map(phase))
}

/// A10: a process or more for each operation, and little time for each: starting them is what was
/// measured. (A process that works for seconds is no harness.)
fn harness_measured(case: &Case) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let operations = phase.operations.filter(|operations| *operations > 0)?;
        let processes = phase.totals.processes_started;
        let each_s = phase.timed_s() / processes as f64;
        let enough = processes >= operations.max(HARNESS_PROCESSES);
        (enough && each_s < PROCESS_S).then(|| Seen {
            severity: Severity::Void,
            figure: processes as f64 / operations as f64,
            evidence: format!(
                "{}{} processes were started for {} operations, one every {}",
                prefix(phase.phase),
                Unit::Count.format(processes as f64),
                Unit::Count.format(operations as f64),
                Unit::Seconds.format(each_s)
            ),
        })
    };
    most(case.record.phases.iter().filter_map(phase))
}

/// A11: the hypervisor gave the processors to others.
fn stolen(case: &Case) -> Option<Seen> {
    let phase = |phase: &PhaseRecord| {
        let cpu = phase.totals.cpu;
        let all_ns = cpu.busy_ns() + cpu.iowait_ns + cpu.steal_ns + cpu.idle_ns;
        let share = cpu.steal_ns as f64 / all_ns as f64;
        (share > 0.01).then(|| Seen {
            severity: Severity::Warning,
            figure: share,
            evidence: format!(
                "{}{} of the CPU time was stolen",
                prefix(phase.phase),
                percent(share)
            ),
        })
    };
    most(case.record.phases.iter().filter_map(phase))
}

/// A13: something else kept the device busy before a timed part, and so perhaps during it.
fn not_at_rest(case: &Case) -> Option<Seen> {
    let busy = case.record.settled.iter().filter(|settled| !settled.quiet);
    most(busy.map(|settled| {
        let waited = Unit::Nanoseconds.format(settled.waited_ns as f64);
        Seen {
            severity: Severity::Warning,
            figure: settled.waited_ns as f64,
            evidence: format!("the device had not come to rest after {waited}"),
        }
    }))
}

/// It is read only, and was compressed when it was made: mksquashfs(1), mkfs.erofs(1).
fn packs(contender: &Contender) -> bool {
    let mut words = contender.mkfs.iter().map(String::as_str);
    match contender.file_system.as_str() {
        "squashfs" => !words.any(|word| matches!(word, "-noD" | "-no-compression")),
        "erofs" => words.any(|word| word.starts_with("-z")),
        _ => false,
    }
}

/// The contender is set to compress or deduplicate, so that rightly fewer bytes reach the device.
fn compresses(case: &Case) -> bool {
    let mounted = case.record.mounted.iter().flat_map(|mounted| &mounted.options);
    let mut mount = options(case.contender).chain(mounted.map(String::as_str));
    let is_off = |option: &str| ["=no", "=none", "=off"].iter().any(|it| option.ends_with(it));
    let saves = |word: &str| word.contains("compress") || word.contains("dedup");
    mount.any(|option| option.starts_with("compress") && !is_off(option))
        || packs(case.contender)
        || case.contender.layers.iter().any(Layer::saves_space)
        || case.contender.mkfs.iter().any(|argument| saves(argument) && !is_off(argument))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{CpuTotals, DeviceTotals, Mounted, Plan, Quiet, Record, Totals};

    const MIB: u64 = 1 << 20;
    const COMMAND: &str = "command = \"work\"";
    const FILES: &str = "small_files = {}";

    fn with(workload: &str, mount: &str) -> Plan {
        plan(&format!(
            "[[contender]]\nname = \"a\"\nmount = [{mount}]\n[[contender]]\nname = \"b\"\n\
             [[workload]]\nname = \"w\"\n{workload}"
        ))
    }

    /// What `test` sees in a trial of contender a, which is mounted with `mount`.
    fn seen_of(
        test: fn(&Case) -> Option<Seen>,
        (workload, mount): (&str, &str),
        record: &Record,
    ) -> Option<(Severity, String)> {
        let plan = with(workload, mount);
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        test(&case).map(|seen| (seen.severity, seen.evidence))
    }

    fn with_phase(phase: PhaseRecord) -> Record {
        Record { phases: vec![phase], ..record(1, "w", "a") }
    }

    fn device(totals: DeviceTotals) -> Totals {
        Totals { device: Some(totals), ..Totals::default() }
    }

    #[test]
    fn a6_reads_that_the_device_did_not_see_are_void() {
        let reads = |device_mib: u64| {
            with_phase(PhaseRecord {
                application_read_bytes: Some(100 * MIB),
                totals: device(DeviceTotals { read_bytes: device_mib * MIB, ..Default::default() }),
                ..phase(Phase::SmallFiles(Operation::Read))
            })
        };
        let seen = |workload, mount, record: &Record| {
            seen_of(read_from_cache, (workload, mount), record).map(|seen| seen.1)
        };
        let evidence = "read: the device gave 12.0 MiB of the 100 MiB that were read (12.0%)";
        assert_eq!(seen(FILES, "", &reads(12)).as_deref(), Some(evidence));
        assert_eq!(seen(FILES, "", &reads(96)), None);
        assert_eq!(seen("small_files = {}\ncache = \"warm\"", "", &reads(12)), None);
        assert_eq!(seen(FILES, "\"compress=zstd\"", &reads(12)), None);
        assert!(seen(FILES, "\"compress=no\"", &reads(12)).is_some());
        let direct = "fio = { rw = \"read\", direct = 1 }\ncache = \"warm\"";
        assert!(seen(direct, "", &reads(12)).is_some());
        assert!(seen(COMMAND, "", &reads(12)).is_some());
        assert_eq!(seen(COMMAND, "", &reads(80)), None, "it may read a page again");
        let mut little = reads(0);
        little.phases[0].application_read_bytes = Some(14_000);
        assert_eq!(seen(COMMAND, "", &little), None, "a program is no file of the work's");
        let mut mixed = reads(12);
        mixed.phases[0].application_write_bytes = Some(MIB);
        assert_eq!(seen(FILES, "", &mixed), None);
        let mut ramped = reads(12);
        ramped.phases[0].ramped = true;
        assert_eq!(seen(FILES, "", &ramped), None, "the device was counted for longer");
    }

    #[test]
    fn a6_a_kernel_that_shows_compression_explains_missing_bytes() {
        let mut record = with_phase(PhaseRecord {
            application_read_bytes: Some(100 * MIB),
            totals: device(DeviceTotals::default()),
            ..phase(Phase::SmallFiles(Operation::Read))
        });
        assert!(seen_of(read_from_cache, (FILES, ""), &record).is_some());
        let options = vec!["compress=lzo".into()];
        record.mounted = Some(Mounted { options, ..Mounted::default() });
        assert!(seen_of(read_from_cache, (FILES, ""), &record).is_none());
    }

    #[test]
    fn a7_cold_work_needs_empty_caches() {
        let around = |dirty_bytes_before, cached_bytes_after, dropped| {
            let state = CacheState {
                dirty_bytes_before,
                cached_bytes_before: 50 * MIB,
                cached_bytes_after,
                dropped,
            };
            Record {
                caches: vec![CacheState { dropped: true, ..Default::default() }, state],
                ..record(1, "w", "a")
            }
        };
        let seen = |workload, record: &Record| seen_of(not_cold, (workload, ""), record);
        assert_eq!(seen(COMMAND, &around(0, 4096, true)), None);
        let (severity, evidence) = seen(COMMAND, &around(0, 3 * MIB, true)).unwrap();
        assert_eq!(severity, Severity::Void);
        assert!(evidence.ends_with("3.00 MiB cached after it"));
        assert!(seen(COMMAND, &around(2 * MIB, 0, true)).is_some());
        assert!(seen(COMMAND, &around(0, 0, false)).unwrap().1.contains("could not be dropped"));
        assert_eq!(seen("command = \"work\"\ncache = \"warm\"", &around(0, 0, false)), None);
    }

    #[test]
    fn a9_writes_that_the_device_did_not_see_are_void() {
        let writes = |part, device_mib: u64| {
            with_phase(PhaseRecord {
                application_write_bytes: Some(100 * MIB),
                totals: device(DeviceTotals {
                    write_bytes: device_mib * MIB,
                    ..Default::default()
                }),
                ..phase(part)
            })
        };
        let create = Phase::SmallFiles(Operation::Create);
        let seen = |workload, mount, record: &Record| {
            seen_of(not_durable, (workload, mount), record).map(|seen| seen.0)
        };
        assert_eq!(seen(FILES, "", &writes(create, 80)), Some(Severity::Void));
        assert_eq!(seen(FILES, "", &writes(create, 91)), None);
        assert_eq!(seen(FILES, "", &writes(Phase::SmallFiles(Operation::Delete), 0)), None);
        assert_eq!(seen(FILES, "\"compress-force\"", &writes(create, 80)), None);
        let on = |layers| seen(FILES, layers, &writes(create, 80));
        assert_eq!(on("]\nlayers = [\"luks\""), Some(Severity::Void));
        assert_eq!(on("]\nlayers = [\"vdo\""), None);
        assert_eq!(seen(COMMAND, "", &writes(Phase::Whole, 0)), Some(Severity::Warning));
        let replay = "replay = { recording = \"git.calls\" }";
        assert_eq!(seen(replay, "", &writes(Phase::Whole, 75)), Some(Severity::Warning));
        let mut prints = writes(Phase::Whole, 0);
        prints.phases[0].application_read_bytes = Some(10_001 * MIB);
        assert_eq!(seen(COMMAND, "", &prints), None, "what a reader prints is not its work");
    }

    #[test]
    fn a10_a_process_for_each_operation_is_what_was_measured() {
        let started = |processes_started, operations| {
            with_phase(PhaseRecord {
                operations: Some(operations),
                totals: Totals { processes_started, ..Totals::default() },
                ..phase(Phase::Whole)
            })
        };
        let seen = |record: &Record| seen_of(harness_measured, (COMMAND, ""), record);
        let (severity, evidence) = seen(&started(1040, 1000)).unwrap();
        assert_eq!(severity, Severity::Void);
        assert!(evidence.starts_with("1,040 processes were started for 1,000 operations"));
        assert_eq!(seen(&started(900, 1000)), None);
        assert_eq!(seen(&started(3, 1)), None, "a third of a second each is work");
        assert_eq!(seen(&started(5, 0)), None);
        let mut short = started(2, 2);
        short.phases[0].work_ns = 10_000_000;
        assert_eq!(seen(&short), None, "two threads of a replay of two calls");
    }

    #[test]
    fn a11_stolen_time_is_a_warning() {
        let steal = |steal_ns| {
            let cpu = CpuTotals { user_ns: 500, idle_ns: 500, steal_ns, ..CpuTotals::default() };
            with_phase(PhaseRecord {
                totals: Totals { cpu, ..Totals::default() },
                ..phase(Phase::Whole)
            })
        };
        let seen = |record: &Record| seen_of(stolen, (COMMAND, ""), record);
        assert_eq!(seen(&steal(10)), None);
        assert_eq!(seen(&steal(111)).unwrap().1, "10.0% of the CPU time was stolen");
        assert_eq!(seen(&with_phase(phase(Phase::Whole))), None);
    }

    #[test]
    fn a13_a_device_that_was_not_at_rest_is_a_warning() {
        let rest = |quiet| {
            let settled = vec![Quiet { quiet, waited_ns: 30_000_000_000 }];
            Record { settled, ..record(1, "w", "a") }
        };
        let seen = |record: &Record| seen_of(not_at_rest, (COMMAND, ""), record);
        assert_eq!(seen(&rest(true)), None);
        assert_eq!(seen(&rest(false)).unwrap().1, "the device had not come to rest after 30.0 s");
    }

    #[test]
    fn what_is_made_of_a_tree_is_compressed_unless_it_is_told_otherwise() {
        let packs = |name: &str, mkfs: &[&str]| {
            let mkfs = mkfs.iter().map(ToString::to_string).collect();
            super::packs(&Contender { file_system: name.into(), mkfs, ..Contender::default() })
        };
        assert!(packs("squashfs", &["-b", "128K"]) && packs("erofs", &["-zlz4hc"]));
        assert!(!packs("squashfs", &["-noD"]) && !packs("erofs", &[]) && !packs("ext4", &["-z"]));
    }
}
