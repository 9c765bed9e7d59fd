//! What the image of a kernel says of itself.

use std::io::{self, BufRead, Read};

use super::arch::Arch;

/// What it calls itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// For which processors it is.
    pub arch: Arch,
    /// `6.1.0-44-cloud-amd64`.
    pub release: String,
    /// Which build of that release, and of when: `#3 SMP PREEMPT_DYNAMIC Tue Nov ...`; empty where
    /// it does not say.
    pub build: String,
}

const HEAD_BYTES: u64 = 64 << 10;
/// No kernel's is longer.
const BYTES_MAX: u64 = 512 << 20;

fn wrong(what: &str) -> io::Error {
    io::Error::other(what.to_string())
}

fn number(from: &[u8], at: usize, bytes: usize) -> u64 {
    let field = from.get(at..at + bytes).unwrap_or_default();
    field.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn check_length(image_bytes: u64, whole_bytes: u64) -> io::Result<()> {
    match image_bytes < whole_bytes {
        true => Err(io::Error::other(format!(
            "it is cut off: {image_bytes} of {whole_bytes} bytes are there; fetch or copy it again"
        ))),
        false => Ok(()),
    }
}

/// What an image of so many bytes calls itself, if it is whole and for processors that guests have.
pub fn called(mut image: impl Read, image_bytes: u64) -> io::Result<Image> {
    let mut head = Vec::new();
    image.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    if head.get(0x202..0x206) == Some(b"HdrS") {
        return x86(&head, image_bytes);
    }
    if head.get(ARM64_MAGIC_AT..ARM64_MAGIC_AT + 4) == Some(ARM64_MAGIC) {
        check_length(image_bytes, portable_bytes(&head))?;
        image.take(BYTES_MAX).read_to_end(&mut head)?;
        return arm64(&head);
    }
    Err(match head.get(4..8) {
        // include/linux/pe.h, `zimg`, from Linux 6.1 on: CONFIG_EFI_ZBOOT.
        Some(b"zimg") => wrong("it is compressed for EFI: name the Image that is in it"),
        _ if head.starts_with(&[0x1f, 0x8b]) => wrong("it is compressed: unpack it with gunzip"),
        _ => wrong("it is not a bzImage, nor an Image for arm64"),
    })
}

/// A bzImage (Documentation/arch/x86/boot.rst: `header`, `kernel_version`; what that is made of is
/// in arch/x86/boot/version.c: `RELEASE (USER@HOST) BUILD`).
fn x86(head: &[u8], image_bytes: u64) -> io::Result<Image> {
    check(head, image_bytes)?;
    let at = usize::from(u16::from_le_bytes([head[0x20e], head[0x20f]])) + 0x200;
    let text = head.get(at..).unwrap_or_default();
    let end = text.iter().position(|&byte| byte == 0);
    let text = String::from_utf8_lossy(&text[..end.ok_or_else(|| wrong("it is not a bzImage"))?]);
    let (release, rest) = text.split_once(' ').unwrap_or((&text, ""));
    let build = rest.split_once(") ").map_or("", |(_, build)| build);
    Ok(Image { arch: Arch::X86, release: release.into(), build: build.trim().into() })
}

/// How a 64-bit kernel enables long mode before it is unpacked, which a 32-bit one never does
/// (arch/x86/boot/compressed/head_64.S, `startup_32`): `mov $MSR_EFER, %ecx; rdmsr; bts
/// $_EFER_LME, %eax; wrmsr`.
const LONG_MODE: [u8; 13] =
    [0xb9, 0x80, 0, 0, 0xc0, 0x0f, 0x32, 0x0f, 0xba, 0xe8, 0x08, 0x0f, 0x30];

/// `setup_sects` and `syssize` say how long it is, from protocol 2.12 on (Linux 3.8) `xloadflags`
/// whether it has the 64-bit entry.
fn check(head: &[u8], image_bytes: u64) -> io::Result<()> {
    let sectors = match number(head, 0x1f1, 1) {
        0 => 4,
        sectors => sectors,
    };
    check_length(image_bytes, (sectors + 1) * 512 + number(head, 0x1f4, 4) * 16)?;
    let is_for_64_bits = match number(head, 0x206, 2) {
        0x020c.. => number(head, 0x236, 2) & 1 == 1,
        _ => head.windows(LONG_MODE.len()).any(|code| code == LONG_MODE),
    };
    match is_for_64_bits {
        true => Ok(()),
        false => Err(wrong("it is for 32-bit processors: name one for x86-64")),
    }
}

/// Documentation/arch/arm64/booting.rst.
const ARM64_MAGIC: &[u8] = b"ARM\x64";
const ARM64_MAGIC_AT: usize = 56;

/// How long the file is by its sections, for firmware that starts it as a program of its own
/// (arch/arm64/kernel/efi-header.S; PE format, "Section Table"); 0 where it has none.
fn portable_bytes(head: &[u8]) -> u64 {
    const SECTION_BYTES: usize = 40;
    let at = number(head, 60, 4) as usize;
    if head.get(at..at.saturating_add(4)) != Some(b"PE\0\0") {
        return 0;
    }
    let (count, optional) = (number(head, at + 6, 2) as usize, number(head, at + 20, 2) as usize);
    let first = at + 24 + optional;
    let sections = (0..count).map(|index| first + index * SECTION_BYTES);
    sections.map(|it| number(head, it + 16, 4) + number(head, it + 20, 4)).max().unwrap_or(0)
}

/// An Image for arm64, which has no field for its release: among its strings is what a kernel
/// says first when it boots (init/version-timestamp.c, `linux_banner`: `Linux version RELEASE
/// (USER@HOST) (COMPILER) BUILD`). Another (`linux_proc_banner`) ends otherwise.
fn arm64(image: &[u8]) -> io::Result<Image> {
    const BEGIN: &[u8] = b"Linux version ";
    const LINE_MAX: usize = 1024;
    let mut rest = image;
    let lines = std::iter::from_fn(|| {
        while rest.skip_until(BEGIN[0]).is_ok_and(|bytes| bytes > 0) {
            if rest.starts_with(&BEGIN[1..]) {
                let line = &rest[BEGIN.len() - 1..];
                return Some(&line[..line.len().min(LINE_MAX)]);
            }
        }
        None
    });
    let lines = lines.filter_map(|line| {
        let line = &line[..line.iter().position(|&byte| byte == b'\n' || byte == 0)?];
        let (release, rest) = str::from_utf8(line).ok()?.split_once(' ')?;
        // Its number is not known to what is linked before the kernel itself.
        let build = rest.rsplit_once(" #")?.1;
        build.starts_with(|c: char| c.is_ascii_digit()).then(|| (release, format!("#{build}")))
    });
    let (release, build) = lines.last().ok_or_else(|| wrong("it does not say its release"))?;
    Ok(Image { arch: Arch::Arm64, release: release.into(), build })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_says_its_release() {
        let mut image = vec![0; 0x2000];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x1000_u16.to_le_bytes());
        let text = b"5.10.0-32-amd64 (builder@host) #1 SMP Debian 5.10.223-1 (2024-08-10)\0";
        image[0x1200..0x1200 + text.len()].copy_from_slice(text);
        let asked =
            |image: &[u8]| called(image, image.len() as u64).map_err(|error| error.to_string());
        let its = Image {
            arch: Arch::X86,
            release: "5.10.0-32-amd64".into(),
            build: "#1 SMP Debian 5.10.223-1 (2024-08-10)".into(),
        };
        // Protocol 2.10 says nothing of it, its code does.
        image[0x206..0x208].copy_from_slice(&0x020a_u16.to_le_bytes());
        assert!(asked(&image).unwrap_err().contains("32-bit processors"));
        image[0x1801..0x1801 + LONG_MODE.len()].copy_from_slice(&LONG_MODE);
        assert_eq!(asked(&image).unwrap(), its);
        assert_eq!(asked(b"MZ").unwrap_err(), "it is not a bzImage, nor an Image for arm64");
        // Protocol 2.15, with and without the 64-bit entry.
        image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
        assert!(asked(&image).unwrap_err().contains("32-bit processors"));
        image[0x236] = 1;
        assert_eq!(asked(&image).unwrap(), its);
        image[0x1f4..0x1f8].copy_from_slice(&0x200_u32.to_le_bytes());
        let says = "it is cut off: 8192 of 10752 bytes are there; fetch or copy it again";
        assert_eq!(asked(&image).unwrap_err(), says);
    }

    #[test]
    fn an_image_for_arm64_says_its_release_among_its_strings() {
        let mut image = vec![0; 0x2000];
        image[..2].copy_from_slice(b"MZ");
        image[ARM64_MAGIC_AT..ARM64_MAGIC_AT + 4].copy_from_slice(ARM64_MAGIC);
        let asked =
            |image: &[u8]| called(image, image.len() as u64).map_err(|error| error.to_string());
        assert_eq!(asked(&image).unwrap_err(), "it does not say its release");
        let line = |build: &str| {
            format!("Linux version 6.1.0-50-arm64 (a@b) (gcc (Debian #1) 12, GNU ld){build}\n\0")
        };
        for (at, text) in [
            (0x400, line(" # SMP Debian 6.1.176-1")),
            (0x800, line(" #1 SMP Debian 6.1.176-1 (2026-07-02)")),
            (0xc00, "Linux version %s (a@b) (gcc 12, GNU ld) %s\n\0".into()),
            (0x1000, "LLinux versioned".into()),
        ] {
            image[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        let its = Image {
            arch: Arch::Arm64,
            release: "6.1.0-50-arm64".into(),
            build: "#1 SMP Debian 6.1.176-1 (2026-07-02)".into(),
        };
        assert_eq!(asked(&image).unwrap(), its);
        // A section of 0x1000 bytes at 0x800, and then one that is not there.
        image[60..64].copy_from_slice(&64_u32.to_le_bytes());
        image[64..68].copy_from_slice(b"PE\0\0");
        image[70..72].copy_from_slice(&1_u16.to_le_bytes());
        image[88 + 16..88 + 20].copy_from_slice(&0x1000_u32.to_le_bytes());
        image[88 + 20..88 + 24].copy_from_slice(&0x800_u32.to_le_bytes());
        assert_eq!(asked(&image).unwrap(), its);
        image[88 + 20..88 + 24].copy_from_slice(&0x1800_u32.to_le_bytes());
        assert!(asked(&image).unwrap_err().starts_with("it is cut off: 8192 of 10240 bytes"));
        let zboot = b"MZ\0\0zimg";
        assert!(asked(zboot).unwrap_err().contains("compressed for EFI"));
    }
}
