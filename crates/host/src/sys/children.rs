//! Children: those that some thread of ours waits for, and orphans. The first process of a PID
//! namespace becomes the parent of orphans, and nobody else can reap them (pid_namespaces(7)):
//! until then `kill -0` finds them, and a program that waits for their end by it waits for ever.

use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static AWAITED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
/// Somebody counts what processes have done, and reaps those that have been counted.
static IS_COUNTED: AtomicBool = AtomicBool::new(false);

fn awaited() -> MutexGuard<'static, BTreeSet<u32>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `action` while no thread here starts a child: one that does waits until all copies of a
/// socket are closed by which the child reports whether it could start.
pub(super) fn between_starts<T>(action: impl FnOnce() -> T) -> T {
    let _awaited = awaited();
    action()
}

/// The number of a child that only its starter reaps, as long as this exists.
#[derive(Debug)]
pub(super) struct Claim(u32);

impl Claim {
    /// What `start` starts, and its number. Nobody can reap it before its number is known.
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

/// A child that the holder of this waits for.
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

    /// Waits for its end, and meanwhile reaps all that end and that nobody waits for.
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

/// As long as this exists, ended processes that nobody waits for are left to its holder: until they
/// are reaped `/proc` tells what they have done.
#[derive(Debug)]
pub struct Counting(());

impl Counting {
    /// Begins.
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Counting {
        IS_COUNTED.store(true, Ordering::SeqCst);
        Counting(())
    }

    /// A process has ended that is to be counted. One that another thread waits for may come first:
    /// then it is seen another time.
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

/// Reaps ended children that nobody waits for, our own and orphans. One that somebody waits for may
/// come before others: these are reaped another time. Only the first process of a PID namespace has
/// any.
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
            // SAFETY: the kernel gives the number of a child that has ended.
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
