//! What to do next, below the answer: how to settle what is open, and what to look at first.

use super::answer::differs;
use super::findings::{Kind, kinds, seen};
use super::matrix::Matrix;
use super::words::{about, counted, without_huge_shares};
use super::{Report, facts};
use crate::model::claim::{Answer, Answered};
use crate::model::{
    BedKind, Command, Comparison, Finding, Outcome, Percent, Place, Plan, Record, Run, Severity,
    Stop, Verdict,
};

/// Beyond so many times the rounds that were done nobody would wait.
const TIMES_MAX: u32 = 10;

/// Where a run is, as one would type it.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// Its folder, or the file it is packed in.
    pub path: &'a str,
    /// It is a file: nothing can be added to it.
    pub is_packed: bool,
}

/// One thing to do, with its command where there is one.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    pub text: String,
    /// Word by word, as a shell takes them; empty: none.
    pub command: Vec<String>,
}

/// The steps.
pub(super) fn steps(report: &Report, kept: Kept) -> Vec<Step> {
    if report.is_read() {
        return weak(report).into_iter().collect();
    }
    if report.failed_all().is_some() {
        return failed(report).into_iter().chain(go_on(report, kept)).collect();
    }
    let each = [go_on(report, kept).or_else(|| open(report, kept)), failed(report), weak(report)];
    each.into_iter().flatten().collect()
}

/// What an undecided run has decided, what keeps the rest open, and what would help: a sentence
/// each. The caller says how to go on.
pub fn outlook(report: &Report) -> Vec<String> {
    let decided = differs(report, &Matrix::of(report));
    let kept = Kept { path: "", is_packed: true };
    let open = open(report, kept).map(|step| step.text);
    decided.into_iter().chain(open).chain(weak(report).map(|step| step.text)).collect()
}

/// More rounds would hardly settle anything that is open.
pub fn is_hopeless(report: &Report) -> bool {
    matches!(rounds_to_settle(report), Rounds::TooMany(_))
}

/// How many rounds would settle what is open.
enum Rounds {
    /// Nothing is open, or nothing has an interval yet.
    Unknown,
    /// So many, and how many comparisons they settle.
    Enough(u32, usize),
    /// Not even so many, which is as far as anybody goes.
    TooMany(u32),
}

fn rounds_to_settle(report: &Report) -> Rounds {
    let open = open_of(report);
    if open.iter().all(|it| it.high.is_none()) {
        return Rounds::Unknown;
    }
    let done = report.rounds().max(1);
    let limit = done.saturating_mul(TIMES_MAX);
    let soon = open.iter().filter_map(|it| it.settled_after()).filter(|it| *it <= limit);
    let soon: Vec<u32> = soon.collect();
    match soon.iter().max() {
        Some(rounds) => Rounds::Enough((*rounds).max(done + 1), soon.len()),
        None => Rounds::TooMany(limit),
    }
}

/// A command of these words, each as a shell takes it.
pub fn command(words: &[&str]) -> Vec<String> {
    let quoted = |word: &&str| Command::Argv(vec![word.to_string()]).to_string();
    words.iter().map(quoted).collect()
}

fn is_open(comparison: &Comparison) -> bool {
    !comparison.verdict.is_settled() && comparison.beaten_by.is_none()
}

/// How to go on with a run that was cut short.
fn go_on(report: &Report, kept: Kept) -> Option<Step> {
    let is_cut = matches!(report.run.stop, None | Some(Stop::Interrupted));
    if !is_cut || kept.is_packed {
        return None;
    }
    let (open, total) = (open_of(report).len(), report.comparisons.len());
    let why = match report.run.stop {
        Some(_) => "Ctrl-C, a signal or the end of its terminal ended the run",
        None => "The run was killed, or is still under way",
    };
    let text = match open {
        0 => format!("{why}. To go on with it:"),
        _ => format!("{why}, with {open} of {} open. To go on:", counted(total, "comparison")),
    };
    let mut words: Vec<&str> = program(report.run, report.plan).split(' ').collect();
    words.extend(["run", "--resume", kept.path]);
    let consents = consents(report.plan);
    words.extend(consents.iter().map(String::as_str));
    Some(Step { text, command: command(&words) })
}

