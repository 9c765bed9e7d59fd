//! `report.md`: what was asked, what was found, and how it was done.

use comfy_table::presets::ASCII_MARKDOWN;

use super::answer::answer;
use super::facts::{bed, ending, title};
use super::figure::{Figure, Place};
use super::findings::{Kind, OPEN_MAX, kinds, seen, unequal};
use super::grid::Grid;
use super::matrix::{Cell, Matrix, sign};
use super::next::{Kept, Step, steps};
use super::text::{marked, marked_code, marked_lines, marked_list, visible};
use super::why::why;
use super::{Report, claims, facts, table, words};
use crate::model::{Above, Command, Comparison, Contender, Finding, Layer, Workload};

/// The whole report; `shown`: with these figures, that are SVG files in this folder.
pub fn report(report: &Report, shown: Option<(&[Figure], &str)>) -> String {
    let run = report.run;
    let show = |wanted: &dyn Fn(&Place) -> bool| {
        shown.map_or(String::new(), |(figures, folder)| {
            figures.iter().filter(|it| wanted(&it.place)).map(|it| image(it, folder)).collect()
        })
    };
    let mut out = format!("# {}\n\n{}", marked(&title(report)), answered(report));
    let command = marked_code(&Command::Argv(run.command.clone()).to_string());
    let started = if report.is_read() { "judged" } else { "started" };
    out += &format!("\n{command}, {started} {}.\n", marked(&run.started));
    out += &show(&|place| matches!(place, Place::Matrix | Place::Verdicts));
    out += &format!("\n## Findings\n\n{}", noticed(report.findings, report.comparisons));
    for workload in &report.plan.workloads {
        out += &work(report, workload);
        out += &show(&|place| place.workload() == Some(&workload.name));
    }
    out += &published(report);
    out += &working_sets(report);
    out += &left_out(report);
    out += &failures(report);
    out += &match report.is_read() {
        true => read(report),
        false => contenders(report) + &machine(report),
    };
    visible(&out).into_owned()
}

/// The claims, the answer, probably why, the matrix, and what to do next.
fn answered(report: &Report) -> String {
    let matrix = Matrix::of(report);
    let claims_lead = claims::lead(report.claims);
    let mut out = if claims_lead { claimed(report) } else { String::new() };
    out += &format!("**{}**\n\n", marked(&answer(report, &matrix)));
    for line in [unequal(report.findings), why(report, &matrix)].into_iter().flatten() {
        out += &format!("{}\n\n", marked(&line));
    }
    let columns = matrix.columns.iter().map(|name| match &matrix.ways {
        Some(ways) => format!("{} {name}", ways.second),
        None => format!("{name} against {}", matrix.reference),
    });
    let header = ["test".into(), matrix.reference.to_string()];
    let mut table = Grid::new(ASCII_MARKDOWN, header.into_iter().chain(columns));
    for group in &matrix.groups {
        for row in &group.rows {
            let full = &matrix.tests[row.test].full;
            let name =
                if matrix.ways.is_some() { format!("{full}, {}", row.name) } else { full.clone() };
            let reference = row.reference.as_ref().or(group.reference.as_ref());
            let fixed = [name, reference.cloned().unwrap_or_else(|| "-".into())];
            table.add(fixed.into_iter().chain(row.cells.iter().map(cell)));
        }
    }
    table.right([1]);
    out += &format!("{table}\n");
    let legend = matrix.legend();
    if !legend.is_empty() {
        let legend = marked(&legend.join("; "));
        out += &format!("\n{legend}. In brackets: the interval.\n");
    }
    if !claims_lead && !report.claims.is_empty() {
        out += &format!("\n{}", claimed(report));
    }
    out += &format!("\n{}\n", marked(&ending(report)));
    let kept = Kept { path: &report.run.name, is_packed: report.is_packed };
    for Step { text, command } in steps(report, kept) {
        out += &format!("\n{}\n", marked(&text));
        if !command.is_empty() {
            out += &format!("\n{}", marked_lines(&command.join(" ")));
        }
    }
    out
}

/// What is claimed, with the answers.
fn claimed(report: &Report) -> String {
    let Some(tally) = claims::tally(report.claims) else { return String::new() };
    let table = claims::table(report, ASCII_MARKDOWN);
    format!("**{tally}**\n\n{table}\n\n{}\n\n", claims::RATIOS_OF_TABLE)
}

/// "▼ 0.54 (0.38-0.77)".
fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Reference => "1".into(),
        Cell::Empty(why) => (*why).into(),
        Cell::Judged(comparison) => {
            let (sign, _) = sign(comparison.verdict);
            match (comparison.ratio, comparison.high) {
                (Some(ratio), Some(high)) => {
                    let span = words::span(comparison.low, high);
                    format!("{sign} {} ({span})", words::ratio(ratio))
                }
                (Some(ratio), None) => format!("{sign} {}", words::ratio(ratio)),
                (None, _) => sign.to_string(),
            }
        }
    }
}

