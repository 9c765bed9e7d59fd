//! What the documents show is run: every `$ fsverdict` in a `console` block of the four beside the
//! README, and of all in `docs/`, must do what it says.
//!
//! A block's first line may say more: `needs-root` (run with the tests on loop devices),
//! `not-run` (only parsed, by a dry run), `exit=N` (its commands end with that status).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Map, Value, json};

use crate::support::{Scene, Started, is_root, list, program, text};

const DOCUMENTS: [&str; 4] = ["README.md", "METHODOLOGY.md", "FORMAT.md", "ARCHITECTURE.md"];

/// A block of a document, with the commands in it.
#[derive(Debug, PartialEq)]
struct Block {
    /// `README.md:13`.
    place: String,
    needs_root: bool,
    not_run: bool,
    exit: i32,
    /// The commands, without prompt and sudo.
    commands: Vec<String>,
}

/// The blocks of a document that show the program.
fn blocks(name: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    // A command goes on after a backslash, as in a shell.
    for (line_number, line) in (1..).zip(text.replace("\\\n", "").lines()) {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                open = true;
                let words: Vec<&str> = info.split_whitespace().collect();
                let exit = words.iter().find_map(|word| word.strip_prefix("exit="));
                blocks.push(Block {
                    place: format!("{name}:{line_number}"),
                    needs_root: words.contains(&"needs-root"),
                    not_run: words.contains(&"not-run"),
                    exit: exit.map_or(0, |code| code.parse().unwrap()),
                    commands: Vec::new(),
                });
            }
            None if open => {
                let command = line.strip_prefix("$ ").unwrap_or_default();
                let command = command.strip_prefix("sudo ").unwrap_or(command);
                if command.starts_with("fsverdict ") {
                    blocks.last_mut().unwrap().commands.push(command.into());
                }
            }
            None => {}
        }
    }
    blocks.retain(|block| !block.commands.is_empty());
    blocks
}

/// The pages in a folder.
fn pages(root: &Path, folder: &str) -> Vec<String> {
    let pages = fs::read_dir(root.join(folder)).unwrap();
    let pages = pages.map(|page| format!("{folder}/{}", page.unwrap().file_name().display()));
    pages.filter(|page| page.ends_with(".md")).collect()
}

fn all_blocks() -> Vec<Block> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = ["docs", "docs/studies"].into_iter().flat_map(|folder| pages(&root, folder));
    let of = |name: String| {
        let text = fs::read_to_string(root.join(&name));
        blocks(&name, &text.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    DOCUMENTS.map(String::from).into_iter().chain(pages).flat_map(of).collect()
}

/// The exit status where every workload is void.
const VOID: i32 = 5;

/// Runs the commands of a block, one after the other, in a folder of their own.
fn run(block: &Block, folder: &Path) {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).unwrap();
    symlink(env!("CARGO_BIN_EXE_fsverdict"), programs.join("fsverdict")).unwrap();
    for known in ["studies", "record"] {
        let there = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(known);
        symlink(there, folder.join(known)).unwrap();
    }
    let others = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{others}", programs.display());
    for command in &block.commands {
        let line = match block.not_run {
            true => command.replacen("fsverdict run ", "fsverdict run --dry-run ", 1),
            false => command.clone(),
        };
        let mut shell = program("sh");
        shell.args(["-c", &line]).env("PATH", &path).current_dir(folder);
        let done = Started::new(shell).wait();
        let said = format!("{}: {line}\n{}\n{}", block.place, done.stdout, done.stderr);
        // A run of its own may be void all over where tests beside it keep the machine busy.
        let is_void = block.needs_root && done.code == Some(VOID);
        assert!(is_void || done.code == Some(block.exit), "{said}");
        assert!(!done.stderr.contains("panicked"), "{said}");
    }
}

/// Runs the blocks that are `chosen`, three at once: most of a run on a slow bed is waiting.
fn run_all(blocks: &[Block], chosen: impl Fn(&Block) -> bool) {
    let scene = Scene::new();
    let blocks: Vec<(PathBuf, &Block)> = (0..)
        .zip(blocks.iter().filter(|block| chosen(block)))
        .map(|(number, block)| (scene.path(&format!("block-{number}")), block))
        .collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((folder, block)) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(block, folder);
                }
            });
        }
    });
    scene.assert_nothing_left();
}

