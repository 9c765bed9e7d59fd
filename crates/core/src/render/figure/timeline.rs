//! The course of a timed part: what device, processors and memory did, all contenders on one axis.
//!
//! Readings become as many equal parts of the time as a screen shows. A part keeps the smallest and
//! the largest reading of every trial, so that no peak is lost, and between them the median of the
//! trials' means.

use maud::{Markup, html};

use super::super::Report;
use super::drawing::{Figure, Live, Place, WIDTH, named};
use super::palette;
use super::plot::{LINE, axis, curve, legend, marks, percent, place, stretched};
use super::scale::Scale;
use crate::model::{Gauge, Phase, Timeline, Unit, Workload, median};

/// Height of a panel, in px.
const PANEL: f64 = 72.0;
/// Parts of the time at most: a part is a pixel or more, and zoomed in by a few times still small.
const PARTS_MAX: usize = 600;

/// What one contender's trials showed, part by part.
struct Spread {
    /// `[smallest, median, largest]`; `None` where no trial has a reading.
    parts: Vec<Option<[f64; 3]>>,
}

/// A figure for each timed part of `workload` that has timelines.
pub(super) fn figures(report: &Report, workload: &Workload, timelines: &[Timeline]) -> Vec<Figure> {
    let of_it = |it: &&Timeline| it.key.workload == workload.name;
    let all: Vec<&Timeline> = timelines.iter().filter(of_it).collect();
    let phases = workload.phases().into_iter();
    let figure = |phase: Phase| {
        let its = all.iter().filter(|it| it.phase == phase.name()).copied().collect::<Vec<_>>();
        let at = Place::Timeline { workload: workload.name.clone(), phase };
        figure(report, workload, phase, &its, at)
    };
    phases.filter_map(figure).collect()
}

fn figure(
    report: &Report,
    workload: &Workload,
    phase: Phase,
    timelines: &[&Timeline],
    at: Place,
) -> Option<Figure> {
    let contenders = contenders(report, timelines);
    let ends = timelines.iter().filter_map(|it| Some(f64::from(it.stretches.last()?.to_s)));
    let seconds = ends.fold(0.0, f64::max);
    let parts = parts(timelines, seconds)?;
    let entries: Vec<_> = contenders.iter().map(|(name, _)| (*name, place(report, name))).collect();
    let (legend, mut top) = legend(&entries);
    let mut panels = Vec::new();
    let mut left_out = Vec::new();
    let has_network = workload.network.is_some();
    for gauge in Gauge::ALL.into_iter().filter(|it| has_network || !it.is_of_a_network()) {
        let of = |(name, its): &OfContender| (name.to_string(), spread(its, gauge, parts, seconds));
        let spreads: Vec<_> = contenders.iter().map(of).collect();
        let known = spreads.iter().flat_map(|(_, spread)| &spread.parts).flatten();
        match known.map(|[_, _, high]| *high).max_by(f64::total_cmp) {
            None => left_out.push(format!("{} (not known here)", gauge.title())),
            Some(high) if high <= 0.0 => left_out.push(format!("{} (always 0)", gauge.title())),
            Some(high) => {
                panels.push(panel(report, gauge, &spreads, high, top + 4.0));
                top += 4.0 + LINE + PANEL + 6.0;
            }
        }
    }
    let ticks = Scale::linear(0.0, seconds).ticks(5, Unit::Ratio);
    let ticks: Vec<_> =
        ticks.iter().map(|tick| (tick / seconds, Unit::Seconds.format(*tick))).collect();
    let drawing = html! {
        (legend)
        (marks(&ticks, LINE, top))
        @for panel in &panels { (panel) }
        (axis(top, "time since the timed part began"))
    };
    let title = match phase.name() {
        "" => "The course of a trial".to_string(),
        name => format!("The course of {name}"),
    };
    (!panels.is_empty()).then(|| Figure {
        name: named(&[&workload.name, phase.name(), "course"]),
        title,
        caption: caption(timelines.len(), seconds / parts as f64, &left_out),
        place: at,
        live: Live::Seconds(seconds),
        height: top + 2.0 * LINE,
        drawing,
    })
}

fn caption(trials: usize, part_s: f64, left_out: &[String]) -> String {
    let mut caption = format!(
        "From the start of the timed part. A line is the median of the trials that were still \
         under way, the shade reaches from the smallest to the largest of all readings: {trials} \
         trials, in parts of {}.",
        Unit::Seconds.format(part_s)
    );
    if !left_out.is_empty() {
        caption += &format!(" Not drawn: {}.", left_out.join(", "));
    }
    caption
}

type OfContender<'a> = (&'a str, Vec<&'a Timeline>);

/// The timelines by contender, in the plan's order, arms last.
fn contenders<'a>(report: &Report, timelines: &[&'a Timeline]) -> Vec<OfContender<'a>> {
    let mut contenders: Vec<OfContender> = Vec::new();
    for &timeline in timelines {
        let name = timeline.key.contender.as_str();
        match contenders.iter_mut().find(|(known, _)| *known == name) {
            Some((_, its)) => its.push(timeline),
            None => contenders.push((name, vec![timeline])),
        }
    }
    contenders.sort_by_key(|(name, _)| place(report, name));
    contenders
}

