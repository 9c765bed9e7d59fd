//! Resuming a run: what has to be as it was, and what is reported if it is not.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use fsverdict_core::model::{Place as PlaceKind, Run};
use fsverdict_host::place::{facts, preflight, vm};

use super::arguments::Arguments;
use super::{clean, consent};
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
    consent::check_again(&loaded.plan, loaded.run.place, arguments)?;
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
    if loaded.run.place != PlaceKind::Sim {
        tell_changes(&mut loaded, store.folder());
    }
    loaded.run.stop = None;
    Ok((store, loaded))
}

/// What of the machine may make other rounds of them.
const MACHINE: [&str; 3] = ["kernel", "machine", "processor"];

/// The machine may be another one by now, or have been started with another kernel: what follows is
/// compared within rounds, as before, and the report says it.
fn tell_changes(loaded: &mut Loaded, folder: &Path) {
    let Loaded { run, plan, records } = loaded;
    let trials = records.len();
    if trials == 0 {
        return;
    }
    for fact in facts::host(plan, folder) {
        if MACHINE.contains(&fact.0.as_str()) {
            tell_change(&mut run.host, trials, &fact);
        }
    }
}

/// What the place says of itself, which had as many trials. The programs of its guests may have
/// become more, or newer, since.
pub fn tell_place(run: &mut Run, trials: usize, now: Vec<(String, String)>) {
    for fact in now {
        if trials > 0 && fact.0.starts_with(vm::PROGRAMS_FOR) {
            tell_change(&mut run.host, trials, &fact);
        } else {
            run.host.insert(fact.0, fact.1);
        }
    }
}

/// A fact that was known has another value now: both are reported.
fn tell_change(host: &mut BTreeMap<String, String>, trials: usize, now: &(String, String)) {
    let (fact, value) = now;
    let Some(known) = host.get_mut(fact) else { return };
    let last = known.rsplit_once(CHANGE).and_then(|(_, later)| later.split_once(": "));
    let last = last.map_or(&**known, |(_, last)| last);
    if last != value {
        remark!("{fact}: {last} so far, {value} from now on");
        *known = format!("{known}{CHANGE}{trials}: {value}");
    }
}

/// Between a fact and what it was later.
const CHANGE: &str = "; after trial ";

/// Refuses to resume with other kernels than the contenders had. A kernel of the same name, or its
/// modules, may have been built again or fetched since, and another fsverdict may give a guest
/// other modules. Earlier ones recorded neither. Also refuses if processors are emulated now and
/// were not before, or the reverse: rounds would differ tenfold.
pub fn check_guests(loaded: &Loaded, now: &[(String, String)]) -> Result<(), Usage> {
    if loaded.records.is_empty() {
        return Ok(());
    }
    let way_out = "put the former one back, or begin a new run";
    match changed_guest(&loaded.run.host, now) {
        Some(change) => Err(Usage(format!("{change}: {way_out}"))),
        None => Ok(()),
    }
}

/// What is not as in the rounds so far of the processors and kernels that guests would get, if
/// something is not.
pub fn changed_guest(had: &BTreeMap<String, String>, now: &[(String, String)]) -> Option<String> {
    now.iter().find_map(|(fact, value)| {
        let before = had.get(fact).filter(|before| *before != value)?;
        if fact == vm::MACHINES {
            let [was, is] = [before, value].map(|it| it.ends_with(vm::EMULATED));
            return (was != is).then(|| {
                format!("the {fact} were {before} in the rounds so far, and are now {value}")
            });
        }
        if let Some(kernel) = fact.strip_prefix(vm::BUILD_OF) {
            return Some(format!(
                "the kernel {kernel} was {before} in the rounds so far, and is now {value}"
            ));
        }
        let kernel = fact.strip_prefix(vm::MODULES_OF)?;
        let have_same_names = before.split(vm::CONTENTS).next() == value.split(vm::CONTENTS).next();
        have_same_names.then(|| {
            format!("modules of the kernel {kernel} were built again since the last round")
        })
    })
}