/// The program as this run needs it again: one that made file systems on its own machine was
/// root's, and without root would be one of virtual machines.
pub fn program(run: &Run, plan: &Plan) -> &'static str {
    let on_this_machine = run.place == Place::Local;
    match on_this_machine && plan.bed.kind != BedKind::Directory {
        true => "sudo fsverdict",
        false => "fsverdict",
    }
}

/// The options that allow again what the run was allowed: to erase what it left on its devices, to
/// write where its work writes, and what its virtual machines may do to this one.
pub fn consents(plan: &Plan) -> Vec<String> {
    let named = plan.to_erase_again();
    // Layers leave data without a signature.
    let has_layers = plan.contenders.iter().any(|it| !it.layers.is_empty());
    let data = (has_layers && !named.is_empty()).then(|| "--erase-data".to_string());
    let erased = named.into_iter().flat_map(|it| ["--erase".into(), it]).chain(data);
    let written = plan.writable.iter().flat_map(|it| ["--writable".into(), it.clone()]);
    let options = plan.vm.iter().map(|vm| vm.qemu.join(" ")).filter(|it| !it.is_empty());
    let options = options.map(|it| format!("--vm-qemu={it}"));
    let uml = (plan.place == Some(Place::Uml)).then(|| ["--place".to_string(), "uml".into()]);
    erased.chain(written).chain(options).chain(uml.into_iter().flatten()).collect()
}

/// What rounds could settle.
pub(super) fn open_of<'a>(report: &Report<'a>) -> Vec<&'a Comparison> {
    report.comparisons.iter().filter(|it| is_open(it) && !report.is_lost(it)).collect()
}

/// How to settle what is open.
fn open(report: &Report, kept: Kept) -> Option<Step> {
    let open = open_of(report);
    let (count, total) = (open.len(), report.comparisons.len());
    if count == 0 {
        return undecided(report, kept);
    }
    let what = unsettled(&open, total, report.plan.judgement.margin);
    let said = |text: String| Some(Step { text: format!("{what} {text}"), command: Vec::new() });
    let (rounds, soon) = match rounds_to_settle(report) {
        Rounds::Unknown => {
            return said("There is no interval yet: it takes four rounds that hold both.".into());
        }
        Rounds::TooMany(limit) => {
            return said(format!("With this scatter {limit} rounds are too few; try longer work."));
        }
        Rounds::Enough(rounds, soon) => (rounds, soon),
    };
    Some(longer(report, kept, (&what, "settle"), rounds, [soon, count]))
}

/// How to decide claims where every verdict is settled.
fn undecided(report: &Report, kept: Kept) -> Option<Step> {
    let is_undecided = |it: &&Answered| it.answer == Answer::Undecided && it.measured.is_some();
    let all: Vec<&Answered> = report.claims.iter().filter(is_undecided).collect();
    let done = report.rounds().max(1);
    let near = |more: &u32| *more <= done.saturating_mul(TIMES_MAX - 1);
    let soon: Vec<u32> = all.iter().filter_map(|it| it.rounds_to_settle).filter(near).collect();
    let more = soon.iter().max()?;
    let are = if all.len() == 1 { "is" } else { "are" };
    let what = format!("{} {are} undecided.", counted(all.len(), "claim"));
    Some(longer(report, kept, (&what, "decide"), done + more, [soon.len(), all.len()]))
}

/// A run of so many rounds, which would do for so many of all that is open.
fn longer(
    report: &Report,
    kept: Kept,
    (what, settle): (&str, &str),
    rounds: u32,
    [soon, count]: [usize; 2],
) -> Step {
    let which = match soon {
        1 if count == 1 => "it".into(),
        all if all == count => "them".into(),
        some => format!("{some} of these"),
    };
    let done = f64::from(report.rounds().max(1));
    let time = about(report.run.elapsed_s / done * f64::from(rounds));
    let text = format!(
        "{what} A new run of {rounds} rounds would probably {settle} {which} in about {time}"
    );
    if kept.is_packed {
        return Step { text: text + ".", command: Vec::new() };
    }
    let (plan, rounds) = (format!("{}/plan.toml", kept.path), rounds.to_string());
    let mut words: Vec<&str> = program(report.run, report.plan).split(' ').collect();
    words.extend(["run", &plan, "--rounds", &rounds]);
    let consents = consents(report.plan);
    words.extend(consents.iter().map(String::as_str));
    Step { text: text + ":", command: command(&words) }
}

