//! What a disk of this machine that a file names says of itself, if a file system's defaults depend
//! on it.

use std::path::Path;

use fsverdict_core::model::{Checked, Choice, Judged, udev_rule};

use crate::bed::Seen;

/// The finding for the disk at `device` that is mounted with `options`. It is only read.
pub fn check(kind: &str, device: &str, options: &[String], blank: &Checked) -> Option<Checked> {
    let choice = Choice::of(kind, options.iter().map(String::as_str))?;
    if !choice.decides || !device.starts_with('/') {
        return None;
    }
    let seen = Seen::at(Path::new(device))?;
    found(choice, &seen, kind, blank)
}

fn found(choice: Choice, seen: &Seen, kind: &str, blank: &Checked) -> Option<Checked> {
    let reads = seen.contradicts_itself().filter(|_| choice.decides)?;
    let Seen { path, .. } = seen;
    Some(Checked {
        setting: format!("{path} (rotational)"),
        state: Judged::Doubtful,
        said: Some(format!("it says that it rotates, but {reads}: {kind} {}", choice.does)),
        advice: Some(format!(
            "write {} into /etc/udev/rules.d/99-rotational.rules, or mount with -o ssd",
            udev_rule(path)
        )),
        ..blank.clone()
    })
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::{Disk, Reads};

    use super::*;
    use crate::verb::check::blank;

    #[test]
    fn a_disk_that_contradicts_itself_is_doubtful_to_who_chooses_by_it() {
        let seen = |name: &str, median_ns| Seen {
            path: "/dev/vda".into(),
            disk: Disk::named(name).unwrap(),
            reads: Some(Reads { count: 64, median_ns, p90_ns: median_ns }),
        };
        let of = |kind: &str, seen: &Seen| {
            let choice = Choice::of(kind, std::iter::once("noatime"))?;
            found(choice, seen, kind, &blank(7, "mount"))
        };
        let doubtful = of("btrfs", &seen("virtio", 97_000)).unwrap();
        assert_eq!((doubtful.line, doubtful.state), (7, Judged::Doubtful));
        assert!(doubtful.said.unwrap().contains("btrfs leaves ssd off"));
        assert!(doubtful.advice.unwrap().contains(r#"KERNEL=="vda""#));
        for (kind, seen) in [
            ("btrfs", seen("hdd", 6_000_000)),
            ("btrfs", seen("ssd", 97_000)),
            ("ext4", seen("virtio", 97_000)),
            ("xfs", seen("virtio", 97_000)),
        ] {
            assert_eq!(of(kind, &seen), None, "{kind} {seen:?}");
        }
        assert_eq!(Choice::of("btrfs", std::iter::once("ssd")), None);
    }
}
