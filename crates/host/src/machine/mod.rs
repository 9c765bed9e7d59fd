//! What we read from the system and set in it: mounts, caches, knobs, processes, and what it can
//! do.

pub mod alone;
pub mod answers;
pub mod below;
pub mod cache;
pub mod cell;
pub mod cgroup;
pub mod folder;
pub mod keys;
pub mod knob;
pub mod long_path;
pub mod marks;
pub mod memory;
pub mod mount;
pub mod plain;
pub mod processes;
pub mod registry;
pub mod settings;
pub mod settle;
pub mod standstill;
pub mod throttle;
pub mod token;
pub mod tracing;
pub mod within;
