//! `fsverdict run`: compare.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use fsverdict_core::campaign::{self, Campaign, Next, Slot};
use fsverdict_core::judge::Judge;
use fsverdict_core::model::{
    BedKind, Key, LeftOut, Outcome, Place as PlaceKind, Plan, Record, Run, SCHEMA, Stop, Trial,
    TrialBed, Verdict, Workload,
};
use fsverdict_core::render::{self, Kept, Report};
use fsverdict_core::run::sim::SimPlace;
use fsverdict_core::run::{Place, settled_duet, settled_trial};
use fsverdict_host::bed;
use fsverdict_host::file_system::{self, FileSystem};
use fsverdict_host::place::choose::{Choice, choose};
use fsverdict_host::place::dry::DryRun;
use fsverdict_host::place::local::Lab;
use fsverdict_host::place::trial_process::{Event, mount_point};
use fsverdict_host::place::vm::{self, Vm};
use fsverdict_host::place::{facts, preflight};
use fsverdict_host::undo;

use super::arguments::{Arguments, FIRST};
use super::{clean, plan, resume};
use crate::exit::{self, PlaceError, Usage};
use crate::say::{self, remark};
use crate::source::{Judged, Loaded};
use crate::store::{Store, check_out, write_out, write_whole};
use crate::watch::{Audience, News, Watch};

/// Runs the whole comparison, from the plan to the report.
pub fn run(arguments: &Arguments) -> Result<u8> {
    if arguments.is_bare() {
        let what = "Say what to compare, and by which work.";
        say::tell(&format!("{what}\n\n{FIRST}\n\nAll options: fsverdict run --help"));
        return Ok(exit::USAGE);
    }
    if arguments.dry_run {
        return dry_run(arguments);
    }
    if let Some(file) = arguments.json.as_deref().filter(|file| file.as_os_str() != "-") {
        check_out(file)?;
    }
    let (store, loaded, result) = conduct(arguments)?;
    finish(arguments, &store, loaded, result)
}

/// Runs the rounds, from the plan to the reason of their end; what was measured is kept, however
/// they end.
pub(super) fn conduct(arguments: &Arguments) -> Result<(Store, Loaded, Result<Stop>)> {
    let interrupted = interrupt_flag()?;
    let audience = Audience::new(&arguments.watching)?;
    match undo::left() {
        Ok(left) => {
            clean::play_back_all(&left);
        }
        Err(error) => remark!("can't tell what killed runs left: {error}"),
    }
    let (store, mut loaded) = match &arguments.resume {
        Some(folder) => resume::open(folder, arguments)?,
        None => begin(arguments)?,
    };
    if undo::runs_under_way() > 0 {
        remark!("another run is under way here: each disturbs what the other measures");
    }
    let measured_before = loaded.records.len();
    let result = measure(arguments, &store, &mut loaded, &interrupted, audience);
    let is_as_it_was = arguments.resume.is_some() && loaded.records.len() == measured_before;
    match result {
        // What a run that does not go on says of itself stays as it was, too.
        Err(error) if is_as_it_was => Err(error),
        result => Ok((store, loaded, result)),
    }
}

/// Runs `plan` in `folder`, as what is `typed` of its file would, and keeps its report there.
pub(super) fn anew(
    plan: &Plan,
    folder: &Path,
    typed: impl FnOnce(&Path) -> Result<Arguments, clap::Error>,
) -> Result<(Loaded, Stop)> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let file = folder.join("asked.toml");
    if file.symlink_metadata().is_ok() {
        bail!("{} is there already: give another --output", file.display());
    }
    write_whole(&file, &toml::to_string(plan)?)?;
    let conducted = conduct(&typed(&file)?);
    // The run has the plan by now; a file that stays is only untidy.
    let _ = fs::remove_file(&file);
    if conducted.is_err() {
        // Only an empty folder goes: one in which nothing was begun.
        let _ = fs::remove_dir(folder);
    }
    let (store, mut loaded, result) = conducted?;
    match loaded.records.is_empty() {
        true => store.discard(),
        false => drop(keep_report(&store, &mut loaded, &result)?),
    }
    Ok((loaded, result?))
}

/// Ctrl-C, SIGTERM and the end of the terminal end the run after killing the trial under way. A
/// second one does nothing more: the clean-up is not to be cut short.
pub(super) fn interrupt_flag() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// The folder of a run that was given none: `runs/20260131-235959-NAME`, in UTC.
pub fn dated_folder(started: SystemTime, name: &str) -> PathBuf {
    let stamp = humantime::format_rfc3339_seconds(started).to_string();
    let stamp = stamp.replace(['-', ':', 'Z'], "").replace('T', "-");
    Path::new("runs").join(format!("{stamp}-{name}"))
}

