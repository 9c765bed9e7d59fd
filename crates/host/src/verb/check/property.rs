//! Properties of files on Btrfs (btrfs-property(8)), set on a file of our own.

use fsverdict_core::model::{Checked, Judged};
use fsverdict_core::script::Choice;

use super::bench::{Bench, Refused};
use super::facts::complaint;
use super::mounting;

/// Sets `name=value`, and looks whether it shows.
pub fn check(bench: &Bench, choice: &Choice, blank: &Checked) -> Checked {
    let blank = Checked { setting: choice.to_string(), ..blank.clone() };
    let (state, said) = match tried(bench, choice) {
        Ok((before, after)) if before == after => {
            (Judged::Redundant, format!("it is {after:?} without it"))
        }
        Ok((before, after)) => (Judged::Ok, format!("{before:?} -> {after:?}")),
        Err(Refused::Said(text)) => (Judged::Invalid, text),
        Err(Refused::Unasked(text)) => (Judged::NotTried, text),
    };
    Checked { state, said: Some(said), ..blank }
}

/// The property before and after.
fn tried(bench: &Bench, choice: &Choice) -> Result<(String, String), Refused> {
    if !bench.root {
        return Err(Refused::Unasked("mounting needs root: run it with sudo".into()));
    }
    let disk = bench.disk().map_err(Refused::Unasked)?;
    mounting::make(bench, &disk, "btrfs", &[]).map_err(Refused::Unasked)?;
    let mounted = bench.mount(&disk.node(), "btrfs", &[])?;
    let path = mounted.at.join("file");
    let unmade = |error: std::io::Error| Refused::Unasked(error.to_string());
    std::fs::File::create(&path).map_err(unmade)?;
    let path = path.display().to_string();
    let (name, value) =
        choice.value.as_deref().and_then(|it| it.split_once('=')).unwrap_or_default();
    let ask = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let answer = bench.ask(&words, &[]).map_err(|error| Refused::Unasked(error.to_string()))?;
        match answer.status.success() {
            true => Ok(answer.stdout.trim().to_string()),
            false => Err(Refused::Said(complaint(&answer.stderr, &[]).replace(&path, "FILE"))),
        }
    };
    let before = ask(&["btrfs", "property", "get", &path, name])?;
    ask(&["btrfs", "property", "set", &path, name, value])?;
    Ok((before, ask(&["btrfs", "property", "get", &path, name])?))
}
