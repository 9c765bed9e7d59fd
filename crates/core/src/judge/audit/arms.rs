//! What the arms show: A8, A15, A20, and that the device or the depth is the limit.

use std::collections::BTreeMap;

use crate::judge::interval::{Course, Interval};
use crate::judge::lane::Lane;
use crate::judge::pairs::Which;
use crate::judge::shared::Shared;
use crate::judge::stopping::Rule;
use crate::judge::trials::Trials;
use crate::model::{Arm, Audit, Contender, Finding, Plan, Severity, Unit, Workload, median};

/// The error that all metrics of a workload share when its duplicate is compared with the
/// reference. It is small, because a finding makes the whole workload void.
pub const DUPLICATE_ALPHA: f64 = 0.005;

/// What a file system does beyond this times the bare device's rate it does not do on the device.
const FASTER: f64 = 1.05;

/// At this share of the bare device's rate the device is the limit.
const BOUND: f64 = 0.95;

/// A device that does more than this times as much at twice the depth was not at its limit.
const DEEPER: f64 = 1.05;

/// An fsync below this share of the bare device's does less than that one.
const FSYNC_SHARE: f64 = 0.9;

/// The median fsync of a trial.
const FSYNC: &str = "fsync_latency_p50";

/// What the device is asked in each operation of a fio job.
const RATE: &str = "iops";

/// A15: the reference differs from its duplicate, so that the difference is the measurement's.
/// `lane` is that of the two, as far as it was followed before.
pub fn duplicate_differs(
    plan: &Plan,
    workload: &Workload,
    rules: &BTreeMap<usize, Shared>,
    trials: &Trials,
    lane: &mut Lane,
) -> Option<Finding> {
    let again = plan.arm(Arm::Duplicate)?;
    let metrics = workload.primary();
    let rules = rules.get(&metrics.len())?;
    let names = [again.name.as_str(), plan.reference()];
    let both = metrics.iter().map(|it| trials.both(&workload.name, it, names, Which::Latest));
    let both: Vec<_> = both.collect();
    let mut courses = metrics.iter().zip(lane.courses(&both, rules, 0.0));
    let excludes_1 =
        |(_, course): &(&String, Course)| course.interval.low > 0.0 || course.interval.high < 0.0;
    let (metric, course) = courses.find(excludes_1)?;
    let Interval { low, high } = course.interval;
    Some(Finding {
        audit: Audit::A15,
        severity: Severity::Void,
        workload: Some(workload.name.clone()),
        contender: None,
        evidence: format!(
            "{} and {} are the same and differ in {metric}: {:.3} times (99.5% interval {:.3} to \
             {:.3}, {} rounds)",
            again.name,
            plan.reference(),
            course.estimate.exp(),
            low.exp(),
            high.exp(),
            course.rounds
        ),
        advice: "look for what else changes from trial to trial: the order (A14), a device that \
                 remembers what was written before, settings that are not put back, another \
                 program"
            .into(),
    })
}

/// What is known of the difference of two contenders in `metric`; the margin plays no part.
fn course(
    workload: &Workload,
    metric: &str,
    names: [&str; 2],
    rule: &Rule,
    trials: &Trials,
) -> Course {
    Course::of(&trials.differences(&workload.name, metric, names), rule, 0.0)
}

/// What the bare device says of the contenders.
pub fn against_the_device(
    plan: &Plan,
    workload: &Workload,
    rule: &Rule,
    trials: &Trials,
) -> Vec<Finding> {
    let Some(raw) = plan.arm(Arm::Raw).filter(|_| workload.fio.is_some()) else {
        return Vec::new();
    };
    let device = Device { workload, raw, deep: plan.deep_arm(workload), rule, trials };
    let mut findings: Vec<Finding> =
        plan.contenders.iter().filter_map(|it| device.faster(it)).collect();
    findings.extend(plan.contenders.iter().filter_map(|it| device.fsync_too_fast(it)));
    findings.extend(device.is_the_limit(plan));
    findings
}

