//! Query Blob Contents: a subset of SQL over delimited text and JSON, answered as Avro.
//!
//! Everything here is a plain function of its input: bytes go in as they come ([`Run::push`]), bytes of the answer come out,
//! and what is held meanwhile has limits: one record, the values made of it, and the rows that wait to go out. So has the
//! work: [`Run::push`] returns after a turn, and a query that costs too much ends with an error. Nothing that comes in makes
//! it panic, and no nesting makes it recurse without end.
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
/// A record may have this many fields, or values of JSON. Each takes some ten bytes more than its text.
pub const RECORD_VALUES_MAX: usize = 64 * 1024;
/// A value that an expression makes may have this many bytes.
pub const VALUE_BYTES_MAX: usize = 2 * RECORD_BYTES_MAX;
/// A row of the answer may have this many bytes: a record with every character escaped still fits.
pub const ROW_BYTES_MAX: usize = 8 * RECORD_BYTES_MAX;
/// Rows go out together, up to about this many bytes.
pub const DATA_BYTES: usize = 1024 * 1024;
/// A step is an expression computed, a byte of a value looked at, or a byte of a name written. This many are done before others have their turn,
/// unless one record needs more.
pub const TURN_STEPS: u64 = 1024 * 1024;
/// One record may need this many. What an expression makes costs a step for each byte, so they bound the memory, too.
pub const RECORD_STEPS_MAX: u64 = 16 * 1024 * 1024;
/// And the whole query this many for each byte of the blob.
pub const STEPS_PER_BYTE_MAX: u64 = 4096;
