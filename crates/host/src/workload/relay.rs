//! Work in turns: the lab of a duet says on our standard input when the work goes on and for how
//! long, and we say on our standard output when it is stopped.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufRead, Write, stdin, stdout};
use std::mem;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::ExitStatus;
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime};

use fsverdict_core::model::{Device, Turns};

use crate::machine::standstill;
use crate::probe::{DeviceReader, DeviceReading};
use crate::sys::{self, Awaited, ChangedRoot};
use crate::timing::threads::{self, Failed};

/// What the lab says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All trials of the duet are ready: begin.
    Begin,
    /// Have a turn, at this place in its cycle and of this length.
    Go {
        /// From 1.
        place: u32,
        /// Its length.
        turn_ns: u64,
    },
    /// All work is over: sync.
    Close,
    /// All have synced: go on to the next timed part, or to the end.
    Leave,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Begin => f.write_str("begin"),
            Order::Go { place, turn_ns } => write!(f, "go {place} {turn_ns}"),
            Order::Close => f.write_str("close"),
            Order::Leave => f.write_str("leave"),
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
            ["leave"] => Some(Order::Leave),
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
    /// What it has done is durable.
    Closed,
}

impl Answer {
    const ALL: [(Answer, &str); 4] = [
        (Answer::Ready, "in turns: ready"),
        (Answer::Still, "in turns: still"),
        (Answer::Over, "in turns: over"),
        (Answer::Closed, "in turns: closed"),
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

/// Work that is shared out has so many turns at least, if it can be divided into as many.
const SHARES: u64 = 20;

/// A turn of it has so many operations at most: some 20 to 200 ms of small files.
const SHARE_OPERATIONS: u64 = 1000;

/// In how many turns work of so many operations is shared out.
pub fn shares(operations: u64) -> u32 {
    let shares = SHARES.max(operations.div_ceil(SHARE_OPERATIONS)).min(operations.max(1));
    u32::try_from(shares).unwrap_or(u32::MAX)
}

/// The turns of one timed part of a trial's work.
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
    /// What the devices did from the end of one turn to the beginning of the next.
    fn between(&mut self, last: &DeviceReading, next: &DeviceReading) {
        self.turns.between_bytes += moved_bytes(last, next);
        *self.turns.between_busy_ns.get_or_insert_default() += next.since(last).totals.busy_ns;
    }

    /// A turn in that place of its cycle, which ends now.
    fn add(&mut self, place: u32, began: Instant, began_ms: u64, device_bytes: u64) {
        self.turns.lasted_ns.push(began.elapsed().as_nanos() as u64);
        self.turns.places.push(place);
        self.turns.device_bytes += device_bytes;
        self.spans_ms.push([began_ms, now_ms()]);
    }
}

impl Relay {
    /// Says that all is ready for a timed part, and waits until it is for the others.
    pub fn ready(&self) -> io::Result<()> {
        *self.0.borrow_mut() = Taken::default();
        agreed(Answer::Ready, Order::Begin)
    }

    /// Says that the timed part is closed, and waits until it is for the others: unsynced data
    /// would be written by itself while others go on to their next part.
    pub fn closed(&self) -> io::Result<()> {
        agreed(Answer::Closed, Order::Leave)
    }