/// How many are open, and how many of open size: the answer's own words and numbers.
fn unsettled(open: &[&Comparison], total: usize, margin: Percent) -> String {
    let undecided = open.iter().filter(|it| it.verdict == Verdict::Undecided).count();
    let are = |count: usize| if count == 1 { "is" } else { "are" };
    let of_size = |count: usize| {
        let s = if count == 1 { "s" } else { "" };
        format!("{count} differ{s}, but perhaps by less than {margin}")
    };
    match (undecided, open.len() - undecided) {
        (all, 0) if all == total => format!("No comparison of {total} is settled."),
        (count, 0) => format!("{count} of {total} {} open.", are(count)),
        (0, sized) => format!("Of {}, {}.", counted(total, "comparison"), of_size(sized)),
        (count, sized) => {
            format!("{count} of {total} {} open, and {}.", are(count), of_size(sized))
        }
    }
}

fn failed(report: &Report) -> Option<Step> {
    let failures = report.failures().count();
    let first = facts::failures(report).into_iter().next()?;
    let first = first.lines().next().unwrap_or_default();
    let mut text = format!("{} failed: {first}", counted(failures, "trial"));
    if report.failed_all().is_some() && report.failures().all(|it| may_miss_files(report, it)) {
        text += ". If a file is missing there: a virtual machine gets the files that the work \
                 names, and --bring PATH adds others.";
    }
    Some(Step { text, command: Vec::new() })
}

/// A command of the plan failed in a virtual machine, and neither for its time nor for want of
/// room.
fn may_miss_files(report: &Report, record: &Record) -> bool {
    let Outcome::Failed(failure) = &record.outcome else { return false };
    let is_command = match failure.step.as_str() {
        "setup" | "prepare" | "check" | "cleanup" => true,
        "work" => {
            let mut all = report.plan.workloads.iter();
            all.any(|it| it.name == record.key.workload && it.command.is_some())
        }
        _ => false,
    };
    let told = ["No space left", "-timeout"].iter().any(|it| failure.error.contains(it));
    matches!(report.run.place, Place::Vm | Place::Uml) && is_command && !told
}

fn weak(report: &Report) -> Option<Step> {
    let text = format!("Against the answer: {}", doubt(report, &[])?);
    Some(Step { text, command: Vec::new() })
}

