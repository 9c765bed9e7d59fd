//! Pages: one file each that needs nothing else, to be sent round. The answer comes first.
//!
//! Everything is in the page when it opens, figures too; the script only adds what a pointer or a
//! key asks for. All text goes through maud, which escapes it; nothing is fetched, and the page's
//! own policy (Content-Security-Policy) would forbid it.

mod anatomy;
mod history;
mod joined;
mod matrix;
mod page;
mod parts;
mod report;
mod settings;

pub use anatomy::page as anatomy;
pub use history::page as history;
pub use joined::page as joined;
pub use report::page as report;
