//! What SMB calls: files as an SMB client has them, as values and without packets.
//!
//! - [`Door`]: the File service behind SMB. It lists the shares of an account and connects to one of them.
//! - [`Tree`]: a share that a client is connected to. It opens files and directories.
//! - [`OpenFile`]: an open file or directory, with the access that it was opened with.
//! - [`Refused`]: why something is not done; the SMB front end has an NTSTATUS for each.
//!
//! What always holds:
//!
//! - REST and SMB share the functions in `change`: nothing is decided twice, and share snapshots see the same from both.
//! - Every change is one commit, and a method that changes something is ready when its commit is durable.
//! - A future that is dropped leaves nothing behind in the table of opens; a commit that was under way keeps its entries until it ends.
//! - What is opened in a share snapshot never changes, and the table of opens does not know of it.
//! - A file is found by its id in every request, so renames, also of directories above it, do not matter to its handles.

mod bytes;
mod constants;
mod copy;
mod create;
mod decide;
mod list;
mod open_file;
mod pattern;
mod properties;
mod refused;
mod removal;
mod rename;
mod snapshot;
#[cfg(test)]
pub(crate) mod tests;
mod tree;
mod values;
mod watch;

pub use constants::{access, attributes, notify_filter, options, security_parts, sharing};
pub(crate) use copy::PARTS_IN_MEMORY_MAX;
pub use copy::{COPY_STEP_BYTES_MAX, Chunk, Copied, CopyAccess, DUPLICATED_BYTES_MAX};
pub use open_file::OpenFile;
pub use refused::Refused;
pub(crate) use removal::{Abandoned, Due, Remover};
pub use tree::{Door, NotDeleted, SHARES_LISTED_MAX, Tree};
pub use values::{
    BasicInfo, Change, ChangeKind, Changes, CreateAction, CreateRequest, DirectoryEntry, Disposition, FileInfo,
    HandleOwner, Lock, Opened, Space, TimeChange, filetime, time_of,
};

/// Reads a path and a pattern.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn fuzz_names(text: &str) {
    let path = decide::parse_path(text).map(|path| path.to_string()).unwrap_or_default();
    if let Ok(pattern) = pattern::Pattern::parse(text) {
        let _ = (pattern.matches(&path), pattern.matches("a.b"), pattern.prefix());
        if let Some(only) = pattern.only() {
            assert!(pattern.matches(&only), "a pattern without signs matches itself");
        }
    }
}

/// The most bytes that one read or write moves.
pub const TRANSFER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most entries of a directory that one call of [`OpenFile::list`] answers.
pub const LISTED_ENTRIES_MAX: usize = 1_000;
/// The most names of a directory that one call of [`OpenFile::list`] looks at.
pub const ROWS_PASSED_MAX: usize = if cfg!(test) { 2_000 } else { 20_000 };
