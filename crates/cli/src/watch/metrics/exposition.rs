//! The text that is scraped: OpenMetrics 1.0 (IETF draft-richih-opsawg-openmetrics-00), and the
//! older format of Prometheus (version 0.0.4) for clients that do not ask for it.

use fsverdict_core::render;
use std::fmt::Write;

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl Dialect {
    /// Its content type in HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Dialect::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Dialect::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The end of the page, below all families.
    pub fn end(self) -> &'static str {
        match self {
            Dialect::OpenMetrics => "# EOF\n",
            Dialect::Prometheus => "",
        }
    }
}

/// What a family's samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises; its samples end with `_total`.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Counts by upper bound.
    Histogram,
    /// Words, as labels of a sample that is 1; it ends with `_info`.
    Info,
    /// One sample for each state, 1 for the one that is.
    StateSet,
}

/// Labels of a sample: names and values.
pub type Labels<'a> = [(&'a str, &'a str)];

/// A text in the making.
#[derive(Debug)]
pub struct Exposition {
    dialect: Dialect,
    text: String,
    /// The name of the samples of the family that was begun last.
    sample: String,
}

impl Exposition {
    /// An empty one.
    pub fn new(dialect: Dialect) -> Exposition {
        Exposition { dialect, text: String::new(), sample: String::new() }
    }

    /// The text so far.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Begins a family. `unit` is what its name ends with, or empty. Only OpenMetrics knows units,
    /// words and states, and names a family without the ending of its samples.
    pub fn family(&mut self, kind: Kind, name: &str, unit: &str, help: &str) {
        debug_assert!(name.ends_with(unit), "{name} does not end with its unit {unit}");
        let suffix = match kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram | Kind::StateSet => "",
        };
        self.sample = format!("{name}{suffix}");
        let known = match (self.dialect, kind) {
            (_, Kind::Counter) => "counter",
            (_, Kind::Gauge) | (Dialect::Prometheus, Kind::Info | Kind::StateSet) => "gauge",
            (_, Kind::Histogram) => "histogram",
            (Dialect::OpenMetrics, Kind::Info) => "info",
            (Dialect::OpenMetrics, Kind::StateSet) => "stateset",
        };
        let family = match self.dialect {
            Dialect::OpenMetrics => name,
            Dialect::Prometheus => self.sample.as_str(),
        };
        // Writing to a text can't fail.
        let _ = writeln!(self.text, "# HELP {family} {help}");
        let _ = writeln!(self.text, "# TYPE {family} {known}");
        if self.dialect == Dialect::OpenMetrics && !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {family} {unit}");
        }
    }

    /// A family of one sample.
    pub fn gauge(&mut self, name: &str, unit: &str, help: &str, value: f64) {
        self.family(Kind::Gauge, name, unit, help);
        self.sample(&[], value);
    }

    /// A sample of the family.
    pub fn sample(&mut self, labels: &Labels, value: f64) {
        let name = std::mem::take(&mut self.sample);
        self.line(&name, labels, value);
        self.sample = name;
    }

    /// A histogram of the family: `(highest value, how many up to it)`, ascending, without that of
    /// all.
    pub fn histogram(&mut self, labels: &Labels, buckets: &[(f64, u64)], count: u64, sum: f64) {
        let name = self.sample.clone();
        let all = [(f64::INFINITY, count)];
        for (highest, count) in buckets.iter().chain(&all) {
            let highest = number(*highest);
            let labels: Vec<_> = labels.iter().copied().chain([("le", highest.as_str())]).collect();
            self.line(&format!("{name}_bucket"), &labels, *count as f64);
        }
        self.line(&format!("{name}_sum"), labels, sum);
        self.line(&format!("{name}_count"), labels, count as f64);
    }

    fn line(&mut self, name: &str, labels: &Labels, value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.text, "{name}{labels} {}", number(value));
    }
}

fn number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        value if value.is_nan() => "NaN".into(),
        value => value.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(render::one_line).collect();
    lines.join("\n").replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(dialect: Dialect) -> String {
        let mut text = Exposition::new(dialect);
        text.family(Kind::Counter, "a_seconds", "seconds", "Time.");
        text.sample(&[("of", "x\"\\\n")], 1.5);
        text.family(Kind::Info, "b", "", "Words.");
        text.sample(&[("c", "d")], 1.0);
        text.family(Kind::Histogram, "e_seconds", "seconds", "Times.");
        text.histogram(&[("f", "g")], &[(0.001, 2)], 3, 0.5);
        text.into_text() + dialect.end()
    }

    #[test]
    fn open_metrics_has_units_and_an_end() {
        let expected = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n\
                        # UNIT a_seconds seconds\n\
                        a_seconds_total{of=\"x\\\"\\\\\\n\"} 1.5\n\
                        # HELP b Words.\n# TYPE b info\nb_info{c=\"d\"} 1\n\
                        # HELP e_seconds Times.\n# TYPE e_seconds histogram\n\
                        # UNIT e_seconds seconds\n\
                        e_seconds_bucket{f=\"g\",le=\"0.001\"} 2\n\
                        e_seconds_bucket{f=\"g\",le=\"+Inf\"} 3\n\
                        e_seconds_sum{f=\"g\"} 0.5\ne_seconds_count{f=\"g\"} 3\n# EOF\n";
        assert_eq!(text(Dialect::OpenMetrics), expected);
    }

    #[test]
    fn prometheus_names_a_family_as_its_samples() {
        let text = text(Dialect::Prometheus);
        assert!(text.starts_with("# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\n"));
        assert!(text.contains("# TYPE b_info gauge\nb_info{c=\"d\"} 1\n"), "{text}");
        assert!(!text.contains("UNIT") && !text.contains("EOF"), "{text}");
    }
}
