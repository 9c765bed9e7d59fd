//! A guest whose writes QEMU logs (docs/interop/qemu-qmp-ref, `BlockdevOptionsBlkLogWrites`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Device, ExtraProbe, Record, Trial};
use fsverdict_core::run::HostError;

use crate::layer;
use crate::probe::trace::logged;

/// A log that grows beyond this fills somebody's disk.
const LOG_BYTES_MAX: u64 = 8 << 30;

/// The log of one guest, gone with this.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    device: Device,
}

impl Log {
    /// The log of a trial whose requests are to be recorded, in `folder`. With several devices
    /// their order would be unknown: there is no log. `image_of` gives the path of a device's
    /// image.
    pub fn of(
        trial: &Trial,
        folder: &Path,
        image_of: impl Fn(&Device) -> PathBuf,
    ) -> Result<Option<Log>, HostError> {
        let [device] = trial.bed.devices.as_slice() else { return Ok(None) };
        // QEMU sees nothing of disks in the guest's memory.
        let is_seen = !layer::takes_place(&trial.contender.layers);
        if !is_seen || !trial.probes.contains(&ExtraProbe::Trace) {
            return Ok(None);
        }
        let path = folder.join("writes.log");
        File::create(&path)?;
        // Behind what the guest knows as the device there is room for its marks.
        let image = File::options().write(true).open(image_of(device))?;
        image.set_len(device.size_bytes + logged::MARKS_BYTES)?;
        Ok(Some(Log { path, device: device.clone() }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says so where it has grown too large.
    pub fn check(&self) -> Result<(), HostError> {
        let bytes = fs::metadata(&self.path)?.len();
        match bytes > LOG_BYTES_MAX {
            true => Err(format!(
                "the log of the guest's writes has more than {} GiB: give it less to do",
                LOG_BYTES_MAX >> 30
            )
            .into()),
            false => Ok(()),
        }
    }

    /// Decodes it into the trial's folder, and adds to the record what it adds up to, where the
    /// guest could not tell that itself.
    pub fn write(self, trial: &Trial, folder: &Path, record: &mut Record) -> Result<(), HostError> {
        let file_system = trial.contender.on_disks();
        let out = folder.join("log_writes.jsonl");
        let accounts = logged::write(&self.path, &self.device, file_system, &out)?;
        if let [account] = accounts.as_slice()
            && record.is_measured()
            && record.sample("trace_writes").is_none()
        {
            // QEMU logs writes alone.
            record.samples.extend(account.samples(false, &trial.workload.primary()));
        }
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // If it stays, it goes with its folder.
        let _ = fs::remove_file(&self.path);
    }
}
