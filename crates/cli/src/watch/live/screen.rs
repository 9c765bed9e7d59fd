//! What the view shows: where the run is, the rounds as a grid, the verdicts with their intervals,
//! device and processors second by second, and the findings.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use fsverdict_core::model::{Comparison, Key, Unit, precise};
use fsverdict_core::render;

use super::super::machine::Second;
use super::super::plain::found;
use super::super::state::{Cell, State, clock, left_text};
use super::line::Line;

/// The widest a name may be.
const NAME_WIDTH: usize = 24;

/// What a verdict's row holds beside names and the interval's picture: the ratio, the interval, the
/// verdict, and gaps.
const FIGURES_WIDTH: usize = 6 + 2 + 14 + 2 + 17;

const LEGEND: &str = "  ■ measured  ▶ under way  × failed  · to come  - settled";

/// Before the picture of a machine's row, and behind it.
const MACHINE_NAME_WIDTH: usize = 8;
const MACHINE_TEXT_WIDTH: usize = 44;

/// How long a line of findings is the first, where they pass by.
const SECONDS_A_LINE: u64 = 2;

/// The view, of lines that may be too long and too many.
pub fn page(state: &State, width: usize, height: usize) -> Vec<Line> {
    let contenders = state.contenders(state.workload());
    let mut page = head(state, width);
    page.extend(grid(state, &contenders, width));
    page.push(Line::default());
    let machine = machine_lines(state, width);
    let room = height.saturating_sub(page.len() + machine.len());
    // Findings are kept in sight, but do not crowd out the verdicts.
    let kept_for_findings = match state.findings.len() {
        0 => 0,
        findings => (findings + 2).min(5),
    };
    page.extend(verdict_lines(state, width, room.saturating_sub(kept_for_findings)));
    page.extend(machine);
    let room = height.saturating_sub(page.len());
    page.extend(finding_lines(state, width, room));
    page
}

fn head(state: &State, width: usize) -> Vec<Line> {
    let title = format!(" fsverdict {:<width$}", state.run.name);
    let rounds = state.plan.judgement.rounds().map_or(String::new(), |rounds| format!("/{rounds}"));
    let now = match (&state.trial, state.writing) {
        (Some(trial), _) => {
            let key = &trial.key;
            let at = format!("round {}{rounds}, {}, {}", key.round, key.workload, key.contender);
            match trial.step.as_str() {
                "" => at,
                step => format!("{at}: {step} {}", clock(trial.step_since.elapsed())),
            }
        }
        (None, Some((done, total))) => {
            format!("writing the image, {} of {} MiB", done >> 20, total >> 20)
        }
        (None, None) => format!("round {}{rounds}", state.round()),
    };
    let time = format!("{} gone{}", clock(state.gone()), left_text(state.left()));
    let line = Line::default;
    vec![line().reversed(&title), line().bold(&now), line().plain(&time)]
}

/// A row for each contender, a column for each round; where they don't all fit, the last ones.
fn grid(state: &State, contenders: &[String], width: usize) -> Vec<Line> {
    let name_width = names_width(contenders.iter().map(String::as_str));
    let room = width.saturating_sub(name_width + 2);
    let round = state.round().max(1);
    // Of an open end as much as is near.
    let last = state.plan.judgement.rounds().unwrap_or(round + 8).max(round);
    let cell_width = if last as usize * 2 <= room { 2 } else { 1 };
    let shown = u32::try_from(room / cell_width).unwrap_or(u32::MAX).clamp(1, last);
    let first = (round + shown / 4).saturating_sub(shown).clamp(0, last - shown) + 1;
    let workload = state.workload();
    let place = state.plan.workloads.iter().position(|it| it.name == workload).unwrap_or(0) + 1;
    let rounds = match shown < last {
        true => format!(", rounds {first} to {}", first + shown - 1),
        false => String::new(),
    };
    let title = match state.plan.workloads.len() {
        1 => format!("{workload}{rounds}"),
        all => format!("{workload} ({place} of {all}){rounds}"),
    };
    let title = cut(&title, width.saturating_sub(LEGEND.chars().count()));
    let mut lines = vec![Line::default().bold(&title).dim(LEGEND)];
    for contender in contenders {
        let mut row = format!("{:name_width$}  ", cut(contender, name_width));
        for round in first..first + shown {
            let key =
                Key { round, workload: workload.to_string(), contender: contender.to_string() };
            row.push(match state.cell(&key) {
                Cell::UnderWay => '▶',
                Cell::Measured => '■',
                Cell::Failed => '×',
                Cell::ToCome => '·',
                Cell::Settled => '-',
            });
            row.extend(std::iter::repeat_n(' ', cell_width - 1));
        }
        lines.push(Line::default().plain(&row));
    }
    lines
}

