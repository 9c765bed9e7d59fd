//! What is said of a metric: each has words of its own, the same in every report.

use std::fmt;

use super::unit::precise;
use super::{Better, Comparison, Unit, Verdict};

/// "1 round", "2 rounds".
pub fn counted<N: Copy + fmt::Display + From<u8> + PartialEq>(count: N, what: &str) -> String {
    let s = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// The words for one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    better: String,
    worse: String,
    times: &'static str,
}

impl Words {
    /// Those of a metric of this name, which counts that.
    pub fn of(metric: &str, unit: Unit, better: Better) -> Words {
        let name = metric.to_lowercase();
        let has = |part: &str| name.contains(part);
        let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
        let pair = |better: &str, worse: &str| (better.to_string(), worse.to_string());
        let is_time = matches!(unit, Unit::Seconds | Unit::Nanoseconds);
        let is_rate = matches!(unit, Unit::PerSecond | Unit::BytesPerSecond | Unit::BitsPerSecond);
        let (better, worse) = match better {
            Better::Lower if is_time && (has("latency") || quantile_word(&name).is_some()) => {
                let when = quantile(&name);
                (format!("waits less{when}"), format!("waits longer{when}"))
            }
            Better::Lower if words().any(|word| word == "cpu") => {
                pair("takes less processor time", "takes more processor time")
            }
            Better::Lower if has("device_bytes_per") => pair(
                "moves fewer bytes to and from the device",
                "moves more bytes to and from the device",
            ),
            Better::Lower if has("read_bytes") || has("bytes_read") => {
                pair("reads fewer bytes", "reads more bytes")
            }
            Better::Lower if has("write_bytes") || has("bytes_written") => {
                pair("writes fewer bytes", "writes more bytes")
            }
            Better::Lower if unit == Unit::Bytes => pair("takes fewer bytes", "takes more bytes"),
            Better::Lower if is_time => pair("is faster", "is slower"),
            Better::Lower if has("flush") => pair("flushes less often", "flushes more often"),
            Better::Lower if words().any(|word| word.starts_with("process")) => {
                pair("starts fewer processes", "starts more processes")
            }
            Better::Higher if is_rate => pair("is faster", "is slower"),
            _ => pair("is better", "is worse"),
        };
        let times = match better.as_str() {
            "is faster" => "fast",
            "is better" => "good",
            waits if waits.starts_with("waits") => "fast",
            // A ratio above 1 of what is less: bytes, flushes, processor time.
            _ => "sparing",
        };
        Words { better, worse, times }
    }

    /// "is faster than", "takes more processor time than".
    pub fn than(&self, verdict: Verdict) -> String {
        let does = if verdict.is_better() { &self.better } else { &self.worse };
        format!("{does} than")
    }

    /// "1.25 times as fast": a ratio of goodness, with as many digits as its interval has.
    pub fn times(&self, ratio: f64) -> String {
        format!("{} times as {}", precise(ratio), self.times)
    }

    /// What a ratio of it is of: "fast", "sparing".
    pub fn goodness(&self) -> &'static str {
        self.times
    }

    /// The verdict in a table's cell: what is not fast is better.
    pub fn label(&self, verdict: Verdict) -> String {
        match self.better.as_str() {
            "is faster" => verdict.label().into(),
            _ => verdict.label().replace("faster", "better").replace("slower", "worse"),
        }
    }
}

impl Comparison {
    /// The words for its metric.
    pub fn words(&self) -> Words {
        Words::of(&self.metric, self.unit, self.better)
    }

    /// The verdict in a table's cell.
    pub fn label(&self) -> String {
        self.words().label(self.verdict)
    }
}

/// " at p99", " on average": what the latency is, by its name.
fn quantile(metric: &str) -> String {
    if let Some(digits) = quantile_word(metric) {
        if digits == "100" {
            return " at worst".into();
        }
        let (percent, rest) = digits.split_at(2);
        let point = if rest.is_empty() { "" } else { "." };
        return format!(" at p{percent}{point}{rest}");
    }
    match metric.rsplit_once("latency_").map_or("", |(_, end)| end) {
        "mean" => " on average".into(),
        "max" => " at worst".into(),
        _ => String::new(),
    }
}

/// The digits of the quantile in a name: 999 of `read_latency_p999`, of `p999 ms` and of `p99.9`.
fn quantile_word(metric: &str) -> Option<String> {
    let mut words = metric.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.find_map(|word| {
        let digits = word.strip_prefix('p')?.replacen('.', "", 1);
        let are_digits = digits.len() > 1 && digits.bytes().all(|it| it.is_ascii_digit());
        are_digits.then_some(digits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_its_own_words() {
        let of = |metric: &str, unit, better| {
            let words = Words::of(metric, unit, better);
            let [more, less] = [Verdict::Faster, Verdict::SlowerSizeOpen];
            format!("{}; {}; {}", words.than(more), words.than(less), words.times(1.25))
        };
        let time = "is faster than; is slower than; 1.250 times as fast";
        assert_eq!(of("wall_time", Unit::Seconds, Better::Lower), time);
        assert_eq!(of("iops", Unit::PerSecond, Better::Higher), time);
        assert_eq!(
            of("cpu_per_operation", Unit::Nanoseconds, Better::Lower),
            "takes less processor time than; takes more processor time than; 1.250 times as \
             sparing"
        );
        assert_eq!(
            of("fsync_latency_p999", Unit::Nanoseconds, Better::Lower),
            "waits less at p99.9 than; waits longer at p99.9 than; 1.250 times as fast"
        );
        let first =
            |metric, unit, better| of(metric, unit, better).split(';').next().map(String::from);
        assert_eq!(
            first("device_write_bytes", Unit::Bytes, Better::Lower).unwrap(),
            "writes fewer bytes than"
        );
        assert_eq!(
            first("device_flushes", Unit::Count, Better::Lower).unwrap(),
            "flushes less often than"
        );
        assert_eq!(first("score", Unit::Ratio, Better::Higher).unwrap(), "is better than");
        // As files of others name them.
        for (name, unit, words) in [
            ("p99_ms", Unit::Seconds, "waits less at p99 than"),
            ("p99.9 (ms)", Unit::Seconds, "waits less at p99.9 than"),
            ("latency_p99.9 (ms)", Unit::Seconds, "waits less at p99.9 than"),
            ("p100 (ms)", Unit::Seconds, "waits less at worst than"),
            ("latency_ms (4 CPUs)", Unit::Seconds, "waits less than"),
            ("CPU s", Unit::Seconds, "takes less processor time than"),
            ("bytes_written", Unit::Ratio, "writes fewer bytes than"),
            ("fsync_latency_mean", Unit::Nanoseconds, "waits less on average than"),
            ("flush_time", Unit::Seconds, "is faster than"),
            ("processing (s)", Unit::Seconds, "is faster than"),
            ("started_processes", Unit::Count, "starts fewer processes than"),
            ("unprocessed", Unit::Count, "is better than"),
        ] {
            assert_eq!(first(name, unit, Better::Lower).unwrap(), words);
        }
    }

    #[test]
    fn a_cell_says_better_where_nothing_is_fast() {
        let label = |metric: &str| {
            Words::of(metric, Unit::Nanoseconds, Better::Lower).label(Verdict::TriviallySlower)
        };
        assert_eq!(label("create_time"), "trivially slower");
        assert_eq!(label("cpu_time"), "trivially worse");
    }
}
