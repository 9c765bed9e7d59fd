//! Packs, read back, and packs that somebody has made up.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;

/// A folder with one file in it.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new(bytes: &[u8]) -> Scene {
        let scene = Scene(tempfile::tempdir().unwrap());
        fs::write(scene.file(), bytes).unwrap();
        scene
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("run.tar.gz")
    }

    /// Names and texts of all its files, or the error. It writes nothing in either case.
    fn read(&self) -> Result<Vec<(String, String)>, String> {
        let mut files = Vec::new();
        let read = read(&self.file(), &|_| true, &mut |name, text| {
            files.push((name.to_string(), text));
            Ok(())
        });
        let there: Vec<_> = fs::read_dir(self.0.path()).unwrap().collect();
        assert_eq!(there.len(), 1, "{there:?}");
        read.map(|()| files).map_err(|error| format!("{error:#}"))
    }
}

fn packed() -> Vec<u8> {
    let scene = Scene::new(b"");
    let names = ["trials/10/record.json", "run.json", "trials/9/record.json", "plan.toml", "gone"];
    let file = fs::File::create(scene.file()).unwrap();
    write(&file, "run", 1_700_000_000, names.map(String::from).into(), &mut |name| {
        Ok((name != "gone").then(|| format!("{name}: {}", "text ".repeat(100)).into_bytes()))
    })
    .unwrap();
    fs::read(scene.file()).unwrap()
}

#[test]
fn what_was_packed_is_read_in_one_order() {
    let bytes = packed();
    let scene = Scene::new(&bytes);
    let files = scene.read().unwrap();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["plan.toml", "run.json", "trials/9/record.json", "trials/10/record.json"];
    assert_eq!(names, expected);
    assert!(files.iter().all(|(name, text)| text.starts_with(name) && text.len() > 500));
    assert!(is_pack(&scene.file()).unwrap() && is_gzip(&scene.file()).unwrap());
    assert_eq!(packed(), bytes);
}

#[test]
fn a_pack_that_is_cut_anywhere_is_refused() {
    let bytes = packed();
    for length in 0..bytes.len() {
        let error = Scene::new(&bytes[..length]).read().unwrap_err();
        assert!(error.contains("ends too early: copy it again"), "{length}: {error}");
    }
}

