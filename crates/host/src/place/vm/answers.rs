//! What virtual machines on this host answer to each need.

use std::collections::BTreeSet;
use std::path::Path;

use fsverdict_core::model::need::{Answer, ProbeKind, install};
use fsverdict_core::model::{Contender, Need, Plan};

use super::arch::{self, Arch};
use super::bootable::{self, Asked, Bootable, above};
use super::error::VmError;
use super::runner::is_uml;
use super::toolbox;
use super::userland::{self, Userland};
use crate::file_system::{self, FileSystem};
use crate::place::doctor::{Machine, tools};
use crate::{layer, tool};

/// Virtual machines on `machine`, with the kernels that `plan` names. Programs come from the host:
/// the guest gets copies of them.
pub fn answer(machine: &Machine, plan: &Plan, need: &Need) -> Answer {
    if is_uml(plan)
        && let Some(answer) = of_uml(need)
    {
        return answer;
    }
    match need {
        Need::Root | Need::Namespaces | Need::LoopDevices | Need::DropCaches => {
            Answer::yes("each trial has a machine of its own")
        }
        Need::Limits | Need::OwnLimits => Answer::yes("QEMU limits its disks"),
        Need::Zram | Need::Partitions | Need::Link | Need::Interface(_) => {
            Answer::no(format!("a virtual machine here has no {}", need.name()))
                .but("write --place local")
        }
        Need::FileSystem(name) => file_system(plan, name),
        Need::Layer(name) => layer(plan, name),
        Need::Probe(ProbeKind::Cpu | ProbeKind::Memory | ProbeKind::Network) => {
            Answer::yes("every kernel tells")
        }
        Need::Probe(ProbeKind::Heat) => Answer::no("a virtual machine has no sensors"),
        Need::Probe(ProbeKind::Device | ProbeKind::Pressure | ProbeKind::PageCache)
        | Need::BlockEvents
        | Need::Cgroups
        | Need::KernelLog => Answer::unknown("not known before the guest's kernel runs"),
        Need::Tool(name) => program(machine, plan, need, name, None),
        Need::Program { name, package } => program(machine, plan, need, name, package.as_deref()),
        Need::Qemu => qemu(machine, plan),
        Need::Disk
        | Need::Images { .. }
        | Need::Space { .. }
        | Need::Memory { .. }
        | Need::Directory(_)
        | Need::Kernel(_)
        | Need::Kvm
        | Need::Uml
        | Need::Png => machine.answer(need),
    }
}

/// The processors for which a contender's kernel is built; if it is not there, those it should be
/// for. All kernels of a name are for the same.
fn arch_of(plan: &Plan, contender: &Contender) -> Arch {
    let name = contender.kernel.as_deref();
    let first = bootable::kernels(name, plan).ok().and_then(|all| Some(all.first()?.arch));
    first.unwrap_or_else(|| arch::split(name.unwrap_or_default()).1)
}

/// For which processors other than this machine's the plan's kernels are.
fn others(plan: &Plan) -> BTreeSet<Arch> {
    let mut all: BTreeSet<Arch> = plan.contenders.iter().map(|it| arch_of(plan, it)).collect();
    all.remove(&Arch::OWN);
    all
}

/// No contender runs on processors of this machine's kind.
fn is_for_others(plan: &Plan) -> bool {
    let mut all = plan.contenders.iter();
    !plan.contenders.is_empty() && !is_uml(plan) && all.all(|it| arch_of(plan, it) != Arch::OWN)
}

/// A program is there for all kinds of processors that the plan's kernels are for, or it is a file
/// that is none.
fn program(
    machine: &Machine,
    plan: &Plan,
    need: &Need,
    name: &str,
    package: Option<&str>,
) -> Answer {
    let all = if is_uml(plan) { BTreeSet::new() } else { others(plan) };
    let cannot = |arch: &Arch| Userland::of(*arch).needed(name).is_none();
    match all.iter().copied().find(cannot) {
        Some(_) if tool::needed(name).any(|it| userland::is_data(Path::new(&it))) => {
            Answer::yes("it is a file of this machine's, and comes along")
        }
        Some(arch) => {
            let program = name.split('|').next().unwrap_or(name);
            let package = package.or_else(|| tool::package(program));
            match Userland::of(arch).is_yet_to_bring(package) {
                true => Answer::yes("looked for once the guests' programs are fetched"),
                false => not_in_userland(arch, program, package),
            }
        }
        None if !all.is_empty() && is_for_others(plan) => {
            Answer::yes("it was fetched for the guests")
        }
        None => machine.answer(need),
    }
}

