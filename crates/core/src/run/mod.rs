//! How a trial goes, over whatever host it runs on.
//!
//! A trial is a list of [`Step`]s, known before it starts; [`trial`] takes a [`Host`] through them
//! and writes down what happened. The real machine, the simulated one and the dry run are hosts:
//! none of them knows the order of steps. [`Place`] is the same kind of interface for what
//! surrounds the trials: the bed and the settings.

mod duet;
mod host;
mod metrics;
mod place;
mod sample;
pub mod sim;
mod step;

pub use duet::Cycles;
pub use host::{Effect, Host, HostError, trial};
pub use metrics::check_metrics;
pub use place::{Place, settled_duet, settled_trial};
pub use step::{Step, steps};
