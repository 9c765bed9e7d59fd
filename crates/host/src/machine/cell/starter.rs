//! One domain of Landlock for all commands of a cell. A domain is taken by a thread, for good, and
//! inherited by what it starts: commands that took one each could not look into each other's
//! /proc, nor reach each other by an abstract socket (landlock(7), "Ptrace restrictions").

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

use crate::sys::{self, Awaited};

/// A command, and who hears how it went.
type Order = (Command, SyncSender<io::Result<Awaited>>);

/// A thread under rules that starts commands. It ends when all that can ask it are gone.
#[derive(Clone, Debug)]
pub struct Starter(Sender<Order>);

impl Starter {
    /// One that is where this thread is, in its namespaces, and keeps to `rules` besides. Nobody
    /// waits until it does: if it can't, it starts nothing.
    pub fn new(rules: OwnedFd) -> io::Result<Starter> {
        let (orders, ordered) = mpsc::channel();
        let live = move || {
            let obeys = sys::obey(rules.as_fd());
            drop(rules);
            start_all(&ordered, &obeys);
        };
        std::thread::Builder::new().name("starter".into()).spawn(live)?;
        Ok(Starter(orders))
    }

    /// Starts `command`.
    pub fn start(&self, command: Command) -> io::Result<Awaited> {
        let gone = || io::Error::other("the thread that starts commands has ended");
        let (said, hears) = mpsc::sync_channel(1);
        self.0.send((command, said)).map_err(|_| gone())?;
        hears.recv().map_err(|_| gone())?
    }
}

/// Starts what is `ordered`, or says of each why this thread does not obey.
fn start_all(ordered: &Receiver<Order>, obeys: &io::Result<()>) {
    for (mut command, said) in ordered {
        let started = match obeys {
            Ok(()) => Awaited::start(&mut command),
            Err(why) => Err(io::Error::new(why.kind(), format!("Landlock: {why}"))),
        };
        // The caller waits for this.
        let _ = said.send(started);
    }
}
