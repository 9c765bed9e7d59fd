//! What the commands of a trial find in their environment.

use std::collections::BTreeMap;

use fsverdict_core::model::Trial;

use super::site::figures_file;
use crate::place::link;

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
        environment.insert("FSVERDICT_CLIENTS".into(), value(&link::clients().display()));
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
