//! A kernel's modules: which are needed, and in which order they are loaded.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Attachment, Contender};
use siphasher::sip::SipHasher24;

pub use super::built::name;
use super::built::{self, Files};
use super::elf;
use super::error::VmError;
use super::kernel::Kernel;
use crate::file_system::{self, FileSystem};
use crate::layer;
use crate::machine::plain;
use crate::tool;

/// What programs decompress modules, by the ending of their names.
const COMPRESSED: [(&str, &str); 3] = [("xz", "xz"), ("zst", "zstd"), ("gz", "gzip")];

/// Checksums that file systems, or what they need, ask the kernel's crypto API for by name, and
/// tables of characters. No dependency shows them, and a guest has no modprobe to answer the
/// kernel's call for them. Those that a kernel lacks are left out: in crypto/Makefile names lost
/// their `generic` in 2025, and crc32c.c makes crc32c-cryptoapi.ko since Linux 6.17.
const ASKED_FOR: [(&str, &[&str]); 11] = [
    ("libcrc32c", &["crc32c_generic", "crc32c_intel"]),
    ("ext4", &["crc32c_generic", "crc32c_intel"]),
    (
        "btrfs",
        &[
            "crc32c_generic",
            "crc32c_intel",
            "crc32c",
            "crc32c_cryptoapi",
            "xxhash_generic",
            "sha256_generic",
            "sha256",
            "blake2b_generic",
            "blake2b",
        ],
    ),
    ("f2fs", &["crc32_generic", "crc32_pclmul"]),
    ("nilfs2", &["crc32_generic"]),
    ("exfat", &["nls_utf8"]),
    ("vfat", &["nls_cp437", "nls_ascii", "nls_iso8859_1", "nls_utf8"]),
    ("udf", &["nls_utf8"]),
    ("bcachefs", &["crc32c_generic", "crc64_rocksoft", "xxhash_generic", "chacha20_generic"]),
    // When it negotiates (MODULE_SOFTDEP in fs/smb/client/cifsfs.c).
    ("cifs", &["ccm", "cmac", "ctr", "gcm", "ghash_generic", "sha512_generic", "sha512"]),
    // The way to its server is a module of its own since Linux 5.17 (net/9p/Makefile).
    ("9p", &["9pnet_fd"]),
];

/// Drivers that a module of another name has as well, where the kernel has none of their own:
/// `MODULE_ALIAS("ext3")` and, with `EXT4_USE_FOR_EXT2`, that of ext2 in fs/ext4/super.c.
const AS_WELL: [(&str, &str); 2] = [("ext3", "ext4"), ("ext2", "ext4")];

/// Without it a disk with several paths, as QEMU's drives may claim to be, would be made of others
/// (drivers/nvme/host/multipath.c), and some kernels don't count its requests.
pub const ONE_PATH: (&str, &CStr) = ("nvme_core", c"multipath=N");

/// How a guest sees its disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// virtio-blk on PCI.
    Virtio,
    /// SCSI disks on a virtio controller.
    VirtioScsi,
    /// An NVMe drive for each.
    Nvme,
    /// An IDE controller of 1996, which most kernels know.
    Ide,
    /// A SATA controller of 2007.
    Ahci,
    /// Files, in User Mode Linux alone.
    Ubd,
}

impl Bus {
    /// Those that kernels are tried on where none was chosen, the best first.
    const TRIED: [Bus; 3] = [Bus::Virtio, Bus::Ide, Bus::Ahci];

    /// How many disks it has room for.
    pub fn disks_max(self) -> usize {
        match self {
            Bus::VirtioScsi => usize::MAX,
            // Each has a place of its own on the PCI bus.
            Bus::Virtio | Bus::Nvme => 30,
            Bus::Ide => 4,
            Bus::Ahci => 6,
            Bus::Ubd => 8,
        }
    }

