//! `report.md`: what was asked, what was found, and how it was done.

use comfy_table::presets::ASCII_MARKDOWN;

use super::figure::{Figure, Place};
use super::text::{marked, marked_code, marked_lines, marked_list, visible};
use super::{Report, table, terminal};
use crate::model::{BedKind, Command, Contender, Finding};

/// The whole report; `shown`: with these figures, that are SVG files in this folder.
pub fn report(report: &Report, shown: Option<(&[Figure], &str)>) -> String {
    let run = report.run;
    let show = |wanted: &dyn Fn(&Place) -> bool| {
        shown.map_or(String::new(), |(figures, folder)| {
            figures.iter().filter(|it| wanted(&it.place)).map(|it| image(it, folder)).collect()
        })
    };
    let mut out = format!("# {}\n\n", marked(&title(report)));
    let command = marked_code(&Command::Argv(run.command.clone()).to_string());
    let started = if report.is_read() { "judged" } else { "started" };
    out += &format!("{command}, {started} {}.\n", marked(&run.started));
    out += &format!("{}\n\n## Verdicts\n\n", marked(&terminal::ending(report)));
    for workload in &report.plan.workloads {
        out += &format!("{}:\n\n", marked(&workload.name));
        for sentence in report.sentences(workload) {
            out += &format!("- {}\n", marked(&sentence));
        }
        out += "\n";
    }
    out += "A ratio is of goodness: above 1, the contender is better than the reference, whether \
            the metric is a rate or a time. The intervals hold together for all comparisons of a \
            workload.\n";
    out += &show(&|place| *place == Place::Verdicts);
    for workload in &report.plan.workloads {
        out += &format!("\n## {}\n\n", marked(&workload.name));
        if let Some(command) = &workload.command {
            out += &format!("{}\n", marked_lines(&command.to_string()));
        }
        out += &format!("{}\n", table::table(report, workload, ASCII_MARKDOWN));
        for (title, table) in table::meanwhile(report, workload, ASCII_MARKDOWN) {
            out += &format!("\n{title}:\n\n{table}\n");
        }
        out += &show(&|place| place.workload() == Some(&workload.name));
    }
    out += &published(report);
    out += &working_sets(report);
    out += &format!("\n## Findings\n\n{}", noticed(report.findings));
    out += &left_out(report);
    out += &failures(report);
    out += &match report.is_read() {
        true => read(report),
        false => contenders(report) + &machine(report),
    };
    visible(&out).into_owned()
}

/// A figure, with its caption below it.
pub(super) fn image(figure: &Figure, folder: &str) -> String {
    let (title, caption) = (marked(&figure.title), marked(&figure.caption));
    let (name, folder) = (&figure.name, folder.replace(['<', '>', '\n'], "_"));
    format!("\n![{title}](<{folder}/{name}.svg>)\n\n*{title}.* {caption}\n")
}

/// The question, or what was compared.
pub(super) fn title(report: &Report) -> String {
    if !report.plan.question.is_empty() {
        return report.plan.question.clone();
    }
    let names: Vec<&str> = report.plan.contenders.iter().map(|c| c.name.as_str()).collect();
    let work: Vec<&str> = report.plan.workloads.iter().map(|w| w.name.as_str()).collect();
    format!("{} at {}", names.join(", "), work.join(", "))
}

fn published(report: &Report) -> String {
    let Some(study) = &report.plan.study else { return String::new() };
    let scale = terminal::scale(report);
    let mut out = format!("\n## {}, as published, and here{scale}\n\n", marked(&study.title));
    if !study.protocol.is_empty() {
        for paragraph in study.protocol.trim().split("\n\n") {
            out += &format!("{}\n\n", marked(paragraph));
        }
    }
    if !study.claims.is_empty() {
        let claims: Vec<String> =
            study.claims.iter().map(|(of, claim)| format!("{}: {claim}", spaced(of))).collect();
        out += &format!("It claims:\n\n{}\n", marked_list(&claims));
    }
    if report.published.is_empty() {
        return out.trim_end().to_string() + "\n";
    }
    out += "Ratios are of goodness. Only rank and ratio are compared: rates of two machines say \
            nothing about each other.\n\n";
    out + &format!("{}\n", table::published(report, ASCII_MARKDOWN))
}

/// A key of a plan as words.
fn spaced(key: &str) -> String {
    key.replace('_', " ")
}

fn working_sets(report: &Report) -> String {
    if report.working_sets().is_empty() {
        return String::new();
    }
    let table = table::working_sets(report, ASCII_MARKDOWN);
    format!("\n## Working sets{}\n\n{table}\n", terminal::scale(report))
}

