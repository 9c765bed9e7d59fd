//! Names that may have been meant.

/// Those of `names` that are a slip or two away from `typed`, the nearest first.
pub fn near<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // More slips than a third of a word make another word of it.
    let slips = (typed.chars().count() / 3).clamp(1, 2);
    let mut near: Vec<(usize, &str)> =
        names.into_iter().map(|name| (distance(&typed.to_lowercase(), name), name)).collect();
    near.retain(|&(distance, _)| distance <= slips);
    near.sort_by_key(|&(distance, _)| distance);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Insertions, removals, changes and swaps of neighbours that lead from one to the other (the
/// optimal string alignment distance).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let change = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_seen_through_and_other_words_are_not() {
        let known = ["ext4", "xfs", "btrfs", "zfs", "ext3", "jfs"];
        assert_eq!(near("btfs", known), ["btrfs"]);
        assert_eq!(near("brtfs", known), ["btrfs"]);
        assert_eq!(near("ext5", known), ["ext4", "ext3"]);
        assert_eq!(near("XFS", known), ["xfs", "zfs", "jfs"]);
        assert_eq!(near("reiserfs", known), [""; 0]);
        assert_eq!((distance("", "abc"), distance("abc", "abc")), (3, 0));
    }
}
