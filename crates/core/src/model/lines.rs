//! Names on one line. They come from strangers' plans and runs, and are printed within lines of
//! text: a line break in one could forge a line.

use std::collections::BTreeMap;

use super::claim::Claim;
use super::{Contender, Key, Outcome, Plan, Record, Run};

/// Writes breaks of lines out, as JSON does.
fn flatten<'a>(names: impl IntoIterator<Item = &'a mut String>) {
    for name in names.into_iter().filter(|name| name.contains('\n')) {
        *name = name.replace('\n', "\\n");
    }
}

fn flatten_keys<T>(map: &mut BTreeMap<String, T>) {
    if map.keys().any(|key| key.contains('\n')) {
        let all = std::mem::take(map).into_iter();
        map.extend(all.map(|(key, value)| (key.replace('\n', "\\n"), value)));
    }
}

fn flatten_claim(claim: &mut Claim) {
    let Claim {
        text,
        stands,
        condition,
        contender,
        against,
        workload,
        than,
        metric,
        not_measurable,
        growth,
        to: _,
        is: _,
        times: _,
        at_least: _,
        at_most: _,
    } = claim;
    flatten([text, stands, condition]);
    let names = [contender, against, workload, than, metric, not_measurable];
    flatten(names.into_iter().flatten().chain(growth));
}

impl Plan {
    /// With each name on one line, for a text that is read by people. Names that refer to each
    /// other still do.
    pub fn on_one_line(mut self) -> Plan {
        flatten([&mut self.question]);
        for Contender {
            name,
            file_system,
            partition,
            mkfs,
            mount,
            environment,
            kernel,
            path,
            ..
        } in &mut self.contenders
        {
            flatten([name, file_system].into_iter().chain(kernel).chain(path));
            flatten(partition.iter_mut().chain(mkfs).chain(mount));
            flatten_keys(environment);
        }
        for workload in &mut self.workloads {
            flatten([&mut workload.name].into_iter().chain(&mut workload.primary));
        }
        flatten(&mut self.judgement.reference);
        for published in &mut self.published {
            flatten([&mut published.workload, &mut published.column]);
            flatten(published.metric.iter_mut().chain(&mut published.not_comparable));
            flatten_keys(&mut published.printed);
        }
        self.claims.iter_mut().for_each(flatten_claim);
        if let Some(study) = &mut self.study {
            flatten([&mut study.title].into_iter().chain(study.claims.values_mut()));
            flatten(study.environment.values_mut());
            [&mut study.claims, &mut study.environment].into_iter().for_each(flatten_keys);
            flatten_keys(&mut study.working_sets);
        }
        self
    }
}

impl Run {
    /// With each fact on one line.
    pub fn on_one_line(mut self) -> Run {
        flatten([&mut self.name, &mut self.program_version]);
        flatten(self.host.values_mut().chain(self.tools.values_mut()));
        [&mut self.host, &mut self.tools].into_iter().for_each(flatten_keys);
        for left_out in &mut self.left_out {
            flatten([&mut left_out.name, &mut left_out.why]);
        }
        flatten(self.read.iter_mut().flat_map(|(what, it)| [what, it]));
        self
    }
}

impl Record {
    /// With each name and error on one line.
    pub fn on_one_line(mut self) -> Record {
        let Key { workload, contender, .. } = &mut self.key;
        flatten([workload, contender]);
        flatten(self.samples.iter_mut().map(|sample| &mut sample.metric));
        if let Outcome::Failed(failure) = &mut self.outcome {
            flatten([&mut failure.step, &mut failure.error]);
            flatten(&mut failure.cleanup_errors);
        }
        flatten(self.astray.iter_mut().flat_map(|astray| &mut astray.paths));
        flatten(self.forbidden.iter_mut().flat_map(|it| &mut it.first));
        flatten(self.refused.iter_mut().map(|refused| &mut refused.why));
        flatten(&mut self.trouble.kernel);
        flatten(self.disk.iter_mut().filter_map(|it| it.scheduler.as_mut()));
        flatten(self.probed.iter_mut().filter_map(|it| it.disk.as_mut()));
        flatten_keys(&mut self.unkept_bytes);
        for phase in &mut self.phases {
            flatten(phase.strangers.iter_mut().flat_map(|it| &mut it.most).map(|it| &mut it.name));
            flatten(phase.applications.iter_mut().map(|application| &mut application.name));
            flatten(phase.replayed.iter_mut().filter_map(|it| it.first.as_mut()));
            flatten_keys(&mut phase.histograms);
        }
        self
    }
}
