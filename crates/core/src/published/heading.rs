//! What a column is, by its heading: `mean latency ms` in an article, `lat_mean_us` in a CSV.

use crate::model::{Column, Part, Quantity, Statistic};

/// Reads a heading: the unit stands last, everything else in any order.
pub fn column(heading: &str) -> Column {
    let split = |c: char| c.is_whitespace() || "_()[],:".contains(c);
    let mut words: Vec<&str> = heading.split(split).filter(|word| !word.is_empty()).collect();
    let (quantity, scale) = unit(&mut words);
    let mut statistic = None;
    let mut subject = Vec::new();
    for word in words.iter().map(|word| word.to_lowercase()) {
        match statistic_of(&word) {
            Some(found) => statistic = Some(found),
            None if word == "lat" => subject.push("latency".to_string()),
            None => subject.push(word),
        }
    }
    let says = |any: &[&str]| subject.iter().any(|word| any.contains(&word.as_str()));
    let is_latency = says(&["latency", "clat", "slat"]);
    let part = match (says(&["read", "reads"]), says(&["write", "writes"])) {
        (true, false) => Part::Read,
        (false, true) => Part::Write,
        _ => Part::All,
    };
    let quantity = match quantity {
        Quantity::Time if is_latency => Quantity::Latency,
        Quantity::Other if says(&["operations", "ios"]) => Quantity::Count,
        other => other,
    };
    let subject = subject.join(" ");
    Column { heading: heading.into(), quantity, statistic, part, subject, scale, better: None }
}

/// Takes the unit out of `words`, with what says beside a rate that it is in thousands, `IOPS (k)`,
/// and gives what it measures, and its scale.
fn unit(words: &mut Vec<&str>) -> (Quantity, f64) {
    let before = |at: usize| if at == 0 { "" } else { words[at - 1] };
    let beside = |at: usize| Some((at, multiple(before(at), words[at])?));
    if let Some((at, times)) = (0..words.len()).find_map(beside) {
        let mut rest = words.clone();
        rest.remove(at);
        rest.retain(|word| !TIMES.contains(word));
        if let (quantity @ (Quantity::Iops | Quantity::Rate), scale) = bare_unit(&mut rest) {
            *words = rest;
            return (quantity, scale * times);
        }
    }
    bare_unit(words)
}

const TIMES: [&str; 4] = ["x", "X", "×", "*"];

/// How many of its unit a word beside it stands for: `k`, `x1000`, `x 1000`, `thousands`, `M`.
/// `4 k` is a size of blocks, and `1000` a number of anything.
fn multiple(before: &str, word: &str) -> Option<f64> {
    let bare = TIMES.iter().find_map(|it| word.strip_prefix(it)).unwrap_or(word);
    let is_times = bare.len() < word.len() || TIMES.contains(&before);
    let is_size = before.ends_with(|c: char| c.is_ascii_digit());
    match bare {
        "1000" | "1k" | "1K" if is_times => Some(1e3),
        "k" | "K" if !is_size => Some(1e3),
        "M" if !is_size => Some(1e6),
        _ => match word.to_lowercase().as_str() {
            "thousand" | "thousands" => Some(1e3),
            "million" | "millions" => Some(1e6),
            _ => None,
        },
    }
}

/// What is counted a second, in thousands where the word begins so: `kops`.
fn counted(what: &str) -> (Quantity, f64) {
    let nouns = ["op", "ops", "req", "reqs", "requests", "iops", "tps", "qps", "files"];
    let is_noun = |rest: &str| nouns.contains(&rest.to_lowercase().as_str());
    let scale = match what.split_at_checked(1) {
        Some(("k" | "K", rest)) if is_noun(rest) => 1e3,
        Some(("M", rest)) if is_noun(rest) => 1e6,
        _ => 1.0,
    };
    (Quantity::Rate, scale)
}

