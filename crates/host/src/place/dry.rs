//! The host and place that only say what they would do: `--dry-run`.

use std::collections::BTreeMap;
use std::path::Path;

use fsverdict_core::model::{
    self, Attachment, Bed, BedKind, Contender, Device, Plan, Record, TURN, Trial, TrialBed,
};
use fsverdict_core::run::{self, Effect, Host, HostError, Place, Step};

use super::trial::site::{self, Level, command_of, levels, raw_device, scene, work_directory};
use super::trial_process::{mount_point, trial_argv};
use super::{link, vm};
use crate::bed::{Flushes, Like, partition};
use crate::file_system::{self, FileSystem, daemon};
use crate::layer;
use crate::machine::settings;
use crate::machine::throttle::{self, Means};
use crate::tool::shown;
use crate::workload::printed::Outputs;
use crate::workload::relay::Relay;
use crate::workload::{self, engine::Act};

/// Writes down every command and every write to /proc and /sys, as shell lines.
#[derive(Debug, Default)]
pub struct DryRun {
    lines: Vec<String>,
    devices: Vec<String>,
    /// Those on which limits are put, where these are others.
    held: Vec<String>,
    /// How often the file system was mounted.
    mounts: u32,
    /// The plan, where its trials run in virtual machines.
    machines: Option<Plan>,
}

impl DryRun {
    /// For a plan whose trials run in virtual machines.
    pub fn in_machines(plan: &Plan) -> Self {
        DryRun { machines: Some(plan.clone()), ..DryRun::default() }
    }

    /// The images that are a guest's disks, and how it will call them.
    fn make_images(&mut self, bed: &Bed) {
        let place = self.machines.as_ref().and_then(Plan::named_place);
        let is_uml = place == Some(model::Place::Uml);
        for (number, letter) in (0..bed.devices).zip('b'..='z') {
            let dir = match bed.kind {
                BedKind::Ram => "/dev/shm",
                _ => bed.dir.as_deref().unwrap_or("RUN"),
            };
            self.say(format!("fallocate -l {} {dir}/{number}.img", bed.size));
            if is_uml {
                self.say(format!("ln -s {dir}/{number}.img RUN/vm/disk{}", number + 1));
            }
            self.devices.push(format!("/dev/{}{letter}", if is_uml { "ubd" } else { "vd" }));
        }
        self.remark("write them full once, and pack what the guests need into RUN/vm/0.cpio");
    }

    fn make_device(&mut self, bed: &Bed, number: u32) {
        if bed.zram {
            self.say("cat /sys/class/zram-control/hot_add");
            self.say(format!("echo {} > /sys/block/zram{number}/disksize", bed.size.0));
            self.devices.push(format!("/dev/zram{number}"));
            return;
        }
        let memory = bed.kind == BedKind::Ram;
        let dir = if memory { "/dev/shm" } else { bed.dir.as_deref().unwrap_or("RUN") };
        let image = format!("{dir}/{number}.img");
        self.say(format!("fallocate -l {} {image}", bed.size));
        self.remark(&format!("write {image} full once, so that no trial allocates it"));
        let direct = if memory { "" } else { " --direct-io=on" };
        self.say(format!("losetup{direct} /dev/loop{number} {image}"));
        self.devices.push(format!("/dev/loop{number}"));
    }

    /// Limits are put on the devices made so far; a file system lies on loop devices upon these.
    fn lay_upon(&mut self) {
        let is_loop = |device: &&String| device.starts_with("/dev/loop");
        let first = self.devices.iter().filter(is_loop).count();
        self.held = std::mem::take(&mut self.devices);
        for (number, lower) in (first..).zip(self.held.clone()) {
            self.say(format!("losetup --direct-io=on /dev/loop{number} {lower}"));
            self.devices.push(format!("/dev/loop{number}"));
        }
    }

