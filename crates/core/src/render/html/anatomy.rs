//! What single operations asked of the device, as a page: what each wrote first, then each in full.

use maud::html;

use super::super::anatomy::{all_written, blocks, flushes, flushes_shown, one, written};
use super::super::figure::{blocks_figure, order_figure, queue_figure};
use super::page::Page;
use crate::model::trace::Traced;

/// The whole page.
pub fn page(traced: &[Traced]) -> String {
    let overview = blocks_figure(traced);
    let all = || traced.iter().enumerate();
    let of = |it: &Traced| format!("{}, {}", it.workload, it.contender);
    let contents = all().map(|(place, it)| (anchor(place), of(it)));
    let title = match traced {
        [one] => of(one),
        _ => "What one operation asks of the device".into(),
    };
    let page = Page {
        title: &title,
        version: env!("CARGO_PKG_VERSION"),
        above: "fsverdict anatomy".into(),
        answer: answer(traced),
        first: html! { @if let Some(figure) = &overview { (figure.inline()) } },
        facts: Vec::new(),
        contents: contents.collect(),
        main: html! {
            @for (place, it) in all() {
                section.far id=(anchor(place)) {
                    h2 { (of(it)) }
                    @for figure in [order_figure(it), queue_figure(it)].into_iter().flatten() {
                        (figure.inline())
                    }
                    pre { (one(it)) }
                }
            }
        },
        footer: html! { "fsverdict " (env!("CARGO_PKG_VERSION")) "." },
    };
    page.text()
}

fn anchor(place: usize) -> String {
    format!("anatomy-{}", place + 1)
}

/// What most operations wrote; with several contenders, the two that differ most at the same work.
fn answer(traced: &[Traced]) -> String {
    let [only] = traced else {
        return furthest(traced)
            .unwrap_or("All of them wrote the same amount for the same work.".into());
    };
    let Some((operation, like_it)) = only.fsyncs.typical() else {
        return "No single operation was told apart.".into();
    };
    let [own, others, journal, rest] = written(operation).map(blocks);
    let all = blocks(all_written(operation));
    format!(
        "{like_it} of {} wrote the same: {all} blocks of 4 KiB ({own} of data of the synced file, \
         {others} of others, {journal} of the journal, {rest} others), with {}.",
        only.fsyncs.operations,
        flushes_shown(flushes(operation))
    )
}

/// Bytes that most operations wrote.
fn sum(traced: &Traced) -> u64 {
    traced.fsyncs.typical().map_or(0, |(operation, _)| all_written(operation))
}

fn furthest(traced: &[Traced]) -> Option<String> {
    let wrote: Vec<&Traced> = traced.iter().filter(|it| sum(it) > 0).collect();
    let pairs = wrote.iter().flat_map(|one| wrote.iter().map(move |other| (*one, *other)));
    let pairs = pairs.filter(|(one, other)| one.workload == other.workload);
    let times = |(one, other): &(&Traced, &Traced)| sum(one) as f64 / sum(other) as f64;
    let (most, least) = pairs.max_by(|one, other| times(one).total_cmp(&times(other)))?;
    let [more, less] = [most, least].map(sum);
    (more > less).then(|| {
        format!(
            "At “{}” {} wrote {} blocks of 4 KiB, {} {}: the largest difference.",
            most.workload,
            most.contender,
            blocks(more),
            least.contender,
            blocks(less)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::anatomy::tests::example;
    use super::*;
    use crate::model::trace::{Anatomy, Operation};

    fn traced(workload: &str, contender: &str, entries: usize) -> Traced {
        let mut fsyncs = Anatomy::default();
        let whole = example();
        fsyncs.take(Operation { entries: whole.entries[..entries].to_vec(), ..whole });
        let [workload, contender] = [workload, contender].map(String::from);
        Traced { workload, contender, fsyncs, ..Traced::default() }
    }

    #[test]
    fn the_answer_comes_first_and_each_is_there_in_full() {
        let one = traced("fsync <b>", "ext4", 5);
        let page = page(std::slice::from_ref(&one));
        let answer = "1 of 1 wrote the same: 5 blocks of 4 KiB (1 of data of the synced file, 0 of \
                      others, 4 of the journal, 0 others), with 2 flushes.";
        assert!(page.contains(answer), "{page}");
        assert!(page.contains("fsync &lt;b&gt;") && !page.contains("fsync <b>"), "{page}");
        assert!(page.contains("one fsync") && page.contains("each fsync"), "{page}");
    }

    #[test]
    fn of_several_the_two_that_are_furthest_apart_are_named() {
        let all = [traced("w", "3.4", 5), traced("w", "4.7", 2), traced("v", "3.4", 1)];
        let named = "At “w” 3.4 wrote 5 blocks of 4 KiB, 4.7 4: the largest difference.";
        assert_eq!(answer(&all), named);
        let page = page(&all);
        assert!(page.contains(named) && page.contains("4 blocks, 0 flushes"), "{page}");
        let alike = [traced("w", "3.4", 5), traced("w", "3.8", 5)];
        assert_eq!(answer(&alike), "All of them wrote the same amount for the same work.");
    }
}
