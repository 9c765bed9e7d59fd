//! From what was typed to the plan that was meant.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use anyhow::{Context, Result};
use fsverdict_core::model::{
    Above, Attachment, Bed, BedKind, Command, Contender, ExtraProbe, Fio, Layer, Place, Plan,
    PlanError, Rounds, Sysbench, Workload, meant, plain_fio_words, program_of, with_near,
};
use fsverdict_core::printed;
use fsverdict_host::{layer, tool};
use serde::de::DeserializeOwned;

use super::arguments::{Arguments, ProbeName, Stack, Standing};
use super::beside::{change_work, changes_work, check_idle};
use super::consent;
use super::untrusted::distrust;
use crate::exit::Usage;
use crate::shipped;

/// The plan: the plan file's, or an empty one, with what the command line says in its place.
pub fn plan(arguments: &Arguments) -> Result<Plan> {
    let mut plan = match (&arguments.plan, &arguments.study) {
        (Some(path), _) => read(path)?,
        (None, Some(name)) => shipped::study(name)?,
        (None, None) => Plan::default(),
    };
    plan.name_references();
    if let Some(bed) = &arguments.bed {
        set_bed(&mut plan.bed, bed)?;
    }
    if !arguments.fs.is_empty() {
        plan.contenders = named_contenders(&arguments.fs);
    } else if plan.contenders.is_empty() && plan.bed.kind == BedKind::Directory {
        plan.contenders = plan.bed.paths.iter().map(|path| directory_contender(path)).collect();
    }
    if !arguments.layers.is_empty() {
        plan.contenders = on_layers(&plan.contenders, &arguments.layers);
    }
    if !arguments.above.is_empty() {
        plan.contenders = with_above(&plan.contenders, &arguments.above);
    }
    if !arguments.kernel.is_empty() {
        plan.contenders = under_kernels(&plan.contenders, &arguments.kernel, &arguments.zfs)?;
    }
    if !arguments.disks.is_empty() {
        plan.contenders = with_disks(&plan.contenders, &arguments.disks);
    }
    set_machine(&mut plan, arguments);
    match typed_workload(arguments)? {
        Some(_) if !arguments.only.is_empty() => {
            let text = "leave --only out: the work is on the command line";
            return Err(Usage(text.into()).into());
        }
        Some(workload) => {
            plan.workloads = vec![workload];
            plan.published.clear();
            plan.claims.clear();
        }
        None if changes_work(arguments) => {
            plan.workloads.iter_mut().for_each(|workload| change_work(workload, arguments));
            plan.published.clear();
            plan.claims.clear();
        }
        None => {}
    }
    if has_others(arguments) {
        plan.give_up_claims(&[]);
    }
    if !arguments.only.is_empty() {
        plan.keep_only(&arguments.only).map_err(Usage)?;
    }
    set_rest(&mut plan, arguments);
    check_idle(&plan, arguments)?;
    distrust(&mut plan, arguments)?;
    consent::check(&mut plan, arguments)?;
    recognise(&mut plan);
    if let Some(scale) = arguments.scale {
        plan = plan.scaled(scale).map_err(Usage)?;
    }
    plan.check()?;
    Ok(plan)
}

/// What the plan's works are.
pub(super) fn recognise(plan: &mut Plan) {
    for workload in &mut plan.workloads {
        recognise_fio(workload);
        recognise_sysbench(workload);
        recognise_printed(workload);
        if let Some(source) = workload.tree.as_mut().and_then(|tree| tree.source.as_mut()) {
            make_absolute(source);
        }
    }
}

/// The command line names contenders, or makes others of the plan's.
fn has_others(arguments: &Arguments) -> bool {
    let Arguments { fs, layers, above, kernel, disks, .. } = arguments;
    let named = [fs.len(), layers.len(), above.len(), kernel.len(), disks.len()];
    named.iter().any(|count| *count > 0)
}