/// The bare device in one workload.
struct Device<'a> {
    workload: &'a Workload,
    raw: Contender,
    /// The bare device at twice the depth, for a job that has one.
    deep: Option<Contender>,
    rule: &'a Rule,
    trials: &'a Trials,
}

impl Device<'_> {
    /// The contender's rate over the device's.
    fn share(&self, contender: &str) -> Course {
        course(self.workload, RATE, [contender, &self.raw.name], self.rule, self.trials)
    }

    /// The median of a figure of one contender.
    fn median(&self, contender: &str, metric: &str) -> Option<f64> {
        let trials = self.trials.latest(&self.workload.name, contender);
        median(trials.values().filter_map(|kept| Some(kept.figure(metric)?.value)))
    }

    fn finding(&self, audit: Audit, contender: &str, evidence: String, advice: &str) -> Finding {
        Finding {
            audit,
            severity: Severity::Warning,
            workload: Some(self.workload.name.clone()),
            contender: Some(contender.into()),
            evidence,
            advice: advice.into(),
        }
    }

    /// A8: more than the device can do.
    fn faster(&self, contender: &Contender) -> Option<Finding> {
        let course = self.share(&contender.name);
        (course.interval.low > FASTER.ln()).then(|| {
            let evidence = format!(
                "{:.2} times as many operations a second as the bare device ({})",
                course.estimate.exp(),
                interval(&course)
            );
            let advice = "the device can't have done all of this work: use direct = 1, a larger \
                          set or data that don't compress";
            self.finding(Audit::A8, &contender.name, evidence, advice)
        })
    }

    /// A20: an fsync that takes less than what it has to do on the device, by more than a tenth.
    /// One of buffered writes has to write and to flush, as the fsync of the bare device does;
    /// after direct ones a flush is enough, and the bare device's does no more. Medians of single
    /// trials differ by several times on a busy machine: the rounds decide.
    fn fsync_too_fast(&self, contender: &Contender) -> Option<Finding> {
        let pair = [contender.name.as_str(), self.raw.name.as_str()];
        let course = course(self.workload, FSYNC, pair, self.rule, self.trials);
        (course.interval.low > -FSYNC_SHARE.ln()).then(|| {
            let shown = |name| {
                self.median(name, FSYNC).map_or("-".into(), |ns| Unit::Nanoseconds.format(ns))
            };
            let evidence = format!(
                "the median fsync took {}, that of the bare device {}",
                shown(&contender.name),
                shown(&self.raw.name)
            );
            let advice = "fsync does not wait for the device: look for nobarrier, for a layer that \
                          ignores flushes, or for a cache that says it has written; a power cut \
                          would lose what it promised to keep";
            self.finding(Audit::A20, &contender.name, evidence, advice)
        })
    }

    /// The device's rate at twice the work's depth over that at the work's depth; `None` if the
    /// work has no depth, and for runs that did not try it.
    fn deeper(&self) -> Option<Course> {
        let deep = self.deep.as_ref()?;
        let pair = [deep.name.as_str(), self.raw.name.as_str()];
        let course = course(self.workload, RATE, pair, self.rule, self.trials);
        (course.rounds > 0).then_some(course)
    }

    /// The reference and others do what the bare device does: a tie between them is the device's,
    /// or that of the depth where the device does more at twice of it. Which of the two may be
    /// open.
    fn is_the_limit(&self, plan: &Plan) -> Option<Finding> {
        let bound = self.bound(plan)?;
        let shares: Vec<String> = bound
            .iter()
            .map(|it| format!("{} {}", it.name, interval(&self.share(&it.name))))
            .collect();
        let shares = shares.join("; ");
        let deeper = self.deeper();
        let tried = deeper.map_or(String::new(), |course| {
            format!("; at twice the depth it does {}", interval(&course))
        });
        let (audit, what, advice) = match deeper {
            Some(course) if course.interval.low > DEEPER.ln() => (
                Audit::DepthBound,
                "the depth is the limit, not the device",
                "a tie here comes from the depth: raise iodepth until the device gets no faster, \
                 or take the answer as one for this depth only"
                    .into(),
            ),
            Some(course) if course.interval.high >= DEEPER.ln() => return None,
            _ => (Audit::DeviceBound, "the device is the limit", self.ranked(bound)),
        };
        Some(Finding {
            audit,
            severity: Severity::Note,
            workload: Some(self.workload.name.clone()),
            contender: None,
            evidence: format!("{what}: they do as much as the bare device: {shares}{tried}"),
            advice,
        })
    }

    /// The contenders that do what the bare device does, where the reference is among them and not
    /// alone.
    fn bound<'a>(&self, plan: &'a Plan) -> Option<Vec<&'a Contender>> {
        let bound = |contender: &&Contender| {
            let low = self.share(&contender.name).interval.low;
            low > BOUND.ln() && low <= FASTER.ln()
        };
        let bound: Vec<&Contender> = plan.contenders.iter().filter(bound).collect();
        let with_reference = bound.iter().any(|it| it.name == plan.reference());
        (bound.len() >= 2 && with_reference).then_some(bound)
    }

    /// What is left to compare at the device's limit.
    fn ranked(&self, mut bound: Vec<&Contender>) -> String {
        let ranks = [
            ("device bytes per application byte", "device_bytes_per_application_byte", Unit::Ratio),
            ("CPU time per operation", "cpu_per_operation", Unit::Nanoseconds),
        ];
        let rank = |(what, metric, unit): (&str, &str, Unit)| {
            let cost = |it: &Contender| self.median(&it.name, metric).unwrap_or(f64::INFINITY);
            bound.sort_by(|one, other| cost(one).total_cmp(&cost(other)));
            let known = bound.iter().filter(|it| cost(it).is_finite());
            let shown: Vec<String> =
                known.map(|it| format!("{} {}", it.name, unit.format(cost(it)))).collect();
            format!("by {what}: {}", shown.join(", "))
        };
        let ranks: Vec<String> = ranks.into_iter().map(rank).collect();
        format!("a tie here is not a win; what each costs, {}", ranks.join("; "))
    }
}

