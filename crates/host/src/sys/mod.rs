//! All unsafe code: system calls that the standard library lacks, each made safe by itself.

mod beneath;
mod block;
mod bpf;
mod calls;
mod children;
mod detached_mount;
mod directory;
mod file;
mod keys;
mod landlock;
mod machine;
mod namespace;
mod open_files;
mod page_cache;
mod pipe;
mod process;
mod root;
mod terminal;

pub use beneath::*;
pub use block::*;
pub use bpf::*;
pub use calls::*;
pub use children::*;
pub use detached_mount::*;
pub use directory::*;
pub use file::*;
pub use keys::*;
pub use landlock::*;
pub use machine::*;
pub use namespace::*;
pub use open_files::open_place;
pub use page_cache::{Cached, cached, page_bytes};
pub use pipe::*;
pub use process::*;
pub use root::*;
pub use terminal::*;