    /// The trial's file system, as its machine has it.
    fn known(&self, trial: &Trial) -> Option<&'static FileSystem> {
        let of_guest = |plan| vm::file_system(plan, &trial.contender);
        let local = || file_system::find(&trial.contender.file_system);
        self.machines.as_ref().and_then(of_guest).or_else(local)
    }

    /// Everything said so far, a line each.
    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }

    /// A remark between the commands.
    pub fn remark(&mut self, text: &str) {
        self.lines.push(format!("# {text}"));
    }

    fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn set(&mut self, settings: Vec<settings::Setting>) {
        for setting in settings {
            let line = setting.knob.line().map_or("", |_| "MAJOR:MINOR ");
            let path = setting.knob.to_string().replace("0:0", "MAJOR:MINOR");
            self.say(format!("echo {line}{} > {path}", setting.value));
        }
    }

    /// The devices say what the disk says that they must be like. Only a run sees which disk images
    /// lie on.
    fn be_like(&mut self, bed: &Bed) {
        let of_named = bed.like.as_deref().map(|name| (name, Like::named(name)));
        match (of_named, bed.kind) {
            (Some((_, Some(like))), _) => {
                let flushes = match bed.kind {
                    BedKind::Device => Flushes::Own,
                    BedKind::Ram => Flushes::Kept,
                    _ => Flushes::Like,
                };
                for _ in 0..self.devices.len() {
                    self.set(like.settings([0, 0], flushes));
                }
            }
            (Some((path, None)), _) => {
                self.remark(&format!("give its queue the flags of {path}"));
            }
            (None, BedKind::Ram) if !bed.zram => {
                self.remark("give its queue the flags of an SSD");
            }
            (None, BedKind::Loop) => {
                self.remark("give its queue the flags of the disk beneath");
            }
            _ => {}
        }
    }

    fn limit(&mut self, trial: &Trial) {
        let (root, devices) = (Path::new("/"), &trial.bed.devices);
        let rules = throttle::rules(root, trial.limits(), devices);
        if !self.held.is_empty() {
            self.remark(&format!("MAJOR:MINOR are those of {}", self.held.join(", ")));
        }
        match (Means::of(root), rules, trial.limits()) {
            (Ok(Means::Root), Ok(rules), _) => self.set(rules),
            (Ok(Means::Own), _, Some(limits)) => {
                self.say("echo '+io +memory' > /sys/fs/cgroup/cgroup.subtree_control");
                for device in devices {
                    let line = throttle::line(device, limits).replace("0:0", "MAJOR:MINOR");
                    self.say(format!("echo {line} > /sys/fs/cgroup/fsverdict-trial-RUN-1/io.max"));
                }
            }
            _ => self.remark("limits can't be set on this machine"),
        }
    }

    fn in_work(&mut self, trial: &Trial, argv: &[String]) {
        self.say(format!("(cd {} && {})", work_directory(trial).display(), shown(argv)));
    }

    fn command(&mut self, step: Step, trial: &Trial) {
        if let Some(command) = command_of(step, &trial.workload) {
            self.in_work(trial, &command.argv());
        }
    }

    fn link(&mut self, trial: &Trial) {
        let clients = link::clients();
        let clients = clients.display();
        self.remark(&format!("in a network of the work's own; that of its clients is {clients}"));
        let commands = trial.workload.link().map(link::commands).unwrap_or_default();
        self.lines.extend(commands.iter().map(|argv| shown(argv)));
    }

    fn work(&mut self, step: Step, trial: &Trial) -> Result<(), HostError> {
        self.engine(step, trial)?;
        self.sync(trial, &work_directory(trial).display().to_string());
        self.remark("that ends the timed part");
        Ok(())
    }

    fn file_system(&mut self, step: Step, trial: &Trial) -> Result<(), HostError> {
        let levels = levels(trial, self.known(trial))?;
        match step {
            Step::MakeFileSystem => self.level(step, &levels[0]),
            Step::Unmount if levels[0].pack().is_some() && self.mounts == 1 => {
                self.lines.extend(levels[0].pack().map(|argv| shown(&argv)));
                self.level(step, &levels[0]);
            }
            Step::Unmount => levels.iter().rev().for_each(|level| self.level(step, level)),
            _ => {
                for level in &levels {
                    if levels.len() > 1 {
                        self.say(format!("mkdir -p {}", level.at));
                    }
                    if level.file_system.is_upon && self.mounts == 0 {
                        self.level(Step::MakeFileSystem, level);
                    }
                    self.level(step, level);
                }
            }
        }
        match step {
            Step::MakeFileSystem => self.mounts = 0,
            Step::Mount => self.mounts += 1,
            _ => {}
        }
        Ok(())
    }

    fn level(&mut self, step: Step, level: &Level) {
        let daemon = level.file_system.daemon;
        if let Some(daemon) = daemon.filter(|_| step != Step::Unmount) {
            for folder in daemon.folders {
                self.say(daemon::cover_argv(folder).join(" "));
            }
            self.say(format!("{} &", daemon.argv.join(" ")));
        }
        if let Some((argv, _)) = level.listener().filter(|_| step == Step::Mount) {
            self.say(format!("{} &", shown(&argv)));
        }
        for argv in level.commands(step, self.mounts > 0) {
            self.say(shown(&argv));
        }
        if step == Step::Unmount {
            self.lines.extend(level.take_down().iter().map(|argv| shown(argv)));
        }
        if let Some(server) = level.server().filter(|_| step == Step::Mount) {
            self.say(format!("{} &", shown(&server)));
        }
        if daemon.is_some() && step != Step::Mount {
            self.say("kill -KILL %%");
        }
    }

    fn layers(&mut self, trial: &Trial) {
        let devices: Vec<String> = trial.bed.devices.iter().map(|it| it.path.clone()).collect();
        // Those that are made in their place are empty.
        let cleared = if layer::takes_place(&trial.contender.layers) { &[][..] } else { &devices };
        let clear = cleared.iter().map(|device| layer::clear_argv(device));
        let made = layer::stack(&trial.contender.layers, &devices, &site::names(trial));
        let commands = clear.chain(made.into_iter().flat_map(|it| it.commands));
        self.lines.extend(commands.map(|argv| shown(&argv)));
        if self.machines.is_none() {
            self.remark("these are taken down when the trial is over");
        }
    }

    fn sync(&mut self, trial: &Trial, directory: &str) {
        match raw_device(trial) {
            Ok(device) if trial.contender.is_raw() => return self.say(format!("sync {device}")),
            _ => self.say(format!("sync -f {directory}")),
        }
        let levels = levels(trial, self.known(trial)).unwrap_or_default();
        let mut reached = true;
        for level in levels.iter().rev() {
            if !reached {
                self.say(format!("sync -f {}", level.at));
            }
            self.lines.extend(level.commit().map(|argv| shown(&argv)));
            reached = !level.keeps_syncfs();
        }
        if !reached && !levels.is_empty() {
            self.say(format!("sync {}", site::devices(trial).join(" ")));
        }
    }

    /// What the work's engine would do in this step.
    fn engine(&mut self, step: Step, trial: &Trial) -> Result<(), HostError> {
        let environment = BTreeMap::new();
        let (outputs, relay) = (Outputs::default(), Relay::default());
        let scene = scene(trial, &environment, None, &outputs, &relay)?;
        for act in workload::engine(trial.workload.work()?).dry(step, &scene)? {
            match act {
                Act::Command(argv) => self.in_work(trial, &argv),
                Act::Within(what) => self.remark(&format!("{step}: {what}, within fsverdict")),
            }
        }
        Ok(())
    }
}

