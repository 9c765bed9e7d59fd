//! The progress bar of a run: round, contender, step, time gone, time left.

use fsverdict_core::render;
use indicatif::{ProgressBar, ProgressStyle};

use super::state::{State, clock, left_text};
use super::{Listener, News};

/// The bar, on standard error. Without a terminal nothing is drawn.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that shows nothing yet.
    pub fn new() -> Bar {
        let bar = ProgressBar::new(1);
        let style = ProgressStyle::with_template("{bar:24} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Bar(bar)
    }

    fn measure(&self, state: &State) {
        let (done, all) = match (state.trials_at_most(), state.plan.judgement.budget) {
            (Some(at_most), _) => (state.kept.into(), at_most.max(state.kept + 1).into()),
            (None, Some(budget)) => (state.gone().as_secs(), budget.0.as_secs().max(1)),
            (None, None) => (0, 1),
        };
        self.0.set_length(all);
        self.0.set_position(done.min(all));
    }
}

impl Listener for Bar {
    fn hear(&mut self, news: &News, state: &State) {
        match news {
            News::Begun | News::Kept(..) => {}
            News::Writing(done_bytes, total_bytes) => {
                self.0.set_length(*total_bytes);
                self.0.set_position(*done_bytes);
                self.0.set_message(format!("writing the image, {} MiB", done_bytes >> 20));
            }
            News::Trial(_) => {
                self.measure(state);
                self.0.set_message(message(state));
            }
            News::Step(_) | News::Tick => self.0.set_message(message(state)),
            // The bar goes away, so that what follows stands alone.
            News::Ended(_) => self.0.finish_and_clear(),
        }
    }
}

fn message(state: &State) -> String {
    let Some(trial) = &state.trial else { return String::new() };
    let rounds = state.plan.judgement.rounds().map_or(String::new(), |rounds| format!("/{rounds}"));
    let colon = if trial.step.is_empty() { "" } else { ": " };
    let (key, step) = (&trial.key, &trial.step);
    let (gone, left) = (clock(state.gone()), left_text(state.left()));
    let contender = render::one_line(&key.contender);
    format!("round {}{rounds}, {contender}{colon}{step}, {gone} gone{left}", key.round)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PLAN, begun, trial};
    use super::*;

    #[test]
    fn the_line_says_round_contender_and_step() {
        let mut state = begun(&format!("{PLAN}[judgement]\nrounds = 8\n"));
        let plan = state.plan.clone();
        state.hear(&News::Trial(&trial(&plan, 3, "b")));
        let said = message(&state);
        assert!(said.starts_with("round 3/8, b, 0:0") && said.ends_with(" gone"), "{said}");
        state.hear(&News::Step("work"));
        let said = message(&state);
        assert!(said.starts_with("round 3/8, b: work, 0:0") && said.ends_with(" gone"), "{said}");
    }
}
