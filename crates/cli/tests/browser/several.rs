//! The pages of many runs: their history, and some of them joined.

use std::path::PathBuf;

use super::page::{Page, Sight};
use super::{assert_drawn, assert_fits, assert_named};
use crate::simulated::{joined, past};
use crate::support::Scene;

fn page_of(scene: &Scene, line: &str) -> PathBuf {
    let html = scene.run(line).exits(0).stdout;
    scene.write("page.html", &html).into()
}

/// Looks at a page in every way.
fn seen(page: &Page, name: &str) {
    page.screenshot(name);
    assert_drawn(page);
    assert_named(page);
    let title = "getComputedStyle(document.querySelector('.figure .strong')).fill";
    page.see(Sight { dark: true, ..Sight::DESKTOP });
    assert_eq!(page.text(title), "rgb(236, 236, 238)");
    page.screenshot(&format!("{name}-dark"));
    page.see(Sight::PHONE);
    page.screenshot(&format!("{name}-phone"));
    assert_fits(page);
    let over = page.texts(
        "[...document.querySelectorAll('g.marks')].flatMap(marks => {
            const boxes = [...marks.querySelectorAll('text')]
                .map(it => [it.textContent, it.getBoundingClientRect()]);
            return boxes.slice(1).filter(([, box], i) => box.left < boxes[i][1].right)
                .map(([text]) => text);
        })",
    );
    assert_eq!(over, [""; 0], "marks upon each other");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn the_history_is_drawn_and_its_dots_can_be_read() {
    let scene = Scene::new();
    past::nightly(&scene, 12);
    let page = Page::open(&page_of(&scene, "history nightly --format html"), Sight::DESKTOP);
    page.show("figure");
    let plot = page.frame("figure svg.plot");
    page.point(plot.x + plot.width - 2.0, plot.y + plot.height / 2.0);
    let said = page.text("document.querySelector('figure output').textContent");
    let words = ["plain ", " s; 2026-03-12 12, kernel 6.12, fsverdict "];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    let marks = "[...document.querySelectorAll('figure .shift')].length";
    assert_eq!(page.number(marks), 1.0, "the change has its line");
    seen(&page, "history");
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn joined_runs_stand_beside_each_other() {
    let scene = Scene::new();
    joined::two_machines(&scene);
    let page = Page::open(&page_of(&scene, "report old new --format html"), Sight::DESKTOP);
    assert_eq!(page.number("document.querySelectorAll('figure .estimate').length"), 4.0);
    let first = page.text("document.querySelector('main table').textContent");
    assert!(first.contains("kernel") && first.contains("6.12"), "what differs is on top: {first}");
    seen(&page, "joined");
}
