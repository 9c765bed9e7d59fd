//! Parts of a plan whose needs a place does not meet: a plan is refused then, a study goes on
//! without them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::{fmt, mem};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::near::meant;
use super::need::{Answer, Asked, Remedy, State, install};
use super::{BedKind, Cache, Command, Contender, Need, Place, Plan, Workload};

/// Part of a study that was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// `contender`, `workload` or `limits`.
    pub what: String,
    /// The name of the contender or workload; what the limits were.
    pub name: String,
    /// What is missing for it, and what to do about that.
    pub why: String,
}

/// The part of a plan that needs something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Who {
    Place(Place),
    Bed(&'static str),
    Contender(String),
    Workload(String),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Place(place) => write!(f, "place {}", place.name()),
            Who::Bed(name) => write!(f, "bed {name}"),
            Who::Contender(name) => write!(f, "contender {name:?}"),
            Who::Workload(name) => write!(f, "workload {name:?}"),
        }
    }
}

/// Something that a place lacks for part of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What needs it.
    pub who: Who,
    /// The unmet need.
    pub need: Need,
    /// What the place answered.
    pub answer: Answer,
}

/// All that a place lacks for a plan, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct UnmetNeeds(pub Vec<Unmet>);

impl UnmetNeeds {
    /// What the other does not lack.
    pub fn without(&self, other: &UnmetNeeds) -> UnmetNeeds {
        let is_there = |unmet: &&Unmet| !other.0.iter().any(|it| it.need == unmet.need);
        UnmetNeeds(self.0.iter().filter(is_there).cloned().collect())
    }
}

impl fmt::Display for UnmetNeeds {
    /// One part of the plan after the other; what is to be installed comes last, with one command
    /// for all of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = without_consequences(&self.0, |unmet| &unmet.answer).into_iter();
        let (missing, others): (Vec<&Unmet>, Vec<&Unmet>) =
            told.partition(|unmet| is_missing(&unmet.need, &unmet.answer));
        let mut sentences: Vec<String> = Vec::new();
        for Unmet { who, need, answer } in others {
            let sentence = match (need, who) {
                (Need::Root, Who::Bed(_)) => format!(
                    "{who} needs root: run it with sudo, or compare directories that are mounted \
                     already with --bed directory:PATH,PATH"
                ),
                (Need::DropCaches, _) => format!(
                    "{who} begins with empty caches, which takes root: run it with sudo, or leave \
                     the caches as they are with --warm"
                ),
                (_, Who::Place(_)) => answer.unmet().unwrap_or_default(),
                _ => format!("{who}: {}", answer.unmet().unwrap_or_default()),
            };
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        for its in missing.chunk_by(|one, next| one.who == next.who) {
            let names = names(its.iter().map(|unmet| (&unmet.need, &unmet.answer)));
            sentences.push(format!("{} needs {}", its[0].who, names.join(", ")));
        }
        let how = command(missing.iter().map(|unmet| &unmet.answer));
        let how = how.map_or(", which is not there".into(), |command| format!(": {command}"));
        write!(f, "{}{}", sentences.join("; "), if missing.is_empty() { "" } else { &how })
    }
}

/// The unmet of `needs`, a line each; what to install is in the last.
pub fn unmet_needs(needs: &[Need], asked: &Asked) -> Vec<String> {
    lines(needs, asked, |answer| !answer.is_able())
}

fn lines(needs: &[Need], asked: &Asked, is_unmet: impl Fn(&Answer) -> bool) -> Vec<String> {
    let answers = needs.iter().map(|need| (need, asked.answer(need)));
    let unmet: Vec<(&Need, Answer)> = answers.filter(|(_, answer)| is_unmet(answer)).collect();
    let told = without_consequences(&unmet, |(_, answer)| answer).into_iter();
    let (missing, others): (Vec<_>, Vec<_>) =
        told.partition(|(need, answer)| is_missing(need, answer));
    let mut lines: Vec<String> =
        others.into_iter().filter_map(|(_, answer)| answer.unmet()).collect();
    lines.dedup();
    let names = names(missing.iter().map(|(need, answer)| (*need, answer)));
    match (names.as_slice(), command(missing.iter().map(|(_, answer)| answer))) {
        ([], _) => {}
        ([_], _) => lines.extend(missing[0].1.unmet()),
        (names, None) => lines.push(format!("{} are not installed", names.join(", "))),
        (names, Some(command)) => {
            lines.push(format!("{} are not installed: {command}", names.join(", ")));
        }
    }
    lines
}

