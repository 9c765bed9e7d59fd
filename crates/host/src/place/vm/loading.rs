//! Loading modules in a guest, and why one did not load: the call gives a number, the reason stands
//! in the kernel's log (Documentation/ABI/testing/dev-kmsg).

use std::ffi::CStr;
use std::path::Path;
use std::{fmt, fs, io};

use super::modules;
use crate::probe::{each_record, log_from_now};
use crate::{layer, sys};

/// A module that did not load.
#[derive(Debug)]
pub struct Unloaded {
    /// `updates/zfs.ko`.
    file: String,
    error: io::Error,
    /// What the kernel said of it.
    said: Vec<String>,
}

impl fmt::Display for Unloaded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Unloaded { file, error, said } = self;
        write!(f, "module {file} does not load ({error})")?;
        if said.is_empty() { Ok(()) } else { write!(f, ": {}", said.join("; ")) }
    }
}

/// Why there is no `driver`, though its module came along; `None` if that loaded.
pub fn why_missing(driver: &str, unloaded: &[Unloaded]) -> Option<String> {
    unloaded.iter().find(|it| modules::name(&it.file) == driver)?;
    Some(unloaded.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Loads the modules `files` of `folder`, in this order. One that does not load may be one for
/// another processor.
pub fn load<'a>(folder: &Path, files: impl Iterator<Item = &'a str>) -> Vec<Unloaded> {
    let mut log = log_from_now().ok();
    let mut unloaded = Vec::new();
    for file in files {
        let parameters = parameters(&modules::name(file));
        let loaded = fs::read(folder.join(file)).and_then(|it| sys::load_module(&it, parameters));
        if let Err(error) = loaded {
            let mut failed = Unloaded { file: file.into(), error, said: Vec::new() };
            let mut records = Vec::new();
            if let Some(log) = &mut log {
                each_record(log, |record| records.push(record.to_string()));
            }
            failed.said = about(&records, &modules::name(file));
            unloaded.push(failed);
        }
    }
    unloaded
}

/// A module's parameters; those on the kernel's command line are for modprobe to read.
fn parameters(module: &str) -> &'static CStr {
    let (name, parameters) = modules::ONE_PATH;
    if module == name { parameters } else { layer::module_parameters(module) }
}

/// The messages that begin with the module's name: `4,512,2310987,-;zfs: version magic ...`.
fn about(records: &[String], module: &str) -> Vec<String> {
    let messages = records.iter().filter_map(|record| record.split_once(';')?.1.lines().next());
    let its = messages.filter(|message| {
        message.strip_prefix(module).is_some_and(|rest| rest.starts_with([':', ' ']))
    });
    its.map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unloaded(file: &str, said: &[&str]) -> Unloaded {
        let said = said.iter().map(ToString::to_string).collect();
        Unloaded { file: file.into(), error: io::Error::from_raw_os_error(libc::ENOEXEC), said }
    }

    #[test]
    fn a_file_system_whose_module_does_not_load_says_why() {
        let magic = "zfs: version magic '6.1.0-50' should be '6.1.0-56'";
        let failed = [unloaded("updates/zfs.ko", &[magic])];
        let why = why_missing("zfs", &failed).unwrap();
        let says = "module updates/zfs.ko does not load (Exec format error (os error 8)): zfs: ";
        assert!(why.starts_with(says) && why.ends_with("'6.1.0-56'"), "{why}");
        assert_eq!(why_missing("xfs", &failed), None);
        assert_eq!(why_missing("crc32c", &[unloaded("crc32c_intel.ko.xz", &[])]), None);
    }

    #[test]
    fn what_the_kernel_says_of_a_module_begins_with_its_name() {
        let records = ["4,5,1,-;zfs: Unknown symbol x\n SUBSYSTEM=x\n", "4,6,2,-;zfs_other: x\n"];
        let records = records.map(String::from);
        assert_eq!(about(&records, "zfs"), ["zfs: Unknown symbol x"]);
    }
}
