//! CANCEL: ends a request that waits, by its asynchronous or message id (MS-SMB2 2.2.30). It has no answer, also where it cannot be
//! read: then it is dropped.

pub use super::Empty as Request;