/// A plan file may leave out what the command line gives, so that it is checked later.
pub fn read(path: &Path) -> Result<Plan> {
    if let Some(plan) = shipped::plan(path) {
        return plan;
    }
    let text = match text_of(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(no_plan(path).into()),
        text => text.with_context(|| path.display().to_string())?,
    };
    let mut plan: Plan = toml::from_str(&text)
        .map_err(PlanError::from)
        .with_context(|| path.display().to_string())?;
    // A recording lies beside its plan.
    let folder = path.parent().unwrap_or(Path::new(""));
    for replay in plan.workloads.iter_mut().filter_map(|workload| workload.replay.as_mut()) {
        replay.recording = folder.join(&replay.recording).display().to_string();
        make_absolute(&mut replay.recording);
    }
    Ok(plan)
}

/// No plan and no use is longer.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// The content of a file that was named on the command line; an error if it never ends.
pub(super) fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)?;
    match read as u64 > TEXT_BYTES_MAX {
        true => Err(io::Error::other("it is longer than 16 MiB: name a text file")),
        false => Ok(text),
    }
}

/// Neither a file nor a plan that comes along.
fn no_plan(path: &Path) -> Usage {
    let typed = path.display().to_string();
    let names = shipped::PLANS.iter().map(|(name, _)| *name);
    let is_study = shipped::STUDIES.iter().any(|(name, _)| *name == typed);
    let meant = match is_study {
        true => format!("it is a study: fsverdict run --study {typed}"),
        false => meant(&typed, names),
    };
    Usage(format!("no plan and no file is called {typed:?}; {meant}"))
}

/// The second contender of a name is `ext4#2`: an A/A comparison.
pub(super) fn named_contenders(names: &[String]) -> Vec<Contender> {
    let contender = |(place, name): (usize, &String)| {
        let count = 1 + names[..place].iter().filter(|earlier| *earlier == name).count();
        let own = if count == 1 { name.clone() } else { format!("{name}#{count}") };
        Contender { name: own, file_system: name.clone(), ..Contender::default() }
    };
    names.iter().enumerate().map(contender).collect()
}

/// Each contender under each kernel; where there are several, they are part of its name. ZFS in
/// each of `versions`, which are part of its name, too.
fn under_kernels(
    contenders: &[Contender],
    kernels: &[String],
    versions: &[String],
) -> Result<Vec<Contender>, Usage> {
    let mut contenders = contenders.to_vec();
    if !versions.is_empty() {
        if let Some(kernel) = kernels.iter().find(|it| it.contains('/') || it.contains("+zfs")) {
            let text = "takes kernels by their versions, as in --kernel 6.1";
            return Err(Usage(format!("--zfs {text}, and not {kernel}")));
        }
        if !contenders.iter().any(is_zfs) {
            contenders.extend(named_contenders(&["zfs".into()]));
        }
    }
    let mut all = Vec::new();
    for (contender, kernel) in contenders.iter().flat_map(|it| kernels.iter().map(move |k| (it, k)))
    {
        let short = short_among(kernel, kernels);
        let end = if kernels.len() == 1 { String::new() } else { format!(" on {short}") };
        let under = |version: &str, kernel: String| {
            let name = format!("{}{version}{end}", contender.name);
            Contender { name, kernel: Some(kernel), ..contender.clone() }
        };
        match versions {
            [_, ..] if is_zfs(contender) => {
                let each = |it: &String| under(&format!(" {it}"), format!("{kernel}+zfs-{it}"));
                all.extend(versions.iter().map(each));
            }
            // A plan may be run again from another folder.
            _ if kernel.contains('/') => {
                let path = std::path::absolute(kernel).unwrap_or_else(|_| kernel.into());
                all.push(under("", path.display().to_string()));
            }
            _ => all.push(under("", kernel.clone())),
        }
    }
    Ok(all)
}

/// The end of a path that no other of `kernels` has; for most the file name is enough.
fn short_among<'a>(kernel: &'a str, kernels: &[String]) -> &'a str {
    let whole = kernel.trim_end_matches('/');
    let ends = whole.rmatch_indices('/').map(|(at, _)| &whole[at + 1..]);
    let is_others = |end: &str| {
        let others = kernels.iter().map(|it| it.trim_end_matches('/')).filter(|it| *it != whole);
        others
            .into_iter()
            .any(|it| it.strip_suffix(end).is_some_and(|it| it.is_empty() || it.ends_with('/')))
    };
    ends.into_iter().find(|end| !is_others(end)).unwrap_or(whole)
}