#[test]
fn commands_in_the_documents_do_what_they_say() {
    let blocks = all_blocks();
    for document in ["README.md", "FORMAT.md"] {
        assert!(blocks.iter().any(|block| block.place.starts_with(document)), "{document}");
    }
    run_all(&blocks, |block| !block.needs_root);
}

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn loop_commands_in_the_documents_do_what_they_say() {
    assert!(is_root());
    let blocks = all_blocks();
    assert!(blocks.iter().any(|block| block.needs_root), "the README shows no real run");
    run_all(&blocks, |block| block.needs_root);
}

/// The picture on the README's first screen is a run's own, as the program draws it now:
/// `fsverdict report record/2026-11-22-small-files/run.tar.gz --figures DIR` makes it.
#[test]
fn the_picture_in_the_readme_is_that_of_its_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scene = Scene::new();
    let run = root.join("record/2026-11-22-small-files/run.tar.gz").display().to_string();
    // Without rsvg-convert there are no PNGs, and SVGs all the same.
    scene.fsverdict(&["report", &run, "--figures", "figures"]);
    is_drawn(&scene, "matrix", "small-files");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let first: String = readme.lines().take(40).map(|line| format!("{line}\n")).collect();
    assert!(first.contains("](docs/small-files.svg)"), "{first}");
}

/// The uploads over time are what their record draws.
#[test]
fn the_course_of_uploads_is_the_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pack = root.join("record/2026-11-28-block-volume-uploads/run.tar.gz");
    let scene = Scene::new();
    let pack = pack.display().to_string();
    scene.fsverdict(&["report", &pack, "--figures", "figures", "--format", "csv"]).exits(0);
    is_drawn(&scene, "upload-course", "studies/upload-course");
}

/// The report beside each packed run is what the program says of it now.
#[test]
fn the_reports_of_records_are_what_the_program_says_of_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = fs::read_dir(root.join("record")).unwrap().map(|it| it.unwrap().path());
    let kept = |folder: &PathBuf| [folder.join("run.tar.gz"), folder.join("report.md")];
    let both = folders.map(|it| kept(&it)).filter(|both| both.iter().all(|it| it.exists()));
    let both: Vec<[PathBuf; 2]> = both.collect();
    assert!(!both.is_empty());
    let scene = Scene::new();
    for [pack, report] in both {
        let pack = pack.display().to_string();
        let now = scene.fsverdict(&["report", &pack, "--format", "markdown"]).stdout;
        if std::env::var_os("FSVERDICT_RENEW").is_some() {
            fs::write(&report, &now).unwrap();
        }
        assert!(fs::read_to_string(&report).unwrap() == now, "FSVERDICT_RENEW=1 writes {report:?}");
    }
}

/// What `figures/DRAWN.svg` shows is what `docs/SHOWN.svg` does.
fn is_drawn(scene: &Scene, drawn: &str, shown: &str) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (drawn, shown) = (scene.read(&format!("figures/{drawn}.svg")), format!("{shown}.svg"));
    let shown = docs.join(shown);
    if std::env::var_os("FSVERDICT_RENEW").is_some() {
        fs::write(&shown, &drawn).unwrap();
    }
    assert!(fs::read_to_string(&shown).unwrap() == drawn, "FSVERDICT_RENEW=1 draws it anew");
}

/// The plot over kernels is what the model draws, by the command below it.
#[test]
fn the_plot_over_kernels_is_the_models() {
    let page = include_str!("../../../docs/fsync.md");
    let (_, below) = page.split_once("](fsync-kernels.svg)").unwrap();
    let line = below.lines().find_map(|it| it.strip_prefix("fsverdict anatomy --model ")).unwrap();
    let scene = Scene::new();
    let words = ["anatomy", "--model"].into_iter().chain(line.split(' '));
    scene.fsverdict(&words.collect::<Vec<_>>()).exits(0);
    is_drawn(&scene, "blocks", "fsync-kernels");
}

