//! 9P over the loopback interface: diod(8) exports a folder of the file system below, and the
//! kernel mounts that (Documentation/filesystems/9p.rst).
//!
//! A client's writes go to the server at once, and so to the page cache of the file system below.
//! The client has the server sync a file at fsync, and nothing at syncfs: the file system below is
//! synced separately.

use super::options::{only, value};
use super::site::{shown, words};
use super::{FileSystem, IN_FULL_KERNELS, Listener, PLAIN, Site};
use crate::tool::Argv;

pub(super) const NINE_P: FileSystem = FileSystem {
    name: "9p",
    program: "diod",
    // It tells none itself.
    version: &["dpkg-query", "--show", "diod"],
    // What it shows lies in a folder, so that lost+found is not part of it.
    make: |_, site| vec![words(&["mkdir", &shown(site)])],
    listener: Some(Listener { argv: serve, port: PORT }),
    mount,
    is_upon: true,
    by_loopback: true,
    keeps_syncfs: |_| true,
    kernels: IN_FULL_KERNELS,
    ours: &["threads"],
    words: |_, mount| check(mount),
    without: &["O_DIRECT", "O_TMPFILE", "punched holes", "inode flags"],
    ..PLAIN
};

const PORT: u16 = 564;

/// Of diod(8) how many threads it has, and those of 9p.rst that name nothing.
const OPTIONS: [&str; 7] =
    ["threads", "msize", "cache", "access", "posixacl", "noxattr", "nodevmap"];

/// As many as diod has by itself.
const THREADS: &str = "16";

fn check(options: &[String]) -> Result<(), String> {
    only(&OPTIONS, options)?;
    match value(options, "threads").map(str::parse::<u16>) {
        None | Some(Ok(1..)) => Ok(()),
        Some(_) => Err(format!("threads: write how many, threads={THREADS}")),
    }
}

/// To anybody on this machine, as who he is, by his numbers alone.
fn serve(options: &[String], site: &Site) -> Argv {
    let first = words(&["diod", "-f", "-n", "-N", "-L", "stderr", "-c", "/dev/null"]);
    let listen = format!("127.0.0.1:{PORT}");
    let threads = value(options, "threads").unwrap_or(THREADS);
    [first, words(&["-t", threads, "-l", &listen, "-e", &shown(site)])].concat()
}

fn mount(options: &[String], site: &Site) -> Vec<Argv> {
    let tree = format!("aname={}", shown(site));
    let port = format!("port={PORT}");
    let mut all = words(&["trans=tcp", &port, "version=9p2000.L", "uname=root", &tree]);
    all.extend(NINE_P.told(options));
    if !all.iter().any(|it| it.starts_with("access=")) {
        all.push("access=user".into());
    }
    vec![words(&["mount", "-i", "-t", "9p", "-o", &all.join(","), "127.0.0.1", site.at])]
}