fn interval(course: &Course) -> String {
    let Interval { low, high } = course.interval;
    format!("{:.3} to {:.3} of its rate", low.exp(), high.exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use crate::judge::testing::{plan, record};
    use crate::model::{Record, Sample, Verdict};

    const PLAN: &str = r#"
        [[contender]]
        name = "a"
        [[contender]]
        name = "b"
        [[workload]]
        name = "w"
        fio = { rw = "randwrite" }
        cache = "warm"
        [judgement]
        arms = ["duplicate", "raw"]
    "#;

    /// Twelve rounds, with the rates of a, b, the duplicate and the device, and some noise.
    fn rounds(rates: [f64; 4], more: &[(&str, [f64; 4])]) -> Vec<Record> {
        let names = ["a", "b", "a again", "raw device"];
        let trial = |round: u32, place: usize| {
            let noise = 1.0 + f64::from((round * 7 + 3 * place as u32) % 5) / 500.0;
            let mut samples = vec![Sample::higher("iops", rates[place] * noise, Unit::PerSecond)];
            samples.extend(
                more.iter().map(|(metric, values)| {
                    Sample::lower(*metric, values[place], Unit::Nanoseconds)
                }),
            );
            Record { samples, position: place as u32 + 1, ..record(round, "w", names[place]) }
        };
        (1..=12).flat_map(|round| (0..4).map(move |place| trial(round, place))).collect()
    }

    fn found(audit: Audit, records: &[Record]) -> Vec<Finding> {
        let mut findings = Judge::new(&plan(PLAN)).findings(records);
        findings.retain(|finding| finding.audit == audit);
        findings
    }

    #[test]
    fn a15_a_reference_that_differs_from_itself_voids_the_workload() {
        let alike = rounds([800.0, 700.0, 800.0, 1000.0], &[]);
        assert_eq!(found(Audit::A15, &alike), []);
        let differs = rounds([800.0, 700.0, 750.0, 1000.0], &[]);
        let found = found(Audit::A15, &differs);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Void));
        assert!(
            found[0].evidence.starts_with("a again and a are the same and differ in iops: 0.9")
        );
        let comparisons = Judge::new(&plan(PLAN)).comparisons(&differs);
        assert_eq!(comparisons[0].verdict, Verdict::Void);
        assert_eq!(Judge::new(&plan(PLAN)).comparisons(&alike)[0].verdict, Verdict::Slower);
    }

    #[test]
    fn a8_no_file_system_is_faster_than_its_device() {
        assert_eq!(found(Audit::A8, &rounds([800.0, 1030.0, 800.0, 1000.0], &[])), []);
        let found = found(Audit::A8, &rounds([800.0, 1200.0, 800.0, 1000.0], &[]));
        assert_eq!((found.len(), found[0].contender.as_deref()), (1, Some("b")));
    }

    #[test]
    fn a_tie_at_the_device_s_rate_is_ranked_by_its_cost() {
        let bytes = ("device_bytes_per_application_byte", [1.2, 1.1, 1.2, 1.0]);
        let cpu = ("cpu_per_operation", [5e3, 6e3, 5e3, 2e3]);
        let bound = rounds([990.0, 985.0, 990.0, 1000.0], &[bytes, cpu]);
        let found_bound = found(Audit::DeviceBound, &bound);
        assert_eq!(found_bound.len(), 1);
        assert!(found_bound[0].advice.contains("application byte: b 1.1"), "{found_bound:?}");
        assert!(found_bound[0].advice.contains("CPU time per operation: a 5.00 µs, b 6.00 µs"));
        let one = rounds([990.0, 900.0, 990.0, 1000.0], &[bytes, cpu]);
        assert_eq!(found(Audit::DeviceBound, &one), []);
    }

    #[test]
    fn a_device_that_does_more_at_twice_the_depth_is_not_the_limit() {
        let job = "fio = { rw = \"randread\", ioengine = \"libaio\", iodepth = 4 }";
        let plan = plan(&PLAN.replace("fio = { rw = \"randwrite\" }", job));
        let with_deep = |times: f64, from: u32| {
            let mut records = rounds([990.0, 985.0, 990.0, 1000.0], &[]);
            let raw: Vec<Record> =
                records.iter().filter(|it| it.key.contender == "raw device").cloned().collect();
            for mut deep in raw.into_iter().filter(|it| it.key.round >= from) {
                deep.key.contender = plan.deep_arm(&plan.workloads[0]).unwrap().name;
                deep.samples[0].value *= times;
                records.push(deep);
            }
            let findings = Judge::new(&plan).findings(&records);
            let of = |it: &&Finding| matches!(it.audit, Audit::DeviceBound | Audit::DepthBound);
            findings.iter().filter(of).cloned().collect::<Vec<_>>()
        };
        let device = with_deep(1.01, 1);
        assert_eq!((device.len(), device[0].audit), (1, Audit::DeviceBound));
        assert!(device[0].evidence.contains("; at twice the depth it does 1.0"), "{device:?}");
        let depth = with_deep(1.4, 1);
        assert_eq!((depth.len(), depth[0].audit), (1, Audit::DepthBound));
        assert!(depth[0].evidence.starts_with("the depth is the limit, not the device"));
        assert_eq!(with_deep(1.0, 10), [], "three rounds decide nothing");
        assert_eq!(with_deep(1.0, 13)[0].audit, Audit::DeviceBound, "it was not tried");
    }

    #[test]
    fn a20_an_fsync_waits_for_the_device() {
        let rates = [800.0, 800.0, 800.0, 1000.0];
        let fsync = |b_ns| ("fsync_latency_p50", [9e5, b_ns, 9e5, 4e5]);
        assert_eq!(found(Audit::A20, &rounds(rates, &[fsync(3.7e5)])), []);
        let records = rounds(rates, &[fsync(3.5e5)]);
        let found = found(Audit::A20, &records);
        assert_eq!((found.len(), found[0].contender.as_deref()), (1, Some("b")));
        assert!(found[0].evidence.ends_with("took 350 µs, that of the bare device 400 µs"));
        assert_eq!(self::found(Audit::A20, &records[..12]), [], "three rounds decide nothing");
    }
}
