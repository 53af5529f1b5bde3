//! Security descriptors of files and directories, in binary form and as SDDL.
//!
//! A descriptor names the owner and the group of a file and lists who may do what with it. The server stores descriptors, shows them
//! over REST and SMB and passes them on to new files; no descriptor keeps a caller out (the account key opens everything).
//!
//! - [`sid`] and [`alias`]: the names of users and groups.
//! - [`ace`], [`descriptor`]: one entry of a list, and the whole, with the self-relative binary form of MS-DTYP 2.4.6.
//! - [`sddl`]: the text form of MS-DTYP 2.5.1.
//! - [`inheritance`]: the descriptor of a new file or directory, from its parent's.
//! - [`permission`], [`key`]: what a share stores, and the name that clients use for it.
//!
//! Everything here is a plain function of its arguments. Decoders accept any bytes and any text: they fail, but they do not panic,
//! and their work grows with the length of the input and no faster.

pub mod ace;
pub mod alias;
pub mod default;
pub mod descriptor;
pub mod error;
pub mod inheritance;
pub mod key;
pub mod permission;
pub mod sddl;
pub mod sid;

pub use ace::{Ace, AceBody, AceFlags, AceKind, Guid, ObjectTypes, Rule};
pub use default::root_directory;
pub use descriptor::{Acl, AclFlags, DESCRIPTOR_BYTES_MAX, Descriptor};
pub use error::PermissionError;
pub use inheritance::{ChildKind, new_child};
pub use key::PermissionKey;
pub use permission::{PERMISSION_HEADER_BYTES_MAX, Permission};
pub use sid::Sid;

/// Digits and nothing else: the parsers of the standard library would also take a sign.
fn number(digits: &str, radix: u32) -> Option<u64> {
    let is_number = digits.chars().all(|digit| digit.is_digit(radix));
    is_number.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

fn without_hex_prefix(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

#[cfg(test)]
mod tests;
