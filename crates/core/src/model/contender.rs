//! A file system with its settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Above, Attachment, Layer, Limits, Scalar};

/// File systems that keep no journal and write in place: what each promises is in the host's
/// `file_system/`.
pub const WITHOUT_JOURNAL: [&str; 7] = ["ext2", "exfat", "vfat", "udf", "ntfs", "ntfs3", "ntfs-3g"];

/// A file system with its mkfs and mount options, block-queue and sysctl settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    /// What the report calls it; its own within a plan.
    pub name: String,
    /// `ext4`, `xfs`, `btrfs`: a name of the registry. Bed `directory` takes what is there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file_system: String,
    /// How many of the bed's devices it gets, the first ones; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u32>,
    /// parted's words, with which each device is partitioned afresh before mkfs. The file system
    /// is made on the one partition that comes out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition: Vec<String>,
    /// What lies between the devices and the file system; the first is next to the devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// What is stacked on the file system; the first is next to it, and the work sees the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<Above>,
    /// Arguments for mkfs, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs: Vec<String>,
    /// Mount options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount: Vec<String>,
    /// Files of `/sys/block/DEVICE/queue` and their values; the scheduler is set first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queue: BTreeMap<String, Scalar>,
    /// Sysctls and their values: `vm.dirty_ratio`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, Scalar>,
    /// Parameters of the kernel's modules and their values: `zfs.zfs_arc_max`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub module: BTreeMap<String, Scalar>,
    /// What the work's commands find in their environment, before what the workload says: the
    /// settings of an application that are compared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Scalar>,
    /// What its device is held down to; instead of the bed's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The kernel it runs under, in place `vm`: a version, or the path of a bzImage or of a tree
    /// that is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// What its kernel gets on its command line besides our own words, in place `vm`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
    /// How its disks are attached, in place `vm`; without it as virtio-blk, or as its kernel can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks: Option<Attachment>,
    /// The directory it works in, on bed `directory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Contender {
    /// Its file system, as it comes, outlives a crash: by a journal, or by writing to new places.
    pub fn keeps_journal(&self) -> bool {
        !WITHOUT_JOURNAL.contains(&&*self.file_system)
    }

    /// The `file_system` of the bare device.
    pub const RAW: &str = "raw";

    /// The file system that lies on the disks themselves; empty where that is in a partition or on
    /// layers.
    pub fn on_disks(&self) -> &str {
        match self.partition.is_empty() && self.layers.is_empty() {
            true => &self.file_system,
            false => "",
        }
    }

    /// What lies below it, as one types it: `luks+raid1`, `none`.
    pub fn stack(&self) -> String {
        match self.layers.as_slice() {
            [] => Layer::NONE.into(),
            layers => Layer::stack(layers),
        }
    }

    /// How many it gets of a bed of so many devices.
    pub fn devices_of(&self, all: usize) -> usize {
        self.devices.map_or(all, |devices| all.min(devices as usize))
    }

    /// Its knobs have names that a knob can have.
    pub(super) fn check_knobs(&self) -> Result<(), String> {
        if let Some(name) = self.sysctl.keys().find(|name| sysctl_file(name).is_none()) {
            return Err(format!(
                "sets {name:?}, which is not the name of a sysctl, such as vm.dirty_ratio"
            ));
        }
        if let Some(name) = self.module.keys().find(|name| module_file(name).is_none()) {
            return Err(format!(
                "sets {name:?}, which is not a module's parameter: zfs.zfs_arc_max"
            ));
        }
        match self.queue.keys().find(|file| !is_below(file)) {
            Some(file) => Err(format!("sets {file:?}, which is not a file of a block queue")),
            None => Ok(()),
        }
    }

    /// Of its knobs one by which more than storage would be set: on a machine with other users and
    /// other work that is none of a plan's business, and some of them start programs as root
    /// (`kernel.core_pattern`) or can't be set back (`kernel.modules_disabled`). Of networks it is
    /// what sets itself alone: `net.ipv4.ip_forward` also sets `forwarding` of all interfaces
    /// (net/ipv4/devinet.c, `inet_forward_change`), `conf.all` what is below it, and
    /// `disable_ipv6` takes addresses away.
    pub(super) fn beyond_storage(&self) -> Option<&str> {
        let sysctl = |name: &&String| {
            let file = sysctl_file(name).unwrap_or_default();
            NEVER_SET.contains(&file.as_str())
                || !SYSCTLS.iter().any(|begin| file.starts_with(begin))
        };
        let module = |name: &&String| {
            let module = name.split('.').next().unwrap_or_default();
            let panics = match name.as_str() {
                // spl(4), zfs(4).
                "spl.spl_panic_halt" => true,
                "zfs.zfs_deadman_failmode" => self.module[*name].to_string() == "panic",
                _ => false,
            };
            panics || !MODULES.contains(&module) && !module.starts_with("dm_")
        };
        let sysctls = self.sysctl.keys().filter(sysctl);
        sysctls.chain(self.module.keys().filter(module)).map(String::as_str).next()
    }

    /// It is the bare device, without a file system.
    pub fn is_raw(&self) -> bool {
        self.file_system == Contender::RAW
    }
}

