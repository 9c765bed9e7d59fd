//! A run that goes on: what has to be as it was, and what is told where it is not.

use std::path::Path;

use anyhow::Result;
use fsverdict_core::model::Place as PlaceKind;
use fsverdict_host::place::{facts, preflight};

use super::arguments::Arguments;
use super::clean;
use crate::exit::Usage;
use crate::say::remark;
use crate::source::Loaded;
use crate::store::Store;

/// Opens the run in that folder, with the rounds that it is to have now.
pub fn open(folder: &Path, arguments: &Arguments) -> Result<(Store, Loaded)> {
    let store = Store::open(folder)?;
    clean::sweep(folder);
    let mut loaded = store.load()?;
    check_limits(&loaded, folder)?;
    preflight::check_plan(&loaded.plan).map_err(|error| Usage(error.to_string()))?;
    let judgement = &mut loaded.plan.judgement;
    let extended = judgement.extend(arguments.rounds, arguments.budget);
    let raised = extended.map_err(|why| Usage(format!("the run {why}")))?;
    if let Some(raised) = raised {
        remark!("{raised}");
        let all = loaded.run.host.entry("declaration".into()).or_default();
        let before = if all.is_empty() { "" } else { "; " };
        *all += &format!("{before}{raised}");
    }
    if loaded.run.place == PlaceKind::Local {
        tell_changes(&mut loaded, store.folder());
    }
    loaded.run.stop = None;
    Ok((store, loaded))
}

/// The machine may be another one by now, or have been started with another kernel: what follows is
/// compared within rounds, as before, and the report says it.
fn tell_changes(loaded: &mut Loaded, folder: &Path) {
    let Loaded { run, plan, records } = loaded;
    let Some(last) = records.iter().map(|record| record.key.round).max() else { return };
    let now = facts::host(plan, folder);
    for (fact, value) in now.iter().filter(|(fact, _)| MACHINE.contains(&fact.as_str())) {
        let is_new = |known: &&mut String| {
            let last = known.rsplit("; after round ").next().unwrap_or_default();
            **known != *value && last.split_once(": ").is_none_or(|(_, last)| last != value)
        };
        let Some(known) = run.host.get_mut(fact).filter(is_new) else { continue };
        remark!("{fact}: {known} until round {last}, {value} from now on");
        *known = format!("{known}; after round {last}: {value}");
    }
}

/// What of the machine may make other rounds of them.
const MACHINE: [&str; 5] = ["kernel", "machine", "processor", "processors", "memory"];

/// Refuses to go on with other kernels than those that a run's contenders have had: one of that
/// name may have been built again, or fetched since.
fn check_kernels(loaded: &Loaded, now: &[(String, String)]) -> Result<(), Usage> {
    // The path is where it lies.
    let which = |text: &str| text.split(" (/").next().unwrap_or_default().to_string();
    for (fact, value) in now.iter().filter(|(fact, _)| fact.starts_with("kernel ")) {
        let Some(before) = loaded.run.host.get(fact).filter(|_| !loaded.records.is_empty()) else {
            continue;
        };
        let (before, now) = (which(before), which(value));
        // Earlier programs did not tell the build.
        if !now.starts_with(&before) {
            return Err(Usage(format!(
                "the {fact} was {before} in the rounds so far, and is {now} by now: put the former \
                 back, or begin a new run"
            )));
        }
    }
    Ok(())
}

/// Refuses to go on with a run whose limits counted something else than they would now.
pub fn check_limits(loaded: &Loaded, folder: &Path) -> Result<(), Usage> {
    let Loaded { run, plan, records } = loaded;
    let both = plan.limits_counted(records).zip(plan.whole_bed().limits_count(run.place));
    match both.filter(|(before, now)| before != now) {
        None => Ok(()),
        Some((before, now)) => Err(Usage(format!(
            "the run's limits counted {before}, and count {now} by now: more of its rounds would \
             be other rounds; begin anew with fsverdict run {}",
            folder.join("plan.toml").display()
        ))),
    }
}

/// Writes the plan of a run that goes on, which may have more rounds, once nothing speaks against
/// that of what its place tells now: the run is ours alone by now.
pub fn redeclare(
    arguments: &Arguments,
    store: &Store,
    loaded: &Loaded,
    told: &[(String, String)],
) -> Result<()> {
    if arguments.resume.is_none() {
        return Ok(());
    }
    check_kernels(loaded, told)?;
    store.write_head(&loaded.run, &loaded.plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::testing;

    fn resumed(fact: &str, told: &str) -> Loaded {
        let mut loaded = testing::loaded(testing::PLAN, vec![testing::measured(3, "a", 1.0)]);
        loaded.run.host.insert(fact.into(), told.into());
        loaded
    }

    #[test]
    fn a_kernel_that_was_built_again_is_another_one() {
        let loaded = resumed("kernel ./linux", "Linux 6.12.0 #3 SMP (/home/a/linux/bzImage)");
        let with = |told: &str| {
            let told = [("kernel ./linux".to_string(), told.to_string())];
            check_kernels(&loaded, &told).map_err(|usage| usage.to_string())
        };
        assert_eq!(with("Linux 6.12.0 #3 SMP (/srv/linux/bzImage), NVMe disks"), Ok(()));
        let refused = with("Linux 6.12.0 #4 SMP (/home/a/linux/bzImage)").unwrap_err();
        assert!(refused.contains("was Linux 6.12.0 #3 SMP in the rounds so far, and is Linux"));
        let earlier = resumed("kernel 6.1", "Linux 6.1.0 (/boot/vmlinuz)");
        let told = [("kernel 6.1".to_string(), "Linux 6.1.0 #1 SMP (/boot/vmlinuz)".to_string())];
        assert!(check_kernels(&earlier, &told).is_ok());
        let nothing_yet = Loaded { records: Vec::new(), ..loaded };
        let other = [("kernel ./linux".to_string(), "Linux 6.13.0 (/x)".to_string())];
        assert!(check_kernels(&nothing_yet, &other).is_ok());
    }

    #[test]
    fn what_changed_of_the_machine_is_told_once() {
        let mut loaded = resumed("kernel", "6.1.0-1");
        tell_changes(&mut loaded, Path::new("/"));
        let now = facts::host(&loaded.plan, Path::new("/"))["kernel"].clone();
        let told = format!("6.1.0-1; after round 3: {now}");
        assert_eq!(loaded.run.host["kernel"], told);
        tell_changes(&mut loaded, Path::new("/"));
        assert_eq!(loaded.run.host["kernel"], told);
        assert!(!loaded.run.host.contains_key("memory"), "what was not known is not told");
    }
}
