//! TREE_DISCONNECT: lets a share go (MS-SMB2 2.2.11).

pub use super::Empty as Request;
pub use super::Empty as Response;
