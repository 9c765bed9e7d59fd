//! A plan made smaller or larger: sizes, counts and times in step.

use super::{Bytes, Fio, Histogram, Plan, Scalar, Sysbench, Workload, fio_time_ms};

/// On images smaller than this some settings can't be had: an XFS log of 256 MiB must fit into an
/// allocation group, a quarter of the image.
const SMALLEST_IMAGE_BYTES: u64 = 2 << 30;
const MIB: u64 = 1 << 20;

impl Plan {
    /// The plan with every size, count and time multiplied by `scale`, and that written down.
    ///
    /// Limits of the device and of a network stay: they are rates. Rounds stay: they are
    /// repetitions. What a command does can't be seen; it takes its size from
    /// `FSVERDICT_OPERATIONS` and `FSVERDICT_BYTES`. What is wrong with it, in a sentence, where a
    /// fio job would stay as large as it is.
    pub fn scaled(mut self, scale: f64) -> Result<Plan, String> {
        self.scale = Some(self.scale.unwrap_or(1.0) * scale);
        if let Some(study) = &mut self.study {
            for workload in &self.workloads {
                if let Some(set) = workload.working_set() {
                    study.working_sets.entry(workload.name.clone()).or_insert(set.bytes);
                }
            }
        }
        self.bed.size = scaled_bytes(self.bed.size, scale, SMALLEST_IMAGE_BYTES);
        for workload in &mut self.workloads {
            if !workload.scale(scale) {
                return Err(format!(
                    "workload {:?} is a fio job that --scale can't change: give it as options, \
                     with a size or a runtime, or leave out --scale",
                    workload.name
                ));
            }
            workload.drop_quantiles();
        }
        Ok(self)
    }
}

/// What a quantile's name ends with, and the quantile.
const QUANTILES: [(&str, f64); 5] =
    [("_p50", 0.5), ("_p90", 0.9), ("_p95", 0.95), ("_p99", 0.99), ("_p999", 0.999)];

impl Workload {
    /// Judges no command by a quantile that so few operations don't have, where another metric is
    /// left: the plan would fail in every trial.
    fn drop_quantiles(&mut self) {
        let Some(operations) = self.operations.filter(|_| self.command.is_some()) else { return };
        let holds = |metric: &String| {
            let of_end = QUANTILES.iter().find(|(end, _)| metric.ends_with(end));
            of_end.is_none_or(|(_, quantile)| Histogram::holds(*quantile, operations))
        };
        if self.primary.iter().any(holds) {
            self.primary.retain(holds);
        }
    }

    /// Says whether it could: a fio job file runs unchanged, and so does a job without a known size
    /// or time.
    fn scale(&mut self, scale: f64) -> bool {
        if let Some(operations) = &mut self.operations {
            *operations = scaled_count(*operations, scale);
        }
        if let Some(bytes) = &mut self.bytes {
            *bytes = scaled_bytes(*bytes, scale, MIB);
        }
        if let Some(bytes) = &mut self.needs_bytes {
            *bytes = scaled_bytes(*bytes, scale, SMALLEST_IMAGE_BYTES);
        }
        if let Some(files) = &mut self.small_files {
            files.count = scaled_count(files.count, scale);
        }
        if let Some(files) = &mut self.fsync_files {
            // The number of files is the question, the repetitions are the cost.
            files.repetitions = scaled_u32(files.repetitions, scale);
        }
        if let Some(metadata) = &mut self.metadata {
            metadata.directories = scaled_u32(metadata.directories, scale).max(metadata.threads);
        }
        if let Some(tree) = &mut self.tree {
            tree.files = scaled_count(tree.files, scale);
            tree.total = tree.total.map(|total| scaled_bytes(total, scale, MIB));
        }
        match &mut self.sysbench {
            Some(Sysbench::Options(options)) => {
                options.iter_mut().for_each(|(option, value)| scale_sysbench(option, value, scale));
            }
            Some(Sysbench::Arguments(words)) => words.iter_mut().for_each(|word| {
                typed(word, |option, value| scale_sysbench(option, value, scale));
            }),
            None => {}
        }
        match &mut self.fio {
            None => true,
            Some(Fio::File(_)) => false,
            Some(Fio::Options(options)) => {
                let scaled = options.iter_mut().map(|(option, it)| scale_fio(option, it, scale));
                scaled.fold(false, |any, is_known| any | is_known)
            }
            Some(Fio::Arguments(words)) => {
                let has_file = words.iter().any(|word| !word.starts_with('-'));
                let scaled = words.iter_mut().map(|it| scale_word(it, scale));
                scaled.fold(false, |any, is_known| any | is_known) && !has_file
            }
        }
    }
}