fn not_in_userland(arch: Arch, program: &str, package: Option<&str>) -> Answer {
    let package = package.or_else(|| tool::package(program)).unwrap_or("PACKAGE");
    let shown = arch.shown();
    Answer::no(format!("{program} is not among the programs for guests with {shown} processors"))
        .but(format!("fsverdict kernels tools --arch {} {package}", arch.name()))
}

/// That one of these programs was not fetched for `arch`, if one was not.
fn missing_in_userland<'a>(
    arch: Arch,
    mut programs: impl Iterator<Item = &'a str>,
) -> Option<Answer> {
    let userland = Userland::of(arch);
    let program = programs.find(|it| userland.find(it).is_none())?;
    Some(not_in_userland(arch, program, None))
}

/// What emulates each kind of processors that the plan's kernels are for.
fn qemu(machine: &Machine, plan: &Plan) -> Answer {
    let programs = others(plan).into_iter();
    let programs = programs.map(|arch| machine.answer(&Need::Tool(arch.qemu())));
    let missing = programs.into_iter().find(|it| !it.is_able());
    missing.unwrap_or_else(|| match is_for_others(plan) {
        true => Answer::yes("it emulates other processors"),
        false => machine.answer(&Need::Qemu),
    })
}

/// What a User Mode Linux answers where that is not what other machines do.
fn of_uml(need: &Need) -> Option<Answer> {
    let it = |what: &str| Answer::no(format!("a User Mode Linux {what}"));
    let answer = match need {
        Need::Limits | Need::OwnLimits => it("does not limit its disks").but("write --place vm"),
        Need::Probe(ProbeKind::Pressure) => it("tells no pressure (CONFIG_PSI)"),
        // Both go by tracepoints.
        Need::Probe(ProbeKind::PageCache) | Need::BlockEvents => {
            it("has no tracepoints (CONFIG_FTRACE)").but("write --place vm")
        }
        Need::Probe(ProbeKind::Device) => Answer::yes("the kernel counts flushes, too"),
        _ => return None,
    };
    Some(answer)
}

/// The kernel of each of its contenders has it, and the host has its tools.
fn file_system(plan: &Plan, name: &str) -> Answer {
    let mut how = "the kernel has it".to_string();
    let mut stand_in = None;
    let stands = |it: &Contender| it.above.iter().any(|above| above.name == name);
    for contender in plan.contenders.iter().filter(|it| it.file_system == name || stands(it)) {
        let asked = Asked::by(contender);
        // What the others lack is not this one's.
        let alone = || Plan { contenders: vec![contender.clone()], ..plan.clone() };
        match Bootable::of(&asked, plan).or_else(|_| Bootable::of(&asked, &alone())) {
            Ok(bootable) if bootable.kernel.arch != Arch::OWN => {
                let arch = bootable.kernel.arch;
                let all = bootable.file_system(contender).into_iter().chain(above(contender));
                let programs = all.filter(|it| it.name == name).map(|it| it.program);
                if let Some(answer) = missing_in_userland(arch, programs) {
                    return answer;
                }
            }
            Ok(_) if stands(contender) => match file_system::find(name).map(its_tools) {
                Some(answer) if !answer.is_able() => return answer,
                _ => {}
            },
            Ok(bootable) => match bootable.by_host(contender).map(|it| (it, its_tools(it))) {
                Some((_, answer)) if !answer.is_able() => return answer,
                Some((known, _)) => stand_in = known.stand_in().or(stand_in),
                None => {
                    let zfs = bootable.kernel.zfs;
                    how = zfs.map_or(how, |it| format!("OpenZFS {}", it.version));
                }
            },
            Err(error @ (VmError::NoFileSystem { .. } | VmError::NotInUml { .. })) => {
                return Answer::no(error.to_string());
            }
            // That is the kernel's need.
            Err(error) => return Answer::unknown(error.to_string()),
        }
    }
    stand_in.map_or(Answer::yes(how), Answer::partly)
}

