//! Requests of a loop device of our own, recorded.

use std::fs::File;
use std::os::unix::fs::FileExt;

use fsverdict_core::model::trace::{Entry, Op};

use super::*;
use crate::bed::LoopDevice;
use crate::machine::marks::Marks;
use crate::machine::tracing;

#[test]
#[ignore = "needs root and tracefs"]
fn every_request_is_recorded_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let image = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(folder.path().join("1.img"))
        .unwrap();
    image.set_len(16 << 20).unwrap();
    let device = LoopDevice::attach_file(&image, false, 0).unwrap();
    let run = Token::random().unwrap();
    let begin = || Tracer::begin(&run.to_string(), &[device.device()], folder.path());
    // One that was killed has left an instance: it is the next one's, and not in its way.
    std::mem::forget(Instance::make(&run).unwrap());
    let tracer = begin().unwrap();
    let disk = File::options().write(true).open(device.device().path).unwrap();
    let marks = Marks::new(Some(tracer.marker().unwrap()), None).unwrap();
    marks.mark("fsync", 12).unwrap();
    for block in [3, 1, 2] {
        disk.write_all_at(&[7; 4096], block * 4096).unwrap();
        disk.sync_all().unwrap();
    }
    marks.mark("synced", 12).unwrap();
    drop(marks);
    let traced = tracer.end().unwrap();
    assert_eq!(traced.lost_events, 0);
    let mut operations = trace::Operations::new(trace::Between::FSYNC);
    let mut found = None;
    traced
        .each(&mut |item| {
            found = found.take().or(operations.take(item));
            Ok(())
        })
        .unwrap();
    let asked: Vec<(Op, u64)> = found
        .unwrap()
        .entries
        .iter()
        .filter(|entry| entry.op != Op::Read)
        .inspect(|entry: &&Entry| assert!(entry.complete_ns > entry.issue_ns))
        .map(|entry| (entry.op, entry.sector))
        .collect();
    let [write, flush] = [Op::Write, Op::Flush];
    assert_eq!(asked, [(write, 24), (flush, 0), (write, 8), (flush, 0), (write, 16), (flush, 0)]);
    drop(traced);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(left, [folder.path().join("1.img")]);
    let again = Instance::make(&run).unwrap();
    std::mem::forget(again);
    tracing::remove(&run).unwrap();
    tracing::remove(&run).unwrap();
    drop(disk);
    device.detach().unwrap();
}