/// fio's sizes and times; whether it is one of them, and known.
fn scale_fio(option: &str, value: &mut Scalar, scale: f64) -> bool {
    match option {
        "size" | "filesize" | "io_size" | "io_limit" => scale_size(value, scale),
        "runtime" | "timeout" | "ramp_time" => scale_time(value, scale),
        _ => false,
    }
}

/// The same, typed as `--option=value`.
fn scale_word(word: &mut String, scale: f64) -> bool {
    typed(word, |option, value| scale_fio(option, value, scale)).unwrap_or(false)
}

/// Changes the value of `--option=value`, if the word is one.
fn typed<T>(word: &mut String, change: impl FnOnce(&str, &mut Scalar) -> T) -> Option<T> {
    let (option, value) = word.strip_prefix("--")?.split_once('=')?;
    let mut value = Scalar::Text(value.into());
    let changed = change(option, &mut value);
    *word = format!("--{option}={value}");
    Some(changed)
}

/// A time as fio reads it: whole seconds where it is some.
fn scale_time(value: &mut Scalar, scale: f64) -> bool {
    let Some(ms) = fio_time_ms(&value.to_string()) else { return false };
    if ms > 0 && ms % 1000 == 0 {
        *value = Scalar::Whole(scaled_count(ms / 1000, scale) as i64);
    } else if ms > 0 {
        *value = Scalar::Text(format!("{}ms", scaled_count(ms, scale)));
    }
    true
}

/// sysbench's size, time and number of requests.
fn scale_sysbench(option: &str, value: &mut Scalar, scale: f64) {
    match option {
        "file-total-size" => drop(scale_size(value, scale)),
        "time" | "events" => scale_number(value, scale),
        _ => {}
    }
}

/// Whether it is a size: not a share of the file, which is scaled with that.
fn scale_size(value: &mut Scalar, scale: f64) -> bool {
    let Ok(bytes) = value.to_string().parse() else { return false };
    *value = Scalar::Text(scaled_bytes(bytes, scale, MIB).to_string());
    true
}

/// A count, or a time: plain numbers are seconds. 0, which means without end, stays.
fn scale_number(value: &mut Scalar, scale: f64) {
    match value.to_string().trim_end_matches('s').parse::<f64>() {
        Ok(number) if number > 0.0 => {
            *value = Scalar::Whole((number * scale).round().max(1.0) as i64);
        }
        _ => {}
    }
}

fn scaled_u32(count: u32, scale: f64) -> u32 {
    scaled_count(count.into(), scale).try_into().unwrap_or(u32::MAX)
}

fn scaled_count(count: u64, scale: f64) -> u64 {
    ((count as f64 * scale).round() as u64).max(1)
}

