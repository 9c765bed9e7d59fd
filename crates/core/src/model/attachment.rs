//! How the disks of a virtual machine are attached to it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::near::meant;

/// What the disks of a virtual machine are to its kernel, by the names that QEMU has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attachment {
    /// A device for each disk, without a real one's commands (virtio_blk): `/dev/vda`.
    VirtioBlk,
    /// SCSI disks on a controller that exists in machines of QEMU's alone: `/dev/sda`.
    VirtioScsi,
    /// An NVMe drive for each disk: `/dev/nvme0n1`.
    Nvme,
    /// SATA disks on a controller as most boards have one: `/dev/sda`.
    Ahci,
}

impl Attachment {
    /// All of them.
    pub const ALL: [Attachment; 4] =
        [Attachment::VirtioBlk, Attachment::VirtioScsi, Attachment::Nvme, Attachment::Ahci];

    /// The name in a plan and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Attachment::VirtioBlk => "virtio-blk",
            Attachment::VirtioScsi => "virtio-scsi",
            Attachment::Nvme => "nvme",
            Attachment::Ahci => "ahci",
        }
    }

    /// How many disks of a bed there is room for, besides the one by which a trial goes in: the
    /// machine has 30 free places on its PCI bus, its SATA controller has 6 ports.
    pub fn disks_max(self) -> u32 {
        match self {
            Attachment::VirtioBlk | Attachment::Nvme => 29,
            Attachment::VirtioScsi => 64,
            Attachment::Ahci => 5,
        }
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Attachment {
    type Err = String;

    fn from_str(text: &str) -> Result<Attachment, String> {
        let known = Attachment::ALL.into_iter().find(|it| it.name() == text);
        known.ok_or_else(|| meant(text, Attachment::ALL.map(Attachment::name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_have_the_same_names_in_plans_and_on_the_command_line() {
        for attachment in Attachment::ALL {
            let text = serde_json::to_string(&attachment).unwrap();
            assert_eq!(text, format!("\"{attachment}\""));
            assert_eq!(attachment.name().parse(), Ok(attachment));
        }
        assert_eq!("nvm".parse::<Attachment>().unwrap_err(), "did you mean nvme?");
        let unlike = "floppy".parse::<Attachment>().unwrap_err();
        assert_eq!(unlike, "there are virtio-blk, virtio-scsi, nvme, ahci");
    }
}
