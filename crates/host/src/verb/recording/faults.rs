//! Page faults of a command and all that it starts, while it is recorded: they bring pages of
//! mapped files into its memory, which no call shows.
//!
//! The kernel's tracepoints tell which page it was and whether it was to be written
//! (arch/x86/mm/fault.c); they need root. Without them, perf's own event tells only the page; users
//! may see it for their own programs if `kernel.perf_event_paranoid` is at most 2.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fsverdict_core::recording::{Fault, Faults, Watch};
use fsverdict_core::trace::{Field, Format};

use super::nameless::nameless;
use crate::machine::tracing;
use crate::sys::{self, Counted, Events, Told};

/// Faults in a program, and in the kernel for it, on the memory that a call reads or writes.
const TRACEPOINTS: [&str; 2] = ["exceptions/page_fault_user", "exceptions/page_fault_kernel"];

/// A page fault is one of writing: arch/x86/include/asm/trap_pf.h, `X86_PF_WRITE`.
const WRITE: u64 = 1 << 1;

/// Pages of a processor's ring: as many as root may have, all of them together at most so many
/// bytes; and as many as everybody may have by default (`kernel.perf_event_mlock_kb`).
const RING_PAGES_MOST: usize = 1024;
const RINGS_BYTES_MOST: usize = 64 << 20;
const RING_PAGES_LEAST: usize = 128;

/// How often rings are emptied that are not half full.
const PATIENCE_MS: u16 = 100;

/// Time, address, thread, and whether it was to write: as they are kept until they are asked for.
const KEPT_BYTES: usize = 8 + 8 + 4 + 1;

/// Where a tracepoint has what counts.
#[derive(Clone, Copy, Debug)]
struct Fields {
    address: Field,
    error: Field,
}

/// How page faults are seen here.
#[derive(Clone, Debug)]
struct Way {
    counted: Vec<Counted>,
    fields: Option<Fields>,
}

/// All ways, the best first.
fn ways() -> Vec<Way> {
    let plain = |kernel| Way { counted: vec![Counted::PageFaults { kernel }], fields: None };
    by_tracepoints().into_iter().chain([plain(true), plain(false)]).collect()
}

fn by_tracepoints() -> Option<Way> {
    let formats = TRACEPOINTS.map(|event| Format::parse(&tracing::format_of(event).ok()?).ok());
    let [Some(user), Some(kernel)] = formats else { return None };
    // Both are of one class of events (arch/x86/include/asm/trace/exceptions.h).
    let (address, error) = (user.field("address").ok()?, user.field("error_code").ok()?);
    let counted = [user, kernel].map(|format| Counted::Tracepoint(format.id.into()));
    Some(Way { counted: counted.into(), fields: Some(Fields { address, error }) })
}

/// Sees the faults of what the thread starts that has made it.
pub struct Seen {
    /// What is known of them.
    pub faults: Faults,
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<io::Result<Kept>>>,
}

/// What was seen.
struct Kept {
    /// A file for each processor, in the order of time.
    files: Vec<File>,
    lost: u64,
}

impl Seen {
    /// From now on; what is seen is kept in `folder`. If nothing can be seen or kept, nothing is.
    pub fn begin(folder: &Path) -> Seen {
        let over = Arc::new(AtomicBool::new(false));
        let begun = ways().into_iter().find_map(|way| Some((rings(&way)?, way)));
        let begun = begun.and_then(|(rings, way)| {
            let files =
                (0..rings.len()).map(|number| nameless(folder, &format!("{number}.faults")));
            let files = files.collect::<io::Result<Vec<File>>>().ok()?;
            let (fields, until) = (way.fields, Arc::clone(&over));
            let reader = std::thread::Builder::new().name("page faults".into());
            let reader = reader.spawn(move || keep(rings, files, fields, &until)).ok()?;
            Some((if fields.is_some() { Faults::Told } else { Faults::Seen }, reader))
        });
        let (faults, reader) = begun.map_or((Faults::Unseen, None), |it| (it.0, Some(it.1)));
        Seen { faults, over, reader }
    }

