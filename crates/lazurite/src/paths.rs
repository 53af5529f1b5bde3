//! Where things are: the location that was given, the data in it, the configuration beside the data.

use std::path::{Path, PathBuf};

use crate::flags::{Options, Wrong};
use crate::program_name::CalledAs;

const DEFAULT_LOCATION: &str = "lazurite-data";
const FOLDER_UNDER_AZURITES_NAME: &str = "__lazurite__";
const CONFIG: &str = "lazurite.toml";

/// `--location`, or what stands for it. Azurite's is the current directory.
pub fn location(options: &Options, called_as: CalledAs) -> PathBuf {
    let default = if called_as.is_azurite() { "." } else { DEFAULT_LOCATION };
    let location = options.location.clone().unwrap_or_else(|| default.into());
    std::path::absolute(&location).unwrap_or(location)
}

/// Azurite puts its files into its location, beside whatever is there; ours get a folder then.
pub fn data_folder(options: &Options, called_as: CalledAs) -> PathBuf {
    let location = location(options, called_as);
    if called_as.is_azurite() { location.join(FOLDER_UNDER_AZURITES_NAME) } else { location }
}

/// `--config`, or the file in the location, whether it is there or not.
pub fn config(options: &Options, called_as: CalledAs) -> PathBuf {
    let config = options.config.clone().unwrap_or_else(|| location(options, called_as).join(CONFIG));
    std::path::absolute(&config).unwrap_or(config)
}

/// Azurite's data cannot be read here, and a server that starts empty beside it looks as if it had lost everything.
pub fn refuse_azurites_data(folder: &Path) -> Result<(), Wrong> {
    match has_azurites_data(folder) {
        false => Ok(()),
        true => Err(Wrong(format!(
            "{} holds the data of Azurite, which Lazurite does not read: choose another folder with --location.",
            folder.display()
        ))),
    }
}

pub fn has_azurites_data(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.into_iter().any(|name| name.starts_with("__azurite_db_") && name.ends_with(".json"))
}
