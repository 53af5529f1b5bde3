//! ECHO: asks whether the server is there (MS-SMB2 2.2.28).

pub use super::Empty as Request;
pub use super::Empty as Response;
