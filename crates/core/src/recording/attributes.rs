//! System calls on extended attributes. Those that hold an access control list are recorded as one,
//! because it controls access: a file's mode is part of it (acl(5)).

use super::calls::Result;
use super::line::{Ended, quoted, quoted_bytes};
use super::{Watch, why};
use crate::model::{Action, Gave, On};

/// linux/posix_acl_xattr.h: the version that a list begins with; entries of tag, rights and number.
const ACL_VERSION: u32 = 2;
const ENTRY_BYTES: usize = 8;

impl Watch {
    /// Calls on extended attributes, by path or descriptor: whether they change any, and what they
    /// gave.
    pub(super) fn attribute(&self, call: &Ended, on: On) -> Result<(Action, bool, Gave)> {
        let name = quoted(call.argument(1)).unwrap_or_default();
        let name_bytes = name.len() as u64;
        let of_acl = match name.as_str() {
            "system.posix_acl_access" => Some(false),
            "system.posix_acl_default" => Some(true),
            _ => None,
        };
        let (action, changes) = match (call.name.trim_start_matches(['l', 'f']), of_acl) {
            ("setxattr", Some(default)) => {
                let entries = acl(call.argument(2)).ok_or(why::UNKNOWN)?;
                (Action::SetAcl { on, default, entries }, true)
            }
            ("removexattr", Some(default)) => {
                (Action::SetAcl { on, default, entries: Vec::new() }, true)
            }
            // By its flags it asked for one that is there, or is not.
            ("setxattr", _) if ["EEXIST", "ENODATA"].iter().any(|it| call.failed_with(it)) => {
                return Err(why::UNSUPPORTED);
            }
            ("setxattr", None) => {
                (Action::Setxattr { on, name_bytes, bytes: call.number(3)? }, true)
            }
            ("getxattr", _) => (Action::Getxattr { on, name_bytes, bytes: call.number(3)? }, false),
            ("removexattr", None) => (Action::Removexattr { on, name_bytes }, true),
            _ => (Action::Listxattr { on, bytes: call.number(2)? }, false),
        };
        Ok((action, changes, call.gave()?))
    }
}

/// The entries of a list, each with tag, rights and number; `None` where strace has cut it.
fn acl(argument: &str) -> Option<Vec<[u32; 3]>> {
    let value = quoted_bytes(argument)?;
    let (version, entries) = value.split_first_chunk()?;
    let short = |at: &[u8], from: usize| u32::from(u16::from_le_bytes([at[from], at[from + 1]]));
    let entry =
        |at: &[u8]| [short(at, 0), short(at, 2), u32::from_le_bytes([at[4], at[5], at[6], at[7]])];
    let is_one = u32::from_le_bytes(*version) == ACL_VERSION && entries.len() % ENTRY_BYTES == 0;
    is_one.then(|| entries.chunks_exact(ENTRY_BYTES).map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_its_entries_and_none_that_was_cut() {
        // As cp -a sets it, of one more user (strace 6.1).
        let begin = r#""\2\0\0\0\1\0\6\0\377\377\377\377\2\0\7\0\350\3\0\0"#;
        let half = format!(r#"{begin}\4\0\4\0\377\377\377\377\20\0\7"#);
        let rest = r#"\0\377\377\377\377 \0\4\0\377\377\377\377""#;
        let text = format!("{half}{rest}");
        let none = u32::MAX;
        let entries = [[1, 6, none], [2, 7, 1000], [4, 4, none], [16, 7, none], [32, 4, none]];
        assert_eq!(acl(&text).unwrap(), entries);
        assert_eq!(acl(&format!("{half}\"")), None, "half an entry");
        assert_eq!(acl(&format!("{text}...")), None, "more than strace shows");
        assert_eq!(acl("\"\\3\\0\\0\\0\""), None, "of another version");
        assert_eq!(acl("NULL"), None);
    }
}