/// Without root much can't even be tried: of all that root could do only the first is reported.
fn without_consequences<T>(unmet: &[T], answer: impl Fn(&T) -> &Answer) -> Vec<&T> {
    let mut told = false;
    let is_told =
        |it: &&T| answer(it).remedy != Some(Remedy::Sudo) || !mem::replace(&mut told, true);
    unmet.iter().filter(is_told).collect()
}

/// A program or file is not there, and at most is to be installed.
fn is_missing(need: &Need, answer: &Answer) -> bool {
    match answer.remedy {
        Some(Remedy::Install { .. }) => true,
        Some(Remedy::Sudo | Remedy::Words(_)) => false,
        None => need.is_program(),
    }
}

/// The programs that are missing, each once.
fn names<'a>(missing: impl Iterator<Item = (&'a Need, &'a Answer)>) -> Vec<Cow<'a, str>> {
    let mut names = Vec::new();
    for (need, answer) in missing {
        let name = match &answer.remedy {
            Some(Remedy::Install { program, .. }) => Cow::Borrowed(program.as_str()),
            _ => need.name(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What installs all that is missing, as far as its packages are known.
fn command<'a>(missing: impl Iterator<Item = &'a Answer>) -> Option<String> {
    let packages: BTreeSet<&str> = missing
        .filter_map(|answer| match &answer.remedy {
            Some(Remedy::Install { package, .. }) => Some(package.as_str()),
            _ => None,
        })
        .collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    (!packages.is_empty()).then(|| install(&packages.join(" ")))
}

impl Plan {
    /// Every part of the plan with what it needs of `place`.
    pub fn wants(&self, place: Place) -> Vec<(Who, Need)> {
        let mut wants = Vec::new();
        let mut of = |who: Who, needs: Vec<Need>| {
            wants.extend(needs.into_iter().map(|need| (who.clone(), need)));
        };
        let has_kernels = self.contenders.iter().all(|contender| contender.kernel.is_some());
        let mut its = place.needs();
        its.retain(|need| !(has_kernels && *need == Need::Kernel(None)));
        of(Who::Place(place), its);
        of(Who::Bed(self.bed.name()), self.whole_bed().needs());
        for contender in &self.contenders {
            of(Who::Contender(contender.name.clone()), self.contender_needs(contender));
        }
        for workload in &self.workloads {
            of(Who::Workload(workload.name.clone()), self.workload_needs(workload));
        }
        wants
    }

    /// In a directory the existing file system is taken as it is.
    fn contender_needs(&self, contender: &Contender) -> Vec<Need> {
        let mut needs = contender.needs();
        let is_made = self.bed.kind != BedKind::Directory;
        needs.retain(|need| is_made || !matches!(need, Need::FileSystem(_) | Need::Partitions));
        needs
    }

    /// Beds that are made have their size in the plan; those of the user's are looked at.
    fn workload_needs(&self, workload: &Workload) -> Vec<Need> {
        let mut needs = workload.needs();
        needs.extend(self.started_by(workload));
        if self.bed.kind == BedKind::Directory && workload.cache == Cache::Cold {
            needs.push(Need::DropCaches);
        }
        let is_users = matches!(self.bed.kind, BedKind::Device | BedKind::Directory);
        if let Some(bytes) = workload.needs_bytes.filter(|_| is_users) {
            let own = self.contenders.iter().filter_map(|contender| contender.path.as_ref());
            let paths = self.bed.paths.iter().chain(own);
            needs.extend(paths.map(|at| Need::Space { at: at.clone(), bytes: bytes.0 }));
        }
        needs
    }

    /// The program that the command is, where it is looked for along the user's own `PATH`: other
    /// paths, and what is named by one, may be of the work's making.
    fn started_by(&self, workload: &Workload) -> Option<Need> {
        let Some(Command::Argv(argv)) = &workload.command else { return None };
        let environments = self.contenders.iter().map(|contender| &contender.environment);
        let mut environments = environments.chain([&workload.environment]);
        let name = argv.first().filter(|name| !name.contains('/'))?.clone();
        let own_path = environments.any(|environment| environment.contains_key("PATH"));
        (!own_path).then_some(Need::Program { name, package: None })
    }

    /// What `place`, which is `asked`, lacks for the plan.
    fn check_needs(&self, place: Place, asked: &Asked) -> Result<(), UnmetNeeds> {
        let mut unmet = Vec::new();
        for (who, need) in self.wants(place) {
            let answer = asked.answer(&need);
            if answer.state == State::No {
                unmet.push(Unmet { who, need, answer });
            }
        }
        if unmet.is_empty() { Ok(()) } else { Err(UnmetNeeds(unmet)) }
    }

    /// The plan for `place`, which is `asked`. From a study, parts whose needs the place does not
    /// meet are left out; a user's own plan stays as it is, or is refused.
    pub fn fitted(&self, place: Place, asked: &Asked) -> Result<(Plan, Vec<LeftOut>), UnmetNeeds> {
        let mut plan = self.clone();
        let mut left_out = Vec::new();
        let stands = |need: &Need| asked.answer(need).state != State::No || *need == Need::Limits;
        if self.study.is_some() && place.needs().iter().chain(&self.whole_bed().needs()).all(stands)
        {
            left_out = plan.fit(asked);
        }
        // A plan with nothing left lacks nothing.
        if !plan.is_hollow() {
            plan.check_needs(place, asked)?;
        }
        Ok((plan, left_out))
    }

    /// No contender or no workload is left.
    pub fn is_hollow(&self) -> bool {
        self.contenders.is_empty() || self.workloads.is_empty()
    }

    /// Leaves out the contenders, workloads and limits for which the place that is `asked` lacks
    /// something. What is left may be too little to compare anything; [`Plan::check`] says so.
    fn fit(&mut self, asked: &Asked) -> Vec<LeftOut> {
        let mut left_out = Vec::new();
        let unmet = |needs: &[Need]| {
            let unmet = lines(needs, asked, |answer| answer.state == State::No);
            (!unmet.is_empty()).then(|| unmet.join("; "))
        };
        let mut stays = |what: &str, name: &str, why: Option<String>| {
            let (what, name) = (what.to_string(), name.to_string());
            let stays = why.is_none();
            left_out.extend(why.map(|why| LeftOut { what, name, why }));
            stays
        };
        self.name_references();
        let reference = self.contenders.first().map(|_| self.reference().to_string());
        let why: Vec<_> =
            self.contenders.iter().map(|it| unmet(&self.contender_needs(it))).collect();
        let mut why = why.into_iter();
        self.contenders.retain(|it| stays("contender", &it.name, why.next().flatten()));
        let why: Vec<_> = self.workloads.iter().map(|it| unmet(&self.workload_needs(it))).collect();
        let mut why = why.into_iter();
        self.workloads.retain(|it| stays("workload", &it.name, why.next().flatten()));
        if let Some(limits) = self.bed.limits
            && !stays("limits", &limits.to_string(), unmet(self.bed.need_of_limits().as_slice()))
        {
            self.bed.limits = None;
        }
        self.drop_others_published();
        self.refer_to_another(reference.as_deref(), &mut left_out);
        self.give_up_claims(&left_out);
        left_out
    }

    /// Leaves out all workloads but those of these names, with the published figures and claims of
    /// the others. The error says in a sentence what is wrong with a name.
    pub fn keep_only(&mut self, names: &[String]) -> Result<(), String> {
        let known = self.workloads.iter().map(|it| it.name.as_str());
        if known.len() == 0 {
            return Err("--only picks from a plan's workloads: name a plan or a study".into());
        }
        for name in names {
            if !known.clone().any(|it| it == name) {
                let meant = meant(name, known);
                return Err(format!("--only names {name:?}, which is not a workload; {meant}"));
            }
        }
        self.workloads.retain(|it| names.contains(&it.name));
        self.drop_others_published();
        let mut claims = mem::take(&mut self.claims);
        let stays = |name: &String| self.workloads.iter().any(|it| it.name == *name);
        claims.retain(|it| it.workload.iter().chain(&it.than).chain(&it.growth).all(stays));
        self.claims = claims;
        Ok(())
    }

    /// Forgets what is published of workloads that the plan no longer has.
    fn drop_others_published(&mut self) {
        self.published.retain(|it| self.workloads.iter().any(|work| work.name == it.workload));
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

    fn without(what: &[&str]) -> impl Fn(&Need) -> Answer {
        let what: Vec<String> = what.iter().map(ToString::to_string).collect();
        move |need| match what.iter().find(|it| **it == need.name()) {
            Some(name) => Answer::no(format!("no {name}")),
            None => Answer::yes(""),
        }
    }

    fn fitted(what: &[&str]) -> (Plan, Vec<LeftOut>) {
        let mut plan = Plan::parse(PLAN).unwrap();
        let left_out = plan.fit(&Asked::new(without(what)));
        (plan, left_out)
    }

    #[test]
    fn what_needs_nothing_more_stays_as_it_is() {
        assert_eq!(fitted(&["sysbench", "btrfs"]), (Plan::parse(PLAN).unwrap(), Vec::new()));
    }

    #[test]
    fn a_study_of_which_nothing_is_left_is_given_back_to_be_refused() {
        let study = format!("{PLAN}\n[study]\ntitle = \"A study\"\n");
        let plan = Plan::parse(&study).unwrap();
        let asked = Asked::new(without(&["ext4", "xfs", "partitions"]));
        let (left, left_out) = plan.fitted(Place::Uml, &asked).unwrap();
        assert!(left.is_hollow() && left.check().is_err() && !plan.is_hollow());
        assert_eq!(left_out.iter().filter(|it| it.what == "contender").count(), 3);
    }

    #[test]
    fn a_tool_takes_its_workloads_and_their_figures_along() {
        let (plan, left_out) = fitted(&["fio", "partitions", "limits"]);
        plan.check().unwrap();
        assert_eq!((plan.contenders.len(), plan.workloads.len(), plan.published.len()), (2, 1, 0));
        assert_eq!(plan.bed.limits, None);
        let said: Vec<_> = left_out.iter().map(|it| (it.what.as_str(), it.why.as_str())).collect();
        let wanted =
            [("contender", "no partitions"), ("workload", "no fio"), ("limits", "no limits")];
        assert_eq!(said, wanted);
    }

    #[test]
    fn what_is_asked_for_alone_leaves_the_others_and_their_claims_out() {
        let claims = r#"
            claim = [
                { text = "of one", contender = "b", workload = "job", is = "better" },
                { text = "of the other", contender = "b", workload = "command", is = "better" },
            ]
        "#;
        let plan = Plan::parse(&format!("{PLAN}{claims}")).unwrap();
        let mut alone = plan.clone();
        alone.keep_only(&["command".into()]).unwrap();
        alone.check().unwrap();
        assert_eq!((alone.workloads.len(), alone.published.len()), (1, 0));
        let claims: Vec<_> = alone.claims.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(claims, ["of the other"]);
        let error = plan.clone().keep_only(&["jbo".into()]).unwrap_err();
        assert_eq!(error, "--only names \"jbo\", which is not a workload; did you mean job?");
    }

    #[test]
    fn a_workload_over_a_link_needs_one() {
        let linked = PLAN.replace("command = \"true\"", "command = \"true\", network = {}");
        let mut plan = Plan::parse(&linked).unwrap();
        let left_out = plan.fit(&Asked::new(without(&["link"])));
        assert_eq!((left_out[0].name.as_str(), left_out[0].why.as_str()), ("command", "no link"));
        assert_eq!(plan.workloads.len(), 1);
    }

    #[test]
    fn another_takes_the_references_place() {
        let mut plan = Plan::parse(PLAN).unwrap();
        plan.contenders[2].file_system = "xfs".into();
        plan.judgement.reference = Some("a".into());
        let left_out = plan.fit(&Asked::new(without(&["ext4"])));
        assert_eq!(plan.reference(), "b");
        assert_eq!(left_out[0].why, "no ext4; the others are compared with b");
        let study = format!("{PLAN}\nstudy = {{ title = \"a study\" }}");
        let mut study = Plan::parse(&study).unwrap();
        study.fit(&Asked::new(without(&["ext4"])));
        assert!(study.check().is_err(), "one is too few for a study");
    }

    fn refused(plan: &str, place: Place, what: &[&str]) -> String {
        let plan = Plan::parse(plan).unwrap();
        plan.check_needs(place, &Asked::new(without(what))).unwrap_err().to_string()
    }

    #[test]
    fn all_missing_programs_are_said_at_once_with_their_packages() {
        let plan = PLAN.replace("\"true\"", "\"true\", needs = [\"a:p\", \"b\", \"c:p\"]");
        let answer = |need: &Need| match need {
            Need::Program { name, package } => Answer::not_installed(name, package.as_deref()),
            _ => Answer::yes(""),
        };
        let plan = Plan::parse(&plan).unwrap();
        let error = plan.check_needs(Place::Local, &Asked::new(answer)).unwrap_err().to_string();
        assert_eq!(error, "workload \"command\" needs a, b, c: apt-get install p");
        let alone = PLAN.replace("\"true\"", "\"true\", needs = [\"b\"]");
        let says = "workload \"command\" needs b, which is not there";
        assert_eq!(refused(&alone, Place::Local, &["b"]), says);
    }

    #[test]
    fn what_several_need_is_installed_by_one_command() {
        let answer = |need: &Need| match need {
            Need::FileSystem(name) if name == "xfs" => {
                Answer::not_installed("mkfs.xfs", Some("xfsprogs"))
            }
            Need::Tool(name) => Answer::not_installed(name, Some(name)),
            _ => Answer::yes(""),
        };
        let (plan, asked) = (Plan::parse(PLAN).unwrap(), Asked::new(answer));
        let error = plan.check_needs(Place::Local, &asked).unwrap_err().to_string();
        let says = "contender \"b\" needs mkfs.xfs; workload \"job\" needs fio: apt-get install \
                    fio xfsprogs";
        assert_eq!(error, says);
        let needs: Vec<Need> = plan.wants(Place::Local).into_iter().map(|(_, need)| need).collect();
        let says = "mkfs.xfs, fio are not installed: apt-get install fio xfsprogs";
        assert_eq!(unmet_needs(&needs, &asked), [says]);
        let one = unmet_needs(&[Need::Tool("fio"), Need::Tool("fio")], &asked);
        assert_eq!(one, ["fio is not installed: apt-get install fio"]);
    }

    #[test]
    fn a_command_must_be_there_unless_it_is_looked_for_elsewhere() {
        let needs = |more: &str| {
            let command = format!("command = [\"bench\", \"-x\"]{more}");
            let plan = PLAN.replace("command = \"true\"", &command);
            let wants = Plan::parse(&plan).unwrap().wants(Place::Local);
            wants.into_iter().filter(|(_, need)| need.is_program()).count()
        };
        assert_eq!(needs(""), 1);
        assert_eq!(needs(", environment = { PATH = \"/opt/bench\" }"), 0);
        let by_path = PLAN.replace("\"true\"", "[\"./bench\"]");
        let wants = Plan::parse(&by_path).unwrap().wants(Place::Local);
        assert!(!wants.iter().any(|(_, need)| need.is_program()));
    }

    #[test]
    fn what_only_root_can_is_not_told_one_by_one() {
        let answer = |need: &Need| match need {
            Need::Root | Need::Namespaces | Need::LoopDevices => Answer::no("user").but_root(),
            Need::Tool("fio") => Answer::not_installed("fio", Some("fio")),
            _ => Answer::yes(""),
        };
        let plan = Plan::parse(PLAN).unwrap();
        let error = plan.check_needs(Place::Local, &Asked::new(answer)).unwrap_err().to_string();
        let says = "bed loop needs root: run it with sudo, or compare directories that are \
                    mounted already with --bed directory:PATH,PATH; workload \"job\" needs fio: \
                    apt-get install fio";
        assert_eq!(error, says);
    }

    #[test]
    fn a_directory_is_taken_as_it_is_but_must_have_the_room() {
        let plan = PLAN
            .replace("bed = { limits = { iops = 100 } }", "")
            .replace(", partition = [\"mklabel\", \"gpt\"]", "")
            .replace("\"true\"", "\"true\", needs_bytes = \"2G\"");
        let bed = "bed = { kind = \"directory\", path = \"/mnt\" }";
        let plan = Plan::parse(&format!("{bed}\n{plan}")).unwrap();
        let needs: Vec<Need> = plan.wants(Place::Local).into_iter().map(|(_, need)| need).collect();
        let space = Need::Space { at: "/mnt".into(), bytes: 2 << 30 };
        assert_eq!(needs, [Need::Tool("fio"), Need::DropCaches, Need::DropCaches, space]);
    }

    #[test]
    fn a_virtual_machine_needs_a_kernel_unless_each_contender_brings_its_own() {
        let kernels = |plan: &str| {
            let wants = Plan::parse(plan).unwrap().wants(Place::Vm).into_iter();
            let kernels = wants.filter(|(_, need)| matches!(need, Need::Kernel(_)));
            kernels.map(|(_, need)| need.name().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(kernels(PLAN), ["kernels to boot"]);
        let own = PLAN.replace("name = \"a\"", "name = \"a\", kernel = \"6.1\"");
        assert_eq!(kernels(&own), ["kernels to boot", "kernel 6.1"]);
    }
}
