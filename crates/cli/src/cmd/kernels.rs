//! `fsverdict kernels`: kernels for the virtual machines of `--place vm` and `--place uml`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use fsverdict_core::render::hanging;
use fsverdict_host::place::vm::arch::{self, Arch};
use fsverdict_host::place::vm::fetch::{self, Wanted};
use fsverdict_host::place::vm::modules::Modules;
use fsverdict_host::place::vm::{kernel, openzfs, toolbox, uml, userland};

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
    /// Versions (6.12), the newest that Debian has (newest), its releases (trixie) or packages
    /// (linux-image-...); uml is User Mode Linux, for place uml.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Which of a version's kernels; amd64 has more file systems than cloud-amd64 [default:
    /// cloud-amd64, or cloud-arm64].
    #[arg(long)]
    flavour: Option<String>,
    /// For which processors: amd64 or arm64. Guests with others than this machine's have programs
    /// of their own, which are fetched as well, and every instruction is emulated.
    #[arg(long, value_parser = processors, default_value = Arch::OWN.name())]
    arch: Arch,
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
/// apt, with its libraries, and is kept below ~/.cache/fsverdict. Guests with other processors have
/// none of this machine's programs, but those that were fetched for them.
#[derive(clap::Args)]
#[command(after_help = TOOLS)]
struct Tools {
    /// Debian's packages; for other processors, besides what every trial needs.
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    /// For which processors: amd64 or arm64.
    #[arg(long, value_parser = processors, default_value = Arch::OWN.name())]
    arch: Arch,
    /// fsverdict itself for these processors, linked statically, as packaging/build --arch makes it
    /// [default: the file fsverdict-ARCH beside this program].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Where to fetch from for other processors, instead of where this machine's packages come
    /// from.
    #[arg(long, value_name = "URI")]
    mirror: Option<String>,
}

const TOOLS: &str = "\
Examples:
  fsverdict kernels tools cryptsetup-bin lvm2 mdadm
  fsverdict kernels tools --arch arm64 --program target/packages/fsverdict-arm64 f2fs-tools";

fn processors(name: &str) -> Result<Arch, String> {
    Arch::named(name).ok_or_else(|| "guests are for amd64 or arm64".into())
}

const EXAMPLES: &str = "\
Examples:
  fsverdict kernels get 5.10 6.12
  fsverdict kernels get newest
  fsverdict kernels get bookworm-backports --flavour amd64
  fsverdict kernels get 6.12 --with zfs
  fsverdict kernels get uml
  fsverdict kernels get uml --with zfs
  fsverdict kernels get 6.12 --arch arm64
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
        Command::Get(get) => get.names.iter().try_for_each(|name| fetched(get, name))?,
        Command::Tools(tools) => tools.fetched()?,
        Command::List => list()?,
    }
    Ok(exit::DONE)
}

/// Fetches what is called so.
fn fetched(get: &Get, name: &str) -> Result<()> {
    // As --kernel has it: 6.12:arm64.
    let (name, arch) = match arch::split(name) {
        (bare, Arch::OWN) if bare == name => (name, get.arch),
        (bare, its) if [Arch::OWN, its].contains(&get.arch) => (bare, its),
        (_, its) => bail!(Usage(format!(
            "{name} is for {}, and --arch says {}: leave one of them out",
            its.shown(),
            get.arch.shown()
        ))),
    };
    let mirror = get.mirror.as_deref();
    let flavour = get.flavour.as_deref().unwrap_or(arch.flavour());
    let wanted = Wanted { name, flavour, arch, mirror };
    let say = &mut |text: &str| say::tell(text);
    if name == uml::NAME && arch != Arch::OWN {
        bail!(Usage("a User Mode Linux runs on this machine's processors: leave --arch out".into()))
    }
    let kernels = match &get.with {
        None if name == uml::NAME => vec![uml::get(mirror, say)?],
        None => vec![fetch::get(wanted, say)?],
        Some(_) if arch != Arch::OWN => {
            bail!(Usage("OpenZFS is built for this machine's processors alone".into()))
        }
        Some(With(versions)) if name == uml::NAME => {
            openzfs::user_mode::get(versions, mirror, say)?
        }
        Some(With(versions)) => openzfs::get(wanted, versions, say)?,
    };
    for kernel in kernels {
        say::print(&format!("{} {}\n", kernel.name(), kernel.image.display()))?;
    }
    if arch != Arch::OWN {
        let how = format!("fsverdict kernels tools --arch {}", arch.name());
        let userland = userland::get(arch, &[], None, mirror, say).with_context(|| {
            format!("the kernel was fetched, but not its guests' programs (try again: {how})")
        })?;
        userland
            .missing()
            .into_iter()
            .for_each(|how| say::tell(&format!("before it boots: {how}")));
    }
    Ok(())
}

impl Tools {
    fn fetched(&self) -> Result<()> {
        let say = &mut |text: &str| say::tell(text);
        if self.arch != Arch::OWN {
            let (program, mirror) = (self.program.as_deref(), self.mirror.as_deref());
            let userland = userland::get(self.arch, &self.packages, program, mirror, say)?;
            userland.missing().into_iter().for_each(|how| say::tell(&format!("missing: {how}")));
            say::print(&format!("{}\n", userland.root().display()))?;
            return Ok(());
        }
        if self.program.is_some() || self.mirror.is_some() {
            bail!(Usage(
                "--program and --mirror are for other processors: name them by --arch".into()
            ))
        }
        if self.packages.is_empty() {
            bail!(Usage("name Debian's packages: fsverdict kernels tools lvm2".into()))
        }
        for package in &self.packages {
            let toolbox = toolbox::get(package, say)?;
            let programs = toolbox.programs().join(", ");
            let version = toolbox.version().unwrap_or_default();
            say::print(&format!("{package} {version}: {programs}\n"))?;
        }
        Ok(())
    }
}

fn list() -> Result<()> {
    let (kernels, process) = (kernel::all(), uml::all());
    let named = kernels.iter().map(|it| (it, ""));
    for (kernel, more) in named.chain(process.iter().map(|it| (it, " for place uml"))) {
        let has = hanging(&Modules::file_systems(kernel), 9);
        let image = kernel.image.display();
        say::print(&format!("{}{more}\n  has    {has}\n  image  {image}\n", kernel.name()))?;
    }
    if kernels.is_empty() && process.is_empty() {
        say::print("There is no kernel to boot here: fsverdict kernels get 6.12\n")?;
    }
    Ok(())
}
