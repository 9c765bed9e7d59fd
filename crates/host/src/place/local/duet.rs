//! The trials of a duet on this machine: their processes at once, and the turns of their work.
//!
//! One after the other they reach the start of their work. Then one at a time runs while the others
//! are stopped, until all work has ended. One after the other they sync; once all have, one after
//! the other they go on to their next timed part, or to their end.

use std::io::{BufRead, BufReader, PipeWriter, Write, pipe};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};

use fsverdict_core::model::{Overdue, Record, TURN, Trial};
use fsverdict_core::run::{Cycles, HostError};

use super::{Lab, Started, succeeded};
use crate::place::trial_process::{self, Event, Patience, TICK};
use crate::sys;
use crate::workload::relay::{Answer, Order};

/// One trial of the duet.
struct Player<'a> {
    trial: &'a Trial,
    started: Started,
    orders: PipeWriter,
    patience: Patience<'a>,
    standing: Standing,
}

/// How far a trial has come, as far as it has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is on its way to its next timed part.
    UnderWay,
    /// It waits before one.
    Ready,
    /// It waits for its next turn.
    AtWork,
    /// Its timed part has ended.
    Over,
    /// It is durable.
    Closed,
    /// Its process has ended.
    Gone,
}

impl Standing {
    /// The state of a player that answers so.
    fn after(answer: Answer) -> Standing {
        match answer {
            Answer::Ready => Standing::Ready,
            Answer::Still => Standing::AtWork,
            Answer::Over => Standing::Over,
            Answer::Closed => Standing::Closed,
        }
    }
}

impl Player<'_> {
    /// A player that can't be told would wait for its order for ever: it is killed. The end of any
    /// player is noticed.
    fn tell(&mut self, order: Order) {
        // In one call: half an order is none.
        if self.orders.write_all(format!("{order}\n").as_bytes()).is_err() {
            // Nobody has waited for it yet: the number is its own.
            sys::kill_group(self.started.child.id());
        }
    }
}

/// What trials print: the player, and its line; `None` at its end.
type Said = (usize, Option<String>);

/// The trials of a duet that could be started, and what is heard of them.
struct Duet<'a> {
    /// By their places among the trials; none where one could not be started.
    players: Vec<Option<Player<'a>>>,
    sender: Sender<Said>,
    said: Receiver<Said>,
}

impl Duet<'_> {
    /// Tells all that are ready to begin.
    fn begin(&mut self) {
        let ready = self.players.iter_mut().flatten();
        for player in ready.filter(|player| player.standing == Standing::Ready) {
            player.tell(Order::Begin);
            player.standing = Standing::AtWork;
        }
    }

    fn anybody(&self, standing: Standing) -> bool {
        self.players.iter().flatten().any(|player| player.standing == standing)
    }
}

/// Why all of a duet ends at once.
struct Ended {
    /// The player at fault, and what to say of it.
    by: Option<(usize, Overdue)>,
}

