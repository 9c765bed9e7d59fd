//! The matrix on a terminal of 80 columns.

use super::matrix::{Cell, Group, Matrix, Row, Tone, sign, tally};
use super::paint::{Paint, Painted, WIDTH, columns, filled, wrapped};
use super::words;
use crate::model::Comparison;

/// Blanks before every line.
const INDENT: usize = 2;
/// Blanks between columns.
const GAP: usize = 2;
/// A name of a row that is longer is broken.
const NAME_MAX: usize = 34;

/// Where everything stands.
struct Layout {
    name: usize,
    reference: usize,
    cell: usize,
    /// Where the interval is.
    interval: Interval,
    /// So many columns of cells beside each other.
    across: usize,
}

/// Where an interval stands.
#[derive(Clone, Copy, PartialEq)]
enum Interval {
    Beside,
    Below,
    /// There are so many contenders that it would hide the ratios.
    Nowhere,
}

/// Lines of a cell, each with what it is.
type Lines = Vec<(Paint, String)>;

/// Adds the matrix; `all`: with the rows that are folded, too.
pub(super) fn draw(out: &mut Painted, matrix: &Matrix, all: bool) {
    let layout = Layout::of(matrix, all);
    let mut blocks: Vec<&[String]> = matrix.columns.chunks(layout.across).collect();
    // One contender has figures, and is compared with nobody. A single figure is in the answer.
    if blocks.is_empty() && matrix.rows().count() > 1 {
        blocks.push(&[]);
    }
    for (block, columns) in blocks.into_iter().enumerate() {
        if block > 0 {
            out.add(Paint::Plain, "\n");
        }
        let from = block * layout.across;
        header(out, matrix, &layout, columns);
        for group in &matrix.groups {
            if let Some(title) = group_title(matrix, group) {
                if matrix.is_folded(group) && !all {
                    let cells = tallies(group, from, columns.len(), &layout);
                    line(out, &layout, &title, "", &cells);
                    continue;
                }
                out.add_wrapped(Paint::Strong, INDENT, &title);
            }
            for row in &group.rows {
                drawn(out, &layout, row, group.title.is_some(), from, columns.len());
            }
        }
    }
}

/// What stands above a group's rows.
fn group_title(matrix: &Matrix, group: &Group) -> Option<String> {
    let title = group.title.clone()?;
    Some(match &group.reference {
        Some(figure) => format!("{title} ({}: {figure})", matrix.reference),
        None => title,
    })
}

impl Layout {
    fn of(matrix: &Matrix, all: bool) -> Layout {
        let cells = || matrix.rows().flat_map(|row| &row.cells);
        let widest = |of: &dyn Fn(&Cell) -> usize| cells().map(of).max().unwrap_or(0);
        let ratio = widest(&|cell| columns(&ratio(cell))).max(4);
        let span = widest(&|cell| columns(&span(cell)));
        let heading = matrix.columns.iter().map(|name| longest_word(name)).max().unwrap_or(0);
        let figures = matrix.rows().filter_map(|row| row.reference.as_deref()).map(columns).max();
        let reference =
            figures.map_or(0, |figures| figures.max(longest_word(matrix.reference).min(12)) + GAP);
        let names = matrix.rows().map(|row| columns(&row.name) + GAP).max().unwrap_or(0);
        let name = names.clamp(8, NAME_MAX);
        let count = matrix.columns.len().max(1);
        let room = |cell: usize, across: usize| {
            WIDTH.saturating_sub(INDENT + reference + across * (GAP + cell))
        };
        let at = |cell: usize, interval, across| {
            let name = name.min(room(cell, across));
            Layout { name, reference, cell, interval, across }
        };
        let beside = (2 + ratio + GAP + span).max(heading.min(14));
        if room(beside, count) >= name.min(22) {
            return at(beside, Interval::Beside, count);
        }
        // As many blocks of columns as it takes, of about the same width.
        let across = |cell: usize| {
            let most = (1..=count).rev().find(|across| room(cell, *across) >= name.min(16));
            count.div_ceil(count.div_ceil(most.unwrap_or(1)))
        };
        let below = (2 + ratio.max(span)).max(heading.min(14));
        if across(below) == count || all {
            return at(below, Interval::Below, across(below));
        }
        let narrow = (2 + ratio).max(heading.min(11));
        at(narrow, Interval::Nowhere, across(narrow))
    }
}

fn longest_word(name: &str) -> usize {
    name.split([' ', '-', '/', '_']).map(|word| columns(word) + 1).max().unwrap_or(0)
}

fn ratio(cell: &Cell) -> String {
    match cell {
        Cell::Judged(comparison) => comparison.ratio.map_or("-".into(), words::ratio),
        Cell::Reference => "1".into(),
        Cell::Empty(_) => String::new(),
    }
}

fn span(cell: &Cell) -> String {
    match cell {
        Cell::Judged(Comparison { low, high: Some(high), .. }) => words::span(*low, *high),
        Cell::Reference => "reference".into(),
        Cell::Empty(why) => (*why).into(),
        Cell::Judged(_) => "no interval".into(),
    }
}

fn paint(tone: Tone) -> Paint {
    match tone {
        Tone::Better => Paint::Better,
        Tone::Worse => Paint::Worse,
        Tone::Alike => Paint::Plain,
        Tone::Open => Paint::Soft,
        Tone::Void => Paint::Void,
    }
}

