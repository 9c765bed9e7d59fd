//! The kinds of bed and of work that are tried, as plans.

use std::fmt;

/// A kind of bed with a kind of work upon it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Its bed.
    pub bed: &'static str,
    /// Its work.
    pub work: &'static str,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.bed, self.work)
    }
}

/// A disk of the user's.
pub const DEVICE: &str = "device";
/// Where the simulated machine runs the trials.
pub const SIMULATED: &str = "sim";
/// Where virtual machines do.
pub const VIRTUAL: &str = "vm";
/// The same with ZFS, whose module has to be there for the machine's kernel.
const POOL: &str = "vm-zfs";
/// The same with kernels that are processes: User Mode Linux.
const USER_MODE: &str = "uml";
/// The same with layers below the file systems: that kernel has more of them than others.
const LAYERS: &str = "uml-layers";
/// Images whose requests are held down.
const LIMITED: &str = "limits";
/// Images whose requests are recorded.
const TRACED: &str = "trace";
/// An overlay on the file systems.
const UPON: &str = "overlay";
/// Both trials of a round at once, in turns.
const IN_TURNS: &str = "duet";
/// The work that is done in turns, which takes no commands.
const OF_TURNS: &str = "small-files";

/// The beds, those of real trials first.
const BEDS: [&str; 15] = [
    "loop",
    "ram",
    "zram",
    "partitions",
    DEVICE,
    "directory",
    LIMITED,
    TRACED,
    UPON,
    IN_TURNS,
    SIMULATED,
    USER_MODE,
    LAYERS,
    VIRTUAL,
    POOL,
];

/// The kinds of work, each with its lines of a plan. The first counts what it does, so that its
/// figure depends on the seed alone; it has all the commands that a workload may have.
const WORKS: [(&str, &str); 9] = [
    (
        "command",
        "command = '''seq 200 > out; sync out
             echo \"work $FSVERDICT_SEED count lower\" > \"$FSVERDICT_FIGURES\"'''
         setup = \"seq 1000 > in\"
         prepare = \"cat in > prepared\"
         check = \"test -s out\"
         cleanup = \": > prepared\"",
    ),
    ("fio", "fio = { rw = \"write\", bs = \"4k\", size = \"1m\", fsync = 16 }"),
    (
        "sysbench",
        "sysbench = { file-test-mode = \"rndrw\", file-num = 4, file-total-size = \"4M\", \
         events = 50 }",
    ),
    ("small-files", "small_files = { count = 100, size = \"1k\" }"),
    ("fsync-files", "fsync_files = { files = 4, repetitions = 5 }"),
    ("metadata", "metadata = { directories = 4, files_per_directory = 4 }"),
    ("tree", "tree = { files = 40, mean_size = \"2k\" }"),
    ("replay", "replay = { recording = \"RECORDING\" }"),
    (
        "server",
        // Its server may be killed before it asks.
        "command = \"timeout 300 sh -c 'for n in 1 2 3; do echo $n > asked; \
         read x < answered; done'\"
         setup = \"true\"
         prepare = \"mkfifo asked answered; (while read n < asked; do echo $n > answered; done) &\"
         cleanup = \"rm -f asked answered\"
         network = { rate = \"1G\" }",
    ),
];

/// A recording of a few calls, for the work that replays one.
pub const RECORDING: &str = include_str!("recording.calls");

/// All of them: every bed with the work that counts, and every work on a loop device.
pub fn all() -> Vec<Scene> {
    let of_bed = |bed: &str| if bed == IN_TURNS { OF_TURNS } else { WORKS[0].0 };
    let on_each = BEDS.iter().map(|bed| Scene { bed, work: of_bed(bed) });
    let of_each = WORKS[1..].iter().map(|(work, _)| Scene { bed: BEDS[0], work });
    on_each.chain(of_each).collect()
}

/// What a plan names of the campaign's.
#[derive(Debug)]
pub struct On<'a> {
    /// Its disk's folder.
    pub disk: &'a str,
    /// The node that may be erased.
    pub device: &'a str,
    /// The size of beds in compressed memory.
    pub zram_bytes: u64,
    /// How many requests a second are let through.
    pub iops: u64,
}

impl Scene {
    /// The scene of that name, `BED/WORK`.
    pub fn parse(text: &str) -> Option<Scene> {
        let (bed, work) = text.split_once('/')?;
        let bed = BEDS.iter().find(|known| **known == bed)?;
        let (work, _) = WORKS.iter().find(|(known, _)| *known == work)?;
        Some(Scene { bed, work })
    }

    /// Its place among all.
    pub fn place(self) -> usize {
        all().iter().position(|scene| *scene == self).unwrap_or(0)
    }

    /// Trials are processes of this machine, which say their steps.
    pub fn is_real(self) -> bool {
        self.bed != SIMULATED && !self.has_guests()
    }

    /// Each trial is a kernel's of its own.
    pub fn has_guests(self) -> bool {
        [VIRTUAL, POOL, USER_MODE, LAYERS].contains(&self.bed)
    }

    /// The trial that signals are aimed at: one has ended before it, in a duet a whole round, and
    /// others come after. In a duet the first trial reports the steps of all.
    pub fn trial(self) -> u32 {
        if self.bed == IN_TURNS { 3 } else { 2 }
    }

