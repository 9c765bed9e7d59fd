//! Plans, as far as they set something: each contender's partition, mkfs, mount, queue and
//! sysctl.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::options::choices;
use super::request::{Call, Knob, Mount, Request, Script, Written};

/// The settings of the contenders; `None` if the text is no TOML or has no contenders.
pub fn read(text: &str) -> Option<Script> {
    let plan = DeTable::parse(text).ok()?;
    let contenders = plan.get_ref().get("contender")?.get_ref().as_array()?;
    let tables = contenders.iter().filter_map(|contender| contender.get_ref().as_table());
    let settings = tables.flat_map(|table| contender(text, table)).collect();
    Some(Script { settings, other_lines: 0 })
}

fn contender(text: &str, table: &DeTable<'_>) -> Vec<Written> {
    let file_system = table.get("file_system").and_then(|v| v.get_ref().as_str()).unwrap_or("");
    let mut settings = Vec::new();
    let mut push = |at: &Spanned<DeValue<'_>>, command: String, request: Request| {
        let line = text[..at.span().start].matches('\n').count() + 1;
        settings.push(Written { line, command, request, comment: String::new() });
    };
    if let Some(value) = table.get("partition") {
        let (program, rest) = ("parted".to_string(), texts(value.get_ref()));
        let command = format!("parted DEVICE {}", rest.join(" "));
        let devices = vec!["/dev/DEVICE".to_string()];
        let call = Call { program, devices, rest, ..Call::default() };
        push(value, command, Request::Make(call));
    }
    if let Some(value) = table.get("mkfs") {
        let program = format!("mkfs.{file_system}");
        let mut words = texts(value.get_ref());
        let command = format!("{program} {}", words.join(" "));
        words.push("/dev/DEVICE".into());
        let (choices, devices, rest) = choices(&words);
        push(
            value,
            command,
            Request::Make(Call { program, choices, devices, rest, ..Call::default() }),
        );
    }
    if let Some(value) = table.get("mount") {
        let lists = texts(value.get_ref());
        let options = lists.iter().flat_map(|list| list.split(',')).map(String::from).collect();
        let command = format!("mount -t {file_system} -o {}", lists.join(","));
        let (file_system, device) = (Some(file_system.to_string()), "/dev/DEVICE".to_string());
        push(value, command, Request::Mount(Mount { file_system, options, device }));
    }
    let pairs = |name| table.get(name).and_then(|v| v.get_ref().as_table()).into_iter().flatten();
    let mut queue: Vec<_> = pairs("queue").collect();
    // As a run sets them: the scheduler first, which resets the others.
    queue.sort_by_key(|(name, _)| name.get_ref() != "scheduler");
    for (name, value) in queue {
        let (file, shown) = (name.get_ref().to_string(), plain(value.get_ref()));
        let knob = Knob::Queue { device: "DEVICE".into(), file };
        push(value, format!("{} = {shown}", name.get_ref()), Request::Knob { knob, value: shown });
    }
    for (name, value) in pairs("sysctl") {
        let (name, shown) = (name.get_ref().to_string(), plain(value.get_ref()));
        let command = format!("{name} = {shown}");
        push(value, command, Request::Knob { knob: Knob::Sysctl(name), value: shown });
    }
    settings
}

fn texts(value: &DeValue<'_>) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|word| plain(word.get_ref())).collect()
}

fn plain(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        _ => String::new(),
    }
}