impl Host for DryRun {
    fn perform(&mut self, step: Step, trial: &Trial) -> Result<Effect, HostError> {
        let directory = work_directory(trial).display().to_string();
        match step {
            Step::Partition | Step::RemovePartition => {
                for device in &trial.bed.devices {
                    self.say(shown(&match step {
                        Step::Partition => {
                            partition::make_argv(&trial.contender.partition, &device.path)
                        }
                        _ => partition::remove_argv(&device.path),
                    }));
                }
            }
            Step::Layers => self.layers(trial),
            Step::MakeFileSystem | Step::Mount | Step::Unmount => {
                self.file_system(step, trial)?;
                if step == Step::Mount {
                    self.say(format!("mkdir -p {directory}"));
                }
            }
            Step::MakeDirectory => self.say(format!("mkdir -p {directory}")),
            Step::RemoveDirectory => self.say(format!("rm -r {directory}")),
            Step::Link => self.link(trial),
            Step::Setup | Step::Prepare | Step::Check => self.command(step, trial),
            Step::Fill => self.engine(step, trial)?,
            Step::Sync => self.sync(trial, &directory),
            Step::DropCaches => self.say("echo 3 > /proc/sys/vm/drop_caches"),
            Step::Limit if self.machines.is_some() => {}
            Step::Limit => self.limit(trial),
            Step::Settle => self.remark("wait until the device is at rest"),
            Step::Work(_) => self.work(step, trial)?,
            Step::Figures => self.remark(
                "read the figures that the work has printed, or written to $FSVERDICT_FIGURES",
            ),
            Step::Cleanup => {
                self.command(step, trial);
                self.engine(step, trial)?;
            }
        }
        Ok(Effect::Done)
    }

    fn clean_up(&mut self, _trial: &Trial) -> Vec<String> {
        Vec::new()
    }

    fn clock_ns(&mut self) -> u64 {
        0
    }
}

