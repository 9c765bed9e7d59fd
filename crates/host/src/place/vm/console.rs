//! A machine's process from start to end, and its console.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fsverdict_core::model::Overdue;
use fsverdict_core::run::HostError;
use thiserror::Error;

use super::heard::Console;
use crate::place::trial_process::{Event, TICK};
use crate::{sys, tool};

/// As much of a console is kept: a guest may run what a stranger has written.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Runs the machine on our terminal to its end.
pub fn run_on_terminal(argv: &[String]) -> Result<(), HostError> {
    let mut command = tool::command(&argv[0])?;
    command.args(&argv[1..]).stdin(Stdio::inherit());
    sys::die_with_us(&mut command);
    match command.status()? {
        status if status.success() => Ok(()),
        status => Err(format!("the machine's process {}", tool::ended(status)).into()),
    }
}

/// Hears each whole line of a console, and that time passes; an error ends the machine.
type Watching<'a> = &'a mut dyn FnMut(Event) -> Result<(), HostError>;

/// How long a machine may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    /// Once it was heard of.
    pub later: Duration,
    /// Before that; `None` where its kernel may have no words for us.
    pub at_first: Option<Duration>,
}

/// Nothing was heard of a machine whose kernel has words for us.
#[derive(Debug, Error)]
#[error("it printed nothing for {} s", after.as_secs())]
pub struct Mute {
    after: Duration,
}

/// Runs the machine to its end. `log` gets its console, `watch` each whole line of it.
/// Fails when it can't be started, when the guest is not heard of for as long as `silence` allows
/// (with [`Mute`] where it never was), when `interrupted` is set, and as `watch` does; the process
/// is gone in every case.
pub fn run(
    argv: &[String],
    log: &Path,
    silence: Silence,
    interrupted: &AtomicBool,
    watch: Watching,
) -> Result<Console, HostError> {
    let mut command = tool::command(&argv[0])?;
    let errors = log.with_extension("stderr");
    command.args(&argv[1..]).stdout(Stdio::piped()).stderr(File::create(&errors)?);
    sys::bind_to_us(&mut command);
    let mut child = command.spawn()?;
    let mut console = Console::default();
    let (file, ear) = (File::create(log)?, Ear { silence, interrupted, watch });
    let heard = ear.listen(&mut child, file, &mut console);
    if heard.is_err() {
        sys::kill_group(child.id());
    }
    let status = child.wait()?;
    heard.map_err(|error| match error.is::<Overdue>() || error.is::<Mute>() {
        true => error,
        false => format!("{error}; {}", console.end()).into(),
    })?;
    // A User Mode Linux that panics ends by a signal (arch/um/kernel/um_arch.c, `panic_exit`).
    if status.success() || console.panic().is_some() {
        return Ok(console);
    }
    let said = std::fs::read_to_string(&errors).unwrap_or_default();
    Err(format!("the machine's process {}: {}", tool::ended(status), said.trim()).into())
}

impl Silence {
    /// Whether a machine may be silent for so long.
    fn check(self, was_heard: bool, silent: Duration) -> Result<(), HostError> {
        match self.at_first.filter(|_| !was_heard) {
            Some(after) if silent > after => Err(Mute { after }.into()),
            _ if was_heard && silent > self.later => Err(format!(
                "the guest hangs: not heard of for {} s (--step-timeout silence=TIME waits longer)",
                self.later.as_secs()
            )
            .into()),
            _ => Ok(()),
        }
    }
}

/// What listens to a machine.
struct Ear<'a> {
    silence: Silence,
    interrupted: &'a AtomicBool,
    watch: Watching<'a>,
}

