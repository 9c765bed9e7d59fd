//! Children: those that somebody of us waits for, and those whose parents have ended. The first
//! process of a PID namespace becomes the parent of the latter, and nobody else can take them away
//! (pid_namespaces(7)): until then `kill -0` finds each of them, and whoever waits so for its end,
//! waits for ever.

use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static AWAITED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
/// Somebody counts what processes have done, and takes away those that have been counted.
static IS_COUNTED: AtomicBool = AtomicBool::new(false);

fn awaited() -> MutexGuard<'static, BTreeSet<u32>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `action` while nobody here starts a child: whoever does waits until all copies of a socket
/// are closed by which the child tells whether it could be.
pub(super) fn between_starts<T>(action: impl FnOnce() -> T) -> T {
    let _awaited = awaited();
    action()
}

/// The number of a child that is left to whoever has started it, as long as this is there.
#[derive(Debug)]
pub(super) struct Claim(u32);

impl Claim {
    /// What `start` starts, and its number. Nobody can take it away before it is known.
    pub(super) fn on<T>(start: impl FnOnce() -> io::Result<(T, u32)>) -> io::Result<(T, Claim)> {
        let mut awaited = awaited();
        let (started, number) = start()?;
        awaited.insert(number);
        Ok((started, Claim(number)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        awaited().remove(&self.0);
    }
}

/// A child that whoever has this waits for.
#[derive(Debug)]
pub struct Awaited {
    child: Child,
    _claim: Claim,
}

impl Awaited {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> io::Result<Awaited> {
        let (child, claim) = Claim::on(|| {
            let child = command.spawn()?;
            let number = child.id();
            Ok((child, number))
        })?;
        Ok(Awaited { child, _claim: claim })
    }

    /// Waits for its end, and takes away all who end meanwhile without anybody who waits for them.
    pub fn wait_and_reap(mut self) -> io::Result<ExitStatus> {
        // Elsewhere they are others' children.
        if std::process::id() != 1 || IS_COUNTED.load(Ordering::SeqCst) {
            return self.child.wait();
        }
        loop {
            let ended = any_ended(0)?;
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            let awaited = awaited();
            if !awaited.contains(&ended) {
                reap(ended);
                continue;
            }
            drop(awaited);
            // Another thread is about to take it away.
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Deref for Awaited {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Awaited {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

/// As long as this is there, those who end without anybody who waits for them are left to whoever
/// has it: until then `/proc` tells what they have done.
#[derive(Debug)]
pub struct Counting(());

impl Counting {
    /// Begins.
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Counting {
        IS_COUNTED.store(true, Ordering::SeqCst);
        Counting(())
    }

    /// Somebody has ended who is to be counted. Whom others wait for may stand before them: then
    /// they are seen another time.
    pub fn has_ended(&self) -> bool {
        let awaited = awaited();
        let ended = any_ended(libc::WNOHANG);
        std::process::id() == 1 && ended.is_ok_and(|it| it != 0 && !awaited.contains(&it))
    }

    /// Takes one away that has ended and was counted, unless somebody waits for it. One that is
    /// none of ours stays.
    pub fn is_counted(&self, number: u32) {
        if std::process::id() == 1 && !awaited().contains(&number) {
            reap(number);
        }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        IS_COUNTED.store(false, Ordering::SeqCst);
    }
}

/// Collects children that have ended and that nobody waits for, our own and those whose parents are
/// gone. What somebody waits for may stand before others: they are collected another time. Only
/// the first process of a PID namespace has any.
pub fn reap_all() {
    while std::process::id() == 1 {
        let awaited = awaited();
        match any_ended(libc::WNOHANG) {
            Ok(ended) if ended != 0 && !awaited.contains(&ended) => reap(ended),
            _ => return,
        }
    }
}

/// A child that has ended, and stays where it is: its number. Waits for one, but with WNOHANG: then
/// 0 where none has.
fn any_ended(how: libc::c_int) -> io::Result<u32> {
    // SAFETY: all bytes zero are a siginfo_t.
    let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
    loop {
        let how = libc::WEXITED | libc::WNOWAIT | how;
        // SAFETY: the kernel writes one siginfo_t where there is one.
        match unsafe { libc::waitid(libc::P_ALL, 0, &mut told, how) } {
            // SAFETY: of a child that has ended the kernel gives the number.
            0 => return Ok(unsafe { told.si_pid() }.cast_unsigned()),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

/// Collects a child that has ended, and that nobody waits for.
fn reap(number: u32) {
    let Ok(number) = libc::pid_t::try_from(number) else { return };
    // SAFETY: waitpid may be given no place for the status.
    unsafe { libc::waitpid(number, std::ptr::null_mut(), libc::WNOHANG) };
}
