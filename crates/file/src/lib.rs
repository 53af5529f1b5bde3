//! The File service.
//!
//! - [`security`]: who owns a file and who may do what with it: SIDs, security descriptors, SDDL, inheritance.
//! - [`opens`]: who has what open: the table that REST operations and SMB opens both enter.

pub mod opens;
pub mod security;
