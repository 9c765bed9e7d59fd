//! The published studies, as plans: `studies/*.toml`.

use fsverdict_core::model::{Plan, PlanError};

use crate::exit::Usage;

/// Name and plan of each.
pub const ALL: [(&str, &str); 5] = [
    ("backup-tree", include_str!("../../../studies/backup-tree.toml")),
    ("block-volume", include_str!("../../../studies/block-volume.toml")),
    ("cloud-disk", include_str!("../../../studies/cloud-disk.toml")),
    ("fsync-anatomy", include_str!("../../../studies/fsync-anatomy.toml")),
    ("nvme-tuning", include_str!("../../../studies/nvme-tuning.toml")),
];

/// The plan of the study of that name; not checked yet, for the command line may change it.
pub fn plan(name: &str) -> Result<Plan, anyhow::Error> {
    let Some((_, text)) = ALL.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        let text = format!("no study is called {name:?}; there are {}", known.join(", "));
        return Err(Usage(text).into());
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
        }
        assert!(super::plan("cloud").unwrap_err().to_string().contains("cloud-disk"));
    }
}
