//! Tables of the pages that are made of a run in `record/`: what one fsync costs, by the medians of
//! its trials.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Scene, list, sample, text};

/// What is counted of one fsync, and what a column or a table is called.
const COUNTED: [(&str, &str); 3] = [
    ("fsync_device_write_bytes", "written"),
    ("fsync_device_writes", "writes"),
    ("fsync_device_flushes", "flushes"),
];

/// What stands around a table; the first has the run's folder.
const MARKS: [&str; 2] = ["<!-- made of record/", "<!-- end of the table -->\n"];

/// The median of a contender's trials.
fn median(document: &Value, contender: &str, metric: &str) -> f64 {
    let trials = list(&document["trials"]).iter().filter(|it| it["contender"] == contender);
    let mut values: Vec<f64> = trials.map(|trial| sample(trial, metric)).collect();
    values.sort_by(f64::total_cmp);
    assert!(values.len() >= 4, "{contender} has {} trials", values.len());
    let half = values.len() / 2;
    f64::midpoint(values[half], values[(values.len() - 1) / 2])
}

fn shown(metric: &str, value: f64) -> String {
    match metric.ends_with("_bytes") {
        true => format!("{:.1} KiB", value / 1024.0),
        false => format!("{value:.2}"),
    }
}

/// Contenders down, what is counted across.
fn one_way(document: &Value, names: &[&str]) -> String {
    let mut table = "\n| one fsync on".to_string();
    COUNTED.iter().for_each(|(_, title)| write!(table, " | {title}").unwrap());
    table += &format!(" |\n|{}\n", " --- |".repeat(COUNTED.len() + 1));
    for name in names {
        let cell = |(metric, _): &(&str, _)| shown(metric, median(document, name, metric));
        let cells = COUNTED.iter().map(cell).collect::<Vec<_>>().join(" | ");
        writeln!(table, "| {name} | {cells} |").unwrap();
    }
    table + "\n"
}

/// Of names such as `ext4 on luks`: a table of each count, file systems down and layers across,
/// with how many times as much it is as without layers.
fn two_ways(document: &Value, names: &[[&str; 2]]) -> String {
    let once = |way: usize| {
        let mut once: Vec<&str> = Vec::new();
        names.iter().map(|it| it[way]).for_each(|it| match once.contains(&it) {
            true => {}
            false => once.push(it),
        });
        once
    };
    let (systems, layers) = (once(0), once(1));
    let mut tables = "\n".to_string();
    for (metric, title) in COUNTED {
        let rule = " --- |".repeat(layers.len() + 1);
        write!(tables, "| {title} | {} |\n|{rule}\n", layers.join(" | ")).unwrap();
        for system in &systems {
            let of = |layer: &str| median(document, &format!("{system} on {layer}"), metric);
            let cell = |layer: &&str| match *layer {
                "none" => shown(metric, of(layer)),
                _ => format!("{}, {:.2} times", shown(metric, of(layer)), of(layer) / of("none")),
            };
            let cells = layers.iter().map(cell).collect::<Vec<_>>().join(" | ");
            writeln!(tables, "| {system} | {cells} |").unwrap();
        }
        tables += "\n";
    }
    tables
}

/// The page with its table as the run has it, if it has one.
fn made(scene: &Scene, page: &str) -> Option<String> {
    let (before, rest) = page.split_once(MARKS[0])?;
    let (run, rest) = rest.split_once(" -->\n").unwrap();
    let (_, after) = rest.split_once(MARKS[1]).unwrap();
    let report = format!("report record/{run}/run.tar.gz --format json");
    let document = scene.run(&report).exits(0).json();
    let names = list(&document["plan"]["contender"]).iter().map(|it| text(&it["name"]));
    let names: Vec<&str> = names.collect();
    let pairs: Option<Vec<[&str; 2]>> =
        names.iter().map(|name| name.split_once(" on ").map(|(one, other)| [one, other])).collect();
    let table = match pairs {
        Some(pairs) => two_ways(&document, &pairs),
        None => one_way(&document, &names),
    };
    Some(format!("{before}{}{run} -->\n{table}{}{after}", MARKS[0], MARKS[1]))
}

#[test]
fn tables_of_layers_and_of_openzfs_are_their_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scene = Scene::new();
    std::os::unix::fs::symlink(root.join("record"), scene.path("record")).unwrap();
    for name in ["docs/layers.md", "docs/openzfs.md"] {
        let page = || fs::read_to_string(root.join(name)).unwrap();
        let now = made(&scene, &page()).unwrap_or_else(|| panic!("{name} has no table"));
        if std::env::var_os("FSVERDICT_RENEW").is_some() {
            fs::write(root.join(name), &now).unwrap();
        }
        assert!(page() == now, "{name}: FSVERDICT_RENEW=1 makes its table anew");
    }
}