/// Takes the unit off the end of `words`, and gives what it measures, and its scale.
fn bare_unit(words: &mut Vec<&str>) -> (Quantity, f64) {
    let take = |words: &mut Vec<&str>, count: usize| words.truncate(words.len() - count);
    // As a name in a CSV: bw_mib_s, bw_mib_per_s, files_per_s.
    let (what, per_second) = match words.as_slice() {
        [.., what, "per", "s" | "sec"] => (Some(what), 2),
        ["per", "s" | "sec"] => (None, 2),
        [.., what, "s"] => (Some(what), 1),
        _ => (None, 0),
    };
    if let Some(scale) = what.and_then(|it| byte_scale(it)) {
        take(words, per_second + 1);
        return (Quantity::Bandwidth, scale);
    }
    if per_second == 2 {
        let found = what.map_or((Quantity::Rate, 1.0), |it| counted(it));
        take(words, 2);
        return found;
    }
    // Some write the unit first: "IOPS (read)".
    let named = |word: &str| matches!(word.to_lowercase().as_str(), "iops" | "kiops");
    if let Some(at) = words.iter().position(|word| named(word)) {
        let scale = if words.remove(at).len() == 5 { 1e3 } else { 1.0 };
        return (Quantity::Iops, scale);
    }
    let Some(found) = words.last().and_then(|word| unit_of(word)) else {
        return (Quantity::Other, 1.0);
    };
    take(words, 1);
    found
}

fn unit_of(word: &str) -> Option<(Quantity, f64)> {
    let per_second = word.strip_suffix("/s").or_else(|| word.strip_suffix("/sec"));
    if let Some(what) = per_second.or_else(|| word.strip_suffix("ps")) {
        return match byte_scale(what) {
            Some(scale) => Some((Quantity::Bandwidth, scale)),
            None => per_second.map(counted),
        };
    }
    let time = |scale| Some((Quantity::Time, scale));
    match word.to_lowercase().as_str() {
        "ns" | "nsec" => time(1e-9),
        "us" | "µs" | "μs" | "usec" => time(1e-6),
        "ms" | "msec" => time(1e-3),
        "s" | "sec" | "seconds" => time(1.0),
        "minutes" => time(60.0),
        "%" | "pct" | "percent" => Some((Quantity::Share, 1.0)),
        _ => byte_scale(word).map(|scale| (Quantity::Bytes, scale)),
    }
}

/// `kB` is 1000 bytes and `KiB` 1024; `Mb` and `Mbit` are bits, and `mb` is bytes.
fn byte_scale(word: &str) -> Option<f64> {
    let lower = word.to_lowercase();
    let is_short = word.len() == 2 && word.ends_with('b');
    let is_bits = lower.ends_with("bit") || is_short && word != lower;
    let scale = match lower.strip_suffix("bit").unwrap_or(lower.trim_end_matches('b')) {
        "" if lower == "b" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "ki" => 1024.0,
        "mi" => 1_048_576.0,
        "gi" => 1_073_741_824.0,
        _ => return None,
    };
    let has_unit = lower.ends_with('b') || lower.ends_with("bit");
    has_unit.then_some(if is_bits { scale / 8.0 } else { scale })
}

fn statistic_of(word: &str) -> Option<Statistic> {
    match word {
        "mean" | "avg" | "average" => Some(Statistic::Mean),
        "min" | "minimum" | "least" => Some(Statistic::Least),
        "max" | "maximum" => Some(Statistic::Greatest),
        "median" => Some(Statistic::Quantile(0.5)),
        "stddev" | "stdev" | "sd" | "deviation" => Some(Statistic::Deviation),
        _ => {
            let digits = word.strip_prefix('p').or_else(|| word.strip_suffix("th"))?;
            let value: f64 = digits.parse().ok()?;
            // p50, p99.9, and p999 for the same.
            let is_percent = digits.contains('.') || digits.len() <= 2;
            let of = if is_percent { 1e2 } else { 10_f64.powi(digits.len() as i32) };
            // To the nearest that a literal would give.
            let share = (value / of * 1e8).round() / 1e8;
            (0.0..1.0).contains(&share).then_some(Statistic::Quantile(share))
        }
    }
}

