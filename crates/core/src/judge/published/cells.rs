//! A row's figures by what they are.

use super::reach::Reach;
use crate::model::{Column, Part, Printed, Quantity, Row, Statistic, Test};

/// One row of a test.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    pub test: &'a Test,
    pub row: &'a Row,
}

/// A figure in its column.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    pub column: &'a Column,
    pub figure: &'a Printed,
}

impl Cell<'_> {
    /// What it may stand for.
    pub fn reach(self) -> Reach {
        Reach::of(self.figure, self.column)
    }

    /// As printed, under its heading.
    pub fn shown(self) -> String {
        format!("{} {}", self.column.heading, self.figure.text)
    }
}

impl<'a> Cells<'a> {
    /// The rows of `test`.
    pub fn of(test: &'a Test) -> impl Iterator<Item = Cells<'a>> {
        test.rows.iter().map(move |row| Cells { test, row })
    }

    /// The figures there are.
    pub fn all(self) -> impl Iterator<Item = Cell<'a>> {
        let columns = self.test.columns.iter().zip(&self.row.cells);
        columns.filter_map(|(column, figure)| Some(Cell { column, figure: figure.as_ref()? }))
    }

    /// The mean, or what is given without a statistic, of that quantity.
    pub fn plain(self, quantity: Quantity, part: Part) -> Option<Cell<'a>> {
        self.all().find(|cell| {
            let Column { statistic, .. } = cell.column;
            cell.column.quantity == quantity
                && cell.column.part == part
                && matches!(statistic, None | Some(Statistic::Mean))
        })
    }

    /// The latency of one kind (`latency`, `clat`) of all operations of `part`.
    pub fn latency(self, kind: &str, part: Part) -> Option<Cell<'a>> {
        let subjects = match part {
            Part::Read => [format!("read {kind}"), format!("{kind} read")],
            Part::Write => [format!("write {kind}"), format!("{kind} write")],
            Part::All => [kind.to_string(), format!("total {kind}")],
        };
        let is_mean = |cell: &Cell| matches!(cell.column.statistic, None | Some(Statistic::Mean));
        self.all().find(|cell| {
            cell.column.quantity == Quantity::Latency
                && subjects.contains(&cell.column.subject)
                && is_mean(cell)
        })
    }

    /// All of a quantity with the columns it is taken from: as printed for all operations, or
    /// reads and writes together.
    pub fn total(self, quantity: Quantity) -> Option<(Reach, Vec<Cell<'a>>)> {
        if let Some(all) = self.plain(quantity, Part::All) {
            return Some((all.reach(), vec![all]));
        }
        let job = &self.test.job;
        match (self.plain(quantity, Part::Read), self.plain(quantity, Part::Write)) {
            (Some(read), Some(write)) => Some((read.reach() + write.reach(), vec![read, write])),
            (Some(one), None) if !job.writes() => Some((one.reach(), vec![one])),
            (None, Some(one)) if !job.reads() => Some((one.reach(), vec![one])),
            _ => None,
        }
    }

    /// The figure of a part: of reads or of writes alone, as printed or for want of others.
    pub fn of_part(self, quantity: Quantity, part: Part) -> Option<(Reach, Vec<Cell<'a>>)> {
        let job = &self.test.job;
        let alone = match part {
            Part::All => return self.total(quantity),
            Part::Read => job.reads() && !job.writes(),
            Part::Write => job.writes() && !job.reads(),
        };
        let own = self.plain(quantity, part);
        let cell = own.or_else(|| self.plain(quantity, Part::All).filter(|_| alone))?;
        Some((cell.reach(), vec![cell]))
    }

    /// Reads and writes a second, together.
    pub fn total_iops(self) -> Option<(Reach, Vec<Cell<'a>>)> {
        self.total(Quantity::Iops)
    }
}

/// `read IOPS 5625 and write IOPS 2420`.
pub fn shown(cells: &[Cell]) -> String {
    cells.iter().map(|cell| cell.shown()).collect::<Vec<_>>().join(" and ")
}
