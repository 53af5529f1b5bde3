//! LOGOFF: ends a session (MS-SMB2 2.2.7).

pub use super::Empty as Request;
pub use super::Empty as Response;
