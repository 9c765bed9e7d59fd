//! Tables as every renderer draws them: a cell holds what it is given and nothing besides.

use std::fmt;

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_BORDERS_ONLY};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width};

use super::paint::WIDTH;
use super::text;

/// A table that is drawn in a preset, or put into a page.
pub(super) struct Grid {
    table: Table,
    is_markdown: bool,
    /// How many columns it has.
    pub width: usize,
}

impl Grid {
    /// A table of columns with these headings.
    pub fn new<T: AsRef<str>>(preset: &str, header: impl IntoIterator<Item = T>) -> Grid {
        let is_markdown = preset == ASCII_MARKDOWN;
        let mut grid = Grid { table: Table::new(), is_markdown, width: 0 };
        let header: Vec<String> = header.into_iter().map(|it| grid.fitted(it.as_ref())).collect();
        grid.width = header.len();
        grid.table.load_preset(preset).set_header(header);
        if preset == UTF8_BORDERS_ONLY {
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

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.table.fmt(f)
    }
}