impl Ear<'_> {
    fn listen(
        self,
        child: &mut Child,
        mut log: File,
        console: &mut Console,
    ) -> Result<(), HostError> {
        let pieces = pieces(child)?;
        let (mut last, mut ticked) = (Instant::now(), Instant::now());
        loop {
            match pieces.recv_timeout(TICK) {
                Ok(piece) => {
                    last = Instant::now();
                    let room = LOG_BYTES_MAX.saturating_sub(console.bytes());
                    log.write_all(&piece[..piece.len().min(room as usize)])?;
                    let lines = console.hear(&piece);
                    lines.iter().try_for_each(|line| (self.watch)(Event::Step(line)))?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            // A guest that never stops talking leaves no pause.
            if ticked.elapsed() >= TICK {
                (self.watch)(Event::Tick)?;
                ticked = Instant::now();
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err("interrupted".into());
            }
            self.silence.check(console.has_words(), last.elapsed())?;
        }
    }
}

/// Reads the console beside us; the end of the process closes it.
fn pieces(child: &mut Child) -> Result<Receiver<Vec<u8>>, HostError> {
    let mut stdout = child.stdout.take().ok_or("the machine has no output")?;
    let (sender, pieces) = mpsc::channel();
    std::thread::Builder::new().spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stdout.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    })?;
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::Timeouts;

    use super::*;

    #[test]
    fn a_silent_guest_is_ended_and_what_it_said_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("console.log");
        let mut said = Vec::new();
        let mut watch = |event: Event| {
            if let Event::Step(line) = event {
                said.push(line.to_string());
            }
            Ok(())
        };
        let mut boot = |line: &str, silence_ms: u64, stop: bool| {
            let argv = ["sh", "-c", line].map(String::from);
            let later = Duration::from_millis(silence_ms);
            let silence = Silence { later, at_first: None };
            run(&argv, &log, silence, &AtomicBool::new(stop), &mut watch)
        };
        // As long as a shell may take to say two words, on a machine that is busy.
        let error = boot("echo one; printf two; sleep 600", 5000, false).unwrap_err().to_string();
        assert_eq!(
            error,
            "the guest hangs: not heard of for 5 s (--step-timeout \
            silence=TIME waits longer); its console ends: one | two"
        );
        let error = boot("sleep 600", 600_000, true).unwrap_err().to_string();
        assert!(error.starts_with("interrupted"), "{error}");
        let error = boot("echo no such disk >&2; exit 1", 600_000, false).unwrap_err().to_string();
        assert_eq!(error, "the machine's process failed with exit status 1: no such disk");
        boot("echo three", 600_000, false).unwrap();
        assert_eq!(said, ["one", "three"]);
        assert_eq!(std::fs::read_to_string(log).unwrap(), "three\n");
    }

    #[test]
    fn a_guest_of_which_nothing_was_ever_heard_is_told_from_one_that_hangs() {
        let second = Duration::from_secs(1);
        let talks = Silence { later: 9 * second, at_first: Some(5 * second) };
        let mute = talks.check(false, 6 * second).unwrap_err();
        assert!(mute.is::<Mute>());
        assert_eq!(mute.to_string(), "it printed nothing for 5 s");
        assert!(talks.check(false, 5 * second).is_ok() && talks.check(true, 6 * second).is_ok());
        assert!(talks.check(true, 10 * second).unwrap_err().to_string().contains("hangs"));
        let may_be_mute = Silence { at_first: None, ..talks };
        assert!(may_be_mute.check(false, 3600 * second).is_ok());
        let folder = tempfile::tempdir().unwrap();
        let (log, never) = (folder.path().join("console.log"), AtomicBool::new(false));
        let argv = ["sh", "-c", "sleep 600"].map(String::from);
        let silence = Silence { at_first: Some(Duration::ZERO), ..talks };
        let error = run(&argv, &log, silence, &never, &mut |_| Ok(())).unwrap_err();
        assert!(error.is::<Mute>(), "{error}");
    }

    #[test]
    fn a_guest_that_never_stops_talking_is_ended_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let timeouts = Timeouts::default().within(None);
        let hour = Duration::from_secs(3600);
        let mut ticks = 0;
        let mut watch = |_: Event| {
            ticks += 1;
            Ok(timeouts.check_time("work", hour, ticks * hour)?)
        };
        let argv = ["sh", "-c", "yes no line ends here | tr -d '\\n'"].map(String::from);
        let (log, never) = (folder.path().join("console.log"), AtomicBool::new(false));
        let silence = Silence { later: hour, at_first: None };
        let error = run(&argv, &log, silence, &never, &mut watch).unwrap_err();
        assert_eq!(error.downcast_ref::<Overdue>().unwrap().step, "work");
    }
}
