//! The whole terminal as a view of the run.
//!
//! The view is on standard error, in the terminal's other screen, so that the former content is
//! back when it ends. Keys do nothing and are not shown; Ctrl-C is the usual signal, because the
//! terminal is not put into raw mode.

mod canvas;
mod line;
mod screen;
#[cfg(test)]
mod tests;

use std::io::{Write, stderr};
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use console::Term;
use fsverdict_host::sys;

use super::state::State;
use super::{Listener, News};
use crate::exit::Usage;
use canvas::Canvas;

/// Between two drawings for something new.
const PAUSE: Duration = Duration::from_millis(100);

/// Between two drawings because time passes.
const PERIOD: Duration = Duration::from_secs(1);

/// The other screen, without a cursor (DECSET 1049 and DECTCEM of xterm's control sequences).
const SHOW: &[u8] = b"\x1b[?1049h\x1b[?25l";

/// The cursor and the screen there was.
const HIDE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// The terminal shows the view.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// The terminal showed what is typed, before the view.
static ECHOED: AtomicBool = AtomicBool::new(false);

/// The view.
#[derive(Debug)]
pub struct Live {
    canvas: Option<Canvas>,
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
        Ok(Live { canvas: None, drawn: None })
    }

    fn draw(&mut self, state: &State, pause: Duration) {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < pause) {
            return;
        }
        if let Some(canvas) = &mut self.canvas {
            // If the terminal is gone, a signal ends the run, or nobody is watching.
            let _ = canvas.draw(|width, height| screen::page(state, width, height));
            self.drawn = Some(Instant::now());
        }
    }
}

impl Listener for Live {
    fn hear(&mut self, news: &News, state: &State) {
        match news {
            News::Begun => {
                show();
                self.canvas = Some(Canvas::new(Term::buffered_stderr()));
                self.draw(state, Duration::ZERO);
            }
            News::Kept(..) => self.draw(state, Duration::ZERO),
            News::Writing(..) | News::Trial(_) | News::Step(_) => self.draw(state, PAUSE),
            News::Tick => self.draw(state, PERIOD),
            News::Ended(_) => {
                self.canvas = None;
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
    let _ = stderr().write_all(SHOW);
}

/// Goes back, where it has not been done yet.
fn hide() {
    if SHOWN.swap(false, Ordering::SeqCst) {
        let _ = stderr().write_all(HIDE);
        let _ = sys::set_echo(stderr().as_fd(), ECHOED.load(Ordering::SeqCst));
    }
}
