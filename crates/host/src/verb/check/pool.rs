//! Properties of ZFS. They are not tried, because few kernels have ZFS: its manual is asked.

use fsverdict_core::model::{Bytes, Checked, Judged};
use fsverdict_core::script::{Call, Choice};

use super::{documented, topology};

/// What zfsprops(7) allows. Of compression the algorithm, without its level.
const VALUES: [(&str, &[&str]); 9] = [
    ("atime", &["on", "off"]),
    (
        "checksum",
        &[
            "on",
            "off",
            "fletcher2",
            "fletcher4",
            "sha256",
            "noparity",
            "sha512",
            "skein",
            "edonr",
            "blake3",
        ],
    ),
    ("compression", &["on", "off", "gzip", "lz4", "lzjb", "zle", "zstd", "zstd-fast"]),
    ("logbias", &["latency", "throughput"]),
    ("primarycache", &["all", "none", "metadata"]),
    ("redundant_metadata", &["all", "most", "some", "none"]),
    ("relatime", &["on", "off"]),
    ("sync", &["standard", "always", "disabled"]),
    ("xattr", &["on", "off", "sa", "dir"]),
];

/// Findings for `zfs set`, `zfs create` and `zpool create`.
pub fn check(call: &Call, blank: &Checked) -> Vec<Checked> {
    call.choices.iter().map(|choice| finding(call, choice, blank)).collect()
}

fn finding(call: &Call, choice: &Choice, blank: &Checked) -> Checked {
    let setting = choice.to_string();
    let mut found = Checked { setting, state: Judged::NotTried, ..blank.clone() };
    let option = choice.value.as_deref().unwrap_or("");
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    if let Some(refused) = refused(name, value) {
        (found.state, found.said) = (Judged::Invalid, Some(refused));
        return found;
    }
    found.said = Some("ZFS settings are not tried, only compared with the manual".into());
    documented::judge(&mut found, "zfs", Some(option));
    if name == "ashift" {
        sectors(&mut found, value, call.devices.first());
    }
    found
}

/// Why zfsprops(7) or zpoolprops(7) does not allow it.
fn refused(name: &str, value: &str) -> Option<String> {
    let number = |text: &str| text.parse::<Bytes>().ok().map(|bytes| bytes.0);
    let is_level = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let algorithm = match value.rsplit_once('-') {
        Some((algorithm, level)) if is_level(level) => algorithm,
        _ => value,
    };
    if let Some((_, allowed)) = VALUES.iter().find(|(known, _)| *known == name) {
        let list = allowed.join(", ");
        return (!allowed.contains(&algorithm))
            .then(|| format!("zfsprops(7): {name} is one of {list}"));
    }
    if ["recordsize", "volblocksize"].contains(&name) {
        // More than zfs_max_recordsize of the module only where that is raised.
        let is_allowed = |bytes: u64| bytes.is_power_of_two() && (512..=16 << 20).contains(&bytes);
        return (!number(value).is_some_and(is_allowed))
            .then(|| format!("zfsprops(7): {name} is a power of two from 512 to 16M"));
    }
    let is_shift = |text: &str| matches!(text.parse(), Ok(0u32 | 9..=16));
    (name == "ashift" && !is_shift(value))
        .then(|| "zpoolprops(7): ashift is 9 to 16, or 0 for what the disk says".into())
}

/// A pool's sector below the disk's own makes of each write a read and a write.
fn sectors(found: &mut Checked, value: &str, device: Option<&String>) {
    let seen = topology::of(device.map_or("", String::as_str));
    let Some(bytes @ 2..) = value.parse::<u32>().ok().and_then(|shift| 1_u64.checked_shl(shift))
    else {
        return;
    };
    if bytes < seen.physical_bytes {
        found.state = Judged::Doubtful;
        found.said =
            Some(format!("sectors of {bytes} bytes; {} has {}", seen.name, seen.physical_bytes));
        found.advice = Some(
            "a write smaller than the disk's sector makes it read first, and ashift can't be \
             changed later: ashift=12 suits nearly all disks (zpoolprops(7), ashift)"
                .into(),
        );
    }
}

#[cfg(test)]
mod tests {
    use fsverdict_core::script::{self, Request};

    use super::*;
    use crate::verb::check::blank;

    fn states(line: &str) -> Vec<Judged> {
        let script = script::read(line);
        let Request::Pool(call) = &script.settings[0].request else { panic!("{script:?}") };
        check(call, &blank(1, line)).into_iter().map(|it| it.state).collect()
    }

    #[test]
    fn properties_are_held_against_the_manual() {
        use Judged::{Doubtful, Invalid, NotTried, Unsafe};
        for (line, expected) in [
            ("zfs set sync=disabled tank/db", vec![Unsafe]),
            ("zfs set checksum=off compression=zstd-3 tank", vec![Unsafe, NotTried]),
            ("zfs set sync=never recordsize=100K tank", vec![Invalid, Invalid]),
            ("zfs create -o recordsize=16K tank/db", vec![NotTried]),
            ("zpool create -o ashift=9 -O atime=off tank mirror A B", vec![Doubtful, NotTried]),
            ("zpool create -o ashift=12 tank /dev/none", vec![NotTried]),
            ("zpool create -o ashift=40 tank /dev/none", vec![Invalid]),
        ] {
            assert_eq!(states(line), expected, "{line}");
        }
    }
}