fn begin(arguments: &Arguments) -> Result<(Store, Loaded)> {
    let plan = plan::plan(arguments)?;
    let Choice { mut plan, place, left_out, .. } = settle(&plan, arguments.output.as_deref())?;
    let seed = *plan.seed.get_or_insert_with(random_seed);
    plan.place = Some(place);
    if place == PlaceKind::Local && plan.bed.kind == BedKind::Device {
        bed::check(&plan.bed.paths, &arguments.consents())?;
    }
    let now = SystemTime::now();
    let folder = match &arguments.output {
        Some(folder) => folder.clone(),
        None => dated_folder(now, &slug(&short_name(arguments, &plan))),
    };
    let store = Store::create(&folder)?;
    let name = store.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let run = Run {
        schema: SCHEMA,
        program_version: env!("CARGO_PKG_VERSION").into(),
        name,
        command: typed(),
        started: humantime::format_rfc3339_seconds(now).to_string(),
        seed,
        place,
        host: host_facts(&plan, &store, place),
        memory_bytes: match place {
            PlaceKind::Local => facts::memory_bytes(),
            PlaceKind::Vm | PlaceKind::Uml => Some(plan.vm.clone().unwrap_or_default().memory.0),
            PlaceKind::Sim => plan.sim.as_ref().and_then(|sim| sim.memory).map(|memory| memory.0),
        },
        tools: facts::tools(&plan, &file_systems(&plan, place)),
        left_out,
        read: Vec::new(),
        stop: None,
        elapsed_s: 0.0,
    };
    store.write_head(&run, &plan)?;
    Ok((store, Loaded { run, plan, records: Vec::new() }))
}

/// Those of its contenders that this machine's tools make: guests may have tools of their own.
fn file_systems(plan: &Plan, place: PlaceKind) -> Vec<&'static FileSystem> {
    let names = plan.contenders.iter().flat_map(|it| {
        let above = it.above.iter().map(|above| above.name.as_str());
        [it.file_system.as_str()].into_iter().chain(above)
    });
    match place {
        PlaceKind::Vm | PlaceKind::Uml => vm::file_systems_by_host(plan),
        PlaceKind::Local | PlaceKind::Sim => names.filter_map(file_system::find).collect(),
    }
}

/// The machine, and what of it the work may write to.
fn host_facts(plan: &Plan, store: &Store, place: PlaceKind) -> BTreeMap<String, String> {
    let mut told = facts::host(plan, store.folder());
    if place == PlaceKind::Local {
        let why_not = facts::why_unconfined();
        told.extend(why_not.map(|why| ("confinement".into(), format!("none: {why}"))));
        let why = facts::why_sockets_are_in_reach();
        told.extend(why.map(|why| ("sockets of daemons".into(), format!("in reach: {why}"))));
        let why = facts::why_calls_are_filtered();
        told.extend(why.map(|why| ("keys".into(), why.into())));
        let why_not = facts::why_refusals_untold();
        told.extend(why_not.map(|why| ("refused writes".into(), format!("not told: {why}"))));
    }
    if !plan.writable.is_empty() {
        told.insert("writable by the work".into(), plan.writable.join(", "));
    }
    let mapped = plan.workloads.iter().flat_map(|it| &it.map);
    let mapped: BTreeSet<String> = mapped.map(|(path, place)| format!("{path}={place}")).collect();
    if !mapped.is_empty() {
        let mapped: Vec<String> = mapped.into_iter().collect();
        told.insert("in the work's folder".into(), mapped.join(", "));
    }
    told
}

/// Chooses the place, and says at once why it is not this machine, and what of a study is left out.
fn settle(plan: &Plan, output: Option<&Path>) -> Result<Choice> {
    let choice = choose(plan, output.unwrap_or(Path::new("."))).map_err(PlaceError)?;
    if let Some(missing) = &choice.not_local {
        remark!(
            "each trial runs in a virtual machine, since this machine lacks something: \
             {missing}"
        );
    }
    if choice.place == PlaceKind::Vm
        && let Some(hint) = vm::hint(&choice.plan)
    {
        remark!("{hint}");
    }
    for contender in &choice.stood_in {
        remark!("not the kernel's own: {contender}");
    }
    for unread in &choice.unread {
        remark!("not read: {unread}");
    }
    for LeftOut { what, name, why } in &choice.left_out {
        remark!("left out: {what} {name}: {why}");
    }
    if !choice.left_out.is_empty() && choice.plan.check().is_err() {
        bail!("too little of the study can run here to compare anything: install what is missing");
    }
    Ok(choice)
}