fn verdict_lines(state: &State, width: usize, height: usize) -> Vec<Line> {
    let current = state.workload();
    let (mut rows, others): (Vec<&Comparison>, Vec<&Comparison>) =
        state.comparisons.iter().partition(|it| it.workload == current);
    rows.extend(others);
    let names: Vec<String> = rows.iter().map(|it| name(state, it)).collect();
    let name_width = names_width(names.iter().map(String::as_str));
    let room = width.saturating_sub(name_width + FIGURES_WIDTH + 4);
    let margin = state.plan.judgement.margin.0.ln_1p();
    let scale = Scale::of(&rows, margin, room);
    let percent = state.plan.judgement.margin;
    let title = format!("against {}, margin {percent}", state.plan.reference());
    let mut lines = vec![Line::default().bold(&title)];
    let all_fit = rows.len() < height;
    let shown = if all_fit { rows.len() } else { height.saturating_sub(2) };
    for (row, name) in rows.iter().zip(&names).take(shown) {
        lines.push(verdict_line(row, &cut(name, name_width), name_width, &scale));
    }
    if !all_fit {
        lines.push(Line::default().dim(&format!("and {} more", rows.len() - shown)));
    }
    lines.truncate(height);
    lines
}

fn name(state: &State, comparison: &Comparison) -> String {
    let Comparison { workload, metric, contender, .. } = comparison;
    match state.plan.workloads.len() {
        1 => format!("{metric} {contender}"),
        _ => format!("{workload} {metric} {contender}"),
    }
}

fn verdict_line(comparison: &Comparison, name: &str, name_width: usize, scale: &Scale) -> Line {
    let ratio = comparison.ratio.map_or("-".into(), precise);
    let interval = match comparison.high {
        Some(_) if comparison.exact => "exact".into(),
        Some(high) => render::from_to(comparison.low, high, precise),
        None => "-".into(),
    };
    let picture = scale.picture(comparison);
    let figures = format!("{name:name_width$}  {ratio:>6}  {picture}  {interval:14}  ");
    let line = Line::default().plain(&figures);
    match comparison.verdict.is_settled() {
        true => line.bold(&comparison.label()),
        false => line.dim(&comparison.label()),
    }
}

/// What a column of an interval's picture stands for: logarithms of ratios, 1 in the middle.
struct Scale {
    /// At the ends.
    reach: f64,
    margin: f64,
    width: usize,
}

/// No picture reaches beyond a ratio of three, where an end is an arrow.
const REACH_MAX: f64 = 3.0;

impl Scale {
    fn of(rows: &[&Comparison], margin: f64, width: usize) -> Scale {
        let ends = rows.iter().filter_map(|it| Some([it.low.ln(), it.high?.ln()]));
        // Before the fourth round there are estimates alone.
        let estimates = rows.iter().filter_map(|it| it.ratio).map(f64::ln);
        let all = ends.flatten().chain(estimates).map(f64::abs);
        let reach = all.fold(2.0 * margin, f64::max);
        Scale { reach: reach.min(REACH_MAX.ln()), margin, width }
    }

    fn column(&self, ln: f64) -> usize {
        let share = (ln.clamp(-self.reach, self.reach) / self.reach + 1.0) / 2.0;
        (share * (self.width - 1) as f64).round() as usize
    }

