//! Limits of writeback that contradict one another, or stop it: each is taken by itself.

use fsverdict_core::model::{Checked, Judged};

use crate::machine::knob::Knob;

/// Where the background begins, and where writers are held up, in the same unit.
const LIMITS: [(&str, &str); 2] = [
    ("vm.dirty_background_ratio", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_bytes"),
];

/// Changes the findings of `wishes`, names and values in their order, by what they amount to
/// together.
pub fn judge(findings: &mut [Checked], wishes: &[(&str, &str)]) {
    let last = |name: &str| {
        let place = wishes.iter().rposition(|(known, _)| *known == name)?;
        wishes[place].1.parse::<u64>().ok().map(|value| (place, value))
    };
    for (background, limit) in LIMITS {
        let pair = match (last(background), last(limit)) {
            (None, None) => continue,
            (begins, ends) => (begins, ends),
        };
        let begins = pair.0.map_or_else(|| current(background), |(_, value)| Some(value));
        let ends = pair.1.map_or_else(|| current(limit), |(_, value)| Some(value));
        let (Some(begins), Some(ends @ 1..)) = (begins, ends) else { continue };
        // domain_dirty_limits() in mm/page-writeback.c: "if (bg_thresh >= thresh) bg_thresh =
        // thresh / 2".
        if let Some((place, _)) = pair.0.or(pair.1).filter(|_| begins >= ends) {
            let said = format!(
                "{background} is {begins}, which is not below {limit} = {ends}: the kernel begins \
                 to write at half of {limit}"
            );
            change(
                &mut findings[place],
                Judged::NoEffect,
                said,
                &format!("set {background} below {limit}"),
            );
        }
    }
    if let Some((place, 0)) = last("vm.dirty_writeback_centisecs") {
        let said = "dirty data is no longer written when it gets old: periodic writeback is off";
        let advice = "what no program syncs may be lost however long ago it was written (kernel, \
                      admin-guide/sysctl/vm, dirty_writeback_centisecs); 500 is the default";
        change(&mut findings[place], Judged::Unsafe, said.into(), advice);
    }
}

fn current(name: &str) -> Option<u64> {
    let text = Knob::sysctl(name).text("/".as_ref()).ok()?;
    text.trim().parse().ok()
}

/// A line that is refused, or undone by another, stays so.
fn change(found: &mut Checked, state: Judged, said: String, advice: &str) {
    if matches!(found.state, Judged::Ok | Judged::Redundant | Judged::NotTried) {
        (found.state, found.said, found.advice) = (state, Some(said), Some(advice.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::check::blank;

    fn states(settings: &[(&str, &str)]) -> Vec<Judged> {
        let mut findings = vec![blank(1, ""); settings.len()];
        judge(&mut findings, settings);
        findings.into_iter().map(|it| it.state).collect()
    }

    #[test]
    fn a_background_that_begins_above_the_limit_has_no_effect() {
        let (background, limit) = ("vm.dirty_background_ratio", "vm.dirty_ratio");
        assert_eq!(states(&[(limit, "10"), (background, "20")]), [Judged::Ok, Judged::NoEffect]);
        assert_eq!(states(&[(background, "10"), (limit, "10")]), [Judged::NoEffect, Judged::Ok]);
        assert_eq!(states(&[(background, "5"), (limit, "10")]), [Judged::Ok; 2]);
        // A limit of none is that of the other unit.
        let (background, limit) = ("vm.dirty_background_bytes", "vm.dirty_bytes");
        assert_eq!(states(&[(background, "5"), (limit, "0")]), [Judged::Ok; 2]);
    }

    #[test]
    fn writeback_that_never_comes_is_unsafe() {
        assert_eq!(states(&[("vm.dirty_writeback_centisecs", "0")]), [Judged::Unsafe]);
        assert_eq!(states(&[("vm.dirty_writeback_centisecs", "100")]), [Judged::Ok]);
    }
}
