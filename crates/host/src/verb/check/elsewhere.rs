//! Options that lead away from what is checked.

use fsverdict_core::script::Choice;

/// The option names a device or a file other than the one it is given for: by a path, by a tag, by
/// a device's number, or by a bare name in the folder where the tool runs.
pub(super) fn elsewhere(choice: &Choice, program: &str) -> bool {
    pub(super) const NAMING: [&str; 8] =
        ["logdev", "rtdev", "name", "device", "journal_dev", "journal_path", "options", "file"];
    let value = choice.value.as_deref().unwrap_or("");
    let tagged = ["UUID=", "LABEL="].iter().any(|tag| value.contains(tag));
    let names = NAMING.contains(&choice.key()) && value.contains('=');
    let flag = match program.trim_start_matches("mkfs.") {
        "ext2" | "ext3" | "ext4" => &["-d", "-l", "-z"][..],
        "tune2fs" => &["-z"],
        "xfs" => &["-p"],
        "btrfs" => &["-r", "--rootdir"],
        _ => &[],
    };
    value.contains('/') || tagged || names || flag.contains(&choice.flag.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_another_device_or_file_is_known() {
        let is = |program: &str, flag: &str, value: &str| {
            let value = Some(value.to_string());
            elsewhere(&Choice { group: 0, flag: flag.into(), attached: false, value }, program)
        };
        for (program, flag, value) in [
            ("mkfs.xfs", "-l", "logdev=/dev/sda"),
            ("mkfs.xfs", "-l", "logdev=sda"),
            ("mkfs.xfs", "-p", "proto"),
            ("mkfs.ext4", "-J", "device=UUID=1234"),
            ("mkfs.ext4", "-d", "folder"),
            ("mount", "-o", "journal_dev=0x801"),
        ] {
            assert!(is(program, flag, value), "{program} {flag} {value}");
        }
        assert!(!is("mkfs.xfs", "-d", "agcount=4"));
        assert!(!is("mkfs.xfs", "-l", "size=64m"));
        assert!(!is("mkfs.btrfs", "-d", "raid1"));
    }
}
