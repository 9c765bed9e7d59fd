//! Where the conformance suite lets an engine work, and what there is to be seen of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fsverdict_core::model::{Phase, PhaseRecord, Workload};
use fsverdict_core::run::{HostError, Step};

use crate::workload::engine::{Act, Engine, Scene, TimedPart};
use crate::workload::printed::Outputs;
use crate::{tool, workload};

/// A file of 5000 bytes is read and written to, and another one made: FORMAT.md, "A recording".
const RECORDING: &str = concat!(
    r#"{"recording":1,"names_kept":true,"threads":1,"handles":2,"paths":3,"entries":2,"calls":10,"#,
    r#""elapsed_ns":1,"tracer_ns":0}
"0"
"0/old"
"0/new"
{"path":0,"directory":{"mode":493}}
{"path":1,"file":{"bytes":5000,"mode":416}}
{"thread":0,"do":{"open":{"path":1,"flags":"O_RDWR","mode":0,"handle":0}},"gave":3}
{"thread":0,"do":{"read":{"handle":0,"bytes":4096}},"gave":4096}
{"thread":0,"do":{"pwrite":{"handle":0,"bytes":300,"place":5000}},"gave":300}
{"thread":0,"do":{"fsync":{"handle":0}}}
{"thread":0,"do":{"close":{"handle":0}}}
{"thread":0,"do":{"open":{"path":2,"flags":"O_WRONLY|O_CREAT","mode":420,"handle":1}},"gave":3}
{"thread":0,"do":{"write":{"handle":1,"bytes":4096}},"gave":4096}
{"thread":0,"do":{"write":{"handle":1,"bytes":4096}},"gave":4096}
{"thread":0,"do":{"write":{"handle":1,"bytes":4096}},"gave":4096}
{"thread":0,"do":{"close":{"handle":1}}}
"#
);

/// Folders for the work and for what tools print, and one that is no engine's to touch.
pub struct Stage {
    pub folder: tempfile::TempDir,
    pub raw: PathBuf,
    pub workload: Workload,
    environment: BTreeMap<String, String>,
    outputs: Outputs,
    seed: u64,
}

/// All that is in a folder: of each its mode, of files their content, of links their target.
pub type Found = BTreeMap<PathBuf, Vec<u8>>;

/// What was told of a timed part, and what there was after it.
pub struct Seen {
    /// `None` before the first part, and of one that the file system has nothing for.
    pub record: Option<PhaseRecord>,
    pub found: Found,
    /// In its files, however many names they have.
    pub bytes: u64,
}

impl Stage {
    /// For `work`, in a folder of its own in `base`; `None`, and a line of output, where its
    /// program is not installed.
    pub fn new(work: &str, base: &Path) -> Option<Stage> {
        let folder = tempfile::tempdir_in(base).unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["work", "raw", "beside", "beside/d0000"] {
            fs::create_dir(path(name)).unwrap();
        }
        fs::write(path("beside/d0000/f00000000"), "nobody's").unwrap();
        fs::write(path("recording.calls"), RECORDING).unwrap();
        let keys = work.replace("FOLDER", &folder.path().display().to_string());
        let text = format!(r#"{{"name": "w", "cache": "warm", {keys}}}"#);
        let workload: Workload = serde_json::from_str(&text).unwrap();
        if let Some(missing) = workload.tool().filter(|tool| tool::find(tool).is_none()) {
            println!("not tested: {missing} is not installed");
            return None;
        }
        let (raw, environment) = (path("raw"), BTreeMap::new());
        let outputs = Outputs::default();
        Some(Stage { folder, raw, workload, environment, outputs, seed: 0 })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Empties its folders, for work with that seed.
    pub fn seeded(&mut self, seed: u64) {
        for folder in [&self.path("work"), &self.raw] {
            fs::remove_dir_all(folder).unwrap();
            fs::create_dir(folder).unwrap();
        }
        self.environment.insert("FSVERDICT_SEED".into(), seed.to_string());
        self.seed = seed;
    }

    pub fn engine(&self) -> &dyn Engine {
        workload::engine(self.workload.work().unwrap())
    }

    pub fn scene(&self) -> Scene<'_> {
        Scene {
            workload: &self.workload,
            directory: self.path("work"),
            device: None,
            devices: &[],
            raw: &self.raw,
            cells: None,
            outputs: &self.outputs,
            environment: &self.environment,
            seed: self.seed,
            has_servers: false,
            is_served: false,
            relay: None,
            marks: None,
        }
    }

    /// What it says it would do, in the order of a trial.
    pub fn said(&self) -> Vec<(Step, Vec<Act>)> {
        let phases = self.workload.phases().into_iter().map(Step::Work);
        let steps = [Step::Fill].into_iter().chain(phases).chain([Step::Cleanup]);
        steps.map(|step| (step, self.engine().dry(step, &self.scene()).unwrap())).collect()
    }

    /// Does all of the work: how it was before, and after each part.
    pub fn run(&self) -> Vec<Seen> {
        let (engine, scene) = (self.engine(), self.scene());
        let seen = |record| {
            let found = found(&scene.directory);
            Seen { record, bytes: bytes_in(&found), found }
        };
        engine.lay_out(&scene).unwrap();
        let mut all = vec![seen(None)];
        for phase in self.workload.phases() {
            let mut part = engine.prepare(phase, &scene).unwrap();
            let record = match told(&mut *part, phase) {
                // Attributes of users on tmpfs, before Linux 6.6.
                Err(error) if engine.is_refusal(&*error) => None,
                told => Some(told.unwrap()),
            };
            all.push(seen(record));
        }
        engine.clean_up(&scene).unwrap();
        all
    }
}

/// Runs a part as a trial does, without the clock.
pub fn told(part: &mut dyn TimedPart, phase: Phase) -> Result<PhaseRecord, HostError> {
    part.run()?;
    let mut record = PhaseRecord::new(phase, 1, 1);
    part.figures(&mut record)?;
    Ok(record)
}

pub fn found(folder: &Path) -> Found {
    let mut found = Found::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            let status = fs::symlink_metadata(&path).unwrap();
            let mut what = status.permissions().mode().to_le_bytes().to_vec();
            if status.is_dir() {
                folders.push(path.clone());
            } else if status.is_symlink() {
                what.extend(fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
            } else {
                what.extend(fs::read(&path).unwrap());
            }
            found.insert(path, what);
        }
    }
    found
}

fn bytes_in(found: &Found) -> u64 {
    let status = found.keys().filter_map(|path| fs::symlink_metadata(path).ok());
    let files: BTreeMap<u64, u64> =
        status.filter(fs::Metadata::is_file).map(|it| (it.ino(), it.len())).collect();
    files.values().sum()
}

#[track_caller]
pub fn one_line(error: &HostError) -> String {
    let text = error.to_string();
    assert!(!text.trim().is_empty() && !text.contains('\n'), "{text:?}");
    text
}