    /// Stops. Returns all that was seen, in the order of time, by the time of day; and how many
    /// faults there was no room for.
    pub fn end(mut self) -> io::Result<(Series, u64)> {
        self.over.store(true, Ordering::Relaxed);
        let Some(reader) = self.reader.take() else { return Ok((Series::default(), 0)) };
        let Kept { files, lost } =
            reader.join().map_err(|_| io::Error::other("the reader of page faults has died"))??;
        let ahead_ns = sys::realtime_ahead_ns();
        Ok((Series::of(files, ahead_ns, self.faults == Faults::Told)?, lost))
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The events of all processors; `None` where they can't be had in this way.
fn rings(way: &Way) -> Option<Vec<Events>> {
    let processors = processors();
    let each = RINGS_BYTES_MOST / processors.len().max(1) / sys::page_bytes() as usize;
    // The largest power of two in it.
    let most = 1_usize << each.max(1).ilog2();
    let of = |pages: usize| {
        let open = |processor: &i32| Events::open(&way.counted, *processor, pages).ok();
        processors.iter().map(open).collect::<Option<Vec<Events>>>()
    };
    let pages = [RING_PAGES_MOST.min(most).max(RING_PAGES_LEAST), RING_PAGES_LEAST];
    pages.into_iter().find_map(of).filter(|rings| !rings.is_empty())
}

/// The processors that run, by their numbers: `0-3,8`.
fn processors() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Keeps all faults that the rings tell of until it is over. Those of a file that has no room for
/// more are lost, and the command goes on.
fn keep(
    mut rings: Vec<Events>,
    files: Vec<File>,
    fields: Option<Fields>,
    over: &AtomicBool,
) -> io::Result<Kept> {
    let mut files: Vec<BufWriter<File>> = files.into_iter().map(BufWriter::new).collect();
    // Whether a file has had no room: half a fault may stand at its end.
    let mut full = vec![false; files.len()];
    let mut lost = 0;
    loop {
        // Looked at before the rings are: what comes before the end is taken out.
        let is_over = over.load(Ordering::Relaxed);
        for ((ring, file), full) in rings.iter_mut().zip(&mut files).zip(&mut full) {
            ring.take(|told| match told {
                Told::Lost(count) => lost += count,
                Told::Sample(sample) => {
                    *full = *full || file.write_all(&kept(&sample, fields)).is_err();
                    lost += u64::from(*full);
                }
            });
        }
        if is_over {
            break;
        }
        let waits: Vec<_> = rings.iter().map(Events::to_wait_for).collect();
        sys::wait_for_any(&waits, PATIENCE_MS)?;
    }
    for file in &mut files {
        // At least what it still holds.
        lost += u64::from(file.flush().is_err());
    }
    Ok(Kept { files: files.into_iter().map(|file| file.into_parts().0).collect(), lost })
}

fn kept(sample: &sys::Sample, fields: Option<Fields>) -> [u8; KEPT_BYTES] {
    let of = |field: Field| field.number(sample.raw).unwrap_or(0);
    let (address, error) = fields.map_or((sample.address, 0), |it| (of(it.address), of(it.error)));
    let mut kept = [0; KEPT_BYTES];
    kept[..8].copy_from_slice(&sample.at_ns.to_ne_bytes());
    kept[8..16].copy_from_slice(&address.to_ne_bytes());
    kept[16..20].copy_from_slice(&sample.thread.to_ne_bytes());
    kept[20] = u8::from(error & WRITE != 0);
    kept
}

/// Faults in the order of time.
#[derive(Default)]
pub struct Series {
    files: Vec<BufReader<File>>,
    /// The next one of each file.
    next: BinaryHeap<Reverse<(u64, usize, [u8; KEPT_BYTES])>>,
    ahead_ns: i64,
    tells_writes: bool,
}

impl Series {
    fn of(mut files: Vec<File>, ahead_ns: i64, tells_writes: bool) -> io::Result<Series> {
        files.iter_mut().try_for_each(io::Seek::rewind)?;
        let files = files.into_iter().map(BufReader::new).collect();
        let mut series = Series { files, next: BinaryHeap::new(), ahead_ns, tells_writes };
        (0..series.files.len()).try_for_each(|number| series.advance(number))?;
        Ok(series)
    }

    fn advance(&mut self, number: usize) -> io::Result<()> {
        let mut kept = [0; KEPT_BYTES];
        match self.files[number].read_exact(&mut kept) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            done => done?,
        }
        let mut at_ns = [0; 8];
        at_ns.copy_from_slice(&kept[..8]);
        self.next.push(Reverse((u64::from_ne_bytes(at_ns), number, kept)));
        Ok(())
    }

    /// Tells the watch of all before a time.
    pub fn told(&mut self, time_ns: u64, watch: &mut Watch) -> io::Result<()> {
        while let Some(fault) = self.before(time_ns)? {
            watch.fault(&fault);
        }
        Ok(())
    }

    /// The next one before a time, if there is one.
    fn before(&mut self, time_ns: u64) -> io::Result<Option<Fault>> {
        let Some(Reverse((at_ns, ..))) = self.next.peek() else { return Ok(None) };
        let at_ns = at_ns.saturating_add_signed(self.ahead_ns);
        if at_ns >= time_ns {
            return Ok(None);
        }
        let Some(Reverse((_, number, kept))) = self.next.pop() else { return Ok(None) };
        self.advance(number)?;
        let (mut address, mut thread) = ([0; 8], [0; 4]);
        address.copy_from_slice(&kept[8..16]);
        thread.copy_from_slice(&kept[16..20]);
        let writes = self.tells_writes.then_some(kept[20] == 1);
        let (thread, address) = (u32::from_ne_bytes(thread), u64::from_ne_bytes(address));
        Ok(Some(Fault { thread, at_ns, address, writes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool;

    #[test]
    fn faults_of_several_processors_are_one_series() {
        let fault = |at_ns: u64, address: u64, writes: bool| {
            let sample = sys::Sample { thread: 7, at_ns, address, raw: &[] };
            let mut kept = kept(&sample, None);
            kept[20] = writes.into();
            kept
        };
        let file = |faults: &[[u8; KEPT_BYTES]]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&faults.concat()).unwrap();
            file
        };
        let files = vec![
            file(&[fault(10, 1, true), fault(30, 3, false)]),
            file(&[]),
            file(&[fault(20, 2, false), fault(40, 4, true)]),
        ];
        let mut series = Series::of(files, 100, true).unwrap();
        let mut until = |time_ns| {
            let next = std::iter::from_fn(|| series.before(time_ns).unwrap());
            next.map(|it| (it.at_ns, it.address, it.writes)).collect::<Vec<_>>()
        };
        assert_eq!(until(130), [(110, 1, Some(true)), (120, 2, Some(false))]);
        assert_eq!(until(130), []);
        assert_eq!(until(u64::MAX), [(130, 3, Some(false)), (140, 4, Some(true))]);
    }

    /// Both tracepoints have one ring.
    #[test]
    fn events_that_one_may_count_are_counted_together() {
        let Some(way) = by_tracepoints() else { return };
        let alone = Way { counted: way.counted[..1].to_vec(), ..way.clone() };
        assert_eq!(rings(&way).is_some(), rings(&alone).is_some());
    }

    #[test]
    fn the_faults_of_what_is_started_are_seen_where_that_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let seen = Seen::begin(folder.path());
        let faults = seen.faults;
        let mut child = tool::command("true").unwrap().spawn().unwrap();
        child.wait().unwrap();
        let (mut series, lost) = seen.end().unwrap();
        let all = std::iter::from_fn(|| series.before(u64::MAX).unwrap());
        let its = all.filter(|fault| fault.thread == child.id()).count();
        assert_eq!(its > 0, faults != Faults::Unseen);
        assert_eq!(lost, 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
