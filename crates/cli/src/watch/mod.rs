//! What can be seen of a run while it goes on: one stream of news, and its listeners.
//!
//! The run reports what happens as it happens ([`News`]). [`State`] keeps what is known so far, and
//! each [`Listener`] shows that in its way. All of it is in the process of the run, which only
//! waits while a trial's process works: listeners are heard between trials, and at the lab's ticks.

mod bar;
mod json;
mod live;
mod machine;
mod metrics;
mod plain;
mod state;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt::Debug;
use std::io::{IsTerminal, stderr};
use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use fsverdict_core::model::{Record, Stop, Trial};

use crate::say;
use crate::source::{Judged, Loaded};
use metrics::Listen;
use state::State;

/// What a run is to show of itself while it goes on.
#[derive(clap::Args, Clone, Debug)]
pub struct Wish {
    /// How the run is followed on standard error [default: bar on a terminal, otherwise plain].
    #[arg(long, value_enum, value_name = "HOW", conflicts_with = "live")]
    progress: Option<How>,
    /// The same as --progress live.
    #[arg(long)]
    live: bool,
    /// Serve the run as OpenMetrics while it goes on: a port of this machine, or ADDRESS:PORT.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    metrics: Option<Listen>,
}

/// How a run is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    /// One line that is drawn over.
    Bar,
    /// A line when there is news.
    Plain,
    /// A JSON object on each line (FORMAT.md, "Progress").
    Json,
    /// The whole terminal: rounds, verdicts, device and processors, findings.
    Live,
    /// Nothing.
    None,
}

/// What happens in a run.
#[derive(Debug)]
pub enum News<'a> {
    /// The run begins, or goes on.
    Begun,
    /// So many bytes of the bed's images are written, of so many.
    Writing(u64, u64),
    /// A trial begins.
    Trial(&'a Trial),
    /// The trial has begun this step.
    Step(&'a str),
    /// A moment has passed.
    Tick,
    /// The trial has ended and this record of it is kept. After the last trial of a workload in a
    /// round the judge has looked at all of them: only then can verdicts change.
    Kept(&'a Record, Option<Judged>),
    /// Nothing further is measured.
    Ended(&'a Result<Stop>),
}

/// It shows the run as it goes on. If it no longer can (a terminal that is gone), that is no reason
/// to end the run: a listener handles its own write errors.
trait Listener: Debug {
    /// Hears what has happened; `state` knows of it already.
    fn hear(&mut self, news: &News, state: &State);
}

/// The listeners to a run, ready before anything is made.
#[derive(Debug)]
pub struct Audience(Vec<Box<dyn Listener>>);

impl Audience {
    /// Opens what `wish` asks for. Fails where there is no terminal for `--live`, and where the
    /// address of `--metrics` is not to be had.
    pub fn new(wish: &Wish) -> Result<Audience> {
        let on_terminal = stderr().is_terminal();
        let how = match (wish.live, wish.progress) {
            (true, _) => How::Live,
            (false, Some(how)) => how,
            (false, None) if on_terminal => How::Bar,
            (false, None) => How::Plain,
        };
        let mut listeners: Vec<Box<dyn Listener>> = match how {
            How::Bar => vec![Box::new(bar::Bar::new())],
            How::Plain => vec![Box::new(plain::Plain::new(stderr()))],
            How::Json => {
                say::remark_in_json();
                vec![Box::new(json::Json::new(stderr()))]
            }
            How::Live => vec![Box::new(live::Live::new(on_terminal)?)],
            How::None => Vec::new(),
        };
        if let Some(listen) = &wish.metrics {
            listeners.push(Box::new(metrics::Metrics::new(listen)?));
        }
        Ok(Audience(listeners))
    }
}

/// One run, watched.
#[derive(Debug)]
pub struct Watch {
    state: State,
    audience: Audience,
}

impl Watch {
    /// The audience of the run in `folder`, which begins or goes on from what is `loaded`.
    pub fn new(audience: Audience, folder: &Path, loaded: &Loaded, judged: &Judged) -> Watch {
        let mut watch = Watch { state: State::new(folder, loaded, judged), audience };
        watch.tell(&News::Begun);
        watch
    }

    /// Tells everybody what has happened.
    pub fn tell(&mut self, news: &News) {
        self.state.hear(news);
        self.audience.0.iter_mut().for_each(|listener| listener.hear(news, &self.state));
    }
}
