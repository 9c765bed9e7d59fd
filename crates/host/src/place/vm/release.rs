//! What kernels call themselves, and their order.

use super::arch::{self, Arch};

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

/// Between a kernel's release and the version of the OpenZFS that was built for it.
const WITH_ZFS: &str = "+zfs";

/// `6.1+zfs-2.3` is a kernel 6.1 with an OpenZFS 2.3, `6.1+zfs` one with any.
pub fn with_zfs(name: &str) -> Option<(&str, &str)> {
    let (release, version) = name.split_once(WITH_ZFS)?;
    Some((release, version.strip_prefix('-').unwrap_or(version)))
}

/// What a kernel of that release is called with an OpenZFS of that version.
pub fn name_with(release: &str, version: &str) -> String {
    format!("{release}{WITH_ZFS}-{version}")
}

/// What fetches the kernel of that name.
pub fn how_to_get(name: &str) -> String {
    let (name, arch) = arch::split(name);
    if arch != Arch::OWN {
        return format!("fsverdict kernels get {name} --arch {}", arch.name());
    }
    match with_zfs(name) {
        None => format!("fsverdict kernels get {name}"),
        Some((release, "")) => format!("fsverdict kernels get {release} --with zfs"),
        Some((release, version)) => {
            format!("fsverdict kernels get {release} --with zfs={version}")
        }
    }
}

/// What fetches Debian's full kernel of that release's version.
pub fn how_to_get_full(release: &str, arch: Arch) -> String {
    let of = if arch == Arch::OWN { String::new() } else { format!(" --arch {}", arch.name()) };
    format!("fsverdict kernels get {}{of} --flavour {}", version_of(release), arch.name())
}

/// Orders releases by the numbers in them; candidates (`7.2-rc4`) come before their release.
pub fn by_version(one: &str, other: &str) -> std::cmp::Ordering {
    let numbers = |text: &str| {
        let words = text.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect::<Vec<u64>>()
    };
    let key = |text: &str| {
        let (of, candidate) = candidate(text);
        // A release has none, and is the last.
        (numbers(of), candidate.is_none(), candidate.map(numbers))
    };
    key(one).cmp(&key(other)).then_with(|| one.cmp(other))
}

/// `6.12.0-061200rc7-generic` is candidate `7-generic` of `6.12.0-061200`.
fn candidate(text: &str) -> (&str, Option<&str>) {
    let mut parts = text.match_indices("rc").map(|(at, rc)| (&text[..at], &text[at + rc.len()..]));
    let is_candidate = |(before, after): &(&str, &str)| {
        after.starts_with(|c: char| c.is_ascii_digit())
            && !before.ends_with(|c: char| c.is_ascii_alphabetic())
    };
    parts.find(is_candidate).map_or((text, None), |(of, after)| (of, Some(after)))
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
        assert_eq!(with_zfs("6.12.107+deb13-amd64"), None);
        assert_eq!(with_zfs(&name_with("6.1.0-9", "2.3.9")), Some(("6.1.0-9", "2.3.9")));
        assert_eq!(how_to_get("6.1"), "fsverdict kernels get 6.1");
        assert_eq!(how_to_get("6.1+zfs"), "fsverdict kernels get 6.1 --with zfs");
        assert_eq!(how_to_get("6.1+zfs-2.3"), "fsverdict kernels get 6.1 --with zfs=2.3");
        let other = if Arch::OWN == Arch::X86 { "arm64" } else { "amd64" };
        let says = format!("fsverdict kernels get 6.1 --arch {other}");
        assert_eq!(how_to_get(&format!("6.1:{other}")), says);
        let mut releases = ["6.1.0-9", "6.12.3", "6.1.0-44", "5.10.0"];
        releases.sort_by(|one, other| by_version(one, other));
        assert_eq!(releases, ["5.10.0", "6.1.0-9", "6.1.0-44", "6.12.3"]);
    }

    #[test]
    fn a_candidate_comes_before_its_release() {
        for [lower, higher] in [
            ["7.2.0-rc7", "7.2.0"],
            ["7.2.0-rc7", "7.2.0-1-amd64"],
            ["7.2.0-rc7", "7.2.0-rc10"],
            ["7.2.0", "7.2.1-rc1"],
            ["7.2-rc4", "7.2.3"],
            ["7.2-rc4-amd64", "7.2-amd64"],
            ["7.1.9-amd64", "7.2-rc4-amd64"],
            ["6.12.0-061200rc7-generic", "6.12.0-061200-generic"],
            ["6.12.0-src1", "6.12.1-src1"],
        ] {
            assert!(by_version(lower, higher).is_lt(), "{lower}, {higher}");
            assert!(by_version(higher, lower).is_gt(), "{lower}, {higher}");
        }
        assert_eq!(candidate("6.12.0-src1"), ("6.12.0-src1", None));
    }
}
