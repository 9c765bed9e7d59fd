//! All unsafe code: system calls that the standard library lacks, each made safe by itself.

mod beneath;
mod block;
mod bpf;
mod calls;
mod directory;
mod file;
mod machine;
mod page_cache;
mod process;
mod terminal;

pub use beneath::*;
pub use block::*;
pub use bpf::*;
pub use calls::*;
pub use directory::*;
pub use file::*;
pub use machine::*;
pub use page_cache::{Cached, cached, page_bytes};
pub use process::*;
pub use terminal::*;
