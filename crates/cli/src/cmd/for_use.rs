//! `fsverdict for`: from a use and a place to one recommendation.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use clap_complete::engine::ArgValueCandidates;
use fsverdict_core::judge;
use fsverdict_core::model::{
    Above, Bed, BedKind, Bytes, Contender, Layer, Need, Place, Plan, Purpose, Span, Stop,
    module_file,
};
use fsverdict_core::render::{self, Recommendation, Report};
use fsverdict_host::bed::{self, Consent, Consents};
use fsverdict_host::file_system;
use fsverdict_host::place::doctor::Machine;
use fsverdict_host::place::facts;

use super::arguments::{Arguments as RunArguments, PlaceName, Stack, Until};
use super::{advise, plan, run};
use crate::exit::{self, Usage};
use crate::say::{self, remark};
use crate::watch::Wish;
use crate::{offers, shipped, uses};

/// Which file system is best for a use, on a disk of yours?
///
/// Does the work of the use on each file system, on images beside the directory. Stops when the
/// answer is clear or the time is up, removes the images, and prints one recommendation with its
/// reasons and the lines for mkfs, mount and fstab. Without --erase nothing that is there is
/// touched.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Arguments {
    /// A use, or a plan: fsverdict list uses, fsverdict list plans.
    #[arg(value_name = "USE", add = ArgValueCandidates::new(offers::uses))]
    name: String,
    /// Where to measure: a directory or a mounted device; another device with --erase or
    /// --in-memory.
    #[arg(long, value_name = "DIRECTORY|DEVICE")]
    on: PathBuf,
    /// The file systems to choose from [default: the plan's, or ext4, xfs and btrfs].
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        add = ArgValueCandidates::new(offers::file_systems)
    )]
    fs: Vec<String>,
    /// Choose among the contenders on these layers [default: the bare disk, or the first there is].
    #[arg(long, value_name = "LAYER+...", value_parser = Layer::parse_stack)]
    layers: Option<Stack>,
    /// Time at most.
    #[arg(long, value_name = "TIME", default_value = "30m")]
    budget: Span,
    /// Measure in memory, with the disk's flags: the file systems' own work, not the disk's.
    #[arg(long, conflicts_with = "erase")]
    in_memory: bool,
    /// Measure on the device itself, which is not mounted, and erase it; with what it carries, if
    /// anything: /dev/sdb=gpt,ext4.
    #[arg(long, value_name = "PATH[=SIGNATURE,...]")]
    erase: Vec<Consent>,
    /// Erase data without a signature, too.
    #[arg(long, requires = "erase")]
    erase_data: bool,
    /// Size of each image, which is written full: with work in turns each file system has one
    /// [default: the plan's, or 4G].
    #[arg(long)]
    size: Option<Bytes>,
    /// Multiply every size, count and time.
    #[arg(long, value_name = "FACTOR", value_parser = super::arguments::scale)]
    scale: Option<f64>,
    /// Who runs the trials: this machine, a virtual one for each, or a simulated one.
    #[arg(long, value_enum)]
    place: Option<PlaceName>,
    /// The run's folder [default: runs/TIME-USE].
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Only say what it would do, and how long it would take.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    watching: Wish,
}

const EXAMPLES: &str = "\
Examples:
  sudo fsverdict for postgresql --on /srv
  sudo fsverdict for database --on /srv --fs ext4,xfs --budget 1h
  sudo fsverdict for mail --on /dev/sdb --erase /dev/sdb";

/// Measures, and recommends.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let purpose = uses::purpose(&arguments.name)?;
    let target = Target::of(arguments)?;
    let plan = planned(arguments, &purpose, &target)?;
    say::tell(&beforehand(arguments, &plan, &target));
    if arguments.dry_run {
        return Ok(exit::DONE);
    }
    let folder = arguments.output.clone();
    let folder = folder.unwrap_or_else(|| run::dated_folder(SystemTime::now(), &arguments.name));
    let consents = Consents { named: arguments.erase.clone(), data: arguments.erase_data };
    let typed = |file: &Path| {
        let typed = RunArguments::of_plan(file, &folder, &consents)?;
        let purpose = purpose.clone();
        let until: Until = Box::new(move |loaded| advise::is_decided(loaded, &purpose));
        let watching = arguments.watching.clone();
        Ok(RunArguments { watching, until: Some(until), place: arguments.place, ..typed })
    };
    let (loaded, stop) = run::anew(&plan, &folder, typed)?;
    if loaded.records.iter().all(|record| !record.is_measured()) {
        say::tell(&format!("No trial was measured: fsverdict report {}", folder.display()));
        return Ok(if stop == Stop::Interrupted { exit::INTERRUPTED } else { exit::FAILED });
    }
    let judged = loaded.judged(&judge::Judge::new(&loaded.plan));
    let report = loaded.report(&judged);
    say::print(&recommended(arguments, &purpose, &target, &report, &folder))?;
    if stop == Stop::Interrupted {
        return Ok(exit::INTERRUPTED);
    }
    Ok(run::status(&report))
}

