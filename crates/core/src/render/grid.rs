//! Tables as every renderer draws them: a cell holds exactly what it is given.

use std::fmt;

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_BORDERS_ONLY};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width};

use super::paint::WIDTH;
use super::text;

/// A table that is drawn in a preset, or put into a page.
pub(super) struct Grid {
    table: Table,
    is_markdown: bool,
    /// It has borders, and the width of a terminal.
    is_framed: bool,
    /// How many columns it has.
    pub width: usize,
}

impl Grid {
    /// A table of columns with these headings.
    pub fn new<T: AsRef<str>>(preset: &str, header: impl IntoIterator<Item = T>) -> Grid {
        let is_markdown = preset == ASCII_MARKDOWN;
        let is_framed = preset == UTF8_BORDERS_ONLY;
        let mut grid = Grid { table: Table::new(), is_markdown, is_framed, width: 0 };
        let header: Vec<String> = header.into_iter().map(|it| grid.fitted(it.as_ref())).collect();
        grid.width = header.len();
        grid.table.load_preset(preset).set_header(header);
        if is_framed {
            grid.table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH as u16);
        }
        grid
    }

    /// One more row.
    pub fn add<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: Vec<String> = cells.into_iter().map(|it| self.fitted(it.as_ref())).collect();
        self.table.add_row(cells);
    }

    /// Figures stand on the right.
    pub fn right(&mut self, columns: impl IntoIterator<Item = usize>) {
        for column in columns {
            if let Some(column) = self.table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }

    /// No column is wider.
    pub fn narrow(&mut self, width: u16) {
        for column in self.table.column_iter_mut() {
            column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(width)));
        }
    }

    /// Its headings.
    pub fn header(&self) -> Vec<String> {
        self.table.header().map(contents).unwrap_or_default()
    }

    /// What its rows hold.
    pub fn rows(&self) -> Vec<Vec<String>> {
        self.table.row_iter().map(contents).collect()
    }

    /// In Markdown a bar ends a cell, and so does a line's end.
    fn fitted(&self, cell: &str) -> String {
        match self.is_markdown {
            true => text::marked_cell(cell),
            false => text::visible(cell.trim()).into_owned(),
        }
    }
}

fn contents(row: &Row) -> Vec<String> {
    row.cell_iter().map(Cell::content).collect()
}

/// Shorter words are not broken.
const WORD_MIN: usize = 6;

impl Grid {
    /// In a frame: columns close together, and as wide as their longest word where all of them
    /// have the room; otherwise the longest words are broken.
    fn fitting(&self) -> Table {
        let mut table = self.table.clone();
        let mut longest = vec![0; self.width];
        for row in [self.header()].iter().chain(&self.rows()) {
            for (longest, cell) in longest.iter_mut().zip(row) {
                let words = cell.split_whitespace().map(|word| word.chars().count());
                *longest = words.fold(*longest, usize::max);
            }
        }
        // Two borders, and a blank between any two columns.
        let needed = |padding: usize, cap: usize| {
            let words = longest.iter().map(|it| padding + it.min(&cap)).sum::<usize>();
            1 + self.width + words
        };
        let most = longest.iter().copied().max().unwrap_or(0).max(WORD_MIN);
        let padding = usize::from(needed(1, most) <= WIDTH);
        let cap = (WORD_MIN..=most).rev().find(|cap| needed(padding, *cap) <= WIDTH);
        for (column, longest) in table.column_iter_mut().zip(&longest) {
            column.set_padding((padding as u16, 0));
            if let Some(cap) = cap.filter(|_| column.constraint().is_none()) {
                let width = (padding + (*longest).min(cap)) as u16;
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
            }
        }
        table
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.is_framed {
            true => self.fitting().fmt(f),
            false => self.table.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_a_table_that_has_the_room_is_broken() {
        let header = ["metric", "contender", "median", "ratio", "interval", "verdict", "CPU"];
        let header = header.into_iter().chain(["device B per application B"]);
        let mut grid = Grid::new(UTF8_BORDERS_ONLY, header);
        let cells = ["create_rate", "ext4", "19,035/s", "1.002", "0.981 to 1.022", "equivalent"];
        grid.add(cells.into_iter().chain(["17.5 s", "1.10"]));
        let text = grid.to_string();
        for word in ["create_rate", "contender", "equivalent", "application", "interval"] {
            assert!(text.contains(word), "{word}\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}
