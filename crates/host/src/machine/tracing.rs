//! The kernel's tracing, by an instance of our own: it has its own events, filters, buffers and
//! clock, and others' don't change (Documentation/trace/ftrace.rst, "Instances").

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::alone::Alone;
use super::mount;
use super::token::Token;
use crate::sys;

/// What the names of our instances begin with.
const PREFIX: &str = "fsverdict-";

/// More than any file that is read here has.
const MOST_BYTES: usize = 1 << 16;

/// How often an instance that is in use is tried to be removed, and how long between.
const REMOVE_TRIES: u32 = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// tracefs, wherever it is mounted, or nowhere.
#[derive(Debug)]
struct Tracefs {
    folder: PathBuf,
    /// What the folder is reached by, where it is mounted nowhere.
    _root: Option<OwnedFd>,
}

impl Tracefs {
    fn open() -> io::Result<Tracefs> {
        let mounts = mount::all(Path::new("/proc"))?;
        if let Some(mount) = mounts.into_iter().find(|mount| mount.file_system == "tracefs") {
            return Ok(Tracefs { folder: mount.at.into(), _root: None });
        }
        let root = sys::detached_mount(c"tracefs")?;
        let folder = format!("/proc/self/fd/{}", root.as_raw_fd()).into();
        Ok(Tracefs { folder, _root: Some(root) })
    }

    fn instance(&self, run: &Token) -> PathBuf {
        self.folder.join("instances").join(format!("{PREFIX}{run}"))
    }
}

/// Removes the instance of a run that is no more, if there is one.
pub fn remove(run: &Token) -> io::Result<()> {
    match Tracefs::open() {
        Err(error) if is_closed_to_us(&error) => Ok(()),
        tracefs => removed(&tracefs?.instance(run)),
    }
}

/// The names of all instances of runs, of this program or another.
pub fn instances() -> io::Result<Vec<String>> {
    let entries = fs::read_dir(Tracefs::open()?.folder.join("instances"))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().display().to_string()));
    Ok(names.filter(|name| name.starts_with(PREFIX)).collect())
}

/// What the kernel says of an event (`exceptions/page_fault_user`): its number, and where its
/// fields are.
pub fn format_of(event: &str) -> io::Result<String> {
    let tracefs = Tracefs::open()?;
    fs::read_to_string(tracefs.folder.join("events").join(event).join("format"))
}

/// The kernel has no tracefs (ENODEV), no way to reach one that is mounted nowhere (ENOSYS), or
/// denies us access: so nothing there is ours.
fn is_closed_to_us(error: &io::Error) -> bool {
    let known = [libc::ENODEV, libc::ENOSYS, libc::EPERM, libc::EACCES];
    error.raw_os_error().is_some_and(|number| known.contains(&number))
}

fn removed(folder: &Path) -> io::Result<()> {
    if !folder.try_exists()? {
        return Ok(());
    }
    // Its events are switched off.
    let _alone = Alone::to_patch();
    for _ in 0..REMOVE_TRIES {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // A process that was killed lets go of its files some time later.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            done => return done,
        }
        std::thread::sleep(REMOVE_PAUSE);
    }
    fs::remove_dir(folder)
}

/// An instance of our own; it goes with this.
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    folder: PathBuf,
}

impl Instance {
    /// Makes that of the run, with a clock that others have, too: clock_gettime(2),
    /// CLOCK_MONOTONIC. The run's journal has it already.
    pub fn make(run: &Token) -> io::Result<Instance> {
        let tracefs = Tracefs::open()?;
        let folder = tracefs.instance(run);
        // One of a trial of the same run that was killed.
        removed(&folder)?;
        fs::create_dir(&folder)?;
        let instance = Instance { tracefs, folder };
        instance.write("trace_clock", "mono")?;
        Ok(instance)
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.folder.join(file))?.write_all(text.as_bytes())
    }

    /// What a file of tracefs says, by its name within the instance or within tracefs.
    pub fn read(&self, file: &str) -> io::Result<String> {
        let opened = match File::open(self.folder.join(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                File::open(self.tracefs.folder.join(file))
            }
            opened => opened,
        };
        // In one call where it fits: the second one of `events/header_page` gives nothing, however
        // short the first was (kernel/trace/trace_events.c, `show_header`).
        let mut text = vec![0; MOST_BYTES];
        let mut file = opened?;
        let mut length = 0;
        while length < MOST_BYTES {
            match file.read(&mut text[length..])? {
                0 => break,
                count => length += count,
            }
        }
        Ok(String::from_utf8_lossy(&text[..length]).into_owned())
    }

    /// Has events recorded (`block/block_rq_issue`) where `filter` is true
    /// (Documentation/trace/events.rst, "Event filtering"): all that are `needed`, and of those
    /// that are `welcome` the ones that this kernel has.
    pub fn record(&self, needed: &[&str], welcome: &[&str], filter: &str) -> io::Result<()> {
        let _alone = Alone::to_patch();
        needed.iter().try_for_each(|event| self.record_one(event, filter))?;
        for event in welcome {
            let _ = self.record_one(event, filter);
        }
        Ok(())
    }

    fn record_one(&self, event: &str, filter: &str) -> io::Result<()> {
        self.write(&format!("events/{event}/filter"), filter)?;
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Records nothing more.
    pub fn stop(&self) -> io::Result<()> {
        self.write("tracing_on", "0")
    }

    /// The processors, by their folders' names, each with its buffer: pages that are read once,
    /// without waiting for one to be there.
    pub fn buffers(&self) -> io::Result<Vec<(String, File)>> {
        let mut buffers = Vec::new();
        for entry in fs::read_dir(self.folder.join("per_cpu"))? {
            let entry = entry?;
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            let buffer = options.open(entry.path().join("trace_pipe_raw"))?;
            buffers.push((entry.file_name().to_string_lossy().into_owned(), buffer));
        }
        Ok(buffers)
    }

    /// Events that a processor's buffer had no room for.
    pub fn lost_events(&self, processor: &str) -> io::Result<u64> {
        let text = self.read(&format!("per_cpu/{processor}/stats"))?;
        let count = |line: &str| {
            let (name, count) = line.split_once(':')?;
            let is_lost = ["overrun", "commit overrun", "dropped events"].contains(&name);
            is_lost.then(|| count.trim().parse::<u64>().ok())?
        };
        Ok(text.lines().filter_map(count).sum())
    }

    /// What is written here is an event.
    pub fn marker(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.folder.join("trace_marker"))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // One that stays is in the journal.
        let _ = removed(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracefs_that_is_closed_to_us_has_nothing_of_ours() {
        for number in [libc::ENODEV, libc::ENOSYS, libc::EPERM, libc::EACCES] {
            assert!(is_closed_to_us(&io::Error::from_raw_os_error(number)));
        }
        assert!(!is_closed_to_us(&io::Error::from_raw_os_error(libc::EIO)));
        assert!(!is_closed_to_us(&io::Error::other("x")));
    }
}
