//! Anonymous names: each part of a path becomes another of the same length, always the same for the
//! same part, so that directories stay as large and as deep as they were.

use std::collections::HashMap;

const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Other names, or the same.
#[derive(Debug, Default)]
pub struct Names {
    keep: bool,
    given: HashMap<String, String>,
    /// How many names of each length have been given.
    counts: HashMap<usize, u64>,
}

impl Names {
    /// Names that say nothing, or, where they are to be kept, what they said.
    pub fn new(keep: bool) -> Names {
        Names { keep, ..Names::default() }
    }

    /// The path of a name `0/a/b`, or the target of a link: `..` stays, and so do the numbers of
    /// the watched folders, which begin a name.
    pub fn path(&mut self, path: &str) -> String {
        match path.split_once('/') {
            Some((root, rest)) => format!("{root}/{}", self.parts(rest)),
            None => path.into(),
        }
    }

    /// The target of a link. Where it leads through the folder of all watched folders, the first
    /// part that is no `..` is the number of one.
    pub fn target(&mut self, target: &str, names_root: bool) -> String {
        let up = target.split('/').take_while(|part| *part == "..").count();
        let (begin, rest) = target.split_at((3 * up).min(target.len()));
        match names_root {
            true => format!("{begin}{}", self.path(rest)),
            false => format!("{begin}{}", self.parts(rest)),
        }
    }

    fn parts(&mut self, path: &str) -> String {
        let parts: Vec<String> = path.split('/').map(|part| self.part(part)).collect();
        parts.join("/")
    }

    fn part(&mut self, part: &str) -> String {
        if self.keep || matches!(part, "" | "." | "..") {
            return part.into();
        }
        if let Some(given) = self.given.get(part) {
            return given.clone();
        }
        let given = self.next(part.len());
        self.given.insert(part.into(), given.clone());
        given
    }

    /// The next name of that length; a longer one where there are no more.
    fn next(&mut self, length: usize) -> String {
        let number = self.counts.entry(length).or_default();
        let all = LETTERS.len().checked_pow(length as u32).map_or(u64::MAX, |all| all as u64);
        if *number >= all {
            return self.next(length + 1);
        }
        let (mut rest, letters) = (*number, LETTERS.len() as u64);
        *number += 1;
        let mut name = vec![0; length];
        for letter in name.iter_mut().rev() {
            *letter = LETTERS[(rest % letters) as usize];
            rest /= letters;
        }
        name.into_iter().map(char::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_lengths_and_differ_as_before() {
        let mut names = Names::new(false);
        assert_eq!(names.path("0/secret/plan.txt"), "0/aaaaaa/aaaaaaaa");
        assert_eq!(names.path("0/secret/secret"), "0/aaaaaa/aaaaaa");
        assert_eq!(names.path("1/public"), "1/aaaaab");
        assert_eq!(names.path("0"), "0");
        assert_eq!(names.target("../secret", false), "../aaaaaa");
        assert_eq!(names.target("../../1/public", true), "../../1/aaaaab");
        assert_eq!(names.target("..", false), "..");
        let short: Vec<String> = ('A'..='z').map(|c| names.part(&c.to_string())).collect();
        let different: std::collections::BTreeSet<&String> = short.iter().collect();
        assert_eq!(different.len(), short.len());
        assert_eq!(short.iter().filter(|name| name.len() == 1).count(), 36);
        assert_eq!(Names::new(true).path("0/secret"), "0/secret");
    }
}