/// Each contender with its disks attached in each way; where there are several, they are part of
/// its name.
fn with_disks(contenders: &[Contender], ways: &[Attachment]) -> Vec<Contender> {
    let with = |contender: &Contender, disks: Attachment| {
        let name = match ways.len() {
            1 => contender.name.clone(),
            _ => format!("{} on {disks}", contender.name),
        };
        Contender { name, disks: Some(disks), ..contender.clone() }
    };
    contenders.iter().flat_map(|it| ways.iter().map(move |disks| with(it, *disks))).collect()
}

/// What the virtual machines get besides.
fn set_machine(plan: &mut Plan, arguments: &Arguments) {
    let words = |text: &String| text.split_whitespace().map(String::from).collect::<Vec<_>>();
    if let Some(parameters) = arguments.vm_append.as_ref().map(words) {
        plan.contenders.iter_mut().for_each(|it| it.parameters.extend(parameters.iter().cloned()));
    }
    if let Some(options) = arguments.vm_qemu.as_ref().map(words) {
        plan.vm.get_or_insert_default().qemu = options;
        plan.place.get_or_insert(Place::Vm);
    }
    if let Some(memory) = arguments.vm_memory {
        plan.vm.get_or_insert_default().memory = memory;
        plan.place.get_or_insert(Place::Vm);
    }
    let layers = || plan.contenders.iter().map(|it| &it.layers).filter(|it| !it.is_empty());
    let takes_guest = layers().any(|it| layer::takes_guest(it));
    if takes_guest || plan.vm.is_some() && layers().next().is_some() {
        plan.place.get_or_insert(Place::Vm);
    }
}

fn is_zfs(contender: &Contender) -> bool {
    contender.file_system == "zfs"
}

/// Each contender on each stack of layers; where there are several, they are part of its name.
fn on_layers(contenders: &[Contender], stacks: &[Stack]) -> Vec<Contender> {
    let on = |contender: &Contender, stack: &Stack| {
        let shown = if stack.is_empty() { Layer::NONE.into() } else { Layer::stack(stack) };
        let name = match stacks.len() {
            1 => contender.name.clone(),
            _ => format!("{} on {shown}", contender.name),
        };
        Contender { name, layers: stack.clone(), ..contender.clone() }
    };
    contenders.iter().flat_map(|it| stacks.iter().map(move |stack| on(it, stack))).collect()
}

/// Each contender with each stack upon it; where there are several, they are part of its name.
fn with_above(contenders: &[Contender], stacks: &[Standing]) -> Vec<Contender> {
    let under = |contender: &Contender, stack: &Standing| {
        let shown = if stack.is_empty() { Above::NONE.into() } else { Above::stack(stack) };
        let name = match stacks.len() {
            1 => contender.name.clone(),
            _ => format!("{} under {shown}", contender.name),
        };
        Contender { name, above: stack.clone(), ..contender.clone() }
    };
    contenders.iter().flat_map(|it| stacks.iter().map(move |stack| under(it, stack))).collect()
}

fn directory_contender(path: &str) -> Contender {
    Contender { name: path.into(), path: Some(path.into()), ..Contender::default() }
}

/// `loop`, `ram`, `ram:zram`, `device:/dev/sdb,/dev/sdc`, `directory:/mnt/a,/mnt/b`.
fn set_bed(bed: &mut Bed, text: &str) -> Result<(), Usage> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let paths = || rest.split(',').filter(|path| !path.is_empty()).map(String::from).collect();
    bed.kind = match (kind, rest) {
        ("loop", "") => BedKind::Loop,
        ("ram", "" | "zram") => BedKind::Ram,
        ("device", _) => BedKind::Device,
        ("directory", _) => BedKind::Directory,
        _ => {
            return Err(Usage(format!(
                "{text:?} is not a bed: write loop, ram, ram:zram, device:/dev/NAME or \
                 directory:PATH"
            )));
        }
    };
    bed.zram = rest == "zram";
    if matches!(bed.kind, BedKind::Device | BedKind::Directory) {
        bed.paths = paths();
        if bed.paths.is_empty() {
            return Err(Usage(format!("bed {kind} needs a path: {kind}:PATH")));
        }
    }
    Ok(())
}

