//! Text files, line by line: shell scripts, fstab(5), sysctl.conf(5), udev(7) rules.

use super::command::{knob, request};
use super::device::is_device;
use super::request::{Knob, Mount, Request, Script, Written};
use super::words::{self, Token, Variables};

/// How deep `sh -c` and `echo ... >> /etc/fstab` may be nested.
const DEPTH_MAX: usize = 4;

struct Reader {
    script: Script,
    variables: Variables,
}

/// Reads all lines.
pub fn read(text: &str) -> Script {
    let mut reader = Reader { script: Script::default(), variables: Variables::new() };
    for (number, line) in logical_lines(text) {
        let known = reader.script.settings.len();
        let understood = reader.line(number, &line, 0);
        if !understood && reader.script.settings.len() == known {
            reader.script.other_lines += 1;
        }
    }
    reader.script
}

/// Lines with those joined that end in a backslash; each with the number of its first.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let (number, mut joined) = open.take().unwrap_or((index + 1, String::new()));
        match line.strip_suffix('\\') {
            // A comment ends with its line.
            Some(start) if !joined.is_empty() || !line.trim_start().starts_with('#') => {
                joined.push_str(start);
                joined.push(' ');
                open = Some((number, joined));
            }
            _ => {
                joined.push_str(line);
                lines.push((number, joined));
            }
        }
    }
    lines.extend(open);
    lines
}

impl Reader {
    /// Reads one line; says whether it was empty, a comment or something else that is understood.
    fn line(&mut self, number: usize, line: &str, depth: usize) -> bool {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(found) = udev(line).or_else(|| assigned(line)) {
            self.push(number, line, found);
            return true;
        }
        if let Some(found) = fstab(&words::tokens(line, &self.variables)) {
            self.push(number, line, Request::Mount(found));
            return true;
        }
        let mut piped: Vec<String> = Vec::new();
        let mut understood = false;
        // Read anew for each command, as the one before it may have set a variable.
        let nth = |reader: &Self, index| {
            commands(&words::tokens(line, &reader.variables)).into_iter().nth(index)
        };
        let mut index = 0;
        while let Some((command, end)) = nth(self, index) {
            understood |= self.command(number, &command, &piped, depth);
            let words = command.iter().filter_map(word).map(String::from).collect();
            piped = if end == "|" { words } else { Vec::new() };
            index += 1;
        }
        understood
    }

    fn push(&mut self, line: usize, command: &str, request: Request) {
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        self.script.settings.push(Written { line, command, request });
    }

    fn command(&mut self, line: usize, tokens: &[Token], piped: &[String], depth: usize) -> bool {
        let (words, target) = redirected(tokens);
        if let Some((name, value)) = loop_variable(&words).or_else(|| assignment(&words)) {
            self.variables.insert(name, value);
            return true;
        }
        let words = without_prefix(&words);
        let Some(program) = words.first() else { return true };
        let program = program.rsplit('/').next().unwrap_or(program);
        let said = match (program, target) {
            ("echo" | "printf", Some(target)) => Some((said(words), target)),
            ("tee", _) => {
                let to = words[1..].iter().find(|word| !word.starts_with('-'));
                to.map(|to| (said(without_prefix(piped)), to.clone()))
            }
            _ => None,
        };
        match (said, program) {
            (Some((value, to)), _) => self.written(line, &value, &to, depth),
            (None, "sh" | "bash" | "dash") if depth < DEPTH_MAX => {
                let script = words.iter().skip_while(|word| !word.ends_with('c')).nth(1).cloned();
                script.is_some_and(|script| self.line(line, &script, depth + 1))
            }
            (None, program) => {
                let shown = std::iter::once(program)
                    .chain(words[1..].iter().map(String::as_str))
                    .collect::<Vec<_>>()
                    .join(" ");
                let requests = request(program, &words[1..]);
                let known = !requests.is_empty();
                requests.into_iter().for_each(|request| self.push(line, &shown, request));
                known
            }
        }
    }

    /// `value` is written to the file `to`.
    fn written(&mut self, line: usize, value: &str, to: &str, depth: usize) -> bool {
        if let Some(knob) = knob(to) {
            let value = value.trim().to_string();
            self.push(line, &format!("echo {value} > {to}"), Request::Knob { knob, value });
            return true;
        }
        // Text that another program will read is read as that program would.
        depth < DEPTH_MAX && to.starts_with("/etc/") && self.line(line, value, depth + 1)
    }
}

fn word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) => Some(word),
        Token::Operator(_) => None,
    }
}

/// The simple commands of a line, each with the operator that ends it. Redirections stay within.
fn commands(tokens: &[Token]) -> Vec<(Vec<Token>, String)> {
    let mut commands = Vec::new();
    let mut current = Vec::new();
    for token in tokens {
        match token {
            Token::Operator(operator) if !operator.contains(['>', '<']) => {
                commands.push((std::mem::take(&mut current), operator.clone()));
            }
            token => current.push(token.clone()),
        }
    }
    commands.push((current, String::new()));
    commands.retain(|(command, _)| !command.is_empty());
    commands
}

