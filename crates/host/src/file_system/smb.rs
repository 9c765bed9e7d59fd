//! SMB over the loopback interface: smbd(8) of Samba exports a folder of the file system below, and
//! the kernel mounts that (mount.cifs(8), Documentation/admin-guide/cifs/usage.rst).
//!
//! The client has the server sync a file at fsync, which smbd does (smb.conf(5), "strict sync"),
//! and nothing at syncfs: the file system below is synced separately.

use super::options::{only, value};
use super::site::{shown, words};
use super::{FileSystem, IN_CLOUD_KERNELS, Listener, PLAIN, Site};
use crate::tool::Argv;

pub(super) const SMB: FileSystem = FileSystem {
    name: "smb",
    program: "smbd",
    version: &["smbd", "--version"],
    driver: Some("cifs"),
    // What it shows lies in a folder, so that lost+found is not part of it.
    make: |_, site| vec![words(&["mkdir", &shown(site)])],
    listener: Some(Listener { argv: serve, port: PORT }),
    mount,
    is_upon: true,
    by_loopback: true,
    keeps_syncfs: |_| true,
    kernels: IN_CLOUD_KERNELS,
    helpers: &["cat", "mkdir"],
    words: |_, mount| check(mount),
    // As smbd serves them to the kernel's client by default: seen on Linux 6.1.
    without: &["owners", "modes", "names that differ in case alone", "symbolic links", "FIFOs"],
    ..PLAIN
};

const PORT: u16 = 445;

/// Those of mount.cifs(8) that name nothing, and neither encrypt nor sign.
const OPTIONS: [&str; 14] = [
    "vers",
    "cache",
    "rsize",
    "wsize",
    "actimeo",
    "acdirmax",
    "acregmax",
    "closetimeo",
    "mfsymlinks",
    "nobrl",
    "nolease",
    "nostrictsync",
    "noserverino",
    "max_credits",
];

/// Older ones lack what the server asks of a client.
const VERSIONS: [&str; 4] = ["2.1", "3.0", "3.0.2", "3.1.1"];

/// Where smbd keeps what it remembers, and its configuration: in a guest's memory.
const FOLDER: &str = "/run/fsverdict-smb";

fn check(options: &[String]) -> Result<(), String> {
    only(&OPTIONS, options)?;
    match value(options, "vers") {
        Some(version) if !VERSIONS.contains(&version) => {
            Err(format!("vers={version}: the server here has {}", VERSIONS.join(", ")))
        }
        _ => Ok(()),
    }
}

/// To all clients on this machine, as root: a user it does not know is its guest (smb.conf(5), "map
/// to guest"). It makes no connections, and announces no names.
fn serve(_: &[String], site: &Site) -> Argv {
    let path = shown(site);
    let script = format!(
        "mkdir -p {FOLDER}; cat >{FOLDER}/smb.conf <<END\n\
         [global]\n\
         server role = standalone server\n\
         interfaces = lo\n\
         bind interfaces only = yes\n\
         smb ports = {PORT}\n\
         disable netbios = yes\n\
         load printers = no\n\
         printcap name = /dev/null\n\
         disable spoolss = yes\n\
         map to guest = Bad User\n\
         guest account = root\n\
         log level = 0\n\
         lock directory = {FOLDER}\n\
         state directory = {FOLDER}\n\
         cache directory = {FOLDER}\n\
         private directory = {FOLDER}\n\
         pid directory = {FOLDER}\n\
         ncalrpc dir = {FOLDER}/ncalrpc\n\
         [{SHARE}]\n\
         path = {path}\n\
         read only = no\n\
         guest ok = yes\n\
         force user = root\n\
         END\n\
         exec smbd --foreground --no-process-group --debug-stdout \
         --configfile={FOLDER}/smb.conf </dev/null"
    );
    words(&["sh", "-ec", &script])
}

/// The folder's name for clients.
const SHARE: &str = "shown";

/// Without mount.cifs(8), which looks addresses up that are known.
fn mount(options: &[String], site: &Site) -> Vec<Argv> {
    // An account that the server does not have makes us its guest.
    let mut all = words(&["ip=127.0.0.1", "username=guest", "password=guest"]);
    if value(options, "vers").is_none() {
        all.push("vers=3.1.1".into());
    }
    all.extend(SMB.told(options));
    let share = format!("//127.0.0.1/{SHARE}");
    vec![words(&["mount", "-i", "-t", "cifs", "-o", &all.join(","), &share, site.at])]
}