/// What begins and ends a table of claims, and an answer; the first has the command that makes it.
const CLAIMS: [&str; 2] = ["<!-- $ fsverdict report --claims ", "<!-- end of the claims -->\n"];
const ANSWER: [&str; 2] = ["<!-- $ fsverdict report record/", "<!-- end of the answer -->\n"];

/// The page with what is between such marks cut anew out of what each command says now.
fn remade(
    scene: &Scene,
    page: &str,
    [begin, end]: [&str; 2],
    mut cut: impl FnMut(&str, &str) -> String,
) -> String {
    let mut parts = page.split(begin);
    let mut now = parts.next().unwrap().to_string();
    for part in parts {
        let (rest_of_it, rest) = part.split_once(" -->\n").unwrap();
        let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("{rest_of_it}: no {end}"));
        let command = format!("{begin}{rest_of_it}");
        let report = scene.run(command.strip_prefix("<!-- $ fsverdict ").unwrap()).exits(0).stdout;
        now += &format!("{command} -->\n{}\n{end}{after}", cut(rest_of_it, &report));
    }
    now
}

/// The page with its tables of claims as the program answers them now, and how many hold by the
/// first one; `None` of a page without.
fn answered(scene: &Scene, page: &str) -> Option<(String, String)> {
    let mut tally: Option<String> = None;
    let now = remade(scene, page, CLAIMS, |_, report| {
        // The claims stand between the title and the answer; either begins in bold.
        let (_, claims) = report.split_once("\n\n").unwrap();
        let (claims, _) = claims.split_once("\n\n**").unwrap();
        // A second table, of another record, is not counted.
        tally =
            tally.take().or_else(|| claims.lines().next().map(|it| it.trim_matches('*').into()));
        claims.into()
    });
    tally.map(|tally| (now, tally))
}

/// Above the answers of runs that decide what the first left undecided.
const AGAIN: &str = "### The undecided ones again\n";

/// What a run lacks something for.
const NOT_HERE: &str = "not-measurable-here";

/// The study of a page, and what `fsverdict reproduce` is to know of its records: the answers of
/// the first, those of a later run to what it left undecided, and how long the one took that has
/// the most works and no layer that delays them.
fn precedent(scene: &Scene, page: &str) -> (String, Value) {
    let commands = page.split(CLAIMS[0]).skip(1).map(|it| it.split(" -->").next().unwrap());
    let read = |command: &str| {
        let words: Vec<&str> = command.split(' ').collect();
        let [study, pack, ..] = words[..] else {
            panic!("{command}: write fsverdict report --claims STUDY PACK --format markdown")
        };
        (study.to_string(), pack.to_string())
    };
    let packs: Vec<(String, String)> = commands.map(read).collect();
    let study = &packs[0].0;
    // A plan's own claims are no study's.
    let packs: Vec<_> = packs.iter().filter(|(of, _)| of == study).collect();
    let json = |pack: &str| {
        scene.run(&format!("report --claims {study} {pack} --format json")).exits(0).json()
    };
    let runs: Vec<(&str, Value)> =
        packs.iter().map(|(_, pack)| (folder(pack), json(pack))).collect();
    let (first, answers) = &runs[0];
    // Of several with as many, the first. What a layer delays takes as long nowhere else.
    let is_delayed = |document: &Value| document["plan"].to_string().contains("\"delay:");
    let all = runs.iter().rev().filter(|(_, document)| !is_delayed(document));
    let all = all.map(|(run, document)| (run, document, took(document)));
    let (run, document, trial_s) = all.max_by_key(|(.., trial_s)| trial_s.len()).unwrap();
    let scale = document["plan"]["scale"].as_f64().unwrap_or(1.0);
    let mut claims: Vec<Value> = list(&answers["claims"]).iter().map(ruling).collect();
    let again = page.split_once(AGAIN).and_then(|(_, below)| below.split_once(ANSWER[0]));
    if let Some((_, below)) = again {
        let pack = format!("record/{}", below.split(' ').next().unwrap());
        let later = json(&pack);
        let rank = |it: &Value| ["undecided", NOT_HERE].iter().position(|no| it["answer"] == *no);
        for claim in claims.iter_mut().filter(|it| rank(it).is_some()) {
            let same = list(&later["claims"]).iter().find(|it| it["text"] == claim["text"]);
            let now = ruling(same.unwrap());
            // An answer says more than none, and an interval more than that nothing was measured.
            if rank(&now).is_none_or(|now| Some(now) < rank(claim)) {
                *claim = now;
                claim["run"] = json!(folder(&pack));
            }
        }
    }
    let mut said = json!({ "run": run, "scale": scale, "trial_s": trial_s, "claims": claims });
    if run != first {
        said["answered"] = json!(first);
    }
    (study.clone(), said)
}

