//! A2 and A4: the queue of requests, by Little's law: rate times latency is the mean number under
//! way, for anything with a rate and a latency.

use crate::model::{JobRecord, PhaseRecord, Queue, Severity};

use super::case::{Case, Seen, most};

/// A2: more requests under way than the jobs can have, or fewer than a closed loop keeps.
pub fn impossible_or_starved(case: &Case) -> Option<Seen> {
    let tell = |queue: Queue, whose: &str| {
        let Queue { declared, requests, syncs, closed, .. } = queue;
        let evidence = if requests > 1.02 * declared {
            format!(
                "{whose}fio's rate times its latency is {requests:.1} requests under way, and its \
                 jobs have {declared:.0} at most: the two figures can't both be right"
            )
        } else if closed && requests > 0.0 && requests + syncs < 0.9 * declared {
            format!(
                "{whose}{:.1} requests were under way on average and {declared:.0} were asked for: \
                 the rest of the time fio was busy by itself",
                requests + syncs
            )
        } else {
            return None;
        };
        Some(Seen { severity: Severity::Warning, figure: requests / declared, evidence })
    };
    let of_job = |job: &JobRecord| tell(job.queue?, &format!("{}: ", job.name));
    let of_phase = |phase: &PhaseRecord| match phase.jobs.is_empty() {
        true => tell(phase.queue?, ""),
        false => most(phase.jobs.iter().filter_map(of_job)),
    };
    most(case.record.phases.iter().filter_map(of_phase))
}

/// A4: work that goes past the page cache, and a device that was kept far less busy than it asked
/// for: something between the two takes the requests one by one. A limit holds them back before
/// the device's counters see them (block/blk-throttle.c), and shows nothing by itself.
pub fn device_never_saw_it(case: &Case) -> Option<Seen> {
    if case.limits.is_some() {
        return None;
    }
    let phase = |phase: &PhaseRecord| {
        let queue = phase.queue.filter(|queue| queue.direct)?;
        let device = phase.totals.device?;
        let requests = device.queue_ns as f64 / phase.tool_ns.unwrap_or(phase.work_ns) as f64;
        (requests < 0.3 * queue.declared).then(|| Seen {
            severity: Severity::Warning,
            figure: requests / queue.declared,
            evidence: format!(
                "the device had {requests:.2} requests under way on average, of the {:.0} that \
                 were asked for",
                queue.declared
            ),
        })
    };
    most(case.record.phases.iter().filter_map(phase))
}

/// The queue of a trial whose work goes past the page cache.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// As many as were asked for.
    pub declared: f64,
    /// As many as the device had on average.
    pub seen: f64,
    /// It is known to write through the page cache all the same.
    pub is_buffered: bool,
}

impl Depth {
    /// That of a trial, where it has one.
    pub fn of(case: &Case) -> Option<Depth> {
        let direct = |it: &&PhaseRecord| it.queue.is_some_and(|queue| queue.direct);
        let phase = case.record.phases.iter().find(direct)?;
        let device = phase.totals.device?;
        let time_ns = phase.tool_ns.unwrap_or(phase.work_ns) as f64;
        (time_ns > 0.0).then(|| Depth {
            declared: phase.queue.map_or(0.0, |queue| queue.declared),
            seen: device.queue_ns as f64 / time_ns,
            is_buffered: phase.written_bytes().is_some() && case.record.buffers_direct_writes(None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{phase, plan, record};
    use crate::model::{DeviceTotals, Phase, Record, Totals};

    const PLAN: &str = "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                        [[workload]]\nname = \"w\"\nfio = { rw = \"randread\" }";

    fn seen(test: fn(&Case) -> Option<Seen>, queue: Queue, queue_ns: u64) -> Option<String> {
        seen_in(PLAN, test, queue, queue_ns)
    }

    fn seen_in(
        text: &str,
        test: fn(&Case) -> Option<Seen>,
        queue: Queue,
        queue_ns: u64,
    ) -> Option<String> {
        let plan = plan(text);
        let device = Some(DeviceTotals { queue_ns, ..DeviceTotals::default() });
        let totals = Totals { device, ..Totals::default() };
        let phases = vec![PhaseRecord { queue: Some(queue), totals, ..phase(Phase::Whole) }];
        let record = &Record { phases, ..record(1, "w", "a") };
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        test(&case).map(|seen| seen.evidence)
    }

    const DEEP: Queue =
        Queue { declared: 32.0, requests: 31.5, syncs: 0.0, closed: true, direct: true };

    #[test]
    fn a2_little_s_law_holds_or_one_figure_is_wrong() {
        let seen = |queue| seen(impossible_or_starved, queue, 0);
        assert_eq!(seen(DEEP), None);
        assert!(seen(Queue { requests: 33.0, ..DEEP }).unwrap().contains("can't both be right"));
        let starved = Queue { requests: 12.0, ..DEEP };
        assert!(seen(starved).unwrap().starts_with("12.0 requests were under way"));
        assert_eq!(seen(Queue { closed: false, ..starved }), None, "a paced job keeps no queue");
        assert_eq!(seen(Queue { syncs: 18.0, ..starved }), None, "fsync is outside fio's lat");
    }

    #[test]
    fn a2_looks_at_each_job_of_several() {
        let plan = plan(PLAN);
        let job = |name: &str, requests: f64| JobRecord {
            name: name.into(),
            queue: Some(Queue { requests, ..DEEP }),
            ..JobRecord::default()
        };
        let jobs = vec![job("first", 31.0), job("second", 9.0)];
        let phases = vec![PhaseRecord { jobs, ..phase(Phase::Whole) }];
        let record = &Record { phases, ..record(1, "w", "a") };
        let case = Case::new(&plan, &plan.workloads[0], &plan.contenders[0], record);
        let evidence = impossible_or_starved(&case).unwrap().evidence;
        assert!(evidence.starts_with("second: 9.0 requests were under way"), "{evidence}");
    }

    #[test]
    fn a4_what_goes_past_the_cache_reaches_the_device_s_queue() {
        let seen = |queue, requests: f64| {
            seen(device_never_saw_it, queue, (requests * 1_000_000_000.0) as u64)
        };
        assert_eq!(seen(DEEP, 10.0), None);
        let evidence = "the device had 0.90 requests under way on average, of the 32 that were \
                        asked for";
        assert_eq!(seen(DEEP, 0.9).as_deref(), Some(evidence));
        assert_eq!(seen(Queue { direct: false, ..DEEP }, 0.9), None);
        let limited = format!("bed.limits = {{ iops = 100 }}\n{PLAN}");
        assert_eq!(seen_in(&limited, device_never_saw_it, DEEP, 900_000_000), None);
    }
}
