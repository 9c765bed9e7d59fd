//! What the work did outside its folder, and what it was kept from doing there.

use serde::{Deserialize, Serialize};

/// How many texts are kept of either.
const FIRST: usize = 5;

/// Keeps `text` where it is one of the first, and a new one.
fn keep_first(first: &mut Vec<String>, text: String) {
    if first.len() < FIRST && !first.contains(&text) {
        first.push(text);
    }
}

/// What the work left in folders outside its own. It was written to memory, and is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Astray {
    /// How many files and folders were written, or removed as it saw them.
    pub files: u64,
    /// The first of them, by their paths.
    pub paths: Vec<String>,
}

impl Astray {
    /// Adds one.
    pub fn add(&mut self, path: String) {
        self.files += 1;
        keep_first(&mut self.paths, path);
    }

    /// Adds what is found later.
    pub fn append(&mut self, later: Astray) {
        self.files += later.files;
        later.paths.into_iter().for_each(|path| keep_first(&mut self.paths, path));
    }
}

/// Writes outside the work's folder that the kernel refused, because it is read-only there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forbidden {
    /// How many.
    pub writes: u64,
    /// The first of them, each a program and, where that is known, a path as it gave it.
    pub first: Vec<String>,
}

impl Forbidden {
    /// Keeps an example, where it is one of the first.
    pub fn add_first(&mut self, text: String) {
        keep_first(&mut self.first, text);
    }

    /// Adds what is found later.
    pub fn append(&mut self, later: Forbidden) {
        self.writes += later.writes;
        later.first.into_iter().for_each(|text| self.add_first(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_are_named_once() {
        let names = |range: std::ops::Range<u32>| range.map(|it| it.to_string()).collect();
        let mut forbidden = Forbidden { writes: 4, first: names(0..3) };
        forbidden.append(Forbidden { writes: 9, first: names(1..9) });
        assert_eq!(forbidden, Forbidden { writes: 13, first: names(0..5) });
        let mut astray = Astray::default();
        astray.add("0".into());
        astray.append(Astray { files: 7, paths: names(0..7) });
        assert_eq!(astray, Astray { files: 8, paths: names(0..5) });
    }
}