/// How the files of those sysctls begin that a plan may set on a machine of others
/// (Documentation/admin-guide/sysctl): memory, networks, limits of files, and the scheduler.
const SYSCTLS: [&str; 23] = [
    "vm/",
    "net/core/",
    "net/ipv4/ip_local_",
    "net/ipv4/ipfrag_",
    "net/ipv4/tcp_",
    "net/ipv4/udp_",
    "net/unix/",
    "dev/raid/",
    "fs/aio-max-nr",
    "fs/epoll/",
    "fs/file-max",
    "fs/fuse/",
    "fs/inotify/",
    "fs/lease",
    "fs/nfs/",
    "fs/nr_open",
    "fs/pipe-",
    "fs/quota/",
    "fs/xfs/",
    "kernel/io_uring_disabled",
    "kernel/numa_balancing",
    "kernel/sched_",
    "kernel/sem",
];

/// Of these what no plan sets. A key that was never set reads as one of zeros and can't be put back
/// (net/ipv4/sysctl_net_ipv4.c, `proc_tcp_fastopen_key`), nor can a smaller `memfd_noexec`. The
/// others have the machine panic where it would go on, or take from all its programs what keeps
/// them from each other (Documentation/admin-guide/sysctl/{vm,net}.rst, xfs.rst).
const NEVER_SET: [&str; 12] = [
    "fs/xfs/panic_mask",
    "net/core/bpf_jit_enable",
    "net/core/bpf_jit_harden",
    "net/core/bpf_jit_kallsyms",
    "net/ipv4/tcp_fastopen_key",
    "vm/legacy_va_layout",
    "vm/memfd_noexec",
    "vm/mmap_min_addr",
    "vm/mmap_rnd_bits",
    "vm/mmap_rnd_compat_bits",
    "vm/panic_on_oom",
    "vm/unprivileged_userfaultfd",
];

/// The modules whose parameters a plan may set there, besides device-mapper's: file systems, disks
/// and what lies between.
const MODULES: [&str; 27] = [
    "bcache",
    "bcachefs",
    "brd",
    "btrfs",
    "exfat",
    "ext4",
    "f2fs",
    "fuse",
    "jbd2",
    "loop",
    "md_mod",
    "nfs",
    "null_blk",
    "nvme",
    "nvme_core",
    "ntfs3",
    "overlay",
    "raid1",
    "raid10",
    "raid456",
    "scsi_mod",
    "sd_mod",
    "spl",
    "virtio_blk",
    "xfs",
    "zfs",
    "zram",
];

/// The file below `/proc/sys` of the sysctl that is called so. Whichever of `.` and `/` comes first
/// stands between the parts, and the other for itself, as in `net/ipv4/conf/eth0.1/forwarding`
/// (sysctl(8)).
pub fn sysctl_file(name: &str) -> Option<String> {
    let swapped = |c: char| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let file: String = match name.find(['.', '/']).map(|at| &name[at..=at]) {
        Some(".") => name.chars().map(swapped).collect(),
        _ => name.into(),
    };
    is_below(&file).then_some(file)
}

/// The file below `/sys/module` of the parameter that is called so, as on the kernel's command line
/// (Documentation/admin-guide/kernel-parameters.rst).
pub fn module_file(name: &str) -> Option<String> {
    let (module, parameter) = name.split_once('.')?;
    let is_name = |part: &str| !part.contains('/') && is_below(part);
    let both = is_name(module) && is_name(parameter);
    both.then(|| format!("{module}/parameters/{parameter}"))
}

