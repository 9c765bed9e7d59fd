//! LUKS2: each device encrypted by dm-crypt, as cryptsetup(8) makes it.

use fsverdict_core::model::Layer;

use super::words::{with, words};
use super::{Kind, Made, Place, Seat, Value};

/// What opens the random key: the same for every reader on this kernel, and gone with it. Nothing
/// has to be stored for it, and nothing that the work writes is secret.
const KEY: &str = "/proc/sys/kernel/random/boot_id";
/// What dm-crypt has (drivers/md/dm-crypt.c, "sector_size"), and dm-integrity, too.
pub const SECTOR: Value = Value::Within(512, 4 << 10);
/// What a passphrase goes through before it opens the key. A random key needs none of it, and by
/// default it takes 1 GiB and seconds (cryptsetup(8), `--pbkdf`). Not a byte of I/O differs.
const SHORT_WAY: [&str; 4] = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];

pub const LUKS: Kind = Kind {
    name: "luks",
    about: "LUKS2: every device encrypted by dm-crypt, with a random key",
    settings: &[
        ("cipher", Value::Word),
        ("key_size", Value::Count),
        ("sector_size", SECTOR),
        ("workqueues", Value::Switch),
    ],
    programs: &["cryptsetup"],
    modules: &["dm_crypt"],
    asked_for: ciphers,
    devices_min: 1,
    place: Place::Upon,
    on_hosts: true,
    up,
};

fn up(seat: &Seat) -> Made {
    let number = |name| seat.size_bytes(name).map(|bytes| bytes.to_string());
    let set = |name| seat.setting(name).map(String::from);
    let mut made = Made::default();
    for (device, name) in seat.each() {
        let format = ["cryptsetup", "luksFormat", "--type", "luks2", "--batch-mode"];
        let format = with(
            words(&[&format[..], &SHORT_WAY, &["--key-file", KEY]].concat()),
            &[
                ("--cipher", set("cipher")),
                ("--key-size", set("key_size")),
                ("--sector-size", number("sector_size")),
            ],
        );
        made.commands.push([format, vec![device.clone()]].concat());
        let mut open = words(&["cryptsetup", "open", "--type", "luks2", "--key-file", KEY]);
        if seat.setting("workqueues") == Some("no") {
            open.extend(words(&["--perf-no_read_workqueue", "--perf-no_write_workqueue"]));
        }
        made.commands.push([open, vec![device.clone(), name.clone()]].concat());
        made.facts.push(words(&["cryptsetup", "status", &name]));
        made.devices.push(format!("/dev/mapper/{name}"));
    }
    made
}

/// Modules of the ciphers and modes in the name, and their faster forms for x86
/// (arch/x86/crypto/Makefile). `xts` asks for `ecb` (crypto/xts.c, MODULE_SOFTDEP), and adiantum
/// for chacha, which was `-generic` before Linux 6.17. With ciphers that its own library does not
/// have, cryptsetup has the kernel encrypt the keyslot (crypto/algif_skcipher.c).
fn ciphers(layer: &Layer) -> Vec<String> {
    const DEFAULT: &str = "aes-xts-plain64";
    let forms = ["", "_generic", "_x86_64", "_sse2_x86_64", "_avx_x86_64", "_avx2", "ni_intel"];
    let cipher = layer.settings.get("cipher").map_or(DEFAULT, String::as_str);
    let parts = cipher.split(['-', ':', ',']).filter(|part| !part.is_empty());
    let named = parts.flat_map(|part| forms.map(|form| format!("{part}{form}")));
    const ALWAYS: [&str; 7] = [
        "ecb",
        "cbc",
        "sha256_generic",
        "chacha_generic",
        "chacha",
        "nhpoly1305",
        "algif_skcipher",
    ];
    ALWAYS.map(String::from).into_iter().chain(named).collect()
}
