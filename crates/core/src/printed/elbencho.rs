//! elbencho: the table of its phases. The last of its two columns is read: the time when all
//! threads were done, not the first.

use super::Program;
use super::text::{MB, MIB, bandwidth, groups, number, rate};
use super::typed::{has, has_letter};
use crate::model::{Sample, as_metric};

pub const PROGRAM: Program = Program {
    prefix: "elbencho",
    names: &["elbencho"],
    marks: &["LAST DONE"],
    read,
    judged,
    advice: "elbencho prints it for the phases that it is told to do (-w, -r)",
};

/// By the bandwidth of what is written and read.
fn judged(words: &[String]) -> Vec<String> {
    let asked = [('w', "--write", "write"), ('r', "--read", "read")].into_iter();
    let asked = asked.filter(|(letter, long, _)| has_letter(words, *letter) || has(words, &[long]));
    asked.map(|(_, _, phase)| format!("elbencho_{phase}_bandwidth")).collect()
}

fn read(text: &str) -> Vec<Sample> {
    const ROW: &str =
        r"^(\w*) +(Elapsed|IOPS|Throughput Mi?B/s|(?:Dirs|Files|Objects)/s)[^:\n]*: +\S+ +(\S+)";
    let (mut phase, mut figures) = (String::new(), Vec::new());
    for [name, what, last] in groups::<3>(text, ROW) {
        if !name.is_empty() {
            phase = as_metric(name);
        }
        let Some(value) = number(last) else { continue };
        match what {
            "Elapsed" => {}
            "IOPS" => figures.push(rate(format!("elbencho_{phase}_iops"), value)),
            "Throughput MiB/s" | "Throughput MB/s" => {
                let unit = if what.contains("MiB") { MIB } else { MB };
                figures.push(bandwidth(format!("elbencho_{phase}_bandwidth"), value * unit));
            }
            things => {
                let things = as_metric(things.trim_end_matches("/s"));
                figures.push(rate(format!("elbencho_{phase}_{things}_rate"), value));
            }
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::super::text::figure;
    use super::*;

    #[test]
    fn elbencho_1_6() {
        let read = read(include_str!("kept/elbencho.txt"));
        assert_eq!(figure(&read, "elbencho_mkdirs_dirs_rate"), Some(18_716.0));
        assert_eq!(figure(&read, "elbencho_write_files_rate"), Some(53_757.0));
        assert_eq!(figure(&read, "elbencho_write_bandwidth"), Some(52.0 * MIB));
        assert_eq!(figure(&read, "elbencho_rmfiles_files_rate"), Some(77_381.0));
        assert_eq!(read.len(), 4);
    }

    #[test]
    fn large_files_have_requests() {
        let text = "OPERATION RESULT TYPE        FIRST DONE  LAST DONE\n\
                    WRITE     Elapsed ms       :      85656      99973\n          \
                    IOPS             :        660        655\n          \
                    Throughput MiB/s :      10572      10488\n";
        let read = read(text);
        assert_eq!(figure(&read, "elbencho_write_iops"), Some(655.0));
        assert_eq!(figure(&read, "elbencho_write_bandwidth"), Some(10_488.0 * MIB));
    }
}
