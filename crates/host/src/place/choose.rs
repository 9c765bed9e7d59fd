//! The place where a plan is run, chosen by asking the places for what it needs.

use std::path::Path;

use fsverdict_core::model::need::{Asked, State};
use fsverdict_core::model::{Contender, LeftOut, Need, Place, Plan, UnmetNeeds};
use fsverdict_core::run::{HostError, sim};
use thiserror::Error;

use super::doctor::Machine;
use super::{fit, preflight, vm};
use crate::layer;

/// Where a plan is run.
#[derive(Debug)]
pub struct Choice {
    /// The place.
    pub place: Place,
    /// The plan, without what the place lacks something for where it is a study.
    pub plan: Plan,
    /// What was left out.
    pub left_out: Vec<LeftOut>,
    /// Probes that were asked for and can't be read there, each with why. Trials go on without.
    pub unread: Vec<String>,
    /// Contenders with a stand-in for their file system there, each with its stand-in.
    pub stood_in: Vec<String>,
    /// Why it is not this machine, where nobody has named another.
    pub not_local: Option<String>,
}

impl Choice {
    /// The contender with what is lacking for it.
    fn why_left_out(&self, contender: &Contender) -> Option<String> {
        let mut left_out = self.left_out.iter();
        let its = left_out.find(|it| it.what == "contender" && it.name == contender.name)?;
        Some(format!("{}: {}", its.name, its.why))
    }
}

/// Neither this machine nor a virtual one can run the plan.
#[derive(Debug, Error)]
#[error("{local}; and in a virtual machine (--place vm): {on_vm}")]
struct Nowhere {
    local: UnmetNeeds,
    on_vm: UnmetNeeds,
}

/// The place that the plan names, once it is sure that it can be run there. Where it names none:
/// this machine, or virtual ones where those have what it lacks. Images would go to `folder`.
pub fn choose(plan: &Plan, folder: &Path) -> Result<Choice, HostError> {
    preflight::check_plan(plan)?;
    let machine = Machine::new(plan.bed.dir.as_ref().map_or(folder, Path::new));
    let asked = |place, plan| asked(place, plan, &machine);
    let mut choice = match plan.named_place() {
        Some(place) => fitted(plan, place, &asked(place, plan))?,
        None => settle(plan, asked)?,
    };
    if choice.plan.is_hollow() {
        return Ok(choice);
    }
    if choice.place == Place::Local {
        layer::host::check(&choice.plan)?;
        preflight::check_on_host(&choice.plan)?;
    }
    if choice.place != Place::Sim {
        preflight::check_details(&mut choice.plan)?;
        fit::check(&choice.plan)?;
    }
    if choice.place.has_guests() {
        vm::check(&choice.plan)?;
    }
    Ok(choice)
}

/// A place, ready to be asked what it has for `plan`.
fn asked<'a>(place: Place, plan: &'a Plan, machine: &'a Machine) -> Asked<'a> {
    match place {
        Place::Local => machine.asked(),
        Place::Vm | Place::Uml => Asked::new(|need| vm::answer(machine, plan, need)),
        Place::Sim => Asked::new(|need| sim::answer(plan.sim.as_ref(), need)),
    }
}

fn fitted(plan: &Plan, place: Place, asked: &Asked) -> Result<Choice, UnmetNeeds> {
    let (fitted, left_out) = plan.fitted(place, asked)?;
    let unread = plan.probes.iter().filter_map(|probe| {
        let need = probe.need();
        let answer = Some(asked.answer(&need)).filter(|answer| answer.state == State::No)?;
        Some(format!("{}: {}", need.name(), answer.unmet()?))
    });
    let unread = unread.collect();
    let stood_in = stood_in(&fitted, asked);
    Ok(Choice { place, plan: fitted, left_out, unread, stood_in, not_local: None })
}

/// The contenders for whose file system a place has only a stand-in.
fn stood_in(plan: &Plan, asked: &Asked) -> Vec<String> {
    let of = |contender: &Contender| {
        let answer = asked.answer(&Need::FileSystem(contender.file_system.clone()));
        (answer.state == State::Partly).then(|| format!("{}: {}", contender.name, answer.detail))
    };
    plan.contenders.iter().filter_map(of).collect()
}

