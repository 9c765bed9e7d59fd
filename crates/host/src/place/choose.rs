//! The place where a plan is run, chosen by asking the places for what it needs.

use std::path::Path;

use fsverdict_core::model::need::{Asked, State};
use fsverdict_core::model::{LeftOut, Place, Plan, UnmetNeeds};
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
    /// Why it is not this machine, where nobody has named another.
    pub not_local: Option<UnmetNeeds>,
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
    Ok(Choice { place, plan: fitted, left_out, unread: unread.collect(), not_local: None })
}

/// This machine or a virtual one. What both lack has to be installed, and is said alone.
fn settle<'a>(
    plan: &'a Plan,
    asked: impl Fn(Place, &'a Plan) -> Asked<'a>,
) -> Result<Choice, HostError> {
    let can_be_on_vm = || (Plan { place: Some(Place::Vm), ..plan.clone() }).check().is_ok();
    let local = match fitted(plan, Place::Local, &asked(Place::Local, plan)) {
        Ok(choice) if has_layers_for_guests(plan, &choice) && can_be_on_vm() => {
            let on_vm = fitted(plan, Place::Vm, &asked(Place::Vm, plan)).ok();
            let on_vm = on_vm.filter(|it| !lacks_layers(plan, it));
            return Ok(on_vm.unwrap_or(choice));
        }
        Ok(choice) => return Ok(choice),
        Err(local) => local,
    };
    if !can_be_on_vm() {
        return Err(local.into());
    }
    let on_vm = match fitted(plan, Place::Vm, &asked(Place::Vm, plan)) {
        Ok(choice) => return Ok(Choice { not_local: Some(local), ..choice }),
        Err(on_vm) => on_vm,
    };
    let (only_local, only_on_vm) = (local.without(&on_vm), on_vm.without(&local));
    Err(match (only_local.0.is_empty(), only_on_vm.0.is_empty()) {
        (true, _) => local.into(),
        (_, true) => on_vm.into(),
        _ => Nowhere { local, on_vm: only_on_vm }.into(),
    })
}

/// This machine can't make layers of `plan`, or not as they are to be.
fn has_layers_for_guests(plan: &Plan, local: &Choice) -> bool {
    layer::host::check(plan).is_err() || lacks_layers(plan, local)
}

/// Of the contenders of `plan` one that has layers was left out.
fn lacks_layers(plan: &Plan, choice: &Choice) -> bool {
    let is_left_out = |name: &str| choice.left_out.iter().any(|it| it.name == name);
    plan.contenders.iter().any(|it| !it.layers.is_empty() && is_left_out(&it.name))
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::Need;
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

    /// What is chosen where these places lack what is named.
    fn chosen(local: &[&str], on_vm: &[&str]) -> Result<Choice, String> {
        choice_of(&Plan::parse(PLAN).unwrap(), local, on_vm)
    }

    fn choice_of(plan: &Plan, local: &[&str], on_vm: &[&str]) -> Result<Choice, String> {
        let answer = |lacks: &[&str], need: &Need| match lacks.contains(&&*need.name()) {
            false => Answer::yes(""),
            true => match need {
                Need::Root => Answer::no("not root").but_root(),
                Need::Program { name, package } => Answer::not_installed(name, package.as_deref()),
                need => Answer::no(format!("no {}", need.name())),
            },
        };
        let asked = |place, _: &Plan| {
            let lacks = if place == Place::Local { local } else { on_vm };
            Asked::new(move |need| answer(lacks, need))
        };
        settle(plan, asked).map_err(|error| error.to_string())
    }

    #[test]
    fn this_machine_is_chosen_where_it_has_all_and_a_virtual_one_where_that_has_the_rest() {
        let choice = chosen(&[], &["QEMU"]).unwrap();
        assert!((choice.place, choice.not_local) == (Place::Local, None));
        let choice = chosen(&["root", "jfs"], &[]).unwrap();
        assert_eq!((choice.place, choice.not_local.unwrap().0.len()), (Place::Vm, 2));
    }

    #[test]
    fn a_program_that_is_lacking_on_both_is_to_be_installed_and_sends_nobody_elsewhere() {
        let says = "workload \"db\" needs mariadbd: apt-get install mariadb-server";
        let lacking = |local: &[&str], on_vm: &[&str]| chosen(local, on_vm).unwrap_err();
        assert_eq!(lacking(&["mariadbd"], &["mariadbd"]), says);
        assert_eq!(lacking(&["mariadbd"], &["mariadbd", "QEMU"]), says);
        assert_eq!(lacking(&["mariadbd", "root"], &["mariadbd"]), says);
    }

    #[test]
    fn a_probe_that_can_not_be_read_is_told_and_stops_nothing() {
        let choice = chosen(&["page cache"], &[]).unwrap();
        assert_eq!(choice.unread, ["page cache: no page cache"]);
        assert_eq!((choice.place, chosen(&[], &[]).unwrap().unread.len()), (Place::Local, 0));
    }

    #[test]
    fn a_study_whose_layers_this_machine_lacks_is_run_where_they_are() {
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
    fn where_neither_can_both_are_told() {
        let error = chosen(&["root"], &["QEMU"]).unwrap_err();
        let says = "--bed directory:PATH,PATH; and in a virtual machine (--place vm): no QEMU";
        assert!(error.starts_with("bed loop needs root: ") && error.ends_with(says), "{error}");
    }
}
