//! ext4: mke2fs(8), ext4(5).

use super::FileSystem;

pub(super) const EXT4: FileSystem = FileSystem {
    name: "ext4",
    mkfs: "mkfs.ext4",
    takes_several: false,
    options,
    no_discard: &[],
    version: &["-V"],
};

/// Tables and journal are written by mkfs: the kernel thread that would otherwise write them
/// later does so during the measurement. mke2fs heeds only the last `-E`, so that the user's join
/// ours in one list; within it the last word on an option counts.
fn options(users: &[String]) -> Vec<String> {
    let mut extended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0".to_string();
    let mut others = Vec::new();
    let mut users = users.iter();
    while let Some(option) = users.next() {
        let list = match option.strip_prefix("-E") {
            Some("") => users.next().map_or("", String::as_str),
            Some(list) => list,
            None => {
                others.push(option.clone());
                continue;
            }
        };
        extended = format!("{extended},{list}");
    }
    super::then(&["-q", "-F", "-E", &extended], &others)
}