fn header(out: &mut Painted, matrix: &Matrix, layout: &Layout, names: &[String]) {
    let reference = if layout.reference > 0 { matrix.reference } else { "" };
    let corner = match &matrix.ways {
        Some(ways) => ways.second,
        None => "",
    };
    let cells: Vec<Lines> = names
        .iter()
        .map(|name| wrapped(name, layout.cell).into_iter().map(|it| (Paint::Strong, it)).collect())
        .collect();
    line(out, layout, corner, reference, &cells);
}

fn drawn(
    out: &mut Painted,
    layout: &Layout,
    row: &Row,
    is_below: bool,
    from: usize,
    across: usize,
) {
    let cells: Vec<Lines> =
        row.cells[from..from + across].iter().map(|cell| shown(cell, layout)).collect();
    let name = if is_below { format!("  {}", row.name) } else { row.name.clone() };
    line(out, layout, &name, row.reference.as_deref().unwrap_or(""), &cells);
}

fn shown(cell: &Cell, layout: &Layout) -> Lines {
    let (sign, paint) = match cell {
        Cell::Judged(comparison) => {
            let (sign, tone) = sign(comparison.verdict);
            (sign, paint(tone))
        }
        _ => (' ', Paint::Soft),
    };
    let (ratio, span) = (ratio(cell), span(cell));
    let figure = format!("{sign} {}{ratio}", " ".repeat(4usize.saturating_sub(columns(&ratio))));
    match layout.interval {
        Interval::Nowhere if matches!(cell, Cell::Empty(_)) => vec![(paint, span)],
        Interval::Nowhere => vec![(paint, figure)],
        Interval::Beside => {
            let gap = layout.cell.saturating_sub(columns(&figure) + columns(&span)).min(GAP);
            vec![(paint, format!("{figure}{}{span}", " ".repeat(gap)))]
        }
        Interval::Below => vec![(paint, figure), (Paint::Soft, format!("  {span}"))],
    }
}

/// For each column how often it has each sign.
fn tallies(group: &Group, from: usize, across: usize, layout: &Layout) -> Vec<Lines> {
    let of = |column: usize| {
        let signs = tally(group, column).into_iter();
        let signs: Vec<String> = signs.map(|(sign, _, count)| format!("{sign}{count}")).collect();
        wrapped(&signs.join(" "), layout.cell).into_iter().map(|it| (Paint::Plain, it)).collect()
    };
    (from..from + across).map(of).collect()
}

/// One row, of as many lines as its highest cell has.
fn line(out: &mut Painted, layout: &Layout, name: &str, reference: &str, cells: &[Lines]) {
    let inner = name.trim_start();
    let indent = name.len() - inner.len();
    let names = wrapped(inner, layout.name.saturating_sub(indent).max(1));
    let references = wrapped(reference, layout.reference.saturating_sub(GAP).max(1));
    let height = cells.iter().map(Vec::len).chain([names.len(), references.len()]).max();
    for at in 0..height.unwrap_or(1) {
        let of = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
        let mut text = format!("{}{}", " ".repeat(INDENT + indent), of(&names));
        text = filled(&text, INDENT + layout.name);
        let its = of(&references);
        text += &" ".repeat(layout.reference.saturating_sub(columns(&its)));
        text += &its;
        let mut written = Vec::new();
        for cell in cells {
            let (paint, shown) = cell.get(at).cloned().unwrap_or((Paint::Plain, String::new()));
            written.push((Paint::Plain, " ".repeat(GAP)));
            let rest = layout.cell.saturating_sub(columns(&shown));
            written.push((paint, shown));
            written.push((Paint::Plain, " ".repeat(rest)));
        }
        // Nothing follows what is written.
        while written.last().is_some_and(|(_, it)| it.trim().is_empty()) {
            written.pop();
        }
        out.add(Paint::Plain, if written.is_empty() { text.trim_end() } else { &text });
        written.iter().for_each(|(paint, it)| out.add(*paint, it));
        out.add(Paint::Plain, "\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{grid, report};
    use super::*;
    use crate::model::Verdict;

    fn screen(verdicts: &[Vec<(Verdict, f64)>]) -> String {
        let made = grid(verdicts);
        let report = report(&made);
        let mut out = Painted::default();
        draw(&mut out, &Matrix::of(&report), false);
        out.plain()
    }

    #[test]
    fn two_contenders_stand_beside_the_reference() {
        let shown = screen(&[vec![(Verdict::Faster, 1.5), (Verdict::Undecided, 0.5)]]);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>(),
            ["t0", "▲", "1.50", "1.35-1.65", "?", "0.50", "0.45-0.55"]
        );
    }

    #[test]
    fn one_contender_has_its_figures() {
        let shown = screen(&[vec![], vec![]]);
        let lines: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines, [vec![], vec!["t0"], vec!["t1"]], "nothing of them was measured");
        assert_eq!(screen(&[vec![]]), "", "a single one is in the answer");
    }

    #[test]
    fn it_is_never_wider_than_a_terminal_and_has_every_cell() {
        for contenders in 1..14 {
            let row = |at: usize| {
                (0..contenders).map(move |it| {
                    (Verdict::ALL[(at + it) % Verdict::ALL.len()], 0.0123 * (it + 1) as f64)
                })
            };
            let rows: Vec<Vec<_>> = (0..9).map(|at| row(at).collect()).collect();
            let shown = screen(&rows);
            for line in shown.lines() {
                assert!(columns(line) <= WIDTH, "{contenders}: {line}");
                assert_eq!(line.trim_end(), line);
            }
            for verdict in Verdict::ALL {
                let wanted = rows.iter().flatten().filter(|it| it.0 == verdict).count();
                let found = shown.matches(sign(verdict).0).count();
                assert_eq!(found, wanted, "{verdict:?} of {contenders}\n{shown}");
            }
        }
    }
}