    /// After a kernel, for a person; virtio-blk is what guests have by themselves.
    pub fn shown(self) -> &'static str {
        match self {
            Bus::Virtio | Bus::Ubd => "",
            Bus::VirtioScsi => ", SCSI disks on virtio",
            Bus::Nvme => ", NVMe disks",
            Bus::Ide => ", IDE disks",
            Bus::Ahci => ", SATA disks",
        }
    }

    /// Which of the buses that kernels are tried on has a disk with this driver, as records name
    /// it. Old kernels have a driver of their own for IDE.
    pub fn tried_with(driver: &str) -> Option<Bus> {
        match driver {
            "virtio_blk" => Some(Bus::Virtio),
            "ahci" => Some(Bus::Ahci),
            "ata_piix" | "piix" | "PIIX_IDE" => Some(Bus::Ide),
            _ => None,
        }
    }

    fn drivers(self) -> &'static [&'static str] {
        match self {
            Bus::Virtio => &["virtio_pci", "virtio_blk"],
            Bus::VirtioScsi => &["virtio_pci", "virtio_scsi", "sd_mod"],
            Bus::Nvme => &["nvme"],
            Bus::Ide => &["ata_piix", "sd_mod"],
            Bus::Ahci => &["ahci", "sd_mod"],
            Bus::Ubd => &[],
        }
    }
}

impl From<Attachment> for Bus {
    fn from(attachment: Attachment) -> Bus {
        match attachment {
            Attachment::VirtioBlk => Bus::Virtio,
            Attachment::VirtioScsi => Bus::VirtioScsi,
            Attachment::Nvme => Bus::Nvme,
            Attachment::Ahci => Bus::Ahci,
        }
    }
}

/// In a [print](Modules::print), before the hash of the contents.
pub const CONTENTS: &str = ", contents ";

/// What `modules.dep` and `modules.builtin` say (modules.dep(5)); empty for a kernel without.
#[derive(Debug, Default)]
pub struct Modules {
    folder: PathBuf,
    files: Files,
    builtin: BTreeSet<String>,
    known: bool,
}

impl Modules {
    /// Those of `kernel`.
    pub fn of(kernel: &Kernel) -> Result<Modules, VmError> {
        let Some(folder) = &kernel.modules else { return Ok(Modules::default()) };
        if built::is_built(folder) {
            return Modules::of_tree(folder);
        }
        let read = |file: &str| plain::text(&folder.join(file));
        let dependencies = read("modules.dep").map_err(|source| VmError::Dependencies {
            folder: folder.clone(),
            release: kernel.release.clone(),
            source,
        })?;
        let mut modules =
            Modules::parse(&dependencies, &read("modules.builtin").unwrap_or_default());
        modules.folder = folder.clone();
        Ok(modules)
    }

    /// Those of a build tree, which has no list of what they need.
    fn of_tree(folder: &Path) -> Result<Modules, VmError> {
        let files = built::modules(folder)
            .map_err(|source| VmError::Image { path: folder.into(), source })?;
        // Without that list what is built in is not known.
        let builtin = plain::text(&folder.join(built::BUILTIN));
        let known = builtin.is_ok();
        let builtin = builtin.unwrap_or_default().lines().map(name).collect();
        Ok(Modules { folder: folder.into(), files, builtin, known }.with_what_they_have_as_well())
    }

    fn parse(dependencies: &str, builtin: &str) -> Modules {
        let files = dependencies.lines().filter_map(|line| line.split_once(':'));
        let files = files.map(|(file, needs)| {
            let needs = needs.split_whitespace().map(String::from).collect();
            (name(file), (file.to_string(), needs))
        });
        let builtin = builtin.lines().map(name).collect();
        Modules { files: files.collect(), builtin, known: true, ..Modules::default() }
            .with_what_they_have_as_well()
    }

    fn with_what_they_have_as_well(mut self) -> Modules {
        for (driver, module) in AS_WELL {
            if self.files.contains_key(driver) || self.builtin.contains(driver) {
                continue;
            }
            if let Some(its) = self.files.get(module).cloned() {
                self.files.insert(driver.into(), its);
            }
            if self.builtin.contains(module) {
                self.builtin.insert(driver.into());
            }
        }
        self
    }

