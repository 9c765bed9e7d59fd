//! Figures as SVG: the same drawing in the report, in a file of its own, and without a script.
//!
//! Places along the x axis are percentages and heights are px, so that a figure fills whatever
//! width it gets and its text stays as large as the text around it. Only curves have coordinates
//! of their own, in a nested `svg` that is stretched; their strokes are not.

mod blocks;
mod drawing;
mod forest;
mod latency;
mod matrix;
mod order;
pub(super) mod palette;
mod plot;
mod queue;
mod rounds;
mod scale;
mod timeline;
mod trend;

use std::collections::BTreeSet;

use super::Report;
use crate::model::Timeline;

pub use blocks::figure as blocks_figure;
pub use drawing::Figure;
pub(super) use drawing::{Place, STYLE};
pub use forest::joined as joined_figure;
pub(super) use matrix::{Ruler, TRACKS_MAX};
pub use order::figure as order_figure;
pub use queue::figure as queue_figure;
pub(super) use trend::figures as trends;

/// All figures of a report, in its order.
pub fn figures(report: &Report, timelines: &[Timeline]) -> Vec<Figure> {
    let whole = [matrix::figure(report), forest::figure(report)];
    let mut figures: Vec<Figure> = whole.into_iter().flatten().collect();
    for workload in &report.plan.workloads {
        figures.extend(rounds::figures(report, workload));
        figures.extend(latency::figures(report, workload));
        figures.extend(timeline::figures(report, workload, timelines));
    }
    number(&mut figures);
    figures
}

/// Gives figures of one name a number each.
fn number(figures: &mut [Figure]) {
    let mut names = BTreeSet::new();
    for figure in figures {
        let mut name = figure.name.clone();
        for again in 2.. {
            if names.insert(name.clone()) {
                break;
            }
            name = format!("{}-{again}", figure.name);
        }
        figure.name = name;
    }
}
