//! Rules of udev(7): pairs `KEY{attribute}operator"value"`, with commas between them.

use super::request::{Knob, Request};

/// Keys of udev(7). A line that holds another one is no rule.
const KEYS: [&str; 29] = [
    "ACTION",
    "ATTR",
    "ATTRS",
    "CONST",
    "DEVPATH",
    "DRIVER",
    "DRIVERS",
    "ENV",
    "GOTO",
    "GROUP",
    "IMPORT",
    "KERNEL",
    "KERNELS",
    "LABEL",
    "MODE",
    "NAME",
    "OPTIONS",
    "OWNER",
    "PROGRAM",
    "RESULT",
    "RUN",
    "SECLABEL",
    "SUBSYSTEM",
    "SUBSYSTEMS",
    "SYMLINK",
    "SYSCTL",
    "TAG",
    "TAGS",
    "TEST",
];

/// The longest first: `=` begins none of the others, but ends them.
const OPERATORS: [&str; 6] = ["==", "!=", "+=", "-=", ":=", "="];

/// Each that sets something keeps its rule's whole text.
const PAIRS_MAX: usize = 64;

/// One pair of a rule.
struct Pair<'a> {
    key: &'a str,
    attribute: &'a str,
    operator: &'a str,
    value: String,
}

impl Pair<'_> {
    fn compares(&self) -> bool {
        matches!(self.operator, "==" | "!=")
    }
}

/// What a rule sets.
pub enum Wish {
    /// A file of the kernel's, or nothing where something was meant.
    Set(Request),
    /// By a command that it runs.
    Run(String),
}

/// What the rule of `line` sets, in its order; `None` if the line is no rule.
pub fn wishes(line: &str) -> Option<Vec<Wish>> {
    let pairs = pairs(line)?;
    if pairs.len() > PAIRS_MAX {
        let why = format!("a rule of more than {PAIRS_MAX} pairs is not read");
        return Some(vec![Wish::Set(Request::Other(why))]);
    }
    let device = device(&pairs);
    let mut wishes: Vec<Wish> = pairs.iter().filter_map(|pair| wish(pair, &device)).collect();
    let compares_queue =
        |pair: &Pair| pair.compares() && pair.key == "ATTR" && pair.attribute.starts_with("queue/");
    if pairs.iter().all(Pair::compares) && pairs.iter().any(compares_queue) {
        let why = "the rule only compares (==), and sets nothing: a single = sets";
        wishes.push(Wish::Set(Request::Idle(why.into())));
    }
    Some(wishes)
}

fn pairs(line: &str) -> Option<Vec<Pair<'_>>> {
    let mut rest = line.trim();
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let (pair, after) = pair(rest)?;
        pairs.push(pair);
        rest = after.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    }
    // `NAME="x"` alone is a shell's assignment, too.
    let is_rule = |pair: &Pair| pair.operator != "=" || !pair.attribute.is_empty();
    pairs.iter().any(is_rule).then_some(pairs)
}

fn pair(text: &str) -> Option<(Pair<'_>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_uppercase())?;
    let (key, rest) = text.split_at(end);
    let known = KEYS.contains(&key);
    let (attribute, rest) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => ("", rest),
    };
    let rest = rest.trim_start();
    let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator))?;
    let rest = rest[operator.len()..].trim_start();
    // `e"..."` has escapes, `i"..."` is compared without regard to case.
    let rest = rest.strip_prefix(['e', 'i']).unwrap_or(rest).strip_prefix('"')?;
    let end = closing(rest)?;
    let value = rest[..end].replace("\\\"", "\"");
    known.then_some((Pair { key, attribute, operator, value }, &rest[end + 1..]))
}

/// Where the quote is that ends a value: not one behind a backslash.
fn closing(text: &str) -> Option<usize> {
    let quotes = text.match_indices('"').map(|(place, _)| place);
    quotes.into_iter().find(|&place| !text[..place].ends_with('\\'))
}

/// The devices that a rule is for: by name, and by what else it compares. Rules that compare
/// otherwise are for other devices.
fn device(pairs: &[Pair]) -> String {
    let kernel = pairs.iter().find(|pair| pair.key == "KERNEL" && pair.operator == "==");
    let name = kernel.map_or("DEVICE", |pair| pair.value.as_str());
    let others = pairs.iter().filter(|pair| {
        pair.compares() && !matches!(pair.key, "KERNEL" | "ACTION" | "SUBSYSTEM" | "TEST")
    });
    let others = others.map(|it| format!(" {}{}{:?}", it.attribute, it.operator, it.value));
    format!("{name}{}", others.collect::<String>())
}

fn wish(pair: &Pair, device: &str) -> Option<Wish> {
    if pair.compares() {
        return None;
    }
    let name = device.split(' ').next().unwrap_or(device);
    let value = pair.value.clone();
    let knob = match (pair.key, pair.attribute) {
        ("ATTR", attribute) => match attribute.strip_prefix("queue/") {
            Some(file) => Knob::Queue { device: device.into(), file: file.into() },
            None => Knob::Other(format!("/sys/class/block/{name}/{attribute}")),
        },
        ("SYSCTL", name) => Knob::Sysctl(name.replace('/', ".")),
        ("RUN", attribute) if attribute != "builtin" => return Some(Wish::Run(run(&value, name))),
        _ => return None,
    };
    Some(Wish::Set(Request::Knob { knob, value }))
}

/// A command with the rule's own names of the device replaced.
fn run(command: &str, name: &str) -> String {
    let node = format!("/dev/{name}");
    let nodes = ["$devnode", "$tempnode", "%N"].iter();
    let command = nodes.fold(command.to_string(), |text, is| text.replace(is, &node));
    ["$kernel", "$name", "%k"].iter().fold(command, |text, is| text.replace(is, name))
}
