//! What stands for a block device in a script.

/// `word` stands for a block device: a node, a tag of fstab, or a placeholder.
pub fn is_device(word: &str) -> bool {
    let tags = ["/dev/", "UUID=", "LABEL=", "PARTUUID=", "PARTLABEL=", "ID="];
    let placeholder = word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    tags.iter().any(|tag| word.starts_with(tag))
        || word.starts_with(['$', '<'])
        || (placeholder && !word.chars().all(|c| c.is_ascii_digit()))
}
