//! What becomes of files and directories, whoever asks, REST or SMB: functions over the rows of one share.
//!
//! - `entry`: the only place that writes and removes the rows of files and directories.
//! - `permission`: the descriptors that the rows name by their keys.
//! - `create`, `link`, `set`, `remove`, `rename`, `write`, `copy`: the changes themselves.

pub mod copy;
pub mod create;
pub mod entry;
pub mod link;
pub mod permission;
pub mod properties;
pub mod remove;
pub mod rename;
pub mod set;
pub mod write;
