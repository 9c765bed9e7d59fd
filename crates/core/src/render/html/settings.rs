//! The contenders' settings side by side; those that are equal are folded away.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::Report;
use crate::model::{Above, Contender, Layer};

/// A setting with its value for each contender, in the plan's order.
type Setting = (String, Vec<String>);

/// What is not set.
const DEFAULT: &str = "default";

/// The section.
pub(super) fn section(report: &Report) -> Markup {
    let is_equal = |(_, values): &Setting| values.windows(2).all(|pair| pair[0] == pair[1]);
    let (equal, different): (Vec<_>, Vec<_>) = settings(report).into_iter().partition(is_equal);
    html! {
        section #settings {
            h2 { "Settings" }
            @if different.is_empty() { p { "All contenders have the same settings." } }
            @else { (table(report, "Settings that differ", &different)) }
            @if !equal.is_empty() {
                details {
                    summary { (equal.len()) " settings are equal for all contenders" }
                    (table(report, "Settings that are equal", &equal))
                }
            }
        }
    }
}

fn table(report: &Report, caption: &str, settings: &[Setting]) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr {
                    th scope="col" { "setting" }
                    @for contender in &report.plan.contenders {
                        th scope="col" { (contender.name) }
                    }
                } }
                tbody {
                    @for (name, values) in settings { tr {
                        th scope="row" { (name) }
                        @for value in values { td.words { (value) } }
                    } }
                }
            }
        }
    }
}

fn settings(report: &Report) -> Vec<Setting> {
    let contenders = &report.plan.contenders;
    let each: Vec<BTreeMap<(u8, String), String>> =
        contenders.iter().map(|contender| of(report, contender)).collect();
    let mut names: Vec<&(u8, String)> = each.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    let value = |name: &(u8, String), its: &BTreeMap<(u8, String), String>| {
        its.get(name).cloned().unwrap_or_else(|| DEFAULT.into())
    };
    let setting = |name: &(u8, String)| {
        (name.1.clone(), each.iter().map(|its| value(name, its)).collect::<Vec<_>>())
    };
    names.into_iter().map(setting).collect()
}

fn stack(layers: &[Layer]) -> Option<String> {
    (!layers.is_empty()).then(|| Layer::stack(layers))
}

/// What is set for a contender, by rank and name; and what the kernel says of it.
fn of(report: &Report, contender: &Contender) -> BTreeMap<(u8, String), String> {
    let words = |words: &[String], between: &str| (!words.is_empty()).then(|| words.join(between));
    let known = [
        ("file system", (!contender.file_system.is_empty()).then(|| contender.file_system.clone())),
        ("measured", report.known_as(contender)),
        ("mounted as", report.other_name(contender).map(String::from)),
        ("directory", contender.path.clone()),
        ("kernel", contender.kernel.clone()),
        ("kernel parameters", words(&contender.parameters, " ")),
        ("disks attached as", contender.disks.map(|disks| disks.to_string())),
        ("disk driver", report.attached(contender).map(String::from)),
        ("devices", contender.devices.map(|devices| devices.to_string())),
        ("partition", words(&contender.partition, " ")),
        ("layers", stack(&contender.layers)),
        ("layers made", words(report.layers(contender), " | ")),
        ("mkfs", words(&contender.mkfs, " ")),
        ("mount", words(&contender.mount, ",")),
        ("mounted with", report.mounted(contender).map(|it| it.options.join(","))),
        ("above", (!contender.above.is_empty()).then(|| Above::stack(&contender.above))),
        ("above, mounted with", words(&report.above(contender), " | ")),
        ("disk", report.disk(contender).map(ToString::to_string)),
        ("limits", contender.limits.map(|limits| limits.to_string())),
    ];
    let known = (0..)
        .zip(known)
        .filter_map(|(rank, (name, value))| Some(((rank, name.to_string()), value?)));
    let maps = [
        ("queue", &contender.queue),
        ("sysctl", &contender.sysctl),
        ("module", &contender.module),
        ("environment", &contender.environment),
    ];
    let named = (20..).zip(maps).flat_map(|(rank, (kind, map))| {
        map.iter().map(move |(name, value)| ((rank, format!("{kind} {name}")), value.to_string()))
    });
    known.chain(named).collect()
}
