//! Whose file each of several is, by what differs between their paths: `ext4-1.json` and
//! `xfs-1.json`, `ext4/3.json` and `xfs/3.json`, `write/ext4/new/sample.json` and
//! `write/xfs/new/sample.json`.

use std::collections::BTreeSet;

/// What a file's path tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// Whose it is.
    pub contender: String,
    /// Of which round, where the paths count.
    pub round: Option<u32>,
}

/// The labels of files by their paths. A number at the end of a name counts rounds where that
/// leaves the names of two contenders or more, and no file twice.
pub fn labels(paths: &[&str]) -> Vec<Label> {
    let names = differing(paths);
    let counted: Vec<Label> = names.iter().map(|parts| counted(parts)).collect();
    let contenders: BTreeSet<&str> = counted.iter().map(|it| it.contender.as_str()).collect();
    let single = counted.iter().collect::<BTreeSet<&Label>>().len() == counted.len();
    let all_named = contenders.iter().all(|name| !name.is_empty());
    if contenders.len() > 1 && single && all_named {
        return counted;
    }
    names.iter().map(|parts| Label { contender: parts.join("/"), round: None }).collect()
}

/// The parts of each path that are not the same in all, without the file's ending. Of paths of
/// unequal lengths the last parts are set against each other.
fn differing(paths: &[&str]) -> Vec<Vec<String>> {
    let parts: Vec<Vec<&str>> = paths.iter().map(|path| parts(path)).collect();
    let depth = parts.iter().map(Vec::len).min().unwrap_or(0);
    let from_end = |parts: &[&str], at: usize| parts[parts.len() - 1 - at].to_string();
    let differs = |at: &usize| parts.iter().any(|it| from_end(it, *at) != from_end(&parts[0], *at));
    let places: Vec<usize> = (0..depth).rev().filter(differs).collect();
    parts.iter().map(|it| places.iter().map(|at| from_end(it, *at)).collect()).collect()
}

/// The parts of a path, the last one without its ending.
fn parts(path: &str) -> Vec<&str> {
    let stem = path.rsplit_once('.').filter(|(_, end)| !end.contains('/')).map(|(stem, _)| stem);
    stem.unwrap_or(path).split('/').filter(|part| !part.is_empty()).collect()
}

/// Names and number apart: the last part that ends in a number counts.
fn counted(parts: &[String]) -> Label {
    let mut contender: Vec<&str> = Vec::new();
    let mut round = None;
    for part in parts.iter().rev() {
        match split(part).filter(|_| round.is_none()) {
            Some((name, number)) => {
                round = Some(number);
                contender.extend((!name.is_empty()).then_some(name));
            }
            None => contender.push(part),
        }
    }
    contender.reverse();
    Label { contender: contender.join("/"), round }
}

/// `ext4-12`, `ext4_run3`, `run3` or `3`: the number needs something before it that is no name, for
/// ext4 is one.
fn split(part: &str) -> Option<(&str, u32)> {
    const SEPARATORS: [char; 4] = ['-', '_', '.', ' '];
    const WORDS: [&str; 6] = ["run", "round", "rep", "iter", "trial", "r"];
    let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = part[name.len()..].parse().ok()?;
    let bare = name.trim_end_matches(SEPARATORS);
    let word = WORDS.iter().find_map(|word| bare.strip_suffix(word));
    let before = word.filter(|it| it.is_empty() || it.ends_with(SEPARATORS));
    let is_apart = name.is_empty() || bare.len() < name.len() || before.is_some();
    is_apart.then(|| (before.unwrap_or(bare).trim_end_matches(SEPARATORS), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Vec<(String, Option<u32>)> {
        labels(paths).into_iter().map(|it| (it.contender, it.round)).collect()
    }

    fn label(name: &str, round: u32) -> (String, Option<u32>) {
        (name.into(), Some(round))
    }

    #[test]
    fn what_differs_between_paths_is_the_contender_and_a_number_the_round() {
        let rounds = [label("ext4", 1), label("xfs", 1), label("ext4", 12), label("xfs", 12)];
        assert_eq!(
            of(&["a/ext4-1.json", "a/xfs-1.json", "a/ext4-12.json", "a/xfs-12.json"]),
            rounds
        );
        assert_eq!(of(&["ext4/1.json", "xfs/1.json", "ext4/12.json", "xfs/12.json"]), rounds);
        assert_eq!(of(&["1/ext4.json", "1/xfs.json", "12/ext4.json", "12/xfs.json"]), rounds);
        let runs = ["ext4_run1.json", "xfs_run1.json", "ext4_run12.json", "xfs_run12.json"];
        assert_eq!(of(&runs), rounds);
    }

    #[test]
    fn a_number_that_is_part_of_a_name_counts_nothing() {
        let named =
            |names: &[&str]| names.iter().map(|it| (it.to_string(), None)).collect::<Vec<_>>();
        assert_eq!(of(&["ext3.json", "ext4.json"]), named(&["ext3", "ext4"]));
        assert_eq!(of(&["k/6.1.json", "k/6.12.json"]), named(&["6.1", "6.12"]));
        let criterion = ["c/write/ext4/new/sample.json", "c/write/xfs/new/sample.json"];
        assert_eq!(of(&criterion), named(&["ext4", "xfs"]));
        assert_eq!(of(&["c/w/base/sample.json", "c/w/new/sample.json"]), named(&["base", "new"]));
        assert_eq!(of(&["only.json"]), named(&[""]));
    }
}
