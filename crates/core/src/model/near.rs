//! Names that may have been meant.

/// Fewer letters begin too many names.
const PREFIX_MIN: usize = 3;

/// Those of `names` that are a slip or two away from `typed`, the nearest first; for a longer word
/// only those with its first letter, if any, because few mistype that. If there are none, those
/// that it begins.
pub fn near<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // More slips than a third of a word make another word of it.
    let slips = (typed.chars().count() / 3).clamp(1, 2);
    let typed = typed.to_lowercase();
    let mut near: Vec<(usize, &str)> =
        names.into_iter().map(|name| (strsim::osa_distance(&typed, name), name)).collect();
    let begun: Vec<_> = near.iter().copied().filter(|(_, name)| name.starts_with(&typed)).collect();
    near.retain(|&(distance, _)| distance <= slips);
    near.sort_by_key(|&(distance, _)| distance);
    let begins_alike = |name: &str| name.chars().next() == typed.chars().next();
    let is_long = typed.chars().count() > PREFIX_MIN;
    if is_long && near.iter().any(|(_, name)| begins_alike(name)) {
        near.retain(|(_, name)| begins_alike(name));
    }
    if near.is_empty() && typed.chars().count() >= PREFIX_MIN {
        near = begun;
    }
    near.into_iter().map(|(_, name)| name).collect()
}

/// What may have been meant by a name that is none of `names`, otherwise what there is: the end of
/// a sentence.
pub fn meant<'a>(typed: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let guess = guess(typed, names.clone());
    guess.unwrap_or_else(|| {
        format!("there are {}", names.into_iter().collect::<Vec<_>>().join(", "))
    })
}

/// A question for what may have been meant.
pub fn guess<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near = near(typed, names);
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

/// An error of serde's with the nearest of the names that it lists: it quotes what was typed and
/// what is known alike, as in "unknown field `comand`, expected one of `command`, `fio`".
pub fn with_near(error: &str) -> String {
    let error = error.trim_end();
    let Some((_, names)) = error.split_once("unknown ") else { return error.into() };
    let mut names = names.split('`').skip(1).step_by(2);
    let typed = names.next().unwrap_or_default();
    guess(typed, names).map_or(error.into(), |guess| format!("{error}; {guess}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_seen_through_and_other_words_are_not() {
        let known = ["ext4", "xfs", "btrfs", "zfs", "ext3", "jfs", "ntfs"];
        assert_eq!(near("btfs", known), ["btrfs"]);
        assert_eq!(near("vtfs", known), ["ntfs"]);
        assert_eq!(near("brtfs", known), ["btrfs"]);
        assert_eq!(near("ext5", known), ["ext4", "ext3"]);
        assert_eq!(near("XFS", known), ["xfs", "zfs", "jfs"]);
        assert_eq!(near("reiserfs", known), [""; 0]);
        assert_eq!(near("bt", known), [""; 0]);
        assert_eq!(near("postgre", ["mariadb", "postgresql"]), ["postgresql"]);
        assert_eq!(near("rnu", ["report", "run"]), ["run"]);
        assert_eq!(meant("btfs", known), "did you mean btrfs?");
        assert_eq!(meant("fat", ["ext4", "xfs"]), "there are ext4, xfs");
    }

    #[test]
    fn what_serde_lists_is_searched() {
        let error = "unknown field `comand`, expected one of `name`, `command`, `fio`\n";
        assert!(with_near(error).ends_with("`fio`; did you mean command?"));
        let error = "unknown variant `x`, expected `each` or `end`";
        assert_eq!(with_near(error), error);
        assert_eq!(with_near("expected `=`"), "expected `=`");
    }
}