/// This machine or a virtual one. What both lack has to be installed, and is said alone.
fn settle<'a>(
    plan: &'a Plan,
    asked: impl Fn(Place, &'a Plan) -> Asked<'a>,
) -> Result<Choice, HostError> {
    let can_be_on_vm = || (Plan { place: Some(Place::Vm), ..plan.clone() }).check().is_ok();
    let local = match fitted(plan, Place::Local, &asked(Place::Local, plan)) {
        Ok(choice) if !can_be_on_vm() => return Ok(choice),
        Ok(choice) => {
            let vm = asked(Place::Vm, plan);
            let on_vm = || fitted(plan, Place::Vm, &vm).ok();
            let in_guests = match missing_zfs(plan, &choice) {
                _ if has_layers_for_guests(plan, &choice) => {
                    on_vm().filter(|it| !has_not_its_layers(plan, it))
                }
                // Without KVM all the others would be measured by an emulated processor.
                Some(why) if vm.answer(&Need::Kvm).is_able() => on_vm()
                    .filter(|it| missing_zfs(plan, it).is_none() && !is_worse(it, &choice))
                    .map(|it| Choice { not_local: Some(why), ..it }),
                _ => None,
            };
            return Ok(in_guests.unwrap_or(choice));
        }
        Err(local) => local,
    };
    if !can_be_on_vm() {
        return Err(local.into());
    }
    let on_vm = match fitted(plan, Place::Vm, &asked(Place::Vm, plan)) {
        Ok(choice) => return Ok(Choice { not_local: Some(local.to_string()), ..choice }),
        Err(on_vm) => on_vm,
    };
    let (only_local, only_on_vm) = (local.without(&on_vm), on_vm.without(&local));
    Err(match (only_local.0.is_empty(), only_on_vm.0.is_empty()) {
        (true, _) => local.into(),
        (_, true) => on_vm.into(),
        _ => Nowhere { local, on_vm: only_on_vm }.into(),
    })
}

/// This machine can't make layers of `plan`, or not as the plan wants them.
fn has_layers_for_guests(plan: &Plan, local: &Choice) -> bool {
    layer::host::check(plan).is_err() || has_not_its_layers(plan, local)
}

/// A contender of `plan` with layers was left out.
fn has_not_its_layers(plan: &Plan, choice: &Choice) -> bool {
    plan.contenders.iter().any(|it| !it.layers.is_empty() && choice.why_left_out(it).is_some())
}

/// It leaves out something that the other does not.
fn is_worse(one: &Choice, other: &Choice) -> bool {
    let is_in_other = |it: &LeftOut| other.left_out.iter().any(|its| its.name == it.name);
    !one.left_out.iter().all(is_in_other)
}