/// A workload: its table, its verdicts in words, what was seen meanwhile.
fn work(report: &Report, workload: &Workload) -> String {
    let mut out = format!("\n## {}\n\n", marked(&workload.name));
    if let Some(command) = &workload.command {
        out += &format!("{}\n", marked_lines(&command.to_string()));
    }
    out += &format!("{}\n\n", table::table(report, workload, ASCII_MARKDOWN));
    for sentence in report.sentences(workload) {
        out += &format!("- {}\n", marked(&sentence));
    }
    for (title, table) in table::meanwhile(report, workload, ASCII_MARKDOWN) {
        out += &format!("\n{title}:\n\n{table}\n");
    }
    out
}

/// A figure, with its caption below it.
pub(super) fn image(figure: &Figure, folder: &str) -> String {
    let (title, caption) = (marked(&figure.title), marked(&figure.caption));
    let (name, folder) = (&figure.name, folder.replace(['<', '>', '\n'], "_"));
    format!("\n![{title}](<{folder}/{name}.svg>)\n\n*{title}.* {caption}\n")
}

fn published(report: &Report) -> String {
    let Some(study) = &report.plan.study else { return String::new() };
    let scale = facts::scale(report);
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
    format!("\n## Working sets{}\n\n{table}\n", facts::scale(report))
}

fn left_out(report: &Report) -> String {
    match report.left_out().as_slice() {
        [] => String::new(),
        lines => format!("\n## Left out\n\n{}", marked_list(lines)),
    }
}

/// What the audits noticed, kind by kind; those beyond the first few are folded.
pub(super) fn noticed(findings: &[Finding], comparisons: &[Comparison]) -> String {
    if findings.is_empty() {
        return "None of the audits noticed anything.\n".into();
    }
    let kinds = kinds(findings, comparisons);
    let (open, folded) = kinds.split_at(OPEN_MAX.min(kinds.len()));
    let mut out: String = open.iter().map(noticed_kind).collect();
    if !folded.is_empty() {
        let more: String = folded.iter().map(noticed_kind).collect();
        let count = folded.len();
        out += &format!("\n<details><summary>{count} more</summary>\n\n{more}\n</details>\n");
    }
    out
}

fn noticed_kind(kind: &Kind) -> String {
    let mut out = format!("- **{}**: {}\n", marked(&kind.title()), marked(&seen(kind.findings[0])));
    out += &format!("  {}\n", marked(kind.advice()));
    if let [_, rest @ ..] = kind.findings.as_slice()
        && !rest.is_empty()
    {
        let lines: String = rest.iter().map(|it| format!("  - {}\n", marked(&seen(it)))).collect();
        let count = rest.len();
        out += &format!(
            "\n  <details><summary>{count} more like it</summary>\n\n{lines}\n  </details>\n"
        );
    }
    out
}

fn failures(report: &Report) -> String {
    match facts::failures(report).as_slice() {
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
        let layers = report.layers(contender);
        if !layers.is_empty() {
            out += &format!("; its layers: {}", marked_code(&layers.join(" | ")));
        }
        if let Some(disks) = report.attached(contender).filter(|_| contender.disks.is_some()) {
            out += &format!("; its disks: {}", marked(disks));
        }
        if let Some(name) = report.known_as(contender) {
            out += &format!("; measured is {}", marked(&name));
        }
        if let Some(name) = report.other_name(contender) {
            out += &format!("; mounted as {}", marked_code(name));
        }
        if let Some(mounted) = report.mounted(contender) {
            out += &format!("; in effect: {}", marked_code(&mounted.options.join(",")));
        }
        let above = report.above(contender);
        if !above.is_empty() {
            out += &format!("; above it: {}", marked_code(&above.join(" | ")));
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
    if let Some(devices) = contender.devices {
        let several = if devices == 1 { "" } else { "s" };
        parts.push(format!("on {devices} device{several}"));
    }
    if !contender.partition.is_empty() {
        parts.push(format!("partition {}", marked_code(&contender.partition.join(" "))));
    }
    if !contender.layers.is_empty() {
        parts.push(format!("on layers {}", marked_code(&Layer::stack(&contender.layers))));
    }
    if let Some(kernel) = &contender.kernel {
        parts.push(format!("kernel {}", marked(kernel)));
    }
    if !contender.parameters.is_empty() {
        parts.push(format!("kernel parameters {}", marked_code(&contender.parameters.join(" "))));
    }
    if let Some(disks) = contender.disks {
        parts.push(format!("disks attached as {}", marked(disks.name())));
    }
    if !contender.mkfs.is_empty() {
        parts.push(format!("mkfs {}", marked_code(&contender.mkfs.join(" "))));
    }
    if !contender.mount.is_empty() {
        parts.push(format!("mount {}", marked_code(&contender.mount.join(","))));
    }
    let settings = contender.queue.iter().chain(&contender.sysctl).chain(&contender.module);
    for (name, value) in settings.chain(&contender.environment) {
        parts.push(marked(&format!("{name} = {value}")));
    }
    if !contender.above.is_empty() {
        parts.push(format!("under {}", marked_code(&Above::stack(&contender.above))));
    }
    if let Some(limits) = contender.limits {
        parts.push(marked(&format!("limited to {limits}")));
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
        let scale = facts::scale(report);
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
