//! The HTML report in a real browser: Debian's Chromium, without a window.
//!
//! With FSVERDICT_SCREENSHOTS=DIR the tests leave pictures there, to be looked at.

mod large;
mod page;
mod several;

use std::path::{Path, PathBuf};

use page::{Page, Sight};

use crate::support::{Scene, tool};

const PUBLISHED: &str = "../../record/2026-11-22-small-files/run.tar.gz";

/// The published run's report in the scene, as a file.
fn published(scene: &Scene) -> PathBuf {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join(PUBLISHED);
    report(scene, &run.display().to_string())
}

fn report(scene: &Scene, run: &str) -> PathBuf {
    let html = scene.fsverdict(&["report", run, "--format", "html"]).exits(0).stdout;
    scene.write("report.html", &html).into()
}

/// Every figure is drawn, nothing is fetched, and the browser has nothing to complain about.
fn assert_drawn(page: &Page) {
    page.run("document.querySelectorAll('details').forEach(it => it.open = true)");
    let undrawn = page.texts(
        "[...document.querySelectorAll('figure')].filter(figure => {
            const marks = [...figure.querySelectorAll('path,line,circle')];
            const text = figure.querySelector('svg.figure text');
            const seen = mark => {
                const box = mark.getBoundingClientRect();
                return box.width + box.height > 0;
            };
            return !(text && marks.filter(seen).length > 3);
        }).map(figure => figure.id)",
    );
    assert_eq!(undrawn, [""; 0]);
    let wrong = page.texts(
        "[...document.querySelectorAll('svg *')].flatMap(it => [...it.attributes])
            .map(it => it.value).filter(it => /NaN|inf|undefined/.test(it)).slice(0, 5)",
    );
    assert_eq!(wrong, [""; 0]);
    assert_eq!(page.number("performance.getEntriesByType('resource').length"), 0.0);
    assert_eq!(page.complaints(), [""; 0]);
}

/// What a screen reader goes by is there: one title, levels in order, names of all that has none.
fn assert_named(page: &Page) {
    assert_eq!(
        page.texts("[...document.querySelectorAll('h1')].map(it => it.textContent)").len(),
        1
    );
    let levels = page.texts("[...document.querySelectorAll('h1,h2,h3')].map(it => it.tagName)");
    assert!(levels.windows(2).all(|pair| pair != ["H1", "H3"]), "{levels:?}");
    for nameless in [
        "[...document.querySelectorAll('svg.figure')].filter(it => !it.getAttribute('aria-label'))",
        "[...document.querySelectorAll('table')].filter(it => !it.caption || !it.tHead)",
        "[...document.querySelectorAll('[role=slider]')].filter(it => !it.ariaLabel)",
        "[...document.querySelectorAll('nav a')].filter(it => !document.querySelector(it.hash))",
    ] {
        assert_eq!(page.number(&format!("{nameless}.length")), 0.0, "{nameless}");
    }
}