/// The command line as it was typed, but for the program's path.
pub(super) fn typed() -> Vec<String> {
    std::iter::once("fsverdict".into()).chain(std::env::args().skip(1)).collect()
}

/// Under 2^53, so that every JSON reader keeps it exact.
pub(super) fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library keys its hash maps from the system's random numbers.
    let hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.finish() & ((1 << 53) - 1)
}

/// What the run's folder is named after.
fn short_name(arguments: &Arguments, plan: &Plan) -> String {
    let from = match (&arguments.plan, arguments.command.first()) {
        (_, Some(program)) => Path::new(program).file_stem(),
        (Some(path), None) => path.file_stem(),
        (None, None) => Path::new(&plan.workloads[0].name).file_stem(),
    };
    from.unwrap_or_default().to_string_lossy().into_owned()
}

/// `name` as part of a folder's name.
pub(super) fn slug(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Makes the bed, runs the rounds, removes the bed.
fn measure(
    arguments: &Arguments,
    store: &Store,
    loaded: &mut Loaded,
    interrupted: &Arc<AtomicBool>,
    audience: Audience,
) -> Result<Stop> {
    let judge = Judge::new(&loaded.plan);
    let judged = loaded.judged(&judge);
    let watch = RefCell::new(Watch::new(audience, store.folder(), loaded, &judged));
    let hear = |event: Event| {
        watch.borrow_mut().tell(&match event {
            Event::Writing(done_bytes, total_bytes) => News::Writing(done_bytes, total_bytes),
            Event::Step(step) => News::Step(step),
            Event::Tick => News::Tick,
        });
    };
    let mut lab;
    let mut machines;
    let mut simulated;
    let place: &mut dyn Place = match loaded.run.place {
        PlaceKind::Local => {
            let consents = arguments.consents();
            lab = Lab::new(store.folder(), consents, Arc::clone(interrupted), Box::new(hear))?;
            lab.reserve(&loaded.plan).map_err(PlaceError)?;
            &mut lab
        }
        PlaceKind::Vm | PlaceKind::Uml => {
            let stop = Arc::clone(interrupted);
            let Loaded { plan, run, .. } = &*loaded;
            let made = Vm::new(store.folder(), plan, &run.host, stop, Box::new(hear));
            machines = made.map_err(PlaceError)?;
            &mut machines
        }
        PlaceKind::Sim => {
            let config = loaded.plan.sim.clone().unwrap_or_default();
            simulated = SimPlace::new(config, loaded.run.seed);
            &mut simulated
        }
    };
    let ends = Ends { interrupted, until: arguments.until.as_deref() };
    let result = in_bed(place, store, loaded, &ends, &judge, &watch);
    watch.borrow_mut().tell(&News::Ended(&result));
    let records = store.load().map(|stored| loaded.records = stored.records);
    // Once more: what could not be put back after its trial has failed the run, which says so.
    let restored = place.restore().map_err(PlaceError);
    let removed = place.remove_bed().map_err(PlaceError);
    let left = place.left();
    let ended = result.and_then(|stop| {
        records.and(restored.map_err(Into::into))?;
        removed.context("removing the bed: fsverdict clean tries again")?;
        Ok(stop)
    });
    if left.is_empty() {
        return ended;
    }
    let left = format!("left behind: {}; fsverdict clean removes it", left.join(", "));
    Err(match ended {
        Ok(_) => anyhow::anyhow!(left),
        Err(error) => error.context(left),
    })
}

/// What ends a run besides its plan.
struct Ends<'a> {
    interrupted: &'a AtomicBool,
    /// Whether enough was measured.
    until: Option<&'a dyn Fn(&Loaded) -> bool>,
}

