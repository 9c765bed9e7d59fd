//! A published study run anew: how long it will take, and its claims beside those of our run.

use std::path::Path;

use crate::support::Scene;

#[test]
fn it_says_first_what_it_will_do() {
    let scene = Scene::new();
    let done = scene.run("reproduce backup-tree --scale 1/16 --rounds 4 --dry-run").exits(0);
    assert_eq!(done.stdout, "");
    done.says("backup-tree: Would XFS make scans")
        .says("compared   ext4, xfs")
        .says("of the study's, up to 4 rounds")
        .says("time       ");
    let wrong = scene.run("reproduce backuptree").exits(2);
    wrong.says("no study is called \"backuptree\"; did you mean backup-tree?");
    scene.run("reproduce backup-tree --from run --rounds 3").exits(2).says("cannot be used with");
}

/// But for what a later run has answered, which it left undecided.
#[test]
fn a_record_beside_itself_is_alike_on_every_line() {
    let scene = Scene::new();
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let pack = records.join("2026-11-23-cloud-disk/run.tar.gz").display().to_string();
    let shown = scene.fsverdict(&["reproduce", "cloud-disk", "--from", &pack]).exits(0).stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("decide, all point the same way."), "{shown}");
    let later = "and record/2026-11-25-cloud-disk-cpu for 3 claims that it left undecided.";
    assert!(words.contains(later), "{shown}");
    let (mut rows, mut answered) = (0, 0);
    for line in shown.lines() {
        let columns = |skip, take| line.chars().skip(skip).take(take).collect::<String>();
        let [then, now] = [columns(53, 13), columns(66, 14)];
        if then.starts_with(['+', '~', '?']) && then.trim() != now.trim() {
            assert!(now.starts_with('?') && !then.starts_with('?'), "{shown}");
            answered += 1;
        }
        rows += usize::from(then.starts_with(['+', '?']));
    }
    assert!(rows > 5 && answered == 3, "{shown}");
}

#[test]
fn a_run_ends_with_the_claims_and_how_to_go_on() {
    let scene = Scene::new();
    let words = "reproduce backup-tree --place sim --rounds 4 --output run";
    let done = scene.run(words).exits(0);
    for said in ["claims", "the study", "our run", "here", "Fill: XFS 1.5 times as fast"] {
        assert!(done.stdout.contains(said), "{said}: {}", done.stdout);
    }
    assert!(done.stdout.contains("fsverdict report "), "{}", done.stdout);
    let again = scene.run("reproduce backup-tree --from run").exits(0).stdout;
    assert!(done.stdout.starts_with(&again), "{}\n{again}", done.stdout);
}
