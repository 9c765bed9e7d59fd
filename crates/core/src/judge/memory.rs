//! Working sets against memory: the study's on its machine, ours on this one.

use crate::model::{Audit, Bytes, Finding, OverMemory, Plan, Run, Severity, Unit, share_of_memory};

/// A21: buffered work that fits in memory here and did not in the study's machine, or the other way
/// round: page cache and device change places. Direct I/O goes past memory.
pub fn of_memory(plan: &Plan, run: &Run) -> Vec<Finding> {
    let sets = plan.working_sets(run.memory_bytes);
    sets.iter().filter(|set| set.local.buffered).filter_map(finding).collect()
}

fn finding(set: &OverMemory) -> Option<Finding> {
    let (local, (set_published, published)) = (set.share?, set.study?);
    let bytes = |bytes: Bytes| Unit::Bytes.format(bytes.0 as f64);
    let times = |share| match share_of_memory(share) {
        percent if percent.ends_with('%') => percent + " of",
        times => times,
    };
    let (what, advice) = match (local < 1.0, published < 1.0) {
        (true, false) => (
            "it fits in the page cache here, and did not there",
            "use a larger --scale, or a machine of less memory; until then compare direct I/O",
        ),
        (false, true) => (
            "it does not fit in the page cache here, and did there",
            "use a smaller --scale, or a machine of more memory",
        ),
        _ => return None,
    };
    Some(Finding {
        audit: Audit::A21,
        severity: Severity::Warning,
        workload: Some(set.workload.clone()),
        contender: None,
        evidence: format!(
            "its {} are {} this machine's memory, the study's {} were {} its own: {what}",
            bytes(set.local.bytes),
            times(local),
            bytes(set_published),
            times(published)
        ),
        advice: advice.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::plan;
    use super::*;
    use crate::model::{Place, SCHEMA};

    const PLAN: &str = r#"
        contender = [{ name = "a" }, { name = "b" }]
        workload = [
            { name = "write", bytes = "8G", command = "dd" },
            { name = "direct", fio = { size = "8G", direct = 1 } },
            { name = "files", small_files = { count = 1000 } },
        ]
        study = { title = "A study", memory = "2G" }
    "#;

    fn run(memory_bytes: u64) -> Run {
        Run {
            schema: SCHEMA,
            program_version: String::new(),
            name: String::new(),
            command: Vec::new(),
            started: String::new(),
            seed: 1,
            place: Place::Sim,
            host: Default::default(),
            memory_bytes: Some(memory_bytes),
            tools: Default::default(),
            left_out: Vec::new(),
            read: Vec::new(),
            stop: None,
            elapsed_s: 0.0,
        }
    }

    #[test]
    fn buffered_work_that_memory_answers_only_on_one_of_two_machines_is_a_warning() {
        let plan = plan(PLAN);
        let found = of_memory(&plan, &run(16 << 30));
        assert_eq!((found.len(), found[0].workload.as_deref()), (1, Some("write")));
        let said = "its 8.00 GiB are 50% of this machine's memory, the study's 8.00 GiB were 4.0 \
                    times its own: it fits in the page cache here, and did not there";
        assert_eq!(found[0].evidence, said);
        assert_eq!(of_memory(&plan, &run(4 << 30)), []);
        let little = of_memory(&plan, &run(64 << 10));
        assert_eq!((little.len(), little[0].workload.as_deref()), (1, Some("files")));
    }

    #[test]
    fn a_scaled_run_is_seen_beside_the_studys_own_size() {
        let scaled = plan(PLAN).scaled(0.1).unwrap().scaled(0.1).unwrap();
        let sets = scaled.working_sets(Some(1 << 30));
        assert_eq!(sets[0].study, Some((Bytes(8 << 30), 4.0)));
        assert!(sets[0].share.unwrap() < 0.1);
        assert_eq!(of_memory(&scaled, &run(1 << 30)).len(), 1);
        assert_eq!(of_memory(&scaled, &run(64 << 20)), [], "it does not fit in either");
    }
}
