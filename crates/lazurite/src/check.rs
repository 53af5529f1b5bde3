//! `lazurite check DIR`: is everything in this data folder as it should be?

use std::path::Path;
use std::process::ExitCode;

use crate::flags::Wrong;

pub fn run(_folder: &Path) -> Result<ExitCode, Wrong> {
    Err(Wrong("lazurite check is not there yet.".into()))
}