impl Lab<'_> {
    /// Runs the trials of a duet: for each its record, or why it has none.
    pub(super) fn duet(&mut self, trials: &[Trial]) -> Vec<Result<Record, HostError>> {
        let (sender, said) = mpsc::channel();
        let mut duet = Duet { players: Vec::new(), sender, said };
        let mut failed = Vec::new();
        let mut ended = Ok(());
        for trial in trials {
            let player = match &ended {
                Ok(()) => self.admit(&duet, trial).map(Some),
                Err(_) => Ok(None),
            };
            failed.push(player.as_ref().err().map(ToString::to_string));
            duet.players.push(player.unwrap_or_default());
            ended = ended.and_then(|()| self.get_ready(&mut duet, trials.len()));
        }
        let ended = ended.and_then(|()| self.play(&mut duet, trials));
        let why = ended.err().map(|ended| self.break_off(&mut duet, ended));
        let mut records = Vec::new();
        for (place, (player, failed)) in duet.players.into_iter().zip(failed).enumerate() {
            records.push(match (player, failed) {
                (Some(player), _) => self.record(player, why.as_ref().map(|why| why.of(place))),
                (None, Some(failed)) => Err(failed.into()),
                (None, None) => {
                    let why = why.as_ref();
                    Err(why.map_or_else(|| INTERRUPTED.into(), |why| why.of(place)))
                }
            });
        }
        records
    }

    /// Starts the process of `trial`.
    fn admit<'a>(&mut self, duet: &Duet, trial: &'a Trial) -> Result<Player<'a>, HostError> {
        let (stdin, orders) = pipe()?;
        let mut started = self.start(trial, stdin)?;
        let stdout = started.child.stdout.take().ok_or("the trial has no output")?;
        let (sender, place) = (duet.sender.clone(), duet.players.len());
        let listener = std::thread::Builder::new().spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok).map(Some);
            for line in lines.chain([None]) {
                if sender.send((place, line)).is_err() {
                    return;
                }
            }
        });
        if let Err(error) = listener {
            trial_process::end(&mut started.child)?;
            return Err(error.into());
        }
        let patience = Patience::new(&trial.timeouts);
        Ok(Player { trial, started, orders, patience, standing: Standing::UnderWay })
    }

    /// Waits until the last that was started is ready for its work, or has ended.
    fn get_ready(&mut self, duet: &mut Duet, all: usize) -> Result<(), Ended> {
        let place = duet.players.len() - 1;
        assert!(place < all, "no more players than trials");
        if duet.players[place].is_some() {
            self.hear(duet, place)?;
        }
        // The next one's is in the same place.
        duet.players[place].iter_mut().for_each(|player| player.started.granted = None);
        Ok(())
    }

    /// Waits until the trial in that place answers, or has ended.
    fn hear(&mut self, duet: &mut Duet, place: usize) -> Result<(), Ended> {
        loop {
            let said = duet.said.recv_timeout(TICK);
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Ended { by: None });
            }
            match said {
                Ok((whose, line)) => {
                    let Some(player) = duet.players.get_mut(whose).and_then(Option::as_mut) else {
                        continue;
                    };
                    let answer = line.as_deref().and_then(Answer::of);
                    match (&line, answer) {
                        (None, _) => player.standing = Standing::Gone,
                        (_, Some(answer)) => player.standing = Standing::after(answer),
                        (Some(step), None) => {
                            player.patience.step(step);
                            // Threads that do not say whose they are belong to the only player that
                            // goes on.
                            if whose == place {
                                player.started.cgroups.bring_in_threads();
                            }
                            (self.watch)(Event::Step(step));
                        }
                    }
                    if whose == place && (line.is_none() || answer.is_some()) {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => (self.watch)(Event::Tick),
                Err(RecvTimeoutError::Disconnected) => return Err(Ended { by: None }),
            }
            let patience = duet.players[place].as_ref().map(|player| player.patience.check());
            if let Some(Err(overdue)) = patience {
                return Err(Ended { by: Some((place, overdue)) });
            }
        }
    }

    /// Has them go through one timed part after the other, until all have ended.
    fn play(&mut self, duet: &mut Duet, trials: &[Trial]) -> Result<(), Ended> {
        let mut cycles = Cycles::new(&trials[0], trials.len());
        while duet.anybody(Standing::Ready) {
            duet.begin();
            self.take_turns(duet, &mut cycles)?;
            let order = cycles.next().unwrap_or_default();
            for &who in &order {
                self.have(duet, who, Standing::Over, Order::Close)?;
            }
            for &who in &order {
                self.have(duet, who, Standing::Closed, Order::Leave)?;
            }
        }
        Ok(())
    }

    /// Makes them take turns until the work of all has ended. A trial whose file system has nothing
    /// to do in this part is ready for the next one meanwhile, and waits.
    fn take_turns(&mut self, duet: &mut Duet, cycles: &mut Cycles) -> Result<(), Ended> {
        let turn_ns = TURN.as_nanos() as u64;
        while duet.anybody(Standing::AtWork) {
            for (place, who) in (1..).zip(cycles.next().unwrap_or_default()) {
                self.have(duet, who, Standing::AtWork, Order::Go { place, turn_ns })?;
            }
        }
        Ok(())
    }

    /// Has the trial in that place do what is ordered, if it stands so, and waits until it has.
    fn have(
        &mut self,
        duet: &mut Duet,
        who: usize,
        standing: Standing,
        order: Order,
    ) -> Result<(), Ended> {
        match duet.players[who].as_mut().filter(|player| player.standing == standing) {
            Some(player) => player.tell(order),
            None => return Ok(()),
        }
        self.hear(duet, who)
    }

    /// Ends all that are there; returns what to say of each.
    fn break_off(&mut self, duet: &mut Duet, ended: Ended) -> Why {
        let late = ended.by.as_ref().map(|(place, _)| *place);
        let mut stuck = false;
        for (_, player) in duet.players.iter_mut().enumerate().filter(|(it, _)| Some(*it) != late) {
            let child = player.as_mut().map(|player| &mut player.started.child);
            stuck |= child.is_some_and(|child| !trial_process::end(child).unwrap_or(false));
        }
        let Some((place, mut overdue)) = ended.by else { return Why { overdue: None } };
        if stuck {
            overdue.left.push("the kernel does not let go of the duet's processes".into());
        }
        if let Some(player) = &mut duet.players[place] {
            let cut = self.cut_short(&mut player.started.child, player.trial, overdue.clone());
            overdue = cut.unwrap_or(overdue);
        }
        Why { overdue: Some((place, overdue)) }
    }

    /// The record of a trial whose process has ended, by itself or by us.
    fn record(&mut self, mut player: Player, cut: Option<HostError>) -> Result<Record, HostError> {
        let ended = match cut {
            Some(error) => Err(error),
            None => succeeded(&mut player.started.child),
        };
        self.finish(player.trial, player.started, ended)
    }
}

/// What is said of a run that was interrupted.
const INTERRUPTED: &str = "interrupted";

/// Why all of a duet was ended.
struct Why {
    overdue: Option<(usize, Overdue)>,
}

impl Why {
    /// What is said of the trial in that place.
    fn of(&self, place: usize) -> HostError {
        match &self.overdue {
            Some((whose, overdue)) if *whose == place => overdue.clone().into(),
            Some((_, overdue)) => {
                format!("another trial of its duet took too long: {overdue}").into()
            }
            None => INTERRUPTED.into(),
        }
    }
}