fn set_rest(plan: &mut Plan, arguments: &Arguments) {
    fn set<T: Clone>(place: &mut T, typed: &Option<T>) {
        if let Some(value) = typed {
            *place = value.clone();
        }
    }
    set(&mut plan.bed.size, &arguments.size);
    set(&mut plan.bed.devices, &arguments.devices);
    set(&mut plan.judgement.margin, &arguments.margin);
    set(&mut plan.judgement.confidence, &arguments.confidence);
    if arguments.duet {
        plan.rounds = Rounds::Duet;
    }
    if arguments.rounds.is_some() || arguments.budget.is_some() {
        plan.judgement.rounds = arguments.rounds;
        plan.judgement.budget = arguments.budget;
    }
    if arguments.like.is_some() {
        plan.bed.like.clone_from(&arguments.like);
    }
    if arguments.limits.is_some() {
        plan.bed.limits = arguments.limits;
    }
    if arguments.dir.is_some() {
        plan.bed.dir = arguments.dir.as_ref().map(|dir| dir.display().to_string());
    }
    if arguments.reference.is_some() {
        plan.judgement.reference.clone_from(&arguments.reference);
    }
    if arguments.seed.is_some() {
        plan.seed = arguments.seed;
    }
    arguments.trial_timeout.iter().for_each(|limit| plan.timeouts.set_trial(*limit));
    let steps = &arguments.step_timeout;
    steps.iter().for_each(|(step, limit)| plan.timeouts.set(step, *limit));
    for probe in &arguments.probe {
        let probe = match probe {
            ProbeName::PageCache => ExtraProbe::PageCache,
            ProbeName::Trace => ExtraProbe::Trace,
        };
        if !plan.probes.contains(&probe) {
            plan.probes.push(probe);
        }
    }
    if let Some(place) = arguments.place {
        plan.place = Some(place.into());
    }
}

/// The workload on the command line, if there is one.
fn typed_workload(arguments: &Arguments) -> Result<Option<Workload>, Usage> {
    let mut workload = Workload::default();
    change_work(&mut workload, arguments);
    workload.small_files = native("small-files", arguments.small_files.as_deref())?;
    workload.fsync_files = native("fsync-files", arguments.fsync_files.as_deref())?;
    workload.metadata = native("metadata", arguments.metadata.as_deref())?;
    workload.tree = native("tree", arguments.tree.as_deref())?;
    let command = Command::Argv(arguments.command.clone());
    let names = [
        workload.small_files.is_some().then(|| "small files".to_string()),
        workload.fsync_files.is_some().then(|| "fsync files".into()),
        workload.metadata.is_some().then(|| "metadata".into()),
        workload.tree.is_some().then(|| "tree".into()),
        (!arguments.command.is_empty()).then(|| shortened(&command.to_string())),
    ];
    let mut names = names.into_iter().flatten();
    let Some(name) = names.next() else { return Ok(None) };
    if names.next().is_some() {
        let kinds = "a command, --small-files, --fsync-files, --metadata or --tree";
        return Err(Usage(format!("give one of {kinds}, not both")));
    }
    workload.name = name;
    workload.command = (!arguments.command.is_empty()).then_some(command);
    Ok(Some(workload))
}

/// A name that fits a table's title.
pub(super) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= LONGEST && line.len() == text.len() {
        return line.into();
    }
    line.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// The native workload that `--FLAG KEY=VALUE,...` describes, as a plan's table of those keys
/// would; nothing after the flag: the defaults.
fn native<T: DeserializeOwned>(flag: &str, text: Option<&str>) -> Result<Option<T>, Usage> {
    let Some(text) = text else { return Ok(None) };
    let mut table = toml::Table::new();
    for word in text.split(',').filter(|word| !word.is_empty()) {
        let Some((key, value)) = word.split_once('=') else {
            return Err(Usage(format!("--{flag} {word}: write KEY=VALUE")));
        };
        let whole = value.parse().map(toml::Value::Integer);
        let number = whole.or_else(|_| value.parse().map(toml::Value::Float));
        table.insert(key.into(), number.unwrap_or_else(|_| toml::Value::String(value.into())));
    }
    let wrong = |error: toml::de::Error| {
        let error = error.to_string().trim_end().replace('\n', " ");
        Usage(format!("--{flag} {text}: {}", with_near(&error)))
    };
    table.try_into().map(Some).map_err(wrong)
}

