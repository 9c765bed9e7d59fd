//! What fsverdict means and decides.
//!
//! Nouns are files in [`model`]; verbs are modules beside it: [`campaign`] chooses the next round,
//! [`run`] takes a trial through its steps over a [`run::Host`], [`judge`] turns records into
//! verdicts and findings, [`render`] turns those into what a person or a program reads. [`script`]
//! and [`published`] read what people wrote: settings, and published figures; [`recording`] what
//! strace(1) wrote about an application; [`blocks`] where a file system has what, [`trace`] what
//! the kernel wrote about a disk, and [`generations`] tells what kernels that are not at hand would
//! write.
//!
//! Nothing here opens a file, reads a clock or starts a process; `clippy.toml` beside this crate
//! holds that. So the whole of it runs on a simulated host, and the same inputs give the same
//! answer anywhere.
#![forbid(unsafe_code)]

pub mod blocks;
pub mod campaign;
pub mod generations;
pub mod judge;
pub mod model;
pub mod printed;
pub mod published;
pub mod recording;
pub mod render;
pub mod run;
pub mod script;
pub mod trace;
