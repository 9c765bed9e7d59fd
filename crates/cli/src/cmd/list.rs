//! stub
use anyhow::Result;
/// stub
#[derive(clap::Args)]
pub struct Arguments {}
/// stub
pub fn run(_: &Arguments) -> Result<u8> {
    Ok(0)
}
