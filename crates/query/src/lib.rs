//! Query Blob Contents: a subset of SQL over delimited text and JSON, answered as Avro.
//!
//! Everything here is a plain function of its input: bytes go in as they come ([`Run::push`]), bytes of the answer come out,
//! and what is held meanwhile is one record at most, which has a limit. Nothing that comes in makes it panic.
//!
//! ```text
//! SELECT * | expression [AS name], ... | COUNT(*), SUM(x), AVG(x), MIN(x), MAX(x)
//! FROM BlobStorage [alias] [WHERE condition] [LIMIT n]
//! ```
//!
//! Numbers are computed as 64-bit floats. What a query takes as it stands is answered as it stands.

mod avro;
mod delimited;
mod evaluate;
mod json;
mod run;
mod sql;

pub use delimited::Delimited;
pub use run::{Input, Output, Run};
pub use sql::{Query, SyntaxError};

/// A record may have this many bytes. More are a fatal error, not more memory.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;
