//! `fsverdict list`: what can be compared, on what and with what, and what this machine lacks.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Table, TableComponent};
use fsverdict_core::model::Workload;
use fsverdict_host::file_system::{self, Promise, Promises};
use fsverdict_host::place::doctor::{self, Ability};

use crate::exit;
use crate::shipped::{self, Shipped};
use crate::uses;

/// List contenders, workloads, plans, studies, uses, beds, probes and places, with what is lacking
/// here.
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
    Workloads,
    Plans,
    Studies,
    Uses,
    Beds,
    Probes,
    Places,
}

/// One thing to list: its cells, and the names of the abilities it needs.
struct Row {
    cells: Vec<String>,
    needs: Vec<String>,
}

impl Row {
    fn new(cells: &[&str], needs: &[&str]) -> Row {
        let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Row { cells: owned(cells), needs: owned(needs) }
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
    let rows = sections.iter().flat_map(|section| &section.rows);
    let needs: BTreeSet<String> = rows.flat_map(|row| row.needs.clone()).collect();
    let abilities = doctor::ask(&needs);
    let texts: Vec<String> = sections.iter().map(|section| text(section, &abilities)).collect();
    std::io::stdout().write_all(texts.join("\n").as_bytes())?;
    Ok(exit::DONE)
}

fn text(section: &Section, abilities: &[Ability]) -> String {
    let mut table = Table::new();
    let header = section.header.iter().copied().chain(["lacking here"]);
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(header);
    // Rows of two lines are told apart by their names: lines between them would be in the way.
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    for row in &section.rows {
        let lacks = lacks(&row.needs, abilities);
        table.add_row(row.cells.iter().chain([&lacks]));
    }
    let name = format!("{:?}", section.kind);
    format!("{name}\n{table}\n{}\n", section.note)
}

/// The first thing that is lacking: it is to be seen to first. The rest is for `doctor`.
fn lacks(needs: &[String], abilities: &[Ability]) -> String {
    let found = |name: &String| abilities.iter().find(|ability| ability.name == *name);
    let lack = needs.iter().filter_map(found).find_map(|ability| ability.answer.lack());
    // A table's cell: in two lines it leaves room for the others.
    lack.map_or("-".into(), |lack| lack.replacen(": ", ":\n", 1))
}

fn section(kind: Kind) -> Section {
    match kind {
        Kind::Contenders => contenders(),
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
        let needs = vec![doctor::mount_check(it), doctor::mkfs_check(it)];
        Row { cells: made_by.into_iter().chain(promises).collect(), needs }
    };
    let names = Promises::NONE.named().map(|(name, _)| name);
    Section {
        kind: Kind::Contenders,
        header: ["file\nsystem", "made by"].into_iter().chain(names).collect(),
        rows: file_system::ALL.map(|it| row(it.here())).into(),
        note: "What the documentation promises (sums: checksums; option: where it is asked for).\n\
               --fs NAME,...; a plan also gives them mkfs, mount, queue and sysctl settings.",
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
            Row::new(&["command", COMMAND], &[]),
            Row::new(&["fio", FIO], &[doctor::FIO]),
            Row::new(&["small_files", SMALL_FILES], &[]),
            Row::new(&["fsync_files", FSYNC_FILES], &[]),
            Row::new(&["metadata", METADATA], &[]),
            Row::new(&["tree", TREE], &[]),
            Row::new(&["sysbench", SYSBENCH], &[doctor::SYSBENCH]),
            Row::new(&["replay", REPLAY], &[doctor::STRACE]),
        ],
        note: "The example goes at the end of: fsverdict run --fs ext4,xfs; a recording by itself \
               is a plan.",
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
    let row = |(bed, needs): (&str, &[&str])| Row::new(&[bed, what(bed)], needs);
    Section {
        kind: Kind::Beds,
        header: vec!["bed", "what the file systems are made on, and an example"],
        rows: doctor::BEDS.map(row).into(),
        note: "Bed loop is the default.",
    }
}

fn probes() -> Section {
    let rows = [
        (["cpu", "CPU time by kind, processes started", "/proc/stat"], doctor::CPU_TIME),
        (
            ["device", "requests, bytes, flushes, time, queue", "/sys/dev/block/*/stat"],
            doctor::COUNTERS,
        ),
        (["memory", "dirty and write-back memory", "/proc/meminfo"], doctor::DIRTY),
        (["pressure", "time stalled for CPU, I/O, memory", "/proc/pressure"], doctor::PRESSURE),
        (
            [
                "network",
                "bits, packets and drops of an interface\nnetwork = { interface = \"eth0\" }",
                "/proc/net/dev",
            ],
            doctor::NETWORK,
        ),
        (
            ["heat", "processors slowed down, alarms of NVMe drives", "thermal_throttle, hwmon"],
            doctor::HEAT,
        ),
        (
            [
                "page-cache",
                "pages that reads find or miss\n--probe page-cache",
                "tracepoints, by BPF",
            ],
            doctor::PAGE_CACHE,
        ),
    ];
    Section {
        kind: Kind::Probes,
        header: vec!["probe", "what it tells", "read from"],
        rows: rows.iter().map(|(cells, need)| Row::new(cells, &[need])).collect(),
        note: "Every trial reads all of them that can be read; page-cache only where it is asked \
               for, network where the plan's work has one.",
    }
}

fn plans() -> Section {
    Section {
        kind: Kind::Plans,
        header: vec!["plan", "what it asks"],
        rows: shipped::PLANS.iter().map(asks).collect(),
        note: "fsverdict run NAME; what it lacks is said before anything is written.",
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
    let needed: Vec<&str> =
        plan.workloads.iter().flat_map(Workload::needed).map(|(program, _)| program).collect();
    let needs = |program: &&str| needed.contains(program);
    let programs = [doctor::RSYNC, doctor::CURL, doctor::VSFTPD].into_iter().filter(needs);
    let link = plan.workloads.iter().any(|it| it.link().is_some()).then_some(doctor::LINK);
    let needs: Vec<&str> = [doctor::LOOP].into_iter().chain(programs).chain(link).collect();
    Row::new(&[it.0, &plan.question], &needs)
}

fn uses() -> Section {
    let row = |(name, _): &(&str, &str)| {
        let about = uses::purpose(name).map(|purpose| purpose.about).unwrap_or_default();
        Row::new(&[name, &about], &[])
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
    Section {
        kind: Kind::Places,
        header: vec!["place", "who runs the trials"],
        rows: vec![
            Row::new(&["here", "this machine, each trial as a process of its own"], &[]),
            Row::new(&["vm", VM], &[doctor::QEMU_NAME, doctor::KERNELS]),
            Row::new(&["sim", "a simulated host, to try a plan: its figures mean nothing"], &[]),
        ],
        note: "--place NAME; here is the default where it works, otherwise vm.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fsverdict_core::model::BedKind;

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        for section in Kind::value_variants().iter().map(|kind| section(*kind)) {
            for row in &section.rows {
                assert_eq!(row.cells.len(), section.header.len(), "{:?}", row.cells);
            }
        }
    }

    #[test]
    fn all_that_rows_need_is_something_doctor_asks() {
        let here = std::path::Path::new("/");
        let known: Vec<String> =
            doctor::checks(here, here).into_iter().map(|check| check.name).collect();
        for section in Kind::value_variants().iter().map(|kind| section(*kind)) {
            for need in section.rows.iter().flat_map(|row| &row.needs) {
                assert!(known.contains(need), "{need}");
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