impl Place for DryRun {
    fn make_bed(&mut self, bed: &Bed) -> Result<TrialBed, HostError> {
        if self.machines.is_some() {
            self.make_images(bed);
            // QEMU holds a guest's disks down to their limits.
            let devices = devices(&self.devices);
            return Ok(TrialBed { kind: bed.kind, devices, ..TrialBed::default() });
        }
        match bed.kind {
            BedKind::Device => self.devices = bed.paths.clone(),
            BedKind::Directory => {}
            BedKind::Loop | BedKind::Ram => {
                (0..bed.devices).for_each(|number| self.make_device(bed, number));
                if bed.is_limited() {
                    self.lay_upon();
                }
            }
        }
        self.be_like(bed);
        let (kind, devices, limits) = (bed.kind, devices(&self.devices), bed.limits);
        Ok(TrialBed { kind, devices, limits, ..TrialBed::default() })
    }

    fn apply(&mut self, contender: &Contender, bed: &TrialBed) -> Result<(), HostError> {
        self.set(settings::wanted(contender, &attached(bed, contender.disks).devices));
        Ok(())
    }

    fn run_trial(&mut self, trial: &Trial) -> Result<Record, HostError> {
        let folder = Path::new(&trial.raw).parent().unwrap_or(Path::new("."));
        if let Some(plan) = &self.machines {
            let argv = vm::imagined(plan, trial)?;
            self.say(shown(&argv));
        }
        let (input, output) = (folder.join("trial.json"), folder.join("record.json"));
        self.say(shown(&trial_argv(&input, &output)));
        let from = self.lines.len();
        let bed = attached(&trial.bed, trial.contender.disks);
        let record = run::trial(self, &Trial { bed, ..trial.clone() });
        for line in &mut self.lines[from..] {
            line.insert_str(0, "    ");
        }
        Ok(record)
    }

    fn run_duet(&mut self, trials: &[Trial]) -> Vec<Result<Record, HostError>> {
        let turns = match trials.iter().all(|trial| trial.workload.fio.is_some()) {
            true => format!("of {} ms (SIGSTOP, SIGCONT)", TURN.as_millis()),
            false => "that have a share of it each".into(),
        };
        self.remark(&format!(
            "all of them at once: each waits before its work, which then goes on in turns {turns}, \
             in an order drawn for each cycle"
        ));
        trials.iter().map(|trial| self.run_trial(trial)).collect()
    }

    fn restore(&mut self) -> Result<(), HostError> {
        self.remark("put back every setting that was changed");
        Ok(())
    }

    fn remove_bed(&mut self) -> Result<(), HostError> {
        if !self.held.is_empty() {
            for upper in std::mem::replace(&mut self.devices, self.held.clone()) {
                self.say(format!("losetup -d {upper}"));
            }
        }
        for device in std::mem::take(&mut self.devices) {
            if device.starts_with("/dev/loop") {
                self.say(format!("losetup -d {device}; rm its image"));
            }
        }
        Ok(())
    }

    fn left(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The bed with the names that a guest has for disks that are attached so; its first disk is the
/// one by which a trial goes in.
fn attached(bed: &TrialBed, disks: Option<Attachment>) -> TrialBed {
    let mut bed = bed.clone();
    for (number, device) in (1..).zip(&mut bed.devices) {
        match disks {
            None | Some(Attachment::VirtioBlk) => {}
            Some(Attachment::VirtioScsi | Attachment::Ahci) => {
                device.path = format!("/dev/sd{}", letters(number));
            }
            Some(Attachment::Nvme) => device.path = format!("/dev/nvme{number}n1"),
        }
    }
    bed
}

/// How the kernel calls the disk of that number, from 0: a to z, then aa (`sd_format_disk_name` in
/// drivers/scsi/sd.c).
fn letters(number: u32) -> String {
    let last = char::from(b'a' + (number % 26) as u8);
    match number / 26 {
        0 => last.into(),
        before => letters(before - 1) + &last.to_string(),
    }
}

fn devices(paths: &[String]) -> Vec<Device> {
    let device = |path: &String| Device { path: path.clone(), number: [0, 0], size_bytes: 0 };
    paths.iter().map(device).collect()
}

/// Where the trials of a dry run would mount.
pub fn directory() -> String {
    mount_point().display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_beyond_the_alphabet_have_two_letters() {
        assert_eq!([0, 25, 26, 51, 52, 702].map(letters), ["a", "z", "aa", "az", "ba", "aaa"]);
    }
}