/// What `--on` is.
struct Target {
    bed: Bed,
    /// The file system that is there.
    now: Option<String>,
    /// The device and the place of the lines to type.
    device: String,
    at: String,
    /// Where the trials go, for a person.
    made_on: String,
}

impl Target {
    fn of(arguments: &Arguments) -> Result<Target> {
        let on = &arguments.on;
        let shown = on.display();
        let kind = fs::metadata(on).map_err(|error| Usage(format!("--on {shown}: {error}")))?;
        let kind = kind.file_type();
        let path = on.canonicalize().with_context(|| format!("--on {shown}"))?;
        let keep = |why: String| match arguments.erase.is_empty() {
            true => Ok(()),
            false => Err(Usage(format!("--erase: {why}"))),
        };
        if kind.is_dir() {
            keep(format!("{shown} is a directory, and what it lies on stays: leave --erase out"))?;
            return Ok(Target::beside(arguments, &path, "DEVICE"));
        }
        if !kind.is_block_device() {
            return Err(Usage(format!("--on {shown}: give a directory or a device")).into());
        }
        let device = path.display().to_string();
        match facts::mounted_at(&path)? {
            Some(at) => {
                keep(format!(
                    "{device} is mounted at {at}: unmount it to measure on it, or leave --erase \
                     out to measure beside what it holds"
                ))?;
                Ok(Target::beside(arguments, Path::new(&at), &device))
            }
            None => Target::bare(arguments, device),
        }
    }

    /// Images beside what is in `directory`.
    fn beside(arguments: &Arguments, directory: &Path, device: &str) -> Target {
        let at = directory.display().to_string();
        let now = facts::file_system_at(directory);
        let mut bed = Bed { dir: Some(at.clone()), ..Bed::default() };
        let mut made_on =
            format!("in {at}, written full, removed at the end; nothing else there is touched");
        if arguments.in_memory {
            let like = bed::beneath(directory).map(|it| it.path);
            bed = Bed { kind: BedKind::Ram, like, ..Bed::default() };
            made_on = format!("memory: nothing is written to {at}");
        }
        Target { bed, now, device: device.into(), at, made_on }
    }

    /// A device that is not mounted.
    fn bare(arguments: &Arguments, device: String) -> Result<Target> {
        let (bed, made_on) = match (arguments.in_memory, arguments.erase.is_empty()) {
            (true, _) => {
                let like = Some(device.clone());
                let bed = Bed { kind: BedKind::Ram, like, ..Bed::default() };
                (bed, format!("memory with the flags of {device}, which is not touched"))
            }
            (false, false) if arguments.size.is_some() => {
                let text = "--size is an image's: a device is measured whole, so leave it out";
                return Err(Usage(text.into()).into());
            }
            (false, false) => {
                // As it was typed: the guard wants the same text twice.
                let paths = vec![arguments.on.display().to_string()];
                let bed = Bed { kind: BedKind::Device, paths, ..Bed::default() };
                (bed, format!("{device} itself, which is ERASED, again and again"))
            }
            (false, true) => {
                let text = format!(
                    "{device} is not mounted: mount it and give its directory, or measure on it \
                     and lose what it holds with --erase {device}, or in memory with --in-memory"
                );
                return Err(Usage(text).into());
            }
        };
        Ok(Target { bed, now: None, device, at: "/mnt".into(), made_on })
    }
}

/// The use's plan on that bed, with the file systems that can be made here.
fn planned(arguments: &Arguments, purpose: &Purpose, target: &Target) -> Result<Plan> {
    let shipped = shipped::PLANS.iter().find(|(name, _)| *name == purpose.name);
    let shipped = shipped.map(shipped::parse).transpose()?;
    let mut plan = shipped.unwrap_or_else(|| purpose.plan());
    let size = arguments.size.unwrap_or(plan.bed.size);
    plan.bed = match target.bed.kind {
        BedKind::Device => Bed { size, ..target.bed.clone() },
        // How many images there are, and what they are held down to, is the use's.
        _ => Bed { size, devices: plan.bed.devices, limits: plan.bed.limits, ..target.bed.clone() },
    };
    plan.place = arguments.place.map(Place::from);
    if !arguments.fs.is_empty() {
        plan.contenders = plan::named_contenders(&arguments.fs);
    } else {
        if plan.contenders.is_empty() {
            plan.contenders = plan::named_contenders(&["ext4", "xfs", "btrfs"].map(String::from));
        }
        if plan.place.is_none() {
            leave_out(&mut plan);
        }
    }
    on_one_stack(&mut plan, arguments.layers.as_ref())?;
    if plan.contenders.len() < 2 {
        let text = "there is nothing to choose from: name two file systems or more, --fs ext4,xfs";
        return Err(Usage(text.into()).into());
    }
    plan.judgement.rounds = None;
    plan.judgement.budget = Some(arguments.budget);
    plan.judgement.whole = true;
    if let Some(scale) = arguments.scale {
        plan = plan.scaled(scale).map_err(Usage)?;
    }
    plan.check()?;
    Ok(in_turns(plan))
}

