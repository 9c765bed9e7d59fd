//! Figures that benchmarks print of their own work: which programs are known, how each one's output
//! is read, and by which of its figures it is judged.
//!
//! A program is recognised by its output, so that a script's output is read as well as its own. The
//! figure that judges the work has to be known before its first trial: the command line decides it
//! ([`judged_by`]).

mod bonnie;
mod db_bench;
mod dbench;
mod dd;
mod elbencho;
mod filebench;
mod ior;
mod iozone;
mod mdtest;
mod pgbench;
mod stress_ng;
mod sysbench;
mod text;
mod typed;
mod ycsb;

use crate::model::{Command, Sample};

pub use sysbench::samples as sysbench;

/// A benchmark whose output is known.
#[derive(Debug)]
pub struct Program {
    /// What begins its metrics.
    prefix: &'static str,
    /// The names by which it is started.
    names: &'static [&'static str],
    /// One of these is in its output: most outputs are of no known program, and some are long.
    marks: &'static [&'static str],
    /// The figures in what it printed.
    read: fn(&str) -> Vec<Sample>,
    /// The figures by which a run with these words after its name is judged; none: by its time.
    judged: fn(&[String]) -> Vec<String>,
    /// What to do where it did not print a figure.
    advice: &'static str,
}

const PROGRAMS: [Program; 13] = [
    bonnie::PROGRAM,
    db_bench::PROGRAM,
    dbench::PROGRAM,
    dd::PROGRAM,
    elbencho::PROGRAM,
    filebench::PROGRAM,
    ior::PROGRAM,
    iozone::PROGRAM,
    mdtest::PROGRAM,
    pgbench::PROGRAM,
    stress_ng::PROGRAM,
    sysbench::PROGRAM,
    ycsb::PROGRAM,
];

/// The figures that known programs have printed. If one ran several times, those of its second run
/// end with `_2`. A value that does not fit our units, as 1e308 MiB, is left out.
pub fn read(text: &str) -> Vec<Sample> {
    let mut figures: Vec<Sample> = Vec::new();
    let is_its = |program: &&Program| program.marks.iter().any(|mark| text.contains(mark));
    let programs = PROGRAMS.iter().filter(is_its);
    let printed = programs.flat_map(|program| (program.read)(text));
    for mut figure in printed.filter(|figure| figure.value.is_finite()) {
        let same = |it: &&Sample| {
            let rest = it.metric.strip_prefix(&figure.metric);
            rest.is_some_and(|rest| rest.is_empty() || numbered(rest))
        };
        let before = figures.iter().filter(same).count();
        if before > 0 {
            figure.metric = format!("{}_{}", figure.metric, before + 1);
        }
        figures.push(figure);
    }
    figures
}

/// `_2`, after a metric's name.
fn numbered(rest: &str) -> bool {
    rest.strip_prefix('_').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The figures of its own by which `command` is judged, if it starts a known program.
pub fn judged_by(command: &Command) -> Vec<String> {
    let started = programs(command);
    let judged = |words: &Vec<String>| {
        let (name, rest) = words.split_first()?;
        let program = PROGRAMS.iter().find(|it| it.names.contains(&name.as_str()))?;
        Some((program.judged)(rest)).filter(|judged| !judged.is_empty())
    };
    started.iter().find_map(judged).unwrap_or_default()
}

/// The programs that a command starts, each with its words: what wraps them is taken off.
pub fn programs(command: &Command) -> Vec<Vec<String>> {
    typed::commands(&command.argv())
}

/// What to do where a known program has not printed `metric`, as a sentence's end.
pub fn advice(metric: &str) -> Option<&'static str> {
    let program = PROGRAMS.iter().find(|it| {
        let rest = metric.strip_prefix(it.prefix);
        rest.is_some_and(|rest| rest.starts_with('_'))
    })?;
    Some(program.advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(line: &str) -> Vec<String> {
        judged_by(&Command::Shell(line.into()))
    }

    #[test]
    fn a_program_is_known_however_it_is_started() {
        for line in [
            "dbench -t 2 4",
            "/usr/bin/dbench -t 2 4",
            "env LC_ALL=C dbench -t 2 4",
            "nice -n 5 timeout 60 dbench -t 2 4",
            "mkdir x; cd x && dbench -t 2 4 > out",
            "sh -c 'exec dbench -t 2 4'",
            "LC_ALL=C dbench -t 2 4 | tee out",
        ] {
            assert_eq!(judged(line), ["dbench_throughput"], "{line}");
            let argv = line.split_whitespace().map(String::from).collect();
            let typed = judged_by(&Command::Argv(argv));
            let is_plain = !line.contains([';', '\'', '=']) || line.starts_with("env");
            assert_eq!(!typed.is_empty(), is_plain, "{line}");
        }
        for line in ["cp dbench.txt x", "man dbench", "grep -r dbench .", "./bench.sh", "true"] {
            assert_eq!(judged(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn what_is_no_number_in_our_units_is_no_figure() {
        let printed = include_str!("kept/dbench.txt");
        let (before, rest) = printed.split_once("Throughput ").unwrap();
        let (_, after) = rest.split_once(' ').unwrap();
        let of = |value: &str| read(&format!("{before}Throughput {value} {after}")).len();
        assert_eq!(of(&"9".repeat(305)) + 1, of("9"));
    }

    #[test]
    fn what_judges_a_run_is_in_what_it_prints() {
        for (line, printed) in [
            ("dbench 2", include_str!("kept/dbench.txt")),
            ("pgbench -T 1", include_str!("kept/pgbench.txt")),
            ("stress-ng --hdd 1 -t 2 --metrics", include_str!("kept/stress-ng.txt")),
            ("db_bench --benchmarks=fillseq,readrandom", include_str!("kept/db_bench.txt")),
            ("sysbench oltp_read_write run", include_str!("kept/sysbench-oltp.txt")),
            (
                "sysbench --file-test-mode=rndrw fileio run",
                include_str!("kept/sysbench-fileio.txt"),
            ),
            ("ycsb run basic", include_str!("kept/ycsb.txt")),
            ("filebench -f x.f", include_str!("kept/filebench.txt")),
            ("mdtest -F -n 9", include_str!("kept/mdtest.txt")),
            ("mpirun -n 4 ior -t 1m", include_str!("kept/ior.txt")),
            ("iozone -s 4m -r 4k -i 0 -i 1 -i 2", include_str!("kept/iozone.txt")),
            ("elbencho -w -b 1m x", include_str!("kept/elbencho.txt")),
        ] {
            let known: Vec<String> = read(printed).into_iter().map(|it| it.metric).collect();
            let judged = judged(line);
            assert!(!judged.is_empty(), "{line}");
            for metric in judged {
                assert!(known.contains(&metric), "{line}: no {metric} among {known:?}");
            }
        }
    }

    #[test]
    fn one_programs_output_is_no_others_and_a_second_run_is_numbered() {
        let dd = include_str!("kept/dd.txt");
        let metrics =
            |text: &str| -> Vec<String> { read(text).into_iter().map(|it| it.metric).collect() };
        assert_eq!(metrics(&dd.repeat(3)), ["dd_bandwidth", "dd_bandwidth_2", "dd_bandwidth_3"]);
        let dbench = metrics(include_str!("kept/dbench.txt"));
        assert!(dbench.iter().all(|it| it.starts_with("dbench_")), "{dbench:?}");
        assert_eq!(metrics("reads/s: 5\nWrites: 7 MB/s\n"), [""; 0]);
        assert!(advice("bonnie_rewrite_bandwidth").unwrap().contains("+++++"));
        assert_eq!(advice("transactions_per_s"), None);
    }
}