/// Makes the bed and runs the rounds, unless something speaks against going on. The run's own facts
/// are written only then: it is ours alone by then.
fn in_bed(
    place: &mut dyn Place,
    store: &Store,
    loaded: &mut Loaded,
    ends: &Ends<'_>,
    judge: &Judge,
    watch: &RefCell<Watch>,
) -> Result<Stop> {
    resume::check_guests(loaded, &place.bed_facts())?;
    let bed = match place.make_bed(&loaded.plan.whole_bed()) {
        Ok(bed) => bed,
        Err(_) if ends.interrupted.load(Ordering::Relaxed) => {
            store.write_head(&loaded.run, &loaded.plan)?;
            return Ok(Stop::Interrupted);
        }
        Err(error) => return Err(PlaceError(error).into()),
    };
    let trials = loaded.records.len();
    resume::tell_place(&mut loaded.run, trials, place.bed_facts());
    store.write_head(&loaded.run, &loaded.plan)?;
    rounds(place, &bed, store, loaded, ends, judge, watch)
}

/// Round after round, until the campaign ends it. The records, perhaps ten thousand, are on disk;
/// here only the campaign's summary of them is kept.
fn rounds(
    place: &mut dyn Place,
    bed: &TrialBed,
    store: &Store,
    loaded: &mut Loaded,
    ends: &Ends,
    judge: &Judge,
    watch: &RefCell<Watch>,
) -> Result<Stop> {
    let (start, before_s) = (Instant::now(), loaded.run.elapsed_s);
    let spent = || Duration::from_secs_f64(before_s) + start.elapsed();
    let mut campaign = Campaign::of(loaded.run.seed, judge, &loaded.records);
    let mut number = std::mem::take(&mut loaded.records).last().map_or(0, |last| last.number);
    loop {
        let slots = match campaign.next(spent()) {
            Next::Round(slots) => slots,
            Next::End(stop) => return Ok(stop),
        };
        let mut groups = at_once(&loaded.plan, slots).into_iter().peekable();
        while let Some(group) = groups.next() {
            let trials = documents(&loaded.plan, group, bed, store, number)?;
            trials.iter().try_for_each(|trial| empty(store, trial))?;
            number += trials.len() as u32;
            watch.borrow_mut().tell(&News::Trial(&trials[0]));
            let records = settled(place, &trials);
            loaded.run.elapsed_s = spent().as_secs_f64();
            if ends.interrupted.load(Ordering::Relaxed) {
                return Ok(Stop::Interrupted);
            }
            let next = groups.peek().map(|group| &group[0].key.workload);
            let is_last = next != Some(&trials[0].key.workload);
            for (left, record) in (0..records.len()).rev().zip(&records) {
                campaign.take(record);
                keep(store, record)?;
                let is_last = is_last && left == 0;
                let judged = is_last.then(|| loaded.judged_meanwhile(&mut campaign));
                watch.borrow_mut().tell(&News::Kept(record, judged));
            }
        }
        store.write_run(&loaded.run)?;
        if let Some(is_enough) = ends.until
            && is_enough(&store.load()?)
        {
            return Ok(Stop::Decided);
        }
    }
}

/// The trials that are run at once: those of a workload in a duet, else each alone.
fn at_once(plan: &Plan, slots: Vec<Slot>) -> Vec<Vec<Slot>> {
    let mut groups: Vec<Vec<Slot>> = Vec::new();
    for slot in slots {
        let is_its = |group: &&mut Vec<Slot>| {
            let Slot { key, .. } = &group[0];
            let is_same = (&key.workload, key.round) == (&slot.key.workload, slot.key.round);
            is_same && workload_of(plan, &slot).is_some_and(|its| plan.takes_turns(its))
        };
        match groups.last_mut().filter(is_its) {
            Some(group) => group.push(slot),
            None => groups.push(vec![slot]),
        }
    }
    groups
}

/// What the plan says of the work in `slot`.
fn workload_of<'a>(plan: &'a Plan, slot: &Slot) -> Option<&'a Workload> {
    plan.workloads.iter().find(|workload| workload.name == slot.key.workload)
}

/// The records of trials that are run at once.
fn settled(place: &mut dyn Place, trials: &[Trial]) -> Vec<Record> {
    match trials {
        [trial] if !trial.in_turns => vec![settled_trial(place, trial)],
        trials => settled_duet(place, trials),
    }
}

/// Keeps the record. A machine whose settings could not be put back measures nothing further.
fn keep(store: &Store, record: &Record) -> Result<()> {
    let failure = match &record.outcome {
        Outcome::Measured => None,
        Outcome::Failed(failure) => Some(failure.clone()),
    };
    if failure.is_some() || !store.has_record(record.number) {
        store.write_record(record)?;
    }
    match failure {
        Some(failure) if !failure.cleanup_errors.is_empty() => {
            let errors = failure.cleanup_errors.join("; ");
            anyhow::bail!("{}: {}; and then: {errors}", failure.step, failure.error)
        }
        _ => Ok(()),
    }
}

