//! `fsverdict kernels`: kernels for the virtual machines of `--place vm` and `--place uml`.

use anyhow::{Result, bail};
use fsverdict_core::render::hanging;
use fsverdict_host::place::vm::fetch::{self, Wanted};
use fsverdict_host::place::vm::modules::Modules;
use fsverdict_host::place::vm::{kernel, openzfs, toolbox, uml};

use super::arguments::openzfs_version;
use crate::exit::{self, Usage};
use crate::say;

/// Fetch kernels for places vm and uml, or list those that are there.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Get(Get),
    Tools(Tools),
    /// List kernels that can be booted, the newest first.
    List,
}

/// Fetch kernels through this machine's apt, without root and without installing them.
///
/// They are kept below ~/.cache/fsverdict and used by --kernel.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Get {
    /// Versions (6.12), Debian's releases (trixie) or packages (linux-image-...); uml is User Mode
    /// Linux, for place uml.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Which of a version's kernels; amd64 has more file systems than cloud-amd64.
    #[arg(long, default_value = fetch::FLAVOUR)]
    flavour: String,
    /// Build a file system for it that Linux does not have, from Debian's source, on this machine:
    /// zfs, or zfs=2.3,2.4. It needs no root and no compiler, and takes some minutes for each.
    #[arg(long, value_name = "zfs[=VERSION,...]", value_parser = with)]
    with: Option<With>,
    /// Where to fetch from, instead of where this machine's packages come from.
    #[arg(long, value_name = "URI")]
    mirror: Option<String>,
}

/// Fetch tools for guests, without root and without installing them.
///
/// A guest has this machine's programs. What is not installed here comes through this machine's
/// apt, with its libraries, and is kept below ~/.cache/fsverdict.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  fsverdict kernels tools cryptsetup-bin lvm2 mdadm")]
struct Tools {
    /// Debian's packages.
    #[arg(required = true, value_name = "PACKAGE")]
    packages: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  fsverdict kernels get 5.10 6.12
  fsverdict kernels get bookworm-backports --flavour amd64
  fsverdict kernels get 6.12 --with zfs
  fsverdict kernels get uml
  fsverdict kernels get wheezy --flavour amd64 --mirror URI-OF-AN-ARCHIVE";

/// OpenZFS, of some versions.
#[derive(Clone)]
struct With(Vec<String>);

fn with(text: &str) -> Result<With, String> {
    match text.split_once('=') {
        None if text == "zfs" => Ok(With(Vec::new())),
        Some(("zfs", all)) => {
            all.split(',').map(openzfs_version).collect::<Result<_, _>>().map(With)
        }
        _ => Err("only zfs can be built: zfs, or zfs=2.3".into()),
    }
}

/// Fetches or lists.
pub fn run(arguments: &Arguments) -> Result<u8> {
    match &arguments.command {
        Command::Get(get) => {
            for name in &get.names {
                let mirror = get.mirror.as_deref();
                let wanted = Wanted { name, flavour: &get.flavour, mirror };
                let say = &mut |text: &str| say::tell(text);
                let kernels = match &get.with {
                    None if name == uml::NAME => vec![uml::get(mirror, say)?],
                    Some(_) if name == uml::NAME => {
                        bail!(Usage("a User Mode Linux has no OpenZFS: leave --with out".into()))
                    }
                    None => vec![fetch::get(wanted, say)?],
                    Some(With(versions)) => openzfs::get(wanted, versions, say)?,
                };
                for kernel in kernels {
                    say::print(&format!("{} {}\n", kernel.name(), kernel.image.display()))?;
                }
            }
        }
        Command::Tools(tools) => {
            for package in &tools.packages {
                let toolbox = toolbox::get(package, &mut |text| say::tell(text))?;
                let programs = toolbox.programs().join(", ");
                let version = toolbox.version().unwrap_or_default();
                say::print(&format!("{package} {version}: {programs}\n"))?;
            }
        }
        Command::List => list()?,
    }
    Ok(exit::DONE)
}

fn list() -> Result<()> {
    let (kernels, process) = (kernel::all(), uml::all());
    for (kernel, more) in
        kernels.iter().map(|it| (it, "")).chain(process.iter().map(|it| (it, " for place uml")))
    {
        let has = hanging(&Modules::file_systems(kernel), 9);
        let image = kernel.image.display();
        say::print(&format!("{}{more}\n  has    {has}\n  image  {image}\n", kernel.name()))?;
    }
    if kernels.is_empty() && process.is_empty() {
        say::print("There is no kernel to boot here: fsverdict kernels get 6.12\n")?;
    }
    Ok(())
}
