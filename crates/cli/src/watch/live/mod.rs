//! The whole terminal as a view of the run.
//!
//! The view is on standard error, in the terminal's other screen, so that what stood there before
//! is there again when it ends. Keys do nothing and are not shown; Ctrl-C is the signal that it is
//! everywhere, which is why the terminal is not put into raw mode.

mod screen;
#[cfg(test)]
mod tests;

use std::io::{Stderr, stderr};
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use fsverdict_host::sys;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};

use super::state::State;
use super::{Listener, News};
use crate::exit::Usage;

/// Between two drawings for something new.
const PAUSE: Duration = Duration::from_millis(100);

/// Between two drawings because time passes.
const PERIOD: Duration = Duration::from_secs(1);

/// The terminal shows the view.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// The terminal showed what is typed, before the view.
static ECHOED: AtomicBool = AtomicBool::new(false);

/// The view.
#[derive(Debug)]
pub struct Live {
    terminal: Option<Terminal<CrosstermBackend<Stderr>>>,
    drawn: Option<Instant>,
}

impl Live {
    /// A view that is not shown yet.
    pub fn new(on_terminal: bool) -> Result<Live> {
        if !on_terminal {
            let text = "--live needs a terminal on standard error; --progress plain or json needs \
                        none";
            return Err(Usage(text.into()).into());
        }
        Ok(Live { terminal: None, drawn: None })
    }

    fn draw(&mut self, state: &State, pause: Duration) {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < pause) {
            return;
        }
        if let Some(terminal) = &mut self.terminal {
            // A terminal that is gone ends the run by a signal, or nobody looks.
            let _ = terminal.draw(|frame| screen::draw(frame, state));
            self.drawn = Some(Instant::now());
        }
    }
}

impl Listener for Live {
    fn hear(&mut self, news: &News, state: &State) {
        match news {
            News::Begun => {
                show();
                self.terminal = Terminal::new(CrosstermBackend::new(stderr())).ok();
                self.draw(state, Duration::ZERO);
            }
            News::Kept(..) => self.draw(state, Duration::ZERO),
            News::Writing(..) | News::Trial(_) | News::Step(_) => self.draw(state, PAUSE),
            News::Tick => self.draw(state, PERIOD),
            News::Ended(_) => {
                self.terminal = None;
                hide();
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        hide();
    }
}

/// Goes to the terminal's other screen. A panic goes back before it says anything.
fn show() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            hide();
            before(panic);
        }));
    });
    SHOWN.store(true, Ordering::SeqCst);
    let echoed = sys::set_echo(stderr().as_fd(), false).unwrap_or(false);
    ECHOED.store(echoed, Ordering::SeqCst);
    let _ = execute!(stderr(), EnterAlternateScreen, Hide);
}

/// Goes back, where it has not been done yet.
fn hide() {
    if SHOWN.swap(false, Ordering::SeqCst) {
        let _ = execute!(stderr(), Show, LeaveAlternateScreen);
        let _ = sys::set_echo(stderr().as_fd(), ECHOED.load(Ordering::SeqCst));
    }
}
