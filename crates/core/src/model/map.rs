//! Folders that the work names by absolute paths and that lie in its own folder instead.

use std::collections::BTreeMap;

/// Where the kernel shows itself: no place for files.
const KERNELS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// By their absolute paths: where they are, from the work's folder; `.` is that folder itself.
pub type Map = BTreeMap<String, String>;

/// What is wrong with it, as the end of a sentence.
pub(super) fn check(map: &Map) -> Result<(), String> {
    for (path, place) in map {
        let parts = path.strip_prefix('/').unwrap_or_default();
        if !parts.split('/').all(is_name) {
            return Err(format!("maps {path:?}: write an absolute path, such as /data"));
        }
        if is_of_kernel(path) {
            return Err(format!("maps {path}, where there are no files but the kernel's own"));
        }
        if place != "." && !place.split('/').all(is_name) {
            return Err(format!(
                "maps {path} to {place:?}: write a path from the work's folder, such as . or logs"
            ));
        }
        if let Some(outer) = map.keys().find(|outer| *outer != path && is_within(path, outer)) {
            return Err(format!("maps {path}, which lies within {outer}: map one of them"));
        }
    }
    Ok(())
}

/// Whether `path` lies where there are no files but the kernel's own.
pub fn is_of_kernel(path: &str) -> bool {
    KERNELS.iter().any(|kernels| is_within(path, kernels))
}

/// Whether `path` lies in a folder that is mapped.
pub fn is_mapped(map: &Map, path: &str) -> bool {
    map.keys().any(|folder| is_within(path, folder))
}

fn is_name(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && !part.contains('\0')
}

fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(words: &[(&str, &str)]) -> Map {
        words.iter().map(|(path, place)| (path.to_string(), place.to_string())).collect()
    }

    #[test]
    fn a_map_leads_from_absolute_paths_into_the_works_folder() {
        let good = map(&[("/data", "."), ("/srv/logs", "logs/new"), ("/data2", "x")]);
        assert_eq!(check(&good), Ok(()));
        assert!(is_mapped(&good, "/data/a/b") && is_mapped(&good, "/srv/logs"));
        assert!(!is_mapped(&good, "/data3/a") && !is_mapped(&good, "/srv"));
        for (path, place, says) in [
            ("data", ".", "write an absolute path"),
            ("/", ".", "write an absolute path"),
            ("/data/", ".", "write an absolute path"),
            ("/data/../etc", ".", "write an absolute path"),
            ("/dev/sdb", ".", "the kernel's own"),
            ("/data", "", "write a path from the work's folder"),
            ("/data", "/etc", "write a path from the work's folder"),
            ("/data", "a/..", "write a path from the work's folder"),
        ] {
            let said = check(&map(&[(path, place)])).unwrap_err();
            assert!(said.contains(says), "{path}={place}: {said}");
        }
        let nested = check(&map(&[("/data", "."), ("/data/logs", "x")])).unwrap_err();
        assert_eq!(nested, "maps /data/logs, which lies within /data: map one of them");
    }
}
