//! Requests of io_submit(2): an application hands over several at once, and the kernel does them
//! asynchronously. strace shows each of them, but not its result: io_getevents(2) tells that by the
//! request's address, which strace does not show. They become calls in the order in which they were
//! handed over, so that a replay makes one after the other.

use super::calls::{Result, WriteFlags, shown_bytes};
use super::line::{Ended, elements, number};
use super::{Translated, Watch, why};
use crate::model::{Action, Gave};

impl Watch {
    /// Enters the requests that the kernel has taken: the first of those that were handed over.
    pub(super) fn submitted(&mut self, thread: u32, call: &Ended) -> Result<Option<Translated>> {
        let Gave::Value(taken) = call.gave()? else { return Err(why::UNKNOWN) };
        let mut shown = elements(call.argument(2)).unwrap_or_default();
        shown.retain(|request| request.starts_with('{'));
        shown.truncate(usize::try_from(taken).unwrap_or(usize::MAX));
        let beyond = taken - shown.len() as u64;
        if beyond > 0 {
            self.leave_out_several(why::REQUESTS, beyond);
        }
        for request in shown {
            match self.request(thread, request) {
                Ok(several) => several.into_iter().for_each(|translated| {
                    self.one_by_one += 1;
                    self.enter(thread, call.times_ns(), translated);
                }),
                Err(what) => self.leave_out(what),
            }
        }
        Ok(None)
    }

    /// A request as calls: linux/aio_abi.h. They are two where it writes and syncs.
    fn request(&self, thread: u32, request: &str) -> Result<Vec<Translated>> {
        let fields = elements(request).unwrap_or_default();
        let field = |name: &str| {
            let mut its = fields.iter().filter_map(|it| it.strip_prefix(name)?.strip_prefix('='));
            its.next().ok_or(why::UNKNOWN)
        };
        let count = |name: &str| number(field(name)?).ok_or(why::UNKNOWN);
        let vector = || shown_bytes(field("aio_buf")?).ok_or(why::UNKNOWN);
        let handle = self.handle(thread, field("aio_fildes")?)?;
        let place = || count("aio_offset");
        let (action, changes) = match field("aio_lio_opcode")?.trim_start_matches("IOCB_CMD_") {
            "PREAD" => {
                (Action::Pread { handle, bytes: count("aio_nbytes")?, place: place()? }, false)
            }
            "PREADV" => (Action::Pread { handle, bytes: vector()?, place: place()? }, false),
            "PWRITE" => {
                (Action::Pwrite { handle, bytes: count("aio_nbytes")?, place: place()? }, true)
            }
            "PWRITEV" => (Action::Pwrite { handle, bytes: vector()?, place: place()? }, true),
            "FSYNC" => (Action::Fsync { handle }, true),
            "FDSYNC" => (Action::Fdatasync { handle }, true),
            _ => return Err(why::UNKNOWN),
        };
        // strace shows no flags where there are none.
        let sync = match &action {
            Action::Pwrite { .. } => {
                WriteFlags::of(field("aio_rw_flags").unwrap_or_default()).sync_of(handle)?
            }
            _ => None,
        };
        let keys = self.of_handle(handle, false, changes);
        let translated = |action| Translated { action, gave: Gave::Unseen, keys: keys.clone() };
        Ok([action].into_iter().chain(sync).map(translated).collect())
    }
}