/// A record's folder, of the path of its pack.
fn folder(pack: &str) -> &str {
    pack.trim_start_matches("record/").trim_end_matches("/run.tar.gz")
}

/// What `reproduce` is to know of one answered claim.
fn ruling(it: &Value) -> Value {
    let mut claim = json!({ "text": it["text"], "answer": it["answer"] });
    if let [_, low, high] = it["measured"].as_array().map_or(&[][..], Vec::as_slice) {
        claim["interval"] = json!([low, high]);
    }
    claim
}

/// How long a trial of each work took, in seconds: the mean, with all steps.
fn took(document: &Value) -> Map<String, Value> {
    let mut steps: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for trial in list(&document["trials"]) {
        let took = list(&trial["steps"]).iter().map(|it| it["duration_ns"].as_f64().unwrap());
        steps.entry(text(&trial["workload"])).or_default().push(took.sum::<f64>() / 1e9);
    }
    let mean = |all: &[f64]| (all.iter().sum::<f64>() / all.len() as f64 * 10.0).round() / 10.0;
    steps.iter().map(|(name, all)| ((*name).into(), mean(all).into())).collect()
}

/// The tables of claims are made by the command above each, from the records, and docs/studies.md
/// counts as they do.
#[test]
fn the_studies_claims_are_answered_by_their_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scene = Scene::new();
    symlink(root.join("record"), scene.path("record")).unwrap();
    let overview = fs::read_to_string(root.join("docs/studies.md")).unwrap();
    let mut precedents = Map::new();
    for name in pages(&root, "docs").into_iter().chain(pages(&root, "docs/studies")) {
        let page = || fs::read_to_string(root.join(&name)).unwrap();
        let Some((now, tally)) = answered(&scene, &page()) else { continue };
        if std::env::var_os("FSVERDICT_RENEW").is_some() {
            fs::write(root.join(&name), &now).unwrap();
        }
        assert!(page() == now, "{name}: FSVERDICT_RENEW=1 answers its claims anew");
        let link = name.trim_start_matches("docs/");
        let row = overview.lines().find(|line| line.contains(&format!("]({link})")));
        let row = row.unwrap_or_else(|| panic!("docs/studies.md has no row of {name}"));
        assert!(row.contains(tally.trim_end_matches('.')), "docs/studies.md, {link}: {tally}");
        let (study, precedent) = precedent(&scene, &now);
        precedents.insert(study, precedent);
    }
    let claims = precedents.values().flat_map(|it| list(&it["claims"]));
    let measured: Vec<&Value> = claims.filter(|it| it.get("interval").is_some()).collect();
    let answered = measured.iter().filter(|it| it["answer"] != "undecided").count();
    let said = format!("{answered} of the {} claims that a run measured", measured.len());
    assert!(overview.contains(&said), "docs/studies.md: {said}");
    let answers = root.join("studies/answers.json");
    let now = format!("{:#}\n", Value::Object(precedents));
    if std::env::var_os("FSVERDICT_RENEW").is_some() {
        fs::write(&answers, &now).unwrap();
    }
    assert!(fs::read_to_string(&answers).unwrap() == now, "FSVERDICT_RENEW=1 writes {answers:?}");
}

