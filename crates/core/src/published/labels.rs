//! Which contender each of several files belongs to, by what differs between their paths:
//! `ext4-1.json` and `xfs-1.json`, `ext4/3.json` and `xfs/3.json`, `write/ext4/new/sample.json` and
//! `write/xfs/new/sample.json`.

use std::collections::{BTreeMap, BTreeSet};

/// What a file's path tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// Whose it is.
    pub contender: String,
    /// Its round, if the paths count rounds.
    pub round: Option<u32>,
    /// Its test, if the paths name tests.
    pub test: Option<String>,
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
    let named = |parts: &Vec<String>| Label { contender: parts.join("/"), ..Label::default() };
    names.iter().map(named).collect()
}

/// The labels of files of several tests, as kdevops keeps fio's: folders that hold files of the
/// same names. The folder is the contender's and the name the test's; numbers at the ends of the
/// names, from 1 on and as many for each test, count rounds. `None` where it is not so.
pub fn of_tests(paths: &[&str]) -> Option<Vec<Label>> {
    let names = differing(paths);
    let mut folders: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for parts in &names {
        let (name, folder) = parts.split_last().filter(|(_, folder)| !folder.is_empty())?;
        folders.entry(folder.join("/")).or_default().insert(name);
    }
    let first = folders.values().next()?;
    if folders.len() < 2 || folders.values().any(|it| it != first) {
        return None;
    }
    let rounds = rounds(first);
    let tests = rounds.as_ref().map_or(first.len(), BTreeMap::len);
    let label = |parts: &Vec<String>| {
        let (name, folder) = parts.split_last()?;
        let counted = rounds.as_ref().and_then(|_| split(name));
        let (test, round) = counted.map_or((name.as_str(), None), |(it, round)| (it, Some(round)));
        Some(Label { contender: folder.join("/"), round, test: Some(test.into()) })
    };
    names.iter().map(label).collect::<Option<_>>().filter(|_| tests > 1)
}

/// How many rounds the names have of each test, where all count them.
fn rounds<'a>(names: &BTreeSet<&'a str>) -> Option<BTreeMap<&'a str, BTreeSet<u32>>> {
    let mut tests: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for name in names {
        let (test, round) = split(name)?;
        tests.entry(test).or_default().insert(round);
    }
    let count = tests.values().next()?.len() as u32;
    let whole = |it: &BTreeSet<u32>| it.iter().copied().eq(1..=count);
    (count > 1 && tests.values().all(whole)).then_some(tests)
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
    Label { contender: contender.join("/"), round, test: None }
}

/// `ext4-12`, `ext4_run3`, `run3` or `3`: the number needs something before it that is no name,
/// because ext4 is one.
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
    fn folders_with_files_of_the_same_names_are_contenders_with_tests() {
        let of = |names: &[&str]| {
            let paths = ["a/xfs-16k/", "a/ext4/"]
                .map(|folder| names.iter().map(move |it| folder.to_string() + it));
            let paths: Vec<String> = paths.into_iter().flatten().collect();
            let labels = of_tests(&paths.iter().map(String::as_str).collect::<Vec<_>>());
            labels.map(|all| {
                all.into_iter().map(|it| (it.contender, it.test, it.round)).collect::<Vec<_>>()
            })
        };
        let label = |contender: &str, test: &str, round: Option<u32>| {
            (contender.to_string(), Some(test.to_string()), round)
        };
        // Depths and jobs are no rounds.
        let kept = of(&["read_16k_1_1.json", "read_16k_1_4.json"]).unwrap();
        assert_eq!(kept[1], label("xfs-16k", "read_16k_1_4", None));
        assert_eq!(kept[2], label("ext4", "read_16k_1_1", None));
        let counted = of(&["read-1.json", "read-2.json", "write-1.json", "write-2.json"]).unwrap();
        assert_eq!(counted[3], label("xfs-16k", "write", Some(2)));
        assert_eq!(of(&["1.json", "2.json"]), None, "rounds alone");
        assert_eq!(of(&["only.json"]), None);
        assert_eq!(of_tests(&["ext4/read.json", "ext4/write.json", "xfs/read.json"]), None);
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