    /// The margin as a shade, 1 as a line, and upon them the interval, double where it is within
    /// the margin, with its estimate.
    fn picture(&self, comparison: &Comparison) -> String {
        if self.width == 0 {
            return String::new();
        }
        let mut columns = vec![' '; self.width];
        columns[self.column(-self.margin)..=self.column(self.margin)].fill('░');
        columns[self.column(0.0)] = '│';
        if let Some(high) = comparison.high {
            let (low, high) = (comparison.low.ln(), high.ln());
            for column in &mut columns[self.column(low)..=self.column(high)] {
                *column = match *column {
                    '░' => '═',
                    '│' => '╪',
                    _ => '━',
                };
            }
            if low < -self.reach {
                columns[0] = '◀';
            }
            if high > self.reach {
                columns[self.width - 1] = '▶';
            }
        }
        if let Some(ratio) = comparison.ratio {
            columns[self.column(ratio.ln())] = '●';
        }
        columns.into_iter().collect()
    }
}

fn machine_lines(state: &State, width: usize) -> [Line; 3] {
    let seconds = &state.machine.seconds;
    let last = seconds.back();
    let device = last.and_then(|second| second.device);
    let device_text = device.map_or("not known".into(), |device| {
        let rate = |bytes: f64| Unit::BytesPerSecond.format(bytes);
        let (read, write) = (rate(device.read_bytes_per_s), rate(device.write_bytes_per_s));
        format!("{:3.0}%  read {read}, write {write}", device.utilisation * 100.0)
    });
    let cpu_text =
        last.map_or(String::new(), |second| format!("{:3.0}%", second.cpu_busy_share * 100.0));
    let room = width.saturating_sub(MACHINE_NAME_WIDTH + MACHINE_TEXT_WIDTH);
    let line = |name: &str, text: &str, share: fn(&Second) -> f64| {
        let skipped = seconds.len().saturating_sub(room);
        let bars: String = seconds.iter().skip(skipped).map(|second| bar(share(second))).collect();
        let name = format!("{name:MACHINE_NAME_WIDTH$}");
        Line::default().bold(&name).plain(&format!("{bars:room$}  {text}"))
    };
    let utilisation = |second: &Second| second.device.map_or(0.0, |device| device.utilisation);
    [
        Line::default(),
        line("device", &device_text, utilisation),
        line("CPU", &cpu_text, |second| second.cpu_busy_share),
    ]
}

/// A second's share as a bar, in eighths of a line.
fn bar(share: f64) -> char {
    [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(share.clamp(0.0, 1.0) * 8.0) as usize]
}

/// The gravest first, wrapped: a table of one column, without borders. Where there is no room for
/// all of them they pass by.
fn finding_lines(state: &State, width: usize, height: usize) -> Vec<Line> {
    if state.findings.is_empty() {
        return Vec::new();
    }
    let mut findings: Vec<_> = state.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let title = format!("findings: {}", findings.len());
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.add_rows(findings.into_iter().map(|finding| [found(finding)]));
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 0));
    });
    let mut lines = vec![Line::default(), Line::default().bold(&title)];
    let all: Vec<String> = table.lines().collect();
    let room = height.saturating_sub(lines.len()).max(1);
    let passed = match all.len() > room {
        true => usize::try_from(state.gone().as_secs() / SECONDS_A_LINE).unwrap_or(0),
        false => 0,
    };
    let shown = all.iter().cycle().skip(passed % all.len()).take(room.min(all.len()));
    lines.extend(shown.map(|line| Line::default().plain(line)));
    lines
}

fn names_width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or(0).min(NAME_WIDTH)
}

/// A name that is too long loses its middle: both its ends tell it from others.
fn cut(name: &str, width: usize) -> String {
    let count = name.chars().count();
    if count <= width {
        return name.into();
    }
    let tail = width / 2;
    let head: String = name.chars().take((width - tail).saturating_sub(1)).collect();
    let tail: String = name.chars().skip(count - tail).collect();
    format!("{head}…{tail}")
}