/// A command that is fio becomes a fio job: its own options or job files, run with its own
/// figures kept. Job files are named from where the user stands.
fn recognise_fio(workload: &mut Workload) {
    if let Some(Command::Argv(argv)) = &workload.command
        && let Some((variables, program, arguments)) = program_of(argv)
        && is_fio(program)
    {
        workload.fio = Some(Fio::Arguments(arguments.to_vec()));
        workload.environment.extend(variables);
        workload.command = None;
    }
    match &mut workload.fio {
        Some(Fio::File(path)) => make_absolute(path),
        Some(Fio::Arguments(arguments)) => {
            *arguments = plain_fio_words(arguments);
            arguments
                .iter_mut()
                .filter(|argument| !argument.starts_with('-'))
                .for_each(make_absolute);
        }
        _ => {}
    }
}

/// By its name, or by the path of the fio that jobs are run with.
fn is_fio(program: &str) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let is_its_path = || {
        let path = program.contains('/').then(|| real(Path::new(program))).flatten();
        path.is_some_and(|path| tool::find("fio").and_then(|fio| real(&fio)) == Some(path))
    };
    program == "fio" || is_its_path()
}

/// A command that is the run of sysbench's fileio test becomes that test: its files are prepared
/// before the remount, and what it prints is read. `prepare` by itself stays a command.
fn recognise_sysbench(workload: &mut Workload) {
    let Some(Command::Argv(argv)) = &workload.command else { return };
    let Some((program, rest)) = argv.split_first() else { return };
    let (options, words): (Vec<_>, Vec<_>) =
        rest.iter().cloned().partition(|word| word.starts_with("--"));
    // `--test=fileio` is how versions before 1.0 have it.
    let (tests, options): (Vec<_>, Vec<_>) =
        options.into_iter().partition(|word| word.starts_with("--test="));
    let is_run = match &tests[..] {
        [] => words == ["fileio", "run"],
        [test] => test == "--test=fileio" && words == ["run"],
        _ => false,
    };
    if is_run && Path::new(program).file_name() == Some("sysbench".as_ref()) {
        workload.sysbench = Some(Sysbench::Arguments(options));
        workload.command = None;
    }
}

/// A command that starts a benchmark with a known output is judged by that benchmark's figures,
/// unless the plan names others, or the command gives figures itself.
fn recognise_printed(workload: &mut Workload) {
    let Some(command) = &workload.command else { return };
    let commands = [Some(command), workload.check.as_ref()].into_iter().flatten();
    let gives_figures =
        commands.into_iter().any(|it| it.argv().join(" ").contains("FSVERDICT_FIGURES"));
    let is_said = !workload.primary.is_empty() || !workload.figures.is_empty();
    let is_counted = workload.operations.is_some() || workload.bytes.is_some();
    if !gives_figures && !is_said && !is_counted {
        workload.primary = printed::judged_by(command);
    }
}

