//! A layer between the disk and the file system: encryption, a RAID, volumes.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A layer by its name, with its settings: `raid5:chunk=64k`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Layer {
    /// A name of the registry: `luks`, `raid1`, `lvm-thin`.
    pub name: String,
    /// Its settings and their values.
    pub settings: BTreeMap<String, String>,
}

impl Layer {
    /// Layers as one types and shows them, the first next to the disk: `luks+raid1`.
    pub fn stack(layers: &[Layer]) -> String {
        let names: Vec<String> = layers.iter().map(ToString::to_string).collect();
        names.join("+")
    }

    /// The layers that [`Layer::stack`] shows; none for `none`.
    pub fn parse_stack(text: &str) -> Result<Vec<Layer>, String> {
        match text {
            Layer::NONE => Ok(Vec::new()),
            some => some.split('+').map(str::parse).collect(),
        }
    }

    /// How one types that there are none.
    pub const NONE: &str = "none";

    /// Those that are disks in a guest's memory, in the place of the bed's: plain and zoned ones.
    pub const DISKS: [&str; 2] = ["null_blk", "zoned"];

    /// The one by which requests take longer, and its setting for flushes.
    pub const DELAY: [&str; 2] = ["delay", "flush"];

    /// The one that stores less than is written, and its settings that turn that off.
    pub const VDO: [&str; 3] = ["vdo", "compression", "deduplication"];

    /// Whether it compresses what is written, or stores once what is alike.
    pub fn saves_space(&self) -> bool {
        let [name, both @ ..] = Layer::VDO;
        let is_off = |of| self.settings.get(of).is_some_and(|value| value == "no");
        self.name == name && !both.into_iter().all(is_off)
    }

    /// Whether it is one of [`Layer::DISKS`].
    pub fn is_disk(&self) -> bool {
        Layer::DISKS.contains(&self.name.as_str())
    }

    /// Whether it makes each flush of the disk's cache wait.
    pub fn delays_flushes(&self) -> bool {
        let [name, flush] = Layer::DELAY;
        let is_some = |time: &String| time.bytes().any(|it| matches!(it, b'1'..=b'9'));
        self.name == name && self.settings.get(flush).is_some_and(is_some)
    }
}

impl FromStr for Layer {
    type Err = String;

    fn from_str(text: &str) -> Result<Layer, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("{text:?} is not a layer: write luks, raid5:chunk=64k"));
        }
        let mut settings: BTreeMap<String, String> = BTreeMap::new();
        let mut last = String::new();
        for word in rest.split(',').filter(|_| !rest.is_empty()) {
            match (word.split_once('='), settings.get_mut(&last)) {
                (Some((key, value)), _) if !key.is_empty() && !value.is_empty() => {
                    last = key.into();
                    settings.insert(last.clone(), value.into());
                }
                // A cipher may have a comma in its name: `xchacha12,aes-adiantum-plain64`.
                (None, Some(value)) if !word.is_empty() => *value += &format!(",{word}"),
                _ => return Err(format!("{text:?}: write the layer's settings as KEY=VALUE,...")),
            }
        }
        Ok(Layer { name: name.into(), settings })
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (place, (key, value)) in self.settings.iter().enumerate() {
            write!(f, "{}{key}={value}", if place == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

impl TryFrom<String> for Layer {
    type Error = String;

    fn try_from(text: String) -> Result<Layer, String> {
        text.parse()
    }
}

impl From<Layer> for String {
    fn from(layer: Layer) -> String {
        layer.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_read_as_they_are_shown() {
        let cipher = "luks:cipher=xchacha12,aes-adiantum-plain64,sector_size=512";
        for text in ["luks", "null_blk", "raid5:chunk=64k", cipher, "luks+raid1+lvm-thin:chunk=64k"]
        {
            assert_eq!(Layer::stack(&Layer::parse_stack(text).unwrap()), text);
        }
        assert_eq!(Layer::parse_stack("none"), Ok(Vec::new()));
        let luks: Layer = cipher.parse().unwrap();
        assert_eq!(luks.settings["cipher"], "xchacha12,aes-adiantum-plain64");
        let hash: Layer = "luks:cipher=aes-cbc-essiv:sha256".parse().unwrap();
        assert_eq!(hash.settings["cipher"], "aes-cbc-essiv:sha256");
    }

    #[test]
    fn vdo_saves_space_unless_it_is_told_not_to() {
        let saves = |text: &str| text.parse::<Layer>().unwrap().saves_space();
        assert!(saves("vdo") && saves("vdo:compression=no") && saves("vdo:deduplication=no"));
        assert!(!saves("vdo:compression=no,deduplication=no") && !saves("lvm-thin"));
    }

    #[test]
    fn what_is_no_layer_is_refused() {
        for odd in ["", "LUKS", "luks+", "luks:sector_size", "luks:=5", "luks:a=", "luks:a=1,,b=2"]
        {
            assert!(Layer::parse_stack(odd).is_err(), "{odd}");
        }
    }
}
