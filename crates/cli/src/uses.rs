//! What file systems are used for: `uses/*.toml`.

use fsverdict_core::model::{Purpose, meant};
use fsverdict_core::render;

use crate::exit::Usage;
use crate::shipped;

/// Name and definition of each.
pub const ALL: [(&str, &str); 8] = [
    ("database", include_str!("../../../uses/database.toml")),
    ("backup", include_str!("../../../uses/backup.toml")),
    ("build-server", include_str!("../../../uses/build-server.toml")),
    ("web", include_str!("../../../uses/web.toml")),
    ("containers", include_str!("../../../uses/containers.toml")),
    ("logs", include_str!("../../../uses/logs.toml")),
    ("mail", include_str!("../../../uses/mail.toml")),
    ("video", include_str!("../../../uses/video.toml")),
];

/// The use of that name, or that of the plan of that name.
pub fn purpose(name: &str) -> Result<Purpose, anyhow::Error> {
    if let Some((_, text)) = ALL.iter().find(|(known, _)| *known == name) {
        return Ok(Purpose::parse(text)?);
    }
    if let Some(plan) = shipped::PLANS.iter().find(|(known, _)| *known == name) {
        return Ok(Purpose::of_plan(name, &shipped::parse(plan)?, render::test_name));
    }
    let meant = meant(name, names().collect::<Vec<_>>());
    let text = format!("no use is called {name:?}; {meant}");
    Err(Usage(text).into())
}

/// What [`purpose`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().chain(&shipped::PLANS).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::Plan;

    #[test]
    fn every_use_holds_and_its_own_workloads_measure_all_it_wants() {
        for (name, text) in super::ALL {
            let purpose = super::purpose(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(purpose.name, name);
            assert!(!purpose.about.is_empty());
            let mut plan = Plan::parse(
                "[[contender]]\nname = \"a\"\n[[contender]]\nname = \"b\"\n\
                 [[workload]]\nname = \"w\"\ncommand = \"true\"",
            )
            .unwrap();
            plan.workloads =
                purpose.wants.iter().map(|want| purpose.workload_of(want).unwrap()).collect();
            plan.workloads.sort_by(|one, other| one.name.cmp(&other.name));
            plan.workloads.dedup_by(|one, other| one.name == other.name);
            plan.check().unwrap_or_else(|error| panic!("{name}: {error}"));
            let unused = purpose
                .workloads
                .iter()
                .find(|it| purpose.wants.iter().all(|want| want.workload != it.name));
            assert_eq!(unused, None, "{text}");
        }
        assert!(super::purpose("games").unwrap_err().to_string().contains("database"));
    }
}