/// A command's words, and the file its output goes to.
fn redirected(tokens: &[Token]) -> (Vec<String>, Option<String>) {
    let (mut words, mut target) = (Vec::new(), None);
    let mut tokens = tokens.iter();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => words.push(word.clone()),
            Token::Operator(operator) => {
                let file = tokens.next().and_then(word).map(String::from);
                if matches!(operator.as_str(), ">" | ">>" | "1>") {
                    target = file;
                }
            }
        }
    }
    (words, target)
}

/// What echo or printf says.
fn said(words: &[String]) -> String {
    let flag = |word: &&String| matches!(word.as_str(), "-n" | "-e" | "-ne" | "-en" | "--");
    let words: Vec<&str> = words.iter().skip(1).skip_while(flag).map(String::as_str).collect();
    words.join(" ").replace("\\n", "").trim().to_string()
}

/// The command behind what only says when, how or as whom it is run.
fn without_prefix(words: &[String]) -> &[String] {
    const PREFIXES: [&str; 16] = [
        "sudo", "doas", "then", "do", "else", "if", "elif", "while", "!", "time", "nohup", "exec",
        "env", "command", "{", "nice",
    ];
    let mut rest = words;
    while let Some(first) = rest.first() {
        let prefix = PREFIXES.contains(&first.as_str());
        if !prefix && !is_assignment(first) {
            break;
        }
        rest = &rest[1..];
        while prefix && rest.first().is_some_and(|word| word.starts_with('-')) {
            // `sudo -u root`: these options have a value.
            let with_value = matches!(rest[0].as_str(), "-u" | "-g" | "-n") && first != "sudo"
                || matches!(rest[0].as_str(), "-u" | "-g");
            rest = &rest[(1 + usize::from(with_value)).min(rest.len())..];
        }
    }
    rest
}

fn is_assignment(word: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.split_once('=').is_some_and(|(left, _)| {
        !left.is_empty() && left.chars().all(name) && !left.starts_with(|c: char| c.is_numeric())
    })
}

/// `NAME=value`, alone in its command.
fn assignment(words: &[String]) -> Option<(String, String)> {
    let declares = |word: &&String| matches!(word.as_str(), "export" | "readonly" | "local");
    let words: Vec<&String> = words.iter().skip_while(declares).collect();
    let [word] = words.as_slice() else { return None };
    let (name, value) = word.split_once('=').filter(|_| is_assignment(word))?;
    Some((name.into(), value.into()))
}

/// `for d in nvme0n1 nvme1n1`: the first stands for all.
fn loop_variable(words: &[String]) -> Option<(String, String)> {
    match words {
        [first, name, within, value, ..] if first == "for" && within == "in" => {
            Some((name.clone(), value.clone()))
        }
        _ => None,
    }
}

/// A line of fstab: device, place, type, options.
fn fstab(tokens: &[Token]) -> Option<Mount> {
    let words: Vec<&str> = tokens.iter().map(word).collect::<Option<_>>()?;
    let [device, place, file_system, options, numbers @ ..] = words.as_slice() else { return None };
    let is_place = place.starts_with('/') || *place == "none";
    let are_numbers = numbers.len() <= 2 && numbers.iter().all(|n| n.parse::<u8>().is_ok());
    // A file system without a device has its type, or anything, in the device's place.
    let is_line = is_place && are_numbers && !file_system.starts_with(['-', '/']);
    (is_line && is_device(device)).then(|| Mount {
        file_system: Some((*file_system).into()),
        options: options.split(',').map(String::from).collect(),
        device: (*device).into(),
    })
}

/// A line of sysctl.conf: `vm.dirty_ratio = 10`. No command has such a name.
fn assigned(line: &str) -> Option<Request> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim().trim_start_matches('-');
    let part = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_name = name.contains('.') && name.chars().all(part) && !name.contains("..");
    let value = value.split('#').next().unwrap_or("").trim().to_string();
    (is_name && !value.is_empty()).then(|| Request::Knob { knob: Knob::Sysctl(name.into()), value })
}

/// A udev rule that sets a queue's file: `ATTR{queue/scheduler}="none"`.
fn udev(line: &str) -> Option<Request> {
    let (_, rest) = line.split_once("ATTR{queue/")?;
    let (file, rest) = rest.split_once('}')?;
    // `==` compares.
    let value = rest.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
    let value = value.split('"').next()?.to_string();
    let kernel = line.split_once("KERNEL==\"").and_then(|(_, rest)| rest.split('"').next());
    let device = kernel.unwrap_or("DEVICE").to_string();
    Some(Request::Knob { knob: Knob::Queue { device, file: file.into() }, value })
}
