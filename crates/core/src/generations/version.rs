//! A version of Linux.

use std::fmt;
use std::str::FromStr;

use super::Unmodelled;

/// The oldest that the model is of.
const FIRST: Version = Version::new(3, 2, 0);

/// `6.12.117`; what a distribution adds to it is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    pub(super) const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }
}

impl FromStr for Version {
    type Err = Unmodelled;

    fn from_str(text: &str) -> Result<Version, Unmodelled> {
        let wrong = || Unmodelled::NoVersion(text.into());
        let end = text.find(|letter: char| letter != '.' && !letter.is_ascii_digit());
        let mut numbers = text[..end.unwrap_or(text.len())].split('.').map(str::parse);
        let mut next = || numbers.next().transpose().map_err(|_| wrong());
        let (major, minor) = (next()?.ok_or_else(wrong)?, next()?.ok_or_else(wrong)?);
        let version = Version { major, minor, patch: next()?.unwrap_or(0) };
        if version < FIRST { Err(Unmodelled::TooOld(version)) } else { Ok(version) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch > 0 { write!(f, ".{}", self.patch) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_a_release() {
        let of = |text: &str| text.parse::<Version>();
        assert_eq!(of("4.6.2"), Ok(Version::new(4, 6, 2)));
        assert_eq!(of("6.12.117+deb12-amd64"), Ok(Version::new(6, 12, 117)));
        assert_eq!(of("3.8").map(|it| it.to_string()), Ok("3.8".into()));
        assert!(of("3.10").unwrap() > of("3.8").unwrap());
        assert!(of("2.6.32").unwrap_err().to_string().contains("begins with Linux 3.2"));
        for wrong in ["", "6", "six", "6.", "6.x", "99999999999.1"] {
            assert!(matches!(of(wrong), Err(Unmodelled::NoVersion(_))), "{wrong}");
        }
    }
}