/// Why a study's ZFS would not be OpenZFS.
fn missing_zfs(plan: &Plan, choice: &Choice) -> Option<String> {
    let mut of_zfs = plan.contenders.iter().filter(|it| it.file_system == "zfs");
    let left_out = || of_zfs.find_map(|it| choice.why_left_out(it));
    let why = choice.stood_in.first().cloned().or_else(left_out);
    why.filter(|_| plan.study.is_some())
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::need::Answer;

    use super::*;

    const PLAN: &str = r#"
        probes = ["page-cache"]
        contender = [
            { name = "a", file_system = "ext4" },
            { name = "b", file_system = "jfs" },
        ]
        workload = [{ name = "db", command = "true", needs = ["mariadbd:mariadb-server"] }]
    "#;

    /// What is chosen if these places lack the named contenders.
    fn chosen(local: &[&str], on_vm: &[&str]) -> Result<Choice, String> {
        choice_of(&Plan::parse(PLAN).unwrap(), local, on_vm)
    }

    fn choice_of(plan: &Plan, local: &[&str], on_vm: &[&str]) -> Result<Choice, String> {
        let answer = |unmet: &[&str], need: &Need| match unmet.contains(&&*need.name()) {
            false => Answer::yes(""),
            true => match need {
                Need::Root => Answer::no("not root").but_root(),
                Need::Program { name, package } => Answer::not_installed(name, package.as_deref()),
                need => Answer::no(format!("no {}", need.name())),
            },
        };
        let asked = |place, _: &Plan| {
            let unmet = if place == Place::Local { local } else { on_vm };
            Asked::new(move |need| answer(unmet, need))
        };
        settle(plan, asked).map_err(|error| error.to_string())
    }

    #[test]
    fn this_machine_is_chosen_where_it_has_all_and_a_virtual_one_where_that_has_the_rest() {
        let choice = chosen(&[], &["QEMU"]).unwrap();
        assert!((choice.place, choice.not_local) == (Place::Local, None));
        let choice = chosen(&["root", "jfs"], &[]).unwrap();
        let why = choice.not_local.unwrap();
        assert!(choice.place == Place::Vm && why.contains("root") && why.contains("no jfs"));
    }

    #[test]
    fn a_program_that_neither_has_is_to_be_installed_and_sends_nobody_elsewhere() {
        let says = "workload \"db\" needs mariadbd: apt-get install mariadb-server";
        let missing = |local: &[&str], on_vm: &[&str]| chosen(local, on_vm).unwrap_err();
        assert_eq!(missing(&["mariadbd"], &["mariadbd"]), says);
        assert_eq!(missing(&["mariadbd"], &["mariadbd", "QEMU"]), says);
        assert_eq!(missing(&["mariadbd", "root"], &["mariadbd"]), says);
    }

    #[test]
    fn a_probe_that_can_not_be_read_is_told_and_stops_nothing() {
        let choice = chosen(&["page cache"], &[]).unwrap();
        assert_eq!(choice.unread, ["page cache: no page cache"]);
        assert_eq!((choice.place, chosen(&[], &[]).unwrap().unread.len()), (Place::Local, 0));
    }

    #[test]
    fn a_study_whose_layers_this_machine_has_not_is_run_where_they_are() {
        let study = |layers: &str| {
            let on_layers = format!("name = \"b\", layers = [{layers}]");
            let of_study = PLAN.replace("name = \"b\"", &on_layers);
            Plan::parse(&format!("study = {{ title = \"it\" }}\n{of_study}")).unwrap()
        };
        let place = |layers: &str, local: &[&str], on_vm: &[&str]| {
            choice_of(&study(layers), local, on_vm).unwrap().place
        };
        assert_eq!(place("\"luks\"", &[], &[]), Place::Local);
        assert_eq!(place("\"luks\"", &["layer luks"], &[]), Place::Vm);
        assert_eq!(place("\"luks\"", &["jfs"], &[]), Place::Vm, "it is on layers, too");
        assert_eq!(place("", &["jfs"], &[]), Place::Local, "the rest is run here");
        assert_eq!(place("\"luks\"", &["layer luks"], &["QEMU"]), Place::Local);
        assert_eq!(place("\"luks\"", &["layer luks"], &["layer luks"]), Place::Local);
    }

    #[test]
    fn a_study_s_zfs_is_openzfs_where_guests_are_as_fast() {
        let of = |study: &str| {
            let of_zfs = PLAN.replace("jfs", "zfs").replace("\"b\"", "\"z\"");
            Plan::parse(&format!("{study}\n{of_zfs}")).unwrap()
        };
        let zfs = Need::FileSystem("zfs".into());
        let choice = |study: &str, on_host: Answer, on_vm: Answer, kvm: bool| {
            let answer = |place, need: &Need| match (place, need) {
                (_, Need::Kvm) if !kvm => Answer::no("no KVM"),
                (Place::Local, need) if *need == zfs => on_host.clone(),
                (_, need) if *need == zfs => on_vm.clone(),
                _ => Answer::yes(""),
            };
            let plan = of(study);
            settle(&plan, |place, _| Asked::new(move |need| answer(place, need))).unwrap()
        };
        let study = "study = { title = \"it\" }";
        let fuse = || Answer::partly("by zfs-fuse");
        let moved = choice(study, fuse(), Answer::yes(""), true);
        assert_eq!((moved.place, moved.not_local.as_deref()), (Place::Vm, Some("z: by zfs-fuse")));
        assert!(moved.stood_in.is_empty() && moved.left_out.is_empty());
        let without_db = |place, need: &Need| match (place, need) {
            (Place::Local, need) if *need == zfs => fuse(),
            (Place::Vm, Need::Program { .. }) => Answer::no("no mariadbd"),
            _ => Answer::yes(""),
        };
        let plan = of(study);
        let stays = settle(&plan, |place, _| Asked::new(move |need| without_db(place, need)));
        assert_eq!(stays.unwrap().place, Place::Local, "guests lack what this machine has");
        let moved = choice(study, Answer::no("no zfs"), Answer::yes(""), true);
        assert_eq!((moved.place, moved.not_local.as_deref()), (Place::Vm, Some("z: no zfs")));

        let stays = [
            ("", fuse(), Answer::yes(""), true),
            (study, Answer::yes(""), Answer::yes(""), true),
            (study, fuse(), fuse(), true),
            (study, fuse(), Answer::no("no zfs"), true),
            (study, fuse(), Answer::yes(""), false),
        ];
        for (study, on_host, on_vm, kvm) in stays {
            let is_fuse = on_host.state == State::Partly;
            let stays = choice(study, on_host, on_vm, kvm);
            assert_eq!((stays.place, &stays.not_local), (Place::Local, &None), "{stays:?}");
            assert_eq!(stays.stood_in.len(), usize::from(is_fuse), "it is said: {stays:?}");
        }
    }

    #[test]
    fn where_neither_can_both_are_told() {
        let error = chosen(&["root"], &["QEMU"]).unwrap_err();
        let says = "--bed directory:PATH,PATH; and in a virtual machine (--place vm): no QEMU";
        assert!(error.starts_with("bed loop needs root: ") && error.ends_with(says), "{error}");
    }
}