fn make_absolute(path: &mut String) {
    if let Ok(absolute) = fs::canonicalize(&*path) {
        *path = absolute.display().to_string();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;
    use fsverdict_core::model::{FsyncCase, Sync};

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// The plan of a command line, whose words stand apart by blanks.
    pub fn typed(words: &str) -> Result<Plan> {
        let words = std::iter::once("run").chain(words.split_whitespace());
        plan(&Typed::try_parse_from(words)?.arguments)
    }

    #[test]
    fn kernels_by_path_are_told_apart_by_as_much_of_it_as_that_takes() {
        let names = |words: &str| {
            let plan = typed(&format!("--fs ext4 --size 1G {words} -- true")).unwrap();
            plan.contenders.into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        let two = names("--kernel /a/boot/bzImage --kernel /b/boot/bzImage");
        assert_eq!(two, ["ext4 on a/boot/bzImage", "ext4 on b/boot/bzImage"]);
        assert_eq!(names("--kernel /a/linux --kernel 6.12"), ["ext4 on linux", "ext4 on 6.12"]);
        assert_eq!(names("--kernel x --kernel /a/x"), ["ext4 on x", "ext4 on a/x"]);
    }

    #[test]
    fn a_command_line_is_a_plan() {
        let plan =
            typed("--fs ext4,ext4 --rounds 5 --size 1G --prepare true -- cp -a /x .").unwrap();
        let names: Vec<_> = plan.contenders.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["ext4", "ext4#2"]);
        assert_eq!(plan.workloads[0].name, "cp -a /x .");
        assert_eq!(plan.judgement.rounds(), Some(5));
        assert_eq!(plan.bed.size.0, 1 << 30);
    }

    #[test]
    fn fio_is_recognised() {
        let plan = typed("--fs ext4,xfs -- fio --rw=randread --size=1m").unwrap();
        assert_eq!(plan.workloads[0].primary(), ["iops"]);
        assert!(plan.workloads[0].command.is_none());
        let spelled = typed("--fs ext4,xfs -- env SIZE=1m fio -rw randread --size 1m").unwrap();
        assert_eq!(spelled.workloads[0].fio, plan.workloads[0].fio);
        assert_eq!(spelled.workloads[0].environment["SIZE"].to_string(), "1m");
        if let Some(path) = tool::find("fio") {
            let words = format!("--fs ext4,xfs -- {} --rw=randread --size=1m", path.display());
            assert_eq!(typed(&words).unwrap().workloads[0].fio, plan.workloads[0].fio);
        }
        let other = typed("--fs ext4,xfs -- ./fio --rw=randread").unwrap();
        assert!(other.workloads[0].command.is_some(), "a fio that nobody has looked at");
    }

    #[test]
    fn sysbench_is_recognised() {
        let test = "--file-test-mode=rndrw --threads=4";
        let plan = typed(&format!("--fs ext4,xfs -- sysbench fileio {test} run")).unwrap();
        let sysbench = plan.workloads[0].sysbench.as_ref().unwrap();
        assert_eq!(sysbench.arguments().join(" "), test);
        assert_eq!(plan.workloads[0].primary(), ["iops"]);
        for words in ["sysbench --test=fileio", "/usr/bin/sysbench fileio"] {
            let plan = typed(&format!("--fs ext4,xfs -- {words} {test} run")).unwrap();
            assert_eq!(plan.workloads[0].sysbench.as_ref(), Some(sysbench), "{words}");
        }
        let plan = typed("--fs ext4,xfs -- sysbench fileio prepare").unwrap();
        assert!(plan.workloads[0].command.is_some());
    }

    #[test]
    fn a_known_benchmark_is_judged_by_its_own_figure() {
        let primary = |words: &str| {
            typed(&format!("--fs ext4,xfs {words}")).unwrap().workloads.remove(0).primary()
        };
        assert_eq!(primary("-- env X=1 /usr/bin/dbench -t 2 4"), ["dbench_throughput"]);
        assert_eq!(primary("--primary wall_time -- dbench -t 2 4"), ["wall_time"]);
        assert_eq!(primary("--operations 9 -- dbench -t 2 4"), ["wall_time"]);
        assert_eq!(primary("-- dd if=/dev/zero of=x"), ["wall_time"]);
        assert_eq!(primary("--figure mine=^(\\d+):MB/s --figure a=b -- dbench 4"), ["a", "mine"]);
    }

    #[test]
    fn native_work_is_typed_as_keys_and_values() {
        let workload =
            |words: &str| typed(&format!("--fs ext4,xfs {words}")).unwrap().workloads.remove(0);
        let files = workload("--small-files count=50,size=4k,sync=each").small_files.unwrap();
        assert_eq!((files.count, files.size.0, files.sync), (50, 4096, Sync::Each));
        let files = workload("--fsync-files files=100,case=overwriting").fsync_files.unwrap();
        assert_eq!((files.files, files.case), (100, FsyncCase::Overwriting));
        assert_eq!(workload("--metadata").metadata.unwrap().directories, 1000);
        let tree = workload("--tree files=50,mean_size=4k,compression=2.5,hard_links=3%");
        let tree = tree.tree.unwrap();
        assert_eq!((tree.files, tree.mean_size.unwrap().0), (50, 4096));
        assert_eq!((tree.compression, tree.hard_links.0), (2.5, 0.03));
        let source = workload("--tree source=/usr/../usr").tree.unwrap().source;
        assert_eq!(source.as_deref(), Some("/usr"));
    }

    #[test]
    fn what_stands_on_them_is_part_of_the_contenders() {
        let of = |words: &str| typed(&format!("{words} -- true")).unwrap().contenders;
        let one = of("--fs ext4 --above overlay:volatile,metacopy=on");
        assert_eq!((one[0].name.as_str(), one[0].above[0].options.len()), ("ext4", 2));
        let both = of("--fs ext4,xfs --above none --above bindfs+overlay");
        let names: Vec<&str> = both.iter().map(|it| it.name.as_str()).collect();
        let ext4 = ["ext4 under none", "ext4 under bindfs+overlay"];
        assert_eq!(names[..2], ext4);
        assert_eq!((both.len(), both[2].above.len(), both[3].above.len()), (4, 0, 2));
        let directory = typed("--bed directory:/tmp --above overlay -- true").unwrap_err();
        assert!(directory.to_string().contains("mounted already: leave it out"), "{directory}");
    }

    #[test]
    fn layers_are_part_of_the_contenders() {
        let of = |words: &str| typed(&format!("{words} -- true")).unwrap().contenders;
        let one = of("--fs ext4 --layers luks+lvm-thin:chunk=64k");
        assert_eq!((one[0].name.as_str(), one[0].layers.len()), ("ext4", 2));
        let names: Vec<String> = of("--fs ext4 --layers none --layers luks --kernel 6.1")
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names, ["ext4 on none", "ext4 on luks"]);
    }

    #[test]
    fn kernels_are_part_of_the_contenders() {
        let names = |words: &str| {
            let plan = typed(&format!("{words} -- true")).unwrap();
            assert_eq!(plan.named_place(), Some(Place::Vm));
            plan.contenders.into_iter().map(|it| it.name).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(names("--fs ext4,xfs --kernel 6.12"), "ext4, xfs");
        assert_eq!(
            names("--fs ext4 --kernel 6.1 --kernel /b/bzImage"),
            "ext4 on 6.1, ext4 on bzImage"
        );
        let plan = typed("--fs ext4 --kernel ./linux/ -- true").unwrap();
        let kernel = plan.contenders[0].kernel.clone().unwrap();
        assert_eq!(kernel, format!("{}/linux/", std::env::current_dir().unwrap().display()));
    }

    #[test]
    fn how_disks_are_attached_is_part_of_the_contenders() {
        let plan = typed("--fs ext4,xfs --disks nvme,ahci -- true").unwrap();
        assert_eq!(plan.named_place(), Some(Place::Vm));
        let names: Vec<&str> = plan.contenders.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["ext4 on nvme", "ext4 on ahci", "xfs on nvme", "xfs on ahci"]);
        let one = typed("--fs ext4 --disks virtio-scsi -- true").unwrap().contenders.remove(0);
        assert_eq!((one.name.as_str(), one.disks), ("ext4", Some(Attachment::VirtioScsi)));
    }

    #[test]
    fn kernels_and_machines_get_words_of_their_own() {
        let words = "--fs ext4 --vm-append mitigations=off --vm-qemu=-s -- true";
        let plan = typed(words).unwrap();
        assert_eq!(plan.contenders[0].parameters, ["mitigations=off"]);
        assert_eq!(plan.named_place(), Some(Place::Vm));
        assert_eq!(plan.vm.unwrap().qemu, ["-s"]);
        let local = |words: &str| typed(&format!("--place local {words}")).unwrap_err().to_string();
        assert!(local(words).contains("leave --vm-qemu out"), "{}", local(words));
        let more = typed("--fs ext4 --vm-memory 3G -- true").unwrap();
        assert_eq!((more.place, more.vm.unwrap().memory.0), (Some(Place::Vm), 3 << 30));
        let words = "--fs ext4 --vm-append mitigations=off -- true";
        assert!(local(words).contains("parameters for its kernel: that takes --place vm"));
    }

    #[test]
    fn versions_of_openzfs_are_contenders_beside_the_others() {
        let of = |words: &str| {
            let all = typed(&format!("{words} -- true")).unwrap().contenders;
            let each = all.into_iter().map(|it| format!("{}: {}", it.name, it.kernel.unwrap()));
            each.collect::<Vec<_>>().join(", ")
        };
        let both = "zfs 2.1: 6.1+zfs-2.1, zfs 2.4: 6.1+zfs-2.4";
        assert_eq!(of("--fs ext4 --kernel 6.1 --zfs 2.1,2.4"), format!("ext4: 6.1, {both}"));
        assert_eq!(of("--fs zfs,ext4 --kernel 6.1 --zfs 2.1,2.4"), format!("{both}, ext4: 6.1"));
        assert_eq!(
            of("--fs zfs --kernel 6.1 --kernel 7.2 --zfs 2.4"),
            "zfs 2.4 on 6.1: 6.1+zfs-2.4, zfs 2.4 on 7.2: 7.2+zfs-2.4"
        );
    }

    #[test]
    fn directories_are_contenders() {
        let plan = typed("--bed directory:/a,/b -- true").unwrap();
        assert_eq!(plan.contenders[1].path.as_deref(), Some("/b"));
    }

    #[test]
    fn a_file_without_end_is_no_plan() {
        let error = format!("{:#}", read(Path::new("/dev/zero")).unwrap_err());
        assert_eq!(error, "/dev/zero: it is longer than 16 MiB: name a text file");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (words, says) in [
            ("--fs ext4,xfs --bed floppy -- true", "is not a bed"),
            ("--fs ext4,xfs --small-files colour=red", "expected one of `count`, `size`"),
            ("--fs ext4,xfs --small-files cuont=5", "did you mean count?"),
            ("--fs ext4,xfs --reference xs -- true", "did you mean xfs?"),
            ("--fs ext4,xfs --metadata threads=many", "--metadata threads=many: invalid type"),
            ("--fs ext4,xfs --metadata --fsync-files", "not both"),
            ("--fs ext4,xfs --metadata fast", "write KEY=VALUE"),
            ("--fs ext4,xfs -- sysbench fileio run", "needs file-test-mode"),
            ("-- true", "a contender, or several"),
            ("--fs ext4,xfs --step-timeout wrok=1s -- true", "did you mean work?"),
            ("--fs ext4,xfs --step-timeout work -- true", "write STEP=TIME"),
            ("--fs ext4,xfs --figure x -- true", "write NAME=REGEX"),
            ("--fs ext4,xfs --figure x=( -- true", "the figure x, whose expression is wrong"),
            ("--fs ext4,xfs --figure X=a -- true", "write its name in a-z"),
            ("--fs ext4,xfs --figure x=a --metadata", "which only a command can print"),
            ("--fs ext4,xfs", "a workload"),
            ("--fs ext4,xfs --small-files count=5 -- true", "not both"),
            ("--fs ext4,xfs --bed device: -- true", "needs a path"),
            ("--fs ext4,xfs --like sdd -- true", "did you mean ssd or hdd?"),
            ("--bed directory:/a,/b --like ssd -- true", "leave --like out"),
            ("--fs ext4,xfs --place local --kernel 6.1 -- true", "takes --place vm"),
            ("--fs ext4 --disks nvm -- true", "did you mean nvme?"),
            ("--fs ext4 --place uml --disks nvme -- true", "are attached: that takes --place vm"),
            ("--fs ext4 --zfs 2.3 -- true", "--kernel <KERNEL>"),
            ("--fs ext4 --kernel 6.1 --zfs new -- true", "write a version of OpenZFS"),
            ("--fs ext4 --kernel ./bzImage --zfs 2.3 -- true", "takes kernels by their versions"),
            ("--fs ext4,xfs --place vm --bed directory:/tmp -- true", "can't be given to"),
        ] {
            let error = format!("{:#}", typed(words).unwrap_err());
            assert!(error.contains(says), "{words}: {error}");
        }
    }
}