/// What a column was taken for, in words.
pub fn meaning(column: &Column) -> String {
    let statistic = match column.statistic {
        None => String::new(),
        Some(Statistic::Mean) => "mean ".into(),
        Some(Statistic::Least) => "least ".into(),
        Some(Statistic::Greatest) => "greatest ".into(),
        Some(Statistic::Deviation) => "deviation of ".into(),
        Some(Statistic::Quantile(share)) => {
            format!("{}% quantile of ", (share * 1e8).round() / 1e6)
        }
    };
    let part = match column.part {
        Part::Read => "read ",
        Part::Write => "write ",
        Part::All => "",
    };
    let quantity = match column.quantity {
        Quantity::Iops => "IOPS",
        Quantity::Rate => "operations a second",
        Quantity::Bandwidth => "bandwidth",
        Quantity::Latency => "latency",
        Quantity::Time => "time",
        Quantity::Count => "operations",
        Quantity::Bytes => "bytes",
        Quantity::Share => "a share",
        Quantity::Other => return "not understood".into(),
    };
    let is_rate = matches!(column.quantity, Quantity::Iops | Quantity::Rate);
    let scale = match column.scale {
        1e3 if is_rate => ", in thousands",
        1e6 if is_rate => ", in millions",
        _ => "",
    };
    format!("{statistic}{part}{quantity}{scale}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(heading: &str) -> (Quantity, Option<Statistic>, Part, f64) {
        let it = column(heading);
        (it.quantity, it.statistic, it.part, it.scale)
    }

    #[test]
    fn headings_of_articles_and_names_in_a_csv_are_read_alike() {
        use {Part::*, Quantity::*};
        assert_eq!(read("bandwidth MiB/s"), (Bandwidth, None, All, 1_048_576.0));
        assert_eq!(read("bw_mib_s"), (Bandwidth, None, All, 1_048_576.0));
        assert_eq!(read("total bandwidth MB/s"), (Bandwidth, None, All, 1e6));
        assert_eq!(read("IOPS (read)"), (Iops, None, Read, 1.0));
        assert_eq!(read("write_iops"), (Iops, None, Write, 1.0));
        assert_eq!(read("mean latency ms"), (Latency, Some(Statistic::Mean), All, 1e-3));
        assert_eq!(read("lat_p99_us"), (Latency, Some(Statistic::Quantile(0.99)), All, 1e-6));
        assert_eq!(read("clat p999 ns"), (Latency, Some(Statistic::Quantile(0.999)), All, 1e-9));
        assert_eq!(read("create files/s"), (Rate, None, All, 1.0));
        assert_eq!(read("files_per_s"), (Rate, None, All, 1.0));
        assert_eq!(read("total s"), (Time, None, All, 1.0));
        assert_eq!(read("CPU %"), (Share, None, All, 1.0));
        assert_eq!(read("link Mb/s"), (Bandwidth, None, All, 125_000.0));
        assert_eq!(read("net Mbit/s"), (Bandwidth, None, All, 125_000.0));
        assert_eq!(read("net mbit/s"), (Bandwidth, None, All, 125_000.0));
        assert_eq!(read("net kbit/s"), (Bandwidth, None, All, 125.0));
        assert_eq!(read("MB per s"), (Bandwidth, None, All, 1e6));
        assert_eq!(read("bw_mib_per_s"), (Bandwidth, None, All, 1_048_576.0));
        assert_eq!(read("per s").0, Rate);
        assert_eq!(read("happiness").0, Other);
        for heading in [
            "IOPS (k)",
            "K IOPS",
            "kIOPS",
            "IOPS x1000",
            "IOPS (x 1000)",
            "IOPS, thousands",
            "iops_k",
        ] {
            assert_eq!(read(heading), (Iops, None, All, 1e3), "{heading}");
        }
        for plain in ["4 k IOPS", "IOPS, 1000 threads"] {
            assert_eq!(read(plain), (Iops, None, All, 1.0));
        }
        assert_eq!(column("IOPS (x 1000)").subject, "");
        for heading in ["ops/s (k)", "kops/s", "k ops/s", "kops_per_s", "ops/s (thousands)"] {
            assert_eq!(read(heading), (Rate, None, All, 1e3), "{heading}");
        }
        assert_eq!(read("IOPS (M)").3, 1e6);
        assert_eq!(column("read IOPS (k)").subject, "read");
        assert_eq!(meaning(&column("read IOPS (k)")), "read IOPS, in thousands");
        assert_eq!(column("lat_mean_us").subject, column("mean latency ms").subject);
        assert_eq!(meaning(&column("read latency p50 ms")), "50% quantile of read latency");
    }
}
