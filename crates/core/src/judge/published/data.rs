//! What was written and read, and whether anything had to reach the device for it: zeros (A9), and
//! a working set that fits in memory, or in the device's own (A6).

use super::cells::Cells;
use super::found::found;
use super::reach::Reach;
use crate::judge::audit::CACHE_ADVICE;
use crate::model::{Audit, Bytes, Finding, Machine, Part, Quantity, Severity, Test, Unit};

/// Words that show that written data is compressed or deduplicated.
const SQUEEZES: [&str; 7] = ["compress", "zstd", "lzo", "lz4", "dedup", "vdo", "zram"];
/// What may leave zeros out without a word.
const MAY: [&str; 8] = ["virtual", "cloud", "volume", "ssd", "nvme", "thin", "array", "san "];

/// What they find in one test.
pub fn findings(test: &Test, machine: &Machine) -> Vec<Finding> {
    let found = [
        cached(test, machine),
        small_files(test, machine),
        device_cache(test, machine),
        zeros(test, machine),
    ];
    found.into_iter().flatten().collect()
}

/// Some rule can find something in the test.
pub fn fits(test: &Test, machine: &Machine) -> bool {
    writes_zeros(test).is_some()
        || machine.memory.is_some() && test.files.is_some() && test.file_bytes.is_some()
        || machine.device_cache.is_some() && working_set(test).is_some()
}

/// By what one knows that zeros are written.
fn writes_zeros(test: &Test) -> Option<&'static str> {
    let says = |word: &str| test.words.iter().any(|words| words.contains(word));
    match () {
        () if test.job.zeros => Some("zero_buffers"),
        () if says("if=/dev/zero") => Some("if=/dev/zero"),
        () => None,
    }
}

/// A9: zeros are written, and hardly any of them need reach the device.
fn zeros(test: &Test, machine: &Machine) -> Option<Finding> {
    let how = writes_zeros(test)?;
    let squeezes = |text: &str| SQUEEZES.iter().find(|word| text.to_lowercase().contains(**word));
    let options = machine.mount.iter().find_map(|(name, options)| {
        let option = options.iter().find(|option| squeezes(option).is_some())?;
        Some(format!("{name} is mounted with {option}"))
    });
    let named = test.rows.iter().find(|row| squeezes(&row.contender).is_some());
    let named = named.map(|row| format!("{} squeezes them", row.contender));
    let device = machine.device.as_deref().unwrap_or_default();
    let below = squeezes(device).map(|_| format!("so does what lies below: {device}"));
    let kind = |severity| (Audit::A9, severity);
    let advice = "write data that do not compress: fio's refill_buffers, or a file of random bytes";
    if let Some(why) = options.or(named).or(below) {
        let evidence = format!("{how}: zeros, and {why}");
        return Some(found(test, "", kind(Severity::Warning), evidence, advice));
    }
    let may = device.is_empty() || MAY.iter().any(|word| device.to_lowercase().contains(word));
    let evidence = format!(
        "{how}: zeros, which thin volumes, virtual disks and some SSDs do not store as they are"
    );
    may.then(|| found(test, "", kind(Severity::Note), evidence, advice))
}

/// A6: files that were just written, read back while memory holds all of them.
fn small_files(test: &Test, machine: &Machine) -> Option<Finding> {
    let memory = machine.memory?;
    let all_bytes = test.files?.checked_mul(test.file_bytes?)?;
    let reads = test.columns.iter().find(|it| {
        it.part == Part::Read && matches!(it.quantity, Quantity::Rate | Quantity::Time)
    })?;
    let evidence = format!(
        "{}: {} in files that were just written, with {} of memory, and nothing is said of the \
         caches",
        reads.heading,
        Unit::Bytes.format(all_bytes as f64),
        Unit::Bytes.format(memory.0 as f64)
    );
    let kind = (Audit::A6, Severity::Warning);
    let fits = Bytes(all_bytes) < memory;
    (fits && !says_dropped(test)).then(|| found(test, "", kind, evidence, CACHE_ADVICE))
}

/// The caches are said to have been emptied before it.
pub fn says_dropped(test: &Test) -> bool {
    let said = |words: &str, any: &[&str]| any.iter().any(|it| words.contains(it));
    let drops = |text: &String| {
        said(&text.to_lowercase(), &["drop", "cold", "remount", "umount", "reboot"])
    };
    // "not dropped"
    let denies = |text: &String| {
        let words = text.to_lowercase();
        words.split(|c: char| !c.is_alphabetic()).any(|it| ["not", "never", "warm"].contains(&it))
    };
    test.cache.iter().any(|text| drops(text) && !denies(text)) || test.words.iter().any(drops)
}

/// It reads through the page cache what may be in it.
pub fn may_be_cached(test: &Test) -> bool {
    let job = &test.job;
    // Data that is read again is cached from the first time.
    job.reads() && job.direct == Some(false) && (job.lasts_s.is_some() || !says_dropped(test))
}

/// A6: reads through a page cache that holds all there is to read. After a drop they are only
/// where the job goes over it again: where more is read, as far as that is known, than there is.
fn cached(test: &Test, machine: &Machine) -> Option<Finding> {
    let memory = machine.memory?;
    let all_bytes = working_set(test).filter(|_| may_be_cached(test))?;
    let mut evidence = format!(
        "buffered reads of {} with {} of memory",
        Unit::Bytes.format(all_bytes as f64),
        Unit::Bytes.format(memory.0 as f64)
    );
    if says_dropped(test) {
        let lasts_s = test.job.lasts_s?;
        let once = |moved: Reach| moved.high * lasts_s <= all_bytes as f64;
        if Cells::of(test).all(|cells| bandwidth(cells).is_some_and(once)) {
            return None;
        }
        evidence += &format!(", read again and again for {lasts_s} s");
    }
    let kind = (Audit::A6, Severity::Warning);
    (Bytes(all_bytes) < memory).then(|| found(test, "", kind, evidence, CACHE_ADVICE))
}

/// As printed, or as it follows from operations.
fn bandwidth(cells: Cells) -> Option<Reach> {
    if let Some((printed, _)) = cells.total(Quantity::Bandwidth) {
        return Some(printed);
    }
    let block_bytes = cells.test.job.block_bytes?;
    Some(cells.total_iops()?.0 * Reach::exactly(block_bytes as f64))
}

/// The bytes that a job goes over.
pub fn working_set(test: &Test) -> Option<u64> {
    let job = &test.job;
    job.size_bytes?.checked_mul(u64::from(job.jobs?))
}

/// A6: all that is read and written fits in the device's own memory.
fn device_cache(test: &Test, machine: &Machine) -> Option<Finding> {
    let (cache, all_bytes) = (machine.device_cache?, working_set(test)?);
    let evidence = format!(
        "the work covers {}, and the device caches {} in its own memory",
        Unit::Bytes.format(all_bytes as f64),
        Unit::Bytes.format(cache.0 as f64)
    );
    let advice = "use a working set several times as large as the device's memory";
    let kind = (Audit::A6, Severity::Warning);
    (Bytes(all_bytes) <= cache).then(|| found(test, "", kind, evidence, advice))
}
