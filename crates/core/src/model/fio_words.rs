//! fio's words as its users spell them: `-rw=read`, `--rw read`, `env SIZE=1g /usr/bin/fio ...`.

use std::collections::BTreeMap;

use super::Scalar;

/// What takes no word after it: fio's own options without an argument (init.c, `l_opts`), and those
/// of a job that are set by being there (options.c and engines/, type `FIO_OPT_STR_SET`).
const ALONE: [&str; 37] = [
    "append-terse",
    "bandwidth-log",
    "cmdhelp",
    "cpuclock-test",
    "crctest",
    "enghelp",
    "help",
    "memcpytest",
    "merge-blktrace-only",
    "minimal",
    "parse-only",
    "readonly",
    "server",
    "showcmd",
    "version",
    "warnings-fatal",
    "blocksize_unaligned",
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "fixedbufs",
    "group_reporting",
    "hipri",
    "listen",
    "new_group",
    "norandommap",
    "pingpong",
    "refill_buffers",
    "registerfiles",
    "sqthread_poll",
    "stonewall",
    "thread",
    "time_based",
    "userspace_reap",
    "verify_only",
    "wait_for_previous",
    "zero_buffers",
];

/// What says how fio's own report looks and where it goes, which we read in its place.
const OF_REPORTS: [&str; 9] = [
    "append-terse",
    "eta",
    "eta-interval",
    "eta-newline",
    "minimal",
    "output",
    "output-format",
    "status-interval",
    "terse-version",
];

/// fio's arguments with two dashes before each option and `=` after it, as getopt_long_only(3)
/// takes them either way, and without what they say of fio's own report.
pub fn plain_fio_words(words: &[String]) -> Vec<String> {
    let mut plain = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let option = word.trim_start_matches('-');
        if !word.starts_with('-') || option.is_empty() {
            plain.extend((!option.is_empty()).then(|| word.clone()));
            continue;
        }
        let name = option.split('=').next().unwrap_or_default();
        let takes_next = option == name && !ALONE.contains(&name);
        let value = takes_next.then(|| words.next_if(|next| !next.starts_with('-'))).flatten();
        if !OF_REPORTS.contains(&name) {
            let value = value.map(|value| format!("={value}"));
            plain.push(format!("--{option}{}", value.unwrap_or_default()));
        }
    }
    plain
}

/// The variables and the program of a command that begins with `env NAME=VALUE`, and the
/// program's arguments.
pub fn program_of(argv: &[String]) -> Option<(BTreeMap<String, Scalar>, &str, &[String])> {
    let (first, mut rest) = argv.split_first()?;
    let mut variables = BTreeMap::new();
    if first.rsplit('/').next() != Some("env") {
        return Some((variables, first, rest));
    }
    while let Some((word, after)) = rest.split_first() {
        match word.split_once('=') {
            Some((name, value)) => variables.insert(name.into(), Scalar::Text(value.into())),
            None => return Some((variables, word, after)),
        };
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn however_options_are_spelled_they_are_the_same() {
        let plain = |text: &str| plain_fio_words(&words(text)).join(" ");
        for spelled in [
            "--name a --rw randwrite --thread --size 1g",
            "-name=a -rw=randwrite -thread -size=1g",
            "--name=a --rw=randwrite --thread --size=1g --output out.json --output-format json",
            "--minimal --name=a -rw randwrite --thread --size 1g --eta=never",
        ] {
            assert_eq!(plain(spelled), "--name=a --rw=randwrite --thread --size=1g", "{spelled}");
        }
        assert_eq!(
            plain("--time_based a.fio --section b c.fio"),
            "--time_based a.fio --section=b c.fio"
        );
        assert_eq!(plain("--direct --rw=read"), "--direct --rw=read");
        assert_eq!(plain("--startdelay=-1 -- a.fio"), "--startdelay=-1 a.fio");
    }

    #[test]
    fn a_program_is_found_behind_env() {
        let argv = words("/usr/bin/env SIZE=1g DEPTH=4 fio job.fio");
        let (variables, program, arguments) = program_of(&argv).unwrap();
        assert_eq!((variables["SIZE"].to_string(), variables.len()), ("1g".into(), 2));
        assert_eq!((program, arguments), ("fio", &argv[4..]));
        assert_eq!(program_of(&words("cp -a x y")).unwrap().1, "cp");
        assert_eq!(program_of(&words("env -i fio")).unwrap().1, "-i", "another environment");
        assert_eq!(program_of(&words("env A=b")), None);
    }
}