    /// Starts a command by `start` with its first turn, and sees it through to its end. Then waits
    /// until all of the duet are there.
    pub fn see_through(
        &self,
        start: impl FnOnce() -> io::Result<Awaited>,
        devices: &[Device],
    ) -> io::Result<ExitStatus> {
        let mut start = Some(start);
        let mut reader = DeviceReader::open(Path::new("/"), devices).map_err(io::Error::other)?;
        let mut under_way: Option<(Awaited, DeviceReading)> = None;
        loop {
            let Order::Go { place, turn_ns } = heard()? else {
                return Err(unexpected(Order::Close));
            };
            let before = reader.read().map_err(io::Error::other)?;
            let (began, began_ms) = (Instant::now(), now_ms());
            let mut child = match under_way.take() {
                None => {
                    let start = start.take().ok_or_else(|| io::Error::other("it had begun"))?;
                    begun(start, &mut reader, &before)?
                }
                Some((child, last)) => {
                    self.0.borrow_mut().between(&last, &before);
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
            // A stopped process can't be ended in order.
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
            if let Some(last) = &last {
                self.0.borrow_mut().between(last, &before);
            }
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

/// What workers have gone over.
#[derive(Debug)]
pub struct GoneOver<Worker> {
    /// Those who did it.
    pub workers: Vec<Worker>,
    /// From the first one's start to the last one's end; in turns, all of these.
    pub work_ns: u64,
    /// Where they took turns with those of other trials.
    pub turns: Option<Turns>,
}

/// Why work was not gone over.
#[derive(Debug)]
pub enum Undone<Fault> {
    /// A thread could not be started, or failed.
    Failed(Failed<Fault>),
    /// The order for a turn did not arrive, or the directory could not be entered.
    Turns(io::Error),
}

impl<Fault> From<Failed<Fault>> for Undone<Fault> {
    fn from(failed: Failed<Fault>) -> Self {
        Undone::Failed(failed)
    }
}

impl<Fault> From<io::Error> for Undone<Fault> {
    fn from(error: io::Error) -> Self {
        Undone::Turns(error)
    }
}

/// A worker that counts its operations.
pub trait Counts {
    /// Operations so far.
    fn operations(&self) -> u64;
}

/// Makes all workers at once do `work` in `directory`, which no link leads out of: if they take
/// turns with those of other trials, their shares of one turn after the other, else those of the
/// only turn.
pub fn gone_over<Worker: Counts + Send, Fault: Send>(
    relay: Option<&Relay>,
    devices: &[Device],
    directory: BorrowedFd<'_>,
    workers: Vec<Worker>,
    turns: u32,
    work: impl Fn(&mut Worker, u32) -> Result<(), Fault> + Sync,
) -> Result<GoneOver<Worker>, Undone<Fault>> {
    let Some(relay) = relay else {
        let _inside = ChangedRoot::enter_if_allowed(directory).map_err(Undone::Turns)?;
        let (workers, work_ns) = threads::at_once(workers, |worker| work(worker, 0))?;
        return Ok(GoneOver { workers, work_ns, turns: None });
    };
    let count = |workers: &[Worker]| workers.iter().map(Counts::operations).sum::<u64>();
    let (mut workers, mut operations) = (workers, Vec::new());
    relay.share_out(turns, devices, |turn| {
        let before = count(&workers);
        let _inside = ChangedRoot::enter_if_allowed(directory).map_err(Undone::Turns)?;
        workers = threads::at_once(mem::take(&mut workers), |worker| work(worker, turn))?.0;
        operations.push(count(&workers) - before);
        Ok::<_, Undone<Fault>>(())
    })?;
    let turns = relay.taken().turns.of_whole_cycles(operations);
    Ok(GoneOver { workers, work_ns: turns.all_ns(), turns: Some(turns) })
}

/// Says that the work has ended, and waits until that of all has.
fn over() -> io::Result<()> {
    agreed(Answer::Over, Order::Close)
}

/// Says so, and waits for what follows once all have.
fn agreed(answer: Answer, follows: Order) -> io::Result<()> {
    answer.say()?;
    match heard()? {
        order if order == follows => Ok(()),
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

/// The devices' counters once nothing is under way: requests that the work has begun are part of
/// its turn. Writes by the file system itself are not waited for.
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
    start: impl FnOnce() -> io::Result<Awaited>,
    reader: &mut DeviceReader,
    before: &DeviceReading,
) -> io::Result<Awaited> {
    const PATIENCE: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(2);
    let child = start()?;
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
        let go = Order::Go { place: 2, turn_ns: 100_000_000 };
        for order in [Order::Begin, go, Order::Close, Order::Leave] {
            assert_eq!(order.to_string().parse::<Order>().unwrap(), order);
        }
        assert!("go 1".parse::<Order>().unwrap_err().to_string().contains("no order"));
        for (answer, text) in Answer::ALL {
            assert_eq!(Answer::of(text), Some(answer));
        }
        assert_eq!(Answer::of("mkfs"), None);
    }
}