/// The path leads below where it begins, and nowhere else.
fn is_below(path: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    path.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_has_a_file_below_its_folder_or_none() {
        let file = |name: &str| sysctl_file(name).unwrap_or_default();
        assert_eq!(file("vm.dirty_ratio"), "vm/dirty_ratio");
        assert_eq!(file("vm/dirty_ratio"), "vm/dirty_ratio");
        assert_eq!(file("net/ipv4/conf/eth0.1/forwarding"), "net/ipv4/conf/eth0.1/forwarding");
        assert_eq!(file("net.ipv4.conf.eth0/1.forwarding"), "net/ipv4/conf/eth0.1/forwarding");
        for odd in ["", ".tmp.x", "/tmp/x", "vm..x", "../../tmp/x", "vm/../../x", "vm.", ".//.x"] {
            assert_eq!(sysctl_file(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_contender_gets_no_more_devices_than_there_are() {
        let of = |devices| Contender { devices, ..Contender::default() }.devices_of(2);
        assert_eq!([None, Some(1), Some(2), Some(3)].map(of), [2, 1, 2, 2]);
    }

    #[test]
    fn what_starts_programs_or_stays_or_sets_more_than_itself_is_beyond_storage() {
        let sysctl = |name: &str| Contender {
            sysctl: [(name.to_string(), Scalar::Whole(1))].into(),
            ..Contender::default()
        };
        for name in ["kernel.core_pattern", "kernel/modprobe", "kernel.modules_disabled"] {
            assert_eq!(sysctl(name).beyond_storage(), Some(name));
        }
        for name in ["fs.binfmt_misc.register", "fs.protected_symlinks", "fs.suid_dumpable"] {
            assert_eq!(sysctl(name).beyond_storage(), Some(name));
        }
        for name in ["vm.dirty_ratio", "fs/xfs/speculative_prealloc_lifetime", "net.core.rmem_max"]
        {
            assert_eq!(sysctl(name).beyond_storage(), None);
        }
        for name in [
            "net.ipv4.ip_forward",
            "net/ipv6/conf/all/disable_ipv6",
            "net.ipv4.conf.eth0/1.forwarding",
            "net.ipv4.neigh.default.gc_stale_time",
            "net.ipv4.tcp_fastopen_key",
            "vm.panic_on_oom",
            "vm.legacy_va_layout",
            "fs/xfs/panic_mask",
            "net.core.bpf_jit_harden",
        ] {
            assert_eq!(sysctl(name).beyond_storage(), Some(name));
        }
        for name in ["net.ipv4.tcp_rmem", "net/ipv4/udp_mem", "net.ipv4.ip_local_port_range"] {
            assert_eq!(sysctl(name).beyond_storage(), None);
        }
        let module = |name: &str| Contender {
            module: [(name.to_string(), Scalar::Whole(1))].into(),
            ..Contender::default()
        };
        for name in ["zfs.zfs_arc_max", "nvme_core.io_timeout", "dm_bufio.max_cache_size_bytes"] {
            assert_eq!(module(name).beyond_storage(), None);
        }
        for name in ["firmware_class.path", "module.sig_enforce", "spl.spl_panic_halt"] {
            assert_eq!(module(name).beyond_storage(), Some(name));
        }
    }

    #[test]
    fn knobs_with_odd_names_are_refused() {
        for odd in ["zfs", "zfs.", ".x", "..zfs", "zfs.a/b", "../zfs.x", "zfs/x.y"] {
            assert_eq!(module_file(odd), None, "{odd}");
        }
        let file = module_file("zfs.zfs_arc_max");
        assert_eq!(file.as_deref(), Some("zfs/parameters/zfs_arc_max"));
        let contender = |sysctl: &str, queue: &str| Contender {
            sysctl: [(sysctl.to_string(), Scalar::Whole(1))].into(),
            queue: [(queue.to_string(), Scalar::Whole(1))].into(),
            ..Contender::default()
        };
        contender("vm.swappiness", "iosched/low_latency").check_knobs().unwrap();
        let wrong = contender(".tmp.x", "scheduler").check_knobs().unwrap_err();
        assert!(wrong.contains(".tmp.x"), "{wrong}");
        let wrong = contender("vm.swappiness", "../../x").check_knobs().unwrap_err();
        assert!(wrong.contains("../../x"), "{wrong}");
    }
}