/// How many parts: no smaller than what lies between two readings. `None` where nothing was read.
fn parts(timelines: &[&Timeline], seconds: f64) -> Option<usize> {
    let lengths = timelines.iter().flat_map(|timeline| &timeline.stretches);
    let length = median(lengths.map(|it| f64::from(it.to_s - it.from_s)))?;
    Some(((seconds / length).round() as usize).clamp(1, PARTS_MAX))
}

/// The parts that a stretch covers the middle of; the one it lies in where it covers none.
fn covered(from_s: f64, to_s: f64, part_s: f64, parts: usize) -> std::ops::Range<usize> {
    let first = (from_s / part_s - 0.5).ceil().max(0.0) as usize;
    let end = (to_s / part_s - 0.5).ceil().max(0.0) as usize;
    if first < end {
        return first.min(parts - 1)..end.min(parts);
    }
    let inside = (f64::midpoint(from_s, to_s) / part_s) as usize;
    inside.min(parts - 1)..inside.min(parts - 1) + 1
}

fn spread(timelines: &[&Timeline], gauge: Gauge, parts: usize, seconds: f64) -> Spread {
    let part_s = seconds / parts as f64;
    let mut ends = vec![[f64::INFINITY, f64::NEG_INFINITY]; parts];
    let mut means: Vec<Vec<f64>> = vec![Vec::new(); parts];
    let mut sums = vec![(0.0, 0u32); parts];
    for timeline in timelines {
        sums.fill((0.0, 0));
        for stretch in &timeline.stretches {
            let Some(value) = stretch.value(gauge).map(f64::from) else { continue };
            let (from_s, to_s) = (stretch.from_s.into(), stretch.to_s.into());
            for part in covered(from_s, to_s, part_s, parts) {
                let [low, high] = ends[part];
                ends[part] = [low.min(value), high.max(value)];
                sums[part] = (sums[part].0 + value, sums[part].1 + 1);
            }
        }
        for (means, (sum, count)) in means.iter_mut().zip(&sums).filter(|(_, it)| it.1 > 0) {
            means.push(sum / f64::from(*count));
        }
    }
    let part = |(means, [low, high]): (Vec<f64>, [f64; 2])| Some([low, median(means)?, high]);
    Spread { parts: means.into_iter().zip(ends).map(part).collect() }
}

fn panel(
    report: &Report,
    gauge: Gauge,
    spreads: &[(String, Spread)],
    high: f64,
    top: f64,
) -> Markup {
    let scale = match gauge {
        Gauge::Cpu => Scale::linear(0.0, 1.0),
        _ => Scale::from_nought(high, gauge.unit()),
    };
    let plot = top + LINE;
    let inside = html! {
        @for (name, it) in spreads { (drawn(report, gauge, name, it, &scale)) }
    };
    html! {
        text.strong x="0" y=(top + 14.0) { (gauge.title()) }
        text.mark.end x="100%" y=(top + 14.0) { (gauge.shown(scale.high())) }
        line.grid x1="0" x2=(percent(1.0)) y1=(plot) y2=(plot) {}
        line.grid x1="0" x2=(percent(1.0)) y1=(plot + PANEL) y2=(plot + PANEL) {}
        g.panel data-title=(gauge.title()) { (stretched(plot, PANEL, &inside)) }
    }
}

/// A contender's shade, and its line upon it.
fn drawn(report: &Report, gauge: Gauge, name: &str, spread: &Spread, scale: &Scale) -> Markup {
    let count = spread.parts.len() as f64;
    let points = |which: usize| -> Vec<Option<(f64, f64)>> {
        let at = |(index, part): (usize, &Option<[f64; 3]>)| {
            part.map(|part| ((index as f64 + 0.5) / count, 1.0 - scale.place(part[which])))
        };
        spread.parts.iter().enumerate().map(at).collect()
    };
    let said = spread.parts.iter().map(|part| match part {
        Some([low, middle, high]) if low < high => {
            let [low, middle, high] = [low, middle, high].map(|value| gauge.shown(*value));
            format!("{middle} ({low} to {high})")
        }
        Some([_, middle, _]) => gauge.shown(*middle),
        None => String::new(),
    });
    let place = place(report, name);
    let colour = palette::class(place);
    html! {
        path.spread.(colour) d=(shade(&points(0), &points(2))) {}
        path.curve.(colour) stroke-dasharray=(palette::dashes(place)) d=(curve(&points(1), PANEL))
            data-name=(name) data-shown=(said.collect::<Vec<_>>().join("|")) {}
    }
}

