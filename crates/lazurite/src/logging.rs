//! The log: warnings on standard error, or everything in the file of `--debug`.

use std::io;
use std::path::Path;

use crate::flags::Wrong;

pub fn start(file: Option<&Path>) -> Result<(), Wrong> {
    let builder = tracing_subscriber::fmt().with_target(false).with_ansi(false);
    match file {
        None => builder.with_max_level(tracing::Level::WARN).with_writer(io::stderr).init(),
        Some(path) => {
            let file = open_log(path)
                .map_err(|error| Wrong(format!("The log {} cannot be written: {error}.", path.display())))?;
            builder.with_max_level(tracing::Level::DEBUG).with_writer(std::sync::Mutex::new(file)).init();
        }
    }
    Ok(())
}

/// For its owner only: it says who asks for what.
fn open_log(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // It may have been there before, written by an earlier version. A terminal or a pipe has no owner to speak of.
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    Ok(file)
}