/// Leaves out contenders on other layers than one chooses among: these are a condition, no choice.
fn on_one_stack(plan: &mut Plan, asked: Option<&Stack>) -> Result<()> {
    let layers = advise::stack(plan, asked)?;
    let mut others = plan.stacks();
    others.retain(|stack| *stack != layers);
    if !others.is_empty() {
        let others = others.join(", --layers ");
        remark!("comparing only those on {layers}: layers are not a choice; or --layers {others}");
    }
    plan.contenders.retain(|it| it.stack() == layers);
    let reference = plan.judgement.reference.take();
    plan.judgement.reference = reference.filter(|name| plan.contender(name).is_some());
    Ok(())
}

/// The plan with work in turns, where this machine can do it: they decide sooner.
fn in_turns(plan: Plan) -> Plan {
    let machine = Machine::new(plan.bed.dir.as_ref().map_or(Path::new("."), Path::new));
    let turned = plan.clone().in_turns_where_it_can();
    match turned.fitted(Place::Local, &machine.asked()) {
        Ok(_) => turned,
        Err(_) => plan,
    }
}

/// Leaves out what this machine can't make, as long as there are two to compare.
fn leave_out(plan: &mut Plan) {
    let machine = Machine::new(Path::new("."));
    let asked = machine.asked();
    let unmet = |name: &str| asked.answer(&Need::FileSystem(name.into())).unmet();
    let able = plan.contenders.iter().filter(|it| unmet(&it.file_system).is_none()).count();
    if able >= 2 {
        plan.contenders.retain(|it| match unmet(&it.file_system) {
            Some(why) => {
                remark!("left out: {}: {why}", it.name);
                false
            }
            None => true,
        });
    }
}

/// What it will do, and how long.
fn beforehand(arguments: &Arguments, plan: &Plan, target: &Target) -> String {
    let names: Vec<&str> = plan.contenders.iter().map(|it| it.name.as_str()).collect();
    let work: Vec<&str> = plan.workloads.iter().map(|it| it.name.as_str()).collect();
    let rows = [
        ("compared", names.join(", ")),
        ("by", work.join(", ")),
        ("made on", format!("{}{}", amount(plan), target.made_on)),
        ("time", format!("until it is decided, {} at most", arguments.budget)),
    ];
    let heading = format!("{} on {}: {}", arguments.name, arguments.on.display(), plan.question);
    render::beforehand(&heading, &rows)
}

/// How much the trials are made on: in turns each contender has an image of its own.
fn amount(plan: &Plan) -> String {
    let (size, count) = (plan.bed.size, plan.whole_bed().devices);
    let all = Bytes(size.0.saturating_mul(u64::from(count)));
    match (plan.bed.kind, count) {
        (BedKind::Device, _) => String::new(),
        (BedKind::Ram, _) => format!("{all} of "),
        (_, 1) => format!("an image of {size} "),
        (_, count) => format!("{count} images of {size}, {all} together, "),
    }
}

fn recommended(
    arguments: &Arguments,
    purpose: &Purpose,
    target: &Target,
    report: &Report,
    folder: &Path,
) -> String {
    let Report { run, plan, records, .. } = *report;
    let documented = advise::documented(plan, records, purpose);
    let margin = plan.judgement.margin;
    let layers = plan.stacks().swap_remove(0);
    let advice = judge::advise(&run.name, plan, records, purpose, documented, margin, &layers);
    let folder = folder.display().to_string();
    let line = |words: &[&str]| render::command(words).join(" ");
    let weights = line(&["fsverdict", "advise", &folder, "--for", &arguments.name]);
    let mut next =
        vec![format!("{weights}   # the weights"), line(&["fsverdict", "report", &folder, "-v"])];
    let is_open = !matches!(run.stop, Some(Stop::Settled | Stop::Decided));
    if is_open && !render::is_hopeless(report) {
        let longer = Span(arguments.budget.0.max(Duration::from_secs(60)) * 2).to_string();
        let mut words: Vec<&str> = render::program(run, plan).split(' ').collect();
        words.extend(["run", "--resume", &folder, "--budget", &longer]);
        let consents = render::consents(plan);
        words.extend(consents.iter().map(String::as_str));
        next.push(format!("{}   # go on", line(&words)));
    }
    let lines = |name: &str| lines(plan, target, name);
    render::recommendation(&Recommendation {
        advice: &advice,
        now: target.now.as_deref(),
        lines: &lines,
        open: &render::outlook(report),
        doubt: render::doubt(report, &advice.findings),
        next: &next,
    })
}