fn left_out(report: &Report) -> String {
    match report.left_out().as_slice() {
        [] => String::new(),
        lines => format!("\n## Left out\n\n{}", marked_list(lines)),
    }
}

/// What the audits noticed.
pub(super) fn noticed(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "None of the audits noticed anything.\n".into();
    }
    let mut out = String::new();
    for alike in terminal::alike(findings) {
        let lines: Vec<String> =
            alike.iter().map(|it| format!("**{}**", marked(&terminal::headline(it)))).collect();
        out += &format!("- {}\n  {}\n", lines.join("\\\n  "), marked(&alike[0].advice));
    }
    out
}

fn failures(report: &Report) -> String {
    match terminal::failures(report).as_slice() {
        [] => String::new(),
        failures => format!("\n## Not measured\n\n{}", marked_list(failures)),
    }
}

fn contenders(report: &Report) -> String {
    let mut out = "\n## Contenders\n\n".to_string();
    for contender in &report.plan.contenders {
        out += &format!("- **{}**: {}", marked(&contender.name), described(contender));
        if let Some(partition) = report.partition(contender) {
            out += &format!("; its partition begins at {} B", partition.start_bytes);
        }
        if let Some(name) = report.other_name(contender) {
            out += &format!("; mounted as {}", marked_code(name));
        }
        if let Some(mounted) = report.mounted(contender) {
            out += &format!("; in effect: {}", marked_code(&mounted.options.join(",")));
        }
        out += "\n";
    }
    out
}

/// A contender's settings in a line of Markdown.
fn described(contender: &Contender) -> String {
    let mut parts = Vec::new();
    match &contender.path {
        Some(path) => parts.push(format!("the directory {}", marked_code(path))),
        None => parts.push(marked(&contender.file_system)),
    }
    if !contender.partition.is_empty() {
        parts.push(format!("partition {}", marked_code(&contender.partition.join(" "))));
    }
    if let Some(kernel) = &contender.kernel {
        parts.push(format!("kernel {}", marked(kernel)));
    }
    if !contender.mkfs.is_empty() {
        parts.push(format!("mkfs {}", marked_code(&contender.mkfs.join(" "))));
    }
    if !contender.mount.is_empty() {
        parts.push(format!("mount {}", marked_code(&contender.mount.join(","))));
    }
    let settings = contender.queue.iter().chain(&contender.sysctl);
    for (name, value) in settings.chain(&contender.environment) {
        parts.push(marked(&format!("{name} = {value}")));
    }
    if let Some(limits) = contender.limits {
        parts.push(marked(&format!("held down to {limits}")));
    }
    parts.join(", ")
}

/// What was read of files of others, and what of it was taken for what.
fn read(report: &Report) -> String {
    let lines = report.run.read.iter().map(|(what, it)| format!("{what}: {it}"));
    format!("\n## What was read\n\n{}", marked_list(&lines.collect::<Vec<_>>()))
}

fn machine(report: &Report) -> String {
    let mut out = "\n## Machine\n\n".to_string();
    for (fact, value) in report.run.host.iter().chain(&report.run.tools) {
        out += &format!("- {}\n", marked(&format!("{fact}: {value}")));
    }
    out += &format!("- bed: {}\n", marked(&bed(report)));
    for line in disks(report) {
        out += &format!("- {}\n", marked(&line));
    }
    if report.plan.scale.is_some() {
        let scale = terminal::scale(report);
        out += &format!("- sizes, counts and times{}\n", scale.trim_start_matches(','));
    }
    out + &format!("- fsverdict {}\n", marked(&report.run.program_version))
}

/// What the bed's disk said of itself: once, or for each contender where they met another.
fn disks(report: &Report) -> Vec<String> {
    let contenders = report.plan.contenders.iter();
    let seen: Vec<_> = contenders.filter_map(|it| Some((&it.name, report.disk(it)?))).collect();
    match seen.as_slice() {
        [(_, first), rest @ ..] if rest.iter().all(|(_, disk)| disk == first) => {
            vec![format!("disk: {first}")]
        }
        several => several.iter().map(|(name, disk)| format!("disk of {name}: {disk}")).collect(),
    }
}

/// What the file systems were made on: `loop, 4GiB`.
pub(super) fn bed(report: &Report) -> String {
    let bed = &report.plan.bed;
    let what = match (bed.kind, bed.devices) {
        (BedKind::Device | BedKind::Directory, _) => bed.paths.join(", "),
        (_, 1) => format!("{}iB", bed.size),
        (_, devices) => format!("{devices} of {}iB", bed.size),
    };
    format!("{}, {what}", bed.kind.name())
}
