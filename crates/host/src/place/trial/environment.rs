//! What the commands of a trial find in their environment.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::path::PathBuf;

use fsverdict_core::model::{Command, Scalar, Trial, Workload};

use super::site::{CACHE, figures_file};
use crate::machine::folder;
use crate::place::link;
use crate::place::vm::kernel;
use crate::sys;

/// fsverdict's own variables, and those of the plan.
pub fn environment(trial: &Trial) -> BTreeMap<String, String> {
    let value = |text: &dyn ToString| text.to_string();
    let environment = [
        ("FSVERDICT_SEED", value(&trial.seed)),
        ("FSVERDICT_ROUND", value(&trial.key.round)),
        ("FSVERDICT_CONTENDER", value(&trial.contender.name)),
        ("FSVERDICT_FILE_SYSTEM", value(&trial.contender.file_system)),
        ("FSVERDICT_RAW", value(&trial.raw)),
        ("FSVERDICT_FIGURES", value(&figures_file(trial).display())),
    ]
    .map(|(name, value)| (name.to_string(), value));
    let mut environment = BTreeMap::from(environment);
    if let Ok(program) = std::env::current_exe() {
        environment.insert("FSVERDICT".into(), program.display().to_string());
    }
    let workload = &trial.workload;
    if workload.link().is_some() {
        environment.insert("FSVERDICT_SERVER".into(), link::SERVER_ADDRESS.into());
        // No proxy of this machine's is within reach of the link.
        environment.insert("no_proxy".into(), "*".into());
        environment.insert("FSVERDICT_CLIENTS".into(), value(&link::clients().display()));
    }
    if !sys::is_root() {
        // Others' temporary files are not the work's to write; root has private ones.
        environment.insert("TMPDIR".into(), value(&trial.raw));
    }
    if uses_cache(workload) {
        environment
            .insert(CACHE.into(), value(&cache(workload, &trial.contender.environment).display()));
    }
    let operations = workload.operations.map(|operations| ("FSVERDICT_OPERATIONS", operations));
    let bytes = workload.bytes.map(|bytes| ("FSVERDICT_BYTES", bytes.0));
    for (name, size) in operations.into_iter().chain(bytes) {
        environment.insert(name.into(), size.to_string());
    }
    for (name, value) in workload.environment.iter().chain(&trial.contender.environment) {
        environment.insert(name.clone(), value.to_string());
    }
    environment
}

fn uses_cache(workload: &Workload) -> bool {
    let argv = workload.commands().flat_map(Command::argv);
    argv.chain(workload.environment.values().map(ToString::to_string)).any(|it| it.contains(CACHE))
}

/// Where the work may keep what its setup makes once, from one trial to the next. Each setup has a
/// folder of its own for each amount of work, so that none finds what another has made.
fn cache(workload: &Workload, contenders: &BTreeMap<String, Scalar>) -> PathBuf {
    let mut hasher = siphasher::sip::SipHasher13::new();
    let setup = workload.setup.as_ref().map(Command::argv).unwrap_or_default();
    let variables = workload.environment.iter().chain(contenders);
    let variables = variables.map(|(name, value)| format!("{name}={value}"));
    let amount = [workload.operations, workload.bytes.map(|bytes| bytes.0)];
    let amount = amount.into_iter().map(|amount| format!("{amount:?}"));
    // What lies at a path that is mapped is another's for each map.
    let map = workload.map.iter().map(|(at, place)| format!("{at}={place}"));
    for text in setup.into_iter().chain(variables).chain(amount).chain(map) {
        hasher.write(text.as_bytes());
        hasher.write_u8(0);
    }
    // Where it lies is looked for once; from there no link is followed.
    folder::real(&kernel::cache()).join("inputs").join(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::Bytes;

    use super::*;

    #[test]
    fn each_amount_of_work_has_inputs_of_its_own() {
        let none = BTreeMap::new();
        let of = |change: &dyn Fn(&mut Workload)| {
            let mut workload = Workload::default();
            change(&mut workload);
            cache(&workload, &none)
        };
        let own = BTreeMap::from([("A".to_string(), Scalar::Whole(1))]);
        let all = [
            of(&|_| {}),
            of(&|it| it.operations = Some(6000)),
            of(&|it| it.operations = Some(600)),
            of(&|it| it.bytes = Some(Bytes(600))),
            of(&|it| it.map = [("/data".to_string(), ".".to_string())].into()),
            of(&|it| it.setup = Some(Command::Shell("true".into()))),
            cache(&Workload::default(), &own),
        ];
        assert_eq!(all[0], cache(&Workload::default(), &none));
        for (place, folder) in all.iter().enumerate() {
            assert!(!all[..place].contains(folder), "{place}");
        }
    }
}
