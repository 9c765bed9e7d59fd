//! `fsverdict list`: what can be compared, on what and with what, and what this machine lacks.

use anyhow::Result;
use clap::ValueEnum;
use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{ContentArrangement, Table, TableComponent};
use fsverdict_core::model::need::{Asked, ProbeKind};
use fsverdict_core::model::{Bed, Need, Place, Plan, unmet_needs};
use fsverdict_host::file_system::{self, Promise, Promises};
use fsverdict_host::layer;
use fsverdict_host::place::doctor::{self, Machine};
use fsverdict_host::place::vm::{
    self,
    kernel::{self, Kernel},
    uml,
};

use crate::exit;
use crate::say;
use crate::shipped::{self, Shipped};
use crate::uses;

/// List contenders, layers, workloads, plans, studies, uses, beds, probes and places, with what
/// this machine lacks for them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  fsverdict list\n  fsverdict list contenders")]
pub struct Arguments {
    /// Only these.
    #[arg(value_enum)]
    kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Contenders,
    Layers,
    Workloads,
    Plans,
    Studies,
    Uses,
    Beds,
    Probes,
    Places,
}

/// The columns of a terminal.
const WIDTH: u16 = 80;

/// One thing to list: its cells, and what it needs.
struct Row {
    cells: Vec<String>,
    needs: Vec<Need>,
}

impl Row {
    fn new(cells: &[&str], needs: Vec<Need>) -> Row {
        Row { cells: cells.iter().map(ToString::to_string).collect(), needs }
    }
}

/// A table of one kind of things.
struct Section {
    kind: Kind,
    header: Vec<&'static str>,
    rows: Vec<Row>,
    /// How to use them.
    note: &'static str,
}

/// Prints the tables, after asking the machine only what they need.
pub fn run(arguments: &Arguments) -> Result<u8> {
    let kinds = arguments.kind.map_or(Kind::value_variants().to_vec(), |kind| vec![kind]);
    let sections: Vec<Section> = kinds.into_iter().map(section).collect();
    let machine = Machine::new(".".as_ref());
    let (asked, plan) = (machine.asked(), Plan::default());
    // What this machine lacks for them guests may have.
    let in_guests = Asked::new(|need| match machine.answer(need) {
        local if local.is_able() => local,
        _ => vm::answer(&machine, &plan, need),
    });
    let text = |section: &Section| match section.kind {
        Kind::Layers => text(section, &in_guests),
        _ => text(section, &asked),
    };
    let texts: Vec<String> = sections.iter().map(text).collect();
    say::print(&texts.join("\n"))?;
    Ok(exit::DONE)
}

/// A table of the things, and below it what they lack.
fn text(section: &Section, asked: &Asked) -> String {
    let mut things = table(UTF8_HORIZONTAL_ONLY);
    things.set_header(&section.header);
    let mut unmet_locally = table(NOTHING);
    for row in &section.rows {
        things.add_row(&row.cells);
        let unmet = unmet_needs(&row.needs, asked);
        if !unmet.is_empty() {
            unmet_locally.add_row([&row.cells[0], &unmet.join("\n")]);
        }
    }
    let name = format!("{:?}", section.kind);
    let (without, more) = match section.kind {
        Kind::Contenders => (without(), in_guests()),
        _ => Default::default(),
    };
    let missing = match unmet_locally.is_empty() {
        true => String::new(),
        false => format!("Missing here:\n{}\n", unmet_locally.trim_fmt()),
    };
    format!("{name}\n{}\n{}\n{without}{missing}{more}", things.trim_fmt(), section.note)
}

/// What to know of a file system before it is taken for being fast.
fn without() -> String {
    let mut table = table(NOTHING);
    for it in file_system::ALL.iter().filter(|it| !it.without.is_empty()) {
        table.add_row([it.name, &it.without.join(", ")]);
    }
    format!("Without:\n{}\n", table.trim_fmt())
}

