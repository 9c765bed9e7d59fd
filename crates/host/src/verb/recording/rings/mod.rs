//! What a command and all that it starts hand over to the kernel by io_uring, while they are
//! recorded. strace shows how many requests a call hands over; the requests themselves are in
//! memory. So the threads stop at these calls until we have looked there, and we write a line as
//! strace would (`fsverdict_core::recording`). In the kernel a listener comes before a tracer
//! (seccomp(2), the order of actions), so that strace does not see these calls.

mod looks;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fsverdict_core::recording::time_ns;

use super::nameless::nameless;
use crate::sys::{self, Coming, Heir, Meets};
use looks::Looks;

/// What becomes of io_uring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rings {
    /// It is seen.
    Seen,
    /// Programs that ask for one find none; those that can do without it do.
    Refused,
}

/// What will be seen, once the command has been started.
pub struct Begun(Option<(Coming, File)>);

impl Rings {
    /// Applies this to the command, once started, and to all that it starts. What is seen is kept
    /// in `folder`.
    pub fn begin(self, command: &mut Command, folder: &Path) -> io::Result<Begun> {
        if self == Rings::Refused {
            sys::refuse(command, &[libc::SYS_io_uring_setup]);
            return Ok(Begun(None));
        }
        let calls = [
            (libc::SYS_io_uring_setup, Meets::Us),
            // The second argument is how many are handed over.
            (libc::SYS_io_uring_enter, Meets::UsUnlessZero(1)),
            (libc::SYS_io_uring_register, Meets::Us),
        ];
        let coming = sys::listen(command, &calls)?;
        Ok(Begun(Some((coming, nameless(folder, "rings")?))))
    }
}

impl Begun {
    /// From the start of `command` on. If we can't listen, strace shows what there is to see.
    pub fn started(self, command: u32) -> io::Result<Seen> {
        let over = Arc::new(AtomicBool::new(false));
        let heard = self.0.and_then(|(coming, file)| Some((coming.listener()?, file)));
        let looks = match heard {
            None => None,
            Some((listener, file)) => {
                let until = Arc::clone(&over);
                let mut looks = Looks::new(file);
                // Even if we end, no thread stays stopped, and no call fails.
                let heir = Heir::of(&listener, command).ok();
                let thread = std::thread::Builder::new().name("io_uring".into());
                Some(thread.spawn(move || {
                    looks.at(&listener, &until)?;
                    heir.map_or(Ok(()), Heir::dismiss)?;
                    Ok(looks)
                })?)
            }
        };
        Ok(Seen { over, looks })
    }
}

/// Sees what is handed over until the command has ended.
pub struct Seen {
    over: Arc<AtomicBool>,
    looks: Option<JoinHandle<io::Result<Looks>>>,
}

impl Seen {
    /// The command has ended: all lines, in the order of time.
    pub fn end(mut self) -> io::Result<Lines> {
        self.over.store(true, Ordering::Relaxed);
        let Some(thread) = self.looks.take() else { return Ok(Lines::default()) };
        let looks = thread.join().map_err(|_| io::Error::other("the listener has died"))??;
        let (file, lost) = looks.end()?;
        let mut lines = Lines { file: Some(BufReader::new(file)), next: None, lost };
        lines.advance()?;
        Ok(lines)
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Lines as strace would write them.
#[derive(Default)]
pub struct Lines {
    file: Option<BufReader<File>>,
    next: Option<(u64, String)>,
    lost: u64,
}

impl Lines {
    fn advance(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut line = String::new();
        file.read_line(&mut line)?;
        // A half one, behind which there was no room, is none.
        let whole = line.strip_suffix('\n').map(String::from);
        self.next = whole.and_then(|line| Some((time_ns(&line)?, line)));
        Ok(())
    }

    /// The next one before a time, if there is one.
    pub fn before(&mut self, time_ns: u64) -> io::Result<Option<String>> {
        if self.next.as_ref().is_none_or(|(at_ns, _)| *at_ns >= time_ns) {
            return Ok(None);
        }
        let next = self.next.take().map(|(_, line)| line);
        self.advance()?;
        Ok(next)
    }

    /// How many requests are in none of them, at least.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// This strace line is among ours, too: it is from a strace that stops at all calls.
    pub fn have(&self, line: &str) -> bool {
        let text = line.splitn(3, ' ').last().unwrap_or_default().trim_start();
        self.file.is_some() && text.trim_start_matches("<... ").starts_with("io_uring_")
    }
}
