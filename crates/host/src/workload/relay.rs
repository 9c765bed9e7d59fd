//! Work in turns: the lab of a duet says on our standard input when the work goes on and for how
//! long, and hears on our standard output when it stands still.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufRead, Write, stdin, stdout};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime};

use fsverdict_core::model::{Device, Turns};

use crate::machine::standstill;
use crate::probe::{DeviceReader, DeviceReading};
use crate::sys::{self, Awaited};

/// What the lab says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All trials of the duet are ready: begin.
    Begin,
    /// Have a turn: of that place in its cycle, and so long.
    Go {
        /// From 1.
        place: u32,
        /// Its length.
        turn_ns: u64,
    },
    /// All work is over: sync, and be done.
    Close,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Begin => f.write_str("begin"),
            Order::Go { place, turn_ns } => write!(f, "go {place} {turn_ns}"),
            Order::Close => f.write_str("close"),
        }
    }
}

impl FromStr for Order {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Order> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let order = match words.as_slice() {
            ["begin"] => Some(Order::Begin),
            ["close"] => Some(Order::Close),
            ["go", place, turn_ns] => {
                let both = place.parse().ok().zip(turn_ns.parse().ok());
                both.map(|(place, turn_ns)| Order::Go { place, turn_ns })
            }
            _ => None,
        };
        order.ok_or_else(|| io::Error::other(format!("{text:?} is no order of a duet's lab")))
    }
}

/// What the trial answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All is made that goes before the work.
    Ready,
    /// The turn is over, and the work stands still.
    Still,
    /// The work has ended.
    Over,
}

impl Answer {
    const ALL: [(Answer, &str); 3] = [
        (Answer::Ready, "in turns: ready"),
        (Answer::Still, "in turns: still"),
        (Answer::Over, "in turns: over"),
    ];

    /// The one that a line of a trial's output is; `None` where it is a step.
    pub fn of(line: &str) -> Option<Answer> {
        Answer::ALL.iter().find(|(_, text)| *text == line).map(|(answer, _)| *answer)
    }

    fn say(self) -> io::Result<()> {
        let text = Answer::ALL.iter().find(|(answer, _)| *answer == self).map_or("", |it| it.1);
        let mut out = stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }
}

/// The turns of one trial's work.
#[derive(Debug, Default)]
pub struct Relay(RefCell<Taken>);

/// The turns so far.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// Without operations, which the tool tells.
    pub turns: Turns,
    /// When each began and ended, in milliseconds since 1970.
    pub spans_ms: Vec<[u64; 2]>,
}

impl Taken {
    /// A turn in that place of its cycle, which ends now.
    fn add(&mut self, place: u32, began: Instant, began_ms: u64, device_bytes: u64) {
        self.turns.lasted_ns.push(began.elapsed().as_nanos() as u64);
        self.turns.places.push(place);
        self.turns.device_bytes += device_bytes;
        self.spans_ms.push([began_ms, now_ms()]);
    }
}

impl Relay {
    /// Says that all is ready, and waits until it is for the others.
    pub fn ready(&self) -> io::Result<()> {
        Answer::Ready.say()?;
        match heard()? {
            Order::Begin => Ok(()),
            order => Err(unexpected(order)),
        }
    }

    /// Starts `command` with its first turn, and sees it through to its end. Then waits until all
    /// of the duet are there.
    pub fn see_through(&self, command: &mut Command, devices: &[Device]) -> io::Result<ExitStatus> {
        let mut reader = DeviceReader::open(Path::new("/"), devices).map_err(io::Error::other)?;
        let mut under_way: Option<(Awaited, DeviceReading)> = None;
        loop {
            let Order::Go { place, turn_ns } = heard()? else {
                return Err(unexpected(Order::Close));
            };
            let before = reader.read().map_err(io::Error::other)?;
            let (began, began_ms) = (Instant::now(), now_ms());
            let mut child = match under_way.take() {
                None => begun(command, &mut reader, &before)?,
                Some((child, last)) => {
                    self.0.borrow_mut().turns.between_bytes += moved_bytes(&last, &before);
                    standstill::go_on(child.id());
                    child
                }
            };
            std::thread::sleep(Duration::from_nanos(turn_ns));
            sys::reap_all();
            let ended = child.try_wait()?;
            let stopped = match ended {
                None => standstill::stand_still(child.id()),
                Some(_) => Ok(()),
            };
            // Who stands still can't be ended in order.
            let after = stopped.and_then(|()| at_rest(&mut reader));
            let after = after.inspect_err(|_| standstill::go_on(child.id()))?;
            self.0.borrow_mut().add(place, began, began_ms, moved_bytes(&before, &after));
            let Some(status) = ended else {
                Answer::Still.say()?;
                under_way = Some((child, after));
                continue;
            };
            over()?;
            return Ok(status);
        }
    }