/// Refuses to go on with a run whose limits counted something else than they would now.
pub fn check_limits(loaded: &Loaded, folder: &Path) -> Result<(), Usage> {
    let Loaded { run, plan, records } = loaded;
    let both = plan.limits_counted(records).zip(plan.whole_bed().limits_count(run.place));
    match both.filter(|(before, now)| before != now) {
        None => Ok(()),
        Some((before, now)) => Err(Usage(format!(
            "the run's limits counted {before} in the rounds so far, and now count {now}. New \
             rounds would not match these: begin anew with fsverdict run {}",
            folder.join("plan.toml").display()
        ))),
    }
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
        let fact = format!("{}./linux", vm::BUILD_OF);
        let loaded = resumed(&fact, "6.12.0 #3 SMP");
        let with = |told: &str| {
            let path = ("kernel ./linux".to_string(), "Linux 6.12.0 (/elsewhere)".to_string());
            let told = [path, (fact.clone(), told.to_string())];
            check_guests(&loaded, &told).map_err(|usage| usage.to_string())
        };
        assert_eq!(with("6.12.0 #3 SMP"), Ok(()));
        let refused = with("6.12.0 #4 SMP").unwrap_err();
        assert!(refused.starts_with("the kernel ./linux was 6.12.0 #3 SMP in the rounds so far"));
        assert!(with("6.12.0 #3 SMP, OpenZFS 2.3.9").is_err());
        let earlier = resumed("kernel 6.1", "Linux 6.1.0 (CACHE/vmlinuz)");
        let told = [(fact.clone(), "6.1.0 #1 SMP".to_string())];
        assert!(check_guests(&earlier, &told).is_ok(), "who told no build knows of none");
        let nothing_yet = Loaded { records: Vec::new(), ..loaded };
        assert!(check_guests(&nothing_yet, &told).is_ok());
    }

    #[test]
    fn kvm_and_emulation_are_not_mixed() {
        let of = |how: &str| format!("QEMU, 2 processors, 1 GiB{how}");
        let refused = |before: &str, now: &str| {
            let told = (vm::MACHINES.to_string(), now.to_string());
            changed_guest(&resumed(vm::MACHINES, before).run.host, &[told])
        };
        let (kvm, emulated) = (of(", KVM"), of(vm::EMULATED));
        let change = refused(&kvm, &emulated).unwrap();
        assert_eq!(
            change,
            "the virtual machines were QEMU, 2 processors, 1 GiB, KVM in the rounds so far, and \
             are now QEMU, 2 processors, 1 GiB, emulated by TCG"
        );
        assert!(refused(&emulated, &kvm).is_some());
        assert_eq!(refused(&kvm, &kvm), None);
        assert_eq!(refused(&of(""), &kvm), None, "only that is compared");
    }

    #[test]
    fn modules_that_were_built_again_are_others_and_those_of_other_names_are_not_compared() {
        let fact = format!("{}./linux", vm::MODULES_OF);
        let loaded = resumed(&fact, "9, 01, contents 02");
        let with = |print: &str| check_guests(&loaded, &[(fact.clone(), print.to_string())]);
        assert!(with("9, 01, contents 02").is_ok());
        let refused = with("9, 01, contents 03").unwrap_err().to_string();
        assert!(refused.starts_with("modules of the kernel ./linux were built again"));
        assert!(with("9, 02, contents 03").is_ok(), "another program gives a guest others");
    }

    #[test]
    fn what_changed_of_the_machine_is_told_once() {
        let mut loaded = resumed("kernel", "6.1.0-1");
        tell_changes(&mut loaded, Path::new("/"));
        let now = facts::host(&loaded.plan, Path::new("/"))["kernel"].clone();
        let told = format!("6.1.0-1; after trial 1: {now}");
        assert_eq!(loaded.run.host["kernel"], told);
        tell_changes(&mut loaded, Path::new("/"));
        assert_eq!(loaded.run.host["kernel"], told);
        assert!(!loaded.run.host.contains_key("processor"), "what was not known is not told");
    }

    #[test]
    fn programs_of_guests_that_are_others_by_now_are_told() {
        let fact = format!("{}arm64", vm::PROGRAMS_FOR);
        let mut run = resumed(&fact, "Debian trixie, 140 packages, 01").run;
        let now = |told: &str| vec![(fact.clone(), told.to_string()), ("disks".into(), "".into())];
        tell_place(&mut run, 1, now("Debian trixie, 140 packages, 01"));
        assert_eq!(run.host[&fact], "Debian trixie, 140 packages, 01");
        tell_place(&mut run, 1, now("Debian trixie, 141 packages, 02"));
        let both = "Debian trixie, 140 packages, 01; \
                    after trial 1: Debian trixie, 141 packages, 02";
        assert_eq!(run.host[&fact], both);
        assert!(run.host.contains_key("disks"));
    }
}
