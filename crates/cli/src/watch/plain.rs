//! Progress as lines, for a log: one when there is news, and one after half a minute without.

use std::io::Write;
use std::time::{Duration, Instant};

use fsverdict_core::model::{Finding, Outcome};
use fsverdict_core::render;

use super::state::{State, clock, left_text};
use super::{Listener, News};

/// After so long without a line one says what is being done.
const SILENCE: Duration = Duration::from_secs(30);

/// The lines.
#[derive(Debug)]
pub struct Plain<W> {
    out: W,
    said: Instant,
}

impl<W: Write> Plain<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Plain<W> {
        Plain { out, said: Instant::now() }
    }

    fn say(&mut self, state: &State, text: &str) {
        let _ = writeln!(self.out, "[{}] {}", clock(state.gone()), render::one_line(text));
        self.said = Instant::now();
    }

    fn kept(&mut self, state: &State, news: &News) {
        let News::Kept(record, judged) = news else { return };
        let (key, rounds) = (&record.key, state.plan.judgement.rounds());
        let of = rounds.map_or(String::new(), |rounds| format!("/{rounds}"));
        if let Outcome::Failed(failure) = &record.outcome {
            let error = failure.error.lines().next().unwrap_or_default();
            let at = format!("round {}{of}, {}, {}", key.round, key.workload, key.contender);
            self.say(state, &format!("{at} failed at {}: {error}", failure.step));
        }
        if judged.is_some() {
            let left = left_text(state.left());
            self.say(state, &format!("round {}{of}, {} is done{left}", key.round, key.workload));
        }
        for finding in &state.fresh.findings {
            self.say(state, &found(finding));
        }
        for verdict in &state.fresh.verdicts {
            let sentence = render::sentence(verdict, &state.plan.judgement);
            self.say(state, &format!("{}: {sentence}", verdict.workload));
        }
    }

    fn passed(&mut self, state: &State) {
        let Some(trial) = state.trial.as_ref().filter(|_| self.said.elapsed() >= SILENCE) else {
            return;
        };
        let key = &trial.key;
        let at = format!("round {}, {}, {}", key.round, key.workload, key.contender);
        let line = format!("{at}: {}{}", trial.step, left_text(state.left()));
        self.say(state, &line);
    }
}

/// A finding on one line.
pub fn found(finding: &Finding) -> String {
    render::one_line(&render::headline(finding))
}

impl<W: Write + std::fmt::Debug> Listener for Plain<W> {
    fn hear(&mut self, news: &News, state: &State) {
        match news {
            News::Begun => {
                let names = state.plan.contenders.iter().map(|it| it.name.as_str());
                let names = names.collect::<Vec<_>>().join(", ");
                let kept = match state.kept {
                    0 => String::new(),
                    1 => ", goes on after 1 trial".into(),
                    kept => format!(", goes on after {kept} trials"),
                };
                self.say(state, &format!("{}: {names}{kept}", state.folder.display()));
            }
            News::Writing(done_bytes, total_bytes) if self.said.elapsed() >= SILENCE => {
                let (done, total) = (done_bytes >> 20, total_bytes >> 20);
                self.say(state, &format!("writing the image, {done} of {total} MiB"));
            }
            News::Step(_) | News::Tick => self.passed(state),
            News::Kept(..) => self.kept(state, news),
            News::Writing(..) | News::Trial(_) | News::Ended(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fsverdict_core::model::{Audit, Severity};

    use super::super::testing::{PLAN, begun, failed, judged, rounds, trial};
    use super::*;

    fn said(plain: Plain<Vec<u8>>) -> Vec<String> {
        // Without the clock, which a busy machine may let go on.
        let text = String::from_utf8(plain.out).unwrap();
        text.lines().map(|line| line.split_once("] ").unwrap().1.to_string()).collect()
    }

    fn tell(plain: &mut Plain<Vec<u8>>, state: &mut State, news: &News) {
        state.hear(news);
        plain.hear(news, state);
    }

    #[test]
    fn rounds_failures_and_verdicts_are_lines() {
        let mut state = begun(PLAN);
        let plan = state.plan.clone();
        let mut plain = Plain::new(Vec::new());
        tell(&mut plain, &mut state, &News::Begun);
        tell(&mut plain, &mut state, &News::Kept(&failed(1, "b"), None));
        let records = rounds(6);
        let judged = judged(&plan, &records);
        tell(&mut plain, &mut state, &News::Kept(records.last().unwrap(), Some(judged)));
        let said = said(plain);
        assert_eq!(said[0], "run: a, b");
        assert_eq!(said[1], "round 1/12, work, b failed at mkfs: no space");
        assert!(said[2].starts_with("round 6/12, work is done"), "{said:?}");
        assert!(said[3].contains("work: wall_time: b is faster than a, 1.996 times"), "{said:?}");
        assert_eq!(said.len(), 4, "{said:?}");
    }

    #[test]
    fn a_finding_is_one_line_without_huge_shares() {
        let finding = Finding {
            audit: Audit::A13,
            severity: Severity::Warning,
            workload: Some("work".into()),
            contender: None,
            evidence: "others wrote 4.94 MiB,\n7022.2% of what moved".into(),
            advice: String::new(),
        };
        let line = found(&finding);
        assert!(
            line.starts_with("warning A13 (others at work), work: others wrote 4.94 MiB"),
            "{line}"
        );
        assert!(line.ends_with("70.2 times what moved") && !line.contains('\n'), "{line}");
    }

    #[test]
    fn silence_lasts_half_a_minute() {
        let mut state = begun(PLAN);
        let plan = state.plan.clone();
        let mut plain = Plain::new(Vec::new());
        tell(&mut plain, &mut state, &News::Trial(&trial(&plan, 2, "a")));
        tell(&mut plain, &mut state, &News::Step("work"));
        tell(&mut plain, &mut state, &News::Tick);
        plain.said = Instant::now().checked_sub(SILENCE).unwrap();
        tell(&mut plain, &mut state, &News::Tick);
        tell(&mut plain, &mut state, &News::Tick);
        assert_eq!(said(plain), ["round 2, work, a: work"]);
    }
}