    /// Has work that this process does by itself take its turns: a share of it in each, which is
    /// given its number, from 0. Nothing of it is under way between them, and trials with as many
    /// shares end with the same cycle. Then waits until all of the duet are there.
    pub fn share_out<Fault: From<io::Error>>(
        &self,
        shares: u32,
        devices: &[Device],
        mut share: impl FnMut(u32) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut reader = DeviceReader::open(Path::new("/"), devices).map_err(io::Error::other)?;
        let mut last: Option<DeviceReading> = None;
        for number in 0..shares {
            let place = match heard()? {
                Order::Go { place, .. } => place,
                order => return Err(unexpected(order).into()),
            };
            let before = reader.read().map_err(io::Error::other)?;
            let between_bytes = last.map_or(0, |last| moved_bytes(&last, &before));
            self.0.borrow_mut().turns.between_bytes += between_bytes;
            let (began, began_ms) = (Instant::now(), now_ms());
            share(number)?;
            let after = at_rest(&mut reader)?;
            self.0.borrow_mut().add(place, began, began_ms, moved_bytes(&before, &after));
            if number + 1 < shares {
                Answer::Still.say()?;
            }
            last = Some(after);
        }
        Ok(over()?)
    }

    /// The turns that were taken.
    pub fn taken(&self) -> Taken {
        self.0.borrow().clone()
    }
}

/// Says that the work has ended, and waits until that of all has.
fn over() -> io::Result<()> {
    Answer::Over.say()?;
    match heard()? {
        Order::Close => Ok(()),
        order => Err(unexpected(order)),
    }
}

/// The lab's next order.
fn heard() -> io::Result<Order> {
    let mut line = String::new();
    match stdin().lock().read_line(&mut line)? {
        0 => Err(io::Error::other("the lab of the duet is gone")),
        _ => line.parse(),
    }
}

fn unexpected(order: Order) -> io::Error {
    io::Error::other(format!("the lab of the duet says {order} where nothing follows"))
}

/// What the devices show when nothing is under way at them: requests that the work has begun are
/// part of its turn. What a file system writes by itself is not waited for.
fn at_rest(reader: &mut DeviceReader) -> io::Result<DeviceReading> {
    const PATIENCE: Duration = Duration::from_millis(20);
    const PAUSE: Duration = Duration::from_micros(200);
    let began = Instant::now();
    loop {
        let reading = reader.read().map_err(io::Error::other)?;
        if reading.in_flight == 0 || began.elapsed() > PATIENCE {
            return Ok(reading);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Starts the work, and waits until its device sees something of it: a tool that is stopped again
/// and again while it starts takes many turns for that. Reads from memory are not waited for.
fn begun(
    command: &mut Command,
    reader: &mut DeviceReader,
    before: &DeviceReading,
) -> io::Result<Awaited> {
    const PATIENCE: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(2);
    let child = Awaited::start(command)?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let now = reader.read().map_err(io::Error::other)?;
        if moved_bytes(before, &now) > 0 {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(child)
}

fn moved_bytes(first: &DeviceReading, last: &DeviceReading) -> u64 {
    let moved = last.since(first).totals;
    moved.read_bytes + moved.write_bytes
}

/// By the clock that fio's logs have with `log_unix_epoch`.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_answers_are_understood() {
        for order in [Order::Begin, Order::Close, Order::Go { place: 2, turn_ns: 100_000_000 }] {
            assert_eq!(order.to_string().parse::<Order>().unwrap(), order);
        }
        assert!("go 1".parse::<Order>().unwrap_err().to_string().contains("no order"));
        for (answer, text) in Answer::ALL {
            assert_eq!(Answer::of(text), Some(answer));
        }
        assert_eq!(Answer::of("mkfs"), None);
    }
}