/// Each answer in a page is what the command above it says of its record: from the sentence in bold
/// to the legend of the matrix. The plan of each question ships.
#[test]
fn the_questions_are_answered_by_their_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scene = Scene::new();
    symlink(root.join("record"), scene.path("record")).unwrap();
    let mut answers = BTreeMap::new();
    for name in pages(&root, "docs").into_iter().chain(pages(&root, "docs/studies")) {
        let page = || fs::read_to_string(root.join(&name)).unwrap();
        let now = remade(&scene, &page(), ANSWER, |command, report| {
            let (_, answer) = report.split_once("\n\n").unwrap();
            let (answer, _) = answer.split_once("\n\nThe run ended").unwrap();
            // Claims that stand below a heading of their own are there once.
            let pack = command.split(' ').next().unwrap();
            let has_claims = page().split(CLAIMS[0]).skip(1).any(|it| {
                let claims = it.split(" -->").next().unwrap();
                claims.contains(&format!("record/{pack} "))
            });
            match answer.split_once("\n\n**Against") {
                Some((_, rest)) if has_claims => format!("**Against{rest}"),
                _ => answer.into(),
            }
        });
        if std::env::var_os("FSVERDICT_RENEW").is_some() {
            fs::write(root.join(&name), &now).unwrap();
        }
        assert!(page() == now, "{name}: FSVERDICT_RENEW=1 answers it anew");
        answers.insert(name, now.matches(ANSWER[0]).count());
    }
    assert!(answers["docs/questions.md"] >= 3 && answers["docs/cloud-disk.md"] == 4, "{answers:?}");
    let questions = fs::read_to_string(root.join("docs/questions.md")).unwrap();
    for after in questions.split(ANSWER[1]).skip(1) {
        let plan = after.split("(../plans/").nth(1).unwrap().split(')').next().unwrap();
        assert!(root.join("plans").join(plan).is_file(), "{plan}");
    }
}

#[test]
fn blocks_that_are_only_shown_are_dry_runs_at_least() {
    let not_run: Vec<Block> = all_blocks().into_iter().filter(|block| block.not_run).collect();
    for command in not_run.iter().flat_map(|block| &block.commands) {
        assert!(command.starts_with("fsverdict run "), "{command} can't be parsed alone");
    }
}

#[test]
fn blocks_are_found_with_what_their_first_line_says() {
    let text = [
        "text",
        "```console needs-root exit=1",
        "$ sudo fsverdict run \\",
        "  -- a",
        "what it says",
        "```",
        "```sh",
        "./test",
        "$ fsverdict list",
        "```",
        "```toml",
        "fsverdict = 1",
        "```",
        "$ fsverdict no",
    ];
    let block = |line: u32, needs_root, exit, command: &str| Block {
        place: format!("A.md:{line}"),
        needs_root,
        not_run: false,
        exit,
        commands: vec![command.into()],
    };
    let expected =
        [block(2, true, 1, "fsverdict run   -- a"), block(6, false, 0, "fsverdict list")];
    assert_eq!(blocks("A.md", &text.join("\n")), expected);
}

/// The marks of docs/validation.md come in pairs, and name a program that is there.
#[test]
fn tables_of_benches_are_put_between_their_marks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scene = Scene::new();
    for folder in ["scripts", "docs"] {
        fs::create_dir(scene.path(folder)).unwrap();
    }
    for file in ["scripts/validation", "docs/validation.md"] {
        fs::copy(root.join(file), scene.path(file)).unwrap();
    }
    let page = fs::read_to_string(scene.path("docs/validation.md")).unwrap();
    let marks: Vec<&str> = page.split("<!-- ").skip(1).collect();
    let of = |mark: &str| mark.split(" --write").next().unwrap().to_string();
    let benches: Vec<String> =
        marks.iter().filter(|mark| mark.contains(" --write -->")).map(|mark| of(mark)).collect();
    assert!(!benches.is_empty() && marks.len() == 2 * benches.len(), "{benches:?}");
    scene.write("table.md", "| a |\n| --- |\n| 7 |\n");
    for bench in &benches {
        assert!(root.join(bench).is_file(), "{bench} is gone");
        let mut script = program("sh");
        let command = format!("scripts/validation {bench} table.md");
        script.args(["-c", &command]).current_dir(scene.path(""));
        let done = Started::new(script).wait();
        assert_eq!(done.code, Some(0), "{bench}: {}", done.stderr);
        let page = fs::read_to_string(scene.path("docs/validation.md")).unwrap();
        let inside = page.split(&format!("<!-- {bench} --write -->\n")).nth(1).unwrap();
        let inside = inside.split(&format!("<!-- end of {bench} -->")).next().unwrap();
        assert_eq!(inside, "\n| a |\n| --- |\n| 7 |\n\n");
    }
}
