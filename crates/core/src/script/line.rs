//! Text files, line by line: shell scripts, fstab(5), sysctl.conf(5), limits.conf(5), udev(7)
//! rules.

use super::command::{knob, request};
use super::device::is_device;
use super::request::{Knob, Limit, LimitBy, Mount, Request, Script, Written};
use super::udev;
use super::words::{self, Commands, Token, Variables};

/// How deep `sh -c` and `echo ... >> /etc/fstab` may be nested.
const DEPTH_MAX: usize = 4;

/// No variable's value is longer.
pub const VALUE_BYTES_MAX: usize = 1 << 16;

/// The rest of a longer comment is left out.
const COMMENT_BYTES_MAX: usize = 1 << 12;

/// The folders of /proc/sys.
const SYSCTL_ROOTS: [&str; 8] = ["abi", "debug", "dev", "fs", "kernel", "net", "user", "vm"];

/// What has been read so far.
#[derive(Default)]
pub struct Reader {
    /// The settings, and how many lines hold none.
    pub script: Script,
    variables: Variables,
    /// The comment above the next setting.
    comment: String,
}

/// Reads all lines.
pub fn read(text: &str) -> Script {
    let mut reader = Reader::default();
    for (number, line) in logical_lines(text) {
        let line = line.trim();
        match line.strip_prefix(['#', ';']) {
            // Each setting of the next line gets a copy.
            Some(_) if reader.comment.len() > COMMENT_BYTES_MAX => {}
            Some(comment) => reader.comment += &format!("{}\n", comment.trim_matches('#').trim()),
            None if line.is_empty() => reader.comment.clear(),
            None => reader.whole(number, line),
        }
    }
    reader.script
}

/// What stands behind a `#` that is not within quotes.
fn trailing_comment(line: &str) -> &str {
    let (before, comment) = line.rsplit_once(" #").unwrap_or((line, ""));
    let odd = |quote| before.matches(quote).count() % 2 == 1;
    if odd('"') || odd('\'') { "" } else { comment.trim() }
}

