//! A study on a machine that lacks part of what it needs: the rest is run, and what is left out is
//! listed with the reason.

use serde::{Deserialize, Serialize};

use super::{Contender, Plan, Work, Workload};

/// Something a plan needs of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need<'a> {
    /// To make and mount a file system, by its name.
    FileSystem(&'a str),
    /// A program.
    Program(&'a str),
    /// To hold devices down to limits.
    Limits,
    /// To make a link between server and clients.
    Link,
}

impl Need<'_> {
    /// Its name in `[sim] lacks`.
    pub fn name(&self) -> &str {
        match self {
            Need::FileSystem(name) => name,
            Need::Program(name) => name,
            Need::Limits => "limits",
            Need::Link => "link",
        }
    }
}

/// Part of a study that was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// `contender`, `workload` or `limits`.
    pub what: String,
    /// The name of the contender or workload; what the limits were.
    pub name: String,
    /// What is lacking for it, and what to do about that.
    pub why: String,
}

impl Contender {
    fn needs(&self) -> impl Iterator<Item = Need<'_>> {
        let partition = (!self.partition.is_empty()).then_some(Need::Program("parted"));
        let limits = self.limits.map(|_| Need::Limits);
        let file_system = std::iter::once(Need::FileSystem(&self.file_system));
        file_system.chain(partition).chain(limits)
    }
}

impl Workload {
    /// The program that does the work, besides the workload's own commands.
    pub fn program(&self) -> Option<&'static str> {
        match self.work() {
            Ok(Work::Fio(_)) => Some("fio"),
            Ok(Work::Sysbench(_)) => Some("sysbench"),
            _ => None,
        }
    }
}

impl Plan {
    /// Leaves out the contenders, workloads and limits for which something is lacking: `lack` says
    /// what, if it is. What is left may be too little to compare anything; [`Plan::check`] says so.
    pub fn fit(&mut self, lack: impl Fn(Need<'_>) -> Option<String>) -> Vec<LeftOut> {
        let mut left_out = Vec::new();
        let mut leave = |what: &str, name: &str, why: Option<String>| {
            let (what, name) = (what.to_string(), name.to_string());
            left_out.extend(why.map(|why| LeftOut { what, name, why }));
        };
        let reference = self.contenders.first().map(|_| self.reference().to_string());
        self.contenders.retain(|contender| {
            let why = contender.needs().find_map(&lack);
            let stays = why.is_none();
            leave("contender", &contender.name, why);
            stays
        });
        self.workloads.retain(|workload| {
            let own: Option<(&str, Option<&str>)> = workload.program().map(|it| (it, None));
            let program =
                own.into_iter().chain(workload.needed()).find_map(|(program, package)| {
                    let why = lack(Need::Program(program))?;
                    // Of the tools that are known here the package is said already.
                    let package = package.filter(|_| !why.contains("apt-get install"));
                    Some(package.map_or(why.clone(), |it| format!("{why}: apt-get install {it}")))
                });
            let why = program.or_else(|| workload.link().and_then(|_| lack(Need::Link)));
            let stays = why.is_none();
            leave("workload", &workload.name, why);
            stays
        });
        if let Some(limits) = self.bed.limits
            && let Some(why) = lack(Need::Limits)
        {
            leave("limits", &limits.to_string(), Some(why));
            self.bed.limits = None;
        }
        self.published.retain(|it| self.workloads.iter().any(|work| work.name == it.workload));
        self.refer_to_another(reference.as_deref(), &mut left_out);
        left_out
    }

    /// Where the reference is left out, the first that stays takes its place.
    fn refer_to_another(&mut self, reference: Option<&str>, left_out: &mut [LeftOut]) {
        let lost =
            |it: &&mut LeftOut| it.what == "contender" && Some(it.name.as_str()) == reference;
        if let (Some(lost), Some(first)) = (left_out.iter_mut().find(lost), self.contenders.first())
        {
            lost.why += &format!("; the others are compared with {}", first.name);
            self.judgement.reference = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        bed = { limits = { iops = 100 } }
        contender = [
            { name = "a", file_system = "ext4" },
            { name = "b", file_system = "xfs" },
            { name = "c", file_system = "ext4", partition = ["mklabel", "gpt"] },
        ]
        workload = [
            { name = "job", fio = { rw = "read" } },
            { name = "command", command = "true" },
        ]
        published = [
            { workload = "job", column = "IOPS", better = "higher", printed = { a = 1, b = 2 } },
        ]
    "#;

    fn lacking(what: &[&str]) -> (Plan, Vec<LeftOut>) {
        let mut plan = Plan::parse(PLAN).unwrap();
        let lack = |need: Need| what.contains(&need.name()).then(|| format!("no {}", need.name()));
        let left_out = plan.fit(lack);
        (plan, left_out)
    }

    #[test]
    fn what_nothing_is_lacking_for_stays_as_it_is() {
        assert_eq!(lacking(&["sysbench", "btrfs"]), (Plan::parse(PLAN).unwrap(), Vec::new()));
    }

    #[test]
    fn a_tool_takes_its_workloads_and_their_figures_along() {
        let (plan, left_out) = lacking(&["fio", "parted", "limits"]);
        plan.check().unwrap();
        assert_eq!((plan.contenders.len(), plan.workloads.len(), plan.published.len()), (2, 1, 0));
        assert_eq!(plan.bed.limits, None);
        let said: Vec<_> = left_out.iter().map(|it| (it.what.as_str(), it.why.as_str())).collect();
        let wanted = [("contender", "no parted"), ("workload", "no fio"), ("limits", "no limits")];
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_workload_over_a_link_needs_one() {
        let linked = PLAN.replace("command = \"true\"", "command = \"true\", network = {}");
        let mut plan = Plan::parse(&linked).unwrap();
        let left_out = plan.fit(|need| (need == Need::Link).then(|| "no link".into()));
        assert_eq!((left_out[0].name.as_str(), left_out[0].why.as_str()), ("command", "no link"));
        assert_eq!(plan.workloads.len(), 1);
    }

    #[test]
    fn another_takes_the_references_place() {
        let mut plan = Plan::parse(PLAN).unwrap();
        plan.contenders[2].file_system = "xfs".into();
        plan.judgement.reference = Some("a".into());
        let left_out = plan.fit(|need| (need.name() == "ext4").then(|| "no ext4".into()));
        assert_eq!(plan.reference(), "b");
        assert_eq!(left_out[0].why, "no ext4; the others are compared with b");
        assert!(lacking(&["ext4"]).0.check().is_err(), "one is too few");
    }
}