    /// The name of the module that has this driver.
    pub fn with_driver(&self, driver: &str) -> String {
        self.files.get(driver).map_or_else(|| driver.into(), |(file, _)| name(file))
    }

    /// The kernel has it, built in or as a module; `None` where that can't be known.
    pub fn has(&self, name: &str) -> Option<bool> {
        self.known.then(|| self.files.contains_key(name) || self.builtin.contains(name))
    }

    /// The file systems that `kernel` has, of those that can be compared; `?` where that can't be
    /// known.
    pub fn file_systems(kernel: &Kernel) -> String {
        let Ok(modules) = Modules::of(kernel) else { return "?".into() };
        let known = file_system::ALL.iter();
        // What programs do no kernel has.
        let has = known.filter(|known| {
            let mut its = known.modules();
            !known.is_programs() && its.all(|module| modules.has(module) == Some(true))
        });
        let name = |known: &FileSystem| match &kernel.zfs {
            Some(zfs) if known.name == "zfs" => format!("zfs {}", zfs.version),
            _ => known.name.to_string(),
        };
        match kernel.modules {
            Some(_) => has.map(|known| name(known)).collect::<Vec<_>>().join(", "),
            None => "?".into(),
        }
    }

    /// The bus that the kernel has drivers for, virtio before the others; all, in the order to try
    /// them, if nothing is known of the kernel.
    pub fn buses(&self) -> Vec<Bus> {
        let can = |bus: &Bus| self.missing_for(*bus).is_none();
        let count = if self.known { 1 } else { Bus::TRIED.len() };
        Bus::TRIED.into_iter().filter(can).take(count).collect()
    }

