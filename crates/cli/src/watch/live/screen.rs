//! What the view shows: where the run is, the rounds as a grid, the verdicts with their intervals,
//! device and processors second by second, and the findings.

use fsverdict_core::model::{Comparison, Key, Unit};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, Wrap};

use super::super::machine::Second;
use super::super::plain::found;
use super::super::state::{Cell, State, clock, left_text};

/// The widest a name may be.
const NAME_WIDTH: usize = 24;

/// What a verdict's row holds beside names and the interval's picture: the ratio, the interval, the
/// verdict, and gaps.
const FIGURES_WIDTH: usize = 6 + 2 + 14 + 2 + 17;

const LEGEND: &str = "  ■ measured  ▶ under way  × failed  · to come  - settled";

/// Draws the view.
pub fn draw(frame: &mut Frame, state: &State) {
    let area = frame.area();
    let width = area.width as usize;
    let contenders = state.contenders(state.workload());
    let findings = state.findings.len();
    let fixed = 3 + 1 + contenders.len() + 1 + 1 + 2;
    let room = (area.height as usize).saturating_sub(fixed);
    // Findings are kept in sight, but do not crowd out the verdicts.
    let kept_for_findings = if findings > 0 { (findings + 2).min(5) } else { 0 };
    let verdicts = (state.comparisons.len() + 1).min(room.saturating_sub(kept_for_findings));
    let length = |lines: usize| Constraint::Length(u16::try_from(lines).unwrap_or(u16::MAX));
    let layout = [
        length(3),
        length(1 + contenders.len() + 1),
        length(verdicts),
        length(1 + 2),
        Constraint::Min(0),
    ];
    let [head_area, grid_area, verdicts_area, machine_area, findings_area] =
        Layout::vertical(layout).areas(area);
    frame.render_widget(Paragraph::new(head(state, width)), head_area);
    frame.render_widget(Paragraph::new(grid(state, &contenders, width)), grid_area);
    let lines = verdict_lines(state, width, verdicts_area.height as usize);
    frame.render_widget(Paragraph::new(lines), verdicts_area);
    draw_machine(frame, state, machine_area);
    let lines = finding_lines(state);
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), findings_area);
}

fn head(state: &State, width: usize) -> Vec<Line<'static>> {
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
    vec![Line::from(title).reversed(), Line::from(now).bold(), Line::from(time)]
}

/// A row for each contender, a column for each round; where they don't all fit, the last ones.
fn grid(state: &State, contenders: &[String], width: usize) -> Vec<Line<'static>> {
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
    let mut lines = vec![Line::from(vec![Span::from(title).bold(), Span::from(LEGEND).dim()])];
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
        lines.push(Line::from(row));
    }
    lines
}

fn verdict_lines(state: &State, width: usize, height: usize) -> Vec<Line<'static>> {
    let here = state.workload();
    let (mut rows, others): (Vec<&Comparison>, Vec<&Comparison>) =
        state.comparisons.iter().partition(|it| it.workload == here);
    rows.extend(others);
    let names: Vec<String> = rows.iter().map(|it| name(state, it)).collect();
    let name_width = names_width(names.iter().map(String::as_str));
    let room = width.saturating_sub(name_width + FIGURES_WIDTH + 4);
    let margin = state.plan.judgement.margin.0.ln_1p();
    let scale = Scale::of(&rows, margin, room);
    let percent = state.plan.judgement.margin;
    let title = format!("against {}, margin {percent}", state.plan.reference());
    let mut lines = vec![Line::from(title).bold()];
    let all_fit = rows.len() < height;
    let shown = if all_fit { rows.len() } else { height.saturating_sub(2) };
    for (row, name) in rows.iter().zip(&names).take(shown) {
        lines.push(verdict_line(row, &cut(name, name_width), name_width, &scale));
    }
    if !all_fit {
        lines.push(Line::from(format!("and {} more", rows.len() - shown)).dim());
    }
    lines
}

fn name(state: &State, comparison: &Comparison) -> String {
    let Comparison { workload, metric, contender, .. } = comparison;
    match state.plan.workloads.len() {
        1 => format!("{metric} {contender}"),
        _ => format!("{workload} {metric} {contender}"),
    }
}

fn verdict_line(
    comparison: &Comparison,
    name: &str,
    name_width: usize,
    scale: &Scale,
) -> Line<'static> {
    let ratio = comparison.ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
    let interval = match comparison.high {
        Some(high) => format!("{:.3} to {high:.3}", comparison.low),
        None => "-".into(),
    };
    let picture = scale.picture(comparison);
    let figures = format!("{name:name_width$}  {ratio:>6}  {picture}  {interval:14}  ");
    let verdict = Span::from(comparison.verdict.label());
    let verdict = match comparison.verdict.is_settled() {
        true => verdict.bold(),
        false => verdict.dim(),
    };
    Line::from(vec![Span::from(figures), verdict])
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
        let reach = ends.flatten().map(f64::abs).fold(2.0 * margin, f64::max);
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

fn draw_machine(frame: &mut Frame, state: &State, area: Rect) {
    type Share = fn(&Second) -> f64;
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
    let utilisation = |second: &Second| second.device.map_or(0.0, |device| device.utilisation);
    let busy = |second: &Second| second.cpu_busy_share;
    let rows: [(&str, String, Share); 2] =
        [("device", device_text, utilisation), ("CPU", cpu_text, busy)];
    for (place, (name, text, share)) in (1..).zip(rows) {
        if place >= area.height {
            return;
        }
        let line = Rect { y: area.y + place, height: 1, ..area };
        let columns = [Constraint::Length(8), Constraint::Min(0), Constraint::Length(44)];
        let [name_area, spark_area, text_area] = Layout::horizontal(columns).areas(line);
        frame.render_widget(Paragraph::new(name).bold(), name_area);
        let skipped = seconds.len().saturating_sub(spark_area.width as usize);
        let percent = |second: &Second| (share(second) * 100.0).clamp(0.0, 100.0) as u64;
        let data: Vec<u64> = seconds.iter().skip(skipped).map(percent).collect();
        let spark = Sparkline::default().data(&data).max(100).style(Style::new());
        frame.render_widget(spark, spark_area);
        frame.render_widget(Paragraph::new(format!("  {text}")), text_area);
    }
}

/// The latest grave ones first.
fn finding_lines(state: &State) -> Vec<Line<'static>> {
    if state.findings.is_empty() {
        return Vec::new();
    }
    let mut findings: Vec<_> = state.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let title = format!("findings: {}", findings.len());
    let mut lines = vec![Line::from(""), Line::from(title).bold()];
    lines.extend(findings.into_iter().map(|finding| Line::from(found(finding))));
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
