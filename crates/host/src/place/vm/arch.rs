//! For which processors kernels are, and what of a machine differs with that.

/// A kind of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arch {
    /// `x86_64` to Linux, `amd64` to Debian.
    X86,
    /// `aarch64` to Linux.
    Arm64,
}

impl Arch {
    /// All that guests can have.
    pub const ALL: [Arch; 2] = [Arch::X86, Arch::Arm64];

    /// Those of the machine that this program is built for.
    pub const OWN: Arch = if cfg!(target_arch = "aarch64") { Arch::Arm64 } else { Arch::X86 };

    /// As Debian calls it, and a kernel's name after a colon.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86 => "amd64",
            Arch::Arm64 => "arm64",
        }
    }

    /// That of this name.
    pub fn named(name: &str) -> Option<Arch> {
        Arch::ALL.into_iter().find(|it| it.name() == name)
    }

    /// For a person.
    pub fn shown(self) -> &'static str {
        match self {
            Arch::X86 => "x86-64",
            Arch::Arm64 => "arm64",
        }
    }

    /// What emulates it, or has it run by KVM.
    pub const fn qemu(self) -> &'static str {
        match self {
            Arch::X86 => "qemu-system-x86_64",
            Arch::Arm64 => "qemu-system-aarch64",
        }
    }

    /// QEMU's machine. For x86-64 the oldest it has: every kernel knows its disks and buses, and it
    /// boots as fast as the others. For arm64 the one that is made for guests, and has PCI.
    pub fn machine(self) -> &'static str {
        match self {
            Arch::X86 => "pc",
            Arch::Arm64 => "virt",
        }
    }

    /// What QEMU emulates, or hands on to KVM. Arm's authentication of pointers, by its own
    /// algorithm, would take much of an emulation's time (docs/system/arm/cpu-features.rst).
    pub fn cpu(self, kvm: bool) -> &'static str {
        match (self, kvm) {
            (Arch::Arm64, false) => "max,pauth-impdef=on",
            _ => "max",
        }
    }

    /// What QEMU emulates where a kernel panics on that: Debian's 6.12.95 does on the `max` of QEMU
    /// 7.2, and not on this one.
    pub fn plain_cpu(self) -> Option<&'static str> {
        match self {
            Arch::X86 => Some("qemu64"),
            Arch::Arm64 => None,
        }
    }

    /// Its first serial port, as the kernel calls it.
    pub fn console(self) -> &'static str {
        match self {
            Arch::X86 => "ttyS0",
            Arch::Arm64 => "ttyAMA0",
        }
    }

    /// Where `make` puts the image in a kernel's tree.
    pub fn image(self) -> &'static str {
        match self {
            Arch::X86 => "arch/x86/boot/bzImage",
            Arch::Arm64 => "arch/arm64/boot/Image",
        }
    }

    /// The folder of its libraries, below `lib` and `usr/lib`
    /// (<https://wiki.debian.org/Multiarch>).
    pub fn libraries(self) -> &'static str {
        match self {
            Arch::X86 => "x86_64-linux-gnu",
            Arch::Arm64 => "aarch64-linux-gnu",
        }
    }

    /// What starts programs that are linked dynamically.
    pub const fn loader(self) -> &'static str {
        match self {
            Arch::X86 => "ld-linux-x86-64.so.2",
            Arch::Arm64 => "ld-linux-aarch64.so.1",
        }
    }

    /// Debian's smallest kernels for it: built for virtual machines.
    pub fn flavour(self) -> &'static str {
        match self {
            Arch::X86 => "cloud-amd64",
            Arch::Arm64 => "cloud-arm64",
        }
    }
}

/// Before the processors, in a kernel's name.
const OF: char = ':';

/// `6.12:arm64` is a kernel 6.12 for arm64; without such an end a name is of this machine's kind.
pub fn split(name: &str) -> (&str, Arch) {
    let end = name.rsplit_once(OF).and_then(|(name, arch)| Some((name, Arch::named(arch)?)));
    end.unwrap_or((name, Arch::OWN))
}

/// The end of the name of what is for `arch`.
pub fn end(arch: Arch) -> String {
    if arch == Arch::OWN { String::new() } else { format!("{OF}{}", arch.name()) }
}