/// Lines with those joined that end in a backslash; each with the number of its first.
pub fn logical_lines(text: &str) -> Vec<(usize, String)> {
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

/// The commands of a text for the shell: the words of each, without redirections and what is
/// assigned before it.
pub fn started(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (_, line) in logical_lines(text) {
        let mut commands = Commands::of(&line);
        while let Some((command, _)) = commands.next(&Variables::new()) {
            let (words, _) = redirected(&command);
            found.push(words.into_iter().skip_while(|word| words::is_assignment(word)).collect());
        }
    }
    found
}

impl Reader {
    /// Reads one line that is neither empty nor a comment, with the comment that belongs to it.
    pub fn whole(&mut self, number: usize, line: &str) {
        let known = self.script.settings.len();
        let understood = self.line(number, line, 0);
        let found = &mut self.script.settings[known..];
        let trailing = trailing_comment(line);
        found.iter_mut().for_each(|it| it.comment = format!("{}{trailing}", self.comment));
        match found.is_empty() {
            false => self.comment.clear(),
            true => self.script.other_lines += usize::from(!understood),
        }
    }

    /// Reads one line; says whether it was empty, a comment or something else that is understood.
    fn line(&mut self, number: usize, line: &str, depth: usize) -> bool {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(wishes) = udev::wishes(line) {
            return self.rule(number, line, wishes, depth);
        }
        if let Some(found) = assigned(line) {
            self.push(number, line, found);
            return true;
        }
        if let Some(found) = fstab(&words::tokens(line, &self.variables)) {
            self.push(number, line, Request::Mount(found));
            return true;
        }
        if let Some(limit) = limit(line) {
            self.push(number, line, Request::Limit(limit));
            return true;
        }
        let mut piped: Vec<String> = Vec::new();
        let mut understood = false;
        let mut commands = Commands::of(line);
        while let Some((command, end)) = commands.next(&self.variables) {
            if command.is_empty() {
                continue;
            }
            understood |= self.command(number, &command, &piped, depth);
            let words = command.iter().filter_map(word).map(String::from).collect();
            piped = if end == "|" { words } else { Vec::new() };
        }
        understood
    }

    /// Adds a setting.
    pub fn push(&mut self, line: usize, command: &str, request: Request) {
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        self.script.settings.push(Written { line, command, request, comment: String::new() });
    }

    /// A rule of udev that sets nothing of the kernel's is another line.
    fn rule(&mut self, number: usize, line: &str, wishes: Vec<udev::Wish>, depth: usize) -> bool {
        let mut understood = false;
        for wish in wishes {
            understood |= match wish {
                udev::Wish::Set(request) => {
                    self.push(number, line, request);
                    true
                }
                udev::Wish::Run(command) => {
                    depth < DEPTH_MAX && self.line(number, &command, depth + 1)
                }
            };
        }
        understood
    }

    /// A value that is too long is as good as none: lines that double it would fill the memory.
    fn assign(&mut self, name: &str, value: &str) {
        let old = name.strip_suffix('+').and_then(|name| self.variables.get(name));
        let value = format!("{}{value}", old.map_or("", String::as_str));
        let name = name.trim_end_matches('+');
        match value.len() > VALUE_BYTES_MAX {
            true => drop(self.variables.remove(name)),
            false => drop(self.variables.insert(name.into(), value)),
        }
    }

    fn command(&mut self, line: usize, tokens: &[Token], piped: &[String], depth: usize) -> bool {
        let (words, target) = redirected(tokens);
        if let Some((name, value)) = loop_variable(&words).or_else(|| assignment(&words)) {
            self.assign(&name, &value);
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

/// The command without prefixes that only say when, how or as which user it is run.
fn without_prefix(words: &[String]) -> &[String] {
    const PREFIXES: [&str; 16] = [
        "sudo", "doas", "then", "do", "else", "if", "elif", "while", "!", "time", "nohup", "exec",
        "env", "command", "{", "nice",
    ];
    let mut rest = words;
    while let Some(first) = rest.first() {
        let prefix = PREFIXES.contains(&first.as_str());
        if !prefix && !words::is_assignment(first) {
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

/// `NAME=value`, alone in its command.
fn assignment(words: &[String]) -> Option<(String, String)> {
    let declares = |word: &&String| words::DECLARING.contains(&word.as_str());
    let words: Vec<&String> = words.iter().skip_while(declares).collect();
    let [word] = words.as_slice() else { return None };
    let (name, value) = word.split_once('=').filter(|_| words::is_assignment(word))?;
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

/// A line of limits.conf(5): domain, kind, item, value.
fn limit(line: &str) -> Option<Limit> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, kind @ ("soft" | "hard" | "-"), item, value] = words.as_slice() else { return None };
    let is_number = value.trim_start_matches('-').chars().all(|c| c.is_ascii_digit());
    let is_value = is_number || ["unlimited", "infinity"].contains(value);
    let is_limit = is_value && item.chars().all(|c| c.is_ascii_lowercase());
    let [kind, item, value] = [kind, item, value].map(ToString::to_string);
    is_limit.then_some(Limit { kind, item, value, by: LimitBy::Pam })
}

/// A line of sysctl.conf: `vm.dirty_ratio = 10`. No command has such a name.
fn assigned(line: &str) -> Option<Request> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim().trim_start_matches('-');
    let part = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    // sysctl.d(5): where the first separator is a slash, slashes separate.
    let slashes = name.split_once('/').is_some_and(|(root, _)| SYSCTL_ROOTS.contains(&root));
    let is_name = (name.contains('.') || slashes) && !name.contains("..");
    let name = if slashes { &name.replace('/', ".") } else { name };
    let is_name = is_name && name.chars().all(part);
    let value = value.split('#').next().unwrap_or("").trim().to_string();
    (is_name && !value.is_empty()).then(|| Request::Knob { knob: Knob::Sysctl(name.into()), value })
}