/// The gravest of what speaks against the answer, besides what is `told` already.
pub fn doubt(report: &Report, told: &[Finding]) -> Option<String> {
    let kinds = kinds(report.findings, report.comparisons);
    // Unequal terms are reported with the answer.
    let is_told = |it: &&Kind| {
        let finding = it.findings[0];
        finding.is_of_terms() || told.iter().any(|told| told.audit == finding.audit)
    };
    let grave = kinds.iter().filter(|it| it.severity() > Severity::Note && !is_told(it));
    let grave: Vec<&Kind> = grave.collect();
    let first = grave.first()?;
    let more = match grave.len() - 1 {
        0 => String::new(),
        more => format!(". And {} of finding", counted(more, "more kind")),
    };
    // The first of several is shown with its place.
    let evidence = match first.findings.as_slice() {
        [only] if report.plan.contenders.len() == 1 => without_huge_shares(&only.evidence),
        all => seen(all[0]),
    };
    Some(format!("{}: {evidence}{more}.", first.title()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answered, comparison, grid, report};
    use super::*;
    use crate::model::{Failure, Key, Sample, Unit};

    #[test]
    fn what_is_open_is_told_without_a_command_where_another_has_it() {
        let (plan, mut run, mut comparisons) = grid(&[vec![(Verdict::Undecided, 1.2)]]);
        (run.stop, run.elapsed_s) = (Some(Stop::Rounds), 60.0);
        (comparisons[0].rounds, comparisons[0].rounds_to_settle) = (1, Some(1));
        let mut made = (plan, run, comparisons);
        let told = outlook(&report(&made));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].ends_with("would probably settle it in about 2 minutes."), "{told:?}");
        assert!(!is_hopeless(&report(&made)));
        made.2[0].rounds_to_settle = None;
        let told = outlook(&report(&made));
        assert!(
            told[0].ends_with("With this scatter 10 rounds are too few; try longer work."),
            "{told:?}"
        );
        assert!(!told[0].contains("--margin") && is_hopeless(&report(&made)));
        made.2[0].verdict = Verdict::FasterSizeOpen;
        let told = outlook(&report(&made));
        assert_eq!((told.len(), told[0].as_str()), (2, "Against c0, c1 is better at t0 (1.20×)."));
    }

    #[test]
    fn what_is_open_has_a_way_to_be_settled() {
        let (plan, mut run, mut comparisons) = grid(&[vec![(Verdict::Undecided, 1.2)]]);
        (run.stop, run.place, run.elapsed_s) = (Some(Stop::Rounds), Place::Local, 60.0);
        (comparisons[0].rounds, comparisons[0].rounds_to_settle) = (1, Some(1));
        let mut made = (plan, run, comparisons);
        let kept = |path| Kept { path, is_packed: false };
        let step = |made: &_, path| steps(&report(made), kept(path)).into_iter().next();
        let near = step(&made, "run").unwrap();
        assert_eq!(near.command.join(" "), "sudo fsverdict run run/plan.toml --rounds 2");
        assert!(near.text.ends_with("in about 2 minutes:"), "{near:?}");
        made.2[0].rounds_to_settle = None;
        let hard = step(&made, "run").unwrap();
        assert!(hard.command.is_empty() && hard.text.contains("No comparison of 1"), "{hard:?}");
        assert!(hard.text.contains("With this scatter"), "{hard:?}");
        made.2[0].high = None;
        let early = step(&made, "run").unwrap();
        assert!(!early.text.contains("scatter") && early.text.contains("four rounds"), "{early:?}");
        made.1.stop = Some(Stop::Interrupted);
        let go_on = step(&made, "a run").unwrap();
        assert_eq!(go_on.command.join(" "), "sudo fsverdict run --resume 'a run'");
        (made.0.bed.kind, made.0.bed.paths) = (BedKind::Device, vec!["/dev/b".into()]);
        let erases = step(&made, "r").unwrap();
        assert_eq!(erases.command.join(" "), "sudo fsverdict run --resume r --erase /dev/b");
        made.0.contenders[0].file_system = "zfs".into();
        let erases = step(&made, "r").unwrap();
        assert_eq!(
            erases.command.join(" "),
            "sudo fsverdict run --resume r --erase /dev/b=zfs_member"
        );
        made.0.writable = vec!["/srv/a b".into()];
        made.1.stop = Some(Stop::Rounds);
        (made.2[0].high, made.2[0].rounds_to_settle) = (Some(1.5), Some(1));
        assert_eq!(
            step(&made, "r").unwrap().command.join(" "),
            "sudo fsverdict run r/plan.toml --rounds 2 --erase /dev/b=zfs_member --writable \
             '/srv/a b'"
        );
        made.1.stop = Some(Stop::Interrupted);
        made.0.writable.clear();
        made.0.bed.kind = BedKind::Directory;
        let directory = step(&made, "r").unwrap();
        assert_eq!(directory.command.join(" "), "fsverdict run --resume r");
        made.0.place = Some(Place::Uml);
        let uml = step(&made, "r").unwrap();
        assert_eq!(uml.command.join(" "), "fsverdict run --resume r --place uml");
        made.0.vm.get_or_insert_default().qemu = ["-cpu", "max"].map(String::from).to_vec();
        made.0.place = Some(Place::Vm);
        let qemu = step(&made, "r").unwrap();
        assert_eq!(qemu.command.join(" "), "fsverdict run --resume r '--vm-qemu=-cpu max'");
        made.1.stop = Some(Stop::Settled);
        made.2 = vec![comparison("t0", "c1", Verdict::Faster, 2.0)];
        assert_eq!(step(&made, "run"), None);
    }

    #[test]
    fn a_failure_in_a_guest_says_how_more_comes_along() {
        let failed = |step: &str, error: &str| {
            let key = Key { round: 1, workload: "t0".into(), contender: "c1".into() };
            let (step, error) = (step.into(), error.into());
            let failure = Failure { step, error, cleanup_errors: Vec::new() };
            [Record { outcome: Outcome::Failed(failure), ..Record::new(1, key, 0, 0) }]
        };
        let (plan, mut run, comparisons) = grid(&[vec![(Verdict::Undecided, 1.0)]]);
        run.stop = Some(Stop::Rounds);
        let mut made = (plan, run, comparisons);
        let mut says = |place, records: &[Record]| {
            made.1.place = place;
            let report = Report { records, ..report(&made) };
            super::failed(&report).unwrap().text
        };
        let all = [
            (Place::Uml, "setup", "x: not found", true),
            (Place::Vm, "work", "exit status 2", true),
            (Place::Local, "setup", "x: not found", false),
            (Place::Vm, "mount", "wrong type", false),
            (Place::Vm, "work", "cp: No space left on device", false),
            (Place::Vm, "work", "was not done in 8 s: --trial-timeout TIME allows more", false),
        ];
        for (place, step, error, is_told) in all {
            let said = says(place, &failed(step, error));
            assert_eq!(said.ends_with(" --bring PATH adds others."), is_told, "{said}");
        }
    }

    #[test]
    fn no_rounds_are_advised_where_zeros_leave_no_ratio() {
        let (plan, mut run, mut comparisons) = grid(&[vec![(Verdict::Undecided, 1.0)]]);
        run.stop = Some(Stop::Rounds);
        (comparisons[0].ratio, comparisons[0].high) = (None, None);
        let made = (plan, run, comparisons);
        let record = |(round, name): (u32, &str)| {
            let key = Key { round, workload: "t0".into(), contender: name.into() };
            let value = if name == "c1" { 0.0 } else { 2.0 };
            let samples = vec![Sample::lower("wall_time", value, Unit::Seconds)];
            Record { samples, ..Record::new(round, key, 0, 0) }
        };
        let records = [(1, "c0"), (1, "c1"), (2, "c0"), (2, "c1")].map(record);
        let report = Report { records: &records, ..report(&made) };
        assert_eq!(steps(&report, Kept { path: "run", is_packed: false }), []);
        let says = "wall_time: c1 was 0 in 2 of 2 rounds, c0 in none, so that there is no ratio.";
        assert_eq!(report.sentence(&made.2[0]), says);
    }

    #[test]
    fn an_undecided_claim_has_a_way_to_be_decided_where_all_verdicts_are() {
        let (plan, mut run, mut comparisons) = grid(&[vec![(Verdict::Faster, 2.0)]]);
        (run.stop, run.elapsed_s, comparisons[0].rounds) = (Some(Stop::Rounds), 60.0, 1);
        run.place = Place::Local;
        let made = (plan, run, comparisons);
        let claim = |answer, more| Answered { rounds_to_settle: more, ..answered(answer, "x") };
        let of = |claims: &[Answered]| {
            let report = Report { claims, ..report(&made) };
            steps(&report, Kept { path: "run", is_packed: false }).into_iter().next()
        };
        let one = of(&[claim(Answer::Undecided, Some(6)), claim(Answer::Holds, None)]).unwrap();
        assert_eq!(one.command.join(" "), "sudo fsverdict run run/plan.toml --rounds 7");
        let says = "1 claim is undecided. A new run of 7 rounds would probably decide it in about";
        assert!(one.text.starts_with(says), "{}", one.text);
        assert_eq!(of(&[claim(Answer::HoldsInDirection, Some(6))]), None);
        assert_eq!(of(&[claim(Answer::Undecided, Some(6000))]), None);
    }
}
