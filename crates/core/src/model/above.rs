//! What stands on the file system: an overlay, a program behind FUSE.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A file system that stands on another, by its name, with its mount options: `overlay:volatile`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Above {
    /// A name of the registry: `overlay`, `gocryptfs`.
    pub name: String,
    /// Its options.
    pub options: Vec<String>,
}

impl Above {
    /// What stands there as one types and shows it, the first next to the file system on the disk:
    /// `bindfs+overlay`.
    pub fn stack(above: &[Above]) -> String {
        let names: Vec<String> = above.iter().map(ToString::to_string).collect();
        names.join("+")
    }

    /// What [`Above::stack`] shows; nothing for `none`.
    pub fn parse_stack(text: &str) -> Result<Vec<Above>, String> {
        match text {
            Above::NONE => Ok(Vec::new()),
            some => some.split('+').map(str::parse).collect(),
        }
    }

    /// How one types that there is nothing.
    pub const NONE: &str = "none";
}

impl FromStr for Above {
    type Err = String;

    fn from_str(text: &str) -> Result<Above, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!(
                "{text:?} is not a file system: write overlay or overlay:volatile"
            ));
        }
        let options: Vec<String> = match text.contains(':') {
            true => rest.split(',').map(String::from).collect(),
            false => Vec::new(),
        };
        match options.iter().any(String::is_empty) {
            true => Err(format!("{text:?}: write its options as {name}:OPTION,...")),
            false => Ok(Above { name: name.into(), options }),
        }
    }
}

impl fmt::Display for Above {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.options.is_empty() {
            true => Ok(()),
            false => write!(f, ":{}", self.options.join(",")),
        }
    }
}

impl TryFrom<String> for Above {
    type Error = String;

    fn try_from(text: String) -> Result<Above, String> {
        text.parse()
    }
}

impl From<Above> for String {
    fn from(above: Above) -> String {
        above.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_shown() {
        let one = "overlay:metacopy=on,redirect_dir=on";
        for text in ["overlay", one, "bindfs+overlay:volatile"] {
            assert_eq!(Above::stack(&Above::parse_stack(text).unwrap()), text);
        }
        assert_eq!(Above::parse_stack("none"), Ok(Vec::new()));
        let above: Above = one.parse().unwrap();
        assert_eq!(above.options, ["metacopy=on", "redirect_dir=on"]);
    }

    #[test]
    fn what_is_no_name_and_what_is_no_option_is_refused() {
        for odd in ["", "Overlay", "overlay+", "overlay:", "overlay:a,,b", "over lay"] {
            assert!(Above::parse_stack(odd).is_err(), "{odd}");
        }
    }
}