/// Its tools, which the host has, or which were fetched.
fn its_tools(known: &FileSystem) -> Answer {
    let answer = tools(known);
    match toolbox::find(known.program).filter(|_| !answer.is_able()) {
        Some(toolbox) => Answer::yes(toolbox.version().unwrap_or_default()),
        None if answer.is_able() => answer,
        None => not_fetched(known.program),
    }
}

/// The host has its tools, or they were fetched, and the kernels of its contenders have it.
fn layer(plan: &Plan, name: &str) -> Answer {
    let Some(kind) = layer::find(name) else {
        return Answer::unknown(format!("no layer is called {name}"));
    };
    let is_there =
        |program: &&&str| tool::find(program).is_some() || toolbox::find(program).is_some();
    let mut programs = kind.programs.iter().filter(|_| !is_for_others(plan));
    if let Some(program) = programs.find(|program| !is_there(program)) {
        return not_fetched(program);
    }
    let is_its = |it: &&Contender| it.layers.iter().any(|layer| layer.name == name);
    for contender in plan.contenders.iter().filter(is_its) {
        let arch = Some(arch_of(plan, contender)).filter(|it| *it != Arch::OWN);
        let programs = kind.programs.iter().copied();
        if let Some(answer) = arch.and_then(|arch| missing_in_userland(arch, programs)) {
            return answer;
        }
        let alone = Plan { contenders: vec![contender.clone()], ..plan.clone() };
        // What else it lacks is another need's.
        if let Err(error @ (VmError::NoLayer { .. } | VmError::NoLayerInUml { .. })) =
            Bootable::of(&Asked::by(contender), &alone)
        {
            return Answer::no(error.to_string());
        }
    }
    Answer::yes("the guest's kernel makes it")
}

/// A tool that the host does not have can come into guests without it.
fn not_fetched(program: &str) -> Answer {
    let package = tool::package(program).unwrap_or(program);
    Answer::no(format!("{program} is not installed")).but(format!(
        "fsverdict kernels tools {package}, for virtual machines alone, or {}",
        install(package)
    ))
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::need::State;

    use super::*;
    use crate::place::doctor::needs;

    #[test]
    fn what_the_machine_does_by_itself_needs_nothing_and_programs_are_the_hosts() {
        let (machine, plan) = (Machine::new(Path::new("/")), Plan::default());
        let of = |need: &Need| answer(&machine, &plan, need);
        let able =
            [Need::Root, Need::Namespaces, Need::LoopDevices, Need::Limits, Need::DropCaches];
        assert!(able.iter().all(|need| of(need).is_able()));
        for need in [Need::Zram, Need::Partitions, Need::Link, Need::Interface("eth0".into())] {
            let unmet = of(&need).unmet().unwrap();
            assert!(unmet.ends_with(": write --place local"), "{unmet}");
        }
        for name in ["sh", "no-bench"] {
            let need = Need::Program { name: name.into(), package: Some("some".into()) };
            assert_eq!(of(&need), machine.answer(&need));
            assert_eq!(of(&need).is_able(), name == "sh");
        }
        let silent = needs().into_iter().map(|need| of(&need)).find(|it| it.detail.is_empty());
        assert_eq!(silent, None);
    }

    #[test]
    fn a_kernel_that_is_not_there_is_missing_and_its_file_systems_are_not_known() {
        let machine = Machine::new(Path::new("/"));
        let contender = |name: &str| {
            format!("[[contender]]\nname = \"{name}\"\nfile_system = \"ext4\"\nkernel = \"0.1\"\n")
        };
        let work = "[[workload]]\nname = \"w\"\ncommand = \"true\"\n";
        let plan = [contender("a"), contender("b"), work.into()].concat();
        let plan = Plan::parse(&plan).unwrap();
        let kernel = answer(&machine, &plan, &Need::Kernel(Some("0.1".into())));
        let says = "there is no kernel 0.1 here: fsverdict kernels get 0.1";
        assert_eq!(kernel.unmet().unwrap(), says);
        let ext4 = answer(&machine, &plan, &Need::FileSystem("ext4".into()));
        assert_eq!(ext4.state, State::Unknown);
    }
}
