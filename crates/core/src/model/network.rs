//! The network over which work comes in.

use serde::{Deserialize, Serialize};

use super::BitRate;

/// A link of the trial's own between server and clients, or an interface of the machine's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// What the link carries in each direction. A link without one is as fast as the processors;
    /// an interface's own is asked of the kernel where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Bytes of the largest packet on the link, as of ip(8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The machine's interface over which the work comes in; no link is made then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
}

impl Network {
    /// That of Ethernet.
    const MTU_BYTES: u32 = 1500;

    /// Bytes of the largest packet on a link that is made.
    pub fn mtu_bytes(&self) -> u32 {
        self.mtu.unwrap_or(Self::MTU_BYTES)
    }

    /// What is wrong with it, as the end of a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.rate.is_some_and(|rate| rate.0 < 1_000_000) {
            return Err("has a network of less than 1 Mbit/s: write rate = \"1G\"".into());
        }
        match (&self.interface, self.mtu) {
            (Some(name), Some(_)) => {
                Err(format!("sets the mtu of {name}, which is the machine's: leave it out"))
            }
            (Some(name), None) if name.is_empty() => Err("names no network interface".into()),
            // The least that IPv6 works on (RFC 8200, section 5), and the most veth takes.
            (None, Some(mtu)) if !(1280..=65535).contains(&mtu) => {
                Err(format!("has a network with an mtu of {mtu}: it can be 1280 to 65535"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_network_says_what_is_wrong() {
        let wrong = |text: &str| {
            let network: Network = toml::from_str(text).unwrap();
            network.check().err().unwrap_or_default()
        };
        assert_eq!(wrong(""), "");
        assert_eq!(wrong("rate = \"20G\"\nmtu = 9000"), "");
        assert_eq!(wrong("interface = \"eth0\"\nrate = \"1G\""), "");
        assert!(wrong("rate = 1000").contains("less than 1 Mbit/s"));
        assert!(wrong("mtu = 500").contains("1280 to 65535"));
        assert!(wrong("interface = \"eth0\"\nmtu = 9000").contains("leave it out"));
        assert!(toml::from_str::<Network>("rate = \"1GB\"").is_err());
        assert_eq!(Network::default().mtu_bytes(), 1500);
    }
}
