//! The places where trials run: this machine ([`local`]), a virtual machine for each trial ([`vm`]),
//! and none, where it is only said what would be done ([`dry`]). [`trial`] is the inside of a trial's
//! process. What a place must have for a plan is asked before the first trial: [`preflight`] for one
//! plan, [`doctor`] for all there is.

pub mod doctor;
pub mod dry;
pub mod facts;
pub(crate) mod lease;
mod link;
pub mod local;
pub mod preflight;
pub mod trial;
pub mod trial_process;
pub mod vm;
