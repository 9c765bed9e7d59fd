//! Which programs a command line starts.

use crate::script::started;

/// Programs that run another, which comes after their options and numbers.
const WRAPPERS: [&str; 19] = [
    "chrt", "env", "exec", "ionice", "mpiexec", "mpirun", "nice", "nohup", "numactl", "prlimit",
    "setsid", "srun", "stdbuf", "sudo", "taskset", "time", "timeout", "command", "unshare",
];

const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];

/// The commands of a command line, each with its program's name first: wrapper commands are
/// removed, and a shell's line is split.
pub fn commands(argv: &[String]) -> Vec<Vec<String>> {
    let Some((program, rest)) = argv.split_first() else { return Vec::new() };
    let name = program.rsplit('/').next().unwrap_or(program);
    if WRAPPERS.contains(&name) {
        let is_its = |word: &String| {
            word.starts_with('-')
                || word.contains('=')
                || word.starts_with(|c: char| c.is_ascii_digit())
        };
        let begin = rest.iter().position(|word| !is_its(word)).unwrap_or(rest.len());
        return commands(&rest[begin..]);
    }
    if SHELLS.contains(&name) {
        // `-c`, `-ec`: the line comes next.
        let option =
            |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        let line = rest.iter().position(option).and_then(|place| rest.get(place + 1));
        let lines = line.into_iter().flat_map(|line| started(line));
        return lines.flat_map(|words| commands(&words)).collect();
    }
    let own = std::iter::once(name.to_string()).chain(rest.iter().cloned());
    vec![own.collect()]
}

/// Whether one of the words is one of these.
pub fn has(words: &[String], options: &[&str]) -> bool {
    words.iter().any(|word| options.contains(&word.as_str()))
}

/// Whether a cluster of short options has this letter: `-wr` has `r`.
pub fn has_letter(words: &[String], letter: char) -> bool {
    let clusters = words.iter().filter(|word| word.starts_with('-') && !word.starts_with("--"));
    clusters.into_iter().any(|word| word.contains(letter))
}

/// What comes after an option: `-i 0`, `-i0`; `--name=value`.
pub fn values<'a>(words: &'a [String], option: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for (place, word) in words.iter().enumerate() {
        match word.strip_prefix(option) {
            Some("") => values.extend(words.get(place + 1).map(String::as_str)),
            Some(rest) => match rest.strip_prefix('=') {
                Some(value) => values.push(value),
                None if !option.starts_with("--") => values.push(rest),
                None => {}
            },
            None => {}
        }
    }
    values
}

/// Metrics by their names.
pub fn metrics(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}