/// The documents of the trials that fill `slots`, after those up to `number`. In a duet each has a
/// part of the bed, by its place in the round, which is random.
fn documents(
    plan: &Plan,
    slots: Vec<Slot>,
    bed: &TrialBed,
    store: &Store,
    number: u32,
) -> Result<Vec<Trial>> {
    let times = slots.len() as u32;
    let own = |(place, slot): (usize, Slot)| {
        let mut trial = document(plan, slot, bed, store, number + 1 + place as u32)?;
        if plan.is_duet() {
            let devices = plan.bed.devices as usize;
            trial.bed.devices = bed.devices.chunks(devices).nth(place).context("no bed")?.to_vec();
            trial.bed.devices.truncate(trial.contender.devices_of(devices));
        }
        if plan.takes_turns(&trial.workload) {
            trial.workload = trial.workload.lasting(times);
            trial.timeouts = trial.timeouts.in_turns(times);
            trial.in_turns = true;
        }
        Ok(trial)
    };
    slots.into_iter().enumerate().map(own).collect()
}

/// Removes the folder that a killed trial has left in the place of one that begins.
fn empty(store: &Store, trial: &Trial) -> Result<()> {
    store.empty(trial.number)
}

/// The document of the trial that fills `slot`.
fn document(plan: &Plan, slot: Slot, bed: &TrialBed, store: &Store, number: u32) -> Result<Trial> {
    let folder = store.trial(number);
    let known = "the campaign names what the plan holds";
    let workload = workload_of(plan, &slot).context(known)?.clone();
    let name = &slot.key.contender;
    let arm = || plan.arms(&workload).into_iter().find(|arm| arm.name == *name);
    let contender = plan.contender(name).cloned().or_else(arm).context(known)?;
    let workload = plan.work_of(&workload, name);
    let path = |name: &str| folder.join(name).display().to_string();
    let mut bed = bed.clone();
    let directory = match bed.kind {
        BedKind::Directory => {
            let path = contender.path.as_ref().or(plan.bed.paths.first()).context("no path")?;
            bed.devices = bed::beneath(Path::new(path)).into_iter().collect();
            bed::own::of_run(Path::new(path), &bed.lab).display().to_string()
        }
        _ => {
            bed.devices.truncate(contender.devices_of(bed.devices.len()));
            mount_point().display().to_string()
        }
    };
    Ok(Trial {
        schema: SCHEMA,
        number,
        key: slot.key,
        position: slot.position,
        seed: slot.seed,
        workload,
        contender,
        bed,
        in_turns: false,
        probes: plan.probes.clone(),
        writable: plan.writable.clone(),
        timeouts: plan.timeouts(),
        directory,
        raw: path("raw"),
        series: path("series.csv"),
    })
}

/// Writes and prints the report of what was measured, however the run ended.
fn finish(
    arguments: &Arguments,
    store: &Store,
    mut loaded: Loaded,
    result: Result<Stop>,
) -> Result<u8> {
    if loaded.records.is_empty() {
        return without_records(store, arguments.resume.is_none(), result);
    }
    let judged = keep_report(store, &mut loaded, &result)?;
    let report = loaded.report(&judged);
    let json = arguments.json.as_ref().map(|_| render::json(&report));
    let status = match &result {
        Ok(Stop::Interrupted) => exit::INTERRUPTED,
        _ => status(&report),
    };
    let loaded = loaded.on_one_line();
    let judged = loaded.judged(&Judge::new(&loaded.plan));
    let shown = show(arguments, &loaded.report(&judged), json.as_deref(), store.folder());
    if result? == Stop::Interrupted {
        // If the terminal was closed, nothing is read there any more.
        return Ok(status);
    }
    shown.map(|()| status)
}

/// How a run ends that has measured nothing: where it is new, what it wrote goes.
pub(super) fn without_records(store: &Store, is_new: bool, result: Result<Stop>) -> Result<u8> {
    if is_new {
        store.discard();
    }
    let interrupted = result? == Stop::Interrupted;
    Ok(if interrupted { exit::INTERRUPTED } else { exit::FAILED })
}

/// How a run ends that nobody interrupted.
pub(super) fn status(report: &Report) -> u8 {
    let mut verdicts = report.comparisons.iter().map(|it| it.verdict).peekable();
    // One contender is compared with nobody.
    let is_void = verdicts.peek().is_some() && verdicts.all(|it| it == Verdict::Void);
    match report.failures().next() {
        Some(_) => exit::FAILED,
        None if is_void => exit::VOID,
        None => exit::DONE,
    }
}

