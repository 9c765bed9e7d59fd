//! What a plan wants beyond its bed, which the user has to allow on the command line: each time,
//! because a plan that is run, resumed or reproduced may be a stranger's.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use fsverdict_core::model::{Place, Plan};
use fsverdict_core::render;

use super::arguments::{Arguments, PlaceName};
use crate::exit::Usage;

/// Refuses a plan that asks for more than is allowed; it writes to the folders that are.
pub fn check(plan: &mut Plan, arguments: &Arguments) -> Result<()> {
    check_machine(plan, None, arguments.vm_qemu.as_deref(), arguments.place)?;
    allow_writing(plan, &arguments.writable)
}

/// The same for a run that was begun: it keeps its permissions, and needs them given again.
pub fn check_again(plan: &Plan, place: Place, arguments: &Arguments) -> Result<()> {
    let mut again = plan.clone();
    check_machine(plan, Some(place), arguments.vm_qemu.as_deref(), arguments.place)?;
    allow_writing(&mut again, &arguments.writable)?;
    if again.writable != plan.writable || arguments.place.is_some_and(|it| Place::from(it) != place)
    {
        let text = "a resumed run keeps its place and the folders that it writes to: name no \
                    others with --place and --writable";
        return Err(Usage(text.into()).into());
    }
    Ok(())
}

/// QEMU's options can name any file of this machine, which it reads and writes as its user; and the
/// work can write to the memory of a User Mode Linux, which is a process of that user. `begun` is
/// where a run says that it was: a stranger's may say otherwise in its plan.
pub fn check_machine(
    plan: &Plan,
    begun: Option<Place>,
    options: Option<&str>,
    place: Option<PlaceName>,
) -> Result<(), Usage> {
    let asked: Vec<&str> = plan.vm.iter().flat_map(|vm| &vm.qemu).map(String::as_str).collect();
    let allowed: Vec<&str> = options.unwrap_or_default().split_whitespace().collect();
    let says = |text: String| Err(Usage(text));
    if !asked.is_empty() && asked != allowed {
        return says(format!(
            "the plan gives QEMU options, which can make it write to any of your files: allow \
             them with {}",
            shown(&["--vm-qemu", &asked.join(" ")])
        ));
    }
    if asked.is_empty() && !allowed.is_empty() {
        return says("the run gave QEMU no options: leave --vm-qemu out".into());
    }
    if [plan.place, begun].contains(&Some(Place::Uml)) && !matches!(place, Some(PlaceName::Uml)) {
        return says(
            "the plan runs in a User Mode Linux, whose work can reach your files: allow it with \
             --place uml"
                .into(),
        );
    }
    Ok(())
}

/// An option as it is typed, quoted so that a copy of it is the same word.
fn shown(words: &[&str]) -> String {
    render::command(words).join(" ")
}

/// The one place that has to be allowed again.
pub fn uml_alone(text: &str) -> Result<PlaceName, String> {
    (text == "uml").then_some(PlaceName::Uml).ok_or_else(|| "only uml has to be allowed".into())
}

