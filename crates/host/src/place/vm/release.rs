//! What kernels call themselves, and their order.

/// `6.1` is the beginning of `6.1.0-44-amd64`, and not of `6.12.9`.
pub fn is_of_version(release: &str, name: &str) -> bool {
    let rest = release.strip_prefix(name);
    rest.is_some_and(|rest| !name.is_empty() && !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// `6.1.0-44-amd64` is a kernel of version `6.1`.
pub fn version_of(release: &str) -> &str {
    let second = release.match_indices('.').nth(1);
    second.map_or(release, |(at, _)| &release[..at])
}

/// Orders releases by the numbers in them.
pub fn by_version(one: &str, other: &str) -> std::cmp::Ordering {
    let numbers = |text: &str| {
        let words = text.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect::<Vec<u64>>()
    };
    numbers(one).cmp(&numbers(other)).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_beginning_that_ends_with_a_number() {
        assert!(is_of_version("6.1.0-44-cloud-amd64", "6.1"));
        assert!(is_of_version("6.12.57+deb13-amd64", "6.12.57+deb13-amd64"));
        assert!(!is_of_version("6.12.57+deb13-amd64", "6.1"));
        assert!(!is_of_version("6.12.57", ""));
        assert_eq!(version_of("6.1.0-44-cloud-amd64"), "6.1");
        assert_eq!(version_of("7.2-amd64"), "7.2-amd64");
        let mut releases = ["6.1.0-9", "6.12.3", "6.1.0-44", "5.10.0"];
        releases.sort_by(|one, other| by_version(one, other));
        assert_eq!(releases, ["5.10.0", "6.1.0-9", "6.1.0-44", "6.12.3"]);
    }
}