/// A table that fits a terminal: only blanks separate its columns.
fn table(preset: &str) -> Table {
    let mut table = Table::new();
    table.load_preset(preset);
    // The names show where rows of two lines begin: lines between them would be in the way.
    for line in [
        TableComponent::VerticalLines,
        TableComponent::MiddleHeaderIntersections,
        TableComponent::HorizontalLines,
        TableComponent::MiddleIntersections,
        TableComponent::TopBorder,
        TableComponent::TopBorderIntersections,
        TableComponent::BottomBorder,
        TableComponent::BottomBorderIntersections,
    ] {
        table.remove_style(line);
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table
}

/// What kernels that were fetched have beyond this machine's.
fn in_guests() -> String {
    let (kernels, process) = (kernel::all(), uml::all());
    let with_zfs = |it: &Kernel| it.zfs.clone().map(|zfs| zfs.version);
    let in_machines = kernels.iter().filter_map(|it| {
        let (version, name) = (with_zfs(it)?, it.name());
        Some(format!("OpenZFS {version} in guests: --place vm --kernel {name}\n"))
    });
    // The first is booted.
    let as_process = process.iter().find_map(with_zfs);
    let as_process = as_process.map(|it| format!("OpenZFS {it} in guests: --place uml\n"));
    in_machines.chain(as_process).collect()
}

fn section(kind: Kind) -> Section {
    match kind {
        Kind::Contenders => contenders(),
        Kind::Layers => layers(),
        Kind::Workloads => workloads(),
        Kind::Beds => beds(),
        Kind::Probes => probes(),
        Kind::Plans => plans(),
        Kind::Studies => studies(),
        Kind::Uses => uses(),
        Kind::Places => places(),
    }
}

fn contenders() -> Section {
    let row = |it: &file_system::FileSystem| {
        let word = |promise| match promise {
            Promise::Yes => "yes",
            Promise::Asked => "option",
            Promise::No => "-",
        };
        let promises = it.promises.named().map(|(_, promise)| word(promise).to_string());
        let made_by = [it.name, it.program].map(String::from);
        let needs = vec![Need::FileSystem(it.name.into())];
        Row { cells: made_by.into_iter().chain(promises).collect(), needs }
    };
    let names = Promises::NONE.named().map(|(name, _)| name);
    Section {
        kind: Kind::Contenders,
        header: ["file\nsystem", "made by"].into_iter().chain(names).collect(),
        rows: file_system::ALL.map(|it| row(it.local())).into(),
        note: "What the documentation promises (sums: checksums; option: where asked for).\n\
               --fs NAME,...; a plan also gives them mkfs, mount, queue and sysctl settings.\n\
               From overlay on they stand on another: --fs ext4 --above none --above overlay.",
    }
}

fn layers() -> Section {
    let row = |it: &&layer::Kind| {
        let about = format!("{}\n{}", it.about, it.choices().join(", "));
        Row::new(&[it.name, about.trim_end()], vec![Need::Layer(it.name.into())])
    };
    Section {
        kind: Kind::Layers,
        header: vec!["layer", "what it is, and its settings"],
        rows: layer::ALL.iter().map(row).collect(),
        note: "--layers none --layers luks:sector_size=4k --layers luks+raid1\n\
               The first is next to the disk. Made here where it can be, else in a guest.",
    }
}

fn workloads() -> Section {
    const COMMAND: &str = "any program, timed as a whole\n-- cp -a /usr/share/doc .";
    const FIO: &str = "a fio job or job file, with fio's own figures\n\
                       -- fio --name=job --rw=randwrite --bs=4k --size=256m";
    const SMALL_FILES: &str = "create, stat, read, rename and delete many files\n\
                               --small-files count=10000,size=1k,sync=each";
    const FSYNC_FILES: &str = "write many files, sync one: how long, and what it writes\n\
                               --fsync-files files=100,size=2k,case=overwriting";
    const METADATA: &str = "mkdir, create, rename, change attributes, delete\n\
                            --metadata directories=1000,files_per_directory=10";
    const TREE: &str = "make, copy, walk and delete a tree of files, or a copy of yours\n\
                        --tree files=10000,mean_size=16k,threads=2";
    const SYSBENCH: &str = "the fileio test of sysbench: prepare, run, cleanup\n\
                            -- sysbench fileio --file-test-mode=rndrw --file-total-size=256M run";
    const REPLAY: &str = "an application's calls, recorded and made again without it\n\
                          fsverdict record --output mine.toml -- COMMAND";
    Section {
        kind: Kind::Workloads,
        header: vec!["workload", "what it does, and an example"],
        rows: vec![
            Row::new(&["command", COMMAND], vec![]),
            Row::new(&["fio", FIO], vec![Need::Tool("fio")]),
            Row::new(&["small_files", SMALL_FILES], vec![]),
            Row::new(&["fsync_files", FSYNC_FILES], vec![]),
            Row::new(&["metadata", METADATA], vec![]),
            Row::new(&["tree", TREE], vec![]),
            Row::new(&["sysbench", SYSBENCH], vec![Need::Tool("sysbench")]),
            Row::new(&["replay", REPLAY], vec![Need::Tool("strace")]),
        ],
        note: "The example goes at the end of: fsverdict run --fs ext4,xfs; a recording by\n\
               itself is a plan.",
    }
}

fn beds() -> Section {
    let what = |bed: &str| match bed {
        "loop" => "image files behind loop devices\n--bed loop --size 4G",
        "ram" => "memory behind loop devices\n--bed ram --size 1G",
        "ram:zram" => "memory that compresses what is written\n--bed ram:zram --size 1G",
        "device" => "your own disks or partitions\n--bed device:/dev/sdb --erase /dev/sdb",
        _ => "something already mounted, never formatted\n--bed directory:/mnt/a,/mnt/b",
    };
    let row = |bed: Bed| Row::new(&[bed.name(), what(bed.name())], bed.needs());
    Section {
        kind: Kind::Beds,
        header: vec!["bed", "what the file systems are made on, and an example"],
        rows: doctor::beds().map(row).into(),
        note: "Bed loop is the default.",
    }
}

fn probes() -> Section {
    let rows = [
        (["cpu", "CPU time by kind, processes started", "/proc/stat"], ProbeKind::Cpu),
        (
            ["device", "requests, bytes, flushes, time, queue", "/sys/dev/block/*/stat"],
            ProbeKind::Device,
        ),
        (["memory", "dirty and write-back memory", "/proc/meminfo"], ProbeKind::Memory),
        (["pressure", "time stalled for CPU, I/O, memory", "/proc/pressure"], ProbeKind::Pressure),
        (
            [
                "network",
                "bits, packets and drops of an interface\nnetwork = { interface = \"eth0\" }",
                "/proc/net/dev",
            ],
            ProbeKind::Network,
        ),
        (
            ["heat", "processors slowed down, alarms of NVMe drives", "thermal_throttle, hwmon"],
            ProbeKind::Heat,
        ),
        (
            [
                "page-cache",
                "pages that reads find or miss\n--probe page-cache",
                "tracepoints, by BPF",
            ],
            ProbeKind::PageCache,
        ),
    ];
    let trace = ["trace", "each request of the devices, in order\n--probe trace", "tracefs"];
    let rows = rows.map(|(cells, kind)| Row::new(&cells, vec![Need::Probe(kind)])).into_iter();
    let rows = rows.chain([Row::new(&trace, vec![Need::BlockEvents])]);
    Section {
        kind: Kind::Probes,
        header: vec!["probe", "what it tells", "read from"],
        rows: rows.collect(),
        note: "Every trial reads all of them that can be read; page-cache and trace only\n\
               where they are asked for, network where the plan's work has one.",
    }
}

fn plans() -> Section {
    Section {
        kind: Kind::Plans,
        header: vec!["plan", "what it asks"],
        rows: shipped::PLANS.iter().map(asks).collect(),
        note: "fsverdict run NAME; it says what is missing before it writes anything.",
    }
}

fn studies() -> Section {
    Section {
        kind: Kind::Studies,
        header: vec!["study", "what it asks"],
        rows: shipped::STUDIES.iter().map(asks).collect(),
        note: "--study NAME; --scale 1/10 makes it smaller.",
    }
}

fn asks(it: &Shipped) -> Row {
    let plan = shipped::parse(it).unwrap_or_default();
    let needs = plan.wants(Place::Local).into_iter().map(|(_, need)| need).collect();
    Row::new(&[it.0, &plan.question], needs)
}

fn uses() -> Section {
    let row = |(name, _): &(&str, &str)| {
        let about = uses::purpose(name).map(|purpose| purpose.about).unwrap_or_default();
        Row::new(&[name, &about], vec![])
    };
    Section {
        kind: Kind::Uses,
        header: vec!["use", "what counts"],
        rows: uses::ALL.iter().map(row).collect(),
        note: "fsverdict advise RUN --for NAME",
    }
}

fn places() -> Section {
    const VM: &str = "a QEMU virtual machine for each trial, without root, with any kernel\n\
                      --place vm --kernel 5.10 --kernel 6.12";
    const UML: &str = "a Linux as a process for each trial, without root: for counts, not times\n\
                       kernels get uml; --place uml";
    Section {
        kind: Kind::Places,
        header: vec!["place", "who runs the trials"],
        rows: vec![
            Row::new(&["local", "this machine, each trial as a process of its own"], vec![]),
            Row::new(&["vm", VM], Place::Vm.needs()),
            Row::new(&["uml", UML], Place::Uml.needs()),
            Row::new(&["sim", "a simulated host, to try a plan: its figures mean nothing"], vec![]),
        ],
        note: "--place NAME; local is the default where it works, otherwise vm.",
    }
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::need::Answer;
    use fsverdict_core::model::{BedKind, Workload};

    use super::*;

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        for section in Kind::value_variants().iter().map(|kind| section(*kind)) {
            for row in &section.rows {
                assert_eq!(row.cells.len(), section.header.len(), "{:?}", row.cells);
            }
        }
    }

    #[test]
    fn every_list_fits_a_terminal_whatever_is_missing() {
        let without = Asked::new(|_| {
            let ways = "fsverdict kernels tools cryptsetup-bin, for virtual machines alone, or \
                        apt-get install cryptsetup-bin";
            Answer::no("integritysetup is not installed").but(ways)
        });
        for asked in [without, Asked::new(|_| Answer::yes(""))] {
            for kind in Kind::value_variants() {
                let shown = text(&section(*kind), &asked);
                let widest = shown.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(WIDTH.into()), "{widest:?}\n{shown}");
                for row in section(*kind).rows {
                    let is_whole = |line: &str| line.trim_start().starts_with(&row.cells[0]);
                    assert!(shown.lines().any(is_whole), "{}:\n{shown}", row.cells[0]);
                }
            }
        }
    }

    #[test]
    fn layers_say_which_words_their_settings_take() {
        let shown = text(&layers(), &Asked::new(|_| Answer::yes("")));
        let words = shown.split_whitespace().collect::<Vec<_>>().concat();
        assert!(words.contains("mode=journal|bitmap|direct"), "{shown}");
        assert!(!shown.contains("Lacking"), "{shown}");
    }

    #[test]
    fn what_a_plan_misses_is_in_its_row() {
        let without = |program: &str| {
            let first = |names: &str| names.split('|').next().unwrap().to_string();
            let program = first(program);
            Asked::new(move |need| match need {
                Need::Program { name, package } if first(name) == program => {
                    Answer::not_installed(&program, package.as_deref())
                }
                _ => Answer::yes(""),
            })
        };
        let cell = |plan: &str, asked: &Asked| {
            let rows = plans().rows.into_iter().chain(studies().rows);
            unmet_needs(&rows.into_iter().find(|row| row.cells[0] == plan).unwrap().needs, asked)
                .join("\n")
        };
        assert_eq!(cell("mariadb", &without("nothing")), "");
        let server = "mariadbd is not installed: apt-get install mariadb-server-core";
        assert_eq!(cell("mariadb", &without("mariadbd")), server);
        for shipped in shipped::PLANS.iter().chain(&shipped::STUDIES) {
            let plan = shipped::parse(shipped).unwrap();
            for (program, _) in plan.workloads.iter().flat_map(Workload::needed) {
                let unmet = cell(shipped.0, &without(program));
                let first = program.split('|').next().unwrap();
                assert!(unmet.starts_with(first), "{}: {unmet}", shipped.0);
            }
        }
    }

    #[test]
    fn all_beds_are_listed() {
        for kind in [BedKind::Loop, BedKind::Ram, BedKind::Device, BedKind::Directory] {
            assert!(beds().rows.iter().any(|row| row.cells[0] == kind.name()), "{kind:?}");
        }
    }
}