/// In whole MiB, so that they stay multiples of every block size; what is smaller than one, such
/// as a small file, is not made smaller.
fn scaled_bytes(bytes: Bytes, scale: f64, least_bytes: u64) -> Bytes {
    let scaled = (bytes.0 as f64 * scale) as u64 / MIB * MIB;
    Bytes(scaled.max(least_bytes.min(bytes.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_counts_and_times_shrink_in_step() {
        let plan: Plan = toml::from_str(
            r#"
            [bed]
            size = "20G"
            limits = { iops = 8050 }
            [[workload]]
            name = "fio"
            fio = { rw = "write", bs = "1M", size = "4G", runtime = 60 }
            [[workload]]
            name = "typed"
            fio = ["--bs=1M", "--size=4G", "--thread", "--name=read", "--runtime=60s"]
            [[workload]]
            name = "files"
            small_files = { count = 10000, size = "1k" }
            [[workload]]
            name = "loop"
            operations = 10000
            command = "true"
            [[workload]]
            name = "fsync"
            fsync_files = { files = 1000, repetitions = 200 }
            [[workload]]
            name = "metadata"
            metadata = { threads = 200 }
            [[workload]]
            name = "tree"
            tree = { files = 5000, total = "100M" }
            [[workload]]
            name = "sysbench"
            sysbench = { file-test-mode = "rndrw", file-total-size = "2G", time = 60, events = 0 }
            [[workload]]
            name = "sysbench, typed"
            sysbench = ["--file-test-mode=rndrw", "--file-total-size=8G", "--time=60"]
            "#,
        )
        .unwrap();
        let plan = plan.scaled(0.1).unwrap();
        assert_eq!(plan.scale, Some(0.1));
        assert_eq!(plan.bed.size, Bytes(2 << 30));
        assert_eq!(plan.bed.limits.unwrap().operations(), [Some(8050); 2]);
        let arguments = plan.workloads[0].fio.as_ref().unwrap().arguments("fio").join(" ");
        assert_eq!(arguments, "--name=fio --bs=1M --runtime=6 --rw=write --size=409M");
        let typed = plan.workloads[1].fio.as_ref().unwrap().arguments("fio").join(" ");
        assert_eq!(typed, "--bs=1M --size=409M --thread --name=read --runtime=6");
        let files = plan.workloads[2].small_files.as_ref().unwrap();
        assert_eq!((files.count, files.size), (1000, Bytes(1024)));
        assert_eq!(plan.workloads[3].operations, Some(1000));
        let fsync = plan.workloads[4].fsync_files.as_ref().unwrap();
        assert_eq!((fsync.files, fsync.repetitions), (1000, 20));
        assert_eq!(plan.workloads[5].metadata.as_ref().unwrap().directories, 200);
        let tree = plan.workloads[6].tree.as_ref().unwrap();
        assert_eq!((tree.files, tree.total), (500, Some(Bytes(10 << 20))));
        let arguments = plan.workloads[7].sysbench.as_ref().unwrap().arguments().join(" ");
        let test = "--events=0 --file-test-mode=rndrw --file-total-size=204M --time=6";
        assert_eq!(arguments, test);
        let typed = plan.workloads[8].sysbench.as_ref().unwrap().arguments().join(" ");
        assert_eq!(typed, "--file-test-mode=rndrw --file-total-size=819M --time=6");
        assert_eq!(plan.scaled(0.001).unwrap().bed.size, Bytes(2 << 30));
    }

    #[test]
    fn a_job_that_would_stay_as_large_as_it_is_is_refused() {
        let scaled = |fio: &str| {
            let plan = Plan {
                workloads: vec![toml::from_str(&format!("name = \"w\"\nfio = {fio}")).unwrap()],
                ..Plan::default()
            };
            let fio = plan.scaled(0.125).map(|plan| plan.workloads[0].fio.clone().unwrap());
            fio.map(|fio| fio.arguments("w")[1..].join(" "))
        };
        for fixed in
            ["\"job.fio\"", "[\"a.fio\", \"--size=1g\"]", "{ rw = \"read\", size = \"50%\" }"]
        {
            let said = scaled(fixed).unwrap_err();
            assert!(
                said.starts_with("workload \"w\" is a fio job that --scale can't change"),
                "{said}"
            );
        }
        assert_eq!(scaled("{ runtime = \"2m\" }").unwrap(), "--runtime=15");
        assert_eq!(scaled("{ runtime = \"800ms\" }").unwrap(), "--runtime=100ms");
        assert_eq!(scaled("[\"--size=64m\"]").unwrap(), "--size=8M");
    }

    #[test]
    fn a_quantile_that_too_few_operations_have_is_not_judged() {
        let judged = |scale: f64| {
            let text = r#"
                [[workload]]
                name = "transactions"
                operations = 32000
                primary = ["transactions_per_s", "latency_p50", "latency_p99"]
                command = "true"
            "#;
            let plan: Plan = toml::from_str(text).unwrap();
            plan.scaled(scale).unwrap().workloads[0].primary.join(" ")
        };
        assert_eq!(judged(0.1), "transactions_per_s latency_p50 latency_p99");
        assert_eq!(judged(0.05), "transactions_per_s latency_p50");
        assert_eq!(judged(0.0001), "transactions_per_s");
    }
}