    /// Its guests are processes of ours, which a run has to be allowed.
    pub fn is_user_mode(self) -> bool {
        [USER_MODE, LAYERS].contains(&self.bed)
    }

    /// It boots so slowly that each point is a moment, and none a step, unless each step is to be
    /// met.
    pub fn is_slow(self) -> bool {
        [VIRTUAL, POOL].contains(&self.bed)
    }

    /// Whether this metric is a count that is the same in each repetition: all are if the machine
    /// is simulated.
    pub fn counts(self, metric: &str) -> bool {
        self.bed == SIMULATED || metric == "work" && self.work == WORKS[0].0
    }

    /// How many turns it lets pass after each that it takes: every bed is to meet every fault at
    /// every step, and a point with virtual machines takes as long as ten others.
    pub fn pauses(self) -> u32 {
        match self.bed {
            POOL => 15,
            VIRTUAL | LAYERS => 7,
            USER_MODE => 3,
            SIMULATED => 1,
            _ if self.work == WORKS[0].0 => 0,
            _ => 1,
        }
    }

    /// Its plan.
    pub fn plan(self, on: &On) -> String {
        let On { disk, device, zram_bytes, iops } = on;
        let bed = match self.bed {
            "ram" => "kind = \"ram\", size = \"20M\"".into(),
            "zram" => format!("kind = \"ram\", zram = true, size = {zram_bytes}"),
            DEVICE => format!("kind = \"device\", paths = [\"{device}\"]"),
            "directory" => format!("kind = \"directory\", paths = [\"{disk}/one\"]"),
            LIMITED => format!("size = \"20M\", limits = {{ iops = {iops} }}"),
            POOL => "size = \"96M\"".into(),
            _ => "size = \"20M\"".to_string(),
        };
        let lines = WORKS.iter().find(|(work, _)| *work == self.work).map_or("", |(_, it)| it);
        let lines = lines.replace("RECORDING", &format!("{disk}/recording.calls"));
        let rounds = if self.is_slow() { 1 } else { 2 };
        let place = match self.bed {
            SIMULATED => SIMULATED,
            VIRTUAL | POOL => VIRTUAL,
            USER_MODE | LAYERS => USER_MODE,
            _ => "local",
        };
        let more = match self.bed {
            TRACED => "probes = [\"trace\"]",
            IN_TURNS => "rounds = \"duet\"",
            // Its memory is a file in the campaign's own.
            USER_MODE | LAYERS => "vm = { memory = \"192M\" }",
            _ => "",
        };
        format!(
            "seed = 5\nplace = \"{place}\"\n{more}\nbed = {{ {bed} }}\n\
             judgement = {{ rounds = {rounds} }}\n\
             {}\n[[workload]]\nname = \"work\"\n{lines}\n",
            self.contenders(disk),
        )
    }

    /// Two of them. A sysctl of network namespaces is the campaign's own.
    fn contenders(self, disk: &str) -> String {
        let [one, other] = match self.bed {
            "directory" => [format!("path = \"{disk}/one\""), format!("path = \"{disk}/two\"")],
            "partitions" => ["1MiB", "2MiB"].map(|start| {
                format!(
                    "file_system = \"ext4\"\npartition = [\"mklabel\", \"gpt\", \"mkpart\", \"p\", \
                     \"{start}\", \"100%\"]"
                )
            }),
            // Made by a tool that more machines have than md's and LVM's.
            LAYERS => ["flush", "write"]
                .map(|what| format!("file_system = \"ext4\"\nlayers = [\"delay:{what}=1ms\"]")),
            UPON => ["ext4", "ext2"]
                .map(|name| format!("file_system = \"{name}\"\nabove = [\"overlay\"]")),
            POOL => ["zfs", "ext4"].map(|name| format!("file_system = \"{name}\"")),
            _ => ["ext4", "ext2"].map(|name| format!("file_system = \"{name}\"")),
        };
        // It would hold for both at once.
        let sysctl = match self.is_real() && self.bed != IN_TURNS {
            true => "sysctl = { \"net.core.somaxconn\" = 1000 }",
            false => "",
        };
        let queue = match self.bed {
            DEVICE => "queue = { read_ahead_kb = 256, scheduler = \"none\" }",
            _ => "",
        };
        format!(
            "[[contender]]\nname = \"a\"\n{one}\n{sysctl}\n{queue}\n\
             [[contender]]\nname = \"b\"\n{other}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::Plan;

    use super::*;

    #[test]
    fn every_scene_is_a_plan_and_found_by_its_name() {
        let scenes = all();
        assert_eq!(scenes.len(), BEDS.len() + WORKS.len() - 1);
        for scene in scenes {
            let on = On { disk: "/x", device: "/dev/loop9", zram_bytes: 20 << 20, iops: 9000 };
            let plan = scene.plan(&on);
            Plan::parse(&plan).unwrap_or_else(|error| panic!("{scene}: {error}\n{plan}"));
            assert_eq!(Scene::parse(&scene.to_string()), Some(scene));
        }
        assert_eq!(Scene::parse("loop/nothing"), None);
    }
}
