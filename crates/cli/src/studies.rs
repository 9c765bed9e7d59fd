//! The published studies, as plans: `studies/*.toml`.

use fsverdict_core::model::{Plan, PlanError, meant};

use crate::exit::Usage;

/// Name and plan of each.
pub const ALL: [(&str, &str); 4] = [
    ("block-volume", include_str!("../../../studies/block-volume.toml")),
    ("cloud-disk", include_str!("../../../studies/cloud-disk.toml")),
    ("fsync-anatomy", include_str!("../../../studies/fsync-anatomy.toml")),
    ("nvme-tuning", include_str!("../../../studies/nvme-tuning.toml")),
];

/// The plan of the study of that name; not checked yet, for the command line may change it.
pub fn plan(name: &str) -> Result<Plan, anyhow::Error> {
    let Some((_, text)) = ALL.iter().find(|(known, _)| *known == name) else {
        let meant = meant(name, ALL.map(|(known, _)| known));
        return Err(Usage(format!("no study is called {name:?}; {meant}")).into());
    };
    Ok(toml::from_str(text).map_err(PlanError::from)?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_study_is_a_plan_that_holds() {
        for (name, _) in super::ALL {
            let plan = super::plan(name).unwrap();
            plan.check().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(plan.study.is_some(), "{name}");
            for published in plan.published.iter().filter(|it| it.metric.is_some()) {
                let its = plan.workloads.iter().find(|work| work.name == published.workload);
                let judged = its.unwrap().primary().contains(published.metric.as_ref().unwrap());
                assert!(judged, "{name}: {published:?} is of nothing that is judged");
            }
        }
        let wrong = |name| super::plan(name).unwrap_err().to_string();
        assert!(wrong("clouddisk").ends_with("did you mean cloud-disk?"));
        assert!(wrong("cloud").contains("block-volume, cloud-disk"));
    }
}