/// An outline from the smallest values to the right, and back along the largest; one for each run
/// of parts that have any.
fn shade(low: &[Option<(f64, f64)>], high: &[Option<(f64, f64)>]) -> String {
    let pairs: Vec<_> = low.iter().zip(high).map(|(low, high)| low.zip(*high)).collect();
    let mut path = String::new();
    for run in pairs.split(Option::is_none).filter(|run| !run.is_empty()) {
        let there = run.iter().flatten().map(|(low, _)| low);
        let back = run.iter().rev().flatten().map(|(_, high)| high);
        for (index, (x, y)) in there.chain(back).enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            path += &format!("{command}{:.1} {:.1}", x * WIDTH, y * PANEL);
        }
        path.push('z');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::run;
    use crate::model::{Key, Plan};

    /// A trial whose device wrote so many bytes in each 50 ms.
    fn timeline(round: u32, bytes: &[u64]) -> Timeline {
        let mut text = "phase,time_ns,device_write_bytes\nx,0,0\n".to_string();
        let mut sum = 0;
        for (index, bytes) in (1..).zip(bytes) {
            sum += bytes;
            text += &format!("x,{},{sum}\n", index * 50_000_000u64);
        }
        let key = Key { round, workload: "work".into(), contender: "ext4".into() };
        Timeline::parse(&key, &text).unwrap().remove(0)
    }

    #[test]
    fn no_peak_is_lost_however_few_the_parts() {
        let mut bytes = vec![100; 5000];
        bytes[1234] = 1_000_000;
        bytes[4321] = 0;
        let timeline = timeline(1, &bytes);
        let seconds = 250.0;
        assert_eq!(parts(&[&timeline], seconds), Some(PARTS_MAX));
        for count in [1, 7, 600] {
            let spread = spread(&[&timeline], Gauge::Written, count, seconds);
            let known = || spread.parts.iter().flatten();
            let high = known().map(|part| part[2]).fold(0.0, f64::max);
            let low = known().map(|part| part[0]).fold(f64::INFINITY, f64::min);
            assert!((high / 20e6 - 1.0).abs() < 1e-3 && low == 0.0, "{count}: {low} to {high}");
            assert_eq!(known().count(), count, "no part without a reading");
        }
    }

    #[test]
    fn the_line_is_the_median_of_the_trials_and_ends_with_the_last() {
        let [one, two, three] =
            [timeline(1, &[10, 10]), timeline(2, &[20, 20]), timeline(3, &[90])];
        let spread = spread(&[&one, &two, &three], Gauge::Written, 2, 0.1);
        let rounded = |part: &Option<[f64; 3]>| part.map(|it| it.map(f64::round));
        let parts: Vec<_> = spread.parts.iter().map(rounded).collect();
        assert_eq!(parts, [Some([200.0, 400.0, 1800.0]), Some([200.0, 300.0, 400.0])]);
    }

    /// The drawing of a trial with and without a link, and what is said below it.
    fn course(workload: &str) -> (String, String) {
        let plan = format!(
            "[[contender]]\nname = \"ext4\"\n[[contender]]\nname = \"xfs\"\n[[workload]]\n\
             name = \"work\"\ncommand = \"x\"\n{workload}"
        );
        let plan = Plan::parse(&plan).unwrap();
        let run = run("", &[]);
        let report = Report {
            run: &run,
            plan: &plan,
            records: &[],
            comparisons: &[],
            findings: &[],
            published: &[],
            causes: &[],
            claims: &[],
            is_packed: false,
        };
        let key = Key { round: 1, workload: "work".into(), contender: "ext4".into() };
        let text = "phase,time_ns,device_write_bytes,network_received_bytes,\
                    network_received_packets,network_sent_bytes,network_sent_packets\n\
                    ,0,0,0,0,0,0\n,50000000,4096,5000000,4000,0,0\n";
        let timelines = Timeline::parse(&key, text).unwrap();
        let figure = figures(&report, &plan.workloads[0], &timelines).remove(0);
        (figure.drawing.into_string(), figure.caption)
    }

    #[test]
    fn only_work_with_a_link_has_a_network() {
        let (drawing, caption) = course("network = { rate = \"1G\" }");
        for shown in ["Received over the network", "1.00 Gbit/s", "800 Mbit/s", "80,000/s"] {
            assert!(drawing.contains(shown), "{shown} is not in {drawing}");
        }
        assert!(caption.contains("Sent over the network (always 0)"), "{caption}");
        let (drawing, caption) = course("");
        assert!(drawing.contains("Written to the device"));
        for text in [drawing, caption] {
            assert!(!text.contains("network") && !text.contains("ackets"), "{text}");
        }
    }

    #[test]
    fn a_gap_breaks_shade_and_line() {
        let low = [Some((0.0, 1.0)), None, Some((1.0, 1.0))];
        let high = [Some((0.0, 0.0)), None, Some((1.0, 0.5))];
        assert_eq!(shade(&low, &high), "M0.0 72.0L0.0 0.0zM760.0 72.0L760.0 36.0z");
        assert_eq!(curve(&low, 10.0), "M0.0 10.0h.1M760.0 10.0h.1");
        assert_eq!(covered(0.0, 0.01, 0.05, 3), 0..1);
        assert_eq!(covered(0.05, 0.1501, 0.05, 3), 1..3);
    }
}
