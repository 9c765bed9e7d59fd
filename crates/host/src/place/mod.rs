//! The places where trials run: this machine ([`local`]), a virtual machine for each ([`vm`]), and
//! none, which only says what would be done ([`dry`]). [`trial`] is the inside of a trial's
//! process. Each place answers what a plan needs ([`doctor`] for this machine), and [`choose`]
//! takes one that has it, before anything is written.

pub mod choose;
pub mod doctor;
pub mod dry;
pub mod facts;
mod fit;
pub(crate) mod lease;
mod link;
pub mod local;
pub mod preflight;
mod shut;
pub mod trial;
pub mod trial_process;
pub mod vm;
