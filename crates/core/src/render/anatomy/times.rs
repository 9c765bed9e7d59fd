//! Tables of where the time goes.

use comfy_table::presets::NOTHING;

use super::super::grid::Grid;
use super::access::op_name;
use super::words::{time, trimmed};
use crate::model::trace::{Anatomy, Layer, Quantiles, Stage, Stages};

const COLUMNS: [&str; 3] = ["median", "90% within", "longest"];

/// Where that of operations goes.
pub fn layers(fsyncs: &Anatomy) -> String {
    let header = ["where its time goes"].into_iter().chain(COLUMNS);
    let mut grid = Grid::new(NOTHING, header);
    for (layer, times) in Layer::ALL.iter().zip(fsyncs.layers()) {
        let name = match layer {
            Layer::Before => "before its first request",
            Layer::Waiting => "requests wait for the device",
            Layer::Device => "at the device",
            Layer::Rest => "no request is under way",
        };
        grid.add([name.to_string()].into_iter().chain(shown(times)));
    }
    grid.right(1..4);
    format!("\n{}", trimmed(&grid.to_string()))
}

/// Where that of requests goes; empty where the recorder told no times.
pub fn stages(stages: &Stages) -> String {
    let header = ["where requests are", "requests"].into_iter().chain(COLUMNS);
    let mut grid = Grid::new(NOTHING, header);
    let mut is_empty = true;
    for (op, stage, times) in stages.iter() {
        is_empty = false;
        let op = op_name(op);
        let place = match stage {
            Stage::Waiting => "wait for the device",
            Stage::Device => "at the device",
        };
        let head = [format!("{op}: {place}"), times.count().to_string()];
        grid.add(head.into_iter().chain(shown(times)));
    }
    grid.right(1..5);
    if is_empty { String::new() } else { trimmed(&grid.to_string()) + "\n" }
}

fn shown(times: &Quantiles) -> [String; 3] {
    [times.within(0.5), times.within(0.9), times.largest].map(time)
}