/// The folders that the command line opens to the work.
fn allow_writing(plan: &mut Plan, allowed: &[PathBuf]) -> Result<()> {
    let mut folders = Vec::new();
    for folder in allowed {
        let shown = folder.display();
        let found = folder.canonicalize().with_context(|| format!("--writable {shown}"))?;
        if !found.is_dir() || found.parent().is_none() {
            let text = format!("--writable {shown}: name a folder, and not the whole machine");
            return Err(Usage(text).into());
        }
        folders.push(found.display().to_string());
    }
    if let Some(asked) = plan.writable.iter().find(|asked| !folders.contains(asked)) {
        let option = shown(&["--writable", asked]);
        let text = format!("the plan wants to write to {asked}: allow it with {option}");
        return Err(Usage(text).into());
    }
    plan.writable = folders;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fsverdict_core::model::Vm;
    use fsverdict_host::bed::Consents;

    use super::super::plan::tests::typed;
    use super::*;

    #[test]
    fn a_plan_writes_only_where_the_command_line_lets_it() {
        let allowed = |asked: &str, words: &str| {
            let writable = vec![asked.to_string()];
            let mut plan = Plan { writable, ..Plan::default() };
            let folders: Vec<PathBuf> = words.split_whitespace().map(PathBuf::from).collect();
            allow_writing(&mut plan, &folders).map(|()| plan.writable)
        };
        let told = allowed("/usr", "").unwrap_err().to_string();
        assert_eq!(told, "the plan wants to write to /usr: allow it with --writable /usr");
        assert_eq!(allowed("/usr", "/usr/../usr /etc").unwrap(), ["/usr", "/etc"]);
        assert!(allowed("/usr", "/usr /").is_err(), "the whole machine");
        let told = allowed("/a; rm -rf b", "").unwrap_err().to_string();
        assert!(told.ends_with("--writable '/a; rm -rf b'"), "{told}");
        assert!(allowed("/usr", "/usr /etc/passwd").is_err(), "no folder");
    }

    /// By them QEMU wrote a file of root's: `-D FILE`, `-serial file:FILE`.
    #[test]
    fn a_plan_gives_qemu_the_options_that_the_command_line_gives_it() {
        let qemu = ["-D", "/etc/x"].map(String::from).to_vec();
        let vm = Some(Vm { qemu, ..Vm::default() });
        let plan = Plan { vm, ..Plan::default() };
        let told = check_machine(&plan, None, None, None).unwrap_err().to_string();
        assert!(told.ends_with("allow them with --vm-qemu '-D /etc/x'"), "{told}");
        assert!(check_machine(&plan, None, Some("-D /etc/y"), None).is_err());
        assert!(check_machine(&plan, None, Some("-D /etc/x"), None).is_ok());
        let of_a_file = |options: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("plan.toml");
            let plan = "place = \"vm\"\nvm = { qemu = [\"-s\"] }\n[[contender]]\nname = \"a\"\n\
                        file_system = \"ext4\"\n[[workload]]\nname = \"w\"\ncommand = \"true\"\n";
            std::fs::write(&path, plan).unwrap();
            typed(&format!("{} {options}", path.display())).map(|plan| plan.vm.unwrap().qemu)
        };
        assert!(of_a_file("").is_err());
        assert_eq!(of_a_file("--vm-qemu=-S").unwrap(), ["-S"], "in place of the plan's");
    }

    #[test]
    fn a_plan_runs_in_a_user_mode_linux_where_the_command_line_says_so() {
        let plan = Plan { place: Some(Place::Uml), ..Plan::default() };
        let told = check_machine(&plan, None, None, None).unwrap_err().to_string();
        assert!(told.contains("allow it with --place uml"), "{told}");
        assert!(check_machine(&plan, None, None, Some(PlaceName::Uml)).is_ok());
        assert!(check_machine(&plan, Some(Place::Vm), None, None).is_err(), "whatever it says");
        assert!(check_machine(&Plan::default(), Some(Place::Uml), None, None).is_err());
    }

    #[test]
    fn a_run_that_goes_on_is_allowed_its_own_alone() {
        let plan = Plan { writable: vec!["/usr".into()], ..Plan::default() };
        let with = |writable: &[&str], vm_qemu: Option<&str>| {
            let (file, folder) = (Path::new("plan.toml"), Path::new("run"));
            let mut arguments = Arguments::of_plan(file, folder, &Consents::default()).unwrap();
            arguments.writable = writable.iter().map(PathBuf::from).collect();
            arguments.vm_qemu = vm_qemu.map(String::from);
            check_again(&plan, Place::Vm, &arguments).is_ok()
        };
        assert!(with(&["/usr"], None));
        assert!(!with(&[], None) && !with(&["/usr", "/etc"], None) && !with(&["/usr"], Some("-s")));
    }
}