#[test]
fn a_bit_that_has_flipped_is_found() {
    let bytes = packed();
    let whole = Scene::new(&bytes).read().unwrap();
    let mut refused = 0;
    for place in 0..bytes.len() {
        let mut other = bytes.clone();
        other[place] ^= 1 << (place % 8);
        match Scene::new(&other).read() {
            // gzip's header says when and where it was made, and the last byte of deflate's may
            // have bits to spare.
            Ok(files) => assert_eq!(files, whole, "{place}"),
            Err(error) => {
                let says = ["is damaged", "ends too early", "goes on after its end"];
                assert!(says.iter().any(|words| error.contains(words)), "{place}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > bytes.len() - 12);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A tar of one part after the other, whatever they are called.
struct Made(Builder<Vec<u8>>);

impl Made {
    fn new() -> Made {
        Made(Builder::new(Vec::new()))
    }

    fn with(mut self, path: &[u8], kind: EntryType, says_bytes: u64, content: &[u8]) -> Made {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.set_entry_type(kind);
        header.set_size(says_bytes);
        header.set_cksum();
        self.0.append(&header, content).unwrap();
        self
    }

    fn file(self, path: &str) -> Made {
        self.with(path.as_bytes(), EntryType::Regular, 2, b"{}")
    }

    fn tar(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }

    fn pack(self) -> Vec<u8> {
        gzip(&self.tar())
    }
}

#[track_caller]
fn refused(bytes: &[u8], because: &str) {
    let error = Scene::new(bytes).read().map(|files| files.len()).unwrap_err();
    assert!(error.contains(because), "{because:?} is not in: {error}");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let elsewhere = [
        "../run.json",
        "/etc/passwd",
        "run/../../x",
        "run/..",
        "run/./x",
        "run//x",
        "run/",
        "x",
        "run/a\nb",
        "run/\u{1b}[2J",
    ];
    for path in elsewhere {
        refused(&Made::new().file(path).pack(), "which is not a file below a folder");
    }
    let no_text = Made::new().with(b"run/\xff", EntryType::Regular, 0, b"");
    refused(&no_text.pack(), "which is not text");
}

#[test]
fn what_is_no_plain_file_is_refused() {
    let kinds = [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::GNULongName,
        EntryType::GNULongLink,
        EntryType::GNUSparse,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
    ];
    for kind in kinds {
        let made = Made::new().file("run/plan.toml").with(b"run/run.json", kind, 2, b"xx");
        refused(&made.pack(), "\"run/run.json\", which is not a plain file");
    }
}

#[test]
fn files_that_come_twice_or_from_another_run_are_refused() {
    let twice = Made::new().file("run/plan.toml").file("run/plan.toml");
    refused(&twice.pack(), "twice, or not in order");
    let again = Made::new().file("run/plan.toml").file("run/run.json").file("run/plan.toml");
    refused(&again.pack(), "twice, or not in order");
    let other = Made::new().file("run/plan.toml").file("other/run.json");
    refused(&other.pack(), "\"other/run.json\", which is not in \"run\"");
}

#[test]
fn lengths_that_are_said_or_real_are_bounded() {
    let path = b"run/run.json";
    for bytes in [FILE_BYTES_MAX + 1, 1 << 60, u64::MAX] {
        let said = Made::new().with(path, EntryType::Regular, bytes, b"");
        let error = Scene::new(&said.pack()).read().unwrap_err();
        let said = ["too long", "not a run that was packed"];
        assert!(said.iter().any(|said| error.contains(said)), "{error}");
    }
    let short = Made::new().with(path, EntryType::Regular, 5000, b"{}");
    refused(&short.pack(), "not a run that was packed");
    let zeros = vec![0; 2 * SHORT_BYTES as usize];
    let bomb = Made::new().with(path, EntryType::Regular, zeros.len() as u64, &zeros).pack();
    assert!(bomb.len() < 1 << 20);
    refused(&bomb, "much longer than a run when it is unpacked");
    // Behind the end, where no file's length tells of it.
    let tail = [Made::new().file("run/run.json").tar(), zeros].concat();
    refused(&gzip(&tail), "much longer than a run when it is unpacked");
}

#[test]
fn more_files_than_any_run_has_are_refused() {
    let mut made = Made::new();
    for number in 0..=FILES_MAX {
        made = made.file(&format!("run/trials/{number}/x"));
    }
    // Not packed at all, it may be as long as it likes.
    let mut stored = GzEncoder::new(Vec::new(), Compression::none());
    stored.write_all(&made.tar()).unwrap();
    refused(&stored.finish().unwrap(), "more than 200000 files");
}

#[test]
fn what_else_is_in_the_file_is_not_overlooked() {
    let one = || Made::new().file("run/run.json");
    assert_eq!(Scene::new(&one().pack()).read().unwrap().len(), 1);
    refused(&[one().pack(), b"x".into()].concat(), "goes on after its end");
    refused(&[one().pack(), one().pack()].concat(), "goes on after its end");
    refused(&gzip(&[one().tar(), one().tar()].concat()), "after its last file");
    refused(&gzip(&[b'x'; 2000]), "not a run that was packed");
    refused(b"\x1f\x8bno gzip at all, whatever its beginning says", "is damaged");
    assert!(!is_pack(&Scene::new(&one().pack()).file()).unwrap(), "a plan comes first");
    assert!(!is_pack(&Scene::new(&gzip(&[b'x'; 2000])).file()).unwrap());
    assert!(!is_gzip(&Scene::new(b"PK").file()).unwrap());
}
