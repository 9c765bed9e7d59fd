//! Keys of the machine's users that work in a cell could read, change or remove: the kernel checks
//! their owner by a number that the cell has too (keyrings(7), user_namespaces(7)).

use std::path::Path;

use crate::sys;

/// Bits of what a key's owner may do: keyctl_setperm(3).
const READ: u32 = 0x02;
const CHANGES: u32 = 0x04 | 0x10 | 0x20;

/// Whether there are any: checked as each user with keys.
pub fn are_in_reach() -> bool {
    let users = std::fs::read_to_string("/proc/key-users").unwrap_or_default();
    let mut numbers = users.lines().filter_map(|line| line.split_once(':')?.0.trim().parse().ok());
    numbers.any(|user| {
        let seen = sys::read_as(user, Path::new("/proc/keys")).unwrap_or_default();
        seen.lines().any(is_in_reach)
    })
}

/// Whether a line of /proc/keys is of a key that its owner may read or change by its number, or of
/// a keyring with keys that can be linked to one's own.
fn is_in_reach(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, _, permissions, _, _, kind, rest @ ..] = &words[..] else { return false };
    let Ok(permissions) = u32::from_str_radix(permissions, 16) else { return false };
    let of_owner = (permissions >> 16) & 0x3f;
    if *kind != "keyring" {
        // Certificates that the kernel was built with can be read by all, and are public.
        let is_public = *kind == "asymmetri" || *kind == "asymmetric";
        return of_owner & CHANGES != 0 || (of_owner & READ != 0 && !is_public);
    }
    // `NAME: NUMBER`, or `NAME: empty`. `_uid_ses`, the session keyring of processes without one of
    // their own, holds the user's keyring.
    let keys: u32 = rest.last().and_then(|it| it.parse().ok()).unwrap_or(0);
    let own = u32::from(rest.first().is_some_and(|name| name.starts_with("_uid_ses.")));
    of_owner & CHANGES != 0 && keys > own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_reach_by_what_their_owner_may() {
        // As Linux 6.18 says it, with and without a key of root's.
        let common = "\
            20538502 I------     1 perm 1f030000     0     0 keyring   .dns_resolver: empty\n\
            21661e29 I--Q---     1 perm 0c030000     0 65534 keyring   .user_reg: 2\n\
            2ea65082 I------     1 perm 1f0b0000     0     0 keyring   .builtin_trusted_keys: 3\n\
            04bfcaf2 I--Q---    12 perm 3f030000     0     0 keyring   _ses: 1\n\
            159571ba I--Q---     1 perm 3f010000     0     0 user      invocation_id: 16\n\
            0a0b0c0d I------     1 perm 1f0b0000     0     0 asymmetri Build key: X509.rsa 1 []\n\
            33c36e2e I--Q---     2 perm 1f3f0000     0 65534 keyring   _uid.0: empty\n\
            3d0675aa I--Q---     1 perm 1f3f0000     0 65534 keyring   _uid_ses.0: 1\n";
        assert!(!common.lines().any(is_in_reach));
        for line in [
            "33c36e2e I--Q---     2 perm 1f3f0000     0 65534 keyring   _uid.0: 1",
            "3d0675aa I--Q---     1 perm 1f3f0000  1000 65534 keyring   _uid_ses.1000: 2",
            "04bfcaf2 I--Q---    12 perm 3f130000     0     0 keyring   named: 1",
            "159571ba I--Q---     1 perm 3f030000     0     0 user      open: 4",
            "159571ba I--Q---     1 perm 3f210000     0     0 logon     disk: 4",
        ] {
            assert!(is_in_reach(line), "{line}");
        }
    }
}