/// Prints the report, and writes it as JSON where that is asked for.
fn show(arguments: &Arguments, report: &Report, json: Option<&str>, folder: &Path) -> Result<()> {
    let folder = near(folder);
    let kept = Kept { path: &folder.display().to_string(), is_packed: false };
    let answer = render::answered(report, kept, arguments.look.verbose);
    let details = arguments.look.verbose.then(|| render::details(report));
    let page = format!("\nReport: {}", folder.join("report.html").display());
    match arguments.json.as_deref().zip(json) {
        Some((file, json)) if file.as_os_str() == "-" => {
            details.iter().chain([&answer]).for_each(|text| say::tell_people(&text.plain()));
            say::tell_people(&page);
            Ok(say::print(json)?)
        }
        file => {
            for text in details.iter().chain([&answer]) {
                say::print("\n")?;
                say::show(text, arguments.look)?;
            }
            say::print(&format!("{page}\n"))?;
            file.map_or(Ok(()), |(file, json)| write_out(file, json))
        }
    }
}

/// A folder as one would type it from here.
fn near(folder: &Path) -> PathBuf {
    let current = std::env::current_dir().ok().and_then(|it| it.canonicalize().ok());
    let below = current.and_then(|it| folder.strip_prefix(it).ok().map(Path::to_path_buf));
    below.filter(|it| !it.as_os_str().is_empty()).unwrap_or_else(|| folder.to_path_buf())
}

/// Judges what was measured, and writes the report into the run's folder.
pub(super) fn keep_report(
    store: &Store,
    loaded: &mut Loaded,
    result: &Result<Stop>,
) -> Result<Judged> {
    loaded.run.stop = result.as_ref().ok().copied();
    store.write_run(&loaded.run)?;
    let judged = loaded.judged(&Judge::new(&loaded.plan));
    store.write_report(&loaded.report(&judged))?;
    Ok(judged)
}

/// Prints what the run would do, up to the end of its next round.
fn dry_run(arguments: &Arguments) -> Result<u8> {
    let (store, plan, records) = match &arguments.resume {
        Some(folder) => {
            let store = Store::open(folder)?;
            let loaded = store.load()?;
            resume::check_limits(&loaded, folder)?;
            let mut plan = loaded.plan;
            let extended = plan.judgement.extend(arguments.rounds, arguments.budget);
            extended.map_err(|why| Usage(format!("the run {why}")))?;
            (store, plan, loaded.records)
        }
        None => (Store::imagined("RUN"), plan::plan(arguments)?, Vec::new()),
    };
    preflight::check_plan(&plan).map_err(|error| Usage(error.to_string()))?;
    let seed = plan.seed.unwrap_or_else(random_seed);
    let mut dry = match plan.named_place() {
        Some(PlaceKind::Vm | PlaceKind::Uml) => DryRun::in_machines(&plan),
        _ => DryRun::default(),
    };
    dry.remark(&format!("what takes longer is ended: {}", plan.timeouts()));
    for held in plan.held_down() {
        dry.remark(&held);
    }
    let bed = dry.make_bed(&plan.whole_bed()).map_err(PlaceError)?;
    let next = campaign::next_round(seed, &Judge::new(&plan), &records, Duration::ZERO);
    let slots = match next {
        Next::Round(slots) => slots,
        Next::End(stop) => {
            dry.remark(&format!("nothing more would be measured: {}", stop.because()));
            Vec::new()
        }
    };
    if !slots.is_empty() {
        let mut number = records.last().map_or(0, |last| last.number);
        for group in at_once(&plan, slots) {
            let names: Vec<&str> = group.iter().map(|slot| &*slot.key.contender).collect();
            let Key { round, workload, .. } = &group[0].key;
            dry.remark(&format!("round {round}: {workload}, {}", names.join(", ")));
            let trials = documents(&plan, group, &bed, &store, number)?;
            number += trials.len() as u32;
            settled(&mut dry, &trials);
        }
        dry.remark("and so on, each round in an order of its own, until the campaign ends");
    }
    dry.remove_bed().map_err(PlaceError)?;
    for line in dry.into_lines() {
        say::print(&format!("{line}\n"))?;
    }
    Ok(exit::DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runs_folder_has_its_date() {
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_903_999);
        assert_eq!(dated_folder(started, "ext4-xfs"), Path::new("runs/20260131-235959-ext4-xfs"));
    }
}