    /// A driver of that bus that the kernel lacks.
    pub fn missing_for(&self, bus: Bus) -> Option<&'static str> {
        bus.drivers().iter().copied().find(|driver| self.has(driver) == Some(false))
    }

    /// The files of the `wanted` modules and of all they need, in the order in which they must be
    /// loaded; those that are built in or not there at all are left out.
    pub fn order<'a>(&self, wanted: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut files = BTreeSet::new();
        for (file, needs) in wanted.into_iter().filter_map(|name| self.files.get(name)) {
            files.insert(file);
            files.extend(needs);
        }
        // Each line names all that is needed, not only what is needed directly: so whatever a
        // module needs has fewer needs than itself.
        let needs = |file: &String| self.files.get(&name(file)).map_or(0, |(_, needs)| needs.len());
        let mut files = Vec::from_iter(files);
        files.sort_by_key(|file| needs(file));
        files.into_iter().cloned().collect()
    }

    /// What a guest needs before it can read its first disk.
    pub fn for_disks(&self, bus: Bus) -> Vec<String> {
        self.order(bus.drivers().iter().copied())
    }

    /// What a trial of `contender` needs: layers, file system, checksums, I/O scheduler.
    pub fn for_contender(&self, drivers: &[&str], contender: &Contender) -> Vec<String> {
        let layers = contender.layers.iter().filter_map(|it| Some((layer::find(&it.name)?, it)));
        let of_layers = layers.clone().flat_map(|(kind, _)| kind.modules).copied();
        let all = self.order(drivers.iter().copied().chain(of_layers));
        let needed: BTreeSet<String> = all.iter().map(|file| name(file)).collect();
        let checksums = ASKED_FOR
            .iter()
            .filter(|(known, _)| drivers.contains(known) || needed.contains(*known));
        let checksums = checksums.flat_map(|(_, names)| names.iter().copied());
        let scheduler = contender.queue.get("scheduler").map(ToString::to_string);
        let scheduler = scheduler.map(|it| [name(&it), format!("{}_iosched", name(&it))]);
        let schedulers = scheduler.iter().flatten().map(String::as_str);
        // First what is asked for by name while the others are loaded.
        let mut order = self.order(checksums);
        for (kind, layer) in layers {
            order.extend(self.order(kind.asked_for(layer).iter().map(String::as_str)));
            order.extend(self.order(kind.modules.iter().copied()));
        }
        order.extend(self.order(drivers.iter().copied().chain(schedulers)));
        let mut seen = BTreeSet::new();
        order.retain(|file| seen.insert(file.clone()));
        order
    }

    /// What identifies those modules: their number, and SipHash-2-4 of their names and, after
    /// [`CONTENTS`], of their files' contents. 64 bits guard against accidents.
    pub fn print(&self, files: &[String]) -> Result<String, VmError> {
        let (mut names, mut whole) = (SipHasher24::new(), SipHasher24::new());
        for file in files {
            let path = self.folder.join(file);
            let what = || format!("reading {}", path.display());
            let content =
                plain::bytes(&path).map_err(|source| VmError::Io { what: what(), source })?;
            names.write(name(file).as_bytes());
            names.write(b"/");
            whole.write_usize(content.len());
            whole.write(&content);
        }
        let (names, whole) = (names.finish(), whole.finish());
        Ok(format!("{}, {names:016x}{CONTENTS}{whole:016x}", files.len()))
    }

    /// A module as the kernel loads it: decompressed where the file is not, and without what
    /// debuggers need.
    pub fn content(&self, file: &str) -> Result<Vec<u8>, VmError> {
        let path = self.folder.join(file);
        let ending = Path::new(file).extension().unwrap_or_default();
        match COMPRESSED.iter().find(|(known, _)| ending == *known) {
            Some((_, program)) => {
                let path = path.display().to_string();
                Ok(tool::bytes(&[program, "-dc", &path].map(String::from))?)
            }
            None => plain::bytes(&path).map(elf::without_debug).map_err(|source| VmError::Io {
                what: format!("reading {}", path.display()),
                source,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DEPENDENCIES: &str = "\
kernel/block/virtio_blk.ko: kernel/virtio/virtio.ko kernel/virtio/virtio_ring.ko
kernel/virtio/virtio.ko: kernel/virtio/virtio_ring.ko
kernel/virtio/virtio_ring.ko:
kernel/lib/libcrc32c.ko.xz:
kernel/crypto/crc32c_generic.ko:
kernel/block/kyber-iosched.ko:
kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz
";

    fn modules(builtin: &str) -> Modules {
        Modules::parse(DEPENDENCIES, builtin)
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it() {
        let modules = modules("kernel/virtio/virtio_pci.ko\n");
        assert_eq!(modules.buses(), [Bus::Virtio]);
        let names: Vec<String> =
            modules.for_disks(Bus::Virtio).iter().map(|file| name(file)).collect();
        assert_eq!(names, ["virtio_ring", "virtio", "virtio_blk"]);
    }

    #[test]
    fn a_file_system_comes_with_its_checksums_and_its_scheduler() {
        let mut contender = Contender::default();
        let scheduler = fsverdict_core::model::Scalar::Text("kyber".into());
        contender.queue.insert("scheduler".into(), scheduler);
        let files = modules("").for_contender(&["xfs"], &contender);
        let names: Vec<String> = files.iter().map(|file| name(file)).collect();
        assert_eq!(names, ["crc32c_generic", "kyber_iosched", "libcrc32c", "xfs"]);
    }

    #[test]
    fn checksums_come_by_the_names_that_kernels_have_for_them() {
        let before = "kernel/crypto/crc32c_generic.ko:\nkernel/crypto/sha256_generic.ko:\n";
        let after = "kernel/crypto/crc32c-cryptoapi.ko:\nkernel/crypto/sha256.ko:\n";
        for checksums in [before, after] {
            let modules = Modules::parse(&format!("{checksums}kernel/fs/btrfs/btrfs.ko:\n"), "");
            let files = modules.for_contender(&["btrfs"], &Contender::default());
            let all = format!("{}:\n", files.join(":\n"));
            assert_eq!(all, format!("{checksums}kernel/fs/btrfs/btrfs.ko:\n"));
        }
    }

    #[test]
    fn what_smb_and_9p_ask_for_comes_along_where_it_is_there() {
        let split = "kernel/net/9p/9pnet.ko:\nkernel/net/9p/9pnet_fd.ko: kernel/net/9p/9pnet.ko\n\
                     kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko\n";
        let whole = "kernel/net/9p/9pnet.ko:\nkernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko\n";
        let old = "kernel/crypto/sha512_generic.ko:\nkernel/fs/smb/client/cifs.ko:\n";
        let new = "kernel/crypto/sha512.ko:\nkernel/fs/smb/client/cifs.ko:\n";
        for (driver, list) in [("9p", split), ("9p", whole), ("cifs", old), ("cifs", new)] {
            let modules = Modules::parse(list, "");
            let known = file_system::ALL.iter().find(|known| known.driver() == driver).unwrap();
            assert!(known.modules().all(|it| modules.has(it) == Some(true)), "{list}");
            let drivers = Vec::from_iter(known.modules());
            let mut files = modules.for_contender(&drivers, &Contender::default());
            files.sort_by_key(|file| list.find(&format!("{file}:")));
            let all = list.lines().filter_map(|line| line.split(':').next());
            assert_eq!(files, Vec::from_iter(all), "all that is there comes along");
        }
    }

    #[test]
    fn ext3_and_ext2_are_those_of_ext4_where_the_kernel_has_none_of_their_own() {
        let of = |files: &str, builtin: &str| Modules::parse(files, builtin);
        let ext4 =
            of("kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko\nkernel/fs/jbd2/jbd2.ko:\n", "");
        for driver in ["ext3", "ext2"] {
            assert_eq!(ext4.has(driver), Some(true));
            assert_eq!(ext4.with_driver(driver), "ext4");
            let files = ext4.for_contender(&[driver], &Contender::default());
            assert_eq!(files, ["kernel/fs/jbd2/jbd2.ko", "kernel/fs/ext4/ext4.ko"]);
        }
        let builtin = of("", "kernel/fs/ext4/ext4.ko\n");
        assert_eq!((builtin.has("ext3"), builtin.with_driver("ext3")), (Some(true), "ext3".into()));
        let old = of("kernel/fs/ext4/ext4.ko:\nkernel/fs/ext3/ext3.ko:\n", "");
        assert_eq!(old.order(["ext3"]), ["kernel/fs/ext3/ext3.ko"]);
        assert_eq!(modules("").has("ext3"), Some(false));
    }

    #[test]
    fn a_module_that_was_built_again_has_another_print() {
        let folder = tempfile::tempdir().unwrap();
        let modules = Modules { folder: folder.path().into(), ..Modules::default() };
        let files = ["one.ko", "two.ko"].map(String::from);
        let print = |one: &str, two: &str| {
            fs::write(folder.path().join("one.ko"), one).unwrap();
            fs::write(folder.path().join("two.ko"), two).unwrap();
            modules.print(&files).unwrap()
        };
        let before = print("1", "2");
        assert!(before.starts_with("2, ") && before == print("1", "2"));
        assert_ne!(before, print("1", "3"));
        assert_ne!(print("12", ""), print("", "12"));
        assert_ne!(modules.print(&files[..1]).unwrap(), print("", ""));
        fs::remove_file(folder.path().join("two.ko")).unwrap();
        assert!(modules.print(&files).unwrap_err().to_string().contains("two.ko"));
    }

    #[test]
    fn a_kernel_without_virtio_gets_ide_and_one_of_which_nothing_is_known_all_in_turn() {
        let ide = "kernel/drivers/ata/ata_piix.ko\nkernel/drivers/scsi/sd_mod.ko\n";
        assert_eq!(modules(ide).buses(), [Bus::Ide]);
        assert_eq!(modules("").buses(), []);
        assert_eq!(Modules::default().buses(), [Bus::Virtio, Bus::Ide, Bus::Ahci]);
        assert_eq!(modules(ide).missing_for(Bus::Nvme), Some("nvme"));
        assert_eq!(modules(ide).missing_for(Bus::VirtioScsi), Some("virtio_pci"));
        assert_eq!(Modules::default().missing_for(Bus::Nvme), None);
        assert_eq!((modules("").has("xfs"), modules("").has("jfs")), (Some(true), Some(false)));
        assert_eq!(Modules::default().has("jfs"), None);
    }
}