/// On a phone nothing is beyond its edges, too small to be read, or upon something else.
fn assert_fits(page: &Page) {
    page.run("document.querySelectorAll('details').forEach(it => it.open = true)");
    let width = page.number("document.documentElement.scrollWidth");
    assert!(width <= 390.0, "{width} px");
    let small = page.texts(
        "[...document.querySelectorAll('svg.figure text')].filter(it => {
            const drawn = it.ownerSVGElement.getScreenCTM();
            return parseFloat(getComputedStyle(it).fontSize) * drawn.a < 11.5;
        }).map(it => it.textContent).slice(0, 5)",
    );
    assert_eq!(small, [""; 0]);
    let cut = page.texts(
        "[...document.querySelectorAll('svg.figure text')].filter(it => {
            const box = it.getBoundingClientRect();
            return box.width > 0 && (box.left < 8 || box.right > 382);
        }).map(it => it.textContent).slice(0, 5)",
    );
    assert_eq!(cut, [""; 0]);
    let over = page.texts(
        "[...document.querySelectorAll('svg.figure')].flatMap(figure => {
            const boxes = [...figure.querySelectorAll('text:not(.mark)')]
                .map(it => [it.textContent, it.getBoundingClientRect()]);
            return boxes.flatMap(([a, one], i) => boxes.slice(i + 1)
                .filter(([, two]) => one.width && two.width && one.left < two.right
                    && two.left < one.right && one.top + 3 < two.bottom
                    && two.top + 3 < one.bottom)
                .map(([b]) => a + ' | ' + b));
        }).slice(0, 5)",
    );
    assert_eq!(over, [""; 0], "texts upon each other");
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn every_figure_is_drawn_and_nothing_is_fetched_or_complained_about() {
    let scene = Scene::new();
    let page = Page::open(&published(&scene), Sight::DESKTOP);
    page.screenshot("desktop");
    // One of all verdicts, three judged metrics, five operations with two each, five courses.
    assert_eq!(page.number("document.querySelectorAll('figure').length"), 1.0 + 3.0 + 10.0 + 5.0);
    assert_drawn(&page);
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn the_answer_is_the_first_that_is_read() {
    let scene = Scene::new();
    let page = Page::open(&published(&scene), Sight::DESKTOP);
    let answer = page.text("document.querySelector('.answer').textContent");
    assert_eq!(
        answer,
        "Against ext4, xfs is worse at deleting small files (0.52×); btrfs is better at reading \
         small files (2.51×) and worse at creating small files (0.49×) and deleting small files \
         (0.71×). 2 of 6 comparisons are open."
    );
    let bottom = page.number("document.querySelector('.answer').getBoundingClientRect().bottom");
    assert!(bottom < 200.0, "{bottom}");
    assert_named(&page);
}

/// Twelve tests of three workloads on four contenders.
fn twelve_by_four() -> String {
    let contender =
        |name: &str| format!("[[contender]]\nname = \"{name}\"\nfile_system = \"{name}\"\n");
    let contenders: String = ["ext4", "xfs", "btrfs", "f2fs"].map(contender).concat();
    let copies: String = (1..=7)
        .map(|it| format!("[[workload]]\nname = \"copy tree {it}\"\ncommand = \"true\"\n"))
        .collect();
    format!(
        "place = \"sim\"\nseed = 3\n{contenders}[[workload]]\nname = \"small files\"\n\
         small_files = {{}}\n{copies}[judgement]\nrounds = 6\n[sim]\n\
         speed = {{ xfs = 1.5, btrfs = 0.5 }}\n"
    )
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn the_first_screen_holds_the_matrix_of_twelve_tests_and_four_contenders() {
    let scene = Scene::new();
    scene.write("plan.toml", &twelve_by_four());
    scene.run("run plan.toml --output run").exits(0);
    let laptop = Sight { width: 1280, height: 720, dark: false, print: false };
    let page = Page::open(&scene.path("run/report.html"), laptop);
    page.screenshot("first-screen");
    assert_eq!(page.number("document.querySelectorAll('#matrix a.cell').length"), 36.0);
    let matrix = page.frame("#matrix");
    assert!(matrix.y > 0.0 && matrix.y + matrix.height <= 720.0, "{matrix:?}");
    let signs = page.texts("[...document.querySelectorAll('.cell i')].map(it => it.textContent)");
    assert!(signs.contains(&"▲".into()) && signs.contains(&"▼".into()), "{signs:?}");
}

/// Nothing is wider than the window, and no table is cut off where there is room for it.
fn assert_no_overflow(page: &Page, width: u32) {
    page.see(Sight { width, ..Sight::DESKTOP });
    page.run("document.querySelectorAll('details').forEach(it => it.open = true)");
    let whole = page.number("document.documentElement.scrollWidth");
    assert!(whole <= f64::from(width), "{whole} of {width} px");
    if width >= 1280 {
        let cut = page.texts(
            "[...document.querySelectorAll('.scroll')].filter(it => it.scrollWidth > it.clientWidth)
                .map(it => it.ariaLabel)",
        );
        assert_eq!(cut, [""; 0], "at {width} px");
    }
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn nothing_overflows_however_wide_the_window_is() {
    let scene = Scene::new();
    let of = |name: &str| format!("../../record/{name}/run.tar.gz");
    let others =
        ["2026-11-23-cloud-disk", "2026-11-23-fsync-kernels", "2026-11-23-fsync-anatomy"].map(of);
    for run in [PUBLISHED.into()].into_iter().chain(others) {
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join(run);
        let page = Page::open(&report(&scene, &run.display().to_string()), Sight::DESKTOP);
        for width in [390, 600, 768, 1024, 1280, 1920] {
            assert_no_overflow(&page, width);
        }
    }
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn a_cell_leads_to_its_trials_and_many_tests_are_folded() {
    let scene = Scene::new();
    let run = Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = run.join("../../record/2026-11-23-cloud-disk/run.tar.gz");
    let page = Page::open(&report(&scene, &run.display().to_string()), Sight::DESKTOP);
    let lost = "[...document.querySelectorAll('#matrix a')]
        .filter(it => document.querySelector(it.hash)?.tagName !== 'H3').length";
    assert_eq!(page.number(lost), 0.0);
    let after = "[...document.querySelectorAll('h3[id^=test-]')]
        .filter(it => !it.nextElementSibling.id.endsWith('-rounds')).length";
    assert_eq!(page.number(after), 0.0, "every trial stands below a test's title");
    let hidden = "[...document.querySelectorAll('#matrix tr.sub')]
        .filter(it => it.getBoundingClientRect().height === 0).length";
    assert!(page.number(hidden) > 20.0);
    page.run("document.querySelectorAll('#matrix input').forEach(it => it.click())");
    assert_eq!(page.number(hidden), 0.0);
}

/// A course of time whose parts are all in sight.
const COURSE: &str = "document.getElementById('figure-small-files-read-course')";

#[test]
#[ignore = "needs Chromium: run ./test"]
fn values_are_read_by_pointer_and_by_keys() {
    let scene = Scene::new();
    let page = Page::open(&published(&scene), Sight::DESKTOP);
    for (figure, words) in [
        (
            "figure-small-files-read-course",
            ["Written to the device", "ext4", "btrfs", "B/s", " ms"],
        ),
        ("figure-small-files-read-read-latency", ["ext4", "xfs", "btrfs", "% within", "µs"]),
        ("figure-small-files-read_rate-rounds", ["ext4", "round ", "trial ", "/s", ""]),
    ] {
        page.show(&format!("#{figure}"));
        let plot = page.frame(&format!("#{figure} svg.plot"));
        page.point(plot.x + plot.width * 0.3, plot.y + plot.height * 0.5);
        let said = page.text(&format!("document.querySelector('#{figure} output').textContent"));
        assert!(words.iter().all(|word| said.contains(word)), "{figure}: {said}");
        let cursor = page.frame(&format!("#{figure} .cursor"));
        assert!(cursor.x >= plot.x && cursor.x <= plot.x + plot.width, "{cursor:?} in {plot:?}");
    }
    let now = |what: &str| page.text(&format!("{COURSE}.querySelector('.drawing').{what}"));
    page.run(&format!("{COURSE}.querySelector('.drawing').focus()"));
    page.key("Home");
    assert_eq!(now("ariaValueNow"), "0");
    let first = now("ariaValueText");
    page.key("ArrowRight");
    page.key("ArrowRight");
    assert_eq!(now("ariaValueNow"), "2");
    assert_ne!(now("ariaValueText"), first);
    page.key("ArrowDown");
    assert!(now("ariaValueText").contains("Read from"), "{}", now("ariaValueText"));
    page.key("End");
    assert_eq!(now("ariaValueNow"), now("ariaValueMax"));
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn time_is_zoomed_by_drag_keys_and_buttons_in_all_panels_alike() {
    let scene = Scene::new();
    let page = Page::open(&published(&scene), Sight::DESKTOP);
    page.show("#figure-small-files-read-course");
    let boxes = || {
        page.texts(&format!(
            "[...{COURSE}.querySelectorAll('svg.plot')].map(it => it.viewBox.baseVal)
                .map(it => [it.x, it.width].map(Math.round).join(' '))"
        ))
    };
    let marks = || {
        page.texts(&format!(
            "[...{COURSE}.querySelectorAll('text.mark[y]')].map(it => it.textContent)"
        ))
    };
    let whole = boxes();
    assert!(whole.len() > 2 && whole.iter().all(|it| it == "0 760"), "{whole:?}");
    let whole_marks = marks();
    let plot = page.frame("#figure-small-files-read-course svg.plot");
    let y = plot.y + plot.height / 2.0;
    page.drag((plot.x + plot.width * 0.25, y), (plot.x + plot.width * 0.75, y));
    let zoomed = boxes();
    assert!(zoomed.iter().all(|it| it == "190 380"), "{zoomed:?}");
    assert_ne!(marks(), whole_marks);
    page.screenshot_of("zoomed", "#figure-small-files-read-course");
    page.key("+");
    let narrow: f64 = boxes()[0].split(' ').next_back().unwrap().parse().unwrap();
    assert!(narrow < 380.0, "{narrow}");
    page.key("0");
    assert_eq!(boxes(), whole);
    page.run(&format!("{COURSE}.querySelector('button[title=\"Zoom in\"]').click()"));
    assert_ne!(boxes(), whole);
    page.run(&format!("{COURSE}.querySelector('button[title=\"Show the whole\"]').click()"));
    assert_eq!((boxes(), marks()), (whole, whole_marks));
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn it_is_dark_where_the_reader_wants_it_dark() {
    let scene = Scene::new();
    let page = Page::open(&published(&scene), Sight { dark: true, ..Sight::DESKTOP });
    page.screenshot("dark");
    let of = |element: &str, property: &str| {
        page.text(&format!("getComputedStyle(document.querySelector('{element}')).{property}"))
    };
    assert_eq!(of("body", "backgroundColor"), "rgb(22, 23, 26)");
    assert_eq!(of("h1", "color"), "rgb(236, 236, 238)");
    assert_eq!(of(".figure .strong", "fill"), "rgb(236, 236, 238)");
    assert_eq!(of(".figure .c0", "color"), "rgb(74, 165, 224)");
    page.see(Sight { dark: true, print: true, ..Sight::DESKTOP });
    assert_eq!(of("body", "backgroundColor"), "rgb(255, 255, 255)", "paper is white");
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn on_paper_there_are_few_pages_with_the_matrix_first() {
    let scene = Scene::new();
    let page = Page::open(&published(&scene), Sight::DESKTOP);
    let pdf = page.pdf();
    assert!(pdf.starts_with(b"%PDF"), "{} bytes", pdf.len());
    let text = String::from_utf8_lossy(&pdf);
    let pages = text.matches("/Type /Page\n").count() + text.matches("/Type /Page ").count();
    assert!((1..=5).contains(&pages), "{pages} pages");
    page.see(Sight { print: true, ..Sight::DESKTOP });
    for hidden in ["nav", ".bar", "button", "figure.far", "details"] {
        let display = format!("getComputedStyle(document.querySelector('{hidden}')).display");
        assert_eq!(page.text(&display), "none", "{hidden}");
    }
    page.screenshot("print");
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn a_phone_shows_all_of_it_in_letters_that_can_be_read() {
    let scene = Scene::new();
    let page = Page::open(&published(&scene), Sight::PHONE);
    page.screenshot("phone");
    assert_fits(&page);
}

/// Names that would be something else if they were not escaped.
const HOSTILE: &str = r#"
    question = "</title><script>window.broken = 1</script> & \"why\"?"
    place = "sim"
    seed = 3

    [[contender]]
    name = "<script>window.broken = 2</script>"
    file_system = "ext4"
    mount = ["</template><img src=x onerror=window.broken=3>"]

    [[contender]]
    name = "\"><svg onload=window.broken=4>'|&amp;"
    file_system = "xfs"

    [[workload]]
    name = "</script><b>work"
    command = "echo '</pre><script>window.broken = 5</script>'"

    [judgement]
    rounds = 4
"#;

#[test]
#[ignore = "needs Chromium: run ./test"]
fn names_are_text_whatever_they_look_like() {
    let scene = Scene::new();
    scene.write("plan.toml", HOSTILE);
    scene.run("run plan.toml --output run").exits(0);
    let page = Page::open(&scene.path("run/report.html"), Sight::DESKTOP);
    assert_eq!(page.text("String(window.broken)"), "undefined");
    assert_eq!(page.number("document.querySelectorAll('script').length"), 1.0);
    assert_eq!(
        page.number("document.querySelectorAll('img,b:not(output b, .cell b)').length"),
        0.0
    );
    let title = page.text("document.querySelector('h1').textContent");
    assert_eq!(title, "</title><script>window.broken = 1</script> & \"why\"?");
    let values = page.text("document.querySelector('template').content.textContent");
    assert!(values.contains("<script>window.broken = 2</script>"), "{values}");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
#[ignore = "needs Chromium: run ./test"]
fn ten_thousand_trials_are_a_page_of_few_megabytes_and_elements() {
    let scene = Scene::new();
    large::write(&scene, "large");
    let path = report(&scene, &scene.typed("large"));
    let megabytes = std::fs::metadata(&path).unwrap().len() as f64 / 1e6;
    assert!(megabytes < 12.0, "{megabytes} MB");
    let page = Page::open(&path, Sight::DESKTOP);
    // How long that takes is up to the machine.
    let opened_ms = (0..3).map(|_| page.opened_ms()).fold(f64::INFINITY, f64::min);
    eprintln!("{megabytes:.1} MB, painted after {opened_ms:.0} ms");
    page.screenshot("large");
    let elements = page.number("document.getElementsByTagName('*').length");
    assert!(elements < 20_000.0, "{elements} elements");
    let dots = "[...document.querySelectorAll('path.dots')]
        .map(it => it.getAttribute('d').split('M').length - 1).reduce((a, b) => a + b)";
    assert_eq!(page.number(dots), f64::from(large::TRIALS), "every trial has its dot");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
#[ignore = "needs rsvg-convert: run ./test"]
fn figures_are_files_too_and_markdown_shows_them() {
    let scene = Scene::new();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join(PUBLISHED);
    let run = run.display().to_string();
    let line = ["report", &run, "--figures", "some figures", "--format", "markdown"];
    let markdown = scene.fsverdict(&line).exits(0).says("20 figures in some figures").stdout;
    let mut shown = 0;
    for line in markdown.lines().filter_map(|line| line.strip_prefix("![")) {
        let (_, path) = line.split_once("](<").unwrap();
        let svg = scene.read(path.trim_end_matches(">)"));
        assert!(svg.starts_with("<svg xmlns=") && !svg.contains("var("), "{path}");
        shown += 1;
    }
    assert_eq!(shown, 20);
    for entry in std::fs::read_dir(scene.path("some figures")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        match path.extension().unwrap().to_str() {
            Some("png") => {
                assert!(bytes.starts_with(b"\x89PNG\r\n"), "{}", path.display());
                // The header's width (PNG specification, 11.2.1): 792 px, twice.
                assert_eq!(bytes[16..20], 1584u32.to_be_bytes(), "{}", path.display());
                assert!(bytes.len() > 5_000, "{} is empty", path.display());
            }
            ending => assert_eq!(ending, Some("svg")),
        }
    }
    if let Ok(folder) = std::env::var("FSVERDICT_SCREENSHOTS") {
        tool("cp", &["-r", &scene.typed("some figures"), &folder]).unwrap();
    }
    let line = ["report", &run, &run, "--figures", "joined", "--format", "markdown"];
    let joined = scene.fsverdict(&line).exits(0).says("1 figure in joined").stdout;
    assert!(joined.contains("](<joined/verdicts.svg>)"), "{joined}");
    assert!(scene.path("joined/verdicts.png").exists());
}
