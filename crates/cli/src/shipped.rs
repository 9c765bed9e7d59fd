//! The plans that come with the program: `plans/*.toml`, and the published studies,
//! `studies/*.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use fsverdict_core::model::{Plan, PlanError, Precedent, meant};

use crate::exit::Usage;

/// The name of a plan, and its text.
pub type Shipped = (&'static str, &'static str);

/// The plans.
pub const PLANS: [Shipped; 19] = [
    ("distribution", include_str!("../../../plans/distribution.toml")),
    ("etcd", include_str!("../../../plans/etcd.toml")),
    ("hard-links", include_str!("../../../plans/hard-links.toml")),
    ("layers", include_str!("../../../plans/layers.toml")),
    ("mariadb", include_str!("../../../plans/mariadb.toml")),
    ("nvme-schedulers", include_str!("../../../plans/nvme-schedulers.toml")),
    ("nvme-settings", include_str!("../../../plans/nvme-settings.toml")),
    ("postgresql", include_str!("../../../plans/postgresql.toml")),
    ("postgresql-zfs", include_str!("../../../plans/postgresql-zfs.toml")),
    ("quickstart", include_str!("../../../plans/quickstart.toml")),
    ("restic", include_str!("../../../plans/restic.toml")),
    ("rocksdb", include_str!("../../../plans/rocksdb.toml")),
    ("small-files", include_str!("../../../plans/small-files.toml")),
    ("sqlite", include_str!("../../../plans/sqlite.toml")),
    ("streams", include_str!("../../../plans/streams.toml")),
    ("thousand-tasks", include_str!("../../../plans/thousand-tasks.toml")),
    ("unpack-and-build", include_str!("../../../plans/unpack-and-build.toml")),
    ("upload", include_str!("../../../plans/upload.toml")),
    ("victoria-metrics", include_str!("../../../plans/victoria-metrics.toml")),
];

/// The published studies.
pub const STUDIES: [Shipped; 5] = [
    ("backup-tree", include_str!("../../../studies/backup-tree.toml")),
    ("block-volume", include_str!("../../../studies/block-volume.toml")),
    ("cloud-disk", include_str!("../../../studies/cloud-disk.toml")),
    ("fsync-anatomy", include_str!("../../../studies/fsync-anatomy.toml")),
    ("nvme-tuning", include_str!("../../../studies/nvme-tuning.toml")),
];

/// What the runs in `record/` answered, by the studies' names; a test writes it.
const ANSWERS: &str = include_str!("../../../studies/answers.json");

/// The plan of that name, unless a file is called so; not checked yet, because the command line may
/// change it.
pub fn plan(name: &Path) -> Option<Result<Plan>> {
    let known = PLANS.iter().find(|(known, _)| name == Path::new(known))?;
    (!name.is_file()).then(|| parse(known))
}

/// The plan of the study of that name; not checked yet either.
pub fn study(name: &str) -> Result<Plan> {
    let Some(study) = STUDIES.iter().find(|(known, _)| *known == name) else {
        let meant = meant(name, STUDIES.map(|(known, _)| known));
        return Err(Usage(format!("no study is called {name:?}; {meant}")).into());
    };
    parse(study)
}

/// How the published run of the study of that name answered its claims, where there is one.
pub fn precedent(name: &str) -> Option<Precedent> {
    let mut all: BTreeMap<String, Precedent> =
        serde_json::from_str(ANSWERS).expect("studies/answers.json is read by a test");
    all.remove(name)
}

/// Reads one of them.
pub fn parse((name, text): &Shipped) -> Result<Plan> {
    toml::from_str(text).map_err(PlanError::from).with_context(|| (*name).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_hold() {
        for shipped in PLANS.iter().chain(&STUDIES) {
            let plan = parse(shipped).unwrap();
            plan.check().unwrap_or_else(|error| panic!("{}: {error}", shipped.0));
            assert!(!plan.question.is_empty(), "{}", shipped.0);
            assert_eq!(plan.study.is_some(), STUDIES.contains(shipped), "{}", shipped.0);
        }
        let wrong = |name| study(name).unwrap_err().to_string();
        assert!(wrong("clouddisk").ends_with("did you mean cloud-disk?"));
        assert!(wrong("cloud").ends_with("did you mean cloud-disk?"));
        assert!(wrong("sky").contains("block-volume, cloud-disk"));
    }

    #[test]
    fn what_was_answered_is_of_studies_and_their_claims() {
        let all: BTreeMap<String, Precedent> = serde_json::from_str(ANSWERS).unwrap();
        for (name, known) in &all {
            let plan = study(name).unwrap();
            let texts = |it: &mut dyn Iterator<Item = &String>| it.cloned().collect::<Vec<_>>();
            let claimed = texts(&mut plan.claims.iter().map(|it| &it.text));
            assert_eq!(texts(&mut known.claims.iter().map(|it| &it.text)), claimed, "{name}");
            assert!(known.seconds(&plan).is_some_and(|it| it > 60.0), "{name}");
        }
    }

    #[test]
    fn published_figures_are_of_what_is_judged() {
        for (name, _) in STUDIES {
            let plan = study(name).unwrap();
            for published in plan.published.iter().filter(|it| it.metric.is_some()) {
                let its = plan.workloads.iter().find(|work| work.name == published.workload);
                let judged = its.unwrap().primary().contains(published.metric.as_ref().unwrap());
                assert!(judged, "{name}: {published:?} is of nothing that is judged");
            }
        }
    }

    #[test]
    fn the_study_uploads_as_the_plan_does() {
        let of = |plan: Plan| plan.workloads.into_iter().find(|it| it.name == "upload").unwrap();
        let plan = parse(PLANS.iter().find(|(name, _)| *name == "upload").unwrap()).unwrap();
        let (mut ours, theirs) = (of(plan), of(study("block-volume").unwrap()));
        ours.network.clone_from(&theirs.network);
        (ours.bytes, ours.needs_bytes) = (theirs.bytes, theirs.needs_bytes);
        ours.primary.clone_from(&theirs.primary);
        assert_eq!(ours, theirs);
    }

    #[test]
    fn none_is_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (folder, known) in [("plans", &PLANS[..]), ("studies", &STUDIES[..])] {
            let files = std::fs::read_dir(root.join(folder)).unwrap();
            let plans = files.map(|file| file.unwrap().path());
            let plans = plans.filter(|path| {
                let name = path.to_string_lossy();
                name.ends_with(".toml") && !name.ends_with(".table.toml")
            });
            assert_eq!(plans.count(), known.len(), "{folder}");
        }
    }
}