/// What makes, mounts and keeps a contender, with all else that it is set to.
fn lines(plan: &Plan, target: &Target, name: &str) -> Vec<String> {
    let Some(contender) = plan.contender(name) else { return Vec::new() };
    let Some(known) = file_system::find(&contender.file_system) else { return Vec::new() };
    let is_there = target.now.as_deref() == Some(contender.file_system.as_str());
    let mut lines = beneath(contender);
    lines.extend(match is_there && contender.mkfs.is_empty() {
        true if contender.mount.is_empty() => Vec::new(),
        is_made => {
            let all = known.typed(&contender.mkfs, &contender.mount, &target.device, &target.at);
            let told = |line: String| match line.starts_with("mkfs") {
                true if is_made => None,
                true => Some(format!("{line}   # erases {}", target.device)),
                false => Some(line),
            };
            all.into_iter().filter_map(told).collect()
        }
    });
    lines.extend(settings(contender).map(|it| format!("{it}   # as the plan has it")));
    lines
}

/// On what it is made, which no line here makes.
fn beneath(contender: &Contender) -> Vec<String> {
    let words = |what: &str, words: &str| (!words.is_empty()).then(|| format!("# {what}: {words}"));
    let layers = Layer::stack(&contender.layers);
    let (parted, booted) = (contender.partition.join(" "), contender.parameters.join(" "));
    let above = Above::stack(&contender.above);
    let told = [
        words("on a partition, as parted makes it", &parted),
        words("on these layers, the first next to the disk", &layers),
        words("on the kernel's command line", &booted),
        words("stands on it", &above),
    ];
    told.into_iter().flatten().collect()
}

/// What else is set: the disk's queue, the kernel, its modules, and the application.
fn settings(contender: &Contender) -> impl Iterator<Item = String> {
    let queue = contender.queue.iter();
    let queue = queue.map(|(file, value)| format!("echo {value} > /sys/block/DISK/queue/{file}"));
    let sysctl = contender.sysctl.iter();
    let sysctl = sysctl.map(|(name, value)| format!("sysctl -w '{name}={value}'"));
    let module = contender.module.iter().filter_map(|(name, value)| {
        let file = module_file(name)?;
        Some(format!("echo {value} > /sys/module/{file}"))
    });
    let environment = contender.environment.iter();
    let environment = environment.map(|(name, value)| format!("{name} = {value}"));
    queue.chain(sysctl).chain(module).chain(environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_have_a_contender_is_told_with_all_that_it_is_set_to() {
        let text = r#"
            [[contender]]
            name = "tuned"
            file_system = "xfs"
            mkfs = ["-m", "reflink=0"]
            mount = ["noatime"]
            layers = ["luks:sector_size=4k"]
            queue = { scheduler = "none" }
            sysctl = { "vm.dirty_ratio" = 5 }
            module = { "dm_crypt.max_read_size" = 65536 }
            environment = { PAGES = "huge" }
            [[workload]]
            name = "w"
            command = "true"
        "#;
        let plan = Plan::parse(text).unwrap();
        let target = Target {
            bed: Bed::default(),
            now: Some("ext4".into()),
            device: "DEVICE".into(),
            at: "/srv".into(),
            made_on: String::new(),
        };
        let lines = lines(&plan, &target, "tuned");
        let told = [
            "# on these layers, the first next to the disk: luks:sector_size=4k",
            "mkfs.xfs -m reflink=0 DEVICE   # erases DEVICE",
            "mount -t xfs -o noatime DEVICE /srv",
            "DEVICE /srv xfs noatime 0 0   # in /etc/fstab, better by UUID=",
            "echo none > /sys/block/DISK/queue/scheduler   # as the plan has it",
            "sysctl -w 'vm.dirty_ratio=5'   # as the plan has it",
            "echo 65536 > /sys/module/dm_crypt/parameters/max_read_size   # as the plan has it",
            "PAGES = huge   # as the plan has it",
        ];
        assert_eq!(lines, told);
    }
}
