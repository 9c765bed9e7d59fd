//! A test of runs: one column, a row for each of its runs.

use super::{figure, heading};
use crate::model::{Better, Row, Test};

/// The test `name` of `runs`, each with its contender, whose figures are what `heading` says.
pub fn test(
    name: &str,
    heading: &str,
    better: Option<Better>,
    runs: impl IntoIterator<Item = (String, f64)>,
) -> Test {
    let column = heading::column(heading);
    let row = |(contender, value): (String, f64)| {
        let cells = vec![Some(figure::whole(value))];
        Row { contender, cells, ..Row::default() }
    };
    let rows: Vec<Row> = runs.into_iter().map(row).collect();
    let count = |of: &Row| rows.iter().filter(|row| row.contender == of.contender).count();
    let runs = rows.iter().map(count).min().and_then(|least| u32::try_from(least).ok());
    let columns = vec![crate::model::Column { better, ..column }];
    Test { name: name.into(), columns, rows, runs, ..Test::default() }
}
